package study

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/estimate/fit"
)

// withoutNetwork splits measurements into those of other networks, layers included, and
// the whole models of the network.
func withoutNetwork(ms []*fit.Measurement, network string) (rest, held []*fit.Measurement) {
	for _, m := range ms {
		switch {
		case networkOf(m.Model) != network:
			rest = append(rest, m)
		case !m.Layer:
			held = append(held, m)
		}
	}
	return rest, held
}

// leaveGroupsOut predicts whole-model measurements as if their chip had never been
// measured with that version of the runtime, as if their core had not, and as if no core
// had: what carrying coefficients over to other chips, cores and versions costs.
func leaveGroupsOut(ms []*fit.Measurement, s fit.Settings) []*fit.Residual {
	var out []*fit.Residual
	for _, same := range []func(a, b *fit.Measurement) bool{
		func(a, b *fit.Measurement) bool { return a.Group() == b.Group() && a.Chip == b.Chip },
		func(a, b *fit.Measurement) bool { return a.Group() == b.Group() },
		func(a, b *fit.Measurement) bool { return a.Family == b.Family && a.Era == b.Era && a.Era != "" },
		func(a, b *fit.Measurement) bool { return a.Family == b.Family && a.Core == b.Core },
	} {
		seen := map[*fit.Measurement]bool{}
		for _, m := range ms {
			if m.Layer || seen[m] {
				continue
			}
			var rest, held []*fit.Measurement
			for _, x := range ms {
				switch {
				case !same(x, m):
					rest = append(rest, x)
				case !x.Layer:
					held = append(held, x)
					seen[x] = true
				}
			}
			if len(rest) == 0 {
				continue
			}
			for _, r := range foretell(rest, held, s) {
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
	s, _, _ = strings.Cut(s, "/") // of a layer
	if strings.Contains(s, "resnet8") || strings.Contains(s, "resnet v1") {
		return "resnet"
	}
	return s
}

func predict(f *Fit, ms []*fit.Measurement) []*fit.Residual {
	var out []*fit.Residual
	for _, m := range ms {
		v, how := f.Of(m.Group(), m.Chip)
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

// withoutChip splits measurements into those of other chips, and the whole models of the
// chip. Layers of the chip are in neither.
func withoutChip(ms []*fit.Measurement, chip string) (rest, held []*fit.Measurement) {
	for _, m := range ms {
		switch {
		case m.Chip != chip:
			rest = append(rest, m)
		case !m.Layer:
			held = append(held, m)
		}
	}
	return rest, held
}

// foretell predicts measurements from others. Families of kernels are fitted apart, so
// that those of each suffice where they have measurements of the group.
func foretell(rest, held []*fit.Measurement, s fit.Settings) (out []*fit.Residual) {
	var all *Fit
	for _, family := range families(held) {
		f := train(of(rest, family), s)
		for _, r := range predict(f, of(held, family)) {
			if r.How == "" || r.How == "tier" {
				if all == nil {
					all = train(rest, s)
				}
				r = predict(all, []*fit.Measurement{r.M})[0]
			}
			out = append(out, r)
		}
	}
	return out
}

func families(ms []*fit.Measurement) []string {
	seen := map[string]bool{}
	for _, m := range ms {
		seen[m.Family] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// of keeps the measurements of some families.
func of(ms []*fit.Measurement, family ...string) (out []*fit.Measurement) {
	for _, m := range ms {
		if slices.Contains(family, m.Family) {
			out = append(out, m)
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
	return cortexm.Half(b.Near, b.Far, b.Ports, r.Distance, r.Overhead)
}

// State adds the bands that are stated for residuals.
func (b *Bands) State(rs []*fit.Residual) []*Held {
	var out []*Held
	for _, r := range rs {
		h := &Held{Residual: r}
		if r.How != "" {
			h.Half = b.Of(r.M.Group(), r.How).half(r)
		}
		out = append(out, h)
	}
	return out
}

// LeaveOut names what is left out at a time, with the way to predict it from the rest.
type LeaveOut struct {
	// Name in the singular: network, board or source.
	Name string
	of   func(*fit.Measurement) string
	// split separates the measurements that are left from those that are predicted.
	split func(ms []*fit.Measurement, name string) (rest, held []*fit.Measurement)
}

// LeaveOuts lists what users meet: a new network on a known board, an unfamiliar board, and
// another publication.
var LeaveOuts = []LeaveOut{
	{"network", func(m *fit.Measurement) string { return networkOf(m.Model) }, withoutNetwork},
	{"board", func(m *fit.Measurement) string { return m.Chip }, withoutChip},
	{"source", func(m *fit.Measurement) string { return m.Source }, func(ms []*fit.Measurement, source string) (rest, held []*fit.Measurement) {
		return without(ms, source, false)
	}},
}

// names lists what is left out of whole-model measurements, in order.
func (l *LeaveOut) names(ms []*fit.Measurement) []string {
	seen := map[string]bool{}
	for _, m := range ms {
		if !m.Layer {
			seen[l.of(m)] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Residuals predicts every whole-model measurement from those that are left.
func (l *LeaveOut) Residuals(ms []*fit.Measurement, s fit.Settings) []*fit.Residual {
	var out []*fit.Residual
	for _, name := range l.names(ms) {
		rest, held := l.split(ms, name)
		out = append(out, foretell(rest, held, s)...)
	}
	return out
}

// Nested is [LeaveOut.Residuals] with bands that are made from what is left, too, so that
// neither coefficients nor bands know the measurement.
func (l *LeaveOut) Nested(ms []*fit.Measurement, s fit.Settings) []*Held {
	var out []*Held
	for _, name := range l.names(ms) {
		rest, held := l.split(ms, name)
		out = append(out, MakeBands(of(rest, families(held)...), s).State(foretell(rest, held, s))...)
	}
	return out
}

// LeaveLayersOut predicts every measured layer from the other sources.
func LeaveLayersOut(ms []*fit.Measurement, s fit.Settings) []*fit.Residual {
	var out []*fit.Residual
	for _, src := range fit.Sources(ms) {
		rest, held := without(ms, src, true)
		out = append(out, foretell(rest, held, s)...)
	}
	return out
}

// StateLayers adds the bands of single layers, which are wider than those of whole
// models because errors do not average out.
func (b *Bands) StateLayers(rs []*fit.Residual) []*Held {
	var out []*Held
	for _, r := range rs {
		h := &Held{Residual: r}
		if r.How != "" {
			h.Half = b.Layer(b.Of(r.M.Group(), r.How))
		}
		out = append(out, h)
	}
	return out
}

// TypeOf is the class of element types of a measurement's kernels.
func TypeOf(m *fit.Measurement) cortexm.Type { return typeOfFamily(m.Family) }

func typeOfFamily(family string) cortexm.Type {
	switch family {
	case cortexm.FloatTFLM, cortexm.FloatXCubeAI:
		return cortexm.Float
	case cortexm.Int16CMSISNN, cortexm.Int16Reference:
		return cortexm.Int16
	}
	return cortexm.Int8
}
