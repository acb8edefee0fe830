package compat

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// groupStat is a row of summary.csv.
type groupStat struct {
	name string
	stat
}

// groupStats adds up the layers by kind, in the order of the table of groups. A group begins
// with the figures of its first layer. The set of types is shared, so that the first layer gets
// the types of all layers of the group.
func (c *classic) groupStats(list []*stat) []*groupStat {
	at := map[string]*groupStat{}
	for _, s := range list {
		name := layerGroup(s.layer.kind)
		g := at[name]
		if g == nil {
			at[name] = &groupStat{name, *s}
			continue
		}
		maps.Copy(g.dtypes, s.dtypes)
		g.kinds = appendNew(g.kinds, s.layer.kind)
		g.add(s)
	}
	var out []*groupStat
	for _, group := range columns["layer groups"] {
		name, _, _ := strings.Cut(group, "=")
		if s := at[name]; s != nil {
			s.peak = c.peakTops(s.layer.kind, s.dtypes)
			out = append(out, s)
		}
	}
	return out
}

func (s *stat) add(o *stat) {
	s.weights, s.s2l, s.l2s, s.s2s = s.weights+o.weights, s.s2l+o.s2l, s.l2s+o.l2s, s.s2s+o.s2s
	s.gdma, s.gdmaTime, s.gdmaTheory = s.gdma+o.gdma, s.gdmaTime+o.gdmaTime, s.gdmaTheory+o.gdmaTheory
	s.tiu, s.tiuTime, s.tiuTheory = s.tiu+o.tiu, s.tiuTime+o.tiuTime, s.tiuTheory+o.tiuTheory
	s.alg, s.arch = s.alg+o.alg, s.arch+o.arch
}

// overall returns the sum of all groups with the time, the peak and the concurrency of the model.
func (c *classic) overall(list []*stat, groups []*groupStat) (all stat) {
	for _, s := range list {
		all.add(s)
	}
	all.gdmaTheory, all.tiuTheory = 0, 0
	for _, g := range groups { // these two are sums over groups
		all.gdmaTheory += g.gdmaTheory
		all.tiuTheory += g.tiuTheory
	}
	ops := map[string]uint64{}
	kinds := map[string]map[int]bool{}
	best := ""
	for _, s := range list {
		key := strings.Join(typeSet(s.dtypes), ",")
		ops[key] += s.alg
		kinds[key] = s.dtypes
	}
	for key, n := range ops {
		if kinds[best] == nil || n > ops[best] || n == ops[best] && key < best {
			best = key
		}
	}
	first, last := math.Inf(1), 0.0
	for _, l := range c.layers {
		if l.ran {
			first, last = min(first, l.begin), max(last, l.end)
		}
	}
	if len(list) > 0 {
		all.total = last - first
	}
	all.peak = c.peakTops("conv", kinds[best])
	return all
}

// concurrency formats the overlap of both engines, 0 if one of them did nothing.
func (s *stat) concurrency() string { return percent(overlap(s.tiuTime, s.gdmaTime, s.total), 3) }

// groupsCSV returns summary.csv.
func (c *classic) groupsCSV(groups []*groupStat, all stat) []byte {
	name := strings.ToLower(strings.TrimPrefix(c.in.Chip.Name, "BM"))
	out := appendLine(nil, slices.Concat(columns["summary.csv"], []string{name + " FPS or Token/s"}))
	row := func(s *stat, name, types, kinds string, shares [4]string, more ...any) {
		out = appendRow(out, append([]any{
			name, s.weights, s.s2l, s.l2s, s.s2s, s.gdma, s.gdmaTime, shares[0], s.gdmaTheory, rate3(s.gdmaTheory, s.gdmaTime), s.alg, shares[1],
			s.arch, shares[2], s.tiu, s.tiuTime, shares[3], s.tiuTheory, rate3(float64(s.alg), float64(s.arch)), s.peak, types, kinds,
		}, more...)...)
	}
	for _, g := range groups {
		row(&g.stat, g.name, strings.Join(typeSet(g.dtypes), ","), strings.Join(g.kinds, ","), [4]string{
			share3(g.gdmaTime, all.gdmaTime), share3(float64(g.alg), float64(all.alg)), share3(float64(g.arch), float64(all.arch)),
			share3(g.tiuTime, all.tiuTime),
		}, g.totalText, "0", "0", "0.0")
	}
	fps := 0.0
	if all.tiuTime > 0 {
		fps = 1e6 / (float64(all.tiu) / c.mhz)
	}
	row(&all, "Overall", "", "", [4]string{"100%", "100%", "100%", "100%"},
		all.total, share3(all.tiuTime+all.gdmaTime, all.total), all.concurrency(), fps)
	return out
}

// macCSV returns mac_util.csv: the share of the peak that the model's operations reach, and the
// share if parts of the model were as fast as their peak.
func (c *classic) macCSV(groups []*groupStat, all stat) []byte {
	out := appendRow(nil, "Case", "ReducedTime(us)", "CurrentTotalTime(us)", "Concurrency(%)", "macUtil(%)", "Remark")
	theory := c.flops / (all.peak * 1024 * 1e3)
	util := func(us float64, decimals int) float64 {
		if us == 0 {
			return 0
		}
		return round(theory/us*100, decimals)
	}
	out = appendRow(out, "origin", 0.0, all.total, all.concurrency(), util(all.total, 3), remarkOrigin)
	out = appendRow(out, "100% Concurrency", all.total-all.tiuTime, all.tiuTime, 100.0, util(all.tiuTime, 3), remarkParallel)
	for _, by := range []string{"ModelPeakTops", "LayerPeakTops"} {
		now := all.tiuTime
		for _, g := range groups {
			peak := all.peak
			if by == "LayerPeakTops" {
				peak = g.peak
			}
			best := float64(g.alg) / (peak * 1e6)
			saved := g.tiuTime - best
			now -= saved
			out = appendRow(out, caseOf(g.name, g.tiuTime, best), saved, now, 100.0, util(now, 2), remarkGroup(g.name, by))
		}
	}
	return out
}
