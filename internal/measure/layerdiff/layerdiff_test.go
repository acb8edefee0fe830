package layerdiff_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/measure/host"
	"github.com/opmeter/opmeter/internal/measure/layerdiff"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/netspec"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/tflite"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/describe"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
	"github.com/opmeter/opmeter/profile/divergence"
	"github.com/opmeter/opmeter/study"
)

// network is a small network with a branch.
const network = `name: net
type: float32
input: {name: image, shape: [1, 12, 12, 3]}
layers:
  - {op: conv, name: conv1, filters: 8, kernel: 3, activation: relu}
  - {op: conv, name: conv2, filters: 8, kernel: 3, activation: relu}
  - layers:
      - {op: conv, name: conv3, filters: 8, kernel: 3, activation: relu}
      - {op: conv, name: conv4, filters: 8, kernel: 3}
      - {op: add, name: sum, from: [block, prev], activation: relu}
  - {op: conv, name: conv5, filters: 8, kernel: 3, activation: relu}
  - {op: avg_pool}
  - {op: flatten}
  - {op: dense, name: dense, units: 10}
`

// build builds the network with random weights, the same in both formats.
func build(t *testing.T, format string) *graph.Model {
	t.Helper()
	m, err := netspec.Read(strings.NewReader(network), "net.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if format == "onnx" {
		return onnxOf(t, m)
	}
	return m
}

// builder adds nodes to a graph of ONNX.
type builder struct{ g *graph.Graph }

func (b *builder) value(name string, c *tensor.Tensor) int {
	v := &graph.Value{ID: len(b.g.Values), Name: name, Type: tensor.Float32, Const: c, Offset: -1}
	if c != nil {
		v.Type, v.Shape, v.HasShape = c.Type, c.Shape, true
	}
	b.g.Values = append(b.g.Values, v)
	return v.ID
}

func (b *builder) node(op, name string, attrs graph.Attrs, ins ...int) int {
	out := b.value(name, nil)
	b.g.Nodes = append(b.g.Nodes, &graph.Node{Index: len(b.g.Nodes), Name: name, Op: op, Version: 13, Inputs: ins, Outputs: []int{out}, Attrs: attrs})
	return out
}

// onnxOf converts the network to ONNX: channels first, activations apart.
func onnxOf(t *testing.T, m *graph.Model) *graph.Model {
	t.Helper()
	g := m.Main()
	b := &builder{g: &graph.Graph{Name: "net"}}
	at := map[int]int{}
	in := b.value("image", nil)
	b.g.Values[in].Shape, b.g.Values[in].HasShape = []int{1, 3, 12, 12}, true
	at[g.Inputs[0]] = in
	b.g.Inputs = []int{in}
	for _, n := range g.Nodes {
		name := g.Values[n.Outputs[0]].Name
		constant := func(k int) *tensor.Tensor { return g.Values[n.Inputs[k]].Const }
		x, out := at[n.Inputs[0]], 0
		switch n.Op {
		case "CONV_2D":
			w := constant(1) // output, height, width, input
			s := w.Shape
			v := tensor.New(tensor.Float32, s[0], s[3], s[1], s[2])
			for i := range w.Len() {
				c := i % s[3]
				p := i / s[3] % (s[1] * s[2])
				tensor.Of[float32](v)[(i/(s[1]*s[2]*s[3])*s[3]+c)*s[1]*s[2]+p] = tensor.Of[float32](w)[i]
			}
			out = b.node("Conv", name, graph.Attrs{"pads": []int64{1, 1, 1, 1}, "kernel_shape": []int64{3, 3}}, x, b.value(name+".w", v), b.value(name+".b", constant(2).Clone()))
		case "ADD":
			out = b.node("Add", name, nil, x, at[n.Inputs[1]])
		case "AVERAGE_POOL_2D", "MEAN":
			out = b.node("GlobalAveragePool", name, nil, x)
		case "RESHAPE":
			out = b.node("Flatten", name, graph.Attrs{"axis": int64(1)}, x)
		case "FULLY_CONNECTED":
			out = b.node("Gemm", name, graph.Attrs{"transB": int64(1)}, x, b.value(name+".w", constant(1).Clone()), b.value(name+".b", constant(2).Clone()))
		default:
			t.Fatalf("the network has %s", n.Op)
		}
		if n.Attrs.Str("fused_activation_function", "NONE") == "RELU" {
			out = b.node("Relu", name+".relu", nil, out)
		}
		at[n.Outputs[0]] = out
	}
	b.g.Outputs = []int{at[g.Outputs[0]]}
	return &graph.Model{Format: "onnx", Path: "net.onnx", IRVersion: 8, Opsets: map[string]int{"": 13}, Graphs: []*graph.Graph{b.g}}
}

// side prepares a model for opmeter's own engine.
func side(t *testing.T, m *graph.Model, ins []*tensor.Tensor, o engine.Options) *layerdiff.Side {
	t.Helper()
	shapes := map[string][]int{}
	for i, id := range m.Main().Inputs {
		shapes[m.Main().Values[id].Name] = ins[i].Shape
	}
	p, err := source.Collect(t.Context(), &host.Source{Model: m, Identity: func() (*describe.Identity, error) { return describe.Identify(m, encoded(t, m)) }, Options: host.Options{Feed: inputs.Options{Shapes: shapes}, Threads: 1, Static: true, AllBranches: true}}, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &layerdiff.Side{Model: m, Profile: p, Inputs: ins, Engine: layerdiff.Native(m, ins, o)}
	t.Cleanup(s.Engine.Close)
	return s
}

// encoded returns the file of a model, whose hash tells models apart.
func encoded(t *testing.T, m *graph.Model) []byte {
	t.Helper()
	encode := onnx.Encode
	if m.Format == "tflite" {
		encode = tflite.Encode
	}
	data, err := encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// compare compares two models on the random inputs of the first.
func compare(t *testing.T, a, b *graph.Model, limit int) *divergence.Report {
	t.Helper()
	ins, _, err := inputs.Inputs(a, inputs.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	fed, err := layerdiff.Feed(ins, a, b)
	if err != nil {
		t.Fatal(err)
	}
	o := engine.Options{Registry: operators.Registry(), Threads: 1}
	r, err := layerdiff.Compare(t.Context(), side(t, a, ins, o), side(t, b, fed, o), layerdiff.Options{Engine: o, LimitBytes: limit})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// quantise returns the model with weights and activations of eight bits.
func quantise(t *testing.T, m *graph.Model) *graph.Model {
	t.Helper()
	var changes []rewrite.Change
	for _, l := range weights.All(m, nil) {
		changes = append(changes, rewrite.Change{Layer: l, Change: study.Change{Format: study.Int8}})
	}
	q, effects, err := rewrite.Apply(m, changes, rewrite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range effects {
		if e.Cause != "" {
			t.Fatalf("not quantised: %s", e.Cause)
		}
	}
	return q
}

// where names the layers of the row at which outputs part.
func where(r *divergence.Report) string {
	if r.Verdict.Row == nil {
		return ""
	}
	var names []string
	for _, l := range r.Rows[*r.Verdict.Row].A {
		names = append(names, l.Name)
	}
	return strings.Join(names, " ")
}

func snr(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// TestEqual compares a model with itself: everything is equal, and no row adds an error.
func TestEqual(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"onnx", "tflite"} {
		m := build(t, format)
		r := compare(t, m, m, 0)
		if r.Verdict.Code != divergence.Equal || r.Verdict.Row != nil || r.Verdict.Compared < 7 || r.Verdict.Same != r.Verdict.Compared || r.Passes != 1 {
			t.Errorf("%s: %+v in %d passes", format, r.Verdict, r.Passes)
		}
		for i := range r.Rows {
			row := &r.Rows[i]
			if row.Output == nil || row.Output.State != profile.Equal || row.Own == nil || row.Own.State != profile.Equal || row.Input != nil || row.Kind != align.Same || !row.Certain {
				t.Errorf("%s: row %d: %+v", format, i, row)
			}
		}
		if len(r.Outputs) != 1 || r.Outputs[0].State != profile.Equal {
			t.Errorf("%s: outputs %+v", format, r.Outputs)
		}
	}
}

// TestOutputsInAnotherOrder pairs outputs of other names by what computes them, and says so.
func TestOutputsInAnotherOrder(t *testing.T) {
	t.Parallel()
	two := func(exchanged bool, prefix string) *graph.Model {
		m := build(t, "onnx")
		g := m.Main()
		for _, v := range g.Values {
			if !slices.Contains(g.Inputs, v.ID) {
				v.Name = prefix + v.Name
			}
		}
		g.Outputs = append(g.Outputs, g.Nodes[3].Outputs[0], g.Nodes[1].Outputs[0])
		if exchanged {
			slices.Reverse(g.Outputs)
		}
		return m
	}
	r := compare(t, two(false, ""), two(true, "other_"), 0)
	for i := range r.Outputs {
		if d := &r.Outputs[i]; d.State != profile.Equal {
			t.Errorf("output %d: %+v", i, d)
		}
	}
	if r.Verdict.Code != divergence.Equal || len(r.Outputs) != 3 || len(r.Notes) != 3 || !strings.Contains(r.Notes[0], "is compared with \"other_") {
		t.Errorf("%+v, notes %q", r.Verdict, r.Notes)
	}
}

// TestChangedWeight changes a weight of one layer: outputs part there, rows behind it add nothing.
func TestChangedWeight(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"onnx", "tflite"} {
		for _, name := range []string{"conv1", "conv3", "conv4", "dense"} {
			m := build(t, format)
			l := layer(t, m, name)
			v := *m.Main().Values[l.Value]
			v.Const = v.Const.Clone()
			w := tensor.Of[float32](v.Const)
			w[len(w)/2] += 0.5
			r := compare(t, m, replaced(m, l.Value, &v), 0)
			if r.Verdict.Code != divergence.Parts || !strings.Contains(where(r), name) {
				t.Errorf("%s, %s: %+v at %q", format, name, r.Verdict, where(r))
				continue
			}
			if r.Verdict.Before != nil || r.Verdict.Added != 1 {
				t.Errorf("%s, %s: %+v, want an error at one layer and none before it", format, name, r.Verdict)
			}
			for i := range r.Rows {
				if own := r.Rows[i].Own; int64(i) != *r.Verdict.Row && (own == nil || own.State != profile.Equal) {
					t.Errorf("%s, %s: row %d adds %+v", format, name, i, own)
				}
			}
			// The row reads equal inputs: its own error is all of its error.
			at := &r.Rows[*r.Verdict.Row]
			if snr(at.Own.SNR) != snr(at.Output.SNR) {
				t.Errorf("%s, %s: own error %v dB of %v dB", format, name, snr(at.Own.SNR), snr(at.Output.SNR))
			}
		}
	}
}

// layer finds a layer with weights by a part of its name.
func layer(t *testing.T, m *graph.Model, name string) *weights.Layer {
	t.Helper()
	for _, l := range weights.All(m, nil) {
		if n := m.Main().Nodes[l.Node]; strings.Contains(n.Name, name) || slices.ContainsFunc(n.Outputs, func(id int) bool { return id >= 0 && strings.Contains(m.Main().Values[id].Name, name) }) {
			return l
		}
	}
	t.Fatalf("no layer %q", name)
	return nil
}

// replaced returns the model with another value.
func replaced(m *graph.Model, id int, v *graph.Value) *graph.Model {
	g := *m.Main()
	g.Values = slices.Clone(g.Values)
	g.Values[id] = v
	return weights.WithMain(m, &g)
}

// TestQuantised compares the network with its quantised form: every layer adds some error, none of
// them dominates.
func TestQuantised(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"onnx", "tflite"} {
		m := build(t, format)
		r := compare(t, m, quantise(t, m), 0)
		if r.Verdict.Code == divergence.Parts || r.Verdict.Code == divergence.Equal || r.Verdict.Code == divergence.Unknown || r.Verdict.Added < 5 {
			t.Errorf("%s: %+v at %q", format, r.Verdict, where(r))
		}
		for i := range r.Rows {
			if own := r.Rows[i].Own; len(r.Rows[i].A) > 0 && len(r.Rows[i].B) > 0 && (own == nil || own.SNR != nil && *own.SNR < 25) {
				t.Errorf("%s: row %d %+v adds %+v, want at least 25 dB", format, i, r.Rows[i].A, own)
			}
		}
	}
}

// TestWrongScale makes the scale of the weights of one quantised layer 40 % too large.
func TestWrongScale(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"onnx", "tflite"} {
		for _, name := range []string{"conv1", "conv3", "conv5", "dense"} {
			m := build(t, format)
			q := quantise(t, m)
			r := compare(t, m, misscaled(t, m, q, name), 0)
			if r.Verdict.Code != divergence.Parts || !strings.Contains(where(r), name) {
				t.Errorf("%s, %s: %+v at %q", format, name, r.Verdict, where(r))
				continue
			}
			// 40 % of the signal: 8 dB, less what quantisation and the ReLU take.
			if got := snr(r.Verdict.OwnSNR); !(got > 6 && got < 13) {
				t.Errorf("%s, %s: own error of %v dB", format, name, got)
			}
			if b := r.Verdict.Before; b != nil && *b < 25 {
				t.Errorf("%s, %s: outputs before it have %v dB", format, name, *b)
			}
		}
	}
}

// misscaled returns a quantised model with a wrong scale of the weights of a layer.
func misscaled(t *testing.T, m, q *graph.Model, name string) *graph.Model {
	t.Helper()
	g := q.Main()
	node := g.Nodes[layer(t, q, name).Node]
	larger := func(x *tensor.Tensor) *tensor.Tensor {
		x = x.Clone()
		for i, s := range tensor.Of[float32](x) {
			tensor.Of[float32](x)[i] = 1.4 * s
		}
		return x
	}
	if m.Format == "tflite" {
		v := *g.Values[node.Inputs[1]]
		c := *v.Quant
		c.Scale = slices.Clone(c.Scale)
		for i := range c.Scale {
			c.Scale[i] *= 1.4
		}
		x := *v.Const
		x.Quant, v.Quant, v.Const = &c, &c, &x
		return replaced(q, node.Inputs[1], &v)
	}
	for _, n := range g.Nodes {
		if n.Op == "DequantizeLinear" && n.Outputs[0] == node.Inputs[1] {
			v := *g.Values[n.Inputs[1]]
			v.Const = larger(v.Const)
			return replaced(q, n.Inputs[1], &v)
		}
	}
	t.Fatalf("the weights of %q are not dequantised", name)
	return nil
}

// TestFormats compares the network in both formats, which have the channels at different places:
// rounding at most.
func TestFormats(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{{"onnx", "tflite"}, {"tflite", "onnx"}} {
		r := compare(t, build(t, pair[0]), build(t, pair[1]), 0)
		if r.Verdict.Code != divergence.Rounding && r.Verdict.Code != divergence.Equal || r.Verdict.Compared < 7 {
			t.Errorf("%v: %+v at %q", pair, r.Verdict, where(r))
		}
	}
}

// TestLimit compares with so little memory that every row takes a pass: the report stays the same.
func TestLimit(t *testing.T) {
	t.Parallel()
	m := build(t, "onnx")
	q := quantise(t, m)
	want, got := compare(t, m, q, 0), compare(t, m, q, 1)
	if want.Passes != 1 || int(got.Passes) != len(got.Rows) {
		t.Errorf("%d and %d passes for %d rows", want.Passes, got.Passes, len(got.Rows))
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(divergence.Report{}, "Passes", "LimitBytes")); d != "" {
		t.Error(d)
	}
}

// TestUnrun replaces an operator of the second model by one that nothing runs: its output and all
// behind it are not compared with zeros, and the rows say why.
func TestUnrun(t *testing.T) {
	t.Parallel()
	m := build(t, "onnx")
	g := *m.Main()
	g.Nodes = slices.Clone(g.Nodes)
	at := slices.IndexFunc(g.Nodes, func(n *graph.Node) bool { return n.Name == "conv4" })
	n := *g.Nodes[at]
	n.Op, n.Domain = "Strange", "com.example"
	g.Nodes[at] = &n
	r := compare(t, m, weights.WithMain(m, &g), 0)
	compared := 0
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Output != nil {
			compared++
			if row.Output.State != profile.Equal {
				t.Errorf("row %d %+v: %+v", i, row.A, row.Output)
			}
			continue
		}
		if len(row.A) > 0 && len(row.B) > 0 && (row.Cause == nil || !strings.Contains(row.Cause.Text, "Strange")) {
			t.Errorf("row %d %+v: cause %+v", i, row.A, row.Cause)
		}
	}
	if compared != 3 {
		t.Errorf("%d rows are compared, want the three before the operator", compared)
	}
	if d := r.Outputs[0]; d.State != profile.NotComparable || d.Cause == nil {
		t.Errorf("output %+v", d)
	}
}

// TestNaN makes a weight no number.
func TestNaN(t *testing.T) {
	t.Parallel()
	m := build(t, "onnx")
	l := layer(t, m, "conv3")
	v := *m.Main().Values[l.Value]
	v.Const = v.Const.Clone()
	tensor.Of[float32](v.Const)[0] = float32(math.NaN())
	r := compare(t, m, replaced(m, l.Value, &v), 0)
	if r.Verdict.Code != divergence.Parts || !strings.Contains(where(r), "conv3") || r.Verdict.OwnSNR != nil {
		t.Errorf("%+v at %q", r.Verdict, where(r))
	}
}

// TestRepeatable compares twice a model that has state: each run begins anew.
func TestRepeatable(t *testing.T) {
	t.Parallel()
	state := &graph.Value{ID: 1, Name: "state", Type: tensor.Float32, Shape: []int{1, 4}, HasShape: true, Variable: true, Offset: -1}
	value := func(id int, name string) *graph.Value {
		return &graph.Value{ID: id, Name: name, Type: tensor.Float32, Shape: []int{1, 4}, HasShape: true, Offset: -1}
	}
	m := &graph.Model{Format: "tflite", Path: "state.tflite", Graphs: []*graph.Graph{{
		Values: []*graph.Value{value(0, "x"), state, value(2, "y"), value(3, "z")}, Inputs: []int{0}, Outputs: []int{3},
		Nodes: []*graph.Node{
			{Op: "ADD", Domain: graph.TFLite, Version: 1, Inputs: []int{0, 1}, Outputs: []int{2}, Attrs: graph.Attrs{"fused_activation_function": "NONE"}},
			{Index: 1, Op: "NEG", Domain: graph.TFLite, Version: 1, Inputs: []int{2}, Outputs: []int{3}},
		},
	}}}
	for _, limit := range []int{0, 1} {
		if r := compare(t, m, m, limit); r.Verdict.Code != divergence.Equal || r.Verdict.Compared != 2 {
			t.Errorf("limit %d: %+v", limit, r.Verdict)
		}
	}
}

// TestFeed converts inputs: quantised, channels last, by name and in order.
func TestFeed(t *testing.T) {
	t.Parallel()
	model := func(format, name string, typ tensor.Type, q *tensor.Quant, shape ...int) *graph.Model {
		return &graph.Model{Format: format, Graphs: []*graph.Graph{{
			Values: []*graph.Value{{Name: name, Type: typ, Shape: shape, HasShape: true, Quant: q}}, Inputs: []int{0},
		}}}
	}
	q := &tensor.Quant{Scale: []float32{0.5}, Zero: []int64{-1}}
	first := model("onnx", "x", tensor.Float32, nil, 1, 2, 1, 3)
	x := tensor.From(tensor.Float32, []int{1, 2, 1, 3}, []float32{1, 2, 3, 4, 5, 6})
	for _, c := range []struct {
		name string
		to   *graph.Model
		want []float32
		err  string
	}{
		{"the same", model("onnx", "x", tensor.Float32, nil, 1, 2, 1, 3), []float32{1, 2, 3, 4, 5, 6}, ""},
		{"another name", model("onnx", "y", tensor.Float32, nil, -1, 2, -1, 3), []float32{1, 2, 3, 4, 5, 6}, ""},
		{"channels last", model("tflite", "x", tensor.Float32, nil, 1, 1, 3, 2), []float32{1, 4, 2, 5, 3, 6}, ""},
		{"quantised", model("tflite", "x", tensor.Int8, q, 1, 1, 3, 2), []float32{1, 7, 3, 9, 5, 11}, ""},
		{"half", model("onnx", "x", tensor.Float16, nil, 1, 2, 1, 3), []float32{1, 2, 3, 4, 5, 6}, ""},
		{"another shape", model("onnx", "x", tensor.Float32, nil, 1, 4, 1, 3), nil, "takes 1x4x1x3"},
		{"integers without scale", model("onnx", "x", tensor.Int8, nil, 1, 2, 1, 3), nil, "cannot be converted"},
	} {
		got, err := layerdiff.Feed([]*tensor.Tensor{x}, first, c.to)
		if err != nil || c.err != "" {
			if err == nil || c.err == "" || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %q", c.name, err, c.err)
			}
			continue
		}
		v := make([]float32, got[0].Len())
		tensor.Read(v, got[0], 0)
		if want := c.to.Main().Values[0]; !slices.Equal(v, c.want) || got[0].Type != want.Type || len(got[0].Shape) != len(want.Shape) {
			t.Errorf("%s: %v %v of shape %v, want %v", c.name, got[0].Type, v, got[0].Shape, c.want)
		}
	}
	if !layerdiff.Exact(model("tflite", "x", tensor.Int8, q, 1), first) || layerdiff.Exact(first, first) {
		t.Error("inputs are exact where they are quantised")
	}
}
