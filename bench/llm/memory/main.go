// Program memory compares the memory by context that a profile of a language model predicts with
// the resident memory of a process that runs decode at that depth:
//
//	go run ./bench/llm/memory -context 0,1024,4000 model.gguf model.onnx
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/bench/llm/step"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/llm"
)

var (
	contexts = flag.String("context", "0,1024", "positions in the cache")
	threads  = flag.Int("threads", 1, "threads")
	child    = flag.Bool("child", false, "measure one context in this process")
)

// parts of the memory of a process, in bytes.
type parts struct {
	Weights, Caches, Plan  int64 // predicted
	Anonymous, File, Empty int64 // measured: resident, and before the model was opened
}

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
}

func run() error {
	if *child {
		depth, err := strconv.Atoi(*contexts)
		if err != nil {
			return err
		}
		p, err := measure(flag.Arg(0), depth)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(p)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Printf("%-18s %8s %9s %9s %9s %9s %9s %9s %9s\n", "MiB", "context", "weights", "caches", "plan", "predicted", "resident", "file", "ratio")
	for _, file := range flag.Args() {
		for c := range strings.SplitSeq(*contexts, ",") {
			cmd := exec.Command(self, "-child", "-context", c, "-threads", strconv.Itoa(*threads), file)
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				return fmt.Errorf("%s at %s: %w", file, c, err)
			}
			var p parts
			if err := json.Unmarshal(out, &p); err != nil {
				return err
			}
			m := func(v int64) string { return fmt.Sprintf("%.1f", float64(v)/(1<<20)) }
			predicted, resident := p.Weights+p.Caches+p.Plan, p.Anonymous-p.Empty
			fmt.Printf("%-18.18s %8s %9s %9s %9s %9s %9s %9s %9.3f\n", filepath.Base(file), c, m(p.Weights), m(p.Caches), m(p.Plan), m(predicted), m(resident), m(p.File), float64(predicted)/float64(resident))
		}
	}
	return nil
}

// measure runs decode at a depth.
func measure(file string, depth int) (p parts, err error) {
	empty, _ := machine.ResidentBytes()
	if empty == nil {
		return p, errors.New("the system does not tell the resident memory of a process")
	}
	p.Empty = *empty
	s, err := step.Decode(file, depth, *threads)
	if err != nil {
		return p, err
	}
	defer s.Close()
	for range 3 {
		if err := s.Run(context.Background()); err != nil {
			return p, err
		}
	}
	debug.FreeOSMemory()
	arena, _ := s.Memory()
	p.Caches, p.Plan = int64(engine.InputBytes(s.Inputs)), int64(arena+s.Working())
	p.Weights = int64(s.WeightBytes(llm.Lookups))
	own, files := machine.ResidentBytes()
	p.Anonymous, p.File = *own, *files
	runtime.KeepAlive(s)
	return p, nil
}
