package tpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tpu/capture"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/internal/record/tpu/reginfo"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// dump is the content of the text dumps of a folder: commands with times and work, without layers.
type dump struct {
	chip     *command.Chip
	name     string
	tiu, dma float64 // clocks, Hz
	lanes    []*dumpLane
	layers   *layers
	sums     []sums
	total    sums
	quantity runlog.Quantities
	drop     runlog.Dropped
	b        *builder
}

type dumpLane struct {
	group, name string
	s           stream
	bars        []bar
}

// readDumps returns a profile of the text dumps of a folder, nil without dumps.
func readDumps(ctx context.Context, in *record.Input) (*runlog.Run, error) {
	d := &dump{layers: &layers{at: map[layerKey]int32{}}, b: newBuilder()}
	var faults []error
	dir := ""
	for _, f := range in.Files {
		if !isDump(f) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		dir = f.Dir
		if err := d.file(f); err != nil {
			faults = append(faults, err)
		}
	}
	if len(d.lanes) == 0 {
		return nil, errors.Join(faults...)
	}
	if d.contradicts(in) && !in.ForceArch {
		err := &capture.ChipError{Asked: in.Arch, Says: []string{"the dump says " + d.chip.Name}}
		return nil, errors.Join(append(faults, &record.FileError{Path: dir, Err: err})...)
	}
	return d.run(dir, in), errors.Join(faults...)
}

func (d *dump) file(f *record.File) error {
	in, err := f.Open()
	if err != nil {
		return &record.FileError{Path: f.Path, Err: err}
	}
	defer func() { _ = in.Close() }() // it was only read
	r := reginfo.NewReader(in)
	for {
		b, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			d.drop.Add("lines of dumps that are not entries", int64(r.Skipped()))
			return nil
		case err != nil:
			return &record.FileError{Path: f.Path, Err: err}
		}
		if b.Kind == reginfo.Chip {
			d.constants(b)
			continue
		}
		d.command(b)
	}
}

// contradicts reports whether the dump is of another chip than the user named.
func (d *dump) contradicts(in *record.Input) bool {
	asked := command.ByName(in.Arch)
	return asked != nil && d.chip != nil && asked != d.chip
}

// constants reads the table of the chip. Nominal clocks replace missing ones.
func (d *dump) constants(b *reginfo.Block) {
	if d.tiu > 0 {
		return
	}
	d.name, _ = b.Get("Chip Arch")
	d.chip = command.ByName(d.name)
	for key, to := range map[string]*float64{"TIU Frequency(MHz)": &d.tiu, "DMA Frequency(MHz)": &d.dma} {
		if v, ok := b.Float(key); ok && v > 0 && v < 1e6 {
			*to = v * 1e6
		}
	}
}

// clock returns the frequency of an engine's cycles, 1 GHz if nothing states it.
func (d *dump) clock(tensor bool) float64 {
	stated, nominal := d.dma, 0.0
	if d.chip != nil {
		nominal = d.chip.DMAClock
	}
	if tensor {
		stated = d.tiu
		if d.chip != nil {
			nominal = d.chip.TIUClock
		}
	}
	return cmp.Or(stated, nominal, 1e9)
}

func (d *dump) command(b *reginfo.Block) {
	start, ok1 := b.Float("Start Cycle")
	end, ok2 := b.Float("End Cycle")
	if !ok1 || !ok2 || !(start >= 0 && end >= start && end < 1e15) {
		d.drop.Add("commands of dumps without times", 1)
		return
	}
	tensor := b.Kind == reginfo.TIU
	hz := d.clock(tensor)
	core, _ := b.Int("Core Id")
	engine := "TIU"
	if !tensor {
		engine = "GDMA"
		if n, ok := b.Int("Engine Id"); ok && n == 3 || b.Kind != reginfo.TDMA && ok && n == 4 {
			engine = map[int64]string{3: "SDMA", 4: "CDMA"}[n]
		}
		if b.Kind == reginfo.CDMA {
			engine = "CDMA"
		}
	}
	lane := d.lane(coreName(int(core)), engine)
	name, _ := b.Get("Function Name")
	if name = clean(name); name == "" {
		name = "unknown"
	}
	kind, _ := b.Get("Function Type")
	system := slices.Contains([]string{"sys", "chain end", "nop", "sys_tr_wr", "sys_send", "sys_wait"}, strings.ToLower(strings.TrimSpace(kind)))
	layer := int32(-1)
	if !system {
		layer = d.layers.find(layerKey{name: engine + " " + name}, func(p *profile.Layer, _ *runlog.Hint) {
			p.Op, p.Name = name, engine+" "+name
		})
	}
	x := empty(start/hz, end/hz)
	x.layer, x.label = layer, d.b.name(name)
	if n, ok := b.Int("Cmd Id"); ok {
		x.number = float64(n)
	}
	if s, ok := b.Get("Data Type"); ok {
		x.kind = d.b.name(clean(s))
	}
	var one sums
	one.add(qCommands, 1)
	if tensor {
		one.add(qTIU, x.duration)
		alg, has := b.Float("Alg Ops")
		spent, _ := b.Float("uArch Ops")
		if has && alg >= 0 && spent >= 0 && alg < 1e18 && spent < 1e18 {
			one.add(qOps, alg)
			one.add(qSpent, spent)
		}
	} else {
		one.add(qDMA, x.duration)
		d.moved(b, &one, &x)
	}
	lane.bars = append(lane.bars, x)
	if system {
		return
	}
	lane.s.add(x.start, x.start+x.duration, layer)
	if more := len(d.layers.list) - len(d.sums); more > 0 {
		d.sums = append(d.sums, make([]sums, more)...)
	}
	d.total.addAll(&one)
	if layer >= 0 {
		d.sums[layer].addAll(&one)
	}
}

// spaces are the memories by their names in dumps.
var spaces = map[string]command.Space{"DDR": command.DDR, "LMEM": command.Local, "L2M": command.L2}

// moved adds the stall, the bytes and the direction of a copy.
func (d *dump) moved(b *reginfo.Block, one *sums, x *bar) {
	if v, ok := b.Float("Stall Cycle"); ok && v >= 0 {
		x.stall = v / d.clock(false)
	}
	way, _ := b.Get("Direction")
	n, ok := b.Int("DMA data size(B)")
	from, to, named := strings.Cut(way, "->")
	if !ok || n < 0 || !named {
		one.addCopy(command.Local, command.Local, 0)
		return
	}
	x.direction, x.bytes = d.b.name(strings.ReplaceAll(clean(way), "->", " to ")), n
	src, dst := spaces[from], spaces[to]
	if min(src, dst) == command.NoSpace && max(src, dst) != command.L2 {
		src, dst = command.Local, command.Local // other names count as moves in the chip
	}
	one.addCopy(src, dst, n)
}

// lane returns the lane with a name, which it creates if it is missing.
func (d *dump) lane(group, name string) *dumpLane {
	if i := slices.IndexFunc(d.lanes, func(l *dumpLane) bool { return l.group == group && l.name == name }); i >= 0 {
		return d.lanes[i]
	}
	l := &dumpLane{group: group, name: name}
	d.lanes = append(d.lanes, l)
	return l
}

func (d *dump) run(dir string, in *record.Input) *runlog.Run {
	p := &profile.Profile{Layers: d.layers.list}
	run := &runlog.Run{Profile: p}
	p.Model.Format, p.Model.Path, p.Model.Name = Name, dir, clean(path.Base(dir))
	p.Target = profile.Target{ID: "tpu", Kind: profile.TargetImport, ClockHz: new(d.clock(true)), Accelerator: "TPU", Description: "Sophgo " + clean(d.name)}
	if d.chip != nil {
		p.Target.ID = strings.ToLower(d.chip.Name)
	}
	sorting.Stable(d.lanes, func(a, b *dumpLane) int {
		return cmp.Or(strings.Compare(a.group, b.group), -strings.Compare(a.name, b.name))
	})
	begin, end := math.Inf(1), math.Inf(-1)
	var streams []stream
	for _, l := range d.lanes {
		for _, x := range l.bars {
			begin, end = min(begin, x.start), max(end, x.start+x.duration)
		}
		sortByBegin(&l.s)
		if l.s.len() > 0 {
			streams = append(streams, l.s)
		}
		d.b.lane(laneKey{timeline.Engine, l.group, l.name, ""}, l.bars)
	}
	times := make([]float64, len(p.Layers))
	_, shared := divide(streams, func(l int32, v float64) {
		if l >= 0 {
			times[l] += v
		}
	})
	operators := 0.0
	for i := range p.Layers {
		l := &p.Layers[i]
		l.State, l.Latency = profile.Ran, profile.Value(profile.Imported, times[i], "")
		operators += times[i]
		d.sums[i].set(1, func(f figure, v float64) { d.quantity.Set(l, quantities[f], v) })
	}
	d.total.set(1, func(f figure, v float64) { d.quantity.SetTotal(&p.Totals, quantities[f], v) })
	d.quantity.SetTotal(&p.Totals, quantities[qShared], shared)
	wall := max(end-begin, operators)
	p.Totals.Latency = profile.Value(profile.Imported, wall, "from the first command to the end of the last one")
	p.Reconcile = &profile.Reconcile{WallS: new(wall), OperatorsS: new(operators), GapsS: new(wall - operators)}
	if d.b.bars > 0 {
		d.b.t.Origin, d.b.t.Method, d.b.t.Dropped = "cycle 0 of the dump", "cycles of the dump at the clocks that it states", new(d.b.dropped)
		d.quantity.SetTotal(&profile.Totals{}, quantities[qCommand], 0)
		p.Timeline = d.b.t
	}
	p.Quantities = inOrder(d.quantity.List)
	d.drop.To(run)
	if d.contradicts(in) {
		run.Found("tpu.chip", profile.Problem, "The dump is of %s, and %s was asked for: the dump was followed.", d.chip.Name, in.Arch)
	}
	run.Found("tpu.dump", profile.Info, "The record is a dump of %s by a simulator or converter. Times, operations and bytes are those of the dump. It has no layers: commands are grouped by function.", fmt.Sprintf("%.0f commands", d.total.v[qCommands]))
	return run
}
