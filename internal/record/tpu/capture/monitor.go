package capture

import (
	"fmt"
	"io"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// MaxRecords bounds the records of one engine in one step.
const MaxRecords = 1 << 24

// monitor reads the records of an engine; nil if absent.
func (r *Recording) monitor(f *record.File, t block.Type, p io.Reader) (*Engine, error) {
	kind := map[block.Type]command.Engine{block.MonitorBD: command.TIU, block.MonitorGDMA: command.GDMA, block.MonitorSDMA: command.SDMA, block.MonitorCDMA: command.CDMA}[t]
	l := block.LayoutOf(r.Chip.Name, kind)
	if l == nil {
		r.Dropped.Add(fmt.Sprintf("blocks of type %d, which %s does not have", t, r.Chip.Name), 1)
		return nil, nil
	}
	e := &Engine{Kind: kind}
	a := adder{e: e, l: l, chip: r.Chip}
	rest, err := l.Each(p, a.add, a.columns()...)
	r.Dropped.Add(fmt.Sprintf("%s: bytes after the last whole record of the %s", base(f.Path), e.Kind), int64(rest))
	r.Dropped.Add(fmt.Sprintf("records of the %s that were never written", e.Kind), a.blank)
	r.Dropped.Add(fmt.Sprintf("records of the %s beyond what is kept", e.Kind), a.over)
	unwrapTimes(e)
	if e.repeats() {
		e.Useful, e.Stall, e.Repeats = nil, nil, true
	}
	return e, err
}

// repeats reports whether the counters of a tensor engine say nothing: silicon was seen
// that writes the length of the command into those of useful and of stalled cycles.
func (e *Engine) repeats() bool {
	if e.Useful == nil || e.Len() == 0 {
		return false
	}
	for i, v := range e.Useful {
		if n := e.End[i] - e.Start[i] + 1; v != n || e.Stall[i] != n {
			return false
		}
	}
	return true
}

// adder adds decoded records to an engine.
type adder struct {
	e           *Engine
	l           *block.Layout
	chip        *command.Chip
	blank, over int64
}

// ports are the fields that hold bytes, by memory.
var ports = [6][]string{
	{"d0_wr", "d1_wr", "axi_wr"}, {"d0_ar", "d1_ar", "axi_ar"}, {"local_wr"}, {"local_ar"}, {"l2_wr"}, {"l2_ar"},
}

var (
	stalls      = []string{"reads_stall", "read_stall", "local_stall", "local_wr_stall", "local_rd_stall", "axi_wr_stall"}
	copyStalls  = []string{"local_wr_stall", "local_rd_stall"}
	otherFields = []string{block.Start, block.End, block.ID, block.Thread, block.LoadLow, block.LoadHigh, block.Conflicts, "read_stall", "local_stall", "axi_ar", "axi_aw", "axi_rd_stall"}
)

func (a *adder) columns() []string {
	out := append([]string{}, otherFields...)
	for _, p := range ports {
		out = append(out, p...)
	}
	return append(out, stalls...)
}

// unwritten marks records that the hardware did not write.
const unwritten = 0xFFFFFFFF

// add takes some thousand records.
func (a *adder) add(t *block.Table) {
	e := a.e
	start, end, id := t.Column(block.Start), t.Column(block.End), t.Column(block.ID)
	thread, conflicts := t.Column(block.Thread), t.Column(block.Conflicts)
	low, high := t.Column(block.LoadLow), t.Column(block.LoadHigh)
	marks := [][]uint32{t.Column("d0_wr"), t.Column("d1_wr"), t.Column("local_wr")}
	old := a.chip == command.BM1684 || a.chip == command.BM1684X
	keep := make([]int, 0, t.N)
	for i := range t.N {
		blank := start[i] == unwritten && end[i] == unwritten || start[i] == 0 && end[i] == 0 && id[i] == 0
		if old && e.Kind != command.TIU {
			for _, m := range marks {
				blank = blank || m != nil && m[i] == unwritten
			}
		}
		switch {
		case blank:
			a.blank++
		case e.Len()+len(keep) >= MaxRecords:
			a.over++
		default:
			keep = append(keep, i)
		}
	}
	for _, i := range keep {
		e.ID = append(e.ID, id[i])
		e.Start = append(e.Start, int64(start[i]))
		e.End = append(e.End, int64(end[i]))
	}
	if thread != nil {
		for _, i := range keep {
			e.Thread = append(e.Thread, uint8(thread[i]))
		}
	}
	if low != nil {
		for _, i := range keep {
			e.Useful = append(e.Useful, int64(low[i])|int64(high[i])<<16)
		}
	}
	sum(&e.Conflicts, keep, conflicts)
	if e.Kind == command.TIU {
		sum(&e.Stall, keep, t.Column("read_stall"))
		return
	}
	for p, to := range []*[]int64{&e.DDRWrite, &e.DDRRead, &e.LocalWrite, &e.LocalRead, &e.L2Write, &e.L2Read} {
		var cols [][]uint32
		for _, name := range ports[p] {
			cols = append(cols, t.Column(name))
		}
		sum(to, keep, cols...)
	}
	if e.Kind == command.CDMA {
		sum(&e.Stall, keep, t.Column("axi_wr_stall"), t.Column("axi_rd_stall"))
		return
	}
	if a.l.Has("axi_ar") {
		sum(&e.ReadBursts, keep, t.Column("axi_ar"))
		sum(&e.WriteBursts, keep, t.Column("axi_aw"))
		sum(&e.Stall, keep, t.Column("local_stall"))
		return
	}
	var cols [][]uint32
	for _, name := range copyStalls {
		cols = append(cols, t.Column(name))
	}
	sum(&e.Stall, keep, cols...)
}

// sum appends the sums of columns that are there.
func sum(to *[]int64, keep []int, cols ...[]uint32) {
	have := false
	for _, c := range cols {
		have = have || c != nil
	}
	if !have {
		return
	}
	begin := len(*to)
	*to = append(*to, make([]int64, len(keep))...)
	out := (*to)[begin:]
	for _, c := range cols {
		if c == nil {
			continue
		}
		for k, i := range keep {
			out[k] += int64(c[i])
		}
	}
}

// unwrapTimes undoes the wraps of 32-bit counters. Records follow one another in the
// order in which commands ended, so that a time that lies far before the one before
// it has wrapped; a little before is the order of two threads.
func unwrapTimes(e *Engine) {
	const wrap, half = int64(1) << 32, int64(1) << 31
	var turns int64
	last := int64(-1)
	for i := range e.Start {
		end := e.End[i] + turns
		if last >= 0 && end < last-half {
			turns += wrap
			end += wrap
		}
		if last >= 0 && end > last+half && turns > 0 && end-wrap > last-half {
			end -= wrap // a neighbour from before the wrap
		}
		start := e.Start[i] + end - end%wrap
		if start > end {
			start -= wrap
		}
		e.Start[i], e.End[i] = start, end
		last = max(last, end)
	}
	if len(e.Start) == 0 {
		return
	}
	least := e.Start[0]
	for _, s := range e.Start {
		least = min(least, s)
	}
	if least < 0 {
		for i := range e.Start {
			e.Start[i] += wrap
			e.End[i] += wrap
		}
	}
}
