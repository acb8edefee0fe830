package sensiml

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/stats"
)

// A series is the values of one figure: one for each inference, NaN if absent, and those
// to describe, which are of segments in a cascade.
type series struct {
	each []float64
	all  []float64
	warm int // how many of all are warm-up
	left []float64
}

// figures makes the rows of generators, classifier and sums.
func (a *analysis) figures() {
	n := len(a.rows)
	if n == 0 {
		for i := range a.generators() {
			a.out.Features = append(a.out.Features, a.row(&a.m.Generators[i]))
		}
		return
	}
	warm := a.rules.Warmup
	if warm < 0 || warm >= n {
		warm = 0
		if a.rules.Warmup > 0 {
			a.res.found(false, "warmup", "Model %d: there are only %d inferences, so that none is left out as warm-up.", a.d.index, n)
		}
	}
	a.out.Runs, a.out.Warmup = n-warm, warm
	whole := make([]float64, n)
	for i := range a.m.Generators {
		g := &a.m.Generators[i]
		r := a.row(g)
		if r.State == Reported {
			s := a.series(g, warm)
			a.fill(&r, s)
			add(whole, s.each)
		} else {
			a.out.Partial = true
		}
		a.out.Features = append(a.out.Features, r)
	}
	c := Row{Name: "classifier", State: Reported}
	if a.out.Type != "" {
		c.Function = a.out.Type
	}
	s := &series{each: make([]float64, n), warm: warm}
	for i, r := range a.rows {
		s.each[i] = r.clf
		if r.times != nil && r.clfTime >= 0 && a.res.Unit == "cycles" && !told(r.clf, r.clfTime) {
			s.left, s.each[i] = append(s.left, r.clf), math.NaN()
			a.against++
		}
	}
	if !slices.ContainsFunc(s.each, func(v float64) bool { return v != 0 && !math.IsNaN(v) }) {
		c.State = Empty // 0 is the firmware's word for a classifier that is not timed
		a.out.Partial = true
	} else {
		s.all = slices.Clone(s.each)
		a.outliers(s)
		a.fill(&c, s)
		add(whole, s.each)
	}
	a.out.Classifier = &c
	w := Row{Name: "whole"}
	a.sum(&w, whole, warm)
	a.out.Whole = &w
	a.sums(warm)
	a.shares()
}

func (a *analysis) generators() []Generator {
	if a.m == nil {
		return nil
	}
	return a.m.Generators
}

// add adds values of each inference; one that is missing makes the sum missing.
func add(sum, each []float64) {
	for i := range sum {
		sum[i] += each[i]
	}
}

// row says what is known about a generator, without figures.
func (a *analysis) row(g *Generator) Row {
	r := Row{Name: g.Name(), Function: g.Function, Columns: g.Columns, Params: g.Params, Category: g.Category(), State: Reported}
	switch {
	case g.Slot < 0:
		r.State = NoSlot
	case len(a.rows) == 0 || g.Slot >= a.length:
		r.Slot, r.State = new(g.Slot), NotReported
	default:
		r.Slot = new(g.Slot)
		empty := true
		for i := range a.rows {
			empty = empty && a.rows[i].cycles[g.Slot] == 0
		}
		if empty {
			r.State = Empty
		}
	}
	return r
}

// series gathers the figures of a generator. In a cascade the device writes one bank a segment and
// leaves the others as they were: banks that changed are the segments since the message before.
func (a *analysis) series(g *Generator, warm int) *series {
	s := &series{each: make([]float64, len(a.rows))}
	banks := 1
	if a.m.Banks > 1 && a.m.BankSlots > 0 {
		banks = min(a.m.Banks, (a.length-g.Slot-1)/a.m.BankSlots+1)
	}
	every := banks > 1 && a.everyBank()
	at := func(r *row, b int) float64 {
		k := g.Slot + b*a.m.BankSlots
		v := r.cycles[k]
		if r.times != nil && a.res.Unit == "cycles" && !told(v, r.times[k]) {
			return math.NaN()
		}
		return v
	}
	for i := range a.rows {
		r := &a.rows[i]
		if i == warm {
			s.warm = len(s.all)
		}
		sum, fresh := 0.0, 0
		for b := range banks {
			if banks > 1 && i > 0 && !every && !a.changed(i, b) {
				continue
			}
			v := at(r, b)
			if math.IsNaN(v) {
				s.left = append(s.left, r.cycles[g.Slot+b*a.m.BankSlots])
				a.against++
			}
			s.all = append(s.all, v)
			sum += v
			fresh++
		}
		switch {
		case banks == 1:
			s.each[i] = sum
		case fresh == 0:
			// The bank that was written got the same figures: known only where all are alike.
			s.each[i] = alike(r, g.Slot, a.m.BankSlots, banks)
			s.all = append(s.all, s.each[i])
		case a.m.Slide != nil && !*a.m.Slide:
			// All banks were filled for this classification.
			s.each[i] = math.NaN()
			if fresh == banks && banks == a.m.Banks {
				s.each[i] = sum
			}
		default:
			s.each[i] = sum / float64(fresh)
		}
	}
	a.outliers(s)
	return s
}

// everyBank reports whether the device writes all banks for a classification: most of them change
// from one to the next, so that one that does not holds the same figure again.
func (a *analysis) everyBank() bool {
	var changes []float64
	for i := 1; i < len(a.rows); i++ {
		n := 0
		for b := range a.m.Banks {
			if b*a.m.BankSlots < a.length && a.changed(i, b) {
				n++
			}
		}
		changes = append(changes, float64(n))
	}
	return len(changes) > 0 && 2*stats.Median(changes) > float64(a.m.Banks)
}

// changed reports whether a bank holds other figures than in the inference before.
func (a *analysis) changed(i, bank int) bool {
	from := bank * a.m.BankSlots
	to := min(from+a.m.BankSlots, a.length)
	return !slices.Equal(a.rows[i].cycles[from:to], a.rows[i-1].cycles[from:to])
}

func alike(r *row, slot, step, banks int) float64 {
	v := r.cycles[slot]
	for b := range banks {
		if r.cycles[slot+b*step] != v {
			return math.NaN()
		}
	}
	return v
}

// Limits of what lies far outside: see docs/reference/sensiml.md.
const (
	farFew    = 8    // values below which nothing is called far outside
	farSigmas = 10.0 // robust standard deviations from the median
	farPart   = 0.25 // of the median, which it must be away too
	// the part of the values that may be; where more are, the figure is one that varies
	farMost = 0.05
	farLone = 0.2 // the same where they are scattered, as damage is
)

// outliers takes values far outside all others away. A damaged digit leaves such; a figure that
// varies has many of them, which stay.
func (a *analysis) outliers(s *series) {
	v := slices.DeleteFunc(slices.Clone(s.all), math.IsNaN)
	if a.rules.KeepAll {
		return
	}
	v = a.wraps(s, v)
	if len(v) < farFew {
		return
	}
	med := stats.Median(v)
	limit := max(farSigmas*1.4826*stats.MAD(v), farPart*med)
	far := func(x float64) bool { return math.Abs(x-med) > limit }
	var out []float64
	for _, x := range v {
		if far(x) {
			out = append(out, x)
		}
	}
	n := len(out)
	if n == 0 {
		return
	}
	most := max(1, farMost*float64(len(v)))
	if scattered(out, med/50) {
		most = max(1, farLone*float64(len(v)))
	}
	if float64(n) > most {
		a.varied += n
		return
	}
	a.far += n
	a.leave(s, far)
}

// wraps takes values away that a counter of 32 bits gives when it goes round or is set back within
// a measurement: close below 2^32, where the others are much smaller. Their number does not matter.
// It returns the values that stay.
func (a *analysis) wraps(s *series, v []float64) []float64 {
	if len(v) < 3 || a.res.Unit == "ns" {
		return v
	}
	const half, whole, times = 1 << 31, 1 << 32, 16
	med := stats.Median(v)
	wrapped := func(x float64) bool { return x >= half && x < whole && x > times*med }
	stay := slices.DeleteFunc(slices.Clone(v), wrapped)
	if n := len(v) - len(stay); n > 0 {
		a.wrapped += n
		a.leave(s, wrapped)
	}
	return stay
}

// leave takes the values away for which far holds.
func (a *analysis) leave(s *series, far func(float64) bool) {
	single := len(s.all) == len(s.each)
	for i, x := range s.all {
		if far(x) {
			s.left, s.all[i] = append(s.left, x), math.NaN()
			if single {
				s.each[i] = math.NaN()
			}
		}
	}
	if !single {
		for i, x := range s.each {
			if far(x) && (a.m.Slide == nil || *a.m.Slide) {
				s.each[i] = math.NaN()
			}
		}
	}
}

// scattered reports whether at most half of the values are near to each other, as those of another
// way through a program would be.
func scattered(v []float64, near float64) bool {
	slices.Sort(v)
	longest, n := 1, 1
	for i := 1; i < len(v); i++ {
		if n++; v[i]-v[i-1] > near {
			n = 1
		}
		longest = max(longest, n)
	}
	return longest == 1 || 2*longest <= len(v)
}

// fill puts the figures of a series into a row.
func (a *analysis) fill(r *Row, s *series) {
	st := describe(s.all, s.warm)
	if st == nil {
		r.State = Empty
		return
	}
	st.Left = len(s.left)
	if st.Left > 0 {
		st.LeftMin, st.LeftMax = new(slices.Min(s.left)), new(slices.Max(s.left))
	}
	r.each, r.described = s.each, counting(s.all, s.warm)
	a.units(r, st)
}

// units gives the row its figures as counts and times, as far as they are known.
func (a *analysis) units(r *Row, st *Stats) {
	switch {
	case a.res.Unit == "ns":
		r.Time = st.scaled(1e-9)
	case a.rules.ClockHz > 0:
		r.Cycles, r.Time = st, st.scaled(1/a.rules.ClockHz)
	default:
		r.Cycles = st
	}
}

// sum gives a row the figures of a sum.
func (a *analysis) sum(r *Row, each []float64, warm int) {
	r.each, r.described = each, counting(each, warm)
	if st := describe(each, warm); st != nil {
		a.units(r, st)
	}
}

// sums adds the generators up by name, sensor and category.
func (a *analysis) sums(warm int) {
	by := func(name func(*Row) string) (out []Row) {
		at := map[string]int{}
		for i := range a.out.Features {
			f := &a.out.Features[i]
			key := name(f)
			if key == "" {
				continue
			}
			k, ok := at[key]
			if !ok {
				k = len(out)
				at[key] = k
				out = append(out, Row{Name: key})
			}
			r := &out[k]
			r.Members++
			if f.each == nil {
				r.Missing++
				continue
			}
			if r.each == nil {
				r.each = make([]float64, len(a.rows))
			}
			add(r.each, f.each)
		}
		for i := range out {
			if out[i].each != nil {
				a.sum(&out[i], out[i].each, warm)
			}
		}
		return out
	}
	a.out.ByGenerator = by(func(r *Row) string { return r.Function })
	a.out.BySensor = by(func(r *Row) string { return strings.Join(r.Columns, "+") })
	a.out.ByCategory = by(func(r *Row) string { return r.Category })
}

// shares are parts of the whole, by means; the load is the whole's part of the time it has.
func (a *analysis) shares() {
	w := a.out.Whole.best()
	if w == nil || !(w.Mean > 0) {
		return
	}
	lists := [][]Row{a.out.Features, a.out.ByGenerator, a.out.BySensor, a.out.ByCategory}
	if !a.out.Partial {
		for _, l := range lists {
			for i := range l {
				l[i].share(w.Mean)
			}
		}
		a.out.Classifier.share(w.Mean)
	}
	rate := a.rules.SampleRate
	if rate <= 0 {
		rate = a.m.SampleRate
	}
	if t := a.out.Whole.Time; t != nil && rate > 0 && a.m.Delta > 0 {
		a.out.Load = new(t.Mean / (float64(a.m.Delta) / rate))
	}
}

// best is the time, or the cycles where there is not a time.
func (r *Row) best() *Stats {
	if r.Time != nil {
		return r.Time
	}
	return r.Cycles
}

func (r *Row) share(whole float64) {
	if s := r.best(); s != nil {
		r.Share = new(s.Mean / whole)
	}
}

// tell makes findings of what was repaired, left out and missing.
func (a *analysis) tell() {
	i := a.d.index
	count := func(s State) (names []string) {
		for _, f := range a.out.Features {
			if f.State == s {
				names = append(names, f.Name)
			}
		}
		return names
	}
	list := func(names []string) string {
		if n := len(names); n > 8 {
			return fmt.Sprintf("%s and %d more", strings.Join(names[:8], ", "), n-8)
		}
		return strings.Join(names, ", ")
	}
	if n := count(NotReported); len(n) > 0 && len(a.rows) > 0 {
		a.res.found(true, "not_reported", "Model %d: the device sends %d slots and cuts the rest off, so that %d of %d generators have no figure: %s. Sums lack them.", i, a.length, len(n), len(a.out.Features), list(n))
	}
	if n := count(NoSlot); len(n) > 0 && len(a.rows) > 0 {
		a.res.found(true, "no_slot", "Model %d: nothing tells in which slots the figures of %d generators stand: %s.", i, len(n), list(n))
	}
	if n := count(Empty); len(n) > 0 {
		a.res.found(true, "empty", "Model %d: the slots of %d generators held nothing but zero, which is not a figure: %s.", i, len(n), list(n))
	}
	if len(a.rows) > 0 && a.out.Layout == LayoutNames {
		a.res.found(true, "assumed", "Model %d: model.json is from before the middle of 2021 and has names of features only; each is taken for one slot.", i)
	}
	if a.edges > 0 {
		a.res.found(false, "second", "Model %d: %d measurements ran over the end of a second and were printed negative; a second was added to each.", i, a.edges)
	}
	if a.fromTime > 0 {
		a.res.found(true, "from_times", "Model %d: of %d inferences only the line with times came; their cycles follow from it by the firmware's own %d Hz.", i, a.fromTime, int64(FirmwareHz))
	}
	if a.against > 0 {
		a.res.found(true, "contradiction", "Model %d: %d counts contradict the seconds that the device printed for the same inference and were left out: digits were damaged on the way.", i, a.against)
	}
	if a.far > 0 {
		a.res.found(true, "outlier", "Model %d: %d figures lie far outside all others of theirs and were left out: the lines have no checksum, and a damaged digit looks like this. Keep them with --keep-all.", i, a.far)
	}
	if a.wrapped > 0 {
		a.res.found(true, "wrapped", "Model %d: %d counts are close to 2^32 and were left out: the counter of 32 bits went round or was set back during the measurement. Keep them with --keep-all.", i, a.wrapped)
	}
	if a.varied > 0 {
		a.res.found(true, "varied", "Model %d: %d figures lie far from the median of theirs. They are too many to be damage and count: the work depends on the data, or the line is very bad. Prefer the median.", i, a.varied)
	}
	if len(a.rows) > 0 && a.out.Warmup == 0 && a.out.micro() {
		a.res.found(false, "first", "Model %d: the first classification of this kind of model may hold the set-up of its memory, and there was no warm-up.", i)
	}
}
