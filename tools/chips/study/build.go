package study

import (
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/estimate/fit"
)

// kinds of work whose speeds a way of building changes apart: the overhead of calls,
// convolutions, and the rest.
const (
	overheadKind = iota
	convKind
	denseKind
	restKind
	buildKinds
)

// buildKind is the kind of a term. In plain C (family) the index of each product is
// computed apart where functions are not joined into loops, so that products alone
// become dearer.
func buildKind(term int, plainC bool) int {
	switch {
	case plainC && (term == cortexm.ConvGather || term == cortexm.ConvWindow || term == cortexm.ConvOutput || term == cortexm.PointOutput || term == cortexm.DepthwiseOutput):
		return restKind
	case term <= cortexm.Op:
		return overheadKind
	case term < cortexm.DenseMAC:
		return convKind
	case term <= cortexm.DenseOutput:
		return denseKind
	}
	return restKind
}

// builds makes the ways of building a runtime on a chip: for size, and without the unit for
// floating point. What a build costs depends on compiler, kernel and core, so that factors are
// those of the board itself. Elsewhere the largest ones bound the band.
func (s *Study) builds(g fit.Group, c *chipFacts) []chip.Build {
	if g.Era != "" || g.Family != "tflm-cmsis-nn" && g.Family != reference {
		return nil
	}
	const from = "the same networks built both ways for a Cortex-M4 (EdgeMark)"
	m4, floats := group("tflm-cmsis-nn", "", "cortex-m4"), group(cortexm.FloatTFLM, "", "cortex-m4")
	size := chip.Build{Name: sizeBuild, Title: "built for size (-Os)", From: from}
	plain, plainHalf := s.factors(floats, group(cortexm.FloatTFLM, small, "cortex-m4"))
	own := slices.Contains(c.chips, edgeMarkChip)
	if own {
		size.Float, size.Band = plain, plainHalf
	} else {
		size.FloatBound = plain
	}
	switch f, half, where := s.sized(g, c); {
	case g.Family == reference:
		size.IntegerBound = plain // the same loops in plain C
	case where != "":
		size.Integer, size.Band = f, math.Max(size.Band, half)
		if !own {
			size.From = where
		}
	default:
		size.IntegerBound, _ = s.factors(m4, group("tflm-cmsis-nn", small, "cortex-m4"))
	}
	list := []chip.Build{size}
	if b := s.noCache(g, c); b != nil {
		list = append(list, *b)
	}
	if s.units[g.Core] {
		soft := chip.Build{Name: "no-fpu", Title: "without the unit for floating point", From: from}
		soft.Float, soft.Band = s.factors(floats, group(cortexm.FloatTFLM, "", noUnit))
		if g.Core != "cortex-m4" {
			soft.Band *= 2 // the library's routines were not measured on other cores
		}
		list = append(list, soft)
	}
	return list
}

const (
	sizeBuild    = "size"
	edgeMarkChip = "STM32L4R5ZI" // networks were built in all ways for it
)

// sized returns the factors of a build for size on a chip that was measured so, with the
// half-width that they add and the source, "" if it was not measured.
func (s *Study) sized(g fit.Group, c *chipFacts) (out chip.Terms, half float64, from string) {
	if f, half := s.pairs(c); half > 0 {
		for k := range out {
			out[k] = f
		}
		return out, half, "the same networks built both ways for " + strings.Join(c.chips, ", ")
	}
	other := group(g.Family, small, g.Core)
	usual, how := s.coefficients(g, c)
	for _, name := range c.chips {
		v, measured := s.Fit.Of(other, name)
		if measured != "measured" || how == "" {
			continue
		}
		for k := range out {
			if usual[k] > 0 {
				out[k] = v[k] / usual[k]
			}
		}
		_, half = s.factors(group(g.Family, "", "cortex-m4"), group(g.Family, small, "cortex-m4"))
		return out, half, "networks built so for " + name
	}
	return out, 0, ""
}

// noCache makes the build whose caches are off, of a chip that was measured so; nil for others.
// Kernels wait for their data, the overhead of calls for its code: they have a factor each.
func (s *Study) noCache(g fit.Group, c *chipFacts) *chip.Build {
	v, how := s.coefficients(g, c)
	var kinds [2][]float64 // logarithms of networks of kernels, and of overhead
	for _, m := range s.uncached {
		if m.Group() == g && slices.Contains(c.chips, m.Chip) && how != "" {
			kind := 0
			if cortexm.Overhead(v, m.Work) >= 0.5 {
				kind = 1
			}
			kinds[kind] = append(kinds[kind], math.Log(m.Cycles/v.Dot(m.Work)))
		}
	}
	if len(kinds[0]) < 2 {
		return nil
	}
	if len(kinds[1]) == 0 {
		kinds[1] = kinds[0]
	}
	b := &chip.Build{Name: "no-cache", Title: "with caches off", From: "networks on " + strings.Join(c.chips, ", ") + " that took so long that caches must have been off"}
	var miss []float64
	for kind, logs := range kinds {
		mean := stats.Mean(logs)
		for k := range b.Integer {
			if (k <= cortexm.Op) == (kind == 1) {
				b.Integer[k] = math.Exp(mean)
			}
		}
		for _, l := range logs {
			miss = append(miss, math.Abs(l-mean))
		}
	}
	b.Float, b.Band = b.Integer, fit.Quantile(miss)
	return b
}

// pairs returns the factor between networks that were built both ways for a chip, with the
// half-width that holds them; 0 without any. Compilers that leave the kernels' options alone
// change the rest alone, too little to tell kinds of work apart.
func (s *Study) pairs(c *chipFacts) (factor, half float64) {
	type network struct{ source, chip, model string }
	usual := map[network]float64{}
	for _, m := range s.Measurements {
		if m.Board && m.Build == "" && m.Era == "" {
			usual[network{m.Source, m.Chip, m.Model}] = m.Cycles
		}
	}
	var logs []float64
	for _, m := range s.Measurements {
		if u := usual[network{m.Source, m.Chip, m.Model}]; u > 0 && m.Build == sizeBuild && slices.Contains(c.chips, m.Chip) {
			logs = append(logs, math.Log(m.Cycles/u))
		}
	}
	if len(logs) < 2 {
		return 0, 0
	}
	mean := stats.Mean(logs)
	for i := range logs {
		logs[i] = math.Abs(logs[i] - mean)
	}
	return math.Exp(mean), math.Max(fit.Quantile(logs), 0.01)
}

// factors by which one way of building differs from the usual one, and the half-width of
// the band of the networks that were left out.
func (s *Study) factors(usual, other fit.Group) (out chip.Terms, half float64) {
	u, o := s.Fit.Groups[usual], s.Fit.Groups[other]
	for k := range out {
		if u[k] > 0 {
			out[k] = o[k] / u[k]
		}
	}
	var miss []float64
	for _, r := range s.Residuals {
		if r.M.Group() == other && r.How != "" && r.Overhead < 0.5 {
			miss = append(miss, math.Abs(r.Log()))
		}
	}
	return out, fit.Quantile(miss)
}

// otherwise makes coefficients of kernels that are built in another way from the usual
// ones: each kind of work by the middle ratio of the networks that it dominates.
func otherwise(usual cortexm.Vector, plainC bool, rows []*fit.Measurement) cortexm.Vector {
	v := usual
	for range 5 {
		var ratios [buildKinds][]float64
		for _, m := range rows {
			var share [buildKinds]float64
			for k, w := range m.Work {
				share[buildKind(k, plainC)] += v[k] * w
			}
			total := v.Dot(m.Work)
			for kind, c := range share {
				if c > total/2 {
					ratios[kind] = append(ratios[kind], math.Log(max(m.Cycles-(total-c), c/10)/c))
				}
			}
		}
		for kind, r := range ratios {
			if len(r) == 0 {
				continue
			}
			slices.Sort(r)
			f := math.Exp(stats.Median(r))
			for k := range v {
				if buildKind(k, plainC) == kind {
					v[k] *= f
				}
			}
		}
	}
	return v
}
