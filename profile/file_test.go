package profile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/profile/timeline"
)

// long is a profile with every kind of column.
func long() *Profile {
	p := example()
	p.Totals.LatencySamples = []float64{1e-3, 0.1 + 0.2, math.Copysign(0, -1), 5e-324, math.MaxFloat64}
	p.Layers[0].Samples = []float64{1e-9, 2e-9, 3}
	p.Layers[1].Samples = []float64{}
	p.Timeline = &timeline.Timeline{
		Names: []string{"x"},
		Lanes: []timeline.Lane{{
			Name: "a", Kind: timeline.Engine, Starts: []float64{0, 1}, Durations: []float64{1, 1e-9}, Layers: []int32{-1, 1}, Bytes: []int64{1 << 40, -1},
			Utilisation: []float64{1.0 / 3, -1}, Figures: map[string][]float64{"conflicts": {7, -1}, "instruction": {1 << 40, 0.1}},
		}, {Name: "b", Kind: timeline.Engine, Starts: []float64{}, Durations: []float64{}}},
		Counters: []timeline.Counter{{Name: "c", Times: []float64{0}, Values: []float64{-1e300}}},
		Memories: []timeline.Memory{{Name: "m", Starts: []float64{0}, Ends: []float64{1}, Addresses: []int64{1 << 50}, Sizes: []int64{1}, Writes: []int32{1}}},
	}
	return p
}

// exact compares reals by their bits.
var exact = cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })

func TestColumnsInFile(t *testing.T) {
	t.Parallel()
	p := long()
	b, err := Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(long(), p, exact); d != "" {
		t.Errorf("saving changed the profile:\n%s", d)
	}
	q, err := Unmarshal(b)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(p, q, exact); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestAnyColumns saves random samples and figures of lanes.
func TestAnyColumns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := example()
		sample := rapid.OneOf(rapid.Float64Range(0, math.MaxFloat64), rapid.Map(rapid.Int64Range(0, 1<<40), func(n int64) float64 { return float64(n) / 1e9 }))
		p.Totals.LatencySamples = rapid.SliceOf(sample).Draw(t, "samples")
		p.Layers[1].Samples = rapid.SliceOf(sample).Draw(t, "samples")
		n := rapid.IntRange(0, 5).Draw(t, "bars")
		lane := timeline.Lane{Name: "a", Kind: timeline.Host, Starts: make([]float64, n), Durations: make([]float64, n), Figures: map[string][]float64{}}
		for _, k := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9_]{1,5}`), 0, 4, rapid.ID).Draw(t, "keys") {
			lane.Figures[k] = rapid.SliceOfN(rapid.Float64(), n, n).Draw(t, k)
		}
		lane.Bytes = rapid.SliceOfN(rapid.Int64Min(-1), n, n).Draw(t, "bytes")
		lane.Iterations = rapid.SliceOfN(rapid.Int32Min(-1), n, n).Draw(t, "iterations")
		p.Timeline = &timeline.Timeline{Lanes: []timeline.Lane{lane}}
		b, err := Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		q, err := Unmarshal(b)
		if err != nil {
			t.Fatal(err)
		}
		// Lanes without figures have no map when they are read.
		if len(lane.Figures) == 0 {
			q.Timeline.Lanes[0].Figures = lane.Figures
		}
		if d := cmp.Diff(p, q, exact); d != "" {
			t.Fatal(d)
		}
	})
}

// TestPaths: places of columns are found beyond a million, where reals are
// printed in another way.
func TestPaths(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 7, 1_000_000, 1_234_567} {
		if !samePath([]any{"layers", n, "samples_s"}, []any{"layers", float64(n), "samples_s"}) {
			t.Errorf("%d is not found", n)
		}
	}
	for _, other := range [][]any{{"layers", 1.0}, {"layers", "1", "x"}, {"layers", 1.5, "x"}, {"layers", 1.0, []any{}}, {"layers1", "", "x"}} {
		if samePath([]any{"layers", 1, "x"}, other) {
			t.Errorf("%v is the same place", other)
		}
	}
}

func TestDamagedFile(t *testing.T) {
	t.Parallel()
	good, err := Marshal(long())
	if err != nil {
		t.Fatal(err)
	}
	head := headerBytes + int(binary.LittleEndian.Uint16(good[10:]))
	if _, err := readHead(bytes.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	for n := range good {
		if p, err := Unmarshal(good[:n]); err == nil || p != nil {
			t.Fatalf("cut to %d of %d bytes: %v, %v", n, len(good), p, err)
		}
		if h, err := readHead(bytes.NewReader(good[:n])); (err == nil) != (n >= head) || (h == nil) != (err != nil) {
			t.Fatalf("cut to %d bytes, the head takes %d: %v, %v", n, head, h, err)
		}
	}
	b := bytes.Clone(good)
	for i := range good {
		flips := []byte{0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff}
		if i >= head+8 { // beyond the frame's header one bit is like the other
			flips = []byte{1 << (i % 8)}
		}
		for _, flip := range flips {
			b[i] ^= flip
			if p, err := Unmarshal(b); err == nil || p != nil {
				t.Errorf("byte %d of %d damaged (%#x): no error", i, len(good), flip)
			}
			if _, err := readHead(bytes.NewReader(b)); (err == nil) != (i >= head) {
				t.Errorf("byte %d damaged (%#x), the head takes %d: %v", i, flip, head, err)
			}
			b[i] ^= flip
		}
	}
}

// rewritten is a saved profile with another header, its checksum right.
func rewritten(file []byte, change func(b []byte)) []byte {
	b := bytes.Clone(file)
	change(b)
	binary.LittleEndian.PutUint32(b[sumAt:], headSum(b[:headerBytes+int(binary.LittleEndian.Uint16(b[10:]))]))
	return b
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	good, err := Marshal(example())
	if err != nil {
		t.Fatal(err)
	}
	put := binary.LittleEndian.PutUint64
	tests := []struct{ name, in, want string }{
		{"empty", "", "empty"},
		{"random", "hello, world", "magic"},
		{"text mode", "\x89OPM\n\x1a\nxxxxxxx", "line ends"},
		{"container version", string(good[:8]) + "\x09\x00" + string(good[10:]), "version 9"},
		{"huge", string(rewritten(good, func(b []byte) { put(b[24:], math.MaxInt64) })), "more than"},
		{"huge in the file", string(rewritten(good, func(b []byte) { put(b[16:], math.MaxInt64) })), "more than"},
		{"bomb", string(rewritten(good, func(b []byte) { put(b[24:], 1000<<20) })), "says that"},
		{"longer than it says", string(rewritten(good, func(b []byte) { put(b[24:], binary.LittleEndian.Uint64(b[24:])-1) })), "says"},
		{"shorter than it says", string(rewritten(good, func(b []byte) { put(b[24:], binary.LittleEndian.Uint64(b[24:])+1) })), "columns say"},
		{"no body", string(rewritten(good, func(b []byte) { put(b[24:], 3) })), "EOF"},
		{"cut", string(good[:len(good)-3]), "cut off: "},
		{"tail", string(good) + "xx", "something follows its end"},
		{"twice", string(good) + string(good), "something follows its end"},
		{"JSON of another version", `{"schema":"opmeter/profile/v2","layers":7}`, `"opmeter/profile/v2"`},
		{"other JSON", `{"x":1}`, `schema is ""`},
		{"cut JSON", `{"schema":"opmeter/profile/v1","model":{"na`, "EOF"},
		{"deep JSON", `{"schema":` + strings.Repeat("[", 5000), "nest deeper"},
	}
	for _, tt := range tests {
		p, err := Unmarshal([]byte(tt.in))
		if err == nil || p != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
	for _, in := range []string{"", "hello, world", "{}"} {
		if _, err := readHead(strings.NewReader(in)); !errors.Is(err, ErrNotProfile) {
			t.Errorf("head of %q: %v", in, err)
		}
	}
}

func TestReadTail(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "p.opmeter")
	if err := Write(path, example()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(b, "xx"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || !strings.HasSuffix(err.Error(), "something follows its end") {
		t.Error(err)
	}
	if h, err := ReadHead(path); err != nil || h.Model.Name != "net" {
		t.Error(err)
	}
	if _, err := ReadHead(path + "x"); err == nil || strings.Count(err.Error(), path) != 1 {
		t.Error(err)
	}
}

// crafted packs a text and columns as they would stand in a file whose head is good.
func crafted(t testing.TB, text string, columns int, length uint64) []byte {
	t.Helper()
	good, err := Marshal(example())
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	plain := append(binary.LittleEndian.AppendUint64(nil, length), text...)
	body := z.EncodeAll(append(plain, make([]byte, columns)...), nil)
	head := headerBytes + int(binary.LittleEndian.Uint16(good[10:]))
	return rewritten(append(bytes.Clone(good[:head]), body...), func(b []byte) {
		binary.LittleEndian.PutUint64(b[16:], uint64(len(body)))
		binary.LittleEndian.PutUint64(b[24:], uint64(8+len(text)+columns))
		sum := &tally{sum: sha256.New()}
		_, _ = sum.Write(body)
		copy(b[32:], sum.sum.Sum(nil))
	})
}

func TestCraftedBodies(t *testing.T) {
	t.Parallel()
	start := `{"profile":{"schema":"opmeter/profile/v1","model":{"name":"m"},"target":{"id":"t","kind":"host"},"settings":{},"totals":{"latency_samples_s":[]},"layers":[]},"columns":[`
	ref := `{"path":["totals","latency_samples_s"],"type":"f64","length":2}`
	if p, err := Unmarshal(crafted(t, start+ref+"]}", 16, uint64(len(start+ref)+2))); err != nil || len(p.Totals.LatencySamples) != 2 {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, refs string
		columns    int
		want       string
	}{
		{"negative length", strings.Replace(ref, "2", "-2", 1), 16, "-2 entries"},
		{"huge length", strings.Replace(ref, "2", "9000000000000000000", 1), 16, "entries"},
		{"more than there is", strings.Replace(ref, "2", "3", 1), 16, "columns say"},
		{"less than there is", strings.Replace(ref, "2", "1", 1), 16, "columns say"},
		{"twice", ref + "," + ref, 32, "no place"},
		{"no such place", strings.Replace(ref, "samples_s", "samples", 1), 16, "no place"},
		{"no place", `{"path":[],"type":"f64","length":2}`, 16, "no place"},
		{"no such type", strings.Replace(ref, "f64", "f16", 1), 0, `"f16"`},
		{"wrong figures", `{"path":["totals","latency_samples_s"],"type":"ns","length":4,"first":-5}`, 16, "totals.latency_samples_s has -5e-09"},
	} {
		text := start + tt.refs + "]}"
		p, err := Unmarshal(crafted(t, text, tt.columns, uint64(len(text))))
		if err == nil || p != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	if _, err := Unmarshal(crafted(t, "", 0, 99)); err == nil || !strings.Contains(err.Error(), "99 of its 0") {
		t.Error(err)
	}
	if _, err := Unmarshal(crafted(t, `{"profile":null}`, 0, 16)); err == nil || !strings.Contains(err.Error(), "schema") {
		t.Error(err)
	}
}

// TestBombs: small files that say they are large take little memory.
func TestBombs(t *testing.T) {
	for name, b := range map[string][]byte{
		"text":    crafted(t, `{"profile":{"layers":[`+strings.Repeat("{},", 30<<20/3), 0, 30<<20),
		"columns": crafted(t, `{}`, 200<<20, 2),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Unmarshal(b)
		runtime.ReadMemStats(&after)
		// The decoder's buffers are some tens of MiB by themselves.
		if took := after.TotalAlloc - before.TotalAlloc; err == nil || took > 150<<20 {
			t.Errorf("%s: %d bytes take %d MiB: %v", name, len(b), took>>20, err)
		}
	}
}

// TestHostileHead: names of megabytes, of characters that take most room, do not
// make a head too long.
func TestHostileHead(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"x", "\x01", "\xff", "😀", "\u2028", `"`} {
		var p Profile
		fillAll(reflect.ValueOf(&p).Elem())
		q := validated(&p)
		q.Model.Name = strings.Repeat(unit, 1<<20)
		big := strings.Repeat(unit, 1<<13)
		for _, s := range []*string{
			&q.Created, &q.Model.Format, &q.Target.ID, &q.Target.Accelerator, &q.Target.Engine, &q.Target.PeakMethod, &q.Target.Description,
			&q.Settings.Version, &q.Settings.Engine, &q.Host.Fingerprint, &q.Totals.Latency.Method, &q.Totals.Energy.Method, &q.Totals.CPUCycles.Method,
			&q.Totals.AcceleratorCycles.Method, &q.Totals.SimulatorCycles.Method,
		} {
			*s = big
		}
		for i := range headFigures {
			q.Totals.Figures[fmt.Sprintf("%0*d", maxKey, i)] = Value(Measured, math.MaxFloat64, big)
		}
		for i := range 1000 {
			q.Incomplete = append(q.Incomplete, Missing{Cause: ByEnd, Text: fmt.Sprint(i)})
		}
		b, err := Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		r := &limited{r: bytes.NewReader(b)}
		h, err := readHead(r)
		if err != nil {
			t.Fatal(err)
		}
		if r.n > headerBytes+maxHead {
			t.Errorf("%d bytes were read", r.n)
		}
		if len(h.Incomplete) != 1 || len(h.Model.Name) < 25 {
			t.Errorf("%+v", h)
		}
	}
}

// limited counts what is read.
type limited struct {
	r *bytes.Reader
	n int
}

func (l *limited) Read(b []byte) (int, error) {
	n, err := l.r.Read(b)
	l.n += n
	return n, err
}

func TestHead(t *testing.T) {
	t.Parallel()
	p := long()
	p.Settings = Settings{Version: "1", Engine: "e", Threads: new(int64(4)), Batch: new(int64(2)), Seed: new(uint64(math.MaxUint64))}
	p.Host = &Host{Fingerprint: "f"}
	p.Incomplete = []Missing{{Cause: ByEnd}, {Cause: ByRecord}, {Cause: ByEnd}}
	p.Totals.Figures = map[string]*Metric{"x": Value(Measured, 1, "m")}
	p.Memory = &Memory{ArenaBytes: new(int64(64)), Planner: "greedy", StepLayers: []int64{0}, Plan: []Buffer{{Name: "b", Bytes: 64}}}
	b, err := Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	got, err := readHead(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	want := &Head{
		Schema: SchemaV1, Created: p.Created, Version: "1", Incomplete: []CauseCode{ByEnd, ByRecord},
		Model:  HeadModel{Name: "net", Format: "tflite", SHA256: p.Model.SHA256, FileBytes: new(int64(1000))},
		Target: p.Target, Engine: "e", Threads: new(int64(4)), Batch: new(int64(2)), Seed: new(uint64(math.MaxUint64)), Fingerprint: "f",
		Totals: p.Totals, Memory: &Memory{ArenaBytes: new(int64(64)), Planner: "greedy"},
	}
	want.Totals.LatencySamples = nil
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if d := cmp.Diff(HeadOf(p), got); d != "" {
		t.Errorf("HeadOf (-want +got):\n%s", d)
	}
}
