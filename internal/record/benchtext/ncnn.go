package benchtext

import (
	"context"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// table is the output of one call of benchncnn. Its rows are matches of ncnnLine.
type table struct {
	heading, command string
	settings         [][2]string
	rows             [][]string
}

var (
	ncnnLine    = lazyregexp.New(`^\s*(\S+)\s+min =\s*([\d.]+)\s+max =\s*([\d.]+)\s+avg =\s*([\d.]+)\s*$`)
	ncnnSetting = lazyregexp.New(`^(loop_count|num_threads|powersave|gpu_device|cooling_down)\s*=\s*(-?\d+)\s*$`)
	heading     = lazyregexp.New(`^#{2,6} (\S.*)$`)
	gpuLine     = lazyregexp.New(`^\[(\d+) ([^\]]+)\]`)
)

// maxTables limits the tables of a file.
const maxTables = 5000

// readNCNN makes a run of each call of benchncnn. Its rows are networks.
func readNCNN(_ context.Context, _ *record.Input, f *record.File) (runs []*runlog.Run, err error) {
	cur := &table{}
	tables := []*table{cur}
	rows := 0
	next := func() {
		if len(cur.rows) > 0 && len(tables) < maxTables {
			cur = &table{heading: cur.heading}
			tables = append(tables, cur)
		}
	}
	err = f.Lines(func(l string) {
		l = strings.TrimSpace(textscan.Strip(l))
		call := strings.Index(l, "benchncnn ")
		if m := ncnnLine.FindStringSubmatch(l); m != nil {
			if len(cur.rows) < 1000 && slices.ContainsFunc(cur.rows, func(r []string) bool { return r[1] == m[1] }) {
				next() // benchncnn runs each network once
			}
			if rows++; rows <= maxLines {
				cur.rows = append(cur.rows, m)
			}
		} else if m := ncnnSetting.FindStringSubmatch(l); m != nil {
			next()
			cur.settings = append(cur.settings, [2]string{m[1], m[2]})
		} else if m := heading.FindStringSubmatch(l); m != nil && !strings.Contains(l, "benchncnn") {
			next()
			cur.heading = m[1]
		} else if call >= 0 {
			next()
			cur.command = l[call:] // without the prompt before it
		} else if m := gpuLine.FindStringSubmatch(l); m != nil && len(cur.settings) < 50 {
			next()
			cur.settings = append(cur.settings, [2]string{"gpu " + m[1], m[2]})
		}
	})
	var ds []*draft.Draft
	for _, t := range tables {
		if len(t.rows) > 0 {
			ds = append(ds, t.draft(draft.Stem(f)))
		}
	}
	return apart(ds, err)
}

// spread makes a figure from milliseconds.
func spread(row []string) *profile.Metric {
	ms := func(i int) *float64 { return draft.Milli(textscan.Number(row[i])) }
	return draft.Metric(&profile.Metric{Min: ms(2), Max: ms(3), Mean: ms(4)})
}

func (t *table) draft(name string) *draft.Draft {
	if t.heading != "" {
		name = t.heading
	}
	d := draft.New("ncnn", name, "ncnn")
	d.P.Target.Description = draft.Text(t.heading)
	for _, p := range t.settings {
		n, ok := textscan.Whole(p[1])
		switch {
		case !ok || n < 0:
		case p[0] == "num_threads":
			d.P.Settings.Threads = &n
			d.P.Model.Name += ", " + p[1] + " thread"
			if n != 1 {
				d.P.Model.Name += "s"
			}
		case p[0] == "gpu_device":
			d.P.Target.Accelerator = "gpu"
			d.P.Model.Name += ", GPU"
		case p[0] == "loop_count":
			d.P.Settings.Runs = &n
		}
		d.Note(p[0], p[1])
	}
	d.Note("command", t.command)
	if len(t.rows) == 1 {
		d.P.Model.Name = draft.Text(t.rows[0][1])
		d.P.Totals.Latency = spread(t.rows[0])
		return d
	}
	for _, r := range t.rows {
		d.Add(profile.Layer{Name: r[1], Op: "network", Latency: spread(r)}, runlog.Hint{})
	}
	d.Found("ncnn.networks", profile.Info, "Each layer is a network of its own: their sum is the time to run each of them once. The mean is of all loops, disturbed ones too; the minimum is of the best one.")
	return d
}
