// Package tflite reads TensorFlow Lite model files into a [graph.Model] and writes them.
//
// Files are untrusted: everything is checked, an [Error] names the file, the table path inside
// the model and the byte offset, and neither time nor memory exceeds a small multiple of the file
// size. Constants are views into the mapped file.
//
// # Nodes
//
// Builtin operators have the domain [graph.TFLite] and the schema's name, such as "CONV_2D".
// Custom ones have the domain [graph.TFLiteCustom], their custom code as name and the attribute
// "custom_options" ([]byte). Attributes are the fields of the operator's option table by their
// schema names: integers as int64, booleans as bool, enumerations as upper-case names ("SAME",
// "RELU6", "INT32"), subgraph indices as [graph.GraphRef]. All fields of an existing table are
// set, fields that are not stored to the schema's default; an operator without option table has
// no attributes. Further attributes are "intermediates" (value ids, only if there are any) and
// "composite_attributes" ([]byte, FlexBuffers).
//
// # Values
//
// A shape signature replaces the stored shape, which stays in Value.Placeholder: such a file has
// been converted with unknown dimensions, so its stored shape is unreliable. Sparse constants are
// expanded. Blockwise quantisation is resolved: Quant.Axis is then the axis that is split into
// blocks, and Quant.Scale the scale tensor in row-major order.
//
// The package does no shape inference and knows no kernels.
package tflite
