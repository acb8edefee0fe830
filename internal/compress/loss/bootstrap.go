package loss

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/gemm"
)

// bootstrapDraws is the number of bootstrap resamples. The interval ends are then uncertain by
// about a fifth of its length, less than the uncertainty of an interval of a few samples.
const bootstrapDraws = 200

// bootstrapCounts returns how often each of n slots is drawn in each resample: bootstrapDraws by
// n.
func bootstrapCounts(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 0xb007))
	out := make([]float32, bootstrapDraws*n)
	for b := range bootstrapDraws {
		for range n {
			out[b*n+r.IntN(n)]++
		}
	}
	return out
}

// percentileInterval returns the ends of a 95 % interval of resampled values, NaN where there are
// too few.
func percentileInterval(v []float64) (lo, hi float64) {
	// Only the few smallest and largest values need sorting.
	var least, most [bootstrapDraws/40 + 2]float64
	n := 0
	for _, x := range v {
		if x != x {
			continue
		}
		insertSmallest(least[:], n, x)
		insertSmallest(most[:], n, -x)
		n++
	}
	if n < bootstrapDraws/2 {
		return math.NaN(), math.NaN()
	}
	at := 0.025 * float64(n-1) // as in stats.Quantile
	k := int(at)
	t := at - float64(k)
	return least[k] + t*(least[k+1]-least[k]), -(most[k] + t*(most[k+1]-most[k]))
}

// insertSmallest keeps the smallest of n numbers and x in ascending order.
func insertSmallest(least []float64, n int, x float64) {
	n = min(n, len(least))
	if n == len(least) {
		if x >= least[n-1] {
			return
		}
		n--
	}
	for n > 0 && least[n-1] > x {
		least[n] = least[n-1]
		n--
	}
	least[n] = x
}

// errorIntervals returns intervals of level errors as factors, lo and hi per level. For index
// inputs they follow from the counts per slot of samples, otherwise from a sketch.
func (x *matrix) errorIntervals(fall []uint16, at []float64, seed uint64) (lo, hi []float64) {
	levels := len(at)
	if x.sketch != nil {
		return x.sketch.intervalFactors(at, seed)
	}
	slots, d := len(x.energy), x.groups*x.cols
	if !x.indexInputs || slots < 2 { // weights without a pruning order, or too few samples
		lo = slices.Repeat([]float64{math.NaN()}, levels)
		return lo, lo
	}
	// gone has the sums of squared pruned weights by level and column; the last row has those of
	// all weights.
	gone := make([]float32, (levels+1)*d)
	outs := x.rows / x.groups
	x.pool.For(x.groups, max(1, 1<<14/(outs*x.cols)), func(lo, hi int) {
		for r := lo * outs; r < hi*outs; r++ {
			at := r / outs * x.cols
			all := gone[levels*d+at:][:x.cols]
			for c, v := range x.w[r*x.cols:][:x.cols] {
				v *= v
				all[c] += v
				if k := int(fall[r*x.cols+c]); k < levels {
					gone[k*d+at+c] += v
				}
			}
		}
	})
	for k := 1; k < levels; k++ {
		for i, v := range gone[(k-1)*d:][:d] {
			gone[k*d+i] += v
		}
	}
	if x.flat == nil {
		x.flat = slices.Concat(x.energy...)
	}
	share := make([]float32, slots*(levels+1))
	gemm.Multiply(x.pool, gemm.Params{M: slots, N: levels + 1, K: d, TransB: true}, x.flat, gone, share)
	return intervalFactors(x, share, slots, levels, seed)
}

func intervalFactors(x *matrix, share []float32, slots, levels int, seed uint64) (lo, hi []float64) {
	lo, hi = make([]float64, levels), make([]float64, levels)
	sums := make([]float32, bootstrapDraws*(levels+1))
	gemm.Multiply(x.pool, gemm.Params{M: bootstrapDraws, N: levels + 1, K: slots}, bootstrapCounts(slots, seed), share, sums)
	whole := make([]float64, levels+1)
	for i := range slots {
		for k, v := range share[i*(levels+1):][:levels+1] {
			whole[k] += float64(v)
		}
	}
	for k := range levels {
		lo[k], hi[k] = math.NaN(), math.NaN()
		if whole[k] <= 0 || whole[levels] <= 0 {
			continue
		}
		ratios := make([]float64, bootstrapDraws)
		for b := range ratios {
			row := sums[b*(levels+1):]
			ratios[b] = float64(row[k]) / whole[k] / (float64(row[levels]) / whole[levels])
		}
		lo[k], hi[k] = percentileInterval(ratios)
	}
	return lo, hi
}

// BootstrapInterval returns a 95 % bootstrap interval of a figure of samples. f receives how
// often each sample is drawn.
func BootstrapInterval(n int, seed uint64, f func(times []float32) float64) (lo, hi float64) {
	if n < 2 {
		return math.NaN(), math.NaN()
	}
	times := bootstrapCounts(n, seed)
	v := make([]float64, bootstrapDraws)
	for b := range v {
		v[b] = f(times[b*n:][:n])
	}
	return percentileInterval(v)
}
