package rewrite_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/study"
)

// maker builds a graph by names.
type maker struct {
	g   *graph.Graph
	ids map[string]int
}

func newMaker(index int, name string, parent *maker) *maker {
	m := &maker{g: &graph.Graph{Index: index, Name: name}, ids: map[string]int{}}
	if parent != nil {
		m.g.Parent = parent.g
	}
	return m
}

func (m *maker) value(name string, t tensor.Type, shape ...int) int {
	id := len(m.g.Values)
	m.ids[name] = id
	m.g.Values = append(m.g.Values, &graph.Value{ID: id, Name: name, Type: t, Shape: append([]int{}, shape...), HasShape: true, Offset: -1})
	return id
}

func (m *maker) constant(name string, c *tensor.Tensor) {
	m.g.Values[m.value(name, c.Type, c.Shape...)].Const = c
}

// capture reads a value of the enclosing graph.
func (m *maker) capture(from *maker, name string) {
	v := from.g.Values[from.ids[name]]
	id := m.value(name, v.Type, v.Shape...)
	if v.Const != nil { // readers copy constants
		m.g.Values[id].Const = v.Const
		return
	}
	m.g.Captures = append(m.g.Captures, graph.Capture{Inner: id, Outer: v.ID})
}

func (m *maker) all(names []string) []int {
	out := make([]int, len(names))
	for i, n := range names {
		out[i] = -1
		if n != "" {
			out[i] = m.ids[n]
		}
	}
	return out
}

func (m *maker) node(domain, op string, attrs graph.Attrs, out string, in ...string) {
	m.g.Nodes = append(m.g.Nodes, &graph.Node{Index: len(m.g.Nodes), Name: op + "_" + out, Domain: domain, Op: op, Version: 13, Inputs: m.all(in), Outputs: m.all([]string{out}), Attrs: attrs})
}

// numbers generates weights.
func numbers(seed int, shape ...int) *tensor.Tensor {
	c := tensor.New(tensor.Float32, shape...)
	tensor.Fill(c, func(i int) float64 { return math.Sin(float64(i*i+seed)) / 3 })
	return c
}

// branches is a model whose products stand in the branches of an If: one matrix is read in both,
// one in the main graph, too, and one in a loop within a branch.
func branches() *graph.Model {
	f := tensor.Float32
	main := newMaker(0, "main", nil)
	main.value("x", f, 2, 32)
	main.value("way", tensor.Bool)
	main.constant("both", numbers(1, 32, 32))
	main.constant("three", numbers(2, 32, 32))
	main.value("first", f, 2, 32)
	main.value("y", f, 2, 32)
	main.node("", "MatMul", nil, "first", "x", "three")
	yes, no := newMaker(1, "yes", main), newMaker(2, "no", main)
	for i, b := range []*maker{yes, no} {
		for _, n := range []string{"first", "both", "three"} {
			b.capture(main, n)
		}
		for _, n := range []string{"a", "r", "c", "d"} {
			b.value(fmt.Sprint(n, i), f, 2, 32)
		}
		b.node("", "MatMul", nil, fmt.Sprint("a", i), "first", "both")
		b.node("", "Relu", nil, fmt.Sprint("r", i), fmt.Sprint("a", i))
		b.node("", "MatMul", nil, fmt.Sprint("c", i), fmt.Sprint("r", i), "three")
		b.g.Outputs = []int{b.ids[fmt.Sprint("d", i)]}
	}
	yes.node("", "Tanh", nil, "d0", "c0")
	turn := newMaker(3, "turn", no)
	turn.value("k", tensor.Int64)
	turn.value("on", tensor.Bool)
	turn.value("s", f, 2, 32)
	turn.value("p", f, 2, 32)
	turn.value("on_out", tensor.Bool)
	turn.constant("own", numbers(3, 32, 32))
	turn.node("", "MatMul", nil, "p", "s", "own")
	turn.node("", "Identity", nil, "on_out", "on")
	turn.g.Inputs, turn.g.Outputs = turn.all([]string{"k", "on", "s"}), turn.all([]string{"on_out", "p"})
	no.constant("times", tensor.From(tensor.Int64, []int{}, []int64{2}))
	no.node("", "Loop", graph.Attrs{"body": graph.GraphRef(3)}, "d1", "times", "", "c1")
	main.node("", "If", graph.Attrs{"then_branch": graph.GraphRef(1), "else_branch": graph.GraphRef(2)}, "y", "way")
	main.g.Inputs, main.g.Outputs = main.all([]string{"x", "way"}), main.all([]string{"y"})
	return &graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 13}, Graphs: []*graph.Graph{main.g, yes.g, no.g, turn.g}}
}

// liteBranches is a TFLite model with dense layers in the subgraphs of an IF.
func liteBranches() *graph.Model {
	f := tensor.Float32
	main := newMaker(0, "main", nil)
	main.value("x", f, 2, 32)
	main.value("way", tensor.Bool)
	main.value("y", f, 2, 16)
	main.node(graph.TFLite, "IF", graph.Attrs{"then_subgraph_index": graph.GraphRef(1), "else_subgraph_index": graph.GraphRef(2)}, "y", "way", "x")
	main.g.Inputs, main.g.Outputs = main.all([]string{"x", "way"}), main.all([]string{"y"})
	m := &graph.Model{Format: "tflite", IRVersion: 3, Graphs: []*graph.Graph{main.g}}
	for i := range 2 {
		b := newMaker(i+1, fmt.Sprint("branch", i), nil)
		b.value("in", f, 2, 32)
		b.constant("w", numbers(i, 16, 32))
		b.constant("b", numbers(9, 16))
		b.value("out", f, 2, 16)
		b.node(graph.TFLite, "FULLY_CONNECTED", graph.Attrs{"fused_activation_function": "RELU", "weights_format": "DEFAULT", "keep_num_dims": false}, "out", "in", "w", "b")
		b.g.Inputs, b.g.Outputs = b.all([]string{"in"}), b.all([]string{"out"})
		m.Graphs = append(m.Graphs, b.g)
	}
	for _, g := range m.Graphs {
		for _, n := range g.Nodes {
			n.Version = 1
		}
	}
	return m
}

// tables is a model that fetches from a table and multiplies what it got by a matrix: in ONNX by
// MatMul, in TFLite by BATCH_MATMUL.
func tables(format string) *graph.Model {
	f := tensor.Float32
	b := newMaker(0, "main", nil)
	b.value("at", tensor.Int32, 5)
	b.constant("table", numbers(1, 40, 32))
	b.constant("matrix", numbers(2, 32, 16))
	b.value("rows", f, 5, 32)
	b.value("y", f, 5, 16)
	if b.g.Inputs = []int{0}; format == "onnx" {
		b.node("", "Gather", nil, "rows", "table", "at")
		b.node("", "MatMul", nil, "y", "rows", "matrix")
	} else {
		b.node(graph.TFLite, "GATHER", graph.Attrs{"axis": int64(0), "batch_dims": int64(0)}, "rows", "table", "at")
		b.node(graph.TFLite, "BATCH_MATMUL", graph.Attrs{"adj_x": false, "adj_y": false}, "y", "rows", "matrix")
		b.g.Nodes[0].Version, b.g.Nodes[1].Version = 1, 1
	}
	b.g.Outputs = []int{b.ids["y"]}
	return &graph.Model{Format: format, IRVersion: map[string]int{"onnx": 8, "tflite": 3}[format], Opsets: map[string]int{"": 13}, Graphs: []*graph.Graph{b.g}}
}

// places are rows to fetch.
func places() []*tensor.Tensor {
	return []*tensor.Tensor{tensor.From(tensor.Int32, []int{5}, []int32{3, 39, 0, 17, 3})}
}

// TestTables has operators fetch and multiply codes of 8 bits.
func TestTables(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{"onnx": "Gather DequantizeLinear", "tflite": "GATHER BATCH_MATMUL DEQUANTIZE"} {
		m := tables(format)
		var changes []rewrite.Change
		for _, l := range weights.All(m, nil) {
			changes = append(changes, rewrite.Change{Layer: l, Change: study.Change{Format: study.Int8}})
		}
		o := rewrite.Options{Ranges: map[string]rewrite.Range{"y": {Lo: -1.2, Hi: 1.2}}}
		next, effects, err := rewrite.Apply(m, changes, o)
		if err != nil || len(effects) != 2 || effects[0].Cause != "" || effects[1].Cause != "" {
			t.Fatalf("%s: %+v, %v", format, effects, err)
		}
		var ops []string
		for _, n := range next.Main().Nodes {
			ops = append(ops, n.Op)
		}
		if got := strings.Join(ops, " "); !strings.Contains(got, want) {
			t.Errorf("%s: operators %s", format, got)
		}
		if ls := weights.All(next, nil); len(ls) != 2 || ls[0].Quant == nil || ls[1].Quant == nil {
			t.Errorf("%s: %d layers are found again", format, len(ls))
		}
		exact, got := run(t, m, places(), engine.Options{Exact: true}).Output(0), run(t, parse(t, next), places(), engine.Options{Exact: true}).Output(0)
		// Three roundings to 8 bits of sines: 40 dB each, and the range of the sums is wider than
		// they are.
		if s := snr(got, exact); !(s > 30) {
			t.Errorf("%s: %.1f dB from the floats", format, s)
		}
	}
}

// liteRecurrent are TFLite models of one recurrent operator with weights of floats.
var liteRecurrent = []string{"litert_unidirectional_sequence_lstm", "litert_svdf_calibrated"}

// TestTogether gives recurrent operators of TFLite codes of 8 bits for all weights at once: they
// read those themselves, and not floats made of them.
func TestTogether(t *testing.T) {
	t.Parallel()
	for _, name := range liteRecurrent {
		m := open(t, material.Path(t, "models", "tflite_ops", name+".tflite"))
		var changes []rewrite.Change
		for _, l := range weights.All(m, nil) {
			changes = append(changes, rewrite.Change{Layer: l, Change: study.Change{Format: study.Weight8}})
		}
		next, _, err := rewrite.Apply(m, changes, rewrite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range next.Main().Nodes {
			if n.Op == "DEQUANTIZE" || n.Op == m.Main().Nodes[0].Op && n.Version != 2 {
				t.Errorf("%s: %s of version %d", name, n.Op, n.Version)
			}
		}
		if len(changes) > 1 {
			part, _, err := rewrite.Apply(m, changes[:1], rewrite.Options{})
			if err != nil || part.Main().Nodes[0].Op != "DEQUANTIZE" {
				t.Errorf("%s with one of its weights: %v", name, err)
			}
		}
		in := madeInputs(t, m)
		exact, got := run(t, m, in, engine.Options{}).Output(0), run(t, parse(t, next), in, engine.Options{}).Output(0)
		if s := snr(got, exact); !(s > 25) && !bytes.Equal(got.Data, exact.Data) {
			t.Errorf("%s: %.1f dB from the floats", name, s)
		}
	}
}

// ways are inputs that lead through one branch.
func ways(m *graph.Model, way bool) []*tensor.Tensor {
	b := tensor.New(tensor.Bool, m.Main().Values[1].Shape...)
	if way {
		b.Data[0] = 1
	}
	return []*tensor.Tensor{numbers(4, 2, 32), b}
}

// TestBodies finds weights in bodies once each, by names that lead there.
func TestBodies(t *testing.T) {
	t.Parallel()
	m := branches()
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range weights.All(parse(t, m), nil) {
		macs := "unknown"
		if l.MACs != nil {
			macs = fmt.Sprint(*l.MACs)
		}
		got = append(got, fmt.Sprintf("%s %s graph %d twins %d main %v macs %s %s", l.Name, l.Weight, l.Graph, len(l.Twins), l.MainNodes, macs, l.Fixed))
	}
	// Bodies come in the order of attributes' names, and the file has them so.
	want := []string{
		"MatMul_first three graph 0 twins 2 main [0 1] macs 6144 ",
		"If_y/else_branch/MatMul_a1 both graph 2 twins 1 main [1] macs 2048 ",
		"If_y/else_branch/Loop_d1/body/MatMul_p own graph 3 twins 0 main [1] macs unknown ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("layers\n%q\nwant\n%q", got, want)
	}
	lite := weights.All(liteBranches(), nil)
	if len(lite) != 2 || lite[1].Name != "IF_y/then/FULLY_CONNECTED_out" || lite[0].Graph != 2 || lite[0].Params != 16*33 {
		t.Errorf("%d layers of the TFLite model", len(lite))
	}
}

// TestBodyChanges changes weights in bodies: each branch gives what the same changes of the
// constants alone give, or nearly that, and files have the model that is in memory.
func TestBodyChanges(t *testing.T) {
	t.Parallel()
	for _, m := range []*graph.Model{branches(), liteBranches()} {
		for _, c := range changed {
			if c.Structure == study.Filter || c.Structure == study.Channel || m.Format == "tflite" && c.Format == study.Dynamic8 {
				continue
			}
			t.Run(m.Format+"/"+string(c.Structure)+string(c.Format), func(t *testing.T) {
				t.Parallel()
				var changes []rewrite.Change
				layers := weights.All(m, nil)
				for _, l := range layers {
					changes = append(changes, rewrite.Change{Layer: l, Change: c})
				}
				o := rewrite.Options{Ranges: map[string]rewrite.Range{}}
				for i, g := range m.Graphs {
					for _, v := range g.Values {
						o.Ranges[rewrite.RangeName(v.Name, i)] = rewrite.Range{Lo: -2, Hi: 2}
					}
				}
				next, effects, err := rewrite.Apply(m, changes, o)
				if err != nil {
					t.Fatal(err)
				}
				if err := next.Validate(); err != nil {
					t.Fatal(err)
				}
				for i, e := range effects {
					if e.Cause != "" || e.Zeros == 0 || len(e.Nodes) != 1+len(layers[i].Twins) {
						t.Errorf("%s: %+v", layers[i].Name, e)
					}
				}
				if c.Format == study.OriginalFormat {
					for _, l := range weights.All(next, nil) {
						if l.Zeros != l.Weights()/2 {
							t.Errorf("%s: %d of %d zero", l.Name, l.Zeros, l.Weights())
						}
					}
					if len(weights.All(next, nil)) != len(layers) {
						t.Error("constants are no longer shared")
					}
				}
				back := parse(t, next)
				floats := slices.Clone(changes)
				for i := range floats {
					floats[i].Format = study.OriginalFormat
				}
				near, _, err := rewrite.Apply(m, floats, rewrite.Options{})
				if err != nil {
					t.Fatal(err)
				}
				for _, way := range []bool{true, false} {
					in := ways(m, way)
					want := run(t, next, in, engine.Options{}).Output(0)
					equal(t, "file", run(t, back, in, engine.Options{}).Output(0), want)
					// 4 bits of numbers of this spread leave 15 dB at least, 8 bits of a range
					// that is several times too wide, one after the other, 20, others 30.
					least := map[study.Format]float64{study.Weight4: 12, study.Int8: 18}[c.Format]
					if least == 0 {
						least = 30
					}
					if s := snr(run(t, near, in, engine.Options{}).Output(0), want); !(s > least) {
						t.Errorf("%.1f dB from the floats", s)
					}
				}
			})
		}
	}
}
