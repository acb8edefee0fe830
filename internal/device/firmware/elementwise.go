package firmware

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

func (g *generator) product(st *step, r recipe.Product) error {
	suffix, ctype, _ := ending(st.task.Call.In[0].Type)
	walk, err := broadcast(st.task.Call.Out[0].Shape, r.A, r.B)
	if err != nil {
		return err
	}
	op := g.constantStruct(st, "k_product", fmt.Sprintf(".walk = %s,\n.zero_a = %d, .zero_b = %d, .mul = %d, .shift = %d, .zero = %d, .min = %d, .max = %d",
		walk, r.ZeroA, r.ZeroB, r.Mul.M, r.Mul.Shift, r.Zero, r.Min, r.Max))
	g.emit(st, "binary", "k_mul_"+suffix, op, g.in(st, 0, ctype), g.in(st, 1, ctype), g.out(st, 0, ctype))
	return nil
}

func (g *generator) prelu(st *step, r recipe.PRelu) error {
	suffix, ctype, _ := ending(st.task.Call.In[0].Type)
	walk, err := broadcast(st.task.Call.Out[0].Shape, r.A, r.B)
	if err != nil {
		return err
	}
	op := g.constantStruct(st, "k_prelu", fmt.Sprintf(
		".walk = %s,\n.zero_a = %d, .zero_b = %d, .mul_up = %d, .shift_up = %d, .mul_down = %d, .shift_down = %d, .zero = %d, .min = %d, .max = %d",
		walk, r.ZeroA, r.ZeroB, r.Up.M, r.Up.Shift, r.Down.M, r.Down.Shift, r.Zero, r.Min, r.Max))
	g.emit(st, "binary", "k_prelu_"+suffix, op, g.in(st, 0, ctype), g.in(st, 1, ctype), g.out(st, 0, ctype))
	return nil
}

var plainNames = map[recipe.PlainKind]string{
	recipe.PlainAdd: "add", recipe.PlainSub: "sub", recipe.PlainMul: "mul", recipe.PlainMax: "max", recipe.PlainMin: "min",
	recipe.PlainSquaredDifference: "squared_difference",
}

func (g *generator) plain(st *step, r recipe.Plain) error {
	suffix, ctype, ok := plainEnding(st.task.Call.In[0].Type)
	name := plainNames[r.Kind]
	if !ok || name == "" {
		return unsupported("no kernel for %s", types(&st.task.Call))
	}
	if r.Clamped {
		return unsupported("an activation on integers without scales")
	}
	walk, err := broadcast(st.task.Call.Out[0].Shape, r.A, r.B)
	if err != nil {
		return err
	}
	op := g.constantStruct(st, "k_spread", walk[1:len(walk)-1])
	g.emit(st, "binary", "k_plain_"+name+"_"+suffix, op, g.in(st, 0, ctype), g.in(st, 1, ctype), g.out(st, 0, ctype))
	return nil
}
