package testengine_test

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/testengine"
)

// The real helper with libraries whose native code fails: an error with the right code, and in
// time, whatever they do.
func TestNative(t *testing.T) {
	t.Parallel()
	cc, err := exec.LookPath("cc")
	if err != nil || runtime.GOOS == "windows" {
		material.Skip(t, "no C compiler (cc) to make libraries with")
	}
	helper, err := realHelper()
	if err != nil {
		t.Fatal(err)
	}
	for fault, c := range []struct {
		name string
		code external.Code
		text string
	}{
		{"has no interface", external.NotLibrary, "does not give version 16"},
		{"crashes", external.Crashed, "SIGSEGV"},
		{"aborts", external.Crashed, "SIGABRT"},
		{"exits", external.Crashed, "exit status 0"},
		{"hangs", external.Silent, "did not respond for"},
		{"gives nothing", external.NotLibrary, ""},
		{"has no version", external.NotLibrary, ""},
		{"has garbage for a version", external.NotLibrary, ""},
		{"is old", external.TooOld, "1.10.0"},
		{"kills itself", external.Killed, ""},
		{"prints", external.NotLibrary, "does not give version 16"},
		{"breaks its stack", external.Crashed, "SIG"},
		{"has an instruction that is none", external.Crashed, "SIGILL"},
		{"crashes when it is loaded", external.Crashed, "SIGSEGV"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			lib := filepath.Join(t.TempDir(), "libonnxruntime.so")
			if out, err := exec.Command(cc, "-shared", "-fPIC", "-w", fmt.Sprintf("-DFAULT=%d", fault), "-o", lib, "testdata/hostile.c").CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			s := external.New(external.Options{Helper: helper, Request: external.Request{Engine: "onnxruntime", Library: lib}, Silent: 3 * time.Second})
			err := s.Run(t.Context(), nil)
			ge, ok := errors.AsType[*external.Error](err)
			if !ok || ge.Code != c.code || !strings.Contains(ge.Text, c.text) || strings.ContainsAny(ge.Text, "\n") {
				t.Errorf("%v (%+v), want %s with %q", err, ge, c.code, c.text)
			}
		})
	}
	t.Run("is none", func(t *testing.T) {
		t.Parallel()
		lib, err := testengine.Write(t.TempDir(), testengine.Behaviour{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = external.Probe(t.Context(), helper, "onnxruntime", lib)
		if ge, ok := errors.AsType[*external.Error](err); !ok || ge.Code != external.NotLibrary {
			t.Errorf("%v", err)
		}
	})
}
