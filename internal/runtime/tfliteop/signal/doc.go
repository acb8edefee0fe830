// Package signal implements TFLite's spectral operators (RFFT2D and complex numbers) and the
// Signal operators of TensorFlow Lite Micro, the fixed-point front end of audio models: windows,
// Fourier transforms, filter banks, noise suppression, gain control, and the stateful buffers
// between frames. The fixed-point operators are bit-exact with the reference library.
package signal
