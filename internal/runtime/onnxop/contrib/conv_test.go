package contrib

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// layout is a random window geometry, written independently of the code under test.
type layout struct {
	in, kernel, stride, dilation, begin, end []int
}

func (l layout) attrs() graph.Attrs {
	return graph.Attrs{"strides": ints(l.stride...), "dilations": ints(l.dilation...), "pads": append(ints(l.begin...), ints(l.end...)...)}
}

func (l layout) out(i int) int {
	return (l.in[i]+l.begin[i]+l.end[i]-l.dilation[i]*(l.kernel[i]-1)-1)/l.stride[i] + 1
}

func (l layout) sizes() []int {
	s := make([]int, len(l.in))
	for i := range s {
		s[i] = l.out(i)
	}
	return s
}

func drawLayout(t *rapid.T, rank int) layout {
	var l layout
	for i := range rank {
		draw := func(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, fmt.Sprint(name, i)) }
		k, d := draw("kernel", 1, 3), draw("dilation", 1, 2)
		l.kernel, l.dilation = append(l.kernel, k), append(l.dilation, d)
		l.in = append(l.in, d*(k-1)+draw("size", 1, 6))
		l.stride = append(l.stride, draw("stride", 1, 3))
		l.begin, l.end = append(l.begin, draw("begin", 0, k-1)), append(l.end, draw("end", 0, k-1))
	}
	return l
}

// naiveConv follows the definition element by element.
func naiveConv(l layout, n, c, m, groups int, x, w, b func(i int) float64) []float64 {
	out := l.sizes()
	area, outArea, taps := tensor.Elements(l.in), tensor.Elements(out), tensor.Elements(l.kernel)
	y := make([]float64, n*m*outArea)
	cg, mg := c/groups, m/groups
	at, tap := make([]int, len(out)), make([]int, len(out))
	for i := range y {
		o, oc, batch := i%outArea, i/outArea%m, i/outArea/m
		tensor.Unravel(o, out, at)
		y[i] = b(oc)
		for k := range cg * taps {
			tensor.Unravel(k%taps, l.kernel, tap)
			pos, inside := 0, true
			for d := range at {
				p := at[d]*l.stride[d] - l.begin[d] + tap[d]*l.dilation[d]
				inside = inside && p >= 0 && p < l.in[d]
				pos = pos*l.in[d] + p
			}
			if inside {
				y[i] += x((batch*c+oc/mg*cg+k/taps)*area+pos) * w(oc*cg*taps+k)
			}
		}
	}
	return y
}

func reader(x *tensor.Tensor) func(int) float64 {
	return func(i int) float64 { return tensor.At(x, i) }
}

func TestConv(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawLayout(t, rapid.IntRange(1, 3).Draw(t, "rank"))
		kind := rapid.SampledFrom(elem.Floats).Draw(t, "type")
		groups := rapid.IntRange(1, 3).Draw(t, "groups")
		n, c, m := rapid.IntRange(1, 2).Draw(t, "n"), groups*rapid.IntRange(1, 3).Draw(t, "c"), groups*rapid.IntRange(1, 3).Draw(t, "m")
		constant := rapid.Bool().Draw(t, "constant")
		r := source(rapid.Uint64().Draw(t, "seed"))
		x, b := random(r, kind, append([]int{n, c}, l.in...)...), random(r, kind, m)
		w := random(r, kind, append([]int{m, c / groups}, l.kernel...)...)
		a := l.attrs()
		a["group"] = int64(groups)
		out, err := optest.Run(defs, optest.Node{Op: "Conv", Version: 22, Attrs: a, Const: []bool{false, constant, constant}}, x, w, b)
		if err != nil {
			t.Fatal(err)
		}
		want := naiveConv(l, n, c, m, groups, reader(x), reader(w), reader(b))
		compare(t, out[0], want, tolerance(kind))
	})
}

func compare(t *rapid.T, got *tensor.Tensor, want []float64, tol float64) {
	optest.Near(t, "output", got, want, tol, tol)
}

func TestConvInteger(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawLayout(t, 2)
		kind := rapid.SampledFrom(elem.Bytes).Draw(t, "type")
		r := source(rapid.Uint64().Draw(t, "seed"))
		n, c, m := 1, 3, 2
		x, w := random(r, kind, append([]int{n, c}, l.in...)...), random(r, kind, append([]int{m, c}, l.kernel...)...)
		xz, wz := random(r, kind), random(r, kind, m)
		out, err := optest.Run(defs, optest.Node{Op: "ConvInteger", Version: 10, Attrs: l.attrs(), Const: []bool{false, r.IntN(2) == 0, true, true}}, x, w, xz, wz)
		if err != nil {
			t.Fatal(err)
		}
		per := w.Len() / m
		want := naiveConv(l, n, c, m, 1, func(i int) float64 { return tensor.At(x, i) - tensor.At(xz, 0) },
			func(i int) float64 { return tensor.At(w, i) - tensor.At(wz, i/per) }, func(int) float64 { return 0 })
		compare(t, out[0], want, 0)
	})
}

// TestConvTranspose uses that a transposed convolution is the adjoint of a convolution: <conv(x),
// y> = <x, transposed(y)> for all x, so that element i of the transposed result is <conv(e_i),
// y>.
func TestConvTranspose(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawLayout(t, rapid.IntRange(1, 3).Draw(t, "rank"))
		kind := rapid.SampledFrom(elem.Floats).Draw(t, "type")
		groups := rapid.IntRange(1, 2).Draw(t, "groups")
		// The convolution maps m channels to c; its adjoint goes the other way.
		c, m := 2*groups, groups*rapid.IntRange(1, 2).Draw(t, "m")
		r := source(rapid.Uint64().Draw(t, "seed"))
		out := l.sizes()
		x, w := random(r, kind, append([]int{1, c}, out...)...), random(r, kind, append([]int{c, m / groups}, l.kernel...)...)
		extra := make([]int, len(l.in))
		for i := range extra { // input elements that no window reaches
			extra[i] = l.in[i] - ((out[i]-1)*l.stride[i] + (l.kernel[i]-1)*l.dilation[i] + 1 - l.begin[i] - l.end[i])
		}
		a := l.attrs()
		a["group"], a["output_padding"] = int64(groups), ints(extra...)
		got, err := optest.Run(defs, optest.Node{Op: "ConvTranspose", Version: 22, Attrs: a}, x, w)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]float64, m*tensor.Elements(l.in))
		for i := range want {
			unit := func(j int) float64 {
				if i == j {
					return 1
				}
				return 0
			}
			for j, v := range naiveConv(l, 1, m, c, groups, unit, reader(w), func(int) float64 { return 0 }) {
				want[i] += v * tensor.At(x, j)
			}
		}
		compare(t, got[0], want, tolerance(kind))
	})
}

func TestPools(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawLayout(t, rapid.IntRange(1, 3).Draw(t, "rank"))
		kind := rapid.SampledFrom(elem.Floats).Draw(t, "type")
		include := rapid.Bool().Draw(t, "include")
		r := source(rapid.Uint64().Draw(t, "seed"))
		x := random(r, kind, append([]int{1, 2}, l.in...)...)
		a := l.attrs()
		a["kernel_shape"], a["count_include_pad"] = ints(l.kernel...), include
		out, area := l.sizes(), tensor.Elements(l.in)
		n := 2 * tensor.Elements(out)
		biggest, mean, length, where := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
		at, tap := make([]int, len(out)), make([]int, len(out))
		for i := range n {
			tensor.Unravel(i%tensor.Elements(out), out, at)
			biggest[i] = math.Inf(-1)
			seen := 0.0
			for k := range tensor.Elements(l.kernel) {
				tensor.Unravel(k, l.kernel, tap)
				pos, inside := 0, true
				for d := range at {
					p := at[d]*l.stride[d] - l.begin[d] + tap[d]*l.dilation[d]
					inside = inside && p >= 0 && p < l.in[d]
					pos = pos*l.in[d] + p
				}
				if !inside {
					continue
				}
				pos += i / tensor.Elements(out) * area
				v := tensor.At(x, pos)
				if v > biggest[i] {
					biggest[i], where[i] = v, float64(pos)
				}
				mean[i] += v
				length[i] += math.Abs(v * v * v)
				seen++
			}
			if include {
				seen = float64(tensor.Elements(l.kernel))
			}
			if seen > 0 {
				mean[i] /= seen
			}
			length[i] = math.Cbrt(length[i])
			if math.IsInf(biggest[i], -1) {
				t.Skip("a window lies in the padding alone")
			}
		}
		run := func(op string, outputs int) []*tensor.Tensor {
			a["p"] = int64(3)
			y, err := optest.Run(defs, optest.Node{Op: op, Version: 22, Attrs: a, Outputs: outputs}, x)
			if err != nil {
				t.Fatal(err)
			}
			return y
		}
		compare(t, run("AveragePool", 1)[0], mean, tolerance(kind))
		compare(t, run("LpPool", 1)[0], length, tolerance(kind))
		compare(t, run("MaxPool", 1)[0], biggest, 0)
		both := run("MaxPool", 2)
		compare(t, both[0], biggest, 0)
		compare(t, both[1], where, 0)
	})
}
