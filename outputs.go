package opmeter

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/base/subprocess"
	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/external/find"
	"github.com/opmeter/opmeter/internal/measure/host"
	"github.com/opmeter/opmeter/internal/measure/layerdiff"
	"github.com/opmeter/opmeter/internal/model/submodel"
	"github.com/opmeter/opmeter/internal/model/tensor"
	runtime "github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/divergence"
)

// OutputsOptions configures [CompareOutputs]. The zero value runs both models in opmeter's own
// engine with random inputs of seed 0.
type OutputsOptions struct {
	// Inputs are the inputs of the first model. The second gets the same, in its types and layout.
	// Random inputs are made for the second model if its inputs are quantised and those of the
	// first are not.
	Inputs Inputs
	// Engines run the models, nil for opmeter's own.
	Engines [2]*engine.Engine
	// Names are what the sides are called, "" for the model, or the engine if both have one model.
	Names [2]string
	// Threads, Exact, MaxLoop and MaxMemory are those of [RunOptions]; both models together may take
	// MaxMemory.
	Threads   int
	Exact     bool
	MaxLoop   time.Duration
	MaxMemory int64
	// LimitBytes bounds the outputs of each side that are held at a time, 0 for 256 MiB or an eighth
	// of MaxMemory. More outputs take several runs of the models.
	LimitBytes int64
	// Progress is called with the current phase.
	Progress func(phase string, fraction float64)
}

// Validate checks the options without a model. The error is an [OptionError].
func (o *OutputsOptions) Validate() error {
	if o.LimitBytes < 0 {
		return wrong("LimitBytes", "use 0 or more, not %d", o.LimitBytes)
	}
	for _, e := range o.Engines {
		if isProgram(e) {
			return wrong("Engine", "%s", "tflm=PROGRAM gives no outputs of layers: name an engine that is a library")
		}
	}
	r := RunOptions{Inputs: o.Inputs, Threads: o.Threads, MaxMemory: o.MaxMemory}
	return r.Validate()
}

// heldPart is the part of the memory limit that outputs of layers may take by default.
const heldPart = 8

// CompareOutputs runs two models, or one model in two engines, on the same inputs, and compares the
// outputs of all layers. The report says at which layer they part; errors of a layer that those
// before it have made are not blamed on it. External engines compute the outputs of layers as
// outputs of the model, so that they do not fuse those layers. Errors are an [OptionError],
// [ModelError] or [engine.Error].
func CompareOutputs(ctx context.Context, a, b *Model, o OutputsOptions) (*divergence.Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	models := [2]*Model{a, b}
	var ins [2][]*tensor.Tensor
	first := 0
	if len(o.Inputs.Files) == 0 && len(o.Inputs.Shapes) == 0 && layerdiff.Exact(b.in.Graph, a.in.Graph) {
		first = 1
	}
	var held, limit int
	for _, k := range []int{first, 1 - first} {
		m := models[k]
		f, err := o.Inputs.feed(m.in)
		if err != nil {
			return nil, err
		}
		if limit, err = m.in.MemoryLimit(o.MaxMemory); err != nil {
			return nil, failed(m.in.Graph.Path, err)
		}
		f.MaxBytes = limit
		err = m.in.Reading(func() (err error) {
			if k == first {
				ins[k], _, err = host.Inputs(m.in.Graph, f)
			} else {
				ins[k], err = layerdiff.Feed(ins[first], models[first].in.Graph, m.in.Graph)
			}
			return err
		})
		if err != nil {
			return nil, failed(m.in.Graph.Path, err)
		}
		held += runtime.InputBytes(ins[k])
	}
	if o.Engines[0] == nil && o.Engines[1] == nil {
		limit /= 2 // both models are in memory at the same time
	}
	if o.LimitBytes == 0 {
		o.LimitBytes = min(layerdiff.DefaultLimit, max(1, int64(limit/heldPart)))
	}
	c := runtime.Options{Registry: operators.Registry(), Threads: max(o.Threads, 1), Exact: o.Exact, MaxLoop: maxLoop(o.MaxLoop), MaxBytes: limit, Held: held}
	var sides [2]*layerdiff.Side
	for k, m := range models {
		s, err := m.side(&o, k, ins[k], c)
		if err != nil {
			return nil, err
		}
		defer s.Engine.Close()
		sides[k] = s
	}
	var r *divergence.Report
	err := a.in.Reading(func() error {
		return b.in.Reading(func() (err error) {
			r, err = layerdiff.Compare(ctx, sides[0], sides[1], layerdiff.Options{Engine: c, LimitBytes: int(o.LimitBytes), Progress: o.Progress})
			return err
		})
	})
	if err != nil {
		for k, m := range models {
			if e, ok := sides[k].Engine.(*externalOutputs); ok && e.failed {
				return nil, engineError(m.in.Graph.Path, o.Engines[k].Name, err)
			}
		}
		return nil, failed(a.in.Graph.Path, err)
	}
	o.describe(r, sides)
	return r, nil
}

// side prepares a model and its engine.
func (m *Model) side(o *OutputsOptions, k int, ins []*tensor.Tensor, c runtime.Options) (*layerdiff.Side, error) {
	shapes := Inputs{Shapes: map[string][]int{}}
	g := m.in.Graph.Main()
	for i, id := range g.Inputs {
		if !ins[i].Type.IsContainer() {
			shapes.Shapes[g.Values[id].Name] = ins[i].Shape
		}
	}
	f, err := shapes.shapes(m.in)
	if err != nil {
		return nil, err
	}
	if f.MaxBytes, err = m.in.PlanLimit(); err != nil {
		return nil, failed(m.in.Graph.Path, err)
	}
	p, err := m.collect(context.Background(), host.Options{Feed: f, Threads: 1, Static: true, AllBranches: true, Exact: o.Exact}, "")
	if err != nil {
		return nil, err
	}
	s := &layerdiff.Side{Model: m.in.Graph, Profile: p, Inputs: ins}
	if e := o.Engines[k]; e != nil {
		s.External = true
		s.Engine = &externalOutputs{m: m, e: e, ins: ins, threads: c.Threads, memory: o.MaxMemory, p: p, progress: o.Progress}
		return s, nil
	}
	s.Engine = layerdiff.Native(m.in.Graph, ins, c)
	return s, nil
}

// describe says what was compared.
func (o *OutputsOptions) describe(r *divergence.Report, sides [2]*layerdiff.Side) {
	r.Seed, r.Inputs = o.Inputs.Seed, "random"
	switch {
	case len(o.Inputs.Files) > 0:
		r.Inputs = "files"
	case o.Inputs.Zeros:
		r.Inputs = "zeros"
	}
	for k, s := range sides {
		d := &r.Sides[k]
		d.Name, d.Engine, d.EngineVersion = o.Names[k], "opmeter", s.Profile.Settings.EngineVersion
		if e, ok := s.Engine.(*externalOutputs); ok {
			d.Engine, d.EngineVersion = e.e.Name, e.e.Version
			r.Notes = append(r.Notes, e.notes...)
		}
	}
	for k := range r.Sides {
		d := &r.Sides[k]
		switch {
		case d.Name != "":
		case r.Sides[0].Model != r.Sides[1].Model:
			d.Name = d.Model
		default:
			d.Name = d.Engine
		}
	}
}

// externalOutputs runs a model in an external engine, with values as outputs of the model.
type externalOutputs struct {
	m        *Model
	e        *engine.Engine
	ins      []*tensor.Tensor
	threads  int
	memory   int64
	p        *profile.Profile
	progress func(phase string, fraction float64)

	// views are values that the engine does not write as outputs: other values in another shape.
	views  map[int]reshaped
	src    *submodel.Source
	file   string
	clean  func()
	half   bool
	failed bool // the last error is the engine's
	notes  []string
	told   bool // the notes have those of the engine
}

// Open implements [layerdiff.Engine].
func (x *externalOutputs) Open(_ context.Context, ids []int) (missing map[int]error, bytes map[int]int, err error) {
	if err := x.open(); err != nil {
		return nil, nil, err
	}
	missing, bytes = map[int]error{}, map[int]int{}
	size, shape := map[string]int{}, map[string][]int64{}
	for i := range x.p.Layers {
		for _, t := range x.p.Layers[i].Outputs {
			if t.Bytes != nil && t.Name != "" {
				size[t.Name], shape[t.Name] = int(*t.Bytes), t.Shape
			}
		}
	}
	g := x.m.in.Graph.Main()
	x.findViews(shape)
	for _, id := range ids {
		if v, ok := x.views[id]; ok {
			id = v.of
		}
		switch n, ok := size[g.Values[id].Name]; {
		case !x.src.Has(id):
			missing[id] = errors.New("it is inside the call of a function of the model")
		case ok:
			bytes[id] = n
		}
	}
	return missing, bytes, nil
}

// reshaped is a value in another shape.
type reshaped struct {
	of    int
	shape []int
}

// findViews finds the outputs of operators that LiteRT computes in place: up to release 2.3 it does
// not write them to the buffer of an output. They are those of the operator's input.
func (x *externalOutputs) findViews(shapes map[string][]int64) {
	if x.e.Name != "litert" {
		return
	}
	x.views = map[int]reshaped{}
	g := x.m.in.Graph.Main()
	made := map[int]bool{}
	for _, n := range g.Nodes {
		for _, id := range n.Outputs {
			made[id] = true
		}
		if !slices.Contains([]string{"RESHAPE", "SQUEEZE", "EXPAND_DIMS"}, n.Op) || len(n.Inputs) == 0 || len(n.Outputs) != 1 || !made[n.Inputs[0]] {
			continue
		}
		v := reshaped{of: n.Inputs[0]}
		if before, ok := x.views[v.of]; ok {
			v.of = before.of
		}
		for _, d := range shapes[g.Values[n.Outputs[0]].Name] {
			v.shape = append(v.shape, int(max(d, 0)))
		}
		if v.shape != nil {
			x.views[n.Outputs[0]] = v
		}
	}
	if len(x.views) > 0 {
		x.notes = append(x.notes, "LiteRT computes RESHAPE, SQUEEZE and EXPAND_DIMS in place and does not write their outputs to buffers of its caller: the rows show their inputs in the new shape.")
	}
}

// open reads the file for extraction.
func (x *externalOutputs) open() (err error) {
	if x.src != nil {
		return nil
	}
	if x.file, x.clean, err = x.m.in.File(); err != nil {
		return err
	}
	x.src, err = submodel.Open(x.file)
	return err
}

// Values implements [layerdiff.Engine].
func (x *externalOutputs) Values(ctx context.Context, ids []int, take func(id int, t *tensor.Tensor) error) error {
	var computed []int
	at := map[int]int{}
	for _, id := range ids {
		if v, ok := x.views[id]; ok {
			id = v.of
		}
		if _, ok := at[id]; !ok {
			at[id] = len(computed)
			computed = append(computed, id)
		}
	}
	part, err := x.src.Values(computed)
	if err != nil {
		return err
	}
	dir, clean, err := subprocess.Folder("model")
	if err != nil {
		return err
	}
	defer clean()
	file := filepath.Join(dir, "part."+x.m.in.Graph.Format)
	if err := os.WriteFile(file, part.Data, 0o600); err != nil {
		return err
	}
	part.Data = nil
	got, err := x.run(ctx, file)
	if err != nil {
		return err
	}
	for _, id := range ids {
		v, view := x.views[id]
		if !view {
			v.of = id
		}
		i := at[v.of]
		if i >= len(got) || got[i] == nil {
			continue
		}
		t := *got[i]
		if view {
			if tensor.Elements(v.shape) != t.Len() {
				continue
			}
			t.Shape = v.shape
		}
		if err := take(id, &t); err != nil {
			return err
		}
	}
	return nil
}

// Outputs implements [layerdiff.Engine].
func (x *externalOutputs) Outputs(ctx context.Context) ([]*tensor.Tensor, error) {
	if err := x.open(); err != nil {
		return nil, err
	}
	got, err := x.run(ctx, x.file)
	if err != nil {
		return nil, err
	}
	out := make([]*tensor.Tensor, len(x.m.in.Graph.Main().Outputs))
	copy(out, got)
	return out, nil
}

// run runs a file once. Outputs that are not tensors are nil.
func (x *externalOutputs) run(ctx context.Context, file string) ([]*tensor.Tensor, error) {
	task := &external.Task{Model: file, Format: x.m.in.Graph.Format, Threads: x.threads}
	g := x.m.in.Graph.Main()
	for i, id := range g.Inputs {
		task.Inputs = append(task.Inputs, externalInput(g.Values[id].Name, x.ins[i]))
	}
	for _, o := range x.e.Options {
		task.Options = append(task.Options, external.Option(o))
	}
	ts, facts, err := external.Outputs(ctx, external.Options{
		Accept: find.Spec{Engine: x.e.Name, Version: x.e.Want}.Accept, Helper: x.e.Helper, Silent: x.e.Silent, Progress: x.progress,
		Request: external.Request{Engine: x.e.Name, Library: x.e.Library, Task: task, MaxMemory: x.memory},
	})
	if err != nil {
		x.failed = true
		return nil, err
	}
	x.half = x.half || facts.Half
	if !x.told {
		x.told, x.notes = true, append(x.notes, facts.Notes...)
	}
	out := make([]*tensor.Tensor, len(ts))
	for i, t := range ts {
		out[i] = received(&t)
	}
	return out, nil
}

// received returns an output of an external engine, nil if it is incomplete.
func received(t *external.Tensor) *tensor.Tensor {
	typ, ok := tensor.ParseType(t.DType)
	if !ok || typ.IsContainer() {
		return nil
	}
	n, err := tensor.CheckShape(typ, t.Shape)
	if err != nil || typ != tensor.String && typ.Bytes(n) > len(t.Data) || typ == tensor.String && len(t.Strings) != n {
		return nil
	}
	if typ == tensor.String {
		return &tensor.Tensor{Type: typ, Shape: t.Shape, Strings: t.Strings, Data: []byte{}}
	}
	x := tensor.New(typ, t.Shape...)
	copy(x.Data, t.Data)
	return x
}

// Half implements [layerdiff.Engine].
func (x *externalOutputs) Half() bool { return x.half }

// Close implements [layerdiff.Engine].
func (x *externalOutputs) Close() {
	if x.src != nil {
		_ = x.src.Close()
	}
	if x.clean != nil {
		x.clean()
	}
}
