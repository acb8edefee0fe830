package study

import (
	"math"
	"slices"

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

// builds makes the ways of building a runtime on a core: for size, by what it changes on
// the Cortex-M4 where both were measured, and without the unit for floating point.
func (s *Study) builds(g fit.Group) []chip.Build {
	if g.Era != "" || g.Family != "tflm-cmsis-nn" && g.Family != reference {
		return nil
	}
	const from = "the same networks built both ways for a Cortex-M4 (EdgeMark)"
	m4, floats := group("tflm-cmsis-nn", "", "cortex-m4"), group(cortexm.FloatTFLM, "", "cortex-m4")
	size := chip.Build{Name: "size", Title: "built for size (-Os)", From: from}
	size.Float, size.Band = s.factors(floats, group(cortexm.FloatTFLM, small, "cortex-m4"))
	if g.Family == reference {
		size.Integer = size.Float // the same loops in plain C
	} else {
		var half float64
		size.Integer, half = s.factors(m4, group("tflm-cmsis-nn", small, "cortex-m4"))
		size.Band = math.Max(size.Band, half)
	}
	list := []chip.Build{size}
	if s.units[g.Core] {
		soft := chip.Build{Name: "no-fpu", Title: "without the unit for floating point", From: from}
		soft.Float, soft.Band = s.factors(floats, group(cortexm.FloatTFLM, "", noUnit))
		list = append(list, soft)
	}
	if g.Core != "cortex-m4" {
		for i := range list {
			list[i].Band *= 2 // how compilers do on other cores was not measured
		}
	}
	return list
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
