package plan_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TestAttentions fuses MatMul, softmax and MatMul, with and without scale and mask.
func TestAttentions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := newNet()
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		numbers := func(shape ...int) *tensor.Tensor {
			x := tensor.New(tensor.Float32, shape...)
			for i := range tensor.Of[float32](x) {
				tensor.Of[float32](x)[i] = float32(r.NormFloat64())
			}
			return x
		}
		of := func(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, name) }
		rows, keys, size, vsize := of("rows", 256, 270), of("keys", 256, 270), of("size", 1, 5), of("value size", 1, 5)
		lead := rapid.SampledFrom([][]int{{2}, {2, 3}}).Draw(t, "heads")
		shape := func(more ...int) []int { return append(append([]int{}, lead...), more...) }
		two := func(name string, p, q int) int {
			if rapid.Bool().Draw(t, "turned") {
				p, q = q, p
			}
			return b.node(name, nil, p, q)
		}
		fused := 2
		s := b.node("MatMul", nil, b.input(numbers(shape(rows, size)...)), b.input(numbers(shape(size, keys)...)))
		switch of("factor", 0, 2) {
		case 1:
			s, fused = two("Mul", s, b.constant(scalar32(0.3))), fused+1
		case 2:
			s, fused = b.node("Div", nil, s, b.constant(scalar32(3))), fused+1
		}
		if rapid.Bool().Draw(t, "mask") {
			m := [][]int{{keys}, {rows, keys}, {rows, 1}, shape(1, keys), shape(rows, keys)}[of("shape", 0, 4)]
			mask := numbers(m...)
			never := rapid.SampledFrom([]float32{float32(math.Inf(-1)), -math.MaxFloat32, -100}).Draw(t, "never")
			for i := range mask.Len() {
				if r.IntN(3) == 0 {
					tensor.Of[float32](mask)[i] = never
				}
			}
			s, fused = two("Add", s, b.input(mask)), fused+1
		}
		cast := func(v int) int {
			if !rapid.Bool().Draw(t, "cast") {
				return v
			}
			fused++
			return b.node("Cast", graph.Attrs{"to": int64(1)}, v)
		}
		axis := rapid.SampledFrom([]int64{-1, int64(len(lead) + 1)}).Draw(t, "axis")
		y := b.node("MatMul", nil, cast(b.node("Softmax", graph.Attrs{"axis": axis}, cast(s))), b.input(numbers(shape(keys, vsize)...)))
		b.g.Outputs = []int{y}
		runs(t, joined(t, b), "Attention", fused)
	})
}

// TestNoAttentions lists patterns that stay: another axis, a key with other heads, a factor per
// key, scores with other readers, few scores.
func TestNoAttentions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		axis int64
		key  []int
		mul  []int
		read bool
	}{
		{"axis", 1, []int{2, 3, 256}, nil, false},
		{"heads", -1, []int{1, 3, 256}, nil, false},
		{"factors", -1, []int{2, 3, 256}, []int{256}, false},
		{"read", -1, []int{2, 3, 256}, nil, true},
		{"few scores", -1, []int{2, 3, 255}, nil, false},
	} {
		b := newNet()
		s := b.node("MatMul", nil, b.input(tensor.New(tensor.Float32, 2, 256, 3)), b.input(tensor.New(tensor.Float32, tt.key...)))
		if tt.mul != nil {
			s = b.node("Mul", nil, s, b.constant(tensor.New(tensor.Float32, tt.mul...)))
		}
		p := b.node("Softmax", graph.Attrs{"axis": tt.axis}, s)
		y := b.node("MatMul", nil, p, b.input(tensor.New(tensor.Float32, 2, tt.key[2], 3)))
		if b.g.Outputs = []int{y}; tt.read {
			b.g.Outputs = append(b.g.Outputs, p)
		}
		_, steps := run(t, b, false)
		for _, step := range steps {
			if step.Runs != nil && step.Runs.Op == "Attention" {
				t.Errorf("%s: step %d became attention", tt.name, step.Node.Index)
			}
		}
	}
}
