package control

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func refused(t *testing.T, what string, env op.Env, n optest.Node, text string, in ...*tensor.Tensor) {
	t.Helper()
	n.Domain = graph.TFLite
	if _, err := optest.RunEnv(env, Defs(), n, in...); err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v, want %q", what, err, text)
	}
}

func text(v ...string) *tensor.Tensor {
	x := tensor.New(tensor.String, len(v))
	copy(x.Strings, v)
	return x
}

func longs(v ...int64) *tensor.Tensor { return tensor.From(tensor.Int64, []int{len(v)}, v) }

// Tables go both ways, are filled once, and give the default for what they do not have.
func TestTableRules(t *testing.T) {
	t.Parallel()
	env := &optest.Env{}
	h, other := do(t, env, "HASHTABLE", graph.Attrs{"table_id": int64(1)}), do(t, env, "HASHTABLE", graph.Attrs{"table_id": int64(2)})
	refused(t, "not filled", env, optest.Node{Op: "HASHTABLE_FIND"}, "is read before it is filled", h, longs(1), text("?"))
	refused(t, "size of nothing", env, optest.Node{Op: "HASHTABLE_SIZE"}, "is read before it is filled", h)
	do(t, env, "HASHTABLE_IMPORT", nil, h, longs(5, 6, 7), text("five", "six", "seven"))
	do(t, env, "HASHTABLE_IMPORT", nil, h, longs(5), text("another")) // changes nothing
	do(t, env, "HASHTABLE_IMPORT", nil, other, text("a"), longs(1))
	if got := do(t, env, "HASHTABLE_FIND", nil, h, longs(7, 8, 5), text("?")); !slices.Equal(got.Strings, []string{"seven", "?", "five"}) {
		t.Errorf("found %q", got.Strings)
	}
	for table, n := range map[*tensor.Tensor]int64{h: 3, other: 1} {
		if got := tensor.Of[int64](do(t, env, "HASHTABLE_SIZE", nil, table))[0]; got != n {
			t.Errorf("size %d, want %d", got, n)
		}
	}
	refused(t, "lengths", env, optest.Node{Op: "HASHTABLE_IMPORT"}, "1 keys with 2 values", h, longs(1), text("a", "b"))
	refused(t, "types", env, optest.Node{Op: "HASHTABLE_IMPORT"}, "a table from int64 to int64", h, longs(1), longs(1))
	refused(t, "text to text", env, optest.Node{Op: "HASHTABLE_IMPORT"}, "a table from string to string", h, text("a"), text("a"))
	refused(t, "default", env, optest.Node{Op: "HASHTABLE_FIND"}, "default has 2 elements", h, longs(1), text("a", "b"))
	refused(t, "types to find", env, optest.Node{Op: "HASHTABLE_FIND"}, "a table from int64 to int64", h, longs(1), longs(1))
	for _, name := range []string{"HASHTABLE_IMPORT", "HASHTABLE_FIND"} {
		refused(t, name+" of no table", env, optest.Node{Op: name}, "not a resource handle", number(1), longs(1), text("a"))
	}
	refused(t, "size of no table", env, optest.Node{Op: "HASHTABLE_SIZE"}, "not a resource handle", number(1))
}

func TestVariableRules(t *testing.T) {
	t.Parallel()
	env := &optest.Env{}
	a := do(t, env, "VAR_HANDLE", graph.Attrs{"shared_name": "a", "container": "x"})
	b := do(t, env, "VAR_HANDLE", graph.Attrs{"shared_name": "a", "container": "y"})
	if a.Strings[0] == b.Strings[0] || a.Type != tensor.Resource || len(a.Shape) != 0 {
		t.Errorf("handles %v and %v", a, b)
	}
	do(t, env, "ASSIGN_VARIABLE", nil, a, number(7))
	refused(t, "of another container", env, optest.Node{Op: "READ_VARIABLE"}, "is read before it is assigned", b)
	refused(t, "no handle", env, optest.Node{Op: "READ_VARIABLE"}, "not a resource handle", number(1))
	refused(t, "no handle to assign", env, optest.Node{Op: "ASSIGN_VARIABLE"}, "not a resource handle", number(1), number(1))
	refused(t, "no value", env, optest.Node{Op: "ASSIGN_VARIABLE"}, "input 1 is missing", a)
	// Another type or shape makes it anew, text is kept too.
	for _, v := range []*tensor.Tensor{longs(1, 2), text("p", "q"), text("r", "s"), longs(3, 4)} {
		do(t, env, "ASSIGN_VARIABLE", nil, a, v)
		got := do(t, env, "READ_VARIABLE", nil, a)
		if got.Type != v.Type || !slices.Equal(got.Shape, v.Shape) || !slices.Equal(got.Strings, v.Strings) || string(got.Data) != string(v.Data) {
			t.Errorf("assigned %v, read %v", v, got)
		}
	}
}

// Random numbers go on from run to run, repeat with the seed, and differ with another.
func TestRandomRules(t *testing.T) {
	t.Parallel()
	draw := func(env op.Env, name string, n int32, seed, seed2 int64) []float32 {
		return slices.Clone(tensor.Of[float32](do(t, env, name, graph.Attrs{"seed": seed, "seed2": seed2}, number(n))))
	}
	for _, name := range []string{"RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL"} {
		one, two := &optest.Env{}, &optest.Env{}
		all := draw(two, name, 8, 1, 2)
		first, second := draw(one, name, 4, 1, 2), draw(one, name, 4, 1, 2)
		if !slices.Equal(append(first, second...), all) {
			t.Errorf("%s: %v then %v, at once %v", name, first, second, all)
		}
		for _, seeds := range [][2]int64{{2, 2}, {1, 3}, {1 << 32, 2}, {1, 2 + 1<<32}} {
			if other := draw(&optest.Env{}, name, 8, seeds[0], seeds[1]); slices.Equal(other, all) {
				t.Errorf("%s: seeds %v give the same", name, seeds)
			}
		}
		if odd := draw(&optest.Env{}, name, 7, 1, 2); !slices.Equal(odd, all[:7]) {
			t.Errorf("%s: seven are %v of %v", name, odd, all)
		}
	}
	for _, v := range draw(&optest.Env{}, "RANDOM_UNIFORM", 1000, 3, 4) {
		if !(v >= 0 && v < 1) {
			t.Fatalf("uniform number %v", v)
		}
	}
	// The counter carries over its words.
	p := &philox{counter: [4]uint32{math.MaxUint32, math.MaxUint32, 5, 0}}
	if p.refill(); p.counter != [4]uint32{0, 0, 6, 0} || p.left != 4 {
		t.Errorf("after the last number the counter is %v", p.counter)
	}
}

// Samples follow the probabilities of the logits, row by row.
func TestMultinomial(t *testing.T) {
	t.Parallel()
	inf := float32(math.Inf(1))
	logits := tensor.From(tensor.Float32, []int{3, 3}, []float32{0, float32(math.Log(2)), float32(math.Log(5)), -inf, 1000, -inf, 3, 3, -inf})
	const n = 8000
	for _, typ := range []tensor.Type{tensor.Invalid, tensor.Int32, tensor.Int64} {
		node := optest.Node{Domain: graph.TFLite, Op: "MULTINOMIAL", Attrs: graph.Attrs{"seed": int64(1)}, OutTypes: []tensor.Type{typ}}
		out, err := optest.RunEnv(&optest.Env{}, Defs(), node, logits, number(n))
		if err != nil {
			t.Fatal(err)
		}
		if want := map[tensor.Type]tensor.Type{tensor.Invalid: tensor.Int64}[typ]; want != 0 && out[0].Type != want {
			t.Errorf("samples of %v", out[0].Type)
		}
		if !slices.Equal(out[0].Shape, []int{3, n}) {
			t.Fatalf("shape %v", out[0].Shape)
		}
		for b, p := range [][]float64{{0.125, 0.25, 0.625}, {0, 1, 0}, {0.5, 0.5, 0}} {
			var seen [3]float64
			for i := range n {
				seen[int(tensor.At(out[0], b*n+i))] += 1. / n
			}
			for k := range p {
				if d := seen[k] - p[k]; !(math.Abs(d) <= 0.03) { // five standard deviations
					t.Errorf("row %d: class %d in %v of the samples, want %v", b, k, seen[k], p[k])
				}
			}
		}
	}
	m := optest.Node{Op: "MULTINOMIAL"}
	refused(t, "rank", &optest.Env{}, m, "samples of logits 3", tensor.New(tensor.Float32, 3), number(1))
	refused(t, "no classes", &optest.Env{}, m, "samples of logits 3x0", tensor.New(tensor.Float32, 3, 0), number(1))
	refused(t, "negative", &optest.Env{}, m, "[-1] samples", logits, number(-1))
	refused(t, "two numbers", &optest.Env{}, m, "[1 2] samples", logits, tensor.From(tensor.Int32, []int{2}, []int32{1, 2}))
	refused(t, "logits", &optest.Env{}, m, "from logits of float64", tensor.New(tensor.Float64, 1, 1), number(1))
	m.OutTypes = []tensor.Type{tensor.Int8}
	refused(t, "samples", &optest.Env{}, m, "samples of int8", logits, number(1))
	if _, err := optest.RunEnv(&optest.Env{}, Defs(), optest.Node{Domain: graph.TFLite, Op: "RANDOM_UNIFORM"}, tensor.New(tensor.Float32, 1)); err == nil {
		t.Error("a shape of floats")
	}
}
