package command

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strconv"
)

// The names of BM1684's commands. The chip has one layout for each engine, and a field tells the
// kind of a command.
var (
	names1684 = [...]string{
		"conv", "depthwise_or_pooling", "fc", "tensor_arithmetic", "fc2", "conv_correlation", "table_lookup", "md_sum", "md_scalar",
		"md_sfu", "md_linear", "localmem_arange", "decompress", "md_cmp", "vector_correlation",
	}
	copies1684 = [...]string{"normal", "trans", "lrn_shift", "format", "constant", "cw_trans", "winograd", "filter", "filter_res_counter"}
	types1684  = [...]DType{FP32, Int16, Int8, Int8, FP16}
)

// Func returns the number of the command's kind in logs of the compiler: its type, for BM1684 the
// task of tensor commands and the special function of copies.
func (c *Command) Func() int {
	switch {
	case c.Op.Type >= 0:
		return c.Op.Type
	case c.Op.Engine == TIU:
		return int(c.Get(TaskType))
	}
	return int(c.Sub)
}

// Name returns the name of the command's sub-function, or of its layout if it has none.
func (c *Command) Name() string {
	name := c.Op.funcs[int(c.Sub)]
	if c.Op.Type < 0 {
		name = Name1684(c.Func(), c.Op.Engine != TIU)
	}
	return cmp.Or(name, c.Op.Name)
}

// Name1684 returns the name of a kind of command of BM1684, "" for unknown numbers.
func Name1684(n int, isCopy bool) string {
	names := names1684[:]
	if isCopy {
		names = copies1684[:]
	}
	if n < 0 || n >= len(names) {
		return ""
	}
	return names[n]
}

// List writes a line for each command of a stream: number, place, id, the id that it waits for,
// layout, sub-function and all fields that are not zero.
func List(w io.Writer, list []Command) error {
	out := bufio.NewWriterSize(w, 1<<16)
	var line []byte
	for i := range list {
		line = append(list[i].AppendText(line[:0], i), '\n')
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// AppendText appends the line of [List] for the command with an index.
func (c *Command) AppendText(line []byte, index int) []byte {
	line = fmt.Appendf(line, "%d @0x%x id=%d dep=%d %s %s", index+1, c.Offset, c.ID, c.Dep, c.Op.Name, c.Name())
	for i := range c.Op.Fields {
		if v := c.Field(i); v != 0 {
			line = append(append(append(line, ' '), c.Op.Fields[i].Name...), '=')
			line = strconv.AppendUint(line, v, 10)
		}
	}
	return line
}
