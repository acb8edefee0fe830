package collapsed_test

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/collapsed"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
)

// TestFile compares the stacks of a Java program with a plain reading.
func TestFile(t *testing.T) {
	t.Parallel()
	path := material.Path(t, "raw", "traces", "speedscope", "stackcollapse_perf_vertx.txt")
	p := records.Read(t, collapsed.Format(), records.Files(t, path), record.Options{})[0]
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	own, with := map[string]float64{}, map[string]float64{}
	for s := bufio.NewScanner(f); s.Scan(); {
		i := strings.LastIndex(s.Text(), " ")
		n, err := strconv.Atoi(s.Text()[i+1:])
		if err != nil {
			t.Fatal(err)
		}
		stack := strings.Split(s.Text()[:i], ";")
		seen := map[string]bool{}
		for _, name := range stack {
			if !seen[name] {
				with[name] += float64(n)
			}
			seen[name] = true
			own[name] += 0
		}
		own[stack[len(stack)-1]] += float64(n)
	}
	if d := cmp.Diff(own, records.Layers(p, "samples")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(with, records.Layers(p, "samples_with_callees")); d != "" {
		t.Error(d)
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]record.Sure{
		"a;b 1\na;c 2\nd 3\n":      record.Likely,
		"a;b 1\n":                  record.Maybe,
		"a 1\nb 2\nc 3\n":          record.No,
		"time: 5 ms\na;b 1\n":      record.No,
		`{"a;b": 1` + "\n":         record.No,
		"":                         record.No,
		"layer;name;time\nx;y;z\n": record.No,
	} {
		if got := collapsed.Match(record.Bytes("x", []byte(s))); got != want {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}

// TestBad leaves out what is not a stack.
func TestBad(t *testing.T) {
	t.Parallel()
	p := records.Read(t, collapsed.Format(), []*record.File{record.Bytes("x", []byte("# made by hand\na;b 1\na;b;c 2.5\nd;e 3\r\n"))}, record.Options{})[0]
	if d := cmp.Diff(map[string]float64{"a": 0, "b": 1, "c": 2.5, "d": 0, "e": 3}, records.Layers(p, "samples")); d != "" {
		t.Error(d)
	}
	runs, err := collapsed.Format().Read(t.Context(), &record.Input{Files: []*record.File{record.Bytes("x", []byte("nothing\n"))}})
	if err == nil || len(runs) != 0 {
		t.Errorf("%v, %v", runs, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("a;b;c 1\na;b 99999999999999999999\n;; 3\n"))
	f.Fuzz(func(t *testing.T, data []byte) { records.Fuzz(t, collapsed.Format(), "x.folded", data) })
}
