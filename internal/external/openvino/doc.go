// Package openvino opens Intel's OpenVINO through its C interface (libopenvino_c, releases from
// 2023) and runs models with it as a program does that ships it.
//
// # What is called
//
// Functions of openvino/c/openvino.h (repository openvinotoolkit/openvino, folder
// src/bindings/c/include) by their addresses. Structures cross the border as the header lays them out;
// the numbers of element types moved between releases, so they are asked of the
// library (types.go). Properties go in one by one through ov_core_set_properties
// (2026.4 and newer) or the variadic ov_core_set_property (older): see property.go for how
// that one is called.
//
// # What its counters say
//
// On processors, ov_infer_request_get_profiling_info gives running means since the model was
// compiled, in whole microseconds that were cut off twice. counters.go makes means over the runs
// that are asked for and says how sure they are. Other devices tell of the last inference.
//
// # How executed nodes lead back to the model
//
// The C interface cannot read what a node was made of. Where the C++ library beside it exports
// ov::serialize with the layout of the GNU library, both graphs (as read, as executed) are written to
// the session's folder and read back (serialize.go, graph.go): the graph as read says
// which node makes which of the model's tensors, the executed one which nodes went into each of its
// own, and what lies between (hints.go).
package openvino
