package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/study"
)

// view is what the table shows of a study.
type view struct {
	s     *study.Study
	speed *study.Speed
	loss  *study.Loss
	plan  *study.Plan
	o     StudyOptions

	times  map[int]*study.LayerTime
	gains  map[int][]study.SpeedPoint
	losses map[int][]study.LossPoint
	total  float64 // time of the unchanged model, or operations
}

func newView(s *study.Study, o StudyOptions) (*view, error) {
	v := &view{s: s, o: o, times: map[int]*study.LayerTime{}, gains: map[int][]study.SpeedPoint{}, losses: map[int][]study.LossPoint{}}
	if n := len(s.Plans); n > 0 {
		v.plan = s.Plans[n-1]
	}
	if o.Plan != "" {
		if v.plan = s.Plan(o.Plan); v.plan == nil {
			return nil, fmt.Errorf("the study has no plan %q", o.Plan)
		}
	}
	if v.plan != nil {
		o.Speed, o.Loss = cmp.Or(o.Speed, v.plan.Speed), cmp.Or(o.Loss, v.plan.Loss)
	}
	if n := len(s.Speeds); n > 0 {
		v.speed = s.Speeds[n-1]
	}
	if o.Speed != "" {
		if v.speed = s.Speed(o.Speed); v.speed == nil {
			return nil, fmt.Errorf("the study has no performance profile %q", o.Speed)
		}
	}
	if n := len(s.Losses); n > 0 {
		v.loss = s.Losses[n-1]
	}
	if o.Loss != "" {
		if v.loss = s.Loss(o.Loss); v.loss == nil {
			return nil, fmt.Errorf("the study has no loss profile %q", o.Loss)
		}
	}
	v.gather()
	return v, nil
}

func (v *view) gather() {
	if v.speed != nil {
		for i := range v.speed.Layers {
			v.times[v.speed.Layers[i].Layer] = &v.speed.Layers[i]
			v.total += v.cost(v.speed.Layers[i].Layer)
		}
		for _, p := range v.speed.Points {
			v.gains[p.Layer] = append(v.gains[p.Layer], p)
		}
		if t, ok := middle(v.speed.Latency); ok {
			v.total = max(v.total, t)
		}
	}
	if v.loss != nil {
		for _, p := range v.loss.Points {
			v.losses[p.Layer] = append(v.losses[p.Layer], p)
		}
	}
}

// cost is the time of a layer, or its operations where these stand for times; 0 where not known.
func (v *view) cost(layer int) float64 {
	t := v.times[layer]
	switch {
	case t == nil:
		return 0
	case t.Ops != nil:
		return float64(*t.Ops)
	}
	s, _ := middle(t.Latency)
	return s
}

// ratio is the time with a change by that without: of the layer, together with those that become
// smaller with it.
func (v *view) ratio(p *study.SpeedPoint) (r float64, ok bool) {
	if r, ok = middle(p.Ratio); !ok || len(p.Affected) == 0 || v.cost(p.Layer) == 0 {
		return r, ok
	}
	before := v.cost(p.Layer)
	after := before * r
	for _, o := range p.Affected {
		if x, ok := middle(o.Ratio); ok {
			before, after = before+v.cost(o.Layer), after+x*v.cost(o.Layer)
		}
	}
	return after / before, true
}

// best is the change that makes a layer quickest, nil where none does.
func (v *view) best(layer int) *study.SpeedPoint {
	var best *study.SpeedPoint
	for i := range v.gains[layer] {
		p := &v.gains[layer][i]
		r, ok := v.ratio(p)
		if !ok || p.Cause != "" || r <= 0 || r >= 1 {
			continue // nothing remains to be timed at 0
		}
		if _, high, ok := interval(p.Ratio); ok && len(p.Affected) == 0 && high >= 1 && v.speed.Target == "host" {
			continue // it may as well be none
		}
		if best != nil {
			if x, _ := v.ratio(best); x <= r {
				continue
			}
		}
		best = p
	}
	return best
}

// gainHead is the head of the column of gains: those of the plan, or the highest of any change,
// whatever it loses.
func (v *view) gainHead() string {
	if v.plan != nil {
		return "gain"
	}
	return "max. gain"
}

// gain is the time of a layer with the change of the plan, or without a plan with the one that
// makes it fastest, divided by that without.
func (v *view) gain(layer int) (ratio float64, ok bool) {
	if v.plan == nil {
		if p := v.best(layer); p != nil {
			return v.ratio(p)
		}
		return 0, false
	}
	for _, c := range v.plan.Choices {
		if c.Layer != layer || c.Change.IsZero() {
			continue
		}
		for i := range v.gains[layer] {
			if p := &v.gains[layer][i]; p.Change == c.Change && p.Cause == "" {
				r, ok := v.ratio(p)
				return r, ok && r > 0
			}
		}
		if c.TimeS != nil && *c.TimeS > 0 && v.cost(layer) > 0 { // between measured levels
			return *c.TimeS / v.cost(layer), true
		}
	}
	return 0, false
}

// worse is how much is lost with a change: the figure itself, or of one that is better high, what
// is missing to that of the unchanged model.
func (v *view) worse(p *study.LossPoint) (value, low, high float64, ok bool) {
	value, ok = middle(p.Value)
	if !ok {
		return 0, 0, 0, false
	}
	low, high, within := interval(p.Value)
	if !within {
		low, high = value, value
	}
	if v.loss.Higher {
		base, _ := middle(v.loss.Base)
		return base - value, base - high, base - low, true
	}
	return value, low, high, true
}

// shownStructure is the structure that losses are shown of: unstructured weights where there are
// some.
func (v *view) shownStructure() study.Structure {
	for _, s := range study.Structures() {
		for _, c := range v.loss.Changes {
			if c.Structure == s && c.Format == study.OriginalFormat {
				return s
			}
		}
	}
	return study.Dense
}

// shownLevels are the levels that losses are shown of: those nearest to 50, 80 and 95 %.
func (v *view) shownLevels(s study.Structure) []float64 {
	var out []float64
	for _, want := range []float64{.5, .8, .95} {
		best, found := 0.0, false
		for _, c := range v.loss.Changes {
			if c.Structure == s && c.Format == study.OriginalFormat && c.Level > 0 && (!found || math.Abs(c.Level-want) < math.Abs(best-want)) {
				best, found = c.Level, true
			}
		}
		if found && !slices.Contains(out, best) {
			out = append(out, best)
		}
	}
	return out
}

// lossAt is the loss of a layer at a level, nil where not known.
func (v *view) lossAt(layer int, s study.Structure, level float64) *study.LossPoint {
	for i := range v.losses[layer] {
		p := &v.losses[layer][i]
		if p.Change == (study.Change{Structure: s, Level: level}) {
			return p
		}
	}
	return nil
}

// curve draws the losses of a layer by level in block characters; the highest loss of all layers
// is a full block.
func (v *view) curve(layer int, s study.Structure, most float64) string {
	var ps []*study.LossPoint
	for i := range v.losses[layer] {
		if p := &v.losses[layer][i]; p.Change.Structure == s && p.Change.Format == study.OriginalFormat {
			ps = append(ps, p)
		}
	}
	sorting.Func(ps, func(a, b *study.LossPoint) int { return cmp.Compare(a.Change.Level, b.Change.Level) })
	const blocks, width = "▁▂▃▄▅▆▇█", 10
	signs := []rune(blocks)
	var b strings.Builder
	n := min(width, len(ps))
	for i := range n {
		x, _, _, ok := v.worse(ps[i*len(ps)/n])
		if !ok || most <= 0 {
			b.WriteByte(' ')
			continue
		}
		// Roots, so that curves of layers that matter less are seen, too.
		b.WriteRune(signs[min(len(signs)-1, int(math.Sqrt(min(max(x/most, 0), 1))*float64(len(signs))))])
	}
	return b.String()
}

// ranks are the places of layers in the order of their losses at a level, from the least; layers
// whose intervals meet share places.
func (v *view) ranks(s study.Structure, level float64) map[int][2]int {
	type span struct {
		layer     int
		low, high float64
	}
	var all []span
	for layer := range v.losses {
		if p := v.lossAt(layer, s, level); p != nil {
			if _, low, high, ok := v.worse(p); ok {
				all = append(all, span{layer, low, high})
			}
		}
	}
	out := map[int][2]int{}
	for _, a := range all {
		first, last := 1, len(all)
		for _, b := range all {
			if b.high < a.low {
				first++
			}
			if b.low > a.high {
				last--
			}
		}
		out[a.layer] = [2]int{first, last}
	}
	return out
}

func studyText(w io.Writer, s *study.Study, o StudyOptions) error {
	v, err := newView(s, o)
	if err != nil {
		return err
	}
	var b strings.Builder
	if v.plan != nil { // the answer first
		v.planned(&b)
		b.WriteByte('\n')
	}
	v.facts(&b)
	b.WriteByte('\n')
	v.table(&b)
	for _, x := range s.Benches {
		b.WriteByte('\n')
		v.bench(&b, x)
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// table writes the layers.
func (v *view) table(b *strings.Builder) {
	order := make([]int, len(v.s.Layers))
	for i := range order {
		order[i] = i
	}
	left := 0
	if v.o.Top > 0 && len(order) > v.o.Top {
		sorting.Stable(order, func(x, y int) int { return cmp.Compare(v.cost(y), v.cost(x)) })
		left = len(order) - v.o.Top
		order = order[:v.o.Top]
	}
	v.grid(b, v.columns(), order)
	if left > 0 {
		fmt.Fprintf(b, "… %d more layers\n", left)
	}
}

// studyColumn is a column of the table of layers.
type studyColumn struct {
	head string
	keep int
	left bool
	flex int
	cell func(layer int) string
}

func (v *view) columns() []studyColumn {
	l := func(i int) *study.Layer { return &v.s.Layers[i] }
	cols := []studyColumn{
		{"#", 100, false, 0, strconv.Itoa},
		{"layer", 99, true, 12, func(i int) string { return text.Clean(l(i).Name) }},
		{"op", 60, true, 0, func(i int) string { return text.Clean(l(i).Op) }},
		{"params", 70, false, 0, func(i int) string { return Count(l(i).Params) }},
		{"zero", 50, false, 0, func(i int) string {
			if l(i).Zeros == 0 || l(i).Weights() == 0 {
				return ""
			}
			return Percent(float64(l(i).Zeros) / float64(l(i).Weights()))
		}},
	}
	if v.speed != nil {
		cols = append(cols, v.speedColumns()...)
	}
	if v.loss != nil {
		cols = append(cols, v.lossColumns()...)
	}
	return append(cols, studyColumn{"verdict", 95, true, 24, v.verdict})
}

func (v *view) speedColumns() []studyColumn {
	head := "time"
	show := Duration
	if v.speed.Counted {
		head, show = "ops", func(x float64) string { return Quantity(x, "") }
	}
	known := func(f func(i int) string) func(i int) string {
		return func(i int) string {
			if v.cost(i) == 0 {
				return ""
			}
			return f(i)
		}
	}
	return []studyColumn{
		{head, 97, false, 0, known(func(i int) string { return show(v.cost(i)) })},
		{"share", 90, false, 0, known(func(i int) string { return Percent(v.cost(i) / v.total) })},
		{"limit", 40, true, 0, func(i int) string {
			if v.times[i] == nil {
				return ""
			}
			return v.times[i].Limit
		}},
		{v.gainHead(), 92, false, 0, func(i int) string {
			if r, ok := v.gain(i); ok {
				return words.Ratio(1/r) + " ×"
			}
			return ""
		}},
	}
}

func (v *view) lossColumns() []studyColumn {
	s := v.shownStructure()
	levels := v.shownLevels(s)
	var cols []studyColumn
	most := 0.0
	for layer := range v.losses {
		for i := range v.losses[layer] {
			if p := &v.losses[layer][i]; p.Change.Structure == s && p.Change.Format == study.OriginalFormat {
				if x, _, _, ok := v.worse(p); ok {
					most = max(most, x)
				}
			}
		}
	}
	cols = append(cols, studyColumn{"loss by level", 80, true, 0, func(i int) string { return v.curve(i, s, most) }})
	for k, level := range levels {
		keep := []int{45, 65, 55}[k%3]
		cols = append(cols, studyColumn{fmt.Sprintf("at %.4g %%", 100*level), keep, false, 0, func(i int) string {
			p := v.lossAt(i, s, level)
			if p == nil {
				return ""
			}
			x, _, _, ok := v.worse(p)
			if !ok {
				return ""
			}
			return lossDigits(x)
		}})
	}
	if len(levels) > 0 {
		ranks := v.ranks(s, levels[len(levels)/2])
		cols = append(cols, studyColumn{"rank", 62, false, 0, func(i int) string {
			r, ok := ranks[i]
			switch {
			case !ok:
				return ""
			case r[0] == r[1]:
				return strconv.Itoa(r[0])
			}
			return fmt.Sprintf("%d-%d", r[0], r[1])
		}})
	}
	return cols
}

func lossDigits(x float64) string {
	if x != 0 && math.Abs(x) < 1e-4 {
		return strconv.FormatFloat(x, 'e', 1, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// verdict says in words what is to be done with a layer, or why nothing is.
func (v *view) verdict(i int) string {
	l := &v.s.Layers[i]
	if l.Fixed != "" {
		return words.StudyCause(l.Fixed)
	}
	if v.plan != nil {
		for _, c := range v.plan.Choices {
			switch {
			case c.Layer != i:
			case !c.Change.IsZero():
				return words.Change(c.Change)
			case c.Cause != "":
				return "unchanged: " + v.unchanged(i, c.Cause)
			default:
				return "unchanged"
			}
		}
	}
	if v.speed == nil || len(v.gains[i]) == 0 {
		return ""
	}
	p := v.best(i)
	if p == nil {
		return words.StudyCause(v.why(i))
	}
	const little = .02
	if v.cost(i) < little*v.total {
		return "little to gain"
	}
	return "most with " + words.Change(p.Change)
}

// unchanged says why a plan leaves a layer unchanged.
func (v *view) unchanged(layer int, c study.Cause) string {
	const much = .1 // of the time
	gains := v.speed != nil && v.best(layer) != nil
	none := !slices.ContainsFunc(v.plan.Choices, func(x study.Choice) bool { return !x.Change.IsZero() })
	switch {
	case c == study.Spent && none && v.plan.Goal.MaxLoss != nil:
		return "no cheaper change was found to keep the loss within the limit"
	case c == study.Spent && none:
		return "the goal is met without a change"
	case c == study.Spent && v.plan.Goal.MaxLoss == nil:
		return "other layers gain more for their loss"
	case (c == study.First || c == study.Head) && gains && v.cost(layer) >= much*v.total:
		return words.StudyCause(c) + " (--ends lets it change)"
	case c == study.NoData && gains:
		return "its loss is unknown"
	}
	return words.StudyCause(c)
}

// why is the usual reason for a layer's lack of a gain.
func (v *view) why(i int) study.Cause {
	n := map[study.Cause]int{}
	best := study.NoKernel
	for _, p := range v.gains[i] {
		if p.Cause != "" {
			n[p.Cause]++
			if n[p.Cause] > n[best] {
				best = p.Cause
			}
		}
	}
	return best
}

// widest is the longest name that is shown.
const widest = 40

// grid writes rows of columns, those that fit.
func (v *view) grid(b *strings.Builder, cols []studyColumn, rows []int) {
	ds := make([]drawn, 0, len(cols))
	for _, c := range cols {
		d := drawn{column: column{head: c.head, keep: c.keep, left: c.left, flex: c.flex, tail: c.head == "layer"}, width: text.Width(c.head)}
		empty := true
		for _, i := range rows {
			s := c.cell(i)
			if d.tail {
				s = d.shorten(s, widest)
			}
			empty = empty && s == ""
			d.cells = append(d.cells, s)
			d.width = max(d.width, text.Width(s))
		}
		if !empty {
			ds = append(ds, d)
		}
	}
	fit(ds, v.o.Width)
	line := func(cell func(d *drawn) string) {
		var cells []string
		for i := range ds {
			if d := &ds[i]; d.shown > 0 {
				cells = append(cells, pad(d.shorten(cell(d), d.shown), d.shown, d.left))
			}
		}
		b.WriteString(strings.TrimRight(strings.Join(cells, gap), " ") + "\n")
	}
	line(func(d *drawn) string { return d.head })
	for k := range rows {
		line(func(d *drawn) string { return d.cells[k] })
	}
	var lacking []string
	for _, d := range ds {
		if d.shown == 0 {
			lacking = append(lacking, d.head)
		}
	}
	if len(lacking) > 0 {
		b.WriteString(strings.Join(wrap(noRoom(lacking), v.o.Width), "\n") + "\n")
	}
}
