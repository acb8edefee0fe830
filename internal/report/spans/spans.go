// Package spans makes a profile's timeline ready for the formats that show
// times: the recorded one, or one laid out from the layers' figures; its bars in
// whole nanoseconds on one clock, strictly nested, and in order over all lanes. It
// knows times and nothing of figures.
package spans

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// View is a timeline to export. Lanes may be empty, the timeline is never nil.
type View struct {
	*timeline.Timeline
	Profile *profile.Profile
	// Recorded is false when the times were laid out and not taken.
	Recorded bool
	// LeftOut is the number of bars that [View.Thin] took away.
	LeftOut int
	until   float64 // seconds, see [View.first]
}

// Of returns the recorded timeline of p. Without one, it lays out one inference:
// the layers one after the other, each as long as its best figure says, those of
// bodies within their owner; Method says so.
func Of(p *profile.Profile) *View {
	if p.Timeline != nil && len(p.Timeline.Lanes) > 0 {
		return &View{Timeline: oneClock(p.Timeline), Profile: p, Recorded: true}
	}
	t := &timeline.Timeline{
		Origin: "start of one inference",
		Method: "not recorded: layers laid end to end by their latency, order and gaps are not measured",
	}
	if l, end := layOut(p.Layers); len(l.Starts) > 0 {
		t.Names = []string{"one inference"}
		t.Lanes = []timeline.Lane{
			{Name: "iterations", Kind: timeline.Iteration, Starts: []float64{0}, Durations: []float64{end}, Labels: []int32{0}, Iterations: []int32{0}},
			l,
		}
	}
	return &View{Timeline: t, Profile: p}
}

// layOut puts the layers behind one another. A parent stands before its bodies'
// layers, so that one walk backwards sums up and one forwards places.
func layOut(ls []profile.Layer) (timeline.Lane, float64) {
	total, own := make([]float64, len(ls)), make([]float64, len(ls))
	known := make([]bool, len(ls))
	for i := len(ls) - 1; i >= 0; i-- {
		l := &ls[i]
		if v, ok := l.Latency.Best(); ok && l.State == profile.Ran {
			own[i], known[i] = max(0, v), true
		}
		total[i] += own[i]
		if l.Parent != nil && known[i] {
			total[*l.Parent] += total[i]
			known[*l.Parent] = true // it lasts at least as long as what it runs
		}
	}
	out := timeline.Lane{Name: "layers", Kind: timeline.Layer}
	// next is where the next layer inside a parent begins, or outside all at -1.
	end := 0.0
	next := make([]float64, len(ls))
	children := make([][]int, len(ls))
	var place func(i int, at float64)
	place = func(i int, at float64) {
		out.Starts = append(out.Starts, at)
		out.Durations = append(out.Durations, total[i])
		out.Layers = append(out.Layers, int32(i))
		out.Iterations = append(out.Iterations, 0)
		next[i] = at + own[i]
		for _, c := range children[i] {
			place(c, next[i])
			next[i] += total[c]
		}
	}
	for i := range ls {
		if p := ls[i].Parent; p != nil && known[i] {
			children[*p] = append(children[*p], i)
		}
	}
	for i := range ls {
		if ls[i].Parent == nil && known[i] {
			place(i, end)
			end += total[i]
		}
	}
	return out, end
}

// Groups lists what lanes and counters belong to, in order of appearance.
func (v *View) Groups() []string {
	var out []string
	seen := map[string]bool{}
	add := func(g string) {
		if !seen[g] {
			seen[g] = true
			out = append(out, g)
		}
	}
	for i := range v.Lanes {
		add(v.Lanes[i].Group)
	}
	for i := range v.Counters {
		add(v.Counters[i].Group)
	}
	return out
}

// Path lists what a layer lies in, from the outside in: the parts of its scope,
// each with those before it, and the control flow whose bodies it is in.
func Path(p *profile.Profile, i int) (scopes []string, parents []int) {
	l := &p.Layers[i]
	for at := range len(l.Scope) {
		// The names of a deep path would grow with its square.
		if l.Scope[at] == '/' && at > 0 && len(scopes) < 64 {
			scopes = append(scopes, l.Scope[:at])
		}
	}
	if l.Scope != "" {
		scopes = append(scopes, l.Scope)
	}
	for o := l.Parent; o != nil; o = p.Layers[*o].Parent {
		parents = append(parents, int(*o))
	}
	slices.Reverse(parents)
	return scopes, parents
}

// Node is the position in the file of the layer's own node, or the layer's index
// where that is not known.
func Node(l *profile.Layer) int64 {
	if l.Provenance != nil && len(l.Provenance.SourceNodes) > 0 {
		return l.Provenance.SourceNodes[0].Node
	}
	return l.Index
}

// Lane returns the view of one lane alone.
func (v *View) Lane(i int) *View {
	t := &timeline.Timeline{Names: v.Names, Subnets: v.Subnets, Lanes: v.Lanes[i : i+1]}
	return &View{Timeline: t, Profile: v.Profile, Recorded: v.Recorded}
}

// Layer is the layer of a bar, nil for none.
func (v *View) Layer(l *timeline.Lane, bar int) *profile.Layer {
	if i := At(l.Layers, bar); i >= 0 {
		return &v.Profile.Layers[i]
	}
	return nil
}

// Name is the text on a bar: its label, or the name or operator of its layer.
func (v *View) Name(l *timeline.Lane, bar int) string {
	if i := At(l.Labels, bar); i >= 0 {
		if n := v.Names[i]; n != "" {
			return n
		}
	}
	if y := v.Layer(l, bar); y != nil {
		return LayerName(y)
	}
	return l.Name
}

// Type is the bar's kind of work: its own, the operator of its layer, or what the
// lane holds.
func (v *View) Type(l *timeline.Lane, bar int) string {
	if i := At(l.Types, bar); i >= 0 {
		if n := v.Names[i]; n != "" {
			return n
		}
	}
	if y := v.Layer(l, bar); y != nil {
		return y.Op
	}
	return string(l.Kind)
}

// LayerName is the layer's name, or its operator if it has none.
func LayerName(l *profile.Layer) string { return cmp.Or(l.Name, l.Op) }

// At is an entry of an optional column, -1 for none.
func At(column []int32, i int) int {
	if i < len(column) {
		return int(column[i])
	}
	return -1
}

// Nanos is a time in whole nanoseconds.
func Nanos(s float64) int64 { return int64(math.Round(s * 1e9)) }

// Bar is a bar in whole nanoseconds. It lies within the bar around it and does not
// touch the inside of its neighbours.
type Bar struct {
	Lane, Index int
	Start, End  int64
	Depth       int
	// Stall marks the part of the bar in which it waited, which is a bar within it.
	Stall bool
}

// Bars walks the bars of a lane in order.
func (v *View) Bars(lane int) iter.Seq[Bar] {
	return func(yield func(Bar) bool) {
		c := cursor{l: &v.Lanes[lane], lane: lane}
		for c.load() {
			if !yield(c.bar) {
				return
			}
		}
	}
}

// Span is when the first bar starts and the last one ends, 0 and 0 for none.
func (v *View) Span() (start, end int64) {
	first := true
	for i := range v.Lanes {
		for j, s := range v.Lanes[i].Starts {
			a, b := Nanos(s), Nanos(s+v.Lanes[i].Durations[j])
			if first {
				start, end, first = a, b, false
			}
			start, end = min(start, a), max(end, b)
		}
	}
	return start, end
}

// Size is the number of bars.
func (v *View) Size() int {
	n := 0
	for i := range v.Lanes {
		n += len(v.Lanes[i].Starts)
	}
	return n
}

// Thin returns the view with at most most bars: every second, third … iteration as
// a whole, and where that does not suffice, what starts first. Method says so.
func (v *View) Thin(most int) *View {
	size := v.Size()
	if size <= most {
		return v
	}
	free, largest := 0, int32(-1)
	for i := range v.Lanes {
		l := &v.Lanes[i]
		for j := range l.Starts {
			n := int32(At(l.Iterations, j))
			if n < 0 {
				free++
			}
			largest = max(largest, n)
		}
	}
	// Number of bars by iteration, then the smallest step that is small enough.
	per := make(map[int32]int)
	for i := range v.Lanes {
		for _, n := range v.Lanes[i].Iterations {
			if n >= 0 {
				per[n]++
			}
		}
	}
	var order []int32
	for n := range int64(largest) + 1 {
		if per[int32(n)] > 0 {
			order = append(order, int32(n))
		}
	}
	step := 1
	for ; step < len(order); step++ {
		sum := free
		for i := 0; i < len(order); i += step {
			sum += per[order[i]]
		}
		if sum <= most {
			break
		}
	}
	out := v
	if step > 1 {
		keep := map[int32]bool{-1: true}
		for i := 0; i < len(order); i += step {
			keep[order[i]] = true
		}
		out = v.iterations(keep)
		out.Method += fmt.Sprintf("; of the iterations recorded, one in %d is in this file", step)
	}
	if out.Size() > most {
		out = out.first(most)
		out.Method += fmt.Sprintf("; only bars that start before %v s are in this file", out.until)
	}
	out.LeftOut = size - out.Size()
	return out
}

// first keeps the bars that start before the one after the given number of them.
func (v *View) first(n int) *View {
	var starts []float64
	for i := range v.Lanes {
		starts = append(starts, v.Lanes[i].Starts...)
	}
	slices.Sort(starts)
	out := v.only(func(l *timeline.Lane, bar int) bool { return l.Starts[bar] < starts[n] })
	out.until = starts[n]
	return out
}

// iterations keeps the bars of some iterations.
func (v *View) iterations(keep map[int32]bool) *View {
	return v.only(func(l *timeline.Lane, bar int) bool { return keep[int32(At(l.Iterations, bar))] })
}

// only keeps some bars.
func (v *View) only(keep func(l *timeline.Lane, bar int) bool) *View {
	return &View{Timeline: v.Keep(keep), Profile: v.Profile, Recorded: v.Recorded}
}

// MedianRun returns the bars of the representative iteration, or without one of that
// whose length is the median (the lower of the two in the middle), with its number and
// how many there are. Where no lane shows iterations it returns v itself and 0.
func (v *View) MedianRun() (run *View, number int32, of int) {
	type iteration struct {
		seconds float64
		number  int32
	}
	var all []iteration
	for i := range v.Lanes {
		l := &v.Lanes[i]
		if l.Kind != timeline.Iteration || len(all) > 0 {
			continue
		}
		for j, d := range l.Durations {
			if n := At(l.Iterations, j); n >= 0 {
				all = append(all, iteration{d, int32(n)})
			}
		}
	}
	if len(all) == 0 {
		return v, 0, 0
	}
	sorting.Stable(all, func(a, b iteration) int { return cmp.Compare(a.seconds, b.seconds) })
	m := all[(len(all)-1)/2]
	if n := v.Representative; n != nil {
		if i := slices.IndexFunc(all, func(x iteration) bool { return int64(x.number) == *n }); i >= 0 {
			m = all[i]
		}
	}
	return v.iterations(map[int32]bool{m.number: true}), m.number, len(all)
}
