package opmeter_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/tflite"
)

// weighty is a model of some hundred kilobytes: a product with a constant, a gather in
// it, and an output that is the constant itself.
func weighty(t *testing.T, format string) []byte {
	t.Helper()
	const n = 256
	w := tensor.New(tensor.Float32, n, n)
	for i, v := 0, tensor.Of[float32](w); i < len(v); i++ {
		v[i] = float32(i%7) - 3
	}
	f := func(name string, shape ...int) *graph.Value {
		return &graph.Value{Name: name, Type: tensor.Float32, Shape: shape, HasShape: true}
	}
	g := &graph.Graph{Name: "main", Inputs: []int{0}, Outputs: []int{2}}
	g.Values = []*graph.Value{f("x", 1, n), f("w", n, n), f("y", 1, n)}
	g.Values[1].Const = w
	for i, v := range g.Values {
		v.ID = i
	}
	m := &graph.Model{Format: format, Graphs: []*graph.Graph{g}}
	var data []byte
	var err error
	if format == "onnx" {
		g.Values = append(g.Values, &graph.Value{ID: 3, Name: "i", Type: tensor.Int64, Shape: []int{1}, HasShape: true, Const: tensor.From(tensor.Int64, []int{1}, []int64{200})})
		g.Values = append(g.Values, f("z", 1, n), f("row", 1, n))
		g.Values[4].ID, g.Values[5].ID = 4, 5
		g.Nodes = []*graph.Node{
			{Index: 0, Op: "MatMul", Version: 13, Inputs: []int{0, 1}, Outputs: []int{4}},
			{Index: 1, Op: "Gather", Version: 13, Inputs: []int{1, 3}, Outputs: []int{5}, Attrs: graph.Attrs{"axis": int64(0)}},
			{Index: 2, Op: "Add", Version: 14, Inputs: []int{4, 5}, Outputs: []int{2}},
		}
		g.Outputs = append(g.Outputs, 1)
		m.IRVersion, m.Opsets = 8, map[string]int{"": 17}
		data, err = onnx.Encode(m)
	} else {
		m.IRVersion = 3
		g.Nodes = []*graph.Node{{Index: 0, Domain: graph.TFLite, Op: "FULLY_CONNECTED", Version: 1, Inputs: []int{0, 1, -1}, Outputs: []int{2}, Attrs: graph.Attrs{}}}
		data, err = tflite.Encode(m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// spoiled are ways to change a file that is mapped.
var spoiled = map[string]func(path string, data []byte) error{
	"cut":     func(path string, _ []byte) error { return os.Truncate(path, 100) },
	"emptied": func(path string, _ []byte) error { return os.Truncate(path, 0) },
	"overwritten": func(path string, data []byte) error {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		if _, err := f.WriteAt(bytes.Repeat([]byte{7}, 4096), int64(len(data)/2)); err != nil {
			return err
		}
		later := time.Now().Add(time.Hour) // whatever the file system's clock resolves
		return errors.Join(f.Close(), os.Chtimes(path, later, later))
	},
}

// TestFileChanges changes a model's file at every stage of its use. What comes then is
// an error that names the file, and never the end of the process.
func TestFileChanges(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a mapped file cannot be changed there")
	}
	session := func(m *opmeter.Model, threads int, before, between func()) error {
		before()
		s, err := opmeter.NewSession(m, opmeter.RunOptions{Threads: threads, KeepAll: true})
		if err != nil {
			return err
		}
		defer s.Close()
		if err := s.Run(context.Background()); err != nil {
			return err
		}
		between()
		_ = s.Operators()
		for _, o := range s.Outputs() {
			_ = bytes.Count(o.Data, []byte{0}) // the reader need not know where it lies
		}
		return s.Run(context.Background())
	}
	nothing := func() {}
	stages := map[string]func(m *opmeter.Model, change func()) error{
		"count": func(m *opmeter.Model, change func()) error {
			change()
			_, err := opmeter.Count(m, opmeter.Inputs{})
			return err
		},
		"count again": func(m *opmeter.Model, change func()) error {
			if _, err := opmeter.Count(m, opmeter.Inputs{}); err != nil {
				return err
			}
			change()
			_, err := opmeter.Count(m, opmeter.Inputs{Batch: 2})
			return err
		},
		"estimate": func(m *opmeter.Model, change func()) error {
			change()
			_, err := opmeter.Estimate(m, "stm32l4r5", opmeter.EstimateOptions{})
			return err
		},
		"estimate again": func(m *opmeter.Model, change func()) error {
			if _, err := opmeter.Estimate(m, "stm32l4r5", opmeter.EstimateOptions{}); err != nil {
				return err
			}
			change()
			_, err := opmeter.Estimate(m, "stm32l4r5", opmeter.EstimateOptions{Inputs: opmeter.Inputs{Batch: 3}})
			return err
		},
		"session": func(m *opmeter.Model, change func()) error { return session(m, 1, change, nothing) },
		"run":     func(m *opmeter.Model, change func()) error { return session(m, 1, nothing, change) },
		"run with threads": func(m *opmeter.Model, change func()) error {
			return session(m, 3, nothing, change)
		},
		"profile": func(m *opmeter.Model, change func()) error {
			change()
			_, err := opmeter.Profile(context.Background(), m, quick)
			return err
		},
		"measuring": func(m *opmeter.Model, change func()) error {
			done, o := false, quick
			o.Progress = func(phase string, _ float64) {
				if phase == "measuring" && !done {
					done = true
					change()
				}
			}
			p, err := opmeter.Profile(context.Background(), m, o)
			if p == nil || len(p.Incomplete) != 1 || len(p.Layers) == 0 {
				t.Errorf("what was known before is lost: %+v", p)
			}
			return err
		},
	}
	for _, format := range []string{"onnx", "tflite"} {
		data := weighty(t, format)
		for how, spoil := range spoiled {
			for stage, use := range stages {
				t.Run(format+" "+how+" "+stage, func(t *testing.T) {
					t.Parallel()
					path := filepath.Join(t.TempDir(), "m."+format)
					if err := os.WriteFile(path, slices.Clone(data), 0o600); err != nil {
						t.Fatal(err)
					}
					m, err := opmeter.Open(path)
					if err != nil {
						t.Fatal(err)
					}
					defer m.Close()
					err = use(m, func() {
						if err := spoil(path, data); err != nil {
							t.Error(err)
						}
					})
					e, ok := errors.AsType[*opmeter.ModelError](err)
					if !ok || !errors.Is(err, opmeter.ErrChanged) || e.File != path || err.Error() != path+": the file changed while it was in use" {
						t.Errorf("error %v", err)
					}
				})
			}
		}
	}
}
