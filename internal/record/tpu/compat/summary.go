package compat

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// coreSum contains the sums of one core, or of all cores.
type coreSum struct {
	tiu, gdma, sdma      int64 // cycles without waiting
	alg, arch, algCycles uint64
	ddr, l2, sddr        flow
	haveGDMA, haveSDMA   bool
	tiuUs, dmaUs, sdmaUs float64
}

// flow is bytes over cycles.
type flow struct{ bytes, cycles uint64 }

// rate returns the bandwidth in GB/s.
func (f flow) rate(mhz int) float64 { return ratio(f.bytes, f.cycles) * float64(mhz) / 1000 }

// page returns the rate as the page shows it.
func (f flow) page(mhz int) any {
	if f.cycles == 0 {
		return 0
	}
	return fixed(f.rate(mhz), 2)
}

// cell returns the rate as the workbook shows it.
func (f flow) cell(mhz int) string {
	if f.cycles == 0 {
		return "0"
	}
	return repr(round(f.rate(mhz), 2))
}

func (f *flow) add(g flow) {
	f.bytes += g.bytes
	f.cycles += g.cycles
}

// summary adds up the commands of each core. The times of all cores are the largest ones.
func (p *perfAI) summary() (cores []coreSum, all coreSum) {
	for _, c := range p.cores {
		var q coreSum
		for _, x := range c.tiu {
			if x.name != "system.wait_msg" {
				q.tiu += x.cycles
			}
			q.alg += x.work.Alg
			q.arch += x.work.Arch
			q.algCycles += x.work.Cycles
		}
		q.gdma, q.ddr, q.l2 = copySum(c.gdma)
		q.sdma, q.sddr, _ = copySum(c.sdma)
		q.haveGDMA, q.haveSDMA = len(c.gdma) > 0, len(c.sdma) > 0
		q.tiuUs = float64(q.tiu) / float64(p.in.TIUMHz)
		q.dmaUs = float64(q.gdma) / float64(p.in.DMAMHz)
		q.sdmaUs = float64(q.sdma) / float64(p.in.DMAMHz)
		cores = append(cores, q)
		all.tiuUs, all.dmaUs, all.sdmaUs = max(all.tiuUs, q.tiuUs), max(all.dmaUs, q.dmaUs), max(all.sdmaUs, q.sdmaUs)
		all.alg += q.alg
		all.arch += q.arch
		all.algCycles = max(all.algCycles, q.algCycles)
		all.ddr.add(q.ddr)
		all.l2.add(q.l2)
		all.sddr.add(q.sddr)
		all.haveSDMA = all.haveSDMA || q.haveSDMA
	}
	return cores, all
}

// copySum adds up the cycles of copies without waiting, and what moved from or to DDR and L2.
func copySum(list []*instr) (cycles int64, ddr, l2 flow) {
	for _, x := range list {
		if x.name == "sys_wait" {
			continue
		}
		cycles += x.cycles
		f := flow{x.copy.size, uint64(x.cycles)}
		switch {
		case strings.Contains(x.direction(), "DDR"):
			ddr.add(f)
		case strings.Contains(x.direction(), "L2M"):
			l2.add(f)
		}
	}
	return cycles, ddr, l2
}

// total returns the time from the earliest start to the latest end in microseconds. The page
// takes the last record of the copies of a core for the end of each of them.
func (p *perfAI) total(page bool) float64 {
	first, last := math.Inf(1), 0.0
	for _, c := range p.cores {
		copies := slices.Concat(c.gdma, c.sdma)
		for x, mhz := range p.clocked(c) {
			end := x.end
			if page {
				mhz /= 1000
				if x.engine != engineTIU {
					end = copies[len(copies)-1].end
				}
			}
			first, last = min(first, float64(x.start)/mhz), max(last, float64(end)/mhz)
		}
	}
	if math.IsInf(first, 1) {
		return 0
	}
	if page {
		return round((last-first)/1000, 3)
	}
	return round(last-first, 3)
}

// rows returns the rows of the page's summary table.
func (p *perfAI) rows() string {
	var rows []string
	total := p.total(true)
	cores, all := p.summary()
	mhz := p.in.DMAMHz
	sdma := func(have bool, f flow) any {
		switch {
		case !have:
			return 0
		case f.bytes > 0:
			return f.page(mhz)
		}
		return "0.00"
	}
	ratios := 0.0
	for k, q := range cores {
		burst := any(0)
		if q.haveGDMA {
			burst = "0.00"
		}
		ratios += q.tiuUs / total
		rows = append(rows, pyList(strconv.Itoa(k), percent((q.tiuUs+q.dmaUs+q.sdmaUs)/total, 2), total, percent(q.tiuUs/total, 2), q.tiu,
			share2(q.alg, q.arch), q.gdma, q.ddr.page(mhz), q.l2.page(mhz), burst, q.sdma, sdma(q.haveSDMA, q.sddr), 0))
	}
	us := func(v float64) string { return fixed(v, 2) + "us" }
	rows = append(rows, pyList("Overall", percent((all.tiuUs+all.dmaUs)/total, 2), total, percent(ratios/float64(max(1, len(cores))), 2),
		us(all.tiuUs), share2(all.alg, all.arch), us(all.dmaUs), all.ddr.page(mhz), all.l2.page(mhz), "0.00", us(all.sdmaUs),
		sdma(all.haveSDMA, all.sddr), "0.00"))
	return "[" + strings.Join(rows, ", ") + "]"
}
