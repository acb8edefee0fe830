package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// runFiles profiles each file below a folder with the program and reports those that
// end as they must not.
func runFiles(w io.Writer, program, dir string) error {
	n, failed, killed := 0, 0, 0
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !model(p) {
			return err
		}
		n++
		why, stopped := runFile(program, p)
		if stopped {
			killed++
		}
		if why != "" {
			failed++
			fmt.Fprintf(w, "%s: %s\n", p, why)
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d files, %d were stopped by Ctrl-C after %v, %d failed\n", n, killed, timeLimit/2, failed)
	if failed > 0 {
		return fmt.Errorf("%d of %d files fail", failed, n)
	}
	return nil
}

func model(p string) bool {
	for _, end := range []string{".onnx", ".tflite", ".zip", ".yaml"} {
		if strings.HasSuffix(p, end) {
			return true
		}
	}
	return false
}

// runFile profiles one file. A model whose inference takes long is interrupted, as its
// user would.
func runFile(program, file string) (why string, stopped bool) {
	ctx, cancel := context.WithTimeout(context.Background(), timeLimit)
	defer cancel()
	var out, errs bytes.Buffer
	c := exec.CommandContext(ctx, program, "profile", file, "--engine", "opmeter", "--runs", "1", "--warmup", "0s")
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Start(); err != nil {
		return err.Error(), false
	}
	stop := time.AfterFunc(timeLimit/2, func() { stopped = true; _ = c.Process.Signal(os.Interrupt) })
	err := c.Wait()
	stop.Stop()
	if ctx.Err() != nil {
		return fmt.Sprintf("takes more than %v", timeLimit), stopped
	}
	status := 0
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		status = e.ExitCode()
	} else if err != nil {
		return err.Error(), stopped
	}
	if n := peak(c.ProcessState); n > memoryLimit {
		why = fmt.Sprintf("takes %d MB", n>>20)
	}
	lines := strings.Count(strings.TrimRight(errs.String(), "\n"), "\n") + 1
	switch {
	case status != 0 && status != 3 && status != 4:
		why = fmt.Sprintf("status %d: %s", status, first(errs.String()))
	case status != 0 && lines != 1:
		why = fmt.Sprintf("%d lines of error: %s", lines, first(errs.String()))
	case strings.Contains(out.String()+errs.String(), "internal error"):
		why = "an internal error: " + first(errs.String())
	}
	return why, stopped
}

func first(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
