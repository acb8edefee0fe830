package pool

import (
	"math"
	"math/rand/v2"
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

func options(padding string, kh, kw, sh, sw int) graph.Attrs {
	return graph.Attrs{"padding": padding, "filter_height": int64(kh), "filter_width": int64(kw), "stride_h": int64(sh), "stride_w": int64(sw)}
}

// pooled is the definition: a window over the part inside the image, in integers.
func pooled(x []float64, n, h, w, c, kh, kw, sh, sw int, same bool, f func(v []float64) float64) (shape []int, out []float64) {
	size := func(in, k, s int) (o, pad int) {
		if !same {
			return max(0, int(math.Floor(float64(in-k)/float64(s)))+1), 0
		}
		o = int(math.Ceil(float64(in) / float64(s)))
		return o, max(0, (o-1)*s+k-in) / 2
	}
	oh, pt := size(h, kh, sh)
	ow, pl := size(w, kw, sw)
	for b := range n {
		for oy := range oh {
			for ox := range ow {
				for k := range c {
					var v []float64
					for ky := range kh {
						for kx := range kw {
							if y, x0 := oy*sh-pt+ky, ox*sw-pl+kx; y >= 0 && y < h && x0 >= 0 && x0 < w {
								v = append(v, x[((b*h+y)*w+x0)*c+k])
							}
						}
					}
					out = append(out, f(v))
				}
			}
		}
	}
	return []int{n, oh, ow, c}, out
}

func mean(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s / float64(len(v))
}

func largest(v []float64) float64 {
	m := v[0]
	for _, x := range v {
		m = max(m, x)
	}
	return m
}

func quadratic(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x * x
	}
	return math.Sqrt(s / float64(len(v)))
}

var clamps = []struct {
	name   string
	lo, hi float64
}{{"NONE", math.Inf(-1), math.Inf(1)}, {"RELU", 0, math.Inf(1)}, {"RELU6", 0, 6}, {"RELU_N1_TO_1", -1, 1}}

func TestPool(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		n, h, w, c := 1+r.IntN(2), 1+r.IntN(6), 1+r.IntN(6), 1+r.IntN(3)
		if i == 0 {
			n, h, w, c = 3, 40, 30, 5 // for both workers
		}
		kh, kw, sh, sw, same := 1+r.IntN(4), 1+r.IntN(4), 1+r.IntN(3), 1+r.IntN(3), r.IntN(2) == 0
		padding, act := "VALID", clamps[i%4]
		if same {
			padding = "SAME"
		}
		attrs := options(padding, kh, kw, sh, sw)
		attrs["fused_activation_function"] = act.name
		for _, typ := range []tensor.Type{f32, i8, u8, i16} {
			lo, hi := map[tensor.Type]int{i8: -128, i16: -32768, f32: -9}[typ], map[tensor.Type]int{i8: 127, u8: 255, i16: 32767, f32: 9}[typ]
			// One step is one: zero points move the clamp.
			zero := 0
			if typ == i8 || typ == u8 {
				zero = []int{lo, hi, 3}[i%3]
			}
			x := make([]float64, n*h*w*c)
			for k := range x {
				x[k] = float64(lo + r.IntN(hi-lo+1))
			}
			q := optest.Affine(int64(zero), 1)
			if typ == f32 {
				q = nil
			}
			in := optest.Of(typ, q, []int{n, h, w, c}, x...)
			for name, f := range map[string]func([]float64) float64{"AVERAGE_POOL_2D": mean, "MAX_POOL_2D": largest, "L2_POOL_2D": quadratic} {
				if name == "L2_POOL_2D" && typ != f32 {
					continue
				}
				shape, want := pooled(x, n, h, w, c, kh, kw, sh, sw, same, f)
				for k, v := range want {
					if typ != f32 {
						v = math.Round(v) // halves away from zero
					}
					want[k] = min(max(v, act.lo+float64(zero)), act.hi+float64(zero))
				}
				out, err := optest.Run(Defs(), optest.Lite(name, attrs, typ, q), in)
				if err != nil {
					t.Fatal(err)
				}
				if tensor.FormatShape(out[0].Shape) != tensor.FormatShape(shape) {
					t.Fatalf("%s %v: shape %v, want %v", name, attrs, out[0].Shape, shape)
				}
				tol := 0.0
				if typ == f32 {
					tol = 2e-6
				}
				optest.Near(t, name+" of "+typ.String(), out[0], want, tol, 0)
			}
		}
	}
}

func TestPoolEdges(t *testing.T) {
	t.Parallel()
	inf := math.Inf(1)
	all := options("VALID", 2, 2, 1, 1)
	optest.Exactly(t, "NaN and infinity", Defs(), optest.Lite("MAX_POOL_2D", all, f32, nil), []int{1, 1, 1, 2}, []float64{inf, -inf},
		optest.Of(f32, nil, []int{1, 2, 2, 2}, 1, -inf, math.NaN(), -inf, inf, -inf, 0, -inf))
	optest.Exactly(t, "window beyond the image", Defs(), optest.Lite("MAX_POOL_2D", options("VALID", 3, 3, 1, 1), f32, nil), []int{1, 0, 0, 1}, nil, optest.Of(f32, nil, []int{1, 2, 2, 1}))
	optest.Exactly(t, "no options", Defs(), optest.Lite("AVERAGE_POOL_2D", nil, f32, nil), []int{1, 1, 3, 1}, []float64{4, 5, 6}, optest.Of(f32, nil, []int{1, 1, 3, 1}, 4, 5, 6))
	q := optest.Affine(0, 1)
	for _, c := range []struct {
		what, op string
		attrs    graph.Attrs
		in       *tensor.Tensor
		out      tensor.Type
		qo       *tensor.Quant
		text     string
	}{
		{"rank", "MAX_POOL_2D", all, optest.Of(f32, nil, []int{1, 2, 2}), f32, nil, "input 0 has rank 3, 4 was expected"},
		{"stride height", "MAX_POOL_2D", options("SAME", 1, 1, 0, 1), optest.Of(f32, nil, []int{1, 2, 2, 1}), f32, nil, "stride 1x0"},
		{"stride width", "MAX_POOL_2D", options("SAME", 1, 1, 1, 0), optest.Of(f32, nil, []int{1, 2, 2, 1}), f32, nil, "stride 0x1"},
		{"window height", "MAX_POOL_2D", options("SAME", 0, 1, 1, 1), optest.Of(f32, nil, []int{1, 2, 2, 1}), f32, nil, "window of 1x0"},
		{"window width", "MAX_POOL_2D", options("SAME", 1, 0, 1, 1), optest.Of(f32, nil, []int{1, 2, 2, 1}), f32, nil, "window of 0x1"},
		{"other output", "MAX_POOL_2D", all, optest.Of(i8, q, []int{1, 2, 2, 1}), u8, q, "int8 input with uint8 output"},
		{"integers", "MAX_POOL_2D", all, optest.Of(i32, nil, []int{1, 2, 2, 1}), i32, nil, "int32 input"},
		{"L2 of int8", "L2_POOL_2D", all, optest.Of(i8, q, []int{1, 2, 2, 1}), i8, q, "int8 input"},
		{"activation", "AVERAGE_POOL_2D", graph.Attrs{"fused_activation_function": "TANH"}, optest.Of(f32, nil, []int{1, 2, 2, 1}), f32, nil, "fused activation TANH"},
		{"activation of int8", "AVERAGE_POOL_2D", graph.Attrs{"fused_activation_function": "RELU"}, optest.Of(i8, nil, []int{1, 2, 2, 1}), i8, nil, "without quantisation"},
	} {
		optest.Refused(t, c.what, Defs(), optest.Lite(c.op, c.attrs, c.out, c.qo), c.text, c.in)
	}
	optest.Refused(t, "nothing", Defs(), optest.Lite("MAX_POOL_2D", all, f32, nil), "input 0 is missing")
}

func size(v ...float64) *tensor.Tensor { return optest.Row(i32, nil, v...) }

// TestBilinear: bilinear resizing is exact where positions are: a ramp stays a ramp.
func TestBilinear(t *testing.T) {
	t.Parallel()
	plain, corners, centres := graph.Attrs(nil), graph.Attrs{"align_corners": true}, graph.Attrs{"half_pixel_centers": true}
	for _, c := range []struct {
		what   string
		attrs  graph.Attrs
		h, w   int
		x      []float64
		oh, ow int
		want   []float64
	}{
		// Position i·in/out; beyond the last pixel it stays.
		{"twice as wide", plain, 1, 2, []float64{0, 8}, 1, 4, []float64{0, 4, 8, 8}},
		{"twice as high", plain, 2, 1, []float64{0, 8}, 4, 1, []float64{0, 4, 8, 8}},
		{"half", plain, 1, 4, []float64{1, 2, 3, 4}, 1, 2, []float64{1, 3}},
		{"both ways", plain, 2, 2, []float64{0, 8, 16, 24}, 4, 4, []float64{0, 4, 8, 8, 8, 12, 16, 16, 16, 20, 24, 24, 16, 20, 24, 24}},
		{"the same", plain, 2, 3, []float64{1, 2, 3, 4, 5, 6}, 2, 3, []float64{1, 2, 3, 4, 5, 6}},
		// Position i·(in-1)/(out-1): ends meet.
		{"corners", corners, 1, 2, []float64{0, 8}, 1, 5, []float64{0, 2, 4, 6, 8}},
		{"corners high", corners, 3, 1, []float64{0, 8, 4}, 5, 1, []float64{0, 4, 8, 6, 4}},
		{"corners, one", corners, 1, 4, []float64{1, 2, 3, 4}, 1, 1, []float64{1}},
		// Position (i+1/2)·in/out-1/2: centres meet.
		{"centres", centres, 1, 2, []float64{0, 8}, 1, 4, []float64{0, 2, 6, 8}},
		{"centres high", centres, 2, 1, []float64{0, 8}, 4, 1, []float64{0, 2, 6, 8}},
		{"centres, half", centres, 1, 4, []float64{0, 8, 16, 24}, 1, 2, []float64{4, 20}},
		{"centres, one", centres, 1, 4, []float64{0, 8, 16, 24}, 1, 1, []float64{12}},
	} {
		for _, typ := range []tensor.Type{f32, i8, u8, i16} {
			// A second channel beside it, of the opposite numbers where there are such, and a
			// second image.
			var x, want []float64
			second := func(v float64) float64 {
				if typ == u8 {
					return 100 - v
				}
				return -v
			}
			for b := range 2 {
				for _, v := range c.x {
					x = append(x, v+float64(b), second(v))
				}
				for _, v := range c.want {
					want = append(want, v+float64(b), second(v))
				}
			}
			optest.Exactly(t, c.what+" "+typ.String(), Defs(), optest.Lite("RESIZE_BILINEAR", c.attrs, typ, nil), []int{2, c.oh, c.ow, 2}, want,
				optest.Of(typ, nil, []int{2, c.h, c.w, 2}, x...), size(float64(c.oh), float64(c.ow)))
		}
	}
	// Halves: away from zero for signed numbers, up for unsigned.
	optest.Exactly(t, "halves", Defs(), optest.Lite("RESIZE_BILINEAR", corners, i8, nil), []int{1, 1, 3, 2}, []float64{0, 0, 1, -1, 1, -1}, optest.Of(i8, nil, []int{1, 1, 2, 2}, 0, 0, 1, -1), size(1, 3))
	optest.Exactly(t, "halves", Defs(), optest.Lite("RESIZE_BILINEAR", corners, u8, nil), []int{1, 1, 3, 1}, []float64{0, 1, 1}, optest.Of(u8, nil, []int{1, 1, 2, 1}, 0, 1), size(1, 3))
	// Many rows, for both workers.
	var x, want []float64
	for i := range 400 {
		x = append(x, float64(i%100))
	}
	for i := range 400 {
		for range 64 {
			want = append(want, float64(i%100))
		}
	}
	for _, typ := range []tensor.Type{f32, i8, i16} {
		optest.Exactly(t, "many", Defs(), optest.Lite("RESIZE_BILINEAR", nil, typ, nil), []int{4, 100, 64, 1}, want, optest.Of(typ, nil, []int{4, 100, 1, 1}, x...), size(100, 64))
		optest.Exactly(t, "many", Defs(), optest.Lite("RESIZE_NEAREST_NEIGHBOR", nil, typ, nil), []int{4, 100, 64, 1}, want, optest.Of(typ, nil, []int{4, 100, 1, 1}, x...), size(100, 64))
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	plain, corners, centres := graph.Attrs(nil), graph.Attrs{"align_corners": true}, graph.Attrs{"half_pixel_centers": true}
	for _, c := range []struct {
		what    string
		attrs   graph.Attrs
		in, out int
		at      []int
	}{
		{"twice", plain, 2, 4, []int{0, 0, 1, 1}},
		{"3 of 5", plain, 5, 3, []int{0, 1, 3}}, // 0, 1.67, 3.33
		{"5 of 3", plain, 3, 5, []int{0, 0, 1, 1, 2}},
		{"corners 5 of 3", corners, 3, 5, []int{0, 1, 1, 2, 2}}, // 0, 0.5, 1, 1.5, 2; halves go up
		{"corners 3 of 5", corners, 5, 3, []int{0, 2, 4}},
		{"corners, one", corners, 5, 1, []int{0}},
		{"centres 3 of 5", centres, 5, 3, []int{0, 2, 4}}, // 0.83, 2.5, 4.17
		{"centres twice", centres, 2, 4, []int{0, 0, 1, 1}},
		{"centres, one", centres, 5, 1, []int{2}},
	} {
		for _, typ := range []tensor.Type{f32, i8, u8, i16, i32, tensor.Int64} {
			for _, vertical := range []bool{true, false} {
				var x, want []float64
				for i := range c.in {
					x = append(x, float64(10+i), float64(50+i))
				}
				for _, i := range c.at {
					want = append(want, float64(10+i), float64(50+i))
				}
				in, out, to := []int{1, c.in, 1, 2}, []int{1, c.out, 1, 2}, size(float64(c.out), 1)
				if !vertical {
					in, out, to = []int{1, 1, c.in, 2}, []int{1, 1, c.out, 2}, size(1, float64(c.out))
				}
				optest.Exactly(t, c.what+" "+typ.String(), Defs(), optest.Lite("RESIZE_NEAREST_NEIGHBOR", c.attrs, typ, nil), out, want, optest.Of(typ, nil, in, x...), to)
			}
		}
	}
	// Both axes of two images.
	optest.Exactly(t, "both", Defs(), optest.Lite("RESIZE_NEAREST_NEIGHBOR", nil, i8, nil), []int{2, 2, 1, 1}, []float64{1, 3, 5, 7},
		optest.Of(i8, nil, []int{2, 2, 2, 1}, 1, 2, 3, 4, 5, 6, 7, 8), size(2, 1))
}

func TestResizeRefused(t *testing.T) {
	t.Parallel()
	x := optest.Of(f32, nil, []int{1, 2, 2, 1})
	for _, name := range []string{"RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"} {
		n := optest.Lite(name, nil, f32, nil)
		optest.Refused(t, "rank", Defs(), n, "input 0 has rank 2", optest.Of(f32, nil, []int{1, 2}), size(1, 1))
		optest.Refused(t, "no size", Defs(), n, "input 1 (the size) is missing", x)
		optest.Refused(t, "three sizes", Defs(), n, "size [1 1 1]", x, size(1, 1, 1))
		optest.Refused(t, "one size", Defs(), n, "size [1]", x, size(1))
		optest.Refused(t, "no height", Defs(), n, "size [0 1]", x, size(0, 1))
		optest.Refused(t, "no width", Defs(), n, "size [1 0]", x, size(1, 0))
		optest.Refused(t, "size of floats", Defs(), n, "integers", x, optest.Row(f32, nil, 1, 1))
		optest.Refused(t, "empty height", Defs(), n, "is empty", optest.Of(f32, nil, []int{1, 0, 2, 1}), size(1, 1))
		optest.Refused(t, "empty width", Defs(), n, "is empty", optest.Of(f32, nil, []int{1, 2, 0, 1}), size(1, 1))
		optest.Refused(t, "other output", Defs(), optest.Lite(name, nil, i8, nil), "float32 input with int8 output", x, size(1, 1))
	}
	optest.Refused(t, "integers", Defs(), optest.Lite("RESIZE_BILINEAR", nil, i32, nil), "int32 input", optest.Of(i32, nil, []int{1, 2, 2, 1}), size(1, 1))
	optest.Refused(t, "half bytes", Defs(), optest.Lite("RESIZE_NEAREST_NEIGHBOR", nil, tensor.Int4, nil), "int4 input", optest.Of(tensor.Int4, nil, []int{1, 2, 2, 1}), size(1, 1))
}
