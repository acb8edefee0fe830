// Package array holds TFLite's data movement, element-wise mathematics,
// comparison, control flow, resources and custom operators.
package array
