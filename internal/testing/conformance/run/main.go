// Run prints how the engine does in the ONNX backend tests, by operator and by
// suite. The argument is the folder of the material, by default OPMETER_SHARED or
// ../shared.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/testing/conformance"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run() error {
	match := flag.String("run", "", "run only tests whose suite/name matches this regular expression")
	workers := flag.Int("workers", runtime.GOMAXPROCS(0), "tests at the same time")
	limit := flag.Duration("limit", 20*time.Second, "time limit for a test")
	threads := flag.Int("threads", 1, "threads of the engine")
	constants := flag.Bool("constants", false, "make all inputs but the first constants of the model")
	alone := flag.Bool("alone", false, "ask for one output of a model at a time")
	runs := flag.Int("runs", 1, "inferences of a test, of which the last is judged")
	unpacked := flag.String("dir", "", "folder of other, unpacked tests: suite/test/model.onnx")
	flag.Parse()
	dir := os.Getenv("OPMETER_SHARED")
	if flag.NArg() > 0 {
		dir = flag.Arg(0)
	}
	if dir == "" {
		dir = filepath.Join("..", "shared")
	}
	re, err := regexp.Compile(*match)
	if err != nil {
		return err
	}
	var tests []*conformance.Test
	if *unpacked != "" {
		tests, err = conformance.LoadDir(*unpacked)
	} else {
		tests, err = conformance.Load(filepath.Join(dir, "models", "onnx_node_tests"))
	}
	if err != nil {
		return err
	}
	tests = slices.DeleteFunc(tests, func(t *conformance.Test) bool { return !re.MatchString(t.ID()) })
	rows := conformance.RunAll(tests, conformance.Options{
		Registry: operators.Registry(), Workers: *workers, Limit: *limit, Threads: *threads, Constants: *constants, Alone: *alone, Runs: *runs,
	})
	return conformance.Report(os.Stdout, rows)
}
