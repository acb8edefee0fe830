package llm

import (
	"math"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/synth"
)

// Phase is a run of a language model: so many new tokens of each sequence of a batch, after so many
// in the cache. Prefill has an empty cache, decode one new token.
type Phase struct {
	Batch, Tokens, Depth int
	// Buffers gives caches that grow capacity for the new tokens, where their operator accepts it: it
	// writes these in place.
	Buffers bool
	// Encoder is the number of positions that an encoder made, where the file leaves it open, and
	// Encoded says that their keys and values are in caches.
	Encoder int
	Encoded bool
}

// positions is the number of positions of a sequence after the phase.
func (p Phase) positions() int { return p.Tokens + p.Depth }

// Check returns an [UnsupportedError] if a model cannot run a phase.
func (m *Model) Check(p Phase) error {
	if m.Context > 0 && p.positions() > m.Context {
		return unsupported("the model has %d positions: %d in the cache and %d new are too many", m.Context, p.Depth, p.Tokens)
	}
	_, err := m.Feed(inputs.Options{}, p)
	return err
}

// Feed returns options that make the inputs of a phase. Tokens are random, and caches hold uniform
// random numbers from -1 to 1. Mask, positions and lengths fit. The error is an [UnsupportedError].
func (m *Model) Feed(o inputs.Options, p Phase) (inputs.Options, error) {
	f := feeder{m: m, p: p, shapes: map[string][]int{}, fills: map[string]synth.Fill{}}
	o.Batch = 0 // the shapes have it
	for i, id := range m.g.Inputs {
		if r, ok := m.Inputs[i]; ok {
			if err := f.input(m.g.Values[id], r); err != nil {
				return o, err
			}
		}
	}
	for i := range m.Caches {
		c := &m.Caches[i]
		v := m.g.Values[m.g.Inputs[c.Input]]
		n := p.Depth
		switch {
		case c.Kind == Cross:
			n = m.Positions(p)
		case m.Shared:
			n = m.Capacity
		case p.Buffers && c.Buffer:
			n = p.positions()
		}
		if b := c.shape[c.Batch]; b >= 0 && b != p.Batch {
			return o, unsupported("cache %q is for a batch of %d, not %d", v.Name, b, p.Batch)
		}
		f.shapes[v.Name] = c.sized(p.Batch, n)
		if !c.kind.IsInteger() {
			f.fills[v.Name] = synth.Fill{Range: &[2]float64{-1, 1}}
		}
	}
	o.Shapes, o.Overrides = f.shapes, synth.Overrides{Fill: f.fills}
	return o, nil
}

// Positions is the number of positions of an encoder in a phase.
func (m *Model) Positions(p Phase) int {
	if m.Encoder > 0 {
		return m.Encoder
	}
	return p.Encoder
}

// maxElements bounds the elements of an input that are made one by one.
const maxElements = 1 << 24

type feeder struct {
	m      *Model
	p      Phase
	shapes map[string][]int
	fills  map[string]synth.Fill
}

// input sets the shape and the elements of an input with a role.
func (f *feeder) input(v *graph.Value, r Role) error {
	if !v.HasShape || r == Mask && len(v.Shape) == 0 {
		return unsupported("input %q has no dimensions in the file", v.Name)
	}
	shape, err := f.shape(v, r)
	if err != nil {
		return err
	}
	f.shapes[v.Name] = shape
	n := tensor.Elements(shape)
	if n > maxElements {
		return unsupported("input %q needs %d elements, more than %d: use a smaller batch, prompt or context", v.Name, n, maxElements)
	}
	all := func(x float64) { f.fills[v.Name] = synth.Fill{Const: &x} }
	each := func(at func(i int) float64) {
		values := make([]float64, n)
		for i := range values {
			values[i] = at(i)
		}
		f.fills[v.Name] = synth.Fill{Values: values}
	}
	switch r {
	case Tokens:
		if f.m.Vocabulary > 0 {
			f.fills[v.Name] = synth.Fill{Mod: uint64(f.m.Vocabulary)}
		}
	case Embeddings, States, Features:
		f.fills[v.Name] = synth.Fill{Range: &[2]float64{-1, 1}}
	case Mask:
		if at := f.mask(v.Type, shape); len(shape) <= 2 && shape[len(shape)-1] == f.p.positions() {
			all(at(0))
		} else {
			each(at)
		}
	case Positions:
		each(func(i int) float64 { return float64(f.p.Depth + i%f.p.Tokens) })
	case LastKey:
		all(float64(f.p.positions() - 1))
	case Total:
		all(float64(f.p.positions()))
	case Past:
		all(float64(f.p.Depth))
	case UseCache:
		on := 0.0
		if f.p.Depth > 0 || f.p.Encoded {
			on = 1
		}
		all(on)
	case StatesMask:
		if n > 0 {
			all(f.mask(v.Type, shape)(0))
		}
	case Logits, Beams:
		all(1)
	}
	return nil
}

// mask returns the elements of a mask: 1 for each position that counts. A mask with a row for each
// token counts those up to its own. Masks of floating point are added to scores.
func (f *feeder) mask(t tensor.Type, shape []int) func(i int) float64 {
	keys := shape[len(shape)-1]
	on, off := 1.0, 0.0
	if !t.IsInteger() && t != tensor.Bool {
		on, off = 0, -math.MaxFloat32
		if t == tensor.Float16 {
			off = -65504
		}
	}
	return func(i int) float64 {
		last := f.p.positions() - 1
		if len(shape) > 2 {
			last = f.p.Depth + i/keys%f.p.Tokens
		}
		if i%keys <= last {
			return on
		}
		return off
	}
}

// shape returns the shape of an input with a role, in which the file may fix dimensions.
func (f *feeder) shape(v *graph.Value, r Role) ([]int, error) {
	out := make([]int, len(v.Shape))
	for i := range out {
		want, fixed := f.size(r, i, len(out)), v.Shape[i]
		longer := r == Mask && i == len(out)-1 && fixed > want // of a buffer
		switch {
		case r == Features && i > 0 && fixed > 0:
			out[i] = fixed
		case fixed < 0 && want == 0 && r == Features:
			return nil, unsupported("dimension %d of input %q has no size in the file, and a config.json beside the decoder does not tell it: fix it in the file, or leave out the encoder", i, v.Name)
		case fixed < 0:
			out[i] = max(want, 1)
		case want == 0 || fixed == want || longer:
			out[i] = fixed
		default:
			return nil, unsupported("dimension %d of input %q is fixed at %d, and this phase needs %d", i, v.Name, fixed, want)
		}
	}
	return out, nil
}

// framesOfPosition is the number of frames of sound that an encoder makes a position of, where the
// setup says how many positions there are.
const framesOfPosition = 2

// size is what a phase needs of a dimension, 0 for one that does not depend on it.
func (f *feeder) size(r Role, axis, rank int) int {
	type at = map[int]int
	b, n, all := f.p.Batch, f.p.Tokens, f.p.positions()
	last := rank - 1
	sizes := map[Role]at{
		Tokens: {0: b, last: n}, Embeddings: {0: b, last - 1: n}, Mask: {0: b, last: all}, Positions: {last - 1: b, last: n}, LastKey: {0: b},
		States: {0: b, 1: f.m.Positions(f.p)}, StatesMask: {0: b, last: f.m.Positions(f.p)},
		Features: {0: b},
	}
	switch s := &f.m.setup; {
	case r == Features && rank == 3: // [batch, bands, frames]
		sizes[r][1], sizes[r][2] = s.Bands, framesOfPosition*s.Encoder
	case r == Features && rank == 4: // [batch, channels, height, width]
		sizes[r][1], sizes[r][2], sizes[r][3] = s.Channels, s.Pixels, s.Pixels
	}
	if r == Mask && rank > 2 {
		sizes[r][last-1] = n
	}
	return sizes[r][axis]
}
