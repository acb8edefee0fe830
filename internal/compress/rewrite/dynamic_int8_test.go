package rewrite_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/study"
)

// product is a model of one matrix multiplication, followed by a ReLU if relu.
type product struct {
	op           string
	data         []int
	attrs        graph.Attrs
	bias         *tensor.Tensor
	open         bool // the bias is an input
	relu         bool
	inputs, outs int
	transposed   bool // weights outputs by inputs
	opset        int
	steps        int // operators that run, 0 for DynamicQuantizeLinear and the product
}

func (p *product) weights() *tensor.Tensor {
	if p.transposed {
		return numbers(3, p.outs, p.inputs)
	}
	return numbers(3, p.inputs, p.outs)
}

func (p *product) model() *graph.Model {
	b := newMaker(0, "main", nil)
	b.g.Inputs = []int{b.value("x", tensor.Float32, p.data...)}
	b.constant("w", p.weights())
	in := []string{"x", "w"}
	if p.bias != nil {
		if in = append(in, "b"); p.open {
			b.g.Inputs = append(b.g.Inputs, b.value("b", tensor.Float32, p.bias.Shape...))
		} else {
			b.constant("b", p.bias)
		}
	}
	shape := append(slices.Clone(p.data[:len(p.data)-1]), p.outs)
	b.value("y", tensor.Float32, shape...)
	b.node("", p.op, p.attrs, "y", in...)
	last := "y"
	if p.relu {
		last = "z"
		b.value("z", tensor.Float32, shape...)
		b.node("", "Relu", nil, "z", "y")
	}
	b.g.Outputs = []int{b.ids[last]}
	for _, n := range b.g.Nodes {
		n.Version = p.opset
	}
	return &graph.Model{Format: "onnx", IRVersion: 5, Opsets: map[string]int{"": p.opset}, Graphs: []*graph.Graph{b.g}}
}

// want computes the product as dynamic quantisation defines it.
func (p *product) want(x []float32) []float32 {
	lo, hi := float32(0), float32(0)
	for _, v := range x {
		lo, hi = min(lo, v), max(hi, v)
	}
	step := (hi - lo) / 255
	code := func(v, zero float32) float32 {
		return min(max(float32(math.RoundToEven(float64(v/step)))+zero, 0), 255)
	}
	zero := code(-lo, 0)
	w := tensor.Of[float32](p.weights())
	weight := func(k, n int) float32 {
		if p.transposed {
			return w[n*p.inputs+k]
		}
		return w[k*p.outs+n]
	}
	most := float32(0)
	for _, v := range w {
		most = max(most, float32(math.Abs(float64(v))))
	}
	scale := float32(float64(most) / 127)
	alpha, beta := p.attrs.Float("alpha", 1), p.attrs.Float("beta", 1)
	var y []float32
	for row := range len(x) / p.inputs {
		for n := range p.outs {
			sum := int32(0)
			for k := range p.inputs {
				sum += int32(code(x[row*p.inputs+k], zero)-zero) * int32(math.RoundToEven(float64(weight(k, n))/float64(scale)))
			}
			factor := step * float32(scale*alpha)
			v := float32(sum) * factor
			if p.bias != nil && beta != 0 {
				at := n
				if p.bias.Len() == 1 {
					at = 0
				}
				v += float32(beta * tensor.Of[float32](p.bias)[at])
			}
			if p.relu {
				v = max(v, 0)
			}
			y = append(y, v)
		}
	}
	return y
}

// TestDynamicProducts converts products to dynamic int8. The written file gives the outputs of the
// model in memory, and both are bit-exact with the plain arithmetic of the operators.
func TestDynamicProducts(t *testing.T) {
	t.Parallel()
	column := numbers(9, 24)
	for name, p := range map[string]*product{
		"MatMul":                 {op: "MatMul", data: []int{5, 40}, inputs: 40, outs: 24, opset: 13},
		"MatMul of a batch":      {op: "MatMul", data: []int{2, 3, 64}, inputs: 64, outs: 17, relu: true, opset: 17},
		"one row, one output":    {op: "MatMul", data: []int{1, 33}, inputs: 33, outs: 1, opset: 13},
		"raised operator set":    {op: "MatMul", data: []int{1, 40}, inputs: 40, outs: 24, opset: 9},
		"Gemm":                   {op: "Gemm", data: []int{1, 40}, inputs: 40, outs: 24, bias: column, relu: true, opset: 13},
		"Gemm, transposed":       {op: "Gemm", data: []int{4, 40}, inputs: 40, outs: 24, bias: column, transposed: true, attrs: graph.Attrs{"transB": int64(1)}, opset: 13},
		"Gemm without bias":      {op: "Gemm", data: []int{4, 40}, inputs: 40, outs: 24, opset: 11},
		"Gemm with factors":      {op: "Gemm", data: []int{4, 40}, inputs: 40, outs: 24, bias: column, attrs: graph.Attrs{"alpha": float32(-.75), "beta": float32(1.5)}, opset: 13},
		"Gemm with an open bias": {op: "Gemm", data: []int{4, 40}, inputs: 40, outs: 24, bias: column, open: true, attrs: graph.Attrs{"beta": float32(.3)}, opset: 13, steps: 4},
		"Gemm with one number":   {op: "Gemm", data: []int{4, 40}, inputs: 40, outs: 24, bias: numbers(4, 1, 1), relu: true, opset: 13, steps: 3},
		"Gemm, bias times 0":     {op: "Gemm", data: []int{4, 40}, inputs: 40, outs: 24, bias: column, attrs: graph.Attrs{"beta": float32(0)}, opset: 13},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := parse(t, p.model())
			next, effects, err := rewrite.Apply(m, []rewrite.Change{{Layer: weights.Find(m, nil)[0], Change: study.Change{Format: study.Dynamic8}}}, rewrite.Options{})
			if err != nil || effects[0].Cause != "" {
				t.Fatal(effects, err)
			}
			if err := next.Validate(); err != nil {
				t.Fatal(err)
			}
			back := parse(t, next)
			if back.Opsets[""] < 11 {
				t.Errorf("operator set %d", back.Opsets[""])
			}
			if got := unused(back.Main()); len(got) > 0 {
				t.Errorf("unused values %v", got)
			}
			x := tensor.New(tensor.Float32, p.data...)
			tensor.Fill(x, func(i int) float64 { return math.Cos(float64(i*i)) + .2 })
			in := []*tensor.Tensor{x}
			if p.open {
				in = append(in, p.bias)
			}
			// The engine fuses scales, bias and ReLU into the product.
			if got := running(run(t, back, in, engine.Options{})); got != cmp.Or(p.steps, 2) {
				t.Errorf("%d operators run, want %d", got, cmp.Or(p.steps, 2))
			}
			want := p.want(tensor.Of[float32](x))
			for _, o := range []engine.Options{{}, {Exact: true}, {Exact: true, KeepAll: true}} {
				for _, m := range []*graph.Model{next, back} {
					if got := tensor.Of[float32](run(t, m, in, o).Output(0)); !slices.Equal(got, want) {
						t.Errorf("%+v: %v, want %v", o, got, want)
					}
				}
			}
		})
	}
}

// TestDynamicShared quantises an activation once for all products that read it.
func TestDynamicShared(t *testing.T) {
	t.Parallel()
	b := newMaker(0, "main", nil)
	b.g.Inputs = []int{b.value("x", tensor.Float32, 2, 16)}
	for _, name := range []string{"q", "k", "v"} {
		b.constant("w"+name, numbers(len(b.g.Nodes), 16, 16))
		b.g.Outputs = append(b.g.Outputs, b.value(name, tensor.Float32, 2, 16))
		b.node("", "MatMul", nil, name, "x", "w"+name)
	}
	m := parse(t, &graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 13}, Graphs: []*graph.Graph{b.g}})
	next, effects := dynamicModel(t, m)
	count := map[string]int{}
	for _, n := range parse(t, next).Main().Nodes {
		count[n.Op]++
	}
	if count["DynamicQuantizeLinear"] != 1 || count["MatMulInteger"] != 3 || count["MatMul"] != 0 {
		t.Errorf("%v, effects %+v", count, effects)
	}
	if got := running(run(t, next, madeInputs(t, m), engine.Options{})); got != 1+3 {
		t.Errorf("%d operators run, want 4", got)
	}
}

// running counts the operators that run by themselves.
func running(s *engine.Session) (n int) {
	for _, x := range s.Steps() {
		if x.State == engine.Runs {
			n++
		}
	}
	return n
}

// TestDynamicRefused leaves what integer operators cannot compute unchanged, with a cause.
func TestDynamicRefused(t *testing.T) {
	t.Parallel()
	b := newMaker(0, "main", nil)
	f := tensor.Float32
	b.g.Inputs = []int{b.value("x", f, 8, 4), b.value("image", f, 1, 4, 3, 3)}
	b.constant("turned", numbers(1, 8, 6))
	b.constant("left", numbers(2, 6, 8))
	b.constant("stack", numbers(3, 2, 4, 6))
	b.constant("filters", numbers(4, 5, 4, 1, 1))
	for name, shape := range map[string][]int{"a": {4, 6}, "b": {6, 4}, "c": {2, 8, 6}, "d": {1, 5, 3, 3}} {
		b.g.Outputs = append(b.g.Outputs, b.value(name, f, shape...))
	}
	b.node("", "Gemm", graph.Attrs{"transA": int64(1)}, "a", "x", "turned")
	b.node("", "MatMul", nil, "b", "left", "x")
	b.node("", "MatMul", nil, "c", "x", "stack")
	b.node("", "Conv", nil, "d", "image", "filters")
	m := parse(t, &graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 13}, Graphs: []*graph.Graph{b.g}})
	next, effects := dynamicModel(t, m)
	for i, e := range effects {
		if e.Cause != study.NoFormat {
			t.Errorf("layer %d: %q, want %q", i, e.Cause, study.NoFormat)
		}
	}
	if len(effects) != 4 || len(next.Main().Nodes) != 4 {
		t.Errorf("%d layers, %d nodes", len(effects), len(next.Main().Nodes))
	}
}

// dynamicModel converts all layers of a model.
func dynamicModel(t *testing.T, m *graph.Model) (*graph.Model, []rewrite.Effect) {
	t.Helper()
	var changes []rewrite.Change
	for _, l := range weights.All(m, nil) {
		changes = append(changes, rewrite.Change{Layer: l, Change: study.Change{Format: study.Dynamic8}})
	}
	next, effects, err := rewrite.Apply(m, changes, rewrite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Validate(); err != nil {
		t.Fatal(err)
	}
	return next, effects
}
