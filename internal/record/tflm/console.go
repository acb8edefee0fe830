package tflm

import (
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// Event is the call of an operator, or of something else that was timed.
type Event struct {
	Tag   string
	Ticks int64
	MS    int64 // milliseconds as printed, cut to whole ones, -1 where none are
	Row   int64 // number of the row in a table of events, -1 for a line of the log
}

// Hooks take what a console prints as it comes.
type Hooks struct {
	Event func(Event)
	// Break says that an inference may end here: other text, an empty line, a counter that
	// begins again.
	Break func()
	// Round is what a benchmark prints of n inferences before it lists their operators.
	Round func(n, ticks, ms int64)
	// Table is a table of ticks by tag with its sum.
	Table func(rows []Event, total int64)
}

func (h *Hooks) table(t *sums) {
	var rows []Event
	for _, r := range t.rows {
		rows = append(rows, Event{r.tag, r.ticks, -1, -1})
	}
	h.Table(rows, t.total)
}

// Console reads the text of a device a line at a time, with the same meaning as a log that is
// read from a file. Its memory is bounded.
type Console struct{ r reader }

// NewConsole makes a console that calls hooks, all of which are set.
func NewConsole(h *Hooks) *Console {
	c := &Console{reader{live: h}}
	c.r.log.model.tensors = map[int64]tensorInfo{}
	return c
}

// Line takes a line without its end.
func (c *Console) Line(text string) { c.r.line(strings.TrimSpace(textscan.Strip(text))) }

// Gap says that bytes were lost here: tables that were under way are over.
func (c *Console) Gap() {
	c.r.cut()
	c.r.t, c.r.wrap = nil, ""
}

// Describe makes the run of a device that called operators of these tags in this order, with
// what the console said of its model and memory until then.
func (c *Console) Describe(name string, tags []string) *runlog.Run {
	if p := c.r.log.model.path; p != "" {
		name = modelName(p)
	}
	d := draft.New("tflm", name, "TensorFlow Lite Micro")
	c.r.log.describe(d)
	for _, t := range tags {
		d.Add(profile.Layer{Name: t, Op: t}, runlog.Hint{})
	}
	c.r.log.join(d)
	return d.Run()
}

// Known reports whether a line is one of the profiler's.
func Known(line string) bool {
	line = strings.TrimSpace(textscan.Strip(line))
	return strings.HasSuffix(line, eventHead) || strings.HasSuffix(line, tagHead) || tookLine.MatchString(line)
}
