package opmeter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/external/find"
	"github.com/opmeter/opmeter/internal/measure/host"
	"github.com/opmeter/opmeter/internal/measure/loadfigures"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/measure/peakmodels"
	"github.com/opmeter/opmeter/internal/measure/roofline"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/internal/source/outputdiff"
	"github.com/opmeter/opmeter/profile"
)

// profile measures with the engine that the options name.
func (m *Model) profile(ctx context.Context, o Options) (*profile.Profile, error) {
	if o.Phases != nil {
		return m.profilePhases(ctx, o)
	}
	if o.Lists != nil {
		return m.profileLists(ctx, o)
	}
	var turn *external.Turn
	if o.Interleaver != nil {
		turn = o.Interleaver.t.Join()
	}
	if o.Engine != nil {
		if turn != nil {
			// Counting the operations of a large model takes a processor for seconds: beside the
			// measurements of others that would disturb them.
			if err := turn.Wait(ctx); err != nil {
				return nil, err
			}
			defer turn.Leave()
		}
		if isProgram(o.Engine) {
			return m.profileTFLM(ctx, o, turn)
		}
		return m.profileExternal(ctx, o, turn)
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

// profileExternal measures with an external engine.
func (m *Model) profileExternal(ctx context.Context, o Options, turn *external.Turn) (*profile.Profile, error) {
	h, err := o.host(m)
	if err != nil {
		return nil, err
	}
	g, clean, err := m.externalOptions(&o, h, turn)
	if err != nil {
		return nil, failed(m.in.Graph.Path, err)
	}
	defer clean()
	p, err := source.Collect(ctx, m.in.Source(external.New(g)), source.Options{Version: buildinfo.Version(), Journal: o.Journal})
	return p, engineError(m.in.Graph.Path, o.Engine.Name, err)
}

// engineError returns an engine's fault as an [engine.Error], its refusal of the model as
// ModelError; other errors belong to the model.
func engineError(path, name string, err error) error {
	e, ok := errors.AsType[*external.Error](err)
	switch {
	case !ok:
		return failed(path, err)
	case e.Code == external.Rejected || e.Code == external.NoFormat:
		return &ModelError{File: path, Offset: -1, Err: e}
	}
	return &engine.Error{Engine: name, Code: string(e.Code), Err: e}
}

// inPlace lists the engines that can write caches in place: the operator is given one buffer as past
// and present, as ONNX Runtime GenAI does.
var inPlace = map[string]bool{"onnxruntime": true}

// externalOptions prepares a measurement with an external engine. clean removes its temporary
// files.
func (m *Model) externalOptions(o *Options, h host.Options, turn *external.Turn) (g external.Options, clean func(), err error) {
	base, err := m.count(o.Inputs, true)
	if err != nil {
		return g, nil, err
	}
	var ins []*tensor.Tensor
	if err := m.in.Reading(func() (err error) { ins, _, err = inputs.Inputs(m.in.Graph, h.Feed); return err }); err != nil {
		return g, nil, err
	}
	file, clean, err := m.in.File()
	if err != nil {
		return g, nil, err
	}
	task := &external.Task{Model: file, Format: m.in.Graph.Format, Threads: h.Threads}
	for i, id := range m.in.Graph.Main().Inputs {
		task.Inputs = append(task.Inputs, externalInput(m.in.Graph.Main().Values[id].Name, ins[i]))
	}
	for _, x := range o.Engine.Options {
		task.Options = append(task.Options, external.Option(x))
	}
	if !inPlace[o.Engine.Name] {
		h.InPlace = nil
	}
	for _, x := range []struct {
		pairs []host.Carry
		to    *map[int]int
	}{{h.Carry, &task.Carry}, {h.InPlace, &task.InPlace}} {
		pairs, err := host.Carries(m.in.Graph.Main(), x.pairs)
		if err != nil {
			clean()
			return g, nil, err
		}
		for _, c := range pairs {
			if *x.to == nil {
				*x.to = map[int]int{}
			}
			(*x.to)[c.Output] = c.Input
		}
	}
	assumed := base
	if len(m.in.Graph.Graphs) > 1 {
		if assumed, err = m.count(o.Inputs, false); err != nil {
			clean()
			return g, nil, err
		}
	}
	g = external.Options{
		Accept: find.Spec{Engine: o.Engine.Name, Version: o.Engine.Want}.Accept,
		Helper: o.Engine.Helper, Turn: turn, Silent: o.Engine.Silent, Model: base, Assumed: assumed, Reference: loop.ReferenceName,
		Progress: o.Progress,
		Outputs: func(ctx context.Context, got []external.Tensor, f *external.Facts) ([]profile.Event, error) {
			return m.differences(ctx, o, base, got, f)
		},
		Request: external.Request{
			Engine: o.Engine.Name, Library: o.Engine.Library, Task: task, MaxMemory: o.MaxMemory,
			Load: loadfigures.Load{Rate: h.Rate, Cold: h.Cold}, Pin: h.Pin, Ceilings: ceilings(o, base),
			Runs: h.Runs, Time: int64(h.Time), WarmupTime: int64(h.WarmupTime), WarmupRuns: h.WarmupRuns, Samples: h.Samples, Events: h.MaxEvents,
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
	if o.SkipPeaks {
		return nil
	}
	var kinds []string
	if types := roofline.Types(base.Layers); !slices.Contains(types, "int8") || slices.Contains(types, "float32") {
		kinds = append(kinds, string(peakmodels.Float32))
	}
	kinds = append(kinds, string(peakmodels.Memory))
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

// externalInput returns an input in the form that external engines take.
func externalInput(name string, t *tensor.Tensor) external.Tensor {
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
