package chrome_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/chrome"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

func text(t *testing.T, s string) []*profile.Profile {
	t.Helper()
	return records.Read(t, chrome.Format(), []*record.File{record.Bytes("trace.json", []byte(s))}, record.Options{})
}

// micros lists the own times of layers in microseconds: "name:2 other:1".
func micros(p *profile.Profile) map[string]int {
	out := map[string]int{}
	for name, v := range records.Layers(p, "latency_s") {
		out[name] = int(math.Round(v * 1e6))
	}
	return out
}

// TestCases reads the small cases of the format. Own times are by hand: what each slice
// lasts, less what lies in it.
func TestCases(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		own  map[string]int // microseconds
		lost int64          // events that were dropped
		open int            // beginnings without an end
	}{
		// Slices that begin together: the first one of the file is the outer one.
		"bex-interaction":             {map[string]int{"A": 0, "B": 2, "C": 0, "D": 2, "E": 1, "F": 1, "G": 1, "H": 1, "I": 1, "J": 1, "K": 1, "L": 1}, 0, 0},
		"end-event-with-empty-stack":  {map[string]int{"alpha": 1}, 1, 0},
		"end-non-top-of-stack":        {map[string]int{"A": 10, "Z": 1}, 0, 1},
		"event-reordering-name-match": {map[string]int{"alpha": 9, "beta": 0, "gamma": 1}, 0, 0},
		"hermes-multiple-frames":      {map[string]int{"[root]": 4, "beta": 7, "gamma": 3}, 0, 0},
		"invalid-x-nesting":           {map[string]int{"alpha": 10, "beta": 10}, 0, 0},
		"matching-x":                  {map[string]int{"alpha": 8, "beta": 1, "gamma": 1}, 0, 0},
		"mismatched-args":             {map[string]int{"A": 10}, 0, 0},
		"mismatched-name":             {map[string]int{}, 1, 1},
		"multiprocess":                {map[string]int{"alpha": 1, "beta": 1, "gamma": 1, "delta": 1, "epsilon": 1, "phi": 1, "zeta": 1, "eta": 1}, 0, 0},
		"must-retain-original-order":  {map[string]int{"A": 2, "B": 2, "C": 2, "X": 3}, 0, 0},
		"not-enough-end-events":       {map[string]int{"A": 1}, 0, 2},
		"only-begin-events":           {map[string]int{}, 0, 3},
		// Both ends come before the beginnings in the file, and after them in time.
		"out-of-order-unbalanced-name": {map[string]int{"alpha": 9, "beta": 9}, 0, 0},
		"out-of-order":                 {map[string]int{"A": 2, "B": 2, "C": 6}, 0, 0},
		"simple-hermes":                {map[string]int{"[root]": 2, "beta": 12}, 0, 0},
		"simple-object":                {map[string]int{"alpha": 2, "beta": 8, "(unnamed)": 4}, 0, 0},
		"simple":                       {map[string]int{"alpha": 2, "beta": 3, "gamma": 5, "epsilon": 4}, 0, 0},
		"simple-partial":               {map[string]int{"alpha": 2, "beta": 3, "gamma": 5, "epsilon": 4}, 0, 0},
		"simple-partial-whitespace":    {map[string]int{"alpha": 2, "beta": 3, "gamma": 5, "epsilon": 4}, 0, 0},
		// A list may lack its end.
		"simple-partial-trailing-comma": {map[string]int{"alpha": 2, "beta": 3, "gamma": 5, "epsilon": 4}, 0, 0},
		"simultaneous-anonymous-calls":  {map[string]int{"anonymous": 5, "function1": 0}, 0, 0},
		"too-many-end-events":           {map[string]int{"alpha": 2, "beta": 12}, 2, 0},
		"unbalanced-args":               {map[string]int{"A": 10}, 0, 0},
		"unbalanced-name":               {map[string]int{"alpha": 9, "beta": 9}, 0, 0},
		"x-events-matching-end":         {map[string]int{"alpha": 12, "beta": 4, "gamma": 4}, 0, 0},
		"x-events-matching-start":       {map[string]int{"alpha": 12, "beta": 4, "gamma": 4}, 0, 0},
		// C ends at the time at which it begins, one line before.
		"zero-duration-events":      {map[string]int{"A": 10, "B": 0, "C": 0, "D": 0}, 0, 0},
		"simple-with-samples":       {nil, 0, 0},
		"multi-thread-with-samples": {map[string]int{"mqt_js": 0}, 0, 0},
	} {
		path := material.Path(t, "raw", "traces", "chrome", "trace-event-cases", name+".json")
		ps := records.Read(t, chrome.Format(), records.Files(t, path), record.Options{})
		if want.own == nil {
			continue
		}
		p := ps[0]
		if d := cmp.Diff(want.own, micros(p)); d != "" {
			t.Errorf("%s: -want +got:\n%s", name, d)
		}
		lost := int64(0)
		for _, m := range p.Incomplete {
			if m.Want != nil {
				lost += *m.Want
			}
		}
		open := 0
		for _, f := range p.Findings {
			if f.ID == "import.open" {
				_, _ = fmt.Sscan(f.Text, &open)
			}
		}
		if lost != want.lost || open != want.open || len(p.Incomplete) > 0 != (lost > 0) {
			t.Errorf("%s: %d dropped, %d open, %v; want %d and %d", name, lost, open, p.Incomplete, want.lost, want.open)
		}
	}
}

// TestSamples follows the samples of two threads by hand: each lasts until the next.
func TestSamples(t *testing.T) {
	t.Parallel()
	path := material.Path(t, "raw", "traces", "chrome", "trace-event-cases", "simple-with-samples.json")
	ps := records.Read(t, chrome.Format(), records.Files(t, path), record.Options{})
	if len(ps) != 1 {
		t.Fatalf("%d profiles, want that of the samples alone", len(ps))
	}
	var d struct {
		Samples []struct {
			TS json.Number `json:"ts"`
			SF int         `json:"sf"`
		} `json:"samples"`
		StackFrames map[string]struct {
			Name string `json:"name"`
		} `json:"stackFrames"`
	}
	load(t, path, &d)
	want := map[string]float64{}
	for i := 0; i+1 < len(d.Samples); i++ {
		a, _ := d.Samples[i].TS.Int64()
		b, _ := d.Samples[i+1].TS.Int64()
		want[d.StackFrames[fmt.Sprint(d.Samples[i].SF)].Name] += float64(b-a) / 1e6
	}
	got := records.Layers(ps[0], "latency_s")
	for name, v := range want {
		if !(math.Abs(got[name]-v) < 1e-12) { // sums of a few microseconds
			t.Errorf("%s: %v s, want %v", name, got[name], v)
		}
	}
	if total, _ := ps[0].Totals.Latency.Best(); !(math.Abs(total-0.06471) < 1e-12) {
		t.Errorf("%v s in all", total)
	}
}

func load(t *testing.T, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestBrowser compares traces of a browser with a plain reading of their JSON: the number
// and the length of whole slices by name.
func TestBrowser(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"chrome116_trace.json", "chrome65_timeline.json"} {
		path := material.Path(t, "raw", "traces", "chrome", name)
		ps := records.Read(t, chrome.Format(), records.Files(t, path), record.Options{})
		type event struct {
			Name, Ph  string
			Dur, TDur *float64
		}
		var list []event
		if name == "chrome116_trace.json" {
			var d struct{ TraceEvents []event }
			load(t, path, &d)
			list = d.TraceEvents
		} else {
			load(t, path, &list)
		}
		want := map[string]records.Sum{}
		other := map[string]bool{}
		for _, e := range list {
			if e.Dur == nil {
				e.Dur = e.TDur // of the thread's clock, where there is no other
			}
			switch {
			case e.Ph == "X" && e.Dur != nil:
				s := want[e.Name]
				want[e.Name] = records.Sum{Count: s.Count + 1, Seconds: s.Seconds + *e.Dur/1e6}
			case strings.Contains("BEbeSFnIiR", e.Ph):
				other[e.Name] = true // counts for the name too
			}
		}
		got := records.Bars(ps[0])
		checked := 0
		for n, w := range want {
			if other[n] {
				continue
			}
			checked++
			// durations are exact to a nanosecond
			if g := got[n]; g.Count != w.Count || !(math.Abs(g.Seconds-w.Seconds) < 1e-9) {
				t.Errorf("%s: %s: %+v, want %+v", name, n, g, w)
			}
		}
		if checked < 10 {
			t.Errorf("%s: %d names were compared", name, checked)
		}
	}
}

// TestPhases reads one of each phase.
func TestPhases(t *testing.T) {
	t.Parallel()
	p := text(t, `{"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","name":"process_name","pid":7,"args":{"name":"app"}},
{"ph":"M","name":"process_sort_index","pid":7,"args":{"sort_index":5}},
{"ph":"M","name":"thread_name","pid":7,"tid":"a","args":{"name":"second"}},
{"ph":"M","name":"thread_sort_index","pid":7,"tid":"a","args":{"sort_index":2}},
{"ph":"M","name":"thread_sort_index","pid":7,"tid":1,"args":{"sort_index":1}},
{"ph":"X","name":"work","cat":"x,y","pid":7,"tid":1,"ts":100.25,"dur":"10.5","args":{"k":"v","n":1}},
{"ph":"X","name":"work","cat":"x,y","pid":7,"tid":1,"ts":120,"dur":1e1,"args":{"k":"v","n":2}},
{"ph":"X","name":"late","cat":"x","pid":7,"tid":"a","ts":131,"dur":2},
{"ph":"s","name":"go","cat":"f","id":1,"pid":7,"tid":1,"ts":125},
{"ph":"f","name":"go","cat":"f","id":1,"pid":7,"tid":"a","ts":130},
{"ph":"s","name":"go","cat":"f","id":2,"pid":7,"tid":"1","ts":101},
{"ph":"f","bp":"e","name":"go","cat":"f","id":2,"pid":7,"tid":"a","ts":132},
{"ph":"C","name":"memory","pid":7,"ts":100,"args":{"used":5,"free":-1}},
{"ph":"C","name":"memory","pid":7,"ts":110,"args":{"used":6.5,"free":"2"}},
{"ph":"C","name":"load","pid":7,"ts":105,"args":{"":3}},
{"ph":"b","name":"request","cat":"net","id":"0x1","pid":7,"tid":1,"ts":101},
{"ph":"n","name":"request","cat":"net","id":"0x1","pid":7,"tid":1,"ts":102},
{"ph":"e","name":"request","cat":"net","id":"0x1","pid":7,"tid":"a","ts":131},
{"ph":"S","name":"old","cat":"net","id":9,"pid":7,"tid":1,"ts":102},
{"ph":"F","name":"old","cat":"net","id":9,"pid":7,"tid":1,"ts":104},
{"ph":"i","name":"mark","s":"t","pid":7,"tid":1,"ts":101},
{"ph":"N","name":"object","id":1,"pid":7,"tid":1,"ts":101},
{"ph":"X","name":"no time","pid":7,"tid":1},
{"ph":"X","name":"negative","pid":7,"tid":1,"ts":1,"dur":-4},
{"name":"no phase"}
]}`)[0]
	// 20.5 is 21 rounded
	if d := cmp.Diff(map[string]int{"work": 21, "late": 2}, micros(p)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]profile.Option{{Key: "k", Value: "v"}}, p.Layers[0].Options); d != "" || p.Layers[0].Op != "x" {
		t.Errorf("%s: %s", p.Layers[0].Op, d)
	}
	tl := p.Timeline
	type lane struct {
		group, name string
		kind        timeline.LaneKind
		bars        int
	}
	var got []lane
	for i := range tl.Lanes {
		l := &tl.Lanes[i]
		got = append(got, lane{l.Group, l.Name, l.Kind, len(l.Starts)})
	}
	want := []lane{{"app", "thread 1", "thread", 3}, {"app", "second", "thread", 1}, {"app", "operations", "host", 2}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(lane{})); d != "" {
		t.Errorf("lanes: %s", d)
	}
	// Time 0 is the first counter, at 100 µs; the first slice is 250 ns later.
	if s := tl.Lanes[0].Starts[0]; s != 250e-9 || tl.Lanes[0].Durations[0] != 10.5e-6 {
		t.Errorf("the first bar is at %v for %v", s, tl.Lanes[0].Durations[0])
	}
	values := map[string][]float64{}
	for _, c := range tl.Counters {
		values[c.Name] = c.Values
	}
	if d := cmp.Diff(map[string][]float64{"memory used": {5, 6.5}, "memory free": {-1, 2}, "load": {3}}, values); d != "" {
		t.Errorf("counters: %s", d)
	}
	links := map[timeline.Link]bool{}
	for _, l := range tl.Links {
		links[l] = true
	}
	// The second slice of the first thread is its third bar: a mark lies in the first.
	want2 := map[timeline.Link]bool{{FromLane: 0, FromBar: 2, ToLane: 1, ToBar: 0}: true, {FromLane: 0, FromBar: 0, ToLane: 1, ToBar: 0}: true}
	if !maps.Equal(links, want2) {
		t.Errorf("links %v", links)
	}
	if len(p.Incomplete) != 3 {
		t.Errorf("%+v", p.Incomplete)
	}
}

// TestTensorFlow takes operators and nodes of TensorFlow's timelines from the arguments.
func TestTensorFlow(t *testing.T) {
	t.Parallel()
	p := text(t, `{"traceEvents":[{"ph":"X","cat":"Op","name":"Conv2D","pid":1,"tid":0,"ts":10,"dur":5,"args":{"name":"net/conv1","op":"Conv2D","input0":"x"}}]}`)[0]
	if l := p.Layers[0]; l.Name != "net/conv1" || l.Op != "Conv2D" {
		t.Errorf("%+v", l)
	}
}

// TestCut says of an object that it is cut, and keeps what came before.
func TestCut(t *testing.T) {
	t.Parallel()
	p := text(t, `{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2},{"ph":"X","name":"b","pi`)[0]
	if len(p.Layers) != 1 || len(p.Incomplete) != 1 || !strings.Contains(p.Incomplete[0].Text, "cut") {
		t.Errorf("%d layers, %+v", len(p.Layers), p.Incomplete)
	}
	_, err := records.Try(t, chrome.Format(), []*record.File{record.Bytes("t.json", []byte(`{"traceEvents":[]}`))}, record.Options{})
	if err == nil || !strings.Contains(err.Error(), "t.json: no trace events") {
		t.Errorf("%v", err)
	}
}

// TestMatch leaves records that others know better to them.
func TestMatch(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]record.Sure{
		`[{"cat" : "Session","pid" :1,"tid" :2,"dur" :3,"ts" :4,"ph" : "X","name" :"model_run"}`: record.Maybe,
		`{"otherData": {}, "traceEvents": [{"ph":"X","args":{"reshape_time":"0ms"},"ts":"0"}]}`:  record.Maybe,
		"\ufeff [ {\"ph\":\"B\",\"ts\":1}":                    record.Likely,
		`{"traceEvents":[{"ph":"X","ts":1}]}`:                 record.Likely,
		`{"otherData":{"writer":"opmeter 1"},"traceEvents":[`: record.Certain,
		`{"a":1}`: record.No,
		`[1,2]`:   record.No,
		``:        record.No,
		`x`:       record.No,
	} {
		if got := chrome.Match(record.Bytes("x", []byte(s))); got != want {
			t.Errorf("%s: %v, want %v", s, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`[{"ph":"B","name":"a","pid":1,"tid":1,"ts":1},{"ph":"E","pid":1,"tid":1,"ts":2},{"ph":"X","ts":1e300,"dur":5}]`))
	f.Add([]byte(`{"traceEvents":[{"ph":"s","id":1,"ts":0,"pid":1},{"ph":"f","id":1,"ts":3,"pid":2},{"ph":"C","ts":1,"args":{"a":1}}],"samples":[{"ts":1,"sf":2}],"stackFrames":{"2":{"name":"f","parent":"2"}}}`))
	f.Add([]byte(`{"otherData":{"writer":"opmeter"},"traceEvents":[{"ph":"X","name":"n","cat":"c","pid":2,"tid":3,"ts":1,"dur":2,"args":{"layer":3,"iteration":1,"stall_us":1,"bar_x":2,"latency_s":1}}]}`))
	f.Add([]byte(`[{"ph":"P","id":1,"ts":1,"args":{"data":{"cpuProfile":{"nodes":[{"id":1,"callFrame":{"functionName":"f"}}],"samples":[1,1]},"timeDeltas":[1,2]}}}]`))
	f.Add([]byte(`[{"ph":"X","ts":-9000000000000000,"dur":9000000000000000},{"ph":"X","ts":9000000000000000,"dur":1},{"ph":"b","id2":{"local":"1"},"ts":1}]`))
	f.Fuzz(func(t *testing.T, data []byte) { records.Fuzz(t, chrome.Format(), "trace.json", data) })
}
