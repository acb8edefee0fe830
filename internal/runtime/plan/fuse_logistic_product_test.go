package plan_test

import (
	"math"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TestLogisticProduct compares x·logistic(x) with the operators of the file, bit by bit: infinities
// and more values than a block included. Products by another value, of a result that others read,
// or with a clamp are not fused.
func TestLogisticProduct(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]struct {
		fused int
		of    func(l *list, x, y, s int) []int
	}{
		"after":     {1, func(l *list, x, _, s int) []int { return []int{l.lite("MUL", nil, x, s)} }},
		"before":    {1, func(l *list, x, _, s int) []int { return []int{l.lite("MUL", nil, s, x)} }},
		"by others": {0, func(l *list, _, y, s int) []int { return []int{l.lite("MUL", nil, y, s)} }},
		"squared":   {0, func(l *list, _, _, s int) []int { return []int{l.lite("MUL", nil, s, s)} }},
		"read":      {0, func(l *list, x, _, s int) []int { return []int{l.lite("MUL", nil, x, s), s} }},
		"clamped": {0, func(l *list, x, _, s int) []int {
			return []int{l.lite("MUL", graph.Attrs{"fused_activation_function": "RELU"}, x, s)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &list{newNet(), ""}
			values := make([]float32, 3001)
			for i := range values {
				values[i] = float32(i-1500) / 90
			}
			copy(values, []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32, float32(math.Copysign(0, -1))})
			x := l.input(tensor.From(tensor.Float32, []int{len(values)}, values))
			y := l.input(tensor.From(tensor.Float32, []int{len(values)}, slices.Clone(values)))
			l.g.Outputs = build.of(l, x, y, l.lite("LOGISTIC", nil, x))
			m := &graph.Model{Format: "tflite", Graphs: []*graph.Graph{l.g}}
			want, _ := outputsOf(t, m, l.in, true)
			got, steps := outputsOf(t, m, l.in, false)
			for i := range want {
				w := tensor.Of[float32](want[i])
				for k, v := range tensor.Of[float32](got[i]) {
					// The sign of NaN is that of either operand.
					if math.Float32bits(v) != math.Float32bits(w[k]) && (v == v || w[k] == w[k]) {
						t.Fatalf("output %d of %g is %g, want %g", i, values[k], v, w[k])
					}
				}
			}
			if build.fused > 0 {
				runs(t, steps, "LOGISTIC", build.fused)
			} else {
				runs(t, steps, "MUL", 0)
			}
		})
	}
}
