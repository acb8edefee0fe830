// Package tflite opens the older C library of TensorFlow Lite (libtensorflowlite_c.so, 2.4 and
// later) and runs models with its interpreter, by the interface of TensorFlow Lite's
// c_api.h and common.h.
//
// That interface has no profiler: a session tells totals and outputs, and nothing of
// single operators. LiteRT, which took its place, has one (internal/external/litert).
package tflite
