package compat

import (
	"cmp"
	"math"
	"sort"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/record/tpu/capture"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// recordWords returns the numbers of words of TIU and DMA records.
func recordWords(chip *command.Chip) (tiu, dma int) {
	if chip.Tagged {
		return 4, 16
	}
	return 8, 64
}

// matchByID pairs a record with the command of its number. Copies by the runtime restart the
// numbers. The records with number 0 delimit them.
func (p *perfAI) matchByID() {
	tw, dw := recordWords(p.in.Chip)
	for k, core := range p.in.Cores {
		var run coreRun
		add := func(list *[]*instr, engine int, id, start, end uint32, commands []command.Command, r words) {
			if int(id) < len(commands) {
				*list = append(*list, &instr{
					engine: engine, core: k, id: int(id) + 1, c: &commands[id], start: int64(start), end: int64(end), raw: r,
				})
			}
		}
		wrap := idWrap{bits: 16}
		for _, r := range records(core.TIU, tw) {
			if p.in.Chip.Tagged {
				add(&run.tiu, engineTIU, r[0]&0xFFFFF, r[2], r[3], core.TIUCommands, r)
			} else {
				add(&run.tiu, engineTIU, wrap.next(r[2]&0xFFFF), r[0], r[1], core.TIUCommands, r)
			}
		}
		for _, r := range cutZeros(records(core.GDMA, dw)) {
			add(&run.gdma, engineGDMA, r[2]&0xFFFFF, r[0], r[1], core.GDMACommands, r)
		}
		if len(run.tiu) > 0 {
			if m, ok := run.tiu[0].c.Message(); ok && !m.Wait {
				run.tiu = run.tiu[1:]
			}
		}
		unwrap(run.tiu, 1<<32)
		unwrap(run.gdma, 1<<32)
		p.cores = append(p.cores, run)
	}
	p.alignWaits()
	for _, c := range p.cores {
		number(c.tiu, 1)
		number(c.gdma, 1)
	}
}

// idWrap undoes the overflow of command numbers: a small number after one near the end of the
// range belongs to the next round.
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

func number(list []*instr, first int) {
	for i, x := range list {
		x.global = i + first
	}
}

// cutZeros returns the copies of a core between the records with number 0.
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

// unwrap undoes the overflow of 32-bit counters by adding a period.
func unwrap(list []*instr, period int64) {
	var add, last int64
	for _, x := range list {
		for _, t := range []*int64{&x.start, &x.end} {
			if *t += add; *t < last {
				*t += period
				add += period
			}
			last = *t
		}
	}
}

// move adds an offset to the times of instructions.
func move(list []*instr, offset int64) {
	for _, x := range list {
		x.start += offset
		x.end += offset
	}
}

// alignWaits puts all records on one axis. It converts cycles to nanoseconds, aligns each
// core's first wait for a message with that of core 0, moves the earliest record to 0, and
// converts back to cycles.
func (p *perfAI) alignWaits() {
	var base int64
	haveBase := false
	first := int64(math.MaxInt64)
	for _, c := range p.cores {
		for x, mhz := range p.clocked(c) {
			x.start = int64(float64(x.start) / mhz * 1000)
			x.end = int64(float64(x.end) / mhz * 1000)
		}
		shift := int64(0)
		for _, x := range c.tiu {
			if m, ok := x.c.Message(); ok && m.Wait {
				if !haveBase {
					base, haveBase = x.start, true
				}
				shift = base - x.start
				break
			}
		}
		for _, list := range c.lists() {
			move(list, shift)
			for _, x := range list {
				first = min(first, x.start)
			}
		}
	}
	for _, c := range p.cores {
		for x, mhz := range p.clocked(c) {
			x.start = int64(float64((x.start-first)*int64(mhz)) / 1000)
			x.end = int64(float64((x.end-first)*int64(mhz)) / 1000)
		}
	}
}

// matchSections pairs records with commands as the converter does for BM1690. The first two
// records of an engine are synchronisation, and the end of the second is the same instant on
// all engines. Records and commands are divided where the numbers do not grow. The sections
// are then aligned by length.
func (p *perfAI) matchSections() {
	tw, dw := recordWords(p.in.Chip)
	first := int64(math.MaxInt64)
	for k, core := range p.in.Cores {
		run := coreRun{
			tiu:  p.sections(k, engineTIU, records(core.TIU, tw), core.TIUCommands),
			gdma: p.sections(k, engineGDMA, records(core.GDMA, dw), core.GDMACommands),
			sdma: p.sections(k, engineSDMA, records(core.SDMA, dw), core.SDMACommands),
		}
		for _, list := range run.lists() {
			number(list, 0)
			for _, x := range list {
				first = min(first, x.start)
			}
		}
		p.cores = append(p.cores, run)
	}
	for _, c := range p.cores {
		for _, list := range c.lists() {
			move(list, -first)
		}
	}
}

const syncRecords = 2

// sections pairs the records of one engine with its commands.
func (p *perfAI) sections(core, engine int, list []words, commands []command.Command) []*instr {
	if len(list) < syncRecords {
		return nil
	}
	all := make([]*instr, len(list))
	for i, r := range list {
		x := &instr{engine: engine, core: core, id: int(r[2]) + 1, start: int64(r[0]), end: int64(r[1]), raw: r}
		all[i] = x
		if i > syncRecords && x.id < all[i-1].id && x.id > 1 && list[i-1][3]&1 == 1 {
			all[i-1], all[i] = x, all[i-1]
		}
	}
	unwrap(all, 1<<32-1)
	base := all[syncRecords-1].end
	all = all[syncRecords:]
	move(all, -base)
	cuts := cutWhere(len(all), func(i int) bool { return all[i].id <= all[i-1].id })
	groups := cutWhere(len(commands), func(i int) bool { return commands[i-1].Ends() })
	// The converter resolves ties from the end of the lists.
	n, m := len(cuts)-1, len(groups)-1
	pair := capture.Align(n, m, func(a, b int) int {
		if a, b = n-1-a, m-1-b; cuts[a+1]-cuts[a] == groups[b+1]-groups[b] {
			return 0
		}
		return 2
	}, one, one)
	var out []*instr
	for s := range n {
		partner := m - 1 - pair[n-1-s]
		paired := partner < m
		if !paired && !p.in.Embedded {
			continue
		}
		for _, x := range all[cuts[s]:cuts[s+1]] {
			if paired {
				at := groups[partner] + x.id - all[cuts[s]].id
				if at >= groups[partner+1] {
					continue
				}
				x.c = &commands[at]
			}
			out = append(out, x)
		}
	}
	return out
}

// one is the cost of a section without a partner.
func one(int) int { return 1 }

// cutWhere returns where the sections of n elements begin, and n.
func cutWhere(n int, begins func(i int) bool) []int {
	cuts := []int{0}
	for i := 1; i < n; i++ {
		if begins(i) {
			cuts = append(cuts, i)
		}
	}
	if n > 0 {
		cuts = append(cuts, n)
	}
	return cuts
}

// joinLayers assigns to each command the object that owns its number, on its core and in its
// subnet.
func (p *perfAI) joinLayers() {
	for k, c := range p.cores {
		for i, list := range c.lists() {
			e := min(i, 1) // element of the pairs
			var kept []*Place
			for i := range p.in.Places {
				if x := &p.in.Places[i]; x.Core == k && x.Subnet == p.in.Subnet && x.Before[e] < x.After[e] {
					kept = append(kept, x)
				}
			}
			sorting.Stable(kept, func(a, b *Place) int { return cmp.Compare(a.Before[e], b.Before[e]) })
			for _, x := range list {
				at := sort.Search(len(kept), func(i int) bool { return kept[i].Before[e] >= x.id }) - 1
				if at >= 0 && kept[at].After[e] >= x.id {
					x.layer = kept[at]
				}
			}
		}
	}
}
