package plan

import (
	"errors"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// foldOps adds matrix multiplication, with two operations per product, to the operators of the
// other tests. The operators count their calls.
func foldOps(ran *int) *op.Registry {
	r := testOps()
	var all []op.Def
	for _, d := range r.All() {
		all = append(all, *d)
	}
	return op.NewRegistry(all, []op.Def{{
		Name: "MatMul",
		Infer: func(c *op.Call) error {
			c.SetOut(0, tensor.Float32, []int{c.In[0].Shape[0], c.In[1].Shape[1]})
			return nil
		},
		Prepare: op.Simple(func(*op.Call) error { *ran++; return nil }),
	}})
}

// TestFoldLimits folds up to the limits of memory and work, and not a byte or an operation
// beyond. It computes nothing for that.
func TestFoldLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		m      map[string]*tensor.Tensor
		lines  []string
		states string
	}{
		{"384 MiB", map[string]*tensor.Tensor{"s": i64(3 << 25)}, []string{"Fill y s"}, "folded"},
		{"an element more", map[string]*tensor.Tensor{"s": i64(3<<25 + 1)}, []string{"Fill y s"}, "runs"},
		{"4 thousand million operations", map[string]*tensor.Tensor{"a": i64(1000, 2000), "b": i64(2000, 1000)}, []string{"Fill l a", "Fill r b", "MatMul y l r"}, "folded folded folded"},
		{"a row more", map[string]*tensor.Tensor{"a": i64(1000, 2001), "b": i64(2001, 1000)}, []string{"Fill l a", "Fill r b", "MatMul y l r"}, "folded folded runs"},
		{"100 thousand million operations", map[string]*tensor.Tensor{"a": i64(1000, 50_000), "b": i64(50_000, 1000)}, []string{"Fill l a", "Fill r b", "MatMul y l r"}, "folded folded runs"},
		{"more than any constant may take", map[string]*tensor.Tensor{"a": i64(1000, 50_001), "b": i64(50_001, 1000)}, []string{"Fill l a", "Fill r b", "MatMul y l r", "Same z y"}, "folded folded failed skipped"},
	} {
		ran, out := 0, "y"
		m := &graph.Model{Graphs: []*graph.Graph{build(0, tt.m, "", out, tt.lines...)}}
		p, err := Make(m, nil, Options{Registry: foldOps(&ran)})
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got := states(p.Steps(0)); got != tt.states || ran != 0 {
			t.Errorf("%s: states %q, want %q; computed %d times", tt.name, got, tt.states, ran)
		}
		for _, s := range p.Steps(0) {
			if s.State != Failed {
				continue
			}
			if e, ok := errors.AsType[*op.WorkError](s.Err); !ok || e.Want != 2*1000*50_001*1000 || e.Limit != 100e9 {
				t.Errorf("%s: %v", tt.name, s.Err)
			}
		}
	}
}

// TestFoldedWorkAddsUp forces two constants of 2.4 thousand million operations each: the first is
// computed once, the second exceeds the limit of 4 and runs in every inference.
func TestFoldedWorkAddsUp(t *testing.T) {
	t.Parallel()
	ran := 0
	consts := map[string]*tensor.Tensor{"a": i64(1000, 1200), "b": i64(1200, 1000)}
	g := build(0, consts, "", "y z", "Fill l a", "Fill r b", "MatMul y l r", "MatMul z l r")
	p, err := Make(&graph.Model{Graphs: []*graph.Graph{g}}, nil, Options{Registry: foldOps(&ran)})
	if err != nil {
		t.Fatal(err)
	}
	f := p.graphs[0][0]
	for _, tt := range []struct {
		name  string
		fixed bool
		ran   int
	}{{"y", true, 1}, {"y", true, 1}, {"z", false, 1}} {
		failed, err := f.Materialise(id(g, tt.name))
		if err != nil || failed != -1 || f.Fixed[id(g, tt.name)] != tt.fixed || ran != tt.ran {
			t.Errorf("%s: fixed %v, computed %d times, failed %d, %v", tt.name, f.Fixed[id(g, tt.name)], ran, failed, err)
		}
	}
	if got := states(p.Steps(0)); got != "folded folded folded runs" {
		t.Errorf("states %q", got)
	}
}
