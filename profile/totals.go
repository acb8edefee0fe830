package profile

import (
	"fmt"
	"math"
	"math/big"
	"slices"
)

// scaled lists the counts that go with the number of calls.
func scaled(l *Layer) []**int64 {
	return []**int64{&l.Ops, &l.MACs, &l.MACsExecuted, &l.MLTKOps, &l.MLTKMACs, &l.BytesRead, &l.BytesWritten}
}

// ScaleCounts multiplies the counts of work and traffic, such as by the number of
// calls, and rounds them to integers. One that gets too large for 64 bits is not
// known any more.
func (l *Layer) ScaleCounts(by float64) {
	for _, v := range scaled(l) {
		if *v != nil {
			*v = times(**v, by, 1)
		}
	}
}

// OneCall returns a copy of the layer with the work and traffic of one of its calls.
// Counts that this does not determine are unknown in it, and all are without calls.
func (l *Layer) OneCall() Layer {
	out := *l
	if l.Calls == nil || *l.Calls == 1 {
		return out
	}
	n := int64(*l.Calls)
	for _, c := range scaled(&out) {
		switch v := *c; {
		case v == nil:
		case n < 1 || float64(n) != *l.Calls || *v%n != 0:
			*c = nil
		default:
			*c = new(*v / n)
		}
	}
	return out
}

// times is n*by/per as an integer, exact before it is rounded; nil where that is
// not known: more than 64 bits, or anything but nothing out of no calls.
func times(n int64, by, per float64) *int64 {
	if by == per {
		return &n
	}
	f, p := new(big.Rat).SetFloat64(by), new(big.Rat).SetFloat64(per)
	if f == nil || p == nil || p.Sign() == 0 {
		return nil
	}
	x := new(big.Rat).SetInt64(n)
	x.Quo(x.Mul(x, f), p)
	x.Add(x, big.NewRat(1, 2))
	// Counts are not negative: division that cuts the rest off rounds down.
	v := new(big.Int).Quo(x.Num(), x.Denom())
	if !v.IsInt64() {
		return nil
	}
	return new(v.Int64())
}

// unreached sets the counts of layers that no inference reached to zero, so that no sum over the
// layers holds them. Their parameters stay: the file has them.
func (p *Profile) unreached() {
	for i := range p.Layers {
		if l := &p.Layers[i]; l.State == NotReached {
			l.Calls = new(0.0)
			l.ScaleCounts(0)
		}
	}
}

// sum fills in totals: counts by the rule of [Totals], and other figures that add
// up where the source gave none for the whole.
func (p *Profile) sum() {
	t := &p.Totals
	t.Layers = new(int64(len(p.Layers)))
	var unsupported, uncounted int64
	counted := p.Select(func(l *Layer) bool { return !l.Constant && l.State != NotReached })
	for _, l := range counted {
		if l.State == Unsupported {
			unsupported++
		}
		if l.Ops == nil {
			uncounted++
		}
	}
	t.UnsupportedLayers = &unsupported
	t.UncountedLayers = nil
	if int(uncounted) < len(counted) || len(counted) == 0 {
		t.UncountedLayers = &uncounted
	}
	all := p.Select(func(*Layer) bool { return true })
	for _, q := range p.AllQuantities() {
		if !q.Adds || q.Derived() || q.Key == "share" {
			continue
		}
		e, known := lookup(q.Key)
		if known && e.layer != nil && e.total != nil && e.total(t).count != nil {
			// layers cannot tell what they share
			once := q.Key == "params" || q.Key == "weights_bytes"
			if have := e.total(t).count; !once || *have == nil {
				if sum, ok := counted.count(&e); ok {
					*have = sum
				}
			}
			continue
		}
		if t.Figure(q.Key) != nil {
			continue // the source knows better than a sum
		}
		m, whole := all.total(&q)
		if slices.Contains(counters, q.Key) && !whole && m != nil && m.Kind == Imported {
			continue // a record without the cost of a layer that ran says nothing about the whole
		}
		if q.Key == "latency_s" && t.Figures[operatorsApart] != nil {
			continue
		}
		if m != nil {
			_ = t.Set(q.Key, m)
		}
	}
}

// operatorsApart is the sum of the operators where a record tells it apart from the latency: if it
// has no latency then, that is unknown.
const operatorsApart = "recorded_operators_s"

// workCounts are the counts that every operator has in principle: where one lacks it, it is
// not known.
var workCounts = map[string]bool{"ops": true, "macs": true, "macs_executed": true}

// count adds up a count exactly; ok is false where no layer has it, and the sum is
// nil where it has more than 64 bits, or where it is nothing beside layers whose work
// is not known.
func (ls Layers) count(e *entry) (sum *int64, ok bool) {
	var s int64
	unknown := false
	for _, l := range ls {
		v := *e.layer(l).count
		if v == nil {
			unknown = true
			continue
		}
		own := *v - l.shared(e.Key)
		if own > math.MaxInt64-s {
			return nil, true
		}
		s, ok = s+own, true
	}
	if s == 0 && unknown && workCounts[e.Key] {
		return nil, true // nothing of what is known says nothing about the rest
	}
	return &s, ok
}

// total is the sum of the layers' figures as a metric, nil where none is known. whole reports
// whether all layers that ran have a figure.
func (ls Layers) total(q *Quantity) (m *Metric, whole bool) {
	v, ok := ls.SumOf(q)
	if !ok {
		return nil, false
	}
	m = &Metric{Kind: Counted, Median: &v}
	var have, want int
	for _, l := range ls {
		f := l.Figure(q.Key)
		if _, ok := f.Best(); ok {
			m.Kind = weakest(m.Kind, f.Kind)
			have++
		} else if !l.Constant && (l.State == Ran || l.State.Blank()) {
			want++
		}
	}
	switch {
	case want > 0:
		m.Method = fmt.Sprintf("sum of the layers, of which %d of %d have a figure", have, have+want)
	case m.Kind != Counted:
		m.Method = "sum of the layers"
	}
	return m, want == 0
}

// counters stand for the time where no layer has one.
var counters = []string{"latency_s", "cpu_cycles", "instructions", "ticks"}

// Costs lists the keys of the quantities that say what an inference costs, the best first: its
// time, and the counts that stand for it. The caller must not change the list.
func Costs() []string { return counters }

// Cost returns the figure of the whole that says what an inference costs, with the key of its
// quantity: its time, or where that is not known the cycles, instructions or ticks that stand for
// it. nil where nothing was measured.
func (p *Profile) Cost() (key string, m *Metric) {
	for _, key := range counters {
		if m := p.Totals.Figure(key); m != nil {
			return key, m
		}
	}
	return "", nil
}

// shares divides the time among the layers, or the counts that stand for it. Shares that a
// source gave itself stay where it gave no time.
func (p *Profile) shares() {
	all := p.Select(func(*Layer) bool { return true })
	for _, key := range counters {
		whole, ok := all.Sum(key)
		if !ok {
			continue
		}
		if key != "latency_s" && slices.ContainsFunc(p.Layers, func(l Layer) bool { return l.Share != nil }) {
			return
		}
		for i := range p.Layers {
			l := &p.Layers[i]
			l.Share = nil
			if v, has := l.Figure(key).Best(); has && whole > 0 {
				l.Share = new(v / whole)
			}
		}
		if key == "latency_s" {
			p.rank(whole)
		}
		return
	}
}
