package capture

import (
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// MaxRecords bounds the records of one engine in one step.
const MaxRecords = 1 << 24

// monitored are the engines of blocks of records.
var monitored = map[block.Type]command.Engine{block.MonitorBD: command.TIU, block.MonitorGDMA: command.GDMA, block.MonitorSDMA: command.SDMA, block.MonitorCDMA: command.CDMA}

// monitor reads the records of an engine. It returns nil if the chip has no such monitor.
func (r *Recording) monitor(f *record.File, t block.Type, p io.Reader) (*Engine, error) {
	kind := monitored[t]
	l := block.LayoutOf(r.Chip.Name, kind)
	if l == nil {
		r.Dropped.Add(fmt.Sprintf("blocks of type %d, which %s does not have", t, r.Chip.Name), 1)
		return nil, nil
	}
	e := &Engine{Kind: kind}
	a := adder{e: e, l: l, chip: r.Chip}
	rest, err := l.Each(p, a.add, a.columns()...)
	if rest > 0 {
		r.Dropped.Add(fmt.Sprintf("%s: the last record of the %s has %d of %d bytes", path.Base(f.Path), e.Kind, rest, l.Size), 1)
	}
	r.Dropped.Add(fmt.Sprintf("records of the %s that were never written", e.Kind), a.blank)
	r.Dropped.Add(fmt.Sprintf("records of the %s beyond what is kept", e.Kind), a.over)
	unwrapTimes(e)
	if e.repeats() {
		e.Useful, e.Stall, e.Repeats = nil, nil, true
	}
	return e, err
}

// repeats reports whether the counters of a tensor engine carry no information: some chips write
// the length of the command into the counters of useful and of stalled cycles.
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

type adder struct {
	e           *Engine
	l           *block.Layout
	chip        *command.Chip
	blank, over int64
}

// ports are the fields with bytes by memory and direction.
var ports = [6][]string{
	{"d0_wr", "d1_wr", "axi_wr"}, {"d0_ar", "d1_ar", "axi_ar"}, {"local_wr"}, {"local_ar"}, {"l2_wr"}, {"l2_ar"},
}

// stalls are the fields with stalled cycles by engine.
var stalls = [...][]string{
	command.TIU: {"read_stall"}, command.GDMA: copyStalls, command.SDMA: copyStalls, command.CDMA: {"axi_wr_stall", "axi_rd_stall"},
}

var copyStalls = []string{"local_stall", "local_wr_stall", "local_rd_stall"}

func (a *adder) columns() []string {
	out := []string{block.Start, block.End, block.ID, block.Thread, block.LoadLow, block.LoadHigh, block.Conflicts, "axi_aw"}
	return append(append(out, slices.Concat(ports[:]...)...), stalls[a.e.Kind]...)
}

// unwritten marks records that the hardware did not write.
const unwritten = 0xFFFFFFFF

func (a *adder) add(t *block.Table) {
	e := a.e
	start, end, id := t.Column(block.Start), t.Column(block.End), t.Column(block.ID)
	marks := [][]uint32{t.Column("d0_wr"), t.Column("d1_wr"), t.Column("local_wr")}
	if a.chip != command.BM1684 && a.chip != command.BM1684X || e.Kind == command.TIU {
		marks = nil
	}
	keep := make([]int, 0, t.N)
	for i := range t.N {
		blank := start[i] == unwritten && end[i] == unwritten || start[i] == 0 && end[i] == 0 && id[i] == 0
		for _, m := range marks {
			blank = blank || m != nil && m[i] == unwritten
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
		e.ID, e.Start, e.End = append(e.ID, id[i]), append(e.Start, int64(start[i])), append(e.End, int64(end[i]))
	}
	if thread := t.Column(block.Thread); thread != nil {
		for _, i := range keep {
			e.Thread = append(e.Thread, uint8(thread[i]))
		}
	}
	if low, high := t.Column(block.LoadLow), t.Column(block.LoadHigh); low != nil {
		for _, i := range keep {
			e.Useful = append(e.Useful, int64(low[i])|int64(high[i])<<16)
		}
	}
	sum(t, keep, &e.Conflicts, block.Conflicts)
	sum(t, keep, &e.Stall, stalls[e.Kind]...)
	if e.Kind == command.TIU {
		return
	}
	for p, to := range []*[]int64{&e.DDRWrite, &e.DDRRead, &e.LocalWrite, &e.LocalRead, &e.L2Write, &e.L2Read} {
		sum(t, keep, to, ports[p]...)
	}
	if e.Kind != command.CDMA && a.l.Has("axi_ar") {
		sum(t, keep, &e.ReadBursts, "axi_ar")
		sum(t, keep, &e.WriteBursts, "axi_aw")
	}
}

// sum appends the sums of the fields that the record has.
func sum(t *block.Table, keep []int, to *[]int64, fields ...string) {
	begin, have := len(*to), false
	for _, field := range fields {
		c := t.Column(field)
		if c == nil {
			continue
		}
		if !have {
			have = true
			*to = append(*to, make([]int64, len(keep))...)
		}
		for k, i := range keep {
			(*to)[begin+k] += int64(c[i])
		}
	}
}

// unwrapTimes undoes the wraps of 32-bit counters. Records are in the order in which commands
// ended. So a time far before the one before has wrapped. A time shortly before it belongs to
// another thread.
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
			end -= wrap // ended before the wrap
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
	if slices.Min(e.Start) < 0 {
		for i := range e.Start {
			e.Start[i] += wrap
			e.End[i] += wrap
		}
	}
}

// Ticks of the firmware's counter.
const (
	assumedTick = 20e-9
	maxTickNs   = 1000 // larger values are invalid
)

func (r *Recording) firmware(c *Core, data []byte) {
	const what = "bytes of the firmware's records that make no record"
	f := &c.Firmware
	if r.raw {
		f.Raw = data
	}
	list, rest := block.ParseDyn(data)
	hasHead := len(list) > 0 && list[0].Type == block.DynHead
	if r.Chip == command.BM1690 && !hasHead { // the new form
		issues, rest := block.ParseIssues(data)
		r.Dropped.Add(what, int64(rest))
		f.Issues = append(f.Issues, issues[min(1, len(issues)):]...)
		return
	}
	r.Dropped.Add(what, int64(rest))
	if len(list) == 0 {
		return
	}
	f.TickS = assumedTick
	if hasHead {
		if ns := list[0].End; ns > 0 && ns <= maxTickNs {
			f.TickS, f.Valid = float64(ns)*1e-9, true
		}
		list = list[1:]
	}
	f.Records = append(f.Records, list...)
}

// issued returns the commands that the firmware issued to an engine of a core.
func (r *Recording) issued(c *Core, e *Engine) []Issued {
	var out []Issued
	f := &c.Firmware
	var layer *block.Func
	var until uint64
	for i := range f.Records {
		d := &f.Records[i]
		switch d.Type & 0xFF {
		case block.DynFunc:
			x := d.Func()
			layer, until = &x, d.End
		case block.DynNodeSet:
			n := d.Node(r.Chip.Name)
			if !n.OK || n.Engine != e.Kind {
				continue
			}
			s := Issued{Number: n.BD, Dep: n.GDMA, Func: -1, Sub: -1, At: i}
			switch e.Kind {
			case command.GDMA:
				s.Number, s.Dep = n.GDMA, n.BD
			case command.SDMA:
				s.Number = n.SDMA
			}
			if n.Version > 0 || r.Chip == command.BM1684 {
				s.Func, s.Sub = int(n.Function), int(n.Op)
			}
			if layer != nil && (until == 0 || until == 1<<64-1 || d.Begin <= until) {
				s.Layer = layer
			}
			s.Cmd = r.noted(f, d.Profile, e.Kind)
			if s.Cmd != nil {
				s.Func, s.Sub = s.Cmd.Func(), int(s.Cmd.Sub)
			}
			out = append(out, s)
		}
	}
	for i, x := range f.Issues {
		kind, ok := x.Unit()
		if x.Type() != block.DynNodeSet || !ok || kind != e.Kind || kind == command.CDMA && int(x.Extra()>>7) != e.Port {
			continue
		}
		out = append(out, Issued{Number: x.ID, Func: int(x.Task()), Sub: int(x.Sub()), At: i})
	}
	return out
}

// noted returns the command that the firmware added to a record, nil without one.
func (r *Recording) noted(f *Firmware, profile uint32, kind command.Engine) *command.Command {
	for _, x := range f.Extras[profile] {
		if x.Kind != block.ExtraBinary || len(x.Data) < 16 {
			continue
		}
		if c, stop := command.DecodeOne(r.Chip, kind, x.Data); stop == nil {
			return &c
		}
	}
	return nil
}

// Texts returns the texts that the firmware added to a record.
func (f *Firmware) Texts(profile uint32) []string {
	var out []string
	for _, x := range f.Extras[profile] {
		if x.Kind == block.ExtraText && len(x.Data) > 0 {
			out = append(out, string(x.Data))
		}
	}
	return out
}
