// Command join reports how much of what external engines execute is matched to the model's
// operators, and how surely: a line for each engine, model and optimisation level.
//
//	go run ./bench/engines/join -onnxruntime LIBRARY -litert LIBRARY -openvino LIBRARY \
//		[-levels none,all] [-v] MODEL...
//
// Shares are of the time that the engine's profiler recorded, but for the last two. "own" is what
// the engine put in by itself, such as a change of layout; "MACs" is the share of the model's
// multiplications that rows cover, "sure" what is covered exactly or by tensor. "empty" counts
// rows that multiply by their operator and have no multiplication of the model, "lost" operators
// of the model that multiply and have no row.
//
// Each model runs in a process of its own, since engines crash on some.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// task is what one process does.
type task struct {
	Engine, Library, Level, Model string
	Runs                          int
	Verbose                       bool
}

// result is what it tells, to a file: engines write to their standard output.
type result struct {
	Error                                                 string
	Rows, Empty, Lost                                     int
	Own, Exact, Tensor, Name, Order, None, MACs, SureMACs float64
	// Heavy says that the model multiplies at all.
	Heavy bool
	Lines []string
}

// limit bounds what a model may take.
const limit = 3 * time.Minute

func main() {
	if text := os.Getenv("OPMETER_BENCH_JOIN"); text != "" {
		child(text)
		return
	}
	libraries := map[string]*string{}
	engines := []string{"onnxruntime", "litert", "openvino"}
	for _, e := range engines {
		libraries[e] = flag.String(e, "", "library of "+e)
	}
	levels := flag.String("levels", "none,basic,extended,all", "levels of optimisation, of ONNX Runtime")
	runs := flag.Int("runs", 10, "runs of each")
	verbose := flag.Bool("v", false, "list rows and what they were joined with")
	bare := flag.Bool("bare", false, "no column of engines that refuse a model: leave the line out")
	flag.Parse()
	fmt.Println("| model | engine | rows | own | exact | tensor | name | order | none | MACs | sure | empty | lost |")
	fmt.Println("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, model := range flag.Args() {
		for _, e := range engines {
			if *libraries[e] == "" || e == "litert" && filepath.Ext(model) != ".tflite" || e == "onnxruntime" && filepath.Ext(model) != ".onnx" {
				continue
			}
			list := []string{""}
			if e == "onnxruntime" {
				list = strings.Split(*levels, ",")
			}
			for _, level := range list {
				t := task{Engine: e, Library: *libraries[e], Level: level, Model: model, Runs: *runs, Verbose: *verbose}
				line(&t, ask(&t), *bare)
			}
		}
	}
}

func line(t *task, r *result, bare bool) {
	engine := strings.TrimSpace(t.Engine + " " + t.Level)
	name := filepath.Join(filepath.Base(filepath.Dir(t.Model)), filepath.Base(t.Model))
	if r.Error != "" {
		if !bare {
			fmt.Printf("| %s | %s | %s |\n", name, engine, strings.ReplaceAll(r.Error, "\n", " "))
		}
		return
	}
	macs := "| - | - "
	if r.Heavy {
		macs = fmt.Sprintf("| %.2f | %.2f ", r.MACs, r.SureMACs)
	}
	fmt.Printf("| %s | %s | %d | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f %s| %d | %d |\n", name, engine, r.Rows, r.Own, r.Exact, r.Tensor, r.Name, r.Order, r.None, macs, r.Empty, r.Lost)
	for _, l := range r.Lines {
		fmt.Println("  " + l)
	}
}

// ask runs a process of this program.
func ask(t *task) *result {
	fail := func(err error) *result { return &result{Error: err.Error()} }
	folder, err := os.MkdirTemp("", "opmeter-join-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(folder)
	self, err := os.Executable()
	if err != nil {
		return fail(err)
	}
	text, err := json.Marshal(t)
	if err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c := exec.CommandContext(ctx, self, folder)
	c.Env = append(os.Environ(), "OPMETER_BENCH_JOIN="+string(text))
	if err := c.Run(); err != nil {
		return fail(fmt.Errorf("it crashed: %w", err))
	}
	b, err := os.ReadFile(filepath.Join(folder, answer))
	if err != nil {
		return fail(err)
	}
	r := &result{}
	if err := json.Unmarshal(b, r); err != nil {
		return fail(err)
	}
	return r
}
