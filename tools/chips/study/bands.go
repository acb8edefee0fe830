package study

import (
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/opmeter/opmeter/internal/chip/cortexm"
	"github.com/opmeter/opmeter/internal/chip/fit"
	"github.com/opmeter/opmeter/internal/stats"
)

// Band says how far measurements lie from estimates: the half-width of the
// interval in logarithms for networks like those calibrated on, and for others.
type Band struct {
	Near, Far float64
	// Rows and Sources that the band was found with.
	Rows, Sources int
}

// class of residuals that share a band.
type class struct{ family, how string }

// Bands of a family by how its coefficients came about.
type Bands struct {
	by map[class]Band
	// kinds holds what all families of a kind share; see kind.
	kinds map[class]Band
	// scatter is how far single layers lie from the others of their network.
	scatter float64
}

// kind joins families whose estimates err alike: optimised kernels follow their
// instructions, plain C follows compiler and memory.
func kind(family string) string {
	switch family {
	case "tflm-reference":
		return "plain"
	case "x-cube-ai", cortexm.FloatTFLM, cortexm.FloatXCubeAI:
		return family
	}
	return "optimised"
}

// scored is a residual with the distance of its network from the training set.
type scored struct {
	class    class
	source   string
	log      float64
	distance float64
}

// MakeBands finds bands from measurements by leaving out sources, sources together
// with their networks, and all of a core or a version.
func MakeBands(ms []*fit.Measurement, s fit.Settings) *Bands {
	var all []scored
	for _, rs := range [][]*fit.Residual{LeaveSourcesOut(ms, s), LeaveNetworksOut(ms, s), leaveGroupsOut(ms, s)} {
		for _, r := range rs {
			if r.How != "" && r.Overhead < 0.5 {
				all = append(all, scored{class{r.M.Family, r.How}, r.M.Source, math.Abs(r.Log()), r.Distance})
			}
		}
	}
	b := &Bands{by: map[class]Band{}, kinds: map[class]Band{}, scatter: scatter(ms, s)}
	for _, r := range all {
		k := class{kind(r.class.family), r.class.how}
		for _, c := range []class{k, {k.family, ""}} {
			if _, ok := b.kinds[c]; ok {
				continue
			}
			own := band(filter(all, func(o class) bool { return kind(o.family) == c.family && (c.how == "" || o.how == c.how) }))
			if c.how == "" || own.Sources >= 3 && own.Rows >= 8 {
				b.kinds[c] = own
			}
		}
		if _, ok := b.by[r.class]; !ok {
			if own := band(filter(all, func(c class) bool { return c == r.class })); own.Sources >= 4 && own.Rows >= 20 {
				b.by[r.class] = own
			}
		}
	}
	return b
}

// Layer is the half-width of the band of one layer: the error of the level, which all
// layers share, and that of the layer, which averages out in a model.
func (b *Bands) Layer(of Band) float64 { return math.Hypot(of.Near, b.scatter) }

// scatter leaves out sources of measured layers and looks how far each layer lies
// from the middle of its source's.
func scatter(ms []*fit.Measurement, s fit.Settings) float64 {
	var miss []float64
	for _, src := range fit.Sources(ms) {
		rest, held := without(ms, src, true)
		if len(held) == 0 {
			continue
		}
		by := map[fit.Group][]float64{}
		for _, r := range predict(train(rest, s), held) {
			if r.How != "" {
				by[r.M.Group()] = append(by[r.M.Group()], r.Log())
			}
		}
		for _, logs := range by {
			if len(logs) < 3 {
				continue
			}
			sort.Float64s(logs)
			mid := stats.Median(logs)
			for _, l := range logs {
				miss = append(miss, math.Abs(l-mid))
			}
		}
	}
	if len(miss) < 20 {
		return fit.FewLayers
	}
	return fit.Quantile(miss)
}

// without splits measurements into those of other sources and the whole models, or
// the layers, of the source.
func without(ms []*fit.Measurement, source string, layers bool) (rest, held []*fit.Measurement) {
	for _, m := range ms {
		switch {
		case m.Source != source:
			rest = append(rest, m)
		case m.Layer == layers:
			held = append(held, m)
		}
	}
	return rest, held
}

// Of returns the band of a group whose coefficients came about as how says.
// Families with too few sources share the band of their kind, and what was carried
// over from elsewhere is never surer than what was measured.
func (b *Bands) Of(family, how string) Band {
	if own, ok := b.by[class{family, how}]; ok {
		return own
	}
	if how != "measured" {
		if m, ok := b.by[class{family, "measured"}]; ok && kind(family) == family {
			// Another version or core of a family that is well known.
			return Band{Near: math.Max(2*m.Near, m.Far), Far: 2 * m.Far, Rows: m.Rows, Sources: m.Sources}
		}
	}
	wide, ok := b.kinds[class{kind(family), how}]
	if !ok {
		wide = b.kinds[class{kind(family), ""}]
	}
	if m, ok := b.kinds[class{kind(family), "measured"}]; ok && how != "measured" {
		wide.Near, wide.Far = math.Max(wide.Near, 1.2*m.Near), math.Max(wide.Far, 1.2*m.Far)
	}
	if how == "tier" && kind(family) == "optimised" {
		// No measurement tells how this core's memory compares.
		wide.Near, wide.Far = 1.5*wide.Near, 1.5*wide.Far
	}
	if wide.Rows == 0 {
		wide.Near, wide.Far = nothing, nothing
	}
	return wide
}

// nothing is the half-width of a band when nothing is known: a factor of four.
const nothing = 1.4

func filter(all []scored, keep func(class) bool) []scored {
	var out []scored
	for _, r := range all {
		if keep(r.class) {
			out = append(out, r)
		}
	}
	return out
}

func band(rs []scored) Band {
	var near, far []scored
	src := map[string]bool{}
	for _, r := range rs {
		src[r.source] = true
		if r.distance < cortexm.FarAway/4 {
			near = append(near, r)
		} else {
			far = append(far, r)
		}
	}
	b := Band{Near: spread(near), Far: spread(far), Rows: len(rs), Sources: len(src)}
	switch {
	case len(near) < 10:
		b.Near = spread(rs)
		b.Far = b.Near
	case len(far) < 10:
		b.Far = math.Max(b.Near, spread(rs))
	}
	b.Far = math.Max(b.Far, b.Near)
	return b
}

// few is the number of sources below which rows are no independent evidence.
const few = 8

// spread is the half-width that holds the share [fit.Coverage] of residuals. With few
// sources the rows of one do not stand for others, so that the worst of each source
// counts.
func spread(rs []scored) float64 {
	worst := map[string]float64{}
	var all []float64
	for _, r := range rs {
		worst[r.source] = math.Max(worst[r.source], r.log)
		all = append(all, r.log)
	}
	if len(worst) >= few {
		return fit.Quantile(all)
	}
	var each []float64
	for _, s := range slices.Sorted(maps.Keys(worst)) {
		each = append(each, worst[s])
	}
	return fit.Quantile(each)
}

// Seen returns the mixes of the networks that a group was fitted to.
func (f *Fit) Seen(g fit.Group) []cortexm.Vector { return f.seen[seenKey(g)] }

func seenKey(g fit.Group) tierEra { return tierEra{g.Family, tier(g.Family, g.Core), ""} }
