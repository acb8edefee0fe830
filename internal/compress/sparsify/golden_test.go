package sparsify

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

func shape(ds ...int) Dims { return dims(ds) }

// TestFlops holds counts against those that the original gave when it was run.
func TestFlops(t *testing.T) {
	t.Parallel()
	conv := func(kernel []int64, group int64, weight, out, bias Dims) *Node {
		return &Node{OpType: "Conv", Attributes: map[string]jsonx.Raw{"kernel_shape": attribute(kernel), "group": attribute(group)}, WeightShape: weight, BiasShape: bias, OutputShapes: Shapes{out}}
	}
	for _, tt := range []struct {
		name string
		n    *Node
		want float64
	}{
		{"convolution with bias", conv([]int64{7, 7}, 1, shape(64, 3, 7, 7), shape(1, 64, 112, 112), shape(64)), 118_816_768},
		{"convolution", conv([]int64{7, 7}, 1, shape(64, 3, 7, 7), shape(1, 64, 112, 112), nil), 118_013_952},
		{"depthwise", conv([]int64{3, 3}, 32, shape(32, 1, 3, 3), shape(1, 32, 112, 112), nil), 112_896},
		{"gemm", &Node{OpType: "Gemm", WeightShape: shape(1000, 512), BiasShape: shape(1000), InputShapes: Shapes{shape(1, 512)}, OutputShapes: Shapes{shape(1, 1000)}}, 1_025_000},
		{"gemm of a batch", &Node{OpType: "Gemm", WeightShape: shape(1000, 512), BiasShape: shape(1000), InputShapes: Shapes{shape(16, 512)}, OutputShapes: Shapes{shape(16, 1000)}}, 1_025_000},
		{"two operands", &Node{OpType: "MatMul", InputShapes: Shapes{shape(1, 12, 128, 64), shape(1, 12, 64, 128)}, OutputShapes: Shapes{shape(1, 12, 128, 128)}}, 24_969_216},
		{"weights", &Node{OpType: "MatMul", WeightShape: shape(768, 3072), InputShapes: Shapes{shape(1, 128, 768)}, OutputShapes: Shapes{shape(1, 128, 3072)}}, 4_718_592},
		{"pooling", &Node{OpType: "MaxPool", Attributes: map[string]jsonx.Raw{"kernel_shape": attribute([]int64{3, 3})}, OutputShapes: Shapes{shape(1, 64, 56, 56)}}, 1_806_336},
		{"global pooling", &Node{OpType: "GlobalAveragePool", InputShapes: Shapes{shape(1, 512, 7, 7)}, OutputShapes: Shapes{shape(1, 512, 1, 1)}}, 25_088},
		{"unknown dimension", &Node{OpType: "Relu", OutputShapes: Shapes{shape(-1, 10)}}, 10},
		{"attributes from JSON", &Node{OpType: "MaxPool", Attributes: map[string]jsonx.Raw{"kernel_shape": jsonx.Raw("[3, 3]")}, OutputShapes: Shapes{shape(1, 64, 56, 56)}}, 1_806_336},
	} {
		if got := Flops(tt.n); got == nil || *got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	for _, n := range []*Node{
		{OpType: "Softmax", OutputShapes: Shapes{shape(1, 10)}},
		conv(nil, 1, shape(64, 3, 7, 7), shape(1, 64, 112, 112), nil),
		{OpType: "MatMul", InputShapes: Shapes{shape(2, 3), shape(4, 5)}, OutputShapes: Shapes{shape(2, 5)}},
	} {
		if got := Flops(n); got != nil {
			t.Errorf("%s: %v, want nothing", n.OpType, *got)
		}
	}
}

func TestSensitivity(t *testing.T) {
	t.Parallel()
	if got := fmt.Sprintf("%.4f", Sensitivity(Shapes{shape(1, 3, 224, 224)}, Shapes{shape(1, 64, 112, 112)}, 9408)); got != "540.4444" {
		t.Errorf("convolution: %s", got)
	}
	if got := fmt.Sprintf("%.10f", Sensitivity(Shapes{shape(1, 512)}, Shapes{shape(1, 1000)}, 513_000)); got != "0.0057565789" {
		t.Errorf("gemm: %s", got)
	}
	if got := Sensitivity(Shapes{shape(1, 512)}, Shapes{shape(1, 1000)}, 0); got != 0 {
		t.Errorf("no parameters: %v", got)
	}
	if got := Sensitivity(Shapes{shape(2), shape(3)}, Shapes{shape(0)}, 2); got != 3 {
		t.Errorf("an empty volume: %v", got)
	}
}

func round(v float64, digits int) float64 {
	p := math.Pow10(digits)
	return math.Round(v*p) / p
}

func TestMagnitude(t *testing.T) {
	t.Parallel()
	twenty := make([]float32, 20)
	for i := range twenty {
		twenty[i] = float32(i+1) / 10
		if i%2 == 1 {
			twenty[i] = -twenty[i]
		}
	}
	tenths := []float64{0, .1, .2, .3, .4, .5, .6, .7, .8, .9}
	// Weights are of 32 bits, so that values have 7 digits.
	for i, want := range []float64{0, .15, .35, .55, .75, .95, 1.15, 1.35, 1.55, 1.75} {
		if got := round(Magnitude(twenty, tenths)[i], 6); got != want {
			t.Errorf("tenths: level %v: %v, want %v", tenths[i], got, want)
		}
	}
	fine := Magnitude(twenty, MagnitudeLevels())
	for level, want := range map[int]float64{0: 0, 1: .1, 2: .1, 3: .2, 5: .2, 10: .3, 50: 1.1, 90: 1.9, 95: 2, 99: 2} {
		if got := round(fine[level], 6); got != want {
			t.Errorf("level %d %%: %v, want %v", level, got, want)
		}
	}
	got := Magnitude([]float32{1, 2, 3, 4}, []float64{0, .1, .2, .25, .5, .75, .9, .99})
	if want := []float64{0, 1, 2, 2, 3, 4, 4, 4}; !slices.Equal(got, want) {
		t.Errorf("four weights: %v, want %v", got, want)
	}
	if got := Magnitude(nil, tenths); !slices.Equal(got, make([]float64, 10)) {
		t.Errorf("no weights: %v", got)
	}
}

func TestOneShot(t *testing.T) {
	t.Parallel()
	if got := fmt.Sprintf("%.11f", KL([][]float64{{1.8, 1.1, .2, -1.2}}, [][]float64{{2, 1, 0, -1}})); got != "0.00303057630" {
		t.Errorf("divergence %s", got)
	}
	ten := func() []float32 { return []float32{1, -2, 3, -4, 5, -6, 7, -8, 9, -10} }
	for _, tt := range []struct {
		weights []float32
		level   float64
		want    int
	}{
		{ten(), 0.5, 4},
		{ten(), 0.1, 0},
		{ten(), 0, 0},
		{[]float32{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 0.9, 0},
		{nil, 0.5, 0},
	} {
		if got := Prune(tt.weights, tt.level); got != tt.want {
			t.Errorf("level %v: %d zeros, want %d", tt.level, got, tt.want)
		}
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	f := Summarise([]float64{0, .5, .9, .99}, []float64{0, 1, 3, 10})
	if got := round(f.SparseAverage, 5); got != 2.04875 {
		t.Errorf("the mean with levels in it: %v", got)
	}
	if f.Mean != 3.5 || round(f.Integral, 9) != 1.635 || f.Comparison != 3 || f.Baseline != 0 {
		t.Errorf("%+v", f)
	}
	if got := Normalise([]float64{1, 3}); !slices.Equal(got, []float64{-1, 1}) {
		t.Errorf("normalised: %v", got)
	}
	hundred := MagnitudeLevels()
	if got, ok := ShownSensitivity(hundred); !ok || got != 0.95 {
		t.Errorf("shown: %v %v", got, ok)
	}
	if _, ok := ShownSensitivity(nil); ok {
		t.Error("a sensitivity of nothing")
	}
}

// four is the example of four layers without profiles.
func four() *Analysis {
	node := func(id string, params, prunable int64, flops, eq float64, group int64) *Node {
		return &Node{ID: id, OpType: "Conv", Prunable: true, Params: params, PrunableParams: prunable, Flops: &flops, PrunableEquationSensitivity: &eq, Attributes: map[string]jsonx.Raw{"group": attribute(group)}}
	}
	return &Analysis{Nodes: []*Node{
		node("a", 110, 100, 1000, 9, 1), node("b", 210, 200, 4000, 3, 1),
		{ID: "relu", OpType: "Relu", PrunableParams: -1},
		node("c", 820, 800, 2000, 1, 1), node("d", 90, 90, 300, 8, 9),
	}}
}

func TestAllocator(t *testing.T) {
	t.Parallel()
	got := Allocate(four(), nil, nil, Defaults())
	show := func(v *float64) string {
		if v == nil {
			return "null"
		}
		return fmt.Sprint(*v)
	}
	for i, want := range []struct{ id, base, at string }{{"a", "0.27", "null"}, {"b", "0.83", "0.83"}, {"c", "0.95", "0.95"}, {"d", "0.31", "null"}} {
		l := got.Layers[i]
		if l.NodeID != want.id || show(l.BaselineSparsity) != want.base || show(l.Sparsity) != want.at {
			t.Errorf("%s: baseline %s, chosen %s; want %+v", l.NodeID, show(l.BaselineSparsity), show(l.Sparsity), want)
		}
	}
	m := got.Model
	if round(*m.ParamsBaseline, 6) != 1230 || round(*m.Params, 6) != 304 || round(*m.Compression, 4) != 4.0461 {
		t.Errorf("parameters %v to %v, %v", *m.ParamsBaseline, *m.Params, *m.Compression)
	}
	if round(*m.FlopsBaseline, 6) != 7300 || round(*m.Flops, 6) != 2080 || round(*m.FlopsGain, 4) != 3.5096 {
		t.Errorf("operations %v to %v, %v", *m.FlopsBaseline, *m.Flops, *m.FlopsGain)
	}
	if round(*m.LossSensitivity, 9) != 4.9875 || *m.Recovery != 1 || m.Time != nil {
		t.Errorf("sensitivity %v, recovery %v, time %v", *m.LossSensitivity, *m.Recovery, m.Time)
	}

	// The slider at performance keeps the heaviest layer dense.
	s := Defaults()
	s.Balance = 0
	got = Allocate(four(), nil, nil, s)
	if got.Layers[1].Sparsity != nil || round(*got.Model.FlopsGain, 2) != 1.35 {
		t.Errorf("performance: b %s, %v", show(got.Layers[1].Sparsity), *got.Model.FlopsGain)
	}
}

// TestInversion has three equal layers of which one gains ten times as much as another: the more
// the slider says performance, the slower the model.
func TestInversion(t *testing.T) {
	t.Parallel()
	a := &Analysis{}
	perf := &Profile{Analysis: ProfileAnalysis{
		Baseline: &Baseline{Model: ModelBaseline{0.0101}},
		Pruning:  &PruningSeries{Model: Series{BaselineKey: "0.0", Measurements: Measurements{entry("0.0", 0.0101)}}},
	}}
	for i, saved := range []float64{0.00051, 0.0045, 0.0004} {
		id := string(rune('a' + i))
		a.Nodes = append(a.Nodes, &Node{ID: id, OpType: "Conv", Prunable: true, Params: 1000, PrunableParams: 1000, PrunableEquationSensitivity: new(1.0)})
		perf.Analysis.Pruning.Ops = append(perf.Analysis.Pruning.Ops, OpSeries{ID: id, Series: Series{
			BaselineKey: "0.0", Measurements: Measurements{entry("0.0", 0.005), entry("1.0", 0.005-saved)},
		}})
	}
	for _, tt := range []struct {
		balance float64
		b, c    float64
		gain    float64
	}{{1, .5, .5, 1.32}, {.5, .32, .6, 1.20}, {0, .07, .8, 1.07}} {
		got := Allocate(a, perf, nil, Settings{Sparsity: 0.5, Balance: tt.balance})
		b, c := got.Layers[1].Sparsity, got.Layers[2].Sparsity
		if got.Layers[0].Sparsity != nil || b == nil || c == nil || *b != tt.b || *c != tt.c || round(*got.Model.TimeGain, 2) != tt.gain {
			t.Errorf("balance %v: %v %v, gain %v; want %+v", tt.balance, *b, *c, *got.Model.TimeGain, tt)
		}
	}
}

// TestRecovery has layers at other sparsities than the baseline's.
func TestRecovery(t *testing.T) {
	t.Parallel()
	got := Evaluate(four(), nil, nil, map[string]float64{"b": 0.9, "c": 0.475})
	// Sensitivities are proportional to the sparsity.
	for i, want := range []float64{1, (0.83-0.9)/0.83 + 1, 1.5, 1} {
		if r := *got.Layers[i].Recovery; math.Abs(r-want) > 1e-12 { // sums in another order
			t.Errorf("layer %d: recovery %v, want %v", i, r, want)
		}
	}
	a := four()
	// too dear to be pruned by loss alone,
	a.Nodes[1].PrunableEquationSensitivity = new(1000.0)
	a.Nodes[3].Params, a.Nodes[3].PrunableParams = 20_000, 20_000 // where another layer has enough
	if r := *Evaluate(a, nil, nil, map[string]float64{"b": 0.5}).Layers[1].Recovery; r != 0 {
		t.Errorf("a layer that should not be pruned: recovery %v", r)
	}
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	e := NewEpochs(0)
	if want := (Epochs{PruningStart: 1, PruningEnd: 34, End: 59, Update: 0.825}); e != want {
		t.Errorf("%+v, want %+v", e, want)
	}
	if got := NewEpochs(10); got != (Epochs{PruningStart: 1, PruningEnd: 4, End: 6, Update: 0.075}) {
		t.Errorf("ten epochs: %+v", got)
	}
	ms := Rates(e, 0.1, new(0.001))
	if len(ms) != 2 || ms[0].Kind != SetRate || ms[0].Rate != 0.0505 || ms[1].Rate != 0.012625 || ms[1].Gamma != 0.25 || ms[1].Class != "StepLR" || ms[1].Start != 34 {
		t.Fatalf("%+v", ms)
	}
	// ln(0.0001/0.012625)/ln 0.25 is 3.49: 24 epochs make steps of 6.
	if ms[1].StepSize != 6 {
		t.Errorf("step of %v epochs", ms[1].StepSize)
	}
	if ms := Rates(e, 0.1, nil); len(ms) != 1 || ms[0].Rate != 0.1 {
		t.Errorf("no final rate: %+v", ms)
	}
	if ms := Rates(e, 0.001, new(1.0)); ms[1].StepSize < 1 {
		t.Errorf("rising rates: %+v", ms)
	}
}

// small is Conv and MatMul behind a Transpose, with a product of two values and one whose
// weights Sparsify does not find.
func small() *graph.Model {
	g := &graph.Graph{}
	value := func(name string, shape []int, data []float32) int {
		v := &graph.Value{ID: len(g.Values), Name: name, Type: tensor.Float32, Shape: shape, HasShape: shape != nil}
		if data != nil {
			v.Const = tensor.From(tensor.Float32, shape, data)
		}
		g.Values = append(g.Values, v)
		return v.ID
	}
	node := func(op string, in []int, out string, shape []int, attrs graph.Attrs) int {
		id := value(out, shape, nil)
		g.Nodes = append(g.Nodes, &graph.Node{Index: len(g.Nodes), Name: "n" + out, Op: op, Inputs: in, Outputs: []int{id}, Attrs: attrs})
		return id
	}
	x := value("x", []int{-1, 2, 3, 3}, nil)
	g.Inputs = []int{x}
	w := value("w", []int{4, 2, 3, 3}, make([]float32, 72))
	tensor.Of[float32](g.Values[w].Const)[5] = 1
	b := value("b", []int{4}, []float32{1, 2, 3, 4})
	y := node("Conv", []int{x, w, b}, "y", []int{-1, 4, 1, 1}, graph.Attrs{"kernel_shape": []int64{3, 3}, "value": tensor.New(tensor.Float32, 1)})
	flat := node("Flatten", []int{y}, "flat", []int{-1, 4}, nil)
	m := value("m", []int{5, 4}, make([]float32, 20))
	mt := node("Transpose", []int{m}, "mt", []int{4, 5}, nil)
	z := node("MatMul", []int{flat, mt}, "z", []int{-1, 5}, nil)
	k := value("k", []int{5, 5}, make([]float32, 25))
	same := node("Identity", []int{k}, "same", []int{5, 5}, nil)
	g.Outputs = []int{node("MatMul", []int{z, same}, "out", []int{-1, 5}, nil)}
	return &graph.Model{Format: "onnx", Graphs: []*graph.Graph{g}, Opsets: map[string]int{"": 17}}
}

func TestAnalyse(t *testing.T) {
	t.Parallel()
	m := small()
	shapes := func(id int) []int { return m.Main().Values[id].Shape }
	a := Analyse(m, shapes, nil, true)
	by := map[string]*Node{}
	for _, n := range a.Nodes {
		by[n.ID] = n
	}
	y := by["y"]
	if !y.Prunable || y.Params != 76 || y.PrunableParams != 72 || y.PrunableParamsZeroed != 71 || *y.WeightName != "w" || *y.BiasName != "b" {
		t.Errorf("convolution: %+v", y)
	}
	if *y.Flops != 9*2*4+4 || string(y.Attributes["value"]) != "null" {
		t.Errorf("convolution: %v operations, attributes %v", *y.Flops, y.Attributes)
	}
	if z := by["z"]; !z.Prunable || *z.WeightName != "m" || z.Params != 20 || z.BiasName != nil {
		t.Errorf("behind a Transpose: %+v", z)
	}
	if o := by["out"]; o.Prunable || o.PrunableParams != -1 || o.PrunableEquationSensitivity != nil || o.WeightName != nil {
		t.Errorf("behind an Identity: %+v", o)
	}
	text, err := a.JSON()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseAnalysis(text, "a.json")
	if err != nil {
		t.Fatal(err)
	}
	again, _ := back.JSON()
	if string(again) != string(text) {
		t.Errorf("written %s\nread and written %s", text, again)
	}
	if s, ok := a.Sparsity(); !ok || s != 91.0/92 || !a.SparseTraining() {
		t.Errorf("sparsity %v", s)
	}
}
