package command

// BM1684 has one layout for each engine; its commands are told apart by fields.
var (
	names1684 = [...]string{
		"conv", "depthwise_or_pooling", "fc", "tensor_arithmetic", "fc2", "conv_correlation", "table_lookup", "md_sum", "md_scalar",
		"md_sfu", "md_linear", "localmem_arange", "decompress", "md_cmp", "vector_correlation",
	}
	copies1684 = [...]string{"normal", "trans", "lrn_shift", "format", "constant", "cw_trans", "winograd", "filter", "filter_res_counter"}
	types1684  = [...]DType{FP32, Int16, Int8, Int8, FP16}
)

// Func is the number that logs of the compiler give the command's kind: its type, on
// BM1684 the task of tensor commands and the special function of copies.
func (c *Command) Func() int {
	switch {
	case c.Op.Type >= 0:
		return c.Op.Type
	case c.Op.Engine == TIU:
		return int(c.Get(TaskType))
	}
	return int(c.Sub)
}

// Name is the name of the command's sub-function, or of its layout where it has none.
func (c *Command) Name() string {
	if c.Op.Type < 0 {
		return c.name1684()
	}
	if n := c.Op.funcs[int(c.Sub)]; n != "" {
		return n
	}
	return c.Op.Name
}

func (c *Command) name1684() string {
	names := copies1684[:]
	if c.Op.Engine == TIU {
		names = names1684[:]
	}
	if n := c.Func(); n < len(names) {
		return names[n]
	}
	return c.Op.Name
}
