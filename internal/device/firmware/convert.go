package firmware

import (
	"fmt"
	"math"
	"strconv"

	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

func (g *generator) rescale(st *step, r recipe.Rescale) error {
	c := &st.task.Call
	from, x, okX := plainEnding(c.In[0].Type)
	to, y, okY := plainEnding(c.Out[0].Type)
	if !okX || !okY {
		return unsupported("no kernel for %s", types(c))
	}
	op := g.constantStruct(st, "k_rescale", fmt.Sprintf(".zero_in = %d, .mul = %d, .shift = %d, .zero = %d, .min = %s, .max = %d", r.ZeroIn, r.Mul.M, r.Mul.Shift, r.Zero, integer(r.Min), r.Max))
	g.emit(st, "convert", "k_rescale_"+from+"_"+to, op, g.in(st, 0, x), g.out(st, 0, y), text("%d", c.In[0].Len()))
	return nil
}

// integer formats a number as a C expression: the smallest int32 has no literal of its own.
func integer(v int32) string {
	if v == math.MinInt32 {
		return "INT32_MIN"
	}
	return strconv.Itoa(int(v))
}

// real formats a float32 exactly as a C99 hexadecimal literal.
func real(v float32) string { return strconv.FormatFloat(float64(v), 'x', -1, 32) + "f" }

func (g *generator) quantise(st *step, r recipe.Quantise) error {
	c := &st.task.Call
	to, y, ok := plainEnding(c.Out[0].Type)
	if !ok || to == "s64" {
		return unsupported("no kernel for %s", types(c))
	}
	op := g.constantStruct(st, "k_quantise", fmt.Sprintf(".scale = %s, .zero = %d, .min = %s, .max = %d", real(r.Scale), r.Zero, integer(r.Min), r.Max))
	g.emit(st, "convert", "k_quantise_"+to, op, g.in(st, 0, "float"), g.out(st, 0, y), text("%d", c.In[0].Len()))
	return nil
}

func (g *generator) dequantise(st *step, r recipe.Dequantise) error {
	c := &st.task.Call
	from, x, ok := plainEnding(c.In[0].Type)
	if !ok || from == "s64" {
		return unsupported("no kernel for %s", types(c))
	}
	op := g.constantStruct(st, "k_dequantise", fmt.Sprintf(".scale = %s, .zero = %d", real(r.Scale), r.Zero))
	g.emit(st, "convert", "k_dequantise_"+from, op, g.in(st, 0, x), g.out(st, 0, "float"), text("%d", c.In[0].Len()))
	return nil
}

// sigmoid returns the table of the 16-bit logistic function.
func (g *generator) sigmoid() *datum {
	t := fixed.SigmoidTable()
	return integers(g, "sigmoid", 0, 2, t[:], "65536 times the logistic function of i / 24")
}

func (g *generator) curve(st *step, r recipe.Curve16) error {
	name := "k_logistic_s16"
	if r.Tanh {
		name = "k_tanh_s16"
	}
	op := g.constantStruct(st, "k_curve", fmt.Sprintf(".table = %s, .mul = %d, .shift = %d", g.sigmoid().name, r.Mul, r.Shift))
	g.emit(st, "curve", name, op, g.in(st, 0, "int16_t"), g.out(st, 0, "int16_t"), text("%d", st.task.Call.In[0].Len()))
	return nil
}

func (g *generator) wideSoftmax(st *step, r recipe.WideSoftmax) error {
	e, q := fixed.SoftmaxTables()
	exp, reciprocal := integers(g, "exp", st.layer, 2, e[:], "exponentials"), integers(g, "reciprocal", st.layer, 2, q[:], "reciprocals")
	op := g.constantStruct(st, "k_softmax16", fmt.Sprintf(".rows = %d, .depth = %d, .mul = %d, .shift = %d, .exp = (const int16_t *)%s, .reciprocal = (const int16_t *)%s",
		r.Rows, r.Depth, r.Mul.M, r.Mul.Shift, exp.name, reciprocal.name))
	g.emit(st, "curve", "k_softmax_s16", op, g.in(st, 0, "int16_t"), g.out(st, 0, "int16_t"))
	return nil
}

func (g *generator) bilinear(st *step, r recipe.Bilinear) error {
	suffix, ctype, _ := ending(st.task.Call.In[0].Type)
	list := func(kind string, taps []recipe.Tap) string {
		v := make([]int32, 0, 3*len(taps))
		for _, t := range taps {
			v = append(v, int32(t.Lo), int32(t.Hi), int32(t.F))
		}
		return integers(g, kind, st.layer, 4, v, "neighbours and weights").name
	}
	op := g.constantStruct(st, "k_bilinear", fmt.Sprintf(
		".batch = %d, .in_h = %d, .in_w = %d, .channels = %d, .out_h = %d, .out_w = %d,\n.rows = (const int32_t *)%s, .cols = (const int32_t *)%s",
		r.N, r.H, r.W, r.C, len(r.Rows), len(r.Cols), list("rows", r.Rows), list("cols", r.Cols)))
	g.emit(st, "resize", "k_bilinear_"+suffix, op, g.in(st, 0, ctype), g.out(st, 0, ctype))
	return nil
}

func (g *generator) leaky(st *step, r recipe.Leaky) error {
	op := g.constantStruct(st, "k_leaky", fmt.Sprintf(".zero_in = %d, .mul_up = %d, .shift_up = %d, .mul_down = %d, .shift_down = %d, .zero = %d",
		r.ZeroIn, r.Up.M, r.Up.Shift, r.Down.M, r.Down.Shift, r.Zero))
	g.emit(st, "curve", "k_leaky_s16", op, g.in(st, 0, "int16_t"), g.out(st, 0, "int16_t"), text("%d", st.task.Call.In[0].Len()))
	return nil
}
