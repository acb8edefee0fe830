package host

import (
	"cmp"
	"slices"

	"github.com/opmeter/opmeter/internal/measure/figures"
	"github.com/opmeter/opmeter/internal/runtime/describe"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/profile"
)

// findings lists the findings of a run.
func (p *pass) findings() []profile.Finding {
	if _, most := p.p.Unrun(); most || p.p.Starved() != nil {
		return p.static() // the time of the rest is meaningless
	}
	return slices.Concat(p.static(), figures.Findings(p.p))
}

// static reports what follows from the plan: nodes that cannot run and why.
func (r *runner) static() []profile.Finding {
	out := r.openDimensions()
	if layers, most := r.p.Unrun(); most {
		out = append(out, figures.Finding("model.unrun", profile.Problem, layers, "Most of the work did not run (%d of %s): no latency can be given for the model.", len(layers), figures.Plural(len(r.p.Layers), "layer")))
	}
	if layers := r.p.Starved(); layers != nil {
		out = append(out, figures.Finding("model.memory", profile.Problem, layers, "%s had no memory: no latency can be given for the model.", figures.Plural(len(layers), "layer")))
	}
	effect := "Times and results exclude the operator, and later layers were timed on zeros of the declared shape."
	if r.o.Static {
		effect = "Results exclude the operator."
	}
	idle := r.p.Select(func(l *profile.Layer) bool { return l.State == profile.Unsupported || l.State == profile.Failed })
	for _, g := range idle.Group(figures.Operator) {
		why := cmp.Or(g.Layers[0].Cause.Text, "no such operator")
		out = append(out, figures.Finding("model.unsupported", profile.Problem, figures.Indices(g.Layers), "%s cannot run in %s (%s). %s Counts such as MACs follow from the declared shapes.",
			g.Name, figures.Plural(len(g.Layers), "layer"), why, effect))
	}
	if skipped := r.p.Select(func(l *profile.Layer) bool { return l.State == profile.Skipped }); len(skipped) > 0 {
		out = append(out, figures.Finding("model.skipped", profile.Problem, figures.Indices(skipped), "%s not run, because an input could not be computed and the file does not declare its shape.", figures.Plural(len(skipped), "layer")))
	}
	for _, w := range r.p.Model.Warnings {
		out = append(out, figures.Finding("model.file", profile.Warning, nil, "The file: %s", w))
	}
	return out
}

// openDimensions reports input dimensions that were set to 1. If layers contradict each other,
// that is the usual reason.
func (r *runner) openDimensions() []profile.Finding {
	f := describe.Open(r.p, func() *inputs.Hint { return inputs.Suggest(r.m, r.ins, r.src, r.o.Feed) })
	if f == nil {
		return nil
	}
	if slices.ContainsFunc(r.p.Layers, func(l profile.Layer) bool { return l.State == profile.Failed }) {
		f.Severity = profile.Problem
	}
	return []profile.Finding{*f}
}
