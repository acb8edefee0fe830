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

// isMNNHead says which table a header begins: 1 by node, 2 by type, 0 none.
func isMNNHead(l string) int {
	l = strings.Join(strings.Fields(l), " ")
	switch {
	case strings.HasPrefix(l, "Node Name Op Type Avg(ms) %"):
		return 1
	case strings.HasPrefix(l, "Node Type Avg(ms) % Called times"):
		return 2
	}
	return 0
}

var (
	mnnTotal = regexp.MustCompile(`^total time : ([\d.]+) ms, total mflops : ([\d.]+)`)
	flopRate = profile.Quantity{Key: "recorded_flops_share", Unit: "1", Head: "FLOP share", Name: "Share of floating-point operations", Group: "Record", Adds: true}
	recorded = profile.Quantity{Key: "recorded_share", Unit: "1", Head: "rec. share", Name: "Share as recorded", Group: "Record"}
	gap      = regexp.MustCompile(`\s*\t\s*|\s{2,}`)
)

// readMNN reads tables of a node and of types; the latter make layers only where the
// former are missing.
func readMNN(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	return record.EachFile(ctx, in, func(f *record.File) ([]*runlog.Run, error) {
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		defer func() { _ = r.Close() }()
		s := textscan.NewScanner(r)
		var nodes, types [][]string
		in := 0
		var runs []*runlog.Run
		flush := func(ms, mflops float64) {
			if len(nodes)+len(types) > 0 && len(runs) < maxTables {
				runs = append(runs, mnnRun(draft.Stem(f), nodes, types, ms, mflops))
			}
			nodes, types = nil, nil
		}
		for s.Scan() {
			l := textscan.Strip(s.Text())
			if h := isMNNHead(l); h != 0 {
				if h == 1 && nodes != nil || h == 2 && types != nil {
					flush(-1, -1)
				}
				in = h
				continue
			}
			if m := mnnTotal.FindStringSubmatch(strings.TrimSpace(l)); m != nil {
				ms, _ := textscan.Number(m[1])
				mf, _ := textscan.Number(m[2])
				flush(ms, mf)
				in = 0
				continue
			}
			row := gap.Split(strings.TrimSpace(l), -1)
			if in == 0 || len(row) < 5 || len(nodes)+len(types) >= draft.MaxLayers {
				if strings.TrimSpace(l) != "" {
					in = 0
				}
				continue
			}
			if in == 1 {
				nodes = append(nodes, row)
			} else {
				types = append(types, row)
			}
		}
		flush(-1, -1)
		if s.Err() != nil {
			return runs, draft.At(f, s.Number(), s.Err())
		}
		if len(runs) == 0 {
			return nil, draft.ErrNothing
		}
		return runs, nil
	})
}

func mnnRun(name string, nodes, types [][]string, ms, mflops float64) *runlog.Run {
	d := draft.New("mnn", name, "MNN")
	add := func(l profile.Layer, h runlog.Hint, row []string, avg, percent, flops int) int {
		v, ok := textscan.Number(textscan.Cell(row, avg))
		if !ok {
			d.Dropped.Add("rows without a time", 1)
			return -1
		}
		i := d.Add(l, h)
		if i < 0 {
			return i
		}
		d.Layer(i).Latency = draft.Metric(&profile.Metric{Mean: new(v / 1e3)})
		if p, ok := textscan.Number(textscan.Cell(row, percent)); ok {
			d.Set(i, recorded, p/100)
		}
		if p, ok := textscan.Number(textscan.Cell(row, flops)); ok {
			d.Set(i, flopRate, p/100)
		}
		return i
	}
	for _, r := range nodes {
		add(profile.Layer{Name: r[0], Op: r[1]}, runlog.Hint{Nodes: []string{r[0]}}, r, 2, 3, 4)
	}
	if len(nodes) == 0 {
		for _, r := range types {
			i := add(profile.Layer{Name: r[0], Op: r[0]}, runlog.Hint{}, r, 1, 2, 4)
			if c, ok := textscan.Number(textscan.Cell(r, 3)); ok {
				d.Set(i, profile.Quantity{Key: "operators", Name: "Operators of this type", Group: "Record", Adds: true, Whole: true}, c)
			}
		}
		d.Found("mnn.types", profile.Info, "The log has the sums by type only: each layer is one.")
	}
	if ms >= 0 {
		d.P.Totals.Latency = draft.Metric(&profile.Metric{Mean: new(ms / 1e3), Method: "sum of the operators"})
	}
	if mflops >= 0 {
		d.Total(profile.Quantity{Key: "recorded_flops", Name: "Floating-point operations as recorded", Group: "Work"}, mflops*1e6)
	}
	return d.Run()
}
