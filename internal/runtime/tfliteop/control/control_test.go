package control

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// fake is a nested graph written in Go.
type fake func(in []*tensor.Tensor) []*tensor.Tensor

func (b fake) Run(in []*tensor.Tensor) ([]*tensor.Tensor, error) {
	out := b(in)
	if out == nil {
		return nil, fmt.Errorf("the body fails")
	}
	return out, nil
}

func number(v int32) *tensor.Tensor { return tensor.From(tensor.Int32, []int{1}, []int32{v}) }
func value(x *tensor.Tensor) int32  { return tensor.Of[int32](x)[0] }
func flag(v bool) *tensor.Tensor {
	x := tensor.New(tensor.Bool, 1)
	tensor.Of[bool](x)[0] = v
	return x
}

func one(f func(v int32) *tensor.Tensor) fake {
	return func(in []*tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{f(value(in[0]))} }
}

func TestFlow(t *testing.T) {
	t.Parallel()
	env := &optest.Env{Bodies: map[int]op.Body{
		1: one(func(v int32) *tensor.Tensor { return number(v + 1) }),
		2: one(func(v int32) *tensor.Tensor { return number(v * 10) }),
		3: one(func(v int32) *tensor.Tensor { return flag(v < 5) }),
	}}
	yes, no := graph.GraphRef(1), graph.GraphRef(2)
	tests := []struct {
		name, op string
		attrs    graph.Attrs
		in       []*tensor.Tensor
		want     int32
	}{
		{"then", "IF", graph.Attrs{"then_subgraph_index": yes, "else_subgraph_index": no}, []*tensor.Tensor{flag(true), number(3)}, 4},
		{"else", "IF", graph.Attrs{"then_subgraph_index": yes, "else_subgraph_index": no}, []*tensor.Tensor{flag(false), number(3)}, 30},
		{"case", "STABLEHLO_CASE", graph.Attrs{"branch_subgraph_indices": []graph.GraphRef{1, 2}}, []*tensor.Tensor{number(0), number(3)}, 4},
		{"case out of range", "STABLEHLO_CASE", graph.Attrs{"branch_subgraph_indices": []graph.GraphRef{1, 2}}, []*tensor.Tensor{number(-1), number(3)}, 30},
		{"while", "WHILE", graph.Attrs{"cond_subgraph_index": graph.GraphRef(3), "body_subgraph_index": yes}, []*tensor.Tensor{number(1)}, 5},
		{"while, never", "WHILE", graph.Attrs{"cond_subgraph_index": graph.GraphRef(3), "body_subgraph_index": yes}, []*tensor.Tensor{number(9)}, 9},
		{"call", "CALL", graph.Attrs{"subgraph": no}, []*tensor.Tensor{number(3)}, 30},
		{"composite", "STABLEHLO_COMPOSITE", graph.Attrs{"decomposition_subgraph_index": no}, []*tensor.Tensor{number(3)}, 30},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := optest.RunEnv(env, Defs(), optest.Node{Domain: graph.TFLite, Op: tt.op, Attrs: tt.attrs}, tt.in...)
			if err != nil {
				t.Fatal(err)
			}
			if value(got[0]) != tt.want {
				t.Errorf("result %d, want %d", value(got[0]), tt.want)
			}
			if got[0] == tt.in[0] {
				t.Error("the result is the input itself")
			}
		})
	}
}

func TestCallOnce(t *testing.T) {
	t.Parallel()
	calls := 0
	env := &optest.Env{Bodies: map[int]op.Body{1: fake(func([]*tensor.Tensor) []*tensor.Tensor { calls++; return []*tensor.Tensor{} })}}
	for range 3 {
		n := optest.Node{Domain: graph.TFLite, Op: "CALL_ONCE", Attrs: graph.Attrs{"init_subgraph_index": graph.GraphRef(1)}}
		if _, err := optest.RunEnv(env, Defs(), n); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 1 {
		t.Errorf("%d calls, want 1", calls)
	}
}

func do(t *testing.T, env op.Env, name string, attrs graph.Attrs, in ...*tensor.Tensor) *tensor.Tensor {
	t.Helper()
	got, err := optest.RunEnv(env, Defs(), optest.Node{Domain: graph.TFLite, Op: name, Attrs: attrs}, in...)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return got[0]
}

func TestVariables(t *testing.T) {
	t.Parallel()
	env := &optest.Env{}
	a := do(t, env, "VAR_HANDLE", graph.Attrs{"shared_name": "a"})
	b := do(t, env, "VAR_HANDLE", graph.Attrs{"shared_name": "b"})
	if _, err := optest.RunEnv(env, Defs(), optest.Node{Domain: graph.TFLite, Op: "READ_VARIABLE"}, a); err == nil {
		t.Error("a variable without a value can be read")
	}
	x := number(7)
	do(t, env, "ASSIGN_VARIABLE", nil, a, x)
	do(t, env, "ASSIGN_VARIABLE", nil, b, number(8))
	tensor.Of[int32](x)[0] = 99 // the variable has a copy
	first := do(t, env, "READ_VARIABLE", nil, a)
	do(t, env, "ASSIGN_VARIABLE", nil, a, number(5))
	if got := []int32{value(first), value(do(t, env, "READ_VARIABLE", nil, a)), value(do(t, env, "READ_VARIABLE", nil, b))}; !cmp.Equal(got, []int32{7, 5, 8}) {
		t.Errorf("values %v", got)
	}
}

func TestTables(t *testing.T) {
	t.Parallel()
	env := &optest.Env{}
	h := do(t, env, "HASHTABLE", graph.Attrs{"table_id": int64(3)})
	keys := tensor.New(tensor.String, 2)
	copy(keys.Strings, []string{"x", "y"})
	do(t, env, "HASHTABLE_IMPORT", nil, h, keys, tensor.From(tensor.Int64, []int{2}, []int64{10, 20}))
	want := tensor.New(tensor.String, 2)
	copy(want.Strings, []string{"y", "z"})
	got := do(t, env, "HASHTABLE_FIND", nil, h, want, tensor.From(tensor.Int64, []int{1}, []int64{-1}))
	if diff := cmp.Diff([]int64{20, -1}, tensor.Of[int64](got)); diff != "" {
		t.Error(diff)
	}
	if n := tensor.Of[int64](do(t, env, "HASHTABLE_SIZE", nil, h))[0]; n != 2 {
		t.Errorf("size %d", n)
	}
}

// TestRandom checks the generator against its published vector and the
// distributions by their moments.
func TestRandom(t *testing.T) {
	t.Parallel()
	p := &philox{}
	want := [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}
	for i, w := range want {
		if got := p.next(); got != w {
			t.Errorf("word %d is %#x, want %#x", i, got, w)
		}
	}
	for _, tt := range []struct {
		op             string
		mean, variance float64
	}{{"RANDOM_UNIFORM", 0.5, 1.0 / 12}, {"RANDOM_STANDARD_NORMAL", 0, 1}} {
		y := tensor.Of[float32](do(t, &optest.Env{}, tt.op, graph.Attrs{"seed": int64(1)}, number(20001)))
		var sum, square float64
		for _, v := range y {
			sum += float64(v)
			square += float64(v) * float64(v)
		}
		mean := sum / float64(len(y))
		variance := square/float64(len(y)) - mean*mean
		if d := mean - tt.mean; d > 0.03 || d < -0.03 {
			t.Errorf("%s: mean %v", tt.op, mean)
		}
		if d := variance/tt.variance - 1; d > 0.05 || d < -0.05 {
			t.Errorf("%s: variance %v", tt.op, variance)
		}
	}
}
