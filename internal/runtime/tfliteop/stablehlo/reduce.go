package stablehlo

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/random"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// combiner returns the operation of a body of two parameters: the name of its only operator without
// prefix, or "SECOND" when it returns the second.
func combiner(c *op.Call, attr string) (string, error) {
	i, ok := c.Node.Attrs.Graph(attr)
	if !ok || i >= len(c.Model.Graphs) {
		return "", fmt.Errorf("attribute %s is missing", attr)
	}
	g := c.Model.Graphs[i]
	if len(g.Inputs) == 2 && len(g.Outputs) == 1 {
		switch {
		case len(g.Nodes) == 0 && g.Outputs[0] == g.Inputs[1]:
			return "SECOND", nil
		case len(g.Nodes) == 1 && usesBoth(g):
			names := map[string]string{
				"STABLEHLO_ADD": "ADD", "ADD": "ADD", "STABLEHLO_MULTIPLY": "MULTIPLY", "MUL": "MULTIPLY", "STABLEHLO_MAXIMUM": "MAXIMUM", "MAXIMUM": "MAXIMUM",
				"STABLEHLO_MINIMUM": "MINIMUM", "MINIMUM": "MINIMUM", "STABLEHLO_AND": "AND", "LOGICAL_AND": "AND", "STABLEHLO_OR": "OR", "LOGICAL_OR": "OR",
			}
			if n := names[g.Nodes[0].Op]; n != "" {
				return n, nil
			}
		}
	}
	return "", op.Unsupported("body %q is not one of add, multiply, maximum, minimum, and, or", g.Name)
}

// usesBoth reports whether the inputs of the only node are the two parameters, in any order.
func usesBoth(g *graph.Graph) bool {
	in := slices.Sorted(slices.Values(g.Nodes[0].Inputs))
	want := slices.Sorted(slices.Values(g.Inputs))
	return slices.Equal(in, want) && slices.Equal(g.Nodes[0].Outputs, g.Outputs)
}

// merge returns the function that combines two elements of a type.
func merge[T tensor.Number](name string, truth bool) (func(a, b T) T, error) {
	if name == "SECOND" {
		return func(_, b T) T { return b }, nil
	}
	if truth {
		if name == "ADD" || name == "MAXIMUM" {
			name = "OR"
		} else if name != "OR" {
			name = "AND"
		}
	}
	switch name {
	case "ADD":
		return func(a, b T) T { return a + b }, nil
	case "MULTIPLY":
		return func(a, b T) T { return a * b }, nil
	case "MAXIMUM":
		return func(a, b T) T { return max(a, b) }, nil
	case "MINIMUM":
		return func(a, b T) T { return min(a, b) }, nil
	}
	if half := 0.5; T(half) != 0 {
		return nil, op.Unsupported("%s of floats", name)
	}
	k := binaries[name].int
	return func(a, b T) T { return T(k(int64(a), int64(b))) }, nil
}

// byType chooses an instance of a generic function for the type of x. Truth values are bytes.
func byType[F any](x *tensor.Tensor, f32, f64, i8, i16, i32, i64, u8, u32 F) F {
	t := x.Type
	if t == tensor.Bool {
		t = tensor.Uint8
	}
	var none F
	return tensor.PickNumber(t, f32, f64, i8, i16, i32, i64, u8, none, u32, none)
}

// inferReduce reads one operand and one initial value.
func inferReduce(c *op.Call) error {
	if len(c.In) != 2 {
		return op.Unsupported("a reduction of %d operands", len(c.In)/2)
	}
	x := c.In[0]
	if c.In[1].Type != x.Type || c.In[1].Len() != 1 {
		return fmt.Errorf("initial value %v %s for %v", c.In[1].Type, tensor.FormatShape(c.In[1].Shape), x.Type)
	}
	drop := make([]bool, x.Rank())
	for _, d := range c.Node.Attrs.Ints("dimensions") {
		if d < 0 || d >= len(drop) || drop[d] {
			return fmt.Errorf("axes %v of shape %s", c.Node.Attrs.Ints("dimensions"), tensor.FormatShape(x.Shape))
		}
		drop[d] = true
	}
	shape := []int{}
	for i, d := range x.Shape {
		if !drop[i] {
			shape = append(shape, d)
		}
	}
	c.SetOut(0, x.Type, shape)
	return nil
}

func prepareReduce(c *op.Call) (op.Run, error) {
	name, err := combiner(c, "body_subgraph_index")
	if err != nil {
		return nil, err
	}
	return pick(c, byType(c.In[0], reduce[float32], reduce[float64], reduce[int8], reduce[int16], reduce[int32], reduce[int64], reduce[uint8], reduce[uint32]), name)
}

func reduce[T tensor.Number](c *op.Call, name string) (op.Run, error) {
	f, err := merge[T](name, c.In[0].Type == tensor.Bool)
	if err != nil {
		return nil, err
	}
	x := c.In[0].Shape
	steps := make([]int, len(x)) // stride of each axis in the result, 0 where reduced
	n, dims := 1, c.Node.Attrs.Ints("dimensions")
	for i := len(x) - 1; i >= 0; i-- {
		if !slices.Contains(dims, i) {
			steps[i] = n
			n *= x[i]
		}
	}
	return func(c *op.Call) error {
		in, out, start := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0]), tensor.Single[T](c.In[1])
		for i := range out {
			out[i] = start
		}
		pos, at := make([]int, len(x)), 0
		for _, v := range in {
			out[at] = f(out[at], v)
			for k := len(x) - 1; k >= 0; k-- {
				pos[k]++
				at += steps[k]
				if pos[k] < x[k] {
					break
				}
				at -= pos[k] * steps[k]
				pos[k] = 0
			}
		}
		return nil
	}, nil
}

// prepareWindow reduces sliding windows of an operand with padding and dilations.
func prepareWindow(c *op.Call) (op.Run, error) {
	name, err := combiner(c, "body_subgraph_index")
	if err != nil {
		return nil, err
	}
	x, out := c.In[0], c.Out[0]
	if len(c.In) != 2 || c.In[1].Type != x.Type || c.In[1].Len() != 1 || out.Type != x.Type {
		return nil, op.Unsupported("%d inputs, initial value %v", len(c.In), c.In[1].Type)
	}
	w, err := windowOf(c)
	if err != nil {
		return nil, err
	}
	w.combiner = name
	return slideOf(c, w)
}

// window holds the options of a sliding window, one entry an axis, and the name of the combiner.
type window struct {
	size, stride, base, hole, low []int
	combiner                      string
}

func windowOf(c *op.Call) (w window, err error) {
	a, x := c.Node.Attrs, c.In[0].Shape
	ones := slices.Repeat([]int{1}, len(x))
	get := func(name string, def []int) []int {
		if v := a.Ints(name); len(v) > 0 {
			return v
		}
		return def
	}
	w = window{size: a.Ints("window_dimensions"), stride: get("window_strides", ones), base: get("base_dilations", ones), hole: get("window_dilations", ones)}
	shape, err := w.slide(x, get("padding", make([]int, 2*len(x))))
	if err == nil && !slices.Equal(shape, c.Out[0].Shape) {
		err = fmt.Errorf("windows make %s where %s is declared", tensor.FormatShape(shape), tensor.FormatShape(c.Out[0].Shape))
	}
	return w, err
}

// slide returns the shape of the result for an operand of shape x with padding before and after
// each axis.
func (w *window) slide(x, pad []int) ([]int, error) {
	if len(w.size) != len(x) || len(w.stride) != len(x) || len(w.base) != len(x) || len(w.hole) != len(x) || len(pad) != 2*len(x) {
		return nil, fmt.Errorf("window of rank %d for shape %s", len(w.size), tensor.FormatShape(x))
	}
	shape := make([]int, len(x))
	w.low = make([]int, len(x))
	for i, d := range x {
		if min(w.size[i], w.stride[i], w.base[i], w.hole[i]) < 1 {
			return nil, fmt.Errorf("window of %v by %v", w.size, w.stride)
		}
		w.low[i] = pad[2*i]
		n := max(d-1, 0)*w.base[i] + min(d, 1) + pad[2*i] + pad[2*i+1]
		if reach := (w.size[i]-1)*w.hole[i] + 1; n >= reach {
			shape[i] = (n-reach)/w.stride[i] + 1
		}
	}
	return shape, nil
}

// builtinWindow reads the inputs of TFLite's own operator: operand, initial value, size, strides
// and dilations of the window. It has no padding.
func builtinWindow(c *op.Call) (w window, shape []int, err error) {
	if err := c.NeedInputs(5); err != nil {
		return w, nil, err
	}
	x := c.In[0].Shape
	for i, p := range []*[]int{&w.size, &w.stride, &w.hole} {
		if *p, err = op.Ints(c.In[2+i]); err != nil {
			return w, nil, err
		}
		if len(*p) != len(x) {
			return w, nil, fmt.Errorf("window of rank %d for shape %s", len(*p), tensor.FormatShape(x))
		}
	}
	w.base = slices.Repeat([]int{1}, len(x))
	shape, err = w.slide(x, make([]int, 2*len(x)))
	return w, shape, err
}

func inferBuiltinWindow(c *op.Call) error {
	_, shape, err := builtinWindow(c)
	if err != nil {
		return err
	}
	if x := c.In[0]; c.In[1].Type != x.Type || c.In[1].Len() != 1 {
		return fmt.Errorf("initial value %v %s for %v", c.In[1].Type, tensor.FormatShape(c.In[1].Shape), x.Type)
	}
	c.SetOut(0, c.In[0].Type, shape)
	return nil
}

func prepareBuiltinWindow(c *op.Call) (op.Run, error) {
	name, ok := map[string]string{"ADD": "ADD", "MUL": "MULTIPLY", "MINIMUM": "MINIMUM", "MAXIMUM": "MAXIMUM", "ALL": "AND", "ANY": "OR"}[c.Node.Attrs.Str("reduce_function", "")]
	if !ok {
		return nil, op.Unsupported("reduction %q", c.Node.Attrs.Str("reduce_function", ""))
	}
	for i := 2; i < 5; i++ {
		if !c.Const(i) {
			return nil, op.Unsupported("a window that is computed")
		}
	}
	w, _, err := builtinWindow(c)
	if err != nil {
		return nil, err
	}
	w.combiner = name
	return slideOf(c, w)
}

// slideOf prepares the sliding of a window for the type of input 0.
func slideOf(c *op.Call, w window) (op.Run, error) {
	return pick(c, byType(c.In[0], slide[float32], slide[float64], slide[int8], slide[int16], slide[int32], slide[int64], slide[uint8], slide[uint32]), w)
}

func slide[T tensor.Number](c *op.Call, w window) (op.Run, error) {
	f, err := merge[T](w.combiner, c.In[0].Type == tensor.Bool)
	if err != nil {
		return nil, err
	}
	x, out := c.In[0].Shape, c.Out[0].Shape
	strides, taps := tensor.Strides(x), tensor.Elements(w.size)
	return func(c *op.Call) error {
		in, y, start := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0]), tensor.Single[T](c.In[1])
		c.Pool.For(len(y), max(1, 4096/max(taps, 1)), func(lo, hi int) {
			for o := lo; o < hi; o++ {
				acc := start
			tap:
				for t := range taps {
					at := 0
					for k, ro, rt := len(x)-1, o, t; k >= 0; k-- {
						p := ro%out[k]*w.stride[k] + rt%w.size[k]*w.hole[k] - w.low[k]
						ro /= out[k]
						rt /= w.size[k]
						if p < 0 || p%w.base[k] != 0 || p/w.base[k] >= x[k] {
							continue tap // padding and the gaps of dilation hold the initial value
						}
						at += p / w.base[k] * strides[k]
					}
					acc = f(acc, in[at])
				}
				y[o] = acc
			}
		})
		return nil
	}, nil
}

// inferBits reads the generator's state. The outputs are the new state and the bits.
func inferBits(c *op.Call) error {
	s := c.In[0]
	if s.Type != tensor.Uint64 || s.Rank() != 1 || s.Shape[0] < 2 || s.Shape[0] > 3 || len(c.Out) != 2 {
		return op.Unsupported("state %v %s", s.Type, tensor.FormatShape(s.Shape))
	}
	v := c.Graph.Values[c.Node.Outputs[1]]
	if !v.HasShape || slices.ContainsFunc(v.Shape, func(d int) bool { return d < 0 }) {
		return op.Unsupported("a result without a static shape")
	}
	switch v.Type {
	case tensor.Int32, tensor.Uint32, tensor.Int64, tensor.Uint64:
	default:
		return op.Unsupported("bits of type %v", v.Type)
	}
	c.SetOut(0, s.Type, slices.Clone(s.Shape))
	c.SetOut(1, v.Type, slices.Clone(v.Shape))
	return nil
}

// prepareBits reads a counter-based generator: ThreeFry 2x32 or Philox 4x32, which is also the
// default for states of three words.
func prepareBits(c *op.Call) (op.Run, error) {
	philox := c.In[0].Shape[0] == 3
	switch a := c.Node.Attrs.Str("algorithm", "DEFAULT"); a {
	case "DEFAULT", "RNG_DEFAULT":
	case "PHILOX", "RNG_PHILOX":
		philox = true
	case "THREEFRY", "RNG_THREEFRY":
		if philox {
			return nil, fmt.Errorf("ThreeFry with a state of three words")
		}
	default:
		return nil, op.Unsupported("algorithm %s", a)
	}
	return func(c *op.Call) error {
		s, next := tensor.Of[uint64](c.In[0]), tensor.Of[uint64](c.Out[0])
		key, counter, high := s[0], s[1], uint64(0)
		if len(s) == 3 {
			high = s[2]
		}
		y := c.Out[1].Data
		for len(y) > 0 {
			var words []uint32
			if philox {
				w := random.Philox([2]uint32{uint32(key), uint32(key >> 32)}, [4]uint32{uint32(counter), uint32(counter >> 32), uint32(high), uint32(high >> 32)})
				words = w[:]
			} else {
				w := threefryBlock(key, counter)
				words = w[:]
			}
			if counter++; counter == 0 {
				high++
			}
			for _, w := range words {
				if len(y) < 4 {
					break
				}
				y[0], y[1], y[2], y[3] = byte(w), byte(w>>8), byte(w>>16), byte(w>>24)
				y = y[4:]
			}
		}
		next[0], next[1] = key, counter
		if len(next) == 3 {
			next[2] = high
		}
		return nil
	}, nil
}

func threefryBlock(key, counter uint64) [2]uint32 {
	k := [3]uint32{uint32(key), uint32(key >> 32)}
	k[2] = k[0] ^ k[1] ^ 0x1BD11BDA
	x, y := uint32(counter)+k[0], uint32(counter>>32)+k[1]
	turns := [8]uint{13, 15, 26, 6, 17, 29, 16, 24}
	for i := range 20 {
		t := turns[i%8]
		x += y
		y = y<<t | y>>(32-t)
		y ^= x
		if i%4 == 3 {
			j := uint32(i/4 + 1)
			x += k[j%3]
			y += k[(j+1)%3] + j
		}
	}
	return [2]uint32{x, y}
}
