package compare

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
)

// contribute sets what each group adds to the difference, and why.
func (b *builder) contribute() {
	for i := range b.t.Groups {
		g := &b.t.Groups[i]
		g.Contributions = make([]*float64, len(b.ps))
		g.Reasons = make([][]Reason, len(b.ps))
		for k := range b.ps {
			if k == 0 {
				continue
			}
			if b.q.Adds {
				g.Contributions[k] = b.contribution(g, k)
			}
			g.Reasons[k] = b.reasons(g, k)
		}
		switch {
		case g.Kind != "":
		case b.t.By != ByLayer: // layers of several kinds
			if g.Certain = true; g.oneSided() {
				g.Kind = kindOf(g)
			}
			g.Matches = slices.Repeat([]Match{{Certain: true}}, len(b.ps))
			for k := range g.Matches[1:] {
				g.Matches[k+1].Kind = g.alone(k + 1)
			}
		default:
			g.Kind = kindOf(g)
			g.Certain = slices.Contains([]profile.Confidence{profile.Exact, profile.ByTensor, profile.ByName}, g.Confidence)
		}
	}
}

// oneSided reports whether the first run has none of the layers, or all others have none.
func (g *Group) oneSided() bool { k := kindOf(g); return k == align.Inserted || k == align.Removed }

// kindOf is what the layers of a group alone tell.
func kindOf(g *Group) align.Kind {
	first, last := len(g.Layers[0]), 0
	for _, layers := range g.Layers[1:] {
		last = max(last, len(layers))
	}
	switch {
	case first == 0:
		return align.Inserted
	case last == 0:
		return align.Removed
	case first > last:
		return align.Fused
	case first < last:
		return align.Split
	}
	return align.Same
}

// contribution is what a group adds to the difference of run k. Layers that a run does not have
// take nothing there; layers without a figure are unknown.
func (b *builder) contribution(g *Group, k int) *float64 {
	v, ok := known(g, k)
	first, also := known(g, 0)
	if !ok || !also {
		return nil
	}
	return new(v - first)
}

func known(g *Group, k int) (float64, bool) {
	f := &g.Figures[k]
	if f.Value == nil {
		return 0, len(g.Layers[k]) == 0
	}
	return *f.Value, !f.Partial
}

// largestSteps bounds the steps of a waterfall with a row of their own.
const largestSteps = 12

// waterfalls explains the differences of the totals by the rows.
func (b *builder) waterfalls() {
	first := &b.t.Runs[0]
	b.t.Waterfalls = []Waterfall{}
	for k := 1; k < len(b.ps) && b.q.Adds; k++ {
		r := &b.t.Runs[k]
		if first.Total.Value == nil || r.Total.Value == nil {
			continue
		}
		w := Waterfall{Run: k, From: *first.Total.Value, To: *r.Total.Value, Steps: b.steps(k)}
		w.Rest = rest(w)
		b.t.Waterfalls = append(b.t.Waterfalls, w)
	}
}

// steps are the largest contributions, the other rows as one, and what engines add.
func (b *builder) steps(k int) []Step {
	steps := []Step{}
	for i := range b.t.Groups {
		g := &b.t.Groups[i]
		if c := g.Contributions[k]; c != nil && *c != 0 {
			steps = append(steps, Step{Label: g.Label(), Groups: []int{i}, Value: *c})
		}
	}
	sorting.Stable(steps, func(x, y Step) int { return cmp.Compare(math.Abs(y.Value), math.Abs(x.Value)) })
	if len(steps) > largestSteps+1 {
		others := Step{Label: "other rows"}
		for _, s := range steps[largestSteps:] {
			others.Groups = append(others.Groups, s.Groups...)
			others.Value += s.Value
		}
		steps = append(steps[:largestSteps], others)
	}
	if x, y := b.t.Runs[0].Inserted, b.t.Runs[k].Inserted; x != nil || y != nil {
		if v := value(y) - value(x); v != 0 {
			steps = append(steps, Step{Label: "added by the engine", Value: v})
		}
	}
	return steps
}

func value(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// rest is what the steps leave, so that the sum in floating point is exact.
func rest(w Waterfall) float64 {
	sum := w.From
	for _, s := range w.Steps {
		sum += s.Value
	}
	r := w.To - sum
	for range 4 { // rounding of the difference is at most a unit in the last place
		switch got := sum + r; {
		case got < w.To:
			r = math.Nextafter(r, math.Inf(1))
		case got > w.To:
			r = math.Nextafter(r, math.Inf(-1))
		}
	}
	return r
}

// reasons lists in what the layers of a group differ between the first run and run k. Of numbers,
// those that go the other way than the difference explain nothing.
func (b *builder) reasons(g *Group, k int) []Reason {
	if len(g.Layers[0]) == 0 || len(g.Layers[k]) == 0 {
		return nil
	}
	p, q := b.ps[0], b.ps[k]
	x, y := p.At(g.Layers[0]), q.At(g.Layers[k])
	r := reasons{difference: g.Contributions[k]}
	for _, key := range []string{"macs", "ops"} {
		a, ok := x.Sum(key)
		c, also := y.Sum(key)
		if ok && also && a+c > 0 {
			r.number(ByWork, &a, &c, 1)
			break
		}
	}
	r.number(ByBytes, traffic(x), traffic(y), 1)
	r.text(ByType, most(x, b.types[0]), most(y, b.types[k]))
	if g.Match(k).Kind == align.Replaced {
		first, this := options(x, y)
		r.text(ByOptions, first, this)
	}
	r.text(ByKernel, most(x, kernel), most(y, kernel))
	r.text(ByPlacement, most(x, placed), most(y, placed))
	if a, c := float64(active(x)), float64(active(y)); a > 0 && c > 0 {
		r.number(ByFusion, &a, &c, 0)
	}
	if b.cost {
		r.number(ByClock, clock(p), clock(q), -1)
		r.number(ByThreads, threads(p), threads(q), -1)
	}
	return r.list
}

// reasons gathers properties that differ.
type reasons struct {
	list []Reason
	// difference is that of the figures, nil if unknown.
	difference *float64
}

// number adds a number that makes the figure larger (1) or smaller (-1), or either (0).
func (r *reasons) number(code ReasonCode, first, this *float64, way float64) {
	if first == nil || this == nil || *first == *this {
		return
	}
	if d := r.difference; d != nil && way*(*this-*first)**d < 0 {
		return
	}
	r.list = append(r.list, Reason{Code: code, First: first, This: this})
}

func (r *reasons) text(code ReasonCode, first, this string) {
	if first != this && first != "" && this != "" {
		r.list = append(r.list, Reason{Code: code, FirstText: first, ThisText: this})
	}
}

// options are those options of two layers of one operator that differ, "" for other layers.
func options(x, y profile.Layers) (first, this string) {
	if len(x) != 1 || len(y) != 1 || x[0].Op != y[0].Op {
		return "", ""
	}
	list := func(a, b *profile.Layer) string {
		var parts []string
		for _, o := range align.OtherOptions(a, b) {
			parts = append(parts, o.Key+" "+o.Value)
		}
		return cmp.Or(strings.Join(parts, ", "), "default")
	}
	if first, this = list(x[0], y[0]), list(y[0], x[0]); first == this {
		return "", ""
	}
	return first, this
}

func kernel(l *profile.Layer) string { return l.Kernel }

// clock is the clock of a target in hertz, or the speed of a machine by the reference loop.
func clock(p *profile.Profile) *float64 {
	if p.Target.ClockHz != nil && p.Target.Kind != profile.TargetHost {
		return p.Target.ClockHz
	}
	return nil
}

func threads(p *profile.Profile) *float64 {
	if p.Settings.Threads == nil {
		return nil
	}
	return new(float64(*p.Settings.Threads))
}

func placed(l *profile.Layer) string {
	if l.Placement == nil {
		return ""
	}
	return l.Placement.On
}

// active counts layers that take part in an inference.
func active(ls profile.Layers) (n int) {
	for _, l := range ls {
		if !l.State.Elsewhere() {
			n++
		}
	}
	return n
}

// traffic is what layers read and write, in bytes.
func traffic(ls profile.Layers) *float64 {
	r, ok := ls.Sum("bytes_read")
	w, also := ls.Sum("bytes_written")
	if !ok || !also {
		return nil
	}
	return new(r + w)
}

// most is the text of the layer that takes most time, of those with one.
func most(ls profile.Layers, text func(*profile.Layer) string) string {
	best, at := "", -1.0
	for _, l := range ls {
		s := text(l)
		if s == "" || l.State.Elsewhere() {
			continue
		}
		v, _ := l.Latency.Best()
		if v > at {
			best, at = s, v
		}
	}
	return best
}
