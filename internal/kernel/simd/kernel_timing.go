package simd

import (
	"sync"
	"time"
	"unsafe"
)

// leastTimes runs kernels alternately and returns the least time of each. Some processors need time
// to reach full speed for wide multiplications, so it warms up before it measures.
func leastTimes[L any](kernels []L, run func(L)) []time.Duration {
	const runs, rounds, wait = 8, 24, 2 * time.Millisecond
	for begin := time.Now(); time.Since(begin) < wait; {
		for _, l := range kernels {
			run(l)
		}
	}
	least := make([]time.Duration, len(kernels))
	for n := range rounds {
		for i, l := range kernels {
			begin := time.Now()
			for range runs {
				run(l)
			}
			if d := time.Since(begin); n == 0 || d < least[i] {
				least[i] = max(1, d)
			}
		}
	}
	return least
}

// denseProbe returns a tile of dense 4-way dot products for measurements, with all rows.
func denseProbe(rows, cols, fours int) *IntTile {
	a, b := make([]uint8, rows*4*fours), make([]int8, fours*4*cols)
	start, c := make([]int32, cols), make([]int32, rows*cols)
	return &IntTile{A: unsafe.Pointer(&a[0]), RowA: 4 * fours, K: fours, Segs: 1, B: unsafe.Pointer(&b[0]), C: &c[0], RowC: 4 * cols, Start: &start[0]}
}

// sparseCosts measures the costs of the VNNI kernels of [SparseInts], once for each process. The
// costs in the table are those of a Zen 4. Processors with two units for wide multiplications
// have faster dense kernels, and therefore higher costs. Results do not depend on the costs.
var sparseCosts = sync.OnceValue(func() (costs [SparseKinds]float64) {
	const fours, units, steps, rows, dense = 24, 8, 128, 12, 64
	d, f := intKernels.pick(), sparseIntKernels.pick()
	x, offs, vals := make([]uint8, steps*f.Cols), make([]uint16, units*fours*4), make([]uint8, units*fours*f.Size()*SparseRows)
	for i := range offs {
		offs[i] = uint16(i * 37 % (steps / 4) * 4 * f.Cols)
	}
	counts, start, y := make([]uint32, units), make([]int32, units*SparseRows), make([]int32, units*SparseRows*f.Cols)
	for i := range counts {
		counts[i] = fours
	}
	probe := denseProbe(rows, d.Cols, dense)
	kinds := []SparseKind{SparseRow, SparseRowsTogether, SparseFours, SparseKinds}
	times := leastTimes(kinds, func(kind SparseKind) {
		if kind == SparseKinds {
			d.quads[rows-1](probe)
			return
		}
		// A kernel advances the pointers of its tile.
		f.whole[kind](&SparseIntTile{
			X: &x[0], Offs: &offs[0], Vals: unsafe.Pointer(&vals[0]), Counts: &counts[0], Units: units, Y: &y[0], RowY: 4 * f.Cols, Start: &start[0],
		})
	})
	one := float64(times[SparseKinds]) / float64(rows*d.Cols*dense)
	for kind := range SparseKinds {
		costs[kind] = float64(times[kind]) / float64(units*kind.Rows()*fours*f.Cols) / one
	}
	return costs
})
