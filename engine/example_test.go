package engine_test

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/engine"
)

// A list that cannot be read gives an error that says what was expected.
func ExampleFind() {
	found, err := engine.Find("opmeter")
	fmt.Println(len(found), found[0] == nil, err) // nil is opmeter's own engine
	_, err = engine.Find("onnxrutime")
	fmt.Println(err)
	// Output:
	// 1 true <nil>
	// "onnxrutime" is not an engine: use opmeter, onnxruntime, litert, tflite, openvino or tflm
}

func ExampleOperators() {
	known := slices.ContainsFunc(engine.Operators(), func(o engine.Operator) bool { return o.Format == "onnx" && o.Op == "Conv" })
	fmt.Println("Conv:", known)
	// Output: Conv: true
}
