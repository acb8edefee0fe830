// Package signal holds ONNX's Fourier transforms, window functions and the
// mel filter bank. All of it is computed in double precision.
package signal
