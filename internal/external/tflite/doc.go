// Package tflite opens the older C library of TensorFlow Lite (libtensorflowlite_c.so, 2.4 and
// later) and runs models with its interpreter, through the interface of TensorFlow Lite's c_api.h
// and common.h.
//
// That interface has no profiler: a session reports totals and outputs, but no operators. Its
// successor LiteRT has one (internal/external/litert).
package tflite
