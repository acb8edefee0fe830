package push

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/server/work"
)

func TestRecognise(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env     map[string]string
		service string
		want    Labels
	}{
		{map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_SHA": "abc", "GITHUB_REF_NAME": "main", "GITHUB_REF": "refs/heads/main"}, "GitHub Actions", Labels{"main", "abc", ""}},
		{map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_SHA": "abc", "GITHUB_HEAD_REF": "topic", "GITHUB_REF_NAME": "7/merge", "GITHUB_REF": "refs/pull/7/merge"}, "GitHub Actions", Labels{"topic", "abc", "7"}},
		{map[string]string{"GITLAB_CI": "true", "CI_COMMIT_SHA": "def", "CI_COMMIT_REF_NAME": "topic", "CI_MERGE_REQUEST_IID": "12"}, "GitLab CI", Labels{"topic", "def", "12"}},
		{map[string]string{"TF_BUILD": "True", "BUILD_SOURCEVERSION": "1", "BUILD_SOURCEBRANCH": "refs/heads/a/b"}, "Azure Pipelines", Labels{"a/b", "1", ""}},
		{map[string]string{"CIRCLECI": "true", "CIRCLE_SHA1": "2", "CIRCLE_BRANCH": "b", "CIRCLE_PULL_REQUEST": "https://example.org/o/r/pull/9"}, "CircleCI", Labels{"b", "2", "9"}},
		{map[string]string{"BUILDKITE": "true", "BUILDKITE_COMMIT": "3", "BUILDKITE_BRANCH": "c", "BUILDKITE_PULL_REQUEST": "false"}, "Buildkite", Labels{"c", "3", ""}},
		{map[string]string{"JENKINS_URL": "x", "GIT_COMMIT": "4", "GIT_BRANCH": "d"}, "Jenkins", Labels{"d", "4", ""}},
		{map[string]string{"GITHUB_SHA": "not in a job"}, "", Labels{}},
	} {
		got, service := Recognise(func(k string) string { return c.env[k] })
		if got != c.want || service != c.service {
			t.Errorf("%v: %+v of %q, expected %+v of %q", c.env, got, service, c.want, c.service)
		}
	}
}

// fake is a server that has done each job after two questions.
type fake struct {
	t        *testing.T
	jobs     map[string]map[string]any
	keys     []string
	uploaded map[string]string
	asked    int
	problem  string
	run      string
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/api/v1")
	answer := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(v); err != nil {
			f.t.Error(err)
		}
	}
	switch hash, file := strings.CutPrefix(path, "/files/"); {
	case file && r.Method == http.MethodHead:
		w.Header().Set("Upload-Offset", "0")
		w.WriteHeader(http.StatusNoContent)
	case file:
		b, err := io.ReadAll(r.Body)
		if err != nil {
			f.t.Error(err)
		}
		f.uploaded[hash] = string(b)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPost:
		var job map[string]any
		if err := json.NewDecoder(r.Body).Decode(&job); err != nil {
			f.t.Error(err)
		}
		key := r.Header.Get("Idempotency-Key")
		f.keys = append(f.keys, key)
		f.jobs[key] = job
		answer(http.StatusCreated, map[string]any{"id": key, "state": "waiting"})
	default:
		id := strings.TrimPrefix(path, "/jobs/")
		f.asked++
		switch {
		case f.asked%2 == 1:
			answer(http.StatusOK, map[string]any{"id": id, "state": "running"})
		case f.problem != "":
			answer(http.StatusOK, map[string]any{"id": id, "state": "failed", "error": f.problem})
		default:
			answer(http.StatusOK, map[string]any{"id": id, "state": "done", "runs": []string{cmp.Or(f.run, "r1")}})
		}
	}
}

func TestPush(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	model, record := write("net.onnx", "model"), write("trace.json", "record")
	write("results/deep/a.opmeter", "profile")
	write("results/notes.txt", "no profile")
	f := &fake{t: t, jobs: map[string]map[string]any{}, uploaded: map[string]string{}}
	h := httptest.NewServer(f)
	defer h.Close()
	var out bytes.Buffer
	o := Options{
		Server: &work.Remote{URL: h.URL + "/", Client: h.Client()}, Project: "p", Paths: []string{model, record, filepath.Join(dir, "results")},
		Labels: Labels{Commit: "abc"}, Tags: []string{"nightly"}, Wait: true, Poll: func(context.Context) {}, Out: &out,
	}
	if err := Push(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	kinds := []string{work.Profile, work.Import, work.Saved}
	for i, key := range f.keys {
		if j := f.jobs[key]; j["kind"] != kinds[i] || j["project"] != "p" || j["labels"].(map[string]any)["commit"] != "abc" {
			t.Errorf("job %v", j)
		}
	}
	if len(f.keys) != 3 || len(f.uploaded) != 3 || strings.Count(out.String(), h.URL+"/runs/r1\n") != 3 {
		t.Errorf("keys %v, files %v\n%s", f.keys, f.uploaded, &out)
	}
	// The same again has the same keys; another commit has others.
	first := f.keys
	f.keys = nil
	if err := Push(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	if strings.Join(first, " ") != strings.Join(f.keys, " ") {
		t.Errorf("keys %v, then %v", first, f.keys)
	}
	o.Labels.Commit, f.keys = "def", nil
	if err := Push(t.Context(), &o); err != nil || f.keys[0] == first[0] {
		t.Errorf("keys of another commit %v, %v", f.keys, err)
	}
	f.problem = "broken model"
	if err := Push(t.Context(), &o); err == nil || strings.Count(err.Error(), "broken model") != 3 {
		t.Errorf("failed jobs: %v", err)
	}
	// Names of files and answers of the server reach the terminal without control characters.
	f.problem, f.run = "", "r\x1b]0;title\a\u202e\u009b"
	out.Reset()
	o.Paths = []string{write("a\x1b[31m\nb\u202e.onnx", "model")}
	if err := Push(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	if line := strings.TrimSuffix(out.String(), "\n"); !strings.Contains(line, "/runs/r") || strings.ContainsFunc(line, text.Hidden) {
		t.Errorf("printed %q", line)
	}
	f.problem = "broken model"
	o.Paths = []string{filepath.Join(dir, "results", "deep", "a.opmeter"), t.TempDir()}
	if err := Push(t.Context(), &o); err == nil || !strings.Contains(err.Error(), "no profile") {
		t.Errorf("folder without a profile: %v", err)
	}
}
