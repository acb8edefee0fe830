package plan_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// TestTogether compares batched multiplications of rows with those of the file, one by one,
// bit-exactly.
func TestTogether(t *testing.T) {
	t.Parallel()
	joined := 0
	rapid.Check(t, func(t *rapid.T) {
		rows, k, n := rapid.IntRange(2, 9).Draw(t, "rows"), rapid.IntRange(1, 40).Draw(t, "inputs"), rapid.IntRange(1, 70).Draw(t, "outputs")
		l := &list{newNet(), ""}
		of := func(name string, shape ...int) *tensor.Tensor {
			x := tensor.New(tensor.Float32, shape...)
			s := rapid.Uint32().Draw(t, name)
			for i := range x.Len() {
				s = s*1664525 + 1013904223
				tensor.Of[float32](x)[i] = float32(int32(s)) / (1 << 30)
			}
			return x
		}
		x := l.input(of("x", rows, 1, k))
		u := l.lite("UNPACK", graph.Attrs{"axis": int64(0), "num": int64(rows)}, x)
		outputs := []int{u}
		for range rows - 1 {
			outputs = append(outputs, l.value(tensor.Float32, nil))
		}
		l.g.Nodes[len(l.g.Nodes)-1].Outputs = outputs
		w, other := l.constant(of("w", n, k)), l.constant(of("other weights", n, k))
		bias := l.constant(of("bias", n))
		none := graph.Attrs{"fused_activation_function": "NONE"}
		kinds := map[string]int{}
		for r := range rows {
			in := []int{outputs[r], w, -1}
			kind := rapid.SampledFrom([]string{"same", "same", "same", "same", "biased", "others"}).Draw(t, "kind")
			switch kinds[kind]++; kind {
			case "biased":
				in[2] = bias
			case "others":
				in[1] = other
			}
			y := l.lite("FULLY_CONNECTED", none, in...)
			if rapid.IntRange(0, 5).Draw(t, "read at once") == 0 {
				y = l.lite("TANH", nil, y)
			}
			l.g.Outputs = append(l.g.Outputs, y)
		}
		m := &graph.Model{Format: "tflite", Graphs: []*graph.Graph{l.g}}
		each, _ := outputsOf(t, m, l.in, true)
		got, steps := outputsOf(t, m, l.in, false)
		for i := range each {
			if !slices.Equal(got[i].Shape, each[i].Shape) || !slices.Equal(got[i].Data, each[i].Data) {
				t.Fatalf("result %d is %v, want %v", i, tensor.Of[float32](got[i]), tensor.Of[float32](each[i]))
			}
		}
		fused := 0
		for _, s := range steps {
			if s.State == plan.Fused {
				fused++
			}
		}
		if fused > 0 {
			joined++
			if most := slices.Max(slices.Collect(maps.Values(kinds))); most < 4 || 2*most <= rows {
				t.Fatalf("%d products are joined to others, of %d of a kind and %d rows", fused, most, rows)
			}
		}
	})
	if joined == 0 {
		t.Error("no products were joined")
	}
}
