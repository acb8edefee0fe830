package simd

import "sync"

// Sifted multiplies as [Ints.RunQuads] does, by panels of weights of which at most four of eight neighbouring steps are not zero, as where two of each four
// are (2:4): only these four are multiplied, and each column takes its codes out of the eight. Panels, those of [Ints] of 32 columns, keep their size: of two
// fours of steps the first row has the weights that are left, the second from where in the eight steps each of them is.
type Sifted struct {
	Set             Set
	sums            [12]func(t *IntTile)
	codes, rescaled codeLoops
}

// siftedLeast is how many times as fast as dense loops those of [Sifted] must be: where they are about as fast, what else runs on the core decides which are faster.
const siftedLeast = 1.2

// siftedGain measures it, once in a process: some processors take codes out of eight beside the products (1.4 times as fast on a Zen 4), on others both want
// the same units (0.9 times on a Xeon with two of them for 512 bits, 1.1 while something else has the other half of the core). Results do not depend on it.
var siftedGain = sync.OnceValue(func() float64 {
	f, s := ints.pick(), sifted.pick()
	probe := denseProbe(len(s.sums), f.Cols, 64)
	times := fastest([]func(t *IntTile){f.quads[len(s.sums)-1], s.sums[len(s.sums)-1]}, func(loop func(t *IntTile)) { loop(probe) })
	return float64(times[0]) / float64(times[1])
})

// siftedForced is what tests say in place of the measurement; 0 for nothing.
var siftedForced float64

// Sift makes [SiftedKernels] answer as if they were so many times as fast as dense ones, until undo is called; nothing else is measured meanwhile, either. It
// is for tests.
func Sift(gain float64) (undo func()) {
	before := siftedForced
	siftedForced = gain
	return func() { siftedForced = before }
}

// SiftedKernels of the current set, and how many times as fast as the dense ones they are; nil and 1 where there are none, or where they are not faster.
func SiftedKernels() (f *Sifted, gain float64) {
	if current == AMX { // dense products in tiles are many times as fast
		return nil, 1
	}
	if f = sifted.pick(); f == nil {
		return nil, 1
	}
	if gain = siftedForced; gain == 0 {
		gain = siftedGain()
	}
	if gain < siftedLeast {
		return nil, 1
	}
	return f, gain
}

// Pack makes panels of fours of weights those of f, in their place. Rows come in twos, and at most four of the eight weights of a column are not zero.
func (f *Sifted) Pack(panels []int8) {
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

// Run is [Ints.RunQuads] for all columns of a panel; pieces of rows have an even number of fours.
func (f *Sifted) Run(t *IntTile, rows int) { t.inRows(rows, f.sums[:], 0) }

// ToCodes is [Ints.QuadsToCodes].
func (f *Sifted) ToCodes(t *CodeTile, rows int) { t.inRows(rows, &f.codes, false) }

// Rescaled is [Ints.QuadsRescaled].
func (f *Sifted) Rescaled(t *CodeTile, rows int) { t.inRows(rows, &f.rescaled, false) }
