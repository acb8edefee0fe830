package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestPhases opens the phases and the blocks of a language model in both themes, on a wide and on a
// narrow screen.
func TestPhases(t *testing.T) {
	for _, theme := range []string{"light", "dark"} {
		for _, size := range [][2]int{{1300, 900}, {400, 844}} {
			t.Run(fmt.Sprintf("%s-%d", theme, size[0]), func(t *testing.T) {
				s := open(t, "language", "", size[0], size[1])
				s.must(s.Media("screen", theme))
				for _, view := range []string{"phases", "phases?by=op", "phases?by=block", "summary", "roofline"} {
					s.show("#/" + view)
					if view == "summary" {
						s.must(s.Do(chromedp.Click(`.blocks button[aria-expanded=false]`)))
						s.wait(`document.querySelector(".blocks button[aria-expanded=true]")`)
					}
					s.whole(fmt.Sprintf("language-%s-%d-%s", theme, size[0], strings.ReplaceAll(view, "?by=", "-")))
					if got := eval[float64](s, `document.scrollingElement.scrollWidth`); got > float64(size[0]) {
						t.Errorf("%s: the page is %v pixels wide: %v", view, got, s.wide())
					}
					for _, v := range s.audit() {
						t.Errorf("%s: %s", view, v)
					}
				}
			})
		}
	}
}

// whole keeps an image of the whole page.
func (s *session) whole(name string) {
	s.t.Helper()
	height := eval[float64](s, `document.scrollingElement.scrollHeight`)
	width := eval[float64](s, `innerWidth`)
	before := eval[float64](s, `innerHeight`)
	s.must(s.Do(chromedp.EmulateViewport(int64(width), int64(height))))
	s.must(s.Settle())
	s.picture(name)
	s.must(s.Do(chromedp.EmulateViewport(int64(width), int64(before))))
	s.must(s.Settle())
}

// TestPhasesFigures: the phases are side by side, and the times of each division add up.
func TestPhasesFigures(t *testing.T) {
	s := open(t, "language", "#/phases", 1300, 900)
	heads := eval[[]string](s, `[...document.querySelector("main table").querySelectorAll("thead th")].map((e) => e.textContent.trim())`)
	if want := "prefill 4, prefill 16, decode at 0, decode at 16, decode at 48"; strings.Join(heads, ", ") != want {
		t.Errorf("the phases are %q, want %s", heads, want)
	}
	text := eval[string](s, `document.querySelector("main").innerText`)
	for _, want := range []string{"TTFT", "TPOT", "tokens/s", "Reached", "Roofline", "Decode speed over the context", "Prefill speed over the prompt", "Memory over the context"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	const shares = `[...document.querySelectorAll("main tbody tr td.share:nth-child(3)")].map((e) => parseFloat(e.textContent.replace("<", ""))).reduce((a, b) => a + b, 0)`
	for _, by := range []string{"operator", "part", "block"} {
		s.must(s.Do(chromedp.Click(fmt.Sprintf(`//button[normalize-space()="By %s"]`, by))))
		s.wait(fmt.Sprintf(`document.querySelector("main [role=region][aria-label='Time of the phases by %s']")`, by))
		if got := eval[float64](s, shares); got < 98 || got > 102 {
			t.Errorf("by %s: shares of the first phase add up to %v %%", by, got)
		}
	}
}

// TestBlocks opens a row of blocks by keys, down to its layers, and selects one.
func TestBlocks(t *testing.T) {
	s := open(t, "language", "#/summary", 1300, 900)
	rows := func() []string {
		return eval[[]string](s, `[...document.querySelectorAll(".blocks tbody th")].map((e) => e.innerText.replace(/[▸▾]/g, "").trim())`)
	}
	before := rows()
	if before[0] != "2 × block of 26 layers" || len(before) < 4 {
		t.Fatalf("the rows are %q", before)
	}
	for i, want := range []string{"attention", "MatMul"} {
		s.must(s.Do(chromedp.Focus(fmt.Sprintf(`.blocks tbody tr:nth-child(%d) button`, i+1))))
		s.must(s.Press(kb.Enter))
		s.wait(fmt.Sprintf(`document.querySelectorAll(".blocks button[aria-expanded=true]").length === %d`, i+1))
		if got := rows(); !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%s is missing in the rows %q", want, got)
		}
	}
	s.must(s.Do(chromedp.Focus(`.blocks tr.level2 button`)))
	s.must(s.Press(kb.Enter))
	s.wait(`location.hash.includes("layer=") && document.querySelector("aside")`)
}
