package e2e

import (
	"bytes"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

const (
	chart     = `main canvas[role=application]`
	chosenBar = `section[aria-label="Selected bar"]`
)

// barsOf counts the bars of a profile that a test accepts.
func barsOf(p *profile.Profile, accept func(l *timeline.Lane, i int) bool) int {
	n := 0
	for i := range p.Timeline.Lanes {
		l := &p.Timeline.Lanes[i]
		for j := range l.Starts {
			if accept(l, j) {
				n++
			}
		}
	}
	return n
}

func barCount(n int) string {
	s := strconv.Itoa(n)
	if n >= 1000 {
		s = s[:len(s)-3] + "," + s[len(s)-3:]
	}
	return `document.querySelector("main").innerText.includes("` + s + ` bars in view")`
}

// openTimeline opens the view with everything of the sample's timeline in sight.
func openTimeline(t *testing.T, hash string) (*session, *profile.Profile) {
	t.Helper()
	p := sample.New(sample.Options{Samples: true})
	s := open(t, "sample", hash, 1280, 900)
	s.wait(`document.querySelector("` + chart + `")?.dataset.openMs`)
	s.must(s.Do(chromedp.Click(`//main//button[.="All"]`)))
	s.wait(`location.hash.includes("t0=")`)
	return s, p
}

// TestTimelineBegins with the inference of middle length.
func TestTimelineBegins(t *testing.T) {
	p := sample.New(sample.Options{Samples: true})
	s := open(t, "sample", "#/timeline", 1280, 900)
	s.wait(`document.querySelector("` + chart + `")?.dataset.openMs`)
	all := barsOf(p, func(*timeline.Lane, int) bool { return true })
	if n := eval[int](s, `Number(document.querySelector("main").innerText.match(/([\d,]+) bars in view/)[1].replace(",", ""))`); n < len(p.Layers)/2 || n > all/5 {
		t.Errorf("%d of %d bars are in view at first", n, all)
	}
	if eval[bool](s, `location.hash.includes("t0=")`) {
		t.Error("the range to begin with stands in the address")
	}
	s.must(s.Do(chromedp.Click(`//main//button[.="All"]`)))
	s.wait(barCount(all))
	s.must(s.Do(chromedp.Click(`//main//button[.="One"]`)))
	s.wait(`!location.hash.includes("t0=")`)
}

// span is the range of time in the address, that to begin with, infinite, where none
// stands there.
func (s *session) span() (t0, t1 float64) {
	s.t.Helper()
	_, query, _ := strings.Cut(eval[string](s, `location.hash`), "?")
	v, err := url.ParseQuery(query)
	s.must(err)
	if v.Get("t0") == "" {
		return math.Inf(-1), math.Inf(1)
	}
	t0, err = strconv.ParseFloat(v.Get("t0"), 64)
	s.must(err)
	t1, err = strconv.ParseFloat(v.Get("t1"), 64)
	s.must(err)
	return t0, t1
}

// move does something that changes the range and returns the new one. The address
// follows when the range has come to rest.
func (s *session) move(act func()) (t0, t1 float64) {
	s.t.Helper()
	before := eval[string](s, `location.hash`)
	act()
	s.wait(`location.hash !== ` + quote(before))
	for same, last := 0, ""; same < 2; {
		time.Sleep(600 * time.Millisecond)
		now := eval[string](s, `location.hash`)
		if now == last {
			same++
		} else {
			same, last = 0, now
		}
	}
	return s.span()
}

// box is where an element lies.
type box struct{ X, Y, W, H float64 }

func (s *session) box(selector string) box {
	s.t.Helper()
	return eval[box](s, `(() => { const e = document.querySelector(`+quote(selector)+`); e.scrollIntoView({ block: "nearest" }); const r = e.getBoundingClientRect(); return { X: r.x, Y: r.y, W: r.width, H: r.height }; })()`)
}

func near(a, b, within float64) bool { return math.Abs(a-b) <= within }

func TestTimelineZoom(t *testing.T) {
	s, p := openTimeline(t, "#/timeline")
	s.wait(barCount(barsOf(p, func(*timeline.Lane, int) bool { return true })))
	end := 0.0
	for _, l := range p.Timeline.Lanes {
		for i := range l.Starts {
			end = max(end, l.Starts[i]+l.Durations[i])
		}
	}
	c := s.box(chart)
	at := func(share float64) float64 { return c.X + c.W*share }
	y := c.Y + c.H/2

	// The wheel zooms around the mouse: the time below it stays.
	a0, a1 := s.move(func() {
		for range 10 {
			s.must(s.Wheel(at(0.25), y, 0, -100))
		}
	})
	if under := a0 + 0.25*(a1-a0); !(a1-a0 < end/2) || !near(under, end/4, end/50) {
		t.Errorf("from 0 to %v s the wheel leads to %v to %v s", end, a0, a1)
	}
	// The address leads back to the same.
	text := `document.querySelector("main").innerText.match(/[\d,]+ bars in view/)[0]`
	want := eval[string](s, text)
	again := s.reopened()
	again.wait(`document.querySelector("` + chart + `")?.dataset.openMs`)
	again.wait(text + ` === ` + quote(want))
	b0, b1 := again.span()
	if !near(b0, a0, (a1-a0)/100) || !near(b1, a1, (a1-a0)/100) {
		t.Errorf("the address of %v to %v s leads to %v to %v s", a0, a1, b0, b1)
	}

	// Dragging moves the image with the mouse.
	c0, c1 := s.move(func() { s.must(s.Drag(at(0.5), y, at(0.75), y)) })
	if !near(c1-c0, a1-a0, (a1-a0)/100) || !near(c0, max(0, a0-(a1-a0)/4), (a1-a0)/50) {
		t.Errorf("dragging from %v to %v s leads to %v to %v s", a0, a1, c0, c1)
	}

	// A box drawn with Shift becomes the range.
	d0, d1 := s.move(func() { s.must(s.Drag(at(0.4), y, at(0.6), y, chromedp.ModifierShift)) })
	if length := c1 - c0; !near(d0, c0+0.4*length, length/50) || !near(d1, c0+0.6*length, length/50) {
		t.Errorf("a box in %v to %v s leads to %v to %v s", c0, c1, d0, d1)
	}

	// Keys.
	s.must(s.Do(chromedp.Focus(chart)))
	e0, e1 := s.move(func() { s.must(s.Press("w")) })
	f0, f1 := s.move(func() { s.must(s.Press("d")) })
	g0, g1 := s.move(func() { s.must(s.Press("s")) })
	if !(e1-e0 < d1-d0) || !(f0 > e0) || !near(f1-f0, e1-e0, (e1-e0)/100) || !(g1-g0 > f1-f0) {
		t.Errorf("keys lead from %v to %v s over %v to %v s and %v to %v s to %v to %v s", d0, d1, e0, e1, f0, f1, g0, g1)
	}
	// Back and forward among the ranges.
	if h0, h1 := s.move(func() { s.must(s.Press(kb.ArrowLeft, chromedp.ModifierAlt)) }); !near(h0, f0, (f1-f0)/100) || !near(h1, f1, (f1-f0)/100) {
		t.Errorf("back leads to %v to %v s, it was %v to %v s", h0, h1, f0, f1)
	}
	if h0, h1 := s.move(func() { s.must(s.Press("0")) }); !(h0 <= 0) || !(h1 >= end*(1-1e-6)) {
		t.Errorf("the key for all leads to %v to %v s", h0, h1)
	}
	s.wait(barCount(barsOf(p, func(*timeline.Lane, int) bool { return true })))
	if colours := eval[int](s, `(() => { const c = document.querySelector("`+chart+`"); const d = new Uint32Array(c.getContext("2d").getImageData(0, 0, c.width, c.height).data.buffer); return new Set(d).size; })()`); colours < 5 {
		t.Errorf("the image has %d colours", colours)
	}
}

func TestTimelineSearch(t *testing.T) {
	s, p := openTimeline(t, "#/timeline")
	word := "copy input"
	n := barsOf(p, func(l *timeline.Lane, i int) bool { return l.Labels[i] >= 0 && p.Timeline.Names[l.Labels[i]] == word })
	s.must(s.Press("/"))
	s.must(s.Press(word))
	s.wait(fmt.Sprintf(`document.querySelector("main .search [role=status]")?.innerText === "%d"`, n))
	s.must(s.Press(kb.Enter))
	s.wait(`document.querySelector('` + chosenBar + ` h3')?.innerText === ` + quote(word))
	first := eval[string](s, `document.querySelector('`+chosenBar+` dl').innerText`)
	s.must(s.Press(kb.Enter))
	s.wait(`document.querySelector('` + chosenBar + ` dl').innerText !== ` + quote(first))
	s.must(s.Press("x"))
	s.wait(`document.querySelector("main .search [role=status]")?.innerText === "no match"`)
}

// TestTimelineSelect goes from a row of the table to its bars and from a bar to its
// row.
func TestTimelineSelect(t *testing.T) {
	s, p := openTimeline(t, "#/timeline?layer=6")
	layer := p.Layers[6]
	n := barsOf(p, func(l *timeline.Lane, i int) bool { return l.Layers[i] == 6 })
	s.wait(fmt.Sprintf(`document.querySelector("main").innerText.includes("%d bars")`, n))
	s.must(s.Do(chromedp.Click(`//main//button[contains(., "Next")]`)))
	s.wait(`document.querySelector('` + chosenBar + `') && document.querySelector("aside")?.innerText.includes(` + quote(layer.Name) + `)`)

	// With a bar in focus the keys go from bar to bar, also to other layers.
	s.must(s.Do(chromedp.Focus(chart)))
	s.must(s.Press(kb.Escape))
	s.wait(`!document.querySelector('` + chosenBar + `')`)
	s.must(s.Press(kb.Enter))
	s.wait(`document.querySelector('` + chosenBar + ` dl')`)
	for range 3 {
		before := eval[string](s, `document.querySelector('`+chosenBar+`').innerText`)
		s.must(s.Press(kb.ArrowDown))
		s.wait(`document.querySelector('` + chosenBar + `').innerText !== ` + quote(before))
	}

	// A click on a bar chooses its layer in the table. Where the bar is drawn shows
	// when the mouse finds it.
	s.show("#/timeline")
	s.wait(`document.querySelector("` + chart + `")?.dataset.openMs`)
	s.must(s.Do(chromedp.Click(`//main//input[contains(@aria-label, "Find bars")]`)))
	s.must(s.Press("store" + strings.Repeat(kb.Enter, 9)))
	s.wait(`document.querySelector('` + chosenBar + ` h3')?.innerText === "store"`)
	s.move(func() {
		s.must(s.Do(chromedp.Click(`//section[@aria-label="Selected bar"]//button[contains(., "Zoom")]`)))
	})
	chosen := eval[string](s, `new URLSearchParams(location.hash.split("?")[1]).get("layer")`)
	s.must(s.Do(chromedp.Click(`//section[@aria-label="Selected bar"]//button[contains(., "Close")]`)))
	s.must(s.Press(kb.Escape))
	s.wait(`!document.querySelector('` + chosenBar + `') && !location.hash.includes("layer=")`)
	c := s.box(chart)
	hit := 0.0
	for y := c.Y + 30; y < min(c.Y+c.H, 890) && hit == 0; y += 5 {
		s.must(s.Hover(c.X+c.W/2, y))
		s.must(s.Settle())
		if eval[bool](s, `document.querySelector("main .tip b")?.innerText === "store"`) {
			hit = y
		}
	}
	if hit == 0 {
		t.Fatal("the mouse does not find the bar")
	}
	s.must(s.Click(c.X+c.W/2, hit))
	s.wait(`document.querySelector('` + chosenBar + ` h3')?.innerText === "store"`)
	s.wait(`new URLSearchParams(location.hash.split("?")[1]).get("layer") === ` + quote(chosen))
	s.must(s.Press("2"))
	s.wait(`document.querySelector("main tr[aria-selected=true]")?.cells[0].innerText.trim() === ` + quote(chosen))
}

func TestTimelineParts(t *testing.T) {
	s, p := openTimeline(t, "#/timeline")
	press := func(name string) {
		t.Helper()
		s.must(s.Do(chromedp.Click(`//main//button[starts-with(normalize-space(.), "` + name + `")]`)))
		s.must(s.Settle())
	}
	press("Dependencies")
	s.wait(fmt.Sprintf(`document.querySelector("main").innerText.includes("%d dependencies start or end in view")`, len(p.Timeline.Links)))
	press("Table")
	s.wait(`document.querySelectorAll("main .table tbody tr").length > 20`)
	press("Merge")
	press("Stack")
	s.wait(`document.querySelector("main").innerText.includes("Bytes are distributed evenly")`)
	for _, v := range s.audit() {
		t.Error(v)
	}
	s.picture("timeline-parts")

	dir := t.TempDir()
	s.must(s.Downloads(dir))
	press("More")
	press("Save PNG")
	var files []string
	for i := 0; i < 500 && len(files) == 0; i++ {
		time.Sleep(20 * time.Millisecond)
		files, _ = filepath.Glob(filepath.Join(dir, "*.png"))
	}
	if len(files) != 1 {
		t.Fatalf("files %q", files)
	}
	if b, err := os.ReadFile(files[0]); err != nil || !bytes.HasPrefix(b, []byte("\x89PNG\r\n")) || len(b) < 5000 {
		t.Errorf("%s has %d bytes (%v)", files[0], len(b), err)
	}
}

// TestTimelineHidden hides all bars but those of one layer: the search finds none of
// the others.
func TestTimelineHidden(t *testing.T) {
	s, p := openTimeline(t, "#/timeline?only=9&others=hide")
	s.wait(barCount(barsOf(p, func(l *timeline.Lane, i int) bool { return l.Layers[i] == 9 })))
	n := barsOf(p, func(l *timeline.Lane, i int) bool {
		return l.Layers[i] == 9 && l.Labels[i] >= 0 && p.Timeline.Names[l.Labels[i]] == "store"
	})
	s.must(s.Press("/"))
	s.must(s.Press("store"))
	s.wait(fmt.Sprintf(`document.querySelector("main .search [role=status]")?.innerText === "%d"`, n))
}

// TestTimelineClocks shows a lane whose clock cannot be compared with the others
// under a heading that says so, and its times as the clock had them.
func TestTimelineClocks(t *testing.T) {
	p := sample.New(sample.Options{Layers: 12, Iterations: 1, Cores: 1})
	p.Timeline.Clocks = append(p.Timeline.Clocks, timeline.Clock{Name: "probe"})
	p.Timeline.Lanes = append(p.Timeline.Lanes, timeline.Lane{
		Name: "probe", Kind: timeline.Engine, Clock: "probe", Starts: []float64{5000, 5000.0001}, Durations: []float64{1e-4, 1e-4}, Layers: []int32{0, 1},
		Figures: map[string][]float64{"bank_conflicts": {3, -1}},
	})
	file, err := write("clocks", p)
	if err != nil {
		t.Fatal(err)
	}
	s := openFile(t, file, "#/timeline", 1280, 900)
	s.wait(`document.querySelector("` + chart + `")?.dataset.openMs`)
	s.wait(`document.querySelector("main").innerText.includes("clock probe: its times cannot be compared with the others")`)
	s.must(s.Do(chromedp.Click(`//main//button[starts-with(normalize-space(.), "probe")]`)))
	s.wait(`document.querySelector('` + chosenBar + `')?.innerText.includes("5000.000000000 s")`)
	s.wait(`document.querySelector('` + chosenBar + `')?.innerText.includes("probe, not comparable")`)
	for _, v := range s.audit() {
		t.Error(v)
	}
	s.picture("timeline-clocks")
}
