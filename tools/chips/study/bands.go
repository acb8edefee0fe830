package study

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/estimate/fit"
)

// Band says how far measurements lie from estimates: the half-width of the
// interval in logarithms for networks like those calibrated on, and for others.
type Band struct {
	Near, Far float64
	// Ports is what the overhead of calls and operators adds by its share.
	Ports float64
	// Rows and Sources that the band was found with.
	Rows, Sources int
}

// class of residuals that share a band.
type class struct{ family, how string }

// origin is a group with how its coefficients came about.
type origin struct {
	group fit.Group
	how   string
}

// Bands of families by how their coefficients came about.
type Bands struct {
	// groups have measurements enoughRows for a band of their own, by how their coefficients came
	// about.
	groups map[origin]Band
	// kinds holds what all families of a kind share; see kind.
	kinds map[class]Band
	// scatter is how far single layers lie from the others of their network.
	scatter float64
}

// kind joins families whose estimates err alike: optimised kernels follow their
// instructions, plain C follows compiler and memory.
func kind(family string) string {
	switch family {
	case reference, cortexm.Int16Reference:
		return "plain"
	case "x-cube-ai", cortexm.FloatTFLM, cortexm.FloatXCubeAI:
		return family
	}
	return "optimised"
}

// kindOf is the kind of a group's kernels by how their coefficients came about. Where these are
// carried over, kernels built in another way and floating point in software are kinds of their own:
// neither tells how far off the usual ones are.
func kindOf(g fit.Group, how string) string {
	k := kind(g.Family)
	if how == "measured" {
		return k
	}
	if g.Family == cortexm.FloatTFLM && softFloat[g.Core] {
		k += ", in software"
	}
	if built(g.Era) {
		k += ", built otherwise"
	}
	return k
}

// scored is a residual with the distance of its network from the training set.
type scored struct {
	class              class
	group              fit.Group
	chip               string
	source, network    string
	log                float64
	distance, overhead float64
}

// MakeBands finds bands from measurements by leaving out networks, sources, and all of
// a core or a version.
func MakeBands(ms []*fit.Measurement, s fit.Settings) *Bands {
	odd := oddBuilds(ms) // they tell of another way of building
	score := func(rs []*fit.Residual) (out []scored) {
		for _, r := range rs {
			if r.How != "" && !odd[r.M.Group()] {
				out = append(out, scored{
					class{kindOf(r.M.Group(), r.How), r.How},
					r.M.Group(), r.M.Chip, r.M.Source, networkOf(r.M.Model),
					math.Abs(r.Log()), r.Distance, r.Overhead,
				})
			}
		}
		return out
	}
	b := &Bands{groups: map[origin]Band{}, kinds: map[class]Band{}, scatter: scatter(ms, s)}
	apart, boards := score(LeaveOuts[0].Residuals(ms, s)), score(LeaveOuts[1].Residuals(ms, s))
	all := slices.Concat(apart, score(LeaveOuts[2].Residuals(ms, s)), boards, score(leaveGroupsOut(ms, s)))
	// On a measured chip the network is new; elsewhere the board is.
	known := func(r *scored) bool { return r.class.how == "measured" }
	fresh := slices.Concat(filter(apart, known), filter(boards, func(r *scored) bool { return !known(r) }))
	for _, r := range fresh {
		at := origin{r.group, r.class.how}
		if _, ok := b.groups[at]; ok {
			continue
		}
		own := filter(fresh, func(o *scored) bool { return origin{o.group, o.class.how} == at })
		if len(own) >= enoughRows && len(count(own, network)) >= enoughNetworks {
			b.groups[at] = tight(own)
		}
	}
	for _, r := range all {
		for _, c := range []class{r.class, {r.class.family, ""}} {
			if _, ok := b.kinds[c]; ok {
				continue
			}
			own := filter(all, func(o *scored) bool {
				return o.class.family == c.family && (c.how == "" || o.class.how == c.how) && o.overhead < 0.5
			})
			if len(own) > 0 && (c.how == "" || len(count(own, boardOf)) >= 3 && len(own) >= 8) {
				b.kinds[c] = band(own)
			}
		}
	}
	return b
}

// A group has a band of its own from this many rows of this many networks.
const (
	enoughRows     = 10
	enoughNetworks = 4
)

func network(r *scored) string  { return r.network }
func sourceOf(r *scored) string { return r.source }

// boardOf names what rows have in common: a chip with a runtime on it.
func boardOf(r *scored) string { return fmt.Sprint(r.group, r.chip) }

func count(rs []scored, by func(*scored) string) map[string]int {
	n := map[string]int{}
	for i := range rs {
		n[by(&rs[i])]++
	}
	return n
}

// tight is the band that holds nine of ten rows of one group that were left out, and no
// more: the width of each row grows with its distance from the others, and with its overhead
// where that makes the rows' bands narrower than one width for all networks.
func tight(rs []scored) Band {
	own, shared := tightest(rs, cortexm.OverheadHalf), tightest(rs, 0)
	if own.width(rs) < shared.width(rs) {
		return own
	}
	return shared
}

// width is the mean half-width of the band over rows.
func (b Band) width(rs []scored) float64 {
	sum := 0.0
	for i := range rs {
		sum += cortexm.Half(b.Near, b.Far, b.Ports, rs[i].distance, rs[i].overhead)
	}
	return sum / float64(len(rs))
}

// tightest is the narrowest band that holds nine of ten rows, for a width of overhead.
func tightest(rs []scored, ports float64) Band {
	b := Band{Rows: len(rs), Sources: len(count(rs, sourceOf)), Ports: ports}
	var v []float64
	for i := range rs {
		r := &rs[i]
		v = append(v, max(r.log-b.Ports*r.overhead, 0)/cortexm.Half(1, farther, 0, r.distance, r.overhead))
	}
	slices.Sort(v)
	// Between this row and the next, so that rounding moves neither across.
	at := int(math.Ceil(fit.Coverage*float64(len(v)))) - 1
	b.Near = v[at]
	if at+1 < len(v) {
		b.Near = math.Sqrt(v[at] * v[at+1])
		if v[at+1] > 1.02*v[at] {
			b.Near = 1.01 * v[at]
		}
	}
	kernels := filter(rs, func(r *scored) bool { return r.overhead < 0.5 })
	for i := range kernels { // the width of overhead excuses no error of kernels
		kernels[i].log /= cortexm.Half(1, farther, 0, kernels[i].distance, kernels[i].overhead)
	}
	if rs[0].class.how == "measured" {
		b.Near = math.Max(b.Near, share(kernels, one))
	} else {
		// On an unfamiliar board, many rows of one known board say no more than one row of each.
		b.Near = math.Max(b.Near, share(kernels, boardOf))
	}
	b.Near = math.Max(b.Near, 0.02)
	b.Far = farther * b.Near
	return b
}

// farther is how much wider the band of a network is that is unlike all that were
// measured.
const farther = 2.0

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
// Groups with too few measurements share the band of their kind, and what was carried
// over from elsewhere is never surer than what was measured.
func (b *Bands) Of(g fit.Group, how string) Band {
	if own, ok := b.groups[origin{g, how}]; ok {
		if m, ok := b.groups[origin{g, "measured"}]; ok {
			own.Near, own.Far = math.Max(own.Near, m.Near), math.Max(own.Far, m.Far)
		}
		return own
	}
	k := kindOf(g, how)
	wide, ok := b.kinds[class{k, how}]
	if !ok {
		wide = b.kinds[class{k, ""}]
	}
	wide.Ports = cortexm.OverheadHalf
	if how != "measured" {
		wide = b.carried(g, wide)
	}
	if wide.Rows == 0 {
		wide.Near, wide.Far = nothing, nothing
	}
	return wide
}

// carried widens the band of figures that are taken over until it is wider than that of
// every core of the same kind of kernels that was measured.
func (b *Bands) carried(g fit.Group, wide Band) Band {
	surest := func(m Band) {
		wide.Near, wide.Far = math.Max(wide.Near, 1.2*m.Near), math.Max(wide.Far, 1.2*m.Far)
	}
	if m, ok := b.kinds[class{kind(g.Family), "measured"}]; ok {
		surest(m)
	}
	for from, m := range b.groups {
		if from.how == "measured" && from.group.Family == g.Family {
			surest(m)
		}
	}
	return wide
}

// nothing is the half-width of a band when nothing is known: a factor of four.
const nothing = 1.4

func filter(all []scored, keep func(*scored) bool) []scored {
	var out []scored
	for _, r := range all {
		if keep(&r) {
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

// spread is the half-width that holds the share [fit.Coverage] of residuals. Rows of one board
// miss together, so that each board has the same weight, however many networks ran on it.
func spread(rs []scored) float64 { return share(rs, boardOf) }

// one gives each row the same weight in [share].
func one(*scored) string { return "" }

// share returns the half-width that holds the share [fit.Coverage] of residuals, where each name
// that by gives has the same weight. The name "" is of each row.
func share(rs []scored, by func(*scored) string) float64 {
	type miss struct{ log, weight float64 }
	names := count(rs, by)
	total := float64(len(names))
	if n := names[""]; n > 0 {
		total = float64(n)
		names[""] = 1
	}
	list := make([]miss, len(rs))
	for i := range rs {
		list[i] = miss{rs[i].log, 1 / float64(names[by(&rs[i])])}
	}
	slices.SortFunc(list, func(a, b miss) int { return cmp.Compare(a.log, b.log) })
	at := 0.0
	for _, m := range list {
		at += m.weight
		if at >= fit.Coverage*total-1e-9 { // a sum of thirds is not exact
			return m.log
		}
	}
	return 0
}

// Seen returns the mixes of the networks that a group was fitted to.
func (f *Fit) Seen(g fit.Group) []cortexm.Vector { return f.seen[seenKey(g)] }

func seenKey(g fit.Group) tierEra { return tierEra{g.Family, tier(g.Family, g.Core), ""} }
