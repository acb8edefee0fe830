package firmware

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

func (g *generator) transposeConv(st *step, r recipe.TransposeConv) error {
	c := &st.task.Call
	suffix, ctype, ok := ending(c.In[r.Data].Type)
	if !ok || c.Out[0].Type != c.In[r.Data].Type {
		return unsupported("no kernel for %s", types(c))
	}
	w, b, err := g.filter(st, r.Data, r.Filter, r.Sums, 0, r.OC, func(int) int { return 0 })
	if err != nil {
		return err
	}
	op := g.constantStruct(st, "k_conv", fmt.Sprintf(
		".batch = %d, .in_h = %d, .in_w = %d, .in_c = %d, .out_h = %d, .out_w = %d, .out_c = %d,\n"+
			".kernel_h = %d, .kernel_w = %d, .stride_h = %d, .stride_w = %d, .dilation_h = 1, .dilation_w = 1, .pad_top = %d, .pad_left = %d,\n"+
			".groups = 1, .zero = %d, .weights = %s, .bias = %s, .narrow = %d,\n.out = %s",
		r.N, r.H, r.W, r.C, r.OH, r.OW, r.OC, r.KH, r.KW, r.StrideH, r.StrideW, r.PadT, r.PadL, r.Zero, w.name, b.name, narrow(r.Sums), g.output(st, r.Sums)))
	size, sum := 4, "uint32_t"
	if suffix == "s16" {
		size, sum = 8, "uint64_t"
	}
	sums := g.scratch(r.OH * r.OW * r.OC * size)
	g.emit(st, "transpose_conv", "k_transpose_conv_"+suffix, op, g.in(st, r.Data, ctype),
		func() string { return fmt.Sprintf("(%s *)(arena + %d)", sum, sums.offset) }, g.out(st, 0, ctype))
	return nil
}

func (g *generator) matmul(st *step, r recipe.MatMul) error {
	c := &st.task.Call
	suffix, x, _ := ending(c.In[0].Type)
	y := x
	if c.In[1].Type != c.In[0].Type {
		suffix, y = "s16_s8", "int8_t"
	}
	list := func(kind string, v []int) string {
		at := make([]int32, len(v))
		for i, o := range v {
			at[i] = int32(o)
		}
		return integers(g, kind, st.layer, 4, at, "places of matrices").name
	}
	xRow, xStep, yCol, yStep := r.K, 1, 1, r.N
	if r.AdjX {
		xRow, xStep = 1, r.M
	}
	if r.AdjY {
		yCol, yStep = r.K, 1
	}
	op := g.constantStruct(st, "k_matmul", fmt.Sprintf(
		".batch = %d, .m = %d, .n = %d, .k = %d, .x_row = %d, .x_step = %d, .y_col = %d, .y_step = %d,\n"+
			".x_at = (const int32_t *)%s, .y_at = (const int32_t *)%s, .zero_x = %d, .zero_y = %d,\n.out = %s",
		len(r.X), r.M, r.N, r.K, xRow, xStep, yCol, yStep, list("xat", r.X), list("yat", r.Y), r.ZeroX, r.ZeroY, g.output(st, r.Sums)))
	g.emit(st, "matmul", "k_matmul_"+suffix, op, g.in(st, 0, x), g.in(st, 1, y), g.out(st, 0, x))
	return nil
}
