package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/opmeter/opmeter/internal/testing/material"
)

// axe is the source of axe-core. It is put into the tab by the browser's debugger,
// which the page's content security policy does not bind.
var axe = sync.OnceValues(func() (string, error) {
	b, err := os.ReadFile(filepath.Join(material.Root(), "web", "node_modules", "axe-core", "axe.min.js"))
	return string(b), err
})

// screenshots is the folder for images.
var screenshots = sync.OnceValues(func() (string, error) {
	dir := os.Getenv("OPMETER_SCREENSHOTS")
	if dir == "" {
		d, err := os.MkdirTemp("", "opmeter-screenshots-")
		fmt.Println("images are in", d)
		return d, err
	}
	return dir, os.MkdirAll(dir, 0o755)
})

// audit returns what axe-core finds wrong with the page as it is.
func (s *session) audit() []string {
	s.t.Helper()
	source, err := axe()
	if err != nil {
		material.Skip(s.t, "axe-core is absent, npm ci in web/ installs it: "+err.Error())
	}
	if !eval[bool](s, `"axe" in window`) {
		eval[any](s, source+"; null")
	}
	return eval[[]string](s, `axe.run(document, { preload: false, iframes: false, resultTypes: ["violations"] }).then((r) =>
		r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.target.join(" ") + ": " + (n.any[0] ?? n.all[0] ?? n.none[0])?.message)))`)
}

// image keeps what is visible.
func (s *session) picture(name string) {
	s.t.Helper()
	dir, err := screenshots()
	s.must(err)
	b, err := s.Screenshot()
	s.must(err)
	s.must(os.WriteFile(filepath.Join(dir, name+".png"), b, 0o644))
}

// TestViews opens every view of a real profile and of one with everything, in both
// themes, on a wide and on a narrow screen.
func TestViews(t *testing.T) {
	for _, page := range []string{"real", "sample"} {
		for _, theme := range []string{"light", "dark"} {
			for _, size := range [][2]int{{1280, 900}, {390, 844}} {
				name := fmt.Sprintf("%s-%s-%d", page, theme, size[0])
				t.Run(name, func(t *testing.T) {
					s := open(t, page, "", size[0], size[1])
					s.must(s.Media("screen", theme))
					for _, view := range views {
						s.show("#/" + view)
						s.picture(name + "-" + view)
						if got := eval[string](s, `getComputedStyle(document.documentElement).colorScheme`); !strings.Contains(got, theme) {
							t.Errorf("%s: the colour scheme is %q", view, got)
						}
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
}

// TestLoaded opens the summary of a profile with streams, which has two throughputs: that of all
// streams and that of a single one.
func TestLoaded(t *testing.T) {
	s := open(t, "loaded", "#/summary", 1280, 900)
	names := eval[[]string](s, `[...document.querySelectorAll("dl.figures dt")].map((x) => x.firstChild.textContent.trim())`)
	for _, want := range []string{"Throughput", "Single stream"} {
		if n := strings.Count("\n"+strings.Join(names, "\n")+"\n", "\n"+want+"\n"); n != 1 {
			t.Errorf("%d figures are called %s: %q", n, want, names)
		}
	}
	if cards := eval[[]string](s, `[...document.querySelectorAll(".cards h4")].map((x) => x.textContent)`); !strings.Contains(strings.Join(cards, "\n"), "Under load") {
		t.Errorf("no card about load: %q", cards)
	}
}

// TestChosenLayer opens every view with a layer chosen, whose figures are then
// beside it or below.
func TestChosenLayer(t *testing.T) {
	for _, page := range []string{"chip", "sample"} {
		for _, theme := range []string{"light", "dark"} {
			for _, size := range [][2]int{{1280, 900}, {390, 844}} {
				name := fmt.Sprintf("%s-chosen-%s-%d", page, theme, size[0])
				t.Run(name, func(t *testing.T) {
					s := open(t, page, "", size[0], size[1])
					s.must(s.Media("screen", theme))
					for _, view := range views {
						s.show("#/" + view + "?layer=11")
						s.wait(`document.querySelector("aside")?.innerText.includes("#11")`)
						if size[0] < 600 && view == "layers" {
							s.must(s.Do(chromedp.Click(`aside button[aria-expanded]`)))
							s.wait(`document.querySelector("aside dl")`)
						}
						s.picture(name + "-" + view)
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
}

// wide names the elements that reach beyond the right edge.
func (s *session) wide() []string {
	return eval[[]string](s, `[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
		.slice(0, 5).map((e) => e.tagName + "." + e.className + " " + e.getBoundingClientRect().right)`)
}
