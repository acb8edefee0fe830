package e2e

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
)

// sampleLayers are the layers of the page "sample".
func sampleLayers() []profile.Layer { return sample.New(sample.Options{Samples: true}).Layers }

// rowsFit is true when the table says that it has so many rows.
func rowsFit(n int) string {
	return fmt.Sprintf(`document.querySelector("main table[role=grid]")?.ariaRowCount === "%d"`, n+2)
}

// firstRows returns the indices of the layers in the first rows.
func (s *session) firstRows(n int) []int {
	s.t.Helper()
	var out []int
	for _, text := range eval[[]string](s, `[...document.querySelectorAll("main tbody tr[data-row]")].map((r) => r.cells[0].innerText.trim())`) {
		i, err := strconv.Atoi(text)
		s.must(err)
		if out = append(out, i); len(out) == n {
			break
		}
	}
	return out
}

// choose takes an entry of a select as a reader does: focus, then its first letters.
func (s *session) choose(selector, letters string) {
	s.t.Helper()
	s.must(s.Do(chromedp.Focus(selector)))
	s.must(s.Press(letters))
}

// reopened opens the same address in a fresh tab.
func (s *session) reopened() *session {
	s.t.Helper()
	return open(s.t, "sample", eval[string](s, `location.hash`), 1280, 900)
}

func TestLayersSearchAndFilter(t *testing.T) {
	layers := sampleLayers()
	fit := func(f func(*profile.Layer) bool) int {
		n := 0
		for i := range layers {
			if f(&layers[i]) {
				n++
			}
		}
		return n
	}
	s := open(t, "sample", "#/layers", 1280, 900)
	s.wait(rowsFit(len(layers)))
	// The key for searching leads into the field from anywhere.
	s.must(s.Press("/"))
	s.must(s.Press("stage1 conv"))
	in1 := fit(func(l *profile.Layer) bool {
		return strings.HasPrefix(l.Scope, "stage1") && strings.Contains(l.Op, "CONV")
	})
	if in1 == 0 || in1 == len(layers) {
		t.Fatalf("%d layers fit the search", in1)
	}
	s.wait(rowsFit(in1))
	s.reopened().wait(rowsFit(in1))
	s.must(s.Press(kb.Escape))

	s.choose(`select[aria-label="Operator"]`, "DEPTH")
	deep := fit(func(l *profile.Layer) bool {
		return strings.HasPrefix(l.Scope, "stage1") && l.Op == "DEPTHWISE_CONV_2D"
	})
	s.wait(rowsFit(deep))
	if got := eval[[]string](s, `[...document.querySelectorAll("main tbody tr")].map((r) => r.cells[1].innerText.trim())`); slices.ContainsFunc(got, func(op string) bool { return op != "DEPTHWISE_CONV_2D" }) || len(got) != deep {
		t.Errorf("rows %q", got)
	}
	s.reopened().wait(rowsFit(deep))

	// What became of layers, and which unit does their work.
	s.show("#/layers?state=unsupported")
	s.wait(rowsFit(fit(func(l *profile.Layer) bool { return l.State == profile.Unsupported })))
	s.show("#/layers?on=cpu")
	s.wait(rowsFit(fit(func(l *profile.Layer) bool { return l.Placement != nil && l.Placement.On == profile.CPU })))
	s.show("#/layers?q=stage1+conv&op=DEPTHWISE_CONV_2D")
	s.wait(rowsFit(deep))

	// The key selects what is there, so that typing replaces it.
	s.must(s.Do(chromedp.Focus(`nav a`)))
	s.must(s.Press("/"))
	s.must(s.Press("nothing like this"))
	s.wait(`document.querySelector("main").innerText.includes("No matching layers")`)
	s.must(s.Do(chromedp.Click(`//main//button[contains(., "Show all")]`)))
	s.wait(rowsFit(len(layers)))
}

func TestLayersSort(t *testing.T) {
	layers := sampleLayers()
	byTime := make([]int, len(layers))
	for i := range byTime {
		byTime[i] = i
	}
	// Slowest first; what has no time comes last in either direction.
	time := func(i int) float64 {
		if m := layers[i].Latency; m != nil {
			return *m.Median
		}
		return -1
	}
	slices.SortStableFunc(byTime, func(a, b int) int {
		switch ta, tb := time(a), time(b); {
		case ta > tb:
			return -1
		case ta < tb:
			return 1
		}
		return 0
	})
	s := open(t, "sample", "#/layers", 1280, 900)
	s.wait(rowsFit(len(layers)))
	if got := s.firstRows(8); !slices.Equal(got, byTime[:8]) {
		t.Errorf("the first rows are %v, want the slowest, %v", got, byTime[:8])
	}
	s.must(s.Do(chromedp.Click(`//main//thead//button[contains(@class, "sort")][1]`)))
	s.wait(`location.hash.includes("sort=index")`)
	if got := s.firstRows(8); !slices.Equal(got, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("as they run: %v", got)
	}
	head := `//main//thead//th[contains(., "Time")]//button[contains(@class, "sort")]`
	s.must(s.Do(chromedp.Click(head)))
	s.wait(`document.querySelector("main th[aria-sort=descending]")`)
	if got := s.firstRows(8); !slices.Equal(got, byTime[:8]) {
		t.Errorf("slowest first: %v, want %v", got, byTime[:8])
	}
	if got := s.reopened().firstRows(8); !slices.Equal(got, byTime[:8]) {
		t.Errorf("after opening the address: %v, want %v", got, byTime[:8])
	}
	s.must(s.Do(chromedp.Click(head)))
	s.wait(`document.querySelector("main th[aria-sort=ascending]")`)
	timed := slices.DeleteFunc(slices.Clone(byTime), func(i int) bool { return time(i) < 0 })
	slices.Reverse(timed)
	if got := s.firstRows(8); !slices.Equal(got, timed[:8]) {
		t.Errorf("fastest first: %v, want %v", got, timed[:8])
	}
}

func TestLayersSelect(t *testing.T) {
	layers := sampleLayers()
	s := open(t, "sample", "#/layers?sort=index", 1280, 900)
	chosen := func(i int) string {
		return fmt.Sprintf(`new URLSearchParams(location.hash.split("?")[1]).get("layer") === "%d" && document.querySelector("aside header").innerText.includes("#%d") &&
			document.querySelector("main tr[aria-selected=true]")?.cells[0].innerText.trim() === "%d"`, i, i, i)
	}
	s.must(s.Do(chromedp.Click(`main tbody tr[data-row="4"]`)))
	s.wait(chosen(4))
	if text := eval[string](s, `document.querySelector("aside").innerText`); !strings.Contains(text, layers[4].Op) || !strings.Contains(text, layers[4].Name) {
		t.Errorf("the panel says %q", text)
	}
	s.must(s.Press("n"))
	s.wait(chosen(5))
	s.must(s.Press("p"))
	s.must(s.Press("p"))
	s.wait(chosen(3))
	s.reopened().wait(chosen(3))
	// The choice goes along to other views and back.
	s.must(s.Press("5"))
	s.wait(`document.querySelector("nav [aria-current=page]").hash.startsWith("#/roofline") && document.querySelector("aside header")?.innerText.includes("#3")`)
	s.must(s.Press("2"))
	s.wait(chosen(3))
	s.must(s.Press(kb.Escape))
	s.wait(`!document.querySelector("aside") && !location.hash.includes("layer=")`)

	// By keys within the table, as the layers run.
	s.show("#/layers?sort=index")
	s.wait(`document.querySelector("main th[aria-sort=ascending]")`)
	s.must(s.Do(chromedp.Focus(`main tbody tr[tabindex="0"]`)))
	s.must(s.Press(kb.Home + kb.ArrowDown + kb.ArrowDown + kb.Enter))
	s.wait(chosen(2))
	s.must(s.Press(kb.End + kb.Enter))
	s.wait(chosen(len(layers) - 1))
	if !eval[bool](s, `(() => { const r = document.activeElement.getBoundingClientRect(), b = document.querySelector("main tfoot").getBoundingClientRect(); return r.height > 0 && r.bottom <= b.top + 1; })()`) {
		t.Error("the last row is not in sight")
	}
}

func TestLayersGroups(t *testing.T) {
	layers := sampleLayers()
	kinds := map[string]int{}
	for _, l := range layers {
		kinds[l.Op]++
	}
	s := open(t, "sample", "#/layers", 1280, 900)
	s.choose(`select[aria-label="Group rows"]`, "By op")
	s.wait(rowsFit(len(kinds)))
	for _, text := range eval[[]string](s, `[...document.querySelectorAll("main tbody tr.group th")].map((e) => e.innerText)`) {
		f := strings.Fields(strings.Trim(text, "▸▾ \n\t"))
		if len(f) != 2 || strconv.Itoa(kinds[f[0]]) != f[1] {
			t.Errorf("group %q, want one of %v", text, kinds)
		}
	}
	op := strings.Fields(eval[string](s, `document.querySelector("main tbody tr.group bdi").innerText`))[0]
	s.must(s.Do(chromedp.Click(`main tbody tr.group`)))
	s.wait(rowsFit(len(kinds) + kinds[op]))
}

// TestLayersFiles copies and saves the table: the figures are those of the profile,
// in base units, and no name of a hostile model reaches a spreadsheet as a formula.
func TestLayersFiles(t *testing.T) {
	layers := sampleLayers()
	dir := t.TempDir()
	s := open(t, "sample", "#/layers?sort=-latency_s&op=CONV_2D", 1280, 900)
	s.must(s.Downloads(dir))
	s.must(s.Allow("clipboard-read"))
	s.must(s.Do(chromedp.Click(`//main//button[.="CSV"]`)))
	table := readCSV(t, dir)
	column := func(name string) int {
		i := slices.Index(table[0], name)
		if i < 0 {
			t.Fatalf("no column %s in %q", name, table[0])
		}
		return i
	}
	index, latency := column("index"), column("latency_s")
	last := 1e9
	want := 0
	for i := range layers {
		if layers[i].Op == "CONV_2D" {
			want++
		}
	}
	if len(table)-1 != want {
		t.Errorf("%d rows, want %d", len(table)-1, want)
	}
	for _, row := range table[1:] {
		i, err := strconv.Atoi(row[index])
		s.must(err)
		if m := layers[i].Latency; m == nil {
			if row[latency] != "" {
				t.Errorf("layer %d has no time, the file %s", i, row[latency])
			}
		} else if v, err := strconv.ParseFloat(row[latency], 64); err != nil || v != *m.Median || v > last {
			t.Errorf("layer %d takes %v, the file has %s after %v (%v)", i, *m.Median, row[latency], last, err)
		} else {
			last = v
		}
	}
	s.must(s.Do(chromedp.Click(`//main//button[.="Copy"]`)))
	s.wait(`document.querySelector("main [role=status]").innerText.includes("copied")`)
	lines := strings.Split(strings.TrimSuffix(eval[string](s, `navigator.clipboard.readText()`), "\n"), "\n")
	if len(lines) != len(table) || lines[0] != strings.Join(table[0], "\t") {
		t.Errorf("%d lines on the clipboard, %d in the file; the first is %q", len(lines), len(table), lines[0])
	}

	dir = t.TempDir()
	h := open(t, "hostile", "#/layers?cols=index,op,name,scope,output,latency_s", 1280, 900)
	h.must(h.Downloads(dir))
	h.must(h.Do(chromedp.Click(`//main//button[.="CSV"]`)))
	table = readCSV(t, dir)
	if len(table) != len(layers)+1 {
		t.Fatalf("%d rows", len(table))
	}
	for _, row := range table[1:] {
		for _, cell := range row {
			if _, err := strconv.ParseFloat(cell, 64); err != nil && strings.ContainsAny(cell[:min(1, len(cell))], "=+-@\t\r") {
				t.Errorf("a spreadsheet computes %.60q", cell)
			}
		}
	}
}

// readCSV waits for the one file of a folder and reads it.
func readCSV(t *testing.T, dir string) [][]string {
	t.Helper()
	for range 500 {
		files, err := filepath.Glob(filepath.Join(dir, "*.csv"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 1 {
			b, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			table, err := csv.NewReader(strings.NewReader(string(b))).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			return table
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("nothing was saved")
	return nil
}

// TestTheme switches the theme, which must win over the system's and last.
func TestTheme(t *testing.T) {
	s := open(t, "sample", "#/summary", 1280, 900)
	scheme := func() bool {
		return eval[string](s, `getComputedStyle(document.body).backgroundColor`) == "rgb(255, 255, 255)"
	}
	button := `button[aria-label^="Theme"]`
	for _, system := range []string{"light", "dark"} {
		s.must(s.Media("screen", system))
		s.wait(`document.querySelector('button[aria-label="Theme: system"]')`)
		if scheme() != (system == "light") {
			t.Errorf("the system is %s, the page is not", system)
		}
		for _, choice := range []string{"light", "dark", "system"} {
			s.must(s.Do(chromedp.Click(button)))
			s.wait(`document.querySelector('button[aria-label="Theme: ` + choice + `"]')`)
			want := choice
			if choice == "system" {
				want = system
			} else {
				// Opening the page again keeps the choice.
				s.must(s.Reload())
				s.wait(shown)
				s.wait(`document.querySelector('button[aria-label="Theme: ` + choice + `"]')`)
			}
			if scheme() != (want == "light") {
				t.Errorf("the system is %s, the choice %s: the page is light: %v", system, choice, scheme())
			}
		}
	}
}

// TestHelp opens the list of keys, which holds the focus and closes by key.
func TestHelp(t *testing.T) {
	s := open(t, "sample", "#/layers", 1280, 900)
	s.must(s.Press("?"))
	s.wait(`document.querySelector("dialog[open]")`)
	for _, v := range s.audit() {
		t.Error(v)
	}
	for range 5 {
		s.must(s.Press(kb.Tab))
		if !eval[bool](s, `document.activeElement === document.body || !!document.activeElement.closest("dialog")`) {
			t.Error("the focus leaves the dialog")
		}
	}
	// Keys of the page rest while the dialog is open.
	s.must(s.Press("3"))
	if hash := eval[string](s, `location.hash`); !strings.HasPrefix(hash, "#/layers") {
		t.Errorf("at %s", hash)
	}
	s.must(s.Press(kb.Escape))
	s.wait(`!document.querySelector("dialog[open]")`)
}
