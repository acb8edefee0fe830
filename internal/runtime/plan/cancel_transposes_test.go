package plan_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// TestCancelTransposes puts element-wise operators between two transpositions, and compares with
// the same operators run one by one. The transpositions vanish if one is the inverse of the other,
// nothing else reads a value between them, and constants have one element.
func TestCancelTransposes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := &list{newNet(), ""}
		of := func(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, name) }
		lite := rapid.Bool().Draw(t, "TFLite")
		shape := rapid.SliceOfN(rapid.IntRange(1, 4), 2, 4).Draw(t, "shape")
		axes := func() []int64 {
			a := make([]int64, len(shape))
			for i := range a {
				a[i] = int64(i)
			}
			return rapid.Permutation(a).Draw(t, "perm")
		}
		there := axes()
		back := make([]int64, len(there))
		for i, a := range there {
			back[a] = int64(i)
		}
		joins := true
		if of("other", 0, 3) == 0 {
			other := axes()
			joins, back = slices.Equal(other, back), other
		}
		transpose := func(x int, perm []int64) int {
			if !lite {
				return l.node("Transpose", graph.Attrs{"perm": perm}, x)
			}
			var p []int32
			for _, a := range perm {
				p = append(p, int32(a))
			}
			return l.lite("TRANSPOSE", nil, x, l.ints(p...))
		}
		none := graph.Attrs{"fused_activation_function": "NONE"}
		x := l.input(numbers(t, "x", shape...))
		y := transpose(x, there)
		number := func(shape ...int) int { return l.constant(numbers(t, "constant", shape...)) }
		var z int
		switch kind := of("kind", 0, 4); {
		case kind == 0 && lite:
			z = l.lite("TANH", nil, y)
		case kind == 0:
			z = l.node("Elu", nil, y)
		case kind == 1: // a constant of one element may come first
			in := []int{y, number(1)}
			if rapid.Bool().Draw(t, "first") {
				slices.Reverse(in)
			}
			if lite {
				z = l.lite("SUB", none, in...)
			} else {
				z = l.node("Sub", nil, in...)
			}
		case kind == 2: // of several elements, along the last axis
			last := shape[there[len(there)-1]]
			joins = joins && last == 1
			if lite {
				z = l.lite("MUL", none, y, number(last))
			} else {
				z = l.node("Mul", nil, y, number(last))
			}
		case kind == 3: // twice the same value
			joins = false
			if lite {
				z = l.lite("MUL", none, y, y)
			} else {
				z = l.node("Mul", nil, y, y)
			}
		default: // another axis
			joins = false
			if lite {
				z = l.lite("SOFTMAX", graph.Attrs{"beta": float32(1)}, y)
			} else {
				z = l.node("Softmax", graph.Attrs{"axis": int64(-1)}, y)
			}
		}
		l.g.Outputs = []int{transpose(z, back)}
		switch of("read", 0, 4) {
		case 0:
			l.g.Outputs, joins = append(l.g.Outputs, y), false
		case 1:
			l.g.Outputs, joins = append(l.g.Outputs, z), false
		}
		m := l.model()
		if lite {
			m = &graph.Model{Format: "tflite", Graphs: []*graph.Graph{l.g}}
		}
		want, _ := outputsOf(t, m, l.in, true)
		got, steps := outputsOf(t, m, l.in, false)
		for i := range want {
			if !slices.Equal(got[i].Shape, want[i].Shape) || !slices.Equal(got[i].Data, want[i].Data) {
				t.Fatalf("%v of %v, want %v of %v", got[i].Data, got[i].Shape, want[i].Data, want[i].Shape)
			}
		}
		if fused := steps[0].State == plan.Fused && steps[2].State == plan.Fused && len(steps[1].Fused) == 2; fused != joins {
			t.Fatalf("the transpositions vanish: %v, want %v", fused, joins)
		}
	})
}
