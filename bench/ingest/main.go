// Command ingest measures how fast the profiles and traces of other tools are imported, and tries
// readers with damaged ones.
//
//	go run ./bench/ingest [-program PATH] [-bytes N] [-commands N] [-n RUNS] [-samples DIR]
//
// makes an ONNX Runtime profile of -bytes and, for tensor processors, a directory of -commands,
// imports each -n times on one core (GOMAXPROCS=1) with the program, and prints the median with
// the least and most: time, bytes a second, largest resident memory. Directories of -samples (the
// reference material's, where it is there) are imported as they are.
//
//	go run ./bench/ingest -fuzz N [-format NAME] [-seed N] [-records DIR]
//
// changes the records of a folder N times for each format and reads them: a panic, more than 10
// s, more than 1 GiB of heap, or a profile that is not valid is a failure, and the exit status is
// 1. The same seed makes the same changes.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	var s speed
	var d damage
	flag.StringVar(&s.program, "program", "", "the program, built when left out")
	flag.Int64Var(&s.bytes, "bytes", 1<<30, "size of the ONNX Runtime profile")
	flag.IntVar(&s.commands, "commands", 1_000_000, "commands of the directory of a tensor processor")
	flag.IntVar(&s.n, "n", 5, "how often each is imported")
	flag.StringVar(&s.samples, "samples", "", "folder of directories to import as they are (default: the reference material's)")
	flag.StringVar(&s.only, "make", "", "only make the records of -bytes and -commands in this folder")
	flag.IntVar(&d.n, "fuzz", 0, "number of damaged records for each format")
	flag.StringVar(&d.format, "format", "", "only this format")
	flag.Uint64Var(&d.seed, "seed", 1, "seed")
	flag.StringVar(&d.records, "records", "", "folder of records to damage (default: the reference material's)")
	flag.Parse()
	var err error
	if d.n > 0 {
		err = d.run(os.Stdout)
	} else {
		err = s.run(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ingest:", err)
		os.Exit(1)
	}
}
