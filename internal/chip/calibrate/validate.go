package calibrate

import (
	"math"
	"sort"
	"strings"

	"github.com/opmeter/opmeter/internal/chip/cortexm"
	"github.com/opmeter/opmeter/internal/stats"
)

// Residual is a left-out measurement with what was predicted for it.
type Residual struct {
	M *Measurement
	// Predicted cycles without the measurement's source, and How the coefficients
	// came about: see [Fit.Coefficients].
	Predicted float64
	How       string
	// Distance of the network from those of the other sources.
	Distance float64
	// Overhead is the share of predicted cycles that is not in kernels.
	Overhead float64
}

// Log is the logarithm of measured over predicted.
func (r *Residual) Log() float64 { return math.Log(r.M.Cycles / r.Predicted) }

// Error is the absolute error of the prediction relative to the measurement.
func (r *Residual) Error() float64 { return math.Abs(r.Predicted/r.M.Cycles - 1) }

// LeaveNetworksOut predicts every whole-model measurement from other sources that
// measured other networks: harder than [LeaveSourcesOut], where a network may be
// known from another source, and what a user with a new network meets.
func LeaveNetworksOut(ms []*Measurement, s Settings) []*Residual {
	type key struct{ source, network string }
	held := map[key][]*Measurement{}
	var order []key
	for _, m := range ms {
		if m.Layer {
			continue
		}
		k := key{m.Source, Network(m.Model)}
		if held[k] == nil {
			order = append(order, k)
		}
		held[k] = append(held[k], m)
	}
	var out []*Residual
	for _, k := range order {
		var rest []*Measurement
		for _, m := range ms {
			if m.Source != k.source && Network(m.Model) != k.network {
				rest = append(rest, m)
			}
		}
		out = append(out, predict(Train(rest, s), held[k])...)
	}
	return out
}

// LeaveGroupsOut predicts whole-model measurements as if their core had never been
// measured with that version of the runtime, and as if no core had: what carrying
// coefficients over to other cores and versions costs.
func LeaveGroupsOut(ms []*Measurement, s Settings) []*Residual {
	var out []*Residual
	for _, same := range []func(a, b Group) bool{
		func(a, b Group) bool { return a == b },
		func(a, b Group) bool { return a.Family == b.Family && a.Era == b.Era && a.Era != "" },
		func(a, b Group) bool { return a.Family == b.Family && a.Core == b.Core },
	} {
		seen := map[Group]bool{}
		for _, m := range ms {
			g := m.Group()
			if m.Layer || seen[g] {
				continue
			}
			var rest, held []*Measurement
			for _, x := range ms {
				switch {
				case !same(x.Group(), g):
					rest = append(rest, x)
				case !x.Layer:
					held = append(held, x)
					seen[x.Group()] = true
				}
			}
			if len(rest) == 0 {
				continue
			}
			for _, r := range predict(Train(rest, s), held) {
				if r.How != "" && r.How != "measured" {
					out = append(out, r)
				}
			}
		}
	}
	return out
}

// Network is the architecture that a model's name stands for.
func Network(model string) string {
	s := strings.ToLower(model)
	for _, n := range []string{"fdmobilenet", "mobilenet v1", "mobilenet v2", "squeezenet", "yamnet", "kws", "vww", "person_detect", "ad01", "str_ww", "hello_world"} {
		if strings.Contains(s, n) {
			return n
		}
	}
	if strings.Contains(s, "resnet8") || strings.Contains(s, "resnet v1") {
		return "resnet"
	}
	return model
}

func predict(f *Fit, ms []*Measurement) []*Residual {
	var out []*Residual
	for _, m := range ms {
		v, how := f.Coefficients(m.Group())
		r := &Residual{M: m, How: how}
		if how != "" {
			r.Predicted = v.Dot(m.Work)
			r.Overhead = cortexm.Overhead(v, m.Work)
			r.Distance = f.Distance(m.Group(), m.Work)
		}
		out = append(out, r)
	}
	return out
}

// LeaveSourcesOut predicts every whole-model measurement from the other sources.
func LeaveSourcesOut(ms []*Measurement, s Settings) []*Residual {
	var out []*Residual
	for _, src := range Sources(ms) {
		rest, held := without(ms, src, false)
		if len(held) > 0 {
			out = append(out, predict(Train(rest, s), held)...)
		}
	}
	return out
}

// Summary of residuals.
type Summary struct {
	Rows, Sources      int
	Median, P90        float64 // of the absolute relative error
	Within25, Within10 float64
	Bias               float64 // median of measured over predicted, less one
}

// Summarise residuals that have a prediction.
func Summarise(rs []*Residual) Summary {
	var errs, logs []float64
	src := map[string]bool{}
	s := Summary{}
	for _, r := range rs {
		if r.How == "" {
			continue
		}
		src[r.M.Source] = true
		errs = append(errs, r.Error())
		logs = append(logs, r.Log())
		if r.Error() <= 0.25 {
			s.Within25++
		}
		if r.Error() <= 0.1 {
			s.Within10++
		}
	}
	s.Rows, s.Sources = len(errs), len(src)
	if s.Rows == 0 {
		return s
	}
	sort.Float64s(errs)
	s.Median, s.P90 = stats.Quantile(errs, 0.5), stats.Quantile(errs, 0.9)
	s.Within25 /= float64(s.Rows)
	s.Within10 /= float64(s.Rows)
	s.Bias = math.Exp(stats.Median(logs)) - 1
	return s
}

// Held is a left-out measurement with the band stated for it.
type Held struct {
	*Residual
	Half float64
}

// Inside reports whether the band holds the measurement.
func (h *Held) Inside() bool { return math.Abs(h.Log()) <= h.Half }

// half is the half-width of a residual's band.
func (b Band) half(r *Residual) float64 {
	return cortexm.Half(b.Near, b.Far, r.Distance, r.Overhead)
}

// State adds the bands that are stated for residuals.
func (b *Bands) State(rs []*Residual) []*Held {
	var out []*Held
	for _, r := range rs {
		h := &Held{Residual: r}
		if r.How != "" {
			h.Half = b.Of(r.M.Family, r.How).half(r)
		}
		out = append(out, h)
	}
	return out
}

// Nested leaves one source out at a time and states bands from the other sources
// alone, so that neither coefficients nor bands know the measurement.
func Nested(ms []*Measurement, s Settings) []*Held {
	var out []*Held
	for _, src := range Sources(ms) {
		rest, held := without(ms, src, false)
		if len(held) == 0 {
			continue
		}
		out = append(out, MakeBands(rest, s).State(predict(Train(rest, s), held))...)
	}
	return out
}

// NestedLayers is [Nested] for single layers, whose bands are wider than those of
// whole models because errors do not average out.
func NestedLayers(ms []*Measurement, s Settings) []*Held {
	var out []*Held
	for _, src := range Sources(ms) {
		rest, held := without(ms, src, true)
		if len(held) == 0 {
			continue
		}
		b := MakeBands(rest, s)
		for _, r := range predict(Train(rest, s), held) {
			h := &Held{Residual: r}
			if r.How != "" {
				h.Half = b.Layer(b.Of(r.M.Family, r.How))
			}
			out = append(out, h)
		}
	}
	return out
}
