package tensorrt_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestRestart divides one list of times where trtexec's clock begins again. Inferences of several
// streams overlap: their starts are not in order, and are one run.
func TestRestart(t *testing.T) {
	t.Parallel()
	inference := func(at, ms float64) string {
		return fmt.Sprintf(`{"startComputeMs":%g,"endComputeMs":%g,"computeMs":%g,"latencyMs":%g}`, at, at+ms, ms, ms)
	}
	for name, c := range map[string]struct {
		starts []float64
		want   []int64 // inferences of each run
	}{
		"two runs":  {[]float64{0, 5, 10, 15, 0, 5, 10}, []int64{4, 3}},
		"later":     {[]float64{100, 105, 110, 115, 103, 108, 113}, []int64{4, 3}},
		"overlap":   {[]float64{0, 5, 4, 10, 9, 8, 15}, []int64{7}},
		"one start": {[]float64{0, 0, 0, 0}, []int64{4}},
	} {
		var list []string
		for _, at := range c.starts {
			list = append(list, inference(at, 3))
		}
		ps := read(t, "times.json", "["+strings.Join(list, ",")+"]")
		if len(ps) != len(c.want) {
			t.Errorf("%s: %d runs, want %d", name, len(ps), len(c.want))
			continue
		}
		for i, p := range ps {
			if n := *p.Totals.Latency.N; n != c.want[i] {
				t.Errorf("%s: run %d has %d inferences, want %d", name, i, n, c.want[i])
			}
		}
	}
}

// TestNoIterations: an average of 0 beside a time above 0 is none.
func TestNoIterations(t *testing.T) {
	t.Parallel()
	row := `{"name":"a","timeMs":20,"averageMs":0,"medianMs":0,"percentage":100}]`
	p := read(t, "profile.json", `[{"count":0},`+row)[0]
	if m := p.Layers[0].Latency; m != nil || p.Totals.Latency != nil || len(p.Incomplete) == 0 {
		t.Errorf("%+v, total %+v, lost %+v", m, p.Totals.Latency, p.Incomplete)
	}
	p = read(t, "profile.json", `[{"count":10000},`+row)[0]
	if m := p.Layers[0].Latency; m == nil || *m.Mean != 2e-6 { // the mean was rounded
		t.Errorf("%+v", m)
	}
}
