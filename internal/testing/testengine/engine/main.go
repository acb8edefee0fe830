// Command engine is opmeter-engine with the engines of internal/testing/testengine under the names
// of the real ones. Tests build it.
package main

import (
	"fmt"
	"os"

	"github.com/opmeter/opmeter/internal/external/child"
	"github.com/opmeter/opmeter/internal/testing/testengine"
)

func main() {
	out, err := child.Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	engines := child.Engines{}
	for _, name := range []string{"onnxruntime", "litert", "tflite", "openvino"} {
		engines[name] = testengine.Opener(name)
	}
	child.Serve(os.Stdin, out, engines, os.Exit)
}
