package tflite

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/flatbuffer"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

func quantTable(scale []float32, zero []int64, axis int32) *flatbuffer.Object {
	return made(func(o *flatbuffer.Object) {
		if scale != nil {
			o.Float32s(2, scale)
		}
		if zero != nil {
			o.Int64s(3, zero)
		}
		o.Int32(6, axis, 0)
	})
}

func TestQuantisation(t *testing.T) {
	t.Parallel()
	const int8, uint8t, int16, int32t, int64t, int4, float = 9, 3, 7, 2, 4, 17, 0
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, tt := range []struct {
		name    string
		typ     uint8
		shape   []int
		table   *flatbuffer.Object
		want    *tensor.Quant
		warning string
	}{
		{name: "one", typ: int8, shape: []int{2}, table: quantTable([]float32{0.5}, []int64{-128}, 0), want: &tensor.Quant{Scale: []float32{0.5}, Zero: []int64{-128}}},
		{name: "range alone", typ: int8, shape: []int{2}, table: quantTable(nil, []int64{1}, 0)},
		{name: "no zero points", typ: int8, shape: []int{2}, table: quantTable([]float32{1, 2}, nil, 0), want: &tensor.Quant{Scale: []float32{1, 2}, Zero: []int64{0, 0}}},
		{name: "one zero point for all", typ: int8, shape: []int{3}, table: quantTable([]float32{1, 2, 3}, []int64{7}, 0), want: &tensor.Quant{Scale: []float32{1, 2, 3}, Zero: []int64{7, 7, 7}}},
		{name: "second axis", typ: int8, shape: []int{3, 2}, table: quantTable([]float32{1, 2}, []int64{1, 2}, 1), want: &tensor.Quant{Scale: []float32{1, 2}, Zero: []int64{1, 2}, Axis: 1}},
		{name: "bias with the filter's axis", typ: int32t, shape: []int{2}, table: quantTable([]float32{1, 2}, nil, 3), want: &tensor.Quant{Scale: []float32{1, 2}, Zero: []int64{0, 0}}},
		{name: "bias with a negative axis", typ: int32t, shape: []int{2}, table: quantTable([]float32{1, 2}, nil, -1), want: &tensor.Quant{Scale: []float32{1, 2}, Zero: []int64{0, 0}}},
		{name: "axis of a scalar scale is kept", typ: int8, shape: []int{2}, table: quantTable([]float32{1}, nil, 3), want: &tensor.Quant{Scale: []float32{1}, Zero: []int64{0}, Axis: 3}},
		{name: "axis past the rank", typ: int8, shape: []int{2, 2}, table: quantTable([]float32{1, 2}, nil, 2), want: &tensor.Quant{Scale: []float32{1, 2}, Zero: []int64{0, 0}, Axis: 2}, warning: "has 2 scales along axis 2 of shape 2x2"},
		{name: "another dimension", typ: int8, shape: []int{2, 3}, table: quantTable([]float32{1, 2}, nil, 1), want: &tensor.Quant{Scale: []float32{1, 2}, Zero: []int64{0, 0}, Axis: 1}, warning: "has 2 scales along axis 1 of shape 2x3"},
		{name: "another length", typ: int8, shape: []int{3}, table: quantTable([]float32{1, 2}, nil, 0), want: &tensor.Quant{Scale: []float32{1, 2}, Zero: []int64{0, 0}}, warning: "has 2 scales along axis 0 of shape 3"},
		{name: "int8 above", typ: int8, shape: []int{1}, table: quantTable([]float32{1}, []int64{128}, 0), want: &tensor.Quant{Scale: []float32{1}, Zero: []int64{128}}, warning: "zero point 0 is 128, and int8 reaches from -128 to 127"},
		{name: "int8 at the top", typ: int8, shape: []int{1}, table: quantTable([]float32{1}, []int64{127}, 0), want: &tensor.Quant{Scale: []float32{1}, Zero: []int64{127}}},
		{name: "int8 below", typ: int8, shape: []int{2}, table: quantTable([]float32{1, 1}, []int64{0, -129}, 0), want: &tensor.Quant{Scale: []float32{1, 1}, Zero: []int64{0, -129}}, warning: "zero point 1 is -129"},
		{name: "uint8 at the top", typ: uint8t, shape: []int{1}, table: quantTable([]float32{1}, []int64{255}, 0), want: &tensor.Quant{Scale: []float32{1}, Zero: []int64{255}}},
		{name: "uint8 above", typ: uint8t, shape: []int{1}, table: quantTable([]float32{1}, []int64{256}, 0), want: &tensor.Quant{Scale: []float32{1}, Zero: []int64{256}}, warning: "256, and uint8 reaches from 0 to 255"},
		{name: "uint8 below", typ: uint8t, shape: []int{1}, table: quantTable([]float32{1}, []int64{-1}, 0), want: &tensor.Quant{Scale: []float32{1}, Zero: []int64{-1}}, warning: "-1, and uint8 reaches"},
		{name: "int4", typ: int4, shape: []int{1}, table: quantTable([]float32{1}, []int64{8}, 0), want: &tensor.Quant{Scale: []float32{1}, Zero: []int64{8}}, warning: "int4 reaches from -8 to 7"},
		{name: "int16", typ: int16, shape: []int{1}, table: quantTable([]float32{1}, []int64{-32769}, 0), want: &tensor.Quant{Scale: []float32{1}, Zero: []int64{-32769}}, warning: "int16 reaches from -32768 to 32767"},
		{name: "int32", typ: int32t, shape: []int{1}, table: quantTable([]float32{1}, []int64{1 << 31}, 0), want: &tensor.Quant{Scale: []float32{1}, Zero: []int64{1 << 31}}, warning: "int32 reaches from -2147483648 to 2147483647"},
		{name: "int64 holds all", typ: int64t, shape: []int{1}, table: quantTable([]float32{1}, []int64{1 << 40}, 0), want: &tensor.Quant{Scale: []float32{1}, Zero: []int64{1 << 40}}},
		{name: "float has no range", typ: float, shape: []int{1}, table: quantTable([]float32{1}, []int64{999}, 0), want: &tensor.Quant{Scale: []float32{1}, Zero: []int64{999}}},
		{name: "no scale", typ: int8, shape: []int{1}, table: quantTable([]float32{0}, nil, 0), want: &tensor.Quant{Scale: []float32{0}, Zero: []int64{0}}, warning: "scale 0 is 0"},
		{name: "negative scale", typ: int8, shape: []int{2}, table: quantTable([]float32{1, -1}, nil, 0), want: &tensor.Quant{Scale: []float32{1, -1}, Zero: []int64{0, 0}}, warning: "scale 1 is -1"},
		{name: "infinite scale", typ: int8, shape: []int{1}, table: quantTable([]float32{inf}, nil, 0), want: &tensor.Quant{Scale: []float32{inf}, Zero: []int64{0}}, warning: "scale 0 is +Inf"},
		{name: "no number", typ: int8, shape: []int{1}, table: quantTable([]float32{nan}, nil, 0), want: &tensor.Quant{Scale: []float32{nan}, Zero: []int64{0}}, warning: "scale 0 is NaN"},
		{name: "custom", typ: int8, shape: []int{1}, table: made(func(o *flatbuffer.Object) { o.Float32s(2, []float32{1}); o.Uint8(4, 1, 0) }), warning: "has custom quantisation (type 1)"},
		{name: "newer", typ: int8, shape: []int{1}, table: made(func(o *flatbuffer.Object) { o.Uint8(4, 4, 0) }), warning: "(type 4)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := abs()
			f.tensor(tt.shape, tt.typ, 0).Table(tensorQuant, tt.table)
			m := parse(t, f.bytes(t))
			same := cmp.Comparer(func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
			if diff := cmp.Diff(tt.want, m.Main().Values[2].Quant, same); diff != "" {
				t.Error(diff)
			}
			if told := strings.Join(m.Warnings, "\n"); tt.warning == "" && told != "" || !strings.Contains(told, tt.warning) || len(m.Warnings) > 1 {
				t.Errorf("warnings %q, want %q", told, tt.warning)
			}
		})
	}
	f := abs()
	f.tensor([]int{3}, int8, 0).Table(tensorQuant, quantTable([]float32{1, 2, 3}, []int64{1, 2}, 0))
	refusal(t, f.bytes(t), "Model.subgraphs[0].tensors[2].quantization.zero_point", "2 zero points for 3 scales")
}

// blockFile is a tensor 2 of shape 2x4 with details of a kind; tensors 3 and 4 are
// constants for scales and zero points, 5 has no data.
func blockFile(scaleType, zeroType uint8, scales, zeros []byte, n int, details *flatbuffer.Object, kind uint8) *file {
	f := abs()
	q := made(func(o *flatbuffer.Object) { o.Uint8(4, kind, 0); o.Table(5, details) })
	f.tensor([]int{2, 4}, 9, f.buffer(make([]byte, 8)...)).Table(tensorQuant, q)
	f.tensor([]int{n}, scaleType, f.buffer(scales...))
	f.tensor([]int{len(zeros) / tensorTypes[zeroType].typ.Bytes(1)}, zeroType, f.buffer(zeros...))
	f.tensor([]int{n}, 0, 0)
	return f
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	details := func(scales, zeros, size int32, axes ...int) *flatbuffer.Object {
		return made(func(o *flatbuffer.Object) {
			o.Int32(0, scales, 0)
			o.Int32(1, zeros, 0)
			o.Int32(2, size, 0)
			if axes != nil {
				flatbuffer.Int32s(o, 3, axes)
			}
		})
	}
	halves := []byte{0, 0x3c, 0, 0x40} // 1 and 2
	const at = "Model.subgraphs[0].tensors[2].quantization.details"
	for _, tt := range []struct {
		name       string
		details    *flatbuffer.Object
		kind       uint8
		scaleType  uint8
		scales     []byte
		zeroType   uint8
		zeros      []byte
		want       *tensor.Quant
		path, text string
		warning    string
	}{
		{name: "halves", details: details(3, 0, 4), kind: 2, scaleType: 1, scales: halves, want: &tensor.Quant{Scale: []float32{1, 2}, Zero: []int64{0, 0}, Axis: 1, Block: 4}},
		{name: "floats", details: details(3, 0, 1), kind: 2, scales: []byte{0, 0, 128, 63, 0, 0, 0, 64}, want: &tensor.Quant{Scale: []float32{1, 2}, Zero: []int64{0, 0}, Axis: 1, Block: 1}},
		{name: "zero points", details: details(3, 4, 4), kind: 2, scaleType: 1, scales: halves, zeroType: 9, zeros: []byte{0xff, 5}, want: &tensor.Quant{Scale: []float32{1, 2}, Zero: []int64{-1, 5}, Axis: 1, Block: 4}},
		{name: "one axis", details: details(3, 0, 0, 0), kind: 3, scaleType: 1, scales: halves, want: &tensor.Quant{Scale: []float32{1, 2}, Zero: []int64{0, 0}}},
		{name: "several axes", details: details(3, 0, 0, 0, 1), kind: 3, scaleType: 1, scales: halves, warning: "quantised along 2 axes at once"},
		{name: "axis outside", details: details(3, 0, 0, 2), kind: 3, scaleType: 1, scales: halves, path: at + ".quantized_dimensions", text: "axis 2 of a tensor of rank 2"},
		{name: "negative axis", details: details(3, 0, 0, -1), kind: 3, scaleType: 1, scales: halves, path: at + ".quantized_dimensions", text: "axis -1 of a tensor"},
		{name: "no block", details: details(3, 0, 0), kind: 2, scaleType: 1, scales: halves, path: at + ".block_size", text: "block size 0"},
		{name: "axes are not read of blocks", details: details(3, 0, 0, 0), kind: 2, scaleType: 1, scales: halves, path: at + ".block_size", text: "block size 0"},
		{name: "negative block", details: details(3, 0, -1, 0), kind: 3, scaleType: 1, scales: halves, path: at + ".block_size", text: "block size -1"},
		{name: "scales outside", details: details(6, 0, 4), kind: 2, scaleType: 1, scales: halves, path: at + ".scales", text: "tensor 6 of 6"},
		{name: "negative scales", details: details(-1, 0, 4), kind: 2, scaleType: 1, scales: halves, path: at + ".scales", text: "tensor -1 of 6"},
		{name: "scales without data", details: details(5, 0, 4), kind: 2, scaleType: 1, scales: halves, path: at + ".scales", text: "tensor 5 \"\" is not a constant"},
		{name: "whole scales", details: details(3, 0, 4), kind: 2, scaleType: 7, scales: halves, path: at + ".scales", text: "scales of type int16"},
		{name: "zero points outside", details: details(3, 6, 4), kind: 2, scaleType: 1, scales: halves, path: at + ".zero_points", text: "tensor 6 of 6"},
		{name: "too few zero points", details: details(3, 4, 4), kind: 2, scaleType: 1, scales: halves, zeroType: 9, zeros: []byte{1}, path: at + ".zero_points", text: "1 zero points of type int8 for 2 scales"},
		{name: "zero points of another type", details: details(3, 4, 4), kind: 2, scaleType: 1, scales: halves, zeroType: 1, zeros: halves, path: at + ".zero_points", text: "2 zero points of type float16 for 2"},
		{name: "zero points -1", details: details(3, -1, 4), kind: 2, scaleType: 1, scales: halves, want: &tensor.Quant{Scale: []float32{1, 2}, Zero: []int64{0, 0}, Axis: 1, Block: 4}},
		{name: "zero points 0", details: details(3, 0, 4), kind: 2, scaleType: 1, scales: halves, want: &tensor.Quant{Scale: []float32{1, 2}, Zero: []int64{0, 0}, Axis: 1, Block: 4}},
		{name: "no details", kind: 2, scaleType: 1, scales: halves},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.zeros == nil {
				tt.zeroType, tt.zeros = 9, []byte{0, 0}
			}
			data := blockFile(tt.scaleType, tt.zeroType, tt.scales, tt.zeros, 2, tt.details, tt.kind).bytes(t)
			if tt.path != "" {
				refusal(t, data, tt.path, tt.text)
				return
			}
			m := parse(t, data)
			v := m.Main().Values[2]
			if diff := cmp.Diff(tt.want, v.Quant); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.want, v.Const.Quant); diff != "" {
				t.Errorf("the constant's: %s", diff)
			}
			if told := strings.Join(m.Warnings, "\n"); tt.warning == "" && told != "" || !strings.Contains(told, tt.warning) {
				t.Errorf("warnings %q, want %q", told, tt.warning)
			}
		})
	}
}
