package perfetto_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/klauspost/compress/gzip"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/perfetto"
	report "github.com/opmeter/opmeter/internal/report/perfetto"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// message builds a message: fields are numbers, texts, bytes, doubles or messages.
type message []byte

func (m message) num(f protowire.Number, v uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, f, protowire.VarintType), v)
}

func (m message) str(f protowire.Number, s string) message {
	return protowire.AppendString(protowire.AppendTag(m, f, protowire.BytesType), s)
}

func (m message) sub(f protowire.Number, s message) message { return m.str(f, string(s)) }

func (m message) fixed(f protowire.Number, v uint64) message {
	return protowire.AppendFixed64(protowire.AppendTag(m, f, protowire.Fixed64Type), v)
}

// trace is a sequence of packets, all of writer 1 unless they say so.
func trace(packets ...message) []byte {
	var out message
	for _, p := range packets {
		out = out.sub(1, p)
	}
	return out
}

func packet(ts uint64) message { return message(nil).num(8, ts).num(10, 1) }

func event(kind, track uint64) message { return message(nil).num(9, kind).num(11, track) }

func read(t *testing.T, data []byte) *profile.Profile {
	t.Helper()
	return records.Read(t, perfetto.Format(), []*record.File{record.Bytes("t.pftrace", data)}, record.Options{})[0]
}

// TestORT compares the trace made of a profile of ONNX Runtime with that profile.
func TestORT(t *testing.T) {
	t.Parallel()
	p := records.Read(t, perfetto.Format(), records.Files(t, material.Path(t, "raw", "traces", "perfetto", "ort_mnv2_t1_200runs.pftrace")), record.Options{})[0]
	b, err := os.ReadFile(material.Path(t, "raw", "traces", "ort", "mobilenet_v2_035_t1_seq_all_200runs.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Name, Ph string
		Dur      float64
	}
	if err := json.NewDecoder(z).Decode(&list); err != nil {
		t.Fatal(err)
	}
	want := map[string]records.Sum{}
	for _, e := range list {
		if e.Ph == "X" {
			s := want[e.Name]
			want[e.Name] = records.Sum{Count: s.Count + 1, Seconds: s.Seconds + e.Dur/1e6}
		}
	}
	got := records.Bars(p)
	if len(got) != len(want) || len(want) < 60 {
		t.Errorf("%d names, want %d", len(got), len(want))
	}
	for name, w := range want {
		if g := got[name]; g.Count != w.Count || !(math.Abs(g.Seconds-w.Seconds) < 1e-9) {
			t.Errorf("%s: %+v, want %+v", name, g, w)
		}
	}
	if n := len(p.Timeline.Counters); n != 1 || len(p.Timeline.Counters[0].Times) != 12000 {
		t.Errorf("%d counters", n)
	}
}

// TestPerfettosOwn reads traces of Perfetto's own tests; what they hold is in the text
// forms that they were encoded from.
func TestPerfettosOwn(t *testing.T) {
	t.Parallel()
	file := func(name string) *profile.Profile {
		return records.Read(t, perfetto.Format(), records.Files(t, material.Path(t, "raw", "traces", "perfetto", name)), record.Options{})[0]
	}
	p := file("track_event_counters.pftrace")
	values := map[string][]float64{}
	for _, c := range p.Timeline.Counters {
		values[c.Name+" "+c.Unit] = c.Values
	}
	// The thread's time is incremental, in microseconds, from 1000 on, and begins anew with the
	// state of its writer; sizes and doubles are as they stand.
	if d := cmp.Diff([]float64{1024, 2048, 1024, 4096}, values["MySizeCounter B"]); d != "" {
		t.Errorf("%s in %v", d, values)
	}
	if d := cmp.Diff([]float64{3.1415926, 0.5, 2.71828}, values["MyDoubleCounter "], cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-6 })); d != "" {
		t.Errorf("%s in %v", d, values)
	}
	// 1000 and 10 µs, then anew 2000 and four times 10.
	if d := cmp.Diff([]float64{1e-3, 1.01e-3, 2e-3, 2.01e-3, 2.02e-3, 2.03e-3, 2.04e-3}, values["thread time of t1 s"], cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })); d != "" {
		t.Errorf("%s in %v", d, values)
	}
	p = file("track_event_merged_debug_annotations.pftrace")
	options := map[string]string{}
	for _, o := range p.Layers[0].Options {
		options[o.Key] = o.Value
	}
	for key, want := range map[string]string{"debug1.key1": "10", "debug1.key2[0]": "20", "debug1.key2[1]": "21", "debug4.key2[1]": "21"} {
		if options[key] != want {
			t.Errorf("%s is %q, want %q: %v", key, options[key], want, options)
		}
	}
	p = file("track_event_tracks.pftrace")
	bars := records.Bars(p)
	for _, name := range []string{"event1_on_async3", "event1_on_t1", "event1_on_t2", "event2_on_t2", "event1_on_p1", "event1_on_async", "event1_on_t3", "event1_on_p2", "event1_on_t4", "event3_on_t1", "event2_on_p2", "event2_on_t4", "event_and_track_async3"} {
		if bars[name].Count == 0 {
			t.Errorf("%s is missing: %v", name, bars)
		}
	}
	if s := bars["event1_on_async2"]; s.Count != 1 || !(math.Abs(s.Seconds-100e-9) < 1e-15) {
		t.Errorf("event1_on_async2: %+v", s)
	}
}

// TestState interns names, forgets them, and loses them.
func TestState(t *testing.T) {
	t.Parallel()
	interned := message(nil).sub(2, message(nil).num(1, 5).str(2, "named")).sub(1, message(nil).num(1, 2).str(2, "kind")).sub(3, message(nil).num(1, 9).str(2, "arg")).sub(3, message(nil).num(1, 8).str(2, "text")).sub(29, message(nil).num(1, 3).str(2, "value"))
	thread := message(nil).num(1, 77).sub(4, message(nil).num(1, 1).num(2, 2).str(5, "worker"))
	data := trace(
		message(nil).num(10, 1).num(13, 1).sub(60, thread).sub(59, message(nil).sub(11, message(nil).num(11, 77))),
		packet(100).num(13, 2).sub(12, interned).sub(11, message(nil).num(9, 1).num(10, 5).num(3, 2).sub(4, message(nil).num(1, 9).num(4, 42)).sub(4, message(nil).num(1, 8).num(17, 3))),
		packet(150).num(13, 2).sub(11, message(nil).num(9, 2)),
		packet(160).num(13, 1), // the state is cleared: number 5 is not a name any more
		packet(170).num(13, 2).sub(11, event(1, 77).num(10, 5)),
		packet(190).num(13, 2).sub(11, event(2, 77)),
		packet(200).num(42, 1), // packets were lost
		packet(210).num(13, 2).sub(11, event(1, 77).num(10, 5)),
	)
	p := read(t, data)
	bars := records.Bars(p)
	if d := cmp.Diff(map[string]records.Sum{"named": {Count: 1, Seconds: 50e-9}, "(unnamed)": {Count: 1, Seconds: 20e-9}}, bars); d != "" {
		t.Error(d)
	}
	if l := p.Layers[0]; l.Name != "named" || l.Op != "kind" || l.Option("arg") != "42" || l.Option("text") != "value" {
		t.Errorf("%+v", l)
	}
	if l := p.Timeline.Lanes[0]; l.Name != "worker" || l.Group != "process 1" {
		t.Errorf("%+v", l)
	}
	if len(p.Incomplete) != 1 || *p.Incomplete[0].Want != 1 {
		t.Errorf("%+v", p.Incomplete)
	}
}

// TestClocks leads a writer's own clock, which counts in microseconds from the packet before, to
// that of the trace.
func TestClocks(t *testing.T) {
	t.Parallel()
	reading := func(id, ts uint64) message { return message(nil).num(1, id).num(2, ts) }
	snapshot := message(nil).sub(1, reading(6, 5000)).sub(1, reading(64, 0).num(3, 1).num(4, 1000)).sub(1, reading(3, 2000))
	data := trace(
		message(nil).num(10, 1).num(13, 1).sub(6, snapshot).sub(59, message(nil).num(58, 64)),
		// 5000 + 1000
		packet(1).num(13, 2).sub(11, event(1, 1).str(23, "a")),
		packet(2).num(13, 2).sub(11, event(2, 1)), // + 2000
		// the monotonic clock is 3000 behind
		message(nil).num(8, 2500).num(58, 3).num(10, 1).sub(11, event(3, 1).str(23, "b")),
	)
	p := read(t, data)
	l := p.Timeline.Lanes[0]
	// Time 0 is the instant at 5500; the slice begins at 6000 and lasts 2000.
	if d := cmp.Diff([]float64{0, 500e-9}, l.Starts); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]float64{0, 2000e-9}, l.Durations); d != "" {
		t.Error(d)
	}
}

// TestFlows draws arrows between slices of one number.
func TestFlows(t *testing.T) {
	t.Parallel()
	p := read(t, trace(
		packet(10).sub(11, event(1, 1).str(23, "a").fixed(47, 9)), packet(20).sub(11, event(2, 1)),
		packet(30).sub(11, event(1, 2).str(23, "b").fixed(48, 9)), packet(40).sub(11, event(2, 2)),
	))
	if d := cmp.Diff([]timeline.Link{{FromLane: 0, FromBar: 0, ToLane: 1, ToBar: 0}}, p.Timeline.Links); d != "" {
		t.Error(d)
	}
}

// TestCut keeps the packets before the end.
func TestCut(t *testing.T) {
	t.Parallel()
	data := trace(packet(10).sub(11, event(1, 1).str(23, "a")), packet(20).sub(11, event(2, 1)), packet(30).sub(11, event(1, 1).str(23, "long")))
	p := read(t, data[:len(data)-3])
	if len(p.Layers) != 1 || len(p.Incomplete) != 2 {
		t.Errorf("%d layers, %+v", len(p.Layers), p.Incomplete)
	}
	_, err := perfetto.Format().Read(t.Context(), &record.Input{Files: []*record.File{record.Bytes("x", data[:1])}})
	if err == nil || !strings.Contains(err.Error(), "no packets") {
		t.Errorf("%v", err)
	}
}

// TestRoundTrip writes profiles as opmeter does and reads them back: what the format
// holds is there again, and writing it gives the same.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]sample.Options{"usual": {}, "hostile": {Hostile: true, Seed: 3}} {
		p := sample.New(o)
		var first, again bytes.Buffer
		if err := report.Write(&first, p); err != nil {
			t.Fatal(err)
		}
		q := read(t, first.Bytes())
		compare(t, name, p, q)
		if err := report.Write(&again, q); err != nil {
			t.Fatal(err)
		}
		r := read(t, again.Bytes())
		// A foreign figure that is an integer is written as one only where the profile knows.
		if d := cmp.Diff(q.Timeline, r.Timeline); d != "" && name == "usual" {
			t.Errorf("%s: written and read again:\n%s", name, d)
		}
		if d := cmp.Diff(q.Layers, r.Layers, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Share" }, cmp.Ignore())); d != "" && name == "usual" {
			t.Errorf("%s: written and read again:\n%s", name, d)
		}
	}
}

// compare holds a profile that was written and read against the one that it was made of.
func compare(t *testing.T, name string, p, q *profile.Profile) {
	t.Helper()
	if p.Model.Name != q.Model.Name || p.Target.ID != q.Target.ID {
		t.Errorf("%s: %s on %s, want %s on %s", name, q.Model.Name, q.Target.ID, p.Model.Name, p.Target.ID)
	}
	a, b := p.Timeline, q.Timeline
	if len(a.Lanes) != len(b.Lanes) || len(a.Links) != len(b.Links) {
		t.Fatalf("%s: %d lanes and %d links, want %d and %d", name, len(b.Lanes), len(b.Links), len(a.Lanes), len(a.Links))
	}
	// layers that bars name
	of := map[int32]int32{}
	// the format has nanoseconds
	near := cmp.Comparer(func(x, y float64) bool { return math.Abs(x-y) <= 1e-9+1e-9*math.Abs(x) })
	for i := range a.Lanes {
		x, y := &a.Lanes[i], &b.Lanes[i]
		if x.Name != y.Name || x.Group != y.Group || x.Kind != y.Kind {
			t.Errorf("%s: lane %d is %q of %q, %s; want %q of %q, %s", name, i, y.Name, y.Group, y.Kind, x.Name, x.Group, x.Kind)
		}
		for _, c := range []struct {
			what       string
			want, have []float64
		}{{"starts", x.Starts, y.Starts}, {"durations", x.Durations, y.Durations}, {"stalls", x.Stalls, y.Stalls}, {"utilisation", x.Utilisation, y.Utilisation}} {
			if d := cmp.Diff(c.want, c.have, near); d != "" {
				t.Errorf("%s: %s of %s: %s", name, c.what, x.Name, d)
			}
		}
		if d := cmp.Diff(x.Figures, y.Figures, near); d != "" {
			t.Errorf("%s: figures of %s: %s", name, x.Name, d)
		}
		if d := cmp.Diff([]any{x.Bytes, x.Iterations}, []any{y.Bytes, y.Iterations}); d != "" {
			t.Errorf("%s: columns of %s: %s", name, x.Name, d)
		}
		for j := range x.Starts {
			if text(a, x, j, p) != text(b, y, j, q) {
				t.Errorf("%s: bar %d of %s is %q, want %q", name, j, x.Name, text(b, y, j, q), text(a, x, j, p))
				break
			}
			if j < len(x.Layers) && x.Layers[j] >= 0 {
				of[y.Layers[j]] = x.Layers[j]
			}
		}
	}
	for n, m := range of {
		x, y := &p.Layers[m], &q.Layers[n]
		// names may hold what separates them
		if x.Op != y.Op || x.Scope != y.Scope || x.Kernel != y.Kernel || name == "usual" && len(x.Inputs) != len(y.Inputs) {
			t.Errorf("%s: layer %+v, want %+v", name, y, x)
		}
		for _, key := range []string{"latency_s", "macs", "ops", "params", "energy_j", "bytes_read"} {
			v, ok := x.Value(key)
			w, ok2 := y.Value(key)
			if ok != ok2 || !(math.Abs(v-w) <= 1e-12*math.Abs(v)) {
				t.Errorf("%s: %s of %s is %v, want %v", name, key, x.Name, w, v)
			}
		}
	}
	for i := range a.Counters {
		if d := cmp.Diff(a.Counters[i].Values, b.Counters[i].Values); d != "" || a.Counters[i].Unit != b.Counters[i].Unit {
			t.Errorf("%s: counter %d: %s", name, i, d)
		}
	}
}

// text is what stands on a bar.
func text(tl *timeline.Timeline, l *timeline.Lane, bar int, p *profile.Profile) string {
	if bar < len(l.Labels) && l.Labels[bar] >= 0 {
		return tl.Names[l.Labels[bar]]
	}
	if bar < len(l.Layers) && l.Layers[bar] >= 0 {
		y := &p.Layers[l.Layers[bar]]
		if y.Name == "" {
			return y.Op
		}
		return y.Name
	}
	return l.Name
}

func FuzzRead(f *testing.F) {
	f.Add(trace(packet(1).num(13, 1).sub(11, event(1, 1).str(23, "a").fixed(47, 9)), packet(5).sub(11, event(2, 1)), packet(7).sub(11, event(4, 3).num(30, 5))))
	snapshot := message(nil).sub(1, message(nil).num(1, 64).num(2, 1<<63).num(3, 1).num(4, 1<<40)).sub(1, message(nil).num(1, 6).num(2, 7))
	f.Add(trace(packet(1<<63).sub(6, snapshot).sub(59, message(nil).num(58, 64)), packet(1<<62).sub(11, event(1, 0).sub(6, message(nil).num(2, 'X').num(3, 1<<61).num(18, 4)))))
	var b bytes.Buffer
	if report.Write(&b, sample.New(sample.Options{Layers: 12, Iterations: 1})) == nil {
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) { records.Fuzz(t, perfetto.Format(), "t.pftrace", data) })
}
