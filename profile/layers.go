package profile

import "math"

// Layers is some layers of a profile, for sums over them.
type Layers []*Layer

// Select returns the layers for which keep says so, in their order.
func (p *Profile) Select(keep func(*Layer) bool) Layers {
	var out Layers
	for i := range p.Layers {
		if keep(&p.Layers[i]) {
			out = append(out, &p.Layers[i])
		}
	}
	return out
}

// At returns the layers with some indices, such as those of a pair of the package
// profile/align; an index that no layer has gives none.
func (p *Profile) At(indices []int64) Layers {
	var out Layers
	for _, i := range indices {
		if i >= 0 && i < int64(len(p.Layers)) {
			out = append(out, &p.Layers[i])
		}
	}
	return out
}

// Group is layers that have something in common.
type Group struct {
	// Name is what they have in common.
	Name string
	Layers
}

// Group gathers the layers by a name, in the order in which names first appear.
func (ls Layers) Group(name func(*Layer) string) []Group {
	var out []Group
	at := map[string]int{}
	for _, l := range ls {
		n := name(l)
		i, ok := at[n]
		if !ok {
			i = len(out)
			at[n] = i
			out = append(out, Group{Name: n})
		}
		out[i].Layers = append(out[i].Layers, l)
	}
	return out
}

// Sum adds up the layers' figures with the key of a known quantity: [Layers.SumOf].
// ok is false for a key that is not known, as nothing says then that its figures add
// up.
func (ls Layers) Sum(key string) (sum float64, ok bool) {
	q, known := Lookup(key)
	if !known {
		return 0, false
	}
	return ls.SumOf(&q)
}

// SumOf adds up the layers' figures of a quantity, such as one of
// [Profile.Quantities]; ok is false when none is known, or when figures of that
// quantity do not add up. Weights that several layers read count once. A quotient is
// that of the sums over the layers in which all of its parts are known, so that work
// without a time is not a part of a rate.
func (ls Layers) SumOf(q *Quantity) (sum float64, ok bool) {
	if q.Derived() {
		return ls.quotient(q)
	}
	if !q.Adds {
		return 0, false
	}
	for _, l := range ls {
		if v, has := l.Value(q.Key); has {
			sum, ok = sum+v-float64(l.shared(q.Key)), true
		}
	}
	if math.IsInf(sum, 0) || math.IsNaN(sum) {
		return 0, false // beyond what a figure can be
	}
	return sum, ok
}

// shared returns the part of a layer's count that another layer counts too.
func (l *Layer) shared(key string) int64 {
	var n *int64
	switch key {
	case "params":
		n = l.SharedParams
	case "weights_bytes":
		n = l.SharedWeightsBytes
	}
	if n == nil {
		return 0
	}
	return *n
}

func (ls Layers) quotient(q *Quantity) (float64, bool) {
	var of, per float64
	for _, l := range ls {
		a, b, whole := 0.0, 0.0, true
		for _, k := range q.Of {
			v, ok := l.Value(k)
			a, whole = a+v, whole && ok
		}
		for _, k := range q.Per {
			v, ok := l.Value(k)
			b, whole = b+v, whole && ok
		}
		if whole {
			of, per = of+a, per+b
		}
	}
	if v := of / per; per > 0 && !math.IsInf(v, 0) && !math.IsNaN(v) {
		return v, true
	}
	return 0, false
}
