// Command bench measures how fast pages with millions of bars, and comparisons of thousands of
// layers, open and draw in Chromium without a window, and compares with limits:
//
//	cd web/e2e && go run ./bench [-bars 1000000,10000000] [-layers 2000] [-runs 3] [-check]
//
// With -check the exit status is 1 when a page of up to a million bars or 2,000 layers is slower
// than the limits. Frames are drawn by the processor here; a graphics card is faster.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter/web/e2e/browser"
	"github.com/opmeter/opmeter/web/e2e/speed"
)

// Limits for a million bars, and for a comparison of two profiles of 2,000 layers.
const (
	maxOpenMS     = 2000
	minFPS        = 50
	limitBars     = 1_000_000
	maxComparedMS = 1000
	limitLayers   = 2000
)

func main() {
	bars := flag.String("bars", "1000000,10000000", "numbers of bars, separated by commas; empty for none")
	layers := flag.String("layers", "2000", "numbers of layers of a comparison, separated by commas; empty for none")
	runs := flag.Int("runs", 3, "times to open each page; the middle of each figure counts")
	check := flag.Bool("check", false, "fail when a limit is not kept")
	flag.Parse()
	kept, err := run(*bars, *layers, *runs)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if *check && !kept {
		os.Exit(1)
	}
}

func run(bars, layers string, runs int) (bool, error) {
	if runs < 1 {
		return false, fmt.Errorf("-runs %d: at least 1", runs)
	}
	dir, err := os.MkdirTemp("", "opmeter-bench-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	b, err := browser.Start()
	if err != nil {
		return false, err
	}
	defer b.Close()
	kept, err := timelines(b, dir, bars, runs)
	if err != nil {
		return false, err
	}
	also, err := comparisons(b, dir, layers, runs)
	return kept && also, err
}

// numbers reads a list of numbers above 0.
func numbers(name, list string) ([]int, error) {
	var out []int
	for text := range strings.SplitSeq(list, ",") {
		if list == "" {
			break
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-%s %s: a number above 0", name, text)
		}
		out = append(out, n)
	}
	return out, nil
}

// timelines measures pages of profiles with so many bars.
func timelines(b *browser.Browser, dir, list string, runs int) (bool, error) {
	bars, err := numbers("bars", list)
	if err != nil || len(bars) == 0 {
		return true, err
	}
	fmt.Printf("limits for %d bars: open in %d ms, %d frames a second\n\n", limitBars, maxOpenMS, minFPS)
	fmt.Println("| bars | file, MiB | make and write, s | open, ms | frames/s | worst frame, ms | drawing a frame, ms | limits |")
	fmt.Println("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
	kept := true
	for _, n := range bars {
		start := time.Now()
		file, err := speed.Page(dir, n)
		if err != nil {
			return false, err
		}
		wrote := time.Since(start)
		info, err := os.Stat(file)
		if err != nil {
			return false, err
		}
		r, err := speed.Median(b, file, runs)
		if err != nil {
			return false, err
		}
		verdict := "none"
		if n <= limitBars {
			verdict = "kept"
			if r.OpenMS > maxOpenMS || r.FPS < minFPS {
				verdict, kept = "not kept", false
			}
		}
		fmt.Printf("| %d | %.1f | %.1f | %.0f | %.1f | %.0f | %.2f | %s |\n",
			r.Bars, float64(info.Size())/(1<<20), wrote.Seconds(), r.OpenMS, r.FPS, r.WorstMS, r.DrawMS, verdict)
		if err := os.Remove(file); err != nil {
			return false, err
		}
	}
	return kept, nil
}

// comparisons measures pages of comparisons with so many layers, each view.
func comparisons(b *browser.Browser, dir, list string, runs int) (bool, error) {
	layers, err := numbers("layers", list)
	if err != nil || len(layers) == 0 {
		return true, err
	}
	fmt.Printf("\nlimit for two profiles of %d layers: open in %d ms\n\n", limitLayers, maxComparedMS)
	fmt.Println("| layers | file, MiB | view | open, ms | limit |")
	fmt.Println("| ---: | ---: | --- | ---: | --- |")
	kept := true
	for _, n := range layers {
		file, err := speed.Compared(dir, n, 2, false)
		if err != nil {
			return false, err
		}
		info, err := os.Stat(file)
		if err != nil {
			return false, err
		}
		for _, view := range []string{"summary", "layers", "graph"} {
			ms, err := speed.Open(b, file, "#/summary?tab="+view, runs)
			if err != nil {
				return false, err
			}
			verdict := "none"
			if n <= limitLayers {
				verdict = "kept"
				if ms > maxComparedMS {
					verdict, kept = "not kept", false
				}
			}
			fmt.Printf("| %d | %.2f | %s | %.0f | %s |\n", n, float64(info.Size())/(1<<20), view, ms, verdict)
		}
	}
	return kept, nil
}
