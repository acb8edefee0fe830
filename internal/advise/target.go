package advise

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/shellword"
	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/profile"
)

// noEstimate is the reason of rules that estimate a changed model.
const noEstimate = "the target cannot be estimated again"

// changedEstimate estimates the model of a format rule.
func (f *Facts) changedEstimate(r formatRule) (*profile.Profile, string) {
	if f.Model == nil {
		return nil, noModel
	}
	if f.Estimate == nil {
		return nil, noEstimate
	}
	m, err := quantised(f.Model, f.Feed, r.format, r.layers)
	if err != nil {
		return nil, err.Error()
	}
	if m == nil {
		return nil, "no layer can be stored so"
	}
	p, err := f.Estimate(m)
	if err != nil {
		return nil, err.Error()
	}
	return p, ""
}

// ends are the limits of a metric: its band, its interval or its value.
func ends(m *profile.Metric) (low, high float64, ok bool) {
	v, ok := m.Best()
	if !ok {
		return 0, 0, false
	}
	switch {
	case m.Band != nil:
		return m.Band[0], m.Band[1], true
	case m.CI95 != nil:
		return m.CI95[0], m.CI95[1], true
	}
	return v, v, true
}

func (f *Facts) targetInt8() ([]*Advice, string) {
	now, ok := f.timed()
	if !ok {
		return nil, noTimes
	}
	q, why := f.changedEstimate(int8Rule)
	if q == nil {
		return nil, why
	}
	then, ok := q.Totals.Latency.Best()
	if !ok || len(q.Incomplete) > 0 && len(f.Profile.Incomplete) == 0 {
		return nil, "the int8 model has no complete estimate"
	}
	low, _, _ := ends(f.Profile.Totals.Latency)
	from, to, _ := ends(q.Totals.Latency)
	_, most, _ := ends(f.Profile.Totals.Latency)
	g, ok := promise(now, then/now, from/most, to/low, FromEstimate, "bands of both estimates")
	if !ok {
		return nil, fmt.Sprintf("the int8 model takes %s (%s to %s), this one %s (%s to %s)", duration(then), duration(from), duration(to), duration(now), duration(low), duration(most))
	}
	if why := blocked(q); why != "" {
		return nil, "the int8 model does not run there either: " + why
	}
	layers := f.classed(floatWeights)
	reason := fmt.Sprintf("The estimate of the int8 model is %s, that of this one %s; %s in float32.", duration(then), duration(now), computes(len(layers)))
	for i := range f.Profile.Findings { // an accelerator says so already
		if x := &f.Profile.Findings[i]; x.ID == RuleOf("int8-target").Finding {
			reason = x.Text + " " + reason
		}
	}
	figures := []Figure{{"latency of the int8 model", then, "s"}, {"latency", now, "s"}}
	var costs []string
	for _, x := range []struct {
		what      string
		was, will *int64
	}{{"RAM", f.Profile.Totals.RAMBytes, q.Totals.RAMBytes}, {"flash", f.Profile.Totals.FlashBytes, q.Totals.FlashBytes}} {
		if x.was == nil || x.will == nil {
			continue
		}
		figures = append(figures, Figure{x.what + " of the int8 model", float64(*x.will), "B"})
		text := fmt.Sprintf("%s of %s in place of %s", bytes(*x.will), x.what, bytes(*x.was))
		if *x.will > *x.was {
			costs = append(costs, fmt.Sprintf("%s (%s)", text, change(float64(*x.will)/float64(*x.was))))
		} else {
			reason += " It needs " + text + "."
		}
	}
	return []*Advice{{Reason: reason, Figures: figures, Layers: indices(layers), Gain: g, Costs: strings.Join(costs, ", ")}}, ""
}

// computes says how many layers compute something.
func computes(n int) string {
	if n == 1 {
		return "1 layer computes"
	}
	return fmt.Sprintf("%d layers compute", n)
}

// blocked says why a model does not run on the target of its estimate, "" if it does as far as is
// known.
func blocked(p *profile.Profile) string {
	var list []string
	layers, first := 0, -1
	for i := range p.Layers {
		if p.Layers[i].State == profile.Unsupported {
			if layers++; first < 0 {
				first = i
			}
		}
	}
	if first >= 0 {
		s := fmt.Sprintf("the runtime has no kernel for %s, the first is #%d %s", plural(layers, "layer"), first, p.Layers[first].Op)
		if c := p.Layers[first].Cause; c != nil && c.Text != "" {
			s += " (" + c.Text + ")"
		}
		list = append(list, s+".")
	}
	for _, id := range []string{RuleOf("ram").Finding, RuleOf("flash").Finding} {
		if x := problem(p, id); x != nil {
			list = append(list, x.Text)
		}
	}
	return strings.Join(list, " ")
}

func (f *Facts) tables() ([]*Advice, string) {
	if f.Model == nil {
		return nil, noModel
	}
	have := f.Profile.Totals.FlashBytes
	if have == nil || *have == 0 {
		return nil, "the flash of the model is not known"
	}
	list, err := layersOf(f.Model, f.Feed)
	if err != nil {
		return nil, err.Error()
	}
	var stored int
	var names []string
	for _, l := range list {
		if lookup(l) && l.Type == "float32" && l.Fixed == "" {
			stored += 4 * l.Rows * l.Cols
			names = append(names, l.Weight)
		}
	}
	part := float64(stored) / float64(*have)
	if part < 0.1 {
		return nil, fmt.Sprintf("lookup tables of float32 take %s of the flash", percent(part))
	}
	q, why := f.changedEstimate(tableRule)
	if q == nil || q.Totals.FlashBytes == nil {
		return nil, why
	}
	ratio := float64(*q.Totals.FlashBytes) / float64(*have)
	g, ok := promise(float64(*have), ratio, ratio, ratio, FromFormat, "sizes of the two models; they are exact")
	if !ok {
		return nil, "8-bit tables would not be smaller"
	}
	return []*Advice{{
		Reason:  fmt.Sprintf("%s of the %s of flash are in %s: %s.", bytes(int64(stored)), bytes(*have), plural(len(names), "lookup table"), strings.Join(names[:min(3, len(names))], ", ")),
		Figures: []Figure{{"lookup tables", float64(stored), "B"}, {"flash", float64(*have), "B"}}, Gain: g,
	}}, ""
}

// value is the figure of a quantity; the working memory of a runtime without a known plan is the
// least that any plan needs.
func value(p *profile.Profile, quantity string) (float64, bool) {
	var n *int64
	switch quantity {
	case latency:
		return p.Totals.Latency.Best()
	case flash:
		n = p.Totals.FlashBytes
	case ram:
		if n = p.Totals.RAMBytes; n == nil && p.Memory != nil {
			n = p.Memory.PeakBytes
		}
	}
	if n == nil {
		return 0, false
	}
	return float64(*n), true
}

// problem returns the finding of a profile with an ID, if it is a problem.
func problem(p *profile.Profile, id string) *profile.Finding {
	for i := range p.Findings {
		if x := &p.Findings[i]; x.ID == id && x.Severity == profile.Problem {
			return x
		}
	}
	return nil
}

// fits advises what to do where the model does not fit a memory of the chip: int8 if that model
// runs there, else a chip that runs this one.
func (f *Facts) fits(code string) ([]*Advice, string) {
	rule := RuleOf(code)
	x := problem(f.Profile, rule.Finding)
	have, ok := value(f.Profile, rule.Quantity)
	if x == nil || !ok {
		return nil, "the model fits, or its size is not known"
	}
	figures := []Figure{{code, have, "B"}}
	if q, _ := f.changedEstimate(int8Rule); q != nil && blocked(q) == "" {
		then, ok := value(q, rule.Quantity)
		ratio := then / have
		if g, worth := promise(have, ratio, ratio, ratio, FromEstimate, "sizes of the two models; they are exact"); ok && worth {
			return []*Advice{{
				Reason:  fmt.Sprintf("%s The int8 model fits: it needs %s.", x.Text, bytes(int64(then))),
				Figures: append(figures, Figure{code + " of the int8 model", then, "B"}), Gain: g,
				Try:    f.render("opmeter advise MODEL ON --only " + code + " --try -o NAME-int8.EXT"),
				Caveat: RuleOf("int8-target").Caveat,
			}}, ""
		}
	}
	return f.otherTarget(x.Text, 1, figures, nil)
}

// fitting are the estimates of the targets that run the model, fastest first, or why none is known.
func (f *Facts) fitting() (fit []*profile.Profile, why string) {
	if f.Fits == nil {
		return nil, "no other target is known"
	}
	fit, err := f.Fits()
	if err != nil {
		return nil, err.Error()
	}
	fit = slices.DeleteFunc(fit, func(p *profile.Profile) bool { return p.Totals.Latency == nil })
	if len(fit) == 0 {
		return nil, "no other target is known to run the model"
	}
	return fit, ""
}

// otherTarget names the fastest target that runs the model. The gain is that it runs: a latency
// there does not compare with that of a chip that does not run it.
func (f *Facts) otherTarget(reason string, before float64, figures []Figure, layers []int) ([]*Advice, string) {
	fit, why := f.fitting()
	if why != "" {
		return nil, why
	}
	best := fit[0]
	then, ok := best.Totals.Latency.Best()
	if !ok || then <= 0 {
		return nil, noTimes
	}
	others := ""
	if n := len(fit) - 1; n > 0 {
		others = ", and so does 1 more target"
		if n > 1 {
			others = fmt.Sprintf(", and so do %d more targets", n)
		}
	}
	return []*Advice{{
		Reason:  fmt.Sprintf("%s %s runs the model, in about %s%s.", reason, best.Target.ID, duration(then), others),
		Figures: append(figures, Figure{"latency on " + best.Target.ID, then, "s"}), Layers: indices(layers),
		Gain: Gain{Quantity: missing, Before: before, Target: best.Target.ID, Source: FromEstimate, Basis: "memories of the chips and operators of their runtimes; the gain is that the model runs"},
		Try:  f.render("opmeter profile MODEL INPUTS --on " + shellword.Quote(best.Target.ID)), apart: true,
	}}, ""
}

// unsupported advises a target whose runtime has all operators of the model.
func (f *Facts) unsupported() ([]*Advice, string) {
	layers := f.unsupportedLayers()
	if len(layers) == 0 {
		return nil, "the runtime of the target has all operators"
	}
	return f.otherTarget(upperFirst(blocked(f.Profile)), float64(len(layers)), []Figure{{"layers that cannot run", float64(len(layers)), ""}}, layers)
}

func (f *Facts) unsupportedLayers() (layers []int) {
	for i := range f.Profile.Layers {
		if f.Profile.Layers[i].State == profile.Unsupported {
			layers = append(layers, i)
		}
	}
	return layers
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// moved is the number of bytes that a layer reads and writes, 0 if unknown.
func moved(l *profile.Layer) float64 {
	if l.BytesRead == nil || l.BytesWritten == nil {
		return 0
	}
	return float64(*l.BytesRead) + float64(*l.BytesWritten)
}

// products is the number of multiply-accumulates of a layer, 0 if unknown.
func products(l *profile.Layer) float64 {
	if l.MACs == nil {
		return 0
	}
	return float64(*l.MACs)
}

// rate is the part of the time that layers take for their work.
type rate struct {
	share, work float64
	layers      [][2]float64 // both of each layer
}

func (r *rate) add(share, work float64) {
	if work > 0 {
		r.share, r.work, r.layers = r.share+share, r.work+work, append(r.layers, [2]float64{share, work})
	}
}

// mean is the part of the time for a unit of work, 0 without any.
func (r *rate) mean() float64 {
	if r.work == 0 {
		return 0
	}
	return r.share / r.work
}

// slowest is that of the slowest layer. Layers below a twentieth of the time do not count: what they
// take is the cost of starting.
func (r *rate) slowest() (most float64) {
	for _, l := range r.layers {
		if 20*l[0] >= r.share {
			most = max(most, l[0]/l[1])
		}
	}
	return most
}

// onProcessor advises to change operators so that the accelerator takes them. What is left to the
// processor for its element type belongs to the rule for int8.
func (f *Facts) onProcessor() ([]*Advice, string) {
	now, ok := f.timed()
	if !ok {
		return nil, noTimes
	}
	var layers []int
	var perByte, perMAC rate // of the layers that the accelerator runs
	for i := range f.Profile.Layers {
		l := &f.Profile.Layers[i]
		if l.State != profile.Ran || l.Placement == nil || l.Share == nil || moved(l) == 0 {
			continue
		}
		switch c := l.Placement.Cause; {
		case l.Placement.On != profile.CPU:
			perByte.add(*l.Share, moved(l))
			perMAC.add(*l.Share, products(l))
		case c == profile.ByOperator || c == profile.ByLimit:
			layers = append(layers, i)
		}
	}
	if len(layers) == 0 || perByte.work == 0 {
		return nil, "the target has no accelerator, or it leaves no operator to the processor"
	}
	part, _, _ := f.share(layers)
	then, worst := 0.0, 0.0
	for _, i := range layers {
		l := &f.Profile.Layers[i]
		if products(l) > 0 && perMAC.work == 0 {
			return nil, fmt.Sprintf("the accelerator runs no layer that multiplies, so that its time for #%d %s is not known", i, l.Op)
		}
		then += max(perByte.mean()*moved(l), perMAC.mean()*products(l))
		worst += max(perByte.slowest()*moved(l), perMAC.slowest()*products(l))
	}
	g, ok := promise(now, 1-part+min(then, part), 1-part, 1-part+worst, FromProfile, "time for each byte and for each multiply-accumulate of the layers that the accelerator runs: their mean, and that of the slowest")
	if why := "too little to promise a gain"; !ok {
		if part > leastShare {
			why = "and the accelerator may take as long: so slow is one of the layers that it runs"
		}
		return nil, fmt.Sprintf("the operators that the accelerator leaves to the processor take %s of the time, %s", percent(part), why)
	}
	sorting.Func(layers, func(a, b int) int { return cmp.Compare(*f.Profile.Layers[b].Share, *f.Profile.Layers[a].Share) })
	first := &f.Profile.Layers[layers[0]]
	reason := fmt.Sprintf("The accelerator leaves %s to the processor, which take %s of the time. The slowest is #%d %s with %s", plural(len(layers), "layer"), percent(part), layers[0], first.Op, percent(*first.Share))
	if first.Placement.Text != "" {
		reason += ": " + first.Placement.Text
	}
	return []*Advice{{
		Reason:  strings.TrimSuffix(reason, ".") + ".",
		Figures: []Figure{{"share of the time", part, "1"}, {"layers", float64(len(layers)), ""}},
		Layers:  indices(layers), Gain: g,
	}}, ""
}
