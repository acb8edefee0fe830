package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The repository itself passes.
func TestRepository(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if failed, err := run(&out, "../..", false, "", nil); err != nil || failed {
		t.Errorf("%v\n%s", err, &out)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		"tools/prose/clean.txt": "# comment\n\ngood/\n",
		"good/a.md":             "All is well.\n",
		"bad/deep/down/a.md":    "Rooms\n",
		"bad/a.go":              "package bad\n\n// A b: " + strings.Repeat("c", 100) + "\n",
		"bad/testdata/a.md":     "Rooms\n",
	} {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		all    bool
		paths  []string
		failed bool
		want   string
	}{
		"clean": {false, nil, false, ""},
		"path":  {false, []string{"bad/"}, true, "bad/deep/down/a.md:1: dialect"},
		"all":   {true, nil, false, "bad/deep                                 1         0         0"},
	} {
		var out bytes.Buffer
		failed, err := run(&out, root, tt.all, "", tt.paths)
		if err != nil || failed != tt.failed || !strings.Contains(out.String(), tt.want) || tt.want == "" && out.Len() > 0 {
			t.Errorf("%s: %v, %v\n%s", name, failed, err, &out)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "tools/prose/clean.txt"), []byte("absent\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := run(&bytes.Buffer{}, root, false, "", nil); err == nil {
		t.Error("clean.txt may name what is absent")
	}
}

func TestSentences(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"One. Two! Three?": 3,
		"Version 1.2 of e.g. ONNX is read. Then more.":   2,
		"Open a.tflite file (see Fig. 3). It works.":     2,
		"He said \"yes.\" Then `code` ran. `x` follows.": 3,
		"It takes 3 ms vs. 4 ms at No. 5 of the list.":   1,
		"A list, etc. and so on.":                        1,
		"No. It does not.":                               2,
	} {
		if got := sentences(plain(text)); len(got) != want {
			t.Errorf("%q: %v, want %d", text, got, want)
		}
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	long := strings.TrimSpace(strings.Repeat("word ", 26))
	wide := strings.TrimSpace(strings.Repeat("a1b2c3d4e ", 11))
	for name, tt := range map[string]struct {
		text string
		want string // "line check ..."
	}{
		"long sentence":  {"Short.\n\nShort. " + strings.Replace(long, "word word", "Word\nword", 1) + ".", "3 sentence 4 width"},
		"wide":           {wide, "1 width"},
		"table":          {"| " + long + " | " + wide + " |", ""},
		"code":           {"```sh\n" + long + wide + "\n```\n\n    " + wide, ""},
		"heading":        {"# A\n\nB.", ""},
		"link":           {"See [this](" + strings.Repeat("x", 120) + ").", ""},
		"address":        {"See https://example.com/" + strings.Repeat("x", 120), ""},
		"code is a word": {"Use `" + strings.Repeat("a b ", 20) + "` now and then.", ""},
		"items":          {"- " + long[:60] + "\n- " + long[:60] + "\n  " + long[:20], ""},
		"item":           {"1. " + long[:60] + "\n   " + long[:80], "1 sentence"},
	} {
		var got []string
		for _, f := range checkMarkdown("x.md", tt.text) {
			got = append(got, fmt.Sprint(f.line, " ", f.check))
		}
		if s := strings.Join(got, " "); !equalSets(s, tt.want) {
			t.Errorf("%s: %q, want %q", name, s, tt.want)
		}
	}
}

func equalSets(a, b string) bool {
	n := map[string]int{}
	for w := range strings.FieldsSeq(a) {
		n[w]++
	}
	for w := range strings.FieldsSeq(b) {
		n[w]--
	}
	for _, k := range n {
		if k != 0 {
			return false
		}
	}
	return true
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	for subject, ok := range map[string]bool{
		"kernel/move: fix transpose with negative source stride": true,
		"docs: move guides": true, "sensiml, opmeter: wait longer": true, "all: rename": true,
		"docs: ONNX operators": true, "README: shorten": true, "report: Go": true, ".ci: run less": false, "ci: run less": true,
		`Revert "docs: move guides"`:       true,
		"docs: Move guides":                false,
		"docs: move guides.":               false,
		"Docs: move guides":                false,
		"Transpositions go backwards":      false,
		"docs:":                            false,
		"docs: " + strings.Repeat("é", 66): true,
		"docs: " + strings.Repeat("é", 67): false,
	} {
		if fault := subjectFault(subject); (fault == "") != ok {
			t.Errorf("%q: %q", subject, fault)
		}
	}
}

func TestCommits(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b.c"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	git("init", "-q")
	for _, s := range []string{"What was before", "docs: add", "Something else"} {
		git("commit", "-q", "--allow-empty", "-m", s)
	}
	list, err := checkCommits(dir, "HEAD~2..HEAD")
	if err != nil || len(list) != 1 || !strings.Contains(list[0], "Something else") {
		t.Errorf("%q, %v", list, err)
	}
	if _, err := checkCommits(dir, "absent..HEAD"); err == nil {
		t.Error("no error")
	}
}
