package compat

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// dims4 returns the four dimensions that the converter shows.
func dims4(shape []int) [4]int {
	d := [4]int{1, 1, 1, 1}
	copy(d[:], shape)
	return d
}

var firstNumber = lazyregexp.New(`\d+`)

// bytes returns the size of the tensor by the width in the name of its type.
func (t *Tensor) bytes() int {
	bits, _ := strconv.Atoi(firstNumber.FindString(t.Type))
	return product(t.Shape) * bits / 8
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

var dataTypes = map[string]string{
	"f32": "FP32", "f16": "FP16", "i8": "INT8", "si8": "INT8", "ui8": "UINT8", "i16": "INT16", "si16": "INT16", "ui16": "UINT16",
	"i32": "INT32", "si32": "INT32", "ui32": "UINT32",
}

// dataType returns the name of the type in the converter's enumeration.
func (t *Tensor) dataType() string {
	return "DataType." + cmp.Or(dataTypes[t.Type], strings.ToUpper(t.Type))
}

// modelLayer is a row of the layers' sheet: the work of the tensor engine for an object.
type modelLayer struct {
	place *Place
	workSum
	kh, kw uint64
}

// modelLayers adds up the tensor commands of each object. Of records with the same number the
// last one counts.
func (p *perfAI) modelLayers() []*modelLayer {
	at := map[*Place]*modelLayer{}
	var list []*modelLayer
	for _, c := range p.cores {
		last := map[int]*instr{}
		for _, x := range c.tiu {
			last[x.id] = x
		}
		for _, x := range c.tiu {
			if x.layer == nil || last[x.id] != x {
				continue
			}
			l := at[x.layer]
			if l == nil {
				l = &modelLayer{place: x.layer}
				at[x.layer] = l
				list = append(list, l)
			}
			l.add(x)
			if x.c != nil && isConv(x.c) {
				l.kh, l.kw = max(l.kh, x.c.Get(command.Opd1H)), max(l.kw, x.c.Get(command.Opd1W))
			}
		}
	}
	sorting.Stable(list, func(a, b *modelLayer) int { return cmp.Compare(a.place.Ordinal, b.place.Ordinal) })
	return list
}

// isConv reports whether a command has a kernel and strides.
func isConv(c *command.Command) bool { return c.Op.Has(command.StrideY) && c.Op.Has(command.Opd1H) }

// sizes returns the bytes of a layer's operands, of its weights (the last of three) and of its
// results.
func (l *modelLayer) sizes() (in, weights, out int) {
	for i := range l.place.In {
		in += l.place.In[i].bytes()
		if i >= 2 {
			weights = l.place.In[i].bytes()
		}
	}
	for i := range l.place.Out {
		out += l.place.Out[i].bytes()
	}
	return in, weights, out
}

// stated returns the peaks of the layers' sheet in TOPS: for int8, fp16, bf16 and fp32.
func stated(c *command.Chip) []any {
	switch c {
	case command.CV184X:
		return []any{0.75, 0, 0.1875, 0}
	case command.BM1690:
		return []any{256, 128, 128, 16}
	}
	return []any{14.4, 7.2, 7.2, 0.45}
}

// layerSheet returns the sheet with a row for each object that has tensor commands.
func (p *perfAI) layerSheet(layers []*modelLayer) *table {
	t := &table{}
	c := p.in.Chip
	t.set(1, 1, p.label("Condition"), "Network", "platform", "TPU INT8 TOPS", "TPU FP16 TOPS", "TPU BF16 TOPS", "TPU FP32 TOPS", "DDR BW(GB/s/Core)",
		"TPU Frequency(GHz)", "DMA Frequency(GHz)")
	t.set(2, 2, append(append([]any{p.in.Net, c.Report}, stated(c)...), p.ddrPeak(), float64(p.in.TIUMHz)/1000, float64(p.in.DMAMHz)/1000)...)
	conv, vector := p.rates()
	whole := int(conv / 1024)
	p.detailSpec(t, whole, round(vector/1000, 2), float64(whole)/4)
	if c != command.BM1690 {
		t.set(8, 16, "Algorithm Parameter")
		t.set(8, 34, "uArch Performance")
		t.set(8, 46, "Simulator Performance")
	}
	t.set(9, 1, anys(columns["layer sheet"])...)
	alg, sim := uint64(0), uint64(0)
	for _, l := range layers {
		alg += l.algCycles
		sim += uint64(l.cycles)
	}
	for i, l := range layers {
		in, weights, out := l.sizes()
		line := []any{l.place.Ordinal, l.place.Op, nil, "local", "TPU", 0, 0, l.kh, l.kw, 0, 0}
		if len(l.place.In) > 0 {
			line[2] = l.place.In[0].dataType()
		}
		for _, list := range [...][]Tensor{l.place.In, l.place.Out} {
			var shape []int
			if len(list) > 0 {
				shape = list[0].Shape
			}
			for _, d := range dims4(shape) {
				line = append(line, d)
			}
		}
		var other any
		if len(l.place.In) > 1 {
			text := ""
			for j, x := range l.place.In {
				d := dims4(x.Shape)
				text += "tensor_" + strconv.Itoa(j) + ": " + pyList(d[0], d[1], d[2], d[3])
			}
			other = text
		}
		line = append(line, in, out, 0, 0, 0, weights, in-weights, l.alg, other, share2(l.alg, l.arch), l.arch, l.algCycles, share2(l.algCycles, alg))
		for range 14 {
			line = append(line, "-")
		}
		t.set(10+i, 1, append(line, 0, 0, l.cycles, share2(uint64(l.cycles), sim))...)
	}
	return t
}

// detailSpec writes the rows with the widths of the chip and its rates.
func (p *perfAI) detailSpec(t *table, conv, vector, pool any) {
	c := p.in.Chip
	t.set(4, 1, p.label("Detail Spec"), "NPU NUM (lane)", "IC Alignment (8bits)", "Conv OHOW Align", "Vector OHOW Align(8bits)", "Conv Ops/s", "Vect Ops/s",
		"Pool OPs/s")
	t.set(5, 2, c.Lanes, c.Cube8, c.CubeOut, c.EU8, conv, vector, pool)
}

// ddrPeak returns the bandwidth of all cores in GB/s.
func (p *perfAI) ddrPeak() float64 { return round(p.in.Chip.DDRPeak/1e9*float64(p.fullCores()), 2) }

// rates returns the peaks of a core for convolution and vector commands in 10⁹ operations per
// second.
func (p *perfAI) rates() (conv, vector float64) {
	c := p.in.Chip
	ghz := float64(p.in.TIUMHz) / 1000
	return float64(c.Lanes*c.Cube8*4*2) * ghz, float64(c.Lanes*c.EU8) * ghz
}

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
	sorting.Stable(list, func(a, b *modelGroup) int {
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

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

func (p *perfAI) summarySheet(layers []*modelLayer) *table {
	groups, all := p.modelGroups(layers)
	c := p.in.Chip
	t := &table{}
	t.set(1, 1, p.label("Condition"), "Network", "Model GFLOPs", "Quant Type", "platform", "TPU INT8 TOPS", "TPU FP16 TOPS", "TPU BF16 TOPS", "TPU FP32 TOPS",
		"DDR BW(GB/s)", "TPU Frequency(MHz)", "DMA Frequency(MHz)")
	t.set(2, 2, p.in.Net, digits6(p.in.FLOPs/1e9), p.in.Mode, c.Report, p.cubeTops("int8"), p.cubeTops("f16"), p.cubeTops("bf16"), p.cubeTops("f32"), p.ddrPeak(),
		p.in.TIUMHz, p.in.DMAMHz)
	conv, vector := p.rates()
	p.detailSpec(t, int(conv), vector, int(conv/4))
	if c != command.BM1690 {
		t.set(8, 1, "Performance", nil, "Algorithm", nil, nil, "uArch", nil, nil, "Simulation")
		t.merges = []string{"C8:E8", "F8:H8", "I8:L8"}
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
	p.whatIf(t, row+3, groups, all)
	return t
}

func (p *perfAI) whatIf(t *table, row int, groups []*modelGroup, all *modelGroup) {
	_, sum := p.summary()
	total := p.total(false)
	peak := p.cubeTops(p.in.Mode)
	theory := p.in.FLOPs / (peak * 1e6)
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
				tops = p.groupTops(g.name, p.in.Mode)
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
