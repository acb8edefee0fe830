package work

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// An error of a report names files without the folders of the server.
func TestReportError(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in is a shell script")
	}
	program := filepath.Join(t.TempDir(), "opmeter")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"opmeter: $2: named twice\" >&2\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r := Runner{Program: program}
	err := r.Report(t.Context(), []string{filepath.Join(dir, "1.opmeter")}, nil, filepath.Join(dir, "page.txt"))
	if err == nil || strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "1.opmeter: named twice") {
		t.Errorf("error %v", err)
	}
}
