package sensiml

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/base/stats"
)

// Rules say how figures are made of what came.
type Rules struct {
	// ClockHz is the true frequency of the processor, 0 where it is not known: there are no times
	// then.
	ClockHz float64
	// Nanoseconds says that counts are nanoseconds, as those of packs on a computer are; they
	// are recognised where times come too.
	Nanoseconds bool
	// Warmup is the number of inferences of each model to leave out at the beginning. Where
	// no more came they are kept.
	Warmup int
	// SampleRate of the sensors in Hz, for the load; 0 where it is not known.
	SampleRate float64
	// KeepAll keeps figures that lie far outside the others.
	KeepAll bool
}

// analysis makes the result of one model.
type analysis struct {
	d     *device
	m     *Model // laid out; nil without a pack
	rules Rules
	res   *Result
	out   *ModelResult

	rows     []row
	length   int
	frozen   *ModelResult // what is known about the layout already, nil for nothing
	edges    int          // measurements over the end of a second
	against  int          // counts that contradict their seconds
	far      int          // counts far outside
	varied   int          // those that are too many to be damage
	wrapped  int          // counts of a counter that went round
	fromTime int          // inferences of which only the line with times came
}

// Result makes figures of what came until now. The stream may go on; the inference under way counts
// after [Collector.End].
func (c *Collector) Result(r Rules) *Result {
	res := &Result{Unit: "cycles"}
	ns := r.Nanoseconds
	var whole, odd int64
	for _, d := range c.devices {
		whole, odd = whole+d.whole, odd+d.odd
	}
	if whole > 9*odd && whole > 0 {
		ns = true
	}
	if ns {
		res.Unit = "ns"
	} else if r.ClockHz > 0 {
		res.ClockHz = new(r.ClockHz)
	}
	indices := slices.Collect(maps.Keys(c.devices))
	if c.pack != nil {
		for i := range c.pack.Models {
			indices = append(indices, c.pack.Models[i].Index)
		}
	}
	slices.Sort(indices)
	for _, i := range slices.Compact(indices) {
		d := c.devices[i]
		if d == nil {
			d = &device{index: i}
		}
		a := &analysis{d: d, rules: r, res: res}
		a.model(c)
		res.Runs += a.out.Runs
		res.Models = append(res.Models, *a.out)
	}
	c.remarks(res, ns)
	return res
}

func (res *Result) found(warning bool, id, format string, args ...any) {
	f := Finding{ID: "sensiml." + id, Warning: warning, Text: fmt.Sprintf(format, args...)}
	if len(res.Findings) < 200 && !slices.Contains(res.Findings, f) {
		res.Findings = append(res.Findings, f)
	}
}

func (c *Collector) remarks(res *Result, ns bool) {
	if c.pack != nil {
		for _, n := range c.pack.Notes {
			res.found(false, "pack", "model.json: %s", n)
		}
	}
	if c.unknown > 0 {
		res.found(true, "model", "%d lines name models that model.json has not: they were left out. Another pack may be on the device, or the lines were damaged.", c.unknown)
	}
	if c.full {
		res.found(true, "bound", "There were more figures than are kept: those after the first %d million count in nothing.", maxKept>>20)
	}
	if ns && c.Runs() > 0 {
		res.found(false, "nanoseconds", "The counts are nanoseconds: the pack runs on a computer. A measurement of a second or more cannot be told from a shorter one.")
	}
	profiled := 0
	var silent []int
	for _, i := range slices.Sorted(maps.Keys(c.devices)) {
		switch d := c.devices[i]; {
		case d.profiled:
			profiled++
		case d.disabled:
			res.found(true, "disabled", "Model %d says that it was built without profiling: build the pack with debug and profile.", i)
		case d.results > 0:
			silent = append(silent, i)
		}
	}
	if len(silent) > 0 {
		res.found(true, "no_profile", "Models %v print classes and no figures: build the pack with debug and profile, for a processor that can be profiled.", silent)
	}
	if profiled > 0 {
		res.found(false, "untimed", "The firmware times generators and classifier only: segmenter, transforms, filters and scaling are in no figure.")
	}
	if n := micro(res); n > 1 {
		res.found(true, "switch", "%d models run on one TensorFlow Lite Micro: the first classification after another model's holds the set-up of its memory, so that classifiers which are interleaved look slower than they are alone.", n)
	}
	sorting.Stable(res.Findings, func(a, b Finding) int {
		rank := func(f Finding) int {
			if f.Warning {
				return 0
			}
			return 1
		}
		return cmp.Compare(rank(a), rank(b))
	})
}

// micro counts the models with figures that run on TensorFlow Lite Micro.
func micro(res *Result) (n int) {
	for i := range res.Models {
		if res.Models[i].Runs > 0 && res.Models[i].micro() {
			n++
		}
	}
	return n
}

// micro reports whether the classifier is TensorFlow Lite Micro.
func (m *ModelResult) micro() bool {
	return m.Type == "TF Micro" || strings.HasPrefix(m.Type, "TensorFlow")
}

// model makes everything that is known about the model.
func (a *analysis) model(c *Collector) {
	d := a.d
	a.out = &ModelResult{Index: d.index, Name: c.names[d.index], Layout: LayoutNone, Banks: 1, Results: d.results, Outcomes: d.outcomes}
	if m := c.pack.Find(d.index); m != nil {
		a.m = new(*m)
		a.m.Generators = slices.Clone(m.Generators)
		a.out.Name, a.out.Type, a.out.Banks, a.out.Layout = cmp.Or(m.Name, a.out.Name), m.Type, m.Banks, m.Layout
		if m.UUID == c.names[d.index] {
			a.out.Name = m.Name
		}
	}
	for _, n := range slices.Sorted(maps.Keys(d.classes)) {
		a.out.Classes = append(a.out.Classes, ClassCount{Number: n, Label: a.m.Class(n), N: d.classes[n]})
	}
	a.out.Values, a.out.SegmentLength = describe(d.values, 0), describe(d.lengths, 0)
	var others int
	a.length, others = d.usual(a.m)
	if a.frozen != nil {
		a.length = a.frozen.length
	} else if others > 0 {
		a.res.count(ReasonLength, int64(others))
		a.res.found(true, "length", "Model %d: %d lines have arrays of another length than %d and were left out.", d.index, others, a.length)
	}
	a.rows = d.groups[a.length]
	a.counts()
	if a.frozen != nil {
		a.m, a.out.Banks, a.out.Layout = a.frozen.laid, a.frozen.Banks, a.frozen.Layout
	} else {
		a.layout()
	}
	a.out.laid, a.out.length = a.m, a.length
	a.figures()
	a.tell()
}

func (res *Result) count(why Reason, n int64) {
	if res.Rejected == nil {
		res.Rejected = map[Reason]int64{}
	}
	res.Rejected[why] += n
}

// counts makes counts of what came: without signs, over ends of seconds, and of seconds where the
// line with cycles is missing.
func (a *analysis) counts() {
	ns := a.res.Unit == "ns"
	rows := make([]row, len(a.rows))
	for i, r := range a.rows {
		x := row{clf: a.count(r.clf, ns), times: r.times, clfTime: r.clfTime}
		switch {
		case r.cycles != nil:
			x.cycles = make([]float64, len(r.cycles))
			for k, v := range r.cycles {
				x.cycles[k] = a.count(v, ns)
			}
		case ns:
			continue // milliseconds of the inference before
		default:
			a.fromTime++
			x.cycles = make([]float64, len(r.times))
			for k, t := range r.times {
				x.cycles[k] = math.Round(t * FirmwareHz)
			}
			if x.clf, x.times = math.Round(r.clfTime*FirmwareHz), nil; r.clfTime < 0 {
				x.clf = math.NaN()
			}
		}
		rows[i] = x
	}
	a.rows = slices.DeleteFunc(rows, func(r row) bool { return r.cycles == nil })
}

// count is a count as it was before it was printed; NaN for one that cannot be.
func (a *analysis) count(v float64, ns bool) float64 {
	if !ns {
		return unsigned(v)
	}
	const second = 1e9
	switch {
	case v < 0:
	case v >= 1<<32-second:
		v -= 1 << 32
	case v >= second:
		return math.NaN()
	default:
		return v
	}
	if v += second; v < 0 {
		return math.NaN()
	}
	a.edges++
	return v
}

// filled are the slots of the array in which figures stand: those that are not zero in a tenth of
// the inferences, and in more than one. A damaged line fills slots that are none.
func (a *analysis) filled() []bool {
	n := make([]int, a.length)
	for i := range a.rows {
		for k, v := range a.rows[i].cycles {
			if v != 0 {
				n[k]++
			}
		}
	}
	out := make([]bool, a.length)
	for k := range n {
		out[k] = n[k] > 0 && 10*n[k] >= len(a.rows) && (n[k] > 1 || len(a.rows) < 4)
	}
	return out
}

// layout chooses among the layouts that firmwares may have by where figures stand, and gives up
// names behind a figure that no generator explains.
func (a *analysis) layout() {
	if len(a.rows) == 0 {
		return
	}
	if a.m == nil || len(a.m.Generators) == 0 {
		a.slots(0)
		return
	}
	m := a.m
	if want := len(m.Features); want > 0 && want != a.length {
		a.res.found(true, "features", "Model %d sends %d figures and model.json has %d features: it may be that of another pack.", m.Index, a.length, want)
	}
	filled := a.filled()
	best, bestBad := map[int]int(nil), math.MaxInt
	for _, choice := range m.choices() {
		if m.layOut(choice) != nil {
			continue
		}
		if bad, _ := m.unexplained(filled); bad < bestBad {
			best, bestBad = choice, bad
		}
		if bestBad == 0 {
			break
		}
	}
	_ = m.layOut(best)
	if len(best) > 0 {
		a.res.found(false, "layout", "Model %d: the figures stand where a firmware with other numbers of features puts them; the layout follows it.", m.Index)
	}
	if _, at := m.unexplained(filled); at >= 0 {
		a.res.found(true, "layout", "Model %d: slot %d holds figures and no generator of model.json begins there. From there on figures are of numbered slots: model.json may be that of another pack.", m.Index, at)
		a.slots(at)
	}
}

// unexplained counts the filled slots in which no generator's figure stands, and the empty ones
// where one should; at is the first of the former, -1 for none. Behind a generator of unknown size
// nothing is known.
func (m *Model) unexplained(filled []bool) (bad, at int) {
	begins := make([]bool, len(filled))
	end := 0
	known := true
	for i := range m.Generators {
		g := &m.Generators[i]
		known = known && len(g.counts) > 0
		if g.Slot < 0 {
			continue
		}
		end = g.Slot + max(g.Slots, 1)
		for b := range m.Banks {
			if s := g.Slot + b*m.BankSlots; s < len(filled) && (b == 0 || m.BankSlots > 0) {
				begins[s] = true
			}
		}
	}
	at = -1
	for s := range filled {
		if !known && s >= end || filled[s] == begins[s] {
			continue
		}
		bad++
		if filled[s] && at < 0 {
			at = s
		}
	}
	return bad, at
}

// slots takes the slots from one on for what they are: numbers. Generators behind have none.
func (a *analysis) slots(from int) {
	if a.m == nil {
		a.m = &Model{Index: a.d.index, Layout: LayoutNone}
	}
	m := a.m
	if from == 0 {
		m.Generators, a.out.Layout = nil, LayoutNone
	}
	for i := range m.Generators {
		if g := &m.Generators[i]; g.Slot >= from {
			g.Slot = -1
		}
	}
	m.Banks, m.BankSlots, a.out.Banks = 1, a.length, 1
	for s, filled := range a.filled() {
		if filled && s >= from {
			m.Generators = append(m.Generators, Generator{Label: fmt.Sprintf("slot %d", s), Slot: s, Slots: 1})
		}
	}
}

// counting are the values that count, behind the warm-up and without those that are NaN.
func counting(values []float64, warm int) []float64 {
	if warm < len(values) {
		values = values[warm:]
	}
	return slices.DeleteFunc(slices.Clone(values), math.IsNaN)
}

// describe makes the figures of values without those that are NaN; warm of them come first and do
// not count unless there are no others. Nil for none.
func describe(values []float64, warm int) *Stats {
	s := &Stats{}
	if len(values) > 0 && !math.IsNaN(values[0]) {
		s.First = new(values[0])
	}
	v := counting(values, warm)
	if len(v) == 0 {
		return nil
	}
	s.N, s.Mean = len(v), stats.Mean(v)
	if sd := stats.StdDev(v); !math.IsNaN(sd) {
		s.Sigma = &sd
	}
	slices.Sort(v)
	s.Min, s.Max, s.Median, s.P5, s.P95 = v[0], v[len(v)-1], stats.Quantile(v, 0.5), stats.Quantile(v, 0.05), stats.Quantile(v, 0.95)
	// The mean of equal values may be beside them by rounding.
	s.Mean = min(max(s.Mean, s.Min), s.Max)
	if lo, hi, ok := stats.MedianInterval(v); ok {
		s.Low, s.High = &lo, &hi
	}
	return s
}

// scaled is the figures in another unit.
func (s *Stats) scaled(by float64) *Stats {
	if s == nil {
		return nil
	}
	t := *s
	for _, p := range []*float64{&t.Mean, &t.Median, &t.P5, &t.P95, &t.Min, &t.Max} {
		*p *= by
	}
	for _, p := range []**float64{&t.Sigma, &t.Low, &t.High, &t.First, &t.LeftMin, &t.LeftMax} {
		if *p != nil {
			*p = new(**p * by)
		}
	}
	return &t
}
