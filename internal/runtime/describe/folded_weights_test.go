package describe

import (
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TestFoldedWeights counts float16 weights at the layers that use them, also behind two folded
// layers, and in each of two readers.
func TestFoldedWeights(t *testing.T) {
	t.Parallel()
	half := &tensor.Tensor{Type: tensor.Float16, Shape: []int{8, 8}, Data: make([]byte, 128)}
	g := net(0, graph.TFLite, map[string]*tensor.Tensor{"h": half, "k": half.Clone(), "order": tensor.From(tensor.Int32, []int{2}, []int32{1, 0})}, "x:f32:4x8", "y z",
		"DEQUANTIZE w:f32:8x8 h", "FULLY_CONNECTED y:f32:4x8 x w _", "DEQUANTIZE v:f32:8x8 k", "TRANSPOSE u:f32:8x8 v order", "FULLY_CONNECTED a:f32:4x8 y u _", "FULLY_CONNECTED z:f32:4x8 a u _")
	m := &graph.Model{Format: "tflite", Graphs: []*graph.Graph{g}}
	p, slots := planned(t, m)
	d, err := Model(p, slots, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{0, 64, 0, 0, 64, 64} {
		if l := &d.Layers[i]; *l.Params != want || *l.WeightsBytes != 2*want {
			t.Errorf("layer %d, %s: %d parameters in %d bytes, want %d in %d", i, l.Op, *l.Params, *l.WeightsBytes, want, 2*want)
		}
	}
	if *d.Totals.Params != 128 {
		t.Errorf("%d parameters in total, want 128", *d.Totals.Params)
	}
}
