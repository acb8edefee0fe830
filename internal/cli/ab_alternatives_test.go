package cli

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/measure/ab"
)

// TestAlternativeNames has the folders of models of one name, and numbers equal alternatives.
func TestAlternativeNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ files, options, names, want []string }{
		{[]string{"a/float.onnx", "b/int8.onnx"}, []string{"", ""}, nil, []string{"float.onnx", "int8.onnx"}},
		{[]string{"a/model.onnx", "b/model.onnx"}, []string{"", ""}, nil, []string{"a/model.onnx", "b/model.onnx"}},
		{[]string{"a/m.onnx", "b/m.onnx", "a/m.onnx"}, []string{" --threads 1", " --threads 2", " --threads 2"}, nil, []string{"a/m.onnx --threads 1", "b/m.onnx --threads 2", "a/m.onnx --threads 2"}},
		{[]string{"a/m.onnx", "a/m.onnx"}, []string{"", ""}, nil, []string{"m.onnx", "m.onnx (2)"}},
		{[]string{"", ""}, []string{"", ""}, nil, []string{"x", "x (2)"}},
		{[]string{"a/m.onnx", "b/m.onnx"}, []string{"", ""}, []string{"old", "new"}, []string{"old", "new"}},
	} {
		l := alternatives{files: c.files, options: c.options}
		for range c.files {
			l.list = append(l.list, ab.Alternative{Name: "x"})
		}
		if err := l.call(c.names); err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range l.list {
			got = append(got, l.list[i].Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q %q: %q, want %q", c.files, c.options, got, c.want)
		}
	}
}

// Names of alternatives have files without their folders; other words stay.
func TestWithoutFolder(t *testing.T) {
	t.Parallel()
	library := filepath.Join(string(filepath.Separator)+"opt", "ort", "libonnxruntime.so")
	for word, want := range map[string]string{
		"--engine=" + library: "--engine=libonnxruntime.so",
		library:               "libonnxruntime.so",
		"--threads=2":         "--threads=2",
		"2":                   "2",
		"--shape=x=1x2":       "--shape=x=1x2",
	} {
		if got := withoutFolder(word); got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
}
