// Package pooling reduces sliding windows to their maxima or sums. Functions do not check their
// arguments: operators check shapes.
//
//	f32.go        float32 maximum and sum
//	int8_nchw.go  int8 maximum over [N,C,H,W]
//	int8_nhwc.go  int8 maximum and average, int16 maximum, over [N,H,W,C]
package pooling
