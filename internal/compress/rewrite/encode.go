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

// Write writes a model as a file of its format atomically. An ONNX model with external constants,
// or with more than the 2 GiB that fit into one file, gets a second file named path + ".data" for
// its constants. The second file appears just before the model.
func Write(m *graph.Model, path string) error {
	if m.Format != "onnx" || len(m.Beside) == 0 && constBytes(m) <= math.MaxInt32 {
		b, err := Encode(m)
		if err != nil {
			return err
		}
		return atomicfile.Write(path, b)
	}
	b, beside, err := onnx.EncodeExternal(compact(m), filepath.Base(path)+".data")
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

// constBytes returns the bytes of a model's constants; constants shared with subgraphs count
// once.
func constBytes(m *graph.Model) (total int64) {
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

// Encode encodes a model in its format with all constants inside, including names, metadata,
// signatures and operator sets. A model above the 2 GiB of such a file is an error that suggests
// remedies. Constants that were sparse in a TFLite file are sparse again where that is smaller,
// else dense without the DENSIFY node. Values that nothing uses are not written.
func Encode(m *graph.Model) ([]byte, error) {
	if total := constBytes(m); total > math.MaxInt32 {
		return nil, fmt.Errorf("%s: %d bytes of constants exceed the 2 GiB of a file: use low-bit formats for more layers, or remove channels", m.ShortName(), total)
	}
	switch m.Format {
	case "tflite":
		return tflite.Encode(compact(withoutDensify(m)))
	case "onnx":
		return onnx.Encode(compact(m))
	}
	return nil, fmt.Errorf("a model of format %q cannot be written", m.Format)
}
