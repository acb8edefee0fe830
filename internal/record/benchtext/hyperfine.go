package benchtext

import (
	"cmp"
	"context"
	"slices"

	"github.com/opmeter/opmeter/internal/base/jsontree"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// maxHyperfine limits the size of a file, maxCommands the number of its results.
const (
	maxHyperfine = 64 << 20
	maxCommands  = 2000
)

// hyperfineKeys are the members of a result that have a place in the profile.
var hyperfineKeys = []string{"command", "mean", "stddev", "median", "user", "system", "min", "max", "times", "exit_codes", "memory_usage_byte"}

// readHyperfine makes a run of each command.
func readHyperfine(_ context.Context, _ *record.Input, f *record.File) ([]*runlog.Run, error) {
	if f.JSONHead("{") == nil {
		return hyperfineCSV(f)
	}
	var runs []*runlog.Run
	var damaged error
	err := f.EachJSON(maxHyperfine, func(v *jsontree.Value, fault error) {
		damaged = cmp.Or(damaged, fault)
		for _, r := range v.Get("results").List() {
			if r.Get("command").Str() == "" || len(runs) >= maxCommands {
				continue
			}
			d := hyperfineResult(r)
			d.Dropped.Add(draft.NotFinite, r.Odd())
			if rs, _ := d.Runs(fault); rs != nil {
				runs = append(runs, rs...)
			}
		}
	})
	if runs != nil {
		damaged = nil
	}
	return draft.NotEmpty(runs, cmp.Or(err, damaged))
}

func hyperfineResult(r *jsontree.Value) *draft.Draft {
	var times []float64
	for _, t := range r.Get("times").List() {
		if x, ok := t.Float(); ok {
			times = append(times, x)
		}
	}
	d := command(r.Get("command").Str(), func(key string) *float64 { return draft.Known(r.Get(key).Float()) }, times)
	failed := int64(0)
	for _, c := range r.Get("exit_codes").List() {
		if n, ok := c.Int(); !ok || n != 0 {
			failed++
		}
	}
	if failed > 0 {
		d.Found("hyperfine.exit", profile.Problem, "%d runs of the command ended with an error.", failed)
	}
	peak := int64(-1)
	for _, m := range r.Get("memory_usage_byte").List() {
		if n, ok := m.Int(); ok {
			peak = max(peak, n)
		}
	}
	if peak >= 0 {
		d.P.Memory = &profile.Memory{ProcessPeakBytes: &peak}
	}
	for key, item := range r.Members() {
		if !slices.Contains(hyperfineKeys, key) {
			d.Note(key, item.Brief())
		}
	}
	return d
}

// command makes the run of a command.
func command(name string, get func(string) *float64, times []float64) *draft.Draft {
	d := draft.New("hyperfine", name, "")
	m := &profile.Metric{Mean: get("mean"), StdDev: get("stddev"), Median: get("median"), Min: get("min"), Max: get("max")}
	// Recorded figures are kept; those that the record lacks follow from its samples.
	s, kept := draft.Samples(times, "")
	d.P.Totals.LatencySamples = kept
	if s != nil {
		m.N, m.MAD, m.P90, m.P95, m.P99, m.CI95, m.Outliers = s.N, s.MAD, s.P90, s.P95, s.P99, s.CI95, s.Outliers
		d.P.Settings.Runs = s.N
	}
	m.Method = "wall time of the whole program"
	d.P.Totals.Latency = draft.Metric(m)
	user, system := get("user"), get("system")
	if user != nil && system != nil {
		d.Total(profile.Quantity{Key: "processor_s"}, *user+*system)
		d.Total(profile.Quantity{Key: "user_s", Unit: "s", Name: "Processor time of the program", Group: "Time"}, *user)
		d.Total(profile.Quantity{Key: "system_s", Unit: "s", Name: "Processor time of the system", Group: "Time"}, *system)
	}
	return d
}

func hyperfineCSV(f *record.File) ([]*runlog.Run, error) {
	var cols textscan.Columns
	var runs []*runlog.Run
	bad := int64(0)
	err := f.Lines(func(l string) {
		row := textscan.Fields(l, ',')
		if cols.Names() == nil {
			cols = textscan.NewColumns(row)
			return
		}
		if len(row) < len(cols.Names()) || len(runs) >= maxCommands {
			bad++
			return
		}
		odd := int64(0)
		d := command(cols.Text(row, "command"), func(key string) *float64 {
			v, ok := cols.Number(row, key)
			if text := cols.Text(row, key); text != "" && (!ok || v < 0) {
				odd++
			}
			return draft.Known(v, ok && v >= 0)
		}, nil)
		d.Dropped.Add("figures that are negative or cannot be read", odd)
		for i := 8; i < len(cols.Names()); i++ {
			d.Note(cols.Names()[i], textscan.Cell(row, i))
		}
		if d.Empty() {
			bad++
			return
		}
		runs = append(runs, d.Run())
	})
	if err == nil && len(runs) > 0 && bad > 0 {
		runs[0].Found("record.dropped", profile.Warning, "%d rows of the file could not be used.", bad)
	}
	return draft.NotEmpty(runs, err)
}
