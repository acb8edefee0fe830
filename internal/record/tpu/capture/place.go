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

// place puts all records on one axis by the ratio of the clocks and the offsets of engines and
// cores, one step after the other.
func (r *Recording) place(in *record.Input) {
	var groups []axis.Waits
	for _, c := range r.Cores() {
		groups = append(groups, waits(c))
	}
	r.clocks(in, groups)
	at := 0.0
	inference := -1
	for i, s := range r.Steps {
		for _, c := range s.Cores {
			r.seconds(c)
		}
		alignCores(s)
		s.Base, s.Length = at, origin(s)
		if s.Length == 0 {
			s.Length = s.hostSeconds() // subnets on the host
		}
		at += s.Length
		// An inference runs the first subnet once.
		if i == 0 || s.HasInfo && r.Steps[0].HasInfo && s.Info.Subnet == r.Steps[0].Info.Subnet {
			inference++
		}
		s.Iteration = inference
	}
}

// hostSeconds returns the time of a subnet on the host, at most a million seconds.
func (s *Step) hostSeconds() float64 {
	if !s.HasInfo || s.Info.Kind == block.OnTPU {
		return 0
	}
	v, _ := s.HostSeconds()
	return min(v, 1_000_000)
}

// HostSeconds returns the interval between the host's times around the step. ok is false for
// impossible times.
func (s *Step) HostSeconds() (v float64, ok bool) {
	if !s.HasInfo || s.Info.Begin == 0 || s.Info.End < s.Info.Begin {
		return 0, false
	}
	return float64(s.Info.End-s.Info.Begin) * 1e-6, true
}

// waits lists the dependencies between the engines of a core if both commands have records.
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

// each calls f with every record i of e that waited for a record j of o.
func each(e, o *Engine, f func(i, j int)) {
	for i := range e.Command {
		if j := e.WaitedFor(i, o); j >= 0 {
			f(i, j)
		}
	}
	if len(e.Issued) == 0 || len(o.Issued) == 0 {
		return
	}
	// Commands of the firmware wait for the latest earlier command with the number.
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
		x, had := latest[e.Issued[k].Dep]
		if rec, recorded := theirs[x]; ok && had && recorded && e.Issued[k].Dep != 0 {
			f(i, rec)
		}
	}
}

// WaitedFor returns the record of the other engine's command that record i waited for, -1 for none.
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

// clocks chooses the clocks and solves their ratio and the offsets of the cores.
func (r *Recording) clocks(in *record.Input, groups []axis.Waits) {
	k := &r.Clock
	k.TIU, k.DMA = r.Chip.TIUClock, r.Chip.DMAClock
	k.TIUMethod = "nominal clock of " + r.Chip.Name
	if r.Chip == command.BM1684X && r.Log.FreqMHz > 0 {
		k.TIU, k.DMA = r.Log.FreqMHz*mhz, r.Log.FreqMHz*mhz
		k.TIUMethod = "tpu_freq of global.profile"
	}
	k.DMAMethod = k.TIUMethod
	k.NominalTIU, k.NominalDMA = k.TIU, k.DMA
	expected := []float64{k.TIU / k.DMA}
	for i, t := range r.Chip.TIUClocks {
		if v := t / r.Chip.DMAClocks[i]; math.Abs(v-expected[0]) > 1e-9 {
			expected = append(expected, v)
		}
	}
	if r.Chip == command.BM1684 {
		expected = append(expected, 1)
	}
	tiu, dma := in.Clocks["tiu"], in.Clocks["dma"]
	if v := in.Clocks[""]; v > 0 && tiu <= 0 && dma <= 0 {
		tiu = v
	}
	if k.Given = tiu > 0 && dma > 0; k.Given {
		expected = append([]float64{tiu / dma}, expected...)
	}
	var offsets []axis.Offset
	k.Ratio, offsets = axis.Solve(groups, expected, k.Given)
	const given = "given by the user"
	switch {
	case k.Given:
		k.TIU, k.DMA, k.TIUMethod, k.DMAMethod = tiu, dma, given, given
	case tiu > 0:
		k.TIU, k.DMA, k.TIUMethod, k.DMAMethod = tiu, tiu/k.Ratio.K, given, "clock of the tensor engine by the ratio of the two"
	case dma > 0:
		k.TIU, k.DMA, k.TIUMethod, k.DMAMethod = dma*k.Ratio.K, dma, "clock of the copy engine by the ratio of the two", given
	case !k.Ratio.Nominal:
		r.byRatio()
	}
	i := 0
	for _, c := range r.Cores() {
		c.Offset, c.Aligned = offsets[i], offsets[i].Waits > 0
		i++
	}
}

// byRatio sets the clocks to the pair of the chip that has the ratio, else to the nominal clock of
// the tensor engine and the copies' clock by the ratio.
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

// seconds converts the counters of a core. Time 0 is the first copy.
func (r *Recording) seconds(c *Core) {
	k := r.Clock
	first := [2]int64{math.MaxInt64, math.MaxInt64} // of the tensor engine and of copies
	for _, e := range c.Engines {
		side := &first[min(e.Kind, 1)]
		for _, v := range e.Start {
			*side = min(*side, v)
		}
	}
	t0, g0 := first[0], first[1]
	offset := 0.0 // of the first tensor command after the first copy, TIU cycles
	if t0 < math.MaxInt64 && g0 < math.MaxInt64 {
		x := c.Offset.X
		if !c.Aligned {
			x = 0
			if r.Chip == command.BM1684 || r.Chip == command.BM1684X { // no common start of the counters
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

// shift moves the records of the core by a number of seconds.
func (c *Core) shift(d float64) {
	for _, e := range c.Engines {
		for i := range e.Begin {
			e.Begin[i] += d
			e.Finish[i] += d
		}
	}
}

// messages returns the times at which the waits of a core for messages ended, by message and by the
// number of earlier waits for it.
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

// launch returns the end of the messages with which every engine of BM1690 begins: the same instant
// on all cores.
func (c *Core) launch() (float64, bool) {
	e := c.Engine(command.GDMA)
	if e == nil || e.Len() < 3 || e.Class[0] != Sync || e.Class[1] != Sync || e.Command[0] >= 0 || e.Command[1] >= 0 {
		return 0, false
	}
	return e.Finish[1], true
}

// alignCores moves the cores of a step so that waits for the same message end together.
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
		c.shift(d)
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
		c.shift(-least)
	}
	return most - least
}
