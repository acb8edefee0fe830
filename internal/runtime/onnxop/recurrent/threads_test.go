package recurrent

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestDirectionsOnThreads compares bidirectional layers, of which two threads compute one
// direction each, with the same on one thread, bit-exactly.
func TestDirectionsOnThreads(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]string{"RNN", "GRU", "LSTM", "DynamicQuantizeLSTM"}).Draw(t, "operator")
		gates := map[string]int{"RNN": 1, "GRU": 3, "LSTM": 4, "DynamicQuantizeLSTM": 4}[kind]
		size := rapid.IntRange(1, 20)
		seq, batch, n, h := rapid.IntRange(1, 6).Draw(t, "steps"), rapid.IntRange(1, 4).Draw(t, "batch"), size.Draw(t, "inputs"), size.Draw(t, "hidden")
		drawn := func(name string, shape ...int) *tensor.Tensor {
			x := tensor.New(tensor.Float32, shape...)
			copy(tensor.Of[float32](x), rapid.SliceOfN(rapid.Float32Range(-2, 2), x.Len(), x.Len()).Draw(t, name))
			return x
		}
		node := optest.Node{Op: kind, Version: 14, Outputs: 2, Attrs: graph.Attrs{"direction": "bidirectional"}}
		fixed := rapid.Bool().Draw(t, "constant weights")
		in := []*tensor.Tensor{drawn("x", seq, batch, n), drawn("W", 2, gates*h, n), drawn("R", 2, gates*h, h), drawn("B", 2, 2*gates*h), nil, drawn("state", 2, batch, h)}
		if rapid.Bool().Draw(t, "lengths") {
			in[inLens] = i32(rapid.SliceOfN(rapid.Int32Range(0, int32(seq)), batch, batch).Draw(t, "lengths of")...)
		}
		if kind == "GRU" {
			node.Attrs["linear_before_reset"] = int64(rapid.IntRange(0, 1).Draw(t, "linear before reset"))
		}
		node.Const = []bool{false, fixed, fixed, true}
		if outputs := gates * h; kind == "DynamicQuantizeLSTM" {
			codes := func(name string, shape ...int) *tensor.Tensor {
				x := tensor.New(tensor.Int8, shape...)
				copy(x.Data, rapid.SliceOfN(rapid.Byte(), x.Len(), x.Len()).Draw(t, name))
				return x
			}
			node.Domain, node.Version, node.Outputs = graph.Microsoft, 1, 3
			in[inW], in[inR] = codes("W", 2, n, outputs), codes("R", 2, h, outputs)
			in = append(in, drawn("cells", 2, batch, h), nil, drawn("scales", 2, outputs), codes("zeros", 2), drawn("scales of R", 2), codes("zeros of R", 2))
			node.Const = append(node.Const, false, false, false, false, fixed, fixed, fixed, fixed)
		}
		var want []*tensor.Tensor
		for threads := range 3 {
			node.Threads = threads + 1
			got, err := optest.Run(Defs(), node, in...)
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = got
			}
			for i := range got {
				if !slices.Equal(got[i].Data, want[i].Data) {
					t.Fatalf("%d threads: output %d is %v, want %v", threads+1, i, tensor.Of[float32](got[i]), tensor.Of[float32](want[i]))
				}
			}
		}
	})
}
