// Command latency compares the engine with ONNX Runtime, OpenVINO and LiteRT. Every engine that
// takes a model runs in its own process with the same inputs. The processes are interleaved, some
// milliseconds each, so that all meet the same machine.
//
//	bench/engines/install DIR
//	OPMETER_TEST_ENGINES=DIR go run ./bench/latency [-threads 1,2] [-time 500ms] [-only NAME] \
//		[-processor] [-csv FILE] [-families] [PATH ...]
//	OPMETER_TEST_ENGINES=DIR go run ./bench/latency -networks FOLDER
//
// Without models it takes those of golden/latency.csv, and all of models/real and models/mcu, of
// the reference material. With -networks it makes full-size networks with random weights in a
// folder (see bench/networks) and takes those. Open dimensions are 1, but where the reference
// material says otherwise of its models.
//
// It prints a line a model with the median times of a run, the ratio of ours to the fastest of
// the others (below 1 is faster), how near to the roofline ours is (the least time that the
// measured peaks of arithmetic and memory allow its layers, as a part of the time taken), and the
// geometric means. With -processor these are times of the processor, which other programs disturb
// less; they say something of one thread only.
package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/bench/networks"
	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
)

// packages are the folders of the engines in OPMETER_TEST_ENGINES, and what they are asked for.
var packages = []struct {
	name, folder, format string
	options              []engine.Option
}{
	{"onnxruntime", "onnxruntime-1.32.0", ".onnx", nil},
	// Single precision, as everybody else: on some processors the default is half of it.
	{"openvino", "openvino-2026.4.1", "", []engine.Option{{Key: "INFERENCE_PRECISION_HINT", Value: "f32"}}},
	{"litert", "ai_edge_litert-2.3.0", ".tflite", nil},
}

func main() {
	threads := flag.String("threads", "1,2", "numbers of threads")
	each := flag.Duration("time", 500*time.Millisecond, "how long each engine measures")
	only := flag.String("only", "", "only models whose name contains this")
	into := flag.String("networks", "", "make full-size networks in this folder and take those")
	table := flag.String("csv", "", "write the figures to this file, too")
	processor := flag.Bool("processor", false, "compare times of the processor")
	var lost families
	flag.BoolFunc("families", "end with the kernels that lose most time to the roofline", func(string) error {
		lost = families{}
		return nil
	})
	flag.Parse()
	if err := bench(*threads, *each, *only, *into, *table, *processor, lost, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "latency:", err)
		os.Exit(1)
	}
}

func bench(threads string, each time.Duration, only, into, table string, processor bool, lost families, paths []string) error {
	engines, err := others()
	if err != nil {
		return err
	}
	var files []string
	switch {
	case into != "":
		files, err = networks.Write(into)
	case len(paths) == 0:
		files, err = known()
	default:
		files, err = material.Models(paths)
	}
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f string) bool { return !strings.Contains(filepath.Base(f), only) })
	var out *csv.Writer
	if table != "" {
		f, err := os.Create(table)
		if err != nil {
			return err
		}
		defer f.Close()
		out = csv.NewWriter(f)
		_ = out.Write([]string{"model", "threads", "ours_s", "onnxruntime_s", "openvino_s", "litert_s", "ratio", "roof"})
		defer out.Flush()
	}
	for _, t := range strings.Split(threads, ",") {
		n, err := strconv.Atoi(t)
		if err != nil {
			return err
		}
		fmt.Printf("\n%d threads, milliseconds\n%-46s %9s %12s %9s %9s %7s %7s\n", n, "model", "ours", "ONNX Runtime", "OpenVINO", "LiteRT", "ratio", "roof")
		var all, long tally
		for _, f := range files {
			r, err := compare(engines, f, n, each, processor, lost)
			if err != nil {
				fmt.Printf("%-46s not compared: %.100v\n", short(f), err)
				continue
			}
			best := r.fastest()
			line := fmt.Sprintf("%-46s %9s %12s %9s %9s", short(f), milli(r.ours), milli(r.others[0]), milli(r.others[1]), milli(r.others[2]))
			ratio, shown := math.NaN(), "      -"
			if best > 0 {
				ratio = r.ours / best
				all.add(ratio, f)
				if best >= 1e-3 {
					long.add(ratio, f)
				}
				shown = fmt.Sprintf("%7.2f", ratio)
			}
			line += " " + shown
			if r.roof > 0 {
				line += fmt.Sprintf(" %5.0f %%", 100*r.roof)
			}
			fmt.Println(line)
			if table != "" {
				row := []string{filepath.Base(f), t}
				for _, v := range []float64{r.ours, r.others[0], r.others[1], r.others[2], ratio, r.roof} {
					cell := ""
					if v > 0 {
						cell = strconv.FormatFloat(v, 'g', 5, 64)
					}
					row = append(row, cell)
				}
				_ = out.Write(row)
				out.Flush()
			}
		}
		all.print("all")
		long.print("1 ms or more")
		lost.print()
		clear(lost)
	}
	return nil
}

// tally gathers ratios.
type tally struct {
	logs  float64
	n     int
	worst float64
	name  string
	over  int // above 1.3
}

func (t *tally) add(ratio float64, file string) {
	t.logs += math.Log(ratio)
	t.n++
	if ratio > t.worst {
		t.worst, t.name = ratio, short(file)
	}
	if ratio > 1.3 {
		t.over++
	}
}

func (t *tally) print(what string) {
	if t.n > 0 {
		fmt.Printf("%s: %d models, geometric mean %.2f, %d above 1.3, worst %.2f (%s)\n", what, t.n, math.Exp(t.logs/float64(t.n)), t.over, t.worst, t.name)
	}
}

// families are kernels by operator, type of the first input and kernel.
type families map[[3]string]*family

// family is what the layers of a kernel took, and what of that exceeds the roofline, in seconds.
// Each model counts as a run, so that the shares of its layers, not its size, decide in share.
type family struct {
	took, lost, share float64
	models            map[string]bool
}

func (fs families) add(p *profile.Profile, model string) {
	if fs == nil {
		return
	}
	var all float64
	for i := range p.Layers {
		s, _ := p.Layers[i].Latency.Best()
		all += s
	}
	for i := range p.Layers {
		l := &p.Layers[i]
		s, ok := l.Latency.Best()
		if !ok || !(all > 0) {
			continue
		}
		key := [3]string{l.Op, "", l.Kernel}
		if len(l.Inputs) > 0 {
			key[1] = l.Inputs[0].DType
		}
		f := fs[key]
		if f == nil {
			f = &family{models: map[string]bool{}}
			fs[key] = f
		}
		lost := s
		if l.Roof != nil && l.Roof.Use != nil {
			lost = s * max(0, 1-*l.Roof.Use)
		}
		f.took += s
		f.lost += lost
		f.share += lost / all
		f.models[model] = true
	}
}

// print lists the families that lose most, by their shares of models.
func (fs families) print() {
	if len(fs) == 0 {
		return
	}
	fmt.Printf("\n%-22s %-8s %-28s %9s %9s %9s %7s\n", "operator", "type", "kernel", "took ms", "lost ms", "of models", "models")
	keys := slices.SortedFunc(maps.Keys(fs), func(a, b [3]string) int { return cmp.Compare(fs[b].share, fs[a].share) })
	for _, k := range keys[:min(60, len(keys))] {
		f := fs[k]
		fmt.Printf("%-22.22s %-8.8s %-28.28s %9s %9s %9.2f %7d\n", k[0], k[1], k[2], milli(f.took), milli(f.lost), f.share, len(f.models))
	}
}

// others finds the engines to compare with; nil if it is absent.
func others() (list []*engine.Engine, err error) {
	dir := os.Getenv("OPMETER_TEST_ENGINES")
	if dir == "" {
		return nil, errors.New("set OPMETER_TEST_ENGINES to the folder that bench/engines/install made")
	}
	for _, p := range packages {
		found, err := engine.Find(p.name + "=" + filepath.Join(dir, p.folder))
		if err != nil {
			return nil, err
		}
		if len(found) != 1 || found[0] == nil {
			return nil, fmt.Errorf("%s: %d engines", filepath.Join(dir, p.folder), len(found))
		}
		found[0].Options = append(found[0].Options, p.options...)
		list = append(list, found[0])
	}
	return list, nil
}

// known lists the models of the reference material.
func known() (files []string, err error) {
	dir := material.Dir()
	if dir == "" {
		return nil, errors.New("no reference material: set OPMETER_SHARED or name models")
	}
	if files, err = material.Models([]string{filepath.Join(dir, "models", "real"), filepath.Join(dir, "models", "mcu")}); err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(dir, "golden", "latency.csv"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, err
	}
	for _, r := range rows[1:] {
		p := filepath.Join(dir, "models", "synthetic", r[0])
		if _, err := os.Stat(p); err == nil && !slices.Contains(files, p) {
			files = append(files, p)
		}
	}
	return files, nil
}

// times are the medians of a model in seconds, 0 of an engine that does not take it.
type times struct {
	ours   float64
	others [3]float64
	roof   float64 // what the roofline allows as a part of ours, 0 where that is not known
}

// fastest is the least time of others, 0 if absent.
func (t *times) fastest() (best float64) {
	for _, v := range t.others {
		if v > 0 && (best == 0 || v < best) {
			best = v
		}
	}
	return best
}

// compare measures a model with all engines, which are interleaved.
func compare(engines []*engine.Engine, path string, threads int, each time.Duration, processor bool, lost families) (*times, error) {
	defer debug.FreeOSMemory()
	m, err := opmeter.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = m.Close() }()
	var t times
	var turns opmeter.Interleaver
	var wait sync.WaitGroup
	var mine error
	measure := func(e *engine.Engine, into *float64, fault *error) {
		wait.Go(func() {
			ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
			defer stop()
			p, err := opmeter.Profile(ctx, m, opmeter.Options{Engine: e, Threads: threads, Time: each, Warmup: each / 4, Interleaver: &turns, Inputs: inputs(), MaxMemory: 4 << 30})
			if err == nil {
				err = failed(p)
			}
			if err != nil {
				*fault = err
				return
			}
			l := p.Totals.Latency
			if processor {
				l = p.Totals.Figures["processor_s"]
			}
			if l != nil && l.Median != nil {
				*into = *l.Median
			}
			if e == nil {
				t.roof = roof(p)
				lost.add(p, short(path))
			}
		})
	}
	measure(nil, &t.ours, &mine)
	for i, e := range engines {
		if f := packages[i].format; f == "" || strings.HasSuffix(path, f) {
			var theirs error
			measure(e, &t.others[i], &theirs)
		}
	}
	wait.Wait()
	if mine == nil && !(t.ours > 0) {
		mine = errors.New("no time")
	}
	return &t, mine
}

// roof is the least time that the roofline allows the layers of a profile, as a part of the time
// that these took.
func roof(p *profile.Profile) float64 {
	var least, all float64
	for i := range p.Layers {
		l := &p.Layers[i]
		s, ok := l.Latency.Best()
		if !ok {
			continue
		}
		all += s
		if l.Roof != nil && l.Roof.Use != nil {
			least += s * *l.Roof.Use
		}
	}
	if !(all > 0) {
		return 0
	}
	return least / all
}

// inputs says what all engines are given: of the reference material what it says of its models.
func inputs() opmeter.Inputs {
	in := opmeter.Inputs{Seed: 1}
	if dir := material.Dir(); dir != "" {
		in.Overrides = filepath.Join(dir, "oracle", "inputs.json")
	}
	return in
}

// failed tells whether an operator of ours failed.
func failed(p *profile.Profile) error {
	for i := range p.Layers {
		if l := &p.Layers[i]; l.State == profile.Failed || l.State == profile.Unsupported {
			return fmt.Errorf("%s %s: %s", l.Op, l.Name, l.State)
		}
	}
	return nil
}

func short(path string) string {
	name := filepath.Base(path)
	if len(name) > 46 {
		name = name[:45] + "…"
	}
	return name
}

// milli shows a time of s seconds.
func milli(s float64) string {
	if !(s > 0) {
		return "-"
	}
	return fmt.Sprintf("%.3f", 1e3*s)
}
