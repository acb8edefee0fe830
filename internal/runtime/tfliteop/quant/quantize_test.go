package quant

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

const (
	f32 = tensor.Float32
	i8  = tensor.Int8
	u8  = tensor.Uint8
	i16 = tensor.Int16
	i32 = tensor.Int32
)

// TestQuantize: ties round away from zero, then the zero point is added, saturated to the type.
func TestQuantize(t *testing.T) {
	t.Parallel()
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		typ     tensor.Type
		zero    int64
		scale   float32
		x, want []float64
	}{
		{i8, 0, 0.5, []float64{0, 0.25, -0.25, 0.2, 63.5, 64, -64, -64.5, inf, -inf, nan}, []float64{0, 1, -1, 0, 127, 127, -128, -128, 127, -128, 0}},
		{i8, -128, 1, []float64{0, -1, 1, 254.4, 255, 256, nan}, []float64{-128, -128, -127, 126, 127, 127, -128}},
		{i8, 127, 1, []float64{0, 1, -1, -255, -256, nan}, []float64{127, 127, 126, -128, -128, 127}},
		{u8, 0, 2, []float64{0, 1, 0.9, -1, 510, 511}, []float64{0, 1, 0, 0, 255, 255}},
		{u8, 255, 1, []float64{0, 1, -1, -255, -300}, []float64{255, 255, 254, 0, 0}},
		{i16, 0, 0.25, []float64{0.125, -0.125, 8191.75, 9000, -8192, -9000}, []float64{1, -1, 32767, 32767, -32768, -32768}},
		{i32, 0, 1, []float64{2.5, -2.5, 3e9, -3e9}, []float64{3, -3, math.MaxInt32, math.MinInt32}},
	} {
		optest.Exactly(t, c.typ.String(), Defs(), optest.Lite("QUANTIZE", nil, c.typ, optest.Affine(c.zero, c.scale)), []int{len(c.x)}, c.want, optest.Row(f32, nil, c.x...))
	}
	byChannel := &tensor.Quant{Scale: []float32{1, 2, 0.5}, Zero: []int64{0, 10, -5}, Axis: 1}
	optest.Exactly(t, "by channel", Defs(), optest.Lite("QUANTIZE", nil, i8, byChannel), []int{2, 3}, []float64{3, 13, 3, -3, 7, -13},
		optest.Of(f32, nil, []int{2, 3}, 3, 6, 4, -3, -6, -4))
	x := optest.Row(f32, nil, 1)
	optest.Refused(t, "no scale", Defs(), optest.Lite("QUANTIZE", nil, i8, nil), "output without quantisation", x)
	optest.Refused(t, "int64", Defs(), optest.Lite("QUANTIZE", nil, tensor.Int64, optest.Affine(0, 1)), "float32 to int64", x)
	optest.Refused(t, "bool", Defs(), optest.Lite("QUANTIZE", nil, i8, optest.Affine(0, 1)), "bool to int8", optest.Row(tensor.Bool, nil, 1))
	optest.Refused(t, "nothing", Defs(), optest.Lite("QUANTIZE", nil, i8, optest.Affine(0, 1)), "input 0 is missing")
}

// TestRequantize converts from one quantisation to another, for every pair of types, with zero
// points at both ends.
func TestRequantize(t *testing.T) {
	t.Parallel()
	lo := map[tensor.Type]float64{i8: -128, u8: 0, i16: -32768, i32: math.MinInt32}
	hi := map[tensor.Type]float64{i8: 127, u8: 255, i16: 32767, i32: math.MaxInt32}
	for _, from := range []tensor.Type{i8, u8, i16, i32} {
		for _, to := range []tensor.Type{i8, u8, i16, i32} {
			for _, z := range [][2]float64{{lo[from], lo[to]}, {hi[from], lo[to]}, {lo[from], hi[to]}, {0, 0}, {3, 5}} {
				for _, ratio := range []float64{1, 2, 0.5, 0.25} {
					// beyond 32 bits of differences nothing is defined
					if from == i32 || to == i32 {
						z = [2]float64{min(max(z[0], -7), 7), min(max(z[1], -9), 9)}
					}
					var x, want []float64
					for _, q := range []float64{lo[from], lo[from] + 1, -40, -3, -2, -1, 0, 1, 2, 3, 5, 6, 40, 101, hi[from] - 1, hi[from]} {
						if from == i32 {
							q = min(max(q, -1e6), 1e6)
						}
						if q < lo[from] || q > hi[from] {
							continue
						}
						v := (q - z[0]) * ratio
						if r := math.Abs(v - math.Trunc(v)); r != 0 {
							continue // how ties are rounded differs by ratio
						}
						x, want = append(x, q), append(want, min(max(v+z[1], lo[to]), hi[to]))
					}
					qi, qo := optest.Affine(int64(z[0]), 1), optest.Affine(int64(z[1]), float32(1/ratio))
					optest.Exactly(t, from.String()+" to "+to.String(), Defs(), optest.Lite("QUANTIZE", nil, to, qo), []int{len(x)}, want, optest.Row(from, qi, x...))
				}
			}
		}
		q := optest.Affine(0, 1)
		optest.Refused(t, "no scale", Defs(), optest.Lite("QUANTIZE", nil, i8, q), "without quantisation", optest.Row(from, nil, 1))
		optest.Refused(t, "no output scale", Defs(), optest.Lite("QUANTIZE", nil, i8, nil), "without quantisation", optest.Row(from, q, 1))
		optest.Refused(t, "to int64", Defs(), optest.Lite("QUANTIZE", nil, tensor.Int64, q), from.String()+" to int64", optest.Row(from, q, 1))
	}
}

func TestDequantize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typ     tensor.Type
		q       *tensor.Quant
		x, want []float64
	}{
		{i8, optest.Affine(-128, 0.5), []float64{-128, -127, 0, 127}, []float64{0, 0.5, 64, 127.5}},
		{i8, optest.Affine(127, 2), []float64{-128, 126, 127}, []float64{-510, -2, 0}},
		{u8, optest.Affine(255, 1), []float64{0, 254, 255}, []float64{-255, -1, 0}},
		{u8, optest.Affine(0, 0.25), []float64{0, 1, 255}, []float64{0, 0.25, 63.75}},
		{i16, optest.Affine(0, 0.125), []float64{-32768, 1, 32767}, []float64{-4096, 0.125, 4095.875}},
		{i32, optest.Affine(-1, 1), []float64{-1, math.MaxInt32, math.MinInt32}, []float64{0, 2147483648, -2147483648}},
		{tensor.Float16, nil, []float64{0.5, -65504, 0}, []float64{0.5, -65504, 0}},
		{tensor.BFloat16, nil, []float64{0.5, -1024, 0}, []float64{0.5, -1024, 0}},
		{f32, nil, []float64{0.5, -3, 0}, []float64{0.5, -3, 0}},
		{tensor.Int4, optest.Affine(1, 0.5), []float64{-8, 7, 1}, []float64{-4.5, 3, 0}},
	} {
		optest.Exactly(t, c.typ.String(), Defs(), optest.Lite("DEQUANTIZE", nil, f32, nil), []int{len(c.x)}, c.want, optest.Row(c.typ, c.q, c.x...))
	}
	byChannel := &tensor.Quant{Scale: []float32{1, 2}, Zero: []int64{1, -1}, Axis: 0}
	optest.Exactly(t, "by channel", Defs(), optest.Lite("DEQUANTIZE", nil, f32, nil), []int{2, 2}, []float64{0, 1, 8, 10}, optest.Of(i8, byChannel, []int{2, 2}, 1, 2, 3, 4))
	n := optest.Lite("DEQUANTIZE", nil, f32, nil)
	optest.Refused(t, "no scale", Defs(), n, "without quantisation", optest.Row(i8, nil, 1))
	optest.Refused(t, "int64", Defs(), n, "int64 input", optest.Row(tensor.Int64, nil, 1))
	optest.Refused(t, "nothing", Defs(), n, "input 0 is missing")
}

// TestFakeQuant: the range is shifted so that zero is on the grid, and numbers are rounded to the
// nearest grid point.
func TestFakeQuant(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		attrs   graph.Attrs
		x, want []float64
	}{
		// Four levels: 0, 1, 2, 3.
		{"2 bits", graph.Attrs{"min": float32(0), "max": float32(3), "num_bits": int64(2)}, []float64{-5, 0.4, 0.5, 1.4, 2.9, 99}, []float64{0, 0, 1, 1, 3, 3}},
		// Steps of 1, zero at -(-1.4) = 1.4, which becomes 1: -1, 0, 1, 2.
		{"moved", graph.Attrs{"min": float32(-1.4), "max": float32(1.6), "num_bits": int64(2)}, []float64{-9, -0.6, 0, 0.6, 1.4, 9}, []float64{-1, -1, 0, 1, 1, 2}},
		// Three levels from 1 to 3, step 1: -1, 0, 1.
		{"narrow", graph.Attrs{"min": float32(-1), "max": float32(1), "num_bits": int64(2), "narrow_range": true}, []float64{-9, -0.4, 0.6, 9}, []float64{-1, 0, 1, 1}},
		// A range beside zero begins or ends there.
		{"positive", graph.Attrs{"min": float32(1), "max": float32(4), "num_bits": int64(2)}, []float64{-1, 0.6, 5}, []float64{0, 1, 3}},
		{"negative", graph.Attrs{"min": float32(-4), "max": float32(-1), "num_bits": int64(2)}, []float64{-5, -1.2, 5}, []float64{-3, -1, 0}},
		{"8 bits unless told", graph.Attrs{"min": float32(0), "max": float32(255)}, []float64{254.6, 255, 300, 0.4}, []float64{255, 255, 255, 0}},
		{"16 bits", graph.Attrs{"min": float32(0), "max": float32(65535), "num_bits": int64(16)}, []float64{65534.6, 70000}, []float64{65535, 65535}},
	} {
		optest.Exactly(t, c.name, Defs(), optest.Lite("FAKE_QUANT", c.attrs, f32, nil), []int{len(c.x)}, c.want, optest.Row(f32, nil, c.x...))
	}
	for _, c := range []struct {
		attrs graph.Attrs
		text  string
	}{
		{graph.Attrs{"min": float32(0), "max": float32(1), "num_bits": int64(1)}, "in 1 bits"},
		{graph.Attrs{"min": float32(0), "max": float32(1), "num_bits": int64(17)}, "in 17 bits"},
		{graph.Attrs{"min": float32(1), "max": float32(1)}, "range [1, 1] in 8 bits"},
		{graph.Attrs{"min": float32(2), "max": float32(1)}, "range [2, 1]"},
		{graph.Attrs{"min": float32(math.NaN()), "max": float32(1)}, "range [NaN, 1]"},
		{nil, "range [0, 0]"},
	} {
		optest.Refused(t, "options", Defs(), optest.Lite("FAKE_QUANT", c.attrs, f32, nil), c.text, optest.Row(f32, nil, 1))
	}
	optest.Refused(t, "int8", Defs(), optest.Lite("FAKE_QUANT", graph.Attrs{"max": float32(1)}, i8, nil), "int8 input", optest.Row(i8, nil, 1))
}
