package opmeter_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/tflmdevice"
	"github.com/opmeter/opmeter/profile"
)

// microProgram builds the program that prints what TensorFlow Lite Micro's profiler prints.
func microProgram(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "micro.exe")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/opmeter/opmeter/internal/testing/tflmdevice/program").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// micro is an engine of that program, with arguments before the model; ticks are microseconds.
func micro(t *testing.T, path, args string) *engine.Engine {
	t.Helper()
	command := "'" + path + "'"
	if args != "" {
		command += " " + args + " {model}"
	}
	list, err := engine.Find("tflm=" + command)
	if err != nil {
		t.Fatal(err)
	}
	if list[0].Library != path || list[0].Command != command {
		t.Fatalf("%+v", list[0])
	}
	list[0].ClockHz = 1e6
	return list[0]
}

func keywords(t *testing.T) *opmeter.Model {
	t.Helper()
	m, err := opmeter.Open(filepath.Join(material.Root(), "examples", "ds_cnn.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// The figures of a profile are the ticks that the program prints, whatever a start gives: of one
// inference a start, the first start is warm-up; of several, the first of each. Ticks grow by 3
// from one inference of a start to the next.
func TestMicro(t *testing.T) {
	t.Parallel()
	m, path := keywords(t), microProgram(t)
	known, err := opmeter.Count(m, opmeter.Inputs{})
	if err != nil {
		t.Fatal(err)
	}
	b := &tflmdevice.Board{}
	for _, c := range []struct {
		args        string
		first, last int // inferences of a start that count
		starts      string
	}{
		{"", 0, 0, "started 11 times."},
		{"-stdout", 0, 0, "started 11 times."},
		{"-table", 0, 0, "started 11 times."},
		{"-runs 20", 1, 10, "started once."},
		{"-runs 0", 1, 10, "started once."},
		{"-runs 6 -table", 1, 5, "started 2 times."},
		{"-runs 3", 1, 2, "started 5 times."},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			p, err := opmeter.Profile(t.Context(), m, opmeter.Options{Engine: micro(t, path, c.args), Runs: 10})
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Validate(); err != nil {
				t.Fatal(err)
			}
			if len(p.Layers) != len(known.Layers) || len(p.Incomplete) > 0 || p.Settings.Engine != "TensorFlow Lite Micro" || p.Target.ID != "host" || p.Host == nil || *p.Settings.Runs != 10 {
				t.Fatalf("%d layers of %d, %v, %+v", len(p.Layers), len(known.Layers), p.Incomplete, p.Settings)
			}
			for i := range p.Layers {
				l := &p.Layers[i]
				x := l.Figures["ticks"]
				if x == nil || *x.N != 10 || *x.Min != float64(b.Ticks(c.first, i)) || *x.Max != float64(b.Ticks(c.last, i)) {
					t.Errorf("%d %s: %+v, want %d to %d", i, l.Op, x, b.Ticks(c.first, i), b.Ticks(c.last, i))
				}
				if y := l.Latency; y == nil || *y.Min != float64(b.Ticks(c.first, i))/1e6 {
					t.Errorf("%d %s: %+v", i, l.Op, y)
				}
				if w := &known.Layers[i]; l.MACs == nil || *l.MACs != *w.MACs {
					t.Errorf("%d %s is not joined with the model", i, l.Op)
				}
			}
			if text := remark(p, "device.starts"); !strings.Contains(text, c.starts) {
				t.Errorf("%q, want %q", text, c.starts)
			}
		})
	}
}

func remark(p *profile.Profile, id string) string {
	for _, f := range p.Findings {
		if f.ID == id {
			return f.Text
		}
	}
	return ""
}

// Programs that go wrong are an error of one line with the right code, and figures that came
// before are marked.
func TestMicroFaults(t *testing.T) {
	t.Parallel()
	m, path := keywords(t), microProgram(t)
	for _, c := range []struct{ args, code, text string }{
		{"-fault nothing", "not_library", "printed nothing: have it call Log"},
		{"-fault garbage", "not_library", "prints nothing of TensorFlow Lite Micro's profiler"},
		{"-fault dies", "crashed", "ended with exit status 1; its last words: Didn't find op for builtin opcode 'CONV_2D'"},
		{"-fault hangs", "silent", "has printed nothing for 2s"},
		{"-fault 'hangs later'", "silent", "has printed nothing for 2s"},
		{"-fault truncated", "failed", "prints 6 of the 13 operators"},
		{"-fault 'dies later' -runs 4", "crashed", "ended with exit status 3; its last words: MicroProfiler errored out"},
		{"-fault other", "failed", "prints 0 of the 13 operators"},
		{"-fault still", "failed", "the clock of its profiler did not run"},
		{"-fault nothing -once {once}", "failed", "start 2: no inference of it was complete"},
		{"-fault 'dies later' -once {once}", "crashed", "exit status 3"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			e := micro(t, path, strings.ReplaceAll(c.args, "{once}", "'"+filepath.Join(t.TempDir(), "once")+"'"))
			e.Silent = time.Minute
			if strings.Contains(c.args, "hangs") {
				// of no other: a busy machine may take as long to start a program
				e.Silent = 2 * time.Second
			}
			p, err := opmeter.Profile(t.Context(), m, opmeter.Options{Engine: e, Runs: 5})
			ee, ok := errors.AsType[*engine.Error](err)
			if !ok || ee.Code != c.code || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%v, want %s: %q", err, c.code, c.text)
			}
			if p != nil && len(p.Incomplete) == 0 {
				t.Error("the profile does not say that it is incomplete")
			}
			if p != nil {
				if err := p.Validate(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// What such a program cannot be told is refused before it is started.
func TestMicroRefuses(t *testing.T) {
	t.Parallel()
	m := keywords(t)
	for option, o := range map[string]opmeter.Options{
		"Threads": {Threads: 2}, "Pin": {Pin: true}, "Streams": {Streams: 2}, "Rate": {Rate: 5}, "Cold": {Cold: profile.ColdStart}, "Carry": {Carry: map[string]string{"a": "b"}},
		"MaxMemory": {MaxMemory: 1 << 30}, "Inputs.Batch": {Inputs: opmeter.Inputs{Batch: 2}}, "Inputs.Shapes": {Inputs: opmeter.Inputs{Shapes: map[string][]int{"x": {1}}}},
		"Inputs.Dims": {Inputs: opmeter.Inputs{Dims: map[string]int{"n": 1}}},
	} {
		o.Engine = &engine.Engine{Name: "tflm", Command: "/nowhere"}
		_, err := opmeter.Profile(t.Context(), m, o)
		if e, ok := errors.AsType[*opmeter.OptionError](err); !ok || e.Option != option {
			t.Errorf("%s: %v", option, err)
		}
	}
	e := &engine.Engine{Name: "tflm", Command: "/nowhere", Options: []engine.Option{{Key: "a", Value: "b"}}}
	if _, err := opmeter.Profile(t.Context(), m, opmeter.Options{Engine: e}); err == nil || !strings.Contains(err.Error(), "has none") {
		t.Error(err)
	}
	e.Options = nil
	if _, err := opmeter.Sweep(t.Context(), m, opmeter.SweepOptions{Engines: []*engine.Engine{e}}); err == nil || !strings.Contains(err.Error(), "cannot be swept") {
		t.Error(err)
	}
	if err := opmeter.Check(t.Context(), m, &profile.Profile{}, opmeter.Options{Engine: e}); err == nil || !strings.Contains(err.Error(), "cannot be checked") {
		t.Error(err)
	}
	if _, err := opmeter.Profile(t.Context(), m, opmeter.Options{Engine: e}); err == nil || !strings.Contains(err.Error(), "/nowhere: no such program") {
		t.Error(err)
	}
}

// Two programs that are interleaved run one at a time, start for start, and both have all of their
// inferences; one of opmeter's own engine may be among them.
func TestMicroInterleaved(t *testing.T) {
	t.Parallel()
	m := keywords(t)
	log := filepath.Join(t.TempDir(), "log")
	path := microProgram(t)
	a, b := micro(t, path, "-log '"+log+"'"), micro(t, path, "-table -log '"+log+"'")
	var turns opmeter.Interleaver
	var wait sync.WaitGroup
	for _, e := range []*engine.Engine{a, b, nil} {
		wait.Go(func() {
			p, err := opmeter.Profile(t.Context(), m, opmeter.Options{Engine: e, Runs: 10, Interleaver: &turns, Warmup: -1})
			if err != nil {
				t.Error(err)
				return
			}
			if v, ok := p.Totals.Latency.Best(); !ok || !(v > 0) {
				t.Errorf("%+v", p.Totals.Latency)
			}
			if text := remark(p, "device.starts"); e != nil && !strings.Contains(text, "started 10 times, in turn with the other engines") {
				t.Errorf("%q", text)
			}
		})
	}
	wait.Wait()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	// The last start of each may be ended before it says so: its last inference has come.
	begun, silent, running := 0, 0, ""
	for _, line := range lines {
		what, who, _ := strings.Cut(line, " ")
		switch {
		case what == "begins":
			if running != "" {
				silent++
			}
			begun++
			running = who
		case what == "ends" && who == running:
			running = ""
		default:
			t.Errorf("two at once: %q while %q runs", line, running)
		}
	}
	if begun != 20 || silent > 2 {
		t.Errorf("%d starts, %d of which did not say that they ended: want 20 and at most 2", begun, silent)
	}
}

// A program that does not end is ended, in its turns and at the end of the time; what was cut off
// is not a loss.
func TestMicroEndless(t *testing.T) {
	t.Parallel()
	m, path := keywords(t), microProgram(t)
	for _, turns := range []*opmeter.Interleaver{nil, {}} {
		p, err := opmeter.Profile(t.Context(), m, opmeter.Options{Engine: micro(t, path, "-runs 0 -pause 1ms"), Time: 200 * time.Millisecond, Interleaver: turns})
		if err != nil || len(p.Incomplete) > 0 || *p.Totals.Latency.N < 3 {
			t.Fatalf("%v, %+v", err, p)
		}
		for _, f := range p.Findings {
			// the made-up ticks grow from run to run
			if f.Severity != profile.Info && f.ID != "tflm.odd" {
				t.Errorf("%s: %s", f.ID, f.Text)
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	p, err := opmeter.Profile(ctx, m, opmeter.Options{Engine: micro(t, path, "-runs 0 -pause 1ms"), Runs: 1 << 20})
	if err != nil && !errors.Is(err, context.DeadlineExceeded) || p != nil && (len(p.Incomplete) != 1 || p.Incomplete[0].Cause != profile.ByDeadline) {
		t.Errorf("%v %+v", err, p)
	}
}
