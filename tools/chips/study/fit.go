package study

import (
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/estimate/fit"
)

// Fit holds coefficients of all groups that have data, and what is needed to make
// those of groups that have none.
type Fit struct {
	// Groups with measurements of their own.
	Groups map[fit.Group]cortexm.Vector
	// Eras holds coefficients that all cores of a tier share, for a core of scale 1.
	Eras map[tierEra]cortexm.Vector
	// Scales of cores relative to the tier.
	Scales map[tierCore]float64
	// Rows counts the whole-model measurements of a group.
	Rows map[fit.Group]int
	// Chips are the speeds of chips relative to others with the same core and runtime.
	Chips map[Chip]float64
	seen  map[tierEra][]cortexm.Vector
}

type (
	tierEra  struct{ Family, Tier, Era string }
	tierCore struct{ Family, Core string }
)

// group names what coefficients belong to.
func group(family, era, core string) fit.Group {
	return fit.Group{Family: family, Era: era, Core: core}
}

// tierOf is the set of instructions that kernels of a core are written for.
func tierOf(core string) string {
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
	if family == reference || family == cortexm.Int16Reference {
		return "plain"
	}
	if family == "tflm-andes-nn" {
		return "pext"
	}
	if family == "tflm-esp-nn" && (core == "xtensa-lx6" || core == "rv32imc") {
		return "plain" // ESP-NN has no instructions for these: both run the same optimised C
	}
	if family == cortexm.FloatTFLM {
		if softFloat[core] {
			return "soft"
		}
		return "fpu"
	}
	return tierOf(core)
}

// softFloat lists cores without a unit for floating point.
var softFloat = map[string]bool{"cortex-m0plus": true, "cortex-m3": true, "rv32imc": true, "rv32imac": true, "rv32-vexriscv": true, noUnit: true}

// train fits all groups of the measurements.
func train(ms []*fit.Measurement, s fit.Settings) *Fit {
	f := &Fit{Groups: map[fit.Group]cortexm.Vector{}, Eras: map[tierEra]cortexm.Vector{}, Scales: map[tierCore]float64{}, Rows: map[fit.Group]int{}, Chips: map[Chip]float64{}, seen: map[tierEra][]cortexm.Vector{}}
	byTier := map[tierEra][]*fit.Measurement{}
	odd := oddBuilds(ms)
	for _, m := range ms {
		if odd[m.Group()] {
			continue
		}
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
		scaled := func(m *fit.Measurement) float64 { return f.Scales[tierCore{m.Family, m.Core}] }
		era := fit.Refine(rows, scaled, prior, s.EraShrink, s.LayerWeight)
		f.Eras[k] = era
		byCore := map[string][]*fit.Measurement{}
		for _, m := range rows {
			byCore[m.Core] = append(byCore[m.Core], m)
		}
		for _, core := range slices.Sorted(maps.Keys(byCore)) {
			if !telling(byCore[core], prior) {
				continue
			}
			start := fit.Faster(era, f.Scales[tierCore{k.Family, core}])
			own := s
			if typeOfFamily(k.Family) != cortexm.Int8 {
				own.GroupShrink = s.TypedShrink
			}
			if usual, ok := f.Groups[group(k.Family, "", core)]; ok && built(k.Era) {
				// The same kernels, built otherwise: kinds of work change apart.
				start, own.GroupShrink = otherwise(usual, k.Family == reference || k.Family == cortexm.FloatTFLM, byCore[core]), s.BuildShrink
			}
			f.group(group(k.Family, k.Era, core), byCore[core], start, own)
		}
	}
	return f
}

// oddBuilds finds cores whose only network in plain C took more than twice what it
// takes on the others in the middle. Built for size, plain C takes four to nine times as
// long (EdgeMark's convolutions on a Cortex-M4), so that such a row tells of its build
// and not of the core.
func oddBuilds(ms []*fit.Measurement) map[fit.Group]bool {
	levels, seen := map[fit.Group][]float64{}, map[fit.Group]map[string]bool{}
	for _, m := range ms {
		if g := m.Group(); kind(m.Family) == "plain" && m.Era == "" && !m.Layer {
			if seen[g] == nil {
				seen[g] = map[string]bool{}
			}
			seen[g][networkOf(m.Model)] = true
			levels[g] = append(levels[g], math.Log(m.Cycles/cortexm.Prior(m.Family, tier(m.Family, m.Core)).Dot(m.Work)))
		}
	}
	odd := map[fit.Group]bool{}
	for g := range levels {
		var others []float64
		for o, l := range levels {
			if o != g && o.Family == g.Family {
				slices.Sort(l)
				others = append(others, stats.Median(l))
			}
		}
		slices.Sort(others)
		slices.Sort(levels[g])
		odd[g] = len(seen[g]) == 1 && len(others) >= 3 && stats.Median(levels[g]) > stats.Median(others)+math.Ln2
	}
	return odd
}

// Chip is a chip with a runtime on its core.
type Chip struct {
	Group fit.Group
	Name  string
}

// group fits the coefficients of a core to its measurements, in alternation with the
// speeds of its chips: wait states and caches make chips of one core differ. A chip's
// speed is the middle of its networks' with one more at that of the core, so that a
// single network says half of what it seems to.
func (f *Fit) group(g fit.Group, rows []*fit.Measurement, start cortexm.Vector, s fit.Settings) {
	chips := map[string]float64{}
	for _, m := range rows {
		if !m.Layer {
			chips[m.Chip] = 1
		}
	}
	speed := func(m *fit.Measurement) float64 {
		if v, ok := chips[m.Chip]; ok {
			return v
		}
		return 1
	}
	v := fit.Refine(rows, speed, start, s.GroupShrink, s.LayerWeight)
	for range chipRounds {
		if len(chips) < 2 {
			break
		}
		logs := map[string]map[string][]float64{}
		for _, m := range rows {
			if m.Layer || own(v, m.Work) < 0.5 {
				continue
			}
			if logs[m.Chip] == nil {
				logs[m.Chip] = map[string][]float64{}
			}
			n := networkOf(m.Model)
			logs[m.Chip][n] = append(logs[m.Chip][n], math.Log(m.Cycles/v.Dot(m.Work)))
		}
		for c, by := range logs {
			var each []float64
			for _, n := range slices.Sorted(maps.Keys(by)) {
				each = append(each, stats.Mean(by[n]))
			}
			slices.Sort(each)
			chips[c] = math.Exp(stats.Median(each) * float64(len(each)) / float64(len(each)+1))
		}
		v = fit.Refine(rows, speed, start, s.GroupShrink, s.LayerWeight)
	}
	f.Groups[g] = v
	for c, speed := range chips {
		f.Chips[Chip{g, c}] = speed
	}
}

// chipRounds are enough for speeds to settle within a per cent.
const chipRounds = 4

// otherChip says that a core was measured with a runtime, but on other chips.
const otherChip = "other chip"

// Of is what coefficients of a group are on a chip: "measured" when it was.
func (f *Fit) Of(g fit.Group, chip string) (cortexm.Vector, string) {
	v, how := f.Coefficients(g)
	if how != "measured" {
		return v, how
	}
	if speed, ok := f.Chips[Chip{g, chip}]; ok {
		return fit.Faster(v, speed), how
	}
	return v, otherChip
}

// remember keeps the mix of a network, in the prior's terms: what matters is what
// kinds of work were seen, not the fitted figures.
func (f *Fit) remember(m *fit.Measurement) {
	k := seenKey(m.Group())
	mix := cortexm.Mix(cortexm.Prior(m.Family, k.Tier), m.Work)
	if cortexm.Nearest(mix, f.seen[k]) > 0.03 {
		f.seen[k] = append(f.seen[k], mix)
	}
}

// Distance of a network from those that the group's family was fitted to.
func (f *Fit) Distance(g fit.Group, work cortexm.Vector) float64 {
	k := seenKey(g)
	return cortexm.Nearest(cortexm.Mix(cortexm.Prior(g.Family, k.Tier), work), f.seen[k])
}

// scales finds how much slower each core is than its tier by comparing what cores
// need for the same network and era, in alternation with the networks' own level.
func (f *Fit) scales(byTier map[tierEra][]*fit.Measurement) {
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

// own is the share of cycles that is not overhead of calls and operators.
func own(v, work cortexm.Vector) float64 { return 1 - cortexm.Overhead(v, work) }

// telling reports whether measurements say something of kernels: more than the
// overhead of calls.
func telling(rows []*fit.Measurement, prior cortexm.Vector) bool {
	for _, m := range rows {
		if own(prior, m.Work) >= 0.5 {
			return true
		}
	}
	return false
}

// Coefficients of a group, and how they came about: "measured" on the group
// itself, "scaled" from other cores of the tier, "other era", or "" for none.
func (f *Fit) Coefficients(g fit.Group) (cortexm.Vector, string) {
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
		return fit.Faster(v, scale), how
	}
	if g.Family == "tflm-cmsis-nn" && g.Era == "" && k.Tier == "plain" {
		// Without instructions for pairs, CMSIS-NN is optimised C like ESP-NN on such cores.
		if v, ok := f.Eras[tierEra{"tflm-esp-nn", "plain", ""}]; ok {
			return v, "tier"
		}
	}
	// The nearest other era of the same core, later ones first.
	eras := []string{"7.1", "7.3", "8.1", "9"}
	for d := 1; d < len(eras); d++ {
		for i, e := range eras {
			for _, k := range []int{i + d, i - d} {
				if e == g.Era && k >= 0 && k < len(eras) {
					if v, ok := f.Groups[group(g.Family, eras[k], g.Core)]; ok {
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
func (f *Fit) borrowed(g fit.Group, k tierEra) float64 {
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

func sortedKeys(m map[tierEra][]*fit.Measurement) []tierEra {
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

func sortedCores[V any](m map[tierCore]V) []tierCore {
	var out []tierCore
	for k := range m {
		out = append(out, k)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Family+out[i].Core < out[j].Family+out[j].Core })
	return out
}
