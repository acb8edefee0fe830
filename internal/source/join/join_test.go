package join_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/source/join"
	"github.com/opmeter/opmeter/profile"
)

// net makes a model's layers: "name:op(in,in)->out,out", with a weight for operators of which an
// input's name begins with "w"; except for sums, these multiply.
func net(lines ...string) []profile.Layer {
	var out []profile.Layer
	for i, s := range lines {
		head, tail, _ := strings.Cut(s, "->")
		name, rest, _ := strings.Cut(head, ":")
		op, ins, _ := strings.Cut(strings.TrimSuffix(rest, ")"), "(")
		l := profile.Layer{
			Index: int64(i), Name: name, Op: op, State: profile.Ran, Ops: new(int64(10)), MACs: new(int64(0)), Params: new(int64(0)),
			Provenance: &profile.Provenance{Confidence: profile.Exact, SourceNodes: []profile.SourceNode{{Node: int64(i), Name: name, Op: op}}},
		}
		for _, t := range strings.Split(ins, ",") {
			c := strings.HasPrefix(t, "w")
			if c {
				l.Params = new(int64(7))
				if op != "Add" {
					l.MACs = new(int64(100))
				}
			}
			l.Inputs = append(l.Inputs, profile.Tensor{Name: t, DType: "float32", Constant: c})
		}
		for _, t := range strings.Split(tail, ",") {
			l.Outputs = append(l.Outputs, profile.Tensor{Name: t, DType: "float32"})
		}
		out = append(out, l)
	}
	return out
}

// rows makes executed layers of "name:op".
func rows(list ...string) []profile.Layer {
	var out []profile.Layer
	for i, s := range list {
		name, op, _ := strings.Cut(s, ":")
		out = append(out, profile.Layer{Index: int64(i), Name: name, Op: op, State: profile.Ran})
	}
	return out
}

func text(ms []join.Match) string {
	var out []string
	for _, m := range ms {
		var s []string
		for k, l := range m.Layers {
			s = append(s, fmt.Sprintf("%d %s", l, m.How[k]))
		}
		out = append(out, strings.Join(s, " + "))
	}
	return strings.Join(out, "; ")
}

var chain = net("c1:Conv(x,w1)->a", "r1:Relu(a)->b", "c2:Conv(b,w2)->c", "n2:BatchNormalization(c)->d", "r2:Relu(d)->e", "f:Flatten(e)->g", "m:MatMul(g,w3)->h", "p:Add(h,w4)->y")

// TestFind matches rows of engines that fuse, rename, insert and reorder.
func TestFind(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rows []string
		want string
	}{
		"as they are": {
			[]string{"c1:Conv", "r1:Relu", "c2:Conv", "n2:BatchNormalization", "r2:Relu", "f:Flatten", "m:MatMul", "p:Add"},
			"0 exact; 1 exact; 2 exact; 3 exact; 4 exact; 5 exact; 6 exact; 7 exact",
		},
		"fused into those before": {
			[]string{"c1:FusedConv", "c2:FusedConv", "f:Flatten", "m/MatMulAddFusion:Gemm"},
			"0 exact + 1 by order; 2 exact + 3 by order + 4 by order; 5 exact; 6 by name + 7 by order",
		},
		"named after what comes out, with inserted ones": {
			[]string{"ReorderInput:ReorderInput", "b_nchwc:Conv", "e_nchwc:Conv", "ReorderOutput:ReorderOutput", "f:Flatten", "m:MatMul", "p:Add"},
			"; 0 by order + 1 by tensor; 2 by order + 4 by tensor + 3 by order; ; 5 exact; 6 exact; 7 exact",
		},
		"without names": {
			[]string{":Conv", ":Relu", ":Conv", ":Relu", ":Flatten", ":FullyConnected"},
			"0 by order; 1 by order; 2 by order + 3 by order; 4 by order; 5 by order; 6 by order + 7 by order",
		},
		"another model": {
			[]string{"q:LSTM", "z:Softmax"},
			"; ",
		},
	} {
		if got := text(join.Find(chain, rows(c.rows...), nil)); got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}

// TestHints uses what a record reports besides names.
func TestHints(t *testing.T) {
	t.Parallel()
	r := rows("1:Conv", "2:Relu", "3:TensorRT")
	h := []join.Hint{{Index: new(int64(0))}, {Outputs: []string{"b"}}, {Nodes: []string{"c2", "n2", "r2"}}}
	const want = "0 exact; 1 by tensor; 2 exact + 3 exact + 4 exact"
	if got := text(join.Find(chain, r, h)); !strings.HasPrefix(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestLost leaves nodes without a record unmatched: nodes that multiply are not absorbed.
func TestLost(t *testing.T) {
	t.Parallel()
	three := net("a:MatMul(x,w1)->p", "b:MatMul(p,w2)->q", "c:MatMul(q,w3)->y")
	if got := text(join.Find(three, rows("a:MatMul"), nil)); got != "0 exact" {
		t.Error(got)
	}
	// It is part of a pattern that another operator stands for.
	attention := net("q:MatMul(x,w1)->a", "k:MatMul(x,w2)->b", "s:Softmax(a)->c", "o:MatMul(c,b)->y")
	if got := text(join.Find(attention, rows("o:Attention"), nil)); got != "3 exact + 1 by order + 2 by order + 0 by order" {
		t.Error(got)
	}
}

// TestUncounted keeps MatMuls of unknown cost apart: each row that multiplies gets one.
func TestUncounted(t *testing.T) {
	t.Parallel()
	model := net("c1:Conv(x,w1)->a", "c2:Conv(a,w2)->b", "r2:Relu(b)->c", "c3:Conv(c,w3)->y")
	for i := range model {
		model[i].MACs = nil
	}
	const want = "0 by tensor; 1 by order + 2 by tensor; 3 by tensor"
	if got := text(join.Find(model, rows("a_nchwc:Conv", "c_nchwc:Conv", "y_nchwc:Conv"), nil)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestFill adds up operation counts and weights, distributes them, and reports what was matched.
func TestFill(t *testing.T) {
	t.Parallel()
	layers := slices.Clone(chain)
	weighing := slices.IndexFunc(layers, func(l profile.Layer) bool { return l.Name == "c2" })
	layers[weighing].Weights, layers[weighing].Sparsity = &profile.Weights{Name: "w", Shape: []int64{8, 4}}, &profile.Sparsity{Weights: new(0.5)}
	model := &profile.Profile{Model: profile.Model{Name: "net", Format: "onnx"}, Layers: layers, Totals: profile.Totals{Params: new(int64(28))}}
	p := &profile.Profile{Model: profile.Model{Name: "record", Format: "trace"}, Layers: rows("c2:FusedConv", "f:Flatten", "odd:Copy")}
	p.Layers[0].Outputs = []profile.Tensor{{DType: "float32", Shape: []int64{1, 8}}}
	join.Fill(p, model, join.Find(chain, p.Layers, nil))
	l := &p.Layers[0]
	if *l.Ops != 30 || *l.MACs != 100 || *l.Params != 7 || *p.Totals.Params != 28 || p.Model.Name != "net" || p.Settings.Libraries["record"] != "trace" {
		t.Errorf("%+v of %+v", l, p.Model)
	}
	if l.Weights == nil || l.Weights.Name != "w" || *l.Sparsity.Weights != 0.5 {
		t.Errorf("weights of the one of three that has some: %+v, %+v", l.Weights, l.Sparsity)
	}
	n := l.Provenance.SourceNodes
	if len(n) != 3 || l.Provenance.Confidence != profile.Exact || n[1].Confidence != profile.ByOrder || *n[0].Share != 10./30 {
		t.Errorf("%+v", l.Provenance)
	}
	if len(l.Inputs) != 2 || l.Inputs[0].Name != "b" || len(l.Outputs) != 1 || l.Outputs[0].Name != "e" || l.Outputs[0].Shape[1] != 8 {
		t.Errorf("reads %+v, makes %+v", l.Inputs, l.Outputs)
	}
	if o := &p.Layers[2]; o.Provenance.Confidence != profile.Unknown || o.MACs != nil {
		t.Errorf("%+v", o)
	}
	var ids []string
	for _, f := range p.Findings {
		ids = append(ids, f.ID)
	}
	if got := strings.Join(ids, " "); got != "import.join import.unrecorded" {
		t.Error(got)
	}
}

// TestShapes takes shapes of the model's inputs from the record.
func TestShapes(t *testing.T) {
	t.Parallel()
	layers := slices.Clone(chain)
	model := &profile.Profile{Layers: layers, Model: profile.Model{Inputs: []profile.Tensor{{Name: "x", DType: "float32", Shape: []int64{1, 3}}}}}
	layers[0].Inputs = slices.Clone(layers[0].Inputs) // other tests read chain
	layers[0].Inputs[0].Shape = []int64{1, 3}
	r := rows("c1:Conv")
	r[0].Inputs = []profile.Tensor{{DType: "float32", Shape: []int64{4, 3}}, {DType: "float32", Shape: []int64{1}}}
	got := join.Shapes(model, r, join.Find(chain, r, nil))
	if fmt.Sprint(got) != "map[]" {
		t.Errorf("%v: the row does more than the node", got)
	}
	r = append(r, rows("", "r1:Relu")[1])
	r[1].Index = 1
	if got := join.Shapes(model, r, join.Find(chain, r, nil)); fmt.Sprint(got) != "map[x:[4 3]]" {
		t.Errorf("%v", got)
	}
}

// TestBytes counts the bytes of a layer as those of its nodes: an engine that prepacked constant
// weights omits them in its record.
func TestBytes(t *testing.T) {
	t.Parallel()
	tensor := func(name string, bytes int64) profile.Tensor {
		return profile.Tensor{Name: name, DType: "float32", Shape: []int64{1, bytes / 4}, Bytes: &bytes}
	}
	model := net("m:MatMul(x,w1)->a", "r:Relu(a)->y")
	m, r := &model[0], &model[1]
	m.Inputs, m.Outputs = []profile.Tensor{tensor("x", 64), tensor("w1", 4096)}, []profile.Tensor{tensor("a", 256)}
	r.Inputs, r.Outputs = []profile.Tensor{tensor("a", 256)}, []profile.Tensor{tensor("y", 256)}
	m.BytesRead, m.BytesWritten, m.WeightsBytes = new(int64(4160)), new(int64(256)), new(int64(4096))
	r.BytesRead, r.BytesWritten, r.WeightsBytes = new(int64(256)), new(int64(256)), new(int64(0))
	for name, c := range map[string]struct {
		rows   []string
		change func(row *profile.Layer, model []profile.Layer)
		read   int64
	}{
		"one node":   {[]string{"m:MatMul", "r:Relu"}, func(*profile.Layer, []profile.Layer) {}, 4160},
		"fused":      {[]string{"m:FusedMatMul"}, func(*profile.Layer, []profile.Layer) {}, 4160},
		"unrecorded": {[]string{"m:FusedMatMul"}, func(l *profile.Layer, _ []profile.Layer) { l.BytesRead, l.WeightsBytes = nil, nil }, 4160},
		"of another size": {[]string{"m:MatMul", "r:Relu"}, func(l *profile.Layer, _ []profile.Layer) {
			l.Inputs = []profile.Tensor{{DType: "float32", Shape: []int64{2, 16}}, {DType: "float32", Shape: []int64{1, 1024}}}
			l.BytesRead = new(int64(128))
		}, 4224},
		"unknown in the model": {[]string{"m:MatMul", "r:Relu"}, func(_ *profile.Layer, model []profile.Layer) { model[0].BytesRead = nil }, 4160},
		"unknown weights": {[]string{"m:MatMul", "r:Relu"}, func(_ *profile.Layer, model []profile.Layer) {
			model[0].BytesRead, model[0].WeightsBytes = nil, nil
		}, 64},
	} {
		layers := slices.Clone(model)
		p := &profile.Profile{Layers: rows(c.rows...)}
		l := &p.Layers[0]
		l.BytesRead, l.WeightsBytes, l.BytesWritten = new(int64(64)), new(int64(0)), new(int64(256))
		c.change(l, layers)
		join.Fill(p, &profile.Profile{Layers: layers}, join.Find(layers, p.Layers, nil))
		if l.BytesRead == nil || *l.BytesRead != c.read || *l.BytesWritten != 256 {
			t.Errorf("%s: reads %v, want %d; writes %d", name, deref(l.BytesRead), c.read, *l.BytesWritten)
		}
	}
}

func deref(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}

// TestFillCalls gives a row of a loop's body the model's counts of one call times the calls that
// were recorded, whatever calls the model determines.
func TestFillCalls(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		model, recorded *float64
		want            string
	}{
		{nil, nil, "28 512 64"},
		{nil, new(3.0), "84 1536 64"},
		{new(7.0), nil, "196 3584 64"}, // the record lacks calls
		{new(7.0), new(7.0), "196 3584 64"},
		{new(7.0), new(2.5), "70 1280 64"},
		{new(7.0), new(0.0), "0 0 64"},
		{new(0.0), new(2.0), "unknown"}, // that of one call is unknown
	} {
		body := net("m:MatMul(x,w)->y")
		body[0].MACs, body[0].BytesRead, body[0].Params = new(int64(28)), new(int64(512)), new(int64(64))
		if tt.model != nil {
			body[0].ScaleCounts(*tt.model)
			body[0].Calls = tt.model
		}
		p := &profile.Profile{Layers: rows("m:MatMul")}
		p.Layers[0].Calls = tt.recorded
		join.Fill(p, &profile.Profile{Layers: body}, join.Find(body, p.Layers, nil))
		l, got := &p.Layers[0], "unknown"
		if l.MACs != nil && l.BytesRead != nil {
			got = fmt.Sprint(*l.MACs, *l.BytesRead, *l.Params)
		}
		if got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
		if tt.model != nil && *body[0].MACs != int64(28**tt.model) {
			t.Error("the model's counts changed")
		}
	}
}
