package benchtext

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/base/jsontree"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// maxHyperfine bounds a file, maxCommands its results.
const (
	maxHyperfine = 64 << 20
	maxCommands  = 2000
)

// readHyperfine makes a run of each command.
func readHyperfine(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	return record.EachFile(ctx, in, func(f *record.File) ([]*runlog.Run, error) {
		if bytes.HasPrefix(bytes.TrimLeft(f.Head, " \t\r\n\xef\xbb\xbf"), []byte("{")) {
			return hyperfineJSON(f, in)
		}
		return hyperfineCSV(f, in)
	})
}

func hyperfineJSON(f *record.File, in *record.Input) ([]*runlog.Run, error) {
	text, err := f.Read(maxHyperfine)
	if err != nil {
		return nil, err
	}
	v, fault := jsontree.Parse(text)
	var runs []*runlog.Run
	for _, r := range v.Get("results").List() {
		if r.Get("command").Str() == "" || len(runs) >= maxCommands {
			continue
		}
		get := func(key string) *float64 {
			if x, ok := r.Get(key).Float(); ok {
				return &x
			}
			return nil
		}
		var times []float64
		for _, t := range r.Get("times").List() {
			if x, ok := t.Float(); ok {
				times = append(times, x)
			}
		}
		d := command(r.Get("command").Str(), get, times)
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
			if !slices.Contains([]string{"command", "mean", "stddev", "median", "user", "system", "min", "max", "times", "exit_codes", "memory_usage_byte"}, key) {
				d.Note(key, item.Brief())
			}
		}
		if d.Empty() {
			continue
		}
		if fault != nil {
			d.Dropped.Add(fmt.Sprintf("the text is damaged: %v", fault), 1)
		}
		runs = append(runs, d.Run())
	}
	if len(runs) == 0 {
		if fault == nil {
			fault = draft.ErrNothing
		}
		return nil, fault
	}
	return runs, nil
}

// command makes the run of a command.
func command(name string, get func(string) *float64, times []float64) *draft.Draft {
	d := draft.New("hyperfine", name, "")
	m := &profile.Metric{Mean: get("mean"), StdDev: get("stddev"), Median: get("median"), Min: get("min"), Max: get("max")}
	if len(times) > 0 {
		// The record's own figures stand; what it lacks follows from its samples.
		s, kept := draft.Samples(times, "")
		d.P.Totals.LatencySamples = kept
		if s != nil {
			m.N, m.MAD, m.P90, m.P95, m.P99, m.CI95, m.Outliers = s.N, s.MAD, s.P90, s.P95, s.P99, s.CI95, s.Outliers
			d.P.Settings.Runs = s.N
		}
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

func hyperfineCSV(f *record.File, in *record.Input) ([]*runlog.Run, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	s := textscan.NewScanner(r)
	var cols textscan.Columns
	var runs []*runlog.Run
	bad := int64(0)
	for s.Scan() {
		row := textscan.Fields(s.Text(), ',')
		if cols.Names() == nil {
			cols = textscan.NewColumns(row)
			continue
		}
		if len(row) < len(cols.Names()) || len(runs) >= maxCommands {
			bad++
			continue
		}
		d := command(textscan.Cell(row, cols.At("command")), func(key string) *float64 {
			if x, ok := textscan.Number(textscan.Cell(row, cols.At(key))); ok {
				return &x
			}
			return nil
		}, nil)
		for i := 8; i < len(cols.Names()); i++ {
			d.Note(cols.Names()[i], textscan.Cell(row, i))
		}
		if d.Empty() {
			bad++
			continue
		}
		runs = append(runs, d.Run())
	}
	if s.Err() != nil {
		return runs, draft.At(f, s.Number(), s.Err())
	}
	if len(runs) == 0 {
		return nil, draft.ErrNothing
	}
	if bad > 0 {
		runs[0].Found("record.dropped", profile.Warning, "%d rows of the file could not be used.", bad)
	}
	return runs, nil
}
