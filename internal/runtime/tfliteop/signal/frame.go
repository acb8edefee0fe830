package signal

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

func frameDefs() []op.Def {
	return []op.Def{
		stateful(micro("SignalDelay", inferDelay, prepareDelay)),
		stateful(micro("SignalOverlapAdd", inferOverlapAdd, prepareOverlapAdd)),
		stateful(micro("SignalFramer", inferFramer, prepareFramer)),
		stateful(micro("SignalStacker", inferStacker, prepareStacker)),
		stateful(micro("CIRCULAR_BUFFER", inferCircular, prepareCircular)),
	}
}

func inferDelay(c *op.Call) error {
	if err := want(c, tensor.Int16); err != nil {
		return err
	}
	c.SetOut(0, tensor.Int16, c.In[0].Shape)
	return nil
}

// prepareDelay keeps the last samples of each row for the next run.
func prepareDelay(c *op.Call) (op.Run, error) {
	o, err := optionsOf(c)
	if err != nil {
		return nil, err
	}
	rows, _, err := lastAxis(c.In[0])
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
		_, n, _ := lastAxis(c.In[0])
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

// overlapShape reads the step; the input is rows x frames x frame size.
func overlapShape(c *op.Call) (rows, frames, size, step int, err error) {
	if err := c.NeedInputs(1); err != nil {
		return 0, 0, 0, 0, err
	}
	o, err := optionsOf(c)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	s := c.In[0].Shape
	step = int(o.GetInt("frame_step", 0))
	if len(s) < 2 || step < 1 || step > s[len(s)-1] {
		return 0, 0, 0, 0, fmt.Errorf("step %d for frames %s", step, tensor.FormatShape(s))
	}
	return tensor.Elements(s[:len(s)-2]), s[len(s)-2], s[len(s)-1], step, nil
}

func inferOverlapAdd(c *op.Call) error {
	_, frames, _, step, err := overlapShape(c)
	if err != nil {
		return err
	}
	shape := withLast(c.In[0].Shape[:c.In[0].Rank()-1], frames*step)
	c.SetOut(0, c.In[0].Type, shape)
	return nil
}

func prepareOverlapAdd(c *op.Call) (op.Run, error) {
	switch t := c.In[0].Type; t {
	case tensor.Int16:
		return overlapAdd(c, func(a, b int16) int16 { return int16(min(max(int32(a)+int32(b), -32768), 32767)) })
	case tensor.Float32:
		return overlapAdd(c, func(a, b float32) float32 { return a + b })
	default:
		return nil, op.Unsupported("elements of type %v", t)
	}
}

// overlapAdd adds each frame to the rest of earlier ones and outputs the samples that no later
// frame reaches.
func overlapAdd[T tensor.Number](c *op.Call, add func(a, b T) T) (op.Run, error) {
	rows, frames, size, step, err := overlapShape(c)
	if err != nil {
		return nil, err
	}
	held := sessionSlice[T](c, rows*size)
	return func(c *op.Call) error {
		x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		for r := range rows {
			acc := held[r*size:][:size]
			for f := range frames {
				for i, v := range x[(r*frames+f)*size:][:size] {
					acc[i] = add(acc[i], v)
				}
				copy(y[(r*frames+f)*step:][:step], acc)
				clear(acc[copy(acc, acc[step:]):])
			}
		}
		return nil
	}, nil
}

// framerShape reads the options; the input's rows are an integer of steps.
func framerShape(c *op.Call) (size, step, frames int, prefill bool, err error) {
	if err := want(c, tensor.Int16); err != nil {
		return 0, 0, 0, false, err
	}
	o, err := optionsOf(c)
	if err != nil {
		return 0, 0, 0, false, err
	}
	_, n, err := lastAxis(c.In[0])
	if err != nil {
		return 0, 0, 0, false, err
	}
	size, step = int(o.GetInt("frame_size", 0)), int(o.GetInt("frame_step", 0))
	if step < 1 || size < step || n%step != 0 || size > 1<<24 {
		return 0, 0, 0, false, fmt.Errorf("frames of %d every %d from %d samples", size, step, n)
	}
	return size, step, n / step, o.GetBool("prefill", false), nil
}

func inferFramer(c *op.Call) error {
	size, _, frames, _, err := framerShape(c)
	if err != nil {
		return err
	}
	c.SetOut(0, tensor.Int16, withLast(c.In[0].Shape, frames, size))
	c.SetOut(1, tensor.Bool, []int{})
	return nil
}

// framer is the memory of a SignalFramer.
type framer struct {
	held [][]int16 // the last samples of each row, at most one frame
}

// prepareFramer extracts overlapping frames from a stream. Until the first frame is full the
// result is not valid, unless the buffer is prefilled with zeros.
func prepareFramer(c *op.Call) (op.Run, error) {
	size, step, frames, prefill, err := framerShape(c)
	if err != nil {
		return nil, err
	}
	rows, _, _ := lastAxis(c.In[0])
	state := sessionSlice[framer](c, 1)
	s := &state[0]
	if s.held == nil {
		s.held = make([][]int16, rows)
		for r := range s.held {
			s.held[r] = make([]int16, 0, size+step)
			if prefill {
				s.held[r] = s.held[r][:size-step]
			}
		}
	}
	return func(c *op.Call) error {
		x, y := tensor.Of[int16](c.In[0]), tensor.Of[int16](c.Out[0])
		valid := true
		for r := range rows {
			h := s.held[r]
			for f := range frames {
				out := y[(r*frames+f)*size:][:size]
				h = append(h, x[(r*frames+f)*step:][:step]...)
				if len(h) < size {
					valid = false
					clear(out)
					continue
				}
				copy(out, h)
				h = h[:copy(h, h[step:])]
			}
			s.held[r] = h
		}
		if c.Wants(1) {
			tensor.Of[bool](c.Out[1])[0] = valid
		}
		return nil
	}, nil
}

// stackerShape reads the options: channels of one step, how many steps before and after are
// joined, and the number of steps between results.
func stackerShape(c *op.Call) (channels, left, right, step int, err error) {
	if err := want(c, tensor.Int16); err != nil {
		return 0, 0, 0, 0, err
	}
	o, err := optionsOf(c)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	channels, step = int(o.GetInt("num_channels", 0)), int(o.GetInt("stacker_step", 0))
	left, right = int(o.GetInt("stacker_left_context", 0)), int(o.GetInt("stacker_right_context", 0))
	if channels < 1 || step < 1 || left < 0 || right < 0 || max(channels, step, left, right) > 1<<20 || c.In[0].Len() != channels {
		return 0, 0, 0, 0, fmt.Errorf("%d channels, contexts of %d and %d every %d from %s", channels, left, right, step, tensor.FormatShape(c.In[0].Shape))
	}
	return channels, left, right, step, nil
}

func inferStacker(c *op.Call) error {
	channels, left, right, _, err := stackerShape(c)
	if err != nil {
		return err
	}
	c.SetOut(0, tensor.Int16, []int{channels * (left + 1 + right)})
	c.SetOut(1, tensor.Bool, []int{})
	return nil
}

// stacker is the memory of a SignalStacker.
type stacker struct{ held []int16 }

// prepareStacker joins neighbouring steps. The first step replaces missing ones before it.
func prepareStacker(c *op.Call) (op.Run, error) {
	channels, left, right, step, err := stackerShape(c)
	if err != nil {
		return nil, err
	}
	full := channels * (left + 1 + right)
	s := &sessionSlice[stacker](c, 1)[0]
	return func(c *op.Call) error {
		x, y := tensor.Of[int16](c.In[0]), tensor.Of[int16](c.Out[0])
		if s.held == nil {
			s.held = make([]int16, 0, full+channels*step)
			for range left {
				s.held = append(s.held, x...)
			}
		}
		s.held = append(s.held, x...)
		valid := len(s.held) >= full
		if valid {
			copy(y, s.held[:full])
			drop := min(channels*step, len(s.held))
			s.held = s.held[:copy(s.held, s.held[drop:])]
		} else {
			clear(y)
		}
		if c.Wants(1) {
			tensor.Of[bool](c.Out[1])[0] = valid
		}
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
