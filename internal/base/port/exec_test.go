//go:build unix

package port_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/base/port"
	"github.com/opmeter/opmeter/internal/testing/wire"
)

func TestExec(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ command, want string }{
		{"printf 'a b'", "a b"},
		{`printf %s "a b"`, "a b"},
		{"printf abc | tr a-c x-z", "xyz"},
		{"sh -c 'echo noise >&2; echo data'", "data\n"},
		{"true", ""},
	} {
		p := open(t, "exec:"+c.command, port.Options{})
		got, err := all(t, p)
		if !errors.Is(err, io.EOF) || string(got) != c.want {
			t.Errorf("%s: %q, %v", c.command, got, err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Where it is asked for, standard error is read like the output, in the order in which both were
// written.
func TestExecErrors(t *testing.T) {
	t.Parallel()
	p := open(t, "exec:sh -c 'echo one >&2; echo two; echo three >&2'", port.Options{Errors: true})
	defer func() { _ = p.Close() }()
	if got, err := all(t, p); !errors.Is(err, io.EOF) || string(got) != "one\ntwo\nthree\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// A word that was quoted arrives as it was.
func TestQuote(t *testing.T) {
	t.Parallel()
	for _, want := range []string{"/a b/c.tflite", `it's "$HOME"`, "a,b|c", ""} {
		p := open(t, "exec:printf %s "+port.Quote(want), port.Options{})
		if got, err := all(t, p); !errors.Is(err, io.EOF) || string(got) != want {
			t.Errorf("%q, want %q: %v", got, want, err)
		}
		_ = p.Close()
	}
	for _, c := range []struct {
		command, name string
		alone, bad    bool
	}{
		{command: "./a", name: "./a", alone: true}, {command: "'/a b' c", name: "/a b"}, {command: "a | b"}, {command: "a 'b", bad: true}, {command: " ", bad: true},
	} {
		name, alone, err := port.Program(c.command)
		if name != c.name || alone != c.alone || (err != nil) != c.bad {
			t.Errorf("%q: %q, %v, %v", c.command, name, alone, err)
		}
	}
}

// A program that fails is told with its status or signal and what it said last, after all
// that it wrote.
func TestExecFails(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 10000)
	for _, c := range []struct{ command, out, text, stderr string }{
		{"sh -c 'echo data; echo first >&2; echo no such sensor >&2; exit 3'", "data\n", "exit status 3: no such sensor", "first\nno such sensor\n"},
		{"sh -c 'echo data; kill -9 $$'", "data\n", "ended by signal killed", ""},
		{"false", "", "exit status 1", ""},
		{"sh -c 'printf %s " + long + " >&2; printf end >&2; exit 1'", "", "exit status 1: " + long[:4096-3] + "end", long[:4096-3] + "end"},
	} {
		p := open(t, "exec:"+c.command, port.Options{})
		got, err := all(t, p)
		e, ok := errors.AsType[*port.ExitError](err)
		if !ok || string(got) != c.out || !strings.HasSuffix(err.Error(), c.text) || e.Stderr != c.stderr {
			t.Errorf("%.40s: %q, %.200v", c.command, got, err)
		}
		_ = p.Close()
	}
}

// A program may be talked to, and its output is complete also for a slow reader.
func TestExecBothWays(t *testing.T) {
	t.Parallel()
	p := open(t, "exec:cat", port.Options{})
	want := noise(300000)
	go func() { _, _ = p.Write(context.Background(), want) }()
	if got, err := read(t, p, len(want)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	_ = p.Close()

	p = open(t, "exec:head -c 12000000 /dev/zero", port.Options{})
	time.Sleep(time.Second) // longer than children of an ended program may linger
	got, err := all(t, p)
	if !errors.Is(err, io.EOF) || len(got) != 12000000 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// Close ends the program and what it has started.
func TestExecChildren(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "pack")
	text := "#!/bin/sh\nsleep 1000 &\necho $!\nsleep 1000 &\necho $!\necho $$\nwait\n"
	want := 3
	// setsid leaves the process group.
	if _, err := exec.LookPath("setsid"); err == nil && runtime.GOOS == "linux" {
		text, want = strings.Replace(text, "wait", "setsid sleep 1000 &\necho $!\nwait", 1), 4
	}
	// A process that forks meanwhile would hold the file open for writing, and it could not be run.
	syscall.ForkLock.RLock()
	err := os.WriteFile(script, []byte(text), 0o700) //nolint:gosec // it has to run
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, "exec:"+script, port.Options{})
	var got []byte
	for bytes.Count(got, []byte("\n")) < want {
		b, err := read(t, p, 1)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, b...)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for _, f := range strings.Fields(string(got)) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		for limit := time.Now().Add(patience); alive(pid); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("process %d lives on", pid)
			}
		}
	}
}

// alive reports whether a process runs: one that has ended and that no one has waited for
// does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// A child that keeps the output open does not keep the end of its program.
func TestExecDaemon(t *testing.T) {
	t.Parallel()
	for _, c := range []string{"sh -c 'sleep 1000 & echo data'", "sh -c 'echo data; exec >&-; sleep 0.2'"} {
		p := open(t, "exec:"+c, port.Options{})
		got, err := all(t, p)
		if !errors.Is(err, io.EOF) || string(got) != "data\n" {
			t.Errorf("%s: %q, %v", c, got, err)
		}
		_ = p.Close()
	}
}

// Another program that has a device is named: a pseudo-terminal is shared with the program
// that plays the device, so that only the list tells it.
func TestHolders(t *testing.T) {
	t.Parallel()
	path, _ := wire.Open(t, wire.Silent)
	c := exec.CommandContext(t.Context(), "sleep", "1000")
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	c.Stdin = f
	if err := c.Start(); err != nil {
		t.Skip(err)
	}
	f.Close()
	defer func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	}()
	for limit := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		i := port.Inspect(path)
		if len(i.Holders) == 1 && i.Holders[0] == (port.Holder{PID: c.Process.Pid, Program: "sleep"}) {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("%+v", i.Holders)
		}
	}
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("no list of open files here")
	}
	_ = open(t, path, port.Options{}).Close()
}
