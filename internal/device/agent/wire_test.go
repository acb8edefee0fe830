package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/base/port"
	"github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/internal/testing/wire"
	"github.com/opmeter/opmeter/profile"
)

// endless is a board that runs its net until the plug is pulled, each inference alike.
func endless(w io.Writer, _ io.Reader) {
	var err error
	b := newBoard(func(p []byte) {
		if err == nil {
			_, err = w.Write(p)
		}
	})
	b.start()
	for i := 0; err == nil; i++ {
		b.inferenceBegin()
		b.opBegin(0, new("CONV_2D"))
		b.clock += 1000
		b.opEnd(0)
		b.opBegin(1, new("SOFTMAX"))
		b.clock += 200
		b.opEnd(1)
		b.inferenceEnd()
		if i%7 == 0 && err == nil {
			_, err = fmt.Fprintf(w, "inference %d\n", i)
		}
	}
}

// session measures a device behind a wire.
func session(t *testing.T, a port.Address, runs int, timeout time.Duration) (*profile.Profile, error) {
	t.Helper()
	// It ends long before: this is what a hang would take.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	p, err := source.Collect(ctx, device.New(a, device.Options{
		Rules: device.Rules{Runs: runs}, Protocols: []*device.Protocol{New(Options{})}, Timeout: timeout,
	}), source.Options{})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		t.Fatalf("%s: hangs", a)
	}
	return p, err
}

// right reports whether the figures of the endless board are all that a profile has.
func right(p *profile.Profile) error {
	for i := range p.Layers {
		want := map[string]float64{"CONV_2D": 1000, "SOFTMAX": 200, "operator 0": 1000, "operator 1": 200}[p.Layers[i].Op]
		if got := figure(p, i, "cpu_cycles"); got != -1 && got != want {
			return fmt.Errorf("%s has %g cycles, want %g", p.Layers[i].Op, got, want)
		}
	}
	// Where no inference came whole it is a sum over the layers that came, and marked as one.
	if got := figure(p, -1, "cpu_cycles"); got != -1 && got != 1200 && finding(p, "agent.layers") == "" {
		return fmt.Errorf("%g cycles, want 1200", got)
	}
	return nil
}

// TestSpeeds finds the agent at usual speeds of a serial port. The first that is tried is not among
// them: a pseudo-terminal holds what came before it was opened and had a speed.
func TestSpeeds(t *testing.T) {
	t.Parallel()
	for _, baud := range []int{9600, 57600, 460800, 921600, 3000000} {
		t.Run(fmt.Sprint(baud), func(t *testing.T) {
			t.Parallel()
			path, _ := wire.Line{Baud: baud}.Open(t, endless)
			p, err := session(t, port.Address{Kind: port.Serial, Name: path}, 12, 5*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if err := right(p); err != nil || len(p.Layers) != 2 || *p.Totals.CPUCycles.N != 12 || len(p.Incomplete) != 0 {
				t.Errorf("%v, %+v, %v", err, p.Totals.CPUCycles, p.Incomplete)
			}
		})
	}
}

// TestUnplugged pulls the plug at all places of the first inferences.
func TestUnplugged(t *testing.T) {
	t.Parallel()
	some := 0
	for after := int64(1); after < 900; after += 17 {
		address, _ := wire.Line{UnplugAfter: after}.TCP(t, endless)
		p, err := session(t, port.Address{Kind: port.TCP, Name: address}, 1000, 2*time.Second)
		if err == nil {
			t.Errorf("after %d bytes: no error", after)
		}
		if p == nil || len(p.Layers) == 0 {
			continue
		}
		some++
		if err := right(p); err != nil || len(p.Incomplete) == 0 {
			t.Errorf("after %d bytes: %v, %v", after, err, p.Incomplete)
		}
	}
	if some < 20 {
		t.Errorf("%d of the profiles have layers", some)
	}
}

// TestWireFaults has faults of every kind and measures all the same.
func TestWireFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		address, _ := wire.Line{Faults: wire.Faults{Seed: seed, Corrupt: 0.001, Cut: 0.0005, Duplicate: 0.0005, Reorder: 0.0005}}.TCP(t, endless)
		p, err := session(t, port.Address{Kind: port.TCP, Name: address}, 100, 5*time.Second)
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		lost := false
		for _, m := range p.Incomplete {
			lost = lost || m.Cause == profile.ByRecord
		}
		if err := right(p); err != nil || *p.Totals.CPUCycles.N != 100 || !lost {
			t.Errorf("seed %d: %v, %+v, %+v", seed, err, p.Totals.CPUCycles, p.Incomplete)
		}
	}
}
