package compress

import (
	"cmp"
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/compress/loss"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// smoothedLoss returns the losses that plans are chosen by. One sample in a few hundred is a
// large step of accuracy or agreement, so the KL divergence of the same runs replaces them,
// converted to the unit of the metric.
func smoothedLoss(p *study.Loss) *study.Loss {
	base, based := p.Base.Best()
	if p.Metric == loss.Top1 {
		base, based = 1, true
	}
	if p.Method != study.EndToEnd || !based || p.Metric != loss.Accuracy && p.Metric != loss.Top1 {
		return p
	}
	var seen []lossDrop
	for _, x := range p.Points {
		v, ok := x.Value.Best()
		if !ok {
			continue
		}
		kl, has := x.More[loss.KL]
		if !has {
			return p
		}
		seen = append(seen, lossDrop{kl, base - v, 1})
	}
	nodes := fitDrops(seen)
	out := *p
	out.Points = slices.Clone(p.Points)
	for i, x := range out.Points {
		if _, ok := x.Value.Best(); ok {
			out.Points[i].Value = profile.Value(profile.Estimated, base-dropAt(nodes, x.More[loss.KL], base), "drop estimated from the KL divergence of outputs")
		}
	}
	return &out
}

// lossDrop is the loss at a KL divergence, the mean of n points.
type lossDrop struct{ kl, drop, n float64 }

// smallDrop bounds the drops that are proportional to the divergence: both grow with the squared
// error.
const smallDrop = 0.1

// dropTolerance is the difference between drops that are equal but for summation order.
const dropTolerance = 1e-9

// fitDrops fits a map from divergences to drops. One factor covers all small drops, up to their
// mean. Beyond it, isotonic regression (pooling adjacent violators) gives the nodes with large
// drops.
func fitDrops(seen []lossDrop) (nodes []lossDrop) {
	var low lossDrop
	for _, x := range seen {
		if x.drop <= smallDrop {
			low = lossDrop{low.kl + x.kl, low.drop + x.drop, low.n + 1}
		}
	}
	if low.drop > dropTolerance && low.kl > 0 {
		nodes = append(nodes, lossDrop{low.kl / low.n, low.drop / low.n, low.n})
	}
	seen = slices.Clone(seen)
	sorting.Stable(seen, func(a, b lossDrop) int { return cmp.Compare(a.kl, b.kl) })
	var pools []lossDrop
	for _, x := range seen {
		for len(pools) > 0 && pools[len(pools)-1].drop >= x.drop-dropTolerance {
			y := pools[len(pools)-1]
			n := x.n + y.n
			x = lossDrop{(x.kl*x.n + y.kl*y.n) / n, (x.drop*x.n + y.drop*y.n) / n, n}
			pools = pools[:len(pools)-1]
		}
		pools = append(pools, x)
	}
	for _, x := range pools {
		if k := len(nodes); x.drop > smallDrop && (k == 0 || x.kl > nodes[k-1].kl && x.drop > nodes[k-1].drop+dropTolerance) {
			nodes = append(nodes, x)
		}
	}
	return nodes
}

// dropAt interpolates the drop at a divergence linearly between nodes. Beyond the last node it
// approaches the total loss all where the last drop is large, and stays proportional otherwise.
func dropAt(nodes []lossDrop, kl, all float64) float64 {
	if len(nodes) == 0 {
		return kl // only the order of divergences is known
	}
	last := nodes[len(nodes)-1]
	before := lossDrop{}
	for _, x := range nodes {
		if kl <= x.kl {
			return before.drop + (x.drop-before.drop)*(kl-before.kl)/(x.kl-before.kl)
		}
		before = x
	}
	if last.drop <= smallDrop {
		return last.drop * kl / last.kl
	}
	return last.drop + max(all-last.drop, 0)*(1-last.kl/kl)
}
