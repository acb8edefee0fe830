package spans

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// viewOf is the view of lanes given as starts and lengths in nanoseconds.
func viewOf(lanes ...[][2]float64) *View {
	t := &timeline.Timeline{}
	for _, bars := range lanes {
		l := timeline.Lane{Kind: timeline.Engine}
		for _, b := range bars {
			l.Starts, l.Durations = append(l.Starts, b[0]*1e-9), append(l.Durations, b[1]*1e-9)
		}
		t.Lanes = append(t.Lanes, l)
	}
	return &View{Timeline: t, Profile: &profile.Profile{}}
}

// TestNesting rounds to nanoseconds so that bars lie within those around them and do not
// touch their neighbours.
func TestNesting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		bars [][2]float64
		want string
	}{
		{"one after the other", [][2]float64{{0, 10}, {10, 5}, {20, 5}}, "0-10/0 10-15/0 20-25/0"},
		{"within", [][2]float64{{0, 10}, {2, 3}, {5, 5}}, "0-10/0 2-5/1 5-10/1"},
		{"deep", [][2]float64{{0, 10}, {0, 10}, {4, 2}, {11, 1}}, "0-10/0 0-10/1 4-6/2 11-12/0"},
		// Half a nanosecond is within the error of what was written.
		{"nearly after", [][2]float64{{0, 10.4}, {10, 5}}, "0-10/0 10-15/0"},
		{"nearly within", [][2]float64{{0, 10.6}, {10, 0.6}}, "0-11/0 10-11/1"},
		{"rounded beyond the one around", [][2]float64{{0, 10.4}, {2, 8.4}}, "0-10/0 2-10/1"},
		{"rounded before the one before", [][2]float64{{0, 3.6}, {3.2, 4}}, "0-4/0 4-7/0"},
		{"no length", [][2]float64{{5, 0}, {5, 0}}, "5-5/0 5-5/0"},
	} {
		var got []string
		v := viewOf(c.bars)
		for b := range v.Bars(0) {
			got = append(got, fmt.Sprintf("%d-%d/%d", b.Start, b.End, b.Depth))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s, want %s", c.name, s, c.want)
		}
	}
	v := viewOf([][2]float64{{5, 10}, {20, 1}}, [][2]float64{{3, 2}}, nil, [][2]float64{{4, 30}})
	if a, b := v.Span(); a != 3 || b != 34 || v.Size() != 4 {
		t.Errorf("from %d to %d, %d bars", a, b, v.Size())
	}
	if a, b := viewOf(nil).Span(); a != 0 || b != 0 {
		t.Errorf("of nothing from %d to %d", a, b)
	}
	for s, want := range map[float64]int64{1.4e-9: 1, 1.6e-9: 2, -1.6e-9: -2, 2: 2e9} {
		if got := Nanos(s); got != want {
			t.Errorf("%v s are %d ns, want %d", s, got, want)
		}
	}
}

// told writes events as "kind at lane/index".
func told(v *View) []string {
	names := map[EventKind]string{Begin: "begin", End: "end", Value: "value", LinkFrom: "from", LinkTo: "to"}
	var out []string
	for e := range v.Events() {
		s := fmt.Sprintf("%s %d", names[e.Kind], e.At)
		switch e.Kind {
		case Value:
			s += fmt.Sprintf(" counter %d/%d", e.Item, e.Index)
		case LinkFrom, LinkTo:
			s += fmt.Sprintf(" link %d", e.Item)
		default:
			s += fmt.Sprintf(" %d/%d", e.Bar.Lane, e.Bar.Index)
			if e.Bar.Stall {
				s += " stall"
			}
		}
		out = append(out, s)
	}
	return out
}

// TestEventOrder has events of two lanes, waiting parts, a counter and arrows in order.
func TestEventOrder(t *testing.T) {
	t.Parallel()
	v := viewOf([][2]float64{{0, 10}, {2, 3}, {12, 4}}, [][2]float64{{2, 4}, {8, 1}})
	// the first has another in it, the last waits longer than it lasts
	v.Lanes[0].Stalls = []float64{5e-9, 1e-9, 9e-9}
	v.Counters = []timeline.Counter{{Times: []float64{2e-9, 9e-9}, Values: []float64{1, 2}}}
	v.Links = []timeline.Link{
		{FromLane: 1, FromBar: 1, ToLane: 0, ToBar: 2},
		{FromLane: 0, FromBar: 1, ToLane: 1, ToBar: 0},
		{FromLane: 0, FromBar: 2, ToLane: 1, ToBar: 0}, // could arrive only after its bar
		// arrives when it leaves, within a bar that began before
		{FromLane: 1, FromBar: 1, ToLane: 0, ToBar: 0},
	}
	want := []string{
		"begin 0 0/0", "begin 2 0/1", "begin 2 0/1 stall", "begin 2 1/0", "value 2 counter 0/0", "from 2 link 1", "to 2 link 1", "end 3 0/1 stall", "end 5 0/1",
		"end 6 1/0", "begin 8 1/1", "from 8 link 0", "from 8 link 3", "to 8 link 3", "end 9 1/1", "value 9 counter 0/1", "end 10 0/0", "begin 12 0/2", "begin 12 0/2 stall", "to 12 link 0", "end 16 0/2 stall", "end 16 0/2",
	}
	if got := told(v); !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	n := 0
	for range v.Events() {
		if n++; n == 3 {
			break
		}
	}
	for range v.Bars(0) {
		n++
		break
	}
	if n != 4 {
		t.Errorf("%d events after a break", n)
	}
}

// TestNamesAndTypes takes a bar's own label, then its layer's name, then the lane's.
func TestNamesAndTypes(t *testing.T) {
	t.Parallel()
	v := &View{
		Timeline: &timeline.Timeline{Names: []string{"label", "", "kind"}},
		Profile:  &profile.Profile{Layers: []profile.Layer{{Op: "ADD", Name: "add"}, {Op: "MUL", Index: 1}}},
	}
	l := &timeline.Lane{Name: "lane", Kind: timeline.Engine, Labels: []int32{0, 1, -1, -1, 1}, Types: []int32{2, 1, -1, -1, -1}, Layers: []int32{0, 0, 1, -1}}
	for i, want := range [][2]string{{"label", "kind"}, {"add", "ADD"}, {"MUL", "MUL"}, {"lane", string(timeline.Engine)}, {"lane", string(timeline.Engine)}, {"lane", string(timeline.Engine)}} {
		if got := [2]string{v.Name(l, i), v.Type(l, i)}; got != want {
			t.Errorf("bar %d: %q, want %q", i, got, want)
		}
	}
	if v.Layer(l, 0) != &v.Profile.Layers[0] || v.Layer(l, 3) != nil || v.Layer(l, 9) != nil {
		t.Error("layers of bars")
	}
	if At([]int32{5}, 0) != 5 || At([]int32{5}, 1) != -1 || At(nil, 0) != -1 {
		t.Error("optional columns")
	}
	if got := Node(&profile.Layer{Index: 3}); got != 3 {
		t.Errorf("node %d", got)
	}
	if got := Node(&profile.Layer{Index: 3, Provenance: &profile.Provenance{SourceNodes: []profile.SourceNode{{Node: 7}, {Node: 8}}}}); got != 7 {
		t.Errorf("node %d", got)
	}
	if got := Node(&profile.Layer{Index: 3, Provenance: &profile.Provenance{}}); got != 3 {
		t.Errorf("node %d", got)
	}
	// Groups in order of appearance, lanes before counters.
	g := &View{Timeline: &timeline.Timeline{Lanes: []timeline.Lane{{Group: "b"}, {}, {Group: "b"}}, Counters: []timeline.Counter{{Group: "a"}, {Group: "b"}}}}
	if got := g.Groups(); !slices.Equal(got, []string{"b", "", "a"}) {
		t.Errorf("groups %q", got)
	}
	// Of a path no more than 64 parts and the whole have names.
	p := &profile.Profile{Layers: []profile.Layer{{Scope: strings.Repeat("a/", 70) + "z"}, {}}}
	if scopes, _ := Path(p, 0); len(scopes) != 65 || scopes[0] != "a" || scopes[1] != "a/a" || scopes[64] != p.Layers[0].Scope {
		t.Errorf("%d scopes", len(scopes))
	}
	if scopes, parents := Path(p, 1); scopes != nil || parents != nil {
		t.Errorf("no path: %q, %v", scopes, parents)
	}
}

// TestThinned takes whole iterations away, as few as suffice, then what starts late; links
// follow their bars.
func TestThinned(t *testing.T) {
	t.Parallel()
	// Six iterations of three bars, and two bars of none.
	l := timeline.Lane{Name: "l"}
	for i := range 6 {
		for j := range 3 {
			// numbers need not be dense
			l.Starts, l.Durations, l.Iterations = append(l.Starts, float64(10*i+j)), append(l.Durations, 1), append(l.Iterations, int32(2*i))
		}
	}
	l.Starts, l.Durations, l.Iterations = append(l.Starts, 100, 101), append(l.Durations, 1, 1), append(l.Iterations, -1, -1)
	v := &View{Timeline: &timeline.Timeline{Method: "m", Lanes: []timeline.Lane{l}, Links: []timeline.Link{{FromBar: 0, ToBar: 2}, {FromBar: 0, ToBar: 3}, {FromBar: 6, ToBar: 18}}}, Profile: &profile.Profile{}}
	for _, c := range []struct {
		most, size, left int
		links            int
		method           string
	}{
		{20, 20, 0, 3, "m"},
		{19, 11, 9, 2, "m; of the iterations recorded, one in 2 is in this file"},
		{11, 11, 9, 2, "m; of the iterations recorded, one in 2 is in this file"},
		{10, 8, 12, 1, "m; of the iterations recorded, one in 3 is in this file"},
		{7, 5, 15, 1, "m; of the iterations recorded, one in 6 is in this file"},
		{4, 4, 16, 1, "m; of the iterations recorded, one in 6 is in this file; only bars that start before 101 s are in this file"},
	} {
		w := v.Thin(c.most)
		if w.Size() != c.size || w.LeftOut != c.left || w.Method != c.method || len(w.Links) != c.links {
			t.Errorf("at most %d: %d bars, %d left out, %d links, %q", c.most, w.Size(), w.LeftOut, len(w.Links), w.Method)
		}
	}
	// Links have the new places of their bars.
	if w := v.Thin(11); w.Links[1].FromBar != 3 || w.Links[1].ToBar != 9 {
		t.Errorf("links %+v", w.Links)
	}
	// The median of two is the lower one; numbers of iterations are those of the lane.
	run := &View{Profile: &profile.Profile{}, Timeline: &timeline.Timeline{Lanes: []timeline.Lane{
		{Kind: timeline.Engine, Starts: []float64{0, 5, 20}, Durations: []float64{1, 1, 1}, Iterations: []int32{4, 4, 9}},
		{Kind: timeline.Iteration, Starts: []float64{0, 20, 30}, Durations: []float64{3, 7, 1}, Iterations: []int32{4, 9, -1}},
		{Kind: timeline.Iteration, Starts: []float64{0}, Durations: []float64{99}, Iterations: []int32{9}},
	}}}
	if r, n, of := run.MedianRun(); n != 4 || of != 2 || r.Size() != 3 {
		t.Errorf("run %d of %d with %d bars, want 4 of 2 with 3", n, of, r.Size())
	}
}

// TestClockEnds converts where a clock has no lane, a bar before the origin, and lanes of
// clocks that are not described.
func TestClockEnds(t *testing.T) {
	t.Parallel()
	p := &profile.Profile{Timeline: &timeline.Timeline{
		Clocks: []timeline.Clock{{Name: "late", OffsetS: new(10.0)}, {Name: "a"}, {Name: "b", Rate: new(0.5)}},
		Lanes: []timeline.Lane{
			{Clock: "late", Starts: []float64{9, 12}, Durations: []float64{2, 1}, Stalls: []float64{1}},
			{Clock: "b", Starts: []float64{40, 44}, Durations: []float64{2, 2}, Stalls: []float64{1, 0.5}},
			{Clock: "b", Starts: []float64{38}, Durations: []float64{2}},
			{Starts: []float64{6}, Durations: []float64{1}},
			{Starts: []float64{5}, Durations: []float64{1}},
			{},
		},
		Counters: []timeline.Counter{{Clock: "b", Times: []float64{38, 42}, Values: []float64{1, 2}}, {Times: []float64{7}, Values: []float64{1}}},
	}}
	v := Of(p)
	want := []string{"[0 2] [1 1] [1]", "[6 8] [1 1] [0.5 0.25]", "[5] [1] []", "[6] [1] []", "[5] [1] []", "[] [] []"}
	for i := range v.Lanes {
		l := &v.Lanes[i]
		if got := fmt.Sprint(l.Starts, l.Durations, l.Stalls); got != want[i] {
			t.Errorf("lane %d: %s, want %s", i, got, want[i])
		}
	}
	if got := fmt.Sprint(v.Counters[0].Times, v.Counters[1].Times); got != "[5 7] [7]" {
		t.Errorf("counters at %s", got)
	}
	if v.Method != "times by the clock a, b can be compared among themselves only" {
		t.Errorf("method %q", v.Method)
	}
	p.Timeline.Clocks = nil
	if Of(p).Timeline != p.Timeline {
		t.Error("one clock is converted")
	}
}
