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
	// the figures do not compare, so that there is no verdict: [Run.WhyNot] has the reason
	Incomparable Verdict = "incomparable"
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

	dev deviation // of repeated profiles; none for those of one
}

// Ratio is a figure divided by that of the first run.
//
// Errors are those of logarithms. That of a figure is half of its interval, or the tolerance of the
// latency where this is wider ([profile.Trust]; not for interleaved runs), and what two processes
// on one computer differ by without showing it (0.5 %, a standard deviation). Of several profiles
// of one run it comes from their spread. Errors of two runs are independent: the interval of the
// ratio has 95 % of Student's distribution. Estimates of the same layers by one estimator for one
// target are equal, and their ratio is 1 without an error.
//
// A ratio whose interval leaves out 1 is [Slower] or [Faster] ([More] or [Less] of other figures),
// one whose interval lies within 5 % of 1 is [Alike], all else is [Open]. Of the groups of a run,
// only those differ that the procedure of Benjamini and Hochberg leaves at a false discovery rate
// of 5 %.
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
	// Declared is the element type that the model declares for most of the work, absent where it is
	// DType.
	Declared string `json:"declared_dtype,omitzero"`
	// Trust is the verdict about its latency, Fit what its measurement is good for and Tolerance
	// what its latency may differ by, as a fraction.
	Trust     profile.Verdict `json:"trust,omitzero"`
	Fit       profile.Fit     `json:"fit,omitzero"`
	Tolerance *float64        `json:"tolerance,omitzero"`
	// Total is the figure of one inference, Ratio that to the first run's.
	Total Figure `json:"total"`
	Ratio Ratio  `json:"ratio"`
	// WhyNot says by group of figures why those of the run do not compare with those of the first
	// one; a group that compares is absent.
	WhyNot map[Topic]NoteCode `json:"why_not,omitzero"`
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
	// Of several runs Kind is the greatest difference; Matches say both by run.
	Kind    align.Kind `json:"kind,omitzero"`
	Certain bool       `json:"certain"`
	Matches []Match    `json:"matches"`
	// Contributions are the differences to the first run in the unit of the quantity, by run. An
	// entry is nil if a figure is unknown; a run without the layers contributes all of the first.
	Contributions []*float64 `json:"contributions"`
	// Reasons say by run in what the layers differ from those of the first run.
	Reasons [][]Reason `json:"reasons"`

	same []bool // by run, all layers are the same as those of the first run
}

// Match says how the layers of a group in one run differ from those of the first run.
type Match struct {
	// Kind is absent for the first run, where neither run has layers, and for gathered rows that
	// both have.
	Kind align.Kind `json:"kind,omitzero"`
	// Certain says that they are known to belong together.
	Certain bool `json:"certain"`
}

// Match is how the layers of run k differ from those of the first run.
func (g *Group) Match(k int) Match {
	if k < 0 || k >= len(g.Matches) {
		return Match{}
	}
	return g.Matches[k]
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
	OtherMachine NoteCode = "machine" // other computers, and other models
	// one model on other computers: the ratio compares these
	Machines  NoteCode = "machines"
	OtherKind NoteCode = "kind" // figures that were measured, imported and estimated
	// one time is that of a single inference without warm-up, which is cold
	ColdRun NoteCode = "cold"
	// the number of threads of one is unknown
	UnknownThreads NoteCode = "threads_unknown"
	// no layers of the models match: rows are kinds of operators
	Unrelated    NoteCode = "unrelated"
	TooLarge     NoteCode = "fit"     // a target that does not run the model
	NotGood      NoteCode = "trust"   // a latency that is less than good
	NotWhole     NoteCode = "whole"   // a profile that is incomplete
	OtherResults NoteCode = "results" // outputs that differ by more than rounding explains
	NoLayers     NoteCode = "layers"  // no layer has the figure
	NoTimes      NoteCode = "times"   // no time, so that counts are compared
	WideBands    NoteCode = "bands"   // rows are undecided, as the bands of estimates overlap
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
	// Topic is the group of figures that the quantity belongs to.
	Topic Topic `json:"topic"`
	// By is what rows are gathered by, "" for layers.
	By   By    `json:"by,omitzero"`
	Runs []Run `json:"runs"`
	// Whole has the figures of the whole model.
	Whole  []Row   `json:"whole"`
	Groups []Group `json:"groups"`
	// Waterfalls lead from the first run to each other one.
	Waterfalls []Waterfall `json:"waterfalls"`
	Notes      []Note      `json:"notes,omitzero"`
	// Profiles are the profiles of the runs, the first one of each; Repeats are all of each run.
	Profiles []*profile.Profile   `json:"-"`
	Repeats  [][]*profile.Profile `json:"-"`
}
