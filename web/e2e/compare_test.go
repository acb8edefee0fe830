package e2e

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/compare"
	"github.com/opmeter/opmeter/web/e2e/browser"
	"github.com/opmeter/opmeter/web/e2e/speed"
)

// TestCompared opens every view of comparisons in both themes, on a wide and on a narrow screen,
// with a selected row and one of them without.
func TestCompared(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"compared", "several compared", "hostile compared"} {
		for _, theme := range []string{"light", "dark"} {
			for _, width := range []int{1280, 390} {
				t.Run(fmt.Sprintf("%s/%s/%d", name, theme, width), func(t *testing.T) {
					for _, tab := range []string{"summary", "layers", "graph"} {
						rows := []string{"3"}
						if name == "compared" {
							rows = []string{"", "3"}
						}
						for _, row := range rows {
							s := open(t, name, "#/summary?row="+row+"&tab="+tab+"&theme="+theme, width, 900)
							s.wait(`document.querySelector("main")?.innerText.length > 40`)
							for _, fault := range s.audit() {
								t.Errorf("%s, row %q: %s", tab, row, fault)
							}
							if got := eval[int](s, `document.scrollingElement.scrollWidth`); got > width {
								t.Errorf("%s: the page is %d pixels wide: %q", tab, got, s.wide())
							}
							s.picture(strings.ReplaceAll(name, " ", "-") + "-" + tab + "-" + theme + fmt.Sprint("-", width) + row)
						}
					}
				})
			}
		}
	}
}

// versions is the comparison of the page "compared".
func versions(t *testing.T) *compare.Table {
	t.Helper()
	var runs []compare.Named
	for k, p := range sample.Versions(200, 2, false) {
		runs = append(runs, compare.Named{Name: fmt.Sprintf("version %d", k), Profile: p})
	}
	table, err := compare.New(runs)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// byContribution are the positions of the groups, the largest contributions to the difference
// first.
func byContribution(table *compare.Table) []int {
	out := make([]int, len(table.Groups))
	for i := range out {
		out[i] = i
	}
	size := func(i int) float64 {
		c := table.Groups[i].Contributions[1]
		if c == nil {
			return -1
		}
		return max(*c, -*c)
	}
	slices.SortStableFunc(out, func(a, b int) int {
		switch x, y := size(a), size(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	return out
}

// TestComparedRows filters, sorts and selects rows, by mouse and by keys.
func TestComparedRows(t *testing.T) {
	t.Parallel()
	table := versions(t)
	s := open(t, "compared", "#/summary?tab=layers", 1280, 900)
	s.wait(rowsFit(len(table.Groups)))
	order := byContribution(table)
	if got := s.firstRows(8); !slices.Equal(got, order[:8]) {
		t.Errorf("the first rows are %v, want those with the largest contribution, %v", got, order[:8])
	}
	if n := eval[int](s, `document.querySelectorAll("main tbody tr").length`); n > 60 {
		t.Errorf("%d of %d rows exist, want those that are visible", n, len(table.Groups))
	}
	if got := eval[[]string](s, `[...document.querySelectorAll("main th[aria-sort]")].map((h) => h.ariaSort)`); !slices.Equal(got, []string{"descending"}) {
		t.Errorf("sorted columns %q", got)
	}
	s.must(s.Do(chromedp.Click(`//main//thead//th[contains(., "version 1")]//button[contains(@class, "sort")]`)))
	s.wait(`location.hash.includes("sort=-run%3A1") && document.querySelector("main th[aria-sort=descending]").innerText.includes("version 1")`)

	slower, removed := 0, 0
	for i := range table.Groups {
		g := &table.Groups[i]
		if len(g.Layers[1]) == 0 {
			removed++
		} else if g.Ratios[1].Verdict == compare.Slower {
			slower++
		}
	}
	s.choose(`select[aria-label="Result"]`, "▲")
	s.wait(rowsFit(slower))
	s.show("#/summary?tab=layers&status=removed")
	s.wait(rowsFit(removed))
	s.show("#/summary?tab=layers")
	s.wait(rowsFit(len(table.Groups)))
	s.choose(`select[aria-label="Layers"]`, "inserted")
	s.wait(rowsFit(4))
	s.show("#/summary?tab=layers")
	s.must(s.Press(kb.Escape)) // leaves the field
	s.must(s.Press("/"))
	s.must(s.Press("made/anew softmax"))
	s.wait(`document.querySelector("main").innerText.includes("No matching rows")`)
	s.must(s.Do(chromedp.Click(`//main//button[contains(., "Show all")]`)))
	s.wait(rowsFit(len(table.Groups)))

	// Keys within the table, and from row to row.
	s.show("#/summary?tab=layers&sort=index")
	s.wait(`document.querySelector("main th[aria-sort=ascending]")`)
	s.must(s.Do(chromedp.Focus(`main tbody tr[tabindex="0"]`)))
	s.must(s.Press(kb.Home + kb.ArrowDown + kb.ArrowDown + kb.ArrowDown + kb.Enter))
	s.wait(`document.querySelector("aside h2")?.innerText.startsWith("#3 ") && document.querySelector("main tr[aria-selected=true]").cells[0].innerText === "3"`)
	text := eval[string](s, `document.querySelector("aside").innerText`)
	for _, want := range []string{"slower", "95 % CI", "made/up → made/anew", "version 0", "float32 1×16×16×", "#3 ADD"} {
		if !strings.Contains(text, want) {
			t.Errorf("the panel lacks %q:\n%s", want, text)
		}
	}
	s.must(s.Press("n"))
	s.wait(`document.querySelector("aside h2").innerText.startsWith("#4 ")`)
	s.must(s.Press("p"))
	s.wait(`document.querySelector("aside h2").innerText.startsWith("#3 ")`)
	s.must(s.Press(kb.Escape))
	s.wait(`!document.querySelector("aside")`)
	s.must(s.Do(chromedp.Focus(`main tbody tr[tabindex="0"]`)))
	s.must(s.Press(kb.End + kb.Enter))
	s.wait(fmt.Sprintf(`document.querySelector("aside h2")?.innerText.startsWith("#%d ")`, len(table.Groups)-1))
	// The keys of the views.
	s.must(s.Press("3"))
	s.wait(`document.querySelector("nav [aria-current=page]").innerText === "Graph" && document.querySelector("main canvas")`)
	s.must(s.Press("1"))
	s.wait(`document.querySelector("main table.whole")`)
}

// TestComparedSaved saves the rows and reads them back.
func TestComparedSaved(t *testing.T) {
	t.Parallel()
	table := versions(t)
	s := open(t, "compared", "#/summary?tab=layers&sort=index", 1280, 900)
	s.wait(rowsFit(len(table.Groups)))
	dir := t.TempDir()
	s.must(s.Downloads(dir))
	s.must(s.Do(chromedp.Click(`//main//button[text()="CSV"]`)))
	rows := readCSV(t, dir)
	if len(rows) != 1+len(table.Groups) || rows[4][0] != "3" || rows[4][4] != "slower" {
		t.Errorf("%d rows, the fourth is %q", len(rows), rows[4])
	}
}

// TestComparedWaterfall adds up the lines that are shown.
func TestComparedWaterfall(t *testing.T) {
	t.Parallel()
	w := versions(t).Waterfalls[0]
	s := open(t, "compared", "#/summary", 1280, 900)
	lines := eval[[][]string](s, `[...document.querySelectorAll("main section.card tbody tr")].map((r) => [r.cells[0].innerText, r.cells[2].innerText])`)
	if len(lines) != len(w.Steps)+3 || lines[0][0] != "version 0" || lines[len(lines)-1][0] != "version 1" || !strings.HasPrefix(lines[len(lines)-2][0], "Rest") {
		t.Fatalf("lines %q", lines)
	}
	// A step is a link to its row, or to its rows.
	s.must(s.Do(chromedp.Click(`main section.card tbody tr:nth-child(2) button`)))
	s.wait(fmt.Sprintf(`document.querySelector("aside h2")?.innerText.startsWith("#%d ")`, w.Steps[0].Groups[0]))
	s.must(s.Do(chromedp.Click(`main section.card a`)))
	last := w.Steps[slices.IndexFunc(w.Steps, func(st compare.Step) bool { return len(st.Groups) > 1 })]
	s.wait(rowsFit(len(last.Groups)))
}

// TestComparedGraph opens groups, goes to rows that were inserted, and shows them in the panel.
func TestComparedGraph(t *testing.T) {
	t.Parallel()
	s := open(t, "compared", "#/summary?tab=graph", 1280, 900)
	legend := eval[string](s, `document.querySelector("main .legend").innerText`)
	for _, want := range []string{"▲", "▼", "=", "?", "+", "−", "slower", "faster", "equal", "undecided", "inserted: 4", "removed: 4"} {
		if !strings.Contains(legend, want) {
			t.Errorf("the legend lacks %q: %s", want, legend)
		}
	}
	s.must(s.Do(chromedp.Click(`//main//button[contains(., "next inserted")]`)))
	s.wait(`location.hash.includes("toggled=") && document.querySelector("aside").innerText.includes("inserted")`)
	s.wait(`document.querySelector("main [aria-live]").innerText.includes("inserted")`)
	s.picture("compared-graph-open")
	// The canvas is a field for keys: along an edge to the next row.
	at := eval[string](s, `document.querySelector("aside h2").innerText`)
	s.must(s.Do(chromedp.Focus(`main canvas[role=application]`)))
	s.must(s.Press(kb.ArrowDown))
	s.wait(`document.querySelector("aside h2").innerText !== ` + quote(at))
	s.must(s.Do(chromedp.Click(`//main//button[contains(., "Open all")]`)))
	s.wait(`location.hash.includes("open=all")`)
	s.picture("compared-graph-all")
	s.must(s.Do(chromedp.Click(`main details summary`)))
	s.wait(`document.querySelectorAll("main details tbody tr").length > 100`)
}

// TestComparedSeveral chooses the run that is compared.
func TestComparedSeveral(t *testing.T) {
	t.Parallel()
	s := open(t, "several compared", "#/summary", 1280, 900)
	if n := eval[int](s, `document.querySelectorAll("main table.whole thead th").length`); n != 4 {
		t.Errorf("%d columns of runs, want 4", n)
	}
	s.choose(`header select`, "version 3")
	s.wait(`location.hash.includes("run=3") && document.querySelector("main section.card h3").innerText === "From version 0 to version 3"`)
}

// TestComparedHostile looks for what names may have done, and that they are shown.
func TestComparedHostile(t *testing.T) {
	t.Parallel()
	for _, tab := range []string{"summary", "layers", "graph"} {
		s := open(t, "hostile compared", "#/summary?row=3&q=%3Cimg&tab="+tab, 1280, 900)
		s.must(s.Hover(500, 500))
		s.must(s.Settle())
		if eval[bool](s, `"__pwned" in window`) {
			t.Fatalf("%s: a name was run as a script", tab)
		}
		for _, e := range eval[[]string](s, `[...document.querySelectorAll("body img, body iframe, body style, [onerror], [onload], a[href^='javascript:' i]")].map((e) => e.outerHTML.slice(0, 200))`) {
			t.Errorf("%s: the page holds %s", tab, e)
		}
		if !eval[bool](s, `document.body.textContent.includes('<img src=x onerror="window.__pwned=1">')`) {
			t.Errorf("%s: a name is not shown", tab)
		}
	}
}

// TestComparedLittle opens comparisons of profiles that have next to nothing.
func TestComparedLittle(t *testing.T) {
	t.Parallel()
	bare := func(s float64, layers ...profile.Layer) *profile.Profile {
		p := &profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "little"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost}, Layers: layers}
		p.Totals.Latency = profile.Value(profile.Measured, s, "")
		return p
	}
	for name, ps := range map[string][]*profile.Profile{
		"no layers":        {bare(1), bare(2)},
		"layers of one":    {bare(1), bare(2, profile.Layer{Op: "ADD", State: profile.Ran, Latency: profile.Value(profile.Measured, 1, "")})},
		"layers of no use": {bare(1, profile.Layer{Op: "ADD", State: profile.Ran}), bare(1, profile.Layer{Op: "MUL", State: profile.Ran})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table, err := compare.New([]compare.Named{{Profile: ps[0]}, {Profile: ps[1]}})
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "little.html")
			if err := report.VersusFile(file, table, report.VersusOptions{}); err != nil {
				t.Fatal(err)
			}
			s := openFile(t, file, "", 1280, 900)
			for _, tab := range []string{"summary", "layers", "graph"} {
				s.show("#/summary?row=0&tab=" + tab)
				text := eval[string](s, `document.body.innerText`)
				if m := regexp.MustCompile(`\b(NaN|undefined|null|Infinity|\[object \w+\])\b`).FindString(text); m != "" {
					t.Errorf("%s shows %s:\n%s", tab, m, text)
				}
				for _, v := range s.audit() {
					t.Errorf("%s: %s", tab, v)
				}
			}
		})
	}
}

// TestComparedApart: figures that do not compare have a reason, and neither verdict nor sign.
func TestComparedApart(t *testing.T) {
	t.Parallel()
	ps := sample.Versions(20, 2, false)
	ps[0].Settings.Batch, ps[1].Settings.Batch = new(int64(1)), new(int64(8))
	table, err := compare.New([]compare.Named{{Name: "one", Profile: ps[0]}, {Name: "eight", Profile: ps[1]}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "apart.html")
	if err := report.VersusFile(file, table, report.VersusOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, width := range []int{1280, 500} {
		s := openFile(t, file, "", width, 900)
		for _, tab := range []string{"summary", "layers", "graph"} {
			s.show("#/summary?row=0&tab=" + tab)
			text := strings.ReplaceAll(eval[string](s, `document.body.innerText`), "▲ more, ▼ less", "")
			if m := regexp.MustCompile(`[▲▼] ?[\w+−]|slower|faster`).FindString(text); m != "" {
				t.Errorf("%s, %d px: shows %q", tab, width, m)
			}
			if tab == "summary" && !strings.Contains(text, "do not compare, other batch sizes") {
				t.Errorf("%d px: no reason in\n%s", width, text)
			}
			for _, v := range s.audit() {
				t.Errorf("%s, %d px: %s", tab, width, v)
			}
		}
	}
}

// TestComparedPrint prints the summary with all rows, however many are visible.
func TestComparedPrint(t *testing.T) {
	t.Parallel()
	table := versions(t)
	s := open(t, "compared", "#/summary", 1280, 900)
	eval[any](s, `dispatchEvent(new Event("beforeprint")), null`)
	s.wait(fmt.Sprintf(`document.querySelector("main table.whole") && document.querySelectorAll("main table[role=grid] tbody tr").length === %d`, len(table.Groups)))
	eval[any](s, `dispatchEvent(new Event("afterprint")), null`)
	s.wait(`!document.querySelector("main table[role=grid]")`)
	pdf, err := s.PDF()
	s.must(err)
	if n := len(regexp.MustCompile(`/Type\s*/Page\b`).FindAll(pdf, -1)); n < 3 {
		t.Errorf("%d printed pages, want those of the summary and of %d rows", n, len(table.Groups))
	}
}

// TestComparedAddress opens addresses with nonsense: it must not break the page.
func TestComparedAddress(t *testing.T) {
	t.Parallel()
	for _, hash := range []string{"#/summary?tab=__proto__&run=9&row=1e9&sort=constructor", "#/layers?tab=layers&status=%00&kind=x&step=99&sort=-run:77&row=-3", "#/summary?tab=graph&node=__proto__&toggled=root,l1,x&q=%5B("} {
		s := open(t, "compared", hash, 1280, 900)
		s.must(s.Settle())
	}
}

// TestComparedLarge opens a comparison of two profiles of 2,000 layers. It holds the page to its
// work, never to a time: ./bench -check does that.
func TestComparedLarge(t *testing.T) {
	t.Parallel()
	file, err := speed.Compared(t.TempDir(), 2000, 2, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := browser.Path(); err == nil {
		b, err := chromium()
		if err != nil {
			t.Fatal(err)
		}
		for _, tab := range []string{"summary", "layers", "graph"} {
			ms, err := speed.Open(b, file, "#/summary?tab="+tab, 1)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Printf("comparison of 2000 layers: %s in %.0f ms\n", tab, ms)
		}
	}
	s := openFile(t, file, "#/summary?tab=layers", 1280, 900)
	s.wait(shown)
	s.wait(rowsFit(2040))
	if n := eval[int](s, `document.querySelectorAll("main tbody tr").length`); n > 60 {
		t.Errorf("%d rows exist", n)
	}
	s.must(s.Do(chromedp.Focus(`main tbody tr[tabindex="0"]`)))
	s.must(s.Press(kb.End))
	s.wait(`document.activeElement.dataset.row === "2039"`)
}
