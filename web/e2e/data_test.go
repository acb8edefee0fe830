package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// TestHostileNames opens every view of a profile whose names are markup, scripts,
// formulas, control characters and very long, and looks for what they may have done.
func TestHostileNames(t *testing.T) {
	const scripts = `[...document.querySelectorAll("script:not([data-part])")].map((e) => e.textContent).join("\n")`
	own := eval[string](open(t, "sample", "", 1280, 900), scripts)
	for _, size := range [][2]int{{1280, 900}, {390, 844}} {
		s := open(t, "hostile", "", size[0], size[1])
		for _, view := range views {
			for _, hash := range []string{"#/" + view, "#/" + view + "?layer=1", "#/" + view + "?layer=%22%3E%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E"} {
				s.show(hash)
				// Tooltips show names as well.
				s.must(s.Hover(float64(size[0]/2), float64(size[1]/2)))
				s.must(s.Settle())
				if eval[bool](s, `"__pwned" in window`) {
					t.Fatalf("%s: a name was run as a script", hash)
				}
				injected := eval[[]string](s, `[...document.querySelectorAll("body img, body iframe, body object, body embed, body style, link, base, form[action], [onerror], [onload], [onclick], a[href^='javascript:' i]")].map((e) => e.outerHTML.slice(0, 200))`)
				if got := eval[string](s, scripts); got != own {
					t.Errorf("%s: the page's scripts are %.200q, those of a harmless one %.200q", hash, got, own)
				}
				for _, e := range injected {
					t.Errorf("%s: the page holds %s", hash, e)
				}
				if got := eval[float64](s, `document.scrollingElement.scrollWidth`); got > float64(size[0]) {
					t.Errorf("%s: the page is %v pixels wide: %v", hash, got, s.wide())
				}
			}
			s.picture("hostile-" + view + "-" + map[bool]string{true: "wide", false: "narrow"}[size[0] > 600])
		}
	}
}

// TestHostileNamesAreShown checks that such names are there to be read.
func TestHostileNamesAreShown(t *testing.T) {
	s := open(t, "hostile", "#/layers", 1280, 900)
	for _, want := range []string{`</script><script>window.__pwned=1</script>`, `<img src=x onerror="window.__pwned=1">`, `=HYPERLINK("http://127.0.0.1/","click")`} {
		s.wait(`document.body.textContent.includes(` + quote(want) + `)`)
	}
}

// TestSmallProfiles opens every view of profiles that have next to nothing.
func TestSmallProfiles(t *testing.T) {
	ns := 1e-6
	bare := func() *profile.Profile {
		return &profile.Profile{
			Schema: profile.SchemaV1, Model: profile.Model{Name: "small"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost}, Layers: []profile.Layer{},
		}
	}
	one := bare()
	one.Layers = []profile.Layer{{Op: "ADD", State: profile.Ran}}
	timed := bare()
	timed.Layers = []profile.Layer{{Op: "ADD", State: profile.Ran, Latency: &profile.Metric{Kind: profile.Measured, Median: &ns}}}
	timed.Totals.Latency = timed.Layers[0].Latency
	timed.Timeline = &timeline.Timeline{Lanes: []timeline.Lane{{Name: "layers", Kind: timeline.Layer, Starts: []float64{0}, Durations: []float64{1e-6}, Layers: []int32{0}}}}
	lanes := bare()
	lanes.Timeline = &timeline.Timeline{
		Lanes:    []timeline.Lane{{Name: "none", Kind: timeline.Engine, Starts: []float64{}, Durations: []float64{}}},
		Counters: []timeline.Counter{{Name: "none", Times: []float64{}, Values: []float64{}}}, Memories: []timeline.Memory{{Name: "none"}},
	}
	instant := bare()
	zero := 0.0
	instant.Layers = []profile.Layer{{Op: "ADD", State: profile.Ran, Latency: &profile.Metric{Kind: profile.Measured, Median: &zero}}}
	instant.Timeline = &timeline.Timeline{Lanes: []timeline.Lane{{Name: "layers", Kind: timeline.Layer, Starts: []float64{0, 0}, Durations: []float64{0, 0}, Layers: []int32{0, -1}}}}
	for name, p := range map[string]*profile.Profile{
		"no layers": bare(), "one layer": one, "one bar": timed, "empty lanes": lanes, "no time": instant, "unnamed": sample.New(sample.Options{Layers: 12, Iterations: 1, Cores: 1}),
	} {
		t.Run(name, func(t *testing.T) {
			if name == "unnamed" {
				p.Model.Name = "-"
				for i := range p.Layers {
					p.Layers[i].Name, p.Layers[i].Op = "", "?"
				}
			}
			file, err := write("small "+name, p)
			if err != nil {
				t.Fatal(err)
			}
			s := openFile(t, file, "", 1280, 900)
			s.wait(shown)
			for _, view := range views {
				for _, hash := range []string{"#/" + view, "#/" + view + "?layer=0"} {
					s.show(hash)
					text := eval[string](s, `document.querySelector("main").innerText`)
					if m := regexp.MustCompile(`\b(NaN|undefined|null|Infinity|\[object \w+\])\b`).FindString(text); m != "" {
						t.Errorf("%s shows %s:\n%s", hash, m, text)
					}
					if len(strings.Fields(text)) < 3 {
						t.Errorf("%s says nothing: %q", hash, text)
					}
				}
				for _, v := range s.audit() {
					t.Errorf("%s: %s", view, v)
				}
			}
		})
	}
}

// TestDamagedPage opens pages whose data were cut or changed: they must say so and
// show no figures.
func TestDamagedPage(t *testing.T) {
	file, err := pages["sample"]()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	part := regexp.MustCompile(`<script[^>]*data-part="(document|columns)"[^>]*>([^<]*)</script>`)
	spots := part.FindAllSubmatchIndex(whole, -1)
	if len(spots) < 2 {
		t.Fatalf("%d data parts", len(spots))
	}
	first, last := spots[0], spots[len(spots)-1]
	replace := func(from, to int, with string) []byte {
		return append(append(append([]byte{}, whole[:from]...), with...), whole[to:]...)
	}
	middle := func(m []int) int { return (m[4] + m[5]) / 2 }
	for name, b := range map[string][]byte{
		"document gone":       replace(first[0], first[1], ""),
		"document cut":        replace(middle(first), first[5], ""),
		"document not base64": replace(middle(first), middle(first)+4, "(*!)"),
		"document changed":    replace(middle(first), middle(first)+40, strings.Repeat("A", 40)),
		"columns gone":        replace(last[0], last[1], ""),
		"columns cut":         replace(middle(last), last[5], ""),
		"columns changed":     replace(middle(last), middle(last)+40, strings.Repeat("A", 40)),
		"columns empty":       replace(last[4], last[5], ""),
	} {
		t.Run(name, func(t *testing.T) {
			if bytes.Equal(b, whole) {
				t.Fatal("nothing was changed")
			}
			file := filepath.Join(t.TempDir(), "damaged.html")
			if err := os.WriteFile(file, b, 0o644); err != nil {
				t.Fatal(err)
			}
			s := openFile(t, file, "", 1280, 900)
			s.wait(`document.body.innerText.includes("This page cannot be shown")`)
			// The explanation comes first, the message of the browser after it.
			text := eval[string](s, `document.querySelector("main p").innerText`)
			if !strings.Contains(text, "truncated or damaged") {
				t.Errorf("the message is %q", text)
			}
			if eval[bool](s, `!!document.querySelector("nav")`) {
				t.Error("the views are there all the same")
			}
			for _, v := range s.audit() {
				t.Error(v)
			}
		})
	}
}

// TestNoScript opens the page where scripts are switched off.
func TestNoScript(t *testing.T) {
	file, err := pages["sample"]()
	if err != nil {
		t.Fatal(err)
	}
	s := openFile(t, file, "", 1280, 900)
	s.wait(shown)
	s.must(s.Scripts(false))
	s.must(s.Reload())
	s.must(s.Wait(`document.body.innerText.includes("This page needs JavaScript.")`))
}
