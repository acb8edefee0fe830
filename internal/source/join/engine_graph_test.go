package join_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/source/join"
	"github.com/opmeter/opmeter/profile"
)

// executed makes rows with hints of "name:op(in,in)->out,out".
func executed(lines ...string) (rows []profile.Layer, hints []join.Hint) {
	for i, l := range net(lines...) {
		r := profile.Layer{Index: int64(i), Name: l.Name, Op: l.Op, State: profile.Ran, Outputs: l.Outputs}
		h := join.Hint{}
		for _, t := range l.Inputs {
			h.Inputs = append(h.Inputs, t.Name)
		}
		for _, t := range l.Outputs {
			h.Outputs = append(h.Outputs, t.Name)
		}
		for k := range r.Outputs {
			r.Outputs[k] = profile.Tensor{DType: "float32"}
		}
		rows, hints = append(rows, r), append(hints, h)
	}
	return rows, hints
}

// served is [text] with inserted rows written as "for" the layers that they serve.
func served(ms []join.Match) string {
	var out []string
	for _, m := range ms {
		s := text([]join.Match{m})
		if len(m.Layers) == 0 && len(m.Serves) > 0 {
			s = "for " + strings.Trim(fmt.Sprint(m.Serves), "[]")
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

// TestExecuted finds nodes by the tensors between which rows compute.
func TestExecuted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model, rows []string
		want        string
	}{
		"a pattern between two tensors": {
			[]string{"q:MatMul(x,w1)->a", "k:MatMul(x,w2)->b", "s:Softmax(a)->c", "o:MatMul(c,b)->d", "r:Relu(d)->y"},
			[]string{"attention_0:Attention(x,w)->d", "r:Relu(d)->y"},
			"3 by tensor + 0 by tensor + 1 by tensor + 2 by tensor; 4 exact",
		},
		"another layout in between": {
			[]string{"c1:Conv(x,w1)->a", "r1:Relu(a)->b", "c2:Conv(b,w2)->c", "r2:Relu(c)->y"},
			[]string{"in:ReorderInput(x)->t0", "b_nchwc:Conv(t0,u1)->t1", "y_nchwc:Conv(t1,u2)->t2", "out:ReorderOutput(t2)->y"},
			"for 0; 0 by tensor + 1 by tensor; 2 by tensor + 3 by tensor; for 3",
		},
		"the reorder does not take what the convolution makes": {
			[]string{"c1:Conv(x,w1)->a", "n:Neg(a)->y"},
			[]string{"ro:ReorderOutput(t1)->a", "a_nchwc:Conv(x,u1)->t1", "n:Neg(a)->y"},
			"for 0; 0 by tensor; 1 exact",
		},
		"names are gone": {
			[]string{":Conv(x,w1)->a", ":Relu(a)->b", ":MaxPool(b)->c", ":Conv(c,w2)->y"},
			[]string{":Conv(x,w1)->_token_1", ":Relu(_token_1)->_token_2", ":MaxPool(_token_2)->_token_3", ":Conv(_token_3,w2)->y"},
			"0 by tensor; 1 by tensor; 2 by tensor; 3 by tensor",
		},
		"names are gone, and more is fused": {
			[]string{":Conv(x,w1)->a", ":Relu(a)->b", ":MaxPool(b)->c", ":Conv(c,w2)->d", ":Relu(d)->y"},
			[]string{":FusedConv(x,w1)->_token_1", ":MaxPool(_token_1)->_token_2", ":FusedConv(_token_2,w2)->y"},
			"0 by tensor + 1 by tensor; 2 by tensor; 3 by tensor + 4 by tensor",
		},
		"equal branches are told apart by their weights": {
			[]string{":Conv(x,w1)->a", ":Conv(x,w2)->b", "j:Concat(a,b)->y"},
			[]string{":Conv(x,w2)->_token_1", ":Conv(x,w1)->_token_2", "j:Concat(_token_2,_token_1)->y"},
			"1 by tensor; 0 by tensor; 2 exact",
		},
		"nothing tells which branch": {
			[]string{":Relu(x)->a", ":Relu(x)->b", "j:Concat(a,b)->y"},
			[]string{":Relu(x)->s", ":Relu(x)->u", ":Sum(s,u)->q"},
			"0 by order; 1 by order; ",
		},
		"copies": {
			[]string{"d:DequantizeLinear(x,w1)->a", "c1:Conv(a,w2)->b", "c2:Conv(a,w3)->c", "j:Add(b,c)->y"},
			[]string{"d/duplicated:DequantizeLinear(x,w1)->a/duplicated", "d:DequantizeLinear(x,w1)->a", "c1:Conv(a,w2)->b", "c2:Conv(a/duplicated,w3)->c", "j:Add(b,c)->y"},
			"0 by tensor; 0 exact; 1 exact; 2 exact; 3 exact",
		},
		"a convolution that lost its name to what it took": {
			[]string{"c:Conv(x,w1)->a", "n:BatchNormalization(a,w2)->b", "r:Relu(b)->d", "m:MaxPool(d)->y"},
			[]string{"in:Reorder(x)->t0", "n:Convolution(t0,u1)->d", "m:Pooling(d)->t1", "out:Reorder(t1)->t2"},
			"for 0; 0 by tensor + 1 exact + 2 by tensor; 3 exact; for 3",
		},
		"nothing is left to do": {
			[]string{"c:Conv(x,w1)->a", "s:Softmax(a)->y"},
			[]string{"q1:Subgraph(x)->t0", "q2:Reshape(t0)->t1", "q3:Subgraph(t1)->t2", "c:Conv(t2,w1)->a", "s:Softmax(a)->y", "q4:Subgraph(y)->t3"},
			"for 0; for 0; for 0; 0 exact; 1 exact; for 1",
		},
		"something is left to do": {
			[]string{"c:Conv(x,w1)->a", "s:Sin(a)->b", "t:Cos(b)->y"},
			[]string{"c:Conv(x,w1)->a", "q4:Subgraph(a)->t3", "q5:Subgraph(t3)->t4"},
			"0 exact + 1 by order + 2 by order; ; ",
		},
		"a name that engines give, too": {
			[]string{"Transpose:Transpose(x)->a", "r:Relu(a)->b", "s:Sqrt(b)->y"},
			[]string{"Transpose:Transpose(x)->a", "r:Relu(a)->b", "Transpose_token_4:Transpose(b)->b_t", "s:Sqrt(b_t)->y"},
			"0 exact; 1 exact; for 1; 2 exact",
		},
	} {
		model := net(c.model...)
		rows, hints := executed(c.rows...)
		if got := served(join.Find(model, rows, hints)); got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}

// TestQuantised absorbs QuantizeLinear and DequantizeLinear into integer operators.
func TestQuantised(t *testing.T) {
	t.Parallel()
	model := net("q:QuantizeLinear(x,w1)->xq", "d:DequantizeLinear(xq,w2)->xf", "v:DequantizeLinear(w3,w4)->wf", "c:Conv(xf,wf)->a", "r:Relu(a)->b", "z:QuantizeLinear(b,w5)->bq", "e:DequantizeLinear(bq,w6)->y")
	for _, i := range []int{0, 5} {
		model[i].Outputs[0].DType = "uint8"
	}
	rows, hints := executed("q:QuantizeLinear(x,w1)->token_0", "c:QLinearConv(token_0,w3)->token_1", "e:DequantizeLinear(token_1,w6)->y")
	rows[0].Outputs[0].DType, rows[1].Outputs[0].DType = "uint8", "uint8"
	const want = "0 exact; 3 exact + 1 by tensor + 4 by tensor + 5 by tensor + 2 by tensor; 6 exact"
	if got := served(join.Find(model, rows, hints)); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestHostile handles invalid graphs: tensors with two producers, cycles, very long names.
func TestHostile(t *testing.T) {
	t.Parallel()
	model := net("a:Relu(y)->x", "b:Relu(x)->y", "c:Cast(z)->z", "d:Conv(x,w1)->x")
	rows, hints := executed("p:Cast(q)->q", "b:Relu(y)->x", "r:Relu(x)->y", ":Cast(s)->t", ":Cast(t)->s", "s:Reorder(,)->", strings.Repeat("_token_1", 500)+":Conv(x,w1)->x")
	if got := join.Find(model, rows, hints); len(got) != len(rows) {
		t.Errorf("%d matches", len(got))
	}
	hints[0].Inputs, hints[1].Outputs = nil, nil
	if got := join.Find(model, rows, hints[:3]); len(got) != len(rows) {
		t.Errorf("%d matches", len(got))
	}
}

// TestInserted reports what an inserted operator serves, and counts no operations for it.
func TestInserted(t *testing.T) {
	t.Parallel()
	layers := net("c:Conv(x,w1)->a", "r:Relu(a)->y")
	model := &profile.Profile{Layers: layers}
	p := &profile.Profile{}
	var hints []join.Hint
	p.Layers, hints = executed("c:Conv(x,w1)->a", "t:Transpose(a)->a_t", "r:Relu(a_t)->y")
	join.Fill(p, model, join.Find(layers, p.Layers, hints))
	l := &p.Layers[1]
	if v := l.Provenance; !v.Inserted || v.Confidence != profile.ByTensor || len(v.SourceNodes) != 1 || v.SourceNodes[0].Node != 0 || l.MACs != nil || l.Params != nil {
		t.Errorf("%+v of %+v", v, l)
	}
	if v := p.Layers[0].Provenance; v.Inserted || v.Confidence != profile.Exact {
		t.Errorf("%+v", v)
	}
	if got := p.Findings[0].Text; !strings.Contains(got, "2 of 3 recorded") || !strings.Contains(got, "1 format conversions inserted") {
		t.Error(got)
	}
}
