package tpu

import (
	"math"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/capture"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// expected is the compiler's estimate on a time axis.
type expected struct {
	hz    float64
	total float64 // seconds
	layer []int32 // of each item
}

// estimateWays are the memories of copies by the number in the estimate.
var estimateWays = [...][2]command.Space{
	{command.DDR, command.Local}, {command.Local, command.DDR}, {command.DDR, command.DDR}, {command.Local, command.Local},
}

// expect sets the time of layers that the compiler expected, by the rule of their measured time.
// The estimate counts cycles of the tensor engine.
func expect(r *capture.Recording, ls *layers, p *profile.Profile, qs *runlog.Quantities, measured bool) *expected {
	e := r.Estimate
	if e == nil || len(e.Items) == 0 {
		return nil
	}
	x := &expected{hz: r.Clock.TIU, layer: make([]int32, len(e.Items))}
	if !measured && e.RuntimeS > 0 && e.Total > 0 && !r.Clock.Given {
		// Without a run, the clock of the file counts: it states its total in both units.
		if hz := float64(e.Total) / e.RuntimeS; hz > 1e7 && hz < 1e10 && math.Abs(hz/r.Clock.TIU-1) > 0.01 {
			x.hz = hz
		}
	}
	copies := make([]sums, len(p.Layers))
	var all sums
	all.addCopy(command.DDR, command.Local, 0)
	streams := make([]stream, 2)
	for i, y := range e.Items {
		x.layer[i] = -1
		if l, ok := ls.at[layerKey{subnet: ls.subnetOfTable(y.Table), id: y.Layer}]; ok && y.Layer >= 0 && int(l) < len(p.Layers) {
			x.layer[i] = l
		}
		s := &streams[0]
		if y.DMA {
			s = &streams[1]
			way := estimateWays[3]
			if y.Dir >= 0 && y.Dir < 3 {
				way = estimateWays[y.Dir]
			}
			all.addCopy(way[0], way[1], y.Bytes)
			if l := x.layer[i]; l >= 0 {
				copies[l].addCopy(way[0], way[1], y.Bytes)
			}
		}
		s.add(float64(y.Start)/x.hz, float64(y.Start+y.Cycles)/x.hz, x.layer[i])
	}
	x.total = float64(e.Total) / x.hz
	for i := range streams {
		sortByBegin(&streams[i])
	}
	times := make([]float64, len(p.Layers))
	divide(streams, func(l int32, d float64) {
		if l >= 0 {
			times[l] += d
		}
	})
	const method = "compiler's estimate, divided among layers by the rule of their time"
	for i, v := range times {
		if v > 0 {
			p.Layers[i].Expected = profile.Value(profile.Imported, v, method)
		}
	}
	_ = p.Totals.Set("expected_s", profile.Value(profile.Imported, x.total, "compiler's estimate"))
	if e.FLOPs > 0 {
		qs.SetTotal(&p.Totals, quantities[qFLOPs], float64(e.FLOPs))
	}
	if !measured {
		for i := range copies {
			copies[i].setCopies(func(f figure, v float64) { qs.Set(&p.Layers[i], quantities[f], v) })
		}
		all.setCopies(func(f figure, v float64) { qs.SetTotal(&p.Totals, quantities[f], v) })
	}
	return x
}

// setCopies calls put with the bytes that copies loaded, stored and copied.
func (s *sums) setCopies(put func(figure, float64)) {
	for _, f := range []figure{qLoad, qStore, qCopy} {
		if s.known[f] {
			put(f, s.v[f])
		}
	}
}

// drawEstimate draws the estimate of a model that did not run.
func drawEstimate(r *capture.Recording, x *expected) *timeline.Timeline {
	if x == nil {
		return nil
	}
	b := newBuilder()
	e := r.Estimate
	var tiu, dma []bar
	for i, z := range e.Items {
		y := empty(float64(z.Start)/x.hz, float64(z.Start+z.Cycles)/x.hz)
		y.layer, y.label = x.layer[i], b.name(e.Names[z.Func])
		if !z.DMA {
			y.number = float64(z.BD)
			tiu = append(tiu, y)
			continue
		}
		y.number, y.bytes = float64(z.GDMA), z.Bytes
		if z.Dir >= 0 && int(z.Dir) < len(estimateWays) {
			way := estimateWays[z.Dir]
			y.direction = b.name(way[0].String() + " to " + way[1].String())
		}
		dma = append(dma, y)
	}
	b.lane(laneKey{timeline.Engine, "core 0", "TIU (estimate)", ""}, tiu)
	b.lane(laneKey{timeline.Engine, "core 0", "GDMA (estimate)", ""}, dma)
	if b.bars == 0 {
		return nil
	}
	b.t.Origin, b.t.Method, b.t.Dropped = "start of the estimate", "the compiler's estimate: nothing was run", new(b.dropped)
	return b.t
}

// lostLayers counts commands without records by layer, and sets the time of layers without any
// command to 0.
func lostLayers(r *capture.Recording, ls *layers, p *profile.Profile, qs *runlog.Quantities, measured bool) {
	if !measured {
		for i := range p.Layers {
			if p.Layers[i].Expected == nil {
				p.Layers[i].State = profile.NoEstimate
			}
		}
		return
	}
	lost := make([]int64, len(p.Layers))
	known := make([]bool, len(p.Layers)) // layers that have commands in the log
	total := int64(0)
	lines := r.Log.Commands.Line
	for e := range r.Units() {
		total += int64(e.Lost)
		for k := range min(len(e.Record), len(e.Program.Lines)) {
			if line := lines[e.Program.Lines[k]]; e.Matched && line >= 0 && e.Record[k] < 0 && !e.Program.System[k] {
				lost[ls.line[line]]++
			}
		}
	}
	for _, line := range lines {
		if line >= 0 && int(line) < len(ls.line) && ls.line[line] >= 0 && int(ls.line[line]) < len(known) {
			known[ls.line[line]] = true
		}
	}
	subnets := map[int32]bool{}
	for _, s := range r.Steps {
		subnets[s.Subnet()] = true
	}
	for i := range p.Layers {
		l := &p.Layers[i]
		if lost[i] > 0 {
			qs.Set(l, quantities[qLostCmds], float64(lost[i]))
		}
		switch {
		case l.Latency != nil:
		case !subnets[ls.subnet[i]]:
			l.State = profile.NotReached
		case lost[i] == 0 && (ls.fromPlaces || !known[i] && len(r.Log.Layers) > 0 && l.Placement == nil):
			l.Latency = profile.Value(profile.Imported, 0, "the compiler gave it no command")
		default:
			l.State, l.Cause = profile.Lost, &profile.Cause{Code: profile.ByRecord}
		}
	}
	if total > 0 {
		qs.SetTotal(&p.Totals, quantities[qLostCmds], float64(total))
	}
}

// hostInterval returns the sum of the host's intervals around subnets on the chip.
func hostInterval(r *capture.Recording) (v float64, ok bool) {
	for _, s := range r.Steps {
		if d, fine := s.HostSeconds(); fine && s.Info.Kind == block.OnTPU {
			v, ok = v+d, true
		}
	}
	return v, ok
}
