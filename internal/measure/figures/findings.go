package figures

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/profile"
)

// minReported is the fraction of an inference above which profiling overhead or gaps are
// reported.
const minReported = 0.01

// overhead reports significant profiling overhead and time between operators. Reasons for
// uncertain times are reported once, with the verdict: see [Trust].
func overhead(r *profile.Reconcile) []profile.Finding {
	if r == nil || !(*r.WallS > 0) || !(*r.PlainS > 0) {
		return nil
	}
	var out []profile.Finding
	if g := *r.GapsS / *r.WallS; g > minReported {
		out = append(out, Finding("reconcile.gaps", profile.Info, nil, "%.1f %% of the time is between operators: start-up and clock reads matter in so short an inference.", 100*g))
	}
	o := r.OverheadS
	if o == nil || o.CI95 == nil || o.CI95[0] <= 0 && o.CI95[1] >= 0 {
		return out
	}
	cost := *o.Median
	if part := math.Abs(cost) / *r.PlainS; part > minReported {
		than := "longer"
		if cost < 0 {
			than = "less"
		}
		out = append(out, Finding("reconcile.overhead", profile.Warning, nil, "Profiled inferences took %.3g %% %s than plain ones (%s). Totals are from plain runs, shares from profiled runs.", 100*part, than, FormatTime(math.Abs(cost))))
	}
	return out
}

// FormatTime formats a time with three digits.
func FormatTime(seconds float64) string {
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

// withShares returns the layers with their shares of the time.
func withShares(ls []profile.Layer) []profile.Layer {
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

// dominant names the operators, and the few layers, that take the most time.
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
	sorting.Stable(ops, func(x, y profile.Group) int { return cmp.Compare(of[y.Name], of[x.Name]) })
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
	sorting.Stable(timed, func(x, y *profile.Layer) int { return cmp.Compare(*y.Share, *x.Share) })
	n, half := 0, 0.0
	for ; n < len(timed) && half < 0.5; n++ {
		half += *timed[n].Share
	}
	if n > 10 {
		return append(out, Finding("time.flat", profile.Info, nil, "No single layer stands out: it takes %d of %d layers to make up half of the time.", n, len(timed)))
	}
	names := make([]string, n)
	places := profile.Ranks(p.Layers)
	for k, l := range timed[:n] {
		names[k] = fmt.Sprintf("#%d %s", l.Index, Operator(l))
		// Without a note, the order of the list is that of the places.
		if at := slices.IndexFunc(p.Layers, func(o profile.Layer) bool { return o.Index == l.Index }); places[at] != nil && places[at][0] != places[at][1] {
			names[k] += " (" + profile.RankText(places[at]) + ")"
		}
	}
	verb := "make"
	if n == 1 {
		verb = "makes"
	}
	return append(out, Finding("time.layers", profile.Info, Indices(timed[:n]), "%s of %d %s up %.0f %% of the time: %s.", Plural(n, "layer"), len(timed), verb, 100*half, strings.Join(names, ", ")))
}

// unsettled warns that the shares below it are not fit to decide by.
func unsettled(p *profile.Profile) []profile.Finding {
	if !p.Trust.SharesDoubted() {
		return nil
	}
	return []profile.Finding{Finding("time.unsettled", profile.Warning, nil, "The shares of operators and layers are unsettled: too few undisturbed inferences, wide intervals or profiling overhead. Another run may name other layers first. Repeat with --time 10s, best on an idle machine.")}
}

// Finding makes one finding.
func Finding(id string, sev profile.Severity, layers []int64, format string, args ...any) profile.Finding {
	return profile.Finding{ID: id, Severity: sev, Text: fmt.Sprintf(format, args...), Layers: layers}
}

// Operator returns a layer's operator with its domain.
func Operator(l *profile.Layer) string {
	if l.Domain == "" {
		return l.Op
	}
	return l.Domain + ":" + l.Op
}

// Indices returns the indices of layers.
func Indices(ls profile.Layers) []int64 {
	out := make([]int64, len(ls))
	for i, l := range ls {
		out[i] = l.Index
	}
	return out
}

// Plural formats a count: "1 layer", "2 layers".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Findings reports the slowest operators and layers, time between layers and profiling overhead.
func Findings(p *profile.Profile) []profile.Finding {
	q := *p
	q.Layers = withShares(p.Layers)
	return slices.Concat(unsettled(p), dominant(&q), overhead(q.Reconcile))
}
