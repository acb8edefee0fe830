package study

import (
	"math"
	"strings"

	"github.com/opmeter/opmeter/internal/chip/cortexm"
	"github.com/opmeter/opmeter/internal/chip/fit"
)

// LeaveNetworksOut predicts every whole-model measurement from other sources that
// measured other networks: harder than [LeaveSourcesOut], where a network may be
// known from another source, and what a user with a new network meets.
func LeaveNetworksOut(ms []*fit.Measurement, s fit.Settings) []*fit.Residual {
	type key struct{ source, network string }
	held := map[key][]*fit.Measurement{}
	var order []key
	for _, m := range ms {
		if m.Layer {
			continue
		}
		k := key{m.Source, networkOf(m.Model)}
		if held[k] == nil {
			order = append(order, k)
		}
		held[k] = append(held[k], m)
	}
	var out []*fit.Residual
	for _, k := range order {
		var rest []*fit.Measurement
		for _, m := range ms {
			if m.Source != k.source && networkOf(m.Model) != k.network {
				rest = append(rest, m)
			}
		}
		out = append(out, predict(train(rest, s), held[k])...)
	}
	return out
}

// leaveGroupsOut predicts whole-model measurements as if their core had never been
// measured with that version of the runtime, and as if no core had: what carrying
// coefficients over to other cores and versions costs.
func leaveGroupsOut(ms []*fit.Measurement, s fit.Settings) []*fit.Residual {
	var out []*fit.Residual
	for _, same := range []func(a, b fit.Group) bool{
		func(a, b fit.Group) bool { return a == b },
		func(a, b fit.Group) bool { return a.Family == b.Family && a.Era == b.Era && a.Era != "" },
		func(a, b fit.Group) bool { return a.Family == b.Family && a.Core == b.Core },
	} {
		seen := map[fit.Group]bool{}
		for _, m := range ms {
			g := m.Group()
			if m.Layer || seen[g] {
				continue
			}
			var rest, held []*fit.Measurement
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
			for _, r := range predict(train(rest, s), held) {
				if r.How != "" && r.How != "measured" {
					out = append(out, r)
				}
			}
		}
	}
	return out
}

// networkOf is the architecture that a model's name stands for.
func networkOf(model string) string {
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

func predict(f *Fit, ms []*fit.Measurement) []*fit.Residual {
	var out []*fit.Residual
	for _, m := range ms {
		v, how := f.Coefficients(m.Group())
		r := &fit.Residual{M: m, How: how}
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
func LeaveSourcesOut(ms []*fit.Measurement, s fit.Settings) []*fit.Residual {
	var out []*fit.Residual
	for _, src := range fit.Sources(ms) {
		rest, held := without(ms, src, false)
		if len(held) > 0 {
			out = append(out, predict(train(rest, s), held)...)
		}
	}
	return out
}

// Held is a left-out measurement with the band stated for it.
type Held struct {
	*fit.Residual
	Half float64
}

// Inside reports whether the band holds the measurement.
func (h *Held) Inside() bool { return math.Abs(h.Log()) <= h.Half }

// half is the half-width of a residual's band.
func (b Band) half(r *fit.Residual) float64 {
	return cortexm.Half(b.Near, b.Far, r.Distance, r.Overhead)
}

// State adds the bands that are stated for residuals.
func (b *Bands) State(rs []*fit.Residual) []*Held {
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
func Nested(ms []*fit.Measurement, s fit.Settings) []*Held {
	var out []*Held
	for _, src := range fit.Sources(ms) {
		rest, held := without(ms, src, false)
		if len(held) == 0 {
			continue
		}
		out = append(out, MakeBands(rest, s).State(predict(train(rest, s), held))...)
	}
	return out
}

// NestedLayers is [Nested] for single layers, whose bands are wider than those of
// whole models because errors do not average out.
func NestedLayers(ms []*fit.Measurement, s fit.Settings) []*Held {
	var out []*Held
	for _, src := range fit.Sources(ms) {
		rest, held := without(ms, src, true)
		if len(held) == 0 {
			continue
		}
		b := MakeBands(rest, s)
		for _, r := range predict(train(rest, s), held) {
			h := &Held{Residual: r}
			if r.How != "" {
				h.Half = b.Layer(b.Of(r.M.Family, r.How))
			}
			out = append(out, h)
		}
	}
	return out
}
