package firefox_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/firefox"
	report "github.com/opmeter/opmeter/internal/report/firefox"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
)

func text(t *testing.T, s string) *profile.Profile {
	t.Helper()
	return records.Read(t, firefox.Format(), []*record.File{record.Bytes("x.json", []byte(s))}, record.Options{})[0]
}

func load(t *testing.T, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if b, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(err)
	}
}

// TestGecko compares profiles as Firefox writes them with a plain reading: samples by the
// function at the end of their stack, and the time from each to the next.
func TestGecko(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"firefox59.json.gz", "firefox61_recursion.json", "firefox63_simple.json"} {
		path := material.Path(t, "raw", "traces", "firefox", name)
		p := records.Read(t, firefox.Format(), records.Files(t, path), record.Options{})[0]
		var d struct {
			Profile struct {
				Threads []struct {
					Samples, StackTable, FrameTable struct {
						Schema map[string]int
						Data   [][]any
					}
					StringTable []string
				}
			}
		}
		load(t, path, &d)
		hits, total := map[string]float64{}, 0.0
		for _, th := range d.Profile.Threads {
			rows, at := th.Samples.Data, th.Samples.Schema
			for i, row := range rows {
				s, ok := row[at["stack"]].(float64)
				if !ok {
					continue
				}
				frame := th.StackTable.Data[int(s)][th.StackTable.Schema["frame"]].(float64)
				location := th.StringTable[int(th.FrameTable.Data[int(frame)][th.FrameTable.Schema["location"]].(float64))]
				if i := strings.Index(location, " ("); i >= 0 && strings.HasSuffix(location, ")") && strings.Contains(location, ":") && strings.Trim(location[strings.LastIndexByte(location, ':')+1:], "0123456789)") == "" {
					location = location[:i]
				}
				hits[location]++
				if i+1 < len(rows) {
					total += rows[i+1][at["time"]].(float64) - row[at["time"]].(float64)
				} else {
					total++ // the interval
				}
			}
		}
		got := records.Layers(p, "samples")
		differ := 0
		for n, w := range hits {
			if got[n] != w {
				differ++
				t.Logf("%s: %s: %v samples, want %v", name, n, got[n], w)
			}
		}
		if differ > 0 || len(hits) < 5 {
			t.Errorf("%s: %d of %d functions differ", name, differ, len(hits))
		}
		// each time is rounded to a nanosecond
		if v, _ := p.Totals.Latency.Best(); !(math.Abs(v-total/1e3) < 1e-6) {
			t.Errorf("%s: %v s, want %v", name, v, total/1e3)
		}
	}
}

// TestProcessed compares a processed profile of version 24 with sums by hand: three threads of
// seven samples, a millisecond each.
func TestProcessed(t *testing.T) {
	t.Parallel()
	p := records.Read(t, firefox.Format(), records.Files(t, material.Path(t, "raw", "traces", "firefox", "fixture_processed-3.json")), record.Options{})[0]
	got := records.Layers(p, "samples")
	sum := 0.0
	for _, v := range got {
		sum += v
	}
	if sum != 21 {
		t.Errorf("%v samples: %v", sum, got)
	}
	if len(p.Timeline.Counters) != 1 || cmp.Diff([]float64{1, 3, 6, 10, 15, 21, 28}, p.Timeline.Counters[0].Values) != "" {
		t.Errorf("%+v", p.Timeline.Counters)
	}
}

// tables of two functions: f calls g.
const (
	stackPrefix = `"stackTable":{"length":2,"frame":[0,1],"prefix":[null,0]}`
	stackOffset = `"stackTable":{"length":2,"frame":[0,1],"prefixOffset":[0,1]}`
	frames      = `"frameTable":{"length":2,"func":[0,1],"category":[1,null]},"funcTable":{"length":2,"name":[0,1],"fileName":[2,null],"lineNumber":[3,null],"resource":[-1,0]},"resourceTable":{"length":1,"name":[3],"lib":[0]},"stringArray":["f","g","f.c","libg"]`
)

// TestVersions reads the forms of several versions: tables in each thread or shared, prefixes or
// how far back they are, times or what lies between them, weights.
func TestVersions(t *testing.T) {
	t.Parallel()
	meta := func(version string) string {
		return `{"meta":{"interval":2,"startTime":0,"preprocessedProfileVersion":` + version + `,"categories":[{"name":"Other"},{"name":"Work"}],"product":"app"},"libs":[],`
	}
	for name, s := range map[string]string{
		"times":   meta("24") + `"threads":[{"name":"t","pid":"1","tid":5,` + stackPrefix + `,` + frames + `,"samples":{"length":3,"stack":[0,1,null],"time":[10,12,17]}}]}`,
		"deltas":  meta("60") + `"threads":[{"name":"t","pid":"1","tid":5,` + stackPrefix + `,` + frames + `,"samples":{"length":3,"stack":[0,1,null],"timeDeltas":[10,2,5]}}]}`,
		"shared":  meta("60") + `"shared":{` + stackPrefix + `,` + frames + `},"threads":[{"name":"t","pid":"1","tid":5,"samples":{"length":3,"stack":[0,1,null],"timeDeltas":[10,2,5]}}]}`,
		"offsets": meta("70") + `"threads":[{"name":"t","pid":"1","tid":5,"samples":{"length":3,"stack":[0,1,null],"timeDeltas":[10,2,5]}}],"shared":{` + stackOffset + `,` + frames + `}}`,
		"weights": meta("48") + `"threads":[{"name":"t","pid":"1","tid":5,` + stackPrefix + `,` + frames + `,"samples":{"length":2,"stack":[0,1],"time":[10,12],"weight":[2,5],"weightType":"tracing-ms"}}]}`,
		"rows":    `{"meta":{"interval":2,"stackwalk":1,"version":20,"categories":[{"name":"Other"},{"name":"Work"}]},"libs":[],"threads":[{"name":"t","tid":5,"stackTable":{"schema":{"prefix":0,"frame":1},"data":[[null,0],[0,1]]},"frameTable":{"schema":{"location":0,"category":1},"data":[[0,1],[1]]},"samples":{"schema":{"stack":0,"time":1},"data":[[0,10],[1,12],[null,17]]},"stringTable":["f (f.c:3:7)","g"]}],"processes":[]}`,
	} {
		p := text(t, s)
		own, with := records.Layers(p, "latency_s"), records.Layers(p, "with_callees_s")
		near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
		if d := cmp.Diff(map[string]float64{"f": 2e-3, "g": 5e-3}, own, near); d != "" {
			t.Errorf("%s: own: %s", name, d)
		}
		if d := cmp.Diff(map[string]float64{"f": 7e-3, "g": 5e-3}, with, near); d != "" {
			t.Errorf("%s: with callees: %s", name, d)
		}
		if l := &p.Layers[0]; l.Option("file") != "f.c" || l.Option("line") != "3" || l.Option("category") != "Work" {
			t.Errorf("%s: %+v", name, l.Options)
		}
		if l := p.Timeline.Lanes[0]; l.Name != "t" || len(l.Starts) != 2 {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

// TestMarkers makes bars of markers that take time.
func TestMarkers(t *testing.T) {
	t.Parallel()
	p := text(t, `{"meta":{"interval":1,"preprocessedProfileVersion":48},"threads":[{"name":"t",`+stackPrefix+`,`+frames+`,"samples":{"length":2,"stack":[0,1],"time":[0,10]},
"markers":{"length":5,"name":[0,1,1,2,3],"startTime":[1,2,null,5,900],"endTime":[3,null,4,null,901],"phase":[1,2,3,0,1],"data":[null,null,null,null,null]}}]}`)
	bars := records.Bars(p)
	// f and g are functions too: 10 ms and 1 ms of f, 1 ms of g.
	if s := bars["f"]; s.Count != 2 || !(math.Abs(s.Seconds-13e-3) < 1e-12) {
		t.Errorf("f: %+v", s)
	}
	if s := bars["g"]; s.Count != 2 || !(math.Abs(s.Seconds-3e-3) < 1e-12) {
		t.Errorf("g: %+v", s)
	}
	if bars["libg"].Count != 0 || len(p.Incomplete) != 1 {
		t.Errorf("%v, %+v: a marker far from all samples is by another clock", bars, p.Incomplete)
	}
}

// TestRoundTrip writes the bars of a profile as markers and reads them back.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	p := sample.New(sample.Options{})
	var b bytes.Buffer
	if err := report.Write(&b, p); err != nil {
		t.Fatal(err)
	}
	q := text(t, b.String())
	if q.Model.Name != p.Model.Name || q.Target.ID != p.Target.ID {
		t.Errorf("%s on %s", q.Model.Name, q.Target.ID)
	}
	if len(q.Timeline.Lanes) != len(p.Timeline.Lanes) {
		t.Fatalf("%d lanes, want %d", len(q.Timeline.Lanes), len(p.Timeline.Lanes))
	}
	for i := range p.Timeline.Lanes {
		x, y := &p.Timeline.Lanes[i], &q.Timeline.Lanes[i]
		near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 2e-9 }) // nanoseconds
		if d := cmp.Diff([][]float64{x.Starts, x.Durations}, [][]float64{y.Starts, y.Durations}, near); d != "" || x.Name != y.Name || x.Kind != y.Kind {
			t.Errorf("%s %s, want %s %s: %s", y.Name, y.Kind, x.Name, x.Kind, d)
		}
	}
	// The mean over the iterations but the first one, of the lane of layers.
	var lane int
	for i := range p.Timeline.Lanes {
		if p.Timeline.Lanes[i].Kind == "layer" {
			lane = i
		}
	}
	l := &p.Timeline.Lanes[lane]
	want := map[string]float64{}
	for j := range l.Starts {
		if l.Iterations[j] > 0 {
			want[p.Layers[l.Layers[j]].Name] += l.Durations[j]
		}
	}
	got := map[string]float64{}
	for i := range q.Layers {
		m := q.Layers[i].Latency
		if m == nil {
			t.Fatalf("%+v has no time", q.Layers[i])
		}
		for _, s := range q.Layers[i].Samples {
			got[q.Layers[i].Name] += s
		}
	}
	for i := range q.Layers { // the profile's own figures, so that all formats add up to the same
		k := slices.IndexFunc(p.Layers, func(l profile.Layer) bool { return l.Name == q.Layers[i].Name })
		median, _ := p.Layers[k].Latency.Best()
		if v, _ := q.Layers[i].Latency.Best(); v != median {
			t.Errorf("%s takes %g s, want %g", q.Layers[i].Name, v, median)
		}
	}
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-7 })); d != "" {
		t.Error(d)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"meta":{"interval":1,"preprocessedProfileVersion":48,"importedFrom":"x"},"threads":[{"name":"t",` + stackPrefix + `,` + frames + `,"samples":{"stack":[0,9,-1],"time":[0,1e300,"x"],"weight":[1e18],"weightType":"tracing-ms"},"markers":{"name":[0],"startTime":[9e11],"endTime":[9e12],"phase":[1]}}],"processes":[{"meta":{"startTime":5},"threads":[]}]}`))
	f.Add([]byte(`{"meta":{"importedFrom":"opmeter 1"},"threads":[{"stackTable":{},"markers":{"name":[0],"startTime":[1],"endTime":[2],"data":[{"layer":1e9,"iteration":7,"op":"iteration","stall":-1}]},"stringArray":["a"]}]}`))
	f.Add([]byte(`{"profile":{"meta":{"version":9},"threads":[{"samples":{"schema":{"stack":0,"time":1},"data":[[0,1]]},"stackTable":{"schema":{"prefix":0,"frame":1},"data":[[0,0]]},"frameTable":{"schema":{"location":0},"data":[[5]]},"stringTable":["a (b:1:2:3)"]}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) { records.Fuzz(t, firefox.Format(), "x.json", data) })
}
