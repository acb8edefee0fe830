package contrib

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestStandard compares small operators of the domain with results by hand.
func TestStandard(t *testing.T) {
	t.Parallel()
	f32 := func(shape []int, v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, shape, v) }
	i64 := func(shape []int, v ...int64) *tensor.Tensor { return tensor.From(tensor.Int64, shape, v) }
	i32 := func(shape []int, v ...int32) *tensor.Tensor { return tensor.From(tensor.Int32, shape, v) }
	none := math.Inf(-1)
	matrix := f32([]int{2, 2}, 1, 2, 3, 4)
	for _, tt := range []struct {
		op      string
		outputs int
		attrs   graph.Attrs
		in      []*tensor.Tensor
		shape   []int
		want    [][]float64
		err     string
	}{
		{op: "Trilu", attrs: graph.Attrs{"upper": int64(0)}, in: []*tensor.Tensor{matrix}, shape: []int{2, 2}, want: [][]float64{{1, 0, 3, 4}}},
		{op: "Trilu", in: []*tensor.Tensor{matrix, i64(nil, 1)}, shape: []int{2, 2}, want: [][]float64{{0, 2, 0, 0}}},
		{op: "Pad", in: []*tensor.Tensor{matrix, i64([]int{4}, 0, 1, 0, 0), f32([]int{1}, 9)}, shape: []int{2, 3}, want: [][]float64{{9, 1, 2, 9, 3, 4}}},
		{op: "Pad", attrs: graph.Attrs{"mode": "edge"}, in: []*tensor.Tensor{matrix, i64([]int{4}, 0, 0, 1, 0)}, shape: []int{3, 2}, want: [][]float64{{1, 2, 3, 4, 3, 4}}},
		{op: "Range", in: []*tensor.Tensor{i64(nil, 2), i64(nil, 5)}, shape: []int{3}, want: [][]float64{{2, 3, 4}}},
		{op: "Range", in: []*tensor.Tensor{f32(nil, 2), f32(nil, 5), f32(nil, 2)}, shape: []int{2}, want: [][]float64{{2, 4}}},
		{op: "GridSample", attrs: graph.Attrs{"align_corners": int64(1)}, in: []*tensor.Tensor{f32([]int{1, 1, 2, 2}, 1, 2, 3, 4), f32([]int{1, 1, 2, 2}, 0, 0, 1, -1)}, shape: []int{1, 1, 1, 2}, want: [][]float64{{2.5, 2}}},
		{op: "TransposeMatMul", attrs: graph.Attrs{"transA": int64(1), "alpha": float32(2)}, in: []*tensor.Tensor{matrix, f32([]int{2, 1}, 1, 1)}, shape: []int{2, 1}, want: [][]float64{{8, 12}}},
		{op: "ExpandDims", in: []*tensor.Tensor{matrix, i32(nil, -1)}, shape: []int{2, 2, 1}, want: [][]float64{{1, 2, 3, 4}}},
		{op: "ExpandDims", in: []*tensor.Tensor{matrix, i32(nil, 3)}, err: "axis 3 is outside rank 3"},
		{op: "ExpandDims", in: []*tensor.Tensor{matrix, i32([]int{2}, 0, 1)}, err: "axis has 2 elements"},
		{op: "Unique", outputs: 3, in: []*tensor.Tensor{f32([]int{4}, 3, 1, 3, 2)}, shape: []int{3}, want: [][]float64{{3, 1, 2}, {0, 1, 0, 2}, {2, 1, 1}}},
		{op: "Unique", outputs: 3, in: []*tensor.Tensor{matrix}, err: "expected one dimension"},
		{op: "NGramRepeatBlock", attrs: graph.Attrs{"ngram_size": int64(2)}, in: []*tensor.Tensor{i64([]int{1, 5}, 1, 2, 0, 3, 1), f32([]int{1, 4}, 5, 6, 7, 8)}, shape: []int{1, 4}, want: [][]float64{{5, 6, none, 8}}},
		{op: "NGramRepeatBlock", attrs: graph.Attrs{"ngram_size": int64(1)}, in: []*tensor.Tensor{i64([]int{1, 2}, 1, 2), f32([]int{1, 3}, 5, 6, 7)}, shape: []int{1, 3}, want: [][]float64{{5, none, none}}},
		{op: "NGramRepeatBlock", attrs: graph.Attrs{"ngram_size": int64(9)}, in: []*tensor.Tensor{i64([]int{1, 2}, 1, 2), f32([]int{1, 3}, 5, 6, 7)}, shape: []int{1, 3}, want: [][]float64{{5, 6, 7}}},
		{op: "NGramRepeatBlock", attrs: graph.Attrs{"ngram_size": int64(1)}, in: []*tensor.Tensor{i64([]int{1, 1}, 3), f32([]int{1, 3}, 5, 6, 7)}, err: "token 3 of 3"},
		{op: "NGramRepeatBlock", in: []*tensor.Tensor{i64([]int{1, 1}, 3), f32([]int{1, 3}, 5, 6, 7)}, err: "ngram_size 0"},
		{op: "Inverse", in: []*tensor.Tensor{f32([]int{2, 2, 2}, 0, 1, 2, 0, 1, 2, 3, 4)}, shape: []int{2, 2, 2}, want: [][]float64{{0, .5, 1, 0, -2, 1, 1.5, -.5}}},
		{op: "Inverse", in: []*tensor.Tensor{f32([]int{1, 2}, 1, 2)}, err: "expected square matrices"},
	} {
		out, err := optest.Run(allDefs(), optest.Node{Domain: graph.Microsoft, Op: tt.op, Version: 1, Attrs: tt.attrs, Outputs: tt.outputs}, tt.in...)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: error %v, want %q", tt.op, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.op, err)
			continue
		}
		if !slices.Equal(out[0].Shape, tt.shape) {
			t.Errorf("%s: shape %v, want %v", tt.op, out[0].Shape, tt.shape)
		}
		for i, want := range tt.want {
			if why := optest.Differ(out[i], want, 1e-6, 1e-6); why != "" {
				t.Errorf("%s, output %d: %s", tt.op, i, why)
			}
		}
	}
}
