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

// writeInputs writes what opmeter feeds a model into a new folder: 0.npy, 1.npy, …
func writeInputs(path string) (dir string, err error) {
	m, err := modelfile.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = m.Close() }()
	ins, _, err := feed.Inputs(m, feed.Options{Seed: seed})
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp("", "guests-inputs-"); err != nil {
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

// loop runs the script, and returns the median of its times in seconds, which it prints last, in a
// JSON object as median_s.
func (b *bench) loop(model, inputs string) (float64, error) {
	return b.said(b.script, model, "--threads", strconv.Itoa(b.threads), "--seconds", fmt.Sprint(b.time.Seconds()), "--inputs", inputs)
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
