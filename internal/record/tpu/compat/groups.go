package compat

import (
	"strings"
)

// groupStat is a row of summary.csv.
type groupStat struct {
	name string
	stat
}

// groupStats adds the layers up by kind, in the order of the table of groups. A group
// begins with its first layer's own figures, types included, so that the types of all
// others are added to that layer's.
func (c *classic) groupStats(list []*stat) []*groupStat {
	at := map[string]*groupStat{}
	for _, s := range list {
		name := layerGroup(s.layer.kind)
		g := at[name]
		if g == nil {
			at[name] = &groupStat{name, *s}
			continue
		}
		for d := range s.dtypes {
			g.dtypes[d] = true
		}
		known := false
		for _, k := range g.kinds {
			known = known || k == s.layer.kind
		}
		if !known {
			g.kinds = append(g.kinds, s.layer.kind)
		}
		g.add(s)
	}
	var out []*groupStat
	for _, g := range layerGroups {
		if s := at[g.name]; s != nil {
			s.peak = c.peakTops(s.layer.kind, s.dtypes)
			out = append(out, s)
		}
	}
	return out
}

func (s *stat) add(o *stat) {
	s.weights += o.weights
	s.s2l += o.s2l
	s.l2s += o.l2s
	s.s2s += o.s2s
	s.gdma += o.gdma
	s.gdmaTime += o.gdmaTime
	s.gdmaTheory += o.gdmaTheory
	s.alg += o.alg
	s.arch += o.arch
	s.tiu += o.tiu
	s.tiuTime += o.tiuTime
	s.tiuTheory += o.tiuTheory
}

var summaryCSVHead = []string{
	"Function", "weightBytes", "s2lBytes", "l2sBytes", "s2sBytes", "gdmaCycles", "gdmaTime(us)", "gdmaTimeRatio", "gdmaPTheoTime(us)", "ddrRate",
	"AlgOps", "AlgOpsRatio", "uArchOps", "uArchOpsRatio", "tiuCycles", "tiuTime(us)", "tiuTimeRatio", "tiuPTheoTime(us)", "uArchRate", "PeakTops",
	"DataTypes", "LayerTypes", "totalTime(us)", "Parallelism", "Concurrency",
}

// overall is the sum of all groups with the model's time and peak.
type overall struct {
	stat
	concurrency float64
}

func (c *classic) overall(list []*stat, groups []*groupStat) overall {
	var all overall
	all.layer = &layer{}
	for _, s := range list {
		all.add(s)
	}
	all.gdmaTheory, all.tiuTheory = 0, 0
	for _, g := range groups { // these two are added up by group
		all.gdmaTheory += g.gdmaTheory
		all.tiuTheory += g.tiuTheory
	}
	ops := map[string]uint64{}
	kinds := map[string]map[int]bool{}
	first, last := 0.0, 0.0
	for i, s := range list {
		key := typeSet(s.dtypes, "")
		ops[key] += s.alg
		kinds[key] = s.dtypes
		if i == 0 || s.layer.begin < first {
			first = s.layer.begin
		}
	}
	for _, l := range c.layers {
		if l.ran() {
			last = max(last, l.end)
			first = min(first, l.begin)
		}
	}
	all.total = last - first
	best := ""
	for key, n := range ops {
		if best == "" || n > ops[best] || n == ops[best] && key < best {
			best = key
		}
	}
	all.peak = c.peakTops("conv", kinds[best])
	if least := min(all.tiuTime, all.gdmaTime); least > 0 {
		all.concurrency = (all.tiuTime + all.gdmaTime - all.total) / least
	}
	return all
}

// groupsCSV is summary.csv.
func (c *classic) groupsCSV(groups []*groupStat, all overall) []byte {
	name := strings.ToLower(strings.TrimPrefix(c.in.Chip.Name, "BM"))
	out := appendLine(nil, append(append([]string(nil), summaryCSVHead...), name+" FPS or Token/s"))
	row := func(s *stat, name, types, kinds, total, parallel, concurrency, fps string, shares [4]string) {
		out = appendLine(out, []string{
			name, itoa(s.weights), utoa(s.s2l), utoa(s.l2s), utoa(s.s2s), itoa(s.gdma), repr(s.gdmaTime), shares[0], repr(s.gdmaTheory),
			rate3(s.gdmaTheory, s.gdmaTime), utoa(s.alg), shares[1], utoa(s.arch), shares[2], itoa(s.tiu), repr(s.tiuTime), shares[3], repr(s.tiuTheory),
			rate3(float64(s.alg), float64(s.arch)), repr(s.peak), types, kinds, total, parallel, concurrency, fps,
		})
	}
	for _, g := range groups {
		row(&g.stat, g.name, typeSet(g.dtypes, ""), strings.Join(g.kinds, ","), g.totalText, "0", "0", "0.0", [4]string{
			share3(g.gdmaTime, all.gdmaTime), share3(float64(g.alg), float64(all.alg)), share3(float64(g.arch), float64(all.arch)),
			share3(g.tiuTime, all.tiuTime),
		})
	}
	fps := 0.0
	if all.tiuTime > 0 {
		fps = 1e6 / (float64(all.tiu) / c.mhz)
	}
	row(&all.stat, "Overall", "", "", repr(all.total), share3(all.tiuTime+all.gdmaTime, all.total), percent(all.concurrency, 3), repr(fps),
		[4]string{"100%", "100%", "100%", "100%"})
	return out
}

// macCSV is mac_util.csv: the share of the peak that the model's operations reach, and
// what it would be were parts of it as fast as their peak.
func (c *classic) macCSV(groups []*groupStat, all overall) []byte {
	out := appendLine(nil, []string{"Case", "ReducedTime(us)", "CurrentTotalTime(us)", "Concurrency(%)", "macUtil(%)", "Remark"})
	theory := c.flops / (all.peak * 1024 * 1e3)
	util := func(us float64, decimals int) string {
		if us == 0 {
			return "0.0"
		}
		return repr(round(theory/us*100, decimals))
	}
	out = appendLine(out, []string{
		"origin", "0.0", repr(all.total), percent(all.concurrency, 3), util(all.total, 3), remarkOrigin,
	})
	out = appendLine(out, []string{
		"100% Concurrency", repr(all.total - all.tiuTime), repr(all.tiuTime), "100.0", util(all.tiuTime, 3), remarkParallel,
	})
	for _, own := range []bool{false, true} {
		now, by := all.tiuTime, "ModelPeakTops"
		if own {
			by = "LayerPeakTops"
		}
		for _, g := range groups {
			peak := all.peak
			if own {
				peak = g.peak
			}
			best := float64(g.alg) / (peak * 1e6)
			saved := g.tiuTime - best
			now -= saved
			out = appendLine(out, []string{
				g.name + " tiuTime: " + fixed(g.tiuTime, 2) + " us -> " + fixed(best, 2) + " us", repr(saved), repr(now), "100.0", util(now, 2),
				remarkGroup(g.name, by),
			})
		}
	}
	return out
}

// The remarks of the table as the converter prints them: that time on the processor and
// copies by the runtime are left out, that both engines work all the time, and that a
// group's time is replaced by the one that the peak allows.
const (
	remarkOrigin   = "排除CPU耗时及输入输出在runtime空间和用户空间的搬运耗时"
	remarkParallel = "TIU和GDMA的并行度100%"
)

func remarkGroup(group, peak string) string {
	return group + "的耗时用" + peak + "得到的理论耗时替换"
}
