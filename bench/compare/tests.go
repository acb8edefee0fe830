package main

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/profile"
)

// figures are the latencies of profiles: one of each process.
func figures(ps []*profile.Profile) (out []float64) {
	for _, p := range ps {
		if v, ok := p.Totals.Latency.Best(); ok {
			out = append(out, v)
		}
	}
	return out
}

// samples are all inferences of profiles, as if they were independent.
func samples(ps []*profile.Profile) (out []float64) {
	for _, p := range ps {
		out = append(out, p.Totals.LatencySamples...)
	}
	return out
}

// welch is the probability by the t-test for samples with different variances.
func welch(x, y []float64) float64 {
	n, m := float64(len(x)), float64(len(y))
	if n < 2 || m < 2 {
		return math.NaN()
	}
	a, b := stats.StdDev(x), stats.StdDev(y)
	a, b = a*a/n, b*b/m
	if a+b == 0 {
		return math.NaN()
	}
	return stats.StudentP((stats.Mean(x)-stats.Mean(y))/math.Sqrt(a+b), (a+b)*(a+b)/(a*a/(n-1)+b*b/(m-1)))
}

// mannWhitney is the two-sided probability by the rank-sum test: exact for up to 50 values a side
// without ties, as benchstat does, by the normal distribution with correction for ties otherwise.
func mannWhitney(x, y []float64) float64 {
	n, m := len(x), len(y)
	if n == 0 || m == 0 {
		return math.NaN()
	}
	type value struct {
		v     float64
		first bool
	}
	all := make([]value, 0, n+m)
	for _, v := range x {
		all = append(all, value{v, true})
	}
	for _, v := range y {
		all = append(all, value{v, false})
	}
	slices.SortFunc(all, func(a, b value) int {
		switch {
		case a.v < b.v:
			return -1
		case a.v > b.v:
			return 1
		}
		return 0
	})
	u, ties := -float64(n*(n+1))/2, 0.0
	for i := 0; i < len(all); {
		k := i
		for k < len(all) && all[k].v == all[i].v {
			k++
		}
		rank := float64(i+k+1) / 2
		for ; i < k; i++ {
			if all[i].first {
				u += rank
			}
		}
		t := 1.0
		for j := k - 1; j > 0 && all[j-1].v == all[k-1].v; j-- {
			t++
		}
		ties += t*t*t - t
	}
	if ties == 0 && n <= 50 && m <= 50 {
		return exactRanks(int(math.Round(min(u, float64(n*m)-u))), n, m)
	}
	total := float64(n + m)
	variance := float64(n) * float64(m) / 12 * (total + 1 - ties/(total*(total-1)))
	if variance <= 0 {
		return 1
	}
	z := (math.Abs(u-float64(n*m)/2) - 0.5) / math.Sqrt(variance)
	return min(1, math.Erfc(max(0, z)/math.Sqrt2))
}

// exactRanks is the probability of a rank sum as small as u on either side.
func exactRanks(u, n, m int) float64 {
	// ways[i][s]: the number of ways to choose i ranks with the statistic s, of those so far.
	ways := make([][]float64, n+1)
	for i := range ways {
		ways[i] = make([]float64, n*m+1)
	}
	ways[0][0] = 1
	for rank := range n + m {
		for i := min(n, rank+1); i >= 1; i-- {
			add := rank - (i - 1) // values of the other side below it
			if add < 0 || add > m {
				continue
			}
			for s := n*m - add; s >= 0; s-- {
				ways[i][s+add] += ways[i-1][s]
			}
		}
	}
	low, sum := 0.0, 0.0
	for s, w := range ways[n] {
		sum += w
		if s <= u {
			low += w
		}
	}
	return min(1, 2*low/sum)
}
