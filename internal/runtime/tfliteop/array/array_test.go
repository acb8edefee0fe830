package array

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func i32(v ...int32) *tensor.Tensor { return tensor.From(tensor.Int32, []int{len(v)}, v) }

func scalar(v int32) *tensor.Tensor { return tensor.From(tensor.Int32, nil, []int32{v}) }

func f32(shape []int, v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, shape, v) }

// iota32 counts 1, 2, 3 ... over a shape.
func iota32(shape ...int) *tensor.Tensor {
	x := tensor.New(tensor.Float32, shape...)
	v := tensor.Of[float32](x)
	for i := range v {
		v[i] = float32(i + 1)
	}
	return x
}

func text(shape []int, v ...string) *tensor.Tensor {
	x := tensor.New(tensor.String, shape...)
	copy(x.Strings, v)
	return x
}

func TestOperators(t *testing.T) {
	t.Parallel()
	type attrs = graph.Attrs
	tests := []struct {
		name  string
		op    string
		attrs attrs
		in    []*tensor.Tensor
		outs  int
		types []tensor.Type
		quant []*tensor.Quant // of the outputs
		want  []*tensor.Tensor
	}{
		{name: "reshape to free", op: "RESHAPE", in: []*tensor.Tensor{iota32(2, 3), i32(-1, 2)}, want: []*tensor.Tensor{iota32(3, 2)}},
		{name: "reshape by option", op: "RESHAPE", attrs: attrs{"new_shape": []int64{6}}, in: []*tensor.Tensor{iota32(2, 3)}, want: []*tensor.Tensor{iota32(6)}},
		{name: "reshape to old scalar", op: "RESHAPE", attrs: attrs{"new_shape": []int64{0}}, in: []*tensor.Tensor{iota32(1)}, want: []*tensor.Tensor{f32([]int{}, 1)}},
		{name: "squeeze all", op: "SQUEEZE", in: []*tensor.Tensor{iota32(1, 3, 1)}, want: []*tensor.Tensor{iota32(3)}},
		{name: "squeeze one", op: "SQUEEZE", attrs: attrs{"squeeze_dims": []int64{-1}}, in: []*tensor.Tensor{iota32(1, 3, 1)}, want: []*tensor.Tensor{iota32(1, 3)}},
		{name: "expand", op: "EXPAND_DIMS", in: []*tensor.Tensor{iota32(3), scalar(-1)}, want: []*tensor.Tensor{iota32(3, 1)}},
		{name: "shape", op: "SHAPE", in: []*tensor.Tensor{iota32(2, 3)}, want: []*tensor.Tensor{i32(2, 3)}},
		{name: "rank", op: "RANK", in: []*tensor.Tensor{iota32(2, 3)}, want: []*tensor.Tensor{tensor.From(tensor.Int32, []int{}, []int32{2})}},
		{
			name: "concatenate inner", op: "CONCATENATION", attrs: attrs{"axis": int64(-1)}, in: []*tensor.Tensor{f32([]int{2, 1}, 1, 2), f32([]int{2, 2}, 3, 4, 5, 6)},
			want: []*tensor.Tensor{f32([]int{2, 3}, 1, 3, 4, 2, 5, 6)},
		},
		{name: "concatenate strings", op: "CONCATENATION", in: []*tensor.Tensor{text([]int{1}, "a"), text([]int{2}, "b", "c")}, want: []*tensor.Tensor{text([]int{3}, "a", "b", "c")}},
		{name: "pack", op: "PACK", attrs: attrs{"axis": int64(1)}, in: []*tensor.Tensor{f32([]int{2}, 1, 2), f32([]int{2}, 3, 4)}, want: []*tensor.Tensor{f32([]int{2, 2}, 1, 3, 2, 4)}},
		{
			name: "unpack", op: "UNPACK", attrs: attrs{"axis": int64(1)}, in: []*tensor.Tensor{iota32(2, 2)}, outs: 2,
			want: []*tensor.Tensor{f32([]int{2}, 1, 3), f32([]int{2}, 2, 4)},
		},
		{
			name: "split", op: "SPLIT", in: []*tensor.Tensor{scalar(1), iota32(2, 4)}, outs: 2,
			want: []*tensor.Tensor{f32([]int{2, 2}, 1, 2, 5, 6), f32([]int{2, 2}, 3, 4, 7, 8)},
		},
		{
			name: "split unevenly", op: "SPLIT_V", in: []*tensor.Tensor{iota32(4), i32(1, -1), scalar(0)}, outs: 2,
			want: []*tensor.Tensor{f32([]int{1}, 1), f32([]int{3}, 2, 3, 4)},
		},
		{name: "slice", op: "SLICE", in: []*tensor.Tensor{iota32(3, 3), i32(1, 0), i32(-1, 2)}, want: []*tensor.Tensor{f32([]int{2, 2}, 4, 5, 7, 8)}},
		{name: "strided", op: "STRIDED_SLICE", in: []*tensor.Tensor{iota32(4), i32(3), i32(-5), i32(-2)}, want: []*tensor.Tensor{f32([]int{2}, 4, 2)}},
		{
			name: "strided masks", op: "STRIDED_SLICE", attrs: attrs{"shrink_axis_mask": int64(1), "end_mask": int64(2)},
			in: []*tensor.Tensor{iota32(2, 3), i32(-1, 1), i32(0, 0), i32(1, 1)}, want: []*tensor.Tensor{f32([]int{2}, 5, 6)},
		},
		{
			name: "strided ellipsis and new axis", op: "STRIDED_SLICE", attrs: attrs{"ellipsis_mask": int64(1), "new_axis_mask": int64(2)},
			in: []*tensor.Tensor{iota32(2, 2), i32(0, 0, 1), i32(0, 0, 2), i32(1, 1, 1)}, want: []*tensor.Tensor{f32([]int{2, 1, 1}, 2, 4)},
		},
		{name: "strided offset", op: "STRIDED_SLICE", attrs: attrs{"offset": true}, in: []*tensor.Tensor{iota32(5), i32(1), i32(2), i32(1)}, want: []*tensor.Tensor{f32([]int{2}, 2, 3)}},
		{name: "reverse", op: "REVERSE_V2", in: []*tensor.Tensor{iota32(2, 2), i32(1)}, want: []*tensor.Tensor{f32([]int{2, 2}, 2, 1, 4, 3)}},
		{
			name: "reverse sequence", op: "REVERSE_SEQUENCE", attrs: attrs{"seq_dim": int64(1)}, in: []*tensor.Tensor{iota32(2, 3), i32(2, 3)},
			want: []*tensor.Tensor{f32([]int{2, 3}, 2, 1, 3, 6, 5, 4)},
		},
		{name: "update slice", op: "DYNAMIC_UPDATE_SLICE", in: []*tensor.Tensor{iota32(4), f32([]int{2}, 8, 9), i32(7)}, want: []*tensor.Tensor{f32([]int{4}, 1, 2, 8, 9)}},
		{name: "gather", op: "GATHER", attrs: attrs{"axis": int64(1)}, in: []*tensor.Tensor{iota32(2, 3), i32(2, 0)}, want: []*tensor.Tensor{f32([]int{2, 2}, 3, 1, 6, 4)}},
		{
			name: "gather by batch", op: "GATHER", attrs: attrs{"axis": int64(1), "batch_dims": int64(1)}, in: []*tensor.Tensor{iota32(2, 3), tensor.From(tensor.Int32, []int{2, 1}, []int32{2, 0})},
			want: []*tensor.Tensor{f32([]int{2, 1}, 3, 4)},
		},
		{name: "gather nd", op: "GATHER_ND", in: []*tensor.Tensor{iota32(2, 2), tensor.From(tensor.Int32, []int{2, 2}, []int32{1, 1, 0, 1})}, want: []*tensor.Tensor{f32([]int{2}, 4, 2)}},
		{
			name: "scatter nd", op: "SCATTER_ND", in: []*tensor.Tensor{tensor.From(tensor.Int32, []int{3, 1}, []int32{1, 3, 1}), f32([]int{3}, 5, 6, 7), i32(4)},
			want: []*tensor.Tensor{f32([]int{4}, 0, 12, 0, 6)},
		},
		{name: "sparse to dense", op: "SPARSE_TO_DENSE", in: []*tensor.Tensor{i32(0, 2), i32(3), f32([]int{2}, 5, 6), f32([]int{}, 1)}, want: []*tensor.Tensor{f32([]int{3}, 5, 1, 6)}},
		{name: "segment sum", op: "SEGMENT_SUM", in: []*tensor.Tensor{iota32(3, 1), i32(0, 0, 2)}, want: []*tensor.Tensor{f32([]int{3, 1}, 3, 0, 3)}},
		{name: "unsorted product", op: "UNSORTED_SEGMENT_PROD", in: []*tensor.Tensor{iota32(3), i32(1, -1, 1), scalar(2)}, want: []*tensor.Tensor{f32([]int{2}, 1, 3)}},
		{name: "pad", op: "PAD", in: []*tensor.Tensor{iota32(1, 2), tensor.From(tensor.Int32, []int{2, 2}, []int32{1, 0, 0, 1})}, want: []*tensor.Tensor{f32([]int{2, 3}, 0, 0, 0, 1, 2, 0)}},
		{name: "pad with value", op: "PADV2", in: []*tensor.Tensor{iota32(2), tensor.From(tensor.Int32, []int{1, 2}, []int32{1, 2}), f32([]int{}, 9)}, want: []*tensor.Tensor{f32([]int{5}, 9, 1, 2, 9, 9)}},
		{name: "reflect", op: "MIRROR_PAD", attrs: attrs{"mode": "REFLECT"}, in: []*tensor.Tensor{iota32(3), tensor.From(tensor.Int32, []int{1, 2}, []int32{2, 1})}, want: []*tensor.Tensor{f32([]int{6}, 3, 2, 1, 2, 3, 2)}},
		{
			name: "symmetric", op: "MIRROR_PAD", attrs: attrs{"mode": "SYMMETRIC"}, in: []*tensor.Tensor{iota32(2, 2), tensor.From(tensor.Int32, []int{2, 2}, []int32{1, 0, 0, 2})},
			want: []*tensor.Tensor{f32([]int{3, 4}, 1, 2, 2, 1, 1, 2, 2, 1, 3, 4, 4, 3)},
		},
		{
			name: "pad with the zero point", op: "PAD", quant: []*tensor.Quant{{Scale: []float32{1}, Zero: []int64{-7}}},
			in:   []*tensor.Tensor{tensor.From(tensor.Int8, []int{2}, []int8{1, 2}), tensor.From(tensor.Int32, []int{1, 2}, []int32{1, 2})},
			want: []*tensor.Tensor{tensor.From(tensor.Int8, []int{5}, []int8{-7, 1, 2, -7, -7})},
		},
		{
			name: "symmetric strings", op: "MIRROR_PAD", attrs: attrs{"mode": "SYMMETRIC"}, in: []*tensor.Tensor{text([]int{2}, "a", "b"), tensor.From(tensor.Int32, []int{1, 2}, []int32{2, 1})},
			want: []*tensor.Tensor{text([]int{5}, "b", "a", "a", "b", "b")},
		},
		{
			name: "space to batch with the zero point", op: "SPACE_TO_BATCH_ND", quant: []*tensor.Quant{{Scale: []float32{1}, Zero: []int64{9}}},
			in:   []*tensor.Tensor{tensor.From(tensor.Uint8, []int{1, 3}, []uint8{1, 2, 3}), i32(2), tensor.From(tensor.Int32, []int{1, 2}, []int32{1, 0})},
			want: []*tensor.Tensor{tensor.From(tensor.Uint8, []int{2, 2}, []uint8{9, 2, 1, 3})},
		},
		{
			name: "unsorted minimum of truths", op: "UNSORTED_SEGMENT_MIN", in: []*tensor.Tensor{tensor.From(tensor.Bool, []int{3}, []uint8{1, 0, 1}), i32(0, 0, 1), scalar(3)},
			want: []*tensor.Tensor{tensor.From(tensor.Bool, []int{3}, []uint8{0, 1, 1})},
		},
		{name: "unsorted maximum", op: "UNSORTED_SEGMENT_MAX", in: []*tensor.Tensor{iota32(2, 2), i32(1, 1), scalar(2)}, want: []*tensor.Tensor{f32([]int{2, 2}, -math.MaxFloat32, -math.MaxFloat32, 3, 4)}},
		{name: "top k puts NaN first", op: "TOPK_V2", outs: 2, in: []*tensor.Tensor{f32([]int{4}, 1, float32(math.NaN()), 5, 2), scalar(2)}, want: []*tensor.Tensor{f32([]int{2}, float32(math.NaN()), 5), i32(1, 2)}},
		{name: "dilate", op: "DILATE", in: []*tensor.Tensor{iota32(2, 2), i32(1, 2), f32([]int{}, 9)}, want: []*tensor.Tensor{f32([]int{2, 3}, 1, 9, 2, 3, 9, 4)}},
		{name: "skip grams", op: "SKIP_GRAM", attrs: attrs{"ngram_size": int64(2), "max_skip_size": int64(1)}, in: []*tensor.Tensor{text([]int{}, "a b c")}, want: []*tensor.Tensor{text([]int{3}, "a b", "a c", "b c")}},
		{name: "tile", op: "TILE", in: []*tensor.Tensor{iota32(1, 2), i32(2, 2)}, want: []*tensor.Tensor{f32([]int{2, 4}, 1, 2, 1, 2, 1, 2, 1, 2)}},
		{name: "broadcast", op: "BROADCAST_TO", in: []*tensor.Tensor{iota32(2, 1), i32(2, 2)}, want: []*tensor.Tensor{f32([]int{2, 2}, 1, 1, 2, 2)}},
		{name: "broadcast args", op: "BROADCAST_ARGS", in: []*tensor.Tensor{i32(2, 1), i32(5)}, want: []*tensor.Tensor{i32(2, 5)}},
		{name: "space to depth", op: "SPACE_TO_DEPTH", attrs: attrs{"block_size": int64(2)}, in: []*tensor.Tensor{iota32(1, 2, 4, 1)}, want: []*tensor.Tensor{f32([]int{1, 1, 2, 4}, 1, 2, 5, 6, 3, 4, 7, 8)}},
		{name: "depth to space", op: "DEPTH_TO_SPACE", attrs: attrs{"block_size": int64(2)}, in: []*tensor.Tensor{iota32(1, 1, 2, 4)}, want: []*tensor.Tensor{f32([]int{1, 2, 4, 1}, 1, 2, 5, 6, 3, 4, 7, 8)}},
		{
			name: "space to batch", op: "SPACE_TO_BATCH_ND", in: []*tensor.Tensor{iota32(1, 3), i32(2), tensor.From(tensor.Int32, []int{1, 2}, []int32{0, 1})},
			want: []*tensor.Tensor{f32([]int{2, 2}, 1, 3, 2, 0)},
		},
		{
			name: "batch to space", op: "BATCH_TO_SPACE_ND", in: []*tensor.Tensor{iota32(2, 2), i32(2), tensor.From(tensor.Int32, []int{1, 2}, []int32{1, 0})},
			want: []*tensor.Tensor{f32([]int{1, 3}, 3, 2, 4)},
		},
		{name: "arg max", op: "ARG_MAX", in: []*tensor.Tensor{f32([]int{2, 3}, 1, 7, 7, 9, 2, 3), scalar(-1)}, want: []*tensor.Tensor{i32(1, 0)}},
		{name: "arg min", op: "ARG_MIN", types: []tensor.Type{tensor.Int64}, in: []*tensor.Tensor{f32([]int{2, 2}, 1, 7, 0, 9), scalar(0)}, want: []*tensor.Tensor{tensor.From(tensor.Int64, []int{2}, []int64{1, 0})}},
		{name: "top k", op: "TOPK_V2", outs: 2, in: []*tensor.Tensor{f32([]int{1, 5}, 3, 9, 3, 9, 1), scalar(3)}, want: []*tensor.Tensor{f32([]int{1, 3}, 9, 9, 3), tensor.From(tensor.Int32, []int{1, 3}, []int32{1, 3, 0})}},
		{name: "unique", op: "UNIQUE", outs: 2, in: []*tensor.Tensor{f32([]int{4}, 5, 6, 5, 7)}, want: []*tensor.Tensor{f32([]int{3}, 5, 6, 7), i32(0, 1, 0, 2)}},
		{name: "where", op: "WHERE", in: []*tensor.Tensor{tensor.From(tensor.Bool, []int{2, 2}, []uint8{0, 1, 1, 0})}, want: []*tensor.Tensor{tensor.From(tensor.Int64, []int{2, 2}, []int64{0, 1, 1, 0})}},
		{name: "bucketize", op: "BUCKETIZE", attrs: attrs{"boundaries": []float32{0, 10}}, in: []*tensor.Tensor{f32([]int{3}, -1, 0, 11)}, want: []*tensor.Tensor{i32(0, 1, 2)}},
		{name: "fill strings", op: "FILL", in: []*tensor.Tensor{i32(2), text([]int{}, "x")}, want: []*tensor.Tensor{text([]int{2}, "x", "x")}},
		{name: "range", op: "RANGE", in: []*tensor.Tensor{scalar(5), scalar(0), scalar(-2)}, want: []*tensor.Tensor{i32(5, 3, 1)}},
		{name: "one hot", op: "ONE_HOT", attrs: attrs{"axis": int64(-1)}, in: []*tensor.Tensor{i32(1, 5), scalar(2), f32([]int{}, 3), f32([]int{}, 1)}, want: []*tensor.Tensor{f32([]int{2, 2}, 1, 3, 1, 1)}},
		{name: "diagonal", op: "MATRIX_DIAG", in: []*tensor.Tensor{iota32(2)}, want: []*tensor.Tensor{f32([]int{2, 2}, 1, 0, 0, 2)}},
		{name: "set diagonal", op: "MATRIX_SET_DIAG", in: []*tensor.Tensor{iota32(2, 3), f32([]int{2}, 8, 9)}, want: []*tensor.Tensor{f32([]int{2, 3}, 8, 2, 3, 4, 9, 6)}},
		{
			name: "embedding", op: "EMBEDDING_LOOKUP_SPARSE", attrs: attrs{"combiner": "MEAN"}, in: []*tensor.Tensor{i32(1, 0), tensor.From(tensor.Int32, []int{2, 2}, []int32{0, 0, 0, 1}), i32(2, 2), f32([]int{2}, 1, 3), iota32(2, 1)},
			want: []*tensor.Tensor{f32([]int{2, 1}, 1.25, 0)},
		},
		{name: "table lookup", op: "HASHTABLE_LOOKUP", outs: 2, in: []*tensor.Tensor{i32(7, 1), i32(1, 2), f32([]int{2}, 5, 6)}, want: []*tensor.Tensor{f32([]int{2}, 0, 5), tensor.From(tensor.Uint8, []int{2}, []uint8{0, 1})}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLite, Op: tt.op, Attrs: tt.attrs, Outputs: tt.outs, OutTypes: tt.types, OutQuant: tt.quant}, tt.in...)
			if err != nil {
				t.Fatal(err)
			}
			for i, q := range tt.quant {
				tt.want[i].Quant = q
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		op   string
		in   []*tensor.Tensor
	}{
		{"reshape of another size", "RESHAPE", []*tensor.Tensor{iota32(4), i32(3)}},
		{"reshape with two free", "RESHAPE", []*tensor.Tensor{iota32(4), i32(-1, -1)}},
		{"slice outside", "SLICE", []*tensor.Tensor{iota32(4), i32(3), i32(2)}},
		{"gather outside", "GATHER", []*tensor.Tensor{iota32(4), i32(4)}},
		{"scatter outside", "SCATTER_ND", []*tensor.Tensor{tensor.From(tensor.Int32, []int{1, 1}, []int32{9}), iota32(1), i32(4)}},
		{"negative padding", "PAD", []*tensor.Tensor{iota32(2), tensor.From(tensor.Int32, []int{1, 2}, []int32{-1, 0})}},
		{"no permutation", "TRANSPOSE", []*tensor.Tensor{iota32(2, 2), i32(0, 0)}},
		{"missing input", "TRANSPOSE", []*tensor.Tensor{iota32(2, 2)}},
		{"endless range", "RANGE", []*tensor.Tensor{scalar(0), scalar(5), scalar(0)}},
		{"stride zero", "STRIDED_SLICE", []*tensor.Tensor{iota32(4), i32(0), i32(4), i32(0)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLite, Op: tt.op}, tt.in...); err == nil {
				t.Errorf("no error, result %v", got[0])
			}
		})
	}
}

// TestConcatRescales joins quantised values of different scales as the legacy kernels do.
func TestConcatRescales(t *testing.T) {
	t.Parallel()
	quant := func(s float32, z int64) *tensor.Quant { return &tensor.Quant{Scale: []float32{s}, Zero: []int64{z}} }
	a := tensor.From(tensor.Uint8, []int{2}, []uint8{10, 20})
	b := tensor.From(tensor.Uint8, []int{2}, []uint8{10, 255})
	a.Quant, b.Quant = quant(0.5, 0), quant(1, 5)
	got, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLite, Op: "CONCATENATION", OutQuant: []*tensor.Quant{quant(0.5, 0)}}, a, b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]uint8{10, 20, 10, 255}, tensor.Of[uint8](got[0])); diff != "" {
		t.Error(diff)
	}
}

// TestPackedElements moves 4-bit elements.
func TestPackedElements(t *testing.T) {
	t.Parallel()
	x := &tensor.Tensor{Type: tensor.Int4, Shape: []int{2, 3}, Data: []byte{0x21, 0xF3, 0x65}}
	got, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLite, Op: "TRANSPOSE"}, x, i32(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]byte{0xF1, 0x52, 0x63}, got[0].Data); diff != "" {
		t.Error(diff)
	}
}
