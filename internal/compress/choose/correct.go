package choose

import "github.com/opmeter/opmeter/study"

// Correction scales curves by what a plan did when it was run. The zero value changes nothing.
type Correction struct {
	// Gain multiplies what changes save of the time, Loss what they lose; 0 stands for 1.
	Gain, Loss float64
	// Extra is lost by each changed layer besides: the share of a loss where none was expected.
	Extra float64
}

// Limits on a factor: what is beyond them is noise, or another reason than the curves.
const (
	minFactor = 0.05
	maxFactor = 20
)

// Correct compares what a plan promised with what it did and returns the correction for the next
// one, on top of the one that the plan was made with; added is the speed-up that it was chosen by ([Added]), 0 where there is none.
// Speed-ups are compared rather than times: both of a speed-up are of the same turns. Without a measured outcome it returns the old one.
func Correct(p *study.Plan, added float64, m Metric, old Correction) Correction {
	if p.Measured == nil {
		return old
	}
	out := Correction{Gain: or1(old.Gain), Loss: or1(old.Loss), Extra: old.Extra}
	did, is := p.Measured.Speedup.Best()
	if is && added > 0 && did > 0 && added != 1 {
		out.Gain = clamp(out.Gain*(1-1/did)/(1-1/added), minFactor, maxFactor)
	}
	said, ok := p.Predicted.Loss.Best()
	did, is = p.Measured.Loss.Best()
	if !is {
		return out
	}
	// A ratio of no noise at all is none that can be shown: nothing was expected.
	if said = m.Bound(said); !ok {
		said = 0
	}
	did = max(0, m.Bound(did))
	changed := 0
	for _, c := range p.Choices {
		if !c.Change.IsZero() {
			changed++
		}
	}
	switch {
	case said > 0:
		f := clamp(did/said, minFactor, maxFactor)
		out.Loss, out.Extra = clamp(out.Loss*f, minFactor, maxFactor), out.Extra*f
	case changed > 0:
		out.Extra += did / float64(changed)
	}
	return out
}

func or1(f float64) float64 {
	if f == 0 {
		return 1
	}
	return f
}

func clamp(v, lo, hi float64) float64 { return max(lo, min(hi, v)) }

// ratio corrects a time by the unchanged one; none becomes less than nothing.
func (c Correction) ratio(r interval) interval {
	g := or1(c.Gain)
	at := func(v float64) float64 { return max(0, 1-g*(1-v)) }
	return interval{at(r.lo), at(r.mid), at(r.hi)}
}

// loss corrects an additive loss.
func (c Correction) loss(v interval) interval {
	return v.times(or1(c.Loss)).plus(interval{c.Extra, c.Extra, c.Extra})
}
