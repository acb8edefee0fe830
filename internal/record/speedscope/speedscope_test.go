package speedscope_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/speedscope"
	report "github.com/opmeter/opmeter/internal/report/speedscope"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
)

func file(t *testing.T, name string) *profile.Profile {
	t.Helper()
	return records.Read(t, speedscope.Format(), records.Files(t, material.Path(t, "raw", "traces", "speedscope", name)), record.Options{})[0]
}

func text(t *testing.T, s string) *profile.Profile {
	t.Helper()
	return records.Read(t, speedscope.Format(), []*record.File{record.Bytes("x.json", []byte(s))}, record.Options{})[0]
}

// lost is the number of records that a profile lacks.
func lost(p *profile.Profile) (n int64) {
	for _, m := range p.Incomplete {
		if m.Want != nil {
			n += *m.Want
		}
	}
	return n
}

// TestFiles compares with sums by hand.
func TestFiles(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		key       string
		own, with map[string]float64
		lost      int64
		bars      int
	}{
		// a 0-14, b 0-14, c 0-2, d 2-6, c 6-9: of a unit that no one tells.
		"0.0.1_simple.speedscope.json": {"weight", map[string]float64{"a": 0, "b": 5, "c": 5, "d": 4}, map[string]float64{"a": 14, "b": 14, "c": 5, "d": 4}, 0, 0},
		// The same as samples: two of c follow each other and are one bar.
		"0.1.2_simple-sampled.speedscope.json": {"latency_s", map[string]float64{"a": 0, "b": 5, "c": 5, "d": 4}, map[string]float64{"a": 14, "b": 14, "c": 5, "d": 4}, 0, 5},
		"0.6.0_two-sampled.speedscope.json":    {"latency_s", map[string]float64{"a": 0, "b": 10, "c": 10, "d": 8}, map[string]float64{"a": 28, "b": 28, "c": 10, "d": 8}, 0, 10},
		// What is never closed lasts until the end.
		"invalid_incomplete-trace.json": {"weight", map[string]float64{"A": 100}, map[string]float64{"A": 100}, 1, 0},
		// A 0-1, B from 2 on, A 2-5 with A 3-4 in it; B is closed at 4, while A is the innermost.
		"invalid_out-of-order-events.json": {"weight", map[string]float64{"A": 4, "B": 95}, map[string]float64{"A": 4, "B": 98}, 2, 0},
	} {
		p := file(t, name)
		if d := cmp.Diff(want.own, records.Layers(p, want.key)); d != "" {
			t.Errorf("%s: own: %s", name, d)
		}
		with := "with_callees_s"
		if want.key != "latency_s" {
			with = want.key + "_with_callees"
		}
		if d := cmp.Diff(want.with, records.Layers(p, with)); d != "" {
			t.Errorf("%s: with callees: %s", name, d)
		}
		bars := 0
		for _, s := range records.Bars(p) {
			bars += s.Count
		}
		if bars != want.bars || lost(p) != want.lost {
			t.Errorf("%s: %d bars, %d lost; want %d and %d", name, bars, lost(p), want.bars, want.lost)
		}
	}
}

// TestUnits scales milliseconds and bytes, and keeps both apart.
func TestUnits(t *testing.T) {
	t.Parallel()
	p := text(t, `{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"f","file":"f.py","line":3}]},"exporter":"py-spy",
"profiles":[{"type":"sampled","unit":"milliseconds","startValue":5,"endValue":7,"samples":[[0]],"weights":[2]},{"type":"sampled","unit":"bytes","samples":[[0],[9]],"weights":[64,1]}]}`)
	l := &p.Layers[0]
	if v, _ := l.Value("latency_s"); v != 2e-3 || l.Option("file") != "f.py" || l.Option("line") != "3" {
		t.Errorf("%v s, %+v", v, l)
	}
	if v, _ := l.Value("recorded_bytes"); v != 64 || lost(p) != 1 { // a frame that is absent
		t.Errorf("%v bytes, %+v", v, p.Incomplete)
	}
}

// TestRoundTrip writes layers below their scopes and reads them back.
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
	want := map[string]float64{}
	for i := range p.Layers {
		l := &p.Layers[i]
		if v, ok := l.Latency.Best(); ok && l.State == profile.Ran {
			want[l.Name] += math.Round(v*1e9) / 1e9
		}
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
	if d := cmp.Diff(want, records.Layers(q, "latency_s"), near); d != "" {
		t.Error(d)
	}
	scopes := map[string]string{}
	for i := range p.Layers {
		scopes[p.Layers[i].Name] = p.Layers[i].Scope
	}
	for i := range q.Layers {
		if l := &q.Layers[i]; l.Scope != scopes[l.Name] {
			t.Errorf("%s is in %q, want %q", l.Name, l.Scope, scopes[l.Name])
		}
	}
	if q.Timeline == nil || len(q.Timeline.Lanes) == 0 {
		t.Error("no lanes")
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"shared":{"frames":[{"name":"a"},{"name":"b"}]},"profiles":[{"type":"evented","unit":"seconds","startValue":0,"endValue":1e300,"events":[{"type":"O","at":0,"frame":0},{"type":"O","at":1e9,"frame":1},{"type":"C","at":2,"frame":0}]},{"type":"sampled","unit":"nanoseconds","samples":[[0,1,0],[1]],"weights":[1e18,2]}]}`))
	f.Add([]byte(`{"profiles":[{"type":"evented"}],"shared":{"frames":[]},"exporter":"opmeter"}`))
	f.Fuzz(func(t *testing.T, data []byte) { records.Fuzz(t, speedscope.Format(), "x.speedscope.json", data) })
}
