package tpu

import (
	"math"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/capture"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// expected is the compiler's estimate on a time line.
type expected struct {
	hz    float64
	total float64 // seconds
	layer []int32 // of each item
	tiu   stream
	dma   stream
}

// expect gives layers the time that the compiler expected, by the rule of their
// measured time. The estimate's cycles are those of the tensor engine.
func expect(r *capture.Recording, ls *layers, p *profile.Profile, qs *runlog.Quantities, measured bool) *expected {
	e := r.Estimate
	if e == nil || e.Len() == 0 {
		return nil
	}
	x := &expected{hz: r.Clock.TIU, layer: make([]int32, e.Len())}
	if !measured && e.RuntimeS > 0 && e.Total > 0 && !r.Clock.Given {
		// Without a run the file's own clock counts: it states its total in both units.
		if hz := float64(e.Total) / e.RuntimeS; hz > 1e7 && hz < 1e10 && math.Abs(hz/r.Clock.TIU-1) > 0.01 {
			x.hz = hz
		}
	}
	loads := make([]sums, len(p.Layers))
	var all sums
	all.hasDMA = true
	for i := range e.Len() {
		x.layer[i] = -1
		if e.Layer[i] >= 0 {
			if l, ok := ls.at[layerKey{subnet: ls.subnetOfTable(e.Table[i]), id: e.Layer[i]}]; ok && int(l) < len(p.Layers) {
				x.layer[i] = l
			}
		}
		s := &x.tiu
		if e.DMA[i] {
			s = &x.dma
			var one sums
			switch e.Dir[i] {
			case 0:
				one.load = e.Bytes[i]
			case 1:
				one.store = e.Bytes[i]
			case 2:
				one.copied = e.Bytes[i]
			default:
				one.move = e.Bytes[i]
			}
			one.hasDMA = true
			all.add(&one)
			if l := x.layer[i]; l >= 0 {
				loads[l].add(&one)
			}
		}
		s.begin = append(s.begin, float64(e.Start[i])/x.hz)
		s.finish = append(s.finish, float64(e.Start[i]+e.Cycles[i])/x.hz)
		s.layer = append(s.layer, x.layer[i])
		s.keep = append(s.keep, int32(len(s.keep)))
	}
	x.total = float64(e.Total) / x.hz
	sortByBegin(&x.tiu)
	sortByBegin(&x.dma)
	times := make([]float64, len(p.Layers))
	divide([]stream{x.tiu, x.dma}, func(l int32, d float64) {
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
		qs.SetTotal(&p.Totals, qFLOPs, float64(e.FLOPs))
	}
	if !measured {
		estimatedBytes(p, qs, loads, &all)
	}
	return x
}

// estimatedBytes puts what the estimate says of copies into layers and totals.
func estimatedBytes(p *profile.Profile, qs *runlog.Quantities, loads []sums, all *sums) {
	put := func(set func(profile.Quantity, float64) bool, s *sums) {
		set(qLoad, float64(s.load))
		set(qStore, float64(s.store))
		set(qCopy, float64(s.copied))
	}
	for i := range loads {
		if loads[i].hasDMA {
			put(func(q profile.Quantity, v float64) bool { return qs.Set(&p.Layers[i], q, v) }, &loads[i])
		}
	}
	put(func(q profile.Quantity, v float64) bool { return qs.SetTotal(&p.Totals, q, v) }, all)
}

// drawEstimate draws the estimate of a model that did not run.
func drawEstimate(r *capture.Recording, ls *layers, x *expected) *timeline.Timeline {
	if x == nil {
		return nil
	}
	b := newBuilder(maxBars)
	e := r.Estimate
	var tiu, dma []bar
	for i := range e.Len() {
		y := empty(float64(e.Start[i])/x.hz, float64(e.Start[i]+e.Cycles[i])/x.hz)
		y.layer, y.label = x.layer[i], b.name(e.Names[e.Func[i]])
		if !e.DMA[i] {
			y.number = float64(e.BD[i])
			tiu = append(tiu, y)
			continue
		}
		y.number, y.bytes = float64(e.GDMA[i]), e.Bytes[i]
		if d := e.Dir[i]; d >= 0 && d < 4 {
			y.direction = b.name([...]string{"DDR to LMEM", "LMEM to DDR", "DDR to DDR", "LMEM to LMEM"}[d])
		}
		dma = append(dma, y)
	}
	for _, l := range []struct {
		name string
		bars []bar
	}{{"TIU (estimate)", tiu}, {"GDMA (estimate)", dma}} {
		if len(l.bars) > 0 {
			b.lane(laneKey{timeline.Engine, "core 0", l.name, ""}, l.bars)
		}
	}
	if b.bars == 0 {
		return nil
	}
	b.t.Origin, b.t.Method, b.t.Dropped = "start of the estimate", "the compiler's estimate: nothing was run", new(b.dropped)
	return b.t
}

// lostLayers counts commands without records by layer, and says of layers without any
// command that they take no time.
func lostLayers(r *capture.Recording, ls *layers, members map[*capture.Engine]member, p *profile.Profile, qs *runlog.Quantities, measured bool) {
	if !measured {
		for i := range p.Layers {
			if p.Layers[i].Expected == nil {
				p.Layers[i].State = profile.NoEstimate
			}
		}
		return
	}
	lost := make([]int64, len(p.Layers))
	known := make([]bool, len(p.Layers))
	subnets := map[int32]bool{}
	for _, s := range r.Steps {
		if s.HasInfo {
			subnets[int32(s.Info.Subnet)] = true
		} else {
			subnets[0] = true
		}
		for _, c := range s.Cores {
			for _, e := range c.Engines {
				if !e.Matched {
					continue
				}
				for k, i := range e.Record {
					if k >= len(e.Program.Lines) || i >= 0 || e.Program.System[k] {
						continue
					}
					if line := r.Log.Commands.Line[e.Program.Lines[k]]; line >= 0 {
						lost[ls.line[line]]++
					}
				}
			}
		}
	}
	// Layers that have commands in the log.
	for _, line := range r.Log.Commands.Line {
		if line >= 0 && int(line) < len(ls.line) && ls.line[line] >= 0 && int(ls.line[line]) < len(known) {
			known[ls.line[line]] = true
		}
	}
	for i := range p.Layers {
		l := &p.Layers[i]
		if lost[i] > 0 {
			qs.Set(l, qLostCmds, float64(lost[i]))
		}
		switch {
		case l.Latency != nil:
		case !subnets[ls.subnet[i]]:
			l.State = profile.NotReached
		case lost[i] > 0:
			l.State, l.Cause = profile.Lost, &profile.Cause{Code: profile.ByRecord}
		case !known[i] && len(r.Log.Layers) > 0 && l.Placement == nil:
			// The compiler gave it no command.
			l.Latency = profile.Value(profile.Imported, 0, "the compiler gave it no command")
		case ls.fromPlaces:
			l.Latency = profile.Value(profile.Imported, 0, "the compiler gave it no command")
		default:
			l.State, l.Cause = profile.Lost, &profile.Cause{Code: profile.ByRecord}
		}
	}
	total := int64(0)
	for _, s := range r.Steps {
		for _, c := range s.Cores {
			for _, e := range c.Engines {
				total += int64(e.Lost)
			}
		}
	}
	if total > 0 {
		qs.SetTotal(&p.Totals, qLostCmds, float64(total))
	}
}

// hostInterval is the sum of the host's intervals around subnets on the chip.
func hostInterval(r *capture.Recording) (v float64, ok bool) {
	for _, s := range r.Steps {
		if d, fine := s.HostSeconds(); fine && s.Info.Kind == block.OnTPU {
			v, ok = v+d, true
		}
	}
	return v, ok
}
