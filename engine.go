package opmeter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/external/find"
	"github.com/opmeter/opmeter/internal/measure/host"
	"github.com/opmeter/opmeter/internal/measure/loadfigures"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/measure/peakmodels"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/internal/source/outputdiff"
	"github.com/opmeter/opmeter/profile"
)

// Engine is an external engine: a shared library (ONNX Runtime, LiteRT, OpenVINO) or a program
// with an engine compiled in (TensorFlow Lite Micro).
type Engine struct {
	// Name is "onnxruntime", "litert", "tflite", "openvino" or "tflm".
	Name string
	// Want is a prefix of the version that the library must report, "" for any.
	Want string
	// Library is the file to load, the program for tflm. Version is the version of its package,
	// "" if unknown.
	Library, Version string
	// Command is the command line of a tflm program, split into words as a shell does. Without
	// arguments it gets the model file; otherwise {model} stands for the file.
	Command string
	// ClockHz is the tick rate of such a program's clock, 0 if the program reports it.
	ClockHz float64
	// Options are the engine's own options, applied in this order.
	Options []EngineOption
	// Helper is the program opmeter-engine, which loads the library.
	Helper string
	// Silent is how long one request, such as loading the model, may take before the engine
	// counts as hung and is ended; 0 means five minutes.
	Silent time.Duration
}

// EngineOption is an option of an engine: a name of the engine's own, or one that opmeter engines
// lists.
type EngineOption struct{ Key, Value string }

// EngineError reports a fault of an external engine.
type EngineError struct {
	// Engine is the engine's name.
	Engine string
	// Code is the kind of fault, such as "not_found" or "crashed".
	Code string
	Err  error
}

// Error returns the cause's text.
func (e *EngineError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *EngineError) Unwrap() error { return e.Err }

// Turns interleaves profiles that are made at the same time, each in its own goroutine: a few
// inferences of one, then a few of the next, so that slow changes of the machine affect all of
// them equally. Profiles with opmeter's own engine still run one after the other, since only one
// measures in a process. The zero value is ready; all options of a comparison share one.
type Turns struct{ t external.Turns }

// Join adds a measurement of the caller, such as the loop of an application.
func (t *Turns) Join() *Turn { return &Turn{t.t.Join()} }

// Turn is a measurement of the caller, interleaved with profiles. It is for one goroutine.
type Turn struct{ t *external.Turn }

// Wait ends the current time slot, if any, and returns when the next one begins. With an error,
// which is the context's, there is no slot.
func (t *Turn) Wait(ctx context.Context) error { return t.t.Wait(ctx) }

// Leave ends the slot and takes the measurement out of the rotation.
func (t *Turn) Leave() { t.t.Leave() }

// profile measures with the engine that the options name.
func (m *Model) profile(ctx context.Context, o Options) (*profile.Profile, error) {
	var turn *external.Turn
	if o.Turns != nil {
		turn = o.Turns.t.Join()
	}
	if o.Engine.program() {
		return m.micro(ctx, o, turn)
	}
	if o.Engine != nil {
		return m.visit(ctx, o, turn)
	}
	h, err := o.host(m)
	if err != nil {
		return nil, err
	}
	if turn != nil {
		// The lease is held during the slots of others: whoever waits for it must not hold a
		// slot.
		release, err := loop.Lease(ctx)
		if err != nil {
			return nil, err
		}
		defer release()
		if err := turn.Wait(ctx); err != nil {
			return nil, err
		}
		defer turn.Leave()
		h.Turn, h.Leased = turn.Wait, true
	}
	return m.collect(ctx, h, o.Journal)
}

// visit measures with an external engine.
func (m *Model) visit(ctx context.Context, o Options, turn *external.Turn) (*profile.Profile, error) {
	h, err := o.host(m)
	if err != nil {
		return nil, err
	}
	g, clean, err := m.guest(&o, h, turn)
	if err != nil {
		return nil, failed(m.g.Path, err)
	}
	defer clean()
	p, err := source.Collect(ctx, reader{external.New(g), m}, source.Options{Version: buildinfo.Version(), Journal: o.Journal})
	return p, engineError(m.g.Path, o.Engine.Name, err)
}

// engineError returns an engine's fault as EngineError, its refusal of the model as ModelError;
// other errors belong to the model.
func engineError(path, engine string, err error) error {
	e, ok := errors.AsType[*external.Error](err)
	switch {
	case !ok:
		return failed(path, err)
	case e.Code == external.Rejected || e.Code == external.NoFormat:
		return &ModelError{File: path, Offset: -1, Err: e}
	}
	return &EngineError{Engine: engine, Code: string(e.Code), Err: e}
}

// guest prepares a measurement with an external engine. clean removes its temporary files.
func (m *Model) guest(o *Options, h host.Options, turn *external.Turn) (g external.Options, clean func(), err error) {
	base, err := Count(m, o.Inputs)
	if err != nil {
		return g, nil, err
	}
	var ins []*tensor.Tensor
	if err := m.reading(func() (err error) { ins, _, err = inputs.Inputs(m.g, h.Feed); return err }); err != nil {
		return g, nil, err
	}
	file, clean, err := m.file()
	if err != nil {
		return g, nil, err
	}
	task := &external.Task{Model: file, Format: m.g.Format, Threads: h.Threads}
	for i, id := range m.g.Main().Inputs {
		task.Inputs = append(task.Inputs, given(m.g.Main().Values[id].Name, ins[i]))
	}
	for _, x := range o.Engine.Options {
		task.Options = append(task.Options, external.Option(x))
	}
	carry, err := host.Carries(m.g.Main(), h.Carry)
	if err != nil {
		clean()
		return g, nil, err
	}
	for _, c := range carry {
		if task.Carry == nil {
			task.Carry = map[int]int{}
		}
		task.Carry[c.Output] = c.Input
	}
	g = external.Options{
		Accept: find.Spec{Engine: o.Engine.Name, Version: o.Engine.Want}.Accept,
		Helper: o.Engine.Helper, Turn: turn, Silent: o.Engine.Silent, Model: base, Reference: loop.ReferenceName,
		Progress: o.Progress,
		Outputs: func(ctx context.Context, got []external.Tensor, f *external.Facts) ([]profile.Event, error) {
			return m.differences(ctx, o, base, got, f)
		},
		Request: external.Request{
			Engine: o.Engine.Name, Library: o.Engine.Library, Task: task, MaxMemory: o.MaxMemory,
			Load: loadfigures.Load{Rate: h.Rate, Cold: h.Cold}, Pin: h.Pin, Ceilings: ceilings(o, base),
			Runs: h.Runs, Time: int64(h.Time), WarmupTime: int64(h.WarmupTime), WarmupRuns: h.WarmupRuns, Samples: h.Samples,
		},
	}
	if h.Pin {
		g.Request.CPUs = machine.PickCPUs(h.Threads)
	}
	streams(&g.Request, h.Streams)
	return g, clean, nil
}

// streams asks for a number of streams, each with processors of its own where threads are bound.
func streams(r *external.Request, n int) {
	r.Load.Streams = n
	if r.Pin {
		r.StreamCPUs = machine.PickCPUs(r.Task.Threads * max(n, 1))
	}
}

// ceilings lists the kinds of models that show the peaks which matter for a model.
func ceilings(o *Options, base *profile.Profile) []string {
	if o.bare {
		return nil
	}
	kinds := []string{string(peakmodels.Float32), string(peakmodels.Memory)}
	if quantised(base) {
		kinds = append(kinds, string(peakmodels.Int8))
	}
	return kinds
}

// differences compares outputs with those of opmeter's own engine.
func (m *Model) differences(ctx context.Context, o *Options, base *profile.Profile, got []external.Tensor, f *external.Facts) ([]profile.Event, error) {
	s, err := NewSession(m, RunOptions{Inputs: o.Inputs, Threads: o.Threads, Carry: o.Carry, Exact: o.Exact, MaxLoop: o.MaxLoop, MaxMemory: o.MaxMemory})
	if err == nil {
		defer s.Close()
		err = s.Run(ctx)
	}
	if err != nil {
		return []profile.Event{{Found: &profile.Finding{
			ID: "outputs.unknown", Severity: profile.Info, Text: fmt.Sprintf("The outputs were not compared: opmeter's own engine gives none (%v).", err),
		}}}, ctx.Err()
	}
	var have, want []outputdiff.Tensor
	for _, t := range got {
		have = append(have, outputdiff.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Data: t.Data, Strings: t.Strings})
	}
	for _, t := range s.Outputs() {
		w := outputdiff.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Data: t.Data, Strings: t.Strings}
		if i := slices.IndexFunc(base.Model.Outputs, func(b profile.Tensor) bool { return b.Name == t.Name }); i >= 0 && base.Model.Outputs[i].Scale != nil {
			w.Scale = *base.Model.Outputs[i].Scale
		}
		want = append(want, w)
	}
	ds := outputdiff.Compare(have, want, outputdiff.Options{With: "opmeter", Quantised: quantised(base), Half: f.Half})
	events := []profile.Event{{Noted: &profile.Noted{Differences: ds}}}
	if found := outputdiff.Finding(ds); found != nil {
		events = append(events, profile.Event{Found: found})
	}
	return events, nil
}

// quantised reports whether a model computes in integers of eight bits or less in between.
func quantised(p *profile.Profile) bool {
	return slices.ContainsFunc(p.Layers, func(l profile.Layer) bool {
		return l.MACs != nil && *l.MACs > 0 && slices.ContainsFunc(l.Inputs, func(t profile.Tensor) bool {
			return strings.HasSuffix(t.DType, "int8") || strings.HasSuffix(t.DType, "int4")
		})
	})
}

// given is an input as engines take it.
func given(name string, t *tensor.Tensor) external.Tensor {
	out := external.Tensor{Name: name, DType: t.Type.String(), Shape: t.Shape}
	if t.Type == tensor.String {
		out.Strings = t.Strings
	} else {
		out.Data = t.Data
	}
	if out.Shape == nil {
		out.Shape = []int{}
	}
	return out
}

// file is the model as a file that other programs can read: its own, or one that is made of what
// was read from an archive, a description or memory.
func (m *Model) file() (path string, clean func(), err error) {
	if m.g.Content == nil {
		path, err = filepath.Abs(m.g.Path)
		return path, func() {}, err
	}
	folder, err := os.MkdirTemp("", "opmeter-model-")
	if err != nil {
		return "", nil, err
	}
	clean = func() { _ = os.RemoveAll(folder) }
	name := strings.TrimSuffix(base(m.g.Path), filepath.Ext(base(m.g.Path)))
	path = filepath.Join(folder, name+"."+m.g.Format)
	if err := os.WriteFile(path, m.g.Content, 0o600); err != nil {
		clean()
		return "", nil, err
	}
	return path, clean, nil
}

// FindEngines finds engines on this computer by a list such as
// "opmeter,onnxruntime@1.20,litert=FILE": names, each with the beginning of a version behind an
// "@" or a library behind a "=", and for "tflm=PROGRAM" a command line. It returns one for each,
// nil for opmeter's own. Errors are an [OptionError] or an [EngineError], of one line that says
// how to get what is missing.
func FindEngines(list string) ([]*Engine, error) {
	specs, err := find.Parse(list)
	if err != nil {
		return nil, &OptionError{Option: "Engine", Text: err.Error(), Err: err}
	}
	here := find.Here()
	out := make([]*Engine, len(specs))
	for i, s := range specs {
		if s.Engine == find.Native {
			continue
		}
		f, err := s.Pick(here)
		if err != nil {
			return nil, engineError("", s.Engine, err)
		}
		if f.Command != "" {
			out[i] = &Engine{Name: f.Engine, Library: f.Path, Command: f.Command}
			continue
		}
		helper, err := here.Helper()
		if err != nil {
			return nil, engineError("", s.Engine, err)
		}
		out[i] = &Engine{Name: f.Engine, Library: f.Path, Version: f.Version, Helper: helper}
		if s.Library != "" {
			out[i].Want = s.Version // only the library knows what it is
		}
	}
	return out, nil
}
