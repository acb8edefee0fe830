package study

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/profile"
)

// example is an empty study of two layers.
func example() *Study {
	return &Study{
		Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Model:   profile.Model{Name: "m", Format: "onnx", SHA256: strings.Repeat("ab", 32), WeightsSHA256: strings.Repeat("cd", 32)},
		Layers:  []Layer{{Node: 0, Input: 1, Rows: 4, Cols: 9, Name: "a"}, {Node: 2, Input: 1, Rows: 2, Cols: 4, Name: "b"}},
	}
}

func point(layer int, level, ratio float64) SpeedPoint {
	return SpeedPoint{Layer: layer, Change: Change{Structure: Unstructured, Level: level}, Ratio: profile.Value(profile.Measured, ratio, "")}
}

func begun(t *testing.T, path string) *File {
	t.Helper()
	f, err := Open(path, example())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func add(t *testing.T, f *File, rs ...Record) {
	t.Helper()
	for _, r := range rs {
		if err := f.Append(r); err != nil {
			t.Fatal(err)
		}
	}
}

// all has a record of every kind.
func all() []Record {
	return []Record{
		{Speed: &Speed{SpeedSettings: SpeedSettings{Name: "s", Target: "host"}, Points: []SpeedPoint{point(0, .5, .9)}}},
		{SpeedPoints: &SpeedPoints{Name: "s", Points: []SpeedPoint{point(0, .5, .8), point(1, .5, .7)}, Layers: []LayerTime{{Layer: 0}}, Mixed: []MixedModel{{Changes: []Change{{}, {Format: Int8}}, Ratio: profile.Value(profile.Measured, .8, "")}}, Done: true}},
		{Loss: &Loss{LossSettings: LossSettings{Name: "l", Method: Magnitude}}},
		{LossPoints: &LossPoints{Name: "l", Points: []LossPoint{{Layer: 1, Change: Change{Structure: Unstructured, Level: .5}, Value: profile.Value(profile.Counted, 3, "")}}}},
		{Plan: &Plan{Name: "p", Speed: "s", Loss: "l", Choices: []Choice{{Layer: 1, Change: Change{Format: Int8}}}}},
		{Bench: &Bench{Name: "b"}},
		{BenchPoints: &BenchPoints{Name: "b", Points: []BenchPoint{{Engine: "opmeter", Threads: 1}, {Engine: "opmeter", Threads: 2}, {Engine: "opmeter", Threads: 1, Cause: NoKernel}}}},
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.study")
	f := begun(t, path)
	add(t, f, all()...)
	want := *f.Study()
	if len(want.Speeds[0].Points) != 2 || len(want.Speeds[0].Mixed) != 1 || *want.Speeds[0].Points[0].Ratio.Median != .8 || !want.Speeds[0].Done || len(want.Benches[0].Points) != 2 || want.Benches[0].Points[0].Cause != NoKernel {
		t.Errorf("holds %+v", want)
	}
	got, damage, err := Read(path) // while it is open
	if err != nil || damage != nil {
		t.Fatal(err, damage)
	}
	if d := cmp.Diff(&want, got, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	add(t, f, Record{Removed: &Removed{Kind: "plan", Name: "p"}}, Record{Removed: &Removed{Kind: "speed", Name: "s"}}, Record{Removed: &Removed{Kind: "loss", Name: "l"}}, Record{Removed: &Removed{Kind: "bench", Name: "b"}})
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Append(Record{Bench: &Bench{Name: "x"}}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("appended to a closed file: %v", err)
	}
	got, _, err = Read(path)
	if err != nil || len(got.Plans)+len(got.Speeds)+len(got.Losses)+len(got.Benches) != 0 || len(got.Layers) != 2 {
		t.Errorf("left %+v, %v", got, err)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	f := begun(t, filepath.Join(t.TempDir(), "m.study"))
	add(t, f, all()...)
	before, err := os.ReadFile(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, want string
		r          Record
	}{
		{"no name", "a name must have 1", Record{Speed: &Speed{}}},
		{"no such profile", "an unknown performance profile", Record{SpeedPoints: &SpeedPoints{Name: "x"}}},
		{"no such loss", "an unknown loss profile", Record{LossPoints: &LossPoints{Name: "x"}}},
		{"no such bench", "an unknown benchmark", Record{BenchPoints: &BenchPoints{Name: "x"}}},
		{"no such layer", "layer 2 of 2", Record{SpeedPoints: &SpeedPoints{Name: "s", Points: []SpeedPoint{point(2, .5, 1)}}}},
		{"below zero", "layer -1 of 2", Record{Plan: &Plan{Name: "q", Choices: []Choice{{Layer: -1}}}}},
		{"mixed model", "changes 3 layers of 2", Record{SpeedPoints: &SpeedPoints{Name: "s", Mixed: []MixedModel{{Changes: make([]Change, 3)}}}}},
		{"level", "level 1.5", Record{SpeedPoints: &SpeedPoints{Name: "s", Points: []SpeedPoint{point(1, 1.5, 1)}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := f.Append(tt.r); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	if after, err := os.ReadFile(f.Path()); err != nil || !bytes.Equal(before, after) {
		t.Errorf("what was refused is in the file (%v)", err)
	}
}

// TestCut opens a study truncated anywhere: complete records are read, the incomplete tail is cut
// off and reported, and appending works.
func TestCut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := begun(t, filepath.Join(dir, "whole.study"))
	add(t, f, all()...)
	text, err := os.ReadFile(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "cut.study")
	for n := 0; n <= len(text); n += 7 {
		if err := os.WriteFile(path, text[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		whole := bytes.LastIndexByte(text[:n], '\n') + 1
		g, err := Open(path, example())
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		if torn := n > whole && whole > 0; torn != (len(g.Damage()) == 1) || torn && (!g.Damage()[0].Tail || g.Damage()[0].Bytes != int64(n-whole)) {
			t.Errorf("cut at %d: %v", n, g.Damage())
		}
		add(t, g, Record{Bench: &Bench{Name: "after"}})
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		s, damage, err := Read(path)
		if err != nil || damage != nil || s.Bench("after") == nil {
			t.Fatalf("cut at %d: %v, %v", n, err, damage)
		}
	}
}

// TestDamaged changes bytes in the middle: the records after them are read.
func TestDamaged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.study")
	f := begun(t, path)
	add(t, f, all()...)
	_ = f.Close()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	i := bytes.Index(text, []byte(`{"plan"`))
	text[i+10] ^= 1
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s, damage, err := Read(path)
	if err != nil || s.Plan("p") != nil || s.Bench("b") == nil || len(damage) != 1 || damage[0].Tail || !strings.Contains(damage[0].String(), "are damaged") {
		t.Errorf("%+v, %v, %v", s, damage, err)
	}
}

func TestOther(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.study")
	_ = begun(t, path).Close()
	other := example()
	other.Model.Name, other.Model.SHA256 = "n", strings.Repeat("ef", 32)
	if _, err := Open(path, other); err == nil || !strings.Contains(err.Error(), `is of another model, "m" with hash abababababab, not of "n" with hash efefefefefef`) {
		t.Errorf("another model: %v", err)
	}
	other = example()
	other.Layers = other.Layers[:1]
	if e, ok := errors.AsType[*ModelMismatchError](openError(path, other)); !ok || !e.Layers || !strings.Contains(e.Error(), "differently") {
		t.Errorf("other layers: %v", e)
	}
	if _, err := Open(path, nil); err != nil {
		t.Error(err)
	}
}

func openError(path string, of *Study) error {
	_, err := Open(path, of)
	return err
}

func TestNoStudy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, tt := range []struct{ name, text, want string }{
		{"text", "hello\nyou\n", "is not an opmeter study"},
		{"bytes", "\x00\x01\x02", "is not an opmeter study"},
		{"record of another kind", string(frame([]byte(`{"begin":{"study":"opmeter/study/v9","created":"2026-01-02T03:04:05Z","model":{"name":"m"},"layers":[]}}`))), `format "opmeter/study/v9"`},
		{"layer without sense", string(frame([]byte(`{"begin":{"study":"opmeter/study/v1","created":"2026-01-02T03:04:05Z","model":{"name":"m"},"layers":[{"rows":-1}]}}`))), "-1 rows"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(dir, strings.ReplaceAll(tt.name, " ", "_"))
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := openError(path, example()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if after, err := os.ReadFile(path); err != nil || string(after) != tt.text {
				t.Errorf("the file was changed: %q, %v", after, err)
			}
		})
	}
	if err := openError(dir, example()); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Errorf("a folder: %v", err)
	}
	if err := openError(filepath.Join(dir, "absent"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(empty); !errors.Is(err, ErrNotStudy) {
		t.Errorf("an empty file: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	path := filepath.Join(f.TempDir(), "m.study")
	x, err := Open(path, example())
	if err != nil {
		f.Fatal(err)
	}
	for _, r := range all() {
		if err := x.Append(r); err != nil {
			f.Fatal(err)
		}
	}
	_ = x.Close()
	text, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(text[:len(text)-5])
	f.Add(frame([]byte(`{"begin":{"study":"opmeter/study/v1","layers":[{}]}}`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		// Checksums hide mutations from the record decoder: lines that are JSON get valid ones.
		var framed []byte
		for line := range bytes.Lines(text) {
			if body, ok := bytes.CutSuffix(line, []byte("\n")); ok && len(body) > prefixLen {
				framed = append(framed, frame(body[prefixLen:])...)
			}
		}
		for _, text := range [][]byte{text, framed} {
			s, size, damage, err := readRecords(bytes.NewReader(text))
			if err != nil {
				continue
			}
			if size > int64(len(text)) {
				t.Errorf("%d bytes of %d are whole", size, len(text))
			}
			for _, d := range damage {
				_ = d.String()
			}
			if _, err := jsonx.Marshal(&s.Study); err != nil {
				t.Error(err)
			}
		}
	})
}
