package compare

import "github.com/opmeter/opmeter/profile"

// Judgement says whether a run is worse than the first one.
type Judgement string

// Judgements.
const (
	Worse     Judgement = "worse"
	NotWorse  Judgement = "not_worse" // by more than the tolerance of [Alike]
	Undecided Judgement = "undecided"
)

// Judge says whether run k is worse than the first one in the quantity of the table. Figures that
// do not compare decide nothing.
func (t *Table) Judge(k int) Judgement {
	r := &t.Runs[k].Ratio
	better := int64(-1)
	if q, ok := profile.Lookup(t.Quantity); ok && q.Better != 0 {
		better = q.Better
	}
	if r.Verdict == Incomparable || r.Low == nil || r.High == nil {
		return Undecided
	}
	low, high := *r.Low, *r.High
	if better > 0 {
		low, high = 1 / *r.High, 1 / *r.Low
	}
	limit := 1 + alike
	if r.Interval == Exact {
		limit = 1
	}
	switch {
	case low > 1:
		return Worse
	case high <= limit:
		return NotWorse
	}
	return Undecided
}
