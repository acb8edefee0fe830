package benchtext

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
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
	mnnTotal  = lazyregexp.New(`^total time : ([\d.]+) ms, total mflops : ([\d.]+)`)
	flopShare = profile.Quantity{Key: "recorded_flops_share", Unit: "1", Head: "FLOP share", Name: "Share of floating-point operations", Group: "Record", Adds: true}
	recorded  = profile.Quantity{Key: "recorded_share", Unit: "1", Head: "rec. share", Name: "Share as recorded", Group: "Record"}
	called    = profile.Quantity{Key: "operators", Name: "Operators of this type", Group: "Record", Adds: true, Whole: true}
	gap       = lazyregexp.New(`\s*\t\s*|\s{2,}`)
)

// readMNN reads the tables of nodes and of types, and those of networks.
func readMNN(_ context.Context, _ *record.Input, f *record.File) (runs []*runlog.Run, err error) {
	var ds []*draft.Draft
	var nets mnnBench
	broken := int64(0)
	var rows [2][][]string // by kind of table
	in := -1
	flush := func(ms, mflops float64) {
		if len(rows[0])+len(rows[1]) > 0 && len(ds) < maxTables {
			ds = append(ds, mnnRun(draft.Stem(f), rows, ms, mflops))
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
		} else if in >= 0 && len(row) > 2 {
			broken++
		} else if l != "" {
			in = -1
			nets.line(l)
		}
	})
	flush(-1, -1)
	if len(ds) > 0 {
		ds[0].Dropped.Add("rows that do not have the columns of their table", broken)
	}
	for _, t := range nets.tables {
		if len(t.rows) > 0 {
			ds = append(ds, t.draft(draft.Stem(f)))
		}
	}
	return apart(ds, err)
}

// mnnCall holds networks: the output of one call of benchmark.out, or of one setting of it.
type mnnCall struct {
	settings [][2]string
	rows     [][]string // matches of mnnNetwork
}

// mnnBench reads the output of benchmark.out.
type mnnBench struct{ tables []*mnnCall }

var (
	mnnNetwork = lazyregexp.New(`^\[ - \] (\S+)\s+max\s*[=:]\s*([\d.]+)\s*ms\s+min\s*[=:]\s*([\d.]+)\s*ms\s+avg\s*[=:]\s*([\d.]+)\s*ms`)
	mnnSetting = lazyregexp.New(`\b(Forward type|thread|precision|loop|warmup|sparsity|sparseBlockOC|testQuantizedModel)\s*[=:]\s*\**\s*([\w.-]+)`)
)

// line reads a line. Settings after networks, or a network that was there already, begin another
// table.
func (b *mnnBench) line(l string) {
	m := mnnNetwork.FindStringSubmatch(l)
	settings := mnnSetting.FindAllStringSubmatch(l, -1)
	if m == nil && len(settings) == 0 || len(b.tables) >= maxTables {
		return
	}
	n := len(b.tables)
	if n == 0 || m == nil && len(b.tables[n-1].rows) > 0 || m != nil && slices.ContainsFunc(b.tables[n-1].rows, func(r []string) bool { return r[1] == m[1] }) {
		b.tables = append(b.tables, &mnnCall{})
		n++
	}
	t := b.tables[n-1]
	if m != nil && len(t.rows) < maxTables {
		t.rows = append(t.rows, m)
	}
	for _, s := range settings {
		if len(t.settings) < 50 {
			t.settings = append(t.settings, [2]string{s[1], s[2]})
		}
	}
}

// draft makes the draft of the networks. One network is a model, several are layers.
func (t *mnnCall) draft(name string) *draft.Draft {
	d := draft.New("mnn", name, "MNN")
	for _, s := range t.settings {
		n, ok := textscan.Whole(s[1])
		switch {
		case s[0] == "Forward type":
			d.P.Target.Description = s[1]
		case !ok || n < 0:
		case s[0] == "thread":
			d.P.Settings.Threads = &n
		case s[0] == "loop":
			d.P.Settings.Runs = &n
		case s[0] == "warmup":
			d.P.Settings.WarmupRuns = &n
		}
		d.Note(s[0], s[1])
	}
	latency := func(r []string) *profile.Metric {
		ms := func(i int) *float64 { return draft.Milli(textscan.Number(r[i])) }
		return draft.Metric(&profile.Metric{Max: ms(2), Min: ms(3), Mean: ms(4)})
	}
	network := func(r []string) string { return strings.TrimSuffix(path.Base(r[1]), ".mnn") }
	if len(t.rows) == 1 {
		d.P.Model.Name = draft.Text(network(t.rows[0]))
		d.P.Totals.Latency = latency(t.rows[0])
		return d
	}
	for _, r := range t.rows {
		d.Add(profile.Layer{Name: network(r), Op: "network", Latency: latency(r)}, runlog.Hint{})
	}
	d.Found("mnn.networks", profile.Info, "Each layer is a network of its own: their sum is the time to run each of them once.")
	return d
}

// mnnRun makes a draft; types become layers only if the table of nodes is missing.
func mnnRun(name string, rows [2][][]string, ms, mflops float64) *draft.Draft {
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
	return d
}
