package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
)

// filled adds runs of one series to the results of a server.
func (v *service) filled(n int) {
	v.t.Helper()
	file := filepath.Join(v.t.TempDir(), "kws"+profile.Extension)
	if err := profile.Write(file, sample.New(sample.Options{Layers: 2})); err != nil {
		v.t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		v.t.Fatal(err)
	}
	hash := sha256.Sum256(text)
	v.request(http.MethodPut, "api/v1/files/"+hex.EncodeToString(hash[:]), "application/octet-stream", text)
	var jobs []string
	for i := range n {
		var j struct {
			ID string `json:"id"`
		}
		answer := v.request(http.MethodPost, "api/v1/jobs", "application/json", fmt.Appendf(nil, `{"project":"many","kind":"saved","inputs":[{"name":"kws.opmeter","hash":"%x"}],"labels":{"commit":"%012d"}}`, hash, i))
		if err := json.Unmarshal(answer, &j); err != nil {
			v.t.Fatalf("%v in %s", err, answer)
		}
		jobs = append(jobs, j.ID)
	}
	for _, id := range jobs {
		v.request(http.MethodGet, "api/v1/jobs/"+id+"/events", "", nil) // ends with the job
	}
}

// TestServerManyRuns shows a long list part by part, and moves many runs to the bin and back.
func TestServerManyRuns(t *testing.T) {
	const n = 55
	v := serve(t)
	v.filled(n)
	s := v.open("/runs", 1400, "")
	rows := func(n int) string { return fmt.Sprintf(`document.querySelectorAll("main tbody tr").length === %d`, n) }
	click := func(text string) {
		t.Helper()
		s.must(s.Do(chromedp.Click(`//button[contains(., "` + text + `")]`)))
	}
	s.wait(rows(50))
	click("Show more")
	s.wait(rows(n))
	if eval[bool](s, `[...document.querySelectorAll("main button")].some((b) => b.innerText === "Show more")`) {
		t.Error("there is more after the end of the list")
	}
	commits := eval[string](s, `[...document.querySelectorAll("main tbody code")].map((c) => c.innerText).join()`)
	for i := range n {
		if !strings.Contains(commits, fmt.Sprintf("%012d", i)) {
			t.Fatalf("run %d is not in the list", i)
		}
	}

	// One by the keyboard, then all of them.
	s.must(s.Do(chromedp.Focus(`main tbody input`)))
	s.must(s.Press(" "))
	s.wait(`document.querySelector("main [role=status]")?.innerText.startsWith("1 selected") && document.querySelector("main thead input").indeterminate`)
	s.must(s.Do(chromedp.Focus(`main thead input`)))
	s.must(s.Press(" "))
	s.wait(`document.querySelector("main [role=status]").innerText.startsWith("55 selected")`)
	for _, fault := range s.audit() {
		t.Error("selected: " + fault)
	}
	s.picture("server-selected")
	click("Delete")
	s.wait(`document.querySelector("main .empty") && document.querySelector(".toast")?.innerText.includes("55 runs are in the bin")`)
	click("Undo")
	s.wait(rows(50) + ` && !document.querySelector("main [role=status]")`)

	// Some, and back from the bin.
	eval[any](s, `([...document.querySelectorAll("main tbody input")].slice(0, 3).forEach((c) => c.click()), null)`)
	click("Delete")
	s.wait(`document.querySelector(".toast")?.innerText.includes("3 runs are in the bin")`)
	s.must(s.Do(chromedp.Click(`main a[href="/runs?bin=1"]`)))
	s.wait(rows(3))
	v.look("bin-several", "/runs?bin=1", rows(3))
	s.must(s.Do(chromedp.Click(`main thead input`)))
	s.must(s.Do(chromedp.Click(`main .panel button.primary`)))
	s.wait(`document.querySelector("main .empty") && document.querySelector(".toast")?.innerText.includes("3 runs are back")`)
	v.look("many-runs", "/runs", rows(50))
}
