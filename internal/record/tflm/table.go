package tflm

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

// A table is a CSV that firmware and scripts of others make of the profiler's events: the columns
// have any names and order. Columns are found by words in their names, the operators by the
// content.

// role is what a column of a table holds.
type role int

const (
	noRole role = iota
	opRole
	nameRole
	indexRole // of the operator in its inference
	roundRole // number of the inference
	ticksRole
	timeRole
)

// roles are words in the names of columns, by falling precedence.
var roles = []struct {
	role  role
	words []string
}{
	{ticksRole, []string{"tick", "ticks", "cycle", "cycles", "clocks"}},
	{timeRole, []string{"time", "duration", "latency", "elapsed", "took", "exec", "execution", "ms", "us", "µs", "μs", "ns"}},
	{roundRole, []string{"iteration", "iter", "run", "inference", "invocation", "round"}},
	{opRole, []string{"op", "ops", "operator", "operation", "opname", "optype", "opcode", "tag", "kernel", "type"}},
	{indexRole, []string{"#", "index", "idx", "id", "no", "number", "event", "order", "position"}},
	{nameRole, []string{"name", "layer", "node", "tensor"}},
}

// secondary are words in the names of columns that are used only where no other has their role.
var secondary = []string{"min", "max", "std", "stddev", "start", "begin", "end", "first", "last", "total", "sum", "cumulative", "cum"}

// units are the units of times in the names of columns, in seconds.
var units = map[string]float64{
	"s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1,
	"ms": 1e-3, "msec": 1e-3, "millis": 1e-3, "millisecond": 1e-3, "milliseconds": 1e-3,
	"us": 1e-6, "µs": 1e-6, "μs": 1e-6, "usec": 1e-6, "micros": 1e-6, "microsecond": 1e-6, "microseconds": 1e-6,
	"ns": 1e-9, "nsec": 1e-9, "nanos": 1e-9, "nanosecond": 1e-9, "nanoseconds": 1e-9,
}

// special are operators of TensorFlow Lite, by their names without underscores. Scripts also write
// them as Conv2D; other runtimes have other names for them.
var special = map[string]bool{
	"CONV2D": true, "DEPTHWISECONV2D": true, "TRANSPOSECONV": true, "FULLYCONNECTED": true, "SVDF": true,
	"AVERAGEPOOL2D": true, "MAXPOOL2D": true,
}

// operator reports whether a text is the name of an operator.
func operator(s string) bool {
	return builtin.MatchString(s) || special[strings.ToUpper(strings.ReplaceAll(s, "_", ""))]
}

// builtin matches the names of operators that TensorFlow Lite Micro prints.
var builtin = lazyregexp.New(`^(?:DEPTHWISE_CONV_2D|CONV_2D|TRANSPOSE_CONV|FULLY_CONNECTED|SOFTMAX|RESHAPE|(?:DE)?QUANTIZE|SVDF|(?:MAX|AVERAGE)_POOL_2D|MEAN|PAD(?:V2)?|ADD|SUB|MUL|LOGISTIC|TANH|RELU6?|LEAKY_RELU|HARD_SWISH|CONCATENATION|STRIDED_SLICE|EXPAND_DIMS|TRANSPOSE|UNIDIRECTIONAL_SEQUENCE_LSTM|BATCH_MATMUL|PACK|SPLIT|RESIZE_\w+|ARG_MAX|SHAPE|SQUEEZE|VAR_HANDLE|READ_VARIABLE|ASSIGN_VARIABLE|CALL_ONCE)$`)

// table is the layout of a CSV.
type table struct {
	sep    byte
	names  []string
	at     map[role]int
	second float64 // the unit of the column of times in seconds, 0 if unknown
}

// words are the parts of a name such as opName, avg_time_us or "Time (ms)", in lower case.
func words(s string) []string {
	var b strings.Builder
	small := false
	for _, r := range s {
		if small && r >= 'A' && r <= 'Z' {
			b.WriteByte(' ')
		}
		small = r >= 'a' && r <= 'z'
		if strings.ContainsRune("_-()[]/.:,", r) {
			r = ' '
		}
		b.WriteRune(r)
	}
	return strings.Fields(strings.ToLower(b.String()))
}

// roleOf returns the role that the name of a column suggests.
func roleOf(name string) role {
	ws := words(name)
	if strings.Contains(name, "%") {
		return noRole
	}
	for _, r := range roles {
		if slices.ContainsFunc(ws, func(w string) bool { return slices.Contains(r.words, w) }) {
			return r.role
		}
	}
	return noRole
}

// tableOf returns the layout of a CSV whose rows name operators of TensorFlow Lite Micro and have a
// column of ticks or times; nil for other files.
func tableOf(f *record.File) *table {
	if !textscan.Any(f.Head, "CONV_2D", "FULLY_CONNECTED", "SOFTMAX", "RESHAPE", "QUANTIZE", "POOL_2D", "ADD", "MUL", "Conv2D", "FullyConnected", "conv_2d", "conv2d") {
		return nil
	}
	lines := slices.DeleteFunc(textscan.Head(f.Head, f.Whole), comment)
	if len(lines) < 2 {
		return nil
	}
	for _, sep := range []byte(",;\t") {
		if t := layout(sep, lines); t != nil {
			return t
		}
	}
	return nil
}

// comment reports whether a line is blank or a comment; a header may begin with the column "#".
func comment(l string) bool {
	l = strings.TrimSpace(l)
	return l == "" || l[0] == '#' && (len(l) < 2 || !strings.ContainsAny(l[1:2], ",;\t"))
}

// layout finds the columns by their names and the first rows.
func layout(sep byte, lines []string) *table {
	t := &table{sep: sep, at: map[role]int{}}
	header := textscan.Fields(lines[0], sep)
	if len(header) < 2 || slices.ContainsFunc(header, func(h string) bool { _, number := textscan.Number(h); return number }) {
		return nil
	}
	// Operators are found by content: the column that names most of them.
	rows := lines[1:min(len(lines), 200)]
	best := 0
	for c := range header {
		n := 0
		for _, l := range rows {
			if operator(textscan.Cell(textscan.Fields(l, sep), c)) {
				n++
			}
		}
		if n > best {
			best, t.at[opRole] = n, c
		}
	}
	if best == 0 || 2*best < len(rows) {
		return nil
	}
	for _, h := range header {
		t.names = append(t.names, strings.TrimSpace(h))
	}
	for _, second := range []bool{false, true} {
		for c, h := range header {
			r := roleOf(h)
			aside := slices.ContainsFunc(words(h), func(w string) bool { return slices.Contains(secondary, w) })
			if _, taken := t.at[r]; !taken && r != noRole && aside == second && c != t.at[opRole] {
				t.at[r] = c
			}
		}
	}
	if c, ok := t.at[timeRole]; ok {
		for _, w := range words(header[c]) {
			if unit := units[w]; unit > 0 {
				t.second = unit
			}
		}
	}
	_, ticks := t.at[ticksRole]
	if !ticks && t.second == 0 {
		return nil
	}
	return t
}

// cell returns the text of a column, "" if it is absent.
func (t *table) cell(row []string, r role) string {
	if c, ok := t.at[r]; ok {
		return textscan.Cell(row, c)
	}
	return ""
}

// tableRow is the call of an operator.
type tableRow struct {
	op, name    string
	index       string
	ticks, time float64 // -1 if unknown; seconds
}

// inference holds the rows of an inference.
type inference struct {
	block record.Block
	rows  []tableRow
	round string
	total *tableRow // the sum that the table prints, nil for none
}

// isHeader reports whether a row repeats the names of the columns.
func (t *table) isHeader(fields []string) bool {
	return slices.EqualFunc(fields, t.names, func(f, n string) bool { return strings.TrimSpace(f) == n })
}

// maxRows limits the rows of a table.
const maxRows = 1_000_000

// read reads the rows into inferences, and these into runs.
func (t *table) read(f *record.File, clock float64) ([]*runlog.Run, error) {
	var all []*inference
	lost := map[string]int64{}
	first, n := true, 0
	err := f.Lines(func(l string) {
		fields := textscan.Fields(l, t.sep)
		if comment(l) {
			return
		}
		if first || t.isHeader(fields) {
			if first = false; len(all) > 0 {
				all = append(all, &inference{}) // another table follows
			}
			return
		}
		r := t.row(fields, lost)
		if r == nil {
			if k := len(all); k > 0 && t.isSum(fields, plainSum) {
				all[k-1].total = t.figures(fields, lost)
			}
			return
		}
		if n++; n > maxRows {
			lost["rows beyond the first million"]++
			return
		}
		round := t.cell(fields, roundRole)
		if k := len(all); k == 0 || len(all[k-1].rows) > 0 && (round != all[k-1].round || r.index != "" && !after(r.index, all[k-1].rows[len(all[k-1].rows)-1].index)) {
			all = append(all, &inference{block: record.Block{Next: k > 0}})
		}
		cur := all[len(all)-1]
		cur.round, cur.rows = round, append(cur.rows, *r)
		cur.block.Rows = append(cur.block.Rows, r.op+"\x00"+r.name)
	})
	var ds []*draft.Draft
	undecided := false
	for start := 0; start < len(all) && len(ds) < draft.MaxRuns; {
		end := start + 1
		for end < len(all) {
			if relation := all[end].block.After(&all[start].block); relation != record.SameRun {
				undecided = undecided || relation == record.Undecided
				break
			}
			end++
		}
		if len(all[start].rows) > 0 {
			ds = append(ds, t.draft(draft.Stem(f), all[start:end], clock))
		}
		start = end
	}
	draft.Apart(ds, undecided)
	var runs []*runlog.Run
	for i, d := range ds {
		for reason, n := range lost {
			if i == 0 {
				d.Dropped.Add(reason, n)
			}
		}
		runs = append(runs, d.Run())
	}
	return draft.NotEmpty(runs, err)
}

// printed sets the sum that a table prints where the figure of an operator is unknown.
func printed(d *draft.Draft, x *inference, clock float64) {
	var sum tableRow
	noTicks, noTime := 0, 0
	for _, r := range x.rows {
		sum.ticks, sum.time = sum.ticks+max(0, r.ticks), sum.time+max(0, r.time)
		if r.ticks < 0 {
			noTicks++
		}
		if r.time < 0 {
			noTime++
		}
	}
	unknown := min(noTicks, noTime)
	if unknown == 0 {
		return
	}
	whole := "The sum of the others is not the whole, which is unknown."
	if x.total != nil && x.total.ticks >= sum.ticks && noTicks < len(x.rows) {
		whole = "The whole is the sum that the table prints."
		d.Total(ticks, x.total.ticks)
		if clock > 0 {
			d.P.Totals.Latency = draft.Value(x.total.ticks / clock)
		}
	}
	if x.total != nil && x.total.time >= sum.time && noTime < len(x.rows) {
		whole = "The whole is the sum that the table prints."
		d.P.Totals.Latency = draft.Value(x.total.time)
	}
	d.Found("tflm.unread", profile.Warning, "%d of %d operators have no figure that can be read. %s", unknown, len(x.rows), whole)
}

// after reports whether an index follows another one in its inference.
func after(index, before string) bool {
	a, ok := textscan.Number(index)
	b, also := textscan.Number(before)
	return !ok || !also || a > b
}

// sumRow matches rows that add up others.
var sumRow = lazyregexp.New(`(?i)^(total|sum|all|overall|average|mean)\b`)

// plainSum matches the sums among them.
var plainSum = lazyregexp.New(`(?i)^(total|sum|all|overall)\b`)

// isSum reports whether a row adds up others by one of its names. MEAN is an operator.
func (t *table) isSum(fields []string, names *lazyregexp.Regexp) bool {
	op := t.cell(fields, opRole)
	return !builtin.MatchString(op) && (names.MatchString(textscan.Cell(fields, 0)) || names.MatchString(op) || names.MatchString(t.cell(fields, nameRole)))
}

// row reads a row, nil for a row that is none of an operator. lost counts rows and figures that
// cannot be read. An operator without a figure keeps its row: the sum of the others is not the
// whole.
func (t *table) row(fields []string, lost map[string]int64) *tableRow {
	if t.isSum(fields, sumRow) {
		return nil
	}
	r := t.figures(fields, lost)
	if r.ticks < 0 && r.time < 0 || r.op == "" {
		lost["rows without an operator or a figure"]++
		if !operator(r.op) && (r.op == "" || len(fields) < 2 || strings.Contains(r.op, " ")) {
			return nil
		}
	}
	return r
}

// figures reads the cells of a row.
func (t *table) figures(fields []string, lost map[string]int64) *tableRow {
	r := &tableRow{op: t.cell(fields, opRole), name: t.cell(fields, nameRole), index: t.cell(fields, indexRole), ticks: -1, time: -1}
	figure := func(of role, scale float64) float64 {
		text := t.cell(fields, of)
		v, ok := textscan.Number(text)
		if ok && v >= 0 && v < 1<<53 {
			return v * scale
		}
		if text != "" {
			lost["figures that are negative, too large or no numbers"]++
		}
		return -1
	}
	r.ticks = figure(ticksRole, 1)
	if t.second > 0 {
		r.time = figure(timeRole, t.second)
	}
	return r
}

// draft makes a run of inferences with equal operators.
func (t *table) draft(name string, all []*inference, clock float64) *draft.Draft {
	d := draft.New("tflm", name, engine)
	n, rows := len(all[0].rows), []tableRow{}
	for _, x := range all {
		rows = append(rows, x.rows...)
	}
	if len(all) == 1 {
		n = record.Period(all[0].block.Rows)
	}
	for i := range n {
		l := profile.Layer{Name: rows[i].name, Op: rows[i].op}
		if l.Name == "" {
			l.Name = l.Op
		}
		k := d.Add(l, runlog.Hint{})
		if k < 0 {
			break
		}
		var ts, seconds []float64
		for r := i; r < len(rows); r += n {
			if v := rows[r].ticks; v >= 0 {
				ts = append(ts, v)
			}
			if v := rows[r].time; v >= 0 {
				seconds = append(seconds, v)
			}
		}
		set(d, k, ts, nil, clock)
		if y := d.Layer(k); y.Latency == nil {
			y.Latency, y.Samples = draft.Figure(seconds, "")
		}
	}
	runs := len(rows) / n
	if runs == 1 {
		printed(d, all[0], clock)
	}
	if runs > 1 {
		d.P.Settings.Runs = new(int64(runs))
		d.Found("tflm.inferences", profile.Info, "The table has %d inferences of %d operators.", runs, n)
	}
	if clock > 0 {
		d.P.Target.ClockHz = &clock
	}
	var columns []string
	for _, r := range []struct {
		role role
		what string
	}{{opRole, "operator"}, {nameRole, "name"}, {ticksRole, "ticks"}, {timeRole, "time"}, {indexRole, "index"}, {roundRole, "inference"}} {
		if c, ok := t.at[r.role]; ok && (r.role != timeRole || t.second > 0) {
			columns = append(columns, r.what+" from \""+t.names[c]+"\"")
		}
	}
	d.Found("tflm.columns", profile.Info, "The table is not one of the profiler's own. Columns were found by their names and content: %s.", strings.Join(columns, ", "))
	if _, ok := t.at[ticksRole]; ok && t.second == 0 && clock == 0 {
		d.Found("tflm.clock", profile.Warning, "The table counts ticks and does not tell their frequency: give the profiler's clock in hertz with --clock for times.")
	}
	return d
}
