package firmware

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

// reduction returns the initialiser of a k_reduce: kept and reduced dimensions, with adjacent
// ones of a kind merged.
func reduction(shape []int, drop []bool) (string, error) {
	st := tensor.Strides(shape)
	var size, step [2][]int // what stays, what goes
	last := -1
	for i, d := range shape {
		if d == 1 {
			continue
		}
		k := 0
		if drop[i] {
			k = 1
		}
		if n := len(size[k]); k == last && n > 0 {
			size[k][n-1] *= d
			step[k][n-1] = st[i]
			continue
		}
		size[k], step[k] = append(size[k], d), append(step[k], st[i])
		last = k
	}
	if len(size[0]) > 3 || len(size[1]) > 3 {
		return "", unsupported("a reduction over %d separate groups of dimensions, at most 3 are possible", len(size[1]))
	}
	list := func(v []int, fill int) string {
		for len(v) < 3 {
			v = append([]int{fill}, v...)
		}
		return fmt.Sprintf("{%d, %d, %d}", v[0], v[1], v[2])
	}
	return fmt.Sprintf("{.keep = %s, .keep_step = %s, .drop = %s, .drop_step = %s}", list(size[0], 1), list(step[0], 0), list(size[1], 1), list(step[1], 0)), nil
}

func (g *generator) total(st *step, r recipe.Total) error {
	suffix, ctype, _ := ending(st.task.Call.In[0].Type)
	walk, err := reduction(r.Shape, r.Drop)
	if err != nil {
		return err
	}
	op := g.constantStruct(st, "k_total", fmt.Sprintf(".walk = %s,\n.offset = %d, .mul = %d, .shift = %d, .zero = %d, .min = %d, .max = %d",
		walk, r.Offset, r.Mul.M, r.Mul.Shift, r.Zero, r.Min, r.Max))
	g.emit(st, "reduce", "k_total_"+suffix, op, g.in(st, 0, ctype), g.out(st, 0, ctype))
	return nil
}

func (g *generator) extreme(st *step, r recipe.Extreme) error {
	suffix, ctype, ok := plainEnding(st.task.Call.In[0].Type)
	if !ok || suffix == "s64" {
		return unsupported("no kernel for %s", types(&st.task.Call))
	}
	walk, err := reduction(r.Shape, r.Drop)
	if err != nil {
		return err
	}
	name := "k_reduce_max_"
	if r.Least {
		name = "k_reduce_min_"
	}
	op := g.constantStruct(st, "k_reduce", walk[1:len(walk)-1])
	g.emit(st, "reduce", name+suffix, op, g.in(st, 0, ctype), g.out(st, 0, ctype))
	return nil
}

// plainEnding is [ending] with the additional types that have no scales.
func plainEnding(t tensor.Type) (suffix, ctype string, ok bool) {
	switch t {
	case tensor.Int32:
		return "s32", "int32_t", true
	case tensor.Int64:
		return "s64", "int64_t", true
	}
	return ending(t)
}

func (g *generator) arg(st *step, r recipe.Arg) error {
	c := &st.task.Call
	from, x, okX := plainEnding(c.In[0].Type)
	to, y, okY := plainEnding(c.Out[0].Type)
	if !okX || from == "s64" || !okY || to != "s32" && to != "s64" || r.N < 1 {
		return unsupported("no kernel for %s", types(c))
	}
	least := 0
	if r.Least {
		least = 1
	}
	op := g.constantStruct(st, "k_arg", fmt.Sprintf(".outer = %d, .n = %d, .inner = %d, .least = %d", r.Outer, r.N, r.Inner, least))
	g.emit(st, "reduce", "k_arg_"+from+"_"+to, op, g.in(st, 0, x), g.out(st, 0, y))
	return nil
}
