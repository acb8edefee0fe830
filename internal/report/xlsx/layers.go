package xlsx

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/opmeter/opmeter/internal/base/workbook"
	"github.com/opmeter/opmeter/profile"
)

// column is a column of "Layers" with its cells as numbers and what is computed
// in the sheet itself.
type column struct {
	key      string
	quantity *profile.Quantity // nil for none
	text     bool
	texts    []string
	nums     []*float64
	format   string
	// of the cells that have a number, "" for none; nil for none at all
	formula func(row int) string
	empty   bool
}

// table is the sheet "Layers".
type table struct {
	cols []*column
	n    int            // layers
	at   map[string]int // column by key
	op   []int          // operator of each layer, from 0, by first appearance
	ops  []string       // names of the operators
	// time is the sum of the layers' times in seconds, 0 when none has one.
	time float64
}

// timeName is the workbook's name for the cell with the sum of the layers' times.
const timeName = "layer_time_s"

// sum adds up a column; ok is false when nothing in it is known.
func (c *column) sum() (v float64, ok bool) {
	for _, x := range c.nums {
		if x != nil {
			v += *x
			ok = true
		}
	}
	return v, ok
}

func (t *table) get(key string) *column {
	if i, ok := t.at[key]; ok {
		return t.cols[i]
	}
	return nil
}

// ref is the range of a column's cells, for formulas of other sheets.
func (t *table) ref(key string) string {
	return layersSheet + "!" + span(t.at[key], 2, t.n+1)
}

func newTable(cols []Column) (*table, error) {
	t := &table{at: map[string]int{}}
	add := func(c *column) {
		t.at[c.key] = len(t.cols)
		t.cols = append(t.cols, c)
	}
	for i, in := range cols {
		if i == 0 {
			t.n = len(in.Cells)
		}
		if len(in.Cells) != t.n {
			return nil, fmt.Errorf("column %s has %d cells, others %d", in.Key, len(in.Cells), t.n)
		}
		c := &column{key: in.Key, quantity: in.Quantity, text: in.Text, texts: in.Cells, empty: true}
		for _, s := range in.Cells {
			c.empty = c.empty && s == ""
		}
		if !c.text {
			c.nums, c.texts = make([]*float64, t.n), nil
			for j, s := range in.Cells {
				if s == "" {
					continue
				}
				v, err := strconv.ParseFloat(s, 64)
				if err != nil {
					return nil, fmt.Errorf("column %s, layer %d: %w", in.Key, j, err)
				}
				c.nums[j] = &v
			}
		}
		add(c)
		if c.key == "share" {
			add(&column{key: "cumulative", nums: make([]*float64, t.n)})
		}
	}
	if t.get("op") == nil || t.get("latency_s") == nil {
		return nil, fmt.Errorf("columns op and latency_s are missing")
	}
	t.operators()
	t.time, _ = t.get("latency_s").sum()
	for _, c := range t.cols {
		c.format = t.format(c)
	}
	t.formulas()
	return t, nil
}

// operators numbers the operators. Sums by operator go by number and not by name:
// a spreadsheet's criteria take * and ? for wild cards, signs for comparisons, and
// do not tell Add from ADD.
func (t *table) operators() {
	seen := map[string]int{}
	c := &column{key: "op_no", nums: make([]*float64, t.n)}
	for i, name := range t.get("op").texts {
		k, ok := seen[name]
		if !ok {
			k = len(t.ops)
			seen[name] = k
			t.ops = append(t.ops, name)
		}
		t.op = append(t.op, k)
		v := float64(k + 1)
		c.nums[i] = &v
	}
	t.at[c.key] = len(t.cols)
	t.cols = append(t.cols, c)
}

// formulas sets what is computed in the sheet: share, cumulative share, and what is
// a quotient of other columns.
func (t *table) formulas() {
	time := t.get("latency_s")
	cellOf := func(key string, row int) string { return at(t.at[key], row) }
	if share, cum := t.get("share"), t.get("cumulative"); share != nil && t.time > 0 {
		share.formula = func(row int) string {
			if time.nums[row-2] == nil {
				return ""
			}
			return cellOf("latency_s", row) + "/" + timeName
		}
		running := 0.0
		for i, v := range time.nums {
			if v != nil {
				share.nums[i] = new(float64)
				*share.nums[i] = *v / t.time
				share.empty = false
			}
			if share.nums[i] != nil {
				running += *share.nums[i]
			}
			sum := running
			cum.nums[i] = &sum
		}
		// The row above, not the first: sums from the top would take the square of
		// the number of layers. SUM passes over the heading.
		cum.formula = func(row int) string {
			return "SUM(" + cellOf("cumulative", row-1) + "," + cellOf("share", row) + ")"
		}
	} else if cum != nil {
		cum.empty = true
	}
	for _, c := range t.cols {
		if c.quantity != nil && c.quantity.Derived() {
			t.quotient(c)
		}
	}
}

// quotient sets the formula of a column that follows from others. Rows in which a
// part is not known keep their value.
func (t *table) quotient(c *column) {
	parts := func(keys []string) (cols []*column) {
		for _, k := range keys {
			p := t.get(k)
			if p == nil {
				return nil
			}
			cols = append(cols, p)
		}
		return cols
	}
	of, per := parts(c.quantity.Of), parts(c.quantity.Per)
	if of == nil || per == nil {
		return
	}
	sum := func(cols []*column, row int) (formula string, v float64, ok bool) {
		var cells []string
		for _, p := range cols {
			x := p.nums[row-2]
			if x == nil {
				return "", 0, false
			}
			v += *x
			cells = append(cells, at(t.at[p.key], row))
		}
		if len(cells) == 1 {
			return cells[0], v, true
		}
		return "(" + strings.Join(cells, "+") + ")", v, true
	}
	for i, v := range c.nums {
		_, a, okA := sum(of, i+2)
		_, b, okB := sum(per, i+2)
		if v != nil && okA && okB && b > 0 {
			*v = a / b // of the figures in the cells
		}
	}
	c.formula = func(row int) string {
		a, _, okA := sum(of, row)
		b, v, okB := sum(per, row)
		if !okA || !okB || !(v > 0) {
			return ""
		}
		return a + "/" + b
	}
}

// format is the number format of a column.
func (t *table) format(c *column) string {
	unit, whole := "", true
	if c.quantity != nil {
		unit, whole = c.quantity.Unit, c.quantity.Whole
	}
	switch {
	case c.key == "share" || c.key == "cumulative":
		return "0.0%"
	case c.key == "index" || c.key == "op_no":
		return "0"
	case c.key == "against_expected":
		return "0.00"
	case unit == "s" || c.quantity == nil && strings.HasSuffix(c.key, "_s"):
		return seconds(t.get("latency_s").nums)
	}
	return numberFormat(unit, whole)
}

// numberFormat is the format of figures in a unit.
func numberFormat(unit string, whole bool) string {
	switch {
	case unit == "1":
		return "0.0%"
	case whole || unit == "B" || unit == "cycles" || strings.HasSuffix(unit, "/s"):
		return "#,##0"
	case unit == "":
		return "0.###"
	case unit == "J" || unit == "W":
		return "0.000E+00"
	}
	return "#,##0.000"
}

// seconds is a format with as many decimals as give the longest time five digits
// and the shortest two, so that a column of times lines up, can be compared by eye
// and shows no time as zero; but not more than ten, a tenth of a nanosecond.
func seconds(times []*float64) string {
	d := 3
	most, least := 0.0, math.Inf(1)
	for _, v := range times {
		if v != nil && *v > 0 {
			most, least = max(most, *v), min(least, *v)
		}
	}
	if most > 0 {
		d = max(d, 4-int(math.Floor(math.Log10(most))), 1-int(math.Floor(math.Log10(least))))
	}
	return "0." + strings.Repeat("0", min(d, 10))
}

// layers writes the sheet "Layers".
func (b *book) layers(t *table) {
	s := b.sheet()
	shown := 0.0
	for i, c := range t.cols {
		w := float64(utf8.RuneCountInString(c.key) + 4) // room for the filter's button
		most := 40.0
		if c.key == "note" || c.key == "options" {
			most = 60
		}
		for _, v := range c.texts {
			w = max(w, min(float64(utf8.RuneCountInString(v)+4), most))
		}
		if !c.text {
			w = max(w, 12)
		}
		s.Width(i, w)
		if !c.empty {
			shown += w
		}
		// A column in which nothing is known keeps its place, out of sight.
		if c.empty {
			s.Hide(i)
		}
	}
	s.Freeze(1, t.at["op"]+1)
	// In print, every page has the layers' numbers and operators, and is large enough to read.
	const pageWidth = 150 // characters
	s.Pages = max(1, int(math.Ceil(shown/pageWidth)))
	s.Titles("$A:$"+workbook.ColumnName(t.at["op"]), "$1:$1")
	head := make([]cell, len(t.cols))
	for i, c := range t.cols {
		head[i] = label(c.key, style{head: true, right: !c.text, indent: c.text})
	}
	s.add(22, head...)
	line := make([]cell, len(t.cols))
	for i := range t.n {
		for j, c := range t.cols {
			switch {
			case c.text:
				line[j] = cell{}
				if c.texts[i] != "" {
					line[j] = label(c.texts[i], style{indent: true})
				}
			case c.nums[i] == nil:
				line[j] = cell{}
			default:
				line[j] = number(c.nums[i], c.format)
				if c.formula != nil {
					line[j].formula = c.formula(s.row + 1)
				}
			}
		}
		s.add(0, line...)
	}
	if t.n > 0 {
		s.Filter(at(0, 1) + ":" + at(len(t.cols)-1, t.n+1))
		s.bars(at(t.at["latency_s"], 2) + ":" + at(t.at["latency_s"], t.n+1))
	}
}
