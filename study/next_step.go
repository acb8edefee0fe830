package study

// NextStep is a further change of a layer beyond a plan: what it would gain and what it would
// cost.
type NextStep struct {
	Layer  int    `json:"layer"`
	Change Change `json:"change"`
	// Gain is how much of the plan's cost it saves, in the unit of the cost. Loss is what it adds
	// to the loss, as in [FrontPoint].
	Gain float64 `json:"gain"`
	Loss float64 `json:"loss"`
	// Rate is gain divided by loss, nil where nothing is lost.
	Rate *float64 `json:"rate,omitzero"`
}
