package capture

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tpu/axis"
	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

const mhz = 1e6

// place puts all records on one axis: ratio of the clocks, offsets of engines and cores,
// one step after the other.
func (r *Recording) place(in *record.Input) {
	var groups []axis.Waits
	var cores []*Core
	for _, s := range r.Steps {
		for _, c := range s.Cores {
			groups, cores = append(groups, waits(c)), append(cores, c)
		}
	}
	r.clocks(in, groups, cores)
	at := 0.0
	for _, s := range r.Steps {
		for _, c := range s.Cores {
			r.seconds(c)
		}
		alignCores(s)
		s.Base = at
		s.Length = origin(s)
		if s.Length == 0 {
			s.Length = s.hostSeconds() // subnets that the computer runs
		}
		at += s.Length
	}
	r.inferences()
}

// hostSeconds is how long the host says that a subnet on the computer took.
func (s *Step) hostSeconds() float64 {
	const most = 1_000_000 // seconds: beyond, the clock is none
	if !s.HasInfo || s.Info.Kind == block.OnTPU {
		return 0
	}
	v, _ := s.HostSeconds()
	return min(v, most)
}

// HostSeconds is the interval between the host's times around the step; ok is false
// where they make no sense.
func (s *Step) HostSeconds() (v float64, ok bool) {
	if !s.HasInfo || s.Info.Begin == 0 || s.Info.End < s.Info.Begin {
		return 0, false
	}
	return float64(s.Info.End-s.Info.Begin) * 1e-6, true
}

// inferences counts how often the first subnet was run: a launch runs it once.
func (r *Recording) inferences() {
	n := -1
	for i, s := range r.Steps {
		if i == 0 || s.HasInfo && r.Steps[0].HasInfo && s.Info.Subnet == r.Steps[0].Info.Subnet {
			n++
		}
		s.Iteration = n
	}
}

// waits lists the dependencies between the engines of a core of which both commands
// were recorded.
func waits(c *Core) (w axis.Waits) {
	t, g := c.Engine(command.TIU), c.Engine(command.GDMA)
	if t == nil || g == nil {
		return w
	}
	each(t, g, func(i, j int) {
		w.TIUStart, w.CopyEnd = append(w.TIUStart, t.Start[i]), append(w.CopyEnd, g.End[j])
	})
	each(g, t, func(i, j int) {
		w.CopyStart, w.TIUEnd = append(w.CopyStart, g.Start[i]), append(w.TIUEnd, t.End[j])
	})
	return w
}

// each calls f with every record of e that waited for a record of o.
func each(e, o *Engine, f func(i, j int)) {
	for i := range e.Command {
		j := e.WaitedFor(i, o)
		if j >= 0 {
			f(i, j)
		}
	}
	if len(e.Issued) == 0 || len(o.Issued) == 0 {
		return
	}
	// Commands of the firmware: the latest one before with the number.
	record := func(x *Engine) map[int32]int {
		m := map[int32]int{}
		for i, k := range x.Issue {
			if k >= 0 && x.Class[i] != Runtime {
				m[k] = i
			}
		}
		return m
	}
	mine, theirs := record(e), record(o)
	latest := map[uint32]int32{}
	j := 0
	for k := range e.Issued {
		for ; j < len(o.Issued) && o.Issued[j].At < e.Issued[k].At; j++ {
			latest[o.Issued[j].Number] = int32(j)
		}
		i, ok := mine[int32(k)]
		d := e.Issued[k].Dep
		if !ok || d == 0 {
			continue
		}
		if x, ok := latest[d]; ok {
			if rec, ok := theirs[x]; ok {
				f(i, rec)
			}
		}
	}
}

// WaitedFor is the record of the other engine's command that record i waited for, -1
// for none.
func (e *Engine) WaitedFor(i int, o *Engine) int {
	k := int(e.Command[i])
	if k < 0 || k >= e.Program.Len() || e.Program.Dep[k] == 0 {
		return -1
	}
	s := e.Program.section(k)
	if s >= len(o.Program.Sections) {
		return -1
	}
	lo, hi := o.Program.bounds(s)
	x := lo + int(e.Program.Dep[k]) - 1
	if x < lo || x >= hi {
		return -1
	}
	return int(o.Record[x])
}

// clocks chooses the frequencies and solves ratio and offsets.
func (r *Recording) clocks(in *record.Input, groups []axis.Waits, cores []*Core) {
	k := &r.Clock
	k.TIU, k.DMA = r.Chip.TIUClock, r.Chip.DMAClock
	k.TIUMethod = "nominal clock of " + r.Chip.Name
	k.DMAMethod = k.TIUMethod
	if r.Chip == command.BM1684X && r.Log.FreqMHz > 0 {
		k.TIU, k.DMA = r.Log.FreqMHz*mhz, r.Log.FreqMHz*mhz
		k.TIUMethod, k.DMAMethod = "tpu_freq of global.profile", "tpu_freq of global.profile"
	}
	k.NominalTIU, k.NominalDMA = k.TIU, k.DMA
	expected := []float64{k.TIU / k.DMA}
	for i, t := range r.Chip.TIUClocks {
		if v := t / r.Chip.DMAClocks[i]; math.Abs(v-expected[0]) > 1e-9 {
			expected = append(expected, v)
		}
	}
	if v := 1.0; r.Chip == command.BM1684 {
		expected = append(expected, v)
	}
	tiu, dma := in.Clocks["tiu"], in.Clocks["dma"]
	if v := in.Clocks[""]; v > 0 && tiu <= 0 && dma <= 0 {
		tiu = v
	}
	if tiu > 0 && dma > 0 {
		k.Given = true
		expected = append([]float64{tiu / dma}, expected...)
	}
	var offsets []axis.Offset
	k.Ratio, offsets = axis.Solve(groups, expected, k.Given)
	switch {
	case k.Given:
		k.TIU, k.DMA, k.TIUMethod, k.DMAMethod = tiu, dma, "given by the user", "given by the user"
	case tiu > 0:
		k.TIU, k.DMA, k.TIUMethod, k.DMAMethod = tiu, tiu/k.Ratio.K, "given by the user", "clock of the tensor engine by the ratio of the two"
	case dma > 0:
		k.TIU, k.DMA, k.TIUMethod, k.DMAMethod = dma*k.Ratio.K, dma, "clock of the copy engine by the ratio of the two", "given by the user"
	case !k.Ratio.Nominal:
		r.byRatio()
	}
	for i, c := range cores {
		c.Offset = offsets[i]
		c.Aligned = offsets[i].Waits > 0
	}
}

// byRatio takes the pair of clocks that the chip is sold with and that have the ratio,
// else the nominal clock of the tensor engine.
func (r *Recording) byRatio() {
	k := &r.Clock
	for i, t := range r.Chip.TIUClocks {
		if d := r.Chip.DMAClocks[i]; math.Abs(t/d/k.Ratio.K-1) < 1e-6 {
			k.TIU, k.DMA = t, d
			k.TIUMethod = fmt.Sprintf("of the pairs of clocks of %s the one whose ratio agrees with what commands waited for", r.Chip.Name)
			k.DMAMethod = k.TIUMethod
			return
		}
	}
	k.DMA = k.TIU / k.Ratio.K
	k.DMAMethod = "clock of the tensor engine by the ratio that agrees with what commands waited for"
}

// oneBase reports whether the engines of a chip are known to count from the same
// instant.
func oneBase(c *command.Chip) bool {
	return c != command.BM1684 && c != command.BM1684X
}

// seconds converts the counters of a core. Time 0 is the first copy.
func (r *Recording) seconds(c *Core) {
	k := r.Clock
	first := func(tensor bool) (int64, bool) {
		least, ok := int64(math.MaxInt64), false
		for _, e := range c.Engines {
			if (e.Kind == command.TIU) == tensor && e.Len() > 0 {
				ok = true
				for _, v := range e.Start {
					least = min(least, v)
				}
			}
		}
		return least, ok
	}
	t0, tiu := first(true)
	g0, dma := first(false)
	offset := 0.0 // of the first tensor command after the first copy, TIU cycles
	if tiu && dma {
		x := c.Offset.X
		if !c.Aligned {
			x = 0
			if !oneBase(r.Chip) {
				x = k.Ratio.K*float64(g0) - float64(t0)
			}
		}
		offset = float64(t0) + x - k.Ratio.K*float64(g0)
	}
	for _, e := range c.Engines {
		n := e.Len()
		e.Begin, e.Finish = make([]float64, n), make([]float64, n)
		hz, base, plus := k.DMA, g0, 0.0
		if e.Kind == command.TIU {
			hz, base, plus = k.TIU, t0, offset
		}
		for i := range n {
			e.Begin[i] = (float64(e.Start[i]-base) + plus) / hz
			e.Finish[i] = (float64(e.End[i]-base) + plus) / hz
		}
	}
}

// messages lists when a core was released from waiting for each message, by message
// and how often it came before.
func (c *Core) messages() map[[2]int]float64 {
	out := map[[2]int]float64{}
	for _, kind := range []command.Engine{command.TIU, command.GDMA} {
		e := c.Engine(kind)
		if e == nil || e.Program.Commands == nil {
			continue
		}
		count := map[int]int{}
		for k := range e.Program.Commands {
			m, ok := e.Program.Commands[k].Message()
			if !ok || !m.Wait {
				continue
			}
			n := count[m.ID]
			count[m.ID]++
			if i := e.Record[k]; i >= 0 {
				out[[2]int{m.ID, n}] = e.Begin[i]
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return out
}

// launch is when the messages end with which every engine of BM1690 begins: the same
// instant on all cores.
func (c *Core) launch() (float64, bool) {
	e := c.Engine(command.GDMA)
	if e == nil || e.Len() < 3 || e.Class[0] != Sync || e.Class[1] != Sync || e.Command[0] >= 0 || e.Command[1] >= 0 {
		return 0, false
	}
	return e.Finish[1], true
}

// alignCores moves the cores of a step so that those that waited for the same message
// were released together.
func alignCores(s *Step) {
	if len(s.Cores) < 2 {
		return
	}
	ref := s.Cores[0].messages()
	for _, c := range s.Cores[1:] {
		var a, b []float64
		for key, t := range c.messages() {
			if x, ok := ref[key]; ok {
				a, b = append(a, x), append(b, t)
			}
		}
		d, ok := axis.Median(a, b)
		c.ShiftMethod = fmt.Sprintf("median over %d messages that both cores waited for", len(a))
		if !ok {
			d, c.ShiftMethod = 0, ""
			x, ok0 := s.Cores[0].launch()
			if y, ok1 := c.launch(); ok0 && ok1 {
				d, c.ShiftMethod = x-y, "end of the messages with which the launch begins"
			}
		}
		c.Shift = d
		for _, e := range c.Engines {
			for i := range e.Begin {
				e.Begin[i] += d
				e.Finish[i] += d
			}
		}
	}
}

// origin moves a step so that it begins at 0 and returns its length.
func origin(s *Step) float64 {
	least, most := math.Inf(1), math.Inf(-1)
	for _, c := range s.Cores {
		for _, e := range c.Engines {
			for i := range e.Begin {
				least, most = min(least, e.Begin[i]), max(most, e.Finish[i])
			}
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	for _, c := range s.Cores {
		for _, e := range c.Engines {
			for i := range e.Begin {
				e.Begin[i] -= least
				e.Finish[i] -= least
			}
		}
	}
	return most - least
}
