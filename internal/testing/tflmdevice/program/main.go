// Command program is a made-up program with TensorFlow Lite Micro in it: it prints what that
// one's profiler would print of a model, or goes wrong in one of several ways. Tests build it.
//
//	program MODEL                  one inference, to standard error, as the benchmark of TFLM
//	program -runs 20 MODEL         more of them
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/testing/tflmdevice"
)

// hz is how many ticks a second its clock has.
const hz = 1_000_000

func main() {
	runs := flag.Int("runs", 1, "inferences of a start, 0 without end")
	table := flag.Bool("table", false, "print tables and no lines")
	output := flag.Bool("stdout", false, "print to standard output")
	fault := flag.String("fault", "", "what goes wrong")
	once := flag.String("once", "", "file that is made by the first start: the fault happens where it is there")
	pause := flag.Duration("pause", 0, "time before each inference")
	log := flag.String("log", "", "file that gets a line when the program begins and one when it ends")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: program MODEL")
		os.Exit(2)
	}
	if *once != "" {
		f, err := os.OpenFile(*once, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			_ = f.Close()
			*fault = ""
		}
	}
	b := board(flag.Arg(0))
	if *table {
		b.Form = tflmdevice.Table
	}
	w := os.Stderr
	if *output {
		w = os.Stdout
	}
	note(*log, "begins")
	defer note(*log, "ends")
	before(*fault)
	fmt.Fprint(w, "TfliteGetModel took 4 ticks (0 ms).\n\n")
	for i := 0; *runs == 0 || i < *runs; i++ {
		time.Sleep(*pause)
		text := b.Inference(i)
		if *fault != "" && (*runs != 1 && i == *runs-1 || *runs == 1) {
			during(*fault, w, text)
		}
		_, _ = w.Write(text)
	}
}

// note writes a line to a file, "" for none.
func note(file, what string) {
	if file == "" {
		return
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		fmt.Fprintf(f, "%s %d\n", what, os.Getpid())
		_ = f.Close()
	}
}

// board runs the operators of a model.
func board(path string) *tflmdevice.Board {
	m, err := opmeter.Open(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot read the model:", err)
		os.Exit(1)
	}
	defer m.Close()
	p, err := opmeter.Count(m, opmeter.Inputs{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	b := &tflmdevice.Board{ClockHz: hz, Between: "\n", End: "\n"}
	for i := range p.Layers {
		b.Ops = append(b.Ops, p.Layers[i].Op)
	}
	return b
}

// before goes wrong before anything is printed.
func before(fault string) {
	switch fault {
	case "nothing":
		os.Exit(0)
	case "garbage":
		fmt.Println("Hello from a board that knows nothing of profilers, whoever listens to it.")
		os.Exit(0)
	case "dies":
		fmt.Fprintln(os.Stderr, "Didn't find op for builtin opcode 'CONV_2D'")
		os.Exit(1)
	case "hangs":
		time.Sleep(time.Hour)
	}
}

// during goes wrong in an inference of which the text is given.
func during(fault string, w *os.File, text []byte) {
	self, _ := os.FindProcess(os.Getpid())
	switch fault {
	case "truncated": // in the middle of a figure
		_, _ = w.Write(text[:len(text)/2])
		os.Exit(0)
	case "dies later":
		_, _ = w.Write(text[:len(text)/2])
		fmt.Fprintln(os.Stderr, "\nMicroProfiler errored out because total number of events exceeded the maximum of 4096.")
		os.Exit(3)
	case "killed":
		_ = self.Signal(syscall.SIGKILL)
		time.Sleep(time.Hour)
	case "hangs later":
		_, _ = w.Write(text[:len(text)/2])
		time.Sleep(time.Hour)
	case "still": // the clock does not run
		for l := range strings.Lines(string(text)) {
			if op, _, ok := strings.Cut(l, " took "); ok {
				fmt.Fprintln(w, op+" took 0 ticks (0 ms).")
			}
		}
		os.Exit(0)
	case "other": // another model
		fmt.Fprintln(w, "SVDF took 7 ticks (0 ms).\nUNPACK took 9 ticks (0 ms).\nTANH took 12 ticks (0 ms).")
		os.Exit(0)
	}
}
