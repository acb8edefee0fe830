package report

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/profile"
)

// strange is a profile whose statistics lie far apart: means outside the interval of the median,
// and in some figures an interval of another statistic.
func strange(r *rand.Rand) *profile.Profile {
	wide := func() float64 { return math.Exp(r.Float64()*20 - 15) }
	metric := func() *profile.Metric {
		m := &profile.Metric{Kind: profile.Measured, N: new(int64(50)), Median: new(wide()), Mean: new(wide())}
		low, high := wide(), wide()
		if r.IntN(2) == 0 { // its own
			low, high = *m.Median*r.Float64(), *m.Median*(1+r.Float64())
		}
		m.CI95 = &[2]float64{min(low, high), max(low, high)}
		return m
	}
	p := &profile.Profile{
		Schema: profile.SchemaV1, Model: profile.Model{Name: "m"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost},
		Totals: profile.Totals{Latency: metric()},
	}
	for i := range 1 + r.IntN(8) {
		p.Layers = append(p.Layers, profile.Layer{Index: int64(i), Op: "Add", State: profile.Ran, Latency: metric()})
	}
	b := profile.NewBuilder()
	if err := b.Describe(p); err != nil {
		panic(err) // it is valid by construction
	}
	p, _ = b.Finish()
	return p
}

// TestIntervalsEnclose: in whatever is shown, an interval is that of the figure beside it.
func TestIntervalsEnclose(t *testing.T) {
	t.Parallel()
	const rounding = 1e-12 // of sums of two floating-point numbers
	r := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		p := strange(r)
		for i := range p.Layers {
			l := &p.Layers[i]
			row := row{Layers: p.Select(func(o *profile.Layer) bool { return o == l })}
			v, _ := row.value("latency_s")
			half, shown := spread(&row)
			own := l.Latency.CI95[0] <= v && v <= l.Latency.CI95[1]
			if shown != own || shown && (v-half > l.Latency.CI95[0]+rounding*v || v+half < l.Latency.CI95[1]-rounding*v) {
				t.Fatalf("%g ± %g (%v), interval %v", v, half, shown, *l.Latency.CI95)
			}
			if s := l.ShareCI95; s != nil && (*l.Share < s[0]-1e-12 || *l.Share > s[1]+1e-12) {
				t.Fatalf("share %g, interval %v", *l.Share, *s)
			}
		}
		h, _ := p.Headline()
		if v := *p.Totals.Latency.Median; h.Value != v || h.Low > v || h.High < v {
			t.Fatalf("headline %+v, median %g", h, v)
		}
		m := p.Totals.Latency
		own := m.CI95[0] <= *m.Median && *m.Median <= m.CI95[1]
		for _, s := range []string{latencyLine(p).value, latency(p)} {
			if !strings.HasPrefix(s, Duration(*m.Median)) || strings.Contains(s, "95 %") && !own {
				t.Fatalf("%q, median %g, interval %v", s, *m.Median, *m.CI95)
			}
		}
		checkColumns(t, p)
	}
}

// checkColumns: the time in a file is the median, which the other columns are parts of.
func checkColumns(t *testing.T, p *profile.Profile) {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p, "csv", Options{}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	at := map[string]int{}
	for i, key := range strings.Split(lines[0], ",") {
		at[key] = i
	}
	if _, ok := at["share_ci95_low"]; !ok {
		return // no layer has an interval of its own
	}
	for i, line := range lines[1:] {
		cells := strings.Split(line, ",")
		if cells[at["latency_s"]] != cells[at["latency_median_s"]] {
			t.Fatalf("layer %d: %s", i, line)
		}
		v, _ := strconv.ParseFloat(cells[at["share"]], 64)
		low, err := strconv.ParseFloat(cells[at["share_ci95_low"]], 64)
		if err != nil {
			continue // unknown
		}
		if high, _ := strconv.ParseFloat(cells[at["share_ci95_high"]], 64); v < low-1e-12 || v > high+1e-12 {
			t.Fatalf("layer %d: share %g in %g to %g", i, v, low, high)
		}
	}
}
