// Command latency compares the engine with ONNX Runtime over real models: the
// same inputs, in turns within one run, so that both meet the same machine.
//
//	bench/latency/install
//	go run ./bench/latency [-threads 1,2] [-rounds 9] [-only NAME] [-models DIR,DIR]
//
// The models are those of golden/latency.csv in the reference material, as far as
// ONNX Runtime takes them. It prints a line a model with the median of both and
// the ratio ours/theirs (below 1 is faster), and the geometric mean.
package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/engine"
	"github.com/opmeter/opmeter/internal/feed"
	"github.com/opmeter/opmeter/internal/operators"
	"github.com/opmeter/opmeter/internal/read/modelfile"
	"github.com/opmeter/opmeter/internal/stats"
	"github.com/opmeter/opmeter/internal/synth"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/testing/material"
)

func main() {
	threads := flag.String("threads", "1,2", "numbers of threads")
	rounds := flag.Int("rounds", 9, "turns of both sides")
	only := flag.String("only", "", "only models whose name contains this")
	flag.Parse()
	if err := bench(*threads, *rounds, *only); err != nil {
		fmt.Fprintln(os.Stderr, "latency:", err)
		os.Exit(1)
	}
}

// yardstick is the child process that runs the other engine.
type yardstick struct {
	cmd *exec.Cmd
	in  *json.Encoder
	out *bufio.Scanner
}

type answer struct {
	Error   string    `json:"error"`
	Seconds []float64 `json:"seconds"`
}

func startYardstick() (*yardstick, error) {
	dir := filepath.Join(material.Root(), "bench", "latency")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "onnxruntime-node")); err != nil {
		return nil, errors.New("ONNX Runtime is not installed: run bench/latency/install first")
	}
	c := exec.Command("node", "yardstick.mjs")
	c.Dir, c.Stderr = dir, os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s := bufio.NewScanner(out)
	s.Buffer(nil, 1<<24)
	return &yardstick{c, json.NewEncoder(in), s}, c.Start()
}

func (y *yardstick) ask(v any) (answer, error) {
	var a answer
	if err := y.in.Encode(v); err != nil {
		return a, err
	}
	if !y.out.Scan() {
		return a, errors.New("the yardstick process ended")
	}
	if err := json.Unmarshal(y.out.Bytes(), &a); err != nil {
		return a, err
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

func bench(threadList string, rounds int, only string) error {
	files, err := models(only)
	if err != nil {
		return err
	}
	y, err := startYardstick()
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "latency")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	over, err := synth.LoadOverrides(filepath.Join(material.Dir(), "oracle", "inputs.json"))
	if err != nil {
		return err
	}
	for _, t := range strings.Split(threadList, ",") {
		n, err := strconv.Atoi(t)
		if err != nil {
			return err
		}
		fmt.Printf("\n%d threads\n%-44s %10s %10s %8s  %s\n", n, "model", "ours", "theirs", "ratio", "spread of the ratio over rounds")
		var logs float64
		var done int
		for _, f := range files {
			r, err := compare(y, f, n, rounds, tmp, over[filepath.Base(f)])
			if err != nil {
				fmt.Printf("%-44s not compared: %v\n", filepath.Base(f), err)
				continue
			}
			fmt.Printf("%-44s %8.3fms %8.3fms %8.2f  %.2f to %.2f\n", filepath.Base(f), 1e3*r.ours, 1e3*r.theirs, r.ratio, r.low, r.high)
			logs += math.Log(r.ratio)
			done++
		}
		if done > 0 {
			fmt.Printf("geometric mean of %d models, %d threads: %.2f\n", done, n, math.Exp(logs/float64(done)))
		}
	}
	return nil
}

// models lists the ONNX models of the latency table, as far as they are there.
func models(only string) ([]string, error) {
	dir := material.Dir()
	if dir == "" {
		return nil, errors.New("no reference material: set OPMETER_SHARED")
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
	var out []string
	for _, r := range rows[1:] {
		if !strings.HasSuffix(r[0], ".onnx") || !strings.Contains(r[0], only) {
			continue
		}
		for _, sub := range []string{"real", "synthetic", "mcu"} {
			p := filepath.Join(dir, "models", sub, r[0])
			if _, err := os.Stat(p); err == nil && !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

type ratio struct{ ours, theirs, ratio, low, high float64 }

func compare(y *yardstick, path string, threads, rounds int, tmp string, o synth.Overrides) (ratio, error) {
	var r ratio
	m, err := modelfile.Open(path)
	if err != nil {
		return r, err
	}
	if m.Close != nil {
		defer func() { _ = m.Close() }()
	}
	ins, _, err := feed.Inputs(m, feed.Options{Seed: 1, Overrides: o})
	if err != nil {
		return r, err
	}
	if err := send(y, path, threads, m.Main().Inputs, func(i int) (string, *tensor.Tensor) { return m.Main().Values[m.Main().Inputs[i]].Name, ins[i] }, tmp); err != nil {
		return r, err
	}
	s, err := engine.New(m, ins, engine.Options{Registry: operators.Registry(), Threads: threads})
	if err != nil {
		return r, err
	}
	defer s.Close()
	for _, st := range s.Steps() {
		if st.Err != nil {
			return r, fmt.Errorf("%s: %w", st.Node.Key(), st.Err)
		}
	}
	ctx := context.Background()
	start := time.Now()
	if err := s.Run(ctx); err != nil {
		return r, err
	}
	// Each turn takes about 50 ms of either side, at least 1 run.
	n := max(1, min(500, int(0.05/time.Since(start).Seconds())))
	var ratios, us, them []float64
	for round := range rounds + 1 {
		mine := make([]float64, n)
		for i := range mine {
			t := time.Now()
			if err := s.Run(ctx); err != nil {
				return r, err
			}
			mine[i] = time.Since(t).Seconds()
		}
		a, err := y.ask(map[string]any{"run": max(n, 5)})
		if err != nil {
			return r, err
		}
		if round == 0 {
			continue // warm-up
		}
		us, them = append(us, stats.Median(mine)), append(them, stats.Median(a.Seconds))
		ratios = append(ratios, us[len(us)-1]/them[len(them)-1])
	}
	return ratio{stats.Median(us), stats.Median(them), stats.Median(ratios), slices.Min(ratios), slices.Max(ratios)}, nil
}

// send gives the other side the same inputs.
func send(y *yardstick, path string, threads int, ids []int, input func(i int) (string, *tensor.Tensor), tmp string) error {
	type in struct {
		Name  string `json:"name"`
		DType string `json:"dtype"`
		Shape []int  `json:"shape"`
		File  string `json:"file"`
	}
	var list []in
	for i := range ids {
		name, t := input(i)
		file := filepath.Join(tmp, strconv.Itoa(i))
		if err := os.WriteFile(file, t.Data, 0o600); err != nil {
			return err
		}
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		list = append(list, in{name, t.Type.String(), shape, file})
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	_, err = y.ask(map[string]any{"load": abs, "threads": threads, "inputs": list})
	return err
}
