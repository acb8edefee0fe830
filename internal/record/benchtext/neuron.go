package benchtext

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

var (
	neuronTitle = lazyregexp.New(`^"?(.*\(LEVEL (\d+)\) - (Summary|Breakdown).*?)"?,*$`)
	neuronTotal = lazyregexp.New(`Total Execution Time: ([\d.]+) ms(?: over (\d+) times inference)?`)
	executions  = profile.Quantity{Key: "executions", Name: "Executions", Group: "Record", Whole: true}
)

// scenario is one of the profiler's tables.
type scenario struct {
	title   string
	level   int64
	summary bool
	total   float64 // milliseconds, over all inferences
	times   float64 // inferences
	cols    textscan.Columns
	rows    [][]string
}

// readNeuron reads titled tables. A title that comes again begins another run.
func readNeuron(_ context.Context, _ *record.Input, f *record.File) ([]*runlog.Run, error) {
	var ds []*draft.Draft
	var all []*scenario
	end := func() {
		if d := neuronRun(draft.Stem(f), all); !d.Empty() && len(ds) < draft.MaxRuns {
			ds = append(ds, d)
		}
		all = nil
	}
	var cur *scenario
	rows := 0
	err := f.Lines(func(l string) {
		l = strings.TrimSpace(textscan.Strip(l))
		if m := neuronTitle.FindStringSubmatch(l); m != nil && len(all) < 1000 {
			if slices.ContainsFunc(all, func(c *scenario) bool { return c.title == m[1] }) {
				end()
			}
			level, _ := strconv.ParseInt(m[2], 10, 32)
			cur = &scenario{title: m[1], level: level, summary: m[3] == "Summary", times: 1}
			all = append(all, cur)
			return
		}
		if cur == nil || l == "" {
			return
		}
		if m := neuronTotal.FindStringSubmatch(l); m != nil {
			cur.total, _ = textscan.Number(m[1])
			if n, ok := textscan.Number(m[2]); ok && n > 0 {
				cur.times = n
			}
			return
		}
		row := textscan.Fields(l, ',')
		if c := textscan.NewColumns(row); cur.cols.Names() == nil && c.At("Description") >= 0 {
			cur.cols = c
		} else if rows++; cur.cols.Names() != nil && rows < draft.MaxLayers {
			cur.rows = append(cur.rows, row)
		}
	})
	end()
	return apart(ds, err)
}

// cell reads a number of a row, with or without its unit.
func (c *scenario) cell(row []string, names ...string) (float64, bool) {
	return textscan.Number(strings.TrimSuffix(c.cols.Text(row, names...), "ms"))
}

// neuronRun makes layers of the summary of the deepest level. Those above it have the same time
// plus the time to call it.
func neuronRun(name string, all []*scenario) *draft.Draft {
	d := draft.New("neuron-runtime", name, "Neuron Runtime")
	var deepest, first *scenario
	for _, c := range all {
		if c.summary && (deepest == nil || c.level > deepest.level) {
			deepest = c
		}
		if c.summary && (first == nil || c.level < first.level) {
			first = c
		}
	}
	if first != nil && first.total > 0 {
		d.P.Settings.Runs = new(int64(min(first.times, 1e15)))
		d.P.Totals.Latency = draft.Metric(&profile.Metric{Mean: new(first.total / first.times / 1e3), N: d.P.Settings.Runs})
	}
	for _, c := range all {
		for _, row := range c.rows {
			what := c.cols.Text(row, "Description")
			sum, ok := c.cell(row, "Time", "Time(ms)", "Time (ms)")
			if !ok || what == "" || !c.summary {
				if c.summary {
					d.Dropped.Add("rows without a time", 1)
				}
				continue
			}
			per, has := c.cell(row, "Time/Inf.", "Time/Inf", "Time/Inf.(ms)")
			if !has {
				per = sum / c.times
			}
			if c != deepest {
				key := "level_" + strconv.FormatInt(c.level, 10) + "_" + runlog.Key(what) + "_s"
				d.Total(profile.Quantity{Key: key, Unit: "s", Name: c.title + ": " + what, Group: "Time"}, per/1e3)
				continue
			}
			i := d.Add(profile.Layer{Name: what, Op: "step", Latency: draft.Metric(&profile.Metric{Mean: new(per / 1e3)})}, runlog.Hint{})
			d.SetKnown(i, recorded, draft.Known(c.cell(row, "Ratio")), 1e-2)
			d.SetKnown(i, executions, draft.Known(c.cell(row, "ExeTimes")), 1)
		}
		d.Note("table", c.title)
	}
	return d
}
