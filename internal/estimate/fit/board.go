package fit

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"sort"
	"strconv"

	"github.com/opmeter/opmeter/internal/base/mapped"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/model/modelfile"
)

// LoadBoard reads measurements of one board for [Board]. The table needs the columns model_file
// (relative to the table) and latency_ms or cycles. clock_mhz defaults to the target's clock,
// source to the table's name. An invalid row is an error that names the row.
func LoadBoard(path string, t *chip.Target, rt *chip.Runtime) ([]*Measurement, error) {
	if err := fittable(t, rt); err != nil {
		return nil, err
	}
	table, err := OpenTable(path)
	if err != nil {
		return nil, err
	}
	has := func(name string) bool { return slices.Contains(table.Head, name) }
	if !has("model_file") || !has("latency_ms") && !has("cycles") {
		return nil, fmt.Errorf("%s: row 1: has the columns %q; expected model_file and latency_ms or cycles, separated by commas", path, table.Head)
	}
	var ms []*Measurement
	for i, r := range table.Rows {
		m, err := boardRow(r, filepath.Dir(path), t, rt)
		if err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", path, i+2, err)
		}
		ms = append(ms, m)
	}
	if len(ms) == 0 {
		return nil, fmt.Errorf("%s: has no measurements", path)
	}
	return ms, nil
}

// fittable returns an error for runtimes that cannot be fitted to measurements of whole models.
func fittable(t *chip.Target, rt *chip.Runtime) error {
	if rt.Cortexm == nil {
		return fmt.Errorf("runtime %s of target %s has the cycle model %s, which is not fitted to whole models", rt.Name, t.ID, rt.Model())
	}
	return nil
}

func boardRow(r map[string]string, dir string, t *chip.Target, rt *chip.Runtime) (*Measurement, error) {
	m := &Measurement{
		Source: r["source"], Model: r["model_name"], Chip: t.Name, Clock: float64(t.Clock.Default),
		Family: rt.Cortexm.Family, Core: t.Core.Name, Version: r["runtime_version"],
	}
	if m.Source == "" {
		m.Source = "own measurements"
	}
	if s := r["clock_mhz"]; s != "" {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || !(v > 0) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("clock_mhz is %q; expected a positive number", s)
		}
		m.Clock = v * 1e6
		if hz := chip.Hertz(m.Clock); hz < t.Clock.Min || hz > t.Clock.Max {
			return nil, fmt.Errorf("clock_mhz is %q; %s runs at %g to %g MHz", s, t.ID, float64(t.Clock.Min)/1e6, float64(t.Clock.Max)/1e6)
		}
	}
	switch {
	case r["cycles"] != "":
		v, err := strconv.ParseFloat(r["cycles"], 64)
		if err != nil || !(v > 0) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("cycles is %q; expected a positive number", r["cycles"])
		}
		m.Cycles = v
	default:
		v, err := strconv.ParseFloat(r["latency_ms"], 64)
		if err != nil || !(v > 0) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("latency_ms is %q; expected a positive number of milliseconds", r["latency_ms"])
		}
		m.Cycles = v / 1e3 * m.Clock
	}
	m.Seconds = m.Cycles / m.Clock
	if ms := r["latency_ms"]; ms != "" && r["cycles"] != "" {
		v, err := strconv.ParseFloat(ms, 64)
		if err != nil || !(math.Abs(v/1e3-m.Seconds) <= 0.05*m.Seconds) {
			return nil, fmt.Errorf("latency_ms is %q, but cycles at %g MHz make %.4g ms; give one of them", ms, m.Clock/1e6, m.Seconds*1e3)
		}
	}
	file := r["model_file"]
	if file == "" {
		return nil, fmt.Errorf("model_file is missing")
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	g, err := modelfile.Open(file)
	if err != nil {
		return nil, err
	}
	if g.Close != nil {
		defer g.Close() //nolint:errcheck // only read
	}
	if m.Model == "" {
		m.Model = filepath.Base(file)
	}
	var layers []cortexm.Layer
	if err := mapped.Guard(func() error {
		layers = cortexm.Layers(g, g.Main(), cortexm.Kernels{Family: m.Family, Tier: rt.Cortexm.Tier})
		return nil
	}); err != nil {
		return nil, err
	}
	for i := range layers {
		if layers[i].Missing != nil {
			return nil, fmt.Errorf("%s: %s; such a model cannot be calibrated on", file, layers[i].Missing.Text)
		}
	}
	for i := range layers {
		if layers[i].Type != cortexm.Int8 && layers[i].MACs > 0 {
			what := map[cortexm.Type]string{cortexm.Float: "floating point", cortexm.Int16: "16-bit integers"}[layers[i].Type]
			return nil, fmt.Errorf("%s: computes in %s; only kernels of 8-bit integers are fitted", file, what)
		}
	}
	n := Total(layers)
	m.Work = n.All
	if rt.Cortexm.Pruned {
		m.Work = n.Live
	}
	return m, plausible(m, t, rt)
}

// unlikely is the largest factor between a measurement and the target's own estimate. Kernels of
// one core differ by a factor of ten or so; wrong units differ by a thousand.
const unlikely = 100

// plausible rejects measurements in another unit, or of another model.
func plausible(m *Measurement, t *chip.Target, rt *chip.Runtime) error {
	v, err := cortexm.Coefficients(rt)
	if err != nil {
		return nil //nolint:nilerr // told when the runtime is fitted
	}
	if e := v.Dot(m.Work); e > 0 && (m.Cycles > unlikely*e || m.Cycles < e/unlikely) {
		return fmt.Errorf("%.4g ms (%.4g cycles) is %.3g times what %s is estimated to take; expected milliseconds, or cycles, of one inference", m.Seconds*1e3, m.Cycles, m.Cycles/e, t.ID)
	}
	return nil
}

// Board fits a runtime of a target to measurements of one board. It returns a target with the
// fitted coefficients and their errors; t is not changed. The fit starts from the target's
// coefficients, so that a handful of measurements suffices: undetermined coefficients stay
// unchanged.
func Board(t *chip.Target, runtime string, ms []*Measurement, s Settings) (*chip.Target, error) {
	out := *t
	out.Runtimes = slices.Clone(t.Runtimes)
	rt := out.Runtime(runtime)
	if rt == nil {
		return nil, fmt.Errorf("target %s has no runtime %q", t.ID, runtime)
	}
	if err := fittable(t, rt); err != nil {
		return nil, err
	}
	if len(ms) == 0 {
		return nil, fmt.Errorf("no measurements")
	}
	start, err := cortexm.Coefficients(rt)
	if err != nil {
		return nil, fmt.Errorf("target %s, runtime %s: %w", t.ID, rt.Name, err)
	}
	shrink := weigh(ms, start, s)
	fit := Follow(ms, start, shrink)
	residuals, how := boardResiduals(ms, start, shrink)
	sum := Summarise(residuals)
	x := *rt.Cortexm
	half := boardHalf(residuals, inSample(ms, fit), x.Integer.Near)
	rt.Cortexm = &x
	x.Integer.Cycles = chip.Terms(fit)
	x.Integer.Far = math.Max(math.Max(half, math.Min(x.Integer.Far, 2*half+0.1)), moved(ms, start))
	x.Integer.Near, x.Integer.Layer = half, math.Hypot(half, FewLayers)
	for k := range x.Integer.Bands {
		if wellRepresented(ms, fit, k) {
			x.Integer.Bands[k] = 0 // its error is part of the total error
		}
	}
	x.Seen = boardSeen(&x, ms)
	rt.Calibration = boardCalibration(ms, residuals, sum, half, how)
	return &out, nil
}

// moved returns by how much, in logarithms, the rows contradict the coefficients that they start
// from: kinds of work without rows may have moved as far, or not at all.
func moved(ms []*Measurement, start cortexm.Vector) float64 {
	var logs []float64
	for _, m := range ms {
		logs = append(logs, math.Abs(math.Log(m.Cycles/start.Dot(m.Work))))
	}
	return Quantile(logs)
}

// inSample returns the largest distance, in logarithms, between a row and its fitted value.
func inSample(ms []*Measurement, v cortexm.Vector) float64 {
	worst := 0.0
	for _, m := range ms {
		worst = math.Max(worst, math.Abs(math.Log(m.Cycles/v.Dot(m.Work))))
	}
	return worst
}

// wellRepresented reports whether a kind of work is a substantial part of a measured network.
func wellRepresented(ms []*Measurement, v cortexm.Vector, term int) bool {
	return slices.ContainsFunc(ms, func(m *Measurement) bool { return v[term]*m.Work[term] > 0.05*v.Dot(m.Work) })
}

// weigh returns the weight of the target's coefficients against the rows: the variance of rows over
// that of coefficients, as left-out rows tell it. If one set of coefficients explains all rows, the
// weight is least, so that the fit returns them. Kernels of another structure scatter: following
// each row would mislead about other networks.
func weigh(ms []*Measurement, start cortexm.Vector, s Settings) float64 {
	best, least := s.BoardShrink, math.Inf(1)
	for shrink := s.BoardShrink; shrink < 1; shrink *= 10 {
		rs, _ := boardResiduals(ms, start, shrink)
		if len(rs) == 0 {
			return s.BoardShrink
		}
		sum := 0.0
		for _, r := range rs {
			sum += math.Abs(r.Log())
		}
		if sum < least {
			best, least = shrink, sum
		}
	}
	return best
}

// boardResiduals predicts each source from the others, or each network from the others if there
// is one source; a single network has no residuals.
func boardResiduals(ms []*Measurement, start cortexm.Vector, shrink float64) (rs []*Residual, how string) {
	key, how := func(m *Measurement) string { return m.Source }, "one source left out at a time"
	if len(Sources(ms)) < 2 {
		key, how = func(m *Measurement) string { return m.Model }, "one model left out at a time"
	}
	held := map[string][]*Measurement{}
	for _, m := range ms {
		held[key(m)] = append(held[key(m)], m)
	}
	if len(held) < 2 {
		return nil, "the target, because a single model does not predict others"
	}
	for _, k := range slices.Sorted(maps.Keys(held)) {
		var rest []*Measurement
		for _, m := range ms {
			if key(m) != k {
				rest = append(rest, m)
			}
		}
		v := Follow(rest, start, shrink)
		for _, m := range held[k] {
			rs = append(rs, &Residual{M: m, Predicted: v.Dot(m.Work), How: "measured"})
		}
	}
	return rs, how
}

// boardHalf returns the half-width of the band: of held-out residuals, but at least the fit's
// error on its own rows. A few residuals say little about the tail, so that their largest is
// widened. Without any, the target's own half-width is kept, since the level is known.
func boardHalf(rs []*Residual, own, before float64) float64 {
	if len(rs) == 0 {
		return math.Max(own, math.Max(before, 0.02))
	}
	var v []float64
	for _, r := range rs {
		v = append(v, math.Abs(r.Log()))
	}
	h := Quantile(v)
	if n := float64(len(v)); n < 10 {
		h *= 1 + 2/n
	}
	return math.Max(h, math.Max(own, 0.02))
}

// boardSeen lists the mixes of the measured networks.
func boardSeen(x *chip.Structural, ms []*Measurement) (out []chip.Terms) {
	var seen []cortexm.Vector
	p := cortexm.Prior(x.Family, x.Tier)
	for _, m := range ms {
		if mix := cortexm.Mix(p, m.Work); cortexm.Nearest(mix, seen) > 0.03 {
			seen, out = append(seen, mix), append(out, chip.Terms(mix))
		}
	}
	return out
}

func boardCalibration(ms []*Measurement, rs []*Residual, sum Summary, half float64, how string) *chip.Calibration {
	cov := Coverage
	c := &chip.Calibration{
		On: Sources(ms), Rows: int64(len(ms)), Sources: int64(len(Sources(ms))),
		Method: "relative least squares, coefficients not negative and near those that the target had where the rows do not tell; errors and band from " + how,
		Band:   &[2]float64{math.Exp(-half), math.Exp(half)}, Coverage: &cov,
	}
	if len(rs) > 0 {
		c.MedianError, c.P90Error = &sum.Median, &sum.P90
	}
	byModel := map[string][]*Residual{}
	for _, r := range rs {
		byModel[r.M.Model] = append(byModel[r.M.Model], r)
	}
	for _, n := range slices.Sorted(maps.Keys(byModel)) {
		x := Summarise(byModel[n])
		c.Errors = append(c.Errors, chip.ErrorRow{Group: n, Rows: int64(x.Rows), MedianError: x.Median, P90Error: x.P90, Bias: x.Bias})
	}
	sort.SliceStable(c.Errors, func(i, j int) bool { return c.Errors[i].Group < c.Errors[j].Group })
	return c
}
