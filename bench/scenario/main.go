// Command scenario shows what driving streams costs: the time of an inference that does nothing,
// and the throughput of one that takes a known time, as internal/measure/loadgen sees them and as
// a plain loop does.
//
//	go run ./bench/scenario [-streams 2] [-work 100us] [-time 2s]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/opmeter/opmeter/internal/measure/loadgen"
)

func main() {
	streams := flag.Int("streams", 2, "streams")
	work := flag.Duration("work", 100*time.Microsecond, "time that an inference computes")
	length := flag.Duration("time", 2*time.Second, "time of a measurement")
	flag.Parse()
	if err := show(*streams, *work, *length); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// show measures and prints.
func show(streams int, work, length time.Duration) error {
	ctx := context.Background()
	nothing := func() error { return nil }
	r, err := loadgen.Run(ctx, loadgen.Options{Time: length}, []func() error{nothing})
	if err != nil {
		return err
	}
	fmt.Printf("driving one stream costs %.0f ns an inference, of which %.0f ns are in its time\n", 1e9/r.PerSecond, r.Latency.Median*1e9)
	busy := func() error {
		for end := time.Now().Add(work); time.Now().Before(end); {
			continue
		}
		return nil
	}
	n := 0
	begin := time.Now()
	for time.Since(begin) < length {
		_ = busy() // it has no error
		n++
	}
	plain := time.Since(begin).Seconds() / float64(n)
	one, err := loadgen.Run(ctx, loadgen.Options{Time: length}, []func() error{busy})
	if err != nil {
		return err
	}
	fmt.Printf("an inference of %v takes %.3f µs in a plain loop, %.3f µs in one stream by its throughput (%+.3f %%)\n", work, plain*1e6, 1e6/one.PerSecond, 100*(1/one.PerSecond/plain-1))
	all := make([]func() error, streams)
	for i := range all {
		all[i] = busy
	}
	many, err := loadgen.Run(ctx, loadgen.Options{Time: length}, all)
	if err != nil {
		return err
	}
	fmt.Printf("%d streams: %.1f inferences/s, %.3f of that many times one stream; fairness %.3f\n", streams, many.PerSecond, many.PerSecond/one.PerSecond/float64(streams), many.Fairness)
	rate := 0.5 * one.PerSecond
	due, err := loadgen.Run(ctx, loadgen.Options{Time: length, Rate: rate}, []func() error{busy})
	if err != nil {
		return err
	}
	fmt.Printf("due at %.1f/s: started %.2f µs after its time (median), %.2f µs at most; %d of %d late\n", rate, due.Waiting.Median*1e6, due.Waiting.Max*1e6, due.Late, due.Due)
	return nil
}
