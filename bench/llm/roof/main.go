// Program roof compares decode of language models with the time that reading as many bytes takes on
// this computer: weights and cache, once. Runs and readings are interleaved, so that other programs
// affect both. Times of one thread are CPU times:
//
//	go run ./bench/llm/roof -threads 2 -context 0,1024 model.gguf model.onnx
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/bench/llm/step"
	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/vectors"
	"github.com/opmeter/opmeter/internal/measure/machine"
)

var (
	threads  = flag.Int("threads", 1, "threads")
	contexts = flag.String("context", "0,1024", "positions in the cache")
	rounds   = flag.Int("rounds", 25, "interleaved rounds of each context")
	layers   = flag.Bool("layers", false, "also list the time by operator")
)

// now is a clock in nanoseconds.
var now = func() int64 { return time.Now().UnixNano() }

func main() {
	flag.Parse()
	if clock := machine.ThreadTime(); *threads == 1 && clock != nil {
		runtime.LockOSThread()
		now = clock
	}
	fmt.Printf("%d threads, medians of %d rounds (quartiles)\n", *threads, *rounds)
	fmt.Printf("%-24s %8s %10s %18s %18s %24s\n", "model", "context", "MiB", "decode ms", "reading ms", "reading/decode")
	for _, file := range flag.Args() {
		for c := range strings.SplitSeq(*contexts, ",") {
			depth, err := strconv.Atoi(c)
			if err == nil {
				err = compare(file, depth)
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, "roof:", err)
				os.Exit(1)
			}
		}
	}
}

// compare measures one context.
func compare(file string, depth int) error {
	bytes, err := moved(file, depth)
	if err != nil {
		return err
	}
	s, err := step.Decode(file, depth, *threads)
	if err != nil {
		return err
	}
	defer s.Close()
	buf := hugepages.Make[float32](int(bytes / 4))
	for i := range buf {
		buf[i] = 1 // allocates every page
	}
	run := func() error { return s.Run(context.Background()) }
	tm := s.NewTiming()
	if *layers {
		run = func() error { return s.RunTimed(context.Background(), tm) }
	}
	byOp := map[string]int64{}
	var decodes, readings, ratios []float64
	before := read(s.Pool(), buf)
	for i := range *rounds + 2 {
		start := now()
		if err := run(); err != nil {
			return err
		}
		t := float64(now()-start) / 1e9
		after := read(s.Pool(), buf)
		if i >= 2 { // warm
			decodes, readings, ratios = append(decodes, 1e3*t), append(readings, 1e3*after), append(ratios, (before+after)/2/t)
			for k, st := range s.Steps() {
				byOp[st.Node.Op] += tm.Bounds[k+1] - tm.Bounds[k]
			}
		}
		before = after
	}
	name := file[strings.LastIndexByte(file, '/')+1:]
	fmt.Printf("%-24s %8d %10.0f %18s %18s %24s\n", name, depth, float64(bytes)/(1<<20), spread(decodes, "%.1f"), spread(readings, "%.1f"), spread(ratios, "%.2f"))
	if *layers {
		for _, op := range slices.SortedFunc(maps.Keys(byOp), func(a, b string) int { return cmp.Compare(byOp[b], byOp[a]) })[:min(5, len(byOp))] {
			fmt.Printf("  %-30s %8.2f ms\n", op, float64(byOp[op])/1e6/float64(*rounds))
		}
	}
	return nil
}

// moved is what a decode reads and writes, as the profile says.
func moved(file string, depth int) (int64, error) {
	m, err := opmeter.Open(file)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	p, err := opmeter.Profile(context.Background(), m, opmeter.Options{Threads: *threads, Runs: 3, Warmup: -1, Phases: &opmeter.Phases{Contexts: []int{depth}}})
	if err != nil {
		return 0, err
	}
	ph := &p.Language.Phases[0]
	if ph.WeightsReadBytes == nil {
		return 0, errors.New(file + ": the size of some weights is unknown")
	}
	return *ph.WeightsReadBytes + ph.CacheReadBytes + ph.CacheWrittenBytes, nil
}

// read reads a buffer once and returns the time in seconds.
func read(pool *workers.Pool, buf []float32) float64 {
	const block = 1 << 16
	start := now()
	pool.For(len(buf)/block, 4, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			b := buf[i*block:][:block]
			vectors.Dot(b[:block/2], b[block/2:])
		}
	})
	return float64(now()-start) / 1e9
}

// spread writes the median and the quartiles.
func spread(all []float64, format string) string {
	slices.Sort(all)
	f := func(v float64) string { return fmt.Sprintf(format, v) }
	return fmt.Sprintf("%s (%s-%s)", f(stats.Median(all)), f(stats.Quantile(all, 0.25)), f(stats.Quantile(all, 0.75)))
}
