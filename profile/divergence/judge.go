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
	// vanished is from which factor in power on an error that the outputs do not show is not one of
	// the models: 20 dB.
	vanished = 100
	// coarse is the limit of an output of a model that computes in integers, for which the one
	// above stands in single layers.
	coarse = 20
)

// own is the error that a row adds.
type own struct {
	row   int
	noise float64
	// counts says that the error is more than the number format explains.
	counts bool
}

// counts reports whether an error is more than the number format explains.
func counts(d *profile.Difference, noise float64) bool {
	switch {
	case d.State == profile.Equal || d.State == profile.Rounding && d.SNR == nil:
		return false
	case math.IsInf(noise, 1) || d.SNR == nil:
		return true
	case d.Limit != nil && d.Steps != nil && *d.Limit <= 1: // integers
		return d.State == profile.Differs
	}
	limit := float64(quantised)
	if d.Limit != nil && *d.Limit > coarse {
		limit = *d.Limit
	}
	return *d.SNR < limit
}

// Judge sets the verdict from the rows and outputs. Rows part at the first whose own error is at
// least half of the largest, more than the number format explains, and ten times the median of the
// other rows that add one. Pairs that are not certain count as the others.
func (r *Report) Judge() {
	v := Verdict{Code: Unknown}
	var added []own
	var any bool
	equal := true
	r.doubt()
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Doubtful {
			v.Doubtful++
			continue
		}
		if _, ok := Noise(row.Output); ok {
			v.Compared++
			if row.Output.State == profile.Equal {
				v.Same++
			}
			equal = equal && row.Output.State == profile.Equal
		}
		if r.otherShape(row) {
			v.Compared++
			added, any, equal = append(added, own{i, math.Inf(1), true}), true, false
			continue
		}
		if n, ok := Noise(row.Own); ok && n > 0 {
			o := own{i, n, counts(row.Own, n)}
			added, any = append(added, o), any || o.counts
		}
	}
	differs, compared := false, len(r.Outputs) == 0
	for i := range r.Outputs {
		compared = compared || r.Outputs[i].State != profile.NotComparable
		switch r.Outputs[i].State {
		case profile.Differs:
			differs, equal = true, false
		case profile.Rounding:
			equal = false
		}
	}
	v.Added = int64(len(added))
	switch {
	case v.Compared == 0:
	case equal && compared:
		v.Code = Equal
	default:
		v.Code = Gradual
		if !any && !differs {
			v.Code = Rounding
		}
		r.blame(&v, added)
		if v.Code == Rounding && !compared {
			v.Code = Unknown // rows alone say nothing about the models' outputs
		}
	}
	v.Amplified = v.Code == Gradual && !any && v.Added > 0 && !r.Unlike
	r.Verdict = v
}

// otherShape reports whether two engines gave an output of one layer different shapes.
func (r *Report) otherShape(row *Row) bool {
	d, a, b := row.Output, &r.Sides[0], &r.Sides[1]
	return d != nil && d.State == profile.NotComparable && d.Cause != nil && d.Cause.Code == profile.ByShape && a.SHA256 != "" && a.SHA256 == b.SHA256
}

// doubt finds pairs that are not certain and have an error that the outputs of the models do not
// show: errors rarely vanish on the way.
func (r *Report) doubt() {
	worst, known := 0.0, false
	for i := range r.Outputs {
		d := &r.Outputs[i]
		if d.State == profile.Differs {
			return
		}
		n, ok := Noise(d)
		worst, known = max(worst, n), known || ok
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		n, ok := Noise(row.Output)
		row.Doubtful = known && ok && !row.Certain && row.Output.State == profile.Differs && n >= vanished*worst
	}
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
		if n, _ := Noise(r.Rows[i].Output); !r.Rows[i].Doubtful {
			before = max(before, n)
		}
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
