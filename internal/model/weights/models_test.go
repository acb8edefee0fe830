package weights_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// folders are those whose models have weights.
var folders = []string{"real", "mcu", "synthetic"}

// each opens all reference models.
func each(t *testing.T, do func(t *testing.T, m *graph.Model)) {
	for _, folder := range folders {
		for _, end := range []string{"*.onnx", "*.tflite"} {
			files, err := filepath.Glob(filepath.Join(material.Path(t, "models", folder), end))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				t.Run(folder+"/"+filepath.Base(file), func(t *testing.T) {
					m, err := modelfile.Open(file)
					if err != nil {
						t.Skip(err)
					}
					if m.Close != nil {
						defer func() { _ = m.Close() }()
					}
					do(t, m)
				})
			}
		}
	}
}

// TestModels reads the weights of all reference models and writes them again: nothing changes, and
// every weight is one element of its constant.
func TestModels(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m *graph.Model) {
		for _, l := range weights.Find(m, nil) {
			t.Logf("%d %s %s %v %s: %dx%d, %d taps, %d groups, %d channels, %d zeros, data %d, nodes %v, %q", l.Node, l.Op, l.Weight, l.Shape, l.Type, l.Rows, l.Cols, l.Taps, l.Groups, l.Channels, l.Zeros, l.Data, l.Nodes, l.Fixed)
			if l.Rows != len(l.Row) || l.Cols != len(l.Col) || l.Channels*l.Taps != l.Cols {
				t.Fatalf("%s: %d rows, %d columns of %d channels and %d taps", l.Name, len(l.Row), len(l.Col), l.Channels, l.Taps)
			}
			if l.Weights() > 1<<21 {
				continue // the same again
			}
			seen, n := make([]bool, 8*len(l.Const.Data)), 0
			for _, r := range l.Row {
				for _, c := range l.Col {
					if seen[r+c] {
						t.Fatalf("%s: element %d twice", l.Name, r+c)
					}
					seen[r+c] = true
					n++
				}
			}
			if l.Op != "com.microsoft:MatMulNBits" && n != l.Const.Len() {
				t.Errorf("%s: %d of %d elements", l.Name, n, l.Const.Len())
			}
			if l.Fixed != "" {
				continue
			}
			mat := l.Read(nil)
			same := l.Write(mat)
			if n := same.Type.Bytes(same.Len()); !slices.Equal(same.Data[:n], l.Const.Data[:n]) || !slices.Equal(same.Shape, l.Const.Shape) {
				t.Errorf("%s: written again it is another", l.Name)
			}
		}
	})
}
