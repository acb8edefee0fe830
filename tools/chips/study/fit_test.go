package study

import (
	"math"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/estimate/fit"
)

// measured returns measurements of networks on a core whose kernels cost truth, a factor
// dearer.
func measured(family, era, core, chip string, truth cortexm.Vector, factor float64) (ms []*fit.Measurement) {
	conv := func(size, in, out int) cortexm.Layer { return cortexm.Conv(size, size, 3, 3, in, out, 1) }
	for name, layers := range map[string][]cortexm.Layer{
		"first":  {conv(32, 1, 8), conv(16, 8, 16), cortexm.Dense(1, 64, 10)},
		"second": {conv(24, 3, 32), conv(12, 32, 32), cortexm.Dense(1, 32, 64)},
		"third":  {cortexm.Dense(1, 784, 128), cortexm.Dense(1, 128, 10)},
		"fourth": {conv(48, 4, 4), conv(48, 4, 16), cortexm.Dense(1, 512, 16)},
	} {
		m := &fit.Measurement{Source: "made up", Family: family, Era: era, Core: core, Chip: chip, Model: name, Work: fit.Total(layers).All}
		m.Cycles = fit.Faster(truth, factor).Dot(m.Work)
		ms = append(ms, m)
	}
	return ms
}

// TestChips finds the speed of each chip of a core, and that a chip which was not
// measured has that of the core.
func TestChips(t *testing.T) {
	t.Parallel()
	truth := cortexm.Prior("tflm-cmsis-nn", "dsp")
	ms := append(measured("tflm-cmsis-nn", "", "cortex-m4", "slow", truth, 1.25), measured("tflm-cmsis-nn", "", "cortex-m4", "fast", truth, 0.8)...)
	f := train(ms, fit.Default)
	g := group("tflm-cmsis-nn", "", "cortex-m4")
	for _, m := range ms {
		v, how := f.Of(g, m.Chip)
		// The speed of a chip counts one network more at that of the core.
		if miss := math.Log(v.Dot(m.Work) / m.Cycles); how != "measured" || !(math.Abs(miss) < 0.06) {
			t.Errorf("%s on %s: %s, off by %v", m.Model, m.Chip, how, miss)
		}
	}
	slow, _ := f.Of(g, "slow")
	other, how := f.Of(g, "third")
	if how != otherChip || !(other[cortexm.ConvMAC] < slow[cortexm.ConvMAC]) {
		t.Errorf("a chip that was not measured: %s, %v", how, other[cortexm.ConvMAC])
	}
}

// TestOddBuilds sets aside a core that is known by one network in plain C and took more
// than twice what it takes on others, and nothing else.
func TestOddBuilds(t *testing.T) {
	t.Parallel()
	truth := cortexm.Prior(reference, "plain")
	var ms []*fit.Measurement
	for i, core := range []string{"a", "b", "c", "d"} {
		ms = append(ms, measured(reference, "", core, core, truth, 1+0.2*float64(i))...)
	}
	for _, c := range []struct {
		factor float64
		all    bool // all networks, not one
		want   bool
	}{{5, false, true}, {2.8, false, true}, {2.5, false, false}, {1, false, false}, {0.2, false, false}, {5, true, false}} {
		odd := measured(reference, "", "odd", "odd", truth, c.factor)
		if !c.all {
			odd = odd[:1]
		}
		rows := append(append([]*fit.Measurement(nil), ms...), odd...)
		got := oddBuilds(rows)
		for g, is := range got {
			if want := g.Core == "odd" && c.want; is != want {
				t.Errorf("%+v: %v is set aside: %v", c, g, is)
			}
		}
		_, how := train(rows, fit.Default).Of(group(reference, "", "odd"), "odd")
		if want := map[bool]string{true: "tier", false: "measured"}[c.want]; how != want {
			t.Errorf("%+v: coefficients are %q, want %q", c, how, want)
		}
	}
}

// TestOtherwise finds what a way of building changes, each kind of work apart.
func TestOtherwise(t *testing.T) {
	t.Parallel()
	usual := cortexm.Prior(cortexm.FloatTFLM, "fpu")
	built := usual
	for _, k := range []int{cortexm.ConvMAC, cortexm.PointMAC, cortexm.DepthwiseMAC} {
		built[k] *= 8
	}
	for _, k := range []int{cortexm.DenseMAC, cortexm.DenseOutput} {
		built[k] *= 1.3
	}
	got := otherwise(usual, true, measured(cortexm.FloatTFLM, small, "cortex-m4", "x", built, 1))
	for k, want := range built {
		if !(math.Abs(math.Log(got[k]/want)) < 0.05) && want > 0 {
			t.Errorf("%s: %v, want %v", cortexm.Names[k], got[k], want)
		}
	}
}

// TestTight holds nine of ten rows and misses the tenth, for any number of rows.
func TestTight(t *testing.T) {
	t.Parallel()
	for n := 10; n < 60; n++ {
		var rs []scored
		for i := range n {
			rs = append(rs, scored{log: 0.01 * float64(1+i*i%97), source: "s"})
		}
		b := tight(rs)
		in := 0
		for i := range rs {
			if rs[i].log <= cortexm.Half(b.Near, b.Far, b.Ports, rs[i].distance, rs[i].overhead) {
				in++
			}
		}
		if share := float64(in) / float64(n); !(share >= 0.9) || in > int(math.Ceil(0.9*float64(n)))+1 {
			t.Errorf("%d rows: %d inside", n, in)
		}
	}
}

// TestBuilds takes what a build for size costs from the chip itself: from networks built both ways,
// and from those built so alone. Elsewhere the largest factors bound the band.
func TestBuilds(t *testing.T) {
	t.Parallel()
	const family = "tflm-cmsis-nn"
	usual := cortexm.Prior(family, "dsp")
	slow := fit.Faster(usual, 1.4)
	fpu := cortexm.Prior(cortexm.FloatTFLM, "fpu")
	ms := slices.Concat(
		measured(family, "", "cortex-m4", edgeMarkChip, usual, 1), measured(family, small, "cortex-m4", edgeMarkChip, slow, 1),
		measured(family, small, "cortex-m7", "M7 chip", slow, 1),
		measured(cortexm.FloatTFLM, "", "cortex-m4", edgeMarkChip, fpu, 1), measured(cortexm.FloatTFLM, small, "cortex-m4", edgeMarkChip, fpu, 3),
	)
	for _, build := range []string{"", sizeBuild} {
		for _, m := range measured(family, "", "cortex-m33", "M33 chip", usual, 1) {
			m.Board, m.Build = true, build
			if build != "" {
				m.Cycles *= 1.02
			}
			ms = append(ms, m)
		}
	}
	s := NewStudy(&Data{Measurements: ms, Plain: &Plain{}}, fit.Default)
	for _, c := range []struct {
		core, chip       string
		integer, boundTo float64
	}{
		{"cortex-m4", edgeMarkChip, 1.4, 0},
		{"cortex-m33", "M33 chip", 1.02, 0},
		{"cortex-m7", "M7 chip", 1.4, 0},
		{"cortex-m4", "another", 0, 1.4},
		{"cortex-m33", "another", 0, 1.4},
	} {
		b := s.builds(group(family, "", c.core), &chipFacts{core: c.core, chips: []string{c.chip}})
		if len(b) == 0 || b[0].Name != sizeBuild {
			t.Fatalf("%+v: %+v", c, b)
		}
		near := func(got, want float64) bool { return got == want || math.Abs(math.Log(got/want)) < 0.06 }
		if f, most := b[0].Integer[cortexm.ConvMAC], b[0].IntegerBound[cortexm.ConvMAC]; !near(f, c.integer) || !near(most, c.boundTo) {
			t.Errorf("%s %s: factor %v, at most %v, want %v and %v", c.core, c.chip, f, most, c.integer, c.boundTo)
		}
		if own := c.chip == edgeMarkChip; (b[0].Float[cortexm.ConvMAC] > 0) != own || (b[0].FloatBound[cortexm.ConvMAC] > 0) == own {
			t.Errorf("%s %s: floats %v, at most %v", c.core, c.chip, b[0].Float, b[0].FloatBound)
		}
	}
}

// TestNoCache has factors of kernels and of overhead, from networks of each.
func TestNoCache(t *testing.T) {
	t.Parallel()
	const family, core = "tflm-cmsis-nn", "cortex-m55"
	truth := cortexm.Prior(family, "mve")
	ms := measured(family, "", core, "chip", truth, 1)
	s := NewStudy(&Data{Measurements: ms, Plain: &Plain{}}, fit.Default)
	c := &chipFacts{core: core, chips: []string{"chip"}}
	if b := s.noCache(group(family, "", core), c); b != nil {
		t.Errorf("of nothing measured: %+v", b)
	}
	s.uncached = measured(family, "", core, "chip", truth, 10)
	tiny := fit.Total([]cortexm.Layer{cortexm.Dense(1, 1, 2), cortexm.Dense(1, 2, 1)}).All
	s.uncached = append(s.uncached, &fit.Measurement{Family: family, Core: core, Chip: "chip", Model: "tiny", Work: tiny, Cycles: 3 * truth.Dot(tiny)})
	b := s.noCache(group(family, "", core), c)
	if b == nil || !(math.Abs(b.Integer[cortexm.ConvMAC]/10-1) < 0.15) || !(math.Abs(b.Integer[cortexm.Op]/3-1) < 0.15) {
		t.Errorf("%+v", b)
	}
}

// TestUnfamiliar is the error of boards that were left out with all their rows, absent with one.
func TestUnfamiliar(t *testing.T) {
	t.Parallel()
	const family, core = "tflm-cmsis-nn", "cortex-m4"
	truth := cortexm.Prior(family, "dsp")
	g := group(family, "", core)
	one := measured(family, "", core, "one", truth, 1)
	if u := NewStudy(&Data{Measurements: one, Plain: &Plain{}}, fit.Default).unfamiliar(g); u != nil {
		t.Errorf("of one board: %+v", u)
	}
	two := append(one, measured(family, "", core, "two", truth, 1.5)...)
	u := NewStudy(&Data{Measurements: two, Plain: &Plain{}}, fit.Default).unfamiliar(g)
	if u == nil || u.Rows != 8 || !(u.MedianError > 0.25 && u.MedianError < 0.6) {
		t.Errorf("%+v", u)
	}
}

// TestOptimisedC takes CMSIS-NN on a core without instructions for pairs from ESP-NN's kernels for
// such cores, as kernels of another tier, and nothing on cores with them.
func TestOptimisedC(t *testing.T) {
	t.Parallel()
	truth := cortexm.Prior("tflm-esp-nn", "plain")
	ms := append(measured("tflm-esp-nn", "", "xtensa-lx6", "one", truth, 8), measured("tflm-esp-nn", "", "rv32imc", "two", truth, 8)...)
	f := train(ms, fit.Default)
	v, how := f.Coefficients(group("tflm-cmsis-nn", "", "cortex-m0plus"))
	if how != "tier" || !(math.Abs(math.Log(v[cortexm.ConvMAC]/(8*truth[cortexm.ConvMAC]))) < 0.3) {
		t.Errorf("%q, %v", how, v[cortexm.ConvMAC])
	}
	if _, how := f.Coefficients(group("tflm-cmsis-nn", "", "cortex-m4")); how != "" {
		t.Errorf("a core with instructions for pairs: %q", how)
	}
}
