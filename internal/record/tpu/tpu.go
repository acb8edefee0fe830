// Package tpu imports Sophgo's profile directories: the records of a tensor processor's monitors
// for each command, and the compiler's log, which assigns commands to layers.
//
// # Time of a layer
//
// Engines work in parallel: while the tensor engine computes one layer, the copy engine loads the
// weights of the next. Each instant in which anything ran is divided equally among the layers
// whose commands ran then, whatever the number of their engines. So the layers' times add up to
// the time in which commands of the model ran, and with the gaps to its latency. The busy times of
// a layer contain all work of its engines, parallel work included.
//
// # Latency
//
// The model's latency is from the start of the first command of its program to the end of the
// last one, over all engines and cores, for each subnet on the chip. A subnet on the host adds the
// host's interval. Copies of inputs and outputs by the runtime, and messages before and after the
// program, are shown but do not count.
package tpu

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tpu/capture"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/internal/record/tpu/compat"
	"github.com/opmeter/opmeter/internal/record/tpu/reginfo"
	"github.com/opmeter/opmeter/profile"
)

// Name is the format's name.
const Name = "sophgo-tpu"

// Format recognises the files of profile directories.
func Format() *record.Format {
	var chips []string
	for _, c := range command.Chips {
		chips = append(chips, c.Name)
		if c.Report != c.Name && !slices.Contains(chips, c.Report) {
			chips = append(chips, c.Report)
		}
	}
	gives := []string{"latency_s", "expected_s", "timeline", "memory", "shapes"}
	for _, q := range quantities {
		gives = append(gives, q.Key)
	}
	return &record.Format{
		Name:  Name,
		Title: "Sophgo TPU profile directories (BM1684, BM1684X, BM1688, CV186X, CV184X, BM1690)",
		Files: "folder bmprofile_data* of a run with BMRUNTIME_ENABLE_PROFILE=1 (global.profile, iter*.profile, cmd_*.dat, net_stat.sim), cdm_profile_data*, bmlib*.profile, " +
			"the compiler's *.net_N.profile and compiler_profile_N.txt, final.mlir and tensor_location.json beside them, tiuRegInfo_N.txt and tdmaRegInfo_N.txt of simulators",
		Chips:   chips,
		Clocked: true,
		Gives:   gives,
		Match:   match,
		Read:    read,

		Original: original, Commands: commands, Check: check,
	}
}

// match reports how surely a file belongs to a profile directory.
func match(f *record.File) record.Sure {
	switch capture.KindOf(f) {
	case capture.Other:
		if isDump(f) {
			return record.Certain
		}
		return record.No
	case capture.Stream, capture.DriverLog, capture.PortFile, capture.CoreFile:
		return record.Likely // by the name and a few bytes
	}
	return record.Certain
}

func isDump(f *record.File) bool {
	head := f.Head[:min(len(f.Head), 4096)]
	return slices.ContainsFunc([]string{reginfo.TIU, reginfo.TDMA, reginfo.CDMA, reginfo.Chip}, func(kind string) bool {
		return bytes.Contains(head, []byte("__"+kind+"__"))
	})
}

// errNothing is the error for folders with parts of a recording that tell of no command.
var errNothing = errors.New("no commands: want global.profile with iter*.profile, a compiler's log or an estimate beside it")

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

// profileOf returns the profile of a recording, nil if the recording is empty.
func profileOf(in *record.Input, r *capture.Recording) *runlog.Run {
	ls := newLayers(r)
	members := map[*capture.Engine]member{}
	w := &work{r: r}
	records := 0
	for u := range r.Units() {
		members[u.Engine] = ls.assign(u)
		records += u.Len()
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
	p.Target = target(r)
	measured := len(w.walls) > 0
	x := expect(r, ls, p, qs, measured)
	lostLayers(r, ls, p, qs, measured)
	p.Timeline = draw(r, ls, members)
	if !measured && r.Estimate != nil {
		p.Timeline = drawEstimate(r, x)
	}
	whatIf(r, w, p, qs)
	if p.Timeline != nil {
		qs.SetTotal(&profile.Totals{}, quantities[qCommand], 0) // bars have it
	}
	p.Quantities = inOrder(qs.List)
	r.Dropped.To(run)
	findings(run, r, ls, w, x)
	return run
}

// inOrder sorts figures by [quantities]: tables show as many as fit.
func inOrder(list []profile.Quantity) []profile.Quantity {
	at := map[string]int{}
	for i, q := range quantities {
		at[q.Key] = i
	}
	sorting.Func(list, func(a, b profile.Quantity) int { return at[a.Key] - at[b.Key] })
	return list
}

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

// modelTensors sets the inputs and outputs of the model from the program.
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

// mostCores returns the largest number of cores in a step, at least 1.
func mostCores(r *capture.Recording) int {
	n := 1
	for _, s := range r.Steps {
		n = max(n, len(s.Cores))
	}
	return n
}

func target(r *capture.Recording) profile.Target {
	c := r.Chip
	t := profile.Target{ID: strings.ToLower(c.Name), Kind: profile.TargetImport, ClockHz: new(r.Clock.TIU), Accelerator: "TPU", Description: "Sophgo " + c.Name}
	cores := mostCores(r)
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
	return t
}

// original returns the files of the vendor's converter.
func original(ctx context.Context, in *record.Input) ([]record.Output, error) {
	c, err := compat.Read(ctx, in)
	if err != nil {
		return nil, at(in, err)
	}
	files, err := compat.Write(c)
	if err != nil {
		return nil, at(in, err)
	}
	out := make([]record.Output, len(files))
	for i, f := range files {
		out[i] = record.Output(f)
	}
	return out, nil
}

// at adds the folder to an error without a place of its own.
func at(in *record.Input, err error) error {
	if _, ok := errors.AsType[*record.FileError](err); ok || len(in.Files) == 0 {
		return err
	}
	return &record.FileError{Path: in.Files[0].Dir, Err: err}
}

// commands lists the commands of every stream.
func commands(ctx context.Context, in *record.Input, w io.Writer) error {
	return streams(ctx, in, w, func(out io.Writer, name string, _ *command.Chip, engines []*capture.Engine) error {
		for _, e := range engines {
			fmt.Fprintf(out, "# %s, %s: %d commands\n", name, e.Kind, len(e.Program.Commands))
			if err := command.List(out, e.Program.Commands); err != nil {
				return err
			}
			if e.Program.Stop != nil {
				fmt.Fprintf(out, "# stopped: %v\n", e.Program.Stop)
			}
		}
		return nil
	})
}

// check looks for memory that one engine writes and another reads without a defined order.
func check(ctx context.Context, in *record.Input, w io.Writer) (found int, err error) {
	err = streams(ctx, in, w, func(out io.Writer, name string, chip *command.Chip, engines []*capture.Engine) error {
		lists := map[command.Engine][]command.Command{}
		for _, e := range engines {
			lists[e.Kind] = e.Program.Commands
		}
		r := command.Check(chip, lists[command.TIU], lists[command.GDMA])
		for i := range r.Hazards {
			if !r.Hazards[i].Equal { // commands may work in place on the same bytes
				found++
				fmt.Fprintf(out, "%s: %s\n", name, r.Hazards[i].String())
			}
		}
		more := ""
		if r.Cut {
			more = "; there was more than could be compared"
		}
		fmt.Fprintf(out, "# %s: %d commands, %d pairs compared%s\n", name, r.Commands, r.Pairs, more)
		return nil
	})
	return found, err
}

// streams calls do for each core of each subnet's first run. Errors of the writer come from its
// Flush at the end.
func streams(ctx context.Context, in *record.Input, w io.Writer, do func(out io.Writer, name string, chip *command.Chip, engines []*capture.Engine) error) error {
	r, faults, err := capture.Read(ctx, in)
	if err != nil {
		return at(in, err)
	}
	if r == nil || r.Chip == nil {
		return errors.Join(append(faults, at(in, errors.New("holds nothing that a tensor processor recorded")))...)
	}
	out := bufio.NewWriter(w)
	n := 0
	seen := map[uint32]bool{}
	for _, s := range r.Steps {
		if s.HasInfo && seen[s.Info.Subnet] {
			continue
		}
		seen[s.Info.Subnet] = true
		for _, c := range s.Cores {
			for _, e := range c.Engines {
				n += len(e.Program.Commands)
			}
			if err := do(out, fmt.Sprintf("subnet %d, core %d", s.Info.Subnet, c.Number), r.Chip, c.Engines); err != nil {
				return errors.Join(err, out.Flush())
			}
		}
	}
	err = errors.Join(faults...)
	if err == nil && n == 0 {
		err = at(in, errors.New("holds no command streams (cmd_ADDRESS_CORE_ENGINE.dat)"))
	}
	return errors.Join(err, out.Flush())
}
