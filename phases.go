package opmeter

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/measure/host"
	"github.com/opmeter/opmeter/internal/measure/phases"
	"github.com/opmeter/opmeter/internal/runtime/llm"
	"github.com/opmeter/opmeter/profile"
)

// Bounds of phases.
const (
	mostPhases = 16
	mostTokens = 1 << 20
)

// Phases lists the phases of a language model with caches of keys and values. Caches are filled with
// random numbers, in place of generating them. Tokenizer and sampling are not included.
//
// A model with an encoder has its runs as phases, too. If its file leaves the length of the encoder's
// input open, as those of T5 do, prompts are what the encoder reads, and prefill has one token.
type Phases struct {
	// Prompts are numbers of tokens: each is a prefill with an empty cache, or a run of an encoder.
	Prompts []int
	// Contexts are numbers of positions in the cache: each is a decode of one token.
	Contexts []int
}

// DefaultPhases returns phases that suit a model: a prompt of 128 tokens, or 4 for a decoder beside
// an encoder of sound or images, and contexts of 0 and 1024 positions, or less in a model with fewer
// positions. It is nil for a model without caches, or one whose phases cannot be run.
func DefaultPhases(m *Model) *Phases {
	l, err := m.language()
	if l == nil || err != nil {
		return nil
	}
	p := &Phases{Prompts: []int{128}, Contexts: []int{0, 1024}}
	n := l.decoder.l.Context
	if n > 0 {
		p.Contexts[1] = min(p.Contexts[1], n-1)
	}
	switch {
	case l.open:
		if e := l.encoder.l; e != nil && e.Context > 0 {
			p.Prompts[0] = min(p.Prompts[0], e.Context)
		}
	case l.decoder.l.Encoded():
		p.Prompts[0] = startTokens
		fallthrough
	case n > 0:
		p.Prompts[0] = min(p.Prompts[0], max(n/2, 1))
	}
	p.Contexts = slices.Compact(p.Contexts)
	if l.check(p, []int{1}) != nil {
		return nil
	}
	return p
}

// startTokens is the number of tokens that Whisper starts with: the language and what to do.
const startTokens = 4

// validate checks the phases without a model, with the options that they exclude.
func (p *Phases) validate(o *Options) error {
	for _, x := range []struct {
		name string
		list []int
		low  int
	}{{"Prompts", p.Prompts, 1}, {"Contexts", p.Contexts, 0}} {
		for i, v := range x.list {
			if v < x.low || v > mostTokens {
				return wrong("Phases."+x.name, "use %d to %d, not %d", x.low, mostTokens, v)
			}
			if slices.Contains(x.list[:i], v) {
				return wrong("Phases."+x.name, "has %d twice", v)
			}
		}
	}
	if n := len(p.Prompts) + len(p.Contexts); n < 1 || n > mostPhases {
		return wrong("Phases", "use 1 to %d prompts and contexts together, not %d", mostPhases, n)
	}
	in := &o.Inputs
	for _, x := range append(alone(o), []exclusion{
		{"Inputs.Shapes", len(in.Shapes) > 0},
		{"Inputs.Dims", len(in.Dims) > 0},
		{"Inputs.Files", len(in.Files) > 0},
		{"Inputs.Zeros", in.Zeros},
		{"Inputs.Overrides", in.Overrides != ""},
	}...) {
		if x.set {
			return wrong(x.name, "%s", "leave it out with phases, which set the inputs and run one after the other")
		}
	}
	return nil
}

// phaseInputs makes the inputs of a phase.
type phaseInputs struct {
	model *llm.Model
	llm.Phase
}

// places pairs caches with the memory that they may be written to: all, or those whose operators
// accept buffers.
func (p *phaseInputs) places(buffers bool) (all []host.Carry) {
	for _, pair := range p.model.Pairs(buffers) {
		all = append(all, host.Carry{Output: pair[1], Input: pair[0]})
	}
	return all
}

// profilePhases measures the phases of the options, interleaved, and makes one profile of them.
func (m *Model) profilePhases(ctx context.Context, o Options) (*profile.Profile, error) {
	h, err := o.host(m)
	if err != nil {
		return nil, err
	}
	l, runs, parts, err := m.phases(&o)
	if err != nil {
		return nil, err
	}
	return measureRuns(ctx, o, runs, parts, holds(parts, runs, h.Feed.MaxBytes),
		func(i int, one *Options) {
			one.Inputs.phase = &phaseInputs{parts[i].l, runs[i].Phase}
			// OpenVINO, too, writes new tokens to the buffers of GroupQueryAttention.
			one.Inputs.phase.Buffers = true
		},
		func() *profile.Profile {
			p := phases.Merge(l.decoder.l, runs)
			if p != nil {
				l.complete(p)
			}
			return p
		})
}

// phases returns the language model, the runs of the options' phases, and the part that each runs.
func (m *Model) phases(o *Options) (*language, []phases.Run, []part, error) {
	l, err := m.language()
	if err == nil && l == nil {
		err = errors.New("the model has no caches of keys and values, such as the inputs past_key_values.* of language models: leave the phases out")
	}
	if err == nil {
		err = l.check(o.Phases, o.batches())
	}
	if _, ok := errors.AsType[*OptionError](err); ok {
		return nil, nil, nil, err
	} else if err != nil {
		return nil, nil, nil, &OptionError{Option: "Phases", Text: err.Error(), Err: err}
	}
	runs, parts := l.list(o.Phases, o.batches())
	l.decoder.l.Share(longest(runs))
	return l, runs, parts, nil
}

// complete adds to a profile of phases what the parts of the model say.
func (l *language) complete(p *profile.Profile) {
	if m := l.decoder.m; m != nil {
		m.longest(l.decoder.l, p)
	}
	p.Findings = append(p.Findings, l.findings()...)
}

// longest adds what a decode with the longest context needs to the memory by context.
func (m *Model) longest(l *llm.Model, p *profile.Profile) {
	known := p.Language.Memory
	n, batch := len(known), 1
	if p.Settings.Batch != nil {
		batch = int(*p.Settings.Batch)
	}
	if n == 0 || l.Shared || l.Context <= 1 || known[n-1].Context >= int64(l.Context-1) {
		return
	}
	o := Options{Inputs: Inputs{phase: &phaseInputs{l, llm.Phase{Batch: batch, Tokens: 1, Depth: l.Context - 1, Buffers: true}}}}
	h, err := o.host(m)
	if err != nil {
		return
	}
	plan := int64(-1)
	err = m.in.Reading(func() (err error) {
		plan, err = host.PlanBytes(m.in.Graph, h.Feed, h.InPlace)
		return err
	})
	if err == nil { // a context that does not fit into the memory has no plan
		p.Language.Memory = append(known, phases.ContextMemory(l, o.Inputs.phase.Phase, known[n-1].WeightsBytes, plan))
	}
}

// group is a number of measurements under one lease.
type group struct {
	// together says that they are interleaved and share the memory.
	together bool
	count    int
	turns    external.Interleaver
}

// measure makes the profile of one of them.
func (g *group) measure(ctx context.Context, m *Model, o Options, r *phases.Run) (err error) {
	var turn *external.Turn
	if g.together {
		turn = g.turns.Join()
		defer turn.Leave()
		if err := turn.Wait(ctx); err != nil {
			return err
		}
	}
	if o.Engine != nil {
		if r.Counts, err = m.count(o.Inputs, false); err != nil {
			return err
		}
		r.Profile, err = m.profileExternal(ctx, o, turn)
		return err
	}
	h, err := o.host(m)
	if err != nil {
		return err
	}
	h.Leased = true
	if turn != nil {
		h.Feed.MaxBytes /= g.count
		h.Turn = turn.Wait
	}
	r.Profile, err = m.collect(ctx, h, o.Journal)
	return err
}

// holds reports whether a limit of memory holds a session for each phase: weights as the engine packs
// them, and the caches before and after.
func holds(parts []part, runs []phases.Run, limit int) bool {
	if limit <= 0 {
		return true
	}
	need := 0
	for i := range runs {
		l, p := parts[i].l, runs[i].Phase
		caches := l.CacheBytes(p.Batch, p.Tokens+p.Depth) + l.CrossBytes(p.Batch, l.Positions(p))
		need = max(need, 2*parts[i].weights()+3*int(caches))
	}
	return need < limit/len(runs)
}

// share makes the progress of one of several measurements that of all: that of the one which has come
// least far.
func share(show func(phase string, fraction float64), n int) func(i int) func(string, float64) {
	var mu sync.Mutex
	far := make([]float64, n)
	return func(i int) func(string, float64) {
		if show == nil {
			return nil
		}
		return func(phase string, f float64) {
			mu.Lock()
			defer mu.Unlock()
			far[i] = f
			show(phase, slices.Min(far))
		}
	}
}
