// Package signal holds TFLite's spectra (RFFT2D and complex numbers) and the
// Signal operators of TensorFlow Lite Micro, the fixed-point front end of audio
// models: windows, Fourier transforms, filter banks, noise suppression, gain
// control, and the stateful buffers between frames. The fixed-point operators
// give the same bits as the reference library.
package signal
