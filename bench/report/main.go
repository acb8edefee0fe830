// Command report measures what it takes to write a large profile in every format,
// and to read it back from those that opmeter reads: time, size of the file, and
// memory beside the profile itself.
//
//	go run ./bench/report [-layers 1000] [-iterations 10000] [-bars 1000000] [-formats html,json]
//
// A format that internal/report knows is here by itself.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
)

func main() {
	layers := flag.Int("layers", 1000, "layers of the model")
	iterations := flag.Int("iterations", 10_000, "samples of each layer")
	bars := flag.Int("bars", 1_000_000, "bars of the timeline, at most")
	only := flag.String("formats", "", "formats to write, with commas; all when empty")
	seconds := flag.Float64("seconds", 3, "a format that takes longer is marked")
	megabytes := flag.Float64("megabytes", 200, "a format that takes more memory, in 10^6 bytes, is marked")
	keep := flag.String("keep", "", "folder to leave the files in")
	flag.Parse()
	if err := bench(sample.Large(*layers, *iterations, *bars), *only, *keep, *seconds, *megabytes); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func bench(p *profile.Profile, only, dir string, seconds, megabytes float64) error {
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "opmeter-bench-report"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	n := 0
	for _, l := range p.Timeline.Lanes {
		n += len(l.Starts)
	}
	fmt.Printf("%d layers, %d samples each, %d bars; processor: %d threads\n", len(p.Layers), len(p.Layers[0].Samples), n, runtime.GOMAXPROCS(0))
	fmt.Printf("%-14s %9s %12s %12s\n", "format", "time", "file", "memory")
	row := func(what, path string, d time.Duration, mem float64) error {
		st, err := os.Stat(path)
		if err != nil {
			return err
		}
		mark := ""
		if d.Seconds() > seconds || mem > megabytes*1e6 {
			mark = "  over the limit"
		}
		fmt.Printf("%-14s %7.2f s %9.1f MB %9.1f MB%s\n", what, d.Seconds(), float64(st.Size())/1e6, mem/1e6, mark)
		return nil
	}
	wanted := report.Formats(false)
	if only != "" {
		wanted = strings.Split(only, ",")
	}
	for _, ending := range endings() {
		path := filepath.Join(dir, "p"+ending)
		name, err := report.FormatOf(path)
		if err != nil {
			return err
		}
		if !slices.Contains(wanted, name) {
			continue
		}
		d, mem, err := measured(func() error { return report.File(path, p, report.Options{}) })
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := row(name, path, d, mem); err != nil {
			return err
		}
		if name != "json" && name != "profile" {
			continue
		}
		var back *profile.Profile
		d, mem, err = measured(func() (err error) {
			back, err = profile.Read(path)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := row("  read again", path, d, mem-size(&back)); err != nil {
			return err
		}
	}
	return nil
}

// endings are the first ending of every format.
func endings() []string {
	var out []string
	for _, e := range report.Endings() {
		first, _, _ := strings.Cut(e[0], " ")
		out = append(out, first)
	}
	return out
}

// measured runs f and returns its time and the most heap beyond that at the start.
func measured(f func() error) (time.Duration, float64, error) {
	runtime.GC()
	before := heap()
	var peak atomic.Uint64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			peak.Store(max(peak.Load(), heap()))
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	start := time.Now()
	err := f()
	d := time.Since(start)
	close(stop)
	<-done
	return d, max(0, float64(peak.Load())-float64(before)), err
}

// size is the memory of a profile, which it releases.
func size(p **profile.Profile) float64 {
	runtime.GC()
	with := heap()
	runtime.KeepAlive(*p)
	*p = nil
	runtime.GC()
	return float64(with) - float64(heap())
}

// heap is the memory of all objects, those not yet collected included.
func heap() uint64 {
	s := [1]metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s[:])
	return s[0].Value.Uint64()
}
