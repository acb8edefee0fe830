package benchtext

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

var (
	neuronTitle = regexp.MustCompile(`^"?(.*\(LEVEL (\d+)\) - (Summary|Breakdown).*?)"?,*$`)
	neuronTotal = regexp.MustCompile(`Total Execution Time: ([\d.]+) ms(?: over (\d+) times inference)?`)
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

// readNeuron reads titled tables. The summary of the deepest level makes the layers; those above
// it hold the same time with what it takes to call them.
func readNeuron(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	return record.EachFile(ctx, in, func(f *record.File) ([]*runlog.Run, error) {
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		defer func() { _ = r.Close() }()
		s := textscan.NewScanner(r)
		var all []*scenario
		var cur *scenario
		rows := 0
		for s.Scan() {
			l := strings.TrimSpace(textscan.Strip(s.Text()))
			if m := neuronTitle.FindStringSubmatch(l); m != nil && len(all) < 1000 {
				level, _ := strconv.ParseInt(m[2], 10, 32)
				cur = &scenario{title: m[1], level: level, summary: m[3] == "Summary", times: 1}
				all = append(all, cur)
				continue
			}
			if cur == nil || l == "" {
				continue
			}
			if m := neuronTotal.FindStringSubmatch(l); m != nil {
				cur.total, _ = textscan.Number(m[1])
				if n, ok := textscan.Number(m[2]); ok && n > 0 {
					cur.times = n
				}
				continue
			}
			row := textscan.Fields(l, ',')
			for i := range row {
				row[i] = strings.TrimSpace(row[i])
			}
			if c := textscan.NewColumns(row); cur.cols.Names() == nil && c.At("Description") >= 0 {
				cur.cols = c
				continue
			}
			if rows++; cur.cols.Names() != nil && rows < draft.MaxLayers {
				cur.rows = append(cur.rows, row)
			}
		}
		d := neuronRun(draft.Stem(f), all)
		if d.Empty() {
			return nil, draft.ErrNothing
		}
		runs := []*runlog.Run{d.Run()}
		if s.Err() != nil {
			return runs, draft.At(f, s.Number(), s.Err())
		}
		return runs, nil
	})
}

// cell reads a number of a row, with or without its unit.
func (c *scenario) cell(row []string, names ...string) (float64, bool) {
	at := c.cols.At(names...)
	s := textscan.Cell(row, at)
	return textscan.Number(strings.TrimSuffix(s, "ms"))
}

func neuronRun(name string, all []*scenario) *draft.Draft {
	d := draft.New("neuron-runtime", name, "Neuron Runtime")
	var deepest, first *scenario
	for _, c := range all {
		if !c.summary {
			continue
		}
		if deepest == nil || c.level > deepest.level {
			deepest = c
		}
		if first == nil || c.level < first.level {
			first = c
		}
	}
	if first != nil && first.total > 0 {
		d.P.Totals.Latency = draft.Metric(&profile.Metric{Mean: new(first.total / first.times / 1e3), N: new(int64(min(first.times, 1e15)))})
		d.P.Settings.Runs = new(int64(min(first.times, 1e15)))
	}
	for _, c := range all {
		for _, row := range c.rows {
			what := textscan.Cell(row, c.cols.At("Description"))
			sum, ok := c.cell(row, "Time", "Time(ms)", "Time (ms)")
			if !ok || what == "" || !c.summary {
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
			i := d.Add(profile.Layer{Name: what, Op: "step"}, runlog.Hint{})
			if i < 0 {
				return d
			}
			d.Layer(i).Latency = draft.Metric(&profile.Metric{Mean: new(per / 1e3)})
			if v, ok := c.cell(row, "Ratio"); ok {
				d.Set(i, recorded, v/100)
			}
			if v, ok := c.cell(row, "ExeTimes"); ok {
				d.Set(i, profile.Quantity{Key: "executions", Name: "Executions", Group: "Record", Whole: true}, v)
			}
		}
		d.Note("table", c.title)
	}
	return d
}
