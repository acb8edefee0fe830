package gate

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
)

func record(kind, model string, macs float64) Record {
	return Record{Kind: kind, Time: "2030-01-02T03:04:05Z", Model: model, Target: Host, Machine: "any", Settings: "default", Figures: map[string]float64{"macs": macs}}
}

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), Folder)) // absent
	if len(s.Records) > 0 || s.hasAccepted() {
		t.Errorf("%+v", s)
	}
	p := sample.New(sample.Options{Layers: 3})
	list := []Record{record(Accepted, "models/a.tflite", 1), record(Accepted, "models/A.tflite", 2)}
	if err := s.Accept(list, []*profile.Profile{p, p}); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(record(Ran, "models/a.tflite", 3)); err != nil {
		t.Fatal(err)
	}
	if err := s.Ignore(Ignore{Figure: "macs", Until: "2030-12-31", Reason: "known"}); err != nil {
		t.Fatal(err)
	}
	s = open(t, s.Dir)
	r := s.Last(Accepted, "models/a.tflite", Host, "default")
	if len(s.Records) != 3 || len(s.Ignores) != 1 || len(s.Notes) > 0 || r == nil || r.Figures["macs"] != 1 {
		t.Fatalf("%+v", s)
	}
	if want := Slug("models/a.tflite") + "/any/default.opmeter"; r.File != want {
		t.Errorf("saved as %s, want %s", r.File, want)
	}
	if got, note := s.Profile(r); got == nil || note != "" || len(got.Layers) != len(p.Layers) {
		t.Errorf("the saved profile: %q", note)
	}
	// A process that was killed between file and index.
	path := filepath.Join(s.Dir, BaselineDir, filepath.FromSlash(r.File))
	if err := profile.Write(path, sample.New(sample.Options{Layers: 40})); err != nil {
		t.Fatal(err)
	}
	if got, note := s.Profile(r); got != nil || !strings.Contains(note, "not the file that the index names") {
		t.Errorf("another file: %q", note)
	}
	old := &Store{Records: s.Records[:2]}
	if since := s.Since(old); len(since.Records) != 1 || since.Records[0].Kind != Ran {
		t.Errorf("since: %+v", since.Records)
	}
}

// Lines that are incomplete or damaged are named, and the others are kept. What is appended after
// an incomplete line begins on a line of its own.
func TestDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	if err := s.Add(record(Ran, "a", 1), record(Ran, "b", 2)); err != nil {
		t.Fatal(err)
	}
	index := filepath.Join(dir, BaselineDir, IndexFile)
	whole, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	first := strings.IndexByte(string(whole), '\n') + 1
	for cut := first + 1; cut < len(whole)-1; cut += 7 {
		if err := os.WriteFile(index, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if s := open(t, dir); len(s.Records) != 1 || len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "index.jsonl:2: left out: incomplete") {
			t.Fatalf("cut at %d: %d records, %q", cut, len(s.Records), s.Notes)
		}
		if err := s.Add(record(Ran, "c", 3)); err != nil {
			t.Fatal(err)
		}
		if s := open(t, dir); len(s.Records) != 2 || s.Records[1].Model != "c" || len(s.Notes) != 1 {
			t.Fatalf("cut at %d: %+v, %q", cut, s.Records, s.Notes)
		}
	}
	for text, want := range map[string]string{
		"<<<<<<< HEAD":   "not a record",
		`{"kind":"run"}`: "has no model",
		`{"kind":"x","model":"m","target":"host","time":"2030-01-02T03:04:05Z"}`:                                 "kind is",
		`{"kind":"run","model":"m","target":"host","time":"yesterday"}`:                                          "time is not",
		`{"kind":"accepted","model":"m","target":"host","time":"2030-01-02T03:04:05Z","file":"../../x.opmeter"}`: "outside",
	} {
		if err := os.WriteFile(index, []byte(text+"\n"+string(whole)), 0o600); err != nil {
			t.Fatal(err)
		}
		if s := open(t, dir); len(s.Records) != 2 || len(s.Notes) != 1 || !strings.Contains(s.Notes[0], want) {
			t.Errorf("%s: %d records, notes %q, want %q", text, len(s.Records), s.Notes, want)
		}
	}
	if err := os.WriteFile(index, []byte(strings.Repeat("x\n", 30)), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := open(t, dir); len(s.Notes) != maxNotes+1 || !strings.Contains(s.Notes[maxNotes], "20 more") {
		t.Errorf("notes %q", s.Notes)
	}
	if err := os.WriteFile(index, []byte(strings.Repeat("x", maxLine+100_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil {
		t.Error("an endless line was read")
	}
}

// The index is never written through a link.
func TestLinkedIndex(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, BaselineDir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), filepath.Join(dir, BaselineDir, IndexFile)); err != nil {
		t.Skip(err)
	}
	if err := (&Store{Dir: dir}).Add(record(Ran, "a", 1)); err == nil || !strings.Contains(err.Error(), "is a link") {
		t.Errorf("a link: %v", err)
	}
}

const writer = "OPMETER_TEST_WRITER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writer); dir != "" {
		write(dir, os.Args[1])
	}
	os.Exit(m.Run())
}

// write appends records until the process is killed, or a hundred. It says each one that is safe.
func write(dir, name string) {
	s := &Store{Dir: dir}
	p := sample.New(sample.Options{Layers: 2})
	most := 100
	if name == "endless" {
		most = 1 << 30
	}
	for i := range most {
		if err := s.Accept([]Record{record(Accepted, name, float64(i))}, []*profile.Profile{p}); err != nil {
			fmt.Println("failed", err)
			os.Exit(1)
		}
		fmt.Println("safe", i)
	}
	os.Exit(0)
}

func startWriter(t *testing.T, dir, name string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	c := exec.Command(os.Args[0], name)
	c.Env = append(os.Environ(), writer+"="+dir)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	return c, bufio.NewScanner(out)
}

// A process that is killed loses nothing that it said was safe, and what it leaves can be read and
// added to.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	safe := 0
	for round := range 10 {
		c, lines := startWriter(t, dir, "endless")
		for range 1 + round%3 {
			if !lines.Scan() || !strings.HasPrefix(lines.Text(), "safe") {
				t.Fatalf("the writer says %q", lines.Text())
			}
			safe++
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // what it said before it ended
			safe++
		}
		_ = c.Wait()
		s := open(t, dir)
		if len(s.Records) < safe || len(s.Records) > safe+round+1 {
			t.Fatalf("round %d: %d records, %d are safe", round, len(s.Records), safe)
		}
		if last := s.Last(Accepted, "endless", Host, "default"); last == nil {
			t.Fatal("no record")
		}
	}
}

// Two processes that write at once lose nothing.
func TestTwoWriters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var wg sync.WaitGroup
	for _, name := range []string{"one", "two", "three"} {
		c, lines := startWriter(t, dir, name)
		wg.Go(func() {
			for lines.Scan() {
			}
			if err := c.Wait(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	wg.Wait()
	s := open(t, dir)
	if len(s.Records) != 300 || len(s.Notes) > 0 {
		t.Fatalf("%d records, notes %q", len(s.Records), s.Notes)
	}
	next := map[string]float64{}
	for _, r := range s.Records {
		if r.Figures["macs"] != next[r.Model] {
			t.Fatalf("%s: record %v after %v", r.Model, r.Figures["macs"], next[r.Model]-1)
		}
		next[r.Model]++
	}
	for _, name := range []string{"one", "two", "three"} {
		if _, note := s.Profile(s.Last(Accepted, name, Host, "default")); note != "" {
			t.Error(note)
		}
	}
}

func TestSlug(t *testing.T) {
	t.Parallel()
	for in, same := range map[string]bool{
		"model.tflite": true, "stm32l4r5": true, "models/a": false, "../../etc": false, "": false, "con.x": false,
		"a b": false, ".": false, "..": false, "ä": false, strings.Repeat("x", 200): false, "-a": false,
	} {
		got := Slug(in)
		if (got == in) != same || got == "" || !filepath.IsLocal(got) || strings.ContainsAny(got, `/\ `) || len(got) > 80 {
			t.Errorf("%q: %q", in, got)
		}
	}
	if Slug("a/b") == Slug("a-b") || Slug("a/b") == Slug("a b") {
		t.Error("different names are equal")
	}
}

func TestIgnoreErrors(t *testing.T) {
	t.Parallel()
	s := &Store{Dir: t.TempDir()}
	for _, g := range []Ignore{{Figure: "macs", Until: "soon", Reason: "x"}, {Figure: "macs", Until: "2030-01-01"}, {Until: "2030-01-01", Reason: "x"}} {
		if err := s.Ignore(g); err == nil {
			b, _ := json.Marshal(g)
			t.Errorf("%s was accepted", b)
		}
	}
}
