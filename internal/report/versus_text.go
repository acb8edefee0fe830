package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
	"github.com/opmeter/opmeter/profile/compare"
)

// mostAnswers bounds the first lines; the rest is in the table.
const mostAnswers = 4

// versusTable writes the comparison for a terminal: the answer, the figures of the whole model, the
// rows. Runs for which a line has no room follow in further tables beside the first run.
func versusTable(w io.Writer, t *compare.Table, o VersusOptions) error {
	rows, all, err := versusRows(t, o)
	if err != nil {
		return err
	}
	var b strings.Builder
	lines := func(list ...string) {
		for _, s := range list {
			for _, l := range wrap(text.Clean(s), o.Width) {
				b.WriteString(l + "\n")
			}
		}
	}
	lines(versusHeadline(t)...)
	b.WriteByte('\n')
	lines(fmt.Sprintf("%s: %s of one inference, %d runs, ratios to %s", words.VersusModels(t), versusWhat(t), len(t.Runs), t.Runs[0].Name))
	facts, shared := versusFacts(t)
	if len(shared) > 0 {
		lines("all runs: " + strings.Join(shared, ", "))
	}
	const block = 2 + 9 + 2 + 9 // a figure and a ratio, with gaps
	each := len(t.Runs) - 1
	if o.Width > 0 {
		each = min(each, max(1, (o.Width-11-2-16-block/2)/block))
	}
	var lacking []string
	for i, part := range []func(shown []int) []string{
		func(shown []int) []string { return versusWhole(&b, t, facts, shown, o) },
		func(shown []int) []string { return versusGroups(&b, t, rows, all, shown, o) },
	} {
		for from := 1; from < len(t.Runs); from += each {
			b.WriteByte('\n')
			shown := []int{0}
			for k := from; k < min(len(t.Runs), from+each); k++ {
				shown = append(shown, k)
			}
			lacking = append(lacking, part(shown)...)
		}
		if i == 0 {
			if s := versusEquals(t); s != "" {
				lines(s)
			}
		}
	}
	if len(rows) < all {
		fmt.Fprintf(&b, "%d of %d rows: --all shows all\n", len(rows), all)
	}
	b.WriteByte('\n')
	lines(notShown(lacking)...)
	lines(words.VersusLegend)
	for _, s := range versusNotes(t) {
		lines("! " + s)
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// notShown names columns that do not fit, each once; no line for none.
func notShown(heads []string) []string {
	var out []string
	for _, h := range heads {
		if !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return []string{noRoom(out)}
}

// versusHeadline answers which run is better, and where most of the difference comes from.
func versusHeadline(t *compare.Table) []string {
	out := answers(t)
	if n := len(out); n > mostAnswers {
		out = append(out[:mostAnswers:mostAnswers], fmt.Sprintf("%s more: the table below has all", words.Plural(int64(n-mostAnswers), "run")))
	}
	if len(t.Runs) == 2 {
		if s := versusWhere(t, 1); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// versusWhere says which rows of a run differ from the first run, the largest first.
func versusWhere(t *compare.Table, k int) string {
	rows, _, err := versusRows(t, VersusOptions{})
	if err != nil || len(rows) == 0 || t.By != compare.ByLayer || t.Runs[k].Ratio.Verdict == compare.Incomparable {
		return ""
	}
	const most = 3
	var parts, alone []string
	n, replaced, known, unknown := 0, 0, 0, 0
	for i := range rows {
		g := &rows[i]
		c := g.Contributions[k]
		switch r := &g.Ratios[k]; {
		case r.Low != nil:
			known++
		case r.Value != nil:
			unknown++
		}
		if g.Match(k).Kind == align.Replaced {
			replaced++
		}
		one := len(g.Layers[0]) == 0 || len(g.Layers[k]) == 0
		if c == nil || *c == 0 || !one && !versusDiffers(g.Ratios[k].Verdict) {
			continue
		}
		s := fmt.Sprintf("%s %s", g.Label(), versusChange(t, c))
		if why := words.VersusReasons(g.Reasons[k]); why != "" {
			s += " (" + why + ")"
		}
		if one {
			alone = append(alone, s)
			continue
		}
		if n++; n <= most {
			parts = append(parts, s)
		}
	}
	of := words.Plural(int64(len(rows)), "row")
	var s string
	switch {
	case n > 0:
		s = fmt.Sprintf("%d of %s %s: %s", n, of, map[bool]string{true: "differs", false: "differ"}[n == 1], strings.Join(parts, "; "))
	case known == 0:
		return "" // without intervals nothing can be said
	case t.Runs[k].Ratio.Interval == compare.Exact:
		s = fmt.Sprintf("All rows%s have equal %s", only(len(alone) > 0, " of both"), versusWhat(t))
	case unknown > 0:
		s = "No row differs by more than chance among " + words.Plural(int64(known), "row") + " with an interval"
	default:
		s = "No row differs by more than chance among " + of
	}
	if len(alone) > 0 {
		s += fmt.Sprintf("; in one run alone: %s", strings.Join(alone[:min(len(alone), most)], "; "))
		if more := len(alone) - most; more > 0 {
			s += fmt.Sprintf("; %s more", words.Plural(int64(more), "row"))
		}
	}
	if replaced > 0 && n == 0 {
		s += fmt.Sprintf("; operators or options of %s differ", words.Plural(int64(replaced), "row"))
	}
	return s + "."
}

func versusDiffers(v compare.Verdict) bool {
	return slices.Contains([]compare.Verdict{compare.Slower, compare.Faster, compare.More, compare.Less}, v)
}

// versusChange writes a difference with its sign.
func versusChange(t *compare.Table, v *float64) string {
	if v == nil {
		return ""
	}
	a := *v
	switch {
	case a > 0:
		return "+" + versusFigure(t, &a)
	case a < 0:
		a = -a
		return "-" + versusFigure(t, &a)
	}
	return versusFigure(t, &a)
}

// runFact is a property of runs in words.
type runFact struct {
	label string
	cells []string
}

// versusFacts are the properties of the runs: a row each where they differ, else a part of a line.
func versusFacts(t *compare.Table) (rows []runFact, shared []string) {
	for _, x := range []struct {
		label string
		get   func(r *compare.Run) string
	}{
		{"figures", func(r *compare.Run) string { return string(r.Source) }},
		{"model", func(r *compare.Run) string { return r.Model }},
		{"engine", func(r *compare.Run) string { return strings.TrimSpace(r.Engine + " " + r.Version) }},
		{"machine", func(r *compare.Run) string { return cmp.Or(r.Machine, r.Target) }},
		{"target", func(r *compare.Run) string { return only(r.Kind != profile.TargetHost, r.Target) }},
		{"type", func(r *compare.Run) string { return r.DType }},
		{"threads", func(r *compare.Run) string {
			if r.Threads == nil {
				return ""
			}
			return words.Plural(*r.Threads, "thread")
		}},
		{"profiles", func(r *compare.Run) string { return only(r.Repeats > 1, words.Plural(r.Repeats, "profile")) }},
		{"date", func(r *compare.Run) string { return versusDate(r.Date) }},
		{"quality", func(r *compare.Run) string {
			return words.FitCell(&profile.Trust{Verdict: r.Trust, Fit: r.Fit, Tolerance: r.Tolerance})
		}},
		{"outputs", words.Outputs},
	} {
		f := runFact{label: x.label}
		equal, any := true, false
		for i := range t.Runs {
			s := x.get(&t.Runs[i])
			f.cells = append(f.cells, s)
			equal, any = equal && s == f.cells[0], any || s != ""
		}
		switch {
		case !any:
		case !equal || x.label == "outputs" || x.label == "quality":
			rows = append(rows, f)
		case x.label == "model" || x.label == "target":
		case x.label == "date":
			shared = append(shared, "made "+f.cells[0])
		default:
			shared = append(shared, f.cells[0])
		}
	}
	return rows, shared
}

// versusDate shortens a time to the minute.
func versusDate(s string) string {
	if len(s) < len("2006-01-02T15:04") {
		return s
	}
	return strings.Replace(s[:len("2006-01-02T15:04")], "T", " ", 1)
}

// versusWholeCell writes a figure of the whole model.
func versusWholeCell(row *compare.Row, k int) string {
	f := &row.Figures[k]
	switch {
	case f.Value == nil:
		return ""
	case row.Unit == "s":
		return Duration(*f.Value)
	case row.Unit == "B":
		return Bytes(int64(*f.Value))
	case row.Unit == "1" && *f.Value >= 0.001:
		return Percent(*f.Value)
	case row.Unit == "1":
		return strconv.FormatFloat(*f.Value, 'g', 3, 64)
	}
	if v := *f.Value; row.Unit == "" && v == math.Trunc(v) && math.Abs(v) < 1000 {
		return strconv.Itoa(int(v)) // a count
	}
	return Quantity(*f.Value, row.Unit)
}

// versusEqual reports whether a figure is a count that is the same in all runs.
func versusEqual(row *compare.Row) bool {
	for i := range row.Figures {
		f, first := &row.Figures[i], &row.Figures[0]
		if f.Value == nil || f.Interval != compare.Exact || *f.Value != *first.Value || !row.Comparable[i] {
			return false
		}
	}
	return true
}

// versusWholeRatio writes a ratio of the whole model. A single observation without an interval has
// no sign.
func versusWholeRatio(row *compare.Row, k int) string {
	r := row.Ratios[k]
	if r.Value != nil && r.Interval == "" && r.Verdict != compare.Incomparable {
		return words.Ratio(*r.Value)
	}
	return versusRatio(r)
}

// versusWholeGrid are the properties of the runs and the figures of the whole model as texts, those
// that are equal in all runs only where asked for.
func versusWholeGrid(t *compare.Table, facts []runFact, shown []int, equal bool) (grid [][]string) {
	head := []string{"figure"}
	for n, k := range shown {
		head = append(head, t.Runs[k].Name)
		if n > 0 {
			head = append(head, "ratio")
		}
	}
	grid = append(grid, head)
	for _, f := range facts {
		row := []string{f.label}
		for n, k := range shown {
			row = append(row, f.cells[k])
			if n > 0 {
				row = append(row, "")
			}
		}
		grid = appendKnown(grid, row)
	}
	for i := range t.Whole {
		w := &t.Whole[i]
		if !equal && versusEqual(w) {
			continue
		}
		row := []string{w.Label}
		for n, k := range shown {
			row = append(row, versusWholeCell(w, k))
			if n > 0 {
				row = append(row, versusWholeRatio(w, k))
			}
		}
		grid = appendKnown(grid, row)
		if between := versusBetween(w, shown); between != nil {
			grid = append(grid, between)
		}
	}
	return grid
}

// appendKnown adds a row in which something stands.
func appendKnown(grid [][]string, row []string) [][]string {
	if slices.ContainsFunc(row[1:], func(s string) bool { return s != "" }) {
		grid = append(grid, row)
	}
	return grid
}

// versusBetween is a row with the intervals of a figure and of its ratio, nil if absent.
func versusBetween(w *compare.Row, shown []int) []string {
	if w.Key != "latency_s" {
		return nil
	}
	row, any := []string{"  interval"}, false
	for n, k := range shown {
		s := plusMinus(w.Figures[k], "95 % CI")
		row, any = append(row, s), any || s != ""
		if n == 0 {
			continue
		}
		between := ""
		if r := &w.Ratios[k]; r.Low != nil && r.High != nil && r.Verdict != compare.Incomparable {
			between = words.Ratio(*r.Low) + "–" + words.Ratio(*r.High)
		}
		row = append(row, between)
	}
	if !any {
		return nil
	}
	return row
}

// versusEquals lists the counts that are the same in all runs.
func versusEquals(t *compare.Table) string {
	var parts []string
	for i := range t.Whole {
		if w := &t.Whole[i]; versusEqual(w) {
			parts = append(parts, w.Label+" "+versusWholeCell(w, 0))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "equal: " + strings.Join(parts, ", ")
}

// versusColumn is the column of the nth run: the first has no ratio.
func versusColumn(n int) int { return max(1, 2*n) }

// versusWhole writes the figures of the whole model for some runs.
func versusWhole(b *strings.Builder, t *compare.Table, facts []runFact, shown []int, o VersusOptions) (lacking []string) {
	keeps := []keep{{rank: 100}}
	for n := range shown {
		if keeps = append(keeps, keep{rank: 90}); n > 0 {
			keeps = append(keeps, keep{rank: 80})
		}
	}
	grid := versusWholeGrid(t, facts, shown, false)
	if o.Width > 0 {
		// Texts are cut rather than a column of figures left out.
		limit := max(8, (o.Width-21-12*(len(shown)-1))/len(shown)-len(gap))
		for i := range grid {
			cells := make([]string, len(shown))
			for n := range shown {
				cells[n] = text.Clean(grid[i][versusColumn(n)])
			}
			if i == 0 {
				cells = shortenApart(cells, slices.Repeat([]int{limit}, len(shown)))
			}
			for n := range shown {
				grid[i][versusColumn(n)] = shorten(cells[n], limit)
			}
		}
	}
	return inColumns(b, grid, keeps, o)
}

// versusGroups writes the rows for some runs, and what the others and the rest of the time make.
// The changes of two runs add up to the difference of the totals.
func versusGroups(b *strings.Builder, t *compare.Table, groups []compare.Group, all int, shown []int, o VersusOptions) (lacking []string) {
	two := len(shown) == 2
	head, keeps := []string{"operators", "name"}, []keep{{rank: 100}, {rank: 20, cut: shorten, least: versusLeast}}
	if t.By != compare.ByLayer {
		head[0] = string(t.By)
	}
	for n, k := range shown {
		if head, keeps = append(head, t.Runs[k].Name), append(keeps, keep{rank: 90}); n > 0 {
			head, keeps = append(head, "ratio"), append(keeps, keep{rank: 85})
		}
	}
	if two {
		head, keeps = append(head, "change", "match", "why"), append(keeps, keep{rank: 80}, keep{rank: 12, cut: shorten, least: versusLeast}, keep{rank: 15, cut: beginning, least: versusReason})
	}
	rows := [][]string{head}
	for i := range groups {
		g := &groups[i]
		row := []string{groupOp(g), g.Name}
		if t.By != compare.ByLayer {
			row = []string{cmp.Or(g.Op, g.Name), ""}
		}
		for n, k := range shown {
			row = append(row, groupFigure(t, g, k))
			if n > 0 {
				row = append(row, versusRatio(g.Ratios[k]))
			}
		}
		if two {
			row = append(row, versusChange(t, g.Contributions[shown[1]]), words.VersusMatch(g.Match(shown[1])), groupWhy(g, shown[1]))
		}
		rows = append(rows, row)
	}
	rows = append(rows, versusEnd(t, groups, all, shown)...)
	return inColumns(b, rows, keeps, o)
}

// groupWhy says why a row differs, where it does, or that the bands of estimates overlap.
func groupWhy(g *compare.Group, k int) string {
	if g.Ratios[k].Overlaps() {
		return strings.TrimSuffix("bands overlap, "+words.VersusReasons(g.Reasons[k]), ", ")
	}
	return only(versusDiffers(g.Ratios[k].Verdict) || g.Match(k).Kind == align.Replaced, words.VersusReasons(g.Reasons[k]))
}

func groupFigure(t *compare.Table, g *compare.Group, k int) string {
	f := versusFigure(t, g.Figures[k].Value)
	if g.Figures[k].Partial && f != "" {
		f = "> " + f
	}
	return f
}

// versusRounding is the part of a total that sums in floating point may be off by.
const versusRounding = 1e-9

// versusEnd are the last rows: rows that are not shown, what is not an operator of the model, the
// total.
func versusEnd(t *compare.Table, groups []compare.Group, all int, shown []int) (rows [][]string) {
	two := len(shown) == 2
	var w *compare.Waterfall
	for i := range t.Waterfalls {
		if two && t.Waterfalls[i].Run == shown[1] {
			w = &t.Waterfalls[i]
		}
	}
	add := func(name string, figures []*float64, ratio bool, change *float64) {
		row := []string{name, ""}
		for n, k := range shown {
			row = append(row, versusFigure(t, figures[k]))
			if n > 0 {
				row = append(row, only(ratio, versusRatio(t.Runs[k].Ratio)))
			}
		}
		if two {
			row = append(row, versusChange(t, change), "", "")
		}
		rows = append(rows, row)
	}
	if len(groups) < all {
		figures, change := versusHidden(t, groups, shown)
		add(fmt.Sprintf("(%s)", words.Plural(int64(all-len(groups)), "other row")), figures, false, change)
	}
	names, figures := versusLines(t)
	for i, name := range names {
		var change *float64
		if w != nil {
			switch name {
			case versusAdded:
				change = new(valueOf(figures[i][shown[1]]) - valueOf(figures[i][0]))
			case versusRest:
				change = new(w.Rest)
			case versusTotal:
				change = new(w.To - w.From)
			}
		}
		add(name, figures[i], name == versusTotal, change)
	}
	if w != nil && !slices.Contains(names, versusRest) && math.Abs(w.Rest) > versusRounding*max(math.Abs(w.From), math.Abs(w.To)) {
		rows = slices.Insert(rows, len(rows)-1, append(make([]string, 2+2*len(shown)-1), versusChange(t, &w.Rest), "", ""))
		rows[len(rows)-2][0] = versusRest
	}
	return rows
}

func valueOf(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// versusHidden sums up the rows that are not shown.
func versusHidden(t *compare.Table, shownRows []compare.Group, shown []int) (figures []*float64, change *float64) {
	figures = make([]*float64, len(t.Runs))
	in := map[string]bool{}
	key := func(g *compare.Group) string { return fmt.Sprint(g.Layers) }
	for i := range shownRows {
		in[key(&shownRows[i])] = true
	}
	for i := range t.Groups {
		g := &t.Groups[i]
		if in[key(g)] {
			continue
		}
		for k := range t.Runs {
			if v := g.Figures[k].Value; v != nil {
				figures[k] = new(valueOf(figures[k]) + *v)
			}
		}
		if c := g.Contributions[shown[1]]; c != nil {
			change = new(valueOf(change) + *c)
		}
	}
	return figures, change
}

// Widths of texts in columns.
const (
	versusFirst  = 24 // the first column, names of operators
	versusOthers = 28
	versusLeast  = 8  // shortest name of a column that is shown
	versusReason = 16 // shortest reason
)

// keep says how much a column is needed.
type keep struct {
	rank int // columns of the lowest rank go first
	// cut shortens a text to a width, nil for figures; least is the width below which it goes.
	cut   func(s string, width int) string
	least int
}

// inColumns writes rows, the first of which is a heading, in columns: those with nothing in them
// are left out, then those that are needed least, until the rest fits. It returns the headings of
// those that do not fit.
func inColumns(b *strings.Builder, rows [][]string, keeps []keep, o VersusOptions) (lacking []string) {
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
			if w > 0 && i > 0 && (least < 0 || keeps[i].rank < keeps[least].rank) {
				least = i
			}
		}
		if least < 0 {
			break
		}
		over := total() - o.Width
		if keeps[least].cut != nil && widths[least]-over >= keeps[least].least {
			widths[least] -= over
			break
		}
		widths[least], lacking = 0, append(lacking, rows[0][least])
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
			left := i == 0 || keeps[i].cut != nil
			var s string
			switch {
			case i == 0:
				s = firsts[k]
			case k == 0:
				s = heads[i]
			case keeps[i].cut != nil:
				s = keeps[i].cut(text.Clean(r[i]), w)
			default:
				s = shorten(text.Clean(r[i]), w)
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
	return lacking
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
