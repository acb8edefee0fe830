// Package mltkdevice is a made-up board with the firmware of the MLTK model profiler: it prints
// its text with the firmware's rounding. Only tests import it.
package mltkdevice

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// Board is what a board has and measures.
type Board struct {
	Name, Accelerator string
	ClockHz           uint32
	RAM               uint32 // bytes
	Layers            []Layer
	// Time of the whole in microseconds, 0 for the sum of the layers.
	TimeUS uint32
}

// Layer is an operator with what it does and what that took.
type Layer struct {
	Op                       string
	Ops, MACs                uint32
	TimeUS, CPU, Accelerator uint32
	Refused                  string
}

// Units writes a number as the firmware does: above a thousand with a prefix and so many
// decimals, the rest cut off.
func Units(n uint32, decimals int) string {
	var unit string
	var divisor uint64
	switch {
	case n > 1e9:
		unit, divisor = "G", 1e9
	case n > 1e6:
		unit, divisor = "M", 1e6
	case n > 1e3:
		unit, divisor = "k", 1e3
	default:
		return fmt.Sprint(n)
	}
	power := uint64(1)
	for range decimals {
		power *= 10
	}
	scaled := uint64(n) * power / divisor
	return fmt.Sprintf("%d.%0*d%s", scaled/power, decimals, scaled%power, unit)
}

// Text is what the board prints for one run.
func (b *Board) Text() []byte {
	var w bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&w, format+"\r\n", args...) }
	name := func(i int) string { return fmt.Sprintf("Op%d-%s", i, b.Layers[i].Op) }
	divider := strings.Repeat("-", 22)
	line("Starting Model Profiler")
	line("Loading model")
	for i, l := range b.Layers {
		if l.Refused != "" {
			line("%s not supported: %s", name(i), l.Refused)
		}
	}
	line("Model details:")
	line("Name: %s", b.Name)
	line("Version: 1")
	line("Date: 2022-04-26T00:00:00.000Z")
	line("Hash: 0123456789abcdef")
	line("Accelerator: %s", b.Accelerator)
	line("Tensor runtime memory: %s", Units(b.RAM, 3))
	line("Input: 1x96x96x1 (int8)")
	line("Output: 1x3 (int8)")
	line("%s", divider)
	line("Profiler Metrics:")
	line("%s", divider)
	line("CPU clock: %sHz", Units(b.ClockHz, 1))
	whole := Layer{}
	for _, l := range b.Layers {
		whole.Ops, whole.MACs = whole.Ops+l.Ops, whole.MACs+l.MACs
		whole.TimeUS, whole.CPU, whole.Accelerator = whole.TimeUS+l.TimeUS, whole.CPU+l.CPU, whole.Accelerator+l.Accelerator
	}
	if b.TimeUS > 0 {
		whole.TimeUS = b.TimeUS
	}
	work := func(pad, name string, l Layer) {
		if l.Ops == 0 && l.MACs == 0 {
			return
		}
		line("%s%s", pad, name)
		if l.Ops != 0 {
			line("%s %7s OPs", pad, Units(l.Ops, 2))
		}
		if l.MACs != 0 {
			line("%s %7s MACs", pad, Units(l.MACs, 2))
		}
	}
	work("", "Inference", whole)
	for i, l := range b.Layers {
		work("  ", name(i), l)
	}
	line("%s", divider)
	line("%s", divider)
	b.times(line, "", "Inference", whole, true)
	for i, l := range b.Layers {
		b.times(line, "  ", name(i), l, false)
	}
	line("%s", divider)
	line("done")
	return w.Bytes()
}

// times prints what something took; nothing of it that is 0.
func (b *Board) times(line func(string, ...any), pad, name string, l Layer, whole bool) {
	if l.TimeUS == 0 && l.CPU == 0 && l.Accelerator == 0 {
		return
	}
	line("%s%s", pad, name)
	if l.TimeUS > 0 {
		line("%s  %3d.%03d ms", pad, l.TimeUS/1000, l.TimeUS%1000)
	}
	note := ""
	if whole {
		line("%s %8s CPU cycles (free running)", pad, Units(uint32(uint64(l.TimeUS)*uint64(b.ClockHz)/1e6), 2))
		note = " (sum of all child profilers)"
	}
	if l.CPU != 0 {
		line("%s %8s CPU cycles%s", pad, Units(l.CPU, 2), note)
	}
	if l.Accelerator != 0 {
		line("%s %8s Accelerator cycles%s", pad, Units(l.Accelerator, 2), note)
	}
	rate := func(n uint32) uint32 { return uint32(uint64(n) * 1e6 / uint64(l.TimeUS)) }
	if l.TimeUS > 0 && l.Ops != 0 {
		line("%s %8s OP/s", pad, Units(rate(l.Ops), 2))
	}
	if l.TimeUS > 0 && l.MACs != 0 {
		line("%s %8s MAC/s", pad, Units(rate(l.MACs), 2))
	}
}

// Run is the board as a device on a wire: it prints its text so many times.
func (b *Board) Run(times int) func(w io.Writer, r io.Reader) {
	text := b.Text()
	return func(w io.Writer, _ io.Reader) {
		for range times {
			if _, err := w.Write(text); err != nil {
				return
			}
		}
	}
}
