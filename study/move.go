package study

// Move is a layer's next step from where a plan stands: what it would gain and what that would cost.
type Move struct {
	Layer  int    `json:"layer"`
	Change Change `json:"change"`
	// Gain is how much of the plan's cost it saves, in its unit, Loss what it adds to the loss,
	// as [FrontPoint] has it.
	Gain float64 `json:"gain"`
	Loss float64 `json:"loss"`
	// Rate is the gain by the loss, nil where it loses nothing.
	Rate *float64 `json:"rate,omitzero"`
}
