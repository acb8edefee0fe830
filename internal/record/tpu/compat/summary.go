package compat

import (
	"strconv"
	"strings"
)

var summaryHead = []string{
	"CoreId", "Parallelism(%)", "totalTime(us)", "TiuWorkingRatio", "totalTiuCycle", "uArchURate", "totalGdmaCycle",
	"GdmaDdrAvgBandwidth(GB/s)", "GdmaL2AvgBandwidth(GB/s)", "GdmaAvgDdrBurstLength", "totalSdmaCycle", "SdmaDdrAvgBandwidth(GB/s)", "SdmaAvgDdrBurstLength",
}

// coreSum are the sums of one core, or of all.
type coreSum struct {
	tiu, gdma, sdma     int64 // cycles without those of waiting
	alg, arch           uint64
	ddr, l2, sddr       flow
	haveGDMA, haveSDMA  bool
	ratio, tiuUs, dmaUs float64
	sdmaUs              float64
}

// flow is bytes over cycles.
type flow struct{ bytes, cycles uint64 }

func (f flow) rate(mhz int) string {
	if f.cycles == 0 {
		return "0"
	}
	return pyText(fixed(ratio(f.bytes, f.cycles)*float64(mhz)/1000, 2))
}

type sums struct {
	p     *perfAI
	total float64
	cores []coreSum
}

// summary adds up each core's commands.
func (p *perfAI) summary() *sums {
	s := &sums{p: p, total: p.totalTime()}
	for k := range p.cores {
		c := &p.cores[k]
		var q coreSum
		for i := range c.tiu {
			x := &c.tiu[i]
			if x.name != "system.wait_msg" {
				q.tiu += x.cycles
			}
			q.alg += x.work.Alg
			q.arch += x.work.Arch
		}
		q.gdma, q.haveGDMA = copySum(c.gdma, &q.ddr, &q.l2)
		q.sdma, q.haveSDMA = copySum(c.sdma, &q.sddr, &flow{})
		q.tiuUs = float64(q.tiu) / float64(p.in.TIUMHz)
		q.dmaUs = float64(q.gdma) / float64(p.in.DMAMHz)
		q.sdmaUs = float64(q.sdma) / float64(p.in.DMAMHz)
		q.ratio = q.tiuUs / s.total
		s.cores = append(s.cores, q)
	}
	return s
}

func copySum(list []instr, ddr, l2 *flow) (cycles int64, some bool) {
	for i := range list {
		x := &list[i]
		if x.name == "sys_wait" {
			continue
		}
		cycles += x.cycles
		f := ddr
		switch {
		case strings.Contains(x.direction(), "DDR"):
		case strings.Contains(x.direction(), "L2M"):
			f = l2
		default:
			continue
		}
		f.bytes += x.copy.size
		f.cycles += uint64(x.cycles)
	}
	return cycles, len(list) > 0
}

// totalTime is from the earliest start to the latest end in microseconds; of copies it
// takes the end of the last record that was written.
func (p *perfAI) totalTime() float64 {
	first, last := 0.0, 0.0
	have := false
	see := func(start, end float64) {
		if !have || start < first {
			first = start
		}
		if !have || end > last {
			last = end
		}
		have = true
	}
	for k := range p.cores {
		c := &p.cores[k]
		tiu, dma := float64(p.in.TIUMHz)/1000, float64(p.in.DMAMHz)/1000
		for i := range c.tiu {
			see(float64(c.tiu[i].start)/tiu, float64(c.tiu[i].end)/tiu)
		}
		copies := append(append([]instr(nil), c.gdma...), c.sdma...)
		for i := range copies {
			end := float64(copies[len(copies)-1].end) / dma
			see(float64(copies[i].start)/dma, end)
		}
	}
	return round((last-first)/1000, 3)
}

// rows are the rows of the summary table.
func (s *sums) rows() string {
	var rows []string
	p := s.p
	var all coreSum
	for k, q := range s.cores {
		burst, sddr, sburst := "0", "0", "0"
		if q.haveGDMA {
			burst = "'0.00'"
		}
		if q.haveSDMA {
			sddr = "'0.00'"
			if q.sddr.bytes > 0 {
				sddr = q.sddr.rate(p.in.DMAMHz)
			}
		}
		rows = append(rows, "['"+strconv.Itoa(k)+"', "+pyText(percent((q.tiuUs+q.dmaUs+q.sdmaUs)/s.total, 2))+", "+repr(s.total)+", "+
			pyText(percent(q.ratio, 2))+", "+itoa(q.tiu)+", "+pyText(percent(ratio(q.alg, q.arch), 2))+", "+itoa(q.gdma)+", "+
			q.ddr.rate(p.in.DMAMHz)+", "+q.l2.rate(p.in.DMAMHz)+", "+burst+", "+itoa(q.sdma)+", "+sddr+", "+sburst+"]")
		all.sum(&q)
	}
	all.ratio /= float64(max(1, len(s.cores)))
	sddr := "0"
	if all.haveSDMA {
		sddr = "'0.00'"
		if all.sddr.bytes > 0 {
			sddr = all.sddr.rate(p.in.DMAMHz)
		}
	}
	us := func(v float64) string { return pyText(fixed(v, 2) + "us") }
	rows = append(rows, "['Overall', "+pyText(percent((all.tiuUs+all.dmaUs)/s.total, 2))+", "+repr(s.total)+", "+pyText(percent(all.ratio, 2))+", "+
		us(all.tiuUs)+", "+pyText(percent(ratio(all.alg, all.arch), 2))+", "+us(all.dmaUs)+", "+all.ddr.rate(p.in.DMAMHz)+", "+all.l2.rate(p.in.DMAMHz)+
		", '0.00', "+us(all.sdmaUs)+", "+sddr+", '0.00']")
	return "[" + strings.Join(rows, ", ") + "]"
}
