package peakmodels_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/measure/peakmodels"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TestProducts compares the engine's results with plain sums. The float input is random, so that
// a result of 16 products may differ in the last digits: 16 roundings.
func TestProducts(t *testing.T) {
	t.Parallel()
	const n = 16
	for _, format := range []string{"onnx", "tflite"} {
		for _, k := range peakmodels.Kinds {
			m, err := peakmodels.Make(format, k, n)
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("%s %s", format, k)
			x, y := run(t, format, m)
			if k == peakmodels.Memory {
				for i := range x {
					if y[i] != max(x[i], 0) {
						t.Errorf("%s: element %d is %v of %v", name, i, y[i], x[i])
					}
				}
				continue
			}
			g, err := modelfile.Parse("m."+format, m.Data)
			if err != nil {
				t.Fatal(err)
			}
			w, err := tensor.All[float64](g.Main().Values[g.Main().Nodes[0].Inputs[1]].Const)
			if err != nil {
				t.Fatal(err)
			}
			for r := range n {
				for c := range n {
					sum, size := 0.0, 0.0
					for i := range n {
						v := w[i*n+c]
						if format == "tflite" { // weights are ordered by outputs
							v = w[c*n+i]
						}
						sum += x[r*n+i] * v
						size += math.Abs(x[r*n+i] * v)
					}
					got, want, tol := y[r*n+c], sum, size*n*math.Pow(2, -24)
					if k == peakmodels.Int8 {
						tol = 0
						if format == "tflite" { // the output's scale is 2
							want, tol = math.Min(127, math.Max(-128, sum/2)), .5
						}
					}
					if !(math.Abs(got-want) <= tol) {
						t.Fatalf("%s: element %d, %d is %v, want %v", name, r, c, got, want)
					}
				}
			}
			if want := 2.0 * n * n * n; m.Ops != want {
				t.Errorf("%s: %v operations, want %v", name, m.Ops, want)
			}
		}
	}
}

// run runs a model on generated input and returns input and output.
func run(t *testing.T, format string, m *peakmodels.Model) (x, y []float64) {
	t.Helper()
	model, err := opmeter.OpenBytes("m."+format, m.Data)
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	s, err := opmeter.NewSession(model, opmeter.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	in, out := s.Inputs()[0], s.Outputs()[0]
	if in.Name != m.Input || in.DType != m.DType {
		t.Errorf("input %s of %s, want %s of %s", in.Name, in.DType, m.Input, m.DType)
	}
	return reals(t, &in), reals(t, &out)
}

func reals(t *testing.T, x *opmeter.Tensor) []float64 {
	t.Helper()
	var out []float64
	switch x.DType {
	case "float32":
		for i := 0; i < len(x.Data); i += 4 {
			out = append(out, float64(math.Float32frombits(binary.LittleEndian.Uint32(x.Data[i:]))))
		}
	case "int32":
		for i := 0; i < len(x.Data); i += 4 {
			out = append(out, float64(int32(binary.LittleEndian.Uint32(x.Data[i:]))))
		}
	case "int8":
		for _, b := range x.Data {
			out = append(out, float64(int8(b)))
		}
	case "uint8":
		for _, b := range x.Data {
			out = append(out, float64(b))
		}
	default:
		t.Fatalf("type %s", x.DType)
	}
	return out
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		format string
		kind   peakmodels.Kind
		n      int
	}{{"x", peakmodels.Float32, 4}, {"onnx", "x", 4}, {"onnx", peakmodels.Float32, 0}, {"onnx", peakmodels.Int8, 1 << 20}, {"tflite", peakmodels.Memory, 1 << 40}} {
		if _, err := peakmodels.Make(tt.format, tt.kind, tt.n); err == nil {
			t.Errorf("%+v is made", tt)
		}
	}
}
