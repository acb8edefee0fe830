package divergence

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/profile"
)

// Limits of a verdict in decibels.
const (
	// outlier is how much lower the signal-to-noise ratio of a row's own error is than the median
	// of the others: a factor of 10 in power. Errors of layers of one model that is quantised well
	// differ by less.
	outlier = 10
	// near is how close to the largest error an earlier one counts as equally large: half of the
	// power.
	near = 3
	// quantised is what 8 bits explain: a step of a 255th of a range of eight standard deviations
	// gives 41 dB, weights and longer tails cost some of that.
	quantised = 30
)

// explained returns the least signal-to-noise ratio that the number format explains.
func explained(d *profile.Difference) float64 {
	if d.Limit != nil && d.Steps == nil {
		return max(*d.Limit, quantised)
	}
	return quantised
}

// own is the error that a row adds.
type own struct {
	row   int
	noise float64
	// counts says that the error is more than the number format explains.
	counts bool
}

// Judge sets the verdict from the rows. Rows part at the first whose own error is at least half of
// the largest, more than the number format explains, and ten times the median of the other rows
// that add one. Pairs that are not certain count as the others, as a headline says where they
// matter.
func (r *Report) Judge() {
	v := Verdict{Code: Unknown}
	var added []own
	worst := profile.Equal
	for i := range r.Rows {
		row := &r.Rows[i]
		if n, ok := Noise(row.Output); ok {
			v.Compared++
			if row.Output.State == profile.Equal {
				v.Same++
			}
			worst = worse(worst, row.Output.State)
			_ = n
		}
		if n, ok := Noise(row.Own); ok && n > 0 {
			added = append(added, own{i, n, row.Own.State == profile.Differs || 10*math.Log10(1/n) < explained(row.Own)})
		}
	}
	for i := range r.Outputs {
		if r.Outputs[i].State != profile.NotComparable {
			worst = worse(worst, r.Outputs[i].State)
		}
	}
	v.Added = int64(len(added))
	switch {
	case v.Compared == 0:
	case worst == profile.Equal:
		v.Code = Equal
	default:
		v.Code = Gradual
		if worst == profile.Rounding {
			v.Code = Rounding
		}
		r.blame(&v, added)
	}
	r.Verdict = v
}

// worse returns the worse of two states.
func worse(a, b profile.DifferenceState) profile.DifferenceState {
	order := []profile.DifferenceState{profile.Equal, profile.Rounding, profile.Differs}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// blame finds the row that adds the largest error, or the first that is nearly as large.
func (r *Report) blame(v *Verdict, added []own) {
	if len(added) == 0 {
		return
	}
	most := 0.0
	for _, o := range added {
		most = max(most, o.noise)
	}
	k := slices.IndexFunc(added, func(o own) bool { return o.noise >= most*math.Pow(10, -near/10.0) })
	at := added[k]
	v.Row, v.OwnSNR = new(int64(at.row)), decibels(at.noise)
	typical := 0.0
	if others := noises(slices.Delete(slices.Clone(added), k, k+1)); len(others) > 0 {
		typical = others[len(others)/2]
		v.Typical = decibels(typical)
	}
	before := 0.0
	for i := range r.Rows[:at.row] {
		n, _ := Noise(r.Rows[i].Output)
		before = max(before, n)
	}
	v.Before = decibels(before)
	if at.counts && at.noise >= typical*math.Pow(10, outlier/10.0) {
		v.Code = Parts
	}
}

// noises lists errors, ascending.
func noises(added []own) []float64 {
	out := make([]float64, len(added))
	for i, o := range added {
		out[i] = o.noise
	}
	slices.Sort(out)
	return out
}
