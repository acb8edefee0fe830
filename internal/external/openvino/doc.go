// Package openvino opens Intel's OpenVINO through its C interface (libopenvino_c, releases from
// 2023) and runs models as applications do.
//
// # Calls
//
// The functions of openvino/c/openvino.h (repository openvinotoolkit/openvino, folder
// src/bindings/c/include) are called by their addresses. Structures have the layout of the
// header. The numbers of element types changed between releases, so the library is probed for
// them (types.go). Properties are set one by one through ov_core_set_properties (2026.4 and
// newer) or the variadic ov_core_set_property (older): see property.go for its calling
// convention.
//
// # Counters
//
// On CPUs, ov_infer_request_get_profiling_info returns running means since the model was
// compiled, in whole microseconds, truncated twice. counters.go computes means over the requested
// runs, with error bounds. Other devices report the last inference.
//
// # Joining executed nodes with the model
//
// The C interface cannot tell which operators a node was made from. If the C++ library beside it
// exports ov::serialize with the layout of the GNU library, both graphs (as read, as executed)
// are written to the session's folder and read back (serialize.go, graph.go). The graph as read
// tells which node produces which of the model's tensors. The executed graph tells which nodes
// were merged into each of its own. hints.go combines the two.
package openvino
