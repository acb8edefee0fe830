// Command marks shows what a mark costs an application: the C functions and the Go
// package, with marks that go nowhere and marks that are written to a file, on one
// thread and on two at once. A call is one of the functions; a frame of the loop has
// ten. Times are of the calls with the writing of what they made, without any work
// between: on Linux, time of the thread on a processor, as other programs on a busy
// machine are not the marks' doing, elsewhere time on the wall.
//
//	go run ./bench/marks [-rounds 41] [-frames 5000] [-to FILE]
//
// It needs a C compiler (cc).
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/marks"
)

func main() {
	rounds := flag.Int("rounds", 41, "rounds of each case")
	frames := flag.Int("frames", 5000, "frames of a round")
	to := flag.String("to", "", "write marks here instead of a temporary file")
	child := flag.Int("child", 0, "run the loop in this process on so many threads")
	flag.Parse()
	if *child > 0 {
		loop(*child, *rounds, *frames)
		return
	}
	if err := bench(*rounds, *frames, *to); err != nil {
		fmt.Fprintln(os.Stderr, "marks:", err)
		os.Exit(1)
	}
}

func bench(rounds, frames int, to string) error {
	dir, err := os.MkdirTemp("", "opmeter-bench-marks-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	root := material.Root()
	native := filepath.Join(root, "marks", "native", "c")
	program := filepath.Join(dir, "loop")
	cmd := exec.Command("cc", "-std=c99", "-O2", "-I"+native, "-o", program, filepath.Join(root, "bench", "marks", "c", "loop.c"), filepath.Join(native, "opmeter_marks.c"), "-pthread")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Printf("%-4s %7s %-5s %10s %10s %10s %10s   ns a call\n", "", "threads", "marks", "median", "p10", "p90", "max")
	worst := 0.0
	for _, lang := range []string{"C", "Go"} {
		for threads := 1; threads <= 2; threads++ {
			for _, on := range []bool{false, true} {
				path := ""
				if on {
					if path = to; path == "" {
						path = filepath.Join(dir, "marks")
						os.Remove(path)
					}
				}
				cmd := exec.Command(program, strconv.Itoa(threads), strconv.Itoa(rounds), strconv.Itoa(frames))
				if lang == "Go" {
					cmd = exec.Command(self, "-child", strconv.Itoa(threads), "-rounds", strconv.Itoa(rounds), "-frames", strconv.Itoa(frames))
				}
				cmd.Env = append(os.Environ(), "OPMETER_MARKS="+path)
				v, err := times(cmd)
				if err != nil {
					return err
				}
				at := func(p float64) float64 { return v[int(p*float64(len(v)-1)+0.5)] }
				fmt.Printf("%-4s %7d %-5s %10.1f %10.1f %10.1f %10.1f\n", lang, threads, map[bool]string{false: "off", true: "on"}[on], at(0.5), at(0.1), at(0.9), at(1))
				worst = max(worst, at(0.5))
			}
		}
	}
	fmt.Printf("largest median %.1f ns; the aim is below 100\n", worst)
	return nil
}

// times runs a program and returns the figures that it prints, sorted.
func times(cmd *exec.Cmd) ([]float64, error) {
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, &errs)
	}
	var list []float64
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		v, err := strconv.ParseFloat(s.Text(), 64)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	if len(list) == 0 {
		return nil, errors.New("no figures")
	}
	slices.Sort(list)
	return list, nil
}

// loop is the same in Go as in c/loop.c.
func loop(threads, rounds, frames int) {
	camera := marks.Named("camera")
	var stages []marks.Name
	for _, s := range []string{"decode", "preprocess", "infer", "postprocess"} {
		stages = append(stages, marks.Named(s))
	}
	if err := marks.Open(""); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	each := make([][]float64, threads)
	begins := make([]sync.WaitGroup, rounds)
	for i := range begins {
		begins[i].Add(threads)
	}
	var all sync.WaitGroup
	for i := range threads {
		all.Go(func() {
			runtime.LockOSThread()
			l := marks.NewLane("")
			for r := range rounds {
				begins[r].Done()
				begins[r].Wait()
				begin := now()
				for range frames {
					f := l.BeginFrame(camera)
					for _, s := range stages {
						l.Begin(s)
						l.End(s)
					}
					l.EndFrame(f)
				}
				each[i] = append(each[i], float64(now()-begin)/float64(frames*(2+2*len(stages))))
			}
		})
	}
	all.Wait()
	if err := marks.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(4)
	}
	for _, list := range each {
		for _, v := range list {
			fmt.Printf("%.3f\n", v)
		}
	}
	if n := marks.Dropped(); n > 0 {
		fmt.Fprintf(os.Stderr, "%d calls were dropped\n", n)
		os.Exit(4)
	}
}
