// Command loss measures what loss profiles cost beside what they are made from: a full profile of
// a made MobileNetV2 (100 levels, 4 structures) by the errors of layers' own outputs against the
// forward pass over the same samples, and a run of the model from a changed layer on against a
// run of the whole.
//
//	go run ./bench/loss [-samples 128] [-rounds 3] [-threads 1] [-from 16]
//
// Both are interleaved; medians are printed, in seconds of the processor, so that other
// processes do not count.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/opmeter/opmeter/bench/networks"
	"github.com/opmeter/opmeter/internal/compress/loss"
	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/study"
)

func main() {
	n := flag.Int("samples", 128, "number of samples")
	rounds := flag.Int("rounds", 3, "number of rounds")
	threads := flag.Int("threads", 1, "number of threads")
	from := flag.Int("from", 16, "samples of the run from a layer on, 0 to leave that out")
	cpu := flag.String("cpu", "", "file for a profile of the program itself")
	flag.Parse()
	if *cpu != "" {
		f, err := os.Create(*cpu)
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "loss:", err)
			os.Exit(1)
		}
		defer pprof.StopCPUProfile()
	}
	if err := run(*n, *rounds, *threads, *from); err != nil {
		fmt.Fprintln(os.Stderr, "loss:", err)
		os.Exit(1)
	}
}

func run(n, rounds, threads, from int) error {
	dir, err := os.MkdirTemp("", "opmeter-loss-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path, err := networks.One(dir, "mobilenetv2", networks.FP32)
	if err != nil {
		return err
	}
	m, err := modelfile.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	data, err := samples.Open(m, samples.Options{Made: n})
	if err != nil {
		return err
	}
	layers := weights.Find(m, nil)
	fmt.Printf("MobileNetV2, %d layers, %d samples, %d threads\n", len(layers), data.Len(), threads)
	if err := profiles(m, layers, data, rounds, threads); err != nil {
		return err
	}
	if from == 0 {
		return nil
	}
	few := make([]int, min(from, data.Runs()))
	for i := range few {
		few[i] = i
	}
	return suffixes(m, layers, data.Pick(few), threads)
}

// forward is the time of a pass over the data.
func forward(m *graph.Model, data *samples.Set, o engine.Options) (time.Duration, error) {
	s, err := engine.New(m, data.Inputs(0), o)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	t := spent()
	for r := range data.Runs() {
		for k, x := range data.Inputs(r) {
			s.SetInput(k, x)
		}
		if err := s.Run(context.Background()); err != nil {
			return 0, err
		}
	}
	return spent() - t, nil
}

func profiles(m *graph.Model, layers []*weights.Layer, data *samples.Set, rounds, threads int) error {
	var changes []study.Change
	for _, s := range []study.Structure{study.Unstructured, study.Block4, study.Channel, study.Filter} {
		for k := range 100 {
			changes = append(changes, study.Change{Structure: s, Level: float64(k) / 100})
		}
	}
	var pass, full []float64
	for range rounds {
		d, err := forward(m, data, engine.Options{Registry: operators.Registry(), Threads: threads})
		if err != nil {
			return err
		}
		pass = append(pass, d.Seconds())
		points := 0
		j := &loss.Job{
			Model: m, Layers: layers, Data: data, Threads: threads,
			Settings: study.LossSettings{Method: study.OutputError, Changes: changes},
			Point:    func(study.LossPoint) error { points++; return nil },
		}
		t := spent()
		if _, err := j.Run(context.Background()); err != nil {
			return err
		}
		full = append(full, (spent() - t).Seconds())
		fmt.Printf("  forward pass %.3f s, profile of %d points %.3f s: %.2f\n", pass[len(pass)-1], points, full[len(full)-1], full[len(full)-1]/pass[len(pass)-1])
	}
	ratios := make([]float64, rounds)
	for i := range ratios {
		ratios[i] = full[i] / pass[i]
	}
	fmt.Printf("median: forward pass %.3f s, profile %.3f s, %.2f times the pass\n", median(pass), median(full), median(ratios))
	return nil
}

// suffixes compares runs from each layer on with runs of the whole.
func suffixes(m *graph.Model, layers []*weights.Layer, data *samples.Set, threads int) error {
	change := study.Change{Structure: study.Unstructured, Level: 0.8}
	j := &loss.Job{
		Model: m, Layers: layers, Data: data, Threads: threads,
		Settings: study.LossSettings{Method: study.EndToEnd, Metric: loss.SNR, Changes: []study.Change{change}},
		Point:    func(study.LossPoint) error { return nil },
	}
	t := spent()
	if _, err := j.Run(context.Background()); err != nil {
		return err
	}
	part := (spent() - t).Seconds()
	t = spent()
	for _, l := range layers {
		changed, _, err := rewrite.Apply(m, []rewrite.Change{{Layer: l, Change: change}}, rewrite.Options{})
		if err != nil {
			return err
		}
		if _, err := forward(changed, data, engine.Options{Registry: operators.Registry(), Threads: threads, KeepAll: true, Exact: true}); err != nil {
			return err
		}
	}
	all := (spent() - t).Seconds()
	fmt.Printf("end to end, %d samples: from the layers on %.3f s, whole %.3f s, %.2f\n", data.Len(), part, all, part/all)
	return nil
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
