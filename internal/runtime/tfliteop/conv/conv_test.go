package conv

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
	i4  = tensor.Int4
	i8  = tensor.Int8
	u8  = tensor.Uint8
	i16 = tensor.Int16
	i32 = tensor.Int32
	i64 = tensor.Int64
)

// window is the geometry along one axis: outputs and padding before, by the definition
// of SAME and VALID.
func window(in, k, stride, dil int, same bool) (out, pad int) {
	reach := (k-1)*dil + 1
	if !same {
		for at := 0; at+reach <= in; at += stride {
			out++
		}
		return out, 0
	}
	out = int(math.Ceil(float64(in) / float64(stride)))
	return out, max(0, (out-1)*stride+reach-in) / 2
}

// spec is a convolution: sizes of images, filter and strides.
type spec struct {
	n, c, oc, groups           int
	in, k, stride, dil         [3]int
	same, depthwise, transpose bool
	out, pad                   [3]int
}

func elements(v ...int) int {
	n := 1
	for _, d := range v {
		n *= d
	}
	return n
}

// sums are the definition: each pair of an input and an output position that a tap joins
// adds its products. filter gives the weight of a tap from channel i to o.
func (s *spec) sums(x []float64, filter func(tap, i, o int) float64) []float64 {
	y := make([]float64, s.n*elements(s.out[:]...)*s.oc)
	walk := func(d [3]int, f func(a [3]int, at int)) {
		at := 0
		for a := range d[0] {
			for b := range d[1] {
				for c := range d[2] {
					f([3]int{a, b, c}, at)
					at++
				}
			}
		}
	}
	index := func(n int, d, a [3]int) int { return ((n*d[0]+a[0])*d[1]+a[1])*d[2] + a[2] }
	from, to := s.out, s.in // a window goes from an output to inputs
	if s.transpose {
		from, to = s.in, s.out
	}
	for n := range s.n {
		walk(from, func(a [3]int, _ int) {
			walk(s.k, func(k [3]int, tap int) {
				var b [3]int
				for i := range b {
					if b[i] = a[i]*s.stride[i] - s.pad[i] + k[i]*s.dil[i]; b[i] < 0 || b[i] >= to[i] {
						return
					}
				}
				xi, yi := index(n, s.in, b), index(n, s.out, a)
				if s.transpose {
					xi, yi = index(n, s.in, a), index(n, s.out, b)
				}
				for o := range s.oc {
					per := s.c / s.groups
					g := o / (s.oc / s.groups)
					for i := range per {
						y[yi*s.oc+o] += x[xi*s.c+g*per+i] * filter(tap, i, o)
					}
				}
			})
		})
	}
	return y
}

var clamps = []struct {
	name   string
	lo, hi float64
}{{"NONE", math.Inf(-1), math.Inf(1)}, {"RELU", 0, math.Inf(1)}, {"RELU6", 0, 6}, {"RELU_N1_TO_1", -1, 1}}

func (s *spec) attrs(act string) graph.Attrs {
	a := graph.Attrs{"fused_activation_function": act, "padding": "VALID"}
	if s.same {
		a["padding"] = "SAME"
	}
	for i, d := range []string{"d", "h", "w"} {
		a["stride_"+d], a["dilation_"+d+"_factor"] = int64(s.stride[i]), int64(s.dil[i])
	}
	return a
}

// numbers chooses types, quantisation and elements for a case.
type numbers struct {
	x, w, out, bias tensor.Type
	zx, zw, zo      int
	sx, so          float64
	sw              []float64
}

func choose(r *rand.Rand, i, taps, oc int, x, w tensor.Type, channels bool) numbers {
	q := numbers{x: x, w: w, out: x, bias: i32, sx: 0.5, sw: []float64{0.25}, so: 4 * float64(taps)}
	lo, hi := optest.Ends(x)
	switch x {
	case f32:
		q.sx, q.so, q.sw, q.bias = 1, 1, []float64{1}, f32
		return q
	case i8:
		q.zx, q.zo = []int{lo, hi, 7}[i%3], []int{hi, 3, lo}[i/2%3]
	case u8:
		q.zx, q.zo, q.zw = []int{lo, hi, 7}[i%3], []int{hi, 3, lo}[i/2%3], []int{0, 255, 99}[i/3%3]
	case i16:
		if q.so *= 64; i%3 > 0 {
			q.bias = i64
		}
	}
	if channels && x != u8 && i%2 == 1 {
		for len(q.sw) < oc {
			q.sw = append(q.sw, math.Ldexp(1, -1-r.IntN(3)))
		}
	}
	return q
}

func (q *numbers) quants(axis int) (x, w, out *tensor.Quant) {
	if q.x == f32 {
		return nil, nil, nil
	}
	w = optest.Rounded(q.zw, q.sw...)
	w.Axis = axis
	return optest.Rounded(q.zx, q.sx), w, optest.Rounded(q.zo, q.so)
}

// finish makes outputs of sums and biases.
func (q *numbers) finish(sums, bias []float64, lo, hi float64) []float64 {
	oc := len(bias)
	want := make([]float64, len(sums))
	for i, v := range sums {
		v = min(max((v+bias[i%oc])*q.sx*q.sw[min(i%oc, len(q.sw)-1)], lo), hi) / q.so
		if q.out != f32 {
			a, b := optest.Ends(q.out)
			v = min(max(v+float64(q.zo), float64(a)), float64(b))
		}
		want[i] = v
	}
	return want
}

func less(v []float64, zero int) []float64 {
	out := make([]float64, len(v))
	for i := range v {
		out[i] = v[i] - float64(zero)
	}
	return out
}

func check(t *testing.T, what string, n optest.Node, q *numbers, shape []int, want []float64, in ...*tensor.Tensor) {
	t.Helper()
	out, err := optest.Run(Defs(), n, in...)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if got := tensor.FormatShape(out[0].Shape); got != tensor.FormatShape(shape) {
		t.Fatalf("%s: shape %s, want %s", what, got, tensor.FormatShape(shape))
	}
	tol := 0.76 // integers round twice
	if q.x == f32 {
		tol = 0 // integers
	}
	optest.Near(t, what, out[0], want, tol, 0)
}

var pairs = [][2]tensor.Type{{f32, f32}, {i8, i8}, {i8, i4}, {u8, u8}, {i16, i8}, {i16, i4}}

func TestConv2D(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, types := range pairs {
		for i := range 40 {
			s := spec{n: 1 + r.IntN(2), groups: 1 + r.IntN(2), same: i%2 == 0, depthwise: i%3 == 0, in: [3]int{1, 1 + r.IntN(7), 1 + r.IntN(7)}, k: [3]int{1, 1 + r.IntN(3), 1 + r.IntN(3)}}
			s.stride, s.dil = [3]int{1, 1 + r.IntN(2), 1 + r.IntN(2)}, [3]int{1, 1 + r.IntN(2), 1 + r.IntN(2)}
			s.c, s.oc = s.groups*(1+r.IntN(4)), s.groups*(1+r.IntN(6))
			if i == 1 { // enough for several workers
				s.in, s.c, s.oc, s.groups = [3]int{1, 20, 21}, 16, 24, 1
			}
			if s.depthwise {
				s.groups, s.oc = s.c, s.c*(1+r.IntN(3))
			}
			for d := range 3 {
				s.out[d], s.pad[d] = window(s.in[d], s.k[d], s.stride[d], s.dil[d], s.same)
			}
			taps := elements(s.k[:]...)
			per := s.c / s.groups
			q := choose(r, i, taps*per, s.oc, types[0], types[1], true)
			act := clamps[i%4]
			xlo, xhi := optest.Ends(q.x)
			wlo, whi := optest.Ends(q.w)
			x, w, b := optest.Draw(r, s.n*elements(s.in[:]...)*s.c, xlo, xhi), optest.Draw(r, taps*per*s.oc, wlo, whi), optest.Draw(r, s.oc, -3000, 3000)
			if q.x == f32 {
				b = optest.Draw(r, s.oc, -9, 9)
			}
			name, shape, axis := "CONV_2D", []int{s.oc, s.k[1], s.k[2], per}, 0
			filter := func(tap, i, o int) float64 { return w[(o*taps+tap)*per+i] - float64(q.zw) }
			if s.depthwise {
				name, shape, axis = "DEPTHWISE_CONV_2D", []int{1, s.k[1], s.k[2], s.oc}, 3
				filter = func(tap, _, o int) float64 { return w[tap*s.oc+o] - float64(q.zw) }
			}
			want := q.finish(s.sums(less(x, q.zx), filter), b, act.lo, act.hi)
			qx, qw, qo := q.quants(axis)
			n := optest.Lite(name, s.attrs(act.name), q.out, qo)
			n.Threads = 1 + i%2
			args := []*tensor.Tensor{optest.Of(q.x, qx, []int{s.n, s.in[1], s.in[2], s.c}, x...), optest.Of(q.w, qw, shape, w...), optest.Of(q.bias, nil, []int{s.oc}, b...)}
			what := name + " " + q.x.String() + " by " + q.w.String()
			check(t, what, n, &q, []int{s.n, s.out[1], s.out[2], s.oc}, want, args...)
			if q.x == f32 {
				n.Const = nil
				check(t, what+", open", n, &q, []int{s.n, s.out[1], s.out[2], s.oc}, want, args...)
			}
			if i%4 == 0 {
				want = q.finish(s.sums(less(x, q.zx), filter), make([]float64, s.oc), act.lo, act.hi)
				if q.x == i16 {
					q.bias = i64
				}
				check(t, what+" without biases", n, &q, []int{s.n, s.out[1], s.out[2], s.oc}, want, args[:2]...)
			}
		}
	}
}

// A filter larger than the image, no channels out and no images: the output is empty, with
// one thread and with two.
func TestEmptyResults(t *testing.T) {
	t.Parallel()
	for _, threads := range []int{1, 2} {
		for _, types := range pairs {
			q := numbers{x: types[0], w: types[1], sx: 1, so: 1, sw: []float64{1}}
			qx, qw, qo := q.quants(0)
			for _, c := range []struct {
				name   string
				x, w   []int
				out    []int
				biases int
			}{
				{"CONV_2D", []int{1, 2, 2, 3}, []int{4, 3, 3, 3}, []int{1, 0, 0, 4}, 4},
				{"CONV_2D", []int{1, 5, 2, 3}, []int{4, 3, 3, 3}, []int{1, 3, 0, 4}, 4},
				{"CONV_2D", []int{0, 5, 5, 3}, []int{4, 3, 3, 3}, []int{0, 3, 3, 4}, 4},
				{"CONV_2D", []int{1, 5, 5, 3}, []int{0, 3, 3, 3}, []int{1, 3, 3, 0}, 0},
				{"DEPTHWISE_CONV_2D", []int{1, 2, 2, 3}, []int{1, 3, 3, 3}, []int{1, 0, 0, 3}, 3},
				{"DEPTHWISE_CONV_2D", []int{0, 5, 5, 3}, []int{1, 3, 3, 6}, []int{0, 3, 3, 6}, 6},
			} {
				bt := map[tensor.Type]tensor.Type{f32: f32, i8: i32, u8: i32, i16: i64}[q.x]
				n := optest.Lite(c.name, graph.Attrs{"padding": "VALID"}, q.x, qo)
				n.Threads = threads
				optest.Exactly(t, c.name+" of "+q.x.String(), Defs(), n, c.out, nil, optest.Of(q.x, qx, c.x), optest.Of(q.w, qw, c.w), optest.Of(bt, nil, []int{c.biases}))
			}
		}
		q := optest.Rounded(0, 1)
		n := optest.Lite("CONV_2D", graph.Attrs{"padding": "VALID"}, f32, nil)
		n.Threads = threads
		optest.Exactly(t, "hybrid", Defs(), n, []int{1, 0, 0, 1}, nil, optest.Of(f32, nil, []int{1, 2, 2, 1}), optest.Of(i8, q, []int{1, 3, 3, 1}))
		n = optest.Lite("CONV_3D", graph.Attrs{"padding": "VALID"}, f32, nil)
		n.Threads = threads
		optest.Exactly(t, "volume", Defs(), n, []int{1, 0, 1, 1, 2}, nil, optest.Of(f32, nil, []int{1, 1, 3, 3, 1}), optest.Of(f32, nil, []int{2, 3, 3, 1, 2}))
	}
}

// Floats by bytes: activations of integers with a range of 127, or of 255 where
// there is a scale a channel, lose nothing.
func TestHybrid(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 24 {
		s := spec{n: 2, groups: 1, c: 1 + i%3, same: i%2 == 0, depthwise: i%4 == 3, in: [3]int{1, 5, 4}, k: [3]int{1, 1 + i%3, 2}, stride: [3]int{1, 1 + i%2, 1}, dil: [3]int{1, 1, 1}, oc: 3}
		if s.depthwise {
			s.groups, s.oc = s.c, 2*s.c
		}
		for d := range 3 {
			s.out[d], s.pad[d] = window(s.in[d], s.k[d], s.stride[d], s.dil[d], s.same)
		}
		taps, per, act := elements(s.k[:]...), s.c/s.groups, clamps[i%4]
		q := numbers{x: f32, w: i8, out: f32, sx: 1, so: 1, sw: []float64{0.5}}
		if i%3 == 0 {
			for len(q.sw) < s.oc {
				q.sw = append(q.sw, math.Ldexp(1, -r.IntN(3)))
			}
		}
		lo, hi := -127, 127
		if asym := s.depthwise || len(q.sw) > 1; asym {
			lo, hi = -128, 127
		}
		x, w, b := optest.Draw(r, s.n*elements(s.in[:]...)*s.c, lo, hi), optest.Draw(r, taps*per*s.oc, -128, 127), optest.Draw(r, s.oc, -9, 9)
		for n := range s.n { // each image has the whole range
			x[n*len(x)/s.n], x[n*len(x)/s.n+1] = float64(lo), float64(hi)
		}
		name, shape := "CONV_2D", []int{s.oc, s.k[1], s.k[2], per}
		filter := func(tap, i, o int) float64 { return w[(o*taps+tap)*per+i] }
		if s.depthwise {
			name, shape = "DEPTHWISE_CONV_2D", []int{1, s.k[1], s.k[2], s.oc}
			filter = func(tap, _, o int) float64 { return w[tap*s.oc+o] }
		}
		var want []float64
		for k, v := range s.sums(x, filter) {
			want = append(want, min(max(v*q.sw[min(k%s.oc, len(q.sw)-1)]+b[k%s.oc], act.lo), act.hi))
		}
		_, _, _ = q.quants(0)
		n := optest.Lite(name, s.attrs(act.name), f32, nil)
		check(t, "hybrid "+name, n, &q, []int{s.n, s.out[1], s.out[2], s.oc}, want, optest.Of(f32, nil, []int{s.n, s.in[1], s.in[2], s.c}, x...), optest.Of(i8, optest.Rounded(0, q.sw...), shape, w...), optest.Of(f32, nil, []int{s.oc}, b...))
	}
}

func TestTransposeConv(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for _, types := range pairs {
		if types[1] == i4 {
			continue
		}
		for i := range 40 {
			// The window goes from the data to the output.
			s := spec{n: 1 + r.IntN(2), groups: 1, c: 1 + r.IntN(4), oc: 1 + r.IntN(5), same: i%2 == 0, transpose: true, k: [3]int{1, 1 + r.IntN(3), 1 + r.IntN(3)}, dil: [3]int{1, 1, 1}}
			s.stride, s.out = [3]int{1, 1 + r.IntN(3), 1 + r.IntN(3)}, [3]int{1, 3 + r.IntN(6), 3 + r.IntN(6)}
			bias := i%3 == 0 // the operator that derives the size itself
			if bias {
				s.in = [3]int{1, 1 + r.IntN(4), 1 + r.IntN(4)}
				for d := range 3 {
					if s.out[d] = (s.in[d]-1)*s.stride[d] + s.k[d]; s.same {
						s.out[d] = s.in[d] * s.stride[d]
					}
				}
			}
			for d := range 3 {
				n, pad := window(s.out[d], s.k[d], s.stride[d], 1, s.same)
				if s.pad[d] = pad; !bias {
					s.in[d] = n
				}
			}
			taps := elements(s.k[:]...)
			q := choose(r, i, taps*s.c, s.oc, types[0], types[1], true)
			act := clamps[i%4]
			xlo, xhi := optest.Ends(q.x)
			wlo, whi := optest.Ends(q.w)
			x, w, b := optest.Draw(r, s.n*elements(s.in[:]...)*s.c, xlo, xhi), optest.Draw(r, taps*s.c*s.oc, wlo, whi), optest.Draw(r, s.oc, -3000, 3000)
			if q.x == f32 {
				b = optest.Draw(r, s.oc, -9, 9)
			}
			filter := func(tap, i, o int) float64 { return w[(o*taps+tap)*s.c+i] - float64(q.zw) }
			want := q.finish(s.sums(less(x, q.zx), filter), b, act.lo, act.hi)
			qx, qw, qo := q.quants(0)
			data, weights, biases := optest.Of(q.x, qx, []int{s.n, s.in[1], s.in[2], s.c}, x...), optest.Of(q.w, qw, []int{s.oc, s.k[1], s.k[2], s.c}, w...), optest.Of(q.bias, nil, []int{s.oc}, b...)
			shape := []int{s.n, s.out[1], s.out[2], s.oc}
			n := optest.Lite("TRANSPOSE_CONV", s.attrs(act.name), q.out, qo)
			what := "transposed " + q.x.String()
			if bias {
				n.Domain, n.Op = graph.TFLiteCustom, "Convolution2DTransposeBias"
				if i%2 == 1 { // options as the custom operator packs them
					delete(n.Attrs, "padding")
					n.Attrs["custom_options"] = []byte{2, 0, 0, 0, byte(s.stride[2]), 0, 0, 0, byte(s.stride[1]), 0, 0, 0}
				} else {
					n.Attrs["custom_options"] = []byte{1, 0, 0, 0, byte(s.stride[2]), 0, 0, 0, byte(s.stride[1]), 0, 0, 0}
					n.Attrs["stride_w"] = int64(9)
				}
				check(t, what+" with biases", n, &q, shape, want, data, weights, biases)
				continue
			}
			to := optest.Row(i32, nil, float64(shape[0]), float64(shape[1]), float64(shape[2]), float64(shape[3]))
			check(t, what, n, &q, shape, want, to, weights, data, biases)
			if q.x != i16 {
				want = q.finish(s.sums(less(x, q.zx), filter), make([]float64, s.oc), act.lo, act.hi)
				check(t, what+" without biases", n, &q, shape, want, to, weights, data)
			}
		}
	}
}

func TestConv3D(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	for i := range 62 {
		s := spec{n: 1 + r.IntN(2), groups: 1, c: 1 + r.IntN(3), oc: 1 + r.IntN(3), same: i%2 == 0, transpose: i%3 == 0}
		if i >= 60 {
			s.transpose, s.c = false, 300 // windows too large to be gathered all at once
		}
		for d := range 3 {
			s.in[d], s.k[d], s.stride[d], s.dil[d] = 1+r.IntN(5), 1+r.IntN(3), 1+r.IntN(2), 1+r.IntN(2)
			if i >= 60 {
				s.in[d], s.k[d], s.stride[d] = 5+r.IntN(2), 2, 1
			}
			s.out[d], s.pad[d] = window(s.in[d], s.k[d], s.stride[d], s.dil[d], s.same)
			if s.transpose {
				s.out[d] = s.in[d]
				s.in[d], s.pad[d] = window(s.out[d], s.k[d], s.stride[d], s.dil[d], s.same)
			}
		}
		if elements(s.in[:]...) == 0 {
			continue
		}
		taps, act := elements(s.k[:]...), clamps[i%4]
		q := numbers{x: f32, w: f32, out: f32, sx: 1, so: 1, sw: []float64{1}}
		x, w, b := optest.Draw(r, s.n*elements(s.in[:]...)*s.c, -9, 9), optest.Draw(r, taps*s.c*s.oc, -9, 9), optest.Draw(r, s.oc, -9, 9)
		filter := func(tap, i, o int) float64 { return w[(tap*s.c+i)*s.oc+o] }
		shape, data := []int{s.n, s.out[0], s.out[1], s.out[2], s.oc}, optest.Of(f32, nil, []int{s.n, s.in[0], s.in[1], s.in[2], s.c}, x...)
		biases := optest.Of(f32, nil, []int{s.oc}, b...)
		if !s.transpose {
			want := q.finish(s.sums(x, filter), b, act.lo, act.hi)
			weights := optest.Of(f32, nil, []int{s.k[0], s.k[1], s.k[2], s.c, s.oc}, w...)
			check(t, "volume", optest.Lite("CONV_3D", s.attrs(act.name), f32, nil), &q, shape, want, data, weights, biases)
			want = q.finish(s.sums(x, filter), make([]float64, s.oc), act.lo, act.hi)
			plain := optest.Lite("CONV_3D", s.attrs(act.name), f32, nil)
			check(t, "volume without biases", plain, &q, shape, want, data, weights)
			plain.Const = nil
			check(t, "volume with weights that may change", plain, &q, shape, want, data, weights)
			continue
		}
		filter = func(tap, i, o int) float64 { return w[(tap*s.oc+o)*s.c+i] }
		want := q.finish(s.sums(x, filter), b, act.lo, act.hi)
		to := optest.Row(i32, nil, float64(shape[0]), float64(shape[1]), float64(shape[2]), float64(shape[3]), float64(shape[4]))
		weights := optest.Of(f32, nil, []int{s.k[0], s.k[1], s.k[2], s.oc, s.c}, w...)
		check(t, "transposed volume", optest.Lite("CONV_3D_TRANSPOSE", s.attrs(act.name), f32, nil), &q, shape, want, to, weights, data, biases)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	q := optest.Rounded(0, 1)
	of := func(typ tensor.Type, q *tensor.Quant, shape ...int) *tensor.Tensor { return optest.Of(typ, q, shape) }
	x, w := of(f32, nil, 1, 4, 4, 2), of(f32, nil, 3, 2, 2, 2)
	qx, qw := of(i8, q, 1, 4, 4, 2), of(i8, q, 3, 2, 2, 2)
	to := optest.Row(i32, nil, 1, 4, 4, 3)
	vx, vw := of(f32, nil, 1, 4, 4, 4, 2), of(f32, nil, 2, 2, 2, 2, 3)
	tanh := graph.Attrs{"fused_activation_function": "TANH"}
	for _, c := range []struct {
		what, op string
		attrs    graph.Attrs
		out      tensor.Type
		qo       *tensor.Quant
		text     string
		in       []*tensor.Tensor
	}{
		{"rank of data", "CONV_2D", nil, f32, nil, "input 0 has rank 3", []*tensor.Tensor{of(f32, nil, 4, 4, 2), w}},
		{"rank of filter", "CONV_2D", nil, f32, nil, "input 1 has rank 2", []*tensor.Tensor{x, of(f32, nil, 2, 2)}},
		{"no filter", "CONV_2D", nil, f32, nil, "input 1 is missing", []*tensor.Tensor{x}},
		{"stride", "CONV_2D", graph.Attrs{"stride_w": int64(0)}, f32, nil, "stride 0x1", []*tensor.Tensor{x, w}},
		{"channels", "CONV_2D", nil, f32, nil, "filter takes 3 channels, input has 2", []*tensor.Tensor{x, of(f32, nil, 3, 2, 2, 3)}},
		{"no channels", "CONV_2D", nil, f32, nil, "filter takes 0 channels, input has 2", []*tensor.Tensor{x, of(f32, nil, 3, 2, 2, 0)}},
		{"groups", "CONV_2D", nil, f32, nil, "3 output channels in 2 groups", []*tensor.Tensor{x, of(f32, nil, 3, 2, 2, 1)}},
		{"no height", "CONV_2D", nil, f32, nil, "filter of 2x0", []*tensor.Tensor{x, of(f32, nil, 3, 0, 2, 2)}},
		{"no width", "CONV_2D", nil, f32, nil, "filter of 0x2", []*tensor.Tensor{x, of(f32, nil, 3, 2, 0, 2)}},
		{"biases", "CONV_2D", nil, f32, nil, "2 biases for 3 output channels", []*tensor.Tensor{x, w, of(f32, nil, 2)}},
		{"depthwise filter", "DEPTHWISE_CONV_2D", nil, f32, nil, "depthwise filter 3x2x2x2 does not begin with 1", []*tensor.Tensor{x, w}},
		{"multiplier", "DEPTHWISE_CONV_2D", nil, f32, nil, "3 output channels are not a multiple of 2", []*tensor.Tensor{x, of(f32, nil, 1, 2, 2, 3)}},
		{"no channels at all", "DEPTHWISE_CONV_2D", nil, f32, nil, "not a multiple of 0", []*tensor.Tensor{of(f32, nil, 1, 4, 4, 0), of(f32, nil, 1, 2, 2, 3)}},
		{"activation", "CONV_2D", tanh, f32, nil, "fused activation TANH", []*tensor.Tensor{x, w}},
		{"activation of bytes", "CONV_2D", tanh, i8, q, "fused activation TANH", []*tensor.Tensor{qx, qw}},
		{"activation of words", "CONV_2D", tanh, i16, q, "fused activation TANH", []*tensor.Tensor{of(i16, q, 1, 4, 4, 2), qw}},
		{"activation beside bytes", "CONV_2D", tanh, f32, nil, "fused activation TANH", []*tensor.Tensor{x, qw}},
		{"types", "CONV_2D", nil, i8, q, "int8 input with uint8 weights", []*tensor.Tensor{qx, of(u8, q, 3, 2, 2, 2)}},
		{"output", "CONV_2D", nil, u8, q, "int8 input with uint8 output", []*tensor.Tensor{qx, qw}},
		{"wide output", "CONV_2D", nil, i8, q, "int16 input with int8 output", []*tensor.Tensor{of(i16, q, 1, 4, 4, 2), qw}},
		{"no scale of data", "CONV_2D", nil, i8, q, "without quantisation", []*tensor.Tensor{of(i8, nil, 1, 4, 4, 2), qw}},
		{"no scale of weights", "CONV_2D", nil, i8, q, "without quantisation", []*tensor.Tensor{qx, of(i8, nil, 3, 2, 2, 2)}},
		{"no scale of output", "CONV_2D", nil, i8, nil, "without quantisation", []*tensor.Tensor{qx, qw}},
		{"scales", "CONV_2D", nil, i8, q, "2 scales for 3 channels", []*tensor.Tensor{qx, of(i8, optest.Rounded(0, 1, 1), 3, 2, 2, 2)}},
		{"scales beside floats", "CONV_2D", nil, f32, nil, "2 scales for 3 channels", []*tensor.Tensor{x, of(i8, optest.Rounded(0, 1, 1), 3, 2, 2, 2)}},
		{"float biases", "CONV_2D", nil, i8, q, "float32 biases", []*tensor.Tensor{qx, qw, of(f32, nil, 3)}},
		{"wide biases", "CONV_2D", nil, i16, q, "int8 biases", []*tensor.Tensor{of(i16, q, 1, 4, 4, 2), qw, of(i8, nil, 3)}},
		{"no shape", "TRANSPOSE_CONV", nil, f32, nil, "input 0 (the output shape) is missing", []*tensor.Tensor{nil, w, x}},
		{"short shape", "TRANSPOSE_CONV", nil, f32, nil, "output shape has 3 dimensions", []*tensor.Tensor{optest.Row(i32, nil, 1, 4, 4), w, x}},
		{"negative shape", "TRANSPOSE_CONV", nil, f32, nil, "output shape [1 4 -4 3]", []*tensor.Tensor{optest.Row(i32, nil, 1, 4, -4, 3), w, x}},
		{"batch", "TRANSPOSE_CONV", nil, f32, nil, "does not fit batch 1 and 3 channels", []*tensor.Tensor{optest.Row(i32, nil, 2, 4, 4, 3), w, x}},
		{"channels of shape", "TRANSPOSE_CONV", nil, f32, nil, "does not fit batch 1 and 3 channels", []*tensor.Tensor{optest.Row(i32, nil, 1, 4, 4, 2), w, x}},
		{"transposed rank", "TRANSPOSE_CONV", nil, f32, nil, "input 2 has rank 1", []*tensor.Tensor{to, w, of(f32, nil, 2)}},
		{"transposed filter", "TRANSPOSE_CONV", nil, f32, nil, "input 1 has rank 1", []*tensor.Tensor{to, of(f32, nil, 2), x}},
		{"transposed channels", "TRANSPOSE_CONV", nil, f32, nil, "filter takes 1 channels, input has 2", []*tensor.Tensor{to, of(f32, nil, 3, 2, 2, 1), x}},
		{"transposed biases", "TRANSPOSE_CONV", nil, f32, nil, "2 biases for 3 channels", []*tensor.Tensor{to, w, x, of(f32, nil, 2)}},
		{"transposed stride", "TRANSPOSE_CONV", graph.Attrs{"stride_h": int64(0)}, f32, nil, "stride 1x0", []*tensor.Tensor{to, w, x}},
		{"transposed types", "TRANSPOSE_CONV", nil, i8, q, "int8 input with uint8 weights", []*tensor.Tensor{to, of(u8, q, 3, 2, 2, 2), qx}},
		{"transposed activation", "TRANSPOSE_CONV", tanh, f32, nil, "fused activation TANH", []*tensor.Tensor{to, w, x}},
		{"transposed, no scale", "TRANSPOSE_CONV", nil, i8, q, "without quantisation", []*tensor.Tensor{to, qw, of(i8, nil, 1, 4, 4, 2)}},
		{"transposed wide biases", "TRANSPOSE_CONV", nil, i16, q, "int8 biases", []*tensor.Tensor{to, qw, of(i16, q, 1, 4, 4, 2), of(i8, nil, 3)}},
		{"volume rank", "CONV_3D", nil, f32, nil, "input 0 has rank 4", []*tensor.Tensor{x, vw}},
		{"volume filter", "CONV_3D", nil, f32, nil, "input 1 has rank 4", []*tensor.Tensor{vx, w}},
		{"volume stride", "CONV_3D", graph.Attrs{"stride_d": int64(0)}, f32, nil, "stride 0, filter 2", []*tensor.Tensor{vx, vw}},
		{"empty volume filter", "CONV_3D", nil, f32, nil, "stride 1, filter 0", []*tensor.Tensor{vx, of(f32, nil, 2, 2, 0, 2, 3)}},
		{"volume channels", "CONV_3D", nil, f32, nil, "filter takes 1 channels, input has 2", []*tensor.Tensor{vx, of(f32, nil, 2, 2, 2, 1, 3)}},
		{"volume biases", "CONV_3D", nil, f32, nil, "2 biases for 3 channels", []*tensor.Tensor{vx, vw, of(f32, nil, 2)}},
		{"volume of bytes", "CONV_3D", nil, i8, q, "int8 input", []*tensor.Tensor{of(i8, q, 1, 4, 4, 4, 2), vw}},
		{"volume activation", "CONV_3D", tanh, f32, nil, "fused activation TANH", []*tensor.Tensor{vx, vw}},
		{"transposed volume shape", "CONV_3D_TRANSPOSE", nil, f32, nil, "is missing", []*tensor.Tensor{nil, vw, vx}},
		{"transposed volume short", "CONV_3D_TRANSPOSE", nil, f32, nil, "output shape [1 4 4 4]", []*tensor.Tensor{optest.Row(i32, nil, 1, 4, 4, 4), of(f32, nil, 2, 2, 2, 3, 2), vx}},
		{"transposed volume fit", "CONV_3D_TRANSPOSE", nil, f32, nil, "do not fit", []*tensor.Tensor{optest.Row(i32, nil, 1, 4, 4, 4, 2), of(f32, nil, 2, 2, 2, 3, 2), vx}},
		{"transposed volume batch", "CONV_3D_TRANSPOSE", nil, f32, nil, "do not fit", []*tensor.Tensor{optest.Row(i32, nil, 2, 4, 4, 4, 3), of(f32, nil, 2, 2, 2, 3, 2), vx}},
		{"transposed volume biases", "CONV_3D_TRANSPOSE", nil, f32, nil, "do not fit", []*tensor.Tensor{optest.Row(i32, nil, 1, 4, 4, 4, 3), of(f32, nil, 2, 2, 2, 3, 2), vx, of(f32, nil, 2)}},
		{"transposed volume negative", "CONV_3D_TRANSPOSE", nil, f32, nil, "", []*tensor.Tensor{optest.Row(i32, nil, 1, -4, 4, 4, 3), of(f32, nil, 2, 2, 2, 3, 2), vx}},
	} {
		optest.Refused(t, c.what, Defs(), optest.Lite(c.op, c.attrs, c.out, c.qo), c.text, c.in...)
	}
	for _, c := range []struct {
		op    string
		open  int
		in    []*tensor.Tensor
		wide  bool
		words string
	}{
		{"CONV_2D", 1, []*tensor.Tensor{qx, qw}, false, "integer weights that are not constant"},
		{"CONV_2D", 2, []*tensor.Tensor{qx, qw, of(i32, nil, 3)}, false, "integer weights that are not constant"},
		{"TRANSPOSE_CONV", 1, []*tensor.Tensor{to, qw, qx}, false, "integer weights that are not constant"},
		{"TRANSPOSE_CONV", 1, []*tensor.Tensor{to, qw, of(i16, q, 1, 4, 4, 2)}, true, "integer weights that are not constant"},
		{"TRANSPOSE_CONV", 3, []*tensor.Tensor{to, qw, of(i16, q, 1, 4, 4, 2), of(i64, nil, 3)}, true, "biases that are not constant"},
	} {
		n := optest.Lite(c.op, nil, i8, q)
		if c.wide {
			n.OutTypes[0] = i16
		}
		n.Const[c.open] = false
		optest.Refused(t, c.op+" open", Defs(), n, c.words, c.in...)
	}
	n := optest.Lite("CONV_2D", nil, f32, nil)
	n.Const[2] = false
	optest.Refused(t, "open biases beside bytes", Defs(), n, "a bias that is not constant", x, qw, of(f32, nil, 3))
}
