package conv

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
)

// fillLines packs the weights of all groups.
func fillLines[W quantise.Weight](p *workers.Pool, c *int8NHWC, s *Shape, w []W, zero int32) {
	c.start = c.start[:0]
	if c.band > 0 {
		c.panels[0].Fours = true
		fillBands(p, c, s, w, zero)
		return
	}
	og := s.OC / s.Groups
	k := c.panels[0].Segs * c.panels[0].Seg
	// weights that change between runs are not converted to sparse
	first := c.panels[0].Narrow == nil && c.panels[0].Wide == nil && c.sparse == nil && !c.grouped()
	gain := 1.0
	if c.sparse = nil; first {
		gain = gemm.Gain4of8(gemm.Source[W]{V: w, Zero: zero, N: og, Vec: k, Elem: 1}, k, c.panels[0].Seg)
		for g := 1; g < len(c.panels) && gain > 1; g++ {
			gain = gemm.Gain4of8(gemm.Source[W]{V: w[g*og*k:], Zero: zero, N: og, Vec: k, Elem: 1}, k, c.panels[g].Seg)
		}
		setSparseLines(c, og, k, w, zero, gain)
	}
	if c.sparse != nil {
		return
	}
	if c.groups != nil && fillGroups(c.groups, w[:len(c.panels)*og*k], zero) {
		for g := range c.panels {
			p := &c.panels[g]
			p.Narrow, p.Wide, p.Sums = nil, nil, c.groups.sums
		}
		return
	}
	// All groups read one padded copy.
	fours := len(c.panels) == 1 || !c.panels[0].F.Saturates() && gemm.FitsInt8(w[:len(c.panels)*og*k], zero)
	for g := range c.panels {
		c.panels[g].Fours = fours
		if gemm.FillPanels(p, &c.panels[g], og, w[g*og*k:], zero, k, 1); gain > 1 {
			c.panels[g].Pack4of8()
		}
	}
}

// setSparseLines lists the nonzero weights of all groups if skipping zeros is faster in each.
// gain is the speed-up of the panels over dense panels.
func setSparseLines[W quantise.Weight](c *int8NHWC, og, k int, w []W, zero int32, gain float64) {
	c.sparse = nil
	for g := range c.panels {
		s := gemm.NewSparseInt8(og, k, c.plan.n*c.plan.count, w[g*og*k:], zero, k, 1, gain)
		if s == nil {
			c.sparse = nil
			return
		}
		c.sparse = append(c.sparse, s)
	}
	for g := range c.panels {
		p := &c.panels[g]
		p.Narrow, p.Wide, p.Sums = nil, nil, make([]int32, c.plan.panels*p.F.Cols)
		copy(p.Sums, c.sparse[g].Sums)
	}
}

// fillPlanes packs the weights of all channels, k each.
func fillPlanes[W quantise.Weight](c *int8NCHW, s *Shape, k int, w []W, zero int32) {
	if w = w[:s.OC*k]; c.f.Transposes() && gemm.FitsInt8(w, zero) {
		c.narrow, c.sums = scratch.Zeroed(c.narrow, s.OC*c.line), scratch.Zeroed(c.sums, s.OC)
		for o := range s.OC {
			row, sum := c.narrow[o*c.line:][:k], int32(0)
			for i, v := range w[o*k:][:k] {
				row[i] = int8(int32(v) - zero)
				sum += int32(v) - zero
			}
			c.sums[o] = sum
		}
		return
	}
	c.wide, c.sums = scratch.Zeroed(c.wide, s.OC*c.line), nil
	for o := range s.OC {
		row := c.wide[o*c.line:][:k]
		for i, v := range w[o*k:][:k] {
			row[i] = int16(int32(v) - zero)
		}
	}
}
