package sparsify

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// ZooRow is a row of SparseZoo's tables. Differences of rows are rows too.
type ZooRow struct {
	// Section is "Layers", "Parameters", "Operations" or "Overall"; Name a layer, an operator's
	// type or "Total".
	Section, Name string
	Total         float64
	// Bits is the size without zeros: 32 per number of a 32-bit type, 8 for others.
	Bits float64
	// Sparsity and Quantised are shares of 1.
	Sparsity, Quantised float64
}

// tally accumulates the figures of a row.
type tally struct{ total, pruned, wide, narrow int64 }

func (t *tally) row(section, name string) ZooRow {
	r := ZooRow{Section: section, Name: name, Total: float64(t.total)}
	if t.total > 0 {
		r.Sparsity, r.Quantised = float64(t.pruned)/float64(t.total), float64(t.narrow)/float64(t.total)
	}
	r.Bits = float64(t.narrow*8+t.wide*32) * (1 - r.Sparsity)
	return r
}

func (t *tally) add(total, pruned int64, of map[string]int64) {
	t.total, t.pruned = t.total+total, t.pruned+pruned
	for kind, n := range of {
		if strings.Contains(kind, "32") {
			t.wide += n
		} else {
			t.narrow += n
		}
	}
}

// addSum adds a sum to a tally.
func addSum[T zooCounts[T]](t *tally, s *ZooSum[T]) {
	of := map[string]int64{}
	for k, v := range s.Precision {
		of[k] = v.all()
	}
	t.add(s.Total, s.Pruned, of)
}

// linear lists operators with rows of their own.
var linear = []string{"Conv", "ConvInteger", "ConvTranspose", "DeformConv", "QLinearConv", "MatMul", "MatMulInteger", "QLinearMatMul", "Gemm"}

// Rows lists layers, then parameters and operations by operator type, then the totals.
func (z *Zoo) Rows() []ZooRow {
	var out []ZooRow
	params, ops := map[string]*tally{}, map[string]*tally{}
	all := &tally{}
	for i := range z.Nodes {
		n := &z.Nodes[i]
		t := &tally{}
		addSum(t, &n.Summary)
		if slices.Contains(linear, n.OpType) {
			out = append(out, t.row("Layers", cmp.Or(n.Name, n.NodeID)))
		}
		for _, m := range []map[string]*tally{params, ops} {
			for _, name := range []string{n.OpType, "Total"} {
				if m[name] == nil {
					m[name] = &tally{}
				}
			}
		}
		for _, t := range []*tally{params[n.OpType], params["Total"], all} {
			addSum(t, &n.Summary)
		}
		for _, t := range []*tally{ops[n.OpType], ops["Total"], all} {
			addSum(t, &n.Operations.Ops)
		}
	}
	for _, part := range []struct {
		section string
		of      map[string]*tally
	}{{"Parameters", params}, {"Operations", ops}} {
		var names []string
		for name := range part.of {
			if name != "Total" && part.of[name].total > 0 {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range append(names, "Total") {
			if t := part.of[name]; t != nil {
				out = append(out, t.row(part.section, name))
			}
		}
	}
	return append(out, all.row("Overall", "Total"))
}

// ZooDifference subtracts the rows of b from those of a by section and name; missing rows count
// as zero.
func ZooDifference(a, b []ZooRow) []ZooRow {
	same := func(r ZooRow) func(ZooRow) bool {
		return func(s ZooRow) bool { return s.Section == r.Section && s.Name == r.Name }
	}
	var out []ZooRow
	for _, r := range a {
		if i := slices.IndexFunc(b, same(r)); i >= 0 {
			s := b[i]
			r.Total, r.Bits, r.Sparsity, r.Quantised = r.Total-s.Total, r.Bits-s.Bits, r.Sparsity-s.Sparsity, r.Quantised-s.Quantised
		}
		out = append(out, r)
	}
	for _, s := range b {
		if !slices.ContainsFunc(a, same(s)) {
			out = append(out, ZooRow{s.Section, s.Name, -s.Total, -s.Bits, -s.Sparsity, -s.Quantised})
		}
	}
	return out
}

// ZooTable writes rows for a terminal, shares in percent.
func ZooTable(rows []ZooRow) []byte {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	section := ""
	for _, r := range rows {
		if r.Section != section {
			if section != "" {
				fmt.Fprintln(t)
			}
			section = r.Section
			fmt.Fprintf(t, "%s\ttotal\tbits\tsparsity\tquantised\n", section)
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%.2f\t%.2f\n", r.Name, r.Total, r.Bits, 100*r.Sparsity, 100*r.Quantised)
	}
	_ = t.Flush() // into memory
	return b.Bytes()
}
