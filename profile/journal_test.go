package profile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/base/jsonx"
)

// recorded makes the journal of a short run and returns its text and the profile
// after each event.
func recorded(t testing.TB) (text []byte, after []*Profile) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a"+JournalExtension)
	b := NewBuilder()
	j, err := NewJournal(path, b)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []Event{
		{Described: three()},
		{Measured: &Samples{Layer: new(int64(0)), Quantity: "latency_s", Values: []float64{1, 2, 3}, Method: "a \"quoted\"\nmethod"}},
		{Counted: &Figure{Layer: new(int64(1)), Quantity: "calls", Metric: Value(Measured, 2, "")}},
		{Counted: &Figure{Layer: new(int64(1)), Quantity: "energy_j"}},
		{Refined: &Refined{Layer: 1, Kernel: "k"}},
		{Noted: &Noted{RAMBytes: new(int64(0))}},
		{Lost: &Loss{Layer: new(int64(1)), Cause: Cause{Code: ByRecord}}},
		{Found: &Finding{ID: "a", Severity: Info, Text: "é"}},
		{Done: &Done{}},
	} {
		if err := b.Send(e); err != nil {
			t.Fatal(err)
		}
		after = append(after, b.Profile())
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return text, after
}

// TestJournalCut cuts a journal at every byte: what opens is the profile of exactly
// the events whose lines are whole.
func TestJournalCut(t *testing.T) {
	t.Parallel()
	text, after := recorded(t)
	for n := range len(text) + 1 {
		p, err := Unmarshal(text[:n])
		whole := bytes.Count(text[:n], []byte("\n")) - 1 // the first line is not an event
		if whole < 1 {
			if err == nil || p != nil {
				t.Fatalf("cut at %d: a profile without a model", n)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		if d := cmp.Diff(after[whole-1], p); d != "" {
			t.Fatalf("cut at %d, after %d events (-want +got):\n%s", n, whole, d)
		}
		if ends := len(p.Incomplete) > 0 && p.Incomplete[len(p.Incomplete)-1].Cause == ByEnd; ends != (whole < len(after)) {
			t.Fatalf("cut at %d: %+v", n, p.Incomplete)
		}
	}
}

func TestJournalDamage(t *testing.T) {
	t.Parallel()
	text, after := recorded(t)
	lines := strings.SplitAfter(string(text), "\n")
	for _, tt := range []struct {
		name string
		line string
		want string
	}{
		{"no JSON", "}{\n", "line 4: "},
		{"binary", "\x00\xff\x00\n", "line 4: "},
		{"empty", "\n", "line 4: "},
		{"wrong types", `{"measured":{"layer":"x"}}` + "\n", "line 4: "},
		{"refused", `{"counted":{"layer":9,"quantity":"ops","metric":null}}` + "\n", "line 4: counted: layer"},
		{"two in one", `{"lost":{"cause":{"code":"end"}},"done":{}}` + "\n", "line 4: event"},
		{"long", `{"found":"` + strings.Repeat("x", 1<<20) + `"}` + "\n", "line 4: "},
		{"deep", strings.Repeat("[", 5000) + "\n", "nest deeper"},
	} {
		p, err := Unmarshal([]byte(strings.Join(lines[:3], "") + tt.line + strings.Join(lines[3:], "")))
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		n := len(p.Incomplete)
		if n != 2 || p.Incomplete[0].Cause != ByEnd || p.Incomplete[1].Cause != ByRecord || !strings.Contains(p.Incomplete[1].Text, tt.want) {
			t.Errorf("%s: %+v", tt.name, p.Incomplete)
		}
		p.Incomplete = p.Incomplete[:1]
		if d := cmp.Diff(after[1], p); d != "" {
			t.Errorf("%s: what came before is not kept:\n%s", tt.name, d)
		}
	}
	// An event of a later version is passed over.
	p, err := Unmarshal([]byte(strings.Join(lines[:3], "") + `{"dreamt":{}}` + "\n" + strings.Join(lines[3:], "")))
	if err != nil || len(p.Incomplete) != 2 || *p.Incomplete[1].Want != 1 {
		t.Errorf("%v, %+v", err, p)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"another version", `{"journal":"opmeter/journal/v9"}` + "\n", "opmeter/journal/v1"},
		{"no model", lines[0], "before the model was described"},
		{"no model, and damage", lines[0] + "x\n", "journal: line 2"},
		{"events before the model", lines[0] + lines[2], "described first"},
	} {
		if p, err := Unmarshal([]byte(tt.text)); err == nil || p != nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// endless is a line that never ends.
type endless struct{ read int }

func (e *endless) Read(b []byte) (int, error) {
	clear(b)
	e.read += len(b)
	return len(b), nil
}

func TestHugeLine(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	tail := &endless{}
	err := events(io.MultiReader(strings.NewReader(`{"journal":"`+JournalV1+`"}`+"\n"), tail), most, func(Event) bool { return true })
	if err == nil || !strings.Contains(err.Error(), "line 2: longer than") || tail.read > most+1<<17 {
		t.Errorf("%v after %d bytes", err, tail.read)
	}
}

func TestOneWriter(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a"+JournalExtension)
	b := NewBuilder()
	j, err := NewJournal(path, b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewJournal(path, NewBuilder()); !errors.Is(err, os.ErrExist) {
		t.Errorf("two journals in one file: %v", err)
	}
	if _, err := NewJournal(path+"2", b); err == nil {
		t.Error("two journals of one builder")
	}
	if _, err := NewJournal(path+"2", begun(t)); err == nil {
		t.Error("a journal that begins in the middle")
	}
	if _, err := os.Stat(path + "2"); err == nil {
		t.Error("a refused journal leaves a file")
	}
	if err := j.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the journal is still there")
	}
}

// TestJournalFails: a full disk is told once, and the builder goes on.
func TestJournalFails(t *testing.T) {
	t.Parallel()
	b := NewBuilder()
	j, err := NewJournal(filepath.Join(t.TempDir(), "a"), b)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Describe(three()); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Measure(0, "latency_s", 1); !errors.Is(err, ErrJournal) {
		t.Error(err)
	}
	if err := b.Measure(0, "latency_s", 2); err != nil {
		t.Error(err)
	}
	if p, err := b.Finish(); err != nil || *p.Layers[0].Latency.N != 2 {
		t.Error(err)
	}
}

// TestJournalHoldsTheEvents: what is read back of a journal is what was taken.
func TestJournalHoldsTheEvents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		b := NewBuilder()
		n++
		path := filepath.Join(dir, fmt.Sprint(n))
		j, err := NewJournal(path, b)
		if err != nil {
			t.Fatal(err)
		}
		first := Event{Described: three()}
		taken := []Event{first}
		if err := b.Send(first); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(0, 15).Draw(t, "events") {
			if e := drawEvent(t); b.Send(e) == nil {
				taken = append(taken, e)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var read []Event
		if err := Events(f, func(e Event) bool { read = append(read, e); return true }); err != nil {
			t.Fatal(err)
		}
		want, _ := jsonx.Marshal(taken)
		got, _ := jsonx.Marshal(read)
		if !bytes.Equal(want, got) {
			t.Fatalf("events are\n%s\nwant\n%s", got, want)
		}
		p, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(b.Profile(), p); d != "" {
			t.Fatal(d)
		}
	})
}
