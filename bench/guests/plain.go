package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/feed"
	"github.com/opmeter/opmeter/internal/npy"
	"github.com/opmeter/opmeter/internal/read/modelfile"
)

// seed of the inputs, the same for both sides.
const seed = 1

// inputs are what a model is fed: a folder of 0.npy, 1.npy, …, and NAME=1,2,3 for each.
type inputs struct {
	dir    string
	shapes []string
}

// writeInputs writes what opmeter feeds a model into a new folder.
func writeInputs(path string) (*inputs, error) {
	m, err := modelfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = m.Close() }()
	ins, _, err := feed.Inputs(m, feed.Options{Seed: seed})
	if err != nil {
		return nil, err
	}
	out := &inputs{}
	if out.dir, err = os.MkdirTemp("", "guests-inputs-"); err != nil {
		return nil, err
	}
	for i, t := range ins {
		if err := npy.WriteFile(filepath.Join(out.dir, strconv.Itoa(i)+".npy"), t); err != nil {
			os.RemoveAll(out.dir)
			return nil, err
		}
		dims := make([]string, len(t.Shape))
		for k, d := range t.Shape {
			dims[k] = strconv.Itoa(d)
		}
		out.shapes = append(out.shapes, m.Main().Values[m.Main().Inputs[i]].Name+"="+strings.Join(dims, ","))
	}
	return out, nil
}

// loop runs the script, and returns the median of its times in seconds: what it prints last is a JSON
// object with median_s, or the number alone.
func (b *bench) loop(model string, inputs *inputs, runs int) (float64, error) {
	args := []string{b.script, model, "--threads", strconv.Itoa(b.threads), "--runs", strconv.Itoa(runs)}
	switch { // as far as the script takes them
	case b.takes("--inputs"):
		args = append(args, "--inputs", inputs.dir)
	case b.takes("--shape"):
		for _, s := range inputs.shapes {
			args = append(args, "--shape", s)
		}
	}
	return b.said(args...)
}

// takes reports whether the script has a flag.
func (b *bench) takes(flag string) bool {
	if b.help == "" {
		out, _ := b.command(b.script, "--help").CombinedOutput()
		b.help = string(out) + " "
	}
	return strings.Contains(b.help, flag)
}

// command starts Python with the packages of the library's folder.
func (b *bench) command(args ...string) *exec.Cmd {
	c := exec.Command(b.python, args...)
	if dir := packages(b.engine.Library); dir != "" {
		c.Env = append(os.Environ(), "PYTHONPATH="+dir+string(os.PathListSeparator)+os.Getenv("PYTHONPATH"))
	}
	return c
}

// said runs the script and reads what it prints last.
func (b *bench) said(args ...string) (float64, error) {
	c := b.command(args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		return 0, fmt.Errorf("%s: %w: %s", filepath.Base(b.script), err, last(errs.String()))
	}
	line := last(out.String())
	if v, err := strconv.ParseFloat(line, 64); err == nil {
		return v, nil
	}
	var said struct {
		MedianS *float64 `json:"median_s"`
	}
	if err := json.Unmarshal([]byte(line), &said); err != nil || said.MedianS == nil {
		return 0, errors.New(filepath.Base(b.script) + " does not say median_s: " + line)
	}
	return *said.MedianS, nil
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
