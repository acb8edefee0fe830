//go:build unix

package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/material"
)

// Every verb that writes a file refuses, before its work, what is not a file and what it
// reads, and leaves it as it was.
func TestOutputsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	spec, err := os.ReadFile(filepath.Join(material.Root(), "examples", "autoencoder.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in("net.yaml"), spec, 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, errs := here(t, "summary", in("net.yaml"), "-o", in("net.opmeter")); status != statusDone {
		t.Fatal(errs)
	}
	for _, ext := range []string{".json", ".tflite", ".yaml", ".csv"} {
		if err := errors.Join(os.Symlink(in("net.yaml"), in("link"+ext)), os.Link(in("net.yaml"), in("same"+ext)), syscall.Mkfifo(in("pipe"+ext), 0o600), os.Mkdir(in("folder"+ext), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	verbs := map[string]struct {
		args []string
		ext  string
		own  bool // reads net.yaml
	}{
		"profile":   {[]string{"profile", in("net.yaml"), "--time", "10m"}, ".json", true},
		"several":   {[]string{"profile", in("net.yaml"), "--on", "host", "--on", "stm32l4r5", "--time", "10m"}, ".csv", true},
		"summary":   {[]string{"summary", in("net.yaml")}, ".json", true},
		"build":     {[]string{"build", in("net.yaml")}, ".tflite", true},
		"report":    {[]string{"report", in("net.opmeter")}, ".json", false},
		"calibrate": {[]string{"calibrate", in("net.yaml"), "--target", "stm32l4r5"}, ".yaml", true},
	}
	for verb, v := range verbs {
		for name, want := range map[string]string{"link": "is a link", "pipe": "is a pipe", "folder": "is a folder", "same": "is also an input", "none/x": "no "} {
			if name == "same" && !v.own || name == "folder" && v.ext == ".json" || name == "folder" && verb == "several" {
				continue // these write their files into a folder
			}
			status, out, errs := here(t, append(v.args, "-o", in(name+v.ext))...)
			if status != statusUse || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 || out != "" {
				t.Errorf("%s -o %s: status %d, %q, want %q", verb, name, status, errs, want)
			}
		}
	}
	if b, err := os.ReadFile(in("net.yaml")); err != nil || !bytes.Equal(b, spec) {
		t.Errorf("the input changed (%v)", err)
	}
}

// full is a standard output without room.
type full struct{}

func (full) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
}

// A standard output without room is an error of every verb, and of help.
func TestStandardOutputFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spec := filepath.Join(material.Root(), "examples", "autoencoder.yaml")
	for _, args := range [][]string{
		{"--help"},
		{"--version"},
		{"help", "formats"},
		{"profile", "--help"},
		{"ops"},
		{"ops", "Conv"},
		{"targets"},
		{"targets", "stm32l4r5"},
		{"engines"},
		{"schema"},
		{"summary", spec},
		{"summary", spec, "--format", "json"},
		{"summary", spec, spec},
		{"profile", spec, "--on", "stm32l4r5"},
		{"profile", spec, "--on", "stm32l4r5", "-o", filepath.Join(dir, "x.csv")},
		{"fit", spec},
		{"build", spec, "-o", filepath.Join(dir, "x.tflite")},
		{"run", spec, "--output", filepath.Join(dir, "out")},
		{"completion", "bash"},
	} {
		var errs bytes.Buffer
		if status := run(context.Background(), args, strings.NewReader(""), full{}, &errs); status != statusSource || !strings.Contains(errs.String(), "no space left on device") {
			t.Errorf("%v: status %d, %q", args, status, errs.String())
		}
	}
}

// An error is one line of bounded length, with its beginning and its end.
func TestLongErrors(t *testing.T) {
	t.Parallel()
	status, _, errs := here(t, "profile", "/"+strings.Repeat("long/", 2000)+"model.tflite")
	if status != statusInput || strings.Count(errs, "\n") != 1 || len([]rune(errs)) > 1000 || !strings.HasPrefix(errs, "opmeter: /long/") || !strings.Contains(errs, "…") {
		t.Errorf("status %d: %d characters: %.100q", status, len(errs), errs)
	}
}

// TestPipeIsReadOnce gives a named pipe whose content is not a profile. Opening it again to say
// what it is would block, because the writer is gone.
func TestPipeIsReadOnce(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe.opmeter")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(pipe, []byte("not a profile"), 0o600) }()
	if status, _, errs := here(t, "report", pipe); status != statusInput || !strings.Contains(errs, pipe) {
		t.Errorf("status %d, %q", status, errs)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}
