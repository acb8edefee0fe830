package figures

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/opmeter/opmeter/profile"
)

// worthSaying is the part of an inference above which instruments or gaps are
// reported.
const worthSaying = 0.01

// overhead reports what the instruments add, where that is more than chance, and what
// lies between operators. What makes times uncertain is said once, by the verdict: see
// [trust].
func overhead(r *profile.Reconcile) []profile.Finding {
	if r == nil || !(*r.WallS > 0) || !(*r.PlainS > 0) {
		return nil
	}
	var out []profile.Finding
	if g := *r.GapsS / *r.WallS; g > worthSaying {
		out = append(out, Finding("reconcile.gaps", profile.Info, nil, "%.1f %% of the time lies between operators: in so short an inference, starting it and reading the clock count.", 100*g))
	}
	o := r.OverheadS
	if o == nil || o.CI95 == nil || o.CI95[0] <= 0 && o.CI95[1] >= 0 {
		return out
	}
	cost := *o.Median
	if part := math.Abs(cost) / *r.PlainS; part > worthSaying {
		than := "longer"
		if cost < 0 {
			than = "less"
		}
		out = append(out, Finding("reconcile.overhead", profile.Warning, nil, "Instrumented inferences took %.3g %% %s than plain ones (%s): totals are from plain ones, shares from instrumented ones.", 100*part, than, short(math.Abs(cost))))
	}
	return out
}

// short writes a time with three digits.
func short(seconds float64) string {
	d := time.Duration(seconds * 1e9)
	for step := time.Second; step > 1; step /= 10 {
		if d >= 100*step {
			d = d.Round(step)
			break
		}
	}
	s := d.String()
	if i := strings.IndexFunc(s, unicode.IsLetter); d < time.Minute && i > 0 {
		s = s[:i] + " " + s[i:]
	}
	return s
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

// dominant names the operators, and the few layers, that take most time.
func dominant(p *profile.Profile) []profile.Finding {
	timed := p.Select(func(l *profile.Layer) bool { return l.Share != nil })
	if len(timed) < 2 {
		return nil
	}
	ops := timed.Group(Operator)
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
		text = append(text, fmt.Sprintf("%s %.0f %% in %s", g.Name, 100*of[g.Name], Plural(len(g.Layers), "layer")))
		sum += of[g.Name]
		layers = append(layers, Indices(g.Layers)...)
	}
	out := []profile.Finding{Finding("time.operators", profile.Info, layers, "Time by operator: %s.", strings.Join(text, ", "))}
	slices.SortStableFunc(timed, func(x, y *profile.Layer) int { return cmp.Compare(*y.Share, *x.Share) })
	n, half := 0, 0.0
	for ; n < len(timed) && half < 0.5; n++ {
		half += *timed[n].Share
	}
	if n > 10 {
		return append(out, Finding("time.flat", profile.Info, nil, "No single layer stands out: it takes %d of %d layers to make up half of the time.", n, len(timed)))
	}
	names := make([]string, n)
	for k, l := range timed[:n] {
		names[k] = fmt.Sprintf("#%d %s", l.Index, Operator(l))
	}
	verb := "make"
	if n == 1 {
		verb = "makes"
	}
	return append(out, Finding("time.layers", profile.Info, Indices(timed[:n]), "%s of %d %s up %.0f %% of the time: %s.", Plural(n, "layer"), len(timed), verb, 100*half, strings.Join(names, ", ")))
}

// Finding makes one remark.
func Finding(id string, sev profile.Severity, layers []int64, format string, args ...any) profile.Finding {
	return profile.Finding{ID: id, Severity: sev, Text: fmt.Sprintf(format, args...), Layers: layers}
}

// Operator names a layer's operator with its domain.
func Operator(l *profile.Layer) string {
	if l.Domain == "" {
		return l.Op
	}
	return l.Domain + ":" + l.Op
}

// Indices are those of layers.
func Indices(ls profile.Layers) []int64 {
	out := make([]int64, len(ls))
	for i, l := range ls {
		out[i] = l.Index
	}
	return out
}

// Plural counts things for people: "1 layer", "2 layers".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Findings says what takes most time, what lies between layers and what the instruments cost.
func Findings(p *profile.Profile) []profile.Finding {
	q := *p
	q.Layers = shared(p.Layers)
	return slices.Concat(dominant(&q), overhead(q.Reconcile))
}
