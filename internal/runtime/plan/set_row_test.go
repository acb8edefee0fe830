package plan_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// list is a TFLite graph that sets a row of a list as converters write it, with the variations
// named in odd.
type list struct {
	*net
	odd string
}

func (l *list) lite(name string, a graph.Attrs, in ...int) int {
	id := l.node(name, a, in...)
	n := l.g.Nodes[len(l.g.Nodes)-1]
	n.Domain, n.Version = graph.TFLite, 1
	l.g.Values[id].Type = l.g.Values[in[0]].Type
	return id
}

func (l *list) ints(v ...int32) int {
	return l.constant(tensor.From(tensor.Int32, []int{len(v)}, v))
}

func (l *list) is(odd string, v, otherwise int32) int32 {
	if l.odd == odd {
		return otherwise
	}
	return v
}

func newList(odd string, x, row *tensor.Tensor, at int32) *list {
	l := &list{newNet(), odd}
	rank := x.Rank()
	none := graph.Attrs{"fused_activation_function": "NONE", "axis": int64(0)}
	in, item, i := l.input(x), l.input(row), l.input(tensor.From(tensor.Int32, nil, []int32{at}))
	many := func(v int32, n int) int { return l.ints(slices.Repeat([]int32{v}, n)...) }
	next := l.lite("ADD", none, i, l.constant(tensor.From(tensor.Int32, nil, []int32{l.is("two further", 1, 2)})))
	size := l.lite("CONCATENATION", none, l.lite("RESHAPE", nil, i, l.ints(1)), many(l.is("one element", -1, 1), rank-1))
	before := l.lite("SLICE", nil, in, many(0, rank), size)
	begin := l.lite("CONCATENATION", none, l.lite("EXPAND_DIMS", nil, next, l.constant(tensor.From(tensor.Int32, nil, []int32{0}))), many(0, rank-1))
	behind := l.lite("SLICE", nil, in, begin, many(-1, rank))
	parts := []int{before, item, behind}
	if odd == "turned" {
		parts = []int{behind, item, before}
	}
	l.g.Outputs = []int{l.lite("CONCATENATION", none, parts...)}
	if odd == "part is read" {
		l.g.Outputs = append(l.g.Outputs, before)
	}
	return l
}

// run computes the graph, as in the file or by the nodes of the plan.
func (l *list) run(keep bool) (*tensor.Tensor, []plan.Step, error) {
	m := &graph.Model{Format: "tflite", Graphs: []*graph.Graph{l.g}}
	s, err := engine.New(m, l.in, engine.Options{Registry: operators.Registry(), KeepAll: keep})
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	err = s.Run(context.Background())
	return s.Output(0), s.Steps(), err
}

// outputsOf computes a model, as in the file or by the nodes of the plan.
func outputsOf(t interface{ Fatal(...any) }, m *graph.Model, in []*tensor.Tensor, keep bool) (out []*tensor.Tensor, steps []plan.Step) {
	s, err := engine.New(m, in, engine.Options{Registry: operators.Registry(), KeepAll: keep})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	for i := range m.Main().Outputs {
		if s.Output(i) == nil {
			t.Fatal("nothing is computed: ", s.Steps())
		}
		out = append(out, s.Output(i).Clone())
	}
	return out, s.Steps()
}

// TestRows compares fused row updates with the operators of the file, one by one.
func TestRows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shape := append([]int{rapid.IntRange(1, 6).Draw(t, "rows")}, rapid.SliceOfN(rapid.IntRange(1, 4), 1, 2).Draw(t, "row")...)
		one := append([]int{1}, shape[1:]...)
		odd := rapid.SampledFrom([]string{"", "", "two further", "one element", "turned", "part is read"}).Draw(t, "odd")
		at := int32(rapid.IntRange(-1, shape[0]).Draw(t, "at"))
		l := newList(odd, numbers(t, "x", shape...), numbers(t, "new", one...), at)
		want, _, bad := l.run(true)
		got, steps, err := l.run(false)
		last := steps[len(steps)-1]
		if joins := last.Runs.Op == "DYNAMIC_UPDATE_SLICE"; joins != (odd == "") {
			t.Fatalf("the last step is %s", last.Runs.Op)
		}
		if odd == "" && (at < 0 || int(at) >= shape[0]) {
			if err == nil || !strings.Contains(err.Error(), "row") {
				t.Fatalf("error %v for row %d of %d", err, at, shape[0])
			}
			return
		}
		if (err != nil) != (bad != nil) {
			t.Fatalf("error %v, want %v", err, bad)
		}
		if err == nil && (!slices.Equal(got.Shape, want.Shape) || !slices.Equal(got.Data, want.Data)) {
			t.Fatalf("result %v %v, want %v %v", got.Shape, tensor.Of[float32](got), want.Shape, tensor.Of[float32](want))
		}
	})
}
