package device

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/internal/source/join"
	"github.com/opmeter/opmeter/profile"
)

// ErrEnough says that as many inferences as requested were recorded, or that the confidence
// interval is as narrow as requested.
var ErrEnough = errors.New("enough inferences")

// Inference is one inference as reported by a device.
type Inference struct {
	// Whole holds figures of the whole inference by quantity key; absent ones were not reported.
	Whole map[string]float64
	// Layers holds the figures of the layers, each layer once.
	Layers []LayerFigures
	// First says that it included one-time work.
	First bool
	// Partial says that parts were lost: figures of the whole are not used.
	Partial bool
}

// tells reports whether it has a figure of a quantity.
func (x *Inference) tells(key string) bool {
	if _, ok := x.Whole[key]; ok {
		return true
	}
	return slices.ContainsFunc(x.Layers, func(l LayerFigures) bool { _, ok := l.Figures[key]; return ok })
}

// LayerFigures are the figures of one layer in one inference.
type LayerFigures struct {
	// Layer is its index in the profile passed to [Recorder.Describe].
	Layer   int
	Figures map[string]float64
}

// Units of a device's counter, for [Recorder.Clock].
const (
	Cycles       = "cycles"       // of the processor: "cpu_cycles"
	Instructions = "instructions" // counted by an emulator
	Nanoseconds  = "ns"           // of a clock: the figures are "latency_s" already
	Ticks        = "ticks"        // of a clock of its own
)

// counters maps these units to quantities.
var counters = map[string]string{Cycles: "cpu_cycles", Instructions: "instructions", Nanoseconds: "latency_s", Ticks: "ticks"}

// Rules configures a recorder.
type Rules struct {
	// Runs is the number of inferences wanted after warm-up, 0 for no limit.
	Runs int
	// Warmup is how many are skipped before. Inferences that declare themselves as first are
	// among them.
	Warmup int
	// Until is the half width of the 95 % confidence interval of the median, relative to the
	// median, that is narrow enough; 0 for none.
	Until float64
	// ClockHz is the frequency of the device's counter given by the user, 0 if the device reports
	// it.
	ClockHz float64
	// Model is the static profile of the model, nil if none was named.
	Model *profile.Profile
	// Progress is called after each inference; may be nil.
	Progress func(Progress)
	// Described may change target and settings before they are sent; may be nil.
	Described func(*profile.Profile)
}

// Progress is the state of a running measurement.
type Progress struct {
	// Runs is the number of counted inferences, Want the number wanted, 0 if unknown.
	Runs, Want int
	// Warming says that the last inference was warm-up.
	Warming bool
	// Quantity is the key of Median: "latency_s", or the counter's if no time is known.
	Quantity string
	Median   float64
	// Half is half the 95 % confidence interval of the median, relative to it; NaN below six
	// inferences.
	Half float64
	// Layers has one entry per layer.
	Layers []LayerProgress
}

// LayerProgress is the state of a layer in a running measurement.
type LayerProgress struct {
	Name string
	Last float64 // of Progress.Quantity in the last inference, NaN where it was not told
	Mean float64 // over counted inferences, NaN for none
}

// Recorder turns inferences into events. It is not safe for concurrent use.
type Recorder struct {
	rules Rules
	to    source.Sink

	// stopped reports whether the session is being stopped; nil for never.
	stopped func() bool

	p       *profile.Profile // as described
	clock   float64
	counter string // key of the counter's quantity, "" unknown

	moves      int         // what it was told, to notice a device that does not come further
	seen, kept int         // all inferences, counted inferences
	warm       int         // skipped inferences
	start      started     // since the program was started
	bounded    bool        // a latency was set for the whole run, not per inference
	spare      []Inference // the last of these, until others came
	partial    int         // inferences with losses
	wholes     []float64   // main figure of the kept inferences
	times      []float64   // latency_s of the kept inferences
	key        string
	median     float64 // of wholes
	half       float64 // half its 95 % interval as a part of it
	first      map[string]float64
	methods    map[string]string
	sums       []float64
	counts     []int
	bad        map[string]int
	losses     map[lossKey]int64
	lossOrder  []lossKey
	found      map[string]int
}

type lossKey struct {
	layer int
	code  profile.CauseCode
	text  string
}

// NewRecorder returns a recorder that sends its events to a sink.
func NewRecorder(to source.Sink, r Rules) *Recorder {
	return &Recorder{rules: r, to: to, median: math.NaN(), half: math.NaN(), bad: map[string]int{}, losses: map[lossKey]int64{}, found: map[string]int{}, methods: map[string]string{}}
}

// Described reports whether layers are known.
func (r *Recorder) Described() bool { return r.p != nil }

// Runs is the number of counted inferences.
func (r *Recorder) Runs() int { return r.kept }

// ClockHz is the frequency of the device's counter, as given by the user or the device, 0 if
// unknown.
func (r *Recorder) ClockHz() float64 { return cmp.Or(r.rules.ClockHz, r.clock) }

// Describe sends the description of the device, before the first inference: its layers under its
// own names, the target, findings, its own quantities. If the user named a model, its operators
// are joined with the layers; hints have one entry per layer, or are nil. Parts of the profile
// common to all devices may be omitted.
func (r *Recorder) Describe(p *profile.Profile, hints []join.Hint) error {
	return r.describe(p, func(m *profile.Profile) {
		join.Fill(p, m, join.Find(m.Layers, p.Layers, hints))
		p.Totals.Ops, p.Totals.MACs = m.Totals.Ops, m.Totals.MACs
	})
}

// DescribeParts is [Recorder.Describe] for layers that are not operators: one of them runs the
// model. attach adds the model's data to that layer, and reports whether it exists.
func (r *Recorder) DescribeParts(p *profile.Profile, attach func(p, model *profile.Profile) bool) error {
	return r.describe(p, func(m *profile.Profile) {
		if !attach(p, m) {
			p.Findings = append(p.Findings, profile.Finding{ID: "device.model", Severity: profile.Warning, Text: "No stage is said to run " + m.Model.Name + ": its work is not attributed to any stage."})
		}
	})
}

func (r *Recorder) describe(p *profile.Profile, fill func(model *profile.Profile)) error {
	if r.p != nil {
		return errors.New("a device is described once")
	}
	r.moves++
	p.Schema = profile.SchemaV1
	p.Target.Kind = cmp.Or(p.Target.Kind, profile.TargetDevice)
	p.Target.ID = cmp.Or(p.Target.ID, "device")
	for i := range p.Layers {
		l := &p.Layers[i]
		l.Index = int64(i)
		l.State = cmp.Or(l.State, profile.Ran)
	}
	if m := r.rules.Model; m != nil {
		fill(m) // The file's description of the model takes precedence over the device's.
	}
	p.Model.Name = cmp.Or(p.Model.Name, "model")
	if n := r.rules.Runs; n > 0 {
		p.Settings.Runs = new(int64(n))
	}
	if n := r.rules.Warmup; n > 0 {
		p.Settings.WarmupRuns = new(int64(n))
	}
	if r.clock > 0 {
		p.Target.ClockHz = new(r.clock)
	}
	if r.rules.Described != nil {
		r.rules.Described(p)
	}
	if err := r.to.Send(profile.Event{Described: p}); err != nil {
		return err
	}
	r.p = p
	r.sums, r.counts = make([]float64, len(p.Layers)), make([]int, len(p.Layers))
	return nil
}

// Clock records the device's counter: its frequency in hertz, 0 if unknown, and the unit of its
// counts, one of [Cycles], [Instructions], [Nanoseconds] and [Ticks]. A frequency given by the
// user takes precedence.
func (r *Recorder) Clock(hz float64, unit string) {
	r.counter = counters[unit]
	if !(hz > 0) || math.IsInf(hz, 0) {
		hz = 0
	}
	given := r.rules.ClockHz
	before := r.clock
	r.clock = cmp.Or(given, hz)
	if unit == Instructions || unit == Nanoseconds {
		r.clock = 0 // instructions are not time, and nanoseconds need no clock
	}
	// A whole hertz or a part in a million is how frequencies are written down.
	if given > 0 && hz > 0 && math.Abs(given/hz-1) > 1e-6 {
		r.Found("device.clock", profile.Warning, "The device says that its clock has %.9g Hz, --clock says %.9g Hz: times are by the latter.", hz, given)
	}
	if r.p != nil && r.clock != before && r.clock > 0 {
		r.p.Target.ClockHz = new(r.clock)
		t := r.p.Target
		_ = r.Note(&profile.Noted{Target: &t})
	}
}

// Note sends parts of the profile other than layers and figures; it must not change the layers.
func (r *Recorder) Note(n *profile.Noted) error { return r.to.Send(profile.Event{Noted: n}) }

// Count sets a figure of a layer, or of the whole if layer is -1, that is not per inference.
func (r *Recorder) Count(layer int, quantity string, m *profile.Metric) error {
	r.moves++
	r.bounded = r.bounded || quantity == "latency_s"
	f := &profile.Figure{Quantity: quantity, Metric: m}
	if layer >= 0 {
		f.Layer = new(int64(layer))
	}
	return r.to.Send(profile.Event{Counted: f})
}

// Lost says that records are missing: of a layer, or of any layer if layer is -1. Losses of one
// kind are reported together when the session ends.
func (r *Recorder) Lost(layer int, records int64, why profile.CauseCode, text string) {
	const most = 1000
	k := lossKey{layer, why, text}
	if _, ok := r.losses[k]; !ok {
		if len(r.lossOrder) == most {
			k = lossKey{-1, profile.ByRecord, "losses of more kinds"}
		}
		if _, ok := r.losses[k]; !ok {
			r.lossOrder = append(r.lossOrder, k)
		}
	}
	r.losses[k] += records
}

// Found sends a finding. Identical ones are sent once, and at most ten of one rule.
func (r *Recorder) Found(id string, s profile.Severity, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	const most = 10
	if r.found[id+"\x00"+text]++; r.found[id+"\x00"+text] > 1 {
		return
	}
	if r.found[id]++; r.found[id] > most {
		return
	}
	f := profile.Finding{ID: id, Severity: s, Text: text}
	if r.p == nil {
		return // nothing to hold it: whoever describes adds its own
	}
	_ = r.to.Send(profile.Event{Found: &f})
}

// Inference records the next inference. It returns [ErrEnough] if no more are wanted.
func (r *Recorder) Inference(x Inference) error {
	if r.p == nil {
		return errors.New("an inference before its description")
	}
	if x.Partial && r.stopped != nil && r.stopped() {
		return nil // cut short by whoever stopped the session, and not lost
	}
	r.seen++
	r.moves++
	r.clean(&x)
	r.time(&x)
	warming := r.kept == 0 && !x.Partial && (x.First || r.warm < r.rules.Warmup)
	if r.start.inference(&x) {
		r.warm++
		r.progress(&x, true)
		return nil
	}
	if warming {
		r.warm++
		if r.first == nil {
			r.first = maps.Clone(x.Whole)
		}
		const spares = 16
		r.spare = append(r.spare[max(0, len(r.spare)-spares+1):], x)
	} else {
		r.spare = nil
		if err := r.keep(&x); err != nil {
			return err
		}
	}
	r.progress(&x, warming)
	if r.enough() {
		return ErrEnough
	}
	return nil
}

// countWarmup counts inferences skipped as warm-up if no others arrived: figures with one-time work
// are better than none.
func (r *Recorder) countWarmup() error {
	if r.p == nil || r.kept+r.partial > 0 || len(r.spare) == 0 {
		return nil
	}
	n := len(r.spare)
	for i := range r.spare {
		if err := r.keep(&r.spare[i]); err != nil {
			return err
		}
		r.progress(&r.spare[i], false)
	}
	r.warm -= n
	r.spare = nil
	came := "inference"
	if n > 1 {
		came = fmt.Sprintf("%d inferences", n)
	}
	r.Found("device.warmup", profile.Warning, "Only the first %s came: these count, and may hold work that is done once. Where more come, they are left out as warm-up.", came)
	return nil
}

// clean removes invalid figures: not finite, negative, or of unknown layers.
func (r *Recorder) clean(x *Inference) {
	drop := func(m map[string]float64) {
		for k, v := range m {
			if !(v >= 0) || math.IsInf(v, 0) {
				r.bad[k]++
				delete(m, k)
			}
		}
	}
	drop(x.Whole)
	x.Layers = slices.DeleteFunc(x.Layers, func(l LayerFigures) bool {
		if l.Layer < 0 || l.Layer >= len(r.p.Layers) {
			r.bad["layer"]++
			return true
		}
		drop(l.Figures)
		return false
	})
}

// time converts counts to seconds if the clock is known, and sums the layers if the whole was not
// reported.
func (r *Recorder) time(x *Inference) {
	key := r.counter
	if key == "" {
		// Not told of: whatever the figures are.
		for _, k := range []string{"cpu_cycles", "ticks"} {
			if x.tells(k) {
				key = k
			}
		}
		r.clock = cmp.Or(r.rules.ClockHz, r.clock)
	}
	hz := r.clock
	seconds := func(m map[string]float64) {
		if v, ok := m[key]; ok && hz > 0 && key != "instructions" {
			if _, ok := m["latency_s"]; !ok || r.rules.ClockHz > 0 {
				m["latency_s"] = v / hz
				r.methods["latency_s"] = fmt.Sprintf("%s ÷ %.9g Hz", unitOf(key), hz)
			}
		}
	}
	for i := range x.Layers {
		seconds(x.Layers[i].Figures)
	}
	if x.Whole == nil {
		x.Whole = map[string]float64{}
	}
	if x.Partial {
		clear(x.Whole)
		return
	}
	seconds(x.Whole)
	sums := map[string]float64{}
	n := map[string]int{}
	for _, l := range x.Layers {
		for k, v := range l.Figures {
			sums[k] += v
			n[k]++
		}
	}
	for _, k := range slices.Sorted(maps.Keys(sums)) {
		if _, ok := x.Whole[k]; ok || n[k] < len(r.p.Layers) {
			continue
		}
		if q, ok := profile.Lookup(k); ok && q.Adds && (k == "latency_s" || k == key) {
			x.Whole[k] = sums[k]
			r.methods[k+"/whole"] = "sum of the layers"
		}
	}
}

// unitOf returns the word for counts of a quantity.
func unitOf(key string) string {
	switch key {
	case "cpu_cycles":
		return Cycles
	case "instructions":
		return Instructions
	}
	return Ticks
}

// keep sends the figures of an inference that counts.
func (r *Recorder) keep(x *Inference) error {
	if x.Partial {
		r.partial++
	} else {
		r.kept++
		r.start.kept++
	}
	send := func(layer *int64, m map[string]float64) error {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			s := &profile.Samples{Layer: layer, Quantity: k, Values: []float64{m[k]}, Method: r.methods[k]}
			if layer == nil {
				s.Method = cmp.Or(r.methods[k+"/whole"], s.Method)
			}
			if err := r.to.Send(profile.Event{Measured: s}); err != nil {
				return fmt.Errorf("%s: %w", k, err)
			}
		}
		return nil
	}
	for _, l := range x.Layers {
		if err := send(new(int64(l.Layer)), l.Figures); err != nil {
			return err
		}
	}
	return send(nil, x.Whole)
}

// shown returns the key of the main figure of an inference: its time, its counter, or another
// measure of cost.
func shown(x *Inference, counter string) string {
	if counter != "" && !x.tells("latency_s") && x.tells(counter) {
		return counter
	}
	costs := profile.Costs()
	if i := slices.IndexFunc(costs, x.tells); i >= 0 {
		return costs[i]
	}
	return ""
}

// progress counts, and calls the progress callback.
func (r *Recorder) progress(x *Inference, warming bool) {
	const most = 1 << 20 // inferences of which the times are held, for the verdict
	if r.key == "" {
		r.key = shown(x, r.counter)
	}
	if !warming && len(r.wholes) < most {
		if v, ok := x.Whole[r.key]; ok {
			r.wholes = append(r.wholes, v)
		}
		if v, ok := x.Whole["latency_s"]; ok {
			r.times = append(r.times, v)
		}
	}
	if r.rules.Progress == nil && r.rules.Until == 0 {
		return
	}
	r.interval()
	if r.rules.Progress == nil {
		return
	}
	last := map[int]float64{}
	for _, l := range x.Layers {
		if v, ok := l.Figures[r.key]; ok {
			last[l.Layer] = v
			if !warming {
				r.sums[l.Layer] += v
				r.counts[l.Layer]++
			}
		}
	}
	g := Progress{Runs: r.kept, Want: r.rules.Runs, Warming: warming, Quantity: r.key, Median: r.median, Half: r.half}
	for i := range r.p.Layers {
		y := LayerProgress{Name: cmp.Or(r.p.Layers[i].Name, r.p.Layers[i].Op), Last: math.NaN(), Mean: math.NaN()}
		if v, ok := last[i]; ok {
			y.Last = v
		}
		if r.counts[i] > 0 {
			y.Mean = r.sums[i] / float64(r.counts[i])
		}
		g.Layers = append(g.Layers, y)
	}
	r.rules.Progress(g)
}

// interval computes the median and half its 95 % confidence interval, relative to it; NaN if
// unknown. It sorts: with many inferences it is called less and less often.
func (r *Recorder) interval() {
	n := len(r.wholes)
	if n == 0 || n >= 100 && n%(n/50) != 0 {
		return
	}
	s := slices.Clone(r.wholes)
	slices.Sort(s)
	r.median, r.half = stats.Quantile(s, 0.5), math.NaN()
	if lo, hi, ok := stats.MedianInterval(s); ok {
		r.half = 0
		if hi > lo {
			r.half = (hi - lo) / 2 / r.median
		}
	}
}

// enough reports whether no more inferences are wanted.
func (r *Recorder) enough() bool {
	if r.rules.Runs > 0 && r.kept >= r.rules.Runs {
		return true
	}
	return r.rules.Until > 0 && r.half <= r.rules.Until
}
