// Command overhead shows, over real models, that the profiler adds up and what it
// costs: the sum of operators and gaps against wall time, the instrumented pass
// against the plain one, and the cost of timing one operator.
//
//	go run ./bench/overhead [-time 2s] [-threads 1] [FILE or FOLDER ...]
//
// Without arguments it takes the real models of the reference material.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
)

func main() {
	d := flag.Duration("time", 2*time.Second, "time for each model's measured runs")
	threads := flag.Int("threads", 1, "threads")
	least := flag.Duration("least", time.Millisecond, "models faster than this do not count towards the limits")
	flag.Parse()
	if err := bench(flag.Args(), *d, *threads, least.Seconds()); err != nil {
		fmt.Fprintln(os.Stderr, "overhead:", err)
		os.Exit(1)
	}
}

func bench(paths []string, d time.Duration, threads int, least float64) error {
	if len(paths) == 0 {
		dir := material.Dir()
		if dir == "" {
			return errors.New("no reference material: set OPMETER_SHARED or name models")
		}
		paths = []string{filepath.Join(dir, "models", "real"), filepath.Join(dir, "models", "synthetic")}
	}
	files, err := material.Models(paths)
	if err != nil {
		return err
	}
	fmt.Printf("%-46s %9s %9s %9s %9s %11s %9s\n", "model", "plain", "op+gaps", "profiled", "of plain", "per op", "per run")
	var worstSum, worstCost, worstOp, worstRun float64
	n, skipped := 0, 0
	for _, f := range files {
		p, err := run(f, d, threads)
		if err != nil || p.Reconcile == nil {
			skipped++
			continue
		}
		r := p.Reconcile
		sum := (*r.OperatorsS+*r.GapsS)/(*r.WallS) - 1
		cost, _ := r.OverheadS.Best()
		per, _ := r.OverheadPerOperatorS.Best()
		// The profiling overhead by the cost of one event: free of the noise that
		// the difference of two passes has on a busy machine.
		run := per * float64(events(p)) / *r.PlainS
		mark := ""
		if *r.PlainS >= least {
			n++
			worstSum, worstCost, worstOp = max(worstSum, math.Abs(sum), *r.GapsS / *r.WallS), max(worstCost, math.Abs(cost / *r.PlainS)), max(worstOp, per)
			worstRun = max(worstRun, run)
		} else {
			mark = "  (short)"
		}
		fmt.Printf("%-46s %9s %8.2f%% %8.2f%% %+8.2f%% %9.0fns %8.2f%%%s\n", trim(filepath.Base(f)), time.Duration(*r.PlainS*1e9).Round(time.Microsecond),
			100**r.OperatorsS / *r.WallS, 100**r.ProfiledS / *r.PlainS, 100*cost / *r.PlainS, 1e9*per, 100*run, mark)
	}
	fmt.Printf("%d models of %v or more, %d not run\nworst disagreement of operators and wall time %.2f %%, worst difference of the passes %.2f %%\nworst cost an operator %.0f ns, worst cost a run by that %.2f %%\n",
		n, time.Duration(least*1e9), skipped, 100*worstSum, 100*worstCost, 1e9*worstOp, 100*worstRun)
	return nil
}

// events counts the layers that are timed.
func events(p *profile.Profile) int {
	n := 0
	for i := range p.Layers {
		if p.Layers[i].Latency != nil {
			n++
		}
	}
	return n
}

func trim(s string) string { return s[:min(len(s), 46)] }

func run(path string, d time.Duration, threads int) (*profile.Profile, error) {
	m, err := opmeter.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = m.Close() }()
	return opmeter.Profile(context.Background(), m, opmeter.Options{Time: d, Threads: threads, Inputs: opmeter.Inputs{Seed: 1}})
}
