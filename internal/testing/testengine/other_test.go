package testengine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	root "github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/testing/testengine"
	"github.com/opmeter/opmeter/profile"
)

// beside profiles the model with the own engine and compares it with a library that behaves so.
func beside(t *testing.T, b testengine.Behaviour, limit time.Duration, change func(*profile.Profile)) *profile.Profile {
	t.Helper()
	m, err := root.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	o := root.Options{Runs: 20, Warmup: -1, SkipPeaks: true}
	p, err := root.Profile(t.Context(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	lib, err := testengine.Write(t.TempDir(), b)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(p)
	}
	o.Engine = &engine.Engine{Name: "onnxruntime", Library: lib, Version: "9.9", Helper: os.Getenv("OPMETER_ENGINE")}
	if err := root.CompareEngine(t.Context(), m, p, o, limit); err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	if p.Other == nil {
		t.Fatal("nothing is noted")
	}
	return p
}

// findingText returns the text of the finding with an ID, "" without one.
func findingText(p *profile.Profile, id string) string {
	for _, f := range p.Findings {
		if f.ID == id {
			return f.Text
		}
	}
	return ""
}

// An installed engine is summed up beside opmeter's own, whose figures stay.
func TestCompareEngine(t *testing.T) {
	t.Parallel()
	var own float64
	p := beside(t, testengine.Behaviour{}, time.Minute, func(p *profile.Profile) { own, _ = p.Totals.Latency.Best() })
	o := p.Other
	if o.Cause != nil {
		t.Fatalf("%+v", o.Cause)
	}
	theirs, ok := o.Latency.Best()
	if !ok || theirs < 20e-6 { // an inference of the fake engine waits for 20 µs
		t.Errorf("latency %v", theirs)
	}
	if o.Name() != "Fake Engine 9.9.9" || len(o.Operators) != 1 || o.Operators[0] != (profile.OperatorShare{Op: "Relu", Share: 1}) {
		t.Errorf("%+v", o)
	}
	if now, _ := p.Totals.Latency.Best(); now != own || p.Target.Engine != "opmeter" {
		t.Errorf("own latency %v became %v", own, now)
	}
}

// Whatever an engine does is one line in the profile of opmeter's own engine.
func TestCompareEngineFails(t *testing.T) {
	t.Parallel()
	fault := func(at testengine.Place, what testengine.What) testengine.Behaviour {
		return testengine.Behaviour{Faults: []testengine.Fault{{At: at, What: what}}}
	}
	const brief = 300 * time.Millisecond
	for _, c := range []struct {
		name   string
		b      testengine.Behaviour
		limit  time.Duration
		change func(*profile.Profile)
		code   profile.CauseCode
		text   string
	}{
		{"hangs when opened", fault(testengine.Open, testengine.Hang), brief, nil, profile.ByDeadline, "it gave no result within 300ms"},
		{"hangs in an inference", fault(testengine.Run, testengine.Hang), brief, nil, profile.ByDeadline, "it gave no result within 300ms"},
		{"ends the process", fault(testengine.Load, testengine.Exit), time.Minute, nil, profile.ByError, "ended the process"},
		{"large weights", testengine.Behaviour{}, time.Minute, func(p *profile.Profile) { p.Totals.WeightsBytes = new(int64(1 << 30)) }, profile.ByMemory, "loaded a second time"},
		{"long inference", testengine.Behaviour{}, time.Second, func(p *profile.Profile) { p.Totals.Latency = profile.Value(profile.Measured, 0.1, "") }, profile.ByDeadline, "an inference is too long for a measurement of 1s"},
		{"no latency", testengine.Behaviour{}, time.Minute, func(p *profile.Profile) { p.Totals.Latency = nil }, profile.ByNoFigures, "no latency to compare with"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := beside(t, c.b, c.limit, c.change)
			if x := p.Other.Cause; x == nil || x.Code != c.code || !strings.Contains(x.Text, c.text) {
				t.Errorf("cause %+v, want %s: %s", x, c.code, c.text)
			}
			if f := findingText(p, "engine.other"); !strings.Contains(f, " was not measured beside opmeter's own engine: ") || !strings.Contains(f, c.text) {
				t.Errorf("finding %q", f)
			}
		})
	}
}

// The profile of one model notes the engine that is installed, unless an engine is named or the
// settings are those of opmeter's own engine alone.
func TestInstalledEngine(t *testing.T) {
	t.Parallel()
	lib, err := testengine.Write(t.TempDir(), testengine.Behaviour{})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, env, args string
		noted           bool
	}{
		{"default", "", "", true},
		{"auto", "OPMETER_DEFAULT_ENGINE=opmeter", "--engine auto", true},
		{"own engine", "", "--engine opmeter", false},
		{"own engine by the environment", "OPMETER_DEFAULT_ENGINE=opmeter", "", false},
		{"chosen instruction set", "OPMETER_CPU=go", "", false},
		{"only opmeter's own engine computes exactly", "", "--exact", false},
		{"estimate beside it", "", "--on host --on stm32l4r5", false},
		{"several models", "", model, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			args := append([]string{"profile", model, "--runs", "5", "--warmup", "0", "-o", filepath.Join(dir, "p.json")}, strings.Fields(c.args)...)
			cmd := exec.Command(self, args...)
			cmd.Env = append(os.Environ(), asProgram+"=1", "OPMETER_DEFAULT_ENGINE=", "OPMETER_ONNXRUNTIME="+lib, c.env)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			files, err := filepath.Glob(filepath.Join(dir, "*.json"))
			if err != nil || len(files) == 0 {
				t.Fatalf("%v: no file", err)
			}
			for _, f := range files {
				p, err := profile.Read(f)
				if err != nil {
					t.Fatal(err)
				}
				// With the little time of so short a run it may not get to figures.
				if noted := p.Other != nil && p.Other.Engine == "onnxruntime" && (p.Other.Latency != nil || p.Other.Cause != nil); noted != c.noted {
					t.Errorf("%s: %+v", filepath.Base(f), p.Other)
				}
			}
		})
	}
}
