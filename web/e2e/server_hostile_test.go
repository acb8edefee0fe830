package e2e

import (
	"bufio"
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

	report "github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
)

// call sends a request of the API and returns its answer.
func (v *service) call(method, path, kind string, body io.Reader) map[string]any {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), method, v.url+"api/v1"+path, body)
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		v.t.Fatalf("%s %s: %s, %v: %.500s", method, path, res.Status, err, text)
	}
	out := map[string]any{}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &out); err != nil {
			v.t.Fatal(err)
		}
	}
	return out
}

func (v *service) send(method, path string, body any) map[string]any {
	v.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		v.t.Fatal(err)
	}
	return v.call(method, path, "application/json", bytes.NewReader(text))
}

// ended starts a job with a file and returns how it ended.
func (v *service) ended(kind, name string, content []byte, evil func(longest int) string) map[string]any {
	v.t.Helper()
	sum := sha256.Sum256(content)
	hash := hex.EncodeToString(sum[:])
	v.call("PUT", "/files/"+hash, "application/octet-stream", bytes.NewReader(content))
	// Names of projects and tags show all their characters.
	shown := func(longest int) string {
		return strings.TrimSpace(strings.Map(func(r rune) rune {
			if report.Hidden(r) {
				return -1
			}
			return r
		}, evil(longest)))
	}
	job := v.send("POST", "/jobs", map[string]any{
		"project": "p" + shown(190), "kind": kind, "inputs": []any{map[string]any{"name": evil(150) + name, "hash": hash}},
		"labels": map[string]any{"branch": evil(200), "commit": evil(200), "pull": "7", "note": evil(4000)},
		"tags":   []any{shown(200), "tag", shown(100)},
	})
	req, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.url+"api/v1/jobs/"+job["id"].(string)+"/events", nil)
	if err != nil {
		v.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(data), &job); err != nil {
				v.t.Fatal(err)
			}
		}
	}
	return job
}

// TestServerHostileNames shows names that try to break the page in every view. None of them may
// run, load anything, or turn the direction of a line.
func TestServerHostileNames(t *testing.T) {
	v := serve(t)
	n := 0
	evil := func(longest int) string {
		var b strings.Builder
		for range sample.Hostile {
			n++
			if text := sample.Hostile[n%len(sample.Hostile)]; b.Len()+len(text) <= longest {
				b.WriteString(text)
			}
		}
		return strings.ToValidUTF8(b.String(), "?")
	}
	var runs []string
	project := ""
	for i := range 2 {
		file := filepath.Join(t.TempDir(), fmt.Sprint(i, ".opmeter"))
		p := sample.New(sample.Options{Samples: true, Hostile: true})
		p.Model.Name += fmt.Sprint(i) + evil(300)
		if err := profile.Write(file, p); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		job := v.ended("saved", ".opmeter", content, evil)
		if job["state"] != "done" {
			t.Fatalf("job %v", job)
		}
		runs = append(runs, job["runs"].([]any)[0].(string))
		project = job["project"].(string)
	}
	failed := v.ended("profile", ".onnx", []byte(evil(1000)), evil)
	if failed["state"] != "failed" {
		t.Fatalf("job %v", failed)
	}
	v.send("POST", "/tokens", map[string]any{"name": evil(200), "role": "read"})
	deleted := v.ended("saved", ".opmeter", mustRead(t, runs[0], v), evil)["runs"].([]any)[0].(string)
	v.call("DELETE", "/runs/"+deleted, "", nil)

	const hidden = `/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/.exec(document.body.innerText)`
	for path, ready := range map[string]string{
		"/":                              `document.querySelectorAll("main tbody tr").length >= 2`,
		"/runs":                          `document.querySelectorAll("main tbody tr").length >= 2`,
		"/runs?tag=tag":                  `document.querySelectorAll("main tbody tr").length >= 2`,
		"/runs?bin=1":                    `document.querySelectorAll("main tbody tr").length >= 1`,
		"/runs/" + runs[0]:               framed,
		"/jobs/" + failed["id"].(string): `document.querySelector("main .error")`,
		"/compare?runs=" + strings.Join(runs, ","): framed,
		"/projects":            `document.querySelector("main li a")`,
		"/projects/" + project: `document.querySelectorAll("main tbody tr").length >= 1`,
		"/settings":            `document.querySelectorAll("main table").length === 2`,
	} {
		s := v.open(path, 1400, "")
		s.wait(ready)
		if eval[bool](s, `"__pwned" in window`) {
			t.Errorf("%s: a name ran as a script", path)
		}
		if found := eval[any](s, hidden+`?.[0].codePointAt(0) ?? null`); found != nil {
			t.Errorf("%s shows the hidden character %v", path, found)
		}
		if got := eval[int](s, `document.querySelectorAll("main script, main svg[onload], main img[src=x], main a[href^='javascript:']").length`); got != 0 {
			t.Errorf("%s: %d elements come from names", path, got)
		}
		s.Close()
	}
}

// mustRead returns the profile of a run.
func mustRead(t *testing.T, run string, v *service) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, v.url+"runs/"+run+"/profile", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
