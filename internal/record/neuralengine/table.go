package neuralengine

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// Columns of the table of operators, A to P.
const (
	colType = iota
	colPost
	colName
	colInputs
	colInShape
	colInType
	colOutputs
	colOutShape
	colOutType
	colWeight
	colSparse
	colSupport
	colLatency
	colTarget
	colRatio
	colAim
	columns
)

// op is a row of an operator.
type op struct {
	key     string
	cells   []string
	row     int // of the sheet, from 0
	latency *float64
}

// table is one file.
type table struct {
	instance  string
	sheet     [][]string // cells in their columns, as a spreadsheet would have them
	ops       []op
	signature strings.Builder // keys of all operators
	ratios    [][]string
	totals    map[string]int // row by label in column L
	shifted   int64
	bad       int64
	more      bool // another table follows
}

func readTable(f *record.File, n string) (*table, error) {
	t := &table{instance: n, totals: map[string]int{}}
	seen := map[string]int{}
	part := 0
	err := f.Lines(func(l string) {
		cells := textscan.Fields(l, ',')
		if len(t.sheet) >= draft.MaxLayers {
			t.bad++
			return
		}
		head := strings.HasPrefix(l, "weight shape,") || strings.HasPrefix(l, tableHead)
		if t.more = t.more || head && len(t.ops) > 0; t.more {
			return
		}
		label := totalLabel(cells)
		switch {
		case strings.HasPrefix(l, "weight shape,"):
			part = 1
		case strings.HasPrefix(l, tableHead):
			part = 2
		case part == 1:
			t.ratios = append(t.ratios, cells)
		case part == 2 && label != "":
			t.totals[label] = len(t.sheet)
		case part == 2 && strings.TrimSpace(l) != "":
			cells = t.operator(cells, seen)
		}
		t.sheet = append(t.sheet, cells)
	})
	if err == nil && len(t.ops) == 0 {
		return nil, draft.ErrNothing
	}
	return t, err
}

// operator adds a row of an operator and returns its cells in their columns.
func (t *table) operator(cells []string, seen map[string]int) []string {
	row, ok := align(cells)
	if !ok {
		t.bad++
		return cells
	}
	if len(cells) != columns && !slices.Equal(row, cells) {
		t.shifted++
	}
	o := op{key: key(row[colName], seen), cells: row, row: len(t.sheet)}
	if v, ok := textscan.Number(row[colLatency]); ok && v >= 0 {
		o.latency = new(v / 1e3)
	}
	t.ops = append(t.ops, o)
	t.signature.WriteString(o.key + "\x00")
	return row
}

// totalLabel returns the label of a row of totals, in column L; "" for other rows.
func totalLabel(cells []string) string {
	if len(cells) > colSupport && strings.Contains(cells[colSupport], "latency") && strings.Join(cells[:colSupport], "") == "" {
		return cells[colSupport]
	}
	return ""
}

var (
	shapeCell = lazyregexp.New(`^(?:\d+(?:x\d+)*|\?)?(?:;(?:\d+(?:x(?:\d+|\?))*|\?)?)*;?$`)
	typeCell  = lazyregexp.New(`^(?:fp32|bf16|fp16|fp8\w*|s8|u8|s16|s32|s64|u32|f64|bool|float\d+|bfloat16|u?int\d+)(?:;(?:fp32|bf16|fp16|fp8\w*|s8|u8|s16|s32|s64|u32|f64|bool|float\d+|bfloat16|u?int\d+|))*$`)
	sparse    = lazyregexp.New(`^\d+(?:\.\d+)?%$`)
)

// align puts the cells of a row into their columns. Names without quotes add cells, scalars and
// missing outputs remove some. The right part begins at the latency, since a blank follows its
// comma.
func align(cells []string) ([]string, bool) {
	if len(cells) == columns {
		row := slices.Clone(cells)
		row[colTarget] = strings.TrimSpace(row[colTarget])
		return row, true
	}
	at := -1
	for i := len(cells) - 2; i >= 3; i-- {
		if _, ok := textscan.Number(cells[i]); ok && strings.HasPrefix(cells[i+1], " ") {
			at = i
			break
		}
	}
	if at < 0 {
		return nil, false
	}
	row := make([]string, columns)
	for k, c := range cells[at:min(len(cells), at+columns-colLatency)] {
		row[colLatency+k] = strings.TrimSpace(c)
	}
	left := cells[:at]
	for _, col := range []int{colSupport, colSparse, colWeight} { // from the right
		if n := len(left); n > 3 {
			row[col], left = left[n-1], left[:n-1]
		}
	}
	if row[colSparse] != "" && !sparse.MatchString(row[colSparse]) {
		return nil, false
	}
	row[colType], row[colPost] = left[0], left[min(1, len(left)-1)]
	names(row, left[min(2, len(left)):])
	return row, true
}

// separated splits cells in which the types follow the shapes without a comma, since a scalar at
// the end of the shapes prints nothing: "8x1024;fp32;fp32" are the shapes "8x1024;" and the types.
func separated(cells []string) []string {
	out := make([]string, 0, len(cells)+2)
	for _, c := range cells {
		at := 0
		if !typeCell.MatchString(c) && !shapeCell.MatchString(c) {
			for i := range c {
				if c[i] == ';' && shapeCell.MatchString(c[:i]) && c[:i] != "" && typeCell.MatchString(c[i+1:]) {
					at = i + 1
					break
				}
			}
		}
		if at > 0 {
			out = append(out, c[:at])
		}
		out = append(out, c[at:])
	}
	return out
}

// names finds name, inputs and outputs with their shapes and types among cells, some of which are
// missing or too many.
func names(row, cells []string) {
	cells = separated(cells)
	// The outputs' type is the last cell with a type; its shape and names precede it.
	isShape := func(i int) bool { return i >= 0 && shapeCell.MatchString(cells[i]) }
	var types []int
	for i, c := range cells {
		if typeCell.MatchString(c) {
			types = append(types, i)
		}
	}
	rest := cells
	if len(types) > 0 {
		first := types[0]
		if len(types) > 1 {
			last := types[len(types)-1]
			row[colOutType] = cells[last]
			end := last
			if isShape(last-1) && last-1 > first {
				row[colOutShape], end = cells[last-1], last-1
			}
			row[colOutputs] = strings.Join(cells[first+1:end], ",")
		}
		row[colInType] = cells[first]
		end := first
		if isShape(first-1) && first-1 > 0 {
			row[colInShape], end = cells[first-1], first-1
		}
		rest = cells[:end]
	}
	if len(rest) == 0 {
		return
	}
	// The name is first and often equals that of an output.
	n := 1
	for k := 1; k < len(rest); k++ {
		if strings.Join(rest[:k], ",") == row[colOutputs] {
			n = k
		}
	}
	row[colName] = strings.Join(rest[:n], ",")
	row[colInputs] = strings.Join(rest[n:], ",")
}

var (
	blockSparsity = profile.Quantity{Key: "block_sparsity", Unit: "1", Head: "zero blocks", Name: "Zero blocks of weights", Group: "Sparsity", Doc: "Part of the blocks of weights that are all zero, as the engine counts them; it does not say of which size."}
	target        = profile.Quantity{Key: "sparsity_target", Unit: "1", Head: "target", Name: "Sparsity aimed for", Group: "Sparsity"}
	ratio         = profile.Quantity{Key: "sparse_ratio", Head: "ratio", Name: "Dense over sparse time", Group: "Sparsity", Doc: "How much faster a sparse kernel would be, by the table of ratios in the file: a setting and no measurement."}
	sparseTime    = profile.Quantity{Key: "sparse_latency_s", Unit: "s", Head: "sparse time", Name: "Time with sparse weights", Group: "Sparsity", Adds: true, Better: -1, Doc: "Time that the layer would take with the sparsity aimed for, by the ratios of the file."}
)

// into makes layers of the operators, or adds to those of the trace. Further instances add only
// operators that are still absent.
func (t *table) into(d *draft.Draft, at map[string]int, first bool) {
	d.Dropped.Add("rows that could not be put into their columns", t.bad)
	if t.more {
		d.Dropped.Add(record.MoreDocuments, 1)
	}
	sheet := &evaluator{sheet: t.sheet}
	for _, o := range t.ops {
		c := o.cells
		i, have := at[o.key]
		if !have {
			i = d.Add(profile.Layer{Name: c[colName], Op: c[colType]}, runlog.Hint{})
			if i < 0 {
				return
			}
			at[o.key] = i
		} else if !first {
			continue
		}
		t.layer(d, i, c)
		cell := func(col int) *float64 { return draft.Known(sheet.value(o.row, col)) }
		if v := cell(colAim); v != nil && *v >= 0 {
			d.Set(i, sparseTime, *v/1e3)
		}
		d.SetKnown(i, ratio, cell(colRatio), 1)
		d.SetKnown(i, target, cell(colTarget), 1)
		d.SetKnown(i, blockSparsity, draft.Known(textscan.Number(c[colSparse])), 1e-2)
	}
	if t.shifted > 0 && first {
		d.Found("neural_engine.shifted", profile.Info, "%d rows had more or fewer cells than columns, for commas in names and scalars that print nothing. They were put right by the kinds of their cells.", t.shifted)
	}
}

// layer sets the facts in the cells.
func (t *table) layer(d *draft.Draft, i int, c []string) {
	y, h := d.Layer(i), d.Hint(i)
	inputs, outputs := list(c[colInputs], ";"), list(c[colOutputs], ";")
	shapes := list(c[colInShape], ";")
	y.Inputs = ports(inputs, shapes, list(c[colInType], ";"), "x")
	y.Outputs = ports(outputs, list(c[colOutShape], ";"), list(c[colOutType], ";"), "x")
	h.Nodes, h.Outputs = []string{c[colName]}, outputs
	if c[colWeight] != "" {
		for k := range y.Inputs {
			if k < len(shapes) && len(shapes) == len(y.Inputs) && shapes[k] == c[colWeight] {
				y.Inputs[k].Constant = true
				break
			}
		}
		d.Option(i, "weight_shape", c[colWeight])
	}
	if y.Option("append_op") == "" {
		d.Option(i, "append_op", c[colPost])
	}
	d.Option(i, "sparse_support", c[colSupport])
	if len(shapes) > 0 && len(shapes) != len(inputs) {
		d.Option(i, "input_shapes", c[colInShape])
	}
}

// sums are the rows of totals at the end of the table: their labels, the factor to the unit, and
// the quantities of the columns M and P.
var sums = []struct {
	label       string
	scale       float64
	dense, goal profile.Quantity
}{
	{"total latency(ms)", 1e-3, profile.Quantity{Key: "recorded_latency_s", Unit: "s", Name: "Time as recorded", Group: "Time"}, sparseTime},
	{
		"sparse support latency(ms)", 1e-3,
		profile.Quantity{Key: "sparse_support_s", Unit: "s", Name: "Time of operators that can be sparse", Group: "Sparsity"},
		profile.Quantity{Key: "sparse_support_aim_s", Unit: "s", Name: "Time of operators that can be sparse, with sparse weights", Group: "Sparsity"},
	},
	{
		"sparse support latency ratio", 1,
		profile.Quantity{Key: "sparse_support_ratio", Unit: "1", Name: "Part of the time of operators that can be sparse", Group: "Sparsity"},
		profile.Quantity{Key: "sparse_support_aim_ratio", Unit: "1", Name: "Their part of the time with sparse weights", Group: "Sparsity"},
	},
}

// whatIf evaluates the totals at the end of the table.
func whatIf(d *draft.Draft, t *table) {
	sheet := &evaluator{sheet: t.sheet}
	for k, s := range sums {
		row, ok := t.totals[s.label]
		if !ok {
			continue
		}
		total := func(q profile.Quantity, col int, scale float64) {
			if v, ok := sheet.value(row, col); ok {
				d.Total(q, v*scale)
			}
		}
		total(s.dense, colLatency, s.scale)
		total(s.goal, colAim, s.scale)
		if k == 0 {
			total(profile.Quantity{Key: "sparse_improve", Name: "Time over time with sparse weights", Group: "Sparsity", Better: 1}, colAim+2, 1)
		}
	}
	for _, r := range t.ratios {
		d.Note("ratios", strings.Join(r, " "))
	}
}
