package xlsx

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/report/whatif"
)

// heads are the columns of the Neural Engine profiler's table, by its names.
var heads = []string{
	"operator type", "post op", "operator name", "input tensor name", "input shape", "input dtype", "output tensor name", "output shape", "output dtype",
	"weight shape", "weight sparse ratio", "sparse support", "operator latency (ms)", "aim to weight sparse ratio", "sparse kernel pref ratio", "aim to sparse latency(ms)",
}

// more are columns of our own after these: what block the ratio is about, the
// zeros by element, and by other blocks and patterns.
var more = []string{"sparse block", "element sparsity", "1x4", "4x1", "1x16", "4x16", "2:4", "rows", "columns"}

// Columns of the what-if that formulas need, from 0.
const (
	colSupport = 11 // L
	colLatency = 12 // M
	colTarget  = 13 // N
	colRatio   = 14 // O
	colAim     = 15 // P
)

// sparse writes the sheet "Sparse what-if".
func (b *book) sparse(t *whatif.Table) {
	s := b.sheet()
	s.widths(28, 20, 38, 20, 26, 16, 24, 18, 14, 14, 12, 10, 14, 14, 14, 14, 10, 10, 9, 9, 9, 9, 9, 9, 10)
	for i, name := range more[1:] {
		if !slices.ContainsFunc(t.Rows, func(r whatif.Row) bool {
			_, ok := r.Blocks[name]
			return ok || i == 0 && r.ElementSparsity != nil
		}) {
			s.Hide(len(heads) + 1 + i) // nothing is known
		}
	}
	const top = 7 // rows that stay in view: title, hints, totals
	s.Freeze(top, 0)
	s.add(26, label("What if weights were sparse?", style{title: true}))
	s.add(0, label("Edit the yellow cells: the speed ratio of each weight shape (dense time over sparse time), and the sparsity aimed for of each operator; leave it empty to keep an operator as it is.", style{}))
	s.add(0, label("All ratios are 1, so that nothing is gained, until you put in those of your kernels. Intel's Neural Engine profiler begins with 4, 4, 4 and 1, which nobody measured. An estimate by ratios promises nothing of a given engine.", style{faint: true}))
	// Where the tables below will be.
	shapes := top + 2                 // header of the ratio table
	ops := shapes + len(t.Shapes) + 2 // header of the operators
	first, last := ops+1, ops+len(t.Rows)
	ms := func(v float64) *float64 { v *= 1e3; return &v }
	totals := t.Totals()
	format := "0.000"
	if totals != nil {
		var times []*float64
		for i := range t.Rows {
			if v := t.Aim(&t.Rows[i]); v != nil {
				times = append(times, ms(*v))
			}
		}
		format = seconds(append(times, ms(totals.Latency)))
		all := func(col int) string { return span(col, first, last) }
		support := func(col int) string { return "SUMIFS(" + all(col) + "," + all(colSupport) + ",TRUE)" }
		bold := func(text string) cell { return label(text, style{bold: true, indent: true}) }
		row := s.row + 1
		over := func(v *float64, a, b, format string) cell {
			c := formula(fmt.Sprintf(`IF(%s>0,%s/%s,"")`, b, a, b), "", format)
			if v != nil {
				c.v = *v
			}
			return c
		}
		s.add(0, bold("total latency(ms)"), formula("SUM("+all(colLatency)+")", *ms(totals.Latency), format),
			bold("total aim to sparse latency(ms)"), formula("SUM("+all(colAim)+")", *ms(totals.Aim), format),
			bold("sparse improve"), over(totals.Improve, at(1, row), at(3, row), "0.000"))
		s.add(0, bold("sparse support latency(ms)"), formula(support(colLatency), *ms(totals.SupportLatency), format),
			bold("aim to sparse support latency(ms)"), formula(support(colAim), *ms(totals.SupportAim), format))
		s.add(0, bold("sparse support latency ratio"), over(totals.SupportShare, at(1, row+1), at(1, row), "0.0%"),
			bold("aim to sparse support latency ratio"), over(totals.AimShare, at(3, row+1), at(3, row), "0.0%"))
	} else {
		s.add(0, label("No operator of this profile has a time: nothing can be estimated.", style{bold: true}))
		s.add(0)
		s.add(0)
	}
	s.add(0)
	s.add(0)
	row := []cell{label("weight shape", style{head: true, indent: true})}
	for _, v := range whatif.Targets {
		row = append(row, label(fmt.Sprintf("%.0f%% 4x1 perf ratio", 100*v), style{head: true, right: true}))
	}
	s.add(20, append(row, label("others", style{head: true, right: true}))...)
	edit := style{edit: true, format: "0.00"}
	for _, x := range t.Shapes {
		row := []cell{label(x.Name, style{indent: true})}
		for _, v := range x.Ratios {
			row = append(row, cell{v: v, style: edit})
		}
		s.add(0, row...)
	}
	s.add(0)
	row = nil
	for i, h := range slices.Concat(heads, more) {
		// Names, shapes and the block are text.
		word := i < 10 || i == len(heads)
		row = append(row, label(h, style{head: true, indent: word, right: !word}))
	}
	s.add(48, row...)
	for i := range t.Rows {
		s.add(0, sparseRow(t, &t.Rows[i], s.row+1, shapes+1, format)...)
	}
	if len(t.Rows) > 0 {
		s.Filter(at(0, ops) + ":" + at(len(heads)+len(more)-1, last))
		s.bars(at(colLatency, first) + ":" + at(colLatency, last))
		s.bars(at(colAim, first) + ":" + at(colAim, last))
	}
	if len(t.Shapes) > 0 {
		s.only(at(1, shapes+1)+":"+at(4, shapes+len(t.Shapes)), 0.001, 1e6, "A ratio is a number above zero: dense time over sparse time.")
		s.only(at(colTarget, first)+":"+at(colTarget, last), 0, 1, "A sparsity between 0 and 100 %, or nothing. 90, 80 and 70 % have their own ratios, any other takes the ratio of other sparsities.")
	}
}

// only lets the cells of a range take numbers of an interval.
func (s *sheet) only(ref string, low, high float64, why string) {
	s.Allow(ref, low, high, "Not a figure for this cell", why)
}

// sparseRow makes the cells of an operator that stands in row; the ratio table
// begins in row ratios.
func sparseRow(t *whatif.Table, r *whatif.Row, row, ratios int, format string) []cell {
	text := func(s string) cell {
		if s == "" {
			return cell{}
		}
		return label(s, style{indent: true})
	}
	list := func(s []string) cell { return text(strings.Join(s, ";")) }
	out := []cell{
		text(r.Op), list(r.PostOp), text(r.Name), list(r.Inputs.Names), list(r.Inputs.Shapes), list(r.Inputs.Types),
		list(r.Outputs.Names), list(r.Outputs.Shapes), list(r.Outputs.Types), text(r.WeightShape),
	}
	percent := style{format: "0.00%"}
	switch {
	case r.BlockSparsity != nil:
		out = append(out, numberIn(r.BlockSparsity, percent))
	case r.WeightShape != "":
		out = append(out, label("unknown", style{faint: true, right: true}))
	default:
		out = append(out, cell{})
	}
	support, target, ratio, aim := cell{}, cell{}, cell{}, cell{}
	if r.Capable() {
		support = cell{v: true, style: style{format: `"true"`}} // some programs show 1
		target = numberIn(r.Target, style{edit: true, format: "0%"})
		k := ratios + r.Shape
		n := at(colTarget, row)
		// Fixed places in the ratio table, so that the operators can be sorted.
		ratio = formula(fmt.Sprintf(`IF(%s="","",IF(%s=90%%,$B$%d,IF(%s=80%%,$C$%d,IF(%s=70%%,$D$%d,$E$%d))))`, n, n, k, n, k, n, k, k), "", "0.00")
		if v, ok := t.Ratio(r); ok {
			ratio.v = v
		}
	}
	latency := cell{}
	if r.Latency != nil {
		latency = cell{v: *r.Latency * 1e3, style: style{format: format}}
		f := at(colLatency, row)
		if r.Capable() {
			// No ratio, or an emptied one, leaves the time as it is.
			f = fmt.Sprintf("IF(N(%s)>0,%s/%s,%s)", at(colRatio, row), at(colLatency, row), at(colRatio, row), at(colLatency, row))
		}
		aim = formula(f, *t.Aim(r)*1e3, format)
	}
	out = append(out, support, latency, target, ratio, aim, text(r.Block), numberIn(r.ElementSparsity, percent))
	for _, name := range more[2:] {
		if v, ok := r.Blocks[name]; ok {
			out = append(out, numberIn(&v, percent))
		} else {
			out = append(out, cell{})
		}
	}
	return out
}

// columns writes the sheet "Columns", which says what the columns of the others
// are.
func (b *book) columns(t *table) {
	s := b.sheet()
	s.widths(18, 30, 110)
	s.Freeze(1, 0)
	h := style{head: true}
	s.add(22, label("sheet", h), label("column", h), label("meaning", h))
	say := func(sheet, key, meaning string) {
		height := 0.0
		if n := lines(meaning, 130); n > 1 {
			height = 15 * float64(min(n, 27)) // a row is 409 points high at most
		}
		s.add(height, label(sheet, style{faint: true}), label(key, style{bold: true}), label(meaning, style{wrap: true}))
	}
	for _, c := range t.cols {
		m := Meaning[c.key]
		if q := c.quantity; q != nil {
			m = cmp.Or(q.Doc, q.Name)
			if q.Unit != "" && q.Unit != "1" {
				m += " Unit: " + q.Unit + "."
			}
		}
		if m != "" {
			say(layersSheet, c.key, m)
		}
	}
	for _, x := range sparseMeaning {
		say(sparseSheet, x[0], x[1])
	}
}
