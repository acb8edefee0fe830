// Package tflmdevice is a made-up board whose firmware prints what the profiler of TensorFlow
// Lite Micro recorded. Only tests import it.
package tflmdevice

import (
	"bytes"
	"fmt"
	"io"
)

// Form is what the firmware prints.
type Form int

// Forms are those of the profiler.
const (
	Lines Form = iota // a line an operator
	Table             // rows of events with numbers
	Sums              // sums by operator
)

// Board is what a board runs.
type Board struct {
	Ops     []string
	ClockHz uint64 // ticks a second
	Form    Form
	// Between is text between inferences, such as an empty line; "" for none.
	Between string
	// End is that of a line, CR LF where it is empty.
	End string
}

// Ticks is how long an operator takes in an inference, from 0.
func (b *Board) Ticks(run, op int) uint32 { return uint32(1000 + 7919*(op%13) + 37*op + 3*run) }

// Inference is the text of one.
func (b *Board) Inference(run int) []byte {
	var w bytes.Buffer
	end := b.End
	if end == "" {
		end = "\r\n"
	}
	line := func(format string, args ...any) { fmt.Fprintf(&w, format+end, args...) }
	switch b.Form {
	case Lines:
		for i, op := range b.Ops {
			t := uint64(b.Ticks(run, i))
			line("%s took %d ticks (%d ms).", op, int32(t), t*1000/b.ClockHz)
		}
	case Table:
		line(`"Event","Tag","Ticks"`)
		for i, op := range b.Ops {
			line("%d,%s,%d", i, op, b.Ticks(run, i))
		}
	case Sums:
		line(`"Unique Tag","Total ticks across all events with that tag."`)
		var order []string
		sum := map[string]uint32{}
		total := uint32(0)
		for i, op := range b.Ops {
			if _, ok := sum[op]; !ok {
				order = append(order, op)
			}
			sum[op] += b.Ticks(run, i)
			total += b.Ticks(run, i)
		}
		for _, op := range order {
			line("%s, %d", op, int32(sum[op]))
		}
		line(`"total number of ticks", %d`, int32(total))
	}
	w.WriteString(b.Between)
	return w.Bytes()
}

// Text is that of so many inferences.
func (b *Board) Text(runs int) (out []byte) {
	for i := range runs {
		out = append(out, b.Inference(i)...)
	}
	return out
}

// Run is the board as a device on a wire.
func (b *Board) Run(runs int) func(w io.Writer, r io.Reader) {
	return func(w io.Writer, _ io.Reader) {
		for i := range runs {
			if _, err := w.Write(b.Inference(i)); err != nil {
				return
			}
		}
	}
}
