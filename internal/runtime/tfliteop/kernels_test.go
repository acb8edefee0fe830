package tfliteop

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/activation"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// random makes a tensor of random elements over the whole range of the type, or of floats in [-1,
// 1).
func random(r *rand.Rand, t tensor.Type, q *tensor.Quant, shape ...int) *tensor.Tensor {
	x := tensor.New(t, shape...)
	x.Quant = q
	if t == tensor.Float32 {
		for i := range tensor.Of[float32](x) {
			tensor.Of[float32](x)[i] = r.Float32()*2 - 1
		}
		return x
	}
	for i := range x.Data {
		x.Data[i] = byte(r.Uint32())
	}
	if t == tensor.Int32 { // biases
		for i := range tensor.Of[int32](x) {
			tensor.Of[int32](x)[i] = int32(r.IntN(20000) - 10000)
		}
	}
	if t == tensor.Int64 {
		for i := range tensor.Of[int64](x) {
			tensor.Of[int64](x)[i] = int64(r.IntN(2000000) - 1000000)
		}
	}
	return x
}

func node(name string, attrs graph.Attrs, out tensor.Type, q *tensor.Quant, constant ...bool) optest.Node {
	return optest.Node{Domain: graph.TFLite, Op: name, Version: 1, Attrs: attrs, OutTypes: []tensor.Type{out}, OutQuant: []*tensor.Quant{q}, Const: constant}
}

func run(t *testing.T, n optest.Node, in ...*tensor.Tensor) *tensor.Tensor {
	t.Helper()
	out, err := optest.Run(allDefs(), n, in...)
	if err != nil {
		t.Fatalf("%s: %v", n.Op, err)
	}
	return out[0]
}

// at reads element i as an integer, absent biases as 0.
func at(x *tensor.Tensor, i int) int64 {
	if x == nil {
		return 0
	}
	switch x.Type {
	case tensor.Int8:
		return int64(tensor.Of[int8](x)[i])
	case tensor.Uint8:
		return int64(x.Data[i])
	case tensor.Int16:
		return int64(tensor.Of[int16](x)[i])
	case tensor.Int32:
		return int64(tensor.Of[int32](x)[i])
	}
	return tensor.Of[int64](x)[i]
}

func zeroOf(x *tensor.Tensor) int64 { return x.Quant.Zero[0] }

// scaleBack is the definition of requantisation.
func scaleBack(acc int64, m float64, out *tensor.Tensor, wide bool) int64 {
	f := fixed.FromReal(m)
	v := int64(f.Apply(int32(acc)))
	if wide {
		v = int64(f.Apply64(acc))
	}
	lo, hi := layer.Limits(out.Type)
	return min(max(v+zeroOf(out), int64(lo)), int64(hi))
}

// naiveConv is the definition of both convolutions.
func naiveConv(x, w, b, out *tensor.Tensor, stride, dil int, depthwise bool, mult func(o int) float64) []int64 {
	_, oh, ow, oc := out.Shape[0], out.Shape[1], out.Shape[2], out.Shape[3]
	h, wd, c := x.Shape[1], x.Shape[2], x.Shape[3]
	kh, kw, wc := w.Shape[1], w.Shape[2], w.Shape[3]
	pt := max(0, (oh-1)*stride+(kh-1)*dil+1-h) / 2
	pl := max(0, (ow-1)*stride+(kw-1)*dil+1-wd) / 2
	zw := int64(0)
	if w.Type == tensor.Uint8 {
		zw = zeroOf(w)
	}
	var res []int64
	for p := range out.Len() {
		o, ox, oy, n := p%oc, p/oc%ow, p/oc/ow%oh, p/oc/ow/oh
		acc := at(b, min(o, max(0, lenOf(b)-1)))
		for ky := range kh {
			for kx := range kw {
				iy, ix := oy*stride-pt+ky*dil, ox*stride-pl+kx*dil
				if iy < 0 || ix < 0 || iy >= h || ix >= wd {
					continue
				}
				if depthwise {
					i := o / (oc / c)
					acc += (at(x, ((n*h+iy)*wd+ix)*c+i) - zeroOf(x)) * (at(w, (ky*kw+kx)*oc+o) - zw)
					continue
				}
				g := o / (oc / (c / wc))
				for i := range wc {
					acc += (at(x, ((n*h+iy)*wd+ix)*c+g*wc+i) - zeroOf(x)) * (at(w, ((o*kh+ky)*kw+kx)*wc+i) - zw)
				}
			}
		}
		res = append(res, scaleBack(acc, mult(o), out, b != nil && b.Type == tensor.Int64))
	}
	return res
}

func lenOf(x *tensor.Tensor) int {
	if x == nil {
		return 0
	}
	return x.Len()
}

func equal(t *testing.T, got *tensor.Tensor, want []int64) {
	t.Helper()
	if got.Len() != len(want) {
		t.Fatalf("%d elements, want %d", got.Len(), len(want))
	}
	for i, w := range want {
		if g := at(got, i); g != w {
			t.Fatalf("element %d of %d: got %d, want %d", i, len(want), g, w)
		}
	}
}

func TestIntegerConvolution(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		r := rand.New(rand.NewPCG(seed, 1))
		typ := rapid.SampledFrom([]tensor.Type{tensor.Int8, tensor.Uint8, tensor.Int16}).Draw(rt, "type")
		depthwise := rapid.Bool().Draw(rt, "depthwise")
		stride, dil := rapid.IntRange(1, 2).Draw(rt, "stride"), rapid.IntRange(1, 2).Draw(rt, "dilation")
		padding := rapid.SampledFrom([]string{"SAME", "VALID"}).Draw(rt, "padding")
		k, groups := rapid.IntRange(1, 3).Draw(rt, "k"), rapid.IntRange(1, 2).Draw(rt, "groups")
		c, oc := groups*rapid.IntRange(1, 5).Draw(rt, "c"), groups*rapid.IntRange(1, 5).Draw(rt, "oc")
		zero, wt, bt := int64(r.IntN(20)), tensor.Int8, tensor.Int32
		xq, oq := optest.Affine(zero, 0.5), optest.Affine(3, 40)
		scales := make([]float32, oc)
		wshape := []int{oc, k, k, c / groups}
		if depthwise {
			oc = c * rapid.IntRange(1, 3).Draw(rt, "multiplier")
			wshape = []int{1, k, k, oc}
			scales = make([]float32, oc)
		}
		for i := range scales {
			scales[i] = 0.1 + r.Float32()
		}
		wq := optest.Affine(0, scales...)
		wq.Axis = 0
		if depthwise {
			wq.Axis = 3
		}
		switch typ {
		case tensor.Uint8:
			wt, wq = tensor.Uint8, optest.Affine(120, 0.7)
		case tensor.Int16:
			xq, oq, bt = optest.Affine(0, 0.01), optest.Affine(0, 0.4), tensor.Int64
		}
		x := random(r, typ, xq, 2, 7, 6, c)
		w := random(r, wt, wq, wshape...)
		b := random(r, bt, nil, oc)
		name := "CONV_2D"
		if depthwise {
			name = "DEPTHWISE_CONV_2D"
		}
		attrs := graph.Attrs{"padding": padding, "stride_w": int64(stride), "stride_h": int64(stride), "dilation_w_factor": int64(dil), "dilation_h_factor": int64(dil)}
		got, err := optest.Run(allDefs(), node(name, attrs, typ, oq, false, true, true), x, w, b)
		if err != nil {
			rt.Fatal(err)
		}
		want := naiveConv(x, w, b, got[0], stride, dil, depthwise, func(o int) float64 {
			return float64(xq.Scale[0]) * float64(wq.Scale[min(o, len(wq.Scale)-1)]) / float64(oq.Scale[0])
		})
		for i, v := range want {
			if at(got[0], i) != v {
				rt.Fatalf("%v %s element %d: got %d, want %d", typ, name, i, at(got[0], i), v)
			}
		}
	})
}

func TestFullyConnected(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name     string
		x, w, b  tensor.Type
		per      bool
		zx       int64
		sx, so   float32
		constant bool
	}{
		{"int8", tensor.Int8, tensor.Int8, tensor.Int32, false, -7, 0.1, 20, true},
		{"int8 per channel", tensor.Int8, tensor.Int8, tensor.Int32, true, 9, 0.1, 20, true},
		{"int8 weights not constant", tensor.Int8, tensor.Int8, tensor.Int32, false, 9, 0.1, 20, false},
		{"int4", tensor.Int8, tensor.Int4, tensor.Int32, false, 9, 0.1, 3, true},
		{"int16", tensor.Int16, tensor.Int8, tensor.Int64, false, 0, 0.001, 0.1, true},
		{"int16 with 32-bit sums", tensor.Int16, tensor.Int8, tensor.Int32, false, 0, 0.001, 0.1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := random(r, c.x, optest.Affine(c.zx, c.sx), 3, 37)
			scale := []float32{0.3}
			if c.per {
				scale = []float32{0.1, 0.2, 0.3, 0.4, 0.5}
			}
			w := random(r, c.w, optest.Affine(0, scale...), 5, 37)
			b := random(r, c.b, nil, 5)
			got := run(t, node("FULLY_CONNECTED", graph.Attrs{}, c.x, optest.Affine(2*c.zx, c.so), false, c.constant, true), x, w, b)
			ws, err := layer.Integers(w)
			if err != nil {
				t.Fatal(err)
			}
			var want []int64
			for i := range 15 {
				acc := at(b, i%5)
				for k := range 37 {
					acc += (at(x, i/5*37+k) - c.zx) * int64(ws[i%5*37+k])
				}
				m := float64(c.sx*scale[0]) / float64(c.so)
				if c.per {
					m = float64(c.sx) * float64(scale[i%5]) / float64(c.so)
				}
				want = append(want, scaleBack(acc, m, got, c.b == tensor.Int64))
			}
			equal(t, got, want)
		})
	}
}

func TestTransposeConv(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 2))
	for _, c := range []struct {
		name, padding string
		x, b          tensor.Type
		h, w          int
	}{
		{"int8 valid", "VALID", tensor.Int8, tensor.Int32, 9, 9},
		{"int8 same", "SAME", tensor.Int8, tensor.Int32, 8, 8},
		{"int16 same", "SAME", tensor.Int16, tensor.Int64, 8, 8},
		{"float", "SAME", tensor.Float32, tensor.Float32, 8, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			zx := int64(4)
			wt := tensor.Int8
			if c.x != tensor.Int8 {
				zx = 0
			}
			if c.x == tensor.Float32 {
				wt = c.x
			}
			x, w := random(r, c.x, optest.Affine(zx, 0.5), 1, 4, 4, 3), random(r, wt, optest.Affine(0, 0.5, 0.25), 2, 3, 3, 3)
			b := random(r, c.b, nil, 2)
			shape := tensor.From(tensor.Int32, []int{4}, []int32{1, int32(c.h), int32(c.w), 2})
			got := run(t, node("TRANSPOSE_CONV", graph.Attrs{"padding": c.padding, "stride_w": int64(2), "stride_h": int64(2)}, c.x, optest.Affine(zx, 100), true, true, false, true), shape, w, x, b)
			pad := 0
			if c.padding == "SAME" {
				pad = max(0, 3*2+3-c.h) / 2
			}
			acc, facc := make([]int64, c.h*c.w*2), make([]float64, c.h*c.w*2)
			for i := range x.Len() {
				k, ix, iy := i%3, i/3%4, i/12
				for f := range w.Len() {
					if f%3 != k {
						continue
					}
					oy, ox, o := iy*2-pad+f/9%3, ix*2-pad+f/3%3, f/27
					if oy < 0 || ox < 0 || oy >= c.h || ox >= c.w {
						continue
					}
					at2 := (oy*c.w+ox)*2 + o
					if c.x == tensor.Float32 {
						facc[at2] += float64(tensor.Of[float32](x)[i]) * float64(tensor.Of[float32](w)[f])
						continue
					}
					acc[at2] += (at(x, i) - zx) * at(w, f)
				}
			}
			if c.x == tensor.Float32 {
				for i := range facc {
					facc[i] += float64(tensor.Of[float32](b)[i%2])
				}
				near(t, got, facc, 1e-5)
				return
			}
			for i := range acc {
				acc[i] = scaleBack(acc[i]+at(b, i%2), 0.5*float64([]float32{0.5, 0.25}[i%2])/100, got, c.b == tensor.Int64)
			}
			equal(t, got, acc)
		})
	}
}

func TestPools(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 2))
	for _, typ := range []tensor.Type{tensor.Int8, tensor.Uint8, tensor.Int16} {
		for _, name := range []string{"AVERAGE_POOL_2D", "MAX_POOL_2D"} {
			x := random(r, typ, optest.Affine(0, 0.5), 1, 5, 5, 3)
			got := run(t, node(name, graph.Attrs{"padding": "SAME", "stride_w": int64(2), "stride_h": int64(2), "filter_width": int64(3), "filter_height": int64(2)}, typ, optest.Affine(0, 0.5)), x)
			var want []int64
			for p := range 3 * 3 * 3 {
				c, ox, oy := p%3, p/3%3, p/9
				var n, sum, top int64 = 0, 0, math.MinInt64
				for ky := range 2 {
					for kx := range 3 {
						iy, ix := oy*2+ky, ox*2-1+kx
						if iy >= 5 || ix < 0 || ix >= 5 {
							continue
						}
						v := at(x, (iy*5+ix)*3+c)
						sum, n, top = sum+v, n+1, max(top, v)
					}
				}
				if name == "MAX_POOL_2D" {
					want = append(want, top)
				} else {
					want = append(want, int64(math.Round(float64(sum)/float64(n))))
				}
			}
			equal(t, got, want)
		}
	}
}

// TestNearReal compares quantised operators with the real function: they may differ by at most
// the given number of steps.
func TestNearReal(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 2))
	tanh := math.Tanh
	for _, c := range []struct {
		name  string
		attrs graph.Attrs
		typ   tensor.Type
		in    *tensor.Quant
		out   *tensor.Quant
		two   bool
		f     func(x, y float64) float64
		steps float64
	}{
		{"ADD", nil, tensor.Int8, optest.Affine(3, 0.1), optest.Affine(-5, 0.15), true, func(x, y float64) float64 { return x + y }, 1},
		{"ADD", nil, tensor.Int16, optest.Affine(0, 0.001), optest.Affine(0, 0.0015), true, func(x, y float64) float64 { return x + y }, 1},
		{"SUB", graph.Attrs{"fused_activation_function": "RELU"}, tensor.Int8, optest.Affine(3, 0.1), optest.Affine(-5, 0.15), true, func(x, y float64) float64 { return max(x-y, 0) }, 1},
		{"MUL", nil, tensor.Int8, optest.Affine(3, 0.1), optest.Affine(-5, 0.9), true, func(x, y float64) float64 { return x * y }, 1},
		{"MUL", nil, tensor.Int16, optest.Affine(0, 0.001), optest.Affine(0, 0.03), true, func(x, y float64) float64 { return x * y }, 1},
		{"SQUARED_DIFFERENCE", nil, tensor.Int8, optest.Affine(3, 0.1), optest.Affine(-128, 3), true, func(x, y float64) float64 { return (x - y) * (x - y) }, 1},
		{"MAXIMUM", nil, tensor.Int8, optest.Affine(3, 0.1), optest.Affine(3, 0.1), true, math.Max, 0},
		{"MINIMUM", nil, tensor.Uint8, optest.Affine(3, 0.1), optest.Affine(3, 0.1), true, math.Min, 0},
		{"PRELU", nil, tensor.Int8, optest.Affine(3, 0.1), optest.Affine(-5, 0.9), true, func(x, y float64) float64 {
			if x < 0 {
				return x * y
			}
			return x
		}, 1},
		{"LOGISTIC", nil, tensor.Int8, optest.Affine(3, 0.1), optest.Affine(-128, 1.0/256), false, func(x, _ float64) float64 { return 1 / (1 + math.Exp(-x)) }, 1},
		{"LOGISTIC", nil, tensor.Int16, optest.Affine(0, 1.0/4096), optest.Affine(0, 1.0/32768), false, func(x, _ float64) float64 { return 1 / (1 + math.Exp(-x)) }, 3},
		{"TANH", nil, tensor.Int8, optest.Affine(3, 0.03), optest.Affine(0, 1.0/128), false, func(x, _ float64) float64 { return tanh(x) }, 1},
		{"TANH", nil, tensor.Int16, optest.Affine(0, 1.0/4000), optest.Affine(0, 1.0/32768), false, func(x, _ float64) float64 { return tanh(x) }, 5},
		{"LEAKY_RELU", graph.Attrs{"alpha": float32(0.2)}, tensor.Int8, optest.Affine(3, 0.1), optest.Affine(-5, 0.12), false, func(x, _ float64) float64 { return max(x, 0.2*x) }, 1},
		{"HARD_SWISH", nil, tensor.Int8, optest.Affine(3, 0.05), optest.Affine(-120, 0.06), false, func(x, _ float64) float64 { return x * min(max(x+3, 0), 6) / 6 }, 2},
		{"RELU6", nil, tensor.Int8, optest.Affine(3, 0.1), optest.Affine(-128, 6.0/255), false, func(x, _ float64) float64 { return min(max(x, 0), 6) }, 1},
		{"ELU", nil, tensor.Int8, optest.Affine(3, 0.1), optest.Affine(-100, 0.1), false, func(x, _ float64) float64 { return activation.Elu(x) }, 1},
		{"EXP", nil, tensor.Int16, optest.Affine(0, 0.0001), optest.Affine(0, 0.001), false, func(x, _ float64) float64 { return math.Exp(x) }, 4},
		{"RSQRT", nil, tensor.Int8, optest.Affine(-128, 0.1), optest.Affine(-128, 0.02), false, func(x, _ float64) float64 { return 1 / math.Sqrt(x) }, 1},
		{"ABS", nil, tensor.Int8, optest.Affine(3, 0.1), optest.Affine(-100, 0.12), false, func(x, _ float64) float64 { return math.Abs(x) }, 1},
		{"QUANTIZE", nil, tensor.Int8, optest.Affine(3, 0.1), optest.Affine(-5, 0.07), false, func(x, _ float64) float64 { return x }, 1},
	} {
		t.Run(fmt.Sprint(c.name, " ", c.typ), func(t *testing.T) {
			x, y := random(r, c.typ, c.in, 4, 3, 40), random(r, c.typ, c.in, 3, 1)
			ins := []*tensor.Tensor{x}
			if c.two {
				ins = append(ins, y)
			}
			got := run(t, node(c.name, c.attrs, c.typ, c.out), ins...)
			lo, hi := layer.Limits(c.typ)
			val := func(t *tensor.Tensor, i int) float64 {
				return float64(t.Quant.Scale[0]) * float64(at(t, i)-zeroOf(t))
			}
			for i := range x.Len() {
				want := c.f(val(x, i), val(y, i/40%3))/float64(c.out.Scale[0]) + float64(c.out.Zero[0])
				want = min(max(want, float64(lo)), float64(hi))
				if g := float64(at(got, i)); !optest.Within(g, want, c.steps+0.51, 0) {
					t.Fatalf("element %d: %v of %v, %v gives %v, want %v", i, c.name, val(x, i), val(y, i/40%3), g, want)
				}
			}
		})
	}
}

func TestSoftmax(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 2))
	for _, c := range []struct {
		in, out tensor.Type
		s       float32
		q       *tensor.Quant
		steps   float64
	}{
		{tensor.Int8, tensor.Int8, 0.1, optest.Affine(-128, 1.0/256), 1},
		{tensor.Int8, tensor.Int16, 0.1, optest.Affine(-32768, 1.0/65536), 4},
		{tensor.Int16, tensor.Int16, 0.0005, optest.Affine(0, 1.0/32768), 12},
		{tensor.Float32, tensor.Float32, 1, nil, 0},
	} {
		x := random(r, c.in, optest.Affine(0, c.s), 5, 11)
		got := run(t, node("SOFTMAX", graph.Attrs{"beta": float32(1)}, c.out, c.q), x)
		for row := range 5 {
			e, sum := make([]float64, 11), 0.0
			for i := range e {
				if c.in == tensor.Float32 {
					e[i] = math.Exp(float64(tensor.Of[float32](x)[row*11+i]))
				} else {
					e[i] = math.Exp(float64(at(x, row*11+i)) * float64(c.s))
				}
				sum += e[i]
			}
			for i, v := range e {
				if c.in == tensor.Float32 {
					if g := float64(tensor.Of[float32](got)[row*11+i]); !optest.Within(g, v/sum, 1e-6, 0) {
						t.Errorf("float: got %v, want %v", g, v/sum)
					}
					continue
				}
				want := v/sum/float64(c.q.Scale[0]) + float64(c.q.Zero[0])
				if g := float64(at(got, row*11+i)); !optest.Within(g, want, c.steps+0.51, 0) {
					t.Errorf("%v to %v: got %v, want %v", c.in, c.out, g, want)
				}
			}
		}
	}
}

func TestQuantizeProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := float32(rapid.Float64Range(1e-4, 10).Draw(rt, "scale"))
		z := rapid.Int64Range(-128, 127).Draw(rt, "zero")
		q := rapid.SliceOfN(rapid.Int8(), 1, 40).Draw(rt, "stored")
		x := tensor.From(tensor.Int8, []int{len(q)}, q)
		x.Quant = optest.Affine(z, s)
		f, err := optest.Run(allDefs(), node("DEQUANTIZE", nil, tensor.Float32, nil), x)
		if err != nil {
			rt.Fatal(err)
		}
		var want []float64
		for _, v := range q {
			want = append(want, float64(float32(float64(s)*float64(int64(v)-z))))
		}
		optest.Near(rt, "dequantised", f[0], want, 0, 0)
		back, err := optest.Run(allDefs(), node("QUANTIZE", nil, tensor.Int8, x.Quant), f[0])
		if err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(q, tensor.Of[int8](back[0])); d != "" {
			rt.Fatal(d)
		}
		// Changing the sign convention only flips the top bit.
		u, err := optest.Run(allDefs(), node("QUANTIZE", nil, tensor.Uint8, optest.Affine(z+128, s)), x)
		if err != nil {
			rt.Fatal(err)
		}
		flipped := make([]uint8, len(q))
		for i, v := range q {
			flipped[i] = uint8(v) ^ 0x80
		}
		if d := cmp.Diff(flipped, u[0].Data); d != "" {
			rt.Fatal(d)
		}
	})
}

func runErr(n optest.Node, in ...*tensor.Tensor) ([]*tensor.Tensor, error) {
	return optest.Run(allDefs(), n, in...)
}
