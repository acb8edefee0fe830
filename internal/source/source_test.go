package source_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// script is a source that sends events and kills its process before one of them.
type script struct {
	events []profile.Event
	kill   int // number of events before the end
}

func (s script) Run(_ context.Context, to source.Sink) error {
	for i, e := range s.events {
		if i == s.kill {
			p, err := os.FindProcess(os.Getpid())
			if err != nil {
				return err
			}
			if err := p.Signal(syscall.SIGKILL); err != nil {
				return err
			}
			select {} // the signal is on its way
		}
		if err := to.Send(e); err != nil {
			return err
		}
	}
	return nil
}

// events has one event of every kind and some twice.
func events() []profile.Event {
	layer := func(i int64) *int64 { return &i }
	return []profile.Event{
		{Described: &profile.Profile{
			Schema: profile.SchemaV1, Created: "2026-11-22T00:00:00Z", Model: profile.Model{Name: "m"}, Target: profile.Target{ID: "board", Kind: profile.TargetDevice},
			Settings: profile.Settings{Version: "test"},
			Layers: []profile.Layer{
				{Index: 0, Op: "If", State: profile.Ran},
				{Index: 1, Op: "Conv", State: profile.Ran, Parent: layer(0), MACs: layer(10), Calls: new(2.0)},
				{Index: 2, Op: "Relu", State: profile.Ran},
			},
		}},
		{Noted: &profile.Noted{Quantities: []profile.Quantity{{Key: "bank_conflicts", Name: "Bank conflicts", Adds: true, Better: -1}}}},
		{Refined: &profile.Refined{Layer: 2, State: profile.Fused, FusedInto: layer(1)}},
		{Measured: &profile.Samples{Layer: layer(1), Quantity: "latency_s", Values: []float64{1e-3, 2e-3}}},
		{Measured: &profile.Samples{Quantity: "latency_s", Values: []float64{2e-3, 4e-3, 3e-3}, Method: "cycle counter"}},
		{Measured: &profile.Samples{Layer: layer(1), Quantity: "latency_s", Values: []float64{3e-3}}},
		{Counted: &profile.Figure{Layer: layer(1), Quantity: "bank_conflicts", Metric: profile.Value(profile.Measured, 17, "")}},
		{Counted: &profile.Figure{Layer: layer(1), Quantity: "calls", Metric: profile.Value(profile.Measured, 3, "")}},
		{Lost: &profile.Loss{Layer: layer(0), Records: layer(2), Cause: profile.Cause{Code: profile.ByRecord, Text: "buffer full"}}},
		{Found: &profile.Finding{ID: "device.slow", Severity: profile.Warning, Text: "slow"}},
		{Noted: &profile.Noted{Timeline: &timeline.Timeline{Lanes: []timeline.Lane{{Name: "core", Kind: timeline.Engine, Starts: []float64{0}, Durations: []float64{1}, Figures: map[string][]float64{"bank_conflicts": {17}}}}}}},
		{Done: &profile.Done{Incomplete: []profile.Missing{{Cause: profile.ByDeadline}}}},
	}
}

const killAt, journalAt = "OPMETER_TEST_KILL", "OPMETER_TEST_JOURNAL"

// TestMain also runs the child process that is killed.
func TestMain(m *testing.M) {
	if at := os.Getenv(killAt); at != "" {
		n, _ := strconv.Atoi(at)
		_, err := source.Collect(context.Background(), script{events(), n}, source.Options{Journal: os.Getenv(journalAt)})
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestKilled kills a process that collects events before each of them. Its journal holds exactly
// the events that were sent, and opens as their profile.
func TestKilled(t *testing.T) {
	t.Parallel()
	all := events()
	for n := range len(all) + 1 {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			journal := filepath.Join(t.TempDir(), "run"+profile.JournalExtension)
			c := exec.Command(os.Args[0])
			c.Env = append(os.Environ(), killAt+"="+strconv.Itoa(n), journalAt+"="+journal)
			out, err := c.CombinedOutput()
			// The last child exits normally: its journal stays because the profile is stored
			// nowhere else.
			ee, ok := errors.AsType[*exec.ExitError](err)
			if killed := ok && ee.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL; killed != (n < len(all)) {
				t.Fatalf("the child ended with %v: %s", err, out)
			}
			text, err := os.ReadFile(journal)
			if err != nil {
				t.Fatal(err)
			}
			var got []profile.Event
			if err := profile.Events(bytes.NewReader(text), func(e profile.Event) bool { got = append(got, e); return true }); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(all[:n], got, cmp.Comparer(func(a, b []int64) bool { return fmt.Sprint(a) == fmt.Sprint(b) })); d != "" && n > 0 {
				t.Errorf("events (-sent +kept):\n%s", d)
			}
			p, err := profile.Read(journal)
			if n == 0 {
				if err == nil {
					t.Error("a journal without a description opens")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			b := profile.NewBuilder()
			for _, e := range all[:n] {
				if err := b.Send(e); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(b.Profile(), p); d != "" {
				t.Errorf("profile (-of the events +read):\n%s", d)
			}
			if last := p.Incomplete[len(p.Incomplete)-1]; (last.Cause == profile.ByEnd) != (n < len(all)) {
				t.Errorf("how the profile says that it ends: %+v", p.Incomplete)
			}
		})
	}
}

// TestEnds checks how the ends of a source are recorded in its profile.
func TestEnds(t *testing.T) {
	t.Parallel()
	first := events()[:5]
	boom := errors.New("boom")
	for _, tt := range []struct {
		name  string
		run   func(ctx context.Context, to source.Sink) error
		cause profile.CauseCode
		text  string
		err   bool
	}{
		{"done", func(context.Context, source.Sink) error { return nil }, "", "", false},
		{"failed", func(context.Context, source.Sink) error { return boom }, profile.ByError, "boom", true},
		{"fault", func(context.Context, source.Sink) error { panic("oh") }, profile.ByError, "internal error: oh", true},
		{"stopped", func(ctx context.Context, _ source.Sink) error { <-ctx.Done(); return ctx.Err() }, profile.ByCancel, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p, err := source.Collect(ctx, run(func(ctx context.Context, to source.Sink) error {
				for _, e := range first {
					if err := to.Send(e); err != nil {
						return err
					}
				}
				if tt.cause == profile.ByCancel {
					cancel()
				}
				return tt.run(ctx, to)
			}), source.Options{Version: "9"})
			if (err != nil) != tt.err {
				t.Errorf("error %v", err)
			}
			if tt.cause == "" {
				if p.Incomplete != nil {
					t.Errorf("incomplete %+v", p.Incomplete)
				}
			} else if len(p.Incomplete) != 1 || p.Incomplete[0].Cause != tt.cause || p.Incomplete[0].Text != tt.text {
				t.Errorf("incomplete %+v, want %s %q", p.Incomplete, tt.cause, tt.text)
			}
			if p.Settings.Version != "9" || *p.Layers[1].Latency.Median != 1.5e-3 {
				t.Errorf("%+v", p)
			}
			if err := p.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

type run func(ctx context.Context, to source.Sink) error

func (f run) Run(ctx context.Context, to source.Sink) error { return f(ctx, to) }

// TestGathers stops a source that only computes figures: Collect waits for them, and Watch
// reports it. A source that continues with other work is abandoned.
func TestGathers(t *testing.T) {
	t.Parallel()
	for _, goesOn := range []bool{false, true} {
		ctx, waits := source.Watch(t.Context())
		ctx, cancel := context.WithCancel(ctx)
		left := make(chan struct{})
		p, err := source.Collect(ctx, run(func(_ context.Context, to source.Sink) error {
			if err := to.Send(events()[0]); err != nil {
				return err
			}
			source.Gathers(to, true)
			source.Gathers(to, !goesOn)
			if waits() {
				t.Error("it waits before it was stopped")
			}
			cancel()
			if goesOn {
				<-left
				return nil
			}
			time.Sleep(2 * source.Patience)
			if !waits() {
				t.Error("it does not wait")
			}
			return to.Send(profile.Event{Counted: &profile.Figure{Quantity: "inferences_per_s", Metric: profile.Value(profile.Measured, 5, "")}})
		}), source.Options{})
		close(left)
		cancel()
		if v, there := p.Totals.Value("inferences_per_s"); err != nil || len(p.Incomplete) != 1 || there == goesOn || there && v != 5 {
			t.Errorf("goes on %v: %v, %+v, error %v", goesOn, v, p.Incomplete, err)
		}
		if waits() {
			t.Error("it waits after its end")
		}
	}
}

// TestDeaf abandons a source that does not notice the end of its context: the profile has the
// events until then, and none of the later ones.
func TestDeaf(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	release, refused := make(chan struct{}), make(chan error)
	p, err := source.Collect(ctx, run(func(_ context.Context, to source.Sink) error {
		for _, e := range events()[:5] {
			if err := to.Send(e); err != nil {
				return err
			}
		}
		cancel()
		<-release
		refused <- to.Send(events()[5])
		return nil
	}), source.Options{})
	if err != nil || len(p.Incomplete) != 1 || p.Incomplete[0].Cause != profile.ByCancel || *p.Layers[1].Latency.Median != 1.5e-3 {
		t.Errorf("profile %+v, error %v", p, err)
	}
	close(release)
	if err := <-refused; !errors.Is(err, context.Canceled) {
		t.Errorf("an event after the end: %v", err)
	}
	// Before a model is described there is no profile.
	ctx, cancel = context.WithCancel(t.Context())
	p, err = source.Collect(ctx, run(func(context.Context, source.Sink) error { cancel(); select {} }), source.Options{})
	if p != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("profile %+v, error %v", p, err)
	}
}
