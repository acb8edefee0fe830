// Command sample writes a made-up profile of any size in any format of opmeter,
// to try reports and the programs that read them.
//
//	go run ./bench/sample -bars 1000000 -o big.html
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/testing/sample"
)

func main() {
	var o sample.Options
	var out string
	flag.IntVar(&o.Layers, "layers", 60, "operators")
	flag.IntVar(&o.Iterations, "iterations", 20, "inferences")
	flag.IntVar(&o.Cores, "cores", 2, "cores of the accelerator")
	flag.IntVar(&o.Bars, "bars", 0, "about this many bars on the timeline")
	flag.BoolVar(&o.Samples, "samples", true, "a sample for each layer and iteration")
	flag.BoolVar(&o.Hostile, "hostile", false, "names that try to break what shows them")
	flag.Uint64Var(&o.Seed, "seed", 1, "seed of the noise")
	flag.StringVar(&out, "o", "sample.html", "file; the ending names the format")
	flag.Parse()
	if err := report.File(out, sample.New(o), report.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
