package describe

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/profile"
)

// net makes a graph of lines such as "MUL y a b". Names with a colon declare type and shape, such
// as "x:f32:2x3"; others have the type of a constant, or of no declaration.
func net(index int, domain string, consts map[string]*tensor.Tensor, inputs, outputs string, lines ...string) *graph.Graph {
	g := &graph.Graph{Index: index, Name: fmt.Sprintf("g%d", index)}
	ids := map[string]int{}
	list := func(words string) (out []int) {
		for _, word := range strings.Fields(words) {
			if word == "_" {
				out = append(out, -1)
				continue
			}
			name, kind, declared := strings.Cut(word, ":")
			if _, ok := ids[name]; !ok {
				v := &graph.Value{ID: len(g.Values), Name: name, Const: consts[name], Offset: -1}
				if c := v.Const; c != nil {
					v.Type, v.Shape, v.HasShape = c.Type, c.Shape, true
				}
				if declared {
					v.Type = map[string]tensor.Type{"f32": tensor.Float32, "i32": tensor.Int32, "i64": tensor.Int64, "bool": tensor.Bool}[strings.Split(kind, ":")[0]]
					if _, dims, ok := strings.Cut(kind, ":"); ok {
						v.HasShape = true
						for d := range strings.SplitSeq(dims, "x") {
							n, _ := strconv.Atoi(d) // 0 for an open dimension
							v.Shape = append(v.Shape, n)
						}
					} else {
						v.HasShape = true
					}
				}
				ids[name] = v.ID
				g.Values = append(g.Values, v)
			}
			out = append(out, ids[name])
		}
		return out
	}
	g.Inputs = list(inputs)
	for i, l := range lines {
		op, rest, _ := strings.Cut(l, " ")
		out, in, _ := strings.Cut(rest, " ")
		version := 13
		if domain == graph.TFLite {
			version = 1
		}
		g.Nodes = append(g.Nodes, &graph.Node{Index: i, Op: op, Domain: domain, Version: version, Inputs: list(in), Outputs: list(strings.ReplaceAll(out, ",", " "))})
	}
	g.Outputs = list(outputs)
	for _, n := range g.Nodes {
		if n.Op == "Cast" {
			n.Attrs = graph.Attrs{"to": int64(9)} // bool
		}
	}
	return g
}

func i32(v int32) *tensor.Tensor { return tensor.From(tensor.Int32, nil, []int32{v}) }

func matrix() *tensor.Tensor { return tensor.New(tensor.Float32, 8, 8) }

func yes() *tensor.Tensor { return &tensor.Tensor{Type: tensor.Bool, Data: []byte{1}} }

// while makes a TFLite model whose main graph has one WHILE over (i, n, x), followed by what
// changes the usual pattern of a counter.
func while(start, limit *tensor.Tensor, cond, body *graph.Graph) *graph.Model {
	in := "x:f32:4x8"
	consts := map[string]*tensor.Tensor{"i": start, "n": limit}
	for name, c := range consts {
		if c == nil {
			in += " " + name + ":i32"
		}
	}
	main := net(0, graph.TFLite, consts, in, "y", "WHILE i2:i32,n2:i32,y:f32:4x8 i n x")
	main.Nodes[0].Attrs = graph.Attrs{"cond_subgraph_index": graph.GraphRef(1), "body_subgraph_index": graph.GraphRef(2)}
	return &graph.Model{Format: "tflite", Graphs: []*graph.Graph{main, cond, body}}
}

func lessThan(consts map[string]*tensor.Tensor, limit string, lines ...string) *graph.Graph {
	return net(1, graph.TFLite, consts, "i:i32 n:i32 x:f32:4x8", "more", append(lines, "LESS more:bool i "+limit)...)
}

func step(by int32, lines ...string) *graph.Graph {
	consts := map[string]*tensor.Tensor{"by": i32(by), "w": matrix()}
	g := net(2, graph.TFLite, consts, "i:i32 n:i32 x:f32:4x8", "i2 n y", append(lines, "ADD i2:i32 i by", "FULLY_CONNECTED y:f32:4x8 x w _")...)
	return g
}

// onnxLoop makes an ONNX model with one Loop over (x), with the given trip count and condition.
func onnxLoop(consts map[string]*tensor.Tensor, in string, body *graph.Graph, before ...string) *graph.Model {
	main := net(0, graph.ONNX, consts, "x:f32:4x8", "y", append(before, "Loop y "+in+" x")...)
	main.Nodes[len(before)].Attrs = graph.Attrs{"body": graph.GraphRef(1)}
	body.Parent = main
	return &graph.Model{Format: "onnx", Graphs: []*graph.Graph{main, body}, Opsets: map[string]int{"": 13}}
}

func onnxBody(cond string, lines ...string) *graph.Graph {
	consts := map[string]*tensor.Tensor{"w": matrix(), "yes": yes(), "three": tensor.From(tensor.Int64, nil, []int64{3})}
	return net(1, graph.ONNX, consts, "k:i64 c:bool x:f32:4x8", cond+" z", append(lines, "MatMul z x w")...)
}

func planned(t *testing.T, m *graph.Model) (*plan.Plan, []plan.Slot) {
	t.Helper()
	var in []*tensor.Tensor
	for _, id := range m.Main().Inputs {
		v := m.Main().Values[id]
		in = append(in, &tensor.Tensor{Type: v.Type, Shape: v.Shape})
	}
	p, err := plan.Make(m, in, plan.Options{Registry: operators.Registry()})
	if err != nil {
		t.Fatal(err)
	}
	return p, p.Slots()
}

// TestIterations counts the iterations of loops without running them: each passes 4x8 values
// through a matrix of 8x8, 256 multiply-accumulates.
func TestIterations(t *testing.T) {
	t.Parallel()
	i64 := func(v int64) *tensor.Tensor { return tensor.From(tensor.Int64, nil, []int64{v}) }
	trips := map[string]*tensor.Tensor{"m": i64(6), "yes": yes(), "first": i64(0), "none": {Type: tensor.Bool, Data: []byte{0}}}
	for _, tt := range []struct {
		name string
		m    *graph.Model
		want int64 // -1 if unknown
	}{
		{"counter to a constant of the condition", while(i32(0), i32(9), lessThan(map[string]*tensor.Tensor{"limit": i32(25)}, "limit"), step(1)), 25},
		{"counter to a value that is passed through", while(i32(2), i32(9), lessThan(nil, "n"), step(2)), 4},
		{"two limits", while(i32(0), i32(9), net(1, graph.TFLite, map[string]*tensor.Tensor{"limit": i32(7)}, "i:i32 n:i32 x:f32:4x8", "more",
			"LESS a:bool i n", "LESS b:bool i limit", "LOGICAL_AND more:bool a b"), step(1)), 7},
		{"never", while(i32(9), i32(9), lessThan(nil, "n"), step(1)), 0},
		{"counter that wraps", while(i32(1<<30), i32(1<<30+1), lessThan(nil, "n"), step(1)), 1},
		{"limit that the body computes", while(i32(0), i32(9), lessThan(nil, "n"), net(2, graph.TFLite, map[string]*tensor.Tensor{"one": i32(1), "w": matrix()},
			"i:i32 n:i32 x:f32:4x8", "i2 n2 y", "ADD i2:i32 i one", "SUB n2:i32 n one", "FULLY_CONNECTED y:f32:4x8 x w _")), 5},
		{"endless", while(i32(0), i32(9), lessThan(nil, "n"), step(0)), -1},
		{"start that is an input", while(nil, i32(9), lessThan(nil, "n"), step(1)), -1},
		{"limit that is an input", while(i32(0), nil, lessThan(nil, "n"), step(1)), -1},
		{"Loop with a trip count", onnxLoop(trips, "m _", onnxBody("c")), 6},
		{"Loop with a condition that stays", onnxLoop(trips, "m yes", onnxBody("c")), 6},
		{"Loop with a constant condition", onnxLoop(trips, "m yes", onnxBody("yes")), 6},
		{"Loop that ends itself", onnxLoop(trips, "m yes", onnxBody("more", "Less more k three")), 4},
		{"Loop without a trip count that ends itself", onnxLoop(trips, "_ yes", onnxBody("more", "Less more k three")), 4},
		{"Loop that never runs", onnxLoop(trips, "m none", onnxBody("c")), 0},
		{"Loop over a folded shape", onnxLoop(trips, "rows _", onnxBody("c"), "Shape s x", "Gather rows s first"), 4},
		{"Loop that ends after one iteration", onnxLoop(trips, "m yes", onnxBody("more", "Not more c")), 1},
		{"Loop whose condition depends on data", onnxLoop(trips, "m yes", onnxBody("more", "ReduceSum sum x", "Cast more sum")), -1},
		{"Loop without a limit", onnxLoop(trips, "_ yes", onnxBody("c")), -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, slots := planned(t, tt.m)
			d, err := Model(p, slots, nil)
			if err != nil {
				t.Fatal(err)
			}
			owner := slices.IndexFunc(slots, func(s plan.Slot) bool { return len(s.Bodies) > 0 })
			calls := Bodies(tt.m, &slots[owner])
			body := calls[0] // attributes are sorted by name
			if got := body.Times; (got == nil) != (tt.want < 0) || got != nil && *got != tt.want {
				t.Fatalf("%v iterations, want %d", got, tt.want)
			}
			if len(calls) == 2 && body.Times != nil && *calls[1].Times != tt.want+1 {
				t.Errorf("the condition is computed %d times, want %d", *calls[1].Times, tt.want+1)
			}
			sum := int64(0)
			for _, l := range d.Layers {
				sum += *l.MACs
			}
			if want := 256 * max(tt.want, -tt.want); sum != want {
				t.Errorf("%d multiply-accumulates, want %d", sum, want)
			}
		})
	}
}

// TestNestedLoops multiplies the iterations: the inner loop takes its limit through both bodies.
func TestNestedLoops(t *testing.T) {
	t.Parallel()
	outer := net(2, graph.TFLite, map[string]*tensor.Tensor{"one": i32(1), "zero": i32(0)}, "i:i32 n:i32 x:f32:4x8", "i2 n y",
		"WHILE k:i32,n3:i32,y:f32:4x8 zero n x", "ADD i2:i32 i one")
	outer.Nodes[0].Attrs = graph.Attrs{"cond_subgraph_index": graph.GraphRef(3), "body_subgraph_index": graph.GraphRef(4)}
	m := while(i32(0), i32(5), lessThan(nil, "n"), outer)
	cond, body := lessThan(nil, "n"), step(2)
	cond.Index, body.Index = 3, 4
	m.Graphs = append(m.Graphs, cond, body)
	p, slots := planned(t, m)
	d, err := Model(p, slots, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range d.Layers {
		n := 1.0
		if l.Calls != nil {
			n = *l.Calls
		}
		got = append(got, fmt.Sprint(l.Op, " ", n))
	}
	// Attributes are sorted by name: bodies come before conditions.
	if d := cmp.Diff([]string{"WHILE 1", "WHILE 5", "ADD 15", "FULLY_CONNECTED 15", "LESS 20", "ADD 5", "LESS 6"}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestAssume takes one iteration where the number depends on data, and of branches the one that
// costs most.
func TestAssume(t *testing.T) {
	t.Parallel()
	branch := func(index int, lines ...string) *graph.Graph {
		return net(index, graph.ONNX, map[string]*tensor.Tensor{"w": matrix()}, "", "z", lines...)
	}
	main := net(0, graph.ONNX, nil, "x:f32:4x8 c:bool", "y", "If y c")
	main.Nodes[0].Attrs = graph.Attrs{"then_branch": graph.GraphRef(1), "else_branch": graph.GraphRef(2)}
	m := &graph.Model{Format: "onnx", Graphs: []*graph.Graph{main, branch(1, "MatMul z x w"), branch(2, "MatMul a x w", "MatMul z a w")}, Opsets: map[string]int{"": 13}}
	for _, g := range m.Graphs[1:] {
		g.Parent = main
		g.Captures = []graph.Capture{{Inner: slices.IndexFunc(g.Values, func(v *graph.Value) bool { return v.Name == "x" }), Outer: 0}}
	}
	p, slots := planned(t, m)
	d, err := Model(p, slots, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := Assume(m, slots, func(i int) float64 { return float64(*Work(m, &slots[i]).MACs) })
	if got := a.Passes(); !slices.Equal(got, []float64{1, 0, 1}) {
		t.Errorf("passes %v, want the second branch alone", got)
	}
	fs := a.Findings(d, "model", profile.Warning)
	want := `Which branch runs depends on data: totals hold the branch that costs most. #0 If "y" (else_branch: 512 MACs, 1.02 k ops, in the totals; then_branch: 256 MACs, 512 ops).`
	if len(fs) != 1 || fs[0].ID != "model.branches" || fs[0].Text != want {
		t.Errorf("%+v", fs)
	}
	if c := a.Unreached(1); c.Text != "not counted: another branch costs more" {
		t.Errorf("%+v", c)
	}
}

// TestIterate sets iterations that depend on data, and refuses what the model contradicts.
func TestIterate(t *testing.T) {
	t.Parallel()
	open := func() *graph.Model { return while(i32(0), nil, lessThan(nil, "n"), step(1)) }
	for _, tt := range []struct {
		name string
		m    *graph.Model
		set  map[string]int64
		err  string // "" if accepted
		macs int64
	}{
		{"by name", open(), map[string]int64{"i2": 12}, "", 12 * 256},
		{"by index", open(), map[string]int64{"#0": 3}, "", 3 * 256},
		{"none", open(), nil, "", 256},
		{"no such loop", open(), map[string]int64{"x": 3}, `the model has no loop "x"; it has "i2"`, 0},
		{"known", while(i32(0), i32(5), lessThan(nil, "n"), step(1)), map[string]int64{"i2": 3}, `loop "i2" runs 5 times, as the model determines: leave its iterations out`, 0},
		{"known, the same", while(i32(0), i32(5), lessThan(nil, "n"), step(1)), map[string]int64{"i2": 5}, "", 5 * 256},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, slots := planned(t, tt.m)
			err := Iterate(tt.m, slots, tt.set)
			if tt.err != "" {
				if e, ok := errors.AsType[*inputs.OptionError](err); !ok || e.Option != "iterations" || e.Text != tt.err {
					t.Fatalf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			d, err := Model(p, slots, nil)
			if err != nil {
				t.Fatal(err)
			}
			sum := int64(0)
			for _, l := range d.Layers {
				sum += *l.MACs
			}
			if sum != tt.macs {
				t.Errorf("%d multiply-accumulates, want %d", sum, tt.macs)
			}
		})
	}
}

// TestMemoryOfBodies holds the values of a loop's body beside those of the loop: input and output
// of 4x8 floats (128 bytes each), the product of the body, two counters of 4 bytes and the
// condition.
func TestMemoryOfBodies(t *testing.T) {
	t.Parallel()
	m := while(i32(0), i32(9), lessThan(nil, "n"), step(1))
	p, slots := planned(t, m)
	d, err := Model(p, slots, nil)
	if err != nil {
		t.Fatal(err)
	}
	mem := d.Memory
	// The counters that the loop returns, that of the body, and the body's product.
	if want := int64(128 + 128 + 4 + 4 + 4 + 128 + 1); mem.PeakBytes == nil || *mem.PeakBytes != want {
		t.Fatalf("peak %v, want %d", mem.PeakBytes, want)
	}
	if mem.ArenaBytes == nil || *mem.ArenaBytes < *mem.PeakBytes || len(mem.Plan) != 7 {
		t.Fatalf("memory %+v", mem)
	}
	for i, a := range mem.Plan {
		if a.First < 0 || a.Last >= int64(len(slots)) || a.Offset+a.Bytes > *mem.ArenaBytes {
			t.Errorf("%+v", a)
		}
		for _, b := range mem.Plan[:i] {
			if a.First <= b.Last && b.First <= a.Last && a.Offset < b.Offset+b.Bytes && b.Offset < a.Offset+a.Bytes {
				t.Errorf("%+v overlaps %+v", a, b)
			}
		}
	}
	if mem.TFLMArenaBytes == nil {
		t.Error("no arena of TensorFlow Lite Micro")
	}
}

// TestArenaOfShapes plans the arena of TensorFlow Lite Micro for the shapes that were asked for.
func TestArenaOfShapes(t *testing.T) {
	t.Parallel()
	g := net(0, graph.TFLite, nil, "x:f32:1x16", "y", "TANH y:f32:1x16 x")
	for _, v := range g.Values {
		v.Placeholder, v.Shape = []int{1, 16}, []int{-1, 16}
	}
	m := &graph.Model{Format: "tflite", Graphs: []*graph.Graph{g}}
	for batch, want := range map[int]int64{1: 128, 8: 1024} {
		p, err := plan.Make(m, []*tensor.Tensor{tensor.New(tensor.Float32, batch, 16)}, plan.Options{Registry: operators.Registry()})
		if err != nil {
			t.Fatal(err)
		}
		d, err := Model(p, p.Slots(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Memory.TFLMArenaBytes; got == nil || *got != want {
			t.Errorf("batch %d: %v bytes, want %d", batch, got, want)
		}
	}
}

// TestNewerOpset warns of a model that is newer than the table of operators.
func TestNewerOpset(t *testing.T) {
	t.Parallel()
	for opset, want := range map[int]int{28: 0, 99: 1} {
		g := net(0, graph.ONNX, nil, "x:f32:4x8", "y", "Relu y x")
		m := &graph.Model{Format: "onnx", Graphs: []*graph.Graph{g}, Opsets: map[string]int{"": opset}}
		p, slots := planned(t, m)
		d, err := Model(p, slots, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Model.Warnings) != want {
			t.Errorf("opset %d: warnings %q, want %d", opset, d.Model.Warnings, want)
		}
	}
}
