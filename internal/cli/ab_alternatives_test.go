package cli

import (
	"path/filepath"
	"testing"
)

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
