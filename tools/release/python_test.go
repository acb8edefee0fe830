package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/mltkdevice"
	"github.com/opmeter/opmeter/internal/testing/wire"
)

// TestPython runs the tests of the Python package with the program of this tree, and with a
// simulated board that prints when the stand-in for the vendor's commander resets it.
func TestPython(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err == nil {
		err = exec.CommandContext(t.Context(), python, "-c", "import sys; sys.exit(sys.version_info < (3, 9))").Run()
	}
	if err != nil {
		material.Skip(t, "Python 3.9 or newer is absent")
	}
	// In an environment of its own, no other program is found beside the interpreter.
	env, root := t.TempDir(), material.Root()
	if out, err := exec.CommandContext(t.Context(), python, "-m", "venv", "--without-pip", env).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dir := filepath.Join(env, map[bool]string{false: "bin", true: "Scripts"}[runtime.GOOS == "windows"])
	build := exec.CommandContext(t.Context(), "go", "build", "-o", dir+string(filepath.Separator), "./cmd/opmeter", "./cmd/opmeter-engine")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c := exec.CommandContext(t.Context(), filepath.Join(dir, "python"), "-m", "unittest", "discover", "-s", "tests", "-t", ".")
	c.Dir = filepath.Join(root, "python")
	c.Env = append(os.Environ(), "PATH="+dir+string(filepath.ListSeparator)+os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE=1", "OPMETER_SHARED="+material.Dir())
	if runtime.GOOS != "windows" { // the stand-in is a shell script
		c.Env = append(c.Env, "OPMETER_TEST_MLTK_PORT="+mltkBoard(t, dir))
	}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out) // which tests were skipped
}

// mltkBoard makes a board with the profiler of the MLTK and a commander in a folder. It returns its
// port.
func mltkBoard(t *testing.T, dir string) string {
	b := &mltkdevice.Board{Name: "kws", Accelerator: "MVP", ClockHz: 78e6, RAM: 13400}
	for i, op := range strings.Fields("CONV_2D CONV_2D CONV_2D MAX_POOL_2D RESHAPE FULLY_CONNECTED SOFTMAX") {
		b.Layers = append(b.Layers, mltkdevice.Layer{Op: op, Ops: 1000, MACs: 500, TimeUS: uint32(100 * (i + 1)), CPU: 2000, Accelerator: 900})
	}
	resets := filepath.Join(dir, "resets")
	if out, err := exec.CommandContext(t.Context(), "mkfifo", resets).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v %s", err, out)
	}
	script := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *reset*) echo x > %s ;; esac\n", resets)
	if err := os.WriteFile(filepath.Join(dir, "commander"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	// Open for both ends, so that neither waits for the other.
	pipe, err := os.OpenFile(resets, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pipe.Close() })
	address, _ := wire.TCP(t, func(w io.Writer, _ io.Reader) {
		line := make([]byte, 64)
		for {
			n, err := pipe.Read(line)
			for range bytes.Count(line[:n], []byte("x")) {
				if _, err := w.Write(b.Text()); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
	return "tcp:" + address
}
