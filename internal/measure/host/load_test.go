package host

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
)

func driven(t *testing.T, o Options) *profile.Profile {
	t.Helper()
	m, err := modelfile.Open(filepath.Join(material.Root(), "examples", "autoencoder.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	o.Feed, o.WarmupRuns, o.WarmupTime = inputs.Options{}, -1, -1
	p, err := source.Collect(t.Context(), &Source{Model: m, Options: o}, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestLoad: figures under load are reported together with those of sequential inferences.
func TestLoad(t *testing.T) {
	t.Parallel()
	p := driven(t, Options{Runs: 40, Streams: 3, Samples: true})
	if s := p.Settings; s.Scenario != profile.Throughput || *s.Streams != 3 || s.RatePerS != nil {
		t.Errorf("%+v", s)
	}
	rate, ok := p.Totals.Value("inferences_per_s")
	took := p.Totals.Figure("loaded_latency_s")
	if !ok || !(rate > 0) || took == nil || *took.N < 40 || p.Totals.Latency == nil || *p.Trust.Undisturbed+*p.Trust.Disturbed != 40 {
		t.Errorf("%v a second, %+v beside %+v", rate, took, p.Totals.Latency)
	}
	lanes := map[string]int{}
	for i, l := range p.Timeline.Lanes {
		lanes[l.Name] = i
		if l.Group == "streams" {
			// Streams ran after the instrumented runs.
			if first := p.Timeline.Lanes[0]; l.Starts[0] < first.Starts[len(first.Starts)-1] {
				t.Errorf("%s begins at %v", l.Name, l.Starts[0])
			}
		}
	}
	if len(lanes) != 5 {
		t.Errorf("lanes %v, want iterations, operators and three streams", lanes)
	}
}

func TestFixedRate(t *testing.T) {
	t.Parallel()
	p := driven(t, Options{Runs: 20, Rate: 1000, Cold: profile.ColdCaches})
	due, _ := p.Totals.Value("due_inferences")
	if due != 20 || p.Settings.Scenario != profile.FixedRate || *p.Settings.RatePerS != 1000 || p.Totals.Figure("response_s") == nil {
		t.Errorf("%v due, %+v", due, p.Settings)
	}
	// The lane of the stream is the only one.
	if len(p.Timeline.Lanes) != 1 || p.Timeline.Lanes[0].Starts[0] < 0 {
		t.Errorf("%+v", p.Timeline)
	}
	// Disturbed ones of the 20 do not count as long as ten others are there.
	if m := p.Totals.Figure("cold_latency_s"); m == nil || *m.N < 10 || *m.N > 20 || p.Settings.Cold != profile.ColdCaches {
		t.Errorf("%+v", m)
	}
}

func TestColdRuns(t *testing.T) {
	t.Parallel()
	p := driven(t, Options{Runs: 3, Cold: profile.ColdStart, Threads: 2, Streams: 2, Pin: true})
	if m := p.Totals.Figure("cold_start_s"); m == nil || *m.N != 3 || p.Totals.Figure("cold_latency_s") != nil {
		t.Errorf("%+v", m)
	}
}

// TestLoadStops: results measured before the stop are kept, however long their evaluation takes.
func TestLoadStops(t *testing.T) {
	t.Parallel()
	m, err := modelfile.Open(filepath.Join(material.Root(), "examples", "autoencoder.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// On a busy machine a stream may not begin for a while: then it is stopped later.
	for _, after := range []float64{0.1, 0.4, 0.9} {
		ctx, cancel := context.WithCancel(t.Context())
		stopped := false
		o := Options{Time: 2 * time.Second, WarmupRuns: -1, WarmupTime: -1, Streams: 2, Progress: func(phase string, f float64) {
			if phase == "measuring under load" && f >= after && f < 1 {
				stopped = true
				cancel()
			}
		}}
		p, err := source.Collect(ctx, &Source{Model: m, Options: o}, source.Options{})
		cancel()
		if err != nil || p.Totals.Latency == nil || stopped && len(p.Incomplete) != 1 {
			t.Fatalf("%v: %v", err, p)
		}
		if stopped && p.Totals.Figure("inferences_per_s") != nil {
			return
		}
		t.Logf("stopped after %v of the time, nothing was there: %+v", after, p.Totals.Figures)
	}
	t.Error("what load had given when it was stopped was lost")
}
