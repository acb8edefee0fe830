package command

import (
	"bufio"
	"io"
	"strconv"
)

// List writes a stream's commands, a line each: its number, place, id, the id waited
// for, layout, sub-function and all fields that are not zero.
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

// AppendText appends the line that List has for the command with an index.
func (c *Command) AppendText(line []byte, index int) []byte {
	line = strconv.AppendInt(line, int64(index+1), 10)
	line = append(line, " @0x"...)
	line = strconv.AppendInt(line, int64(c.Offset), 16)
	line = append(line, " id="...)
	line = strconv.AppendUint(line, uint64(c.ID), 10)
	line = append(line, " dep="...)
	line = strconv.AppendUint(line, uint64(c.Dep), 10)
	line = append(line, ' ')
	line = append(line, c.Op.Name...)
	line = append(line, ' ')
	line = append(line, c.Name()...)
	for i := range c.Op.Fields {
		if v := c.Field(i); v != 0 {
			line = append(line, ' ')
			line = append(line, c.Op.Fields[i].Name...)
			line = append(line, '=')
			line = strconv.AppendUint(line, v, 10)
		}
	}
	return line
}
