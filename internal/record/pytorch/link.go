package pytorch

import (
	"github.com/opmeter/opmeter/internal/record/track"
)

// deviceCall is work of a device for a layer in an iteration.
type deviceCall struct {
	iteration, layer int32
	dur              int64
}

// at is the place of a slice.
type at struct{ track, slice int32 }

// link leads the work of devices to the operators that launched it: the launch has the same
// correlation, and lies within the operator. Where it does not, the operator's
// external identifier is the same.
func (p *part) link() (calls []deviceCall) {
	r, t := p.run, &p.run.trace
	launches := map[int64]at{}
	some := false
	for _, x := range p.list {
		k := t.Tracks[x.track]
		for i := range k.Slices {
			s := &k.Slices[i]
			switch p.class(s) {
			case launch:
				if c := p.aux[s.Extra-1].correlation; c >= 0 {
					launches[c] = at{x.track, int32(i)}
				}
			case operator:
				some = true
			}
		}
	}
	var external map[int64]at
	for _, x := range p.list {
		k := t.Tracks[x.track]
		for i := range k.Slices {
			s := &k.Slices[i]
			if p.class(s) != work {
				continue
			}
			a := p.aux[s.Extra-1]
			owner := at{-1, -1}
			if l, ok := launches[a.correlation]; ok && a.correlation >= 0 {
				t.Links = append(t.Links, track.Link{FromTrack: l.track, From: l.slice, ToTrack: x.track, To: int32(i)})
				owner = inOperator(t, l)
				if b := p.aux[t.Tracks[l.track].Slices[l.slice].Extra-1]; a.external < 0 && b.external != b.correlation {
					a.external = b.external
				}
			}
			if owner.slice < 0 && a.external >= 0 && a.external != a.correlation && some {
				if external == nil {
					external = p.externals()
				}
				if o, ok := external[a.external]; ok {
					owner = o
				}
			}
			c := deviceCall{iteration: s.Iteration, dur: s.Dur}
			if owner.slice >= 0 {
				o := &t.Tracks[owner.track].Slices[owner.slice]
				c.iteration, c.layer = o.Iteration, o.Layer
			} else {
				c.layer = r.layer(layerKey{-1, -2 - s.Label, -1}, s.Start)
				r.layers[c.layer].kernel = true
				if !some {
					s.Layer, k.Self[i] = c.layer, s.Dur
				}
			}
			r.layers[c.layer].work(s, &a)
			calls = append(calls, c)
		}
	}
	return calls
}

// work adds work of a device to a layer.
func (l *layer) work(s *track.Slice, a *aux) {
	if l.kernels == nil {
		l.kernels = map[int32]int64{}
	}
	if len(l.kernels) < 1000 {
		l.kernels[s.Label] += s.Dur
	}
	if a.occupancy >= 0 {
		l.busy += float64(a.occupancy) * float64(s.Dur)
		l.known += s.Dur
	}
}

// inOperator finds the innermost operator around a slice.
func inOperator(t *track.Trace, l at) at {
	k := t.Tracks[l.track]
	for i := k.Parents[l.slice]; i >= 0; i = k.Parents[i] {
		if k.Slices[i].Layer >= 0 {
			return at{l.track, i}
		}
	}
	return at{-1, -1}
}

// externals finds operators by their external identifiers.
func (p *part) externals() map[int64]at {
	out := map[int64]at{}
	for _, x := range p.list {
		k := p.run.trace.Tracks[x.track]
		for i := range k.Slices {
			if s := &k.Slices[i]; p.class(s) == operator {
				if n := p.aux[s.Extra-1].external; n >= 0 {
					out[n] = at{x.track, int32(i)}
				}
			}
		}
	}
	return out
}
