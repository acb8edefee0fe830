package report

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/report/gobench"
	"github.com/opmeter/opmeter/internal/report/pprof"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/internal/report/xlsx"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/compare"
)

// VersusOptions sets what a comparison shows.
type VersusOptions struct {
	Sort  string // one of [VersusSorts], "" for the largest difference first
	Top   int    // number of rows, 0 for all; files always have all
	Width int    // columns of the terminal, 0 for no limit
	Color bool
}

// VersusFormats are the formats of comparisons.
var VersusFormats = append(slices.Clone(VersusPages), "xlsx", "bench", "pprof")

// VersusPages are those of them that people read, and the data behind them.
var VersusPages = []string{"table", "csv", "json", "markdown", "html"}

var versusEndings = map[string]string{
	".txt": "table", ".csv": "csv", ".json": "json", ".md": "markdown", ".html": "html", ".xlsx": "xlsx", ".bench.txt": "bench", ".pb.gz": "pprof",
}

// VersusSorts are the orders of rows: that of execution, the longest first, the largest
// difference first.
var VersusSorts = []string{"index", "time", "difference"}

// VersusEndings are the endings of files with comparisons.
func VersusEndings() []string { return slices.Sorted(maps.Keys(versusEndings)) }

// VersusFormat is the format of a comparison by the ending of a file.
func VersusFormat(path string) (string, error) {
	best := ""
	for e := range versusEndings {
		if strings.HasSuffix(strings.ToLower(filepath.Base(path)), e) && len(e) > len(best) {
			best = e
		}
	}
	if best != "" {
		return versusEndings[best], nil
	}
	return "", fmt.Errorf("%s: the ending does not name a format of comparisons: use one of %s", path, strings.Join(VersusEndings(), " "))
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
	case "xlsx":
		return xlsx.WriteTables(w, "Comparison of "+words.VersusModels(t), versusSheets(t))
	case "bench":
		return gobench.Compared(w, t)
	case "pprof":
		return pprof.Compared(w, t)
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
	case "index":
	case "time":
		value = func(g *compare.Group) (most float64) {
			for _, f := range g.Figures {
				if f.Value != nil {
					most = max(most, *f.Value)
				}
			}
			return most
		}
	case "", "difference":
		value = func(g *compare.Group) (most float64) {
			for _, c := range g.Contributions {
				if c != nil {
					most = max(most, math.Abs(*c))
				}
			}
			return most
		}
	default:
		return nil, 0, fmt.Errorf("cannot sort by %q: use one of %s", o.Sort, strings.Join(VersusSorts, ", "))
	}
	if value != nil {
		sorting.Stable(rows, func(a, b compare.Group) int { return cmp.Compare(value(&b), value(&a)) })
	}
	all := len(rows)
	if o.Top > 0 && all > o.Top {
		rows = rows[:o.Top]
	}
	if o.Top > 0 && t.By != compare.ByLayer && value != nil {
		if kept := slices.DeleteFunc(slices.Clone(rows), func(g compare.Group) bool { return versusDust(t, &g) }); all > len(kept)+1 {
			rows = kept
		}
	}
	return rows, all, nil
}

// leastShown is the part of the total below which gathered rows are one row in a short table.
const leastShown = 0.001

// versusDust reports whether a row is hardly a part of any run.
func versusDust(t *compare.Table, g *compare.Group) bool {
	for k := range t.Runs {
		total, f := t.Runs[k].Total.Value, &g.Figures[k]
		if total == nil || f.Partial || f.Value != nil && *f.Value >= leastShown**total && *f.Value > 0 {
			return false
		}
	}
	return true
}

// versusFigure writes a figure in the unit of the table.
func versusFigure(t *compare.Table, v *float64) string {
	if v == nil {
		return ""
	}
	return versusPrecise(t)(*v, usual)
}

// versusPrecise writes a figure in the unit of the table with n significant digits.
func versusPrecise(t *compare.Table) func(v float64, n int) string {
	switch t.Unit {
	case "s":
		return durations.text
	case "B":
		return sizes.text
	case "/s": // of what, the unit does not say
		if q := versusQuantity(t); q.Head != "" {
			return quantities(q.Head).text
		}
	}
	return quantities(t.Unit).text
}

// versusQuantity is the quantity that is compared, the zero value for one that no profile knows.
func versusQuantity(t *compare.Table) profile.Quantity {
	for _, p := range t.Profiles {
		for _, q := range p.AllQuantities() {
			if q.Key == t.Quantity {
				return q
			}
		}
	}
	return profile.Quantity{}
}

// versusTitle is what is compared, as a heading. A rate is not that of an inference.
func versusTitle(t *compare.Table) string {
	if q := versusQuantity(t); q.Derived() {
		return versusWhat(t)
	}
	return versusWhat(t) + " of one inference"
}

// mostDigits bounds the digits of figures that hardly differ.
const mostDigits = 12

// versusCells writes the figures of a row with as many digits as explain the ratios: those that
// differ from the first figure look different where the ratio that is shown is not 1.
func versusCells(figures []compare.Figure, ratios []compare.Ratio, show func(v float64, n int) string) []string {
	cells := make([]string, len(figures))
	for n := usual; n <= mostDigits; n++ {
		explained := true
		for k := range figures {
			f := &figures[k]
			if f.Value == nil {
				continue
			}
			if cells[k] = show(*f.Value, n); f.Partial {
				cells[k] = "> " + cells[k]
			}
			if k > 0 && k < len(ratios) && ratios[k].Value != nil && cells[k] == cells[0] && *f.Value != *figures[0].Value {
				ratio, _, _ := strings.Cut(strings.Trim(versusRatio(ratios[k]), "()"), " ")
				explained = explained && ratio == words.Ratio(1)
			}
		}
		if explained {
			break
		}
	}
	return cells
}

// plusMinus is half of an interval as a part of the figure: "± 2.1 %", or both ends where the
// figure is not in the middle. The kind of the interval follows where the heading does not say it.
func plusMinus(f compare.Figure, heading string, show func(float64) string) string {
	if f.Value == nil || f.Low == nil || f.High == nil || !(*f.Value > 0) {
		return ""
	}
	s := "± " + Percent((*f.High-*f.Low)/2 / *f.Value)
	if lopsided(&f) {
		s = Range(*f.Low, *f.High, show)
	}
	if kind := words.VersusInterval(f.Interval); kind != heading {
		s += " (" + kind + ")"
	}
	return s
}

// leastLopsided is the part of half of an interval by which its middle is off the figure before
// "±" would be wrong.
const leastLopsided = 0.1

// lopsided reports whether a figure is not in the middle of its interval.
func lopsided(f *compare.Figure) bool {
	half := (*f.High - *f.Low) / 2
	return math.Abs(*f.Low+half-*f.Value) > leastLopsided*half
}

// versusRatio is a ratio with the sign of its verdict: "0.812 ▼".
func versusRatio(r compare.Ratio) string { return words.VersusRatio(&r) }

// groupOp is the operator of a group, with how many there are.
func groupOp(g *compare.Group) string {
	if g.Operators > 1 {
		return fmt.Sprintf("%s +%d", g.Op, g.Operators-1)
	}
	return g.Op
}

// Names of the last rows.
const (
	versusAdded = "(added by the engine)"
	versusRest  = "(outside of layers)"
	versusTotal = "total"
)

// versusLine is a row behind those of the operators; the total has ratios.
type versusLine struct {
	name    string
	figures []compare.Figure
	ratios  []compare.Ratio
}

// versusLines are the last rows of the table of operators: what is not an operator of the model,
// and the total.
func versusLines(t *compare.Table) (out []versusLine) {
	for _, l := range []struct {
		name string
		get  func(r *compare.Run) *float64
	}{
		{versusAdded, func(r *compare.Run) *float64 { return r.Inserted }},
		{versusRest, func(r *compare.Run) *float64 { return r.Rest }},
		{versusTotal, func(r *compare.Run) *float64 { return r.Total.Value }},
	} {
		line := versusLine{name: l.name}
		known := false
		for i := range t.Runs {
			r := &t.Runs[i]
			v := l.get(r)
			known = known || v != nil && *v != 0
			line.figures = append(line.figures, compare.Figure{Value: v})
			if l.name == versusTotal {
				line.ratios = append(line.ratios, r.Ratio)
			}
		}
		if known {
			out = append(out, line)
		}
	}
	return out
}

// versusWhat names what is compared.
func versusWhat(t *compare.Table) string {
	if t.Quantity == "latency_s" {
		return "latency"
	}
	if q := versusQuantity(t); q.Name != "" {
		if len(q.Name) > 1 && q.Name[1] >= 'a' && q.Name[1] <= 'z' { // no abbreviation
			return strings.ToLower(q.Name[:1]) + q.Name[1:]
		}
		return q.Name
	}
	return strings.ReplaceAll(t.Quantity, "_", " ")
}

// versusCSV writes a row a figure: base units, unknown ones empty.
func versusCSV(w io.Writer, t *compare.Table) error {
	c := csv.NewWriter(w)
	_ = c.Write([]string{
		"kind", "group", "op", "name", "operators", "confidence", "run", t.Quantity, "low", "high", "partial", "ratio", "ratio_low", "ratio_high", "verdict", "interval",
		"p", "contribution", "match", "certain", "reasons", "comparable", "why_not", "source",
	})
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return PlainNumber(*v)
	}
	row := func(kind, group string, k int, f compare.Figure, r *compare.Ratio, more func(cells []string)) {
		cells := []string{kind, group, "", "", "", "", text.Cell(t.Runs[k].Name), number(f.Value), number(f.Low), number(f.High), strconv.FormatBool(f.Partial), "", "", "", "", string(f.Interval), "", "", "", "", "", "", "", string(t.Runs[k].Source)}
		if r != nil && k > 0 {
			cells[11], cells[12], cells[13], cells[14], cells[16] = number(r.Value), number(r.Low), number(r.High), string(r.Verdict), number(r.P)
		}
		if more != nil {
			more(cells)
		}
		_ = c.Write(cells) // the error stays and is told below
	}
	for i := range t.Groups {
		g := &t.Groups[i]
		for k := range t.Runs {
			row("operators", strconv.Itoa(i), k, g.Figures[k], &g.Ratios[k], func(cells []string) {
				cells[2], cells[3], cells[4], cells[5] = text.Cell(g.Op), text.Cell(g.Name), strconv.FormatInt(g.Operators, 10), string(g.Confidence)
				cells[17], cells[18], cells[19] = number(g.Contributions[k]), string(g.Match(k).Kind), strconv.FormatBool(g.Match(k).Certain)
				versusCompares(t, k, cells)
				cells[20] = text.Cell(words.VersusReasons(g.Reasons[k]))
			})
		}
	}
	for k := range t.Runs {
		r := &t.Runs[k]
		if r.Inserted != nil {
			row("inserted", "", k, compare.Figure{Value: r.Inserted}, nil, nil)
		}
		if r.Rest != nil {
			row("rest", "", k, compare.Figure{Value: r.Rest}, nil, nil)
		}
		row("total", "", k, r.Total, &r.Ratio, func(cells []string) { versusCompares(t, k, cells) })
	}
	for i := range t.Whole {
		x := &t.Whole[i]
		for k := range t.Runs {
			if x.Figures[k].Value == nil {
				continue
			}
			row("whole", x.Key, k, x.Figures[k], &x.Ratios[k], func(cells []string) {
				cells[3], cells[21], cells[22] = text.Cell(x.Label), strconv.FormatBool(x.Comparable[k]), string(x.Why[k])
			})
		}
	}
	for i := range t.Waterfalls {
		x := &t.Waterfalls[i]
		for n, s := range x.Steps {
			row("waterfall", strconv.Itoa(n), x.Run, compare.Figure{Value: &s.Value}, nil, func(cells []string) { cells[3] = text.Cell(s.Label) })
		}
		row("waterfall", "rest", x.Run, compare.Figure{Value: &x.Rest}, nil, nil)
	}
	c.Flush()
	return c.Error()
}

// versusCompares fills the cells "comparable" and "why_not" of a figure of the table's quantity.
func versusCompares(t *compare.Table, k int, cells []string) {
	why := t.Runs[k].WhyNot[t.Topic]
	cells[21], cells[22] = strconv.FormatBool(why == ""), string(why)
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
	add := func(op, name string, cells []string, ratios []compare.Ratio) {
		row := []string{op, name}
		for k, cell := range cells {
			if row = append(row, cell); k > 0 {
				s := ""
				if ratios != nil {
					s = versusRatio(ratios[k])
				}
				row = append(row, s)
			}
		}
		rows = append(rows, row)
	}
	for i := range groups {
		g := &groups[i]
		add(groupOp(g), g.Name, versusCells(g.Figures, g.Ratios, versusPrecise(t)), g.Ratios)
	}
	for _, l := range versusLines(t) {
		add(l.name, "", versusCells(l.figures, l.ratios, versusPrecise(t)), l.ratios)
	}
	return rows, nil
}

// markdownRows is how many rows stand open; the others are folded.
const markdownRows = 20

func versusMarkdown(w io.Writer, t *compare.Table, o VersusOptions) error {
	grid, err := versusGrid(t, o)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", escape(words.VersusModels(t)))
	for _, s := range versusHeadline(t) {
		fmt.Fprintf(&b, "%s\n\n", escape(s))
	}
	fmt.Fprintf(&b, "%s; ratios to %s. %s.\n", capital(versusTitle(t)), escape(t.Runs[0].Name), words.VersusLegend(t))
	facts, shared := versusFacts(t)
	if len(shared) > 0 {
		fmt.Fprintf(&b, "\nAll runs: %s.\n", escape(strings.Join(shared, ", ")))
	}
	all := make([]int, len(t.Runs))
	for k := range all {
		all[k] = k
	}
	markdownTable(&b, versusWholeGrid(t, facts, all, true), 1)
	last := versusLines(t)
	rows := grid[1 : len(grid)-len(last)]
	open := rows[:min(len(rows), markdownRows)]
	markdownTable(&b, slices.Concat(grid[:1], open, grid[len(grid)-len(last):]), 2)
	if more := rows[len(open):]; len(more) > 0 {
		fmt.Fprintf(&b, "\n<details><summary>%s</summary>\n", words.Plural(int64(len(more)), "more row"))
		markdownTable(&b, slices.Concat(grid[:1], more), 2)
		b.WriteString("\n</details>\n")
	}
	limits := versusNotes(t)
	for _, s := range limits {
		fmt.Fprintf(&b, "\n- %s", escape(s))
	}
	if len(limits) > 0 {
		b.WriteByte('\n')
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// markdownTable writes a heading and rows; the first columns are texts.
func markdownTable(b *strings.Builder, rows [][]string, texts int) {
	b.WriteByte('\n')
	for k, r := range rows {
		for _, s := range r {
			b.WriteString("| " + escape(s) + " ")
		}
		b.WriteString("|\n")
		if k == 0 {
			for i := range r {
				b.WriteString(map[bool]string{true: "| --- ", false: "| ---: "}[i < texts])
			}
			b.WriteString("|\n")
		}
	}
}

// versusSheets are the sheets of a workbook, in base units.
func versusSheets(t *compare.Table) []xlsx.Table {
	value := func(v *float64) any {
		if v == nil {
			return nil
		}
		return *v
	}
	model := xlsx.Table{Name: "Model", Heads: []string{"figure", "unit"}}
	rows := xlsx.Table{Name: "Rows", Heads: []string{"operators", "name"}}
	runs := xlsx.Table{Name: "Runs", Heads: []string{"run", "figures", "engine", "version", "target", "machine", "model", "type", "threads", "profiles", "date"}}
	for k := range t.Runs {
		r := &t.Runs[k]
		model.Heads, rows.Heads = append(model.Heads, r.Name), append(rows.Heads, r.Name+", "+t.Quantity)
		if k > 0 {
			more := []string{"ratio of " + r.Name, "low", "high", "p", "verdict"}
			model.Heads = append(model.Heads, append(more, "comparable", "why not")...)
			rows.Heads = append(rows.Heads, append(more, "comparable", "why not", "contribution", "reasons", "match", "certain")...)
		}
		var threads any
		if r.Threads != nil {
			threads = *r.Threads
		}
		runs.Rows = append(runs.Rows, []any{r.Name, string(r.Source), r.Engine, r.Version, r.Target, r.Machine, r.Model, r.DType, threads, max(1, r.Repeats), r.Date})
	}
	ratio := func(r *compare.Ratio) []any {
		return []any{value(r.Value), value(r.Low), value(r.High), value(r.P), string(r.Verdict)}
	}
	for i := range t.Whole {
		x := &t.Whole[i]
		row := []any{x.Label, x.Unit}
		for k := range t.Runs {
			if row = append(row, value(x.Figures[k].Value)); k > 0 {
				row = append(append(row, ratio(&x.Ratios[k])...), x.Comparable[k], string(x.Why[k]))
			}
		}
		model.Rows = append(model.Rows, row)
	}
	groups, _, _ := versusRows(t, VersusOptions{})
	for i := range groups {
		g := &groups[i]
		row := []any{groupOp(g), g.Name}
		for k := range t.Runs {
			if row = append(row, value(g.Figures[k].Value)); k > 0 {
				why := t.Runs[k].WhyNot[t.Topic]
				row = append(append(row, ratio(&g.Ratios[k])...), why == "", string(why), value(g.Contributions[k]), words.VersusReasons(g.Reasons[k]), string(g.Match(k).Kind), g.Match(k).Certain)
			}
		}
		rows.Rows = append(rows.Rows, row)
	}
	steps := xlsx.Table{Name: "Waterfall", Heads: []string{"run", "step", t.Quantity}}
	for _, x := range t.Waterfalls {
		name := t.Runs[x.Run].Name
		steps.Rows = append(steps.Rows, []any{name, t.Runs[0].Name, x.From})
		for _, s := range x.Steps {
			steps.Rows = append(steps.Rows, []any{name, s.Label, s.Value})
		}
		steps.Rows = append(steps.Rows, []any{name, "rest", x.Rest}, []any{name, name, x.To})
	}
	notes := xlsx.Table{Name: "Notes", Heads: []string{"note"}}
	for _, s := range versusHeadline(t) {
		notes.Rows = append(notes.Rows, []any{s})
	}
	for _, s := range versusNotes(t) {
		notes.Rows = append(notes.Rows, []any{s})
	}
	return []xlsx.Table{model, rows, steps, runs, notes}
}

func capital(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
