package gemm

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
)

// RescaledScratch returns the recommended size of the sums buffer of [MultiplyRescaled]: rows that
// fit the L2 caches of the threads.
func RescaledScratch(p *workers.Pool, m, n int) int {
	rows := max(quantise.GemmRows, quantise.GemmSums/max(n, 1)/quantise.GemmRows*quantise.GemmRows) * p.Threads()
	if 2*m <= 3*rows {
		rows = m
	}
	return rows * n
}

// MultiplyRescaled is [MultiplyInt8] with requantisation by q, which must be prepared. It computes
// as many rows at a time as fit sums.
func MultiplyRescaled(p *workers.Pool, m int, x []uint8, tables []ByteTable, w *PackedInt8, sums []int32, q *quantise.Rescale, y []uint8) {
	if m <= 0 || w.N <= 0 {
		return
	}
	if w.fusesRequant(m, tables, q) {
		gemmFours(p, m, x, tables, w, gemmEpilogue{r: q, y: y})
		return
	}
	rows := max(1, len(sums)/w.N)
	for r := 0; r < m; r += rows {
		h, t := min(rows, m-r), tables
		if len(t) > 1 {
			t = t[r:]
		}
		MultiplyInt8(p, h, x[r*w.K:], t, w, sums[:h*w.N])
		quantise.RescaleMatrix(p, y[r*w.N:][:h*w.N], sums[:h*w.N], q)
	}
}
