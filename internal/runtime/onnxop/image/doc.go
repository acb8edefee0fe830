// Package image implements ONNX's ImageDecoder: PNG, JPEG, BMP, TIFF and the portable formats
// (PBM, PGM, PPM). JPEG is reconstructed as in libjpeg, with linearly interpolated chroma, as the
// standard requires.
package image
