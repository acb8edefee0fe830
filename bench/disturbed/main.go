// Command disturbed shows what figures are worth on a busy machine: it profiles models alone and
// beside other programs, each time in a process of its own, and compares.
//
//	go run ./bench/disturbed [-time 1s] [-json FILE] [MODEL ...]
//
// The quiet figures of a model are medians of profiles that are made alone, interleaved with the
// others. Beside those run one, two and four programs that compute, walk through memory or write
// files, and one that works in bursts. Without arguments it takes the networks of the examples, and
// those of the shared material if it is there. The output says for each kind in how many profiles
// the five slowest layers have their shares within two points of the quiet ones, how far the
// latency is from the quiet one, and how often shares and latencies lie outside their intervals.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/opmeter/opmeter/bench/fresh"
	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/quality"
	"github.com/opmeter/opmeter/internal/measure/speedlog"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
)

// usual are the models that are taken where none are named.
var (
	usual        = []string{"autoencoder", "ds_cnn", "lstm", "mobilenet_v1", "mobilenet_v2", "resnet8", "resnet50", "transformer"}
	fromMaterial = []string{
		"basicpitch_nmp.onnx", "coral_mnv1_025_128_uint8.tflite", "coral_mnv2_224_uint8.tflite", "dtln_model_2.onnx", "gtcrn_simple.onnx", "keijiro_blazeface_front.onnx",
		"magika_standard_v3_3.onnx", "mcunet_vww.tflite", "mlperf_tiny_kws_fp32.tflite", "mlperf_tiny_kws_int8.tflite", "mlperf_tiny_vww96_int8.tflite", "mp_face_detection_short_range.tflite",
	}
)

// condition is what runs beside the profiler.
type condition struct {
	Load     string // "" for nothing
	Programs int
}

func (c condition) String() string {
	if c.Load == "" {
		return "alone"
	}
	return fmt.Sprintf("%d %s", c.Programs, c.Load)
}

func conditions() []condition {
	out := []condition{{}}
	for _, load := range []string{"compute", "memory", "files"} {
		for _, n := range []int{1, 2, 4} {
			out = append(out, condition{load, n})
		}
	}
	return append(out, condition{"bursts", 1})
}

// result is what a child reports.
type result struct {
	Latency  float64
	Interval *[2]float64
	Fit      profile.Fit
	// Tolerance is what the latency may be off by, as a fraction; -1 if it is not stated.
	Tolerance float64
	Shares    []float64 // of each layer
	// Low and High enclose them, NaN as -1.
	Low, High []float64
	Took      float64 // seconds
}

func main() {
	d := flag.Duration("time", time.Second, "time for the measured runs of a profile")
	out := flag.String("json", "", "write all figures to a file")
	child := flag.String("child", "", "profile this model and write its figures: what the program calls itself for")
	load := flag.String("load", "", "make this load until killed: what the program calls itself for")
	flag.Parse()
	var err error
	switch {
	case *load != "":
		err = burden(*load)
	case *child != "":
		err = fresh.Answer(*child, *d, resultOf(time.Now()))
	default:
		err = bench(flag.Args(), *d, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "disturbed:", err)
		os.Exit(1)
	}
}

// burden makes a load until the process is killed.
func burden(kind string) error {
	x := 1.0
	compute := func(n int) {
		for range n {
			x = x*1.0000001 + 1e-9
		}
	}
	memory := make([]uint64, 32<<20)
	for {
		switch kind {
		case "compute":
			compute(1 << 20)
		case "memory":
			for i := 0; i < len(memory); i += 8 {
				memory[i]++
			}
		case "files":
			f, err := os.CreateTemp("", "disturbed-*")
			if err != nil {
				return err
			}
			_, err = f.Write(make([]byte, 16<<20))
			err = errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
			if err != nil {
				return err
			}
		case "bursts":
			for start := time.Now(); time.Since(start) < 100*time.Millisecond; {
				compute(1 << 14)
			}
			time.Sleep(150 * time.Millisecond)
		default:
			return fmt.Errorf("no load %q", kind)
		}
		if math.IsNaN(x) {
			return errors.New("unreachable")
		}
	}
}

// resultOf returns a function that takes the figures from a profile, begun at a time.
func resultOf(start time.Time) func(*profile.Profile) result {
	return func(p *profile.Profile) result {
		quality.BetweenRuns(p, speedlog.Default(p.Host.CPUModel), start)
		r := result{Took: time.Since(start).Seconds(), Interval: p.Totals.Latency.CI95, Tolerance: -1}
		r.Latency, _ = p.Totals.Latency.Best()
		if t := p.Trust; t != nil {
			r.Fit = t.Fit
			if t.Tolerance != nil {
				r.Tolerance = *t.Tolerance
			}
		}
		for i := range p.Layers {
			l := &p.Layers[i]
			v, _ := l.Latency.Best()
			low, high := -1.0, -1.0
			if l.Latency != nil && l.Latency.CI95 != nil {
				low, high = l.Latency.CI95[0]/r.Latency, l.Latency.CI95[1]/r.Latency
			}
			r.Shares, r.Low, r.High = append(r.Shares, v/r.Latency), append(r.Low, low), append(r.High, high)
		}
		return r
	}
}

// record is a profile with what ran beside it.
type record struct {
	Model     string
	Condition condition
	Result    result
}

func bench(models []string, d time.Duration, out string) error {
	if len(models) == 0 {
		models = fresh.Examples(usual...)
		for _, m := range fromMaterial {
			path := filepath.Join(material.Dir(), "models", "real", m)
			if _, err := os.Stat(path); err == nil {
				models = append(models, path)
			}
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var all []record
	quiet := map[string]result{}
	for i, m := range models {
		fmt.Fprintf(os.Stderr, "\r%d of %d models", i+1, len(models))
		rs, q, err := tried(self, m, d)
		if err != nil {
			return err
		}
		all, quiet[m] = append(all, rs...), q
	}
	fmt.Fprintln(os.Stderr)
	report(all, quiet)
	if out == "" {
		return nil
	}
	b, err := json.MarshalIndent(map[string]any{"quiet": quiet, "profiles": all}, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, b, 0o644)
}

// every is after how many profiles beside other programs one is made alone.
const every = 3

// tried profiles a model under each condition, and again and again alone: the figures of a quiet
// machine are the medians of those profiles, which are spread over the same time.
func tried(self, model string, d time.Duration) (rs []record, quiet result, err error) {
	var alone []result
	for i, c := range conditions() {
		if i%every == 0 {
			r, err := profiled(model, d)
			if err != nil {
				return nil, quiet, err
			}
			alone = append(alone, r)
		}
		r, err := beside(self, c, model, d)
		if err != nil {
			return nil, quiet, err
		}
		rs = append(rs, record{model, c, r})
	}
	return rs, middle(alone), nil
}

// beside profiles a model while other programs run.
func beside(self string, c condition, model string, d time.Duration) (r result, err error) {
	for range c.Programs {
		load := exec.Command(self, "-load", c.Load)
		if err := load.Start(); err != nil {
			return r, err
		}
		defer func() {
			_ = load.Process.Kill()
			_ = load.Wait()
		}()
	}
	return profiled(model, d)
}

func profiled(model string, d time.Duration) (r result, err error) {
	err = fresh.Ask(model, d, &r)
	return r, err
}

// middle returns the medians of several results.
func middle(rs []result) result {
	of := func(f func(r *result) float64) float64 {
		var v []float64
		for i := range rs {
			v = append(v, f(&rs[i]))
		}
		return stats.Median(v)
	}
	out := rs[0]
	out.Latency = of(func(r *result) float64 { return r.Latency })
	out.Took = of(func(r *result) float64 { return r.Took })
	for i := range out.Shares {
		out.Shares[i] = of(func(r *result) float64 { return r.Shares[i] })
	}
	return out
}

// tally counts profiles.
type tally struct {
	profiles, shares, latencies int
	intervals, held             int // of shares
	comparable, within          int // latencies fit for comparing, and within their tolerance
	stated, kept                int // the same of all with a tolerance
	worstShare, took, times     float64
}

const (
	points = 0.02 // largest difference of a share
	near   = 0.05 // largest difference of a latency
	top    = 5
)

func report(all []record, quiet map[string]result) {
	fmt.Printf("%-10s  %8s  %11s  %11s  %13s  %13s  %13s  %6s\n", "beside", "profiles", "shares ±2", "latency ±5%", "shares in int.", "fit, within", "all, within", "time")
	var kinds []condition
	by := map[condition]*tally{}
	whole := &tally{}
	for _, r := range all {
		t := by[r.Condition]
		if t == nil {
			t = &tally{}
			by[r.Condition] = t
			kinds = append(kinds, r.Condition)
		}
		q := quiet[r.Model]
		t.add(&r.Result, &q)
		whole.add(&r.Result, &q)
	}
	for _, c := range kinds {
		fmt.Printf("%-10s  %s\n", c, by[c])
	}
	fmt.Printf("%-10s  %s\n", "all", whole)
}

func (t *tally) String() string {
	return fmt.Sprintf("%8d  %4d (%4.1f)  %11d  %6d of %4d  %5d of %4d  %5d of %4d  %5.2fx", t.profiles, t.shares, 100*t.worstShare, t.latencies, t.held, t.intervals, t.within, t.comparable, t.kept, t.stated, t.took/t.times)
}

func (t *tally) add(r, quiet *result) {
	t.profiles++
	worst := 0.0
	order := make([]int, len(quiet.Shares))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if quiet.Shares[a] > quiet.Shares[b] {
			return -1
		}
		return 1
	})
	for _, i := range order[:min(top, len(order))] {
		worst = max(worst, math.Abs(r.Shares[i]-quiet.Shares[i]))
		if r.Low[i] >= 0 {
			t.intervals++
			if r.Low[i] <= quiet.Shares[i] && quiet.Shares[i] <= r.High[i] {
				t.held++
			}
		}
	}
	t.worstShare = max(t.worstShare, worst)
	if worst <= points {
		t.shares++
	}
	if math.Abs(r.Latency/quiet.Latency-1) <= near {
		t.latencies++
	}
	off := math.Abs(r.Latency/quiet.Latency - 1)
	if r.Tolerance >= 0 {
		t.stated++
		if off <= r.Tolerance {
			t.kept++
		}
		if r.Fit == profile.FitComparing {
			t.comparable++
			if off <= r.Tolerance {
				t.within++
			}
		}
	}
	t.took += r.Took
	t.times += quiet.Took
}
