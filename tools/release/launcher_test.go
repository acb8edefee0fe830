package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// launchedVariable makes this test binary the program that the launcher starts.
const launchedVariable = "OPMETER_TEST_LAUNCHED"

func init() {
	if os.Getenv(launchedVariable) == "" {
		return
	}
	sig, ended := make(chan os.Signal, 4), make(chan struct{})
	signal.Notify(sig, os.Interrupt, syscall.SIGTERM)
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(3, "parent"))
		close(ended)
	}()
	fmt.Println("ready", os.Getenv("OPMETER_PARENT"))
	select {
	case s := <-sig:
		fmt.Println(s)
		os.Exit(5)
	case <-ended:
		fmt.Println("parent ended")
	}
	os.Exit(0)
}

// launch returns the command of the npm package, with a file as the program of this platform.
func launch(t *testing.T, program func(path string) error) *exec.Cmd {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signals")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("Node.js is absent")
	}
	dir := t.TempDir()
	arch, err := exec.Command(node, "-p", "process.platform + '-' + process.arch").Output()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "node_modules", "@opmeter", strings.TrimSpace(string(arch)), "bin")
	script := filepath.Join(dir, "opmeter.js")
	if err := errors.Join(os.MkdirAll(bin, 0o755), os.WriteFile(script, launcher, 0o644), program(filepath.Join(bin, "opmeter"))); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(node, script)
	c.Env = append(os.Environ(), launchedVariable+"=1")
	return c
}

// A signal to the launcher alone reaches the program, whose status is that of the launcher. A
// launcher that is killed ends the program.
func TestLauncherSignals(t *testing.T) {
	for _, tt := range []struct {
		signal syscall.Signal
		status int
		want   string
	}{
		{syscall.SIGINT, 5, "interrupt\n"},
		{syscall.SIGTERM, 5, "terminated\n"},
		{syscall.SIGKILL, -1, "parent ended\n"},
	} {
		c := launch(t, func(path string) error {
			self, err := os.Executable()
			return errors.Join(err, os.Symlink(self, path))
		})
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(out)
		if line, err := r.ReadString('\n'); err != nil || line != "ready fd:3\n" {
			t.Fatalf("%q, %v", line, err)
		}
		if err := c.Process.Signal(tt.signal); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(r)
		_ = c.Wait()
		if err != nil || string(rest) != tt.want || c.ProcessState.ExitCode() != tt.status {
			t.Errorf("%v: %q, status %d, %v", tt.signal, rest, c.ProcessState.ExitCode(), err)
		}
	}
}

// A program that is absent or cannot be started has a status of its own: 1 means a failed check.
func TestLauncherWithoutProgram(t *testing.T) {
	for name, program := range map[string]func(string) error{
		"is absent": func(string) error { return nil },
		"EACCES":    func(path string) error { return os.WriteFile(path, nil, 0o644) },
	} {
		c := launch(t, program)
		var message bytes.Buffer
		c.Stderr = &message
		_ = c.Run()
		if c.ProcessState.ExitCode() != 127 || !strings.Contains(message.String(), name) || strings.Count(message.String(), "\n") != 1 {
			t.Errorf("%s: status %d: %s", name, c.ProcessState.ExitCode(), &message)
		}
	}
}
