package neuralengine

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/whatif"
	"github.com/opmeter/opmeter/profile"
)

// columns are the names of the profiler's second table.
var columns = []string{
	"operator type", "post op", "operator name", "input tensor name", "input shape", "input dtype", "output tensor name", "output shape", "output dtype",
	"weight shape", "weight sparse ratio", "sparse support", "operator latency (ms)", "aim to weight sparse ratio", "sparse kernel pref ratio", "aim to sparse latency(ms)",
}

// maxFormula is the length of a formula that spreadsheets take, in characters.
const maxFormula = 8192

// CSV writes the file of Intel's Neural Engine profiler: three
// tables below each other, with formulas as text that a spreadsheet computes on
// opening. Columns, names and the blank before the target are the profiler's, and so are the
// formulas but for VALUE. Where its files cannot be read again (commas in names, scalars, no
// operator that can be sparse) this writer quotes, keeps separators and writes 0.
// Operators stand under the model's names for them, with their median times.
func CSV(w io.Writer, p *profile.Profile) error { return write(w, whatif.New(p)) }

// OwnCSV is [CSV] as the engine's users know it: operators under the engine's names for
// them, where it has one, and with their mean times.
func OwnCSV(w io.Writer, p *profile.Profile) error {
	t := whatif.New(p)
	for i := range t.Rows {
		r := &t.Rows[i]
		l := &p.Layers[r.Layer]
		r.Op = Operator(l)
		for k, name := range r.PostOp {
			r.PostOp[k] = postOp(name)
		}
		// Of weights without a whole block none is zero.
		if r.WeightShape != "" && r.ElementSparsity != nil && r.BlockSparsity == nil {
			r.BlockSparsity = new(0.0)
		}
		if m := l.Latency; m != nil && m.Mean != nil && r.Latency != nil {
			r.Latency = m.Mean
		}
	}
	return write(w, t)
}

func write(w io.Writer, t *whatif.Table) error {
	var out strings.Builder
	line := func(fields ...string) {
		for i, f := range fields {
			if i > 0 {
				out.WriteByte(',')
			}
			out.WriteString(quote(f))
		}
		out.WriteByte('\n')
	}
	line("weight shape", "90% 4x1 perf ratio", "80% 4x1 perf ratio", "70% 4x1 perf ratio", "others")
	for _, s := range t.Shapes {
		line(s.Name, fmt.Sprintf("%f", s.Ratios[0]), fmt.Sprintf("%f", s.Ratios[1]), fmt.Sprintf("%f", s.Ratios[2]), trim(s.Ratios[3]))
	}
	line(columns...)
	first := len(t.Shapes) + 3
	var support []string
	for i := range t.Rows {
		r, row := &t.Rows[i], first+i
		ms, target, ratio, aim := milliseconds(r.Latency), "", "", milliseconds(r.Latency)
		if r.Capable() && r.Latency != nil {
			support = append(support, "P"+strconv.Itoa(row))
		}
		if r.Target != nil && r.Latency != nil {
			n, k := "N"+strconv.Itoa(row), strconv.Itoa(2+r.Shape)
			target = fmt.Sprintf("%.0f%%", 100**r.Target)
			// Some spreadsheets take a percentage in a file for text until it is edited: VALUE
			// has the number of either.
			ratio = fmt.Sprintf("=IF(VALUE(%s)=90%%,B%s,IF(VALUE(%s)=80%%,C%s,IF(VALUE(%s)=70%%,D%s,E%s)))", n, k, n, k, n, k, k)
			aim = fmt.Sprintf("=M%d/O%d", row, row)
		}
		can, sparse := "", ""
		if r.Capable() {
			can = "true"
		}
		if r.BlockSparsity != nil {
			sparse = fmt.Sprintf("%.2f%%", 100**r.BlockSparsity)
		}
		line(
			one(r.Op), list(r.PostOp), one(r.Name), list(r.Inputs.Names), list(r.Inputs.Shapes), list(r.Inputs.Types),
			list(r.Outputs.Names), list(r.Outputs.Shapes), list(r.Outputs.Types), r.WeightShape, sparse, can,
			// The profiler has a blank after the comma behind the latency.
			ms, " "+target, ratio, aim,
		)
	}
	if s := t.Totals(); s != nil {
		last := first + len(t.Rows) - 1
		total := last + 1
		lead := make([]string, 11) // columns A to K
		row := func(fields ...string) { line(append(lead[:11:11], fields...)...) }
		sum := "0"
		if len(support) > 0 {
			sum = "=" + strings.Join(support, "+")
			if len(sum) > maxFormula {
				sum = fmt.Sprintf(`=SUMIF(L%d:L%d,"<>",P%d:P%d)`, first, last, first, last)
			}
		}
		improve, share := "", ""
		if s.Improve != nil {
			improve = fmt.Sprintf("=M%d/P%d", total, total)
			share = fmt.Sprintf("=P%d/P%d", total+1, total)
		}
		part := ""
		if s.SupportShare != nil {
			part = fmt.Sprintf("%.6f", *s.SupportShare)
		}
		row("total latency(ms)", milliseconds(&s.Latency), "", "total aim to sparse latency(ms)", fmt.Sprintf("=SUM(P%d:P%d)", first, last), "sparse improve", improve)
		row("sparse support latency(ms)", milliseconds(&s.SupportLatency), "", "aim to sparse support latency(ms)", sum)
		row("sparse support latency ratio", part, "", "aim to sparse support latency ratio", share)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// one makes a text safe for the table. It has no semicolon, which in some countries
// parts cells, and by which lists are joined here: converters join the names of
// what they fuse by it.
func one(s string) string { return strings.ReplaceAll(text.Cell(s), ";", "|") }

// list joins names, shapes or types.
func list(s []string) string {
	safe := make([]string, len(s))
	for i, v := range s {
		safe[i] = one(v)
	}
	return strings.Join(safe, ";")
}

// milliseconds writes seconds in the profiler's unit with its three decimals. Short
// times get six or nine, so that none turns into zero.
func milliseconds(s *float64) string {
	if s == nil {
		return ""
	}
	v, d := *s*1e3, 3
	switch {
	case v == 0 || v >= 1:
	case v >= 1e-3:
		d = 6
	default:
		d = 9
	}
	return strconv.FormatFloat(v, 'f', d, 64)
}

func trim(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// quote quotes a field where it must be. encoding/csv would also quote the blank
// before the target, which the profiler does not.
func quote(s string) string {
	if strings.ContainsAny(s, ",\"\r\n") {
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}
