package simd

import "sync"

// Sparse4of8 holds GEMM kernels like [Ints.RunQuads] for weights of which at most four of eight
// adjacent steps are nonzero. Weights with two of four nonzero (2:4) are a special case. The
// kernels multiply only these four weights. Each column selects its activations from the eight
// steps.
//
// Panels have the size of those of [Ints] with 32 columns. Of two rows of groups of four steps,
// the first row holds the remaining weights. The second row holds the position of each of them
// within the eight steps.
type Sparse4of8 struct {
	Set             Set
	sums            [12]func(t *IntTile)
	codes, rescaled requantKernels
}

// minSparse4of8Gain is the minimum speed-up over the dense kernels. If both are about as fast,
// other work on the core determines which kernels are faster.
const minSparse4of8Gain = 1.2

// sparse4of8Gain measures the speed-up once for each process. Some processors select activations in
// parallel with the products (1.4 times as fast on a Zen 4). On others both need the same units:
// 0.9 times on a Xeon with two 512-bit units, 1.1 times while another program uses the other
// thread of the core. Results do not depend on it.
var sparse4of8Gain = sync.OnceValue(func() float64 {
	f, s := intKernels.pick(), sparse4of8Kernels.pick()
	probe := denseProbe(len(s.sums), f.Cols, 64)
	times := leastTimes([]func(t *IntTile){f.quads[len(s.sums)-1], s.sums[len(s.sums)-1]}, func(kernel func(t *IntTile)) { kernel(probe) })
	return float64(times[0]) / float64(times[1])
})

// forcedSparse4of8Gain replaces the measurement in tests; 0 means that it is not set.
var forcedSparse4of8Gain float64

// ForceSparse4of8 makes [Sparse4of8Kernels] return gain as the measured speed-up until undo is
// called. It also disables the other measurements. It is for tests.
func ForceSparse4of8(gain float64) (undo func()) {
	before := forcedSparse4of8Gain
	forcedSparse4of8Gain = gain
	return func() { forcedSparse4of8Gain = before }
}

// Sparse4of8Kernels returns the kernels of the current instruction set and their speed-up over the
// dense kernels. It returns nil and 1 if they are not available or not faster.
func Sparse4of8Kernels() (f *Sparse4of8, gain float64) {
	if current == AMX { // dense AMX kernels are many times as fast
		return nil, 1
	}
	if f = sparse4of8Kernels.pick(); f == nil {
		return nil, 1
	}
	if gain = forcedSparse4of8Gain; gain == 0 {
		gain = sparse4of8Gain()
	}
	if gain < minSparse4of8Gain {
		return nil, 1
	}
	return f, gain
}

// Pack converts panels of groups of four weights in place. Rows come in pairs; at most four of
// the eight weights of a column are nonzero.
func (f *Sparse4of8) Pack(panels []int8) {
	const row = 4 * 32
	for ; len(panels) >= 2*row; panels = panels[2*row:] {
		first, second := (*[row]int8)(panels), (*[row]int8)(panels[row:])
		for c := 0; c < row; c += 4 {
			var weights, places [4]int8
			n := 0
			for i, w := range [8]int8{first[c], first[c+1], first[c+2], first[c+3], second[c], second[c+1], second[c+2], second[c+3]} {
				if w != 0 {
					weights[n], places[n] = w, int8(i)
					n++
				}
			}
			copy(first[c:], weights[:])
			copy(second[c:], places[:])
		}
	}
}

// Run is [Ints.RunQuads] for all columns of a panel. Segments have an even number of groups of
// four.
func (f *Sparse4of8) Run(t *IntTile, rows int) { t.inRows(rows, f.sums[:], 0) }

// Requantised is [Ints.QuadsRequantised].
func (f *Sparse4of8) Requantised(t *CodeTile, rows int) { t.inRows(rows, &f.codes, false) }

// Rescaled is [Ints.QuadsRescaled].
func (f *Sparse4of8) Rescaled(t *CodeTile, rows int) { t.inRows(rows, &f.rescaled, false) }
