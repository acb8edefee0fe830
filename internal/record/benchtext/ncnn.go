package benchtext

import (
	"context"
	"regexp"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// table is what one call of benchncnn printed.
type table struct {
	heading, command string
	settings         [][2]string
	rows             [][4]string
}

var (
	ncnnSetting = regexp.MustCompile(`^(loop_count|num_threads|powersave|gpu_device|cooling_down)\s*=\s*(-?\d+)\s*$`)
	heading     = regexp.MustCompile(`^#{2,6} (\S.*)$`)
	gpuLine     = regexp.MustCompile(`^\[(\d+) ([^\]]+)\]`)
)

// maxTables bounds the tables of a file.
const maxTables = 5000

// readNCNN makes a run of each call of benchncnn. Its rows are networks.
func readNCNN(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	return record.EachFile(ctx, in, func(f *record.File) ([]*runlog.Run, error) {
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		defer func() { _ = r.Close() }()
		s := textscan.NewScanner(r)
		cur := &table{}
		tables := []*table{cur}
		rows := 0
		next := func() {
			if len(cur.rows) > 0 && len(tables) < maxTables {
				cur = &table{heading: cur.heading}
				tables = append(tables, cur)
			}
		}
		for s.Scan() {
			l := textscan.Strip(s.Text())
			trimmed := strings.TrimSpace(l)
			switch {
			case ncnnLine.MatchString(l):
				if rows++; rows > maxLines {
					continue
				}
				m := ncnnLine.FindStringSubmatch(l)
				cur.rows = append(cur.rows, [4]string{m[1], m[2], m[3], m[4]})
			case ncnnSetting.MatchString(trimmed):
				m := ncnnSetting.FindStringSubmatch(trimmed)
				next()
				cur.settings = append(cur.settings, [2]string{m[1], m[2]})
			case heading.MatchString(trimmed) && !strings.Contains(trimmed, "benchncnn"):
				next()
				cur.heading = heading.FindStringSubmatch(trimmed)[1]
			case strings.Contains(trimmed, "benchncnn "):
				next()
				// without the prompt before it
				cur.command = trimmed[strings.Index(trimmed, "benchncnn "):]
			case gpuLine.MatchString(trimmed) && len(cur.settings) < 50:
				next()
				m := gpuLine.FindStringSubmatch(trimmed)
				cur.settings = append(cur.settings, [2]string{"gpu " + m[1], m[2]})
			}
		}
		var runs []*runlog.Run
		for _, t := range tables {
			if len(t.rows) > 0 {
				runs = append(runs, t.run(draft.Stem(f)))
			}
		}
		if s.Err() != nil {
			return runs, draft.At(f, s.Number(), s.Err())
		}
		if len(runs) == 0 {
			return nil, draft.ErrNothing
		}
		return runs, nil
	})
}

// spread makes a figure of milliseconds.
func spread(row [4]string) *profile.Metric {
	ms := func(s string) *float64 {
		if v, ok := textscan.Number(s); ok {
			return new(v / 1e3)
		}
		return nil
	}
	return draft.Metric(&profile.Metric{Min: ms(row[1]), Max: ms(row[2]), Mean: ms(row[3])})
}

func (t *table) run(name string) *runlog.Run {
	if t.heading != "" {
		name = t.heading
	}
	d := draft.New("ncnn", name, "ncnn")
	if t.heading != "" {
		d.P.Target.Description = draft.Text(t.heading)
	}
	for _, p := range t.settings {
		n, ok := textscan.Whole(p[1])
		switch {
		case p[0] == "num_threads" && ok && n >= 0:
			d.P.Settings.Threads = &n
			d.P.Model.Name += ", " + p[1] + " thread"
			if n != 1 {
				d.P.Model.Name += "s"
			}
		case p[0] == "gpu_device" && ok && n >= 0:
			d.P.Target.Accelerator = "gpu"
			d.P.Model.Name += ", GPU"
		case p[0] == "loop_count" && ok && n >= 0:
			d.P.Settings.Runs = &n
		}
		d.Note(p[0], p[1])
	}
	d.Note("command", t.command)
	if len(t.rows) == 1 {
		d.P.Model.Name = draft.Text(t.rows[0][0])
		d.P.Totals.Latency = spread(t.rows[0])
		return d.Run()
	}
	for _, r := range t.rows {
		i := d.Add(profile.Layer{Name: r[0], Op: "network"}, runlog.Hint{})
		if i < 0 {
			break
		}
		d.Layer(i).Latency = spread(r)
	}
	d.Found("ncnn.networks", profile.Info, "Each layer is a network of its own: their sum is the time to run each of them once. The mean is of all loops, disturbed ones too; the minimum is of the best one.")
	return d.Run()
}
