package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/testing/testengine"
)

// limit is what child and pipe may cost at most, as a part of the time.
const limit = 0.005

// run is the length of an inference for which it is looked at.
const run = 100 * time.Microsecond

// child compares inferences of fixed work that a child computes and opmeter measures with the same
// in this process and no more around them than two readings of the clock, interleaved.
func child(rounds int, length time.Duration) error {
	dir, err := os.MkdirTemp("", "engines")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	helper := filepath.Join(dir, "opmeter-engine")
	if out, err := exec.Command("go", "build", "-o", helper, "github.com/opmeter/opmeter/internal/testing/testengine/engine").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	work := calibrate()
	library, err := testengine.Write(dir, testengine.Behaviour{Work: work})
	if err != nil {
		return err
	}
	model := filepath.Join(dir, "relu.onnx")
	if err := testengine.Model(model); err != nil {
		return err
	}
	m, err := opmeter.Open(model)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	fmt.Printf("%d units of work an inference\n%12s %12s %9s\n", work, "loop here", "by opmeter", "more")
	var more []float64
	for range rounds {
		here, err := loopHere(library, model, dir, length)
		if err != nil {
			return err
		}
		p, err := opmeter.Profile(context.Background(), m, opmeter.Options{Engine: &engine.Engine{Name: "onnxruntime", Library: library, Helper: helper}, Time: length})
		if err != nil {
			return err
		}
		there := median(p.Totals.Latency)
		more = append(more, there/here-1)
		fmt.Printf("%12s %12s %+8.3f%%\n", micro(here), micro(there), 100*(there/here-1))
	}
	v := middle(more)
	fmt.Printf("median %+.3f %%, between %+.3f %% and %+.3f %%\n", 100*v, 100*slices.Min(more), 100*slices.Max(more))
	if !(v <= limit) {
		return fmt.Errorf("child and pipe cost %.2f %%, at most %.1f %% is allowed", 100*v, 100*limit)
	}
	return nil
}

// calibrate finds how much work takes as long as the inference that is looked at.
func calibrate() int {
	best := math.Inf(1)
	const units = 100_000
	for range 200 {
		start := time.Now()
		testengine.Compute(units)
		best = min(best, time.Since(start).Seconds())
	}
	return int(units * run.Seconds() / best)
}

// loopHere is the median of runs in this process.
func loopHere(library, model, dir string, length time.Duration) (float64, error) {
	lib, err := testengine.Opener("onnxruntime")(library)
	if err != nil {
		return 0, err
	}
	s, err := lib.Load(&external.Task{Model: model, Format: "onnx", Threads: 1, Folder: dir})
	if err != nil {
		return 0, err
	}
	var times []float64
	for begin := time.Now(); time.Since(begin) < length; {
		start := time.Now()
		if err := s.Run(); err != nil {
			return 0, err
		}
		times = append(times, time.Since(start).Seconds())
	}
	return middle(times[len(times)/10:]), s.Close()
}
