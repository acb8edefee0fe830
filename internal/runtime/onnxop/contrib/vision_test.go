package contrib

import (
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestVision compares operators over images and the hash with results by hand and with published
// hashes.
func TestVision(t *testing.T) {
	t.Parallel()
	f32 := func(shape []int, v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, shape, v) }
	i32 := func(shape []int, v ...int32) *tensor.Tensor { return tensor.From(tensor.Int32, shape, v) }
	i64 := func(v ...int64) *tensor.Tensor { return tensor.From(tensor.Int64, []int{len(v)}, v) }
	texts := tensor.New(tensor.String, 2)
	copy(texts.Strings, []string{"", "test"})
	bytes := tensor.From(tensor.Int8, []int{1, 2, 2, 2}, []int8{-1, 9, -2, 8, -3, 7, -4, 6})
	image := f32([]int{1, 1, 2, 3}, 0, 1, 2, 3, 4, 5)
	kernel := graph.Attrs{"kernel_shape": []int64{2, 2}}
	line := graph.Attrs{"kernel_shape": []int64{2}}
	lowest := -3.4028234663852886e38
	ones := f32([]int{1, 1, 2}, 1, 2)
	for _, tt := range []struct {
		op    string
		attrs graph.Attrs
		in    []*tensor.Tensor
		shape []int
		want  []float64
		err   string
	}{
		{op: "NhwcMaxPool", attrs: kernel, in: []*tensor.Tensor{bytes}, shape: []int{1, 1, 1, 2}, want: []float64{-1, 9}},
		{op: "NhwcMaxPool", attrs: graph.Attrs{"kernel_shape": []int64{1, 2}, "pads": []int64{0, 1, 0, 0}}, in: []*tensor.Tensor{bytes}, shape: []int{1, 2, 2, 2}, want: []float64{-1, 9, -1, 9, -3, 7, -3, 7}},
		{op: "NhwcMaxPool", attrs: kernel, in: []*tensor.Tensor{tensor.New(tensor.Int8, 2, 2)}, err: "input 2x2"},
		// A 0 ends its line of the window only; the first element of a plane always counts.
		{op: "MaxpoolWithMask", attrs: kernel, in: []*tensor.Tensor{image, i32([]int{1, 1, 2, 3}, 0, 0, 1, 1, 0, 1)}, shape: []int{1, 1, 1, 2}, want: []float64{3, lowest}},
		{op: "MaxpoolWithMask", attrs: line, in: []*tensor.Tensor{f32([]int{1, 1, 3}, 5, 1, 2), i32([]int{1, 1, 3}, 0, 1, 1)}, shape: []int{1, 1, 2}, want: []float64{lowest, 2}},
		{op: "MaxpoolWithMask", attrs: kernel, in: []*tensor.Tensor{image, i32([]int{1, 1, 3, 2}, 1, 1, 1, 1, 1, 1)}, err: "with mask 1x1x3x2"},
		{op: "CropAndResize", in: []*tensor.Tensor{image, f32([]int{1, 4}, 0, 0, 1, 1), i32([]int{1}, 0), i32([]int{2}, 3, 2)}, shape: []int{1, 1, 3, 2}, want: []float64{0, 2, 1.5, 3.5, 3, 5}},
		{op: "CropAndResize", attrs: graph.Attrs{"extrapolation_value": float32(9)}, in: []*tensor.Tensor{image, f32([]int{1, 4}, 0, .5, 0, 1.5), i32([]int{1}, 0), i32([]int{2}, 1, 3)}, shape: []int{1, 1, 1, 3}, want: []float64{1, 2, 9}},
		{op: "CropAndResize", attrs: graph.Attrs{"mode": "nearest"}, in: []*tensor.Tensor{image, f32([]int{1, 4}, 0, 0, 1, .6), i32([]int{1}, 0), i32([]int{2}, 1, 1)}, shape: []int{1, 1, 1, 1}, want: []float64{4}},
		{op: "CropAndResize", in: []*tensor.Tensor{image, f32([]int{1, 4}, 0, 0, 1, 1), i32([]int{1}, 1), i32([]int{2}, 1, 1)}, err: "image 1 of 1"},
		{op: "CropAndResize", in: []*tensor.Tensor{image, f32([]int{1, 4}, 0, 0, 1, 1), i32([]int{1}, 0), i32([]int{2}, 0, 1)}, err: "crop_size [0 1]"},
		{op: "CropAndResize", attrs: graph.Attrs{"mode": "cubic"}, in: []*tensor.Tensor{image, f32([]int{1, 4}, 0, 0, 1, 1), i32([]int{1}, 0), i32([]int{2}, 1, 1)}, err: `mode "cubic"`},
		{op: "ConvTransposeWithDynamicPads", in: []*tensor.Tensor{ones, ones}, shape: []int{1, 1, 3}, want: []float64{1, 4, 4}},
		{op: "ConvTransposeWithDynamicPads", in: []*tensor.Tensor{ones, ones, i64(1, 0)}, shape: []int{1, 1, 2}, want: []float64{4, 4}},
		{op: "ConvTransposeWithDynamicPads", in: []*tensor.Tensor{ones, ones, i64(0, 1), f32([]int{1}, 5)}, shape: []int{1, 1, 2}, want: []float64{6, 9}},
		{op: "ConvTransposeWithDynamicPads", in: []*tensor.Tensor{ones, ones, i64(1)}, err: "do not fit 1 spatial axes"},
		// The hash of nothing is 0 with seed 0; the others are known values of the 32-bit hash.
		{op: "MurmurHash3", in: []*tensor.Tensor{texts}, shape: []int{2}, want: []float64{0, 0xba6bd213}},
		{op: "MurmurHash3", attrs: graph.Attrs{"seed": int64(1), "positive": int64(0)}, in: []*tensor.Tensor{texts}, shape: []int{2}, want: []float64{0x514e28b7, 0x99c02ae2 - 1<<32}},
		{op: "MurmurHash3", in: []*tensor.Tensor{i32([]int{2}, 0, 1)}, shape: []int{2}, want: []float64{593689054, 4226891818}},
	} {
		out, err := optest.Run(allDefs(), optest.Node{Domain: graph.Microsoft, Op: tt.op, Version: 1, Attrs: tt.attrs}, tt.in...)
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
		if why := optest.Differ(out[0], tt.want, 0, 0); why != "" {
			t.Errorf("%s %v: %s", tt.op, tt.attrs, why)
		}
	}
}
