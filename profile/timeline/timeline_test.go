package timeline_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/profile/timeline"
)

// good is a small timeline with every part of it.
func good() *timeline.Timeline {
	return &timeline.Timeline{
		Iterations: new(int64(1)), Dropped: new(int64(0)),
		Clocks: []timeline.Clock{{Name: "npu", OffsetS: new(-1.0), Rate: new(1.5)}},
		Names:  []string{"load"}, Subnets: []string{"s"},
		Lanes: []timeline.Lane{{
			Name: "thread 0", Kind: timeline.Thread, Starts: []float64{0, 1e-3, 1e-3, 2e-3}, Durations: []float64{1e-3, 2e-3, 1e-3, 1e-3},
			Layers: []int32{0, -1, 0, 0}, Labels: []int32{-1, 0, -1, -1}, Types: []int32{0, 0, 0, -1}, Iterations: []int32{0, 0, 0, 0},
			Subnets: []int32{0, -1, 0, 0}, Directions: []int32{-1, 0, 0, 0}, Stalls: []float64{0, 0, 0, 1}, Bytes: []int64{-1, 0, 1, 2},
			Utilisation: []float64{-1, 0, 1, 0.5}, Figures: map[string][]float64{"bank_conflicts": {-1, 3, 0, 0}},
		}, {
			Name: "npu", Kind: timeline.Engine, Clock: "npu", Starts: []float64{}, Durations: []float64{},
		}},
		Counters: []timeline.Counter{{Name: "DDR", Unit: "B/s", Times: []float64{0, 1}, Values: []float64{1, -5}}},
		Links:    []timeline.Link{{ToBar: 3}},
		Memories: []timeline.Memory{{
			Name: "local", Partitions: []timeline.Partition{{Name: "bank 0", Bytes: 16}},
			Starts: []float64{0}, Ends: []float64{1}, Addresses: []int64{0}, Sizes: []int64{16}, Writes: []int32{1}, Layers: []int32{-1},
		}},
	}
}

func TestTimelineIsChecked(t *testing.T) {
	t.Parallel()
	if err := good().Validate(1); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*timeline.Timeline){
		"lanes[0].durations_s has 3 entries, want 4":       func(l *timeline.Timeline) { l.Lanes[0].Durations = l.Lanes[0].Durations[:3] },
		"lanes[0].durations_s has 0 entries, want 4":       func(l *timeline.Timeline) { l.Lanes[0].Durations = nil },
		"lanes[0].durations_s has -1 at 3":                 func(l *timeline.Timeline) { l.Lanes[0].Durations[3] = -1 },
		"lanes[0].durations_s has 1e+10 at 3":              func(l *timeline.Timeline) { l.Lanes[0].Durations[3] = 1e10 },
		"lanes[0].starts_s has 0 at 1 after 1":             func(l *timeline.Timeline) { l.Lanes[0].Starts = []float64{1, 0, 1, 2} },
		"lanes[0].starts_s has -1 at 0":                    func(l *timeline.Timeline) { l.Lanes[0].Starts[0] = -1 },
		"lanes[0].starts_s has NaN at 3":                   func(l *timeline.Timeline) { l.Lanes[0].Starts[3] = math.NaN() },
		"lanes[0].starts_s has +Inf at 3":                  func(l *timeline.Timeline) { l.Lanes[0].Starts[3] = math.Inf(1) },
		"lanes[0] bar 2 ends after the bar around it":      func(l *timeline.Timeline) { l.Lanes[0].Durations[2] = 5e-3 },
		"lanes[0].layers has 1 at 0":                       func(l *timeline.Timeline) { l.Lanes[0].Layers[0] = 1 },
		"lanes[0].layers has 3 entries":                    func(l *timeline.Timeline) { l.Lanes[0].Layers = l.Lanes[0].Layers[:3] },
		"lanes[0].labels has -2 at 1":                      func(l *timeline.Timeline) { l.Lanes[0].Labels[1] = -2 },
		"lanes[0].types has 1 at 1":                        func(l *timeline.Timeline) { l.Lanes[0].Types[1] = 1 },
		"lanes[0].iterations has -2 at 1":                  func(l *timeline.Timeline) { l.Lanes[0].Iterations[1] = -2 },
		"lanes[0].subnets has 1 at 0":                      func(l *timeline.Timeline) { l.Lanes[0].Subnets[0] = 1 },
		"lanes[0].directions has 1 at 0":                   func(l *timeline.Timeline) { l.Lanes[0].Directions[0] = 1 },
		"lanes[0].stalls_s has -1 at 0":                    func(l *timeline.Timeline) { l.Lanes[0].Stalls[0] = -1 },
		"lanes[0].moved_bytes has -2 at 0":                 func(l *timeline.Timeline) { l.Lanes[0].Bytes[0] = -2 },
		"lanes[0].utilisation has NaN at 0":                func(l *timeline.Timeline) { l.Lanes[0].Utilisation[0] = math.NaN() },
		"lanes[0].figures.bank_conflicts has 1 entries":    func(l *timeline.Timeline) { l.Lanes[0].Figures["bank_conflicts"] = []float64{1} },
		"lanes[0].figures.bank_conflicts has -Inf at 2":    func(l *timeline.Timeline) { l.Lanes[0].Figures["bank_conflicts"][2] = math.Inf(-1) },
		`lanes[0].figures has "Bank Conflicts"`:            func(l *timeline.Timeline) { l.Lanes[0].Figures["Bank Conflicts"] = make([]float64, 4) },
		"lanes[0].kind is":                                 func(l *timeline.Timeline) { l.Lanes[0].Kind = "" },
		"lanes[0].name is missing":                         func(l *timeline.Timeline) { l.Lanes[0].Name = "" },
		`lanes[1].clock is "sun"`:                          func(l *timeline.Timeline) { l.Lanes[1].Clock = "sun" },
		`clocks[1].name is "npu"`:                          func(l *timeline.Timeline) { l.Clocks = append(l.Clocks, l.Clocks[0]) },
		`clocks[0].name is ""`:                             func(l *timeline.Timeline) { l.Clocks[0].Name = "" },
		"clocks[0].offset_s is NaN":                        func(l *timeline.Timeline) { l.Clocks[0].OffsetS = new(math.NaN()) },
		"clocks[0].rate is 0":                              func(l *timeline.Timeline) { l.Clocks[0].Rate = new(0.0) },
		"iterations is -1":                                 func(l *timeline.Timeline) { l.Iterations = new(int64(-1)) },
		"dropped is -1":                                    func(l *timeline.Timeline) { l.Dropped = new(int64(-1)) },
		"links[0] names bar 4 of lane 0":                   func(l *timeline.Timeline) { l.Links[0].ToBar = 4 },
		"links[0] names bar 0 of lane 2":                   func(l *timeline.Timeline) { l.Links[0].FromLane = 2 },
		"links[0] names bar -1 of lane 0":                  func(l *timeline.Timeline) { l.Links[0].FromBar = -1 },
		"counters[0].values has 1 entries":                 func(l *timeline.Timeline) { l.Counters[0].Values = []float64{1} },
		"counters[0].times_s has 0 at 1 after 1":           func(l *timeline.Timeline) { l.Counters[0].Times = []float64{1, 0} },
		"counters[0].name is missing":                      func(l *timeline.Timeline) { l.Counters[0].Name = "" },
		`counters[0].clock is "sun"`:                       func(l *timeline.Timeline) { l.Counters[0].Clock = "sun" },
		"memories[0] access 0 is 16 bytes at 0, 0 to -1 s": func(l *timeline.Timeline) { l.Memories[0].Ends[0] = -1 },
		"memories[0] access 0 is -1 bytes":                 func(l *timeline.Timeline) { l.Memories[0].Sizes[0] = -1 },
		"memories[0].size_bytes has 0 entries":             func(l *timeline.Timeline) { l.Memories[0].Sizes = nil },
		"memories[0].writes has 2 at 0":                    func(l *timeline.Timeline) { l.Memories[0].Writes[0] = 2 },
		"memories[0].layers has 1 at 0":                    func(l *timeline.Timeline) { l.Memories[0].Layers[0] = 1 },
		"memories[0] partition 0 has -1 bytes":             func(l *timeline.Timeline) { l.Memories[0].Partitions[0].Bytes = -1 },
	} {
		l := good()
		spoil(l)
		if err := l.Validate(1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestColumnsAreAll finds every slice of figures among the fields by reflection: a
// field that the list of columns forgets is not checked, not stored and not picked.
func TestColumnsAreAll(t *testing.T) {
	t.Parallel()
	l := good()
	keys := map[string]bool{}
	for path := range l.Columns() {
		keys[path[0].(string)+"."+path[2].(string)] = true
	}
	for list, of := range map[string]reflect.Type{"lanes": reflect.TypeFor[timeline.Lane](), "counters": reflect.TypeFor[timeline.Counter](), "memories": reflect.TypeFor[timeline.Memory]()} {
		for i := range of.NumField() {
			f := of.Field(i)
			if k := f.Type.Kind(); k != reflect.Map && (k != reflect.Slice || f.Type.Elem().Kind() == reflect.Struct) {
				continue
			}
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !keys[list+"."+key] {
				t.Errorf("%s.%s is in no list of columns", list, key)
			}
		}
	}
}

func TestPick(t *testing.T) {
	t.Parallel()
	l := good().Lanes[0]
	got, moved := l.Pick(func(i int) bool { return i%2 == 1 })
	want := timeline.Lane{
		Name: "thread 0", Kind: timeline.Thread, Starts: []float64{1e-3, 2e-3}, Durations: []float64{2e-3, 1e-3},
		Layers: []int32{-1, 0}, Labels: []int32{0, -1}, Types: []int32{0, -1}, Iterations: []int32{0, 0},
		Subnets: []int32{-1, 0}, Directions: []int32{0, 0}, Stalls: []float64{0, 1}, Bytes: []int64{0, 2},
		Utilisation: []float64{0, 0.5}, Figures: map[string][]float64{"bank_conflicts": {3, 0}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if d := cmp.Diff([]int32{-1, 0, -1, 1}, moved); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(good().Lanes[0], l); d != "" {
		t.Errorf("the lane changed:\n%s", d)
	}
	none, _ := l.Pick(func(int) bool { return false })
	if none.Starts == nil || len(none.Starts) != 0 || len(none.Figures["bank_conflicts"]) != 0 {
		t.Errorf("%+v", none)
	}
}

// TestEarlyEnd stops walking columns at each of them.
func TestEarlyEnd(t *testing.T) {
	t.Parallel()
	l, all := good(), 0
	for range l.Columns() {
		all++
	}
	for n := 1; n <= all; n++ {
		k := 0
		for range l.Columns() {
			if k++; k == n {
				break
			}
		}
		if k != n {
			t.Fatalf("%d columns after a break at %d", k, n)
		}
	}
}
