package testengine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/cli"
	"github.com/opmeter/opmeter/internal/testing/testengine"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/compare"
)

// compared runs two engines with files of these endings, and returns the folder that they are in.
func compared(t *testing.T, b testengine.Behaviour, endings []string, args ...string) (dir string, status int, out, errs string) {
	t.Helper()
	lib, err := testengine.Write(t.TempDir(), b)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	args = append([]string{"profile", model, "--engine", "opmeter,onnxruntime=" + lib, "--runs", "10", "--warmup", "0", "--open=false"}, args...)
	for _, e := range endings {
		args = append(args, "-o", filepath.Join(dir, "c"+e))
	}
	var o, e bytes.Buffer
	status = cli.Main(args, strings.NewReader(""), &o, &e)
	return dir, status, o.String(), e.String()
}

// The comparison of engines is in the files that are named, as far as their formats have it, and
// each engine's profile beside it.
func TestComparedInFiles(t *testing.T) {
	t.Parallel()
	both := []string{".txt", ".csv", ".json", ".md", ".html"}
	dir, status, out, errs := compared(t, testengine.Behaviour{Run: run}, append([]string{".opmeter", ".trace.json"}, both...), "--format", "json")
	if status != 0 {
		t.Fatalf("status %d: %s", status, errs)
	}
	for _, end := range append([]string{".opmeter", ".trace.json"}, both...) {
		for _, name := range []string{"c-opmeter", "c-onnxruntime"} {
			if _, err := os.Stat(filepath.Join(dir, name+end)); err != nil {
				t.Error(err)
			}
			if want := "wrote " + filepath.Join(dir, name+end) + ", "; !strings.Contains(errs, want) {
				t.Errorf("%q is not told in %q", want, errs)
			}
		}
	}
	for _, end := range []string{".opmeter", ".trace.json"} { // formats without comparisons
		if _, err := os.Stat(filepath.Join(dir, "c"+end)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("c%s: %v, want no such file", end, err)
		}
	}
	for end, want := range map[string]string{".txt": "latency of one inference, 2 runs", ".csv": "kind,group,op,", ".md": "Latency of one inference", ".html": "<!doctype html>"} {
		b, err := os.ReadFile(filepath.Join(dir, "c"+end))
		packed := end == ".html" // the data of the page
		if err != nil || !strings.Contains(string(b), want) || !packed && !strings.Contains(string(b), "onnxruntime") {
			t.Errorf("c%s: %v, %.200s", end, err, b)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "c.json"))
	if err != nil {
		t.Fatal(err)
	}
	if string(b) != out {
		t.Error("standard output and the file are two comparisons")
	}
	var table compare.Table
	if err := json.Unmarshal(b, &table); err != nil || table.Schema != compare.SchemaV1 || len(table.Runs) != 2 {
		t.Fatalf("%v: %.300s", err, b)
	}
	for i, name := range []string{"opmeter", "onnxruntime"} {
		p, err := profile.Read(filepath.Join(dir, "c-"+name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		want, ok := p.Totals.Figure(table.Quantity).Best()
		if got := table.Runs[i].Total.Value; !ok || table.Runs[i].Name != name || got == nil || *got != want {
			t.Errorf("%s: %+v, want %v", name, table.Runs[i], want)
		}
	}
}

// Where one engine fails there is nothing to compare: why is told, and what was measured is there.
func TestNotCompared(t *testing.T) {
	t.Parallel()
	b := testengine.Behaviour{Run: run, Faults: []testengine.Fault{{At: testengine.Load, What: testengine.Reject}}}
	dir, status, out, errs := compared(t, b, []string{".json", ".csv"})
	if status != 3 || !strings.Contains(errs, "Relu is not to its liking") || !strings.Contains(errs, "1 of 2 engines refused; no comparison of engines: only opmeter was measured\n") {
		t.Errorf("status %d: %s", status, errs)
	}
	if !strings.Contains(out, "relu.onnx") {
		t.Errorf("what was measured is not listed: %s", out)
	}
	if _, err := profile.Read(filepath.Join(dir, "c-opmeter.json")); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"c.json", "c.csv", "c-onnxruntime.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want no such file", name, err)
		}
	}
}
