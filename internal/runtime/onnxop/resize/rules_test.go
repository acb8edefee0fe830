package resize

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func f32(shape []int, v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, shape, v) }

func i64(v ...int64) *tensor.Tensor { return tensor.From(tensor.Int64, []int{len(v)}, v) }

func line(v ...float32) *tensor.Tensor { return f32([]int{len(v)}, v...) }

func ramp(shape ...int) *tensor.Tensor {
	x := tensor.New(tensor.Float32, shape...)
	for i := range tensor.Of[float32](x) {
		tensor.Of[float32](x)[i] = float32(i)
	}
	return x
}

func run(t *testing.T, op string, version int, attrs graph.Attrs, in ...*tensor.Tensor) *tensor.Tensor {
	t.Helper()
	var first *tensor.Tensor
	for _, fixed := range []bool{false, true} { // tables made in each run, or once
		c := make([]bool, len(in))
		for i := range c {
			c[i] = fixed && i > 0
		}
		out, err := optest.Run(Defs(), optest.Node{Op: op, Version: version, Attrs: attrs, Const: c}, in...)
		if err != nil {
			t.Fatalf("%s %v: %v", op, attrs, err)
		}
		if first == nil {
			first = out[0]
		} else if !cmp.Equal(first.Data, out[0].Data) || !cmp.Equal(first.Shape, out[0].Shape) {
			t.Errorf("%s %v: constants change the result", op, attrs)
		}
	}
	return first
}

func refuse(t *testing.T, want, op string, version int, attrs graph.Attrs, in ...*tensor.Tensor) {
	t.Helper()
	if _, err := optest.Run(Defs(), optest.Node{Op: op, Version: version, Attrs: attrs}, in...); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s %v: %v, want %q", op, attrs, err, want)
	}
}

// near allows a rounding of float32, in which positions are computed.
func near(t *testing.T, what string, got *tensor.Tensor, want ...float64) {
	t.Helper()
	if why := optest.Differ(got, want, 1e-6, 1e-6); why != "" {
		t.Errorf("%s: %s", what, why)
	}
}

// TestCoordinates interpolates 0 1 2 3 linearly: the result is the position itself, limited to 0
// to 3. Positions are by the formulas of the standard.
func TestCoordinates(t *testing.T) {
	t.Parallel()
	x := ramp(4)
	double, one := line(2), line(0.25)
	for _, tt := range []struct {
		mode        string
		roi, scales *tensor.Tensor
		sizes       *tensor.Tensor
		extra       graph.Attrs
		want        []float64
	}{
		{mode: "half_pixel", scales: double, want: []float64{0, .25, .75, 1.25, 1.75, 2.25, 2.75, 3}},
		{mode: "asymmetric", scales: double, want: []float64{0, .5, 1, 1.5, 2, 2.5, 3, 3}},
		{mode: "align_corners", scales: double, want: []float64{0, 3. / 7, 6. / 7, 9. / 7, 12. / 7, 15. / 7, 18. / 7, 3}},
		{mode: "align_corners", scales: one, want: []float64{0}},
		{mode: "pytorch_half_pixel", scales: double, want: []float64{0, .25, .75, 1.25, 1.75, 2.25, 2.75, 3}},
		{mode: "pytorch_half_pixel", scales: one, want: []float64{0}},
		{mode: "half_pixel", scales: one, want: []float64{1.5}},
		{mode: "tf_half_pixel_for_nn", scales: double, want: []float64{.25, .75, 1.25, 1.75, 2.25, 2.75, 3, 3}},
		// 2 of 2.8 places: half of the rest, 2 (1 - 2/2.8), is before them.
		{mode: "half_pixel_symmetric", scales: line(0.7), want: []float64{.5/.7 - .5 + 2 - 4/2.8, 1.5/.7 - .5 + 2 - 4/2.8}},
		{mode: "tf_crop_and_resize", roi: line(.25, .75), sizes: i64(3), want: []float64{.75, 1.5, 2.25}},
		{mode: "tf_crop_and_resize", roi: line(.5, 1), sizes: i64(1), want: []float64{2.25}},
		{mode: "tf_crop_and_resize", roi: line(-.5, 1.5), sizes: i64(3), extra: graph.Attrs{"extrapolation_value": float32(9)}, want: []float64{9, 1.5, 9}},
		{mode: "tf_crop_and_resize", roi: line(0, 1), sizes: i64(4), extra: graph.Attrs{"extrapolation_value": float32(9)}, want: []float64{0, 1, 2, 3}},
		// The region does not change the number of places, as in ONNX Runtime.
		{mode: "tf_crop_and_resize", roi: line(.5, 1), scales: double, want: []float64{1.5, 1.5 + 1.5/7, 1.5 + 3./7, 1.5 + 4.5/7, 1.5 + 6./7, 1.5 + 7.5/7, 1.5 + 9./7, 3}},
		{mode: "half_pixel", sizes: i64(8), want: []float64{0, .25, .75, 1.25, 1.75, 2.25, 2.75, 3}},
		{mode: "half_pixel", sizes: i64(0), want: nil},
	} {
		a := graph.Attrs{"mode": "linear", "coordinate_transformation_mode": tt.mode}
		for k, v := range tt.extra {
			a[k] = v
		}
		near(t, tt.mode, run(t, "Resize", 13, a, x, tt.roi, tt.scales, tt.sizes), tt.want...)
	}
	refuse(t, `coordinate_transformation_mode "x"`, "Resize", 13, graph.Attrs{"mode": "linear", "coordinate_transformation_mode": "x"}, x, nil, double)
	refuse(t, `coordinate_transformation_mode "x"`, "Resize", 13, graph.Attrs{"coordinate_transformation_mode": "x"}, x, nil, double)
}

// TestNearestSizes compares nearest mode with sizes to exact fractions: no half is rounded the
// wrong way because of a scale with lost digits.
func TestNearestSizes(t *testing.T) {
	t.Parallel()
	// whole rounds down.
	whole := func(x *big.Rat) int64 { return new(big.Int).Div(x.Num(), x.Denom()).Int64() }
	half := big.NewRat(1, 2)
	rounds := map[string]func(p *big.Rat) int64{
		"floor":              whole,
		"ceil":               func(p *big.Rat) int64 { return -whole(new(big.Rat).Neg(p)) },
		"round_prefer_ceil":  func(p *big.Rat) int64 { return whole(new(big.Rat).Add(p, half)) },
		"round_prefer_floor": func(p *big.Rat) int64 { return -whole(new(big.Rat).Sub(half, p)) },
	}
	centre := func(in, out, x int64) *big.Rat { return big.NewRat((2*x+1)*in, 2*out) }
	places := map[string]func(in, out, x int64) *big.Rat{
		"asymmetric": func(in, out, x int64) *big.Rat { return big.NewRat(x*in, out) },
		"half_pixel": func(in, out, x int64) *big.Rat { return new(big.Rat).Sub(centre(in, out, x), half) },
		"align_corners": func(in, out, x int64) *big.Rat {
			if out == 1 {
				return new(big.Rat)
			}
			return big.NewRat(x*(in-1), out-1)
		},
		"tf_half_pixel_for_nn": func(in, out, x int64) *big.Rat {
			if in == out {
				return big.NewRat(x, 1) // an axis that is not resized keeps its pixels
			}
			return centre(in, out, x)
		},
	}
	places["half_pixel_symmetric"] = places["half_pixel"]
	places["pytorch_half_pixel"] = func(in, out, x int64) *big.Rat {
		if out == 1 {
			return new(big.Rat)
		}
		return places["half_pixel"](in, out, x)
	}
	for mode, place := range places {
		for name, round := range rounds {
			for in := 2; in <= 40; in++ {
				for out := 1; out <= 80; out++ {
					r := &resize{in: []int{in}, coordinates: mode, nearest: name}
					if err := r.fromSizes([]int{out}, []int{0}, "stretch"); err != nil {
						t.Fatal(err)
					}
					for x := range out {
						want := min(max(round(place(int64(in), int64(out), int64(x))), 0), int64(in-1))
						if got := r.pixel(0, x); int64(got) != want {
							t.Fatalf("%s, %s, %d to %d: place %d is of pixel %d, want %d", mode, name, in, out, x, got, want)
						}
					}
				}
			}
			a := graph.Attrs{"nearest_mode": name, "coordinate_transformation_mode": mode}
			y := run(t, "Resize", 13, a, ramp(14), nil, nil, i64(19))
			for x := range 19 {
				if want := min(max(round(place(14, 19, int64(x))), 0), 13); tensor.At(y, x) != float64(want) {
					t.Errorf("%s, %s: place %d of a run is of pixel %v, want %d", mode, name, x, tensor.At(y, x), want)
				}
			}
		}
	}
	near(t, "an axis of scale 1", run(t, "Resize", 11, graph.Attrs{"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": "ceil"}, f32([]int{2, 2}, 1, 2, 3, 4), nil, line(1, 2)), 2, 2, 2, 2, 4, 4, 4, 4)
	// 7/2 of an axis of 1 is rounded up to 4.
	for policy, want := range map[string][]int{"not_larger": {4, 7}, "not_smaller": {5, 10}} {
		y := run(t, "Resize", 19, graph.Attrs{"keep_aspect_ratio_policy": policy}, f32([]int{1, 2}, 1, 2), nil, nil, i64(5, 7))
		if !slices.Equal(y.Shape, want) {
			t.Errorf("%s: %v, want %v", policy, y.Shape, want)
		}
	}
	refuse(t, "size 536870913", "Resize", 13, nil, ramp(2), nil, nil, i64(1<<29+1))
}

// TestNearest uses pixels of positions 0, 1/4, 1/2 and so on of two pixels.
func TestNearest(t *testing.T) {
	t.Parallel()
	x := line(5, 7)
	for mode, want := range map[string][]float64{
		"floor": {5, 5, 5, 5, 7, 7, 7, 7}, "ceil": {5, 7, 7, 7, 7, 7, 7, 7}, "round_prefer_floor": {5, 5, 5, 7, 7, 7, 7, 7}, "round_prefer_ceil": {5, 5, 7, 7, 7, 7, 7, 7},
	} {
		near(t, mode, run(t, "Resize", 13, graph.Attrs{"nearest_mode": mode, "coordinate_transformation_mode": "asymmetric"}, x, nil, line(4)), want...)
	}
	near(t, "two axes", run(t, "Resize", 13, nil, f32([]int{2, 2}, 1, 2, 3, 4), nil, line(1, 2)), 1, 1, 2, 2, 3, 3, 4, 4)
	near(t, "rows", run(t, "Resize", 13, nil, f32([]int{2, 2}, 1, 2, 3, 4), nil, line(2, 1)), 1, 2, 1, 2, 3, 4, 3, 4)
	// Up to version 10: down by the next pixel, up by the last.
	near(t, "old, up", run(t, "Resize", 10, nil, x, line(4)), 5, 5, 5, 5, 7, 7, 7, 7)
	near(t, "old, down", run(t, "Resize", 10, nil, ramp(4), line(0.75)), 0, 2, 3)
	near(t, "Upsample", run(t, "Upsample", 7, graph.Attrs{"scales": []float32{2}}, x), 5, 5, 7, 7)
	near(t, "Upsample by sides", run(t, "Upsample", 1, graph.Attrs{"height_scale": float32(1), "width_scale": float32(2)}, f32([]int{1, 1, 2, 1}, 5, 7)), 5, 5, 7, 7)
	near(t, "Upsample by height", run(t, "Upsample", 1, graph.Attrs{"height_scale": float32(2), "width_scale": float32(1)}, f32([]int{1, 1, 1, 2}, 5, 7)), 5, 7, 5, 7)
	near(t, "Upsample bilinear", run(t, "Upsample", 9, graph.Attrs{"mode": "bilinear"}, x, line(2)), 5, 6, 7, 7)
	crop := graph.Attrs{"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": float32(3)}
	roi := line(-1, 2)
	// Positions -1, 0.5 and 2 of two pixels: outside, the first, outside.
	for _, tt := range []struct {
		x    *tensor.Tensor
		want []byte
	}{
		{tensor.From(tensor.Int8, []int{2}, []int8{5, 7}), []byte{3, 5, 3}},
		{tensor.From(tensor.Int16, []int{2}, []int16{5, 7}), []byte{3, 0, 5, 0, 3, 0}},
		{tensor.From(tensor.Int32, []int{2}, []int32{5, 7}), []byte{3, 0, 0, 0, 5, 0, 0, 0, 3, 0, 0, 0}},
		{tensor.From(tensor.Float16, []int{2}, []uint16{0x4500, 0x4700}), []byte{0, 0x42, 0, 0x45, 0, 0x42}},
		{tensor.From(tensor.BFloat16, []int{2}, []uint16{0x40a0, 0x40e0}), []byte{0x40, 0x40, 0xa0, 0x40, 0x40, 0x40}},
		{tensor.From(tensor.Float32, []int{2}, []float32{5, 7}), []byte{0, 0, 0x40, 0x40, 0, 0, 0xa0, 0x40, 0, 0, 0x40, 0x40}},
		{tensor.From(tensor.Float64, []int{2}, []float64{5, 7}), []byte{0, 0, 0, 0, 0, 0, 8, 0x40, 0, 0, 0, 0, 0, 0, 0x14, 0x40, 0, 0, 0, 0, 0, 0, 8, 0x40}},
	} {
		if got := run(t, "Resize", 13, crop, tt.x, roi, nil, i64(3)); !cmp.Equal(got.Data, tt.want) {
			t.Errorf("%v: % x, want % x", tt.x.Type, got.Data, tt.want)
		}
	}
	words := &tensor.Tensor{Type: tensor.String, Shape: []int{2}, Data: []byte{}, Strings: []string{"a", "b"}}
	if got := run(t, "Resize", 13, nil, words, nil, line(2)); !cmp.Equal(got.Strings, []string{"a", "a", "b", "b"}) {
		t.Errorf("%q", got.Strings)
	}
	scalar := run(t, "Resize", 13, nil, f32([]int{}, 7), nil, nil, i64())
	near(t, "scalar", scalar, 7)
}

// TestCubic has weights -0.09375, 0.59375, 0.59375, -0.09375 half-way between pixels, for the
// coefficient -0.75.
func TestCubic(t *testing.T) {
	t.Parallel()
	x := line(1, 2, 4, 8)
	cubic := func(more graph.Attrs) graph.Attrs {
		a := graph.Attrs{"mode": "cubic", "coordinate_transformation_mode": "asymmetric"}
		for k, v := range more {
			a[k] = v
		}
		return a
	}
	end := -.09375*4 + .59375*8 + .59375*8 - .09375*8
	near(t, "cubic", run(t, "Resize", 13, cubic(nil), x, nil, line(2)), 1, 1.3125, 2, 2.71875, 4, -.09375*2+.59375*4+.59375*8-.09375*8, 8, end)
	// With -0.5 the weights are -0.0625 and 0.5625.
	got := run(t, "Resize", 13, cubic(graph.Attrs{"cubic_coeff_a": float32(-0.5)}), x, nil, line(2))
	if v := float64(tensor.Of[float32](got)[3]); !optest.Within(v, -.0625*1+.5625*2+.5625*4-.0625*8, 1e-6, 0) {
		t.Errorf("coefficient -0.5: %v", v)
	}
	got = run(t, "Resize", 13, cubic(graph.Attrs{"exclude_outside": int64(1)}), x, nil, line(2))
	if v := float64(tensor.Of[float32](got)[1]); !optest.Within(v, 1.40625/1.09375, 1e-6, 0) {
		t.Errorf("outside left out: %v", v)
	}
	// Half the size, smoothed: weights 1/8, 3/8, 3/8, 1/8 around 0.5 and 2.5.
	smooth := graph.Attrs{"mode": "linear", "antialias": int64(1)}
	near(t, "antialias", run(t, "Resize", 18, smooth, x, nil, line(0.5)), 1.75, 5.75)
	smooth["antialias"] = int64(0)
	near(t, "no antialias", run(t, "Resize", 18, smooth, x, nil, line(0.5)), 1.5, 6)
	smooth["antialias"] = int64(1)
	near(t, "antialias does nothing upwards", run(t, "Resize", 18, smooth, line(0, 1), nil, line(2)), 0, .25, .75, 1)
	for want, pos := range map[float64]float64{1: 0, 0.59375: 0.5, 0: 1, -0.09375: 1.5} {
		for _, x := range []float64{pos, -pos} {
			if got := cubicAt(x); got != want {
				t.Errorf("cubic(%v) is %v, want %v", x, got, want)
			}
		}
	}
	if cubicAt(2) != 0 || cubicAt(-3) != 0 || triangle(0.25) != 0.75 || triangle(-1) != 0 || triangle(2) != 0 {
		t.Error("kernels beyond their radius")
	}
}

func cubicAt(x float64) float64 { return cubic(x, -0.75) }

// TestInterpolation covers several axes and types.
func TestInterpolation(t *testing.T) {
	t.Parallel()
	lin := graph.Attrs{"mode": "linear", "coordinate_transformation_mode": "asymmetric"}
	square := f32([]int{2, 2}, 0, 2, 4, 6)
	near(t, "two axes", run(t, "Resize", 13, lin, square, nil, line(2, 2)), 0, 1, 2, 2, 2, 3, 4, 4, 4, 5, 6, 6, 4, 5, 6, 6)
	near(t, "columns", run(t, "Resize", 13, lin, square, nil, line(1, 2)), 0, 1, 2, 2, 4, 5, 6, 6)
	near(t, "rows", run(t, "Resize", 13, lin, square, nil, line(2, 1)), 0, 2, 2, 4, 4, 6, 4, 6)
	near(t, "nothing", run(t, "Resize", 13, lin, square, nil, line(1, 1)), 0, 2, 4, 6)
	near(t, "three axes", run(t, "Resize", 13, lin, f32([]int{1, 2, 1}, 0, 4), nil, line(2, 2, 2)), 0, 0, 2, 2, 4, 4, 4, 4, 0, 0, 2, 2, 4, 4, 4, 4)
	near(t, "double", run(t, "Resize", 13, lin, tensor.From(tensor.Float64, []int{2}, []float64{0, 1}), nil, line(2)), 0, .5, 1, 1)
	near(t, "half", run(t, "Resize", 13, lin, tensor.From(tensor.Float16, []int{2}, []uint16{0, 0x3c00}), nil, line(2)), 0, .5, 1, 1)
	near(t, "integers are cut off", run(t, "Resize", 13, lin, tensor.From(tensor.Int8, []int{2}, []int8{-1, 4}), nil, line(2)), -1, 1, 4, 4)
	refuse(t, "linear of bool", "Resize", 13, lin, tensor.New(tensor.Bool, 2), nil, line(2))
	refuse(t, "Resize of complex128", "Resize", 13, nil, tensor.New(tensor.Complex128, 2), nil, line(2))
}

func TestSizes(t *testing.T) {
	t.Parallel()
	x := tensor.New(tensor.Uint8, 1, 1, 4, 6)
	axes := graph.Attrs{"axes": []int64{2, -1}}
	for _, tt := range []struct {
		policy        string
		sizes, scales *tensor.Tensor
		want          []int
	}{
		{"", i64(8, 6), nil, []int{1, 1, 8, 6}},
		{"stretch", i64(8, 6), nil, []int{1, 1, 8, 6}},
		{"not_larger", i64(8, 6), nil, []int{1, 1, 4, 6}},
		{"not_smaller", i64(8, 6), nil, []int{1, 1, 8, 12}},
		{"not_larger", i64(4, 12), nil, []int{1, 1, 4, 6}},
		{"not_smaller", i64(4, 12), nil, []int{1, 1, 8, 12}},
		{"not_larger", i64(7, 20), nil, []int{1, 1, 7, 11}}, // 1.75 times 6 is 10.5, rounded up
		{"", nil, line(0.5, 1.9), []int{1, 1, 2, 11}},
		{"", nil, line(0.2, 1), []int{1, 1, 0, 6}},
	} {
		a := graph.Attrs{"axes": axes["axes"]}
		if tt.policy != "" {
			a["keep_aspect_ratio_policy"] = tt.policy
		}
		if got := run(t, "Resize", 18, a, x, nil, tt.scales, tt.sizes).Shape; !cmp.Equal(got, tt.want) {
			t.Errorf("%q: %v, want %v", tt.policy, got, tt.want)
		}
	}
	one := line(1, 2)
	for want, in := range map[string][]*tensor.Tensor{
		"scales and sizes are missing":      {x},
		"1 scales for 2 axes":               {x, nil, line(2)},
		"3 sizes for 2 axes":                {x, nil, nil, i64(1, 2, 3)},
		"size -1":                           {x, nil, nil, i64(1, -1)},
		"scale 0":                           {x, nil, line(0, 1)},
		"scale -1":                          {x, nil, line(1, -1)},
		"scale NaN":                         {x, nil, line(1, float32(math.NaN()))},
		"scale +Inf":                        {x, nil, line(1, float32(math.Inf(1)))},
		"scale 1e+09 of an axis of 6":       {x, nil, line(1, 1e9)},
		"cannot make 1x1x2x6 of the empty ": {tensor.New(tensor.Uint8, 1, 1, 0, 6), nil, nil, i64(2, 6)},
	} {
		refuse(t, want, "Resize", 18, axes, in...)
	}
	refuse(t, "axis 4 is outside rank 4", "Resize", 18, graph.Attrs{"axes": []int64{4}}, x, nil, line(2))
	refuse(t, `keep_aspect_ratio_policy "x"`, "Resize", 18, graph.Attrs{"keep_aspect_ratio_policy": "x"}, one, nil, nil, i64(2))
	refuse(t, `mode "x"`, "Resize", 18, graph.Attrs{"mode": "x"}, one, nil, line(2))
	refuse(t, "roi is missing", "Resize", 18, graph.Attrs{"coordinate_transformation_mode": "tf_crop_and_resize"}, one, nil, line(2))
	refuse(t, "roi of 3 elements for 1 axes", "Resize", 18, graph.Attrs{"coordinate_transformation_mode": "tf_crop_and_resize"}, one, line(1, 2, 3), line(2))
	refuse(t, "scales are missing", "Upsample", 1, nil, one)
	refuse(t, "scales are missing", "Upsample", 1, graph.Attrs{"height_scale": float32(1)}, one)
	refuse(t, "input 0 is missing", "Resize", 18, nil, nil)
}

func TestGridSample(t *testing.T) {
	t.Parallel()
	x := f32([]int{1, 1, 2, 2}, 1, 2, 3, 4)
	sample := func(mode, padding string, corners int64, gx, gy float32) *tensor.Tensor {
		t.Helper()
		return run(t, "GridSample", 20, graph.Attrs{"mode": mode, "padding_mode": padding, "align_corners": corners}, x, f32([]int{1, 1, 1, 2}, gx, gy))
	}
	nan := float32(math.NaN())
	for _, tt := range []struct {
		mode, padding string
		corners       int64
		x, y          float32
		want          float64
	}{
		{"linear", "zeros", 0, 0, 0, 2.5},
		{"linear", "zeros", 0, -1, -1, .25},
		{"linear", "zeros", 1, -1, -1, 1},
		{"linear", "zeros", 1, 1, -1, 2},
		{"linear", "zeros", 1, -1, 1, 3},
		{"linear", "zeros", 0, -.5, -.5, 1},
		{"linear", "zeros", 0, .5, -.5, 2},
		{"linear", "zeros", 0, -3, 0, 0},
		{"linear", "zeros", 0, nan, 0, 0},
		{"linear", "border", 0, -1, -1, 1},
		{"linear", "border", 0, 9, -.5, 2},
		{"linear", "border", 0, -9, 9, 3},
		{"linear", "border", 1, 9, -9, 2},
		{"linear", "reflection", 0, -1, -.5, 1},
		{"linear", "reflection", 0, 2, -.5, 1.5}, // pixel 2.5, one beyond 1.5: 0.5
		{"linear", "reflection", 1, 2, -1, 1.5},  // pixel 1.5, a half beyond 1: 0.5
		{"linear", "reflection", 1, 3, -1, 1},    // pixel 2: back to 0
		{"nearest", "zeros", 0, .3, -.5, 2},
		{"nearest", "zeros", 0, 0, -.5, 1},
		{"nearest", "zeros", 0, 1, -.5, 0}, // 0.5 goes to 0, 1.5 to 2
		{"nearest", "border", 0, 1, -.5, 2},
		{"nearest", "reflection", 1, 3, -1, 1},
		{"cubic", "zeros", 0, 0, 0, .59375 * .59375 * 10},
		{"cubic", "border", 0, 0, 0, 2.5},
		{"cubic", "reflection", 0, 0, 0, 2.5}, // beyond each edge lies its pixel again
		// beyond each edge lies the other pixel: 0.59375 - 0.09375 for either
		{"cubic", "reflection", 1, 0, 0, 2.5},
		{"bilinear", "zeros", 0, 0, 0, 2.5},
		{"bicubic", "border", 0, 0, 0, 2.5},
	} {
		near(t, tt.mode+", "+tt.padding, sample(tt.mode, tt.padding, tt.corners, tt.x, tt.y), tt.want)
	}
	// Two images, two channels, three points: each image has its own points.
	many := f32([]int{2, 2, 1, 3}, 0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32)
	grid := f32([]int{2, 1, 3, 2}, -1, 0, 0, 0, 1, 0, 1, 0, 0, 0, -1, 0)
	near(t, "images and channels", run(t, "GridSample", 20, graph.Attrs{"align_corners": int64(1)}, many, grid), 0, 1, 2, 10, 11, 12, 22, 21, 20, 32, 31, 30)
	// With three axes the grid lists the innermost first.
	cube := ramp(1, 1, 2, 3, 4)
	near(t, "cube", run(t, "GridSample", 20, graph.Attrs{"align_corners": int64(1)}, cube, f32([]int{1, 1, 1, 2, 3}, 1, -1, -1, -1, 0, 1)), 3, 12+4)
	ok := f32([]int{1, 1, 1, 2}, 0, 0)
	refuse(t, `mode "x"`, "GridSample", 20, graph.Attrs{"mode": "x"}, x, ok)
	refuse(t, `padding_mode "x"`, "GridSample", 20, graph.Attrs{"padding_mode": "x"}, x, ok)
	for _, g := range []*tensor.Tensor{f32([]int{2, 1, 1, 2}, 0, 0, 0, 0), f32([]int{1, 1, 1, 3}, 0, 0, 0), f32([]int{1, 1, 2}, 0, 0)} {
		refuse(t, "input 1x1x2x2 with grid", "GridSample", 20, nil, x, g)
	}
	refuse(t, "empty input 1x1x0x2", "GridSample", 20, nil, tensor.New(tensor.Float32, 1, 1, 0, 2), ok)
}

func TestAffineGrid(t *testing.T) {
	t.Parallel()
	identity := f32([]int{1, 2, 3}, 1, 0, 0, 0, 1, 0)
	near(t, "identity", run(t, "AffineGrid", 20, nil, identity, i64(1, 1, 2, 2)), -.5, -.5, .5, -.5, -.5, .5, .5, .5)
	near(t, "corners", run(t, "AffineGrid", 20, graph.Attrs{"align_corners": int64(1)}, identity, i64(1, 1, 2, 3)), -1, -1, 0, -1, 1, -1, -1, 1, 0, 1, 1, 1)
	free := f32([]int{1, 2, 3}, 1, 2, 3, 4, 5, 6)
	near(t, "centre", run(t, "AffineGrid", 20, nil, free, i64(1, 9, 1, 1)), 3, 6)
	near(t, "one corner", run(t, "AffineGrid", 20, graph.Attrs{"align_corners": int64(1)}, free, i64(1, 1, 1, 1)), 0, -3)
	// x' = x + 2y + 3, y' = 4x + 5y + 6 at x = -0.5, 0.5 and y = 0.
	near(t, "row", run(t, "AffineGrid", 20, nil, free, i64(1, 1, 1, 2)), 2.5, 4, 3.5, 8)
	cube := f32([]int{1, 3, 4}, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 7)
	near(t, "cube", run(t, "AffineGrid", 20, nil, cube, i64(1, 1, 1, 2, 1)), 0, -.5, 7, 0, .5, 7)
	two := f32([]int{2, 2, 3}, 0, 0, 1, 0, 0, 2, 0, 0, 3, 0, 0, 4)
	near(t, "two", run(t, "AffineGrid", 20, nil, two, i64(2, 1, 1, 2)), 1, 2, 1, 2, 3, 4, 3, 4)
	refuse(t, "theta 1x2x3 for size [2 1 1 1]", "AffineGrid", 20, nil, identity, i64(2, 1, 1, 1))
	refuse(t, "theta 1x2x3 for size [1 1 1 1 1]", "AffineGrid", 20, nil, identity, i64(1, 1, 1, 1, 1))
	refuse(t, "theta 1x2x3 for size [1 1 1]", "AffineGrid", 20, nil, identity, i64(1, 1, 1))
}

func TestNonMaxSuppression(t *testing.T) {
	t.Parallel()
	// Squares of side 2: the second is shifted by half of it (IoU of a third), the third is
	// separate.
	boxes := f32([]int{1, 3, 4}, 0, 0, 2, 2, 0, 1, 2, 3, 9, 9, 7, 7)
	scores := f32([]int{1, 2, 3}, .5, .9, .7, .3, .2, .1)
	for _, tt := range []struct {
		name              string
		limit, iou, floor *tensor.Tensor
		want              []float64
	}{
		{"all", i64(3), line(.5), nil, []float64{0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 1, 2}},
		{"overlap", i64(3), line(.25), nil, []float64{0, 0, 1, 0, 0, 2, 0, 1, 0, 0, 1, 2}},
		{"just a third", i64(3), line(1. / 3), nil, []float64{0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 1, 2}},
		{"no overlap at all", i64(3), nil, nil, []float64{0, 0, 1, 0, 0, 2, 0, 1, 0, 0, 1, 2}},
		{"one a class", i64(1), nil, nil, []float64{0, 0, 1, 0, 1, 0}},
		{"none a class", i64(0), nil, nil, nil},
		{"no limit given", nil, nil, nil, nil},
		{"the largest limit", i64(math.MaxInt64), line(.25), nil, []float64{0, 0, 1, 0, 0, 2, 0, 1, 0, 0, 1, 2}},
		{"the least limit", i64(math.MinInt64), line(.25), nil, nil},
		{"above a score", i64(3), line(.5), line(.5), []float64{0, 0, 1, 0, 0, 2}},
	} {
		got := run(t, "NonMaxSuppression", 11, nil, boxes, scores, tt.limit, tt.iou, tt.floor)
		near(t, tt.name, got, tt.want...)
		if !cmp.Equal(got.Shape, []int{len(tt.want) / 3, 3}) {
			t.Errorf("%s: shape %v", tt.name, got.Shape)
		}
	}
	// centre and sides: the second covers half of the first
	centre := f32([]int{1, 2, 4}, 1, 1, 2, 2, 1, 1, 2, 1)
	one := f32([]int{1, 1, 2}, .9, .8)
	byCentre := graph.Attrs{"center_point_box": int64(1)}
	near(t, "half in common", run(t, "NonMaxSuppression", 11, byCentre, centre, one, i64(2), line(.5)), 0, 0, 0, 0, 0, 1)
	near(t, "more than allowed", run(t, "NonMaxSuppression", 11, byCentre, centre, one, i64(2), line(.49)), 0, 0, 0)
	two := f32([]int{2, 1, 4}, 0, 0, 1, 1, 5, 5, 6, 6)
	near(t, "two images", run(t, "NonMaxSuppression", 11, nil, two, f32([]int{2, 1, 1}, .1, .2), i64(9)), 0, 0, 0, 1, 0, 0)
	flat := f32([]int{1, 2, 4}, 0, 0, 2, 0, 0, 0, 2, 0) // boxes without area have nothing in common
	near(t, "no area", run(t, "NonMaxSuppression", 11, nil, flat, one, i64(2)), 0, 0, 0, 0, 0, 1)
	refuse(t, "iou_threshold 1.5", "NonMaxSuppression", 11, nil, boxes, scores, i64(1), line(1.5))
	refuse(t, "iou_threshold -0.5", "NonMaxSuppression", 11, nil, boxes, scores, i64(1), line(-.5))
	refuse(t, "boxes 1x3x4 with scores 1x1x2", "NonMaxSuppression", 11, nil, boxes, one)
	refuse(t, "boxes 2x1x4 with scores 1x1x2", "NonMaxSuppression", 11, nil, two, one)
	refuse(t, "boxes 1x4x3", "NonMaxSuppression", 11, nil, ramp(1, 4, 3), scores)
	refuse(t, "boxes of float64", "NonMaxSuppression", 11, nil, tensor.New(tensor.Float64, 1, 3, 4), scores)
}

// TestRoiAlign samples an image whose value is 4 y + x: the mean over samples is that of their
// positions.
func TestRoiAlign(t *testing.T) {
	t.Parallel()
	x := ramp(1, 1, 4, 4)
	of := func(more graph.Attrs) graph.Attrs {
		a := graph.Attrs{"output_height": int64(1), "output_width": int64(1), "sampling_ratio": int64(1)}
		for k, v := range more {
			a[k] = v
		}
		return a
	}
	roi := f32([]int{1, 4}, 0, 0, 2, 2) // x0, y0, x1, y1
	for _, tt := range []struct {
		name    string
		version int
		attrs   graph.Attrs
		roi     *tensor.Tensor
		want    []float64
	}{
		{"centre", 10, of(nil), roi, []float64{5}},
		{"half a pixel", 16, of(nil), roi, []float64{2.5}},
		{"half a pixel not", 16, of(graph.Attrs{"coordinate_transformation_mode": "output_half_pixel"}), roi, []float64{5}},
		{"scaled", 10, of(graph.Attrs{"spatial_scale": float32(.5)}), f32([]int{1, 4}, 0, 0, 4, 4), []float64{5}},
		{"four samples", 10, of(graph.Attrs{"sampling_ratio": int64(2)}), roi, []float64{5}},
		{"as many samples as pixels", 10, of(graph.Attrs{"sampling_ratio": int64(0)}), f32([]int{1, 4}, 0, 0, 2, 3), []float64{4*1.5 + 1}},
		{"two by two", 10, of(graph.Attrs{"output_height": int64(2), "output_width": int64(2)}), f32([]int{1, 4}, 0, 0, 2, 2), []float64{2.5, 3.5, 6.5, 7.5}},
		{"wide", 10, of(graph.Attrs{"output_width": int64(2)}), f32([]int{1, 4}, 0, 0, 2, 1), []float64{2.5, 3.5}},
		{"at least one pixel", 10, of(nil), f32([]int{1, 4}, 1, 1, 1, 1), []float64{4*1.5 + 1.5}},
		// a quarter of 5
		{"part of the largest", 16, of(graph.Attrs{"mode": "max"}), roi, []float64{1.25}},
		{"outside", 10, of(nil), f32([]int{1, 4}, -9, 0, -7, 2), []float64{0}},
		// x = -1 counts as 0
		{"just outside", 10, of(nil), f32([]int{1, 4}, -2, 0, 0, 2), []float64{4}},
		// x = 4 counts as 3
		{"at the edge", 10, of(nil), f32([]int{1, 4}, 3, 0, 5, 2), []float64{7}},
		{"no samples", 16, of(graph.Attrs{"sampling_ratio": int64(0)}), f32([]int{1, 4}, 1, 1, 1, 1), []float64{0}},
		{"no largest of none", 16, of(graph.Attrs{"sampling_ratio": int64(0), "mode": "max"}), f32([]int{1, 4}, 1, 1, 1, 1), []float64{0}},
	} {
		near(t, tt.name, run(t, "RoiAlign", tt.version, tt.attrs, x, tt.roi, i64(0)), tt.want...)
	}
	two := f32([]int{2, 2, 1, 1}, 1, 2, 3, 4)
	rois := f32([]int{3, 4}, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1)
	near(t, "images and channels", run(t, "RoiAlign", 10, of(nil), two, rois, i64(1, 0, 1)), 3, 4, 1, 2, 3, 4)
	refuse(t, "batch index 1 of 1", "RoiAlign", 16, of(nil), x, roi, i64(1))
	refuse(t, "batch index -1 of 1", "RoiAlign", 16, of(nil), x, roi, i64(-1))
	refuse(t, "batch_indices 2", "RoiAlign", 16, of(nil), x, roi, i64(0, 0))
	refuse(t, "rois 1x3", "RoiAlign", 16, of(nil), x, ramp(1, 3), i64(0))
	refuse(t, "input 4x4", "RoiAlign", 16, of(nil), ramp(4, 4), roi, i64(0))
	refuse(t, "output of 0x1", "RoiAlign", 16, of(graph.Attrs{"output_height": int64(0)}), x, roi, i64(0))
	refuse(t, "output of 1x0", "RoiAlign", 16, of(graph.Attrs{"output_width": int64(0)}), x, roi, i64(0))
	refuse(t, "sampling_ratio -1", "RoiAlign", 16, of(graph.Attrs{"sampling_ratio": int64(-1)}), x, roi, i64(0))
	refuse(t, "sampling_ratio 1025", "RoiAlign", 16, of(graph.Attrs{"sampling_ratio": int64(1025)}), x, roi, i64(0))
	run(t, "RoiAlign", 16, of(graph.Attrs{"sampling_ratio": int64(1024)}), f32([]int{1, 1, 1, 1}, 1), f32([]int{0, 4}), tensor.New(tensor.Int64, 0))
}

func TestMaxRoiPool(t *testing.T) {
	t.Parallel()
	x := ramp(1, 1, 4, 4)
	of := func(h, w int64) graph.Attrs { return graph.Attrs{"pooled_shape": []int64{h, w}} }
	near(t, "quarters", run(t, "MaxRoiPool", 22, of(2, 2), x, f32([]int{1, 5}, 0, 0, 0, 3, 3)), 5, 7, 13, 15)
	near(t, "inside", run(t, "MaxRoiPool", 22, of(1, 1), x, f32([]int{1, 5}, 0, 1, 1, 2, 2)), 10)
	near(t, "wide", run(t, "MaxRoiPool", 22, of(1, 2), x, f32([]int{1, 5}, 0, 0, 1, 3, 2)), 9, 11)
	half := of(1, 1)
	half["spatial_scale"] = float32(.5)
	// columns to 2, rows to 1
	near(t, "scaled", run(t, "MaxRoiPool", 22, half, x, f32([]int{1, 5}, 0, 0, 0, 4, 2)), 6)
	near(t, "rounded away from zero", run(t, "MaxRoiPool", 22, half, x, f32([]int{1, 5}, 0, 0, 0, 1, 3)), 9)
	near(t, "three bins of four", run(t, "MaxRoiPool", 22, of(1, 3), x, f32([]int{1, 5}, 0, 0, 0, 3, 0)), 1, 2, 3)
	near(t, "outside", run(t, "MaxRoiPool", 22, of(1, 1), x, f32([]int{1, 5}, 0, 9, 9, 12, 12)), 0)
	near(t, "over the edge", run(t, "MaxRoiPool", 22, of(1, 1), x, f32([]int{1, 5}, 0, -5, -5, 1, 0)), 1)
	near(t, "negative values", run(t, "MaxRoiPool", 22, of(1, 1), f32([]int{1, 1, 1, 2}, -5, -3), f32([]int{1, 5}, 0, 0, 0, 1, 0)), -3)
	two := f32([]int{2, 2, 1, 1}, 1, 2, 3, 4)
	near(t, "images and channels", run(t, "MaxRoiPool", 22, of(1, 1), two, f32([]int{2, 5}, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)), 3, 4, 1, 2)
	refuse(t, "batch index 1 of 1", "MaxRoiPool", 22, of(1, 1), x, f32([]int{1, 5}, 1, 0, 0, 1, 1))
	refuse(t, "batch index -1 of 1", "MaxRoiPool", 22, of(1, 1), x, f32([]int{1, 5}, -1, 0, 0, 1, 1))
	refuse(t, "batch index NaN of 1", "MaxRoiPool", 22, of(1, 1), x, f32([]int{1, 5}, float32(math.NaN()), 0, 0, 1, 1))
	refuse(t, "pooled_shape [0 1]", "MaxRoiPool", 22, of(0, 1), x, ramp(1, 5))
	refuse(t, "pooled_shape [1 0]", "MaxRoiPool", 22, of(1, 0), x, ramp(1, 5))
	refuse(t, "rois 1x4", "MaxRoiPool", 22, of(1, 1), x, ramp(1, 4))
}
