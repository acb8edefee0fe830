package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/opmeter/opmeter/profile"
)

// TestServerAlerts follows a change for the worse: the trend that shows it, the alert, the webhook
// that is told, and what is shared of it.
func TestServerAlerts(t *testing.T) {
	v := serve(t)
	told := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		told <- string(b)
	}))
	defer receiver.Close()
	for i := range 20 { // 1 ms, then 1.2 ms
		at := 1e-3 * (1 + 0.001*float64(i*7%5-2))
		if i >= 10 {
			at *= 1.2
		}
		p := &profile.Profile{
			Schema: profile.SchemaV1, Created: fmt.Sprintf("2030-01-%02dT00:00:00Z", i+1),
			Model: profile.Model{Name: "kws"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost},
			Totals: profile.Totals{Latency: &profile.Metric{Kind: profile.Measured, N: new(int64(30)), Median: &at, CI95: &[2]float64{at * 0.99, at * 1.01}}},
		}
		file := filepath.Join(t.TempDir(), fmt.Sprint(i)+profile.Extension)
		if err := profile.Write(file, p); err != nil {
			t.Fatal(err)
		}
		dir, err := programs()
		if err != nil {
			t.Fatal(err)
		}
		push := exec.Command(filepath.Join(dir, "opmeter"), "push", file, "--server", v.url, "--project", "speech", "--branch", "main", "--commit", fmt.Sprintf("%012d", i), "--wait=false")
		if out, err := push.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	s := v.open("/alerts", 1400, "")
	// The jobs end one by one, and the last ones say best where the change is.
	for !strings.Contains(eval[string](s, `document.querySelector("main").innerText`), "000000000010") {
		s.must(s.Reload())
		s.wait(`document.querySelector("main .empty, main tbody tr")`)
	}
	s.wait(`document.querySelector("nav .count")?.innerText.startsWith("1")`)
	if got := eval[string](s, `document.querySelector("main tbody tr").innerText`); !strings.Contains(got, "1.00 ms → 1.20 ms, +20 %") {
		t.Errorf("alert %q", got)
	}
	s.must(s.Do(chromedp.Click(`//main//button[contains(., "Acknowledge")]`)))
	s.wait(`document.activeElement.matches("main td input")`)
	v.look("alert", "/alerts", `document.querySelector("main tbody tr")`)
	narrow := v.open("/alerts", 400, "")
	narrow.wait(`document.querySelector("main tbody tr")`)
	narrow.must(narrow.Do(chromedp.Click(`//main//button[contains(., "Acknowledge")]`)))
	narrow.wait(`document.activeElement.matches("main td input")`)
	if got := eval[bool](narrow, `[...document.querySelectorAll("main tbody td")].every((d) => [d, ...d.querySelectorAll("*")].every((e) => e.getBoundingClientRect().right <= 400)) && document.querySelector("main .scroll").scrollWidth <= 400`); !got {
		t.Error("a row is wider than the page of 400 pixels")
	}
	if got := eval[string](narrow, `getComputedStyle(document.querySelector("main tbody td"), "::before").content`); got != `"Figure"` {
		t.Errorf("the name of the column is %s", got)
	}
	for _, theme := range []string{"light", "dark"} {
		narrow.must(narrow.Media("screen", theme))
		for _, fault := range narrow.audit() {
			t.Errorf("400 pixels, %s: %s", theme, fault)
		}
		narrow.picture("server-alert-" + theme + "-400")
	}
	narrow.Close()
	s.must(s.Press("wider layer" + kb.Enter))
	s.wait(`document.querySelector("main .empty") && !document.querySelector("nav .count")`)
	s.must(s.Do(chromedp.Click(`main input[type=checkbox]`)))
	s.wait(`document.querySelector("main tbody tr")?.innerText.includes("this computer") && document.querySelector("main tbody tr").innerText.includes("wider layer")`)

	// The trend marks the change and lists it.
	s.must(s.Do(chromedp.Click(`main tbody td a`)))
	s.wait(`document.querySelector("main svg line.change.worse")`)
	project := eval[string](s, "location.pathname + location.search")
	if got := eval[string](s, `document.querySelector("main ul[aria-label=Changes]").innerText`); !strings.Contains(got, "median 1.00 ms → 1.20 ms, +20 %, since commit 000000000010") {
		t.Errorf("changes %q", got)
	}
	if got := eval[int](s, `document.querySelectorAll("main svg line.interval").length`); got != 20 {
		t.Errorf("%d intervals, want 20", got)
	}

	// A webhook and its test.
	s.must(s.Do(chromedp.SendKeys(`main input[type=url]`, receiver.URL+kb.Enter)))
	s.wait(`document.querySelector("main .warning code")?.innerText.startsWith("whsec_")`)
	s.must(s.Do(chromedp.Click(`//main//button[contains(., "Send a test")]`)))
	s.wait(`document.querySelector("main div[aria-label=Deliveries] tbody, main [aria-label=Deliveries] tbody")?.innerText.includes("delivered")`)
	if got := <-told; !strings.Contains(got, `"type":"test"`) || !strings.Contains(got, "speech") {
		t.Errorf("told %s", got)
	}

	// A badge.
	s.must(s.Do(chromedp.Click(`//main//button[contains(., "Badge")]`)))
	s.wait(`document.querySelector("dialog[open]")`)
	s.must(s.Do(chromedp.Click(`//dialog//button[contains(., "Make a badge")]`)))
	s.wait(`document.querySelector("dialog[open] code")?.innerText.includes("/badge.svg")`)
	for _, fault := range s.audit() {
		t.Error("badge: " + fault)
	}
	s.picture("server-badge")
	image := eval[string](s, `document.querySelector("dialog[open] code").innerText.match(/\((.*)\)/)[1]`)
	if got := fetched(t, image); !strings.Contains(got, "<title>kws: 1.20 ms</title>") {
		t.Errorf("badge %s", got)
	}
	s.must(s.Do(chromedp.Click(`//dialog[@open]//button[contains(., "Close")]`)))
	v.look("project-changes", project, `document.querySelector("main svg line.change") && document.querySelector("main input[type=url]")`)

	// A link to a run, and its end.
	s.must(s.Do(chromedp.Click(`main ul[aria-label=Changes] a`)))
	s.wait(`location.pathname.startsWith("/runs/") && ` + framed)
	s.must(s.Do(chromedp.Click(`//main//button[contains(., "Share")]`)))
	s.wait(`document.querySelector("dialog[open] input[type=number]")`)
	s.must(s.Do(chromedp.Click(`//dialog[@open]//button[contains(., "Make a link")]`)))
	s.wait(`document.querySelector("dialog[open] code")?.innerText.includes("/shared/")`)
	for _, fault := range s.audit() {
		t.Error("share: " + fault)
	}
	s.picture("server-share")
	link := eval[string](s, `document.querySelector("dialog[open] code").innerText`)
	if got := fetched(t, link); !strings.Contains(got, "kws") {
		t.Errorf("shared page of %d bytes without the model", len(got))
	}
	s.must(s.Do(chromedp.Click(`//dialog[@open]//button[contains(., "Revoke")]`)))
	s.wait(`!document.querySelector("dialog[open] li")`)
	if got := fetched(t, link); !strings.Contains(got, "leads nowhere") {
		t.Errorf("revoked: %.200s", got)
	}
}

// fetched returns what is at an address.
func fetched(t *testing.T, address string) string {
	t.Helper()
	res, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
