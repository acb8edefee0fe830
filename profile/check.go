package profile

// CheckOutcome says what came of measuring a layer's time in a second way.
type CheckOutcome string

// Outcomes of checks.
const (
	// the two figures differ by less than their intervals allow
	CheckAgrees  CheckOutcome = "agrees"
	CheckDiffers CheckOutcome = "differs" // by more
	CheckOpen    CheckOutcome = "open"    // the figures are too unsure to tell anything
	// the engine executes something else where the model is cut
	CheckOther CheckOutcome = "other_nodes"
	// nobody knows which of the model's operators the layer is
	CheckUnjoined CheckOutcome = "unjoined"
	CheckShared   CheckOutcome = "shared"  // other layers do a part of the same operators
	CheckBody     CheckOutcome = "body"    // it is in a body of control flow
	CheckNotCut   CheckOutcome = "not_cut" // the model cannot be cut there
	CheckRefused  CheckOutcome = "refused" // the engine does not take the cut model
	CheckStopped  CheckOutcome = "stopped" // the time was over
)

var checkOutcomes = []string{
	string(CheckAgrees), string(CheckDiffers), string(CheckOpen), string(CheckOther), string(CheckUnjoined), string(CheckShared), string(CheckBody),
	string(CheckNotCut), string(CheckRefused), string(CheckStopped),
}

// Check says what came of measuring a layer's time in a second way: a short stretch of the model
// with the layer, and the stretch without it, are interleaved, and the difference is the figure
// checked_s.
type Check struct {
	// Outcome is what came of it.
	Outcome CheckOutcome `json:"outcome"`
	// Text says more, for people: what else is executed, why the model cannot be cut.
	Text string `json:"text,omitzero"`
}
