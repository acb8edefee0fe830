package e2e

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestAddress follows the navigation, goes back and forward, and opens the page anew
// at an address.
func TestAddress(t *testing.T) {
	s := open(t, "sample", "", 1280, 900)
	at := func(view string) {
		t.Helper()
		s.wait(`document.querySelector("nav [aria-current=page]")?.hash.startsWith("#/` + view + `") && document.querySelector("main h2")`)
	}
	at("summary")
	for _, view := range views[1:] {
		s.must(s.Do(chromedp.Click(`nav[aria-label="Views"] a[href^="#/`+view+`"]`, chromedp.NodeVisible)))
		at(view)
	}
	for i := len(views) - 2; i >= 0; i-- {
		eval[any](s, `history.back()`)
		at(views[i])
	}
	eval[any](s, `history.forward()`)
	at(views[1])
	for _, view := range views {
		hash := "#/" + view + "?layer=7"
		fresh := open(t, "sample", hash, 1280, 900)
		if got := eval[string](fresh, `document.querySelector("nav [aria-current=page]").hash`); !strings.HasPrefix(got, "#/"+view) || !strings.Contains(got, "layer=7") {
			t.Errorf("%s leads to %s", hash, got)
		}
	}
	for _, hash := range []string{"#/nothing", "#", "#/layers?layer=1000000&sort=%00&filter=%5B(", "#/timeline?layer=-5&from=x&to=NaN&x=%E0%A4%A", "#/graph?node=__proto__&layer=1e9", "#/memory?space=99&layer=constructor"} {
		// What an address says is a wish: nonsense in it must not break the page.
		fresh := open(t, "sample", hash, 1280, 900)
		fresh.must(fresh.Settle())
	}
}

// TestPrint prints every view: there are pages, and the navigation is not on them.
func TestPrint(t *testing.T) {
	s := open(t, "sample", "", 1280, 900)
	for _, view := range views {
		s.must(s.Media("screen", "dark"))
		s.show("#/" + view)
		pdf, err := s.PDF()
		s.must(err)
		if n := len(regexp.MustCompile(`/Type\s*/Page\b`).FindAll(pdf, -1)); n < 1 || !bytes.HasPrefix(pdf, []byte("%PDF-")) {
			t.Errorf("%s: %d printed pages in %d bytes", view, n, len(pdf))
		}
		s.must(s.Media("print", "dark"))
		if eval[bool](s, `document.querySelector("nav").checkVisibility()`) {
			t.Errorf("%s: the navigation is printed", view)
		}
		if !eval[bool](s, `document.querySelector("main h2").checkVisibility() && document.querySelector("main").innerText.length > 20`) {
			t.Errorf("%s: nothing is printed", view)
		}
		// Paper is white whatever the screen is.
		if got := eval[string](s, `getComputedStyle(document.body).color`); !dark(got) {
			t.Errorf("%s: text is printed in %s", view, got)
		}
	}
}

// dark says whether a computed colour is fit for white paper.
func dark(css string) bool {
	var r, g, b float64
	if _, err := fmt.Sscanf(css, "rgb(%f, %f, %f)", &r, &g, &b); err != nil {
		return false
	}
	return 0.2126*r+0.7152*g+0.0722*b < 100
}

// focus describes what has the focus: where it stands, what it is called, and
// whether it shows that it has the focus.
type focus struct {
	Index  int    // among all elements, -1 for none
	What   string // for messages
	Seen   bool
	Marked bool
}

func (s *session) focus() focus {
	s.t.Helper()
	return eval[focus](s, `(() => {
		const e = document.activeElement;
		if (!e || e === document.body) return { Index: -1 };
		const all = [...document.querySelectorAll("*")];
		const c = getComputedStyle(e), r = e.getBoundingClientRect();
		const look = () => { const c = getComputedStyle(e); return [c.outlineStyle, c.outlineWidth, c.outlineColor, c.boxShadow, c.borderColor, c.backgroundColor].join(" "); };
		return {
			Index: all.indexOf(e),
			What: e.tagName.toLowerCase() + " " + (e.getAttribute("aria-label") ?? e.textContent.trim()).slice(0, 40),
			Seen: e.checkVisibility() && r.width > 0 && r.height > 0 && r.right > 0 && r.left < innerWidth,
			Marked: c.outlineStyle !== "none" && parseFloat(c.outlineWidth) >= 1,
		};
	})()`)
}

// reachable lists the positions of elements that a keyboard must reach.
const reachable = `[...document.querySelectorAll("*")].map((e, i) => [e, i]).filter(([e]) =>
	e.matches("a[href], button, input, select, textarea, summary, [tabindex]") && !e.matches("[tabindex^='-'], :disabled, [type=hidden]") &&
	!e.closest("[inert], svg") && e.checkVisibility() && !(e.matches("[type=radio]:not(:checked)"))).map(([, i]) => i)`

// TestKeyboard walks through every view with the tab key: it reaches every control,
// shows where it is, and gets out again.
func TestKeyboard(t *testing.T) {
	for _, view := range append([]string{"phases"}, views...) {
		page := "sample"
		if view == "phases" {
			page = "language"
		}
		s := open(t, page, "#/"+view, 1280, 900)
		want := map[int]bool{}
		for _, i := range eval[[]int](s, reachable) {
			want[i] = true
		}
		if len(want) < len(views) {
			t.Errorf("%s: %d controls", view, len(want))
		}
		seen := map[int]bool{}
		for range 3*len(want) + 60 {
			s.must(s.Press(kb.Tab))
			f := s.focus()
			if f.Index < 0 {
				if len(seen) == 0 {
					continue
				}
				break
			}
			if seen[f.Index] {
				break
			}
			seen[f.Index] = true
			if !f.Seen || !f.Marked {
				t.Errorf("%s: %s has the focus: visible %v, marked %v", view, f.What, f.Seen, f.Marked)
			}
		}
		for i := range want {
			if !seen[i] {
				t.Errorf("%s: the tab key does not reach %s", view, eval[string](s, fmt.Sprintf(`document.querySelectorAll("*")[%d]?.outerHTML.slice(0, 200) ?? "what is no longer there"`, i)))
			}
		}
	}
}
