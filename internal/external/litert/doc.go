// Package litert opens LiteRT 2.x (libLiteRt.so of the PyPI package ai-edge-litert) through
// its C interface and runs models with it as the applications that ship it do: an
// environment, a compiled model, buffers that are made once.
//
// Layouts and values follow LiteRT's public headers (litert/c: litert_common.h,
// litert_any.h, litert_environment_options.h, litert_model_types.h, litert_layout.h,
// litert_tensor_buffer_types.h, litert_profiler_event.h) as of version 2.3. CPU and runtime
// options travel as TOML texts, which is how the library's own C++ layer passes them.
//
// # What its profiler tells
//
// Operators of the interpreter come with their position in the model. What a delegate
// computes comes as the delegate's own operators, by name and in order, without a word
// about the model ("Convolution (NHWC, F32) IGEMM"). Which nodes a delegate took is
// nevertheless known, all that the interpreter did not run itself, and so is their order: the
// interpreter's division of a graph into parts is repeated here. The two lists are then
// laid side by side; see align.go. Times are whole microseconds, cut off, so that short
// operators are right in the mean over runs and in no single one.
package litert
