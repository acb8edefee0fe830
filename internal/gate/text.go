package gate

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
)

// mostLayers is how many layers a text names for each job.
const mostLayers = 8

// Amount writes a value in its unit: integers in full, so that a change of one shows.
func Amount(v float64, unit string) string {
	switch {
	case unit == "s":
		return report.Duration(v)
	case v == math.Trunc(v) && math.Abs(v) < 1<<53, math.Abs(v) >= 100 && math.Abs(v) < 1<<53:
		return strings.TrimSpace(grouped(int64(math.Round(v))) + " " + unit)
	}
	return strings.TrimSpace(strconv.FormatFloat(v, 'g', 4, 64) + " " + unit)
}

// grouped writes an integer with commas between thousands.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	start := len(s) - len(strings.TrimLeft(s, "-"))
	for i := len(s) - 3; i > start; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// amount is [Amount] of a value that may be unknown.
func amount(v *float64, unit string) string {
	if v == nil {
		return "?"
	}
	return Amount(*v, unit)
}

// change says by how much a row changed.
func (r *Row) change() string {
	switch {
	case r.Ratio != nil:
		s := percent(*r.Ratio - 1)
		if r.Low != nil && r.High != nil {
			s += fmt.Sprintf(" (%s to %s)", percent(*r.Low-1), percent(*r.High-1))
		}
		return s
	case r.Base == nil || r.New == nil:
		return ""
	case *r.Base == *r.New:
		return "0"
	case *r.Base == 0 || math.Abs(*r.New / *r.Base - 1) < 0.0005:
		if *r.New > *r.Base {
			return "+" + Amount(*r.New-*r.Base, r.Unit)
		}
		return "−" + Amount(*r.Base-*r.New, r.Unit)
	}
	return percent(*r.New / *r.Base - 1)
}

// percent writes a relative change.
func percent(f float64) string { return report.Change(f, 1) }

// Word is the verdict of a row with what qualifies it.
func (r *Row) Word() string {
	return string(r.Verdict) + r.detail()
}

// detail qualifies a verdict: what it begins with joins both.
func (r *Row) detail() (s string) {
	switch {
	case r.Ignored != nil && (r.Verdict == Worse || r.Verdict == Undecided):
		s += ", ignored until " + r.Ignored.Until + ": " + text.Clean(r.Ignored.Reason)
	case !r.Required && (r.Verdict == Worse || r.Verdict == Undecided):
		s += ", optional"
	}
	if r.Why != "" {
		s += ": " + r.Why
	}
	return s
}

// allowed writes the allowance of a row.
func (r *Row) allowed() string {
	switch {
	case r.Base == nil || r.New == nil || r.Verdict == New:
		return ""
	case r.Ratio != nil && *r.Base > 0:
		return percent(r.Allowed / *r.Base)
	}
	return Amount(r.Allowed, r.Unit)
}

// cells is a row of the table.
func (r *Row) cells() []string {
	return []string{r.Name, amount(r.Base, r.Unit), amount(r.New, r.Unit), r.change(), r.allowed(), r.Word()}
}

var head = []string{"figure", "base", "new", "change", "allowed", "verdict"}

// baseless reports whether no figure has a base: a table would only repeat that.
func (j *Job) baseless() bool {
	return !slices.ContainsFunc(j.Figures, func(r Row) bool { return r.Why != noBase })
}

// split separates the exact figures that are equal from the rest.
func (j *Job) split() (rows, equal []Row) {
	for _, r := range j.Figures {
		if r.Verdict == Equal && r.Ratio == nil {
			equal = append(equal, r)
		} else {
			rows = append(rows, r)
		}
	}
	return rows, equal
}

// Answer is the first line: the verdict and what it is about.
func (r *Result) Answer() string {
	// A model that cannot be read stands before one without a base, and both before figures: a model
	// has one line there, and many figures.
	var worse, unread, baseless, open []string
	for i := range r.Jobs {
		j := &r.Jobs[i]
		if j.lacksBase() {
			baseless = append(baseless, fmt.Sprintf("%s on %s has no base", text.Clean(j.Model), j.Target))
			continue
		}
		for k := range j.Figures {
			f := &j.Figures[k]
			what := fmt.Sprintf("%s of %s on %s", f.Name, text.Clean(j.Model), j.Target)
			if f.counts() && f.Verdict == Worse {
				worse = append(worse, what+" "+f.change())
			} else if f.counts() && f.Verdict == Undecided {
				open = append(open, what)
			}
		}
		if j.Removed {
			worse = append(worse, fmt.Sprintf("%s on %s is gone", text.Clean(j.Model), j.Target))
		}
		if j.Error != "" {
			unread = append(unread, fmt.Sprintf("%s on %s: %s", text.Clean(j.Model), j.Target, text.Clean(j.Error)))
		}
	}
	switch r.Verdict {
	case Worse:
		s := fmt.Sprintf("Worse: %s.", named(worse))
		if len(unread) > 0 {
			s += fmt.Sprintf(" Not judged: %s.", named(unread))
		}
		return s
	case Undecided:
		if list := r.withoutBase(); len(list) == 1 {
			return fmt.Sprintf("Undecided: %s has no base.", list[0])
		} else if len(list) > 1 {
			return fmt.Sprintf("Undecided: no base for %s.", named(list))
		}
		return fmt.Sprintf("Undecided: %s.", named(slices.Concat(unread, baseless, open)))
	}
	return fmt.Sprintf("Not worse: %s of models on targets.", words.Plural(int64(len(r.Jobs)), "comparison"))
}

// lacksBase reports whether a job is undecided because it has no base.
func (j *Job) lacksBase() bool {
	return j.Verdict == Undecided && !j.Removed && j.Error == "" && j.baseless()
}

// withoutBase names the undecided jobs, if all of them lack a base.
func (r *Result) withoutBase() (out []string) {
	for i := range r.Jobs {
		j := &r.Jobs[i]
		if j.Verdict != Undecided {
			continue
		}
		if !j.lacksBase() {
			return nil
		}
		out = append(out, text.Clean(j.Model)+" on "+j.Target)
	}
	return out
}

// named joins the first of a list.
func named(list []string) string {
	const most = 3
	s := strings.Join(list[:min(len(list), most)], "; ")
	if n := len(list) - most; n > 0 {
		s += fmt.Sprintf("; %d more", n)
	}
	return s
}

// facts are the lines about the whole run.
func (r *Result) facts() [][2]string {
	base := r.Base.String()
	if r.Base.Why != "" {
		base += " (" + text.Clean(r.Base.Why) + ")"
	}
	policy := text.Clean(r.Policy) + ", sha256 " + r.PolicySHA256[:min(len(r.PolicySHA256), 12)]
	out := [][2]string{{"base", base}, {"policy", policy}}
	if r.Tests > 1 {
		out = append(out, [2]string{"tests", fmt.Sprintf("%d measured comparisons, one 95 %% level for all", r.Tests)})
	}
	return out
}

// Text writes the result for a terminal of some columns, 0 for no limit. all shows equal figures,
// too.
func (r *Result) Text(w io.Writer, all bool, width int) error {
	p := printer{width: width}
	p.line("", r.Answer())
	for _, f := range r.facts() {
		p.line(fmt.Sprintf("%-7s ", f[0]), f[1])
	}
	for i := range r.Jobs {
		j := &r.Jobs[i]
		p.line("", "")
		p.line("", fmt.Sprintf("%s on %s: %s", text.Clean(j.Model), j.Target, outcome(j.Verdict)))
		if j.From != "" {
			p.line("  base: ", text.Clean(j.From))
		}
		if j.Error != "" {
			p.line("  ", text.Clean(j.Error))
		}
		rows, equal := j.split()
		if all {
			rows, equal = j.Figures, nil
		}
		if !j.baseless() {
			p.table(rows)
		}
		if len(equal) > 0 {
			p.line("  ", equalFigures(len(equal), len(rows) > 0))
		}
		if l := j.layerText(); l != "" {
			p.line("  layers: ", l)
		}
		for _, n := range j.Notes {
			p.line("  note: ", text.Clean(n))
		}
	}
	if len(r.Notes) > 0 {
		p.line("", "")
	}
	for _, n := range r.Notes {
		p.line("note: ", text.Clean(n))
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// printer writes lines that fit a terminal.
type printer struct {
	strings.Builder
	width int // 0 for no limit
}

// line writes a text behind a label, broken at blanks; further lines begin below the text.
func (p *printer) line(label, s string) {
	for i, l := range report.Wrap(s, max(p.width-utf8.RuneCountInString(label), 0)) {
		if i > 0 {
			label = strings.Repeat(" ", utf8.RuneCountInString(label))
		}
		p.WriteString(label + l + "\n")
	}
}

// outcome is the verdict of a job in words.
func outcome(v Verdict) string {
	if v == Worse || v == Undecided {
		return string(v)
	}
	return "not worse"
}

func equalFigures(n int, more bool) string {
	what := "figures are"
	if n == 1 {
		what = "figure is"
	}
	if more {
		return fmt.Sprintf("%d more %s equal", n, what)
	}
	return fmt.Sprintf("%d %s equal", n, what)
}

// table writes rows with aligned columns. Where they are wider than the terminal, intervals and
// what qualifies a verdict are on lines of their own.
func (p *printer) table(rows []Row) {
	if len(rows) == 0 {
		return
	}
	lines, details := [][]string{head}, []string{""}
	for i := range rows {
		lines, details = append(lines, rows[i].cells()), append(details, "")
	}
	if wide := columns(lines); p.width > 0 && sum(wide) > p.width {
		for i := range rows {
			lines[i+1], details[i+1] = rows[i].narrow()
		}
	}
	wide := columns(lines)
	for k, l := range lines {
		p.WriteString("  ")
		for i, c := range l {
			space := strings.Repeat(" ", wide[i]-utf8.RuneCountInString(c))
			switch {
			case i == len(l)-1:
				p.WriteString(c)
			case i == 0:
				p.WriteString(c + space + "  ")
			default:
				p.WriteString(space + c + "  ")
			}
		}
		p.WriteByte('\n')
		if details[k] != "" {
			p.line("    ", details[k])
		}
	}
}

// columns are the widths of the columns of a table.
func columns(lines [][]string) []int {
	wide := make([]int, len(head))
	for _, l := range lines {
		for i, c := range l {
			wide[i] = max(wide[i], utf8.RuneCountInString(c))
		}
	}
	return wide
}

// sum is the width of a table with columns of some widths.
func sum(wide []int) int {
	n := 0
	for _, w := range wide {
		n += 2 + w
	}
	return n
}

// narrow is a row of a table whose details do not fit beside it.
func (r *Row) narrow() (cells []string, detail string) {
	cells = r.cells()
	cells[len(cells)-1] = string(r.Verdict)
	var list []string
	if r.Ratio != nil && r.Low != nil && r.High != nil {
		cells[3] = percent(*r.Ratio - 1)
		list = append(list, fmt.Sprintf("interval of the change: %s to %s", percent(*r.Low-1), percent(*r.High-1)))
	}
	if d := strings.TrimLeft(r.detail(), ",: "); d != "" {
		list = append(list, d)
	}
	return cells, strings.Join(list, "; ")
}

// layerText names the layers that differ most.
func (j *Job) layerText() string {
	var list []string
	for i := range j.Layers[:min(len(j.Layers), mostLayers)] {
		c := &j.Layers[i]
		q, _ := Lookup(c.Figure)
		s := fmt.Sprintf("%s %s %s → %s %s", text.Clean(c.Name), text.Clean(c.Op), amount(c.Base, ""), amount(c.New, ""), q.Head)
		switch {
		case c.Base == nil || c.New == nil:
			s = fmt.Sprintf("%s %s %s %s %s", text.Clean(c.Name), text.Clean(c.Op), c.Kind, amount(cmpOr(c.New, c.Base), ""), q.Head)
		case !c.Certain:
			s += " (pair uncertain)"
		}
		list = append(list, strings.TrimSpace(s))
	}
	if n := len(j.Layers) - mostLayers; n > 0 {
		list = append(list, fmt.Sprintf("%d more", n))
	}
	return strings.Join(list, "; ")
}

func cmpOr(a, b *float64) *float64 {
	if a != nil {
		return a
	}
	return b
}
