package gate

import (
	"cmp"
	"math"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
)

// OutputError is the key of the difference of the outputs: 0 for equal outputs. For integers it is
// the largest difference in quantisation steps, for floats the root mean square of the differences
// divided by that of the base's elements.
const OutputError = "output_error"

// whole lists the figures that are fields of a profile without a known quantity.
var whole = []struct {
	profile.Quantity
	of func(p *profile.Profile) *int64
}{
	{profile.Quantity{Key: "layers", Name: "Operators", Whole: true, Better: -1}, func(p *profile.Profile) *int64 { return p.Totals.Layers }},
	{profile.Quantity{Key: "unsupported_layers", Name: "Unsupported operators", Whole: true, Better: -1}, func(p *profile.Profile) *int64 { return p.Totals.UnsupportedLayers }},
	{profile.Quantity{Key: "uncounted_layers", Name: "Operators without a count", Whole: true, Better: -1}, func(p *profile.Profile) *int64 { return p.Totals.UncountedLayers }},
	{profile.Quantity{Key: "file_bytes", Unit: "B", Name: "Model file", Whole: true, Better: -1}, func(p *profile.Profile) *int64 { return p.Model.FileBytes }},
	{profile.Quantity{Key: "ram_bytes", Unit: "B", Name: "RAM", Whole: true, Better: -1}, targetOnly(func(t *profile.Totals) *int64 { return t.RAMBytes })},
	{profile.Quantity{Key: "flash_bytes", Unit: "B", Name: "Flash", Whole: true, Better: -1}, targetOnly(func(t *profile.Totals) *int64 { return t.FlashBytes })},
	{profile.Quantity{Key: "peak_bytes", Unit: "B", Name: "Peak activation memory", Whole: true, Better: -1}, planned(func(m *profile.Memory) *int64 { return m.PeakBytes })},
	{profile.Quantity{Key: "arena_bytes", Unit: "B", Name: "Arena", Whole: true, Better: -1}, planned(func(m *profile.Memory) *int64 { return m.ArenaBytes })},
	{profile.Quantity{Key: "tflm_arena_bytes", Unit: "B", Name: "TFLM arena", Whole: true, Better: -1}, planned(func(m *profile.Memory) *int64 { return m.TFLMArenaBytes })},
	{profile.Quantity{Key: OutputError, Name: "Output difference", Better: -1}, func(*profile.Profile) *int64 { return nil }},
}

// planned is a figure of the memory plan.
func planned(f func(*profile.Memory) *int64) func(*profile.Profile) *int64 {
	return func(p *profile.Profile) *int64 {
		if p.Memory == nil {
			return nil
		}
		return f(p.Memory)
	}
}

// targetOnly is a figure that depends on the kernels of this computer where the target is the host:
// it would not be exact on every machine.
func targetOnly(f func(*profile.Totals) *int64) func(*profile.Profile) *int64 {
	return func(p *profile.Profile) *int64 {
		if p.Target.Kind == profile.TargetHost {
			return nil
		}
		return f(&p.Totals)
	}
}

// Lookup returns the quantity of a figure that a rule may name.
func Lookup(key string) (profile.Quantity, bool) {
	for i := range whole {
		if whole[i].Key == key {
			return whole[i].Quantity, true
		}
	}
	q, ok := profile.Lookup(key)
	return q, ok && !q.Derived()
}

// Quantities lists the figures of whole models, also derived ones, which no rule may name.
func Quantities() (out []profile.Quantity) {
	for i := range whole {
		out = append(out, whole[i].Quantity)
	}
	return append(out, profile.Quantities()...)
}

// Keys lists the figures that a rule may name.
func Keys() (out []string) {
	for _, q := range Quantities() {
		if !q.Derived() {
			out = append(out, q.Key)
		}
	}
	return out
}

// Counts returns the figures of a profile without a known quantity, by key. Its layers may be absent.
func Counts(p *profile.Profile) map[string]float64 {
	out := map[string]float64{}
	for i := range whole {
		if n := whole[i].of(p); n != nil {
			out[whole[i].Key] = float64(*n)
		}
	}
	return out
}

// Values returns the figures of a profile by key. Unknown figures are absent.
func Values(p *profile.Profile) map[string]float64 {
	out := Counts(p)
	all := p.AllQuantities()
	for i := range all {
		if all[i].Derived() {
			continue
		}
		if v, ok := p.Totals.Value(all[i].Key); ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
			out[all[i].Key] = v
		}
	}
	if v, ok := layerSum(p, "instructions"); ok {
		// The counter is read between layers, too: only their sum is exact.
		out["instructions"] = v
	}
	return out
}

// kindOf is how a figure of a profile came about.
func kindOf(p *profile.Profile, key string) profile.Kind {
	if p == nil {
		return profile.Counted
	}
	if m := p.Totals.Figure(key); m != nil {
		return m.Kind
	}
	return profile.Counted
}

// layerSum adds up the figure of the layers, false where one that ran has none.
func layerSum(p *profile.Profile, key string) (sum float64, ok bool) {
	for i := range p.Layers {
		if v, known := p.Layers[i].Value(key); known {
			sum, ok = sum+v, true
		}
	}
	return sum, ok
}

// mostChanges bounds the layers that a result lists.
const mostChanges = 50

// Changes lists the layers of two profiles that differ in a figure, the largest change first.
func Changes(base, fresh *profile.Profile, key string) []LayerChange {
	var out []LayerChange
	for _, pair := range align.Layers(base, fresh) {
		a, b := partSum(base, pair.A, key), partSum(fresh, pair.B, key)
		if a == nil && b == nil || a != nil && b != nil && *a == *b {
			continue
		}
		c := LayerChange{Figure: key, Kind: string(pair.Kind), Base: a, New: b, Certain: pair.Certain}
		l := align.Leading(fresh.At(pair.B))
		if l == nil {
			l = align.Leading(base.At(pair.A))
		}
		if l != nil {
			c.Name, c.Op = l.Name, l.Op
		}
		out = append(out, c)
	}
	sorting.Stable(out, func(a, b LayerChange) int { return cmp.Compare(math.Abs(b.change()), math.Abs(a.change())) })
	return out[:min(len(out), mostChanges)]
}

// change is the difference of the figure, all of it for a layer that only one version has.
func (c *LayerChange) change() float64 {
	d := 0.0
	if c.New != nil {
		d += *c.New
	}
	if c.Base != nil {
		d -= *c.Base
	}
	return d
}

// partSum adds up the figure of some layers, nil where none is known.
func partSum(p *profile.Profile, layers []int64, key string) *float64 {
	var sum *float64
	for _, i := range layers {
		if v, ok := p.Layers[i].Value(key); ok {
			if sum == nil {
				sum = new(float64)
			}
			*sum += v
		}
	}
	return sum
}
