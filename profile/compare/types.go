package compare

// Source says how the figures of a run came about.
type Source string

// Sources.
const (
	Measured  Source = "measured"
	Imported  Source = "imported" // from a profile or trace of another tool
	Estimated Source = "estimated"
	Counted   Source = "counted" // from a model file: it did not run
)

// By is what rows are gathered by.
type By string

// Gatherings of rows. Rows of different models are gathered by the first run that has them.
const (
	ByLayer By = ""
	ByOp    By = "op"    // operator
	ByScope By = "scope" // the path of the block that the layer belongs to
	ByBlock By = "block" // the repeated block and the part of it, else the outermost part of the scope
	ByShape By = "shape" // shape of the first result
)

// Bys are the values of [By] but the empty one.
var Bys = []string{string(ByOp), string(ByScope), string(ByBlock), string(ByShape)}

// ReasonCode names a property in which layers differ.
type ReasonCode string

// Reasons for a difference.
const (
	ByWork      ReasonCode = "work"      // operations or multiply-accumulates
	ByBytes     ReasonCode = "bytes"     // bytes read and written
	ByType      ReasonCode = "type"      // element type of the computation
	ByOptions   ReasonCode = "options"   // an option of the operator
	ByKernel    ReasonCode = "kernel"    // implementation
	ByPlacement ReasonCode = "placement" // processor or accelerator
	ByFusion    ReasonCode = "fusion"    // number of layers
	ByClock     ReasonCode = "clock"     // clock of the target, or speed of the machine
	ByThreads   ReasonCode = "threads"   // number of threads
)

// Reason is a property of layers with its value in the first run and in this one. Numbers or texts
// are set.
type Reason struct {
	Code      ReasonCode `json:"code"`
	First     *float64   `json:"first,omitzero"`
	This      *float64   `json:"this,omitzero"`
	FirstText string     `json:"first_text,omitzero"`
	ThisText  string     `json:"this_text,omitzero"`
}

// Row is a figure of the whole model.
type Row struct {
	// Key is that of the quantity, or a name like one; Label and Unit are for people.
	Key   string `json:"key"`
	Label string `json:"label"`
	Unit  string `json:"unit,omitzero"`
	// Topic is the group of figures, which compare for the same reasons.
	Topic Topic `json:"topic"`
	// Better is 1 where more is better, -1 where less is, 0 where neither holds.
	Better int64 `json:"better,omitzero"`
	// Figures and Ratios are by run; the first ratio is empty.
	Figures []Figure `json:"figures"`
	Ratios  []Ratio  `json:"ratios"`
	// Comparable says by run whether the figure compares with that of the first run, Why why not.
	Comparable []bool     `json:"comparable"`
	Why        []NoteCode `json:"why,omitzero"`
}

// Topic is a group of figures.
type Topic string

// Topics.
const (
	Time     Topic = "time"
	Memory   Topic = "memory"
	Size     Topic = "size"
	Work     Topic = "work"
	Energy   Topic = "energy"
	Accuracy Topic = "accuracy"
)

// Waterfall leads from the total of the first run to that of another one:
// From + Σ Steps.Value + Rest = To, exactly, added in that order.
type Waterfall struct {
	Run   int     `json:"run"`
	From  float64 `json:"from"`
	To    float64 `json:"to"`
	Steps []Step  `json:"steps"`
	// Rest is what no row explains: time outside of layers, layers without a figure.
	Rest float64 `json:"rest"`
}

// Step is a part of the difference.
type Step struct {
	// Label names the rows, Groups are their positions in [Table.Groups]; empty for layers that an
	// engine added.
	Label  string  `json:"label"`
	Groups []int   `json:"groups,omitzero"`
	Value  float64 `json:"value"`
}
