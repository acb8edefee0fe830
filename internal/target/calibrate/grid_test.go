package calibrate_test

import (
	"testing"

	"github.com/opmeter/opmeter/internal/material"
	"github.com/opmeter/opmeter/internal/target/calibrate"
)

func TestGrid(t *testing.T) {
	ms, _, err := calibrate.LoadAll(material.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []float64{0.0005, 0.002, 0.01, 0.05} {
		for _, g := range []float64{0.005, 0.02, 0.1, 0.5} {
			for _, both := range []bool{false, true} {
				rs := calibrate.LeaveSourcesOut(ms, calibrate.Settings{EraShrink: e, GroupShrink: g, LayerWeight: 0.1})
				if both {
					rs = calibrate.LeaveNetworksOut(ms, calibrate.Settings{EraShrink: e, GroupShrink: g, LayerWeight: 0.1})
				}
				var x, tf []*calibrate.Residual
				for _, r := range rs {
					if r.How != "measured" {
						continue
					}
					if r.M.Family == "x-cube-ai" {
						x = append(x, r)
					} else {
						tf = append(tf, r)
					}
				}
				a, b := calibrate.Summarise(x), calibrate.Summarise(tf)
				t.Logf("%g %g  x: %d %.3f %.3f %.3f   other: %d %.3f %.3f %.3f", e, g, a.Rows, a.Median, a.P90, a.Within25, b.Rows, b.Median, b.P90, b.Within25)
			}
		}
	}
}
