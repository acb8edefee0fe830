// Package compare compares profiles of one model: engine against engine, run against run,
// computer against board.
//
// Operators that one engine executes together and another one by one cannot be compared singly:
// they are a [Group], the smallest one that holds whole layers of all profiles, by what layers
// say of the model's operators they do ([align.Layers]). A group has a time of each run and the
// ratio of each to the first run, with intervals, and a [Verdict] by one rule. What an engine
// adds that no operator of the model asks for (layouts changed, copies) is not a group: it stands
// by itself, and so does what the whole takes longer than its layers.
package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
)

// SchemaV1 is the value of [Table.Schema].
const SchemaV1 = "opmeter/versus/v1"

// MaxRuns bounds the runs of a table: all pairs of them are joined.
const MaxRuns = 32

// Verdict says whether two figures differ.
type Verdict string

// Verdicts. The rule is that of [Ratio].
const (
	Slower Verdict = "slower" // more than the first run
	Faster Verdict = "faster" // less
	Alike  Verdict = "alike"  // does not differ by more than 5 %
	More   Verdict = "more"   // more than the first run, of a figure that is not a cost in time
	Less   Verdict = "less"   // less
	// not known: the interval of the ratio includes 1, or is absent
	Open Verdict = "open"
)

// Interval is the kind of an interval.
type Interval string

// Intervals.
const (
	CI95   Interval = "ci95"   // the 95 % confidence interval of a measurement
	Band90 Interval = "band90" // the 90 % band of an estimate, or one combined with measurements
	Exact  Interval = "exact"  // a count: there is no error
)

// Figure is a figure of a run with its interval, in the unit of [Table.Quantity]. Unknown values
// are absent.
type Figure struct {
	Value    *float64 `json:"value,omitzero"`
	Low      *float64 `json:"low,omitzero"`
	High     *float64 `json:"high,omitzero"`
	Interval Interval `json:"interval,omitzero"`
	// Partial says that some of the layers have no figure, so that the value is too small.
	Partial bool `json:"partial,omitzero"`
}

// Ratio is a figure divided by that of the first run.
//
// With x and y the halves of the two intervals as parts of their figures, or the tolerances of the
// latencies where these are wider ([profile.Trust]; not for interleaved runs), the interval of the
// ratio is the ratio divided and multiplied by 1 + sqrt(x² + y² + 0.014²): errors of two runs are
// independent, and 1.4 % is what two processes on one computer differ by without showing it (a
// standard deviation of half a per cent each). A ratio whose interval leaves out 1 is [Slower] or
// [Faster], one whose interval lies within 5 % of 1 is [Alike], all else is [Open]. Of twenty
// ratios of equal figures about one is called different: of many small groups some are by chance.
type Ratio struct {
	Value    *float64 `json:"value,omitzero"`
	Low      *float64 `json:"low,omitzero"`
	High     *float64 `json:"high,omitzero"`
	Interval Interval `json:"interval,omitzero"`
	// P is the probability of a ratio as far from 1 by chance, if both figures are equal. Absent
	// without an interval.
	P       *float64 `json:"p,omitzero"`
	Verdict Verdict  `json:"verdict"`
}

// Constants of the rule of [Ratio].
const (
	processes = 1.96 * math.Sqrt2 * 0.005
	alike     = 0.05
)

// Run is a profile of the table.
type Run struct {
	// Name tells the run from the others.
	Name string `json:"name"`
	// Engine, Version, Target and Threads are those of the profile.
	Engine  string `json:"engine,omitzero"`
	Version string `json:"version,omitzero"`
	Target  string `json:"target,omitzero"`
	// Kind is what its target is, Source how its figures came about.
	Kind    profile.TargetKind `json:"kind,omitzero"`
	Source  Source             `json:"source,omitzero"`
	Threads *int64             `json:"threads,omitzero"`
	// Date is the time of the run, RFC 3339 in UTC, Machine the processor or chip.
	Date    string `json:"date,omitzero"`
	Machine string `json:"machine,omitzero"`
	// Repeats is the number of profiles that were merged, absent for one.
	Repeats int64 `json:"repeats,omitzero"`
	// Model is the name of its model, DType the element type in which most of the time is computed.
	Model string `json:"model,omitzero"`
	DType string `json:"dtype,omitzero"`
	// Trust is the verdict about its latency, Fit what its measurement is good for and Tolerance
	// what its latency may differ by, as a fraction.
	Trust     profile.Verdict `json:"trust,omitzero"`
	Fit       profile.Fit     `json:"fit,omitzero"`
	Tolerance *float64        `json:"tolerance,omitzero"`
	// Total is the figure of one inference, Ratio that to the first run's.
	Total Figure `json:"total"`
	Ratio Ratio  `json:"ratio"`
	// Operators is the sum over the groups, Inserted that over layers that do no operator of the
	// model, Rest what the whole takes beside both, never negative: it is absent where the
	// difference lies within the intervals of both, or a profiler makes layers longer than they are.
	Operators *float64 `json:"operators,omitzero"`
	Inserted  *float64 `json:"inserted,omitzero"`
	Rest      *float64 `json:"rest,omitzero"`
	// InsertedLayers is the number of layers that do no operator of the model.
	InsertedLayers int64 `json:"inserted_layers,omitzero"`
	// LoadS is the time to load and prepare the model, FirstRunS that of the first inference.
	LoadS     *float64 `json:"load_s,omitzero"`
	FirstRunS *float64 `json:"first_run_s,omitzero"`
	// PeakBytes is the largest resident size of the process, ArenaBytes that of the engine's arena.
	PeakBytes  *int64 `json:"peak_bytes,omitzero"`
	ArenaBytes *int64 `json:"arena_bytes,omitzero"`
	// Outputs says how its outputs compare with those of With, the worst of them; empty where
	// nobody compared.
	Outputs profile.DifferenceState `json:"outputs,omitzero"`
	With    string                  `json:"with,omitzero"`
	// Difference is that of the output that differs most.
	Difference *profile.Difference `json:"difference,omitzero"`
}

// Group is operators of the model that can be compared.
type Group struct {
	// Op and Name are those of the first operator, Operators the number of layers in the run that
	// has most.
	Op        string `json:"op"`
	Name      string `json:"name,omitzero"`
	Operators int64  `json:"operators"`
	// Layers are the indices of the layers by run, in the order of [Table.Runs].
	Layers [][]int64 `json:"layers"`
	// Figures and Ratios are by run; the first ratio is empty.
	Figures []Figure `json:"figures"`
	Ratios  []Ratio  `json:"ratios"`
	// Confidence is the least sure way in which layers of the group were joined.
	Confidence profile.Confidence `json:"confidence"`
	// Kind says how the layers of the runs differ, Certain that they are known to belong together.
	Kind    align.Kind `json:"kind,omitzero"`
	Certain bool       `json:"certain"`
	// Contributions are the differences to the first run in the unit of the quantity, by run. An
	// entry is nil if a figure is unknown; a run without the layers contributes all of the first.
	Contributions []*float64 `json:"contributions"`
	// Reasons say by run in what the layers differ from those of the first run.
	Reasons [][]Reason `json:"reasons"`
}

// NoteCode names a reason for which runs do not compare well.
type NoteCode string

// Notes.
const (
	OtherModel NoteCode = "model" // the files differ
	// the names differ, and the file of one is unknown
	OtherName NoteCode = "name"
	// their structures differ, so that layers were joined by names and order
	OtherNodes   NoteCode = "nodes"
	OtherThreads NoteCode = "threads" // other numbers of threads
	OtherBatch   NoteCode = "batch"   // other sizes of the batch
	OtherShapes  NoteCode = "shapes"  // other shapes of inputs
	OtherInputs  NoteCode = "inputs"  // other data of inputs
	OtherMachine NoteCode = "machine" // other computers
	OtherKind    NoteCode = "kind"    // figures that were measured, imported and estimated
	NotGood      NoteCode = "trust"   // a latency that is less than good
	NotWhole     NoteCode = "whole"   // a profile that is incomplete
	OtherResults NoteCode = "results" // outputs that differ by more than rounding explains
	NoLayers     NoteCode = "layers"  // no layer has the figure
)

// Note says what does not compare well.
type Note struct {
	Code NoteCode `json:"code"`
	// Runs are the positions of the runs that it is about; compared with the first one where the
	// code names a difference.
	Runs []int `json:"runs"`
}

// Table compares runs.
type Table struct {
	Schema string `json:"schema"`
	// Model is that of the first run.
	Model string `json:"model"`
	// Quantity is the key of what is compared, Unit its unit: times, or where a run has none
	// cycles and the like.
	Quantity string `json:"quantity"`
	Unit     string `json:"unit,omitzero"`
	// By is what rows are gathered by, "" for layers.
	By   By    `json:"by,omitzero"`
	Runs []Run `json:"runs"`
	// Whole has the figures of the whole model.
	Whole  []Row   `json:"whole"`
	Groups []Group `json:"groups"`
	// Waterfalls lead from the first run to each other one.
	Waterfalls []Waterfall `json:"waterfalls"`
	Notes      []Note      `json:"notes,omitzero"`
	// Profiles are the profiles of the runs.
	Profiles []*profile.Profile `json:"-"`
}

// Named is a profile with what tells it from the others, "" for what it says itself.
type Named struct {
	Name    string
	Profile *profile.Profile
	// Interleaved says that its inferences were interleaved with those of the other profiles
	// of the table: what disturbed the machine met all of them.
	Interleaved bool
}

// New compares profiles with the first of them. The error says why nothing can be compared.
func New(runs []Named) (*Table, error) {
	if len(runs) < 2 || len(runs) > MaxRuns {
		return nil, fmt.Errorf("%d profiles cannot be compared: use 2 to %d", len(runs), MaxRuns)
	}
	b := &builder{t: &Table{Schema: SchemaV1, Model: runs[0].Profile.Model.Name}}
	for _, r := range runs {
		b.t.Profiles = append(b.t.Profiles, r.Profile)
		b.ps = append(b.ps, r.Profile)
		b.errors = append(b.errors, hidden(r))
	}
	key, ok := common(b.ps)
	if !ok {
		return nil, fmt.Errorf("the profiles have no figure in common that says what an inference costs: one has times, another none or only counts")
	}
	b.t.Quantity = key
	if q, ok := profile.Lookup(key); ok {
		b.t.Unit = q.Unit
	}
	b.join()
	b.groups()
	b.runs(runs)
	b.contribute()
	b.waterfalls()
	b.notes()
	b.whole()
	return b.t, nil
}

// common is the best quantity that says what an inference costs in all profiles.
func common(ps []*profile.Profile) (string, bool) {
	for _, key := range profile.Costs() {
		if !slices.ContainsFunc(ps, func(p *profile.Profile) bool { _, ok := p.Totals.Figure(key).Best(); return !ok }) {
			return key, true
		}
	}
	return "", false
}

// of is a metric as a figure with its interval.
func of(m *profile.Metric) Figure {
	v, ok := m.Best()
	if !ok {
		return Figure{}
	}
	f := Figure{Value: &v}
	if iv := m.Interval(); iv != nil {
		f.Low, f.High, f.Interval = new(iv[0]), new(iv[1]), CI95
		if iv == m.Band {
			f.Interval = Band90
		}
	}
	return f
}

// hidden is the part by which the times of a run may differ from those of the quiet machine, though
// their intervals do not show it; 0 if unknown.
func hidden(r Named) float64 {
	if t := r.Profile.Trust; t != nil && t.Tolerance != nil && !r.Interleaved {
		return *t.Tolerance
	}
	return 0
}

// ratio compares two figures, with errors that their intervals do not show.
func ratio(a, first Figure, ea, ef float64) Ratio {
	r := Ratio{Verdict: Open}
	if a.Value == nil || first.Value == nil || !(*first.Value > 0) || !(*a.Value > 0) || a.Partial || first.Partial {
		return r
	}
	v := *a.Value / *first.Value
	if math.IsInf(v, 0) || v == 0 {
		return r
	}
	r.Value = &v
	x, ok := half(a)
	y, also := half(first)
	if !ok || !also {
		return r
	}
	x, y = max(x, ea), max(y, ef)
	by := 1 + math.Sqrt(x*x+y*y+processes*processes)
	low, high := v/by, v*by
	if math.IsInf(high, 0) || math.IsNaN(by) {
		return r
	}
	r.Low, r.High, r.Interval = &low, &high, widest(a.Interval, first.Interval)
	switch {
	case low > 1:
		r.Verdict = Slower
	case high < 1:
		r.Verdict = Faster
	case low >= 1-alike && high <= 1+alike:
		r.Verdict = Alike
	}
	return r
}

// widest is the kind of an interval that combines two.
func widest(a, b Interval) Interval {
	if a == Band90 || b == Band90 {
		return Band90
	}
	return CI95
}

// half is half of an interval as a part of the figure.
func half(f Figure) (float64, bool) {
	if f.Low == nil || f.High == nil || !(*f.High >= *f.Low) {
		return 0, false
	}
	return (*f.High - *f.Low) / 2 / *f.Value, true
}
