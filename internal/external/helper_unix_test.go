//go:build unix

package external

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/source"
)

// helper writes a shell script that plays opmeter-engine. It tells that it runs by a file beside
// it.
func helper(t *testing.T, script string) (path, begun string) {
	t.Helper()
	dir := t.TempDir()
	path, begun = filepath.Join(dir, "helper"), filepath.Join(dir, "begun")
	text := "#!/bin/sh\necho \"$OPMETER_ENGINE_FOLDER\" > " + begun + ".new\nmv " + begun + ".new " + begun + "\n" + script + "\n"
	// A process that forks meanwhile would hold the file open for writing, and it could not be run.
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(text), 0o700) //nolint:gosec // it has to run
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return path, begun
}

// await returns what a file holds, once it is there.
func await(t *testing.T, path string) string {
	t.Helper()
	for {
		if b, err := os.ReadFile(path); err == nil {
			return strings.TrimSpace(string(b))
		}
		if t.Context().Err() != nil {
			t.Fatal("the helper did not start")
		}
		time.Sleep(time.Millisecond)
	}
}

// TestStopHelper stops measurements with helpers that never answer, ignore signals or the end of
// their input, or write without end: they end at once, and nothing of them stays.
func TestStopHelper(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"silent":            "exec sleep 1000",
		"deaf":              "trap '' INT TERM HUP PIPE; while :; do sleep 1000; done",
		"reads on":          "exec cat 3>&1 >/dev/null", // its output stays open
		"floods its errors": "while :; do echo words >&2; done",
		"leaves its group":  "sleep 1000 & exec sleep 1000",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, begun := helper(t, script)
			ctx, cancel := context.WithCancel(t.Context())
			s := New(Options{Helper: path, Request: Request{Engine: "x", Task: &Task{}}})
			done := make(chan error, 1)
			go func() { done <- s.Run(ctx, nil) }()
			folder := await(t, begun)
			cancel()
			// The engine's own time to end is 10 s: whoever waits for that waits for longer.
			late := time.NewTimer(source.LastWord / 2)
			defer late.Stop()
			select {
			case err := <-done:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("ended with %v", err)
				}
			case <-late.C:
				t.Fatal("the helper is waited for")
			}
			if _, err := os.Stat(folder); !os.IsNotExist(err) || !strings.HasPrefix(filepath.Base(folder), FolderPrefix) {
				t.Errorf("the folder %s is there: %v", folder, err)
			}
		})
	}
}

// TestOtherHelper has other programs in place of a helper: what opmeter ended itself was not killed
// from outside.
func TestOtherHelper(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, want string }{
		"zeros":                 {"exec head -c 100000000 /dev/zero", "sends invalid messages"},
		"text":                  {"yes", "sends invalid messages"},
		"closes its output":     {"exec >&-; exec sleep 1000", "closed its output without an answer"},
		"sends requests back":   {"exec cat", "sends invalid messages (a request"},
		"ends at once":          {"exit 0", "ended the process (exit status 0): opmeter-engine answers at once; name it with OPMETER_ENGINE"},
		"ends with status 3":    {"exit 3", "ended the process (exit status 3)"},
		"kills itself":          {"kill -9 $$", "was killed from outside"},
		"writes half a message": {"printf '\\100\\0\\0\\0\\0\\0\\0\\0{'; exec >&-; exec sleep 1000", "closed its output without an answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, _ := helper(t, c.script)
			err := New(Options{Helper: path, Request: Request{Engine: "x", Task: &Task{}}}).Run(t.Context(), nil)
			if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), "the program "+path+" "+c.want) {
				t.Errorf("%T %v, want %q", e, err, c.want)
			}
		})
	}
}

// TestGreeting gives a program that does not answer at once as a helper no more time.
func TestGreeting(t *testing.T) {
	t.Parallel()
	path, _ := helper(t, "exec sleep 1000")
	err := New(Options{Helper: path, Request: Request{Engine: "x"}, Greeting: 1}).Run(t.Context(), nil)
	if e, ok := errors.AsType[*Error](err); !ok || e.Code != NoHelper || !strings.Contains(e.Text, path) || !strings.Contains(e.Text, "OPMETER_ENGINE") {
		t.Errorf("%v", err)
	}
}
