// Command engines compares opmeter's measurements of external engines with the engine's own plain
// loop, a script of the same name. Both run interleaved, some milliseconds each. It also checks
// whether the layers add up to the total, and how much of the time is matched to operators.
//
//	go run ./bench/engines -engine onnxruntime [-rounds 3] [-time 1s] [-threads 1] [PATH ...]
//	go run ./bench/engines -overhead
//
// The scripts beside this program are run with python3, or what -python names; packages are those
// of the library's own folder. Without models it takes the real and synthetic ones of the
// reference material. With -overhead it shows what the child and its pipe cost a run of 100
// microseconds.
package main

import (
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

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
)

// bench is what one call does.
type bench struct {
	engine  *engine.Engine
	script  string
	python  string
	rounds  int
	time    time.Duration
	threads int
}

func main() {
	var b bench
	spec := flag.String("engine", "onnxruntime", "engine, as --engine takes it")
	overhead := flag.Bool("overhead", false, "show what child and pipe cost")
	flag.StringVar(&b.script, "script", "", "the engine's plain loop (default: bench/engines/ENGINE.py)")
	flag.StringVar(&b.python, "python", "python3", "interpreter")
	flag.IntVar(&b.rounds, "rounds", 3, "rounds, each with new processes")
	flag.DurationVar(&b.time, "time", time.Second, "how long a round measures with each")
	flag.IntVar(&b.threads, "threads", 1, "threads")
	flag.Parse()
	err := func() error {
		if *overhead {
			return child(b.rounds, b.time)
		}
		return b.all(*spec, flag.Args())
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "engines:", err)
		os.Exit(1)
	}
}

// all compares on every model.
func (b *bench) all(spec string, paths []string) error {
	found, err := engine.Find(spec)
	switch {
	case err != nil:
		return err
	case len(found) != 1 || found[0] == nil:
		return errors.New("-engine takes one engine other than opmeter's own")
	}
	b.engine = found[0]
	if b.script == "" {
		b.script = filepath.Join(material.Root(), "bench", "engines", b.engine.Name+".py")
	}
	if _, err := os.Stat(b.script); err != nil {
		return err
	}
	files, err := models(paths)
	if err != nil {
		return err
	}
	fmt.Printf("%s, %s\n%-44s %10s %10s %8s %15s %9s %8s\n", b.engine.Library, b.script, "model", "plain loop", "opmeter", "ratio", "of rounds", "layers", "joined")
	var ratios []float64
	refused, near, around := 0, 0, 0
	for _, f := range files {
		r, err := b.model(f)
		if err != nil {
			refused++
			fmt.Printf("%-44s %.120v\n", trim(filepath.Base(f)), err)
			continue
		}
		ratios = append(ratios, r.ratio)
		switch {
		case math.Abs(r.ratio-1) <= 0.02:
			near++
		case r.low <= 1.02 && r.high >= 0.98:
			around++
		}
		fmt.Printf("%-44s %10s %10s %8.4f %7.4f-%7.4f %8.2f%% %7.1f%%\n", trim(filepath.Base(f)), micro(r.loop), micro(r.opmeter), r.ratio, r.low, r.high, 100*r.layers, 100*r.joined)
	}
	if len(ratios) == 0 {
		return errors.New("no model was measured")
	}
	slices.Sort(ratios)
	fmt.Printf("%d models, %d within 2 %%, %d more with rounds within or on both sides, median of the ratios %.4f, %d not measured\n", len(ratios), near, around, ratios[len(ratios)/2], refused)
	return nil
}

// models lists the model files that paths lead to.
func models(paths []string) (files []string, err error) {
	if len(paths) == 0 {
		dir := material.Dir()
		if dir == "" {
			return nil, errors.New("no reference material: set OPMETER_SHARED or name models")
		}
		paths = []string{filepath.Join(dir, "models", "real"), filepath.Join(dir, "models", "synthetic")}
	}
	return material.Models(paths)
}

// result is one model's.
type result struct {
	loop, opmeter    float64 // medians over the rounds, seconds
	ratio, low, high float64 // median of the rounds' ratios, the least and the largest
	layers           float64 // by how much layers and gaps together differ from the whole
	joined           float64 // part of the time that leads to operators exactly or by tensor
}

// model compares on one model. Each round starts both anew; within it they are interleaved.
func (b *bench) model(path string) (*result, error) {
	m, err := opmeter.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = m.Close() }()
	inputs, err := writeInputs(path)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(inputs)
	var loops, ours, ratios []float64
	var last *profile.Profile
	for range b.rounds {
		loop, p, err := b.round(m, path, inputs)
		if err != nil {
			return nil, err
		}
		v := median(p.Totals.Latency)
		if !(v > 0) || !(loop > 0) {
			return nil, fmt.Errorf("no time: %v and %v", loop, v)
		}
		loops, ours, ratios, last = append(loops, loop), append(ours, v), append(ratios, v/loop), p
	}
	r := &result{loop: middle(loops), opmeter: middle(ours), ratio: middle(ratios), low: slices.Min(ratios), high: slices.Max(ratios), layers: math.NaN(), joined: math.NaN()}
	if c := last.Reconcile; c != nil && c.OperatorsS != nil && c.GapsS != nil && c.WallS != nil {
		r.layers = (*c.OperatorsS+*c.GapsS)/(*c.WallS) - 1
	}
	var sure, sum float64
	for i := range last.Layers {
		l := &last.Layers[i]
		v, _ := l.Latency.Best()
		sum += v
		if l.Provenance != nil && (l.Provenance.Confidence == profile.Exact || l.Provenance.Confidence == profile.ByTensor) {
			sure += v
		}
	}
	if sum > 0 {
		r.joined = sure / sum
	}
	return r, nil
}

// round measures with both, which are interleaved once both are warm. It returns the median of the
// loop's times in seconds.
func (b *bench) round(m *opmeter.Model, path, inputs string) (median float64, p *profile.Profile, err error) {
	l, err := b.start(path, inputs)
	if err != nil {
		return 0, nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	order, ended := new(opmeter.Interleaver), make(chan error, 1)
	var once sync.Once
	measured := false
	begin := func() { once.Do(func() { go func() { ended <- l.turns(ctx, order) }() }) }
	p, err = opmeter.Profile(context.Background(), m, opmeter.Options{
		Engine: b.engine, Time: b.time, Threads: b.threads, Inputs: opmeter.Inputs{Seed: seed}, Interleaver: order,
		Progress: func(phase string, _ float64) {
			if phase == "measuring" {
				measured = true
				begin()
			} else if measured {
				stop()
			}
		},
	})
	stop()
	begin() // of a profile that failed before it measured, the loop ends at once
	err = l.end(errors.Join(err, <-ended))
	return middle(l.times), p, err
}

// median is the median of a metric, NaN where it has none.
func median(m *profile.Metric) float64 {
	if m == nil || m.Median == nil {
		return math.NaN()
	}
	return *m.Median
}

// middle is the median of some numbers.
func middle(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if len(s) == 0 {
		return math.NaN()
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func micro(s float64) string { return fmt.Sprintf("%.1fµs", 1e6*s) }

func trim(s string) string { return s[:min(len(s), 44)] }
