package compat

import (
	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// perfAI is what the converter of the newer chips makes of a directory.
type perfAI struct {
	in    *Input
	cores []coreRun
	d     dict // of the command that is written
}

type coreRun struct{ tiu, gdma, sdma []instr }

// newPerfAI matches records with commands, sets the clocks and computes each command's
// figures in the converter's way.
func newPerfAI(in *Input) *perfAI {
	p := &perfAI{in: in}
	if in.Chip == command.BM1690 {
		p.matchSections()
	} else {
		p.matchByID()
	}
	for k := range p.cores {
		c := &p.cores[k]
		averages(c.tiu)
		for _, list := range [][]instr{c.tiu, c.gdma, c.sdma} {
			for i := range list {
				p.derive(&list[i])
			}
		}
	}
	p.joinLayers()
	return p
}

// words of a TIU and of a DMA record.
func recordWords(chip *command.Chip) (tiu, dma int) {
	if chip.Tagged {
		return 4, 16
	}
	return 8, 64
}

// matchByID pairs a record with the command of its number. Copies made by the runtime
// restart the numbers: a rule on the places of number 0 cuts them off.
func (p *perfAI) matchByID() {
	tw, dw := recordWords(p.in.Chip)
	for k, core := range p.in.Cores {
		var run coreRun
		lost := idWrap{bits: 16}
		for _, r := range records(core.TIU, tw) {
			x := instr{engine: engineTIU, core: k, raw: r}
			id := r[2] & 0xFFFF
			x.start, x.end = int64(r[0]), int64(r[1])
			if p.in.Chip.Tagged {
				id, x.start, x.end = r[0]&0xFFFFF, int64(r[2]), int64(r[3])
			} else {
				id = lost.next(id)
			}
			if int(id) < len(core.TIUCommands) {
				x.id, x.c = int(id)+1, &core.TIUCommands[id]
				run.tiu = append(run.tiu, x)
			}
		}
		for _, r := range cutZeros(records(core.GDMA, dw)) {
			id := r[2] & 0xFFFFF
			if int(id) < len(core.GDMACommands) {
				run.gdma = append(run.gdma, instr{
					engine: engineGDMA, core: k, id: int(id) + 1, c: &core.GDMACommands[id],
					start: int64(r[0]), end: int64(r[1]), raw: r,
				})
			}
		}
		if len(run.tiu) > 0 {
			if m, ok := run.tiu[0].c.Message(); ok && !m.Wait {
				run.tiu = run.tiu[1:]
			}
		}
		unwrap(run.tiu)
		unwrap(run.gdma)
		p.cores = append(p.cores, run)
	}
	p.alignWaits()
	for k := range p.cores {
		number(p.cores[k].tiu, 1)
		number(p.cores[k].gdma, 1)
	}
}

// idWrap restores numbers that ran over: behind one near the end of the range a small
// one is of the next round.
type idWrap struct {
	bits      int
	add, last uint32
}

func (w *idWrap) next(id uint32) uint32 {
	if w.last > 65_000 && id < 1000 {
		w.add += 1 << w.bits
	}
	w.last = id
	return id + w.add
}

func number(list []instr, first int) {
	for i := range list {
		list[i].global = i + first
	}
}

// cutZeros keeps of a core's copies what lies between the records with number 0.
func cutZeros(list []words) []words {
	var zeros []int
	for i, r := range list {
		if r[2]&0xFFFFF == 0 {
			zeros = append(zeros, i)
		}
	}
	switch len(zeros) {
	case 0:
		return list
	case 1:
		return list[1:]
	case 2:
		return list[zeros[0]+1 : zeros[1]]
	}
	return list[zeros[1]:zeros[len(zeros)-1]]
}

// unwrap adds what 32-bit counters lost.
func unwrap(list []instr) {
	var add, last int64
	for i := range list {
		for _, t := range []*int64{&list[i].start, &list[i].end} {
			*t += add
			if *t < last {
				*t += 1 << 32
				add += 1 << 32
			}
			last = *t
		}
	}
}

// alignWaits puts all records on one axis: cycles become nanoseconds, every core's first
// wait for a message begins with core 0's, the earliest record at 0; then cycles again.
func (p *perfAI) alignWaits() {
	nanos := func(list []instr, mhz int) {
		for i := range list {
			list[i].start = int64(float64(list[i].start) / float64(mhz) * 1000)
			list[i].end = int64(float64(list[i].end) / float64(mhz) * 1000)
		}
	}
	var base int64
	haveBase := false
	first := int64(1<<63 - 1)
	for k := range p.cores {
		c := &p.cores[k]
		nanos(c.tiu, p.in.TIUMHz)
		nanos(c.gdma, p.in.DMAMHz)
		shift := int64(0)
		for i := range c.tiu {
			if m, ok := c.tiu[i].c.Message(); ok && m.Wait {
				if !haveBase {
					base, haveBase = c.tiu[i].start, true
				}
				shift = base - c.tiu[i].start
				break
			}
		}
		averages(c.tiu)
		for _, list := range [][]instr{c.tiu, c.gdma} {
			for i := range list {
				list[i].start += shift
				list[i].end += shift
				first = min(first, list[i].start)
			}
		}
	}
	cycles := func(list []instr, mhz int) {
		for i := range list {
			list[i].start = int64(float64((list[i].start-first)*int64(mhz)) / 1000)
			list[i].end = int64(float64((list[i].end-first)*int64(mhz)) / 1000)
		}
	}
	for k := range p.cores {
		cycles(p.cores[k].tiu, p.in.TIUMHz)
		cycles(p.cores[k].gdma, p.in.DMAMHz)
	}
}

// derive computes what the converter shows of a command.
func (p *perfAI) derive(x *instr) {
	x.cycles = x.end - x.start + 1
	if x.c == nil {
		x.name, x.kind = "unknown", "unknown"
	} else {
		x.name, x.kind = x.c.Name(), x.c.Op.Name
		if m, ok := x.c.Message(); ok {
			x.msg, x.count = m.ID, m.Count
		}
	}
	if x.engine == engineTIU {
		x.work = command.Work{Alg: 1, Arch: 1}
		if x.c != nil {
			if w, ok := x.c.Work(p.in.Chip); ok {
				x.work = w
			}
		}
		return
	}
	p.deriveCopy(x)
}

// deriveCopy reads a copy's counters.
func (p *perfAI) deriveCopy(x *instr) {
	t := &x.copy
	w := x.raw
	if p.in.Chip.Tagged {
		written, read := uint64(w[10]), uint64(w[5])
		t.ddrBytes = written + read
		t.lmemBytes = t.ddrBytes
		t.ddrCount, t.lmemCount = uint64(w[12])+uint64(w[13]), uint64(w[14])+uint64(w[15])
		t.stall = uint64(w[4])
	} else {
		t.ddrBytes = uint64(w[3]) + uint64(w[6]) + uint64(w[5]) + uint64(w[8])
		t.lmemBytes = uint64(w[9]) + uint64(w[11])
		t.ddrCount, t.lmemCount = t.ddrBytes/16, t.lmemBytes/16
		t.stall = uint64(w[28]) + uint64(w[29])
	}
	t.size = max(t.ddrBytes, t.lmemBytes)
	rate := func(bytes uint64) float64 {
		if p.in.Chip.Tagged {
			return round(ratio(bytes, uint64(x.cycles))*float64(p.in.DMAMHz)/1000, 4)
		}
		return round(ratio(bytes, uint64(x.cycles))*0.75, 4)
	}
	t.ddrBW, t.lmemBW = rate(t.ddrBytes), rate(t.lmemBytes)
	t.bandwidth = rate(t.size)
	t.from, t.to, t.dtype = "DDR", "LMEM", "INT8"
	if x.c != nil {
		p.places(x)
	}
	t.direction = t.from + "->" + t.to
}

// places names the memories of a copy.
func (p *perfAI) places(x *instr) {
	t := &x.copy
	from, to := spaces(p.in.Chip, x.c)
	t.from, t.to = from, to
	t.dtype = x.c.DType().String()
	t.l2 = from != "DDR" && to != "DDR" && (from == "L2M" || to == "L2M")
	if x.c.Op.System() {
		x.name = p.systemName(x.c)
		x.kind = x.name
		return
	}
	if x.c.Op.Type <= 1 && x.c.Sub == 0 {
		switch {
		case from == "L2M" || to == "L2M":
			x.name = "tensor"
		case from == "DDR":
			x.name = "tensorLd"
		case to == "DDR":
			x.name = "tensorSt"
		default:
			x.name = "tensorMv"
		}
	}
}

var systemNames = [...]string{"chain end", "nop", "sys_tr_wr", "sys_send", "sys_wait"}

// systemName is what the converter calls a system command of a copy engine.
func (p *perfAI) systemName(c *command.Command) string {
	if p.in.Chip == command.BM1690 || int(c.Sub) >= len(systemNames) {
		return "DMA_sys"
	}
	return systemNames[c.Sub]
}

// spaces tells the memories by the bits that the converter looks at, system commands
// included.
func spaces(chip *command.Chip, c *command.Command) (from, to string) {
	name := func(low, high command.Role) string {
		h, l := c.Get(high), c.Get(low)
		switch {
		case chip == command.CV184X:
			if l>>31&1 == 1 {
				return "DDR"
			}
			return "LMEM"
		case chip.Tagged:
			switch h >> 8 & 31 {
			case 31:
				return "LMEM"
			case 30:
				return "L2M"
			}
			return "DDR"
		}
		if h>>7&1 == 1 {
			return "DDR"
		}
		return "LMEM"
	}
	return name(command.SrcLow, command.SrcHigh), name(command.DstLow, command.DstHigh)
}
