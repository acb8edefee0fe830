// Package tpu makes profiles of Sophgo's profile directories: what the monitors of a
// tensor processor recorded of each command, with the compiler's log of which layer a
// command is of.
//
// # Time of a layer
//
// Engines work at the same time: while the tensor engine computes one layer, the copy
// engine loads the weights of the next. Each instant in which anything ran is given to
// the layers whose commands ran then, in equal parts whatever the number of their
// engines. So the layers' times add up to the time in which anything of the model ran, and
// with the gaps to its latency. What engines did for a layer beside one another stands in
// its busy times.
//
// # Latency
//
// The model's latency is from the start of the first command of its program to the
// end of the last one, over all engines and cores, for each subnet on the chip; a
// subnet on the host adds the host's interval. Copies of inputs and outputs by the
// runtime, and messages before and after the program, are shown and not counted.
package tpu

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tpu/capture"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/profile"
)

// Name is the format's name.
const Name = "sophgo-tpu"

// Format recognises the files of profile directories.
func Format() *record.Format {
	gives := []string{"latency_s", "expected_s", "timeline", "memory", "shapes"}
	for _, q := range ordered {
		gives = append(gives, q.Key)
	}
	return &record.Format{
		Name:  Name,
		Title: "Sophgo TPU profile directories (BM1684, BM1684X, BM1688, CV186X, CV184X, BM1690)",
		Files: "folder bmprofile_data* of a run with BMRUNTIME_ENABLE_PROFILE=1 (global.profile, iter*.profile, cmd_*.dat, net_stat.sim), cdm_profile_data*, bmlib*.profile, " +
			"the compiler's *.net_N.profile and compiler_profile_N.txt, final.mlir and tensor_location.json beside them, tiuRegInfo_N.txt and tdmaRegInfo_N.txt of simulators",
		Gives: gives,
		Match: match,
		Read:  read,

		Original: original, Commands: commands, Check: check,
	}
}

// match says how surely a file is of a profile directory.
func match(f *record.File) record.Sure {
	switch capture.KindOf(f) {
	case capture.Other:
		if isDump(f) {
			return record.Certain
		}
		return record.No
	case capture.Stream, capture.DriverLog, capture.PortFile, capture.CoreFile:
		return record.Likely // by name, and what a beginning of a few bytes tells
	}
	return record.Certain
}

// isDump reports whether a file is a dump of registers.
func isDump(f *record.File) bool {
	head := f.Head[:min(len(f.Head), 4096)]
	return bytes.Contains(head, []byte("__TIU_REG_INFO__")) || bytes.Contains(head, []byte("__TDMA_REG_INFO__")) ||
		bytes.Contains(head, []byte("__CDMA_REG_INFO__")) || bytes.Contains(head, []byte("__CHIP_ARCH_ARGS__"))
}

// errNothing is returned for folders that hold parts of a recording, and none that says
// what ran or would run.
var errNothing = errors.New("no commands: want global.profile with iter*.profile, a compiler's log or an estimate beside it")

// read makes the profile of a folder.
func read(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	r, faults, err := capture.Read(ctx, in)
	if err != nil {
		return nil, err
	}
	var runs []*runlog.Run
	if r != nil {
		if run := profileOf(in, r); run != nil {
			runs = append(runs, run)
		}
	}
	dumps, err := readDumps(ctx, in)
	if err != nil {
		faults = append(faults, err)
	}
	if dumps != nil {
		runs = append(runs, dumps)
	}
	if len(runs) == 0 && len(faults) == 0 && len(in.Files) > 0 {
		faults = append(faults, &record.FileError{Path: in.Files[0].Path, Err: errNothing})
	}
	return runs, errors.Join(faults...)
}

// profileOf makes the profile of a recording, nil where it tells of nothing.
func profileOf(in *record.Input, r *capture.Recording) *runlog.Run {
	ls := newLayers(r)
	members := map[*capture.Engine]member{}
	w := &work{r: r}
	records := 0
	for _, s := range r.Steps {
		for _, c := range s.Cores {
			for _, e := range c.Engines {
				members[e] = ls.assign(s, c, e)
				records += e.Len()
			}
		}
	}
	if records == 0 && len(ls.list) == 0 && len(r.Drivers) == 0 && len(r.Steps) == 0 {
		return nil
	}
	now := 0
	for _, s := range r.Steps {
		if s.Iteration != now {
			w.close()
			now = s.Iteration
		}
		host := int32(-1)
		if hostTimed(s) {
			host = ls.hostLayer(s)
		}
		w.grow(len(ls.list))
		for _, c := range s.Cores {
			for _, e := range c.Engines {
				w.engine(e, members[e])
			}
		}
		w.step(s, members, host)
	}
	p := &profile.Profile{Layers: ls.list}
	run := &runlog.Run{Profile: p, Hints: ls.hints}
	qs := &runlog.Quantities{}
	w.grow(len(ls.list))
	w.fill(p, qs)
	identify(p, in, r)
	t := target(p, r)
	p.Target = t
	measured := len(w.walls) > 0
	x := expect(r, ls, p, qs, measured)
	lostLayers(r, ls, members, p, qs, measured)
	p.Timeline = draw(r, ls, members)
	if !measured && r.Estimate != nil {
		p.Timeline = drawEstimate(r, ls, x)
	}
	whatIf(r, w, p, qs)
	if p.Timeline != nil {
		qs.SetTotal(&profile.Totals{}, qCommand, 0) // bars have it
	}
	p.Quantities = inOrder(qs.List)
	r.Dropped.To(run)
	findings(run, r, ls, w, x, in)
	return run
}

// inOrder puts the figures that say most first: tables show as many as fit.
func inOrder(list []profile.Quantity) []profile.Quantity {
	var out []profile.Quantity
	for _, q := range ordered {
		for _, x := range list {
			if x.Key == q.Key {
				out = append(out, x)
			}
		}
	}
	return out
}

// identify says which model it is.
func identify(p *profile.Profile, in *record.Input, r *capture.Recording) {
	p.Model.Format = Name
	p.Model.Name = r.Log.NetName
	if g := r.Program; g != nil {
		if p.Model.Name == "" {
			p.Model.Name = g.Name
		}
		p.Model.Producer = "tpu-mlir"
		modelTensors(p, r)
	}
	if len(in.Files) == 0 {
		return
	}
	dir := in.Files[0].Dir
	p.Model.Path = dir
	if p.Model.Name == "" {
		p.Model.Name = path.Base(dir)
	}
	p.Model.Name = clean(p.Model.Name)
}

// modelTensors takes inputs and outputs of the whole model from the program.
func modelTensors(p *profile.Profile, r *capture.Recording) {
	g := r.Program
	shapes := map[string]profile.Tensor{}
	// of several the first one counts
	for _, line := range slices.Backward(slices.Sorted(maps.Keys(g.Ops))) {
		if op := g.Ops[line]; op.Location != "" && op.Type != "" {
			shapes[op.Location] = profile.Tensor{Name: op.Location, DType: elementType(op.Type), Shape: op.Shape}
		}
	}
	of := func(list []string) []profile.Tensor {
		var out []profile.Tensor
		for _, name := range list {
			t, ok := shapes[name]
			if !ok {
				t = profile.Tensor{Name: name}
			}
			out = append(out, t)
		}
		return out
	}
	p.Model.Inputs, p.Model.Outputs = of(g.Inputs), of(g.Outputs)
}

// target describes the chip.
func target(p *profile.Profile, r *capture.Recording) profile.Target {
	c := r.Chip
	t := profile.Target{ID: strings.ToLower(c.Name), Kind: profile.TargetImport, ClockHz: new(r.Clock.TIU), Accelerator: "TPU", Description: "Sophgo " + c.Name}
	cores := 1
	for _, s := range r.Steps {
		cores = max(cores, len(s.Cores))
	}
	if g := r.Program; g != nil && len(r.Steps) == 0 && g.Cores > 0 && g.Cores <= 64 {
		cores = int(g.Cores)
	}
	best := 0.0
	for _, x := range []struct {
		name string
		t    command.DType
	}{{"int8", command.Int8}, {"float16", command.FP16}, {"bfloat16", command.BF16}, {"float32", command.FP32}} {
		if c.Cube8 == 0 {
			break
		}
		if v := peakOf(c, r.Clock.TIU, x.t) * float64(cores); v > 0 {
			t.Peaks = append(t.Peaks, profile.Peak{DType: x.name, OpsPerSecond: v})
			best = max(best, v)
		}
	}
	method := "lanes x input channels x outputs of the tensor engine x 2 x its clock"
	if best == 0 && c.Int8Peak > 0 {
		best, method = c.Int8Peak, "stated by the vendor for the whole chip"
	}
	if best > 0 {
		t.PeakOpsPerSecond = &best
	}
	if c.DDRPeak > 0 {
		v := c.DDRPeak * float64(cores)
		t.PeakBytesPerSecond = &v
		method += "; memory: the vendor's figure for a core"
		if c.L2Peak > 0 {
			t.Levels = append(t.Levels, profile.Level{Name: "L2", BytesPerSecond: c.L2Peak * float64(cores)})
		}
		t.Levels = append(t.Levels, profile.Level{Name: "memory", BytesPerSecond: v})
	}
	if cores > 1 {
		method += ", times the cores that ran"
	}
	t.PeakMethod = method
	p.Settings.Threads = nil
	return t
}
