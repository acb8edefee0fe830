package host

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/describe"
	"github.com/opmeter/opmeter/internal/feed"
	"github.com/opmeter/opmeter/profile"
)

// finding makes one remark.
func finding(id string, sev profile.Severity, layers []int64, format string, args ...any) profile.Finding {
	return profile.Finding{ID: id, Severity: sev, Text: fmt.Sprintf(format, args...), Layers: layers}
}

// all lists the findings of a run.
func (p *pass) all() []profile.Finding {
	if _, most := p.p.Unrun(); most {
		return p.static() // what time the rest takes says nothing
	}
	q := *p.p
	q.Layers = shared(p.p.Layers)
	return slices.Concat(p.static(), dominant(&q), overhead(q.Reconcile))
}

// shared returns the layers with their shares of the time.
func shared(ls []profile.Layer) []profile.Layer {
	out := slices.Clone(ls)
	var sum float64
	for i := range out {
		v, _ := out[i].Latency.Best()
		sum += v
	}
	for i := range out {
		if v, ok := out[i].Latency.Best(); ok && sum > 0 {
			out[i].Share = new(v / sum)
		}
	}
	return out
}

// static reports what follows from the plan: what cannot run and why.
func (r *runner) static() []profile.Finding {
	out := r.open()
	if layers, most := r.p.Unrun(); most {
		out = append(out, finding("model.unrun", profile.Problem, layers, "Most of the work did not run (%d of %s): there is no latency of the model to quote.", len(layers), plural(len(r.p.Layers), "layer")))
	}
	idle := r.p.Select(func(l *profile.Layer) bool { return l.State == profile.Unsupported || l.State == profile.Failed })
	for _, g := range idle.Group(key) {
		why := cmp.Or(g.Layers[0].Cause.Text, "no such operator")
		out = append(out, finding("model.unsupported", profile.Problem, indices(g.Layers), "%s cannot run in %s (%s). What follows was timed on zeros of the declared shape; results and totals leave the operator out.",
			g.Name, plural(len(g.Layers), "layer"), why))
	}
	if skipped := r.p.Select(func(l *profile.Layer) bool { return l.State == profile.Skipped }); len(skipped) > 0 {
		out = append(out, finding("model.skipped", profile.Problem, indices(skipped), "%s not run, because an input could not be computed and the file does not declare its shape.", plural(len(skipped), "layer")))
	}
	for _, w := range r.p.Model.Warnings {
		out = append(out, finding("model.file", profile.Warning, nil, "The file: %s", w))
	}
	return out
}

// key names a layer's operator with its domain.
func key(l *profile.Layer) string {
	if l.Domain == "" {
		return l.Op
	}
	return l.Domain + ":" + l.Op
}

func indices(ls profile.Layers) []int64 {
	out := make([]int64, len(ls))
	for i, l := range ls {
		out[i] = l.Index
	}
	return out
}

// open tells dimensions of inputs for which 1 was taken. Where layers contradict each
// other that is the usual reason.
func (r *runner) open() []profile.Finding {
	f := describe.Open(r.p, func() *feed.Hint { return feed.Suggest(r.m, r.ins, r.src, r.o.Feed) })
	if f == nil {
		return nil
	}
	if slices.ContainsFunc(r.p.Layers, func(l profile.Layer) bool { return l.State == profile.Failed }) {
		f.Severity = profile.Problem
	}
	return []profile.Finding{*f}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// dominant names the operators, and the few layers, that take most time.
func dominant(p *profile.Profile) []profile.Finding {
	timed := p.Select(func(l *profile.Layer) bool { return l.Share != nil })
	if len(timed) < 2 {
		return nil
	}
	ops := timed.Group(key)
	of := make(map[string]float64, len(ops))
	for _, g := range ops {
		of[g.Name], _ = g.Sum("share")
	}
	slices.SortStableFunc(ops, func(x, y profile.Group) int { return cmp.Compare(of[y.Name], of[x.Name]) })
	text := make([]string, 0, 3)
	var sum float64
	var layers []int64
	for _, g := range ops[:min(3, len(ops))] {
		if sum > 0.9 {
			break
		}
		text = append(text, fmt.Sprintf("%s %.0f %% in %s", g.Name, 100*of[g.Name], plural(len(g.Layers), "layer")))
		sum += of[g.Name]
		layers = append(layers, indices(g.Layers)...)
	}
	out := []profile.Finding{finding("time.operators", profile.Info, layers, "Time by operator: %s.", strings.Join(text, ", "))}
	slices.SortStableFunc(timed, func(x, y *profile.Layer) int { return cmp.Compare(*y.Share, *x.Share) })
	n, half := 0, 0.0
	for ; n < len(timed) && half < 0.5; n++ {
		half += *timed[n].Share
	}
	if n > 10 {
		return append(out, finding("time.flat", profile.Info, nil, "No single layer stands out: it takes %d of %d layers to make up half of the time.", n, len(timed)))
	}
	names := make([]string, n)
	for k, l := range timed[:n] {
		names[k] = fmt.Sprintf("#%d %s", l.Index, key(l))
	}
	verb := "make"
	if n == 1 {
		verb = "makes"
	}
	return append(out, finding("time.layers", profile.Info, indices(timed[:n]), "%s of %d %s up %.0f %% of the time: %s.", plural(n, "layer"), len(timed), verb, 100*half, strings.Join(names, ", ")))
}
