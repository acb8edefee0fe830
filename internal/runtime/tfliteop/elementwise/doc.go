// Package elementwise holds TFLite's comparisons, logic, selection, conversion
// and the less common arithmetic (integer division, powers, shifts). Layers'
// arithmetic such as ADD and MUL is in internal/runtime/tfliteop/nn.
package elementwise
