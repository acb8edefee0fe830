package profile

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
)

// BoundPart is the part of the layers' time that one limit bounds.
type BoundPart struct {
	// Bound is the limit, and Level the level of memory of [BoundMemory].
	Bound Bound  `json:"bound"`
	Level string `json:"level,omitzero"`
	// Share is the part of the time of all layers.
	Share float64 `json:"share"`
	// Use is the mean utilisation of the limit by these layers, weighted by their time. It
	// is absent where the bound is unknown.
	Use *float64 `json:"use,omitzero"`
}

// levelOrder has the levels of memory from the fastest to the slowest.
var levelOrder = []string{"L1", "L2", "L3", "memory"}

// order is the place of a part: arithmetic, memory from the fastest level, overhead, unknown.
func (b *BoundPart) order() int {
	at := slices.Index([]Bound{BoundCompute, BoundMemory, BoundOverhead, BoundUnknown}, b.Bound) * 10
	if b.Bound != BoundMemory {
		return at
	}
	if i := slices.Index(levelOrder, b.Level); i >= 0 {
		return at + i
	}
	return at + len(levelOrder)
}

// BoundParts divides the time of the layers among what bounds them by their [Layer.Roof]; nil
// where no layer has a bound. The shares add up to 1.
func (p *Profile) BoundParts() []BoundPart {
	var parts []BoundPart
	var sum float64
	known := false
	for i := range p.Layers {
		l := &p.Layers[i]
		s, ok := l.Latency.Best()
		if !ok || !(s > 0) || l.State == NotReached {
			continue
		}
		sum += s
		b := BoundPart{Bound: BoundUnknown}
		var use float64
		if r := l.Roof; r != nil && r.Bound != "" {
			known, b.Bound = true, r.Bound
			if r.Bound == BoundMemory {
				b.Level = r.Level
			}
			if r.Use != nil {
				use = *r.Use
			}
		}
		at := slices.IndexFunc(parts, func(x BoundPart) bool { return x.Bound == b.Bound && x.Level == b.Level })
		if at < 0 {
			at = len(parts)
			if b.Bound != BoundUnknown {
				b.Use = new(0.0)
			}
			parts = append(parts, b)
		}
		parts[at].Share += s
		if u := parts[at].Use; u != nil {
			*u += use * s
		}
	}
	if !known {
		return nil
	}
	for i := range parts {
		if u := parts[i].Use; u != nil {
			*u /= parts[i].Share
		}
		parts[i].Share /= sum
	}
	sorting.Stable(parts, func(a, b BoundPart) int { return cmp.Compare(a.order(), b.order()) })
	return parts
}

// Most by which a layer may exceed a measured peak and raise it. Winograd F(4×4, 3×3) does a
// quarter of the multiplications that are counted. A layer that only reads is faster than the
// copy that measures a memory level, at most twice. A layer beyond that did not do the work that
// is counted, such as a copy that became a view, or its time is too short to be measured.
const (
	mostOpsRaise   = 4
	mostBytesRaise = 2
)

// roofs places all layers, each with those that are fused into it, under the peaks. On this
// computer it raises a measured peak to the rate of the fastest layer.
func (p *Profile) roofs() {
	w := newWholes(p)
	whole := make([]Layer, len(p.Layers))
	for i := range p.Layers {
		whole[i] = p.Layers[i]
		if whole[i].FusedInto == nil {
			whole[i] = w.complete(i)
		}
	}
	host := p.Target.Kind == TargetHost
	if host {
		p.Target.raise(whole)
	}
	for i := range p.Layers {
		r := p.Target.RoofOf(&whole[i])
		if host && r != nil && r.Use != nil && *r.Use > 1 {
			r = nil // see mostOpsRaise
		}
		p.Layers[i].Roof = r
	}
	p.Bounds = p.BoundParts()
}

// raise sets each measured peak to the greater of its measured rate and the rates that layers
// reach.
func (t *Target) raise(layers []Layer) {
	if len(t.Peaks) == 0 && len(t.Levels) == 0 {
		return
	}
	t.Peaks, t.Levels = slices.Clone(t.Peaks), slices.Clone(t.Levels)
	ops, bytes := make([]float64, len(t.Peaks)), make([]float64, len(t.Levels))
	for i := range t.Peaks {
		k := &t.Peaks[i]
		reset(&k.OpsPerSecond, &k.MeasuredOpsPerSecond, &k.ReachedBy)
		ops[i] = mostOpsRaise * k.OpsPerSecond
	}
	for i := range t.Levels {
		l := &t.Levels[i]
		reset(&l.BytesPerSecond, &l.MeasuredBytesPerSecond, &l.ReachedBy)
		bytes[i] = mostBytesRaise * l.BytesPerSecond
	}
	for i := range layers {
		l := &layers[i]
		s, ok := l.Latency.Best()
		if !ok || !(s > 0) || l.State == NotReached {
			continue
		}
		at, dtype := int64(i), t.peakType(l)
		k := slices.IndexFunc(t.Peaks, func(k Peak) bool { return k.DType == dtype })
		level := -1
		var moved float64
		if l.BytesRead != nil && l.BytesWritten != nil {
			moved = float64(*l.BytesRead) + float64(*l.BytesWritten)
			level = t.levelOf(moved / max(1, calls(l)))
		}
		var rate float64
		if l.Ops != nil {
			rate = float64(*l.Ops) / s
		}
		// A layer that is beyond one limit tells nothing of the other.
		if k >= 0 && rate > ops[k] || level >= 0 && moved/s > bytes[level] {
			continue
		}
		if k >= 0 {
			p := &t.Peaks[k]
			reach(rate, at, &p.OpsPerSecond, &p.MeasuredOpsPerSecond, &p.ReachedBy)
		}
		if level >= 0 {
			v := &t.Levels[level]
			reach(moved/s, at, &v.BytesPerSecond, &v.MeasuredBytesPerSecond, &v.ReachedBy)
		}
	}
	// A faster level is at least as fast as the next one.
	for i := len(t.Levels) - 2; i >= 0; i-- {
		if next := &t.Levels[i+1]; next.ReachedBy != nil {
			v := &t.Levels[i]
			reach(next.BytesPerSecond, *next.ReachedBy, &v.BytesPerSecond, &v.MeasuredBytesPerSecond, &v.ReachedBy)
		}
	}
	for i := range t.Peaks {
		if v := t.Peaks[i].OpsPerSecond; t.PeakOpsPerSecond != nil && v > *t.PeakOpsPerSecond {
			t.PeakOpsPerSecond = new(v)
		}
	}
	if n := len(t.Levels); n > 0 && t.PeakBytesPerSecond != nil && t.Levels[n-1].BytesPerSecond > *t.PeakBytesPerSecond {
		t.PeakBytesPerSecond = new(t.Levels[n-1].BytesPerSecond)
	}
}

// reset restores the measured rate of a peak.
func reset(rate *float64, measured **float64, by **int64) {
	if *measured != nil {
		*rate, *measured, *by = **measured, nil, nil
	}
}

// reach raises a peak to the rate of a layer.
func reach(v float64, layer int64, rate *float64, measured **float64, by **int64) {
	if !(v > *rate) {
		return
	}
	if *measured == nil {
		*measured = new(*rate)
	}
	*rate, *by = v, &layer
}

func (c *checker) boundParts(parts []BoundPart) {
	for i := range parts {
		b := &parts[i]
		at := fmt.Sprintf("bounds[%d]", i)
		c.word(at+".bound", string(b.Bound), string(BoundCompute), string(BoundMemory), string(BoundOverhead), string(BoundUnknown))
		c.fraction(at+".share", &b.Share)
		c.reals(at, realNamed{"use", b.Use})
	}
}

// currentBounds replaces codes of earlier versions and adds the parts that these lack.
func (p *Profile) currentBounds() {
	for i := range p.Layers {
		if r := p.Layers[i].Roof; r != nil && r.Bound == oldOverhead {
			r.Bound = BoundOverhead
		}
	}
	if p.Bounds == nil {
		p.Bounds = p.BoundParts()
	}
}
