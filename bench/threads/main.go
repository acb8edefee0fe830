// Command threads measures the gain of more threads. It runs every model with one thread and with
// several, interleaved in one process, and lists the operators that gain least.
//
//	go run ./bench/threads [-threads 2] [-time 1s] [-operators 0] FILE or FOLDER ...
//
// A block is some 10 ms of runs; times are medians of runs. The gain is the time by one thread
// divided by that by several. "Apart" is what as many threads gain at the same time where each
// has a model of its own, and nothing to wait for or to share but what the machine makes them:
// about the most that can be expected. "Dispatch" is what a loop of two empty work items costs
// beside the runs: it tells how far apart the processors lie that the system gave them.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/base/mapped"
	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/testing/material"
)

func main() {
	threads := flag.Int("threads", 2, "number of threads to compare with one")
	each := flag.Duration("time", time.Second, "time of a model")
	list := flag.Int("operators", 0, "how many operators to list that lose most against an even split")
	flag.Parse()
	if err := bench(*threads, *each, *list, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "threads:", err)
		os.Exit(1)
	}
}

func bench(threads int, each time.Duration, list int, paths []string) error {
	if len(paths) == 0 {
		return errors.New("no models are named")
	}
	files, err := material.Models(paths)
	if err != nil {
		return err
	}
	fmt.Printf("%-46s %10s %10s %6s %6s %13s   %s\n", "model", "1, ms", fmt.Sprintf("%d, ms", threads), "gain", "apart", "dispatch, ns", "middle half of the runs by several, ms")
	sum, n, lost := 0.0, 0, 0
	for _, f := range files {
		one, more, apart, err := compare(f, threads, each)
		if err != nil {
			fmt.Printf("%-46s not run: %.100v\n", filepath.Base(f), err)
			continue
		}
		gain := one.wall() / more.wall()
		fmt.Printf("%-46.46s %10.4g %10.4g %6.2f %6.2f %13.0f   %.4g to %.4g\n", filepath.Base(f), one.wall(), more.wall(), gain, one.wall()/together(apart, (*side).wall), quantile(more.over, 0.5), quantile(more.runs, 0.25)/1e6, quantile(more.runs, 0.75)/1e6)
		sum += math.Log(gain)
		n++
		if gain < 0.98 {
			lost++
		}
		losses(one, more, apart, list)
	}
	if n > 0 {
		fmt.Printf("%d models, geometric mean of the gains %.2f, %d slower by several threads than by one\n", n, math.Exp(sum/float64(n)), lost)
	}
	return nil
}

// side is a model by a number of threads.
type side struct {
	s      *engine.Session
	timing *engine.Timing
	runs   []float64   // nanoseconds
	over   []float64   // nanoseconds of loops of empty pieces
	steps  [][]float64 // of each step, by run
}

func (s *side) wall() float64 { return quantile(s.runs, 0.5) / 1e6 }

func quantile(x []float64, q float64) float64 {
	return stats.Quantile(slices.Sorted(slices.Values(x)), q)
}

// together is the time of a run where each side of its own takes so long.
func together(sides []*side, took func(*side) float64) float64 {
	rate := 0.0
	for _, s := range sides {
		rate += 1 / took(s)
	}
	return 1 / rate
}

// compare runs a model by one thread, by several, and by several that have one each, interleaved.
func compare(path string, threads int, each time.Duration) (one, more *side, apart []*side, err error) {
	m, err := modelfile.Open(path)
	if err != nil {
		return nil, nil, nil, err
	}
	in, _, err := inputs.Inputs(m, inputs.Options{Seed: 1})
	if err != nil {
		return nil, nil, nil, err
	}
	open := func(threads int) (*side, error) {
		s, err := engine.New(m, in, engine.Options{Registry: operators.Registry(), Threads: threads})
		if err != nil {
			return nil, err
		}
		return &side{s: s, timing: s.NewTiming(), steps: make([][]float64, len(s.Steps()))}, s.Run(context.Background())
	}
	err = mapped.Guard(func() error {
		if one, err = open(1); err != nil {
			return err
		}
		defer one.s.Close()
		if more, err = open(threads); err != nil {
			return err
		}
		defer more.s.Close()
		for range threads {
			s, err := open(1)
			if err != nil {
				return err
			}
			defer s.s.Close()
			apart = append(apart, s)
		}
		for start := time.Now(); time.Since(start) < each || len(more.runs) < 5; {
			for _, sides := range [][]*side{{one}, {more}, apart} {
				if err := turn(sides); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return one, more, apart, err
}

// turn runs sides for 10 ms beside each other.
func turn(sides []*side) error {
	var all sync.WaitGroup
	errs := make([]error, len(sides))
	for i, s := range sides[1:] {
		all.Go(func() { errs[i+1] = mapped.Guard(s.turn) })
	}
	errs[0] = sides[0].turn()
	all.Wait()
	return errors.Join(errs...)
}

// turn runs for 10 ms, the first run not counted.
func (s *side) turn() error {
	for start, i := time.Now(), 0; i < 2 || time.Since(start) < 10*time.Millisecond; i++ {
		began := engine.Now()
		if err := s.s.RunTimed(context.Background(), s.timing); err != nil {
			return err
		}
		if i == 0 {
			continue
		}
		s.runs = append(s.runs, float64(engine.Now()-began))
		for k := range s.steps {
			s.steps[k] = append(s.steps[k], float64(s.timing.Bounds[k+1]-s.timing.Bounds[k]))
		}
	}
	for range 20 {
		began := engine.Now()
		s.s.Pool().For(2, 1, func(int, int) {})
		s.over = append(s.over, float64(engine.Now()-began))
	}
	return nil
}

// losses lists those that lose most against threads that have a model each, those of one shape
// together.
func losses(one, more *side, apart []*side, list int) {
	type row struct {
		name             string
		n                int
		one, more, apart float64
	}
	by := map[string]*row{}
	for k, st := range one.s.Steps() {
		name := fmt.Sprintf("%s %s%s", st.Node.Op, st.Kernel, shapes(st))
		r := by[name]
		if r == nil {
			r = &row{name: name}
			by[name] = r
		}
		r.n++
		took := func(s *side) float64 { return quantile(s.steps[k], 0.5) / 1e3 }
		r.one += took(one)
		r.more += took(more)
		r.apart += together(apart, took)
	}
	var rows []*row
	for _, r := range by {
		rows = append(rows, r)
	}
	lost := func(r *row) float64 { return r.more - r.apart }
	slices.SortFunc(rows, func(a, b *row) int { return cmp.Compare(lost(b), lost(a)) })
	for _, r := range rows[:min(list, len(rows))] {
		fmt.Printf("  %-86.86s %4d  %9.1f µs %9.1f µs  %.2f, apart %.2f\n", r.name, r.n, r.one, r.more, r.one/r.more, r.one/r.apart)
	}
}

// shapes tells those of what a step reads, as far as there are two, and of what it makes.
func shapes(st engine.Step) string {
	out := ""
	for _, t := range st.In[:min(2, len(st.In))] {
		if t != nil {
			out += fmt.Sprint(" ", t.Shape)
		}
	}
	if len(st.Out) > 0 && st.Out[0] != nil {
		out += fmt.Sprint(" to ", st.Out[0].Shape)
	}
	return out
}
