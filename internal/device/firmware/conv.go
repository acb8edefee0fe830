package firmware

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

// output returns the initialiser of a k_output.
func (g *generator) output(st *step, s recipe.Sums) string {
	mul, shift := g.multipliers(st.layer, s.Mul)
	step := 0
	if len(s.Mul) > 1 {
		step = 1
	}
	return fmt.Sprintf("{.mul = (const int32_t *)%s, .shift = (const int8_t *)%s, .step = %d, .zero = %d, .min = %d, .max = %d}",
		mul.name, shift.name, step, s.Zero, s.Min, s.Max)
}

// filter writes the weights of input k, minus their zero point, and the biases, with the zero
// point of the activations (input data) folded in. channel returns the output channel of a
// weight.
func (g *generator) filter(st *step, data, k int, s recipe.Sums, zero int32, channels int, channel func(i int) int) (weights, bias *datum, err error) {
	c := &st.task.Call
	x, t := c.In[data], c.In[k]
	if !c.Const(k) {
		return nil, nil, unsupported("weights that are computed while it runs")
	}
	var w []int16
	if x.Type == tensor.Int16 { // int16 has no zero point
		var all []int32
		if all, err = layer.Integers(t); err == nil {
			w = make([]int16, len(all))
			for i, v := range all {
				w[i] = int16(v)
			}
		}
	} else {
		w, err = layer.Weights(t)
	}
	if err != nil {
		return nil, nil, err
	}
	note := fmt.Sprintf("layer %d, %s: weights %s", st.layer, st.task.Node.Op, tensor.FormatShape(t.Shape))
	narrow, fits := signedWeights(w)
	switch {
	case x.Type == tensor.Uint8:
		weights = integers(g, "w", st.layer, 2, w, note)
	case !fits:
		return nil, nil, unsupported("weights that do not fit 8 bits")
	default:
		weights = integers(g, "w", st.layer, 1, narrow, note)
	}
	folded := make([]int64, channels)
	copy(folded, s.Bias)
	for i, v := range w {
		folded[channel(i)] -= int64(zero) * int64(v)
	}
	width := 4 // accumulators wrap at 32 bits, and so may biases
	if x.Type == tensor.Int16 {
		width = 8
	}
	return weights, integers(g, "b", st.layer, width, folded, "biases"), nil
}

func (g *generator) conv(st *step, r recipe.Conv) error {
	suffix, ctype, ok := ending(st.task.Call.In[0].Type)
	if !ok {
		return unsupported("%v activations", st.task.Call.In[0].Type)
	}
	s := r.Shape
	each := s.KH * s.KW * s.C / max(s.Groups, 1)
	channel := func(i int) int { return i / each }
	name, groups := "k_conv_"+suffix, s.Groups
	if r.Depthwise {
		channel = func(i int) int { return i % s.OC }
		name, groups = "k_depthwise_"+suffix, 1
	}
	w, b, err := g.filter(st, 0, 1, r.Sums, r.Zero, s.OC, channel)
	if err != nil {
		return err
	}
	op := g.constantStruct(st, "k_conv", fmt.Sprintf(
		".batch = %d, .in_h = %d, .in_w = %d, .in_c = %d, .out_h = %d, .out_w = %d, .out_c = %d,\n"+
			".kernel_h = %d, .kernel_w = %d, .stride_h = %d, .stride_w = %d, .dilation_h = %d, .dilation_w = %d, .pad_top = %d, .pad_left = %d,\n"+
			".groups = %d, .zero = %d, .weights = %s, .bias = %s, .narrow = %d,\n.out = %s",
		s.N, s.H, s.W, s.C, s.OH, s.OW, s.OC, s.KH, s.KW, s.StrideH, s.StrideW, s.DilH, s.DilW, s.PadT, s.PadL,
		max(groups, 1), r.Zero, w.name, b.name, narrow(r.Sums), g.output(st, r.Sums)))
	g.emit(st, "conv_"+suffix, name, op, g.in(st, 0, ctype), g.out(st, 0, ctype))
	return nil
}

// narrow tells kernels of int16 activations that their accumulators have 32 bits.
func narrow(s recipe.Sums) int {
	if s.Wide {
		return 0
	}
	return 1
}

func (g *generator) dense(st *step, r recipe.Dense) error {
	c := &st.task.Call
	suffix, ctype, ok := ending(c.In[0].Type)
	if !ok || c.Out[0].Type != c.In[0].Type {
		return unsupported("no kernel for %s", types(c))
	}
	w, b, err := g.filter(st, 0, 1, r.Sums, r.Zero, r.Out, func(i int) int { return i / r.In })
	if err != nil {
		return err
	}
	op := g.constantStruct(st, "k_dense", fmt.Sprintf(".rows = %d, .in = %d, .outs = %d, .weights = %s, .bias = %s, .narrow = %d,\n.out = %s",
		r.Rows, r.In, r.Out, w.name, b.name, narrow(r.Sums), g.output(st, r.Sums)))
	g.emit(st, "conv_"+suffix, "k_dense_"+suffix, op, g.in(st, 0, ctype), g.out(st, 0, ctype))
	return nil
}

func (g *generator) pool(st *step, r recipe.Pool) error {
	suffix, ctype, ok := ending(st.task.Call.In[0].Type)
	if !ok {
		return unsupported("no kernel for %s", types(&st.task.Call))
	}
	name := "k_average_pool_"
	if r.Max {
		name = "k_max_pool_"
	}
	op := g.constantStruct(st, "k_pool", fmt.Sprintf(
		".batch = %d, .in_h = %d, .in_w = %d, .channels = %d, .out_h = %d, .out_w = %d,\n"+
			".kernel_h = %d, .kernel_w = %d, .stride_h = %d, .stride_w = %d, .pad_top = %d, .pad_left = %d, .min = %d, .max = %d",
		r.N, r.H, r.W, r.C, r.OH, r.OW, r.KH, r.KW, r.StrideH, r.StrideW, r.PadT, r.PadL, r.Lo, r.Hi))
	g.emit(st, "pool", name+suffix, op, g.in(st, 0, ctype), g.out(st, 0, ctype))
	return nil
}

func (g *generator) softmax(st *step, r recipe.Softmax) error {
	c := &st.task.Call
	suffix, ctype, _ := ending(c.In[0].Type)
	name, out := "k_softmax_"+suffix, ctype
	if c.Out[0].Type != c.In[0].Type {
		name, out = name+"_s16", "int16_t"
	}
	exps := integers(g, "exp", st.layer, 4, r.Exps[:r.Span+1], "exponentials")
	op := g.constantStruct(st, "k_softmax", fmt.Sprintf(".rows = %d, .depth = %d, .exps = (const int32_t *)%s, .span = %d", r.Rows, r.Depth, exps.name, r.Span))
	g.emit(st, "softmax", name, op, g.in(st, 0, ctype), g.out(st, 0, out))
	return nil
}

func (g *generator) sum(st *step, r recipe.Sum) error {
	suffix, ctype, _ := ending(st.task.Call.In[0].Type)
	walk, err := broadcast(st.task.Call.Out[0].Shape, r.A, r.B)
	if err != nil {
		return err
	}
	name := map[recipe.SumKind]string{recipe.Add: "k_add_", recipe.Sub: "k_sub_", recipe.SquaredDifference: "k_squared_difference_"}[r.Kind]
	op := g.constantStruct(st, "k_sum", fmt.Sprintf(
		".walk = %s,\n.shift = %d, .zero_a = %d, .mul_a = %d, .shift_a = %d, .zero_b = %d, .mul_b = %d, .shift_b = %d,\n"+
			".mul = %d, .shift_out = %d, .zero = %d, .min = %d, .max = %d",
		walk, r.Shift, r.ZeroA, r.MulA.M, r.MulA.Shift, r.ZeroB, r.MulB.M, r.MulB.Shift, r.MulOut.M, r.MulOut.Shift, r.Zero, r.Min, r.Max))
	g.emit(st, "sum", name+suffix, op, g.in(st, 0, ctype), g.in(st, 1, ctype), g.out(st, 0, ctype))
	return nil
}
