// Command interrupt measures how long the program takes to end after Ctrl-C and
// SIGTERM, over every verb and over models whose operators compute for long.
//
//	go run ./bench/interrupt [-n 3] [-seed 1] [-only TEXT] [-models 20]
//
// Each run is a process of its own that gets the signal at a random moment of its
// first three seconds. It prints a line a case with the number of runs that had not
// ended by themselves, the median and the longest time from signal to exit, and fails
// where one took more than half a second, left a process or a temporary folder, or ended
// by the signal instead of by the program's own hand although it had begun to say
// something. Some commands have a helper program that is silent, deaf or writes without
// end. A process that dies of the signal in its first milliseconds, before it can ask for
// it, has nothing to lose.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/opmeter/opmeter/internal/testing/material"
)

// limit is what nobody should have to wait longer for.
const limit = 500 * time.Millisecond

func main() {
	n := flag.Int("n", 3, "runs of each case and signal")
	seed := flag.Uint64("seed", 1, "seed of the moments")
	only := flag.String("only", "", "only cases whose name contains this")
	models := flag.Int("models", 20, "real models of the reference material")
	flag.Parse()
	if err := bench(*n, *seed, *only, *models); err != nil {
		fmt.Fprintln(os.Stderr, "interrupt:", err)
		os.Exit(1)
	}
}

// trial is a command that is going to be stopped.
type trial struct {
	name string
	args []string
	// most is the latest moment for the signal.
	most time.Duration
	env  []string
}

func bench(n int, seed uint64, only string, models int) error {
	dir, err := os.MkdirTemp("", "interrupt")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "opmeter")
	build := exec.Command("go", "build", "-o", program, "./cmd/opmeter")
	build.Dir, build.Stderr = material.Root(), os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	trials, err := trialsIn(dir, models)
	if err != nil {
		return err
	}
	more, err := helperTrials(dir)
	if err != nil {
		return err
	}
	trials = append(trials, more...)
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil {
		return err
	}
	moments := rand.New(rand.NewPCG(seed, 0))
	var all []time.Duration
	var faults []string
	for _, tr := range trials {
		if !strings.Contains(tr.name, only) {
			continue
		}
		var took []time.Duration
		for i := range 2 * n {
			sig := []os.Signal{os.Interrupt, syscall.SIGTERM}[i%2]
			at := 20*time.Millisecond + time.Duration(moments.Int64N(int64(tr.most)))
			d, said, err := stop(program, dir, &tr, sig, at)
			if err != nil {
				return fmt.Errorf("%s: %w", tr.name, err)
			}
			if l := left(dir); len(l) > 0 {
				said = strings.TrimSpace(said + " " + strings.Join(l, ", "))
			}
			if d < 0 {
				continue
			}
			took = append(took, d)
			if said != "" || d > limit {
				faults = append(faults, fmt.Sprintf("%s: %v at %v took %v %s", tr.name, sig, at.Round(time.Millisecond), d.Round(time.Millisecond), said))
			}
		}
		show(tr.name, took)
		all = append(all, took...)
	}
	show("all", all)
	if len(faults) > 0 {
		return fmt.Errorf("%d of %d are at fault:\n%s", len(faults), len(all), strings.Join(faults, "\n"))
	}
	return nil
}

func show(name string, took []time.Duration) {
	if len(took) == 0 {
		fmt.Printf("%-44s   0  (over before the signal)\n", name)
		return
	}
	slices.Sort(took)
	fmt.Printf("%-44s %3d  median %4d ms  longest %4d ms\n", name, len(took), took[len(took)/2].Milliseconds(), took[len(took)-1].Milliseconds())
}

// stop starts the program, sends it a signal and measures until it has ended; a
// negative time is for one that ended before. fault says what was wrong.
func stop(program, dir string, tr *trial, sig os.Signal, at time.Duration) (took time.Duration, fault string, err error) {
	c := exec.Command(program, tr.args...)
	var out, errs bytes.Buffer
	c.Dir, c.Stdout, c.Stderr = dir, &out, &errs
	c.Env = append(append(os.Environ(), "OPMETER_DEFAULT_ENGINE=opmeter", "TMPDIR="+filepath.Join(dir, "tmp")), tr.env...)
	if err := c.Start(); err != nil {
		return 0, "", err
	}
	ended := make(chan struct{})
	go func() { _ = c.Wait(); close(ended) }()
	select {
	case <-ended:
		return -1, "", nil
	case <-time.After(at):
	}
	from := time.Now()
	if err := c.Process.Signal(sig); err != nil {
		<-ended
		return -1, "", nil //nolint:nilerr // it ended at this very moment
	}
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		_ = c.Process.Kill()
		<-ended
	}
	took = time.Since(from)
	if st, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() && out.Len()+errs.Len() > 0 {
		return took, "died of " + st.Signal().String(), nil
	}
	if strings.Contains(errs.String(), "goroutine ") || strings.Contains(errs.String(), "internal error") {
		return took, "said " + errs.String(), nil
	}
	return took, "", nil
}
