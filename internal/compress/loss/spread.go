package loss

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel"
)

// draws is the number of times that samples are drawn again for an interval. Its ends are then about a fifth of
// its length uncertain, which is less than what an interval of a few samples is itself.
const draws = 200

// drawn says for each draw how often each of n slots is taken: draws by n.
func drawn(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 0xb007))
	out := make([]float32, draws*n)
	for b := range draws {
		for range n {
			out[b*n+r.IntN(n)]++
		}
	}
	return out
}

// between are the ends of a 95 % interval of drawn values, NaN where there are too few.
func between(v []float64) (lo, hi float64) {
	// Only a few of the least and of the largest are needed in order.
	var least, most [draws/40 + 2]float64
	n := 0
	for _, x := range v {
		if x != x {
			continue
		}
		insert(least[:], n, x)
		insert(most[:], n, -x)
		n++
	}
	if n < draws/2 {
		return math.NaN(), math.NaN()
	}
	at := 0.025 * float64(n-1) // as stats.Quantile has it
	k := int(at)
	t := at - float64(k)
	return least[k] + t*(least[k+1]-least[k]), -(most[k] + t*(most[k+1]-most[k]))
}

// insert keeps the least of n numbers and x in ascending order.
func insert(least []float64, n int, x float64) {
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

// spread gives intervals for errors by levels: factors by which they are multiplied, lo and hi a level. Where inputs are
// indices they follow from how often each occurs in each slot of samples, else from a sketch.
func (x *matrix) spread(fall []uint16, at []float64, seed uint64) (lo, hi []float64) {
	levels := len(at)
	if x.sketch != nil {
		return x.sketch.factors(at, seed)
	}
	if !x.counts { // the weights have no order
		return slices.Repeat([]float64{math.NaN()}, levels), slices.Repeat([]float64{math.NaN()}, levels)
	}
	slots, d := len(x.energy), x.groups*x.cols
	lo, hi = slices.Repeat([]float64{math.NaN()}, levels), slices.Repeat([]float64{math.NaN()}, levels)
	if slots < 2 {
		return lo, hi
	}
	// gone has the squares of the fallen weights by level and column, and after all levels those of all weights.
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
	kernel.Gemm(x.pool, kernel.GemmParams{M: slots, N: levels + 1, K: d, TransB: true}, x.flat, gone, share)
	return factors(x, share, slots, levels, seed)
}

func factors(x *matrix, share []float32, slots, levels int, seed uint64) (lo, hi []float64) {
	lo, hi = make([]float64, levels), make([]float64, levels)
	sums := make([]float32, draws*(levels+1))
	kernel.Gemm(x.pool, kernel.GemmParams{M: draws, N: levels + 1, K: slots}, drawn(slots, seed), share, sums)
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
		ratios := make([]float64, draws)
		for b := range ratios {
			row := sums[b*(levels+1):]
			ratios[b] = float64(row[k]) / whole[k] / (float64(row[levels]) / whole[levels])
		}
		lo[k], hi[k] = between(ratios)
	}
	return lo, hi
}

// Resampled is a 95 % interval of a figure of samples: f gets how often each is taken.
func Resampled(n int, seed uint64, f func(times []float32) float64) (lo, hi float64) {
	if n < 2 {
		return math.NaN(), math.NaN()
	}
	times := drawn(n, seed)
	v := make([]float64, draws)
	for b := range v {
		v[b] = f(times[b*n:][:n])
	}
	return between(v)
}
