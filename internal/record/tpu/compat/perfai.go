package compat

import (
	"cmp"
	"iter"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// perfAI is the output of the newer converter before formatting.
type perfAI struct {
	in    *Input
	cores []coreRun
	d     dict // entries of the current command
}

type coreRun struct{ tiu, gdma, sdma []*instr }

func (c *coreRun) lists() [3][]*instr { return [...][]*instr{c.tiu, c.gdma, c.sdma} }

// The numbers of engines in the converter's output.
const (
	engineTIU  = 0
	engineGDMA = 1
	engineSDMA = 3
)

type instr struct {
	engine, core, global int
	id                   int // number of the command, from 1
	// start and end in cycles of the engine's clock
	start, end, cycles, average int64
	c                           *command.Command // nil if the converter does not know it
	work                        command.Work
	copy                        transfer
	name, kind                  string
	msg, count                  int
	layer                       *Place
	raw                         words
}

// transfer is what the converter derives from the counters of a copy.
type transfer struct {
	direction, from, to, dtype               string
	ddrBytes, lmemBytes, ddrCount, lmemCount uint64
	size, stall                              uint64
	ddrBW, lmemBW, bandwidth                 float64
	l2                                       bool
}

func (t *transfer) rates() (ddr, l2 float64) {
	if t.l2 {
		return 0, t.bandwidth
	}
	return t.bandwidth, 0
}

// newPerfAI matches records with commands, converts the times and computes the figures of each
// command.
func newPerfAI(in *Input) *perfAI {
	p := &perfAI{in: in}
	if in.Chip == command.BM1690 {
		p.matchSections()
	} else {
		p.matchByID()
	}
	for _, c := range p.cores {
		averages(c.tiu)
		for x := range p.clocked(c) {
			p.derive(x)
		}
	}
	p.joinLayers()
	return p
}

// clocked yields the commands of a core, each with the clock of its engine in MHz.
func (p *perfAI) clocked(c coreRun) iter.Seq2[*instr, float64] {
	return func(yield func(*instr, float64) bool) {
		for e, list := range c.lists() {
			mhz := float64(p.in.TIUMHz)
			if e > 0 {
				mhz = float64(p.in.DMAMHz)
			}
			for _, x := range list {
				if !yield(x, mhz) {
					return
				}
			}
		}
	}
}

// all returns the commands of every engine and core by start, end, number and engine.
func (p *perfAI) all() []*instr {
	var list []*instr
	for _, c := range p.cores {
		for x := range p.clocked(c) {
			list = append(list, x)
		}
	}
	sorting.Stable(list, func(a, b *instr) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end), cmp.Compare(a.id, b.id), cmp.Compare(a.engine, b.engine))
	})
	return list
}

const averaged = 200

// averages sets the mean cycles of the last 200 tensor commands of a core, gaps included.
func averages(list []*instr) {
	for i, x := range list {
		span, n := x.end, int64(x.id)
		if x.id > averaged {
			span, n = x.end-list[max(0, i-averaged+1)].start, averaged
		}
		x.average = int64(round(float64(span)/float64(n), 0))
	}
}

func (p *perfAI) derive(x *instr) {
	x.cycles = x.end - x.start + 1
	x.name, x.kind = "unknown", "unknown"
	x.work = command.Work{Alg: 1, Arch: 1}
	if x.c != nil {
		x.name, x.kind = x.c.Name(), x.c.Op.Name
		if m, ok := x.c.Message(); ok {
			x.msg, x.count = m.ID, m.Count
		}
		if w, ok := x.c.Work(p.in.Chip); ok {
			x.work = w
		}
	}
	if x.engine != engineTIU {
		p.deriveCopy(x)
	}
}

func (p *perfAI) deriveCopy(x *instr) {
	t, w := &x.copy, x.raw
	sum := func(at ...int) (n uint64) {
		for _, i := range at {
			n += uint64(w[i])
		}
		return n
	}
	scale := 0.75
	if p.in.Chip.Tagged {
		scale = float64(p.in.DMAMHz)
		t.ddrBytes, t.lmemBytes, t.stall = sum(5, 10), sum(5, 10), sum(4)
		t.ddrCount, t.lmemCount = sum(12, 13), sum(14, 15)
	} else {
		t.ddrBytes, t.lmemBytes, t.stall = sum(3, 5, 6, 8), sum(9, 11), sum(28, 29)
		t.ddrCount, t.lmemCount = t.ddrBytes/16, t.lmemBytes/16
	}
	t.size = max(t.ddrBytes, t.lmemBytes)
	rate := func(bytes uint64) float64 {
		v := ratio(bytes, uint64(x.cycles)) * scale
		if p.in.Chip.Tagged {
			v /= 1000
		}
		return round(v, 4)
	}
	t.ddrBW, t.lmemBW, t.bandwidth = rate(t.ddrBytes), rate(t.lmemBytes), rate(t.size)
	t.from, t.to, t.dtype = "DDR", "LMEM", "INT8"
	if x.c != nil {
		p.memories(x)
	}
	t.direction = t.from + "->" + t.to
}

// memories names the memories of a copy, and the copy by them.
func (p *perfAI) memories(x *instr) {
	t := &x.copy
	t.from = p.memory(x.c, command.SrcLow, command.SrcHigh)
	t.to = p.memory(x.c, command.DstLow, command.DstHigh)
	t.dtype = x.c.DType().String()
	t.l2 = t.from != "DDR" && t.to != "DDR" && (t.from == "L2M" || t.to == "L2M")
	switch {
	case x.c.Op.System():
		x.name = p.systemName(x.c)
		x.kind = x.name
	case x.c.Op.Type > 1 || x.c.Sub != 0:
	case t.from == "L2M" || t.to == "L2M":
		x.name = "tensor"
	case t.from == "DDR":
		x.name = "tensorLd"
	case t.to == "DDR":
		x.name = "tensorSt"
	default:
		x.name = "tensorMv"
	}
}

var systemNames = [...]string{"chain end", "nop", "sys_tr_wr", "sys_send", "sys_wait"}

// systemName returns the converter's name of a system command of a copy engine.
func (p *perfAI) systemName(c *command.Command) string {
	if p.in.Chip == command.BM1690 || int(c.Sub) >= len(systemNames) {
		return "DMA_sys"
	}
	return systemNames[c.Sub]
}

// memory names the memory of an address by the bits that the converter reads, for system
// commands, too.
func (p *perfAI) memory(c *command.Command, low, high command.Role) string {
	h := c.Get(high)
	isDDR := h>>7&1 == 1
	switch {
	case p.in.Chip == command.CV184X:
		isDDR = c.Get(low)>>31&1 == 1
	case p.in.Chip.Tagged && h>>8&31 == 30:
		return "L2M"
	case p.in.Chip.Tagged:
		isDDR = h>>8&31 != 31
	}
	if isDDR {
		return "DDR"
	}
	return "LMEM"
}
