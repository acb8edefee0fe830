package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/opmeter/opmeter/internal/testing/sample"
)

// layer is the chosen layer as the address has it, -1 for none.
func (s *session) layer() int {
	s.t.Helper()
	return eval[int](s, `Number(new URLSearchParams(location.hash.split("?")[1]).get("layer") ?? -1)`)
}

// chose waits until another layer is chosen and returns it.
func (s *session) chose(before int) int {
	s.t.Helper()
	s.wait(fmt.Sprintf(`(new URLSearchParams(location.hash.split("?")[1]).get("layer") ?? "-1") !== "%d"`, before))
	return s.layer()
}

func TestRooflineSelect(t *testing.T) {
	layers := sampleLayers()
	s := open(t, "sample", "#/roofline", 1280, 900)
	intensity := func(i int) float64 {
		l := layers[i]
		return float64(*l.Ops) / float64(*l.BytesRead+*l.BytesWritten)
	}
	// The keys go from the fewest operations a byte to the most.
	plot := `main svg[role=listbox]`
	s.must(s.Do(chromedp.Focus(plot)))
	s.must(s.Press(kb.Home))
	at := s.chose(-1)
	for range 10 {
		s.must(s.Press(kb.ArrowRight))
		next := s.chose(at)
		if intensity(next) < intensity(at) {
			t.Errorf("layer %d has %v operations a byte, the next one, %d, has %v", at, intensity(at), next, intensity(next))
		}
		at = next
	}
	if text := eval[string](s, `document.querySelector("main").innerText`); !strings.Contains(text, fmt.Sprintf("#%d", at)) {
		t.Errorf("layer %d is not named", at)
	}
	s.must(s.Press(kb.Escape))
	s.wait(`!location.hash.includes("layer=")`)
	// A click chooses the mark below the mouse, by its name for screen readers.
	s.box(plot)
	mark := eval[struct {
		X, Y float64
		Name string
	}](s, `(() => { const e = [...document.querySelectorAll("main svg [role=option]")].find((e) => e.ariaLabel.includes("#11 ")); const r = e.getBoundingClientRect(); return { X: r.x + r.width / 2, Y: r.y + r.height / 2, Name: e.ariaLabel }; })()`)
	s.must(s.Click(mark.X, mark.Y))
	if got := s.chose(-1); got != 11 {
		t.Errorf("a click on %q chooses layer %d", mark.Name, got)
	}
	s.reopened().wait(`document.querySelector("aside header")?.innerText.includes("#11")`)
}

func TestDistributionSelect(t *testing.T) {
	layers := sampleLayers()
	s := open(t, "sample", "#/distribution", 1280, 900)
	s.wait(`document.querySelector('main svg[role=img][aria-label^="Histogram of 20 samples"]')`)
	whole := eval[string](s, `document.querySelector("main dl.facts").innerText`)
	slowest := 0
	for i := range layers {
		if m := layers[i].Latency; m != nil && *m.Median > *layers[slowest].Latency.Median {
			slowest = i
		}
	}
	s.must(s.Do(chromedp.Click(`main button.strip`)))
	if got := s.chose(-1); got != slowest {
		t.Errorf("the first strip is that of layer %d, want %d", got, slowest)
	}
	s.wait(`document.querySelector("main dl.facts").innerText !== ` + quote(whole))
	s.choose(`main select`, "ex")
	s.wait(`document.querySelector("main button.strip").innerText.startsWith("#0 ")`)
}

func TestGraphFind(t *testing.T) {
	layers := sampleLayers()
	s := open(t, "sample", "#/graph", 1280, 900)
	s.must(s.Press("/"))
	s.must(s.Press("#7" + kb.Enter))
	if got := s.chose(-1); got != 7 {
		t.Fatalf("the search for #7 chooses layer %d", got)
	}
	s.wait(`document.querySelector("#app").innerText.includes(` + quote(layers[7].Name) + `)`)
	// Down goes along an edge: to a layer that reads what this one makes.
	s.must(s.Do(chromedp.Focus(`main [role=application]`)))
	s.must(s.Press(kb.ArrowDown))
	next := s.chose(7)
	made := layers[7].Outputs[0].Name
	reads := false
	for _, in := range layers[next].Inputs {
		reads = reads || in.Name == made
	}
	if !reads {
		t.Errorf("below layer 7 stands layer %d, which does not read %q", next, made)
	}
	colours := func() int {
		return eval[int](s, `(() => { const c = [...document.querySelectorAll("main canvas")].sort((a, b) => b.width - a.width)[0]; const d = new Uint32Array(c.getContext("2d").getImageData(0, 0, c.width, c.height).data.buffer); return new Set(d).size; })()`)
	}
	if n := colours(); n < 10 {
		t.Errorf("the image has %d colours", n)
	}
	for _, key := range []string{"+", "+", "-", "0"} {
		before := eval[string](s, `[...document.querySelectorAll("main canvas")].sort((a, b) => b.width - a.width)[0].toDataURL()`)
		s.must(s.Press(key))
		s.wait(`[...document.querySelectorAll("main canvas")].sort((a, b) => b.width - a.width)[0].toDataURL() !== ` + quote(before))
	}
}

func TestEstimateOrder(t *testing.T) {
	layers := sampleLayers()
	s := open(t, "sample", "#/estimate", 1280, 900)
	difference := func(i int) float64 {
		d := *layers[i].Latency.Median - *layers[i].Expected.Median
		return max(d, -d)
	}
	read := func() []int {
		var out []int
		for _, text := range eval[[]string](s, `[...document.querySelectorAll("main button.row .who")].map((e) => e.innerText)`) {
			word, _, _ := strings.Cut(strings.TrimPrefix(text, "#"), " ")
			i, err := strconv.Atoi(word)
			s.must(err)
			out = append(out, i)
		}
		return out
	}
	rows := read()
	if len(rows) < 10 || !slices.IsSortedFunc(rows, func(a, b int) int {
		if difference(a) >= difference(b) {
			return -1
		}
		return 1
	}) {
		t.Errorf("largest difference first: %v", rows)
	}
	s.must(s.Do(chromedp.Click(`main button.row`)))
	if got := s.chose(-1); got != rows[0] {
		t.Errorf("a click on the row of layer %d chooses %d", rows[0], got)
	}
	s.choose(`main select`, "ex")
	s.wait(`location.hash.includes("sort=layer")`)
	if rows := read(); !slices.IsSorted(rows) {
		t.Errorf("execution order: %v", rows)
	}
}

// TestMemoryPlan goes through the plan by keys and to the peak.
func TestMemoryPlan(t *testing.T) {
	s := open(t, "sample", "#/memory", 1280, 900)
	heading := `[...document.querySelectorAll("main h3")].map((h) => h.innerText).join("|")`
	s.wait(heading + `.includes("Live at the peak")`)
	s.must(s.Do(chromedp.Focus(`main canvas[tabindex="0"]`)))
	s.must(s.Press(kb.ArrowRight + kb.ArrowRight + kb.Enter))
	s.wait(heading + `.includes("Live during")`)
	// The address keeps the step.
	s.reopened().wait(heading + `.includes("Live during")`)
	s.must(s.Do(chromedp.Click(`//main//button[.="Go to the peak"]`)))
	s.wait(heading + `.includes("Live at the peak")`)
	// A window of time goes along from the timeline.
	w := open(t, "sample", "#/timeline?t0=0.001&t1=0.002", 1280, 900)
	w.must(w.Do(chromedp.Click(`//main//a[.="Memory of this range"]`)))
	w.wait(`location.hash.startsWith("#/memory?") && location.hash.includes("t0=0.001")`)
}

// centre gives the middle of the element that a selector finds first.
func (s *session) centre(selector string) (x, y float64) {
	s.t.Helper()
	p := eval[[]float64](s, `(() => { const e = document.querySelector(`+quote(selector)+`); e.scrollIntoView({ block: "center" });
		const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2] })()`)
	return p[0], p[1]
}

// TestDistributionZoom draws over the order of runs and sees these runs larger; a
// double click shows all again.
func TestDistributionZoom(t *testing.T) {
	s := open(t, "sample", "#/distribution", 1280, 1400)
	picture := `document.querySelector("main .uplot canvas").toDataURL()`
	s.wait(`document.querySelector("main .uplot canvas")`)
	x, y := s.centre("main .uplot .u-over")
	before := eval[string](s, picture)
	s.must(s.Drag(x-200, y, x+100, y))
	s.wait(picture + ` !== ` + quote(before))
	s.must(s.Do(chromedp.DoubleClick("main .uplot .u-over")))
	s.wait(picture + ` === ` + quote(before))
}

// TestChosenSamples says of how many runs the samples are, where they are a choice.
func TestChosenSamples(t *testing.T) {
	p := sample.New(sample.Options{Samples: true, Iterations: 40, Layers: 12})
	p.Totals.Latency.N = new(int64(100_000))
	file, err := write("chosen", p)
	if err != nil {
		t.Fatal(err)
	}
	s := openFile(t, file, "#/distribution", 1280, 900)
	s.wait(`document.querySelector('main svg[role=img][aria-label^="Histogram of 40 of 100,000 runs"]')`)
	s.wait(`document.querySelector("main").innerText.includes("Run order: 40 of 100,000 runs")`)
	s.picture("distribution-chosen")
}
