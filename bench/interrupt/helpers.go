package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/model/onnx"
)

// helpers are shell scripts in place of opmeter-engine that do not answer, and device programs
// that leave their process group.
var helpers = []struct{ name, script string }{
	{"silent", "exec sleep 1000"},
	{"deaf", "trap '' INT TERM HUP PIPE; while :; do sleep 1000; done"},
	{"deaf, with children", "trap '' INT TERM HUP PIPE; setsid sleep 1000 & sleep 1000 & while :; do sleep 1000; done"},
	{"flooding its errors", "while :; do echo words words words words words words >&2; done"},
	{"reading only", "exec cat > /dev/null"},
}

// library is a file that looks like an engine's: what it holds is never opened.
func library() string {
	for _, pattern := range []string{"/lib/*/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"} {
		if list, _ := filepath.Glob(pattern); len(list) > 0 {
			return list[0]
		}
	}
	return ""
}

// helperTrials write the helpers into a folder and list commands that use them.
func helperTrials(dir string) ([]trial, error) {
	lib := library()
	if lib == "" {
		return nil, nil
	}
	var out []trial
	const most = time.Second
	quick := slow{name: "relu", op: "Relu", inputs: [][]int{{1, 64}}}
	data, err := onnx.Encode(quick.model())
	if err != nil {
		return nil, err
	}
	model := filepath.Join(dir, "relu.onnx")
	if err := os.WriteFile(model, data, 0o600); err != nil {
		return nil, err
	}
	for i, h := range helpers {
		path := filepath.Join(dir, fmt.Sprintf("helper%d", i))
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+h.script+"\n"), 0o700); err != nil { //nolint:gosec // it has to run
			return nil, err
		}
		env := []string{"OPMETER_ENGINE=" + path}
		for _, args := range [][]string{
			{"profile", model, "--engine", "onnxruntime=" + lib},
			{"profile", model, "--engine", "opmeter,onnxruntime=" + lib, "--time", "10m", "-o", filepath.Join(dir, "h.opmeter")},
			{"sweep", model, "--threads", "1,2", "--engine", "onnxruntime=" + lib, "-o", filepath.Join(dir, "h.csv")},
			{"engines", "onnxruntime=" + lib},
		} {
			out = append(out, trial{name: args[0] + " with a helper: " + h.name, args: args, most: most, env: env})
		}
		out = append(out, trial{name: "device program: " + h.name, args: []string{"profile", model, "--on", "device:exec:" + path}, most: most})
	}
	return out, nil
}

// left lists what a command that has ended left: processes that belong to a folder, and temporary
// folders in it.
func left(dir string) (faults []string) {
	folders, _ := filepath.Glob(filepath.Join(dir, "tmp", "*"))
	for _, f := range folders {
		faults = append(faults, "left "+f)
		_ = os.RemoveAll(f)
	}
	procs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, p := range procs {
		b, err := os.ReadFile(p)
		if err != nil || !strings.Contains(string(b), "TMPDIR="+filepath.Join(dir, "tmp")+"\x00") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p)))
		if err != nil {
			continue
		}
		faults = append(faults, fmt.Sprintf("left process %d", pid))
		if q, err := os.FindProcess(pid); err == nil {
			_ = q.Kill()
		}
	}
	return faults
}
