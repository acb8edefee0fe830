package cli

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/material"
)

// TestModelNames finds models as the MLTK does: in the current folder, then below
// the folders of MLTK_MODEL_PATHS, loose or in an archive.
func TestModelNames(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	try := func(want int, args ...string) string {
		t.Helper()
		var out, errw bytes.Buffer
		if got := run(t.Context(), args, strings.NewReader(""), &out, &errw); got != want {
			t.Fatalf("opmeter %v: status %d: %s", args, got, errw.String())
		}
		return out.String() + errw.String()
	}
	if err := os.Mkdir("here", 0o755); err != nil {
		t.Fatal(err)
	}
	try(0, "build", filepath.Join(material.Root(), "examples", "autoencoder.yaml"), "-o", filepath.Join("here", "loose.tflite"))
	model, err := os.ReadFile(filepath.Join("here", "loose.tflite"))
	if err != nil {
		t.Fatal(err)
	}
	archive := func(path, member string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		z := zip.NewWriter(f)
		for name, b := range map[string][]byte{"model.py": []byte("x"), member: model, strings.Replace(member, ".tflite", ".float32.tflite", 1): []byte("x")} {
			w, err := z.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(b); err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	archive("packed.mltk.zip", "packed.tflite")
	archive(filepath.Join("far", "deep", "kws.mltk.zip"), "kws.tflite")
	archive(filepath.Join("far", "kws-test.mltk.zip"), "kws.test.tflite")

	for _, tt := range []struct {
		paths  string
		status int
		arg    string
		want   string
	}{
		{"", 0, "packed.mltk.zip", "Name: packed\n"},
		{"", 0, "packed", "Name: packed\n"},
		{"", 3, "kws", "kws: no such file, and no kws.tflite or kws.mltk.zip in the current folder (MLTK_MODEL_PATHS names no others)"},
		{"here" + string(filepath.ListSeparator) + "far", 0, "kws", "Name: kws\n"},
		{"here" + string(filepath.ListSeparator) + "far", 0, "kws-test", "Name: kws.test\n"},
		{"here" + string(filepath.ListSeparator) + "far", 0, "loose", "Name: loose\n"},
		{"here", 3, "kws", "and below here"},
		{"absent", 3, "kws", "and below absent"},
		{"here", 3, "loose.tflite", "loose.tflite"}, // a file is a file
	} {
		t.Setenv(modelPaths, tt.paths)
		if got := try(tt.status, "profile", tt.arg, "-a", "mvp", "--format", "mltk"); !strings.Contains(got, tt.want) {
			t.Errorf("%s with %q: no %q in\n%s", tt.arg, tt.paths, tt.want, got)
		}
	}
	if got := try(0, "summary", "packed"); !strings.Contains(got, "packed") {
		t.Error(got)
	}
}
