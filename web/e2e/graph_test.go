package e2e

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
)

// TestGraphGroups closes layers into groups and finds a layer inside a closed one.
func TestGraphGroups(t *testing.T) {
	s := open(t, "sample", "#/graph?group=scope", 1280, 900)
	eval[any](s, `(() => { const i = document.querySelector("input[type=search]"); i.value = "#8"; i.dispatchEvent(new Event("input", { bubbles: true })) })(), null`)
	s.wait(`document.querySelector(".hits button")`)
	eval[any](s, `document.querySelector(".hits button").click(), null`)
	s.wait(`location.hash.includes("layer=8") && location.hash.includes("toggled=") && document.querySelector("aside h2").textContent.startsWith("#8 ")`)
	// The same address shows the same again.
	s.must(s.Reload())
	s.wait(`document.querySelector("aside h2")?.textContent.startsWith("#8 ")`)
}

// flow is a page of a model with control flow: an If with two bodies.
var flow = sync.OnceValues(func() (string, error) {
	tensor := func(name string) []profile.Tensor {
		return []profile.Tensor{{Name: name, DType: "float32", Shape: []int64{1, 8}}}
	}
	layer := func(i int, op, in, out string) profile.Layer {
		return profile.Layer{
			Index: int64(i), Op: op, Name: op, State: profile.Ran, Inputs: tensor(in), Outputs: tensor(out),
			Latency: &profile.Metric{Kind: profile.Measured, N: new(int64(9)), Median: new(1e-6)}, Share: new(0.2),
		}
	}
	inside := func(l profile.Layer, graph string) profile.Layer {
		l.Parent, l.Graph = new(int64(1)), graph
		return l
	}
	p := &profile.Profile{
		Schema: profile.SchemaV1, Model: profile.Model{Name: "flow", Inputs: tensor("x"), Outputs: tensor("z")}, Target: profile.Target{ID: "host", Kind: profile.TargetHost},
		Layers: []profile.Layer{
			layer(0, "Equal", "x", "c"), layer(1, "If", "c", "y"),
			inside(layer(2, "Relu", "c", "t"), "then"), inside(layer(3, "Add", "t", "u"), "then"), inside(layer(4, "Mul", "c", "v"), "else"),
			layer(5, "Identity", "y", "z"),
		},
	}
	return write("flow", p)
})

// closedBox finds the middle of a box of the graph that can be opened, by what the tip says.
func (s *session) closedBox() (x, y float64) {
	s.t.Helper()
	r := eval[[]float64](s, `(() => { const r = document.querySelector("canvas[role=application]").getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom] })()`)
	for y := r[1] + 20; y < min(r[3], 880); y += 26 {
		for x := r[0] + 40; x < r[2]; x += 90 {
			s.must(s.Hover(x, y))
			if s.must(s.Settle()); eval[bool](s, `!!document.querySelector(".tip")?.textContent.includes("opens it")`) {
				// Away from the arrow at its left.
				return x + 40, y
			}
		}
	}
	s.t.Fatal("no box can be opened")
	return 0, 0
}

// TestGraphDoubleClick opens groups and bodies by two clicks, with and without a pause:
// the first one chooses the box, which opens the panel at the side, and the image may
// not move meanwhile.
func TestGraphDoubleClick(t *testing.T) {
	for _, x := range []struct {
		name  string
		page  func() (string, error)
		hash  string
		width int
	}{
		{"group", pages["sample"], "#/graph?group=scope", 1280},
		{"group, narrow", pages["sample"], "#/graph?group=scope", 390},
		{"body", flow, "#/graph?toggled=l1", 1280},
		{"body, narrow", flow, "#/graph?toggled=l1", 390},
	} {
		t.Run(x.name, func(t *testing.T) {
			file, err := x.page()
			if err != nil {
				t.Fatal(err)
			}
			pauses := []time.Duration{0, 30 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond}
			if x.width < 600 {
				pauses = pauses[2:3] // the panel lies over the page there and moves nothing
			}
			for _, pause := range pauses {
				s := openFile(t, file, x.hash, x.width, 900)
				s.wait(shown)
				s.wait(`document.querySelector("canvas[role=application]")?.width > 100`)
				px, py := s.closedBox()
				toggled := eval[string](s, `new URLSearchParams(location.hash.split("?")[1]).get("toggled") ?? ""`)
				window := eval[string](s, place)

				s.must(s.Click(px, py))
				s.wait(`/[?&](node|layer)=/.test(location.hash)`)
				if got := eval[string](s, place); got != window {
					t.Errorf("pause %v: a click moves the graph from %s to %s", pause, window, got)
				}
				s.must(s.Press(kb.Escape))
				s.wait(`!/[?&](node|layer)=/.test(location.hash)`)

				// or the browser takes what follows for the same double click
				time.Sleep(600 * time.Millisecond)
				s.must(s.DoubleClick(px, py, pause))
				s.wait(`(new URLSearchParams(location.hash.split("?")[1]).get("toggled") ?? "") !== ` + quote(toggled))
				if got := eval[string](s, place); strings.Fields(got)[2] != strings.Fields(window)[2] {
					t.Errorf("pause %v: opening zooms from %s to %s", pause, window, got)
				}
				// What the tip says of an open box is what its title says.
				s.must(s.Hover(px, py+1))
				s.must(s.Settle())
				if tip := eval[string](s, `document.querySelector(".tip")?.textContent ?? ""`); strings.Contains(tip, "not known") {
					t.Errorf("pause %v: the tip of an open box: %q", pause, tip)
				}
			}
		})
	}
}

// place is where the graph stands: the canvas in the window, and the plane in the canvas.
const place = `(() => { const c = document.querySelector("canvas[role=application]"), r = c.getBoundingClientRect(); return c.dataset.window + " " + r.left + " " + r.top })()`

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
