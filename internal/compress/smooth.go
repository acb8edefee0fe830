package compress

import (
	"cmp"
	"slices"

	"github.com/opmeter/opmeter/internal/compress/loss"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// smooth are losses to choose by: of accuracy and agreement, of which one sample in a few hundred is a large step, the divergence
// of the same runs, in the unit of the metric.
func smooth(p *study.Loss) *study.Loss {
	base, based := p.Base.Best()
	if p.Metric == loss.Top1 {
		base, based = 1, true
	}
	if p.Method != study.EndToEnd || !based || p.Metric != loss.Accuracy && p.Metric != loss.Top1 {
		return p
	}
	var seen []fall
	for _, x := range p.Points {
		v, ok := x.Value.Best()
		if !ok {
			continue
		}
		kl, has := x.More[loss.KL]
		if !has {
			return p
		}
		seen = append(seen, fall{kl, base - v, 1})
	}
	nodes := fitted(seen)
	out := *p
	out.Points = slices.Clone(p.Points)
	for i, x := range out.Points {
		if _, ok := x.Value.Best(); ok {
			out.Points[i].Value = profile.Value(profile.Estimated, base-dropAt(nodes, x.More[loss.KL], base), "divergence of outputs, as a drop")
		}
	}
	return &out
}

// fall is how much is lost at a divergence, by the mean of n points.
type fall struct{ kl, drop, n float64 }

// small are drops that rise as divergences do: both rise as the squares of errors.
const small = 0.1

// rounding is what drops differ by that are the same but for the order of sums.
const rounding = 1e-9

// fitted takes divergences to drops: one factor takes all small drops, up to their middle, and beyond it rising means of what is near
// (isotonic regression by pooling neighbours that fall), of which the large ones count.
func fitted(seen []fall) (nodes []fall) {
	var low fall
	for _, x := range seen {
		if x.drop <= small {
			low = fall{low.kl + x.kl, low.drop + x.drop, low.n + 1}
		}
	}
	if low.drop > rounding && low.kl > 0 {
		nodes = append(nodes, fall{low.kl / low.n, low.drop / low.n, low.n})
	}
	seen = slices.Clone(seen)
	slices.SortStableFunc(seen, func(a, b fall) int { return cmp.Compare(a.kl, b.kl) })
	var pools []fall
	for _, x := range seen {
		for len(pools) > 0 && pools[len(pools)-1].drop >= x.drop-rounding {
			y := pools[len(pools)-1]
			n := x.n + y.n
			x = fall{(x.kl*x.n + y.kl*y.n) / n, (x.drop*x.n + y.drop*y.n) / n, n}
			pools = pools[:len(pools)-1]
		}
		pools = append(pools, x)
	}
	for _, x := range pools {
		if k := len(nodes); x.drop > small && (k == 0 || x.kl > nodes[k-1].kl && x.drop > nodes[k-1].drop+rounding) {
			nodes = append(nodes, x)
		}
	}
	return nodes
}

// dropAt is the drop at a divergence: straight between what is known, and beyond it nearer and nearer to all that there is to lose where that is a
// large drop.
func dropAt(nodes []fall, kl, all float64) float64 {
	if len(nodes) == 0 {
		return kl // their order is all that is known
	}
	last := nodes[len(nodes)-1]
	before := fall{}
	for _, x := range nodes {
		if kl <= x.kl {
			return before.drop + (x.drop-before.drop)*(kl-before.kl)/(x.kl-before.kl)
		}
		before = x
	}
	if last.drop <= small {
		return last.drop * kl / last.kl
	}
	return last.drop + max(all-last.drop, 0)*(1-last.kl/kl)
}
