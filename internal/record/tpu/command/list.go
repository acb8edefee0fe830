package command

import (
	"bufio"
	"fmt"
	"io"
)

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
			line = fmt.Appendf(line, " %s=%d", c.Op.Fields[i].Name, v)
		}
	}
	return line
}
