package rewrite

import (
	"fmt"
	"io"
	"math"
	"path/filepath"

	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/tflite"
)

// Write writes a model as a file of its format that appears whole or not at all. The constants of an ONNX model that had them in a
// file beside it, or has more than the 2 GiB of one file, go to a second file: its name and ".data". That one appears just before the
// model.
func Write(m *graph.Model, path string) error {
	if m.Format != "onnx" || len(m.Beside) == 0 && held(m) <= math.MaxInt32 {
		b, err := Encode(m)
		if err != nil {
			return err
		}
		return atomicfile.Write(path, b)
	}
	b, beside, err := onnx.EncodeBeside(m, filepath.Base(path)+".data")
	if err != nil {
		return err
	}
	if err := atomicfile.Check(path+".data", m.Beside...); err != nil {
		return err
	}
	return atomicfile.Stream(path, func(w io.Writer) error {
		if _, err := w.Write(b); err != nil {
			return err
		}
		return atomicfile.Stream(path+".data", beside.Write)
	})
}

// held are the bytes of a model's constants; those that bodies have of the graphs around them count once.
func held(m *graph.Model) (total int64) {
	first := map[*tensor.Tensor]int{}
	for i, g := range m.Graphs {
		for _, v := range g.Values {
			if v.Const == nil {
				continue
			}
			if at, ok := first[v.Const]; !ok || at == i {
				first[v.Const] = i
				total += int64(v.Const.Held())
			}
		}
	}
	return total
}

// Encode makes a file of a model's format with all constants inside: names, metadata, signatures and operator
// sets as the model has them. A model that has more than the 2 GiB of such a file is an error that says what would help. Constants that are sparse in a TFLite
// file are so again where that takes less, else without the DENSIFY that would unpack them.
func Encode(m *graph.Model) ([]byte, error) {
	if total := held(m); total > math.MaxInt32 {
		return nil, fmt.Errorf("%s: %d bytes of constants, and a file with all of them inside holds 2 GiB: store more layers in fewer bits, or take out channels", m.ShortName(), total)
	}
	switch m.Format {
	case "tflite":
		return tflite.Encode(densified(m))
	case "onnx":
		return onnx.Encode(m)
	}
	return nil, fmt.Errorf("a model of format %q cannot be written", m.Format)
}
