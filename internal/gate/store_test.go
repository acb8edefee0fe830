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

// last is the accepted record of a model, nil if there is not exactly one.
func last(s *Store, model string) *Record {
	if heads := s.Heads(model, Host, "default"); len(heads) == 1 {
		return heads[0]
	}
	return nil
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
	r := last(s, "models/a.tflite")
	if len(s.Records) != 3 || len(s.Ignores) != 1 || len(s.Notes) > 0 || r == nil || r.Figures["macs"] != 1 {
		t.Fatalf("%+v", s)
	}
	if want := Slug("models/a.tflite") + "/any/default-" + r.FileSHA256[:8] + ".opmeter"; r.File != want {
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
		if last(s, "endless") == nil {
			t.Fatal("not one record that is not replaced")
		}
	}
	// The next process leaves only the profile of its own baseline, and those that damaged lines name.
	s := open(t, dir)
	if err := s.Accept([]Record{record(Accepted, "endless", 1)}, []*profile.Profile{sample.New(sample.Options{Layers: 2})}); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	files := 0
	if err := s.eachFile(func(_, name string) error {
		if files++; name != last(s, "endless").File && !strings.Contains(s.damaged.String(), name) {
			t.Errorf("%s is left", name)
		}
		return nil
	}); err != nil || files == 0 {
		t.Errorf("%d files, %v", files, err)
	}
}

// What a process leaves that was killed while it wrote a profile goes when the next one starts.
func TestLeftover(t *testing.T) {
	t.Parallel()
	s := &Store{Dir: t.TempDir()}
	if err := s.Clean(); err != nil {
		t.Errorf("an absent store: %v", err)
	}
	if err := s.Accept([]Record{record(Accepted, "a", 1)}, []*profile.Profile{sample.New(sample.Options{Layers: 2})}); err != nil {
		t.Fatal(err)
	}
	s = open(t, s.Dir)
	file := filepath.Join(s.Dir, BaselineDir, filepath.FromSlash(last(s, "a").File))
	left := filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".0123abcd")
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Clean(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(left); err == nil {
		t.Error("the temporary file is still there")
	}
	if _, err := os.Lstat(file); err != nil {
		t.Errorf("the baseline: %v", err)
	}
}

// Two branches that accept the same model write other files and other lines: both merge, and the
// record that replaces both decides afterwards.
func TestBranches(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	accept := func(macs float64, layers int) {
		t.Helper()
		s := &Store{Dir: filepath.Join(w.dir, Folder)}
		if err := s.Accept([]Record{record(Accepted, "a", macs)}, []*profile.Profile{sample.New(sample.Options{Layers: layers})}); err != nil {
			t.Fatal(err)
		}
	}
	accept(1, 20)
	w.commit("first")
	for i, branch := range []string{"x", "y"} {
		w.git("checkout", "-q", "-b", branch, "main")
		accept(float64(2+i), 30+10*i)
		w.commit(branch)
	}
	w.git("checkout", "-q", "x")
	w.git("merge", "-q", "-m", "both", "y")
	s := open(t, filepath.Join(w.dir, Folder))
	heads := s.Heads("a", Host, "default")
	if len(heads) != 2 || heads[0].Figures["macs"] != 2 || heads[1].Figures["macs"] != 3 || len(s.Records) != 3 {
		t.Fatalf("heads %+v", heads)
	}
	for _, r := range heads {
		if p, note := s.Profile(r); p == nil {
			t.Error(note)
		}
	}
	accept(4, 50)
	if s = open(t, s.Dir); last(s, "a") == nil || last(s, "a").Figures["macs"] != 4 || len(last(s, "a").Replaces) != 2 {
		t.Errorf("after a record that replaces both: %+v", s.Heads("a", Host, "default"))
	}
	// Only the profile of the baseline is left.
	if out := w.git("status", "--porcelain", "--untracked-files=all"); strings.Count(out, "D .opmeter/") != 2 || !strings.Contains(out, last(s, "a").File) {
		t.Errorf("changed files:\n%s", out)
	}
}

// All that writes lines also tells git how to merge them, beside what people wrote.
func TestAttributes(t *testing.T) {
	t.Parallel()
	for _, write := range []func(*Store) error{
		func(s *Store) error { return s.Add(record(Ran, "a", 1)) },
		func(s *Store) error { return s.Ignore(Ignore{Figure: "macs", Until: "2030-01-01", Reason: "x"}) },
		(*Store).Init,
	} {
		for _, old := range []string{"", "*.x text\n", "*.jsonl merge=union\n"} {
			s := &Store{Dir: t.TempDir()}
			path := filepath.Join(s.Dir, attributes)
			if old != "" {
				if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if err := write(s); err != nil {
					t.Fatal(err)
				}
			}
			b, err := os.ReadFile(path)
			if err != nil || !strings.HasPrefix(string(b), old) || strings.Count(string(b), "*.jsonl merge=union\n") != 1 || strings.Count(string(b), "*.opmeter -diff -merge -text\n") != 1 {
				t.Errorf("%q after %q, %v", b, old, err)
			}
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
		if _, note := s.Profile(last(s, name)); note != "" {
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
