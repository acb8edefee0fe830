package perf_test

import (
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/perf"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
)

// TestForks compares the samples of several processes with a plain reading: the first line
// of each stack is the function that ran.
func TestForks(t *testing.T) {
	t.Parallel()
	path := material.Path(t, "raw", "traces", "speedscope", "linux_perf_forks.txt")
	p := records.Read(t, perf.Format(), records.Files(t, path), record.Options{})[0]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, with := map[string]float64{}, map[string]float64{}
	frame := regexp.MustCompile(`^\s+[0-9a-f]+ (\S+) \((.*)\)$`)
	total := 0.0
	for stack := range strings.SplitSeq(strings.TrimSpace(string(b)), "\n\n") {
		seen := map[string]bool{}
		for i, line := range strings.Split(stack, "\n")[1:] {
			m := frame.FindStringSubmatch(line)
			name := m[1] + " in " + m[2]
			if i == 0 {
				want[name] += 1001001e-9
				total += 1001001e-9
			}
			if !seen[name] {
				with[name] += 1001001e-9
			}
			seen[name] = true
		}
	}
	for i := range p.Layers {
		l := &p.Layers[i]
		name := l.Name + " in " + l.Option("library")
		v, _ := l.Value("latency_s")
		w, _ := l.Value("with_callees_s")
		if !(math.Abs(v-want[name]) < 1e-9) || !(math.Abs(w-with[name]) < 1e-9) {
			t.Errorf("%s: %v and %v s, want %v and %v", name, v, w, want[name], with[name])
		}
		delete(with, name)
	}
	if len(with) > 0 || total == 0 {
		t.Errorf("missing: %v", with)
	}
}

// TestHeads reads the forms that first lines have.
func TestHeads(t *testing.T) {
	t.Parallel()
	p := records.Read(t, perf.Format(), []*record.File{record.Bytes("x", []byte(`# comment
java 12688/12764 6544038.708352: cpu-clock:
	7f1 f+0x12 (/lib/a.so)
	7f2 main (/bin/x)

Web Content   7 [003]    10.000000000:    2000000 task-clock:u:
	7f1 operator new(unsigned long) (/lib/a.so)

x 8 1.5: 500 cycles:
	1 g (/bin/x)

x 8 1.6: 7 cache-misses:u: 
	1 g (/bin/x)

x 8 1.7: page-faults:
`))}, record.Options{})[0]
	if d := cmp.Diff(map[string]float64{"f": 1e-9, "main": 0, "operator new(unsigned long)": 2e-3, "g": 0}, records.Layers(p, "latency_s")); d != "" {
		t.Error(d)
	}
	if v := records.Layers(p, "cpu_cycles")["g"]; v != 500 {
		t.Errorf("%v cycles", v)
	}
	if v := records.Layers(p, "cache_misses")["g"]; v != 7 {
		t.Errorf("%v misses", v)
	}
	if len(p.Incomplete) != 1 || *p.Incomplete[0].Want != 1 {
		t.Errorf("%+v", p.Incomplete)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("a 1 [000] 1.000001: 10 cpu-clock:\n\t1 f (x)\n\n b 2 2.5: 1 cycles:\n 2 g\n\nq 1 9999999999.9: 99999999999999999999 task-clock: \n\t1 h (y)\n"))
	f.Fuzz(func(t *testing.T, data []byte) { records.Fuzz(t, perf.Format(), "perf.txt", data) })
}
