package study_test

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/tools/chips/study"
)

func TestPlain(t *testing.T) {
	t.Parallel()
	p, err := study.LoadPlain(material.Path(t, "data", "mcu_measured_layers.csv"))
	if err != nil {
		t.Fatal(err)
	}
	inside := 0
	for _, h := range p.Held {
		in := math.Abs(math.Log(h.Measured/h.Predicted)) <= h.Half
		if in {
			inside++
		}
		t.Logf("%-14s %-14s %-30s measured %7.1f predicted %7.1f ±%.2f %v", cortexm.Names[h.Term], h.Core, h.Op, h.Measured, h.Predicted, h.Half, in)
	}
	for k := cortexm.PlainMAC; k < cortexm.Terms; k++ {
		t.Logf("%-14s %.1f cycles ±%.2f", cortexm.Names[k], p.Cost[k], p.Half[k])
		if !(p.Cost[k] > 0) || !(p.Half[k] > 0) {
			t.Errorf("%s has no figure", cortexm.Names[k])
		}
	}
	share := float64(inside) / float64(len(p.Held))
	t.Logf("%.0f %% of %d costs inside; kinds ±%.2f", 100*share, len(p.Held), p.Kinds)
	if len(p.Held) < 25 || share < 0.8 {
		t.Errorf("%d costs, %.2f inside", len(p.Held), share)
	}
}
