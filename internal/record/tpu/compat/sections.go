package compat

import "github.com/opmeter/opmeter/internal/record/tpu/command"

// matchSections pairs records with commands as the converter does for BM1690: the first
// two records of an engine are synchronisation, and the end of the second is the same
// instant on all engines; the rest is cut where numbers do not grow, and so are the
// commands; sections are then aligned by their lengths.
func (p *perfAI) matchSections() {
	tw, dw := recordWords(p.in.Chip)
	first := int64(1<<63 - 1)
	for k, core := range p.in.Cores {
		run := coreRun{
			tiu:  p.sections(k, engineTIU, records(core.TIU, tw), core.TIUCommands),
			gdma: p.sections(k, engineGDMA, records(core.GDMA, dw), core.GDMACommands),
			sdma: p.sections(k, engineSDMA, records(core.SDMA, dw), core.SDMACommands),
		}
		for _, list := range [][]instr{run.tiu, run.gdma, run.sdma} {
			number(list, 0)
			for i := range list {
				first = min(first, list[i].start)
			}
		}
		p.cores = append(p.cores, run)
	}
	for _, c := range p.cores {
		for _, list := range [][]instr{c.tiu, c.gdma, c.sdma} {
			for i := range list {
				list[i].start -= first
				list[i].end -= first
			}
		}
	}
}

const syncRecords = 2

// sections pairs the records of one engine with its commands.
func (p *perfAI) sections(core, engine int, list []words, commands []command.Command) []instr {
	if len(list) < syncRecords {
		return nil
	}
	all := make([]instr, len(list))
	ids := make([]int, len(list))
	for i, r := range list {
		ids[i] = int(r[2])
		all[i] = instr{engine: engine, core: core, id: ids[i] + 1, start: int64(r[0]), end: int64(r[1]), raw: r}
		if i > syncRecords && ids[i] < ids[i-1] && ids[i] > 0 && list[i-1][3]&1 == 1 {
			all[i-1], all[i] = all[i], all[i-1]
			ids[i-1], ids[i] = ids[i], ids[i-1]
		}
	}
	var add, last int64
	for i := range all {
		for _, t := range []*int64{&all[i].start, &all[i].end} {
			if *t += add; *t < last {
				*t += 1<<32 - 1
				add += 1<<32 - 1
			}
			last = *t
		}
	}
	base := all[syncRecords-1].end
	all, ids = all[syncRecords:], ids[syncRecords:]
	for i := range all {
		all[i].start -= base
		all[i].end -= base
	}
	cuts := cutWhere(len(ids), func(i int) bool { return ids[i] <= ids[i-1] })
	groups := cutWhere(len(commands), func(i int) bool { return commands[i-1].Ends() })
	pair := align(lengths(cuts), lengths(groups))
	out := all[:0]
	for s := range len(cuts) - 1 {
		partner := pair[s]
		if partner < 0 && !p.in.Embedded {
			continue
		}
		for i := cuts[s]; i < cuts[s+1]; i++ {
			if partner >= 0 {
				at := groups[partner] + ids[i] - ids[cuts[s]]
				if at >= groups[partner+1] {
					continue
				}
				all[i].c = &commands[at]
			}
			out = append(out, all[i])
		}
	}
	return out
}

// cutWhere returns where sections of n things begin, and n.
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

func lengths(cuts []int) []int {
	var out []int
	for i := 1; i < len(cuts); i++ {
		out = append(out, cuts[i]-cuts[i-1])
	}
	return out
}

// maxTable bounds the table of alignments.
const maxTable = 1 << 24

// align pairs two lists of lengths at the smallest cost: equal lengths cost nothing, a
// length without partner 1, unequal partners 2. The answer has the partner of each
// length of a, -1 for none.
func align(a, b []int) []int {
	pair := make([]int, len(a))
	for i := range pair {
		pair[i] = -1
	}
	width := len(b) + 1
	if (len(a)+1)*width > maxTable {
		return pair
	}
	cost := make([]int32, (len(a)+1)*width)
	for j := range width {
		cost[j] = int32(j)
	}
	meet := func(i, j int) int32 {
		if a[i] == b[j] {
			return 0
		}
		return 2
	}
	for i := 1; i <= len(a); i++ {
		cost[i*width] = int32(i)
		for j := 1; j < width; j++ {
			cost[i*width+j] = min(cost[(i-1)*width+j-1]+meet(i-1, j-1), cost[(i-1)*width+j]+1, cost[i*width+j-1]+1)
		}
	}
	for i, j := len(a), len(b); i > 0 && j > 0; {
		at := cost[i*width+j]
		switch {
		case at == cost[(i-1)*width+j-1]+meet(i-1, j-1): // a poor partner is better than none
			pair[i-1] = j - 1
			i, j = i-1, j-1
		case at == cost[(i-1)*width+j]+1:
			i--
		default:
			j--
		}
	}
	return pair
}
