package recurrent

import (
	"fmt"
	"math"
	"strings"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/kernel/vecmath"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Activation is a gate's function.
type Activation func(x float64) float64

// Sigmoid is the logistic function.
func Sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// newActivations reads the activations of all directions with their alpha and beta, which are
// listed only for the functions that use them. double selects float64 accuracy.
func newActivations(a graph.Attrs, dirs int, defaults []string, double bool) ([][]Activation, error) {
	names := a.Strs("activations")
	if len(names) == 0 {
		for range dirs {
			names = append(names, defaults...)
		}
	}
	if len(names) != dirs*len(defaults) {
		return nil, fmt.Errorf("%d activations, want %d", len(names), dirs*len(defaults))
	}
	alphas, betas := a.Floats("activation_alpha"), a.Floats("activation_beta")
	take := func(list *[]float32, def float64) float64 {
		if len(*list) == 0 {
			return def
		}
		v := (*list)[0]
		*list = (*list)[1:]
		return float64(v)
	}
	var all []Activation
	for _, n := range names {
		var f Activation
		switch strings.ToLower(n) {
		case "sigmoid":
			if f = Sigmoid; !double {
				f = func(x float64) float64 { return float64(vecmath.Sigmoid(float32(x))) }
			}
		case "tanh":
			if f = math.Tanh; !double {
				f = func(x float64) float64 { return float64(vecmath.Tanh(float32(x))) }
			}
		case "relu":
			f = func(x float64) float64 { return max(x, 0) }
		case "softsign":
			f = func(x float64) float64 { return x / (1 + math.Abs(x)) }
		case "softplus":
			f = func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
		case "affine":
			al, be := take(&alphas, 1), take(&betas, 0)
			f = func(x float64) float64 { return al*x + be }
		case "leakyrelu":
			al := take(&alphas, 0.01)
			f = func(x float64) float64 {
				if x < 0 {
					return al * x
				}
				return x
			}
		case "thresholdedrelu":
			al := take(&alphas, 1)
			f = func(x float64) float64 {
				if x > al {
					return x
				}
				return 0
			}
		case "scaledtanh":
			al, be := take(&alphas, 1), take(&betas, 1)
			f = func(x float64) float64 { return al * math.Tanh(be*x) }
		case "hardsigmoid":
			al, be := take(&alphas, 0.2), take(&betas, 0.5)
			f = func(x float64) float64 { return min(max(al*x+be, 0), 1) }
		case "elu":
			al := take(&alphas, 1)
			f = func(x float64) float64 {
				if x < 0 {
					return al * math.Expm1(x)
				}
				return x
			}
		default:
			return nil, op.Unsupported("activation %q", n)
		}
		all = append(all, f)
	}
	out := make([][]Activation, dirs)
	for d := range out {
		out[d] = all[d*len(defaults):][:len(defaults)]
	}
	return out, nil
}

// inVectors reports whether whole rows of gates use the default functions in float32.
func (q *recurrent[T]) inVectors() bool {
	_, single := any(q.pre).([]float32)
	return single && q.usual
}

// sumTo adds b to dst.
func sumTo[T tensor.Real](dst, b []T) {
	b = b[:len(dst)]
	if d, ok := any(dst).([]float32); ok {
		if e := simd.ElementKernels(); e != nil {
			e.Add(d, d, any(b).([]float32))
			return
		}
	}
	for j, v := range b {
		dst[j] += v
	}
}

// timesTo multiplies dst by b.
func timesTo[T tensor.Real](dst, b []T) {
	b = b[:len(dst)]
	if d, ok := any(dst).([]float32); ok {
		if e := simd.ElementKernels(); e != nil {
			e.Mul(d, d, any(b).([]float32))
			return
		}
	}
	for j, v := range b {
		dst[j] *= v
	}
}

func sigmoids[T tensor.Real](v []T) {
	f := any(v).([]float32)
	vecmath.SigmoidTo(f, f)
}

func tanhs[T tensor.Real](v []T) {
	f := any(v).([]float32)
	vecmath.TanhTo(f, f)
}

func inferCell(gates int, defaults ...string) func(*op.Call) error {
	return op.Needs(3, op.Infer(func(c *op.Call) (*recurrentShape, error) { return newRecurrent(c, gates, defaults...) }))
}

// RNN: h = f(x·Wᵀ + h·Rᵀ + b).

func prepareRNN[T tensor.Real](c *op.Call) (op.Run, error) {
	v := op.Must(newRecurrent(c, 1, "Tanh"))
	return prepareRecurrent(c, v, func(q *recurrent[T], c *op.Call, dir int, live []int) {
		q.project(c, dir, q.h, 0, 1)
		f, n := q.acts[dir][0], q.hidden
		for _, b := range live {
			for j := b * n; j < (b+1)*n; j++ {
				q.h[j] = T(f(q.limit(float64(q.pre[j] + q.rec[j]))))
			}
		}
	})
}

// GRU: gates are update z, reset r, hidden h.

func prepareGRU[T tensor.Real](c *op.Call) (op.Run, error) {
	v := op.Must(newRecurrent(c, 3, "Sigmoid", "Tanh"))
	return prepareRecurrent(c, v, gruStep[T])
}

func gruStep[T tensor.Real](q *recurrent[T], c *op.Call, dir int, live []int) {
	n := q.hidden
	f, g := q.acts[dir][0], q.acts[dir][1]
	if q.linearBeforeReset {
		q.project(c, dir, q.h, 0, 3)
	} else {
		q.project(c, dir, q.h, 0, 2)
	}
	for _, b := range live {
		pre, rec := q.pre[b*3*n:][:3*n], q.rec[b*3*n:][:3*n]
		if q.inVectors() {
			sumTo(pre[:2*n], rec)
			sigmoids(pre[:2*n])
		} else {
			for j := range 2 * n {
				pre[j] = T(f(q.limit(float64(pre[j] + rec[j]))))
			}
		}
		if !q.linearBeforeReset {
			copy(q.tmp[b*n:][:n], q.h[b*n:])
			timesTo(q.tmp[b*n:][:n], pre[n:])
		}
	}
	if !q.linearBeforeReset {
		q.project(c, dir, q.tmp, 2, 3)
	}
	for _, b := range live {
		pre, rec, h := q.pre[b*3*n:][:3*n], q.rec[b*3*n:][:3*n], q.h[b*n:][:n]
		if q.inVectors() {
			s, r := pre[2*n:], rec[2*n:]
			if q.linearBeforeReset {
				timesTo(r, pre[n:])
			}
			sumTo(s, r)
			tanhs(s)
			z := pre[:n]
			timesTo(h, z)
			for j := range z {
				z[j] = 1 - z[j]
			}
			timesTo(s, z)
			sumTo(h, s)
			continue
		}
		for j := range h {
			r := rec[2*n+j]
			if q.linearBeforeReset {
				r *= pre[n+j]
			}
			s := T(g(q.limit(float64(pre[2*n+j] + r))))
			z := pre[j]
			h[j] = (1-z)*s + z*h[j]
		}
	}
}

// LSTM: gates are input i, output o, forget f, cell c; peepholes i, o, f.

func prepareLSTM[T tensor.Real](c *op.Call) (op.Run, error) {
	v := op.Must(newRecurrent(c, 4, "Sigmoid", "Tanh", "Tanh"))
	return prepareRecurrent(c, v, lstmStep[T])
}

func lstmStep[T tensor.Real](q *recurrent[T], c *op.Call, dir int, live []int) {
	n := q.hidden
	f, g, k := q.acts[dir][0], q.acts[dir][1], q.acts[dir][2]
	q.project(c, dir, q.h, 0, 4)
	var peep []T
	if p := elem.Elements[T](c, inP); p != nil {
		peep = p[dir*3*n:][:3*n]
	}
	for _, b := range live {
		pre, rec := q.pre[b*4*n:][:4*n], q.rec[b*4*n:][:4*n]
		h, cell := q.h[b*n:][:n], q.c[b*n:][:n]
		if q.inVectors() {
			sumTo(pre, rec)
			see := func(gate, state, weights []T) {
				tmp := q.tmp[b*n:][:n]
				copy(tmp, state)
				timesTo(tmp, weights)
				sumTo(gate, tmp)
			}
			in, out, forget := pre[:n], pre[n:2*n], pre[2*n:3*n]
			if peep != nil {
				see(in, cell, peep[:n])
				see(forget, cell, peep[2*n:])
				sigmoids(in)
				sigmoids(forget)
			} else {
				sigmoids(pre[:3*n])
			}
			if q.inputForget {
				for j, v := range in {
					forget[j] = 1 - v
				}
			}
			tanhs(pre[3*n:])
			timesTo(cell, forget)
			timesTo(in, pre[3*n:])
			sumTo(cell, in)
			if peep != nil {
				see(out, cell, peep[n:2*n])
				sigmoids(out)
			}
			copy(h, cell)
			tanhs(h)
			timesTo(h, out)
			continue
		}
		for j := range h {
			i, o := float64(pre[j]+rec[j]), float64(pre[n+j]+rec[n+j])
			fg, cc := float64(pre[2*n+j]+rec[2*n+j]), float64(pre[3*n+j]+rec[3*n+j])
			old := float64(cell[j])
			if peep != nil {
				i += float64(peep[j]) * old
				fg += float64(peep[2*n+j]) * old
			}
			i = f(q.limit(i))
			if q.inputForget {
				fg = 1 - i
			} else {
				fg = f(q.limit(fg))
			}
			now := fg*old + i*g(q.limit(cc))
			if peep != nil {
				o += float64(peep[n+j]) * now
			}
			cell[j] = T(now)
			h[j] = T(f(q.limit(o)) * k(now))
		}
	}
}
