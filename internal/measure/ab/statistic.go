package ab

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/opmeter/opmeter/internal/base/stats"
)

const (
	// trimmed is the part of the processes that is left out at each end of their mean: with
	// normal offsets it costs 6 % of them, where a median would cost 36 %.
	trimmed = 0.1
	// resamples is the number of bootstrap samples. The standard error is known to 1.6 % then.
	resamples = 2000
	// medianCost is the variance of a median of normal values by that of their mean, π/2.
	medianCost = math.Pi / 2
	// trimCost is the same for the trimmed mean.
	trimCost = 1.06
	// power is the probability with which the smallest effect that is stated is found, as the
	// quantile of the normal distribution: 95 %.
	power = 1.6449
)

// center is the mean of sorted values, each drawn a number of times, n in all, without a tenth of
// them at each end.
func center(sorted []float64, drawn []int, n int) float64 {
	cut := int(trimmed * float64(n))
	sum, skip, left := 0.0, cut, n-2*cut
	for i, v := range sorted {
		count := drawn[i]
		out := min(count, skip)
		skip -= out
		count = min(count-out, left)
		left -= count
		sum += float64(count) * v
	}
	return sum / float64(n-2*cut)
}

// freedom is the number of degrees of freedom of the spread of center among n processes (Tukey and
// McLaughlin, Sankhya A 25, 1963).
func freedom(n int) int { return n - 2*int(trimmed*float64(n)) - 1 }

// logRatios returns for each process the log-ratios of the blocks that were measured together.
func logRatios(a, b [][]float64) [][]float64 {
	out := make([][]float64, min(len(a), len(b)))
	for p := range out {
		for k := range min(len(a[p]), len(b[p])) {
			out[p] = append(out[p], math.Log(b[p][k]/a[p][k]))
		}
	}
	return slices.DeleteFunc(out, func(r []float64) bool { return len(r) == 0 })
}

// estimate is the log-ratio of two alternatives.
type estimate struct {
	ratio, se float64
	processes int
	blocks    int
}

// estimated is the log-ratio of all processes with its standard error by the cluster bootstrap:
// processes are drawn with all their blocks, since those of one process depend on each other
// (Davison and Hinkley, Bootstrap methods, 1997, section 3.8).
func estimated(ratios [][]float64, seed uint64) estimate {
	medians := processMedians(ratios)
	e := estimate{processes: len(medians), se: math.Inf(1)}
	for _, r := range ratios {
		e.blocks += len(r)
	}
	slices.Sort(medians)
	n := len(medians)
	drawn := make([]int, n)
	for i := range drawn {
		drawn[i] = 1
	}
	e.ratio = center(medians, drawn, n)
	if freedom(n) < 1 {
		return e
	}
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	draws := make([]float64, resamples)
	for i := range draws {
		clear(drawn)
		for range n {
			drawn[random.IntN(n)]++
		}
		draws[i] = center(medians, drawn, n)
	}
	// The bootstrap underestimates the variance of n values by (n-1)/n.
	e.se = stats.StdDev(draws) * math.Sqrt(float64(n)/float64(n-1))
	return e
}

func processMedians(ratios [][]float64) []float64 {
	out := make([]float64, len(ratios))
	for i, r := range ratios {
		out[i] = stats.Median(r)
	}
	return out
}

// interval is the half-width of the interval of a log-ratio that the truth is outside with a
// probability of tail.
func (e *estimate) interval(tail float64) float64 {
	if math.IsInf(e.se, 0) || tail <= 0 {
		return math.Inf(1)
	}
	return stats.StudentQuantile(tail, float64(freedom(e.processes))) * e.se
}

// noise is the spread of log-ratios: standard deviations of processes, without what their blocks
// contribute, and of blocks within a process.
type noise struct{ between, within float64 }

// leastBetween is the least part of the variance of processes that is no chance of their blocks:
// few processes can hide it, and a plan without it would take a few long ones.
const leastBetween = 0.5

// noiseOf measures the noise. Blocks have bursts: the spread within a process is that of normal
// values with the same median deviation.
func noiseOf(ratios [][]float64) noise {
	var rest []float64
	share := 0.0 // of the variance within that a process median has
	for _, r := range ratios {
		m := stats.Median(r)
		for _, v := range r {
			rest = append(rest, v-m)
		}
		share += blockShare(len(r)) / float64(len(ratios))
	}
	var n noise
	if len(rest) > len(ratios) {
		n.within = 1.4826 * stats.MAD(rest) * math.Sqrt(float64(len(rest))/float64(len(rest)-len(ratios)))
	}
	if total := stats.StdDev(processMedians(ratios)); total > 0 {
		n.between = math.Sqrt(max(leastBetween*total*total, total*total-share*n.within*n.within))
	}
	return n
}

// blockShare is the variance of the median of k blocks by that of one of them.
func blockShare(k int) float64 {
	if k <= 2 {
		return 1 / float64(k) // their median is the mean
	}
	return medianCost / (float64(k) + medianCost - 1)
}

// error is the standard error of a comparison with a number of processes and of blocks in each.
func (n noise) error(processes, blocks int) float64 {
	return math.Sqrt(trimCost * (n.between*n.between + blockShare(blocks)*n.within*n.within) / float64(processes))
}

// detectable is the smallest relative difference that is found in 95 of 100 comparisons with a
// standard error, if the interval has a tail.
func detectable(se, tail float64, processes int) float64 {
	if freedom(processes) < 1 {
		return math.Inf(1)
	}
	return math.Expm1(found(tail, freedom(processes)) * se)
}

// found is the smallest difference, in standard errors, that is found in 95 of 100 comparisons.
// The standard error is an estimate, too: its spread is that of the noncentral distribution of
// Student (Johnson and Kotz, Continuous univariate distributions 2, 1970, chapter 31).
func found(tail float64, freedom int) float64 {
	t := stats.StudentQuantile(tail, float64(freedom))
	return t + power*math.Sqrt(1+t*t/float64(2*freedom))
}
