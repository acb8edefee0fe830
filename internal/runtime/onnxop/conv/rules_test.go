package conv

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func f32(shape []int, v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, shape, v) }

func bytes8(shape []int, v ...uint8) *tensor.Tensor { return tensor.From(tensor.Uint8, shape, v) }

func int8s(shape []int, v ...int8) *tensor.Tensor { return tensor.From(tensor.Int8, shape, v) }

func zeros(shape ...int) *tensor.Tensor { return tensor.New(tensor.Float32, shape...) }

// run runs an operator with its inputs, all but the first constant or not, and in double
// precision.
func run(t *testing.T, op string, attrs graph.Attrs, want []float64, shape []int, in ...*tensor.Tensor) {
	t.Helper()
	wide := make([]*tensor.Tensor, len(in))
	for i, x := range in {
		if wide[i] = x; x != nil && x.Type == tensor.Float32 && op[:2] != "QL" {
			wide[i] = tensor.New(tensor.Float64, x.Shape...)
			tensor.Fill(wide[i], func(k int) float64 { return tensor.At(x, k) })
		}
	}
	fixed := make([]bool, len(in))
	for i := range fixed {
		fixed[i] = i > 0
	}
	for _, tt := range []struct {
		name  string
		in    []*tensor.Tensor
		fixed []bool
	}{{"variables", in, nil}, {"constants", in, fixed}, {"double precision", wide, fixed}} {
		out, err := optest.Run(Defs(), optest.Node{Op: op, Version: 22, Attrs: attrs, Const: tt.fixed}, tt.in...)
		if err != nil {
			t.Fatalf("%s %v, %s: %v", op, attrs, tt.name, err)
		}
		// small integers and halves
		if why := optest.Differ(out[0], want, 0, 1e-6); why != "" {
			t.Errorf("%s %v, %s: %s", op, attrs, tt.name, why)
		}
		if !cmp.Equal(out[0].Shape, shape) {
			t.Errorf("%s %v, %s: shape %v", op, attrs, tt.name, out[0].Shape)
		}
	}
}

func refuse(t *testing.T, want, op string, attrs graph.Attrs, in ...*tensor.Tensor) {
	t.Helper()
	if _, err := optest.Run(Defs(), optest.Node{Op: op, Version: 22, Attrs: attrs}, in...); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", op, err, want)
	}
}

func TestConv(t *testing.T) {
	t.Parallel()
	x := f32([]int{1, 1, 3, 3}, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	w := f32([]int{1, 1, 2, 2}, 1, 10, 100, 1000)
	run(t, "Conv", nil, []float64{5421, 6532, 8754, 9865}, []int{1, 1, 2, 2}, x, w)
	run(t, "Conv", nil, []float64{5421.5, 6532.5, 8754.5, 9865.5}, []int{1, 1, 2, 2}, x, w, f32([]int{1}, .5))
	run(t, "Conv", graph.Attrs{"dilations": []int64{2, 2}}, []float64{1 + 30 + 700 + 9000}, []int{1, 1, 1, 1}, x, w)
	run(t, "Conv", graph.Attrs{"pads": []int64{1, 0, 0, 1}, "strides": []int64{2, 2}}, []float64{2100, 300, 8754, 906}, []int{1, 1, 2, 2}, x, w)
	run(t, "Conv", graph.Attrs{"auto_pad": "SAME_LOWER", "strides": []int64{3, 3}, "kernel_shape": []int64{2, 2}}, []float64{5421}, []int{1, 1, 1, 1}, x, w)
	run(t, "Conv", graph.Attrs{"pads": []int64{-1, 0, 0, -1}}, []float64{8754}, []int{1, 1, 1, 1}, x, w)
	run(t, "Conv", graph.Attrs{"pads": []int64{0, -1, 0, 0}}, []float64{6532, 9865}, []int{1, 1, 2, 1}, x, w)
	// One and three axes.
	line := f32([]int{1, 1, 4}, 1, 2, 3, 4)
	run(t, "Conv", graph.Attrs{"strides": []int64{2}, "pads": []int64{1, 0}}, []float64{10, 32}, []int{1, 1, 2}, line, f32([]int{1, 1, 2}, 1, 10))
	cube := f32([]int{1, 1, 2, 2, 2}, 1, 2, 3, 4, 5, 6, 7, 8)
	run(t, "Conv", nil, []float64{1 + 20, 3 + 40, 5 + 60, 7 + 80}, []int{1, 1, 2, 2, 1}, cube, f32([]int{1, 1, 1, 1, 2}, 1, 10))
	run(t, "Conv", graph.Attrs{"pads": []int64{1, 0, 0, 0, 0, 0}}, []float64{10, 20, 30, 40, 51, 62, 73, 84}, []int{1, 1, 2, 2, 2}, cube, f32([]int{1, 1, 2, 1, 1}, 1, 10))
	// Channels, groups, images and biases.
	two := f32([]int{2, 2, 1, 1}, 1, 2, 3, 4)
	run(t, "Conv", nil, []float64{21, 201, 43, 403}, []int{2, 2, 1, 1}, two, f32([]int{2, 2, 1, 1}, 1, 10, 1, 100), nil)
	run(t, "Conv", graph.Attrs{"group": int64(2)}, []float64{1, 10, 200, 2000, 3, 30, 400, 4000}, []int{2, 4, 1, 1}, two, f32([]int{4, 1, 1, 1}, 1, 10, 100, 1000))
	run(t, "Conv", graph.Attrs{"group": int64(2)}, []float64{5, 106, 7, 108}, []int{2, 2, 1, 1, 1}, f32([]int{2, 2, 1, 1, 1}, 1, 2, 3, 4), f32([]int{2, 1, 1, 1, 1}, 1, 1), f32([]int{2}, 4, 104))
	run(t, "Conv", nil, nil, []int{0, 1, 2, 2}, zeros(0, 1, 3, 3), w)
	for _, tt := range []struct {
		want  string
		attrs graph.Attrs
		in    []*tensor.Tensor
	}{
		{"input 3x3 with weights 1x1x2x2", nil, []*tensor.Tensor{zeros(3, 3), w}},
		{"input 1x1x3x3 with weights 1x1x2", nil, []*tensor.Tensor{x, zeros(1, 1, 2)}},
		{"weights 1x2x2x2 and 1 groups do not agree", nil, []*tensor.Tensor{x, zeros(1, 2, 2, 2)}},
		{"weights 3x1x2x2 and 2 groups do not agree", graph.Attrs{"group": int64(2)}, []*tensor.Tensor{zeros(1, 2, 3, 3), zeros(3, 1, 2, 2)}},
		{"and 0 groups", graph.Attrs{"group": int64(0)}, []*tensor.Tensor{x, w}},
		{"kernel_shape [3 3] with weights 1x1x2x2", graph.Attrs{"kernel_shape": []int64{3, 3}}, []*tensor.Tensor{x, w}},
		{"bias 2 for 1 output channels", nil, []*tensor.Tensor{x, w, zeros(2)}},
		{"bias 1x1 for 1 output channels", nil, []*tensor.Tensor{x, w, zeros(1, 1)}},
		{"does not fit into axis", nil, []*tensor.Tensor{zeros(1, 1, 1, 3), w}},
		{"input 1 is missing", nil, []*tensor.Tensor{x}},
	} {
		refuse(t, tt.want, "Conv", tt.attrs, tt.in...)
	}
}

// TestConvTranspose spreads each element over the kernel.
func TestConvTranspose(t *testing.T) {
	t.Parallel()
	x, w := f32([]int{1, 1, 3}, 1, 2, 3), f32([]int{1, 1, 2}, 1, 10)
	line := func(attrs graph.Attrs, want ...float64) {
		t.Helper()
		run(t, "ConvTranspose", attrs, want, []int{1, 1, len(want)}, x, w)
	}
	line(nil, 1, 12, 23, 30)
	line(graph.Attrs{"strides": []int64{2}}, 1, 10, 2, 20, 3, 30)
	line(graph.Attrs{"strides": []int64{3}}, 1, 10, 0, 2, 20, 0, 3, 30)
	line(graph.Attrs{"dilations": []int64{2}}, 1, 2, 13, 20, 30)
	line(graph.Attrs{"pads": []int64{1, 0}}, 12, 23, 30)
	line(graph.Attrs{"pads": []int64{0, 2}}, 1, 12)
	line(graph.Attrs{"pads": []int64{1, 1}, "auto_pad": "VALID"}, 1, 12, 23, 30)
	line(graph.Attrs{"output_padding": []int64{1}, "strides": []int64{2}}, 1, 10, 2, 20, 3, 30, 0)
	// the odd one is cut at the beginning
	line(graph.Attrs{"output_shape": []int64{3}}, 12, 23, 30)
	// or at the end
	line(graph.Attrs{"output_shape": []int64{3}, "auto_pad": "SAME_UPPER"}, 1, 12, 23)
	line(graph.Attrs{"output_shape": []int64{1, 1, 2}}, 12, 23)
	line(graph.Attrs{"auto_pad": "SAME_UPPER"}, 1, 12, 23)
	line(graph.Attrs{"auto_pad": "SAME_LOWER"}, 12, 23, 30)
	line(graph.Attrs{"auto_pad": "SAME_UPPER", "strides": []int64{2}}, 1, 10, 2, 20, 3, 30)
	run(t, "ConvTranspose", graph.Attrs{"strides": []int64{2, 1}}, []float64{1, 12, 20, 100, 1200, 2000, 3, 34, 40, 300, 3400, 4000}, []int{1, 1, 4, 3},
		f32([]int{1, 1, 2, 2}, 1, 2, 3, 4), f32([]int{1, 1, 2, 2}, 1, 10, 100, 1000))
	run(t, "ConvTranspose", graph.Attrs{"pads": []int64{1, 0, 0, 1}}, []float64{103, 1234, 300, 3400}, []int{1, 1, 2, 2},
		f32([]int{1, 1, 2, 2}, 1, 2, 3, 4), f32([]int{1, 1, 2, 2}, 1, 10, 100, 1000))
	// Channels, groups, biases, images.
	two := f32([]int{2, 2, 1}, 1, 2, 3, 4)
	run(t, "ConvTranspose", nil, []float64{201.5, 2010.25, 403.5, 4030.25}, []int{2, 2, 1}, two, f32([]int{2, 2, 1}, 1, 10, 100, 1000), f32([]int{2}, .5, .25))
	run(t, "ConvTranspose", graph.Attrs{"group": int64(2)}, []float64{1, 10, 200, 2000, 3, 30, 400, 4000}, []int{2, 4, 1}, two, f32([]int{2, 2, 1}, 1, 10, 100, 1000))
	for _, tt := range []struct {
		want  string
		attrs graph.Attrs
		in    []*tensor.Tensor
	}{
		{"input 1x1 with weights", nil, []*tensor.Tensor{zeros(1, 1), w}},
		{"with weights 1x1x2x2", nil, []*tensor.Tensor{x, zeros(1, 1, 2, 2)}},
		{"weights 2x1x2 and 1 groups", nil, []*tensor.Tensor{x, zeros(2, 1, 2)}},
		{"and 2 groups do not agree", graph.Attrs{"group": int64(2)}, []*tensor.Tensor{x, w}},
		{"and 0 groups do not agree", graph.Attrs{"group": int64(0)}, []*tensor.Tensor{x, w}},
		{"bias 2 for 1 output channels", nil, []*tensor.Tensor{x, w, zeros(2)}},
		{"bias 1x1 for 1 output channels", nil, []*tensor.Tensor{x, w, zeros(1, 1)}},
		{"kernel_shape [3]", graph.Attrs{"kernel_shape": []int64{3}}, []*tensor.Tensor{x, w}},
		{"strides [0]", graph.Attrs{"strides": []int64{0}}, []*tensor.Tensor{x, w}},
		{"2 dilations for 1", graph.Attrs{"dilations": []int64{1, 1}}, []*tensor.Tensor{x, w}},
		{"output_padding [0 0], pads", graph.Attrs{"output_padding": []int64{0, 0}}, []*tensor.Tensor{x, w}},
		{"do not fit 1 spatial axes", graph.Attrs{"pads": []int64{1}}, []*tensor.Tensor{x, w}},
		{"do not fit 1 spatial axes", graph.Attrs{"output_shape": []int64{3, 3}}, []*tensor.Tensor{x, w}},
		{"pads [268435457 0]", graph.Attrs{"pads": []int64{1<<28 + 1, 0}}, []*tensor.Tensor{x, w}},
		{"pads [-268435457 0]", graph.Attrs{"pads": []int64{-1<<28 - 1, 0}}, []*tensor.Tensor{x, w}},
		{"output size -1", graph.Attrs{"pads": []int64{3, 2}}, []*tensor.Tensor{x, w}},
	} {
		refuse(t, tt.want, "ConvTranspose", tt.attrs, tt.in...)
	}
	run(t, "ConvTranspose", graph.Attrs{"pads": []int64{2, 2}}, nil, []int{1, 1, 0}, x, w)
}

// TestDeformConv samples a row 1 2 4 between its elements.
func TestDeformConv(t *testing.T) {
	t.Parallel()
	x, w := f32([]int{1, 1, 1, 3}, 1, 2, 4), f32([]int{1, 1, 1, 1}, 10)
	offset := func(dy, dx [3]float32) *tensor.Tensor {
		return f32([]int{1, 2, 1, 3}, dy[0], dy[1], dy[2], dx[0], dx[1], dx[2])
	}
	of := func(want []float64, more ...*tensor.Tensor) {
		t.Helper()
		run(t, "DeformConv", nil, want, []int{1, 1, 1, 3}, append([]*tensor.Tensor{x, w}, more...)...)
	}
	of([]float64{10, 20, 40}, offset([3]float32{}, [3]float32{}))
	// half of what is outside is zero
	of([]float64{15, 30, 20}, offset([3]float32{}, [3]float32{.5, .5, .5}))
	of([]float64{5, 0, 0}, offset([3]float32{}, [3]float32{-.5, -2, 1}))   // -1 and 3 are outside
	of([]float64{5, 15, 0}, offset([3]float32{.5, -.25, 1}, [3]float32{})) // rows beside are zero
	of([]float64{10.5, 10.25, 40.5}, offset([3]float32{}, [3]float32{0, 0, 0}), f32([]int{1}, .5), f32([]int{1, 1, 1, 3}, 1, .4875, 1))
	// Two taps, dilated, strided; each with its own offset, in rows with y before x.
	taps := f32([]int{1, 4, 1, 1}, 0, 1, 0, -1)
	run(t, "DeformConv", graph.Attrs{"dilations": []int64{1, 2}}, []float64{2 + 20}, []int{1, 1, 1, 1}, x, f32([]int{1, 1, 1, 2}, 1, 10), taps)
	// Two channels of one offset group each, two filters of one group each.
	both := f32([]int{1, 2, 1, 2}, 1, 2, 3, 4)
	groups := graph.Attrs{"group": int64(2), "offset_group": int64(2)}
	run(t, "DeformConv", groups, []float64{20, 0, 300, 400}, []int{1, 2, 1, 2}, both, f32([]int{2, 1, 1, 1}, 10, 100), f32([]int{1, 4, 1, 2}, 0, 0, 1, 1, 0, 0, 0, 0))
	run(t, "DeformConv", nil, []float64{31, 42}, []int{1, 1, 1, 2}, both, f32([]int{1, 2, 1, 1}, 1, 10), zeros(1, 2, 1, 2))
	ok := offset([3]float32{}, [3]float32{})
	for _, tt := range []struct {
		want  string
		attrs graph.Attrs
		in    []*tensor.Tensor
	}{
		{"input 2 is missing", nil, []*tensor.Tensor{x, w}},
		{"offset 1x1x1x3, want 1x2x1x3", nil, []*tensor.Tensor{x, w, zeros(1, 1, 1, 3)}},
		{"mask 1x2x1x3, want 1x1x1x3", nil, []*tensor.Tensor{x, w, ok, nil, zeros(1, 2, 1, 3)}},
		{"0 offset groups for 1", graph.Attrs{"offset_group": int64(0)}, []*tensor.Tensor{x, w, ok}},
		{"2 offset groups for 1", graph.Attrs{"offset_group": int64(2)}, []*tensor.Tensor{x, w, ok}},
		{"over 1 spatial axes", nil, []*tensor.Tensor{zeros(1, 1, 3), zeros(1, 1, 1), ok}},
		{"bias 2 for 1", nil, []*tensor.Tensor{x, w, ok, zeros(2)}},
	} {
		refuse(t, tt.want, "DeformConv", tt.attrs, tt.in...)
	}
}

// TestIntegerConvolutions subtracts zero points before multiplication.
func TestIntegerConvolutions(t *testing.T) {
	t.Parallel()
	x, w := bytes8([]int{1, 1, 1, 3}, 10, 12, 20), bytes8([]int{2, 1, 1, 2}, 1, 2, 3, 4)
	run(t, "ConvInteger", nil, []float64{34, 52, 78, 116}, []int{1, 2, 1, 2}, x, w)
	run(t, "ConvInteger", nil, []float64{4, 22, 8, 46}, []int{1, 2, 1, 2}, x, w, bytes8([]int{}, 10))
	run(t, "ConvInteger", graph.Attrs{"pads": []int64{0, 1, 0, 0}}, []float64{0, 4, 22, 0, 8, 46}, []int{1, 2, 1, 3}, x, w, bytes8([]int{}, 10))
	// 3 is subtracted from the second filter: 0 and 1 stay; 1 is subtracted from both: 0 1 and 2
	// 3.
	run(t, "ConvInteger", nil, []float64{4, 22, 2, 10}, []int{1, 2, 1, 2}, x, w, bytes8([]int{}, 10), bytes8([]int{2}, 0, 3))
	run(t, "ConvInteger", nil, []float64{2, 10, 6, 34}, []int{1, 2, 1, 2}, x, w, bytes8([]int{}, 10), bytes8([]int{}, 1))
	run(t, "ConvInteger", nil, []float64{-8, -1}, []int{1, 1, 2}, int8s([]int{1, 1, 3}, 2, -5, 2), int8s([]int{1, 1, 2}, 1, 2))
	cube := bytes8([]int{1, 1, 1, 1, 3}, 10, 12, 20)
	run(t, "ConvInteger", graph.Attrs{"pads": []int64{0, 0, 1, 0, 0, 0}}, []float64{0, 4, 22, 0, 8, 46}, []int{1, 2, 1, 1, 3}, cube, bytes8([]int{2, 1, 1, 1, 2}, 1, 2, 3, 4), bytes8([]int{}, 10))
	run(t, "ConvInteger", graph.Attrs{"group": int64(2)}, []float64{1, 20, 3, 40}, []int{2, 2, 1, 1, 1}, bytes8([]int{2, 2, 1, 1, 1}, 1, 2, 3, 4), bytes8([]int{2, 1, 1, 1, 1}, 1, 10))
	refuse(t, "input zero point 2", "ConvInteger", nil, x, w, bytes8([]int{2}, 0, 0))
	refuse(t, "weight zero point 3 for 2 channels", "ConvInteger", nil, x, w, nil, bytes8([]int{3}, 0, 0, 0))
	refuse(t, "ConvInteger of float32 and uint8", "ConvInteger", nil, zeros(1, 1, 1, 3), w)
	refuse(t, "ConvInteger of uint8 and float32", "ConvInteger", nil, x, zeros(2, 1, 1, 2))

	// Sums 4 22 and 8 46 as above, with biases 1 and -6: 5 23 and 2 40. One step of the result is
	// 0.5 x 4 / 2 = 1 for the first filter and half of that for the second; zero point 3.
	q := func(more ...*tensor.Tensor) []*tensor.Tensor {
		return append([]*tensor.Tensor{x, f32([]int{}, .5), bytes8([]int{}, 10), w, f32([]int{2}, 4, 2), bytes8([]int{}, 0), f32([]int{}, 2), bytes8([]int{}, 3)}, more...)
	}
	run(t, "QLinearConv", nil, []float64{7, 25, 7, 26}, []int{1, 2, 1, 2}, q()...)
	run(t, "QLinearConv", nil, []float64{8, 26, 4, 23}, []int{1, 2, 1, 2}, q(tensor.From(tensor.Int32, []int{2}, []int32{1, -6}))...)
	one := q()
	one[4] = f32([]int{}, 20) // five steps each: 23 and 113, and 43 and 233
	run(t, "QLinearConv", nil, []float64{23, 113, 43, 233}, []int{1, 2, 1, 2}, one...)
	one[4] = f32([]int{}, 40) // ten steps each: 43 and 223, 83 and what is beyond 255
	run(t, "QLinearConv", nil, []float64{43, 223, 83, 255}, []int{1, 2, 1, 2}, one...)
	for want, change := range map[string]func(in []*tensor.Tensor){
		"scales of shapes scalar, 3, scalar": func(in []*tensor.Tensor) { in[4] = f32([]int{3}, 1, 1, 1) },
		"scales of shapes 2, 2, scalar":      func(in []*tensor.Tensor) { in[1] = f32([]int{2}, 1, 1) },
		"scales of shapes scalar, 2, 2":      func(in []*tensor.Tensor) { in[6] = f32([]int{2}, 1, 1) },
		"scales of shapes scalar, 2, scalar": func(in []*tensor.Tensor) { in[7] = bytes8([]int{2}, 1, 1) },
		"output of float32":                  func(in []*tensor.Tensor) { in[7] = f32([]int{}, 1) },
		"bias of float32":                    func(in []*tensor.Tensor) { in[8] = f32([]int{2}, 1, 1) },
		"bias 3 for 2 output channels":       func(in []*tensor.Tensor) { in[8] = tensor.New(tensor.Int32, 3) },
		"input 7 is missing":                 func(in []*tensor.Tensor) { in[7] = nil },
	} {
		in := q(nil)
		change(in)
		refuse(t, want, "QLinearConv", nil, in...)
	}
}

// TestNegativePads crops lines and columns of images of integers, in single and in double
// precision.
func TestNegativePads(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name           string
		c, oc, h, w, k int
		group          int
		pads           []int64
		stride         int64
	}{
		{"lines that fill panels", 4, 8, 34, 36, 3, 1, []int64{-1, -1, -1, -1}, 1},
		{"few positions", 4, 40, 10, 10, 3, 1, []int64{-1, -2, 0, 0}, 1},
		{"steps", 4, 8, 34, 36, 3, 1, []int64{-1, -1, -1, -1}, 2},
		{"points", 4, 8, 34, 36, 1, 1, []int64{-1, -1, -1, -1}, 1},
		{"many channels", 16, 32, 34, 36, 3, 1, []int64{0, -3, 0, -1}, 1},
		{"a channel each", 8, 8, 34, 36, 3, 8, []int64{-2, -3, 1, -1}, 1},
		{"a channel each in steps", 8, 8, 34, 36, 5, 8, []int64{-2, -3, -1, -1}, 2},
		{"groups", 8, 8, 34, 36, 3, 2, []int64{-2, -3, 1, -1}, 1},
	} {
		whole := func(shape ...int) (narrow, wide *tensor.Tensor) {
			narrow, wide = tensor.New(tensor.Float32, shape...), tensor.New(tensor.Float64, shape...)
			for _, x := range []*tensor.Tensor{narrow, wide} {
				tensor.Fill(x, func(i int) float64 { return float64(i*7%11 - 5) })
			}
			return narrow, wide
		}
		x, x64 := whole(1, tt.c, tt.h, tt.w)
		w, w64 := whole(tt.oc, tt.c/tt.group, tt.k, tt.k)
		node := optest.Node{Op: "Conv", Version: 22, Attrs: graph.Attrs{"pads": tt.pads, "strides": []int64{tt.stride, tt.stride}, "group": int64(tt.group)}, Const: []bool{false, true}}
		want, err := optest.Run(Defs(), node, x64, w64)
		if err != nil {
			t.Fatal(err)
		}
		got, err := optest.Run(Defs(), node, x, w)
		if err != nil {
			t.Fatal(err)
		}
		values := make([]float64, want[0].Len())
		for i := range values {
			values[i] = tensor.At(want[0], i)
		}
		// Winograd rounds sums of up to 144 products below 26
		if why := optest.Differ(got[0], values, 1e-2, 0); why != "" {
			t.Errorf("%s: %s", tt.name, why)
		}
	}
}
