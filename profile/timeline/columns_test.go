package timeline_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/profile/timeline"
)

// TestPaths names every column of the small timeline by its place in JSON, in order.
func TestPaths(t *testing.T) {
	t.Parallel()
	var got []string
	for path, c := range good().Columns() {
		var s []string
		for _, p := range path {
			s = append(s, fmt.Sprint(p))
		}
		if c.Key != s[len(s)-1] {
			t.Errorf("key %q at %v", c.Key, path)
		}
		got = append(got, strings.Join(s, "."))
	}
	lane := "starts_s durations_s layers labels types iterations subnets directions stalls_s moved_bytes utilisation"
	var want []string
	for i := range 2 {
		for k := range strings.FieldsSeq(lane) {
			want = append(want, fmt.Sprintf("lanes.%d.%s", i, k))
		}
		if i == 0 {
			want = append(want, "lanes.0.figures.bank_conflicts")
		}
	}
	want = append(want, "counters.0.times_s", "counters.0.values")
	for k := range strings.FieldsSeq("starts_s ends_s address_bytes size_bytes writes layers") {
		want = append(want, "memories.0."+k)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// A walk ends where it is left, in each of the lists.
	for n := 1; n <= len(want); n++ {
		k := 0
		for range good().Columns() {
			if k++; k == n {
				break
			}
		}
		if k != n {
			t.Fatalf("%d columns after a break at %d", k, n)
		}
	}
}

// TestColumnKinds has one of three kinds of numbers in each column, absent, empty or with entries.
func TestColumnKinds(t *testing.T) {
	t.Parallel()
	f, l, i := []float64{1, 2, 3}, []int64{4, 5, 6}, []int32{7, 8, 9}
	for _, c := range []timeline.Column{{Float64: &f}, {Int64: &l}, {Int32: &i}} {
		if c.Len() != 3 || c.Absent() {
			t.Errorf("%d entries, absent %v", c.Len(), c.Absent())
		}
		c.Pick([]int{2, 0})
		if c.Len() != 2 {
			t.Errorf("%d entries", c.Len())
		}
	}
	if !cmp.Equal(f, []float64{3, 1}) || !cmp.Equal(l, []int64{6, 4}) || !cmp.Equal(i, []int32{9, 7}) {
		t.Error(f, l, i)
	}
	f, l, i = nil, nil, nil
	for _, c := range []timeline.Column{{Float64: &f}, {Int64: &l}, {Int32: &i}} {
		if c.Len() != 0 || !c.Absent() {
			t.Errorf("%d entries, absent %v", c.Len(), c.Absent())
		}
		c.Pick([]int{0, 1}) // an absent one stays so
	}
	if f != nil || l != nil || i != nil {
		t.Error(f, l, i)
	}
	f, l, i = []float64{}, []int64{}, []int32{}
	for _, c := range []timeline.Column{{Float64: &f}, {Int64: &l}, {Int32: &i}} {
		if c.Absent() {
			t.Error("an empty column is taken for an absent one")
		}
	}
}

// TestComplete makes the lists that are always written, and leaves others out.
func TestComplete(t *testing.T) {
	t.Parallel()
	l := &timeline.Timeline{}
	l.Complete()
	if l.Lanes == nil || l.Counters != nil {
		t.Errorf("%+v", l)
	}
	l = &timeline.Timeline{
		Lanes: []timeline.Lane{{Figures: map[string][]float64{"x": nil}}}, Counters: []timeline.Counter{{}}, Memories: []timeline.Memory{{}},
	}
	l.Complete()
	want := &timeline.Timeline{
		Lanes:    []timeline.Lane{{Starts: []float64{}, Durations: []float64{}, Figures: map[string][]float64{"x": {}}}},
		Counters: []timeline.Counter{{Times: []float64{}, Values: []float64{}}}, Memories: []timeline.Memory{{}},
	}
	if d := cmp.Diff(want, l); d != "" {
		t.Error(d)
	}
	full := good()
	full.Complete()
	if d := cmp.Diff(good(), full); d != "" {
		t.Error(d)
	}
}

// TestEdges has the last value of each range that is right.
func TestEdges(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*timeline.Timeline){
		"nothing":            func(l *timeline.Timeline) { *l = timeline.Timeline{} },
		"none of 0":          func(l *timeline.Timeline) { l.Iterations, l.Dropped = new(int64(0)), new(int64(0)) },
		"largest offset":     func(l *timeline.Timeline) { l.Clocks[0].OffsetS = new(-math.MaxFloat64) },
		"largest rate":       func(l *timeline.Timeline) { l.Clocks[0].Rate = new(math.MaxFloat64) },
		"smallest rate":      func(l *timeline.Timeline) { l.Clocks[0].Rate = new(5e-324) },
		"no offset and rate": func(l *timeline.Timeline) { l.Clocks[0].OffsetS, l.Clocks[0].Rate = nil, nil },
		"latest counter":     func(l *timeline.Timeline) { l.Counters[0].Times = []float64{0, 1e9} },
		"equal times":        func(l *timeline.Timeline) { l.Counters[0].Times = []float64{1, 1} },
		"longest wait":       func(l *timeline.Timeline) { l.Lanes[0].Stalls[0] = 1e9 },
		"bar to bar": func(l *timeline.Timeline) {
			l.Lanes[0].Starts, l.Lanes[0].Durations = []float64{0, 1, 1, 2}, []float64{1, 1, 1, 0}
		},
		"last iteration":          func(l *timeline.Timeline) { l.Lanes[0].Iterations[0] = math.MaxInt32 },
		"bars less than rounding": func(l *timeline.Timeline) { l.Lanes[0].Durations[2] = 2e-3 + 0.4e-9 },
		"bars that just touch":    func(l *timeline.Timeline) { l.Lanes[0].Durations[0] = 1e-3 + 0.4e-9 },
		"no layers column":        func(l *timeline.Timeline) { l.Lanes[0].Layers, l.Memories[0].Layers = nil, nil },
		"access of no bytes":      func(l *timeline.Timeline) { l.Memories[0].Sizes[0] = 0 },
		"access of no time":       func(l *timeline.Timeline) { l.Memories[0].Ends[0] = 0 },
		"latest access":           func(l *timeline.Timeline) { l.Memories[0].Ends[0] = 1e9 },
		"a read":                  func(l *timeline.Timeline) { l.Memories[0].Writes[0] = 0 },
		"an empty bank":           func(l *timeline.Timeline) { l.Memories[0].Partitions[0].Bytes = 0 },
		"a key of 100 letters": func(l *timeline.Timeline) {
			l.Lanes[0].Figures[strings.Repeat("a", 100)] = make([]float64, 4)
		},
		"a key of all kinds": func(l *timeline.Timeline) { l.Lanes[0].Figures["az_09"] = make([]float64, 4) },
		"a link to the last": func(l *timeline.Timeline) { l.Links[0] = timeline.Link{FromBar: 3, ToBar: 0} },
	} {
		l := good()
		change(l)
		if err := l.Validate(1); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for want, change := range map[string]func(*timeline.Timeline){
		"clocks[0].offset_s is +Inf":                          func(l *timeline.Timeline) { l.Clocks[0].OffsetS = new(math.Inf(1)) },
		"clocks[0].rate is +Inf":                              func(l *timeline.Timeline) { l.Clocks[0].Rate = new(math.Inf(1)) },
		"clocks[0].rate is NaN":                               func(l *timeline.Timeline) { l.Clocks[0].Rate = new(math.NaN()) },
		"counters[0].times_s has 1.0000000000000001e+09 at 1": func(l *timeline.Timeline) { l.Counters[0].Times = []float64{0, math.Nextafter(1e9, 2e9)} },
		"lanes[0].stalls_s has NaN":                           func(l *timeline.Timeline) { l.Lanes[0].Stalls[1] = math.NaN() },
		"lanes[0].labels has 1 at 0, want -1 to 0":            func(l *timeline.Timeline) { l.Lanes[0].Labels[0] = 1 },
		"lanes[0].layers has -2 at 0, want -1 to 0":           func(l *timeline.Timeline) { l.Lanes[0].Layers[0] = -2 },
		"lanes[0] bar 1 ends after the bar around it":         func(l *timeline.Timeline) { l.Lanes[0].Durations[0] = 1e-3 + 1e-9 },
		"lanes[0] bar 2 ends after the bar around it":         func(l *timeline.Timeline) { l.Lanes[0].Durations[2] = 2e-3 + 1e-9 },
		"memories[0].ends_s has 0 entries, want 1":            func(l *timeline.Timeline) { l.Memories[0].Ends = nil },
		"memories[0].address_bytes has 0 entries":             func(l *timeline.Timeline) { l.Memories[0].Addresses = nil },
		"memories[0].writes has 0 entries":                    func(l *timeline.Timeline) { l.Memories[0].Writes = nil },
		"memories[0] access 0 is 16 bytes at -1, 0 to 1 s":    func(l *timeline.Timeline) { l.Memories[0].Addresses[0] = -1 },
		"memories[0] access 0 is 16 bytes at 0, 0 to 1e+10 s": func(l *timeline.Timeline) {
			l.Memories[0].Ends[0] = 1e10
		},
		"memories[0].writes has -1 at 0":             func(l *timeline.Timeline) { l.Memories[0].Writes[0] = -1 },
		"memories[0].name is missing":                func(l *timeline.Timeline) { l.Memories[0].Name = "" },
		"memories[0] partition 0 has 16 bytes at -1": func(l *timeline.Timeline) { l.Memories[0].Partitions[0].Address = -1 },
		"links[0] names bar 0 of lane -1":            func(l *timeline.Timeline) { l.Links[0].ToLane, l.Links[0].ToBar = -1, 0 },
		// it has no bars
		"links[0] names bar 0 of lane 1": func(l *timeline.Timeline) { l.Links[0].FromLane = 1 },
		"lanes[0].figures has \"\"":      func(l *timeline.Timeline) { l.Lanes[0].Figures[""] = make([]float64, 4) },
		"lanes[0].figures has \"a-b\"":   func(l *timeline.Timeline) { l.Lanes[0].Figures["a-b"] = make([]float64, 4) },
		"lanes[0].figures has \"aé\"":    func(l *timeline.Timeline) { l.Lanes[0].Figures["aé"] = make([]float64, 4) },
		"lanes[0].figures has \"" + strings.Repeat("a", 101): func(l *timeline.Timeline) {
			l.Lanes[0].Figures[strings.Repeat("a", 101)] = make([]float64, 4)
		},
	} {
		l := good()
		change(l)
		if err := l.Validate(1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
