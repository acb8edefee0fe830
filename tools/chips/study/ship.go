package study

import (
	"maps"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/estimate/fit"
	"github.com/opmeter/opmeter/internal/estimate/tflm"
)

// runtimeOf says how a family in an era is called in target files.
var runtimeOf = []struct {
	family, era, name, title, versions string
	st                                 bool
	cores                              map[string]bool // nil: all
}{
	{
		"tflm-cmsis-nn", "", "tflm-cmsis-nn", "TensorFlow Lite Micro with CMSIS-NN", "2021 and later", false,
		set("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m33", "cortex-m7", "cortex-m55", "cortex-m85", "rxv2"),
	},
	{"tflm-esp-nn", "", "tflm-esp-nn", "TensorFlow Lite Micro with ESP-NN", "2026", false, set("xtensa-lx6", "xtensa-lx7", "rv32imc", "rv32-p4")},
	{"x-cube-ai", "9", "x-cube-ai", "X-CUBE-AI, ST Edge AI Core", "X-CUBE-AI 9.0 to 10.2, ST Edge AI Core 3 and 4", true, nil},
	{"x-cube-ai", "8.1", "x-cube-ai-8.1", "X-CUBE-AI", "8.1", true, nil},
	{"x-cube-ai", "7.3", "x-cube-ai-7.3", "X-CUBE-AI", "7.3 and 8.0", true, nil},
	{"x-cube-ai", "7.1", "x-cube-ai-7.1", "X-CUBE-AI", "7.1", true, nil},
	{"tflm-cmsis-nn", "2020", "tflm-cmsis-nn-2020", "TensorFlow Lite Micro with optimised kernels of 2020", "2.3", false, set("cortex-m4")},
	{"tflm-cmsis-nn", edgeImpulse, "edge-impulse", "Edge Impulse SDK", "2024", false, set("cortex-m4")},
	{reference, edgeImpulse, "edge-impulse", "Edge Impulse SDK, built for size", "2024", false, set("rxv2")},
	{reference, "", reference, "TensorFlow Lite Micro, reference kernels", "any", false, nil},
}

// reference is the family, and the runtime, of the kernels in plain C.
const reference = "tflm-reference"

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// Study is everything that files are made from.
type Study struct {
	Measurements []*fit.Measurement
	Plain        *Plain
	Fit          *Fit
	Bands        *Bands
	Residuals    []*fit.Residual // networks left out
	Boards       []*fit.Residual // boards left out
	units        map[string]bool // cores with a unit for floating point
	uncached     []*fit.Measurement
}

// NewStudy fits and validates.
func NewStudy(d *Data, s fit.Settings) *Study {
	ms := d.Measurements
	units := map[string]bool{}
	for _, c := range chips() {
		units[c.core] = c.Core.FPU == "single" || c.Core.FPU == "double"
	}
	return &Study{ms, d.Plain, train(ms, s), MakeBands(ms, s), LeaveOuts[0].Residuals(ms, s), LeaveOuts[1].Residuals(ms, s), units, d.Uncached}
}

// Targets makes all shipped targets of this package.
func (s *Study) Targets() []*chip.Target {
	var out []*chip.Target
	for _, c := range chips() {
		t := c.Target
		for _, r := range runtimeOf {
			if r.st && !c.st || r.cores != nil && !r.cores[c.core] {
				continue
			}
			if rt := s.runtime(group(r.family, r.era, c.core), &c, r.name, r.title, r.versions); rt != nil {
				t.Runtimes = append(t.Runtimes, *rt)
			}
		}
		t.Energy = s.energy(&c)
		t.Sources = []string{"clocks and memories: data sheet of the maker"}
		out = append(out, &t)
	}
	return out
}

// Reference makes the runtime with the reference kernels for a core, for the file of
// a chip that is otherwise written by hand.
func (s *Study) Reference(core string) *chip.Runtime {
	for _, r := range runtimeOf {
		if r.name == reference {
			return s.runtime(group(r.family, r.era, core), &chipFacts{core: core}, r.name, r.title, r.versions)
		}
	}
	return nil
}

// coefficients of a group on a chip: on one of those that were measured, else on any.
func (s *Study) coefficients(g fit.Group, c *chipFacts) (cortexm.Vector, string) {
	for _, name := range c.chips {
		if v, how := s.Fit.Of(g, name); how == "measured" {
			return v, how
		}
	}
	return s.Fit.Of(g, "")
}

// runtime makes a runtime from the coefficients of a group, nil without any.
func (s *Study) runtime(g fit.Group, c *chipFacts, name, title, versions string) *chip.Runtime {
	v, how := s.coefficients(g, c)
	if how == "" {
		return nil
	}
	t := tier(g.Family, g.Core)
	b := s.Bands.Of(g, how)
	x := &chip.Structural{
		Family: g.Family, Tier: t, Pruned: prunes(g.Family, g.Era), Int16: s.int16(g, c), Float: s.float(g, c),
		Integer: chip.Integer{Cycles: chip.Terms(v), Near: b.Near, Far: b.Far, Layer: s.Bands.Layer(b), Overhead: b.Ports},
	}
	for i := cortexm.PlainMAC; i < cortexm.Terms; i++ {
		switch {
		case !strings.HasPrefix(g.Family, "tflm-"):
			x.Integer.Cycles[i] = 0
		case how != "measured" || !s.tells(g, i):
			x.Integer.Cycles[i], x.Integer.Bands[i] = s.Plain.Cost[i], s.Plain.Half[i]
		}
	}
	for _, m := range s.Fit.Seen(g) {
		x.Seen = append(x.Seen, chip.Terms(m))
	}
	r := &chip.Runtime{Name: name, Title: title, Versions: versions, Arena: arena(g), Cortexm: x, Builds: s.builds(g, c)}
	r.Code = s.code(g)
	if g.Era == "2020" {
		r.Release = 2020
	}
	r.Calibration = s.calibration(g, c, how, b)
	return r
}

// code is the least and most program code in images of a runtime on a core, in whole KiB,
// of all runtimes of its kind where none of them was measured.
func (s *Study) code(g fit.Group) *[2]chip.Bytes {
	if !strings.HasPrefix(g.Family, "tflm-") {
		return nil
	}
	var own, all []int64
	for _, m := range s.Measurements {
		if m.Code == 0 || (m.Era == edgeImpulse) != (g.Era == edgeImpulse) {
			continue
		}
		all = append(all, m.Code)
		if m.Core == g.Core {
			own = append(own, m.Code)
		}
	}
	if len(own) == 0 {
		own = all
	}
	return &[2]chip.Bytes{kib(slices.Min(own) >> 10), kib(slices.Max(own)>>10 + 1)}
}

// tells reports whether a kind of work is a good part of a network of the group, so that
// its cost is that of the group and not that of the others.
func (s *Study) tells(g fit.Group, term int) bool {
	v := s.Fit.Groups[g]
	for _, m := range s.Measurements {
		if m.Group() == g && !m.Layer && v[term]*m.Work[term] > 0.05*v.Dot(m.Work) {
			return true
		}
	}
	return false
}

// arena names the memory that a family needs, "" for runtimes other than TensorFlow
// Lite Micro.
func arena(g fit.Group) string {
	switch {
	case !strings.HasPrefix(g.Family, "tflm-"):
		return ""
	case g.Family == reference:
		return string(tflm.Reference)
	case tierOf(g.Core) == "mve":
		return string(tflm.CMSISMVE)
	}
	return string(tflm.CMSISNN)
}

// int16 makes the figures of kernels with 16-bit activations, nil without any.
func (s *Study) int16(g fit.Group, c *chipFacts) *chip.Typed {
	f := group(map[string]string{"tflm-cmsis-nn": cortexm.Int16CMSISNN, reference: cortexm.Int16Reference}[g.Family], g.Era, g.Core)
	v, how := s.coefficients(f, c)
	if f.Family == "" || how == "" {
		return nil
	}
	from := "networks with 16-bit activations on " + s.boards(f)
	if how != "measured" && how != otherChip {
		from = "networks with 16-bit activations on other cores"
	}
	return s.typed(f, how, from, v)
}

// float makes the figures of kernels in floating point, nil without any.
func (s *Study) float(g fit.Group, c *chipFacts) *chip.Typed {
	f := group(cortexm.FloatTFLM, g.Era, g.Core)
	if g.Family == "x-cube-ai" {
		f = group(cortexm.FloatXCubeAI, "9", g.Core)
		if _, ok := s.Fit.Coefficients(f); ok == "" {
			f.Era = ""
		}
	}
	if !built(f.Era) && g.Family != "x-cube-ai" {
		f.Era = ""
	}
	v, how := s.coefficients(f, c)
	if how == "" {
		return nil
	}
	from := "networks on " + s.boards(f)
	switch {
	case how == "measured", how == otherChip:
	case softFloat[g.Core]:
		from = "networks on a Cortex-M0+ and on a Cortex-M4 whose unit for floating point is not used"
	case g.Family == "x-cube-ai":
		from = "small convolutional networks on other cores"
	default:
		from = "networks on other cores with a unit for floating point"
	}
	return s.typed(f, how, from, v)
}

// typed makes figures of a family of kernels that are not of 8-bit integers.
func (s *Study) typed(f fit.Group, how, from string, v cortexm.Vector) *chip.Typed {
	b := s.Bands.Of(f, how)
	t := &chip.Typed{From: from, Measured: s.measured(f, how), Near: b.Near, Overhead: b.Ports}
	away := 0.0
	if how == "measured" || how == otherChip {
		away = s.kinds(f, t, &v)
	}
	t.Far, t.Cycles = math.Hypot(math.Hypot(b.Near, s.Plain.Kinds), away), chip.Terms(v)
	return t
}

// kinds gives kinds of layers that a core was not measured with the figures of the cores of its
// tier that were, where software computes floating point: a library's routines take the time,
// which depends on their operands (zeros of a ReLU are fast), so that dense layers on one core say
// little of convolutions. It returns half of the largest step in logarithms, by which the bands of
// these kinds widen.
func (s *Study) kinds(f fit.Group, t *chip.Typed, v *cortexm.Vector) (away float64) {
	if tier(f.Family, f.Core) != "soft" {
		return 0
	}
	for core := range softFloat {
		other := group(f.Family, f.Era, core)
		own, ok := s.Fit.Groups[other]
		if !ok || core == f.Core {
			continue
		}
		there := chip.Typed{Measured: s.measured(other, "measured")}
		for _, k := range []int{cortexm.ConvMAC, cortexm.ConvWindow, cortexm.ConvOutput, cortexm.DenseMAC, cortexm.DenseOutput} {
			if name := cortexm.Names[k]; !t.Has(name) && there.Has(name) && own[k] > 0 && v[k] > 0 {
				away = math.Max(away, math.Abs(math.Log(own[k]/v[k]))/2)
				v[k] = own[k]
			}
		}
	}
	return away
}

// measured names the kinds of layers that are a good part of the networks of a core, or of
// its family where figures are carried over from other cores.
func (s *Study) measured(g fit.Group, how string) string {
	var conv, dense bool
	for _, m := range s.Measurements {
		if m.Family != g.Family || m.Layer || (how == "measured" || how == otherChip) && m.Group() != g {
			continue
		}
		mix := cortexm.Mix(cortexm.Prior(g.Family, tier(g.Family, g.Core)), m.Work)
		conv = conv || mix[cortexm.ConvMAC] > 0.2
		dense = dense || mix[cortexm.DenseMAC] > 0.2
	}
	switch {
	case conv && dense:
		return "both"
	case conv:
		return "conv"
	}
	return "dense"
}

// boards lists the chips that a group was measured on.
func (s *Study) boards(g fit.Group) string {
	seen := map[string]bool{}
	for _, m := range s.Measurements {
		if m.Group() == g {
			seen[m.Chip] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(seen)), ", ")
}

func (s *Study) calibration(g fit.Group, f *chipFacts, how string, b Band) *chip.Calibration {
	c := &chip.Calibration{Method: "relative least squares, coefficients not negative and drawn towards those of the tier of cores; a speed for each chip; errors and bands from leaving one network out at a time"}
	sources, on := map[string]bool{}, map[string]bool{}
	for _, m := range s.Measurements {
		if m.Group() == g && !m.Layer {
			c.Rows++
			sources[m.Source] = true
			on[m.Chip+": "+m.Source] = true
		}
	}
	c.Sources = int64(len(sources))
	c.On = slices.Sorted(maps.Keys(on))
	switch how {
	case "scaled", "tier":
		c.From = "other cores with " + tier(g.Family, g.Core) + " kernels"
	case otherChip:
		if f.ID != f.core {
			c.From = "other chips with this core"
		}
	case "other era":
		c.From = "another version of the runtime on this core"
	}
	lo, hi, cov := math.Exp(-b.Near), math.Exp(b.Near), fit.Coverage
	c.Band, c.Coverage = &[2]float64{lo, hi}, &cov
	c.Unfamiliar = s.unfamiliar(g)
	byModel := map[string][]*fit.Residual{}
	var rs []*fit.Residual
	for _, r := range s.Residuals {
		if r.M.Group() == g && r.How != "" {
			rs = append(rs, r)
			byModel[networkOf(r.M.Model)] = append(byModel[networkOf(r.M.Model)], r)
		}
	}
	if len(rs) == 0 {
		return c
	}
	all := fit.Summarise(rs)
	c.MedianError, c.P90Error = &all.Median, &all.P90
	for _, n := range slices.Sorted(maps.Keys(byModel)) {
		x := fit.Summarise(byModel[n])
		c.Errors = append(c.Errors, chip.ErrorRow{Group: n, Rows: int64(x.Rows), MedianError: x.Median, P90Error: x.P90, Bias: x.Bias})
	}
	return c
}

// unfamiliar is the error of the boards of a group, each left out with all its rows; nil unless
// two boards have the group in common.
func (s *Study) unfamiliar(g fit.Group) *chip.ErrorRow {
	var rs []*fit.Residual
	for _, r := range s.Boards {
		if r.M.Group() == g && r.How == otherChip {
			rs = append(rs, r)
		}
	}
	if len(rs) == 0 {
		return nil
	}
	x := fit.Summarise(rs)
	return &chip.ErrorRow{Group: "one board left out at a time", Rows: int64(x.Rows), MedianError: x.Median, P90Error: x.P90, Bias: x.Bias}
}

// energy makes the power model of a chip: energy per elapsed cycle at the supply
// that is stated, as a total of the supply.
func (s *Study) energy(c *chipFacts) *chip.Energy {
	if c.watts > 0 {
		return &chip.Energy{
			Reference: "total", ElapsedCycle: c.watts, Band: &[2]float64{0.6, 1.7},
			Calibration: &chip.Calibration{From: "the maker's figure for CoreMark; inference was not measured", Method: "energy per cycle"},
		}
	}
	bySource, all, on := s.perCycle(c)
	if len(all) == 0 {
		return nil
	}
	e := &chip.Energy{Reference: "total", ElapsedCycle: stats.Median(all)}
	h := energyHalf(bySource, all)
	e.Band = &[2]float64{math.Exp(-h), math.Exp(h)}
	e.Calibration = &chip.Calibration{
		On: slices.Sorted(maps.Keys(on)), Rows: int64(len(all)), Sources: int64(len(bySource)),
		Method: "median energy per elapsed cycle; band from leaving one source out at a time",
	}
	return e
}

// perCycle lists measured energy per cycle of a chip at its supply, by source and
// all of them, smallest first.
func (s *Study) perCycle(c *chipFacts) (bySource map[string][]float64, all []float64, on map[string]bool) {
	bySource, on = map[string][]float64{}, map[string]bool{}
	for _, m := range s.Measurements {
		if m.Layer || m.Joules == 0 || !slices.Contains(c.chips, m.Chip) || c.volts > 0 && math.Abs(m.Volts-c.volts) > 0.31 || c.clockHz > 0 && m.Clock != c.clockHz {
			continue
		}
		v := m.Joules / (m.Seconds * m.Clock)
		bySource[m.Source] = append(bySource[m.Source], v)
		all = append(all, v)
		on[m.Chip+": "+m.Source] = true
	}
	sort.Float64s(all)
	return bySource, all, on
}

// energyHalf is the half-width of the band of energy per cycle.
func energyHalf(bySource map[string][]float64, all []float64) float64 {
	var half []float64
	for _, src := range slices.Sorted(maps.Keys(bySource)) {
		var rest []float64
		for _, other := range slices.Sorted(maps.Keys(bySource)) {
			if other != src {
				rest = append(rest, bySource[other]...)
			}
		}
		if len(rest) == 0 {
			rest = all
		}
		mid := stats.Median(rest)
		for _, v := range bySource[src] {
			half = append(half, math.Abs(math.Log(v/mid)))
		}
	}
	h := fit.Quantile(half)
	if len(bySource) < 2 {
		h = math.Max(2*h, math.Log(1.3)) // one source says nothing about others
	}
	return h
}

// EnergyError says how well energy per cycle holds for a chip.
type EnergyError struct {
	Target        string
	Rows, Sources int
	Median, P90   float64 // absolute errors of sources left out
	Covered       float64 // share of left-out rows inside bands made without them
}

// EnergyErrors leaves one source out at a time on every chip that has two.
func (s *Study) EnergyErrors() []EnergyError {
	var out []EnergyError
	for _, c := range chips() {
		bySource, _, _ := s.perCycle(&c)
		if len(bySource) < 2 {
			continue
		}
		e := EnergyError{Target: c.ID, Sources: len(bySource)}
		var errs []float64
		for _, src := range slices.Sorted(maps.Keys(bySource)) {
			rest, restAll := map[string][]float64{}, []float64{}
			for _, other := range slices.Sorted(maps.Keys(bySource)) {
				if other != src {
					rest[other] = bySource[other]
					restAll = append(restAll, bySource[other]...)
				}
			}
			mid, half := stats.Median(restAll), energyHalf(rest, restAll)
			for _, v := range bySource[src] {
				e.Rows++
				errs = append(errs, math.Abs(mid/v-1))
				if math.Abs(math.Log(v/mid)) <= half {
					e.Covered++
				}
			}
		}
		sort.Float64s(errs)
		e.Median, e.P90 = stats.Quantile(errs, 0.5), stats.Quantile(errs, 0.9)
		e.Covered /= float64(e.Rows)
		out = append(out, e)
	}
	return out
}
