package compat

import (
	"cmp"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// cubeTops returns the peak of convolutions of all cores in TOPS for a mode of the model.
func (p *perfAI) cubeTops(mode string) float64 {
	units := [3]float64{32 * 32 * 4, 32 * 32, 32 * 4} // 8, 16 and 32 bits
	switch p.in.Chip {
	case command.CV184X:
		units = [3]float64{4 * 8 * 16, 2 * 8 * 8, 4 * 8 * 16}
	case command.BM1690:
		units = [3]float64{64 * 64 * 4 * 8, 64 * 64 * 2 * 8, 64 * 16 * 8}
	}
	return units[modeClass(mode)] * 2 * float64(p.in.TIUMHz) / 1e6
}

// modeClass returns 0 for models of at most 8 bits, 1 for 16 bits and 2 for 32 bits.
func modeClass(mode string) int {
	switch {
	case strings.HasPrefix(mode, "f32"):
		return 2
	case strings.Contains(mode, "16"):
		return 1
	}
	return 0
}

// groupTops returns the peak of a group of layers in TOPS.
func (p *perfAI) groupTops(group, mode string) float64 {
	units := 32.0 * 16
	switch p.in.Chip {
	case command.CV184X:
		units = 4 * 8 * 2
	case command.BM1690:
		units = 64 * 64 * 8
	}
	switch group {
	case "Conv", "MatMul", "Attention":
		return p.cubeTops(mode)
	case "LayerNorm", "Pool", "Reduce", "FC":
		units *= 2
	}
	if modeClass(mode) > 0 {
		units /= 2
	}
	return units * float64(p.in.TIUMHz) / 1e6
}

// modelGroup contains the sums of a group of layers.
type modelGroup struct {
	name      string
	alg, arch uint64
	weights   int
	cycles    int64
	us        float64 // with three decimals
	kinds     []string
}

// modelGroups adds up layers by kind, the longest first and the other kinds last.
func (p *perfAI) modelGroups(layers []*modelLayer) (list []*modelGroup, all *modelGroup) {
	at := map[string]*modelGroup{}
	all = &modelGroup{name: "Overall"}
	for _, l := range layers {
		name := layerGroup(l.place.Op)
		g := at[name]
		if g == nil {
			g = &modelGroup{name: name}
			at[name] = g
			list = append(list, g)
		}
		_, weights, _ := l.sizes()
		for _, s := range [...]*modelGroup{g, all} {
			s.alg += l.alg
			s.arch += l.arch
			s.cycles += l.cycles
			s.weights += weights
		}
		g.kinds = appendNew(g.kinds, l.place.Op)
	}
	for _, g := range append(list, all) {
		g.us = round(float64(g.cycles)/float64(p.in.TIUMHz), 3)
	}
	slices.SortStableFunc(list, func(a, b *modelGroup) int {
		switch {
		case a.name == b.name:
			return 0
		case a.name == "Others":
			return 1
		case b.name == "Others":
			return -1
		}
		return cmp.Compare(b.cycles, a.cycles)
	})
	return list, all
}

// appendNew appends a text unless the list contains it.
func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// summarySheet returns the sheet Summary.
func (p *perfAI) summarySheet(layers []*modelLayer) *table {
	groups, all := p.modelGroups(layers)
	c, m := p.in.Chip, p.module()
	t := &table{}
	t.set(1, 1, p.label("Condition"), "Network", "Model GFLOPs", "Quant Type", "platform", "TPU INT8 TOPS", "TPU FP16 TOPS", "TPU BF16 TOPS", "TPU FP32 TOPS",
		"DDR BW(GB/s)", "TPU Frequency(MHz)", "DMA Frequency(MHz)")
	t.set(2, 2, m.name, digits6(m.flops/1e9), m.mode, c.Report, p.cubeTops("int8"), p.cubeTops("f16"), p.cubeTops("bf16"), p.cubeTops("f32"), p.ddrPeak(),
		p.in.TIUMHz, p.in.DMAMHz)
	conv, vector := p.rates()
	p.detailSpec(t, int(conv), vector, int(conv/4))
	if c != command.BM1690 {
		t.set(8, 1, "Performance", nil, "Algorithm", nil, nil, "uArch", nil, nil, "Simulation")
		t.merges = [][2]string{{"C8", "E8"}, {"F8", "H8"}, {"I8", "L8"}}
	}
	t.set(9, 1, p.label("Summary"), "Function", "Algorithm OPs", "Algorithm OPs Ratio", "Weight Size(B)(不准确)", "uArch OPs", "uArch URate",
		"uArch GOPs Ratio", "ASIC Cycles", "ASIC Time(us)", "Time Ratio", "ASIC FPS", "Operations")
	row := 10
	share := func(v, of uint64) string { return share3(float64(v), float64(of)) }
	for _, g := range groups {
		t.set(row, 2, g.name, g.alg, share(g.alg, all.alg), g.weights, g.arch, share(g.alg, g.arch), share(g.arch, all.arch), g.cycles, fixed(g.us, 3),
			share3(float64(g.cycles), float64(all.cycles)), "-", pySet(g.kinds))
		row++
	}
	fps := 0.0
	if all.cycles > 0 {
		fps = 1e9 / float64(all.cycles)
	}
	t.set(row, 2, "Overall", all.alg, "100%", all.weights, all.arch, share(all.alg, all.arch), "100%", all.cycles, fixed(all.us, 3), "100%",
		fixed(fps, 2), "-")
	p.whatIf(t, row+3, m, groups, all)
	return t
}

// whatIf writes the rows on the share of the peak.
func (p *perfAI) whatIf(t *table, row int, m module, groups []*modelGroup, all *modelGroup) {
	_, sum := p.summary()
	total := p.total(false)
	peak := p.cubeTops(m.mode)
	theory := m.flops / (peak * 1e6)
	use := func(us float64) float64 {
		if us == 0 {
			return 0
		}
		return round(theory/us*100, 3)
	}
	t.set(row, 1, p.label("mac_util"), "Case", "ReducedTime(us)", "CurrentTotalTime(us)", "Concurrency(%)", "macUtil(%)", "Remark")
	t.set(row+1, 1, p.label("analysis"), "origin", 0, total, round(overlap(sum.tiuUs, sum.dmaUs, total)*100, 2), use(total), remarkOrigin)
	t.set(row+2, 2, "100% Concurrency", digits6(total-all.us), all.us, 100, use(all.us), remarkParallel)
	row += 3
	for _, by := range []string{"ModelPeakTops", "LayerPeakTops"} {
		now := all.us
		for _, g := range groups {
			tops := peak
			if by == "LayerPeakTops" {
				tops = p.groupTops(g.name, m.mode)
			}
			best := float64(g.alg) / (tops * 1e6)
			now -= g.us - best
			t.set(row, 2, caseOf(g.name, g.us, best), digits6(g.us-best), digits6(now), 100, use(now), remarkGroup(g.name, by))
			row++
		}
	}
}

// caseOf names the case in which a group takes the time at its peak.
func caseOf(group string, us, best float64) string {
	return group + " tiuTime: " + fixed(us, 2) + " us -> " + fixed(best, 2) + " us"
}

// The converter's remarks: time on the processor and copies by the runtime do not count, both
// engines work all the time, and a group takes the time at a peak.
const (
	remarkOrigin   = "排除CPU耗时及输入输出在runtime空间和用户空间的搬运耗时"
	remarkParallel = "TIU和GDMA的并行度100%"
)

func remarkGroup(group, peak string) string {
	return group + "的耗时用" + peak + "得到的理论耗时替换"
}
