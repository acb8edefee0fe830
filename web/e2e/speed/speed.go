// Package speed measures how fast the pages of a long profile and of a large comparison open and
// draw. The page says how fast: it has a benchmark mode, and marks its first image.
package speed

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile/compare"
	"github.com/opmeter/opmeter/web/e2e/browser"
)

// Result is what the page says about itself: it opens, then zooms and pans over its
// timeline for some seconds and draws as often as the browser lets it.
type Result struct {
	Bars    int     `json:"bars"`           // on the timeline
	OpenMS  float64 `json:"open_ms"`        // from the start of loading to the first image
	Frames  int     `json:"frames"`         // drawn
	Seconds float64 `json:"seconds"`        // that they took
	FPS     float64 `json:"fps"`            // frames a second
	WorstMS float64 `json:"worst_frame_ms"` // longest time from one frame to the next
	DrawMS  float64 `json:"draw_ms_median"` // of the page's own work for a frame
}

func (r Result) String() string {
	return fmt.Sprintf("%d bars: open %.0f ms, %.1f frames/s (%d in %.1f s), worst frame %.0f ms, drawing %.2f ms a frame",
		r.Bars, r.OpenMS, r.FPS, r.Frames, r.Seconds, r.WorstMS, r.DrawMS)
}

// Page writes a made-up profile with at least so many bars into a folder and returns
// the file.
func Page(dir string, bars int) (string, error) {
	file := filepath.Join(dir, fmt.Sprintf("bars-%d.html", bars))
	return file, report.File(file, sample.New(sample.Options{Layers: 200, Bars: bars}), report.Options{})
}

// Run opens the page in a tab of its own and lets it measure itself.
func Run(b *browser.Browser, file string) (Result, error) {
	var r Result
	tab, err := b.Open(1280, 900)
	if err != nil {
		return r, err
	}
	defer tab.Close()
	address, err := browser.FileURL(file)
	if err != nil {
		return r, err
	}
	if err := tab.Goto(address + "#/timeline?bench=1"); err != nil {
		return r, err
	}
	if err := tab.WaitFor(`document.querySelector("#bench-result")?.textContent`, 5*time.Minute); err != nil {
		return r, fmt.Errorf("%w; the browser says %q", err, tab.Problems())
	}
	text, err := browser.Eval[string](tab, `document.querySelector("#bench-result").textContent`)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return r, fmt.Errorf("%.200s: %w", text, err)
	}
	return r, nil
}

// Median runs several times and takes the middle of each figure.
func Median(b *browser.Browser, file string, runs int) (Result, error) {
	all := make([]Result, runs)
	for i := range all {
		var err error
		if all[i], err = Run(b, file); err != nil {
			return all[i], err
		}
	}
	middle := func(of func(*Result) float64) float64 {
		v := make([]float64, runs)
		for i := range all {
			v[i] = of(&all[i])
		}
		slices.Sort(v)
		return v[runs/2]
	}
	return Result{
		Bars:    all[0].Bars,
		OpenMS:  middle(func(r *Result) float64 { return r.OpenMS }),
		Frames:  int(middle(func(r *Result) float64 { return float64(r.Frames) })),
		Seconds: middle(func(r *Result) float64 { return r.Seconds }),
		FPS:     middle(func(r *Result) float64 { return r.FPS }),
		WorstMS: middle(func(r *Result) float64 { return r.WorstMS }),
		DrawMS:  middle(func(r *Result) float64 { return r.DrawMS }),
	}, nil
}

// Compared writes a comparison of made-up versions of a model into a folder and returns the file.
func Compared(dir string, layers, runs int, hostile bool) (string, error) {
	var named []compare.Named
	for k, p := range sample.Versions(layers, runs, hostile) {
		named = append(named, compare.Named{Name: fmt.Sprintf("version %d", k), Profile: p})
	}
	t, err := compare.New(named)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, fmt.Sprintf("compared-%d-%d-%t.html", layers, runs, hostile))
	return file, report.VersusFile(file, t, report.VersusOptions{})
}

// Open opens a page several times, each in a tab of its own, and returns the middle of the times
// from the start of loading to the first image, in milliseconds.
func Open(b *browser.Browser, file, hash string, runs int) (float64, error) {
	all := make([]float64, runs)
	address, err := browser.FileURL(file)
	if err != nil {
		return 0, err
	}
	for i := range all {
		if all[i], err = OpenURL(b, address+hash); err != nil {
			return 0, err
		}
	}
	slices.Sort(all)
	return all[runs/2], nil
}

// OpenURL is [Open] for the address of a page, once.
func OpenURL(b *browser.Browser, address string) (float64, error) {
	tab, err := b.Open(1280, 900)
	if err != nil {
		return 0, err
	}
	defer tab.Close()
	if err := tab.Goto(address); err != nil {
		return 0, err
	}
	const mark = `performance.getEntriesByName("drawn")`
	if err := tab.Wait(mark + `.length > 0`); err != nil {
		return 0, fmt.Errorf("%w; the browser says %q", err, tab.Problems())
	}
	return browser.Eval[float64](tab, mark+`[0].startTime`)
}
