package simd

import (
	"math"
	"sync"
	"time"
	"unsafe"
)

// leastTimes runs kernels alternately and returns the least time of each. Some processors need time
// to reach full speed for wide multiplications, so it warms up before it measures.
func leastTimes[L any](kernels []L, run func(L)) []time.Duration {
	return leastTimesOf(kernels, 8, 24, run)
}

// leastTimesOf is leastTimes for some rounds of runs.
func leastTimesOf[L any](kernels []L, runs, rounds int, run func(L)) []time.Duration {
	const wait = 2 * time.Millisecond
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

// ColumnsFar is the size in bytes from which dense weights exceed a second-level cache.
const ColumnsFar = 4 << 20

// ColumnCost returns the cost of a listed value of [Columns] relative to a value of a dense panel
// of the type. far says that the dense weights exceed a second-level cache. The cost is
// infinite if there are no kernels to compare. Processors differ by an order of magnitude in the
// speed of gathers, so it is measured, once for each process. Results do not depend on it.
func ColumnCost(b PanelType, far bool) float64 {
	set := current
	// Dense weights of 256 KiB are in the second-level cache, lists of a sixth, too.
	place, bytes, listed := 0, 1<<18, 1<<13
	if far {
		// The lists are as large as the dense weights: other layers may have replaced them.
		place, bytes, listed = 1, ColumnsFar, ColumnsFar/6
	}
	c := &columnCosts[set][b][place]
	c.once.Do(func() { c.cost = columnCost(set, b, bytes, listed) })
	return c.cost
}

// columnCosts holds the costs by instruction set, type, and whether the weights are far. Zero
// values need no time at the start of a program.
var columnCosts [sets][WideBFloat16 + 1][2]struct {
	once sync.Once
	cost float64
}

// columnCost measures the cost for some bytes of dense weights and about as many listed values.
func columnCost(s Set, b PanelType, bytes, listed int) float64 {
	d, f := floatKernels.of(s), columnKernels.of(s)
	if d == nil || f == nil || d.fused.wide[b] == nil {
		return math.Inf(1)
	}
	each := 4
	if b != WideFloat32 {
		each = 2
	}
	columns := WidePanels * d.Cols
	steps := bytes / each / columns
	groups := max(1, listed/steps/f.Lanes)
	count := listed / groups / f.Lanes
	listed = groups * f.Lanes * count
	x, y, panels := make([]float32, steps), make([]float32, max(columns, groups*f.Lanes)), make([]float32, bytes/4)
	at, values, counts := make([]uint16, listed), make([]float32, listed), make([]uint32, groups)
	// Memory that was never written is one page of zeros, which is always in cache.
	for i := range panels {
		panels[i] = 1
	}
	for i := range at {
		at[i], values[i] = uint16(i*37%steps), 1
	}
	for i := range counts {
		counts[i] = uint32(count)
	}
	runs, rounds := 8, 24
	if bytes >= ColumnsFar {
		runs, rounds = 1, 6
	}
	times := leastTimesOf([]bool{false, true}, runs, rounds, func(lists bool) {
		if lists {
			f.fused(&ColumnsTile{Y: &y[0], X: &x[0], Steps: &at[0], Values: &values[0], Counts: &counts[0], Groups: groups})
			return
		}
		d.fused.wide[b](&Tile{
			A: &x[0], StepA: 4, K: steps, Segs: 1, B: &panels[0], StepB: each * d.Cols, PanelB: each * d.Cols * steps, C: &y[0],
		})
	})
	return float64(times[1]) / float64(listed) / (float64(times[0]) / float64(columns*steps))
}
