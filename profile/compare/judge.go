package compare

import (
	"slices"

	"github.com/opmeter/opmeter/profile"
)

// Judgement says whether a run is worse than the first one.
type Judgement string

// Judgements.
const (
	Worse     Judgement = "worse"
	NotWorse  Judgement = "not_worse" // by more than the tolerance of [Alike]
	Undecided Judgement = "undecided"
)

// OtherMachines reports whether the figures of the table compare machines: they are times or
// energy, and run k is the model of the first run on another machine.
func (t *Table) OtherMachines(k int) bool {
	return (t.Topic == Time || t.Topic == Energy) && slices.ContainsFunc(t.Notes, func(n Note) bool { return n.Code == Machines && slices.Contains(n.Runs, k) })
}

// Judge says whether run k is worse than the first one in the quantity of the table. Figures that
// do not compare decide nothing, nor do times of other machines: the model did not get worse.
func (t *Table) Judge(k int) Judgement {
	r := &t.Runs[k].Ratio
	better := int64(-1)
	if q, ok := profile.Lookup(t.Quantity); ok && q.Better != 0 {
		better = q.Better
	}
	if t.OtherMachines(k) {
		return Undecided
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

// Overlaps reports whether a ratio is undecided because the bands of estimates overlap.
func (r *Ratio) Overlaps() bool {
	return r.Verdict == Open && r.Interval == Band90 && r.Low != nil && r.High != nil && *r.Low <= 1 && *r.High >= 1
}
