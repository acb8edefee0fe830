// Package litert opens LiteRT 2.x (libLiteRt.so of the PyPI package ai-edge-litert) through its C
// interface. It runs models as applications do: an environment, a compiled model, buffers that
// are created once.
//
// Layouts and values follow LiteRT's public headers (litert/c: litert_common.h, litert_any.h,
// litert_environment_options.h, litert_model_types.h, litert_layout.h,
// litert_tensor_buffer_types.h, litert_profiler_event.h) as of version 2.3. CPU and runtime
// options are passed as TOML texts, as the library's own C++ layer does.
//
// # What the profiler reports
//
// Operators of the interpreter come with their index in the model. Work of a delegate comes as
// the delegate's own operators, by name and in order, without a reference to the model
// ("Convolution (NHWC, F32) IGEMM"). The nodes that a delegate took are still known: all nodes
// that the interpreter did not run itself. Their order is known because this package repeats the
// interpreter's partitioning of the graph. The two lists are then aligned; see align.go. Times
// are whole microseconds, truncated. An operator whose mean is below one has no time: the
// cost of the profiler's own events is of the same size.
package litert
