package recurrent

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// sequence is the layout of a recurrent layer's input, and the widths of its output.
type sequence struct {
	steps, batch, in int
	timeMajor        bool
	units            int  // of the forward half
	back             int  // of the backward half
	basic            bool // the basic kernel of LSTM
}

// shapeSequence reads the layout. Axis axis of the weights, which are a matrix, has the units.
func shapeSequence(c *op.Call, timeMajor bool, weights, axis int) (sequence, error) {
	if !c.Has(0) {
		return sequence{}, c.Errorf("input 0 is missing")
	}
	var s sequence
	switch x := c.In[0].Shape; {
	case len(x) == 2:
		s = sequence{steps: 1, batch: x[0], in: x[1], timeMajor: true}
	case len(x) == 3 && c.Node.Attrs.Bool("time_major", timeMajor):
		s = sequence{steps: x[0], batch: x[1], in: x[2], timeMajor: true}
	case len(x) == 3:
		s = sequence{steps: x[1], batch: x[0], in: x[2]}
	default:
		return s, c.Errorf("input has rank %d", len(x))
	}
	if err := layer.NeedRank(c, weights, 2); err != nil {
		return s, err
	}
	s.units = c.In[weights].Shape[axis]
	return s, nil
}

// shapeBoth is shapeSequence with the weights of two directions.
func shapeBoth(forward, backward, axis int) func(c *op.Call) (sequence, error) {
	return func(c *op.Call) (sequence, error) {
		s, err := shapeSequence(c, true, forward, axis)
		if err == nil {
			err = layer.NeedRank(c, backward, 2)
		}
		if err == nil {
			s.back = c.In[backward].Shape[axis]
		}
		return s, err
	}
}

// shape returns the output's shape for n units.
func (s sequence) shape(x []int, n int) []int { return append(slices.Clone(x[:len(x)-1]), n) }

// row returns the row of a step of a batch entry.
func (s sequence) row(t, b int) int {
	if s.timeMajor {
		return t*s.batch + b
	}
	return b*s.steps + t
}

// gather copies step t of all batch entries to dst; it returns x itself if that is contiguous.
func (s sequence) gather(dst, x []float32, t, n int) []float32 {
	if s.timeMajor || s.steps == 1 {
		return x[t*s.batch*n:][:s.batch*n]
	}
	for b := range s.batch {
		copy(dst[b*n:(b+1)*n], x[(b*s.steps+t)*n:])
	}
	return dst
}

func inferSequence(c *op.Call, s sequence) {
	c.SetOut(0, layer.OutType(c, c.In[0].Type), s.shape(c.In[0].Shape, s.units))
}

func inferBoth(c *op.Call, s sequence) {
	x := c.In[0]
	if merged(c) {
		c.SetOut(0, layer.OutType(c, x.Type), s.shape(x.Shape, s.units+s.back))
		return
	}
	c.SetOut(0, x.Type, s.shape(x.Shape, s.units))
	c.SetOut(1, x.Type, s.shape(x.Shape, s.back))
}

// merged reports whether both directions of a layer write to one output.
func merged(c *op.Call) bool { return c.Node.Attrs.Bool("merge_outputs", false) }

// half runs one direction: it computes a step and returns its result.
type half struct {
	units int
	load  func(c *op.Call) error
	step  func(c *op.Call, x, aux []float32) ([]float32, error)
}

// auxiliary is a second input. Crossed, it replaces the backward half's first input, because it has
// no weights.
type auxiliary struct {
	input, width int // 0 if absent
	crossed      bool
}

// newAuxiliary reads an auxiliary input and its forward and backward weights.
func newAuxiliary(c *op.Call, s sequence, input, fw, bw int) (a auxiliary, err error) {
	t := c.Input(input)
	if t == nil || t.Len() == 0 {
		return a, nil
	}
	if t.Type != tensor.Float32 || t.Rank() != c.In[0].Rank() || t.Len() != s.steps*s.batch*t.Shape[t.Rank()-1] {
		return a, c.Errorf("auxiliary input %s", tensor.FormatShape(t.Shape))
	}
	a = auxiliary{input, t.Shape[t.Rank()-1], !c.Has(fw) && !c.Has(bw)}
	for _, i := range []int{fw, bw} {
		if w := c.Input(i); !a.crossed && (w == nil || w.Rank() != 2 || w.Shape[1] != a.width) {
			return a, c.Errorf("weights %d do not fit the auxiliary input", i)
		}
	}
	return a, nil
}

// prepareBoth prepares a layer of two directions, whose outputs are concatenated in one tensor or
// are two tensors. at holds the numbers of an auxiliary input and of its weights.
func prepareBoth(at [3]int, newHalf func(c *op.Call, s sequence, d, in int, aux bool) (half, error)) func(c *op.Call, s sequence) (op.Run, error) {
	return func(c *op.Call, s sequence) (op.Run, error) {
		if !merged(c) && !c.Wants(1) {
			return nil, c.Errorf("output 1 (the backward half) is missing")
		}
		a, err := newAuxiliary(c, s, at[0], at[1], at[2])
		if err != nil {
			return nil, err
		}
		var h [2]half
		for d := range h {
			in := s.in
			if a.crossed && d == 1 {
				in = a.width
			}
			if h[d], err = newHalf(c, s, d, in, a.width > 0 && !a.crossed); err != nil {
				return nil, err
			}
		}
		return s.run(a, h[:]...), nil
	}
}

// run walks forwards over the sequence with the first half and backwards with the second.
func (s sequence) run(a auxiliary, halves ...half) op.Run {
	row, auxRow := make([]float32, s.batch*s.in), make([]float32, s.batch*a.width)
	return func(c *op.Call) error {
		x := tensor.Of[float32](c.In[0])
		var aux []float32
		if a.width > 0 {
			aux = tensor.Of[float32](c.In[a.input])
		}
		for d, h := range halves {
			if err := h.load(c); err != nil {
				return err
			}
			out, stride, at := c.Out[0], h.units, 0
			if len(halves) > 1 && merged(c) {
				stride, at = halves[0].units+halves[1].units, d*halves[0].units
			} else if d == 1 {
				out = c.Out[1]
			}
			y := tensor.Of[float32](out)
			for t := range s.steps {
				if d == 1 {
					t = s.steps - 1 - t
				}
				in := s.gather(row, x, t, s.in)
				var more []float32
				switch {
				case aux == nil:
				case !a.crossed:
					more = s.gather(auxRow, aux, t, a.width)
				case d == 1:
					in = s.gather(auxRow, aux, t, a.width)
				}
				r, err := h.step(c, in, more)
				if err != nil {
					return err
				}
				for b := range s.batch {
					copy(y[s.row(t, b)*stride+at:][:h.units], r[b*h.units:])
				}
			}
		}
		return nil
	}
}

// state is an input that a layer carries from step to step. Variables of the graph keep it from
// run to run. If the file gives an ordinary tensor, the layer works on a copy, because inputs
// must not be written.
type state[T tensor.Number] struct {
	input int
	copy  []T
}

func newState[T tensor.Number](c *op.Call, input int) *state[T] {
	s := &state[T]{input: input}
	if id := c.Node.Inputs[input]; !c.Graph.Values[id].Variable {
		s.copy = make([]T, c.In[input].Len())
	}
	return s
}

// begin returns the elements at the start of a run.
func (s *state[T]) begin(c *op.Call) []T {
	v := tensor.Of[T](c.In[s.input])
	if s.copy == nil {
		return v
	}
	copy(s.copy, v)
	return s.copy
}
