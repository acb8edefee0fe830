package signal

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/model/flexbuffer"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// prepareDelay keeps the last samples of each row for the next run.
func prepareDelay(c *op.Call, o flexbuffer.Value) (op.Run, error) {
	rows, n, err := lastAxis(c.In[0])
	if err != nil {
		return nil, err
	}
	d := int(o.GetInt("delay_length", 0))
	if d < 0 || d > 1<<24 {
		return nil, fmt.Errorf("delay of %d", d)
	}
	late := sessionSlice[int16](c, rows*d)
	return func(c *op.Call) error {
		x, y := tensor.Of[int16](c.In[0]), tensor.Of[int16](c.Out[0])
		for r := range rows {
			xs, ys, held := x[r*n:][:n], y[r*n:][:n], late[r*d:][:d]
			k := copy(ys, held)
			copy(ys[k:], xs)
			// Keep the last d of held followed by xs.
			if n >= d {
				copy(held, xs[n-d:])
			} else {
				copy(held, held[n:])
				copy(held[d-n:], xs)
			}
		}
		return nil
	}, nil
}

// overlap is the layout of SignalOverlapAdd: rows of frames of size samples, which begin every step
// samples.
type overlap struct{ rows, frames, size, step int }

func shapeOverlap(c *op.Call) (v overlap, err error) {
	if err := c.NeedInputs(1); err != nil {
		return v, err
	}
	o, err := optionsOf(c)
	if err != nil {
		return v, err
	}
	s := c.In[0].Shape
	step := int(o.GetInt("frame_step", 0))
	if len(s) < 2 || step < 1 || step > s[len(s)-1] {
		return v, fmt.Errorf("step %d for frames %s", step, tensor.FormatShape(s))
	}
	return overlap{tensor.Elements(s[:len(s)-2]), s[len(s)-2], s[len(s)-1], step}, nil
}

func inferOverlapAdd(c *op.Call, v overlap) {
	c.SetOut(0, c.In[0].Type, withLast(c.In[0].Shape[:c.In[0].Rank()-1], v.frames*v.step))
}

func prepareOverlapAdd(c *op.Call, v overlap) (op.Run, error) {
	switch t := c.In[0].Type; t {
	case tensor.Int16:
		return overlapAdd(c, v, func(a, b int16) int16 { return int16(min(max(int32(a)+int32(b), -32768), 32767)) }), nil
	case tensor.Float32:
		return overlapAdd(c, v, func(a, b float32) float32 { return a + b }), nil
	default:
		return nil, op.Unsupported("elements of type %v", t)
	}
}

// overlapAdd adds each frame to the remaining samples of earlier ones and outputs the samples that
// later frames do not overlap.
func overlapAdd[T tensor.Number](c *op.Call, v overlap, add func(a, b T) T) op.Run {
	held := sessionSlice[T](c, v.rows*v.size)
	return func(c *op.Call) error {
		x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		for r := range v.rows {
			acc := held[r*v.size:][:v.size]
			for f := range v.frames {
				for i, e := range x[(r*v.frames+f)*v.size:][:v.size] {
					acc[i] = add(acc[i], e)
				}
				copy(y[(r*v.frames+f)*v.step:][:v.step], acc)
				clear(acc[copy(acc, acc[v.step:]):])
			}
		}
		return nil
	}
}

// framing is the layout of SignalFramer: frames of size samples, which begin every step samples, in
// rows of frames steps.
type framing struct {
	rows, size, step, frames int
	prefill                  bool
}

func shapeFramer(c *op.Call) (v framing, err error) {
	if err := want(c, tensor.Int16); err != nil {
		return v, err
	}
	o, err := optionsOf(c)
	if err != nil {
		return v, err
	}
	rows, n, err := lastAxis(c.In[0])
	if err != nil {
		return v, err
	}
	size, step := int(o.GetInt("frame_size", 0)), int(o.GetInt("frame_step", 0))
	if step < 1 || size < step || n%step != 0 || size > 1<<24 {
		return v, fmt.Errorf("frames of %d every %d from %d samples", size, step, n)
	}
	return framing{rows, size, step, n / step, o.GetBool("prefill", false)}, nil
}

func inferFramer(c *op.Call, v framing) {
	c.SetOut(0, tensor.Int16, withLast(c.In[0].Shape, v.frames, v.size))
	c.SetOut(1, tensor.Bool, []int{})
}

// prepareFramer extracts overlapping frames from a stream. Until the first frame is full the
// result is not valid, unless the buffer is prefilled with zeros.
func prepareFramer(c *op.Call, v framing) (op.Run, error) {
	// The last samples of each row, at most one frame.
	held := sessionSlice[[]int16](c, v.rows)
	for r := range held {
		if held[r] == nil {
			held[r] = make([]int16, 0, v.size+v.step)
			if v.prefill {
				held[r] = held[r][:v.size-v.step]
			}
		}
	}
	return func(c *op.Call) error {
		x, y := tensor.Of[int16](c.In[0]), tensor.Of[int16](c.Out[0])
		valid := true
		for r, h := range held {
			for f := range v.frames {
				out := y[(r*v.frames+f)*v.size:][:v.size]
				h = append(h, x[(r*v.frames+f)*v.step:][:v.step]...)
				if len(h) < v.size {
					valid = false
					clear(out)
					continue
				}
				copy(out, h)
				h = h[:copy(h, h[v.step:])]
			}
			held[r] = h
		}
		setValid(c, valid)
		return nil
	}, nil
}

// setValid writes the second output, whether the first one is valid.
func setValid(c *op.Call, valid bool) {
	if c.Wants(1) {
		tensor.Of[bool](c.Out[1])[0] = valid
	}
}

// stacking holds the options of SignalStacker: channels of one step, how many steps before and
// after are joined, and the number of steps between results.
type stacking struct{ channels, left, right, step int }

func shapeStacker(c *op.Call) (v stacking, err error) {
	if err := want(c, tensor.Int16); err != nil {
		return v, err
	}
	o, err := optionsOf(c)
	if err != nil {
		return v, err
	}
	v = stacking{int(o.GetInt("num_channels", 0)), int(o.GetInt("stacker_left_context", 0)), int(o.GetInt("stacker_right_context", 0)), int(o.GetInt("stacker_step", 0))}
	if v.channels < 1 || v.step < 1 || v.left < 0 || v.right < 0 || max(v.channels, v.step, v.left, v.right) > 1<<20 || c.In[0].Len() != v.channels {
		return v, fmt.Errorf("%d channels, contexts of %d and %d every %d from %s", v.channels, v.left, v.right, v.step, tensor.FormatShape(c.In[0].Shape))
	}
	return v, nil
}

// full is the size of a result.
func (v stacking) full() int { return v.channels * (v.left + 1 + v.right) }

func inferStacker(c *op.Call, v stacking) {
	c.SetOut(0, tensor.Int16, []int{v.full()})
	c.SetOut(1, tensor.Bool, []int{})
}

// prepareStacker joins neighbouring steps. Copies of the first step replace steps before it.
func prepareStacker(c *op.Call, v stacking) (op.Run, error) {
	full := v.full()
	held := &sessionSlice[[]int16](c, 1)[0]
	return func(c *op.Call) error {
		x, y := tensor.Of[int16](c.In[0]), tensor.Of[int16](c.Out[0])
		h := *held
		if h == nil {
			h = make([]int16, 0, full+v.channels*v.step)
			for range v.left {
				h = append(h, x...)
			}
		}
		h = append(h, x...)
		valid := len(h) >= full
		if valid {
			copy(y, h[:full])
			h = h[:copy(h, h[min(v.channels*v.step, len(h)):])]
		} else {
			clear(y)
		}
		*held = h
		setValid(c, valid)
		return nil
	}, nil
}

func inferCircular(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	x, id := c.In[0], c.Node.Outputs[0]
	v := c.Graph.Values[id]
	if x.Type != tensor.Int8 || !v.HasShape || len(v.Shape) != 4 || x.Rank() != 4 || v.Shape[0] != x.Shape[0] ||
		v.Shape[2] != x.Shape[2] || v.Shape[3] != x.Shape[3] || v.Shape[1] < x.Shape[1] {
		return op.Unsupported("%v %s into %s", x.Type, tensor.FormatShape(x.Shape), tensor.FormatShape(v.Shape))
	}
	c.SetOut(0, x.Type, append([]int(nil), v.Shape...))
	return nil
}

// prepareCircular shifts the buffer by one input and appends it.
func prepareCircular(c *op.Call) (op.Run, error) {
	rows := c.In[0].Shape[0]
	n, k := c.Out[0].Len()/max(rows, 1), c.In[0].Len()/max(rows, 1)
	held := sessionSlice[uint8](c, rows*n)
	return func(c *op.Call) error {
		for r := range rows {
			h := held[r*n:][:n]
			copy(h, h[k:])
			copy(h[n-k:], c.In[0].Data[r*k:][:k])
		}
		copy(c.Out[0].Data, held)
		return nil
	}, nil
}
