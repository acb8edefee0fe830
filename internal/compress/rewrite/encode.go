package rewrite

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/read/onnx"
	"github.com/opmeter/opmeter/internal/read/tflite"
)

// Encode writes a model as a file of its format, with all constants inside. A model that has more than
// the 2 GiB of such a file is an error that says so.
func Encode(m *graph.Model) ([]byte, error) {
	switch m.Format {
	case "tflite":
		return tflite.Encode(m)
	case "onnx":
		return onnx.Encode(m)
	}
	return nil, fmt.Errorf("a model of format %q cannot be written", m.Format)
}
