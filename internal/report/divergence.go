package report

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/internal/source/outputdiff"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
	"github.com/opmeter/opmeter/profile/divergence"
)

// DivergenceFormats are the formats of comparisons of outputs, with the endings of their files.
var DivergenceFormats = []string{"table", "csv", "json", "markdown"}

var divergenceEndings = map[string]string{".txt": "table", ".csv": "csv", ".json": "json", ".md": "markdown"}

// DivergenceSorts are the orders of rows: that of execution, the largest own error first.
var DivergenceSorts = []string{"index", "difference"}

// DivergenceFormat is the format of a comparison of outputs by the ending of a file.
func DivergenceFormat(path string) (string, error) {
	if f := divergenceEndings[strings.ToLower(filepath.Ext(path))]; f != "" {
		return f, nil
	}
	return "", fmt.Errorf("%s: the ending does not name a format of comparisons of outputs: use one of .txt .csv .json .md", path)
}

// WriteDivergence writes a comparison of outputs in a format of [DivergenceFormats].
func WriteDivergence(w io.Writer, r *divergence.Report, format string, o VersusOptions) error {
	switch format {
	case "table":
		return divergenceTable(w, r, o)
	case "csv":
		return divergenceCSV(w, r)
	case "json":
		b, err := jsonx.MarshalIndent(r)
		if err == nil {
			_, err = w.Write(b)
		}
		return err
	case "markdown":
		return divergenceMarkdown(w, r, o)
	}
	return fmt.Errorf("unknown format %q: use one of %s", format, strings.Join(DivergenceFormats, ", "))
}

// DivergenceFile writes a comparison of outputs to a file in the format that the ending names.
func DivergenceFile(path string, r *divergence.Report, o VersusOptions) error {
	format, err := DivergenceFormat(path)
	if err != nil {
		return err
	}
	o.Width, o.Top, o.Color = 0, 0, false
	return atomicfile.Stream(path, func(w io.Writer) error { return WriteDivergence(w, r, format, o) })
}

// snr writes a signal-to-noise ratio.
func snr(v *float64) string {
	if v == nil {
		return ""
	}
	return words.Fixed(math.Round(*v)+0, 0) + " dB" // no -0
}

// noiseText is the difference of an output in a cell.
func noiseText(d *profile.Difference) string {
	switch {
	case d == nil:
		return ""
	case d.State == profile.Equal:
		return "equal"
	case d.NotFinite != nil && *d.NotFinite > 0:
		return fmt.Sprintf("%d not finite", *d.NotFinite)
	case d.SNR != nil:
		return snr(d.SNR)
	}
	n, ok := divergence.Noise(d)
	switch {
	case d.Cause != nil && d.Cause.Code == profile.ByShape:
		return "other shape"
	case !ok:
		return "?"
	case n == 0:
		return "equal"
	}
	return "reference 0"
}

// rowLayers names the layers of a side: "#7 Conv", "#7 Conv +2".
func rowLayers(ls []divergence.Layer) string {
	if len(ls) == 0 {
		return ""
	}
	l := rowLead(ls)
	s := fmt.Sprintf("#%d %s", l.Index, l.Op)
	if n := len(ls) - 1; n > 0 {
		s += fmt.Sprintf(" +%d", n)
	}
	return s
}

// light are operators that name a row only if it has none that follow in the list, or others.
var light = []string{"QuantizeLinear", "DequantizeLinear", "QUANTIZE", "DEQUANTIZE", "Cast", "CAST", "DynamicQuantizeLinear", "Relu", "Clip", "Add", "ADD", "Mul", "MUL"}

// rowLead is the layer that names a row: the first that does more than convert, clamp or add.
func rowLead(ls []divergence.Layer) *divergence.Layer {
	best, weight := 0, -1
	for i := range ls {
		w := slices.Index(light, ls[i].Op)
		if w < 0 {
			return &ls[i]
		}
		if w > weight {
			best, weight = i, w
		}
	}
	return &ls[best]
}

// rowName names a row in a sentence: "#7 Conv \"conv3\"".
func rowName(r *divergence.Row) string {
	ls := r.A
	if len(ls) == 0 {
		ls = r.B
	}
	if len(ls) == 0 {
		return "?"
	}
	l := rowLead(ls)
	s := fmt.Sprintf("#%d %s", l.Index, l.Op)
	if name, _, _ := strings.Cut(l.Name, ";"); name != "" { // converters join names
		s += fmt.Sprintf(" %q", shorten(name, longestName))
	}
	return s
}

// longestName is the most characters of a name in a sentence.
const longestName = 60

// DivergenceAnswer says in a sentence at which layer outputs part, and then how the outputs of the
// models differ.
func DivergenceAnswer(r *divergence.Report) []string {
	v := &r.Verdict
	var s string
	switch v.Code {
	case divergence.Equal:
		s = fmt.Sprintf("Outputs of all layers are equal, bit by bit (%s)", words.Plural(v.Compared, "row"))
	case divergence.Unknown:
		if v.Compared > 0 {
			return []string{fmt.Sprintf("No output of the models could be compared: the list of outputs says why. Outputs of %s differ by no more than rounding", words.Plural(v.Compared, "row"))}
		}
		return []string{"No outputs of layers could be compared: the notes of the rows say why"}
	case divergence.Rounding:
		s = "Outputs differ by no more than " + explanation(r)
		if v.Row != nil && v.OwnSNR != nil {
			s += fmt.Sprintf(": the largest error is added at %s, SNR %s", rowName(&r.Rows[*v.Row]), snr(v.OwnSNR))
		}
	case divergence.Parts:
		s = "Outputs part at " + partText(r)
	default:
		s = gradualText(r)
	}
	out := []string{s}
	if v.Row != nil && !r.Rows[*v.Row].Certain && v.Code != divergence.Rounding {
		out = append(out, "It is not certain that these layers are partners: check the row of the table")
	}
	if v.Doubtful > 0 {
		out = append(out, fmt.Sprintf("%s left out: pairs that are not certain and differ by far more than the outputs of the models, so that they are probably not partners", words.Plural(v.Doubtful, "row")))
	}
	return append(out, outputsText(r))
}

// explanation is what explains small errors: rounding, or the quantisation of one of the models.
func explanation(r *divergence.Report) string {
	if slices.ContainsFunc(r.Rows, func(row divergence.Row) bool {
		d := row.Own
		// Rows of dynamic quantisation return floating point: their limit tells.
		return row.Kind == align.Quantised && d != nil && (d.Steps != nil || d.Limit != nil && *d.Limit <= outputdiff.QuantisedLimit)
	}) {
		return "quantisation explains"
	}
	return "rounding"
}

func partText(r *divergence.Report) string {
	v := &r.Verdict
	row := &r.Rows[*v.Row]
	s := rowName(row) + ": "
	switch {
	case row.Output.State == profile.NotComparable:
		s += "its output has the shapes " + row.Output.Cause.Text
	case v.OwnSNR == nil && row.Own.NotFinite != nil:
		s += words.Plural(*row.Own.NotFinite, "element") + " of its output infinite or NaN in one of the two"
	case v.OwnSNR == nil:
		s += "its output differs"
	case row.OwnFrom == divergence.Accumulated:
		s += "SNR " + snr(v.OwnSNR)
	default:
		s += "it adds an error of SNR " + snr(v.OwnSNR)
	}
	if v.OwnSNR != nil && row.Own.MaxAbsolute != nil {
		s += ", at most " + strconv.FormatFloat(*row.Own.MaxAbsolute, 'g', 2, 64)
	}
	switch before := *v.Row; {
	case before == 0:
	case v.Before == nil:
		s += ", outputs before it are equal"
	default:
		s += ", outputs before it have at least " + snr(v.Before)
	}
	if v.Typical != nil {
		s += fmt.Sprintf("; other rows add errors of %s (median)", snr(v.Typical))
	}
	return s
}

func gradualText(r *divergence.Report) string {
	v := &r.Verdict
	if r.Unlike {
		return "Outputs of the models differ, but an engine computes others when the outputs of layers are outputs, too: the notes below the table name them"
	}
	if v.Row == nil {
		return "Outputs differ, and the errors of single layers are unknown: the notes of the rows say why"
	}
	if v.Amplified {
		return fmt.Sprintf("Outputs differ, but no layer adds more than %s: the largest error is that of %s, SNR %s, and layers behind it amplify errors", explanation(r), rowName(&r.Rows[*v.Row]), snr(v.OwnSNR))
	}
	if v.Added == 1 {
		return fmt.Sprintf("Outputs do not part at one layer: only the error of %s is known, SNR %s", rowName(&r.Rows[*v.Row]), snr(v.OwnSNR))
	}
	s := fmt.Sprintf("Outputs do not part at one layer: %d rows add errors, the largest is that of %s, SNR %s", v.Added, rowName(&r.Rows[*v.Row]), snr(v.OwnSNR))
	if v.Typical != nil {
		s += fmt.Sprintf("; the median of the others is %s", snr(v.Typical))
	}
	return s
}

// outputsText describes the outputs of the models.
func outputsText(r *divergence.Report) string {
	var parts []string
	for i := range r.Outputs {
		d := &r.Outputs[i]
		if i == 4 && len(r.Outputs) > 5 {
			parts = append(parts, fmt.Sprintf("and %d more", len(r.Outputs)-i))
			break
		}
		s := fmt.Sprintf("%q ", cmp.Or(d.Name, strconv.FormatInt(d.Output, 10)))
		switch {
		case d.State == profile.NotComparable:
			s += "cannot be compared (" + d.Cause.Text + ")"
		case d.State == profile.Equal:
			s += "is equal"
		default:
			s += noiseText(d)
			if d.Steps != nil {
				s += ", up to " + steps(*d.Steps)
			}
			switch {
			case d.Top == nil || *d.Top >= 1:
			case *d.Top == 0:
				s += ", top class equal in no row"
			default:
				s += ", top class equal in " + Percent(*d.Top) + " of the rows"
			}
		}
		parts = append(parts, s)
	}
	if len(parts) == 0 {
		return "The models have no outputs"
	}
	return "Outputs of the model: " + strings.Join(parts, "; ")
}

// steps writes a number of quantisation steps.
func steps(v float64) string {
	digits := 1
	if v == math.Trunc(v) || v >= 10 {
		digits = 0
	}
	if v == 1 {
		return "1 step"
	}
	return words.Fixed(v, digits) + " steps"
}

// divergenceRows are the rows in the order asked for, and how many there are in all.
func divergenceRows(r *divergence.Report, o VersusOptions) ([]*divergence.Row, int, error) {
	rows := make([]*divergence.Row, len(r.Rows))
	for i := range rows {
		rows[i] = &r.Rows[i]
	}
	switch o.Sort {
	case "", "index":
	case "difference":
		sorting.Stable(rows, func(a, b *divergence.Row) int {
			x, _ := divergence.Noise(a.Own)
			y, _ := divergence.Noise(b.Own)
			return cmp.Compare(y, x)
		})
	default:
		return nil, 0, fmt.Errorf("cannot sort by %q: use one of %s", o.Sort, strings.Join(DivergenceSorts, ", "))
	}
	all := len(rows)
	if o.Top > 0 && all > o.Top {
		rows = rows[:o.Top]
	}
	return rows, all, nil
}

// Columns of the table.
var divergenceHead = []string{"layers", "name", "", "pair", "own error", "accumulated", "inputs", "max diff", "differ", "steps", "note"}

var divergenceKeeps = []keep{
	{rank: 100},
	{rank: 55, cut: shorten, least: versusLeast},
	{rank: 80},
	{rank: 70},
	{rank: 99},
	{rank: 98},
	{rank: 60},
	{rank: 50},
	{rank: 40},
	{rank: 65},
	{rank: 30, cut: beginning, least: versusOthers},
}

// divergenceCells are the cells of the table for rows.
func divergenceCells(r *divergence.Report, rows []*divergence.Row) [][]string {
	head := slices.Clone(divergenceHead)
	head[2] = r.Sides[1].Name
	out := [][]string{head}
	for _, row := range rows {
		at := row.Kind
		cells := []string{rowLayers(row.A), "", rowLayers(row.B), string(at), noiseText(row.Own), noiseText(row.Output), "", "", "", "", ""}
		if ls := row.A; len(ls) > 0 {
			cells[1] = rowLead(ls).Name
		} else if len(row.B) > 0 {
			cells[1] = rowLead(row.B).Name
		}
		if !row.Certain && len(row.A) > 0 && len(row.B) > 0 {
			cells[3] += " ?"
		}
		if row.OwnFrom == divergence.Accumulated && row.Own != nil && row.Own.State != profile.Equal {
			cells[4] += " *"
		}
		cells[6] = snr(row.Input)
		if d := row.Output; d != nil {
			if d.MaxAbsolute != nil && *d.MaxAbsolute > 0 {
				cells[7] = strconv.FormatFloat(*d.MaxAbsolute, 'g', 3, 64)
			}
			if d.Same != nil && *d.Same < 1 {
				cells[8] = Percent(1 - *d.Same)
			}
			if d.Steps != nil && *d.Steps > 0 {
				cells[9] = words.Fixed(*d.Steps, only1(*d.Steps))
			}
		}
		switch {
		case row.Doubtful:
			cells[10] = "probably not partners"
		case row.Cause != nil:
			cells[10] = row.Cause.Text
		}
		out = append(out, cells)
	}
	return out
}

// only1 is the number of decimals of a number of steps.
func only1(v float64) int {
	if v == math.Trunc(v) || v >= 10 {
		return 0
	}
	return 1
}

// divergenceLegend explains the columns.
const divergenceLegend = "own error: SNR of the error that the row adds, from the same inputs; accumulated: SNR with all errors before it; steps: largest difference in quantisation steps. * accumulated error, at least ten times that of the inputs. ? the pair is not certain."

// divergenceWhat names what was compared.
func divergenceWhat(r *divergence.Report) string {
	a, b := &r.Sides[0], &r.Sides[1]
	name := func(s *divergence.Side) string {
		return s.Model + " in " + strings.TrimSpace(s.Engine+" "+s.EngineVersion)
	}
	what := r.Inputs + " inputs"
	if r.Inputs == "random" {
		what += fmt.Sprintf(" of seed %d", r.Seed)
	}
	return fmt.Sprintf("%s against %s, %s; errors relative to %s; at most %s of outputs held for each side, %s", name(b), name(a), what, a.Name, Bytes(r.LimitBytes), passesText(r.Passes))
}

func passesText(n int64) string {
	if n == 1 {
		return "1 pass"
	}
	return fmt.Sprintf("%d passes", n)
}

func divergenceTable(w io.Writer, r *divergence.Report, o VersusOptions) error {
	rows, all, err := divergenceRows(r, o)
	if err != nil {
		return err
	}
	var b strings.Builder
	line := func(s string) {
		for _, l := range wrap(text.Clean(s), o.Width) {
			b.WriteString(l + "\n")
		}
	}
	for _, s := range DivergenceAnswer(r) {
		line(s)
	}
	b.WriteByte('\n')
	line(divergenceWhat(r))
	b.WriteByte('\n')
	cells := divergenceCells(r, rows)
	note := len(divergenceHead) - 1
	long := func(cells []string) bool { return text.Width(cells[note]) > versusOthers }
	var below []string
	if o.Width > 0 && slices.ContainsFunc(cells, long) {
		below = divergenceNotes(cells[1:], note)
		for _, c := range cells[1:] {
			c[note] = ""
		}
	}
	lacking := inColumns(&b, cells, divergenceKeeps, o)
	if len(rows) < all {
		fmt.Fprintf(&b, "%d of %d rows: leave out --top for all\n", len(rows), all)
	}
	b.WriteByte('\n')
	if slices.Contains(lacking, divergenceHead[note]) {
		lacking = slices.DeleteFunc(lacking, func(h string) bool { return h == divergenceHead[note] })
		below = divergenceNotes(cells[1:], note)
	}
	for _, s := range below {
		line(s)
	}
	for _, s := range notShown(lacking) {
		line(s)
	}
	line(divergenceLegend)
	for _, n := range r.Notes {
		line("! " + n)
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// divergenceNotes are the notes of rows as lines: each with the first rows that it is about.
func divergenceNotes(rows [][]string, note int) []string {
	const most = 4
	var order []string
	of := map[string][]string{}
	for _, r := range rows {
		if n := r[note]; n != "" {
			if of[n] == nil {
				order = append(order, n)
			}
			of[n] = append(of[n], cmp.Or(r[0], r[2]))
		}
	}
	for i, n := range order {
		who, rest := of[n], ""
		if more := len(who) - most; more > 0 {
			who, rest = who[:most], " and "+words.Plural(int64(more), "more row")
		}
		order[i] = strings.Join(who, ", ") + rest + ": " + n
	}
	return order
}

func divergenceMarkdown(w io.Writer, r *divergence.Report, o VersusOptions) error {
	rows, all, err := divergenceRows(r, o)
	if err != nil {
		return err
	}
	var b strings.Builder
	for i, s := range DivergenceAnswer(r) {
		s = text.Markdown(s)
		if i == 0 {
			s = "**" + s + "**"
		}
		b.WriteString(s + "\n\n")
	}
	b.WriteString(text.Markdown(divergenceWhat(r)) + "\n\n")
	cells := divergenceCells(r, rows)
	for k, c := range cells {
		for i := range c {
			c[i] = text.TableCell(c[i])
		}
		b.WriteString("| " + strings.Join(c, " | ") + " |\n")
		if k == 0 {
			b.WriteString(strings.Repeat("| --- ", len(c)) + "|\n")
		}
	}
	if len(rows) < all {
		fmt.Fprintf(&b, "\n%d of %d rows\n", len(rows), all)
	}
	b.WriteString("\n" + text.Markdown(divergenceLegend) + "\n")
	for _, n := range r.Notes {
		b.WriteString("\n- " + text.Markdown(n) + "\n")
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// divergenceCSV writes a row for each row of layers: decibels, unknown figures empty.
func divergenceCSV(w io.Writer, r *divergence.Report) error {
	c := csv.NewWriter(w)
	_ = c.Write([]string{
		"row", "a", "a_op", "a_name", "b", "b_op", "b_name", "pair", "confidence", "certain", "own_state", "own_snr_db", "own_from",
		"state", "snr_db", "input_snr_db", "max_absolute", "max_relative", "cosine", "equal_share", "steps", "not_finite", "layout", "doubtful", "cause",
	})
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return PlainNumber(*v)
	}
	list := func(ls []divergence.Layer) (at, op, name string) {
		var index, ops, names []string
		for _, l := range ls {
			index, ops, names = append(index, strconv.FormatInt(l.Index, 10)), append(ops, l.Op), append(names, l.Name)
		}
		return strings.Join(index, " "), strings.Join(ops, " "), text.Cell(strings.Join(names, " "))
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		cells := []string{strconv.Itoa(i)}
		for _, ls := range [][]divergence.Layer{row.A, row.B} {
			at, op, name := list(ls)
			cells = append(cells, at, text.Cell(op), name)
		}
		cells = append(cells, string(row.Kind), string(row.Confidence), strconv.FormatBool(row.Certain))
		if d := row.Own; d != nil {
			cells = append(cells, string(d.State), number(d.SNR), string(row.OwnFrom))
		} else {
			cells = append(cells, "", "", "")
		}
		if d := row.Output; d != nil {
			odd := ""
			if d.NotFinite != nil {
				odd = strconv.FormatInt(*d.NotFinite, 10)
			}
			cells = append(cells, string(d.State), number(d.SNR), number(row.Input), number(d.MaxAbsolute), number(d.MaxRelative), number(d.Cosine), number(d.Same), number(d.Steps), odd)
		} else {
			cells = append(cells, "", "", number(row.Input), "", "", "", "", "", "")
		}
		why := ""
		if row.Cause != nil {
			why = text.Cell(row.Cause.Text)
		}
		// The error stays and is told below.
		_ = c.Write(append(cells, row.Layout, strconv.FormatBool(row.Doubtful), why))
	}
	c.Flush()
	return c.Error()
}
