package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/testing/sample"
)

// TestGraphGroups closes layers into groups and finds a layer inside a closed one.
func TestGraphGroups(t *testing.T) {
	s := open(t, "sample", "#/graph?group=scope", 1280, 900)
	eval[any](s, `(() => { const i = document.querySelector("input[type=search]"); i.value = "#8"; i.dispatchEvent(new Event("input", { bubbles: true })) })(), null`)
	s.wait(`document.querySelector(".hits button")`)
	eval[any](s, `document.querySelector(".hits button").click(), null`)
	s.wait(`location.hash.includes("layer=8") && location.hash.includes("toggled=") && document.querySelector(".side h3").textContent.startsWith("#8 ")`)
	// The same address shows the same again.
	s.must(s.Reload())
	s.wait(`document.querySelector(".side h3")?.textContent.startsWith("#8 ")`)
}

// TestLargeGraph shows 5,000 nodes one by one, and moves them.
func TestLargeGraph(t *testing.T) {
	p := sample.New(sample.Options{Layers: 5000, Iterations: 2, Bars: 10})
	file, err := write("graph5000", p)
	if err != nil {
		t.Fatal(err)
	}
	s := openFile(t, filepath.Clean(file), "#/summary", 1280, 900)
	s.wait(shown)
	start := time.Now()
	s.show("#/graph?group=none")
	s.wait(`document.querySelector("canvas[role=application]")?.width > 100`)
	took := time.Since(start)
	t.Logf("5,000 nodes after %v", took.Round(time.Millisecond))
	frame := eval[float64](s, `(() => { const c = document.querySelector("canvas[role=application]"); const t = performance.now();
		for (let i = 0; i < 10; i++) c.dispatchEvent(new KeyboardEvent("keydown", { key: i % 2 ? "+" : "-", bubbles: true, cancelable: true }));
		return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done((performance.now() - t) / 10)))) })()`)
	t.Logf("%.0f ms a step", frame)
	if strings.Contains(eval[string](s, "location.hash"), "layer=") {
		t.Error("zooming chose a layer")
	}
}
