// Command repeat shows whether intervals hold: it profiles models again and again, each time in a
// process of its own, and counts in how many cases the 95 % interval of a profile holds the figure
// of another profile of the same model: of the latency alone, with its tolerance, and normalised.
// Listed with it is the spread of a model's figures: standard deviation relative to the median.
//
//	go run ./bench/repeat [-n 25] [-time 700ms] [-least 85] [-json FILE] [MODEL ...]
//
// Without arguments it takes six of the examples, from hundreds of microseconds to tens
// of milliseconds, integer and floating point. Exit status 1: the intervals of
// normalised latencies held fewer than -least per cent.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/opmeter/opmeter/bench/fresh"
	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/profile"
)

// usual are the models that are taken where none are named.
var usual = []string{"autoencoder", "ds_cnn", "lstm", "mobilenet_v1", "resnet8", "transformer"}

// figure is one figure of a profile with its interval, absent if unknown.
type figure struct {
	Value    float64     `json:"value"`
	Interval *[2]float64 `json:"interval"`
}

// result is what a child reports.
type result struct {
	Raw, Reference *figure
	// Stated is the latency with its tolerance.
	Stated  *figure
	Speed   *float64
	Verdict profile.Verdict
}

func main() {
	n := flag.Int("n", 25, "profiles of each model")
	d := flag.Duration("time", 700*time.Millisecond, "time for the measured runs of a profile")
	least := flag.Float64("least", 85, "per cent of cases that the normalised intervals must hold")
	out := flag.String("json", "", "write all figures to a file")
	child := flag.String("child", "", "profile this model and write its figures: what the program calls itself for")
	flag.Parse()
	var err error
	if *child != "" {
		err = fresh.Answer(*child, *d, resultOf)
	} else {
		err = bench(flag.Args(), *n, *d, *least, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "repeat:", err)
		os.Exit(1)
	}
}

// resultOf takes the figures from a profile.
func resultOf(p *profile.Profile) result {
	r := result{Raw: figureOf(p.Totals.Latency), Reference: figureOf(p.Totals.Figure("reference_latency_s"))}
	if v, ok := p.Totals.Value("machine_speed"); ok {
		r.Speed = &v
	}
	if p.Trust != nil {
		r.Verdict = p.Trust.Verdict
		if half := p.Trust.Tolerance; half != nil && r.Raw != nil {
			v := r.Raw.Value
			r.Stated = &figure{v, &[2]float64{v * (1 - *half), v * (1 + *half)}}
		}
	}
	return r
}

func figureOf(m *profile.Metric) *figure {
	v, ok := m.Best()
	if !ok {
		return nil
	}
	return &figure{v, m.CI95}
}

func bench(models []string, n int, d time.Duration, least float64, out string) error {
	if len(models) == 0 {
		models = fresh.Examples(usual...)
	}
	all := make([][]result, len(models))
	start := time.Now()
	// A round of all models and then the next: what changes slowly meets all alike.
	for range n {
		for i, m := range models {
			var r result
			if err := fresh.Ask(m, d, &r); err != nil {
				return err
			}
			all[i] = append(all[i], r)
		}
	}
	if out != "" {
		b, err := json.Marshal(all)
		if err != nil {
			return err
		}
		if err := os.WriteFile(out, b, 0o644); err != nil {
			return err
		}
	}
	held := report(models, all)
	fmt.Printf("%d profiles of each in %s\n", n, time.Since(start).Round(time.Second))
	if math.IsNaN(held) {
		fmt.Println("no profile has a normalised latency: the reference loop explains none of them")
		return nil
	}
	if held < least {
		return fmt.Errorf("the normalised intervals held %.0f %% of the other figures, want %.0f", held, least)
	}
	return nil
}

// report prints a line a model and returns the per cent of cases that the intervals of
// normalised latencies hold, NaN if none is given.
func report(models []string, all [][]result) float64 {
	fmt.Printf("%-22s  %10s %7s %6s %6s   %6s %6s   %10s %7s %6s %6s   %s\n", "", "raw", "spread", "±", "holds", "stated", "holds", "at ref.", "spread", "±", "holds", "verdicts")
	var raw, ref, stated tally
	for i, m := range models {
		a := count(all[i], func(r result) *figure { return r.Raw })
		b := count(all[i], func(r result) *figure { return r.Reference })
		c := count(all[i], func(r result) *figure { return r.Stated })
		raw.add(a)
		stated.add(c)
		ref.add(b)
		words := map[profile.Verdict]int{}
		for _, r := range all[i] {
			words[r.Verdict]++
		}
		fmt.Printf("%-22s  %s   %5.1f%% %5.0f%%   %s   %d good, %d fair, %d unreliable\n", strings.TrimSuffix(filepath.Base(m), filepath.Ext(m)), a, 100*c.half, c.percent(), b, words[profile.Good], words[profile.Fair], words[profile.Unreliable])
	}
	fmt.Printf("all: raw intervals hold %.1f %%, stated tolerances %.1f %%", raw.percent(), stated.percent())
	if ref.cases > 0 {
		fmt.Printf(", normalised intervals %.1f %%", ref.percent())
	}
	fmt.Println(" of the others' figures")
	return ref.percent()
}

// tally counts cases.
type tally struct {
	held, cases          int
	middle, spread, half float64
}

func (t *tally) add(o tally) {
	t.held += o.held
	t.cases += o.cases
}

func (t tally) percent() float64 { return 100 * float64(t.held) / float64(t.cases) }

func (t tally) String() string {
	if t.cases == 0 {
		return fmt.Sprintf("%10s %7s %6s %6s", "absent", "", "", "")
	}
	return fmt.Sprintf("%10s %6.1f%% %5.1f%% %5.0f%%", time.Duration(t.middle*1e9).Round(100*time.Nanosecond), 100*t.spread, 100*t.half, t.percent())
}

// count holds the interval of each profile against the figures of all others. A profile
// without an interval holds none.
func count(rs []result, of func(result) *figure) tally {
	var t tally
	var values, halves []float64
	for i, r := range rs {
		f := of(r)
		if f != nil {
			values = append(values, f.Value)
			if f.Interval != nil {
				halves = append(halves, (f.Interval[1]-f.Interval[0])/2/f.Value)
			}
		}
		for k, o := range rs {
			other := of(o)
			if k == i || f == nil || other == nil {
				continue
			}
			t.cases++
			if f != nil && f.Interval != nil && f.Interval[0] <= other.Value && other.Value <= f.Interval[1] {
				t.held++
			}
		}
	}
	t.middle, t.half = stats.Median(values), stats.Median(halves)
	t.spread = stats.StdDev(values) / t.middle
	if math.IsNaN(t.spread) {
		t.spread = 0
	}
	return t
}
