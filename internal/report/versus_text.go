package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

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
	lines(fmt.Sprintf("%s: %s, %d runs, ratios to %s", words.VersusModels(t), versusTitle(t), len(t.Runs), t.Runs[0].Name))
	facts, shared := versusFacts(t)
	if len(shared) > 0 {
		lines("all runs: " + strings.Join(shared, ", "))
	}
	var lacking []string
	for i, part := range []struct {
		blocks [][]int
		write  func(shown []int) []string
	}{
		{versusBlocks(t, versusWholeGrid(t, facts, every(t), false), 1, o.Width), func(shown []int) []string { return versusWhole(&b, t, facts, shown, o) }},
		{versusBlocks(t, versusGroupsGrid(t, rows, all, every(t)), 2, o.Width), func(shown []int) []string { return versusGroups(&b, t, rows, all, shown, o) }},
	} {
		for _, shown := range part.blocks {
			b.WriteByte('\n')
			lacking = append(lacking, part.write(shown)...)
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
	lines(words.VersusLegend(t))
	for _, s := range versusNotes(t) {
		lines("! " + s)
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// every lists all runs.
func every(t *compare.Table) []int {
	out := make([]int, len(t.Runs))
	for k := range out {
		out[k] = k
	}
	return out
}

// versusFact is the width to which texts about a run may be cut in a narrow terminal.
const versusFact = 12

// versusBlocks divides the runs of a grid of all of them into tables that fit. The first one has
// the first run; the others continue it. A grid begins with columns of texts.
func versusBlocks(t *compare.Table, grid [][]string, texts, width int) [][]int {
	all := every(t)
	if width <= 0 || len(all) <= 2 {
		return [][]int{all}
	}
	column := func(i, most int) (w int) {
		for k, r := range grid {
			s := text.Width(text.Clean(r[i]))
			if k == 0 {
				s = min(s, versusFact)
			}
			w = max(w, s)
		}
		return min(w, most)
	}
	label := column(0, versusFirst)
	if texts > 1 {
		if n := column(1, versusLeast); n > 0 {
			label += len(gap) + n
		}
	}
	run := func(k int) int { // the columns of a run, with the gaps before them
		w := len(gap) + column(texts+versusColumn(all, k)-1, max(versusFact, versusWidest))
		if k > 0 {
			w += len(gap) + column(texts+versusColumn(all, k), versusWidest)
		}
		return w
	}
	out, room := [][]int{{0}}, width-label-run(0)
	for k := 1; k < len(t.Runs); k++ {
		last := len(out) - 1
		if w := run(k); w <= room || len(out[last]) == 0 || last == 0 && len(out[last]) == 1 {
			room -= w
		} else {
			out, room = append(out, nil), width-label-w
			last++
		}
		out[last] = append(out[last], k)
	}
	return out
}

// versusWidest is the width of figures and ratios with which runs are divided into tables.
const versusWidest = 14

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
		out = append(out[:mostAnswers:mostAnswers], words.Plural(int64(n-mostAnswers), "more run")+": the table below has all")
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
	case t.Runs[k].Ratio.Interval == compare.Exact || versusSame(&t.Runs[k].Ratio):
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

// versusSame reports whether a ratio is known to be 1: estimates of the same layers are equal.
func versusSame(r *compare.Ratio) bool {
	return r.Low != nil && r.High != nil && *r.Low == 1 && *r.High == 1
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

// versusWholeCells writes the figures of a row of the whole model.
func versusWholeCells(row *compare.Row) []string {
	return versusCells(row.Figures, row.Ratios, func(v float64, n int) string {
		switch {
		case row.Unit == "s":
			return durations.text(v, n)
		case row.Unit == "B" && math.Abs(v) < 1024:
			return Bytes(int64(v))
		case row.Unit == "B":
			return sizes.text(v, n)
		case row.Unit == "1" && v >= 0.001:
			return words.Fixed(100*v, n-2) + " %"
		case row.Unit == "" && v == math.Trunc(v) && math.Abs(v) < 1000:
			return strconv.Itoa(int(v)) // a count
		case row.Unit == "1", row.Unit == "" && math.Abs(v) < 1: // a share such as an accuracy
			return strconv.FormatFloat(v, 'g', n, 64)
		}
		return quantities(row.Unit).text(v, n)
	})
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
	head := []string{versusHead("figure", shown)}
	for _, k := range shown {
		head = append(head, t.Runs[k].Name)
		if k > 0 {
			head = append(head, "ratio")
		}
	}
	grid = append(grid, head)
	for _, f := range facts {
		row := []string{f.label}
		for _, k := range shown {
			row = append(row, f.cells[k])
			if k > 0 {
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
		row, cells := []string{w.Label}, versusWholeCells(w)
		for _, k := range shown {
			row = append(row, cells[k])
			if k > 0 {
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

// versusHead is the heading of the first column: tables without the first run continue another.
func versusHead(name string, shown []int) string {
	if shown[0] > 0 {
		return "(continued)"
	}
	return name
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
	for _, k := range shown {
		s := plusMinus(w.Figures[k], "95 % CI", Duration)
		row, any = append(row, s), any || s != ""
		if k == 0 {
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
			parts = append(parts, w.Label+" "+versusWholeCells(w)[0])
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "equal: " + strings.Join(parts, ", ")
}

// versusColumn is the column of the nth run that is shown: the first run has no ratio.
func versusColumn(shown []int, n int) int {
	if shown[0] > 0 {
		return 1 + 2*n
	}
	return max(1, 2*n)
}

// versusWhole writes the figures of the whole model for some runs.
func versusWhole(b *strings.Builder, t *compare.Table, facts []runFact, shown []int, o VersusOptions) (lacking []string) {
	keeps, ratios := []keep{{rank: 100}}, 0
	for _, k := range shown {
		if keeps = append(keeps, keep{rank: 90}); k > 0 {
			ratios++
			keeps = append(keeps, keep{rank: 80})
		}
	}
	grid := versusWholeGrid(t, facts, shown, false)
	if o.Width > 0 {
		// Texts are cut rather than a column of figures left out.
		limit := max(8, (o.Width-21-12*ratios)/len(shown)-len(gap))
		for i := range grid {
			cells := make([]string, len(shown))
			for n := range shown {
				cells[n] = text.Clean(grid[i][versusColumn(shown, n)])
			}
			if i == 0 {
				cells = shortenApart(cells, slices.Repeat([]int{limit}, len(shown)))
			}
			for n := range shown {
				grid[i][versusColumn(shown, n)] = shorten(cells[n], limit)
			}
		}
	}
	return inColumns(b, grid, keeps, o)
}

// versusGroups writes the rows for some runs, and what the others and the rest of the time make.
// The changes of two runs add up to the difference of the totals.
func versusGroups(b *strings.Builder, t *compare.Table, groups []compare.Group, all int, shown []int, o VersusOptions) (lacking []string) {
	keeps := []keep{{rank: 100}, {rank: 20, cut: shorten, least: versusLeast, apart: true}}
	for _, k := range shown {
		if keeps = append(keeps, keep{rank: 90}); k > 0 {
			keeps = append(keeps, keep{rank: 85})
		}
	}
	if len(t.Runs) == 2 {
		keeps = append(keeps, keep{rank: 80}, keep{rank: 12, cut: shorten, least: versusLeast}, keep{rank: 15, cut: beginning, least: versusReason})
	}
	return inColumns(b, versusGroupsGrid(t, groups, all, shown), keeps, o)
}

// versusGroupsGrid are the rows of some runs as texts.
func versusGroupsGrid(t *compare.Table, groups []compare.Group, all int, shown []int) [][]string {
	two := len(t.Runs) == 2
	head := []string{versusHead("operators", shown), "name"}
	if t.By != compare.ByLayer {
		head[0] = versusHead(string(t.By), shown)
	}
	for _, k := range shown {
		if head = append(head, t.Runs[k].Name); k > 0 {
			head = append(head, "ratio")
		}
	}
	if two {
		head = append(head, "change", "match", "why")
	}
	rows := [][]string{head}
	for i := range groups {
		g := &groups[i]
		row := []string{groupOp(g), g.Name}
		if t.By != compare.ByLayer {
			row = []string{cmp.Or(g.Op, g.Name), ""}
		}
		cells := versusCells(g.Figures, g.Ratios, versusPrecise(t))
		for _, k := range shown {
			if row = append(row, cells[k]); k > 0 {
				row = append(row, versusRatio(g.Ratios[k]))
			}
		}
		if two {
			row = append(row, versusChange(t, g.Contributions[shown[1]]), words.VersusMatch(g.Match(shown[1])), groupWhy(g, shown[1]))
		}
		rows = append(rows, row)
	}
	return append(rows, versusEnd(t, groups, all, shown)...)
}

// groupWhy says why a row differs, where it does, or that the bands of estimates overlap.
func groupWhy(g *compare.Group, k int) string {
	if g.Ratios[k].Overlaps() {
		return strings.TrimSuffix("bands overlap, "+words.VersusReasons(g.Reasons[k]), ", ")
	}
	return only(versusDiffers(g.Ratios[k].Verdict) || g.Match(k).Kind == align.Replaced, words.VersusReasons(g.Reasons[k]))
}

// versusRounding is the part of a total that sums in floating point may be off by.
const versusRounding = 1e-9

// versusEnd are the last rows: rows that are not shown, what is not an operator of the model, the
// total.
func versusEnd(t *compare.Table, groups []compare.Group, all int, shown []int) (rows [][]string) {
	two := len(t.Runs) == 2
	var w *compare.Waterfall
	if two && len(t.Waterfalls) > 0 {
		w = &t.Waterfalls[0]
	}
	add := func(l versusLine, change *float64) {
		row, cells := []string{l.name, ""}, versusCells(l.figures, l.ratios, versusPrecise(t))
		for _, k := range shown {
			if row = append(row, cells[k]); k > 0 {
				s := ""
				if l.ratios != nil {
					s = versusRatio(l.ratios[k])
				}
				row = append(row, s)
			}
		}
		if two {
			row = append(row, versusChange(t, change), "", "")
		}
		rows = append(rows, row)
	}
	if len(groups) < all {
		figures, change := versusHidden(t, groups)
		add(versusLine{name: fmt.Sprintf("(%s)", words.Plural(int64(all-len(groups)), "other row")), figures: figures}, change)
	}
	lines := versusLines(t)
	for _, l := range lines {
		var change *float64
		if w != nil {
			switch l.name {
			case versusAdded:
				change = new(valueOf(l.figures[1].Value) - valueOf(l.figures[0].Value))
			case versusRest:
				change = new(w.Rest)
			case versusTotal:
				change = new(w.To - w.From)
			}
		}
		add(l, change)
	}
	if w != nil && !slices.ContainsFunc(lines, func(l versusLine) bool { return l.name == versusRest }) && math.Abs(w.Rest) > versusRounding*max(math.Abs(w.From), math.Abs(w.To)) {
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

// versusHidden sums up the rows that are not shown, with the change to the second run.
func versusHidden(t *compare.Table, shownRows []compare.Group) (figures []compare.Figure, change *float64) {
	figures = make([]compare.Figure, len(t.Runs))
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
				figures[k].Value = new(valueOf(figures[k].Value) + *v)
			}
		}
		if c := g.Contributions[1]; c != nil {
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
	apart bool // texts that tell rows apart
}

// inColumns writes rows, the first of which is a heading, in columns: those with nothing in them
// are left out, then those that are needed least, until the rest fits. It returns the headings of
// those that do not fit.
func inColumns(b *strings.Builder, rows [][]string, keeps []keep, o VersusOptions) (lacking []string) {
	widths := make([]int, len(keeps))
	for i := range keeps {
		for k, r := range rows {
			if w := text.Width(text.Clean(r[i])); k > 0 && w > 0 {
				widths[i] = max(widths[i], w, min(text.Width(text.Clean(rows[0][i])), 14))
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
	apart := map[int][]string{} // texts of columns by which rows are told apart
	for i, w := range widths {
		if i == 0 || keeps[i].apart && w > 0 {
			column := make([]string, len(rows))
			for k, r := range rows {
				column[k] = r[i]
			}
			apart[i] = shortenApart(column, slices.Repeat([]int{w}, len(rows)))
		}
	}
	for k, r := range rows {
		var cells []string
		for i, w := range widths {
			if w == 0 {
				continue
			}
			left := i == 0 || keeps[i].cut != nil
			var s string
			switch {
			case k == 0 && i > 0:
				s = heads[i]
			case apart[i] != nil:
				s = apart[i][k]
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
			line = text.Bold.Render(line)
		}
		b.WriteString(line + "\n")
	}
	return lacking
}

// markColour colours a ratio by the sign at its end.
func markColour(s string) string {
	switch {
	case strings.HasSuffix(s, words.VersusMark(compare.Slower)):
		return text.Red.Render(s)
	case strings.HasSuffix(s, words.VersusMark(compare.Faster)):
		return text.Green.Render(s)
	}
	return s
}
