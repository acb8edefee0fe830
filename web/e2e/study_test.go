package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/opmeter/opmeter/internal/testing/sample"
)

// TestStudy opens every view of a study in both themes, on a wide and on a narrow screen.
func TestStudy(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"study", "hostile study"} {
		for _, tab := range []string{"summary", "layers", "chart", "plan", "bench"} {
			for _, theme := range []string{"light", "dark"} {
				for _, width := range []int{1280, 390} {
					t.Run(fmt.Sprintf("%s/%s/%s/%d", name, tab, theme, width), func(t *testing.T) {
						s := open(t, name, "#/summary?row=5&tab="+tab+"&theme="+theme, width, 900)
						s.wait(`document.querySelector("main")?.innerText.length > 40`)
						for _, fault := range s.audit() {
							t.Error(fault)
						}
						if over := eval[int](s, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
							t.Errorf("the page is %d pixels too wide", over)
						}
						s.picture(strings.ReplaceAll(name, " ", "-") + "-" + tab + "-" + theme + fmt.Sprint("-", width))
					})
				}
			}
		}
	}
}

// TestStudyChoices goes along the front and chooses layers by keys and by the mouse.
func TestStudyChoices(t *testing.T) {
	t.Parallel()
	st := sample.Study(24, false)
	front := st.Plans[0].Front
	s := open(t, "study", "#/summary?tab=plan", 1280, 900)
	s.wait(`document.querySelector("main svg[role=listbox] [aria-selected=true]")`)
	s.must(s.Do(chromedp.Focus(`main svg[role=listbox]`)))
	s.must(s.Press(kb.ArrowRight))
	s.wait(`location.hash.includes("point=10")`)
	want := front[10].Changes[1]
	s.wait(fmt.Sprintf(`document.querySelectorAll("main tbody tr")[1].innerText.includes("%g")`, 100*want.Level))

	s = open(t, "study", "#/summary?tab=layers", 1280, 900)
	s.wait(`document.querySelectorAll("main tbody tr").length === 24`)
	s.must(s.Do(chromedp.Click(`main tbody tr:nth-child(3)`)))
	s.wait(`document.querySelector(".detail h2") && location.hash.includes("row=")`)
	at := eval[string](s, `new URLSearchParams(location.hash.split("?")[1]).get("row")`)
	if text := eval[string](s, `document.querySelector(".detail h2").innerText`); !strings.HasPrefix(text, "#"+at+" ") {
		t.Errorf("the chosen layer is %s, its heading %q", at, text)
	}
	s.must(s.Do(chromedp.Focus(`input[type=search]`)))
	s.must(s.Press("lstm"))
	s.wait(`document.querySelectorAll("main tbody tr").length === 6`)

	// Two profiles stand side by side, of the same layers.
	s = open(t, "study", "#/summary?tab=chart&with=throughput", 1280, 900)
	s.wait(`document.querySelectorAll("main rect.second").length === 24 && document.querySelectorAll("main rect.first").length === 24`)
	s = open(t, "study", "#/summary?tab=chart&group=op&how=percent", 1280, 900)
	s.wait(`document.querySelectorAll("main rect.first").length === 3`)
}
