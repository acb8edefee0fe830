package host

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/engine"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/profile"
)

func (b *builder) find(id string, sev profile.Severity, layers []int64, format string, args ...any) {
	b.p.Findings = append(b.p.Findings, profile.Finding{ID: id, Severity: sev, Text: fmt.Sprintf(format, args...), Layers: layers})
}

// findStatic reports what follows from the plan: what cannot run and why.
func (b *builder) findStatic() {
	type group struct {
		layers []int64
		why    string
	}
	lost := map[string]*group{}
	var order []string
	var skipped []int64
	failed := false
	for i, s := range b.slots {
		switch s.step.State {
		case engine.Unsupported, engine.Failed:
			failed = failed || s.step.State == engine.Failed
			key := s.step.Node.Key()
			if lost[key] == nil {
				lost[key] = &group{why: s.step.Err.Error()}
				order = append(order, key)
			}
			lost[key].layers = append(lost[key].layers, int64(i))
		case engine.Skipped:
			skipped = append(skipped, int64(i))
		}
	}
	for _, key := range order {
		g := lost[key]
		b.find("model.unsupported", profile.Problem, g.layers, "%s cannot run in %s (%s). What follows was timed on zeros of the declared shape; results and totals leave the operator out.",
			key, plural(len(g.layers), "layer"), g.why)
	}
	if len(skipped) > 0 {
		b.find("model.skipped", profile.Problem, skipped, "%s not run, because an input could not be computed and the file does not declare its shape.", plural(len(skipped), "layer"))
	}
	if failed {
		b.findShapes()
	}
	for _, w := range b.m.Warnings {
		b.find("model.file", profile.Warning, nil, "The file: %s", w)
	}
}

// findShapes points at inputs whose open dimensions got a stand-in of 1, which is
// the usual reason for layers that contradict each other.
func (b *builder) findShapes() {
	g := b.m.Main()
	var open []string
	for _, id := range g.Inputs {
		v := g.Values[id]
		_, set := b.o.Feed.Shapes[v.Name]
		_, file := b.o.Feed.Files[v.Name]
		if !set && !file && v.HasShape && slices.ContainsFunc(v.Shape, func(d int) bool { return d < 0 }) {
			open = append(open, fmt.Sprintf("%s (%s)", v.Name, tensor.FormatShape(v.Shape)))
		}
	}
	if len(open) > 0 {
		more := ""
		if n := len(open) - 4; n > 0 {
			open, more = open[:4], fmt.Sprintf(" and %d more", n)
		}
		b.find("model.shapes", profile.Problem, nil, "The file leaves dimensions of inputs open, and 1 was taken for them: %s%s. If that does not suit the model, give real ones, such as --shape NAME=1x512.", strings.Join(open, ", "), more)
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// findMeasured reports where the time goes and what does not add up.
func (b *builder) findMeasured() {
	b.findDominant()
	b.findOverhead()
}

// findDominant names the operators, and the few layers, that take most time.
func (b *builder) findDominant() {
	type op struct {
		name   string
		share  float64
		layers []int64
	}
	byOp := map[string]*op{}
	var ops []*op
	var single []int
	for i := range b.p.Layers {
		l := &b.p.Layers[i]
		if l.Share == nil {
			continue
		}
		single = append(single, i)
		k := b.slots[i].step.Node.Key()
		if byOp[k] == nil {
			byOp[k] = &op{name: k}
			ops = append(ops, byOp[k])
		}
		byOp[k].share += *l.Share
		byOp[k].layers = append(byOp[k].layers, int64(i))
	}
	if len(single) < 2 {
		return
	}
	slices.SortStableFunc(ops, func(x, y *op) int { return cmp.Compare(y.share, x.share) })
	text := make([]string, 0, 3)
	var sum float64
	var layers []int64
	for _, o := range ops[:min(3, len(ops))] {
		if sum > 0.9 {
			break
		}
		text = append(text, fmt.Sprintf("%s %.0f %% in %s", o.name, 100*o.share, plural(len(o.layers), "layer")))
		sum += o.share
		layers = append(layers, o.layers...)
	}
	b.find("time.operators", profile.Info, layers, "Time by operator: %s.", strings.Join(text, ", "))

	share := func(i int) float64 { return *b.p.Layers[i].Share }
	slices.SortStableFunc(single, func(x, y int) int { return cmp.Compare(share(y), share(x)) })
	var half float64
	layers = nil
	for _, i := range single {
		if half >= 0.5 {
			break
		}
		half += share(i)
		layers = append(layers, int64(i))
	}
	if len(layers) > 10 {
		b.find("time.flat", profile.Info, nil, "No single layer stands out: it takes %d of %d layers to make up half of the time.", len(layers), len(single))
		return
	}
	names := make([]string, len(layers))
	for k, i := range layers {
		names[k] = fmt.Sprintf("#%d %s", i, b.slots[i].step.Node.Key())
	}
	verb := "make"
	if len(layers) == 1 {
		verb = "makes"
	}
	b.find("time.layers", profile.Info, layers, "%s of %d %s up %.0f %% of the time: %s.", plural(len(layers), "layer"), len(single), verb, 100*half, strings.Join(names, ", "))
}

// overheadLimit is the part of an inference above which instruments, gaps or a
// disagreement of the passes are reported.
const overheadLimit = 0.01

func (b *builder) findOverhead() {
	r := b.p.Reconcile
	if r == nil || *r.WallS <= 0 {
		return
	}
	if g := *r.GapsS / *r.WallS; math.Abs(g) > overheadLimit {
		b.find("reconcile.gaps", profile.Warning, nil, "%.1f %% of the time lies between operators: in so short an inference, starting it and reading the clock count.", 100*g)
	}
	if d := *r.ProfiledS / *r.PlainS - 1; math.Abs(d) > overheadLimit {
		b.find("reconcile.overhead", profile.Warning, nil, "The instrumented pass took %+.1f %% of the plain one's time: totals are from the plain pass, shares from the instrumented one.", 100*d)
	}
}
