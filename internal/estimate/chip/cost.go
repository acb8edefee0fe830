package chip

import (
	"github.com/opmeter/opmeter/internal/model/graph"
)

// Options choose how a target is used. The zero value means the defaults.
type Options struct {
	// Runtime is the runtime family, "" for the target's first.
	Runtime string
	// Build is a way of building the runtime, "" for the usual one.
	Build string
	// Clock instead of the target's default, 0 for that.
	Clock Hertz
	// Name of the model for people, "" for that of the file.
	Name string
}

// Figure is an estimate with the interval that holds the true value in 90 % of
// cases. Low and High equal Value when nothing is known about the error.
type Figure struct {
	Value, Low, High float64
}

// Scaled makes a figure with a band given as factors.
func Scaled(v, low, high float64) *Figure { return &Figure{Value: v, Low: v * low, High: v * high} }

// HasBand reports whether the figure has an interval.
func (f *Figure) HasBand() bool { return f != nil && f.Low < f.High }

// Verdict says whether an accelerator takes a layer.
type Verdict string

// Verdicts. The empty one stands for targets without accelerator.
const (
	Accelerated Verdict = "yes"
	NotOperator Verdict = "not-operator" // the accelerator never does this operator
	WrongType   Verdict = "wrong-type"   // the operator, but not in this element type
	Limit       Verdict = "limit"        // the operator and type, but a limit is exceeded
)

// Missing says why a layer has no estimate.
type Missing struct {
	Code MissingCode
	Text string // for people only
}

// MissingCode is what an estimate lacks.
type MissingCode string

// What an estimate lacks.
const (
	MissingOperator MissingCode = "operator" // a rule for the work of the operator
	MissingType     MissingCode = "type"     // figures of the operator in this element type
	MissingShape    MissingCode = "shape"    // shapes, which only a run tells
	MissingData     MissingCode = "data"     // measurements on the target
)

// LayerCost is what a cycle model says about one layer.
type LayerCost struct {
	// CPU and Accelerator are the cycles in which each is busy, nil when not known
	// (and for Accelerator when it takes no part).
	CPU, Accelerator *Figure
	// Simulated is the accelerator cycles by the maker's simulator, -1 for none.
	Simulated int64
	// Counts is what the accelerator does for the layer beside cycles, by name.
	Counts map[string]int64
	// Latency is elapsed cycles of the processor's clock, nil when not known.
	Latency *Figure
	// Energy in joules, nil when not known. The models may leave it to the target's
	// power model.
	Energy *Figure
	// Kernel names the implementation that the runtime would choose.
	Kernel string
	// Verdict says whether the accelerator takes it, and Reason, for people only, why
	// not.
	Verdict Verdict
	Reason  string
	// Refused says why a kernel of the accelerator refused a layer that another one then
	// took, "" when none did: tools of the maker count such layers as unsupported.
	Refused string
	// Missing says why there is no estimate, nil when there is one.
	Missing *Missing
	// Carried marks figures of another target: their errors go together.
	Carried bool
}

// Costs is what a cycle model says about a whole model.
type Costs struct {
	// Layers follows the nodes of the graph.
	Layers []LayerCost
	// Latency, CPU, Accelerator and Energy are totals with bands of their own, which
	// are narrower than the sum of the layers' bands. Nil: the sum of the layers is
	// taken with the sum of their bands.
	Latency, CPU, Accelerator, Energy *Figure
	// Method says in a few words how the figures were made.
	Method string
	// Remarks are sentences for the reader, such as that a runtime was extrapolated.
	Remarks []string
}

// CycleModel estimates the layers of a graph.
type CycleModel interface {
	// Costs estimates graph g of m, the main one or a body of control flow, on t with
	// the figures of rt, which must be those of the model.
	Costs(m *graph.Model, g *graph.Graph, t *Target, rt *Runtime, opt Options) (*Costs, error)
}
