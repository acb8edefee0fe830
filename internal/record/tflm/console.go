package tflm

import (
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// Event is the call of an operator, or of something else that was timed.
type Event struct {
	Tag   string
	Ticks int64 // [Unknown] if the count cannot be read
	MS    int64 // milliseconds as printed, truncated to integers, -1 if absent
	Row   int64 // number of the row in a table of events, -1 for a line of the log

	wrapped  bool  // the count was printed as negative
	signedMS int64 // milliseconds of the negative count without its sign, -1 if absent
}

// Hooks receive the output of a console as it comes.
type Hooks struct {
	Event func(Event)
	// Break says that an inference may end here: other text, an empty line, a counter that
	// begins again.
	Break func()
	// Round is the line of a benchmark about n inferences before it lists their operators.
	Round func(n, ticks, ms int64)
	// Table is a table of ticks by tag with its sum.
	Table func(rows []Event, total int64)
}

// Console reads the text of a device line by line, with the same meaning as a log that is
// read from a file. Its memory is bounded.
type Console struct{ r reader }

// NewConsole makes a console that calls hooks, all of which are set.
func NewConsole(h *Hooks) *Console { return &Console{newReader(h)} }

// Line reads a line without its end.
func (c *Console) Line(text string) { c.r.line(strings.TrimSpace(textscan.Strip(text))) }

// Gap says that bytes were lost here: current tables end.
func (c *Console) Gap() {
	c.r.cut()
	c.r.t, c.r.wrap = nil, ""
}

// Describe makes the run of a device that called operators of these tags in this order, with
// the console's text about model and memory so far.
func (c *Console) Describe(name string, tags []string) *runlog.Run {
	d := c.r.log.draft(name)
	for _, t := range tags {
		d.Add(profile.Layer{Name: t, Op: t}, runlog.Hint{})
	}
	c.r.log.join(d)
	return d.Run()
}

// Known reports whether the profiler prints such a line.
func Known(line string) bool {
	line = strings.TrimSpace(textscan.Strip(line))
	return strings.HasSuffix(line, eventHead) || strings.HasSuffix(line, tagHead) || tookLine.MatchString(line)
}
