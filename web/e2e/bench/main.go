// Command bench measures how fast pages with millions of bars open and draw in
// Chromium without a window, and compares with limits:
//
//	cd web/e2e && go run ./bench [-bars 1000000,10000000] [-runs 3] [-check]
//
// With -check the exit status is 1 when a page of up to a million bars is slower
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

// Limits for a million bars.
const (
	maxOpenMS = 2000
	minFPS    = 50
	limitBars = 1_000_000
)

func main() {
	bars := flag.String("bars", "1000000,10000000", "numbers of bars, separated by commas")
	runs := flag.Int("runs", 3, "times to open each page; the middle of each figure counts")
	check := flag.Bool("check", false, "fail when a limit is not kept")
	flag.Parse()
	kept, err := run(*bars, *runs)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if *check && !kept {
		os.Exit(1)
	}
}

func run(list string, runs int) (bool, error) {
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
	fmt.Printf("limits for %d bars: open in %d ms, %d frames a second\n\n", limitBars, maxOpenMS, minFPS)
	fmt.Println("| bars | file, MiB | make and write, s | open, ms | frames/s | worst frame, ms | drawing a frame, ms | limits |")
	fmt.Println("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
	kept := true
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return false, fmt.Errorf("-bars %s: a number above 0", text)
		}
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
