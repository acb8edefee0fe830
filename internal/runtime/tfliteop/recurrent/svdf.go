package recurrent

import (
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

// svdf is a singular-value-decomposition filter: features of the input are stored in a memory,
// and a second filter runs over the memory. Inputs: data [batch, in], feature weights [filters,
// in], time weights [filters, memory], bias, state.
type svdf struct{ batch, in, filters, memory, units, rank int }

func shapeSVDF(c *op.Call) (svdf, error) {
	var s svdf
	for i := range 3 {
		if err := layer.NeedRank(c, i, 2); err != nil {
			return s, err
		}
	}
	if !c.Has(4) {
		return s, c.Errorf("input 4 (the state) is missing")
	}
	s = svdf{batch: c.In[0].Shape[0], in: c.In[0].Shape[1], filters: c.In[1].Shape[0], memory: c.In[2].Shape[1], rank: c.Node.Attrs.Int("rank", 1)}
	if s.rank < 1 || s.filters%s.rank != 0 {
		return s, c.Errorf("%d filters of rank %d", s.filters, s.rank)
	}
	s.units = s.filters / s.rank
	switch {
	case c.In[1].Shape[1] != s.in || c.In[2].Shape[0] != s.filters || s.memory < 1:
		return s, c.Errorf("weights %s and %s", tensor.FormatShape(c.In[1].Shape), tensor.FormatShape(c.In[2].Shape))
	case c.In[4].Len() != s.batch*s.filters*s.memory:
		return s, c.Errorf("state %s", tensor.FormatShape(c.In[4].Shape))
	case c.Has(3) && c.In[3].Len() != s.units:
		return s, c.Errorf("%d biases for %d units", c.In[3].Len(), s.units)
	}
	return s, nil
}

func inferSVDF(c *op.Call, s svdf) {
	c.SetOut(0, layer.OutType(c, c.In[0].Type), []int{s.batch, s.units})
}

func prepareSVDF(c *op.Call, s svdf) (op.Run, error) {
	switch x, w, state := c.In[0].Type, c.In[2].Type, c.In[4].Type; {
	case x == tensor.Float32 && state == tensor.Float32:
		return s.float(c)
	case x == tensor.Int8 && state == tensor.Int16 && w == tensor.Int16:
		return svdfQuant[int16](c, s)
	case x == tensor.Int8 && state == tensor.Int8 && w == tensor.Int8:
		return svdfQuant[int8](c, s)
	default:
		return nil, op.Unsupported("%v input with %v state", x, state)
	}
}

func (s svdf) float(c *op.Call) (op.Run, error) {
	act, err := nonlinear(c.Node.Attrs.Str("fused_activation_function", "NONE"))
	if err != nil {
		return nil, err
	}
	p, err := newProjection(c, 1, c.Node.Attrs.Bool("asymmetric_quantize_inputs", false))
	if err != nil {
		return nil, err
	}
	feature := make([]float32, s.batch*s.filters)
	memory := newState[float32](c, 4)
	return func(c *op.Call) error {
		x, state, y := tensor.Of[float32](c.In[0]), memory.begin(c), tensor.Of[float32](c.Out[0])
		time, bias, err := layer.FloatPair(c, 2, 3)
		if err != nil {
			return err
		}
		clear(feature)
		if err := p.add(c, feature, x, s.batch); err != nil {
			return err
		}
		copy(state, state[1:])
		for i, v := range feature {
			state[(i+1)*s.memory-1] = v
		}
		for i := range y {
			b, u := i/s.units, i%s.units
			var sum float32
			for f := u * s.rank; f < (u+1)*s.rank; f++ {
				// In order within a filter, as in the reference.
				var part float32
				past := state[(b*s.filters+f)*s.memory:][:s.memory]
				for k, w := range time[f*s.memory:][:s.memory] {
					part += float32(w * past[k])
				}
				sum += part
			}
			if bias != nil {
				sum += bias[u]
			}
			y[i] = act(sum)
		}
		return nil
	}, nil
}

func svdfQuant[S int8 | int16](c *op.Call, s svdf) (op.Run, error) {
	sc, z, err := layer.ScalesOf(c.In[0], c.In[1], c.In[2], c.In[4], c.Out[0])
	if err != nil {
		return nil, err
	}
	m1 := fixed.FromReal(float64(sc[0] * sc[1] / sc[3]))
	m2 := fixed.FromReal(float64(sc[3] * sc[2] / sc[4]))
	if c.In[1].Type != tensor.Int8 || c.Out[0].Type != tensor.Int8 || c.Has(3) && c.In[3].Type != tensor.Int32 {
		return nil, op.Unsupported("%v weights, %v output", c.In[1].Type, c.Out[0].Type)
	}
	lo, hi := layer.Limits(c.In[4].Type)
	memory := newState[S](c, 4)
	c.Recipe = recipe.SVDF{
		Batch: s.batch, In: s.in, Filters: s.filters, Memory: s.memory, Units: s.units, Rank: s.rank,
		ZeroIn: z[0], ZeroState: z[3], Zero: z[4], Feature: m1, Time: m2, StateMin: lo, StateMax: hi,
	}
	var x, w []int8 // set by each run; the closure is allocated once
	var state []S
	features := func(f0, f1 int) {
		for i := f0; i < f1; i++ {
			b, f := i/s.filters, i%s.filters
			var acc int32
			row := w[f*s.in:][:s.in]
			for k, v := range x[b*s.in:][:len(row)] {
				acc += int32(row[k]) * (int32(v) - z[0])
			}
			state[(i+1)*s.memory-1] = S(min(max(m1.Apply(acc)+z[3], lo), hi))
		}
	}
	return func(c *op.Call) error {
		x, w, state = tensor.Of[int8](c.In[0]), tensor.Of[int8](c.In[1]), memory.begin(c)
		time, y := tensor.Of[S](c.In[2]), tensor.Of[int8](c.Out[0])
		var bias []int32
		if c.Has(3) {
			bias = tensor.Of[int32](c.In[3])
		}
		copy(state, state[1:])
		c.Pool.For(s.batch*s.filters, max(1, layer.Grain/max(1, s.in)), features)
		for i := range y {
			b, u := i/s.units, i%s.units
			var acc int32
			if bias != nil {
				acc = bias[u]
			}
			for f := u * s.rank; f < (u+1)*s.rank; f++ {
				mem := state[(b*s.filters+f)*s.memory:][:s.memory]
				for k, v := range time[f*s.memory:][:len(mem)] {
					acc += int32(v) * (int32(mem[k]) - z[3])
				}
			}
			y[i] = int8(min(max(m2.Apply(acc)+z[4], -128), 127))
		}
		return nil
	}, nil
}
