package conformance_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/npy"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/synth"
	"github.com/opmeter/opmeter/internal/testing/conformance"
	"github.com/opmeter/opmeter/internal/testing/golden"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// TestORTGoldens runs whole models and compares their outputs with those of ONNX
// Runtime without graph optimisation. The error of a float output is its largest
// absolute difference over the recorded elements, divided by the largest
// magnitude of the whole recorded output; 1e-4 is allowed. Integer outputs are
// equal. Two kinds of models follow another rule, see rule.
func TestORTGoldens(t *testing.T) {
	t.Parallel()
	over, err := synth.LoadOverrides(material.Path(t, "oracle", "inputs.json"))
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(material.Path(t, "golden"), "*", "ort", "result.json"))
	if len(files) == 0 {
		t.Fatal("no results of ONNX Runtime")
	}
	for _, file := range files {
		r, err := golden.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(r.Model, func(t *testing.T) {
			m := openGolden(t, r.Model)
			defer func() { _ = m.Close() }()
			in, err := synth.Inputs(m.Main(), 1, over[r.Model])
			if err != nil {
				t.Fatal(err)
			}
			checkInputs(t, file, m.Main(), in)
			how := ruleOf(m)
			if how == rounded {
				compareRecorded(t, m, in, r, golden.Tolerance{Relative: 5e-3})
				widenModel(m, tensor.Float16)
				for i, x := range in {
					in[i] = widened(x, tensor.Float16)
				}
			}
			tol := golden.Tolerance{Relative: 1e-4}
			if how == rounded {
				tol.Relative += 1.0 / 2048 // the outputs themselves are float16
			}
			compareRecorded(t, m, in, r, tol)
		})
	}
}

// rule says how a model's outputs are judged.
type rule int

const (
	plain rule = iota
	// dynamic: activations are quantised at run time, where one last bit decides
	// whether a value falls to one integer or the next. The outputs' cosine
	// similarity with the recorded ones is at least 0.999.
	dynamic
	// rounded: float16 activations. The recording keeps float32 between operators,
	// since ONNX Runtime has no float16 kernels on this processor and removes
	// pairs of casts, where the engine rounds after every operator. The model's own
	// result may be 5e-3 off; the same model in float32 may be 1e-4 and the rounding
	// of the output off.
	rounded
)

func ruleOf(m *graph.Model) rule {
	for _, g := range m.Graphs {
		for _, n := range g.Nodes {
			if n.Op == "DynamicQuantizeLinear" {
				return dynamic
			}
		}
	}
	for _, v := range m.Main().Values {
		if v.Type == tensor.Float16 {
			return rounded
		}
	}
	return plain
}

// compareRecorded runs the model once and compares all outputs. A model may be such
// that rounding grows beyond the tolerance, in the recording as well: then the engine
// may not be farther than the recording from what the model gives in float64. It
// changes the model in that case.
func compareRecorded(t *testing.T, m *graph.Model, in []*tensor.Tensor, r *golden.Result, tol golden.Tolerance) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := engine.New(m, in, engine.Options{Registry: operators.Registry(), Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if why := (&golden.Run{Model: m, Session: s}).Trouble(); why != "" {
		t.Fatal(why)
	}
	how := ruleOf(m)
	var exact []*tensor.Tensor
	for i := range r.Outputs {
		o := r.Outputs[i]
		got := s.Output(i)
		switch {
		case o.Dtype == "none":
			// A sequence or map, which the recording could not fetch.
		case how == dynamic:
			if c := similarity(t, r.Dir, o, got); !(c >= 0.999) {
				t.Errorf("output %d %q: cosine similarity %.6f", i, o.Name, c)
			}
		default:
			if o.Dtype == "float16" && got != nil && got.Type == tensor.Float32 {
				got = narrowed(got)
			}
			diff := o.Check(r.Dir, got, tol)
			if diff == "" {
				continue
			}
			if exact == nil && how == plain {
				exact = inFloat64(ctx, t, m, in)
			}
			if exact == nil || got == nil || got.Type != tensor.Float32 {
				t.Errorf("output %d %q: %s", i, o.Name, diff)
				continue
			}
			ours := largestDifference(tensor.Of[float32](got), tensor.Of[float64](exact[i]))
			theirs, err := o.Off(r.Dir, exact[i])
			if err != nil || !(ours <= theirs) {
				t.Errorf("output %d %q: %s; %g off the result in float64, the recording %g (%v)", i, o.Name, diff, ours, theirs, err)
				continue
			}
			t.Logf("output %d %q: %s; %.2g off the result in float64, the recording %.2g", i, o.Name, diff, ours, theirs)
		}
	}
}

// similarity is the cosine of the angle between an output and the recorded one.
// Of large outputs the recording holds the first elements.
func similarity(t *testing.T, dir string, o golden.Output, got *tensor.Tensor) float64 {
	t.Helper()
	name := o.File
	if name == "" {
		name = o.Head
	}
	want, err := npy.ReadFile(filepath.Join(dir, name), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got == nil || got.Type != want.Type || !slices.Equal(got.Shape, o.Shape) {
		t.Fatalf("output %q: %v for %v", o.Name, got, o.Shape)
	}
	x, err := conformance.Reals(got)
	if err != nil {
		t.Fatal(err)
	}
	y, err := conformance.Reals(want)
	if err != nil {
		t.Fatal(err)
	}
	var xy, xx, yy float64
	for i := range y {
		xy += x[i] * y[i]
		xx += x[i] * x[i]
		yy += y[i] * y[i]
	}
	return xy / math.Sqrt(xx*yy)
}

// inFloat64 computes a float32 model in float64.
func inFloat64(ctx context.Context, t *testing.T, m *graph.Model, in []*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	widenModel(m, tensor.Float32)
	wide := make([]*tensor.Tensor, len(in))
	for i, x := range in {
		wide[i] = widened(x, tensor.Float32)
	}
	s, err := engine.New(m, wide, engine.Options{Registry: operators.Registry(), Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if why := (&golden.Run{Model: m, Session: s}).Trouble(); why != "" {
		t.Fatal("in float64: " + why)
	}
	out := make([]*tensor.Tensor, len(m.Main().Outputs))
	for i := range out {
		if out[i] = s.Output(i).Clone(); out[i].Type != tensor.Float64 {
			return nil
		}
	}
	return out
}

// largestDifference is that of two outputs; what is a number in one only differs
// without limit.
func largestDifference(a []float32, b []float64) float64 {
	var worst float64
	for i, v := range a {
		switch d := math.Abs(float64(v) - b[i]); {
		case float64(v) == b[i] || v != v && b[i] != b[i]:
		case math.IsNaN(d):
			return math.Inf(1)
		default:
			worst = max(worst, d)
		}
	}
	return worst
}

// wider are the float types that take the place of others, with ONNX's numbers.
var wider = map[tensor.Type]struct {
	to   tensor.Type
	code int64
}{
	tensor.Float16: {tensor.Float32, 1},
	tensor.Float32: {tensor.Float64, 11},
}

// widenModel turns a model in one float type into the same model in the next wider.
func widenModel(m *graph.Model, from tensor.Type) {
	for _, g := range m.Graphs {
		for _, v := range g.Values {
			if v.Type == from {
				v.Type = wider[from].to
			}
			if v.Const != nil {
				v.Const = widened(v.Const, from)
			}
		}
		for _, n := range g.Nodes {
			for k, a := range n.Attrs {
				switch a := a.(type) {
				case *tensor.Tensor:
					n.Attrs[k] = widened(a, from)
				case int64:
					if onnx.ElemType(a) == from && (k == "to" || k == "dtype" || k == "stash_type") {
						n.Attrs[k] = wider[from].code
					}
				}
			}
		}
	}
}

func widened(x *tensor.Tensor, from tensor.Type) *tensor.Tensor {
	if x.Type != from {
		return x
	}
	y := tensor.New(wider[from].to, x.Shape...)
	if from == tensor.Float32 {
		tensor.Read(tensor.Of[float64](y), x, 0)
		return y
	}
	tensor.Read(tensor.Of[float32](y), x, 0)
	return y
}

func narrowed(x *tensor.Tensor) *tensor.Tensor {
	y := tensor.New(tensor.Float16, x.Shape...)
	for i, f := range tensor.Of[float32](x) {
		tensor.Of[uint16](y)[i] = tensor.F32ToF16(f)
	}
	return y
}

// checkInputs proves that the made inputs are those of the recording.
func checkInputs(t *testing.T, file string, g *graph.Graph, in []*tensor.Tensor) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rec struct {
		Inputs []struct {
			Name   string `json:"name"`
			SHA256 string `json:"sha256"`
		} `json:"inputs"`
	}
	if err := jsonx.Unmarshal(data, &rec); err != nil {
		t.Fatal(err)
	}
	if len(rec.Inputs) != len(in) {
		t.Fatalf("%d inputs, recorded %d", len(in), len(rec.Inputs))
	}
	for i, r := range rec.Inputs {
		if name := g.Values[g.Inputs[i]].Name; name != r.Name || golden.Hash(in[i]) != r.SHA256 {
			t.Errorf("input %d %q of shape %v is not the recorded %q", i, name, in[i].Shape, r.Name)
		}
	}
}

// openGolden opens a model by the name of its recording.
func openGolden(t *testing.T, name string) *graph.Model {
	t.Helper()
	topology, inflated := strings.CutPrefix(name, "inflated_")
	if inflated {
		name = "onnx_light_" + topology
	}
	dir := "real"
	if strings.HasPrefix(name, "synth_") {
		dir = "synthetic"
	}
	path := filepath.Join(material.Path(t, "models"), dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not in the material", name)
	}
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if inflated {
		inflate(m.Main())
	}
	return m
}

// inflate gives a model whose weights are made by ConstantOfShape random ones, as
// its recording had: node k becomes a constant drawn from seed 1000+k, uniform
// over ±1 and scaled by what the values are used for.
func inflate(g *graph.Graph) {
	k := 0
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n *graph.Node) bool {
		if n.Op != "ConstantOfShape" || g.Values[n.Inputs[0]].Const == nil {
			return false
		}
		v := g.Values[n.Outputs[0]]
		var shape []int
		for _, d := range tensor.Of[int64](g.Values[n.Inputs[0]].Const) {
			shape = append(shape, int(d))
		}
		scale := func(v float64) float64 { return 0.1 * v }
		if role := roleOf(g, v.ID); len(shape) >= 2 {
			a := math.Sqrt(3 / float64(tensor.Elements(shape[1:])))
			scale = func(v float64) float64 { return v * a }
		} else if role != 0 {
			scale = func(v float64) float64 { return 1 + role*v }
		}
		x := tensor.New(tensor.Float32, shape...)
		r := synth.NewGenerator(uint64(1000+k), 0)
		for i, e := 0, tensor.Of[float32](x); i < len(e); i++ {
			e[i] = float32(scale(2*(float64(r.Next()>>40)/16777216) - 1))
		}
		v.Const, v.Type, v.Shape, v.HasShape = x, x.Type, shape, true
		k++
		return true
	})
	for i, n := range g.Nodes {
		n.Index = i
	}
}

// roleOf is the spread around 1 of a variance or a scale, 0 for other values.
func roleOf(g *graph.Graph, id int) float64 {
	for _, n := range g.Nodes {
		for i, in := range n.Inputs {
			if in != id {
				continue
			}
			switch {
			case n.Op == "BatchNormalization" && i == 4:
				return 0.5
			case n.Op == "BatchNormalization" && i == 1, n.Op == "Mul":
				return 0.1
			case n.Op == "Unsqueeze" && roleOf(g, n.Outputs[0]) == 0.1:
				return 0.1
			}
		}
	}
	return 0
}
