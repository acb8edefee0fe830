package plan_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// liteTranspose adds a TRANSPOSE.
func (l *list) liteTranspose(id int, perm []int32) int {
	return l.lite("TRANSPOSE", nil, id, l.constant(tensor.From(tensor.Int32, []int{len(perm)}, perm)))
}

// TestSoftmaxAxis compares softmaxes between two transpositions with the operators of the file,
// bit-exactly. Only transpositions of which the second undoes the first are fused.
func TestSoftmaxAxis(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := &list{newNet(), ""}
		rank := rapid.IntRange(2, 5).Draw(t, "rank")
		x := tensor.New(tensor.Float32, rapid.SliceOfN(rapid.IntRange(1, 9), rank, rank).Draw(t, "shape")...)
		seed := rapid.Uint32().Draw(t, "seed")
		for i := range x.Len() {
			seed = seed*1664525 + 1013904223
			tensor.Of[float32](x)[i] = float32(int32(seed)) / (1 << 29)
		}
		axes := make([]int32, rank)
		for i := range axes {
			axes[i] = int32(i)
		}
		perm := rapid.Permutation(axes).Draw(t, "perm")
		back, shape := make([]int32, rank), make([]int, rank)
		for i, a := range perm {
			back[a], shape[i] = int32(i), x.Shape[a]
		}
		undone := rapid.Bool().Draw(t, "undone")
		if !undone {
			back = rapid.Permutation(axes).Draw(t, "back")
			undone = true
			for i, a := range back {
				undone = undone && perm[a] == int32(i)
			}
		}
		fused := 2
		s := l.liteTranspose(l.input(x), perm)
		reshaped := rapid.Bool().Draw(t, "reshaped")
		if reshaped {
			s, fused = l.liteShape(s, x.Len()/shape[rank-1], shape[rank-1]), fused+2
		}
		s = l.lite("SOFTMAX", graph.Attrs{"beta": float32(0.5)}, s)
		if reshaped {
			s = l.liteShape(s, shape...)
		}
		l.g.Outputs = []int{l.liteTranspose(s, back)}
		m := &graph.Model{Format: "tflite", Graphs: []*graph.Graph{l.g}}
		want, _ := outputsOf(t, m, l.in, true)
		got, steps := outputsOf(t, m, l.in, false)
		if !slices.Equal(got[0].Shape, want[0].Shape) || !slices.Equal(got[0].Data, want[0].Data) {
			t.Fatalf("%v of %v, want %v of %v", tensor.Of[float32](got[0]), got[0].Shape, tensor.Of[float32](want[0]), want[0].Shape)
		}
		if undone {
			runs(t, steps, "SOFTMAX", fused)
		} else {
			runs(t, steps, "TRANSPOSE", 0)
		}
	})
}
