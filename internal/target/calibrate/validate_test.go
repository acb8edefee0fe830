package calibrate_test

import (
	"sort"
	"testing"

	"github.com/opmeter/opmeter/internal/material"
	"github.com/opmeter/opmeter/internal/target/calibrate"
)

func TestValidation(t *testing.T) {
	t.Parallel()
	ms, _, err := calibrate.LoadAll(material.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	rs := calibrate.LeaveSourcesOut(ms, calibrate.Default)
	groups := map[calibrate.Group][]*calibrate.Residual{}
	hows := map[string][]*calibrate.Residual{}
	for _, r := range rs {
		groups[r.M.Group()] = append(groups[r.M.Group()], r)
		hows[r.How] = append(hows[r.How], r)
	}
	t.Logf("all %+v", calibrate.Summarise(rs))
	for h, r := range hows {
		t.Logf("%q %d %+v", h, len(r), calibrate.Summarise(r))
	}
	for g, r := range groups {
		t.Logf("%v %d %+v", g, len(r), calibrate.Summarise(r))
	}
	held := calibrate.Nested(ms, calibrate.Default)
	in, n := map[string]int{}, map[string]int{}
	for _, h := range held {
		k := h.M.Family + " " + h.How
		n[k]++
		if h.How != "" && h.Inside() {
			in[k]++
		}
	}
	t.Log(in, n)
	b := calibrate.MakeBands(ms, calibrate.Default)
	for _, f := range []string{"x-cube-ai", "tflm-cmsis-nn", "tflm-reference"} {
		for _, how := range []string{"measured", "scaled", "other era", "tier"} {
			t.Logf("%s %s %+v", f, how, b.Of(f, how))
		}
	}
	sort.Slice(rs, func(i, j int) bool { return rs[i].Error() > rs[j].Error() })
	for _, r := range rs[:min(len(rs), 90)] {
		t.Logf("%.2f %s %v %s %s %s", r.Predicted/r.M.Cycles, r.M.Source, r.M.Group(), r.M.Chip, r.M.Model, r.How)
	}
}
