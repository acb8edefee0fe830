package plan_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// TestLiteBorders pads the inputs of TFLite convolutions, also in ways that cannot be fused.
// Results are bit-exact with the separate operators.
func TestLiteBorders(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := &list{newNet(), ""}
		of := func(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, name) }
		typ := rapid.SampledFrom([]tensor.Type{tensor.Float32, tensor.Int8, tensor.Uint8, tensor.Int16}).Draw(t, "type")
		seed := rapid.Uint32().Draw(t, "seed")
		filled := func(typ tensor.Type, q *tensor.Quant, shape ...int) *tensor.Tensor {
			x := tensor.New(typ, shape...)
			x.Quant = q
			for i := range x.Len() {
				if seed = seed*1664525 + 1013904223; typ == tensor.Float32 {
					tensor.Of[float32](x)[i] = float32(int32(seed)) / (1 << 29)
				} else if typ == tensor.Uint8 {
					tensor.WriteInt64(x, i, []int64{int64(seed >> 24)})
				} else {
					tensor.WriteInt64(x, i, []int64{int64(int8(seed >> 24))})
				}
			}
			return x
		}
		quant := func(scale float32, zero int64) *tensor.Quant {
			if typ == tensor.Float32 {
				return nil
			}
			return &tensor.Quant{Scale: []float32{scale}, Zero: []int64{zero}}
		}
		zero, weights, biases := int64(0), tensor.Float32, tensor.Float32
		switch typ {
		case tensor.Int8:
			zero, weights, biases = int64(of("zero", -128, 127)), tensor.Int8, tensor.Int32
		case tensor.Uint8:
			zero, weights, biases = int64(of("zero", 0, 255)), tensor.Uint8, tensor.Int32
		case tensor.Int16:
			weights, biases = tensor.Int8, tensor.Int64
		}
		joins := true
		ch, size := of("channels", 1, 20), [2]int{of("height", 1, 9), of("width", 1, 20)}
		window := [2]int{of("kernel height", 1, 4), of("kernel width", 1, 4)}
		dilation := [2]int{of("dilation height", 1, 2), of("dilation width", 1, 2)}
		pads := []int32{0, 0, 0, 0, 0, 0, 0, 0}
		for k := range 2 {
			reach := (window[k] - 1) * dilation[k]
			for e := range 2 {
				pads[2+2*k+e] = int32(of("pad", 0, reach))
			}
			size[k] = max(size[k], reach+1)
		}
		x := l.input(filled(typ, quant(0.5, zero), 1, size[0], size[1], ch))
		l.g.Values[x].Quant = quant(0.5, zero)
		padded, name := quant(0.5, zero), "PAD"
		in := []int{x, -1}
		conv := graph.Attrs{
			"padding": "VALID", "stride_h": int64(of("stride height", 1, 2)), "stride_w": int64(of("stride width", 1, 2)),
			"dilation_h_factor": int64(dilation[0]), "dilation_w_factor": int64(dilation[1]), "fused_activation_function": rapid.SampledFrom([]string{"NONE", "RELU", "RELU6"}).Draw(t, "activation"),
		}
		depthwise, out := of("depthwise", 0, 1) == 1, of("filters", 1, 20)
		shape := []int{out, window[0], window[1], ch}
		if depthwise {
			out = ch * of("multiplier", 1, 2)
			shape = []int{1, window[0], window[1], out}
		}
		wq := quant(0.25, 0)
		if typ == tensor.Uint8 {
			wq.Zero[0] = 100
		}
		w := filled(weights, wq, shape...)
		var read bool
		switch of("odd", 0, 9) {
		case 0:
			conv["padding"], joins = "SAME", false
		case 1:
			// more than the kernel window covers
			pads[2], joins = int32((window[0]-1)*dilation[0]+1), false
		case 2:
			pads[0], joins = 1, false // padding of another axis
		case 3:
			if joins = typ == tensor.Float32; !joins {
				padded.Scale[0] = 1 // another scale than before
			}
		case 4:
			if typ == tensor.Float32 {
				tensor.Of[float32](w)[0], joins = float32(math.Inf(1)), false
			}
		case 5:
			read, joins = true, false
		case 6, 7:
			name = "PADV2"
			v := tensor.New(typ)
			v.Quant = quant(0.5, zero)
			if typ != tensor.Float32 {
				tensor.WriteInt64(v, 0, []int64{zero})
			}
			if of("value", 0, 2) == 0 && (typ != tensor.Int8 || zero < 127) && (typ != tensor.Uint8 || zero < 255) {
				joins = false
				if typ == tensor.Float32 {
					tensor.Of[float32](v)[0] = 1
				} else {
					tensor.WriteInt64(v, 0, []int64{zero + 1})
				}
			}
			in = append(in, l.constant(v))
		}
		in[1] = l.constant(tensor.From(tensor.Int32, []int{4, 2}, pads))
		y := l.lite(name, nil, in...)
		l.g.Values[y].Quant = padded
		op := "CONV_2D"
		if depthwise {
			op = "DEPTHWISE_CONV_2D"
			conv["depth_multiplier"] = int64(out / ch)
		}
		z := l.lite(op, conv, y, l.constant(w), l.constant(filled(biases, quant(0.125, 0), out)))
		l.g.Values[z].Quant = quant(4, zero)
		l.g.Outputs = []int{z}
		if read {
			l.g.Outputs = append(l.g.Outputs, y)
		}
		m := &graph.Model{Format: "tflite", Graphs: []*graph.Graph{l.g}}
		want, _ := outputsOf(t, m, l.in, true)
		got, steps := outputsOf(t, m, l.in, false)
		if !slices.Equal(got[0].Shape, want[0].Shape) || !slices.Equal(got[0].Data, want[0].Data) {
			t.Fatalf("%v of %v, want %v of %v", got[0].Data, got[0].Shape, want[0].Data, want[0].Shape)
		}
		if fused := len(steps[1].Fused) == 1 && steps[0].State == plan.Fused; fused != joins {
			t.Fatalf("pads %v join: %v, want %v", pads, fused, joins)
		}
	})
}
