package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/external/litert"
	"github.com/opmeter/opmeter/internal/external/onnxruntime"
	"github.com/opmeter/opmeter/internal/external/openvino"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/internal/runtime/synth"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// mark comes before the figures of a process.
const mark = "\nfrom file to first result, s, and largest resident size, bytes: "

// start is what a fresh process does: it makes a model's first result and prints what that took.
func start(name, library, path string, threads int) error {
	runtime.LockOSThread()
	var took time.Duration
	var err error
	if name == ours {
		took, err = own(path, threads)
	} else {
		took, err = startEngine(name, library, path, threads)
	}
	if err != nil {
		return err
	}
	peak := machine.ProcessPeakBytes()
	if peak == nil {
		return errors.New("this system does not tell the largest size of a process")
	}
	fmt.Printf("%s%g %d\n", mark, took.Seconds(), *peak)
	return nil
}

// inputs makes a model's.
func modelInputs(m *graph.Model) ([]*tensor.Tensor, error) {
	o := inputs.Options{Seed: 1}
	if dir := material.Dir(); dir != "" {
		all, err := synth.LoadOverrides(filepath.Join(dir, "oracle", "inputs.json"))
		if err != nil {
			return nil, err
		}
		o.Overrides = all[filepath.Base(m.Path)]
	}
	in, _, err := inputs.Inputs(m, o)
	return in, err
}

// own starts opmeter's engine.
func own(path string, threads int) (time.Duration, error) {
	begin := time.Now()
	m, err := modelfile.Open(path)
	if err != nil {
		return 0, err
	}
	pause := time.Now()
	in, err := modelInputs(m)
	if err != nil {
		return 0, err
	}
	begin = begin.Add(time.Since(pause))
	s, err := engine.New(m, in, engine.Options{Registry: operators.Registry(), Threads: threads})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	if err := s.Run(context.Background()); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	for _, st := range s.Steps() {
		if st.State == plan.Failed || st.State == plan.Unsupported {
			return 0, fmt.Errorf("%s: %w", st.Node.Key(), st.Err)
		}
	}
	return took, nil
}

// startEngine starts another engine.
func startEngine(name, library, path string, threads int) (time.Duration, error) {
	task, err := task(path, threads)
	if err != nil {
		return 0, err
	}
	if task.Folder, err = os.MkdirTemp("", "start"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(task.Folder)
	open := map[string]func(string) (external.Library, error){"onnxruntime": onnxruntime.Open, "openvino": openvino.Open, "litert": litert.Open}[name]
	if open == nil {
		return 0, fmt.Errorf("no engine %q", name)
	}
	if name == "openvino" { // as everybody else: on some processors the default is half of it
		task.Options = []external.Option{{Key: "INFERENCE_PRECISION_HINT", Value: "f32"}}
	}
	lib, err := open(library)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	s, err := lib.Load(task)
	if err != nil {
		return 0, err
	}
	defer func() { _ = s.Close() }()
	if err := s.Run(); err != nil {
		return 0, err
	}
	return time.Since(begin), nil
}

// task is a model with its inputs, as engines take them.
func task(path string, threads int) (*external.Task, error) {
	m, err := modelfile.Open(path)
	if err != nil {
		return nil, err
	}
	if m.Close != nil {
		defer func() { _ = m.Close() }()
	}
	in, err := modelInputs(m)
	if err != nil {
		return nil, err
	}
	t := &external.Task{Model: path, Format: strings.TrimPrefix(filepath.Ext(path), "."), Threads: threads}
	for i, id := range m.Main().Inputs {
		g := external.Tensor{Name: m.Main().Values[id].Name, DType: in[i].Type.String(), Shape: append([]int{}, in[i].Shape...), Data: in[i].Data}
		if in[i].Type == tensor.String {
			g.Data, g.Strings = nil, in[i].Strings
		}
		t.Inputs = append(t.Inputs, g)
	}
	return t, nil
}
