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

	"charm.land/lipgloss/v2"

	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/compare"
)

// VersusOptions sets what a comparison shows.
type VersusOptions struct {
	Sort  string // one of [VersusSorts], "" keeps the order of execution
	Top   int    // number of rows, 0 for all; files always have all
	Width int    // columns of the terminal, 0 for no limit
	Color bool
}

// VersusFormats are the formats of comparisons, with the endings of their files.
var VersusFormats = []string{"table", "csv", "json", "markdown", "html"}

var versusEndings = map[string]string{".txt": "table", ".csv": "csv", ".json": "json", ".md": "markdown", ".html": "html"}

// VersusSorts are the orders of rows: that of execution, the longest first, the largest
// difference first.
var VersusSorts = []string{"index", "time", "difference"}

// VersusFormat is the format of a comparison by the ending of a file.
func VersusFormat(path string) (string, error) {
	if f := versusEndings[strings.ToLower(filepath.Ext(path))]; f != "" {
		return f, nil
	}
	return "", fmt.Errorf("%s: the ending does not name a format of comparisons: use one of .txt .csv .json .md .html", path)
}

// WriteVersus writes a comparison in a format of [VersusFormats].
func WriteVersus(w io.Writer, t *compare.Table, format string, o VersusOptions) error {
	switch format {
	case "table":
		return versusTable(w, t, o)
	case "csv":
		return versusCSV(w, t)
	case "json":
		b, err := jsonx.MarshalIndent(t)
		if err == nil {
			_, err = w.Write(b)
		}
		return err
	case "markdown":
		return versusMarkdown(w, t, o)
	case "html":
		return versusPage(w, t, o)
	}
	return fmt.Errorf("unknown format %q: use one of %s", format, strings.Join(VersusFormats, ", "))
}

// VersusFile writes a comparison to a file in the format that the ending names. The file appears
// whole or not at all.
func VersusFile(path string, t *compare.Table, o VersusOptions) error {
	format, err := VersusFormat(path)
	if err != nil {
		return err
	}
	o.Width, o.Top, o.Color = 0, 0, false
	return atomicfile.Stream(path, func(w io.Writer) error { return WriteVersus(w, t, format, o) })
}

// versusRows are the groups in the order asked for, and how many there are in all.
func versusRows(t *compare.Table, o VersusOptions) ([]compare.Group, int, error) {
	rows := slices.Clone(t.Groups)
	var value func(g *compare.Group) float64
	switch o.Sort {
	case "", "index":
	case "time":
		value = func(g *compare.Group) (most float64) {
			for _, f := range g.Figures {
				if f.Value != nil {
					most = max(most, *f.Value)
				}
			}
			return most
		}
	case "difference":
		value = func(g *compare.Group) (most float64) {
			for _, f := range g.Figures[1:] {
				if f.Value != nil && g.Figures[0].Value != nil {
					most = max(most, math.Abs(*f.Value-*g.Figures[0].Value))
				}
			}
			return most
		}
	default:
		return nil, 0, fmt.Errorf("cannot sort by %q: use one of %s", o.Sort, strings.Join(VersusSorts, ", "))
	}
	if value != nil {
		slices.SortStableFunc(rows, func(a, b compare.Group) int { return cmp.Compare(value(&b), value(&a)) })
	}
	all := len(rows)
	if o.Top > 0 && all > o.Top {
		rows = rows[:o.Top]
	}
	return rows, all, nil
}

// versusFigure writes a figure in the unit of the table.
func versusFigure(t *compare.Table, v *float64) string {
	switch {
	case v == nil:
		return ""
	case t.Unit == "s":
		return Duration(*v)
	}
	return Quantity(*v, t.Unit)
}

// plusMinus is half of an interval as a part of the figure: "± 2.1 %". The kind of the interval
// follows where the heading does not say it.
func plusMinus(f compare.Figure, heading string) string {
	if f.Value == nil || f.Low == nil || f.High == nil || !(*f.Value > 0) {
		return ""
	}
	s := "± " + Percent((*f.High-*f.Low)/2 / *f.Value)
	if kind := words.VersusInterval(f.Interval); kind != heading {
		s += " (" + kind + ")"
	}
	return s
}

// intervalHeading is the kind of all runs' intervals, "interval" where they differ.
func intervalHeading(t *compare.Table) string {
	heading := ""
	for i := range t.Runs {
		f := &t.Runs[i].Total
		if f.Low == nil {
			continue
		}
		kind := words.VersusInterval(f.Interval)
		if heading != "" && kind != heading {
			return "interval"
		}
		heading = kind
	}
	return cmp.Or(heading, "95 % CI")
}

// versusRatio is a ratio with the sign of its verdict: "0.812 ▼".
func versusRatio(r compare.Ratio) string {
	if r.Value == nil {
		return ""
	}
	return ratioDigits(*r.Value) + " " + words.VersusMark(r.Verdict)
}

// ratioDigits writes a ratio with three digits.
func ratioDigits(v float64) string {
	switch {
	case v >= 99.95:
		return words.Fixed(v, 0)
	case v >= 9.995:
		return words.Fixed(v, 1)
	case v >= 0.9995:
		return words.Fixed(v, 2)
	case v >= 0.09995:
		return words.Fixed(v, 3)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// groupOp is the operator of a group, with how many there are.
func groupOp(g *compare.Group) string {
	if g.Operators > 1 {
		return fmt.Sprintf("%s +%d", g.Op, g.Operators-1)
	}
	return g.Op
}

// versusRuns are the rows about runs: a heading, and a row a run.
func versusRuns(t *compare.Table) [][]string {
	heading := intervalHeading(t)
	rows := [][]string{{"run", "total", heading, "ratio", "ratio interval", "load", "first run", "memory", "outputs", "quality", "threads", "engine", "target", "type", "version", "kind"}}
	d := differing(t)
	for i := range t.Runs {
		r := &t.Runs[i]
		between := ""
		if r.Ratio.Low != nil && r.Ratio.High != nil {
			between = ratioDigits(*r.Ratio.Low) + "–" + ratioDigits(*r.Ratio.High)
		}
		row := []string{r.Name, versusFigure(t, r.Total.Value), plusMinus(r.Total, heading), versusRatio(r.Ratio), between, "", "", "", words.Outputs(r), words.FitCell(&profile.Trust{Verdict: r.Trust, Fit: r.Fit, Tolerance: r.Tolerance}), "", d.engine(r), d.target(r), d.dtype(r), r.Version, d.kind(r)}
		if r.LoadS != nil {
			row[5] = Duration(*r.LoadS)
		}
		if r.FirstRunS != nil {
			row[6] = Duration(*r.FirstRunS)
		}
		if r.PeakBytes != nil {
			row[7] = Bytes(*r.PeakBytes)
		}
		if r.Threads != nil {
			row[10] = strconv.FormatInt(*r.Threads, 10)
		}
		rows = append(rows, row)
	}
	return rows
}

// versusKeeps says how much a narrow terminal needs the columns of [versusRuns].
var versusKeeps = []int{100, 99, 90, 98, 80, 60, 65, 50, 70, 75, 40, 45, 44, 43, 10, 46}

// versusLines are the last rows of the table of operators: what is not an operator of the model,
// and the total.
func versusLines(t *compare.Table) (names []string, figures [][]*float64) {
	add := func(name string, get func(r *compare.Run) *float64) {
		var row []*float64
		known := false
		for i := range t.Runs {
			v := get(&t.Runs[i])
			known = known || v != nil && *v != 0
			row = append(row, v)
		}
		if known {
			names, figures = append(names, name), append(figures, row)
		}
	}
	add("(added by the engine)", func(r *compare.Run) *float64 { return r.Inserted })
	add("(total minus layers)", func(r *compare.Run) *float64 { return r.Rest })
	add("total", func(r *compare.Run) *float64 { return r.Total.Value })
	return names, figures
}

// versusTable writes the comparison for a terminal. Runs for which a line has no room follow in
// further tables beside the first run.
func versusTable(w io.Writer, t *compare.Table, o VersusOptions) error {
	rows, all, err := versusRows(t, o)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, s := range answers(t) {
		for _, l := range wrap(text.Clean(s), o.Width) {
			b.WriteString(l + "\n")
		}
	}
	b.WriteByte('\n')
	for _, l := range wrap(fmt.Sprintf("%s: %s of one inference, %d runs, ratios to %s", text.Clean(words.VersusModels(t)), versusWhat(t), len(t.Runs), text.Clean(t.Runs[0].Name)), o.Width) {
		b.WriteString(l + "\n")
	}
	b.WriteByte('\n')
	inColumns(&b, versusRuns(t), versusKeeps, o)
	const block = 2 + 9 + 2 + 9 // a figure and a ratio, with gaps
	each := len(t.Runs) - 1
	if o.Width > 0 {
		each = min(each, max(1, (o.Width-11-2-16-block/2)/block))
	}
	for from := 1; from < len(t.Runs); from += each {
		b.WriteByte('\n')
		shown := []int{0}
		for k := from; k < min(len(t.Runs), from+each); k++ {
			shown = append(shown, k)
		}
		versusGroups(&b, t, rows, shown, o)
	}
	if len(rows) < all {
		fmt.Fprintf(&b, "%d of %d rows: leave out --top for all\n", len(rows), all)
	}
	for _, l := range wrap(words.VersusLegend, o.Width) {
		b.WriteString("\n" + l)
	}
	b.WriteByte('\n')
	for i := range t.Notes {
		for _, l := range wrap("! "+text.Clean(words.VersusNote(t, &t.Notes[i])), o.Width) {
			b.WriteString(l + "\n")
		}
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// versusWhat names what is compared.
func versusWhat(t *compare.Table) string {
	if t.Quantity == "latency_s" {
		return "latency"
	}
	return strings.ReplaceAll(t.Quantity, "_", " ")
}

// versusGroups writes the operators for some runs.
func versusGroups(b *strings.Builder, t *compare.Table, groups []compare.Group, shown []int, o VersusOptions) {
	head := []string{"operators", "name"}
	keeps := []int{100, 20}
	for n, k := range shown {
		head = append(head, t.Runs[k].Name)
		keeps = append(keeps, 90)
		if n > 0 {
			head, keeps = append(head, "ratio"), append(keeps, 80)
		}
	}
	rows := [][]string{head}
	for i := range groups {
		g := &groups[i]
		row := []string{groupOp(g), g.Name}
		for n, k := range shown {
			f := versusFigure(t, g.Figures[k].Value)
			if g.Figures[k].Partial && f != "" {
				f = "> " + f
			}
			row = append(row, f)
			if n > 0 {
				row = append(row, versusRatio(g.Ratios[k]))
			}
		}
		rows = append(rows, row)
	}
	names, figures := versusLines(t)
	for i, name := range names {
		row := []string{name, ""}
		for n, k := range shown {
			row = append(row, versusFigure(t, figures[i][k]))
			if n > 0 {
				ratio := ""
				if name == "total" {
					ratio = versusRatio(t.Runs[k].Ratio)
				}
				row = append(row, ratio)
			}
		}
		rows = append(rows, row)
	}
	inColumns(b, rows, keeps, o)
}

// Widths of texts in columns.
const (
	versusFirst  = 24 // the first column, names of operators
	versusOthers = 28
	versusLeast  = 8 // what is left of a name before its column goes
)

// inColumns writes rows, the first of which is a heading, in columns: those with nothing in them
// are left out, then those that are needed least, until the rest fits.
func inColumns(b *strings.Builder, rows [][]string, keeps []int, o VersusOptions) {
	widths := make([]int, len(keeps))
	for i := range keeps {
		for k, r := range rows {
			if w := lipgloss.Width(text.Clean(r[i])); k > 0 && w > 0 {
				widths[i] = max(widths[i], w, min(lipgloss.Width(text.Clean(rows[0][i])), 14))
			}
		}
		limit := versusOthers
		if i == 0 {
			limit = versusFirst
		}
		if o.Width > 0 {
			widths[i] = min(widths[i], limit)
		}
	}
	total := func() int {
		n := -len(gap)
		for _, w := range widths {
			if w > 0 {
				n += w + len(gap)
			}
		}
		return n
	}
	for o.Width > 0 && total() > o.Width {
		least := -1
		for i, w := range widths {
			if w > 0 && i > 0 && (least < 0 || keeps[i] < keeps[least]) {
				least = i
			}
		}
		if least < 0 {
			break
		}
		over := total() - o.Width
		if keeps[least] == 20 && widths[least]-over >= versusLeast { // a name may be cut
			widths[least] -= over
			break
		}
		widths[least] = 0
	}
	heads := shortenApart(rows[0], widths)
	firsts := make([]string, len(rows))
	for k, r := range rows {
		firsts[k] = r[0]
	}
	firsts = shortenApart(firsts, slices.Repeat(widths[:1], len(rows)))
	for k, r := range rows {
		var cells []string
		for i, w := range widths {
			if w == 0 {
				continue
			}
			left := i == 0 || keeps[i] == 20
			s := shorten(text.Clean(r[i]), w)
			switch {
			case i == 0:
				s = firsts[k]
			case k == 0:
				s = heads[i]
			}
			s = pad(s, w, left)
			if o.Color && k > 0 {
				s = markColour(s)
			}
			cells = append(cells, s)
		}
		line := strings.TrimRight(strings.Join(cells, gap), " ")
		if k == 0 && o.Color {
			line = lipgloss.NewStyle().Bold(true).Render(line)
		}
		b.WriteString(line + "\n")
	}
}

// markColour colours a ratio by the sign at its end.
func markColour(s string) string {
	switch {
	case strings.HasSuffix(s, words.VersusMark(compare.Slower)):
		return lipgloss.NewStyle().Foreground(lipgloss.Red).Render(s)
	case strings.HasSuffix(s, words.VersusMark(compare.Faster)):
		return lipgloss.NewStyle().Foreground(lipgloss.Green).Render(s)
	}
	return s
}

// versusCSV writes a row a figure: base units, unknown ones empty.
func versusCSV(w io.Writer, t *compare.Table) error {
	c := csv.NewWriter(w)
	_ = c.Write([]string{"kind", "group", "op", "name", "operators", "confidence", "run", t.Quantity, "low", "high", "partial", "ratio", "ratio_low", "ratio_high", "verdict", "interval"})
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return plainNumber(*v)
	}
	row := func(kind, group string, g *compare.Group, k int, f compare.Figure, r *compare.Ratio) {
		cells := []string{kind, group, "", "", "", "", text.Cell(t.Runs[k].Name), number(f.Value), number(f.Low), number(f.High), strconv.FormatBool(f.Partial), "", "", "", "", string(f.Interval)}
		if g != nil {
			cells[2], cells[3], cells[4], cells[5] = text.Cell(g.Op), text.Cell(g.Name), strconv.FormatInt(g.Operators, 10), string(g.Confidence)
		}
		if r != nil && k > 0 {
			cells[11], cells[12], cells[13], cells[14] = number(r.Value), number(r.Low), number(r.High), string(r.Verdict)
		}
		_ = c.Write(cells) // the error stays and is told below
	}
	for i := range t.Groups {
		g := &t.Groups[i]
		for k := range t.Runs {
			row("operators", strconv.Itoa(i), g, k, g.Figures[k], &g.Ratios[k])
		}
	}
	for k := range t.Runs {
		r := &t.Runs[k]
		if r.Inserted != nil {
			row("inserted", "", nil, k, compare.Figure{Value: r.Inserted}, nil)
		}
		if r.Rest != nil {
			row("rest", "", nil, k, compare.Figure{Value: r.Rest}, nil)
		}
		row("total", "", nil, k, r.Total, &r.Ratio)
	}
	c.Flush()
	return c.Error()
}

// versusGrid is the whole table of operators as texts: a heading and rows.
func versusGrid(t *compare.Table, o VersusOptions) ([][]string, error) {
	groups, _, err := versusRows(t, o)
	if err != nil {
		return nil, err
	}
	head := []string{"operators", "name"}
	for k := range t.Runs {
		head = append(head, t.Runs[k].Name)
		if k > 0 {
			head = append(head, "ratio")
		}
	}
	rows := [][]string{head}
	for i := range groups {
		g := &groups[i]
		row := []string{groupOp(g), g.Name}
		for k := range t.Runs {
			row = append(row, versusFigure(t, g.Figures[k].Value))
			if k > 0 {
				row = append(row, versusRatio(g.Ratios[k]))
			}
		}
		rows = append(rows, row)
	}
	names, figures := versusLines(t)
	for i, name := range names {
		row := []string{name, ""}
		for k := range t.Runs {
			row = append(row, versusFigure(t, figures[i][k]))
			if k > 0 {
				s := ""
				if name == "total" {
					s = versusRatio(t.Runs[k].Ratio)
				}
				row = append(row, s)
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func versusMarkdown(w io.Writer, t *compare.Table, o VersusOptions) error {
	grid, err := versusGrid(t, o)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", escape(words.VersusModels(t)))
	for _, s := range answers(t) {
		fmt.Fprintf(&b, "%s\n\n", escape(s))
	}
	fmt.Fprintf(&b, "%s of one inference; ratios to %s. %s.\n", capital(versusWhat(t)), escape(t.Runs[0].Name), words.VersusLegend)
	for _, rows := range [][][]string{versusRuns(t), grid} {
		b.WriteByte('\n')
		for k, r := range rows {
			for i, s := range r {
				b.WriteString("| " + escape(s) + " ")
				if i == len(r)-1 {
					b.WriteString("|\n")
				}
			}
			if k == 0 {
				for i := range r {
					b.WriteString(map[bool]string{true: "| --- ", false: "| ---: "}[i == 0 || i == 1 && len(r) == len(grid[0])])
				}
				b.WriteString("|\n")
			}
		}
	}
	for i := range t.Notes {
		fmt.Fprintf(&b, "\n- %s", escape(words.VersusNote(t, &t.Notes[i])))
	}
	if len(t.Notes) > 0 {
		b.WriteByte('\n')
	}
	_, err = io.WriteString(w, b.String())
	return err
}

func capital(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
