// Package image holds ONNX's ImageDecoder: PNG, JPEG, BMP, TIFF and the portable
// formats (PBM, PGM, PPM). JPEG is finished the way of libjpeg, with linearly
// interpolated chroma, as the standard demands.
package image
