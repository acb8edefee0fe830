package estimator

import "github.com/opmeter/opmeter/internal/base/stats"

// Paired divides series that were measured at the same time, interleaved, into blocks and returns
// the medians of the series in each block. Quotients and differences within a block cancel changes
// of the machine's speed. There are as many blocks as the shortest series has values, and most at
// the most.
func Paired(most int, series ...[]float64) [][]float64 {
	n := most
	for _, s := range series {
		n = min(n, len(s))
	}
	out := make([][]float64, n)
	for i := range out {
		for _, s := range series {
			out[i] = append(out[i], stats.Median(s[i*len(s)/n:(i+1)*len(s)/n]))
		}
	}
	return out
}
