package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// facts writes what the table's rows are of.
func (v *view) facts(b *strings.Builder) {
	var facts []fact
	add := func(label, format string, args ...any) {
		facts = append(facts, fact{label: label, value: text.Clean(fmt.Sprintf(format, args...))})
	}
	var weights, zeros int64
	for i := range v.s.Layers {
		weights += v.s.Layers[i].Weights()
		zeros += v.s.Layers[i].Zeros
	}
	m := &v.s.Model
	add("Model", "%s (%s), %s with %s weights, %s of them zero", m.Name, m.Format, counted(len(v.s.Layers), "layer"), Count(weights), Percent(float64(zeros)/float64(max(weights, 1))))
	if v.speed != nil {
		add("Speed", "%s", v.speedFacts())
		if s := v.optimisable(); s != "" {
			add("", "%s", s)
		}
	}
	if v.loss != nil {
		add("Loss", "%s", v.lossFacts())
	}
	label := 0
	for _, f := range facts {
		label = max(label, text.Width(f.label))
	}
	for _, f := range facts {
		for i, l := range wrap(f.value, v.o.Width-label-2) {
			if i > 0 {
				f.label = ""
			}
			b.WriteString(pad(f.label, label, true) + gap + l + "\n")
		}
	}
	warn := func(s string) {
		for _, l := range wrap("! "+text.Clean(s), v.o.Width) {
			b.WriteString(l + "\n")
		}
	}
	if v.loss != nil && v.loss.Random {
		warn("Random inputs: sensitivity ranking only, accuracy not measured. Pass real data with --data.")
	}
	if v.loss != nil {
		for _, s := range sampleWarnings(v.loss, v.s.Model.Outputs) {
			warn(s)
		}
	}
	if s := v.assumed(); s != "" {
		warn("Open dimensions were taken as 1: " + s + ". Times and work are for that size; set another with --shape NAME=DIMS.")
	}
}

// fewSamples is the number of samples below which none are held out for plans.
const fewSamples = 16

// sampleWarnings lists what makes the losses of a profile weak evidence: few samples, and an
// accuracy that is not above chance.
func sampleWarnings(p *study.Loss, outputs []profile.Tensor) (out []string) {
	if p.Random || p.Data == "" {
		return nil
	}
	if p.Samples > 0 && p.Samples < fewSamples && p.HeldOut == 0 {
		out = append(out, fmt.Sprintf("Only %s: none is held out, so plans are judged on the samples that chose them. Give at least %d, better hundreds.", counted(p.Samples, "sample"), fewSamples))
	}
	if p.Metric != "accuracy" || p.Base == nil || p.Base.CI95 == nil || len(outputs) == 0 || len(outputs[0].Shape) == 0 {
		return out
	}
	classes := max(outputs[0].Shape[len(outputs[0].Shape)-1], 2)
	if chance := 1 / float64(classes); p.Base.CI95[0] <= chance {
		out = append(out, fmt.Sprintf("The accuracy of the unchanged model is not clearly above that of guessing (%s): check labels and normalisation. Losses say little here.", Percent(chance)))
	}
	return out
}

// assumed tells which inputs of the shown profiles had open dimensions that no one gave.
func (v *view) assumed() string {
	shapes := ""
	switch {
	case v.speed != nil:
		shapes = v.speed.Shapes
	case v.loss != nil:
		shapes = v.loss.Shapes
	}
	m := v.s.Model
	m.Inputs = slices.DeleteFunc(slices.Clone(m.Inputs), func(t profile.Tensor) bool {
		return !strings.Contains(", "+shapes+",", ", "+t.Name+" "+words.Shape(t.Shape)+",")
	})
	return words.Assumed(&m)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

func (v *view) speedFacts() string {
	p := v.speed
	parts := []string{fmt.Sprintf("%q", p.Name)}
	switch {
	case p.Counted:
		parts = append(parts, "operations counted, not measured")
	case p.Target != "host":
		parts = append(parts, "estimates for "+p.Target)
	default:
		parts = append(parts, "measured here", counted(p.Threads, "thread"))
		if p.Engine != "" {
			parts = append(parts, "in "+p.Engine)
		} else {
			parts = append(parts, p.KernelSet)
		}
	}
	if p.Batch > 0 {
		parts = append(parts, fmt.Sprintf("batch %d", p.Batch))
	}
	if t, ok := middle(p.Latency); ok {
		s := Duration(t) + " per inference"
		if low, high, ok := interval(p.Latency); ok {
			s += fmt.Sprintf(" (%s to %s)", Duration(low), Duration(high))
		}
		parts = append(parts, s)
	}
	if !p.Done {
		parts = append(parts, "not all was measured yet")
	}
	return strings.Join(parts, ", ")
}

// optimisable says how much of the time can gain at all.
func (v *view) optimisable() string {
	if v.total <= 0 {
		return ""
	}
	var can, cannot float64
	for i := range v.s.Layers {
		if v.best(i) != nil {
			can += v.cost(i)
		} else {
			cannot += v.cost(i)
		}
	}
	what := "time"
	if v.speed.Counted {
		what = "work"
	}
	return fmt.Sprintf("%[2]s of the %[1]s can be reduced; %[3]s is in layers without a suitable kernel, %[4]s in operators without weights", what, Percent(can/v.total), Percent(cannot/v.total), Percent(max(0, 1-(can+cannot)/v.total)))
}

func (v *view) lossFacts() string {
	p := v.loss
	parts := []string{fmt.Sprintf("%q", p.Name), words.Method(p.Method), strings.ReplaceAll(p.Metric, "_", " ")}
	if p.Samples > 0 {
		s := counted(p.Samples, "sample")
		if p.Data != "" {
			s += " of " + p.Data
		}
		parts = append(parts, s)
		if p.HeldOut > 0 {
			parts = append(parts, fmt.Sprintf("plans chosen on %d and checked on %d others", max(p.Tried, p.Samples), p.HeldOut))
		}
		if left := p.Available - max(p.Tried, p.Samples) - p.HeldOut; left > 0 {
			parts = append(parts, fmt.Sprintf("%d of %d not used: --samples %[2]d narrows the intervals", left, p.Available))
		}
	}
	if base, ok := middle(p.Base); ok && !p.Random {
		parts = append(parts, fmt.Sprintf("%s unchanged", lossDigits(base)))
	}
	if !p.Done {
		parts = append(parts, "not all was measured yet")
	}
	return strings.Join(parts, ", ")
}

// planned writes what a plan promises and what became of that.
func (v *view) planned(b *strings.Builder) {
	p := v.plan
	fmt.Fprintf(b, "Plan %q%s: %s\n", text.Clean(p.Name), compatWords(p.Compat), v.goalWords(p))
	random := v.randomLoss(p)
	outcome := func(what string, o *study.Outcome) {
		var parts []string
		if s := duration(o.LatencyS); s != "" {
			parts = append(parts, s)
		}
		if s := spanned(o.Speedup, func(x float64) string { return words.Ratio(x) + " ×" }); s != "" {
			parts = append(parts, s+" as fast")
		}
		switch s := spanned(o.Loss, v.lossWords); {
		case random:
			parts = append(parts, "loss unknown (random inputs: sensitivity ranking only)")
		case s != "":
			parts = append(parts, "loss "+s)
		}
		if o.Params != nil && o.Zeros != nil && *o.Params > 0 {
			parts = append(parts, Percent(float64(*o.Zeros)/float64(*o.Params))+" of the weights zero")
		}
		if o.Bytes != nil {
			parts = append(parts, Bytes(*o.Bytes)+" of weights")
		}
		if s := spanned(o.Energy, func(x float64) string { return Quantity(x, "J") }); s != "" {
			parts = append(parts, s)
		}
		for _, m := range []struct {
			what string
			r    *study.MemoryUse
		}{{"RAM", o.RAM}, {"flash", o.Flash}} {
			if m.r != nil {
				parts = append(parts, roomWords(m.r)+" of "+m.what+unchangedWords(m.r))
			}
		}
		for i, l := range wrap(strings.Join(parts, ", "), v.o.Width-11) {
			if i > 0 {
				what = ""
			}
			b.WriteString(pad(what, 9, true) + gap + l + "\n")
		}
	}
	say := func(text string) { b.WriteString(strings.Join(wrap(text, v.o.Width), "\n") + "\n") }
	outcome("Predicted", &p.Predicted)
	if p.Measured != nil {
		outcome("Measured", p.Measured)
	}
	for _, s := range []string{v.vague(p), v.unprovable(p)} {
		if s != "" {
			say("! " + s)
		}
	}
	if p.Gap != nil {
		say(gapWords(*p.Gap))
	}
	if sp := v.s.Speed(p.Speed); sp.Timed() && sp.Engine == "" && !v.benchedElsewhere() {
		say("Gains are those of opmeter's engine. For the engine that ships: opmeter compress bench " + text.Clean(v.s.Model.Name) + "." + v.s.Model.Format + " --engine NAME, or plan with --engine NAME")
	}
	if random || p.Measured == nil || p.Goal.MaxLoss == nil || p.Adds == "noise" {
		return
	}
	if lost, ok := middle(p.Measured.Loss); ok && lost > *p.Goal.MaxLoss {
		more := "."
		if ci := p.Measured.Loss.CI95; ci != nil && ci[0] <= *p.Goal.MaxLoss {
			more = " (within the confidence interval: use more samples)."
		}
		say("! On held-out samples the loss exceeds the limit" + more)
	}
}

// gapWords says how far a plan is at most from the best one. The profiles' own error exceeds a gap
// that prints as zero.
func gapWords(gap float64) string {
	if far := Percent(max(gap, 0)); far != Percent(0) {
		return "At most " + far + " from the optimum for these profiles"
	}
	return "The plan is optimal for these profiles"
}

// benchedElsewhere reports whether a model was measured in another engine.
func (v *view) benchedElsewhere() bool {
	return slices.ContainsFunc(v.s.Benches, func(b *study.Bench) bool {
		return slices.ContainsFunc(b.Points, func(p study.BenchPoint) bool { return p.Engine != "opmeter" })
	})
}

// unprovable says that a plan's limit is finer than its samples.
func (v *view) unprovable(p *study.Plan) string {
	const errors = 1.645 // standard errors that plans keep from the limit, of one sample at least
	l := v.s.Loss(p.Loss)
	if l == nil || !l.Share() || l.Random || p.Goal.MaxLoss == nil || *p.Goal.MaxLoss <= 0 {
		return ""
	}
	n := max(l.Tried, l.Samples)
	if need := int(math.Ceil(errors / *p.Goal.MaxLoss)); n > 0 && n < need {
		return fmt.Sprintf("%s cannot show a loss of %s: one of them is %.3g %%. Choose plans on at least %d.", counted(n, "sample"), v.lossWords(*p.Goal.MaxLoss), 100/float64(n), need)
	}
	return ""
}

// vagueRatio is the ratio of the ends of an interval above which plans should not follow from it.
const vagueRatio = 2

// vague says what to do about intervals that are too wide to plan by, as on a busy machine.
func (v *view) vague(p *study.Plan) string {
	sp := v.s.Speed(p.Speed)
	if !sp.Timed() {
		return ""
	}
	wide := func(m *profile.Metric) bool {
		low, high, ok := interval(m)
		return ok && high > vagueRatio*max(low, 0)
	}
	switch {
	case wide(p.Predicted.LatencyS) && (p.Measured == nil || wide(p.Measured.Speedup)):
		return "The predicted interval is too wide to plan by: the computer was busy while the profile was measured. Close other programs and repeat in another file (--study), with --time 2s if it stays busy."
	case wide(p.Predicted.LatencyS):
		return "The predicted interval is wide: the computer was busy while the profile was measured. Trust the measured speed-up, or repeat in another file (--study) on a quiet computer."
	case p.Measured != nil && wide(p.Measured.Speedup):
		return "The measured interval is wide: the computer was busy. Repeat compress bench on a quiet computer."
	}
	return ""
}

// roomWords says what is taken of a memory.
func roomWords(r *study.MemoryUse) string {
	s := Bytes(r.Bytes)
	if r.AtLeast {
		s = "at least " + s
	}
	if r.Limit != nil {
		s += " of " + Bytes(*r.Limit)
	}
	return s
}

// unchangedWords says what the unchanged model takes.
func unchangedWords(r *study.MemoryUse) string {
	if r.Unchanged == nil || *r.Unchanged == r.Bytes {
		return ""
	}
	return " (unchanged: " + Bytes(*r.Unchanged) + ")"
}

// duration is a time with its interval. No model takes 0 s, so that end is left out.
func duration(m *profile.Metric) string {
	if low, high, ok := interval(m); ok && low <= 0 {
		x, _ := middle(m)
		return fmt.Sprintf("%s (at most %s)", Duration(x), Duration(high))
	}
	return spanned(m, Duration)
}

// spanned is a figure with its interval.
func spanned(m *profile.Metric, show func(float64) string) string {
	x, ok := middle(m)
	if !ok {
		return ""
	}
	if low, high, ok := interval(m); ok {
		return fmt.Sprintf("%s (%s to %s)", show(x), show(low), show(high))
	}
	return show(x)
}

func compatWords(c string) string {
	if c == "" {
		return ""
	}
	return " by the rules of " + c
}

// randomLoss reports whether a plan follows from a ranking of layers on generated inputs.
func (v *view) randomLoss(p *study.Plan) bool {
	l := v.s.Loss(p.Loss)
	return l != nil && l.Random
}

// lossWords formats a loss: in percent where it is a share, as users give the limit.
func (v *view) lossWords(x float64) string {
	if v.loss != nil && v.loss.Share() {
		return strconv.FormatFloat(100*x, 'g', 3, 64) + " %"
	}
	return lossDigits(x)
}

func (v *view) goalWords(p *study.Plan) string {
	g := &p.Goal
	least := "with the smallest loss"
	if v.randomLoss(p) {
		least = "by the layers that react least to random inputs"
	}
	switch {
	case g.Speedup != nil && g.Default && *g.Speedup < study.DefaultSpeedup:
		return fmt.Sprintf("%g times as fast %s (no goal was given; the default of %g is out of reach)", *g.Speedup, least, study.DefaultSpeedup)
	case g.Speedup != nil && g.Default:
		return fmt.Sprintf("%g times as fast %s (the default without a goal)", *g.Speedup, least)
	case g.Speedup != nil:
		return fmt.Sprintf("%g times as fast %s", *g.Speedup, least)
	case g.MaxLoss != nil && g.Default:
		return "a loss of at most " + v.lossWords(*g.MaxLoss) + " (the default without a goal)"
	case g.MaxLoss != nil:
		return "a loss of at most " + v.lossWords(*g.MaxLoss)
	case g.Sparsity != nil:
		return Percent(*g.Sparsity) + " of the weights zero " + least
	case g.Size != nil:
		return Bytes(*g.Size) + " of weights at most"
	case g.Fit != "":
		return "to fit " + g.Fit
	}
	return "best trade-off of time and loss"
}

// bench writes a comparison.
func (v *view) bench(b *strings.Builder, x *study.Bench) {
	fmt.Fprintf(b, "Bench %q\n", text.Clean(x.Name))
	rows := make([]int, len(x.Points))
	for i := range rows {
		rows[i] = i
	}
	at := func(f func(p *study.BenchPoint) string) func(int) string {
		return func(i int) string { return f(&x.Points[i]) }
	}
	v.grid(b, []studyColumn{
		{"engine", 100, true, 0, at(func(p *study.BenchPoint) string { return text.Clean(p.Engine) })},
		{"threads", 99, false, 0, at(func(p *study.BenchPoint) string { return strconv.Itoa(p.Threads) })},
		{"batch", 98, false, 0, at(func(p *study.BenchPoint) string {
			if p.Batch == 0 {
				return "file's"
			}
			return strconv.Itoa(p.Batch)
		})},
		{"unchanged", 96, false, 0, at(func(p *study.BenchPoint) string { return shortSpan(p.Before) })},
		{"compressed", 97, false, 0, at(func(p *study.BenchPoint) string { return shortSpan(p.After) })},
		{"speed-up", 95, false, 0, at(func(p *study.BenchPoint) string {
			return spanned(p.Speedup, func(x float64) string { return words.Ratio(x) + " ×" })
		})},
		{"note", 90, true, 16, at(func(p *study.BenchPoint) string {
			if p.Error != "" {
				return text.Clean(p.Error)
			}
			if p.Cause != "" {
				return words.StudyCause(p.Cause)
			}
			return ""
		})},
	}, rows)
}

func shortSpan(m *profile.Metric) string {
	if x, ok := middle(m); ok {
		return Duration(x)
	}
	return ""
}
