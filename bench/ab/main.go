// Command ab shows how often opmeter ab is right: it compares a model with itself, and with itself
// and calibrated extra work of -percent, again and again while another program loads the machine,
// and counts the verdicts.
//
//	go run ./bench/ab [-n 10] [-percent 3] [-budget 60s] [-load 1] [-json FILE] [MODEL]
//	go run ./bench/ab -simulate 1000 FILE
//
// The second form draws comparisons from the processes and blocks that the first one wrote: rounds
// of equal alternatives, whose names are exchanged at random, and whose second is slowed by
// -percent for the other half. Exit status 1: more than one of twenty equal alternatives were
// called different, or less than 19 of 20 different ones were found.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/bench/fresh"
	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/base/subprocess"
	"github.com/opmeter/opmeter/internal/measure/ab"
	"github.com/opmeter/opmeter/internal/measure/ab/worker"
	"github.com/opmeter/opmeter/internal/measure/machine"
)

type flags struct {
	n, load, simulate, spins int
	percent                  float64
	budget                   time.Duration
	json, child              string
	busy, calibrate          bool
}

func main() {
	var f flags
	flag.IntVar(&f.n, "n", 10, "comparisons of equal alternatives, and of different ones")
	flag.Float64Var(&f.percent, "percent", 3, "extra work of the slower alternative")
	flag.DurationVar(&f.budget, "budget", time.Minute, "budget of a comparison")
	flag.IntVar(&f.load, "load", 1, "programs that compete for the processors")
	flag.StringVar(&f.json, "json", "", "write all results to a file")
	flag.IntVar(&f.simulate, "simulate", 0, "comparisons of each kind to draw from a file of -json")
	flag.StringVar(&f.child, "child", "", "answer blocks of this model: what the program calls itself for")
	flag.IntVar(&f.spins, "spins", 0, "extra work of each inference of -child")
	flag.BoolVar(&f.calibrate, "calibrate", false, "print the -spins of -percent for -child")
	flag.BoolVar(&f.busy, "busy", false, "compute in bursts until the input ends: what the program calls itself for")
	flag.Parse()
	if err := f.run(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "ab:", err)
		os.Exit(1)
	}
}

func (f *flags) run(args []string) error {
	switch {
	case f.busy:
		burst()
		return nil
	case f.child != "":
		return f.answer()
	case f.simulate > 0:
		if len(args) != 1 {
			return errors.New("name one file of -json")
		}
		return f.draw(args[0])
	case len(args) == 0:
		args = fresh.Examples("ds_cnn")
	}
	return f.measure(args[0])
}

// sink keeps the compiler from leaving out the extra work.
var sink uint64

// spin is extra work that takes as long in every process.
func spin(n int) {
	x := sink | 1
	for range n {
		x = x*6364136223846793005 + 1442695040888963407
	}
	sink = x
}

// answer is a worker with extra work, or prints how much of it is the percentage.
func (f *flags) answer() error {
	m, err := opmeter.Open(f.child)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	s, err := opmeter.NewSession(m, opmeter.RunOptions{Inputs: opmeter.Inputs{Seed: 1}})
	if err != nil {
		return err
	}
	defer s.Close()
	ctx := context.Background()
	run := &worker.Function{Run: func() error {
		spin(f.spins)
		return s.Run(ctx)
	}}
	if !f.calibrate {
		return worker.Serve(ctx, os.Stdin, os.Stdout, run)
	}
	// The extra work is measured beside the inference, at the same clock of the processor.
	const spins = 20_000
	more := &worker.Function{Run: func() error { spin(spins); return s.Run(ctx) }}
	if err := errors.Join(run.Warm(ctx), more.Warm(ctx)); err != nil {
		return err
	}
	var ratios []float64
	for range 30 {
		a, err := run.Block(ctx, 10*time.Millisecond)
		b, e := more.Block(ctx, 10*time.Millisecond)
		if err = errors.Join(err, e); err != nil {
			return err
		}
		ratios = append(ratios, b.Seconds/a.Seconds-1)
	}
	fmt.Println(spins * f.percent / 100 / stats.Median(ratios))
	return nil
}

// burst computes and rests for random times until the input ends.
func burst() {
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	for {
		span := func() time.Duration { return time.Duration(rand.ExpFloat64() * 0.5e9) }
		for until := time.Now().Add(span()); time.Now().Before(until); {
			spin(100_000)
		}
		time.Sleep(span())
	}
}

// calibrated is how many spins are the percentage of an inference: the median of five processes.
func (f *flags) calibrated(self, model string) (int, error) {
	var all []float64
	for range 5 {
		out, err := exec.Command(self, "-child", model, "-calibrate", "-percent", fmt.Sprint(f.percent)).Output()
		if err != nil {
			return 0, err
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
		if err != nil {
			return 0, err
		}
		all = append(all, v)
	}
	return int(stats.Median(all)), nil
}

// compete starts programs that load the machine, until stop is called.
func compete(self string, n int) (stop func(), err error) {
	var groups []*subprocess.Group
	stop = func() {
		for _, g := range groups {
			g.Kill()
		}
	}
	for range n {
		c := exec.Command(self, "-busy")
		if _, err := c.StdinPipe(); err != nil {
			return stop, err
		}
		g := &subprocess.Group{}
		g.Prepare(c)
		if err := g.Start(c); err != nil {
			return stop, err
		}
		groups = append(groups, g)
	}
	return stop, nil
}

// measure compares equal and different alternatives alternately.
func (f *flags) measure(model string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	spins, err := f.calibrated(self, model)
	if err != nil {
		return err
	}
	stop, err := compete(self, f.load)
	defer stop()
	if err != nil {
		return err
	}
	var all []*ab.Result
	var equal, different tally
	for i := range uint64(2 * f.n) {
		t, extra := &equal, 0
		if i%2 == 1 {
			t, extra = &different, spins
		}
		list := []ab.Alternative{
			{Name: "A", Command: []string{self, "-child", model, "-spins", "0"}},
			{Name: "B", Command: []string{self, "-child", model, "-spins", strconv.Itoa(extra)}},
		}
		r, err := ab.Run(context.Background(), list, &worker.Processes{Alternatives: list, CPUs: machine.PickCPUs(1)}, ab.Options{
			Budget: f.budget, Seed: i, Quiet: machine.NewOthers().Wait,
		})
		if err != nil {
			return err
		}
		all = append(all, r)
		t.add(r)
		c := r.Comparisons[0]
		fmt.Printf("%d spins: %s, ratio %.4f (%.4f to %.4f), %d processes with %d blocks, %.1f s\n", extra, c.Verdict, c.Ratio, c.Low, c.High, c.Processes, c.Blocks, r.TookS)
	}
	if f.json != "" {
		b, err := json.Marshal(all)
		if err == nil {
			err = os.WriteFile(f.json, b, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return f.judge(&equal, &different)
}

// tally counts verdicts.
type tally struct {
	n         int
	verdicts  map[ab.Verdict]int
	seconds   float64
	processes int
}

func (t *tally) add(r *ab.Result) {
	if t.verdicts == nil {
		t.verdicts = map[ab.Verdict]int{}
	}
	t.n++
	t.seconds += r.TookS
	t.processes += r.Comparisons[0].Processes
	t.verdicts[r.Comparisons[0].Verdict]++
}

func (t *tally) print(what string) {
	fmt.Printf("%s: %d comparisons of %.0f s and %d processes on average: %d better, %d worse, %d equivalent, %d undecided\n",
		what, t.n, t.seconds/float64(t.n), t.processes/t.n, t.verdicts[ab.Better], t.verdicts[ab.Worse], t.verdicts[ab.Equivalent], t.verdicts[ab.Undecided])
}

func (f *flags) judge(equal, different *tally) error {
	equal.print("equal")
	different.print(fmt.Sprintf("%g %% slower", f.percent))
	if wrong := equal.verdicts[ab.Better] + equal.verdicts[ab.Worse]; 20*wrong > equal.n {
		return fmt.Errorf("%d of %d equal alternatives are called different", wrong, equal.n)
	}
	if found := different.verdicts[ab.Worse]; 20*found < 19*different.n {
		return fmt.Errorf("%d of %d different alternatives are found", found, different.n)
	}
	return nil
}
