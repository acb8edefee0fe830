// Command start compares how long engines take from a model's file to its first result, and the
// memory that they have then: opmeter's own, ONNX Runtime, OpenVINO and LiteRT. Each runs in a
// fresh process, interleaved with the others.
//
//	bench/engines/install DIR
//	OPMETER_TEST_ENGINES=DIR go run ./bench/start [-n 5] [-threads 1] [-only NAME] \
//		[-against onnxruntime,litert] [PATH ...]
//	OPMETER_TEST_ENGINES=DIR go run ./bench/start -networks FOLDER
//	go run ./bench/start -program opmeter [-n 25] [MODEL]
//
// With -program it measures the program instead: its size, and how long it takes to print its
// version and the table of an estimate (of examples/resnet8.yaml). OPMETER_CPU selects the
// instruction set.
//
// Without models it takes models/real of the reference material. With -networks it makes
// full-size networks with random weights in a folder (see bench/networks) and takes those.
//
// The time is that of opening the file, making the model ready and the first run, in a process
// that has opened the engine's library and made the inputs; the memory is the largest resident
// size of that process, which is a Go program whatever the engine: what a process has before is
// in both. It prints the least of the rounds, which other programs disturbed least, the ratios of
// ours to the others' (below 1 is less), and the geometric means of these over the models.
package main

import (
	"cmp"
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

	"github.com/opmeter/opmeter/bench/networks"
	"github.com/opmeter/opmeter/internal/external/find"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// rival is an engine that takes part.
type rival struct {
	name, folder string
	format       string // ".onnx", ".tflite", "" for both
	library      string
}

func rivals() []rival {
	return []rival{
		{name: ours},
		{name: "onnxruntime", folder: "onnxruntime-1.32.0", format: ".onnx"},
		{name: "openvino", folder: "openvino-2026.4.1"},
		{name: "litert", folder: "ai_edge_litert-2.3.0", format: ".tflite"},
	}
}

// ours names opmeter's own engine.
const ours = "opmeter"

func main() {
	rounds := flag.Int("n", 5, "rounds of fresh processes")
	threads := flag.Int("threads", 1, "number of threads")
	only := flag.String("only", "", "only models whose name contains this")
	into := flag.String("networks", "", "make full-size networks in this folder and take those")
	against := flag.String("against", "onnxruntime,openvino,litert", "the engines to compare with")
	binary := flag.String("program", "", "measure the start of this opmeter program instead")
	one := flag.String("one", "", "what the command asks of itself: an engine to start")
	library := flag.String("library", "", "with -one: its library")
	flag.Parse()
	var err error
	switch {
	case *one != "":
		err = start(*one, *library, flag.Arg(0), *threads)
	case *binary != "":
		err = program(*binary, cmp.Or(flag.Arg(0), "examples/resnet8.yaml"), *rounds)
	default:
		err = bench(strings.Split(*against, ","), *rounds, *threads, *only, *into, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "start:", err)
		os.Exit(1)
	}
}

func bench(against []string, rounds, threads int, only, into string, paths []string) error {
	list, err := found(against)
	if err != nil {
		return err
	}
	files, err := models(into, paths)
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f string) bool { return !strings.Contains(filepath.Base(f), only) })
	fmt.Printf("%d threads; milliseconds and MiB of opmeter, and their ratios to those of other engines\n%-46s %9s %7s", threads, "model", "ms", "MiB")
	for _, e := range list[1:] {
		fmt.Printf(" %22s", e.name)
	}
	fmt.Println()
	means := make([][2]mean, len(list))
	for _, f := range files {
		seen, err := compare(list, f, rounds, threads)
		if err != nil {
			fmt.Printf("%-46s not compared: %.100v\n", filepath.Base(f), err)
			continue
		}
		fmt.Printf("%-46s %9.1f %7.1f", filepath.Base(f), 1e3*slices.Min(seen[0].seconds), slices.Min(seen[0].bytes)/(1<<20))
		for i := 1; i < len(list); i++ {
			if len(seen[i].seconds) == 0 {
				fmt.Printf(" %22s", "-")
				continue
			}
			t, m := slices.Min(seen[0].seconds)/slices.Min(seen[i].seconds), slices.Min(seen[0].bytes)/slices.Min(seen[i].bytes)
			means[i][0].add(t)
			means[i][1].add(m)
			fmt.Printf(" %10.2f %11.2f", t, m)
		}
		fmt.Println()
	}
	for i, e := range list[1:] {
		if m := means[i+1]; m[0].n > 0 {
			fmt.Printf("%s: %d models, geometric means %.2f of the time (%d above 1), %.2f of the memory (%d above 1)\n", e.name, m[0].n, m[0].value(), m[0].above, m[1].value(), m[1].above)
		}
	}
	return nil
}

// found lists the engines of these names with their libraries, opmeter's own first.
func found(names []string) ([]rival, error) {
	dir := os.Getenv("OPMETER_TEST_ENGINES")
	if dir == "" {
		return nil, errors.New("set OPMETER_TEST_ENGINES to the folder that bench/engines/install made")
	}
	list := slices.DeleteFunc(rivals(), func(e rival) bool { return e.name != ours && !slices.Contains(names, e.name) })
	here := find.Here()
	for i := range list {
		if list[i].name == ours {
			continue
		}
		f, err := find.Spec{Engine: list[i].name, Library: filepath.Join(dir, list[i].folder)}.Pick(here)
		if err != nil {
			return nil, err
		}
		list[i].library = f.Path
	}
	return list, nil
}

// models lists the files to compare on.
func models(into string, paths []string) (files []string, err error) {
	if into != "" {
		return networks.Write(into)
	}
	if len(paths) == 0 {
		dir := material.Dir()
		if dir == "" {
			return nil, errors.New("no reference material: set OPMETER_SHARED or name models")
		}
		paths = []string{filepath.Join(dir, "models", "real")}
	}
	return material.Models(paths)
}

// figures are those of an engine, one a round.
type figures struct{ seconds, bytes []float64 }

// compare starts all engines that take a model, interleaved; one that fails has no figures. The
// error is opmeter's.
func compare(list []rival, path string, rounds, threads int) ([]figures, error) {
	seen, failed := make([]figures, len(list)), make([]bool, len(list))
	for range rounds {
		for i, e := range list {
			if failed[i] || !strings.HasSuffix(path, e.format) {
				continue
			}
			s, b, err := process(&e, path, threads)
			switch {
			case err == nil:
				seen[i].seconds, seen[i].bytes = append(seen[i].seconds, s), append(seen[i].bytes, b)
			case i == 0:
				return nil, err
			default:
				seen[i], failed[i] = figures{}, true
			}
		}
	}
	return seen, nil
}

// process starts an engine in a process of its own.
func process(e *rival, path string, threads int) (seconds, bytes float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, 0, err
	}
	cmd := exec.Command(self, "-one", e.name, "-library", e.library, "-threads", strconv.Itoa(threads), path)
	out, err := cmd.Output()
	if err != nil {
		if x, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, x.Stderr)
		}
		return 0, 0, err
	}
	// Libraries may print, too.
	_, last, ok := strings.Cut(string(out), mark)
	if !ok {
		return 0, 0, fmt.Errorf("%s says nothing", e.name)
	}
	_, err = fmt.Sscan(last, &seconds, &bytes)
	return seconds, bytes, err
}

// mean is a geometric one.
type mean struct {
	logs     float64
	n, above int
}

func (m *mean) add(v float64) {
	m.logs += math.Log(v)
	m.n++
	if v > 1 {
		m.above++
	}
}

func (m *mean) value() float64 { return math.Exp(m.logs / float64(m.n)) }
