// Command estimate measures how long estimates take: one model on one target from
// the start of the process to the printed table, and a thousand pairs of models and
// targets in one process.
//
//	go run ./bench/estimate -models ../shared/models/mcu
//
// Limits are 15 ms and 5 s.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/target"
)

func main() {
	models := flag.String("models", "../shared/models/mcu", "folder with .tflite and .onnx files")
	one := flag.String("model", "", "model for the single run (default: the largest of the folder below 1 MB)")
	on := flag.String("on", "efr32xg24-mvp", "target for the single run")
	runs := flag.Int("runs", 20, "single runs")
	pairs := flag.Int("pairs", 1000, "pairs of models and targets")
	flag.Parse()
	if err := run(*models, *one, *on, *runs, *pairs); err != nil {
		fmt.Fprintln(os.Stderr, "estimate:", err)
		os.Exit(1)
	}
}

func run(models, one, on string, runs, pairs int) error {
	files, err := list(models)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s: has no .tflite or .onnx files", models)
	}
	if one == "" {
		one = largest(files, 1e6)
	}
	if err := single(one, on, runs); err != nil {
		return err
	}
	return many(files, pairs)
}

func list(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); err == nil && !d.IsDir() && (ext == ".tflite" || ext == ".onnx") {
			files = append(files, path)
		}
		return err
	})
	return files, err
}

// largest is the largest file below a size in bytes.
func largest(files []string, below int64) string {
	best, size := files[0], int64(0)
	for _, f := range files {
		if info, err := os.Stat(f); err == nil && info.Size() > size && info.Size() < below {
			best, size = f, info.Size()
		}
	}
	return best
}

// single times the program from its start until it has printed and ended.
func single(model, on string, runs int) error {
	dir, err := os.MkdirTemp("", "estimate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "opmeter")
	if out, err := exec.Command("go", "build", "-o", program, "./cmd/opmeter").CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	var times []time.Duration
	bytes := 0
	for range runs + 1 { // the first one brings the files into memory
		t := time.Now()
		out, err := exec.Command(program, "profile", model, "--on", on).Output()
		if err != nil {
			return fmt.Errorf("profile %s --on %s: %w", model, on, err)
		}
		times, bytes = append(times, time.Since(t)), len(out)
	}
	times = times[1:]
	slices.Sort(times)
	fmt.Printf("%s on %s, process start to the end of %d bytes of table: median %.1f ms, fastest %.1f ms, slowest %.1f ms of %d runs (limit 15 ms)\n",
		filepath.Base(model), on, bytes, ms(times[len(times)/2]), ms(times[0]), ms(times[len(times)-1]), runs)
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// many estimates pairs of models and targets in turn, opening of files included.
func many(files []string, pairs int) error {
	targets, err := target.Load("")
	if err != nil {
		return err
	}
	t := time.Now()
	n, layers, skipped := 0, 0, 0
	ids := targets.List()
	for i := 0; n < pairs; i = (i + 1) % len(files) {
		m, err := opmeter.Open(files[i])
		if err != nil {
			if skipped++; skipped > len(files) && n == 0 {
				return err
			}
			continue
		}
		for _, x := range ids[:min(len(ids), pairs-n)] {
			p, err := x.Estimate(m, opmeter.EstimateOptions{})
			if err != nil {
				return errors.Join(err, m.Close())
			}
			n++
			layers += len(p.Layers)
		}
		if err := m.Close(); err != nil {
			return err
		}
	}
	d := time.Since(t)
	fmt.Printf("%d pairs of models and targets, %d layers: %.2f s, %.2f ms a pair (limit 5 s)\n", n, layers, d.Seconds(), ms(d)/float64(n))
	return nil
}
