package plan_test

import (
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"pgregory.net/rapid"
)

// TestIntegerProducts builds what dynamic quantisation writes. Fused operators give the same bits
// as single ones, which outputs of the model between them keep apart.
func TestIntegerProducts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rows, k, n := rapid.IntRange(1, 5).Draw(t, "rows"), rapid.IntRange(1, 40).Draw(t, "k"), rapid.IntRange(2, 40).Draw(t, "n")
		x := numbers(t, "x", rows, k)
		w := draws{t, tensor.Int8}.codes("w", k, n)
		scales := []*tensor.Tensor{scalar32(.01), tensor.From(tensor.Float32, []int{1}, []float32{.02}), numbers(t, "scales", n)}[rapid.IntRange(0, 2).Draw(t, "scales")]
		bias, relu, zero := rapid.Bool().Draw(t, "bias"), rapid.Bool().Draw(t, "relu"), rapid.Bool().Draw(t, "zero point")
		offsets := numbers(t, "offsets", n)
		turned := rapid.SliceOfN(rapid.Bool(), 3, 3).Draw(t, "turned")
		build := func(apart bool) *net {
			b := newNet()
			two := func(k int, name string, p, q int) int {
				if turned[k] {
					p, q = q, p
				}
				return b.node(name, nil, p, q)
			}
			in := b.input(x)
			q := b.node("DynamicQuantizeLinear", nil, in)
			s, z := b.value(tensor.Invalid, nil), b.value(tensor.Invalid, nil)
			b.g.Nodes[0].Outputs = []int{q, s, z}
			product := []int{q, b.constant(w), z}
			if zero {
				product = append(product, b.constant(zeroPoint(tensor.Int8, 3)))
			}
			sums := b.node("MatMulInteger", nil, product...)
			floats := b.node("Cast", graph.Attrs{"to": int64(1)}, sums)
			both := two(0, "Mul", s, b.constant(scales))
			y := two(1, "Mul", floats, both)
			between := []int{sums, floats, both}
			if bias {
				between = append(between, y)
				y = two(2, "Add", y, b.constant(offsets))
			}
			if relu {
				between = append(between, y)
				y = b.node("Relu", nil, y)
			}
			b.g.Outputs = []int{y}
			if apart {
				b.g.Outputs = append(b.g.Outputs, between...)
			}
			return b
		}
		for _, exact := range []bool{true, false} {
			want, _ := run(t, build(true), exact)
			got, steps := run(t, build(false), exact)
			if !slices.Equal(tensor.Of[float32](got), tensor.Of[float32](want)) {
				t.Fatalf("%v, want %v", tensor.Of[float32](got), tensor.Of[float32](want))
			}
			for i, s := range steps {
				if s.State == plan.Runs && s.Runs.Op != "DynamicQuantizeLinear" && s.Runs.Op != "MatMulIntegerToFloat" {
					t.Fatalf("step %d runs %s", i, s.Runs.Op)
				}
			}
		}
	})
}
