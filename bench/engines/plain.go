package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/npy"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
)

// seed of the inputs, the same for both sides.
const seed = 1

// writeInputs writes what opmeter feeds a model into a new folder: 0.npy, 1.npy, …
func writeInputs(path string) (dir string, err error) {
	m, err := modelfile.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = m.Close() }()
	ins, _, err := inputs.Inputs(m, inputs.Options{Seed: seed})
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp("", "engine-inputs-"); err != nil {
		return "", err
	}
	for i, t := range ins {
		if err := npy.WriteFile(filepath.Join(dir, strconv.Itoa(i)+".npy"), t); err != nil {
			os.RemoveAll(dir)
			return "", err
		}
	}
	return dir, nil
}

// command starts Python with the packages of the library's folder.
func (b *bench) command(args ...string) *exec.Cmd {
	c := exec.Command(b.python, args...)
	if dir := packages(b.engine.Library); dir != "" {
		c.Env = append(os.Environ(), "PYTHONPATH="+dir+string(os.PathListSeparator)+os.Getenv("PYTHONPATH"))
	}
	return c
}

// loop is the script of an engine, which measures turns.
type loop struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	errs  bytes.Buffer
	times []float64 // seconds
}

// start starts the script. It has loaded the model and is warm when start returns.
func (b *bench) start(model, inputs string) (*loop, error) {
	l := &loop{cmd: b.command(b.script, model, "--turns", "--threads", strconv.Itoa(b.threads), "--seconds", fmt.Sprint(b.time.Seconds()), "--inputs", inputs, "--library", b.engine.Library)}
	var err error
	if l.in, err = l.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	l.out, l.cmd.Stderr = bufio.NewReader(out), &l.errs
	if err := l.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := l.out.ReadBytes('\n'); err != nil {
		return nil, l.end(err)
	}
	return l, nil
}

// turns measures, a turn each time that the order allows, until the context ends.
func (l *loop) turns(ctx context.Context, order *opmeter.Interleaver) error {
	t := order.Join()
	defer t.Leave()
	for t.Wait(ctx) == nil {
		var times []float64
		_, err := fmt.Fprintln(l.in, turnTime.Seconds())
		if err == nil {
			var line []byte
			if line, err = l.out.ReadBytes('\n'); err == nil {
				err = json.Unmarshal(line, &times)
			}
		}
		if err != nil {
			return err
		}
		l.times = append(l.times, times...)
	}
	return nil
}

// turnTime is how long a turn of a script is: as that of opmeter's plain runs.
const turnTime = 10 * time.Millisecond

// end ends the script. The error is the one given, if any, with what the script said.
func (l *loop) end(err error) error {
	_ = l.in.Close()
	if e := l.cmd.Wait(); e != nil {
		err = e // what was being read or written failed for that
	}
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", filepath.Base(l.cmd.Args[1]), err, last(l.errs.String()))
	}
	return err
}

// packages is the folder of Python packages that a library lies in, "" where it lies in none.
func packages(library string) string {
	for dir := filepath.Dir(library); filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		switch filepath.Base(dir) {
		case "onnxruntime", "ai_edge_litert", "openvino":
			if _, err := os.Stat(filepath.Join(dir, "__init__.py")); err == nil {
				return filepath.Dir(dir)
			}
		}
	}
	return ""
}

// last is the last line of a text.
func last(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
