package benchtext

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// mnnTable is a kind of table: its header and the positions of its columns, -1 if absent.
type mnnTable struct {
	head                      string
	op, time, percent, called int
}

// Kinds of tables. The name is the first column, the share of operations the fifth.
const (
	mnnNodes = iota
	mnnTypes
)

var mnnTables = []mnnTable{
	mnnNodes: {"Node Name Op Type Avg(ms) %", 1, 2, 3, -1},
	mnnTypes: {"Node Type Avg(ms) % Called times", 0, 1, 2, 3},
}

// mnnHead returns the kind of the table that a header begins, -1 for other lines.
func mnnHead(l string) int {
	l = strings.Join(strings.Fields(l), " ")
	return slices.IndexFunc(mnnTables, func(t mnnTable) bool { return strings.HasPrefix(l, t.head) })
}

var (
	mnnTotal  = regexp.MustCompile(`^total time : ([\d.]+) ms, total mflops : ([\d.]+)`)
	flopShare = profile.Quantity{Key: "recorded_flops_share", Unit: "1", Head: "FLOP share", Name: "Share of floating-point operations", Group: "Record", Adds: true}
	recorded  = profile.Quantity{Key: "recorded_share", Unit: "1", Head: "rec. share", Name: "Share as recorded", Group: "Record"}
	called    = profile.Quantity{Key: "operators", Name: "Operators of this type", Group: "Record", Adds: true, Whole: true}
	gap       = regexp.MustCompile(`\s*\t\s*|\s{2,}`)
)

// readMNN reads the tables of nodes and of types.
func readMNN(_ context.Context, _ *record.Input, f *record.File) (runs []*runlog.Run, err error) {
	var rows [2][][]string // by kind of table
	in := -1
	flush := func(ms, mflops float64) {
		if len(rows[0])+len(rows[1]) > 0 && len(runs) < maxTables {
			runs = append(runs, mnnRun(draft.Stem(f), rows, ms, mflops))
		}
		rows = [2][][]string{}
	}
	err = f.Lines(func(l string) {
		l = strings.TrimSpace(textscan.Strip(l))
		if h := mnnHead(l); h >= 0 {
			if rows[h] != nil {
				flush(-1, -1)
			}
			in = h
		} else if m := mnnTotal.FindStringSubmatch(l); m != nil {
			ms, _ := textscan.Number(m[1])
			mf, _ := textscan.Number(m[2])
			flush(ms, mf)
			in = -1
		} else if row := gap.Split(l, -1); in >= 0 && len(row) >= 5 && len(rows[0])+len(rows[1]) < draft.MaxLayers {
			rows[in] = append(rows[in], row)
		} else if l != "" {
			in = -1
		}
	})
	flush(-1, -1)
	return draft.NotEmpty(runs, err)
}

// mnnRun makes a run; types become layers only if the table of nodes is missing.
func mnnRun(name string, rows [2][][]string, ms, mflops float64) *runlog.Run {
	d := draft.New("mnn", name, "MNN")
	kind := mnnNodes
	if len(rows[mnnNodes]) == 0 {
		kind = mnnTypes
		d.Found("mnn.types", profile.Info, "The log has the sums by type only: each layer is one.")
	}
	t := mnnTables[kind]
	for _, r := range rows[kind] {
		number := func(at int) (float64, bool) { return textscan.Number(textscan.Cell(r, at)) }
		i := -1
		if v, ok := number(t.time); ok {
			h := runlog.Hint{}
			if kind == mnnNodes {
				h.Nodes = r[:1]
			}
			i = d.Add(profile.Layer{Name: r[0], Op: r[t.op], Latency: draft.Metric(&profile.Metric{Mean: new(v / 1e3)})}, h)
		} else {
			d.Dropped.Add("rows without a time", 1)
		}
		d.SetKnown(i, recorded, draft.Known(number(t.percent)), 1e-2)
		d.SetKnown(i, flopShare, draft.Known(number(4)), 1e-2)
		d.SetKnown(i, called, draft.Known(number(t.called)), 1)
	}
	if ms >= 0 {
		d.P.Totals.Latency = draft.Metric(&profile.Metric{Mean: new(ms / 1e3), Method: "sum of the operators"})
	}
	if mflops >= 0 {
		d.Total(profile.Quantity{Key: "recorded_flops", Name: "Floating-point operations as recorded", Group: "Work"}, mflops*1e6)
	}
	return d.Run()
}
