package compat

import (
	"sort"
	"strings"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// cubeTops is the peak of convolutions of all cores in TOPS for a mode of the model:
// 8, 16 and 32 bits.
func (p *perfAI) cubeTops(mode string) float64 {
	c := p.in.Chip
	var units [3]float64
	switch c {
	case command.CV184X:
		units = [3]float64{4 * 8 * 16, 2 * 8 * 8, 4 * 8 * 16}
	case command.BM1690:
		units = [3]float64{64 * 64 * 4 * 8, 64 * 64 * 4 * 8 / 2, 64 * 16 * 8}
	default:
		units = [3]float64{32 * 32 * 4, 32 * 32 * 4 / 4, 32 * 4}
	}
	return units[modeClass(mode)] * 2 * float64(p.in.TIUMHz) / 1e6
}

// modeClass is 0 for models of 8 bits and less, 1 for 16, 2 for 32.
func modeClass(mode string) int {
	switch {
	case strings.HasPrefix(mode, "f32"):
		return 2
	case strings.Contains(mode, "16"):
		return 1
	}
	return 0
}

// groupTops is the peak of a group of layers.
func (p *perfAI) groupTops(group, mode string) float64 {
	units := 32.0 * 16
	switch p.in.Chip {
	case command.CV184X:
		units = 4 * 8 * 2
	case command.BM1690:
		units = 64 * 64 * 8
	}
	twice := 1.0
	switch group {
	case "Conv", "MatMul", "Attention":
		return p.cubeTops(mode)
	case "LayerNorm", "Pool", "Reduce", "FC":
		twice = 2
	}
	if modeClass(mode) > 0 {
		units /= 2
	}
	return units * twice * float64(p.in.TIUMHz) / 1e6
}

// modelGroup are the sums of a group of layers.
type modelGroup struct {
	name      string
	alg, arch uint64
	weights   int
	cycles    int64
	us        float64 // with three decimals
	kinds     []string
}

// modelGroups adds layers up by kind, the longest first, what is left over last.
func (p *perfAI) modelGroups(layers []*modelLayer) ([]*modelGroup, *modelGroup) {
	at := map[string]*modelGroup{}
	var list []*modelGroup
	all := &modelGroup{name: "Overall"}
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
		known := false
		for _, k := range g.kinds {
			known = known || k == l.place.Op
		}
		if !known {
			g.kinds = append(g.kinds, l.place.Op)
		}
	}
	for _, g := range append(list, all) {
		g.us = round(float64(g.cycles)/float64(p.in.TIUMHz), 3)
	}
	sort.SliceStable(list, func(i, j int) bool {
		a, b := list[i], list[j]
		if (a.name == "Others") != (b.name == "Others") {
			return b.name == "Others"
		}
		return a.cycles > b.cycles
	})
	return list, all
}

// overviewSheet is the sheet Summary.
func (p *perfAI) overviewSheet(layers []*modelLayer) *table {
	groups, all := p.modelGroups(layers)
	c, m := p.in.Chip, p.module()
	t := &table{}
	t.set(1, 1, p.label("Condition"), "Network", "Model GFLOPs", "Quant Type", "platform", "TPU INT8 TOPS", "TPU FP16 TOPS", "TPU BF16 TOPS", "TPU FP32 TOPS",
		"DDR BW(GB/s)", "TPU Frequency(MHz)", "DMA Frequency(MHz)")
	t.set(2, 2, m.name, digits6(m.flops/1e9), m.mode, c.Report, p.cubeTops("int8"), p.cubeTops("f16"), p.cubeTops("bf16"), p.cubeTops("f32"), p.ddrPeak(),
		p.in.TIUMHz, p.in.DMAMHz)
	t.set(4, 1, p.label("Detail Spec"), "NPU NUM (lane)", "IC Alignment (8bits)", "Conv OHOW Align", "Vector OHOW Align(8bits)", "Conv Ops/s", "Vect Ops/s",
		"Pool OPs/s")
	conv, vector, pool := p.rates()
	t.set(5, 2, c.Lanes, c.Cube8, c.CubeOut, c.EU8, int(conv), vector, int(pool))
	if c != command.BM1690 {
		t.set(8, 1, "Performance", nil, "Algorithm", nil, nil, "uArch", nil, nil, "Simulation")
		t.merges = [][2]string{{"C8", "E8"}, {"F8", "H8"}, {"I8", "L8"}}
	}
	t.set(9, 1, p.label("Summary"), "Function", "Algorithm OPs", "Algorithm OPs Ratio", "Weight Size(B)(不准确)", "uArch OPs", "uArch URate",
		"uArch GOPs Ratio", "ASIC Cycles", "ASIC Time(us)", "Time Ratio", "ASIC FPS", "Operations")
	row := 10
	for _, g := range groups {
		t.set(row, 2, g.name, g.alg, share3(float64(g.alg), float64(all.alg)), g.weights, g.arch, share3(float64(g.alg), float64(g.arch)),
			share3(float64(g.arch), float64(all.arch)), g.cycles, fixed(g.us, 3), share3(float64(g.cycles), float64(all.cycles)), "-", pySet(g.kinds))
		row++
	}
	fps := 0.0
	if all.cycles > 0 {
		fps = 1e9 / float64(all.cycles)
	}
	t.set(row, 2, "Overall", all.alg, "100%", all.weights, all.arch, share3(float64(all.alg), float64(all.arch)), "100%", all.cycles, fixed(all.us, 3), "100%",
		fixed(fps, 2), "-")
	p.whatIf(t, row+3, m, groups, all)
	return t
}

func pySet(kinds []string) string {
	quoted := make([]string, len(kinds))
	for i, k := range kinds {
		quoted[i] = pyText(k)
	}
	return "{" + strings.Join(quoted, ", ") + "}"
}

// digits6 is a number with six digits.
func digits6(f float64) float64 {
	v, _ := number2(strings.TrimSpace(fixedDigits(f))).(float64)
	return v
}

// whatIf are the rows on the use of the peak.
func (p *perfAI) whatIf(t *table, row int, m module, groups []*modelGroup, all *modelGroup) {
	sum := p.summary()
	total := p.lastEnd()
	tiu, dma := 0.0, 0.0
	for _, q := range sum.cores {
		tiu, dma = max(tiu, q.tiuUs), max(dma, q.dmaUs)
	}
	concurrency := 0.0
	if least := min(tiu, dma); least > 0 {
		concurrency = round((tiu+dma-total)/least*100, 2)
	}
	peak := p.cubeTops(m.mode)
	theory := m.flops / (peak * 1e6)
	use := func(us float64) float64 {
		if us == 0 {
			return 0
		}
		return round(theory/us*100, 3)
	}
	t.set(row, 1, p.label("mac_util"), "Case", "ReducedTime(us)", "CurrentTotalTime(us)", "Concurrency(%)", "macUtil(%)", "Remark")
	t.set(row+1, 1, p.label("analysis"), "origin", 0, total, concurrency, use(total), remarkOrigin)
	t.set(row+2, 2, "100% Concurrency", digits6(total-all.us), all.us, 100, use(all.us), remarkParallel)
	row += 3
	for _, own := range []bool{false, true} {
		now, by := all.us, "ModelPeakTops"
		if own {
			by = "LayerPeakTops"
		}
		for _, g := range groups {
			tops := peak
			if own {
				tops = p.groupTops(g.name, m.mode)
			}
			best := float64(g.alg) / (tops * 1e6)
			now -= g.us - best
			t.set(row, 2, g.name+" tiuTime: "+fixed(g.us, 2)+" us -> "+fixed(best, 2)+" us", digits6(g.us-best), digits6(now), 100, use(now),
				remarkGroup(g.name, by))
			row++
		}
	}
}
