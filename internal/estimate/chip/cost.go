package chip

import (
	"github.com/opmeter/opmeter/internal/model/graph"
)

// Options selects how a target is used. The zero value selects the defaults.
type Options struct {
	// Runtime is the runtime family, "" for the target's first.
	Runtime string
	// Build is the build configuration of the runtime, "" for the default one.
	Build string
	// Flash says where the model lies: [FlashRAM] or [FlashExternal], "" for the target's flash.
	Flash string
	// Clock replaces the target's default clock, 0 for the default.
	Clock Hertz
	// Name is the display name of the model, "" for the file's.
	Name string
}

// Places of the model other than the target's flash.
const (
	FlashRAM      = "ram"      // copied to RAM, which does not wait
	FlashExternal = "external" // in flash outside of the chip
)

// SerialFlash returns the external flash whose read cost is known, nil if it is absent.
func (t *Target) SerialFlash() *Memory {
	for i := range t.Memories {
		if m := &t.Memories[i]; m.Role == "external-flash" && m.ReadCyclesPerByte != nil {
			return m
		}
	}
	return nil
}

// Figure is an estimate with an interval that contains the true value in 90 % of cases. Low and
// High equal Value if the error is unknown.
type Figure struct {
	Value, Low, High float64
}

// Scaled returns a figure with a band given as factors.
func Scaled(v, low, high float64) *Figure { return &Figure{Value: v, Low: v * low, High: v * high} }

// HasBand reports whether the figure has an interval.
func (f *Figure) HasBand() bool { return f != nil && f.Low < f.High }

// Verdict says whether an accelerator supports a layer.
type Verdict string

// Verdicts. The empty one is for targets without accelerator.
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

// MissingCode is the code of what an estimate lacks.
type MissingCode string

// What an estimate lacks.
const (
	MissingOperator MissingCode = "operator" // a rule for the work of the operator
	MissingType     MissingCode = "type"     // figures of the operator in this element type
	MissingShape    MissingCode = "shape"    // shapes, which only a run tells
	MissingData     MissingCode = "data"     // measurements on the target
)

// LayerCost is a cycle model's result for one layer.
type LayerCost struct {
	// CPU and Accelerator are the busy cycles of each, nil if unknown (and for Accelerator if it
	// is not used).
	CPU, Accelerator *Figure
	// Simulated is the accelerator cycles in the vendor's simulator, -1 for none.
	Simulated int64
	// Counts are other amounts of accelerator work, by name.
	Counts map[string]int64
	// Latency is the elapsed cycles of the processor's clock, nil if unknown.
	Latency *Figure
	// Energy is in joules, nil if unknown. Models may leave it to the target's power model.
	Energy *Figure
	// Kernel names the implementation that the runtime would choose.
	Kernel string
	// Verdict says whether the accelerator supports the layer, and Reason, for display only, why
	// not.
	Verdict Verdict
	Reason  string
	// Refused says why a kernel of the accelerator rejected a layer that another kernel then
	// accepted, "" if none did: the vendor's tools count such layers as unsupported.
	Refused string
	// Missing says why there is no estimate, nil if there is one.
	Missing *Missing
	// Carried marks figures transferred from another target: their errors are correlated.
	Carried bool
}

// Costs is a cycle model's result for a whole model.
type Costs struct {
	// Layers follows the nodes of the graph.
	Layers []LayerCost
	// Latency, CPU, Accelerator and Energy are totals with their own bands, which are narrower
	// than the sum of the layers' bands. If nil, the layers and their bands are summed.
	Latency, CPU, Accelerator, Energy *Figure
	// Method describes in a few words how the figures were computed.
	Method string
	// Remarks are sentences for the user, for example that a runtime was extrapolated.
	Remarks []string
}

// CycleModel estimates the layers of a graph.
type CycleModel interface {
	// Costs estimates graph g of m, the main one or a body of control flow, on t with the figures
	// of rt, which must be for this cycle model.
	Costs(m *graph.Model, g *graph.Graph, t *Target, rt *Runtime, opt Options) (*Costs, error)
}
