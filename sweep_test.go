package opmeter_test

import (
	"context"
	"errors"
	"testing"

	"github.com/opmeter/opmeter"
)

func TestSweep(t *testing.T) {
	t.Parallel()
	m, err := opmeter.Open("examples/autoencoder.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var told []int
	o := opmeter.SweepOptions{Options: opmeter.Options{Runs: 6, Warmup: -1}, Batches: []int{1, 2}, Streams: []int{1, 3}, Rounds: 2, Each: func(done, of int) { told = append(told, done, of) }}
	points, err := opmeter.Sweep(t.Context(), m, o)
	if err != nil || len(points) != 4 {
		t.Fatal(points, err)
	}
	best := 0
	for i, want := range []opmeter.SweepPoint{{Batch: 1, Threads: 1, Streams: 1}, {Batch: 1, Threads: 1, Streams: 3}, {Batch: 2, Threads: 1, Streams: 1}, {Batch: 2, Threads: 1, Streams: 3}} {
		p := points[i]
		if p.Batch != want.Batch || p.Threads != want.Threads || p.Streams != want.Streams || p.Err != nil {
			t.Errorf("%+v", p)
		}
		// 6 runs of each stream, in two rounds; those that cross the end of a window count, too,
		// and those of streams that wait for one that the system has not let run yet.
		if n := int(*p.Latency.N); n < 6*p.Streams || p.Streams == 1 && n > 8 {
			t.Errorf("%s: %d inferences", &p, n)
		}
		if *p.Throughput.N != 2 || !(*p.Throughput.Median > 0) {
			t.Errorf("%s: %+v", &p, p.Throughput)
		}
		if p.Best {
			best++
		}
	}
	if best == 0 {
		t.Error("no point is best")
	}
	if a, b := *points[0].RAMBytes, *points[1].RAMBytes; b != 3*a {
		t.Errorf("three streams hold %d bytes, one %d", b, a)
	}
	if len(told) != 16 || told[14] != 8 || told[15] != 8 {
		t.Errorf("told of %v", told)
	}
	if s := points[3].String(); s != "batch 2, 1 thread, 3 streams" {
		t.Errorf("%q", s)
	}
}

// TestSweepStops keeps what was measured, and says what was not.
func TestSweepStops(t *testing.T) {
	t.Parallel()
	m, err := opmeter.Open("examples/autoencoder.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := opmeter.SweepOptions{Options: opmeter.Options{Runs: 3, Warmup: -1}, Threads: []int{1, 2, 3}, Each: func(done, of int) {
		if done == 2 {
			cancel()
		}
	}}
	points, err := opmeter.Sweep(ctx, m, o)
	if err != nil || points[0].Latency == nil || points[1].Latency == nil || points[0].Err != nil {
		t.Fatalf("%+v, %v", points, err)
	}
	if p := points[2]; p.Latency != nil || !errors.Is(p.Err, context.Canceled) || p.Best {
		t.Errorf("%+v", p)
	}
}

func TestSweepOptions(t *testing.T) {
	t.Parallel()
	m, err := opmeter.Open("examples/autoencoder.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	many := make([]int, 1024)
	for i := range many {
		many[i] = i + 1
	}
	for _, o := range []opmeter.SweepOptions{
		{Batches: []int{-1}}, {Threads: []int{0}}, {Streams: []int{1, 1}}, {Streams: []int{2000}}, {Rounds: -1}, {Threads: many}, {Options: opmeter.Options{Runs: -1}},
	} {
		_, err := opmeter.Sweep(t.Context(), m, o)
		if _, ok := errors.AsType[*opmeter.OptionError](err); !ok {
			t.Errorf("%+v: %v", o, err)
		}
	}
	// A point that cannot be measured has its reason, the others have figures. Below 260 KiB a layer
	// has no memory, so that the rest has no latency of the model.
	points, err := opmeter.Sweep(t.Context(), m, opmeter.SweepOptions{Options: opmeter.Options{Runs: 3, Warmup: -1, MaxMemory: 400 << 10}, Batches: []int{1, 1 << 16}, Rounds: 1})
	if err != nil || points[0].Latency == nil || points[0].Err != nil || points[1].Err == nil || points[1].Latency != nil || points[1].Best || !points[0].Best {
		t.Errorf("%+v, %v", points, err)
	}
}
