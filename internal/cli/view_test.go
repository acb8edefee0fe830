package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/material"
)

// TestView writes the page that summary writes, to a file or where the browser finds it.
func TestView(t *testing.T) {
	dir := t.TempDir()
	for k, v := range map[string]string{"TMPDIR": dir, "TMP": dir, "PATH": dir, "CI": "", "SSH_CONNECTION": "", "WAYLAND_DISPLAY": "", "DISPLAY": "", "COLUMNS": ""} {
		t.Setenv(k, v)
	}
	model := filepath.Join(material.Root(), "examples", "resnet8.yaml")
	page := filepath.Join(dir, "page.html")
	if status, _, errs := here(t, "view", model, "-o", page); status != statusDone {
		t.Fatal(errs)
	}
	summary := filepath.Join(dir, "summary.html")
	if status, _, errs := here(t, "summary", model, "-o", summary); status != statusDone {
		t.Fatal(errs)
	}
	if a, b := size(t, page), size(t, summary); a != b {
		t.Errorf("the page has %d bytes, that of summary %d", a, b)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"view", model}, "no browser can be opened here: write the page with -o page.html"},
		{[]string{"view", model, "--open=false"}, "--open=false: name the page with -o page.html"},
		{[]string{"view", filepath.Dir(model)}, "is a folder: name one model"},
		{[]string{"view", model, "-o", page, "-o", "x.csv"}, "-o x.csv: view writes a page"},
		{[]string{"view", model, model}, "2 arguments, expected one"},
		{[]string{"view", model, "--by", "op"}, "unknown flag: --by"},
	} {
		if status, _, errs := here(t, tt.args...); status != statusUse || !strings.Contains(errs, tt.want) {
			t.Errorf("%q: status %d: %s, want %q", tt.args, status, errs, tt.want)
		}
	}
	// The file comes before the browser, with the error of other commands.
	broken := filepath.Join(dir, "broken.onnx")
	if err := os.WriteFile(broken, []byte("no model"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{broken, filepath.Join(dir, "none.onnx")} {
		status, _, errs := here(t, "view", file)
		wantStatus, _, want := here(t, "summary", file)
		if status != wantStatus || errs != want {
			t.Errorf("%s: status %d: %s, want %d: %s", file, status, errs, wantStatus, want)
		}
	}
	t.Setenv("DISPLAY", ":0")
	t.Setenv("COLUMNS", "80") // as in a terminal
	status, out, errs := here(t, "view", model)
	made, err := filepath.Glob(filepath.Join(dir, "opmeter-view-*", "resnet8.html"))
	if status != statusDone || err != nil || len(made) != 1 || !strings.Contains(out, "resnet8.html") {
		t.Errorf("status %d, pages %q: %s%s", status, made, out, errs)
	}
}

// TestAnnotatedBefore refuses to annotate a model of another format before it is measured.
func TestAnnotatedBefore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	model := filepath.Join(material.Root(), "examples", "resnet8.yaml")
	file := filepath.Join(dir, "y.onnx")
	for _, command := range []string{"profile", "summary"} {
		status, out, errs := here(t, command, model, "-o", file)
		if status != statusUse || out != "" || !strings.Contains(errs, "y.onnx: only .onnx models can be written") {
			t.Errorf("%s: status %d: %s%s", command, status, out, errs)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files that are left: %v, %v", left, err)
	}
}

func size(t *testing.T, file string) int64 {
	t.Helper()
	st, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return st.Size()
}
