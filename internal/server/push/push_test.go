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
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/server/work"
	"github.com/opmeter/opmeter/profile/compare"
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
	// base is the run that r1 compares with, "" for none; commits are those asked for.
	base, commits string
	comparison    compare.Table
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
	case path == "/runs/r1":
		answer(http.StatusOK, map[string]any{"id": "r1", "about": map[string]any{"model": "net_1", "target": "host"}})
	case path == "/runs/r1/base" && f.base == "":
		answer(http.StatusNotFound, map[string]any{"status": 404, "detail": "not found"})
	case path == "/runs/r1/base":
		f.commits = r.URL.Query().Get("commits")
		answer(http.StatusOK, map[string]any{"id": f.base, "commit": "0123456789abcdef"})
	case path == "/comparison":
		answer(http.StatusOK, f.comparison)
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
		answer(http.StatusCreated, map[string]any{"id": key, "state": "waiting", "inputs": job["inputs"]})
	default:
		id := strings.TrimPrefix(path, "/jobs/")
		f.asked++
		switch {
		case f.asked%2 == 1:
			answer(http.StatusOK, map[string]any{"id": id, "state": "running"})
		case f.problem != "":
			answer(http.StatusOK, map[string]any{"id": id, "state": "failed", "error": f.problem, "inputs": f.jobs[id]["inputs"]})
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
	// So have another branch, another pull request and other tags; files are stored once.
	for _, change := range []func(){func() { o.Labels.Branch = "main" }, func() { o.Labels.Pull = "5" }, func() { o.Tags = []string{"other"} }} {
		before := f.keys
		f.keys = nil
		change()
		if err := Push(t.Context(), &o); err != nil || f.keys[0] == before[0] {
			t.Errorf("keys of another context %v, %v", f.keys, err)
		}
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
	for line := range strings.Lines(out.String()) {
		if line = strings.TrimSuffix(line, "\n"); !strings.Contains(line, "/runs/r") && !strings.Contains(line, "/compare") || strings.ContainsFunc(line, text.Hidden) {
			t.Errorf("printed %q", line)
		}
	}
	f.problem = "broken model"
	o.Paths = []string{write("empty.onnx", "")}
	if err := Push(t.Context(), &o); err == nil || !strings.HasSuffix(err.Error(), "empty.onnx: the file is empty") {
		t.Errorf("empty file: %v", err)
	}
	o.Paths = []string{filepath.Join(dir, "results", "deep", "a.opmeter"), t.TempDir()}
	if err := Push(t.Context(), &o); err == nil || !strings.Contains(err.Error(), "no profile") {
		t.Errorf("folder without a profile: %v", err)
	}
}

// TestComment compares with the base and writes what changed.
func TestComment(t *testing.T) {
	t.Parallel()
	model := filepath.Join(t.TempDir(), "net.onnx")
	if err := os.WriteFile(model, []byte("model"), 0o600); err != nil {
		t.Fatal(err)
	}
	figure := func(v float64, by float64) compare.Figure {
		f := compare.Figure{Value: &v, Low: new(v * (1 - by)), High: new(v * (1 + by)), Interval: compare.CI95}
		if by == 0 {
			f.Interval = compare.Exact
		}
		return f
	}
	row := func(key string, base, fresh compare.Figure, low, high float64) compare.Row {
		r := compare.Ratio{Value: new(*fresh.Value / *base.Value), Low: &low, High: &high}
		return compare.Row{Key: key, Figures: []compare.Figure{base, fresh}, Ratios: []compare.Ratio{{}, r}, Comparable: []bool{true, true}, Why: []compare.NoteCode{"", ""}}
	}
	other := row("energy_j", figure(1, 0.01), figure(2, 0.01), 1.9, 2.1)
	other.Comparable[1], other.Why[1] = false, compare.Machines
	f := &fake{
		t: t, jobs: map[string]map[string]any{}, uploaded: map[string]string{}, base: "r0",
		comparison: compare.Table{Whole: []compare.Row{
			row("latency_s", figure(1e-3, 0.01), figure(1.2e-3, 0.01), 1.17, 1.23),
			row("inferences_per_s", figure(1000, 0.01), figure(1200, 0.01), 1.15, 1.25),
			row("processor_s", figure(1e-3, 0.2), figure(1.1e-3, 0.2), 0.8, 1.5),
			row("macs", figure(100, 0), figure(101, 0), 1.01, 1.01),
			row("params", figure(7, 0), figure(7, 0), 1, 1),
			row("first_run_s", figure(7, 0), figure(9, 0), 1, 1), // no figure of a gate
			other,
		}},
	}
	h := httptest.NewServer(f)
	defer h.Close()
	var out, comment bytes.Buffer
	o := Options{
		Server: &work.Remote{URL: h.URL, Client: h.Client()}, Project: "a--b>", Paths: []string{model}, Labels: Labels{Commit: "abc"},
		Wait: true, Poll: func(context.Context) {}, Bases: []string{"c2", "c1"}, Out: &out, Comment: &comment,
	}
	if err := Push(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	link := h.URL + "/compare?runs=r0,r1"
	if f.commits != "c2,c1" || !strings.Contains(out.String(), "compared with commit 0123456789: "+link+"\n") {
		t.Errorf("commits %q, output %s", f.commits, &out)
	}
	text := comment.String()
	if first, _, _ := strings.Cut(text, "\n"); first != "<!-- opmeter push a%2D%2Db%3E -->" {
		t.Errorf("first line %q", first)
	}
	for _, want := range []string{
		"**Worse: ", "net\\_1 on host: worse",
		"| Time | 1.00 ms | 1.20 ms | +20.0 % (+17.0 % to +23.0 %) | +5.0 % | **worse** |",
		"| Throughput | 1,000 /s | 1,200 /s | +20.0 % (+15.0 % to +25.0 %) | 0.0 % | better |", "undecided, optional: up to +50.0 % cannot be excluded", "| Multiply-accumulates | 100 | 101 | +1.0 % | 0 | **worse** |",
		"does not compare", "1 more figure is equal", "Note: compared with commit 0123456789",
		"- net\\_1 on host: [profile](<" + h.URL + "/runs/r1>), [comparison](<" + link + ">)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "First run") {
		t.Errorf("a figure without a rule:\n%s", text)
	}
	// The same text comes again, so that a program can compare.
	first := text
	if comment.Reset(); Push(t.Context(), &o) != nil || comment.String() != first {
		t.Errorf("then\n%s", &comment)
	}
	// A named base without a run does not give way to another one.
	comment.Reset()
	out.Reset()
	o.Named, o.Bases = true, []string{"zzz"}
	if err := Push(t.Context(), &o); err != nil || !strings.Contains(out.String(), "not compared: the server has no run") || !strings.Contains(comment.String(), "of the commit zzz that") {
		t.Errorf("%v\n%s\n%s", err, &out, &comment)
	}
	o.Bases = []string{"0123456789abcdef"}
	if err := Push(t.Context(), &o); err != nil || !strings.Contains(out.String(), link) {
		t.Errorf("%v\n%s", err, &out)
	}
	o.Named = false
	// Without a base, and of jobs that fail.
	comment.Reset()
	f.base = ""
	if err := Push(t.Context(), &o); err != nil || !strings.Contains(comment.String(), "no earlier run of this model") || strings.Contains(comment.String(), "[comparison]") {
		t.Errorf("%v\n%s", err, &comment)
	}
	comment.Reset()
	f.problem = "net.onnx: broken <model>"
	if err := Push(t.Context(), &o); err == nil || strings.Count(err.Error(), "net.onnx") != 1 || !strings.Contains(comment.String(), "net.onnx on the server: undecided") || strings.Contains(comment.String(), "<model>") {
		t.Errorf("%v\n%s", err, &comment)
	}
}

func TestBases(t *testing.T) {
	t.Parallel()
	none := func(string) string { return "" }
	empty := t.TempDir()
	if got, err := Bases(t.Context(), empty, "", none); len(got) != 0 || err != nil {
		t.Errorf("no repository: %q, %v", got, err)
	}
	if got, err := Bases(t.Context(), empty, "abc", none); !slices.Equal(got, []string{"abc"}) || err != nil {
		t.Errorf("no repository, a commit is named: %q, %v", got, err)
	}
	dir := t.TempDir()
	git := func(args ...string) string {
		c := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"}, args...)...)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	commit := func() string {
		git("commit", "-q", "--allow-empty", "-m", "x")
		return git("rev-parse", "HEAD")
	}
	git("init", "-q", "-b", "main")
	first, second := commit(), commit()
	git("checkout", "-q", "-b", "topic")
	topic := commit()
	commit()
	if got, err := Bases(t.Context(), dir, "", none); !slices.Equal(got, []string{second, first}) || err != nil {
		t.Errorf("a branch: %q, %v, expected the merge base %s", got, err, second)
	}
	if got, err := Bases(t.Context(), dir, topic, none); !slices.Equal(got, []string{topic}) || err != nil {
		t.Errorf("a commit is named: %q, %v", got, err)
	}
	git("checkout", "-q", "main")
	if got, err := Bases(t.Context(), dir, "", none); !slices.Equal(got, []string{first}) || err != nil {
		t.Errorf("the main branch: %q, %v, expected the parent %s", got, err, first)
	}
	if _, err := Bases(t.Context(), dir, "absent", none); err == nil || !strings.Contains(err.Error(), "--base absent") {
		t.Errorf("an unknown commit: %v", err)
	}
}

// TestKind: the ending of a file says what the server does with it.
func TestKind(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"net.onnx": work.Profile, "NET.TFLITE": work.Profile, "tiny-Q4_K_M.gguf": work.Profile, "net.mltk.zip": work.Profile,
		"a.opmeter": work.Saved, "a.study": work.Saved, "trace.json": work.Import, "records.zip": work.Import,
	} {
		if got := kind(path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}
