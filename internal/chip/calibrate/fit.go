package calibrate

import (
	"math"
	"sort"

	"github.com/opmeter/opmeter/internal/chip/cortexm"
	"github.com/opmeter/opmeter/internal/stats"
)

// Fit holds coefficients of all groups that have data, and what is needed to make
// those of groups that have none.
type Fit struct {
	// Groups with measurements of their own.
	Groups map[Group]cortexm.Vector
	// Eras holds coefficients that all cores of a tier share, for a core of scale 1.
	Eras map[tierEra]cortexm.Vector
	// Scales of cores relative to the tier.
	Scales map[tierCore]float64
	// Rows counts the whole-model measurements of a group.
	Rows map[Group]int
	seen map[tierEra][]cortexm.Vector
}

type (
	tierEra  struct{ Family, Tier, Era string }
	tierCore struct{ Family, Core string }
)

// Settings of the fit. They were chosen by validation over sources.
type Settings struct {
	// EraShrink draws the shared coefficients of an era towards the prior of the
	// family, GroupShrink those of a core towards the era's: strongly, because most
	// cores have measurements of few networks. BoardShrink is for measurements of the
	// very board that estimates are wanted for.
	EraShrink, GroupShrink, BoardShrink float64
	// LayerWeight is the weight of a measured layer; a whole model has 1.
	LayerWeight float64
}

// Default settings.
var Default = Settings{EraShrink: 0.02, GroupShrink: 0.2, BoardShrink: 0.05, LayerWeight: 0.1}

// Tier is the set of instructions that kernels of a core are written for.
func Tier(core string) string {
	switch core {
	case "cortex-m4", "cortex-m7", "cortex-m33":
		return "dsp"
	case "cortex-m55", "cortex-m85":
		return "mve"
	case "cortex-m0plus", "cortex-m3":
		return "plain"
	}
	return core
}

// tier of a measurement: reference kernels use no vector instructions, so all
// cores are of one tier.
func tier(family, core string) string {
	if family == "tflm-reference" {
		return "plain"
	}
	if family == "tflm-andes-nn" {
		return "pext"
	}
	if family == cortexm.FloatTFLM {
		if softFloat[core] {
			return "soft"
		}
		return "fpu"
	}
	return Tier(core)
}

// softFloat lists cores without a unit for floating point.
var softFloat = map[string]bool{"cortex-m0plus": true, "cortex-m3": true, "rv32imc": true, "rv32imac": true, "rv32-vexriscv": true}

// Train fits all groups of the measurements.
func Train(ms []*Measurement, s Settings) *Fit {
	f := &Fit{Groups: map[Group]cortexm.Vector{}, Eras: map[tierEra]cortexm.Vector{}, Scales: map[tierCore]float64{}, Rows: map[Group]int{}, seen: map[tierEra][]cortexm.Vector{}}
	byTier := map[tierEra][]*Measurement{}
	for _, m := range ms {
		k := tierEra{m.Family, tier(m.Family, m.Core), m.Era}
		byTier[k] = append(byTier[k], m)
		if !m.Layer {
			f.Rows[m.Group()]++
			f.remember(m)
		}
	}
	f.scales(byTier)
	for _, k := range sortedKeys(byTier) {
		rows := byTier[k]
		prior := cortexm.Prior(k.Family, k.Tier)
		scaled := func(m *Measurement) float64 { return f.Scales[tierCore{m.Family, m.Core}] }
		era := refine(rows, scaled, prior, s.EraShrink, s.LayerWeight)
		f.Eras[k] = era
		byCore := map[string][]*Measurement{}
		for _, m := range rows {
			byCore[m.Core] = append(byCore[m.Core], m)
		}
		for _, core := range sortedNames(byCore) {
			if !telling(byCore[core], prior) {
				continue
			}
			start := era
			start = faster(start, f.Scales[tierCore{k.Family, core}])
			f.Groups[Group{k.Family, k.Era, core}] = refine(byCore[core], func(*Measurement) float64 { return 1 }, start, s.GroupShrink, s.LayerWeight)
		}
	}
	return f
}

// remember keeps the mix of a network, in the prior's terms: what matters is what
// kinds of work were seen, not the fitted figures.
func (f *Fit) remember(m *Measurement) {
	k := seenKey(m.Group())
	mix := cortexm.Mix(cortexm.Prior(m.Family, k.Tier), m.Work)
	if cortexm.Nearest(mix, f.seen[k]) > 0.03 {
		f.seen[k] = append(f.seen[k], mix)
	}
}

// Distance of a network from those that the group's family was fitted to.
func (f *Fit) Distance(g Group, work cortexm.Vector) float64 {
	k := seenKey(g)
	return cortexm.Nearest(cortexm.Mix(cortexm.Prior(g.Family, k.Tier), work), f.seen[k])
}

// scales finds how much slower each core is than its tier by comparing what cores
// need for the same network and era, in alternation with the networks' own level.
func (f *Fit) scales(byTier map[tierEra][]*Measurement) {
	type cell struct{ family, tier, era, model string }
	logs := map[tierCore]map[cell][]float64{}
	cells := map[cell]float64{}
	for k, rows := range byTier {
		p := cortexm.Prior(k.Family, k.Tier)
		for _, m := range rows {
			if own(p, m.Work) < 0.5 {
				continue // mostly overhead of calls, which says little of the kernels
			}
			c := tierCore{m.Family, m.Core}
			if logs[c] == nil {
				logs[c] = map[cell][]float64{}
			}
			at := cell{k.Family, k.Tier, k.Era, m.Model}
			logs[c][at] = append(logs[c][at], math.Log(m.Cycles/p.Dot(m.Work)))
		}
	}
	for _, rows := range byTier {
		for _, m := range rows {
			f.Scales[tierCore{m.Family, m.Core}] = 0
		}
	}
	for range 50 {
		sums, counts := map[cell][]float64{}, map[cell]int{}
		for _, c := range sortedCores(logs) {
			for at, ls := range logs[c] {
				sums[at] = append(sums[at], stats.Median(ls)-f.Scales[c])
				counts[at]++
			}
		}
		for at, s := range sums {
			sort.Float64s(s)
			cells[at] = stats.Mean(s)
		}
		for c, byCell := range logs {
			var own []float64
			for at, ls := range byCell {
				if counts[at] > 1 {
					own = append(own, stats.Median(ls)-cells[at])
				}
			}
			sort.Float64s(own)
			// One pseudo-measurement at the scale of the tier.
			if len(own) > 0 {
				f.Scales[c] = stats.Mean(own) * float64(len(own)) / float64(len(own)+1)
			}
		}
	}
	for c, v := range f.Scales {
		f.Scales[c] = math.Exp(v)
	}
}

// refine fits coefficients that stay near those of start, up to a common factor
// that is free. Rows far off count less.
func refine(rows []*Measurement, scale func(*Measurement) float64, start cortexm.Vector, shrink, layerWeight float64) cortexm.Vector {
	balance := weights(rows, layerWeight)
	ratios := make([]float64, 0, len(rows))
	say := make([]float64, 0, len(rows))
	for i, m := range rows {
		ratios = append(ratios, m.Cycles/faster(start, scale(m)).Dot(m.Work))
		s := own(start, m.Work)
		say = append(say, balance[i]*s*s*s)
	}
	common := weightedMedian(ratios, say)
	start = faster(start, common)
	sum := 0.0
	for _, w := range balance {
		sum += w
	}
	w := append([]float64(nil), balance...)
	var x []float64
	a := make([][]float64, len(rows))
	for i, m := range rows {
		a[i] = make([]float64, cortexm.Terms)
		own := faster(start, scale(m))
		for k := range a[i] {
			a[i][k] = m.Work[k] * own[k] / m.Cycles
		}
	}
	for range 8 {
		x = leastSquares(a, w, shrink*min(sum, 40), 1)
		for i, row := range a {
			r := math.Abs(dot(row, x) - 1)
			w[i] = balance[i] / max(1, r/0.1)
		}
	}
	// Relative least squares lean to low predictions; put the middle right.
	var res []float64
	for _, row := range a {
		res = append(res, 1/dot(row, x))
	}
	level := weightedMedian(res, w)
	var out cortexm.Vector
	for k := range out {
		out[k] = start[k] * x[k]
	}
	return faster(out, level)
}

// faster scales the cost of kernels. The overhead of calls and operators stays: it
// is plain code on every core.
func faster(v cortexm.Vector, factor float64) cortexm.Vector {
	for i := range v {
		if i != cortexm.Call && i != cortexm.Op {
			v[i] *= factor
		}
	}
	return v
}

// telling reports whether measurements say something of kernels: more than the
// overhead of calls.
func telling(rows []*Measurement, prior cortexm.Vector) bool {
	for _, m := range rows {
		if own(prior, m.Work) >= 0.5 {
			return true
		}
	}
	return false
}

// own is the share of cycles that is not overhead of calls and operators.
func own(v, work cortexm.Vector) float64 {
	return 1 - (v[cortexm.Call]*work[cortexm.Call]+v[cortexm.Op]*work[cortexm.Op])/v.Dot(work)
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

// weights gives every network of a source the same say, however often it was
// measured, and layers less than models.
func weights(rows []*Measurement, layerWeight float64) []float64 {
	type key struct {
		source, model, core string
		layer               bool
	}
	n := map[key]float64{}
	of := func(m *Measurement) key {
		if m.Layer {
			return key{m.Source, m.Model, m.Core, true}
		}
		return key{m.Source, m.Model, m.Core, false}
	}
	for _, m := range rows {
		n[of(m)]++
	}
	out := make([]float64, len(rows))
	for i, m := range rows {
		out[i] = 1 / n[of(m)]
		if m.Layer {
			out[i] = layerWeight
		}
	}
	return out
}

// weightedMedian is the value with half of the weight on either side.
func weightedMedian(v, w []float64) float64 {
	idx := make([]int, len(v))
	sum := 0.0
	for i := range idx {
		idx[i] = i
		sum += w[i]
	}
	sort.Slice(idx, func(a, b int) bool { return v[idx[a]] < v[idx[b]] })
	at := 0.0
	for n, i := range idx {
		at += w[i]
		if at > sum/2 || n == len(idx)-1 {
			return v[i]
		}
		if at == sum/2 {
			return math.Sqrt(v[i] * v[idx[n+1]])
		}
	}
	return 1
}

// Coefficients of a group, and how they came about: "measured" on the group
// itself, "scaled" from other cores of the tier, "other era", or "" for none.
func (f *Fit) Coefficients(g Group) (cortexm.Vector, string) {
	if v, ok := f.Groups[g]; ok {
		return v, "measured"
	}
	scale, hasScale := f.Scales[tierCore{g.Family, g.Core}]
	k := tierEra{g.Family, tier(g.Family, g.Core), g.Era}
	if v, ok := f.Eras[k]; ok {
		how := "scaled"
		if !hasScale {
			scale, how = f.borrowed(g, k), "tier"
		}
		return faster(v, scale), how
	}
	// The nearest other era of the same core, later ones first.
	eras := []string{"7.1", "7.3", "8.1", "9"}
	for d := 1; d < len(eras); d++ {
		for i, e := range eras {
			for _, k := range []int{i + d, i - d} {
				if e == g.Era && k >= 0 && k < len(eras) {
					if v, ok := f.Groups[Group{g.Family, eras[k], g.Core}]; ok {
						return v, "other era"
					}
				}
			}
		}
	}
	return cortexm.Vector{}, ""
}

// borrowed is the speed of a core relative to its tier in another family, where
// this family was not measured on the core.
func (f *Fit) borrowed(g Group, k tierEra) float64 {
	for _, c := range sortedCores(f.Scales) {
		if c.Core != g.Core || c.Family == g.Family || tier(c.Family, c.Core) != k.Tier {
			continue
		}
		// Relative to the cores of the tier that both families know.
		var logs []float64
		for _, other := range sortedCores(f.Scales) {
			if other.Family != c.Family || tier(other.Family, other.Core) != k.Tier {
				continue
			}
			if own, ok := f.Scales[tierCore{g.Family, other.Core}]; ok {
				logs = append(logs, math.Log(own/f.Scales[other]))
			}
		}
		if len(logs) > 0 {
			return f.Scales[c] * math.Exp(stats.Mean(logs))
		}
	}
	return 1
}

func sortedKeys(m map[tierEra][]*Measurement) []tierEra {
	var out []tierEra
	for k := range m {
		out = append(out, k)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		return a.Family+"|"+a.Tier+"|"+a.Era < b.Family+"|"+b.Tier+"|"+b.Era
	})
	return out
}

func sortedNames[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

func sortedCores[V any](m map[tierCore]V) []tierCore {
	var out []tierCore
	for k := range m {
		out = append(out, k)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Family+out[i].Core < out[j].Family+out[j].Core })
	return out
}
