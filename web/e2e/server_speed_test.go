package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/web/e2e/speed"
)

// TestMillionBarsServed opens the timeline of a million bars through the server and prints how long
// that takes: the first time, when the page is made, and later. It asserts no time.
func TestMillionBarsServed(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	v := serve(t)
	b, err := chromium()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bars.opmeter")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := sample.New(sample.Options{Layers: 200, Bars: 1_000_000}).Save(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(text)
	v.request(http.MethodPut, "api/v1/files/"+hex.EncodeToString(hash[:]), "application/octet-stream", text)
	job := v.request(http.MethodPost, "api/v1/jobs", "application/json", fmt.Appendf(nil, `{"project":"p","kind":"saved","inputs":[{"name":"bars.opmeter","hash":"%x"}]}`, hash))
	var j struct {
		ID   string   `json:"id"`
		Runs []string `json:"runs"`
	}
	read := func(text []byte) {
		t.Helper()
		if err := json.Unmarshal(text, &j); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
	read(job)
	v.request(http.MethodGet, "api/v1/jobs/"+j.ID+"/events", "", nil) // ends with the job
	read(v.request(http.MethodGet, "api/v1/jobs/"+j.ID, "", nil))
	if len(j.Runs) != 1 {
		t.Fatalf("job %+v", j)
	}
	run := "/runs/" + j.Runs[0]
	shown := func() float64 {
		s := v.open(run, 1280, "")
		defer s.Close()
		s.wait(framed)
		return eval[float64](s, `performance.now()`)
	}
	first, later := shown(), shown()
	fmt.Printf("page of the run: first %.0f ms, later %.0f ms\n", first, later)
	timeline, err := speed.OpenURL(b, v.url+strings.TrimPrefix(run, "/")+"/page#/timeline")
	if err != nil {
		t.Fatal(err)
	}
	alone, err := speed.Page(t.TempDir(), 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	fromDisk, err := speed.Open(b, alone, "#/timeline", 1)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("timeline of a million bars: %.0f ms, from a file %.0f ms\n", timeline, fromDisk)
	if timeline <= 0 || first <= 0 || later <= 0 {
		t.Error("a time is missing")
	}
}

// request sends a request to the API, expects that it succeeds and returns the answer.
func (v *service) request(method, path, kind string, body []byte) []byte {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), method, v.url+path, bytes.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		v.t.Fatalf("%s %s: %s", method, path, res.Status)
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return text
}
