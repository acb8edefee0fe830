package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/profile"
)

// phaseFlags choose the phases of language models.
type phaseFlags struct {
	on                bool
	prompts, contexts []int
	// asked says that phases are wanted, auto that models which have them get them.
	asked, auto bool
}

func (f *phaseFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.on, "phases", true, "measure prefill and decode of language models with caches")
	f.addSizes(c)
}

func (f *phaseFlags) addSizes(c *cobra.Command) {
	c.Flags().Var(&wholes{&f.prompts, 1, 1 << 20}, "prompt", "`N,…`: tokens of prefill (default 128, 4 beside an encoder)")
	c.Flags().Var(&wholes{&f.contexts, 0, 1 << 20}, "context", "`N,…`: positions in the cache of decode (default 0,1024)")
}

// otherInputs are flags that say how to run a model in another way than in phases.
var otherInputs = []string{"shape", "dim", "input", "iterations", "zeros", "carry", "streams", "rate", "cold", "check", "signature"}

// set reads the flags.
func (f *phaseFlags) set(c *cobra.Command) error {
	sizes := cmp.Or(given(c, "prompt"), given(c, "context"))
	f.asked = f.on && (sizes != "" || given(c, "phases") != "")
	other := ""
	for _, name := range otherInputs {
		other = cmp.Or(other, given(c, name))
	}
	switch {
	case !f.on && sizes != "":
		return useError("%s is for phases: leave out --phases=false", sizes)
	case f.asked && other != "":
		return useError("%s does not go with phases, which set the inputs: leave it out, or add --phases=false", other)
	}
	f.auto = f.on && !f.asked && other == ""
	return nil
}

// given is a flag with its dashes if it was given, "" if not.
func given(c *cobra.Command, name string) string {
	if l := c.Flags().Lookup(name); l == nil || !l.Changed {
		return ""
	}
	return "--" + name
}

// of returns the phases to measure of a model, nil for an inference, and whether nobody asked for
// them. Lists of models and comparisons of engines have the same figure of each: without being
// asked, only a single measurement has phases.
func (f *phaseFlags) of(m *opmeter.Model, single bool) (p *opmeter.Phases, auto bool) {
	if !f.asked && (!f.auto || !single) {
		return nil, false
	}
	p = opmeter.DefaultPhases(m)
	if f.auto {
		return p, p != nil
	}
	if p == nil {
		p = &opmeter.Phases{Prompts: []int{128}} // the error says why it has none
	}
	if f.prompts != nil {
		p.Prompts = f.prompts
	}
	if f.contexts != nil {
		p.Contexts = f.contexts
	}
	return p, false
}

// parts returns the files that make one language model whose phases can be run, or its folder, nil
// for other models.
func (f *phaseFlags) parts(args []string) ([]string, error) {
	if !f.asked && !f.auto {
		return nil, nil
	}
	var m *opmeter.Model
	var err error
	if len(args) > 1 {
		m, err = opmeter.OpenParts(args...)
	} else if st, statErr := os.Stat(args[0]); statErr == nil && st.IsDir() {
		m, err = opmeter.OpenParts(args...)
	}
	if m == nil || err != nil {
		return nil, told(err)
	}
	if f.auto && opmeter.DefaultPhases(m) == nil {
		args = nil
	}
	return args, told(m.Close())
}

// counted is a profiler that runs nothing: it counts a model, and estimates phases that are given.
func (f *phaseFlags) counted(c *cobra.Command, in opmeter.Inputs, threads int) (profiler, error) {
	f.on = true
	if err := f.set(c); err != nil {
		return nil, err
	}
	if !f.asked {
		if n := given(c, "threads"); n != "" {
			return nil, useError("%s is for estimates of phases: add --prompt or --context", n)
		}
		return count(in), nil
	}
	return func(ctx context.Context, m *opmeter.Model, _ bounds) (*profile.Profile, error) {
		p, _ := f.of(m, true)
		return opmeter.EstimatePhases(ctx, m, opmeter.Options{Inputs: in, Threads: threads, Phases: p})
	}, nil
}

// sayPhases tells that a model is measured in phases.
func (a *app) sayPhases(p *opmeter.Phases) {
	s := fmt.Sprintf("a prompt of %d tokens", slices.Max(p.Prompts))
	for i, d := range p.Contexts {
		s += []string{", and one token after ", " and "}[min(i, 1)] + fmt.Sprint(d)
	}
	fmt.Fprintf(a.err, "opmeter: a language model with caches: measuring %s (--phases=false: one inference)\n", s)
}
