package opmeter

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/phases"
	"github.com/opmeter/opmeter/internal/runtime/llm"
	"github.com/opmeter/opmeter/profile"
)

// parts are the other files of a language model, and what is known beside the files.
type parts struct {
	encoder, start *Model
	setup          llm.Setup
	excluded       []string
}

func (p *parts) close() (err error) {
	for _, m := range []*Model{p.encoder, p.start} {
		if m != nil {
			err = errors.Join(err, m.Close())
		}
	}
	return err
}

// openParts opens the files of a language model.
func openParts(f *llm.Files) (*Model, error) {
	m, err := openFile(f.Decoder)
	if err != nil {
		return nil, err
	}
	m.parts.setup, m.parts.excluded = f.Setup, f.Excluded
	for _, x := range []struct {
		path string
		to   **Model
	}{{f.Encoder, &m.parts.encoder}, {f.Start, &m.parts.start}} {
		if x.path == "" {
			continue
		}
		if *x.to, err = openFile(x.path); err != nil {
			return nil, errors.Join(err, m.Close())
		}
	}
	return m, nil
}

// part is a file of a language model.
type part struct {
	m *Model
	l *llm.Model
}

// weights is the size of the weights.
func (p *part) weights() (sum int) {
	for _, g := range p.m.in.Graph.Graphs {
		captured := map[int]bool{} // counted in the graph around it
		for _, c := range g.Captures {
			captured[c.Inner] = true
		}
		for _, v := range g.Values {
			if v.Const != nil && !captured[v.ID] {
				sum += len(v.Const.Data)
			}
		}
	}
	return sum
}

// language is a language model in one file or several.
type language struct {
	// decoder has the caches; start runs the first tokens, and is the decoder if that does. encoder
	// has no model if there is none.
	decoder, start, encoder part
	// open says that the decoder reads an encoder whose length no file fixes: prompts set it.
	open bool
	// length is the number of positions of an encoder with a fixed input, 0 for none.
	length   int
	excluded []string
}

// language returns the language model, nil for other models. The error says why its phases cannot be
// run.
func (m *Model) language() (*language, error) {
	d, err := llm.Detect(m.in.Graph, m.parts.setup)
	if d == nil || err != nil {
		return nil, err
	}
	l := &language{decoder: part{m, d}, excluded: m.parts.excluded}
	l.start = l.decoder
	if s := m.parts.start; s != nil {
		if l.start = (part{s, llm.DetectPart(s.in.Graph, m.parts.setup)}); l.start.l == nil {
			return nil, fmt.Errorf("%s: expected a decoder without caches, with the input input_ids or inputs_embeds", s.Name())
		}
	}
	if e := m.parts.encoder; e != nil {
		s := m.parts.setup
		if s.Encoder > 0 {
			s.Context = s.Encoder
		}
		if l.encoder = (part{e, llm.DetectPart(e.in.Graph, s)}); l.encoder.l == nil {
			return nil, fmt.Errorf("%s: expected an encoder, with an input such as input_ids or input_features", e.Name())
		}
		if !d.Encoded() {
			return nil, fmt.Errorf("%s has no inputs for an encoder, such as encoder_hidden_states: profile it without %s", m.Name(), e.Name())
		}
	}
	if !d.Encoded() {
		return l, nil
	}
	l.length = d.Encoder
	if e := l.encoder; l.length == 0 && e.l != nil && e.l.Has(llm.Features) {
		if l.length, err = e.positions(); err != nil {
			return nil, err
		}
	}
	l.open = l.length == 0
	return l, nil
}

// positions is the number of positions that an encoder makes of an input of fixed size.
func (p *part) positions() (int, error) {
	counted, err := p.m.count(Inputs{phase: &phaseInputs{p.l, llm.Phase{Batch: 1, Tokens: 1}}}, false)
	if err != nil {
		return 0, err
	}
	for _, o := range counted.Model.Outputs {
		// [batch, positions, width], or a cache: [batch, heads, positions, size]
		if n := len(o.Shape); n >= 3 && o.Shape[n-2] > 0 {
			return int(o.Shape[n-2]), nil
		}
	}
	return 0, fmt.Errorf("%s: expected an output of the shape [batch, positions, width]", p.m.Name())
}

// list returns the runs of phases and what runs them: those of the encoder, prefills, then decodes,
// each from the least batch and length.
func (l *language) list(p *Phases, batches []int) (runs []phases.Run, of []part) {
	prompts, contexts := slices.Sorted(slices.Values(p.Prompts)), slices.Sorted(slices.Values(p.Contexts))
	length, encodes := l.length, []int{l.length}
	if l.open {
		length, encodes = 1, prompts
		if len(prompts) > 0 {
			length, prompts = slices.Max(prompts), []int{1}
		}
	}
	add := func(by *part, r phases.Run, lengths []int, at func(n int) llm.Phase) {
		if by.m != l.decoder.m {
			r.File = filepath.Base(by.m.Name())
		}
		for _, batch := range batches {
			for _, n := range lengths {
				r.Phase = at(n)
				r.Phase.Batch, r.Phase.Encoder = batch, length
				runs, of = append(runs, r), append(of, *by)
			}
		}
	}
	tokens := func(n int) llm.Phase { return llm.Phase{Tokens: n} }
	d := l.decoder.l
	// Where the decoder makes the caches of the encoder's positions, prefill does.
	made := l.start.m != l.decoder.m || d.Has(llm.UseCache)
	if l.encoder.l != nil {
		add(&l.encoder, phases.Run{Kind: profile.EncodePhase, CrossWritten: !made}, encodes, tokens)
	}
	add(&l.start, phases.Run{Kind: profile.PrefillPhase, CrossRead: !made, CrossWritten: made}, prompts, tokens)
	add(&l.decoder, phases.Run{Kind: profile.DecodePhase, CrossRead: true}, contexts, func(n int) llm.Phase {
		return llm.Phase{Tokens: 1, Depth: n, Encoded: d.Encoded()}
	})
	return runs, of
}

// check returns an error if a model cannot run one of the phases.
func (l *language) check(p *Phases, batches []int) error {
	runs, parts := l.list(p, batches)
	if len(runs) > mostPhases {
		return fmt.Errorf("these are %d phases: use up to %d", len(runs), mostPhases)
	}
	for i := range runs {
		ph, l := runs[i].Phase, parts[i].l
		err := l.Check(ph)
		switch {
		case err == nil:
		case runs[i].File != "":
			return fmt.Errorf("%s: %w", runs[i].File, err)
		case l.Context > 0 && ph.Tokens+ph.Depth > l.Context:
			option := "Phases.Contexts"
			if runs[i].Kind == profile.PrefillPhase {
				option = "Phases.Prompts"
			}
			return &OptionError{Option: option, Text: err.Error(), Err: err}
		default:
			return err
		}
	}
	return nil
}

// longest is the largest number of positions in the caches.
func longest(runs []phases.Run) (n int) {
	for i := range runs {
		if runs[i].Kind != profile.EncodePhase {
			n = max(n, runs[i].Phase.Tokens+runs[i].Phase.Depth)
		}
	}
	return n
}

// findings say what the phases do not include.
func (l *language) findings() (list []profile.Finding) {
	add := func(id, text string) {
		list = append(list, profile.Finding{ID: id, Severity: profile.Info, Text: text})
	}
	if l.decoder.l.Encoded() && l.encoder.m == nil {
		add("phases.encoder", "The decoder reads what an encoder made, whose time is not included: name its file beside that of the decoder, or the folder of both.")
	}
	if len(l.excluded) > 0 {
		add("phases.parts", "Other parts of the model are not included: "+strings.Join(l.excluded, ", ")+".")
	}
	return list
}
