package testengine_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	root "github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/cli"
	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/testing/testengine"
	"github.com/opmeter/opmeter/profile"
)

// run is how long an inference of the engines of these tests takes at least.
const run = time.Millisecond

// measured profiles the model with an engine that behaves so.
func measured(t *testing.T, b testengine.Behaviour, args ...string) *profile.Profile {
	t.Helper()
	out := filepath.Join(t.TempDir(), "p.opmeter")
	status, _, errs := opmeter(t, b, append(args, "--warmup", "0", "-o", out)...)
	if status != 0 {
		t.Fatalf("status %d: %s", status, errs)
	}
	p, err := profile.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return p
}

func found(p *profile.Profile, id string) bool {
	return slices.ContainsFunc(p.Findings, func(f profile.Finding) bool { return f.ID == id })
}

// Streams of an engine give what those of opmeter's own give, beside the figures of one inference
// after the other.
func TestStreams(t *testing.T) {
	t.Parallel()
	p := measured(t, testengine.Behaviour{Run: run}, "--streams", "3", "--runs", "20")
	if s := p.Settings; s.Scenario != profile.Throughput || s.Streams == nil || *s.Streams != 3 || s.RatePerS != nil || s.Cold != "" {
		t.Errorf("settings %+v", s)
	}
	took := p.Totals.Figure("loaded_latency_s")
	if took == nil || *took.N < 60 || !(*took.Min >= run.Seconds()) || p.Totals.Latency == nil || *p.Trust.Undisturbed+*p.Trust.Disturbed != 20 {
		t.Errorf("under load %+v, alone %+v", took, p.Totals.Latency)
	}
	// Streams do not compute more than one inference in the time of one each.
	if v, ok := p.Totals.Value("inferences_per_s"); !ok || !(v > 0 && v <= 3/run.Seconds()) {
		t.Errorf("%v a second", v)
	}
	// Where the machine is busy the others may have done all runs before one stream gets a
	// processor; a time is over only when each has had its share.
	if v, ok := p.Totals.Value("stream_fairness"); !ok || !(v >= 0 && v <= 1) {
		t.Errorf("fairness %v", v)
	}
	lanes(t, p)
	p = measured(t, testengine.Behaviour{Run: run, NoCeilings: true}, "--streams", "3", "--time", "200ms")
	if v, ok := p.Totals.Value("stream_fairness"); !ok || !(v > 0 && v <= 1) {
		t.Errorf("fairness %v", v)
	}
	if names, want := lanes(t, p), []string{"stream 0", "stream 1", "stream 2"}; !slices.Equal(names, want) {
		t.Errorf("lanes %v, want %v", names, want)
	}
}

// lanes checks the bars of inferences and returns the names of their lanes.
func lanes(t *testing.T, p *profile.Profile) (names []string) {
	t.Helper()
	if p.Timeline == nil {
		t.Fatal("no timeline")
	}
	for _, l := range p.Timeline.Lanes {
		names = append(names, l.Name)
		for k, d := range l.Durations {
			// nanoseconds as parts of a second
			if !(d >= run.Seconds()*(1-1e-9)) || l.Starts[k] < 0 {
				t.Errorf("%s: bar %d from %v for %v", l.Name, k, l.Starts[k], d)
			}
		}
	}
	return names
}

// At a fixed rate so many inferences are due as were asked for.
func TestRate(t *testing.T) {
	t.Parallel()
	p := measured(t, testengine.Behaviour{Run: run}, "--streams", "2", "--rate", "50/s", "--runs", "10")
	if s := p.Settings; s.Scenario != profile.FixedRate || *s.Streams != 2 || *s.RatePerS != 50 {
		t.Errorf("settings %+v", s)
	}
	due, ok := p.Totals.Value("due_inferences")
	never, _ := p.Totals.Value("unstarted_inferences") // where the machine is busy
	response := p.Totals.Figure("response_s")
	if !ok || due != 10 || response == nil || *response.N+int64(never) != 10 || !(*response.Min >= run.Seconds()) {
		t.Errorf("%v were due, %+v", due, response)
	}
}

// Cold inferences are those that were asked for; a start is with a session of its own.
func TestCold(t *testing.T) {
	t.Parallel()
	for cold, key := range map[string]string{"caches": "cold_latency_s", "start": "cold_start_s"} {
		p := measured(t, testengine.Behaviour{Run: run}, "--cold="+cold, "--runs", "4")
		m := p.Totals.Figure(key)
		if string(p.Settings.Cold) != cold || m == nil || *m.N < 4 || !(*m.Min >= run.Seconds()) {
			t.Errorf("%s: %+v, %+v", cold, m, p.Settings)
		}
		if cold == "start" && !strings.Contains(m.Method, "model loaded by the engine from its file") {
			t.Errorf("method %q", m.Method)
		}
	}
}

// An engine that makes no other session says so; what was measured before stays.
func TestNoStreams(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "p.opmeter")
	b := testengine.Behaviour{Faults: []testengine.Fault{{At: testengine.Beside, What: testengine.Error}}}
	status, _, errs := opmeter(t, b, "--streams", "2", "--runs", "5", "--warmup", "0", "-o", out)
	if status != 4 || !strings.Contains(errs, "making sessions for streams: the fake engine does not feel like it") || strings.Count(errs, "\n") != 1 {
		t.Errorf("status %d: %s", status, errs)
	}
	if p, err := profile.Read(out); err != nil || p.Totals.Latency == nil || p.Incomplete == nil {
		t.Errorf("the file: %v", err)
	}
}

// Peaks are those of the ceiling models: this engine takes the same time for each, so that they
// follow from their sizes, and no cache shows.
func TestPeaks(t *testing.T) {
	t.Parallel()
	p := measured(t, testengine.Behaviour{Run: run}, "--runs", "5")
	g := p.Target
	// A product of 512 × 512 by 512 has 512³ multiply-accumulates, two operations each.
	if most := 2 * 512 * 512 * 512 / run.Seconds(); g.PeakOpsPerSecond == nil || !(*g.PeakOpsPerSecond > 0 && *g.PeakOpsPerSecond <= most) {
		t.Errorf("operations %+v", g)
	}
	if len(g.Peaks) != 1 || g.Peaks[0].DType != "float32" || g.Peaks[0].Kernel != "onnxruntime" || g.ID != "host" || g.Engine != "Fake Engine 9.9.9" {
		t.Errorf("target %+v", g)
	}
	if len(g.Levels) != 1 || g.Levels[0].Name != "memory" || g.PeakBytesPerSecond == nil || !(*g.PeakBytesPerSecond > 0 && *g.PeakBytesPerSecond <= 128<<20/run.Seconds()) {
		t.Errorf("levels %+v", g.Levels)
	}
	if !strings.Contains(g.PeakMethod, "512 × 512") || !strings.Contains(g.PeakMethod, "by Fake Engine") || p.Phases.PeaksS == nil {
		t.Errorf("method %q, phases %+v", g.PeakMethod, p.Phases)
	}
}

// A ceiling model that is refused leaves its peak out, whatever else goes wrong all of them; the
// profile is whole in any case.
func TestNoPeaks(t *testing.T) {
	t.Parallel()
	const ceilings = 2 // loads before those of ceilings
	for _, c := range []struct {
		what    testengine.What
		peaks   int
		missing bool
		unix    bool
	}{{testengine.Reject, 0, false, false}, {testengine.Crash, 0, true, true}, {testengine.Exit, 0, true, false}, {testengine.Panic, 0, true, false}, {testengine.Hang, 0, true, false}} {
		t.Run(string(c.what), func(t *testing.T) {
			t.Parallel()
			if c.unix && runtime.GOOS == "windows" {
				t.Skip("there are no signals")
			}
			p := measured(t, testengine.Behaviour{Faults: []testengine.Fault{{At: testengine.Load, What: c.what, After: ceilings}}}, "--runs", "5", "--engine-timeout", "3s")
			if len(p.Target.Peaks) != c.peaks || (p.Target.PeakBytesPerSecond == nil) != c.missing || found(p, "engine.peaks") != c.missing {
				t.Errorf("%+v, %+v", p.Target, p.Findings)
			}
			// What is said at the end is said.
			if p.Totals.Latency == nil || p.Incomplete != nil || !found(p, "engine.note") || p.Differences == nil {
				t.Errorf("%+v", p.Incomplete)
			}
		})
	}
}

// Engines that are interleaved come to an end with streams, each with its own.
func TestStreamsInterleaved(t *testing.T) {
	t.Parallel()
	var libs []string
	for range 2 {
		lib, err := testengine.Write(t.TempDir(), testengine.Behaviour{Run: run})
		if err != nil {
			t.Fatal(err)
		}
		libs = append(libs, lib)
	}
	out := filepath.Join(t.TempDir(), "p.opmeter")
	var o, e bytes.Buffer
	status := cli.Main([]string{"profile", model, "--engine", "opmeter,onnxruntime=" + libs[0] + ",openvino=" + libs[1], "--streams", "2", "--runs", "10", "--warmup", "0", "-o", out}, strings.NewReader(""), &o, &e)
	if status != 0 {
		t.Fatalf("status %d: %s", status, e.String())
	}
	for _, name := range []string{"opmeter", "onnxruntime", "openvino"} {
		p, err := profile.Read(filepath.Join(filepath.Dir(out), "p-"+name+".opmeter"))
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := p.Totals.Value("inferences_per_s"); !ok || !(v > 0) || p.Incomplete != nil {
			t.Errorf("%s: %v a second, %+v", name, v, p.Incomplete)
		}
	}
}

// Two profiles with opmeter's own engine that are interleaved come to an end.
func TestNativeInterleaved(t *testing.T) {
	t.Parallel()
	m, err := root.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var turns root.Interleaver
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			p, err := root.Profile(t.Context(), m, root.Options{Runs: 20, Warmup: 3, Interleaver: &turns})
			if err != nil || p.Incomplete != nil || p.Totals.Latency == nil || *p.Trust.Undisturbed+*p.Trust.Disturbed != 20 {
				t.Errorf("%v", err)
			}
		})
	}
	wg.Wait()
}

// A sweep has a point for each engine with everything else, and one front over all.
func TestSweep(t *testing.T) {
	t.Parallel()
	var libs []string
	for _, d := range []time.Duration{run, 20 * run} {
		lib, err := testengine.Write(t.TempDir(), testengine.Behaviour{Run: d})
		if err != nil {
			t.Fatal(err)
		}
		libs = append(libs, lib)
	}
	var o, e bytes.Buffer
	args := []string{"sweep", model, "--engine", "opmeter,onnxruntime=" + libs[0] + ",litert=" + libs[1], "--streams", "1,2", "--runs", "6", "--rounds", "2", "--warmup", "0", "--format", "json"}
	if status := cli.Main(args, strings.NewReader(""), &o, &e); status != 0 {
		t.Fatalf("status %d: %s", status, e.String())
	}
	var got struct {
		Points []struct {
			Engine  string          `json:"engine"`
			Streams int             `json:"streams"`
			Latency *profile.Metric `json:"latency_s"`
			Rate    *profile.Metric `json:"items_per_s"`
			RAM     *int64          `json:"ram_bytes"`
			Best    bool            `json:"best"`
		} `json:"points"`
	}
	if err := json.Unmarshal(o.Bytes(), &got); err != nil || len(got.Points) != 6 {
		t.Fatalf("%v: %s", err, o.String())
	}
	for i, name := range []string{"opmeter", "opmeter", "onnxruntime", "onnxruntime", "litert", "litert"} {
		p := got.Points[i]
		if p.Engine != name || p.Streams != 1+i%2 || p.Latency == nil || p.Rate == nil || *p.Rate.N != 2 || *p.Latency.N < int64(6*p.Streams) || (p.RAM != nil) != (name == "opmeter") {
			t.Errorf("point %d: %+v", i, p)
			continue
		}
		least := map[string]time.Duration{"onnxruntime": run, "litert": 20 * run}[name].Seconds()
		if !(*p.Latency.Min >= least) || least > 0 && !(*p.Rate.Max <= float64(p.Streams)/least) {
			t.Errorf("point %d: %v s and %v a second, an inference takes %v s", i, *p.Latency.Min, *p.Rate.Max, least)
		}
		// Nothing that takes twenty times as long is on the front.
		if name == "litert" && p.Best {
			t.Errorf("point %d is best", i)
		}
	}
	o.Reset()
	if status := cli.Main(append(args[:len(args)-1], "table"), strings.NewReader(""), &o, &e); status != 0 || !strings.Contains(o.String(), "engine") || !strings.Contains(o.String(), "onnxruntime") {
		t.Errorf("status %d: %s%s", status, o.String(), e.String())
	}
}

// A version beside a path is what the library has to tell, in a profile and in a sweep.
func TestVersions(t *testing.T) {
	t.Parallel()
	lib, err := testengine.Write(t.TempDir(), testengine.Behaviour{Version: "1.20.1"})
	if err != nil {
		t.Fatal(err)
	}
	for want, status := range map[string]int{"1.20": 0, "1.2": 4, "1.20.1": 0, "2": 4} {
		for _, command := range []string{"profile", "sweep"} {
			var o, e bytes.Buffer
			got := cli.Main([]string{command, model, "--engine", "onnxruntime@" + want + "=" + lib, "--runs", "3", "--warmup", "0"}, strings.NewReader(""), &o, &e)
			if all := o.String() + e.String(); got != status || strings.Contains(all, "ONNX Runtime "+want+" was asked for, the library is of version 1.20.1") != (status != 0) {
				t.Errorf("%s %s: status %d: %s", command, want, got, all)
			}
		}
	}
}

// A child whose parent is gone before it has asked for anything removes its folder; one that is not
// such a folder stays.
func TestFolderOfNobody(t *testing.T) {
	t.Parallel()
	for name, stays := range map[string]bool{external.FolderPrefix + "1": false, "home": true} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.MkdirAll(filepath.Join(dir, "below"), 0o700); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(os.Getenv("OPMETER_ENGINE"))
		c.Env = append(os.Environ(), external.FolderVariable+"="+dir)
		if err := c.Run(); err == nil { // its input is empty
			t.Error("a child without a request is content")
		}
		if _, err := os.Stat(dir); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}
