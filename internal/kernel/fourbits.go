package kernel

import (
	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// FourBits is a matrix [n, k] of weights of 4 bits with a sign and a scale for each block of a row, which a single row of floats is
// multiplied by as they are: with the bits of a plain loop over the weights in float32, an eighth of whose memory is read.
type FourBits struct {
	f      *simd.FourBits
	k, n   int
	words  []uint32  // panels of columns: for each eight steps a word a column
	scales []float32 // for each block one a column
}

// NewFourBits takes rows of codes, the lower half of each byte first, and their scales [n, k/block]; nil where there are no kernels for
// the matrix.
func NewFourBits(k, n, block int, codes []uint8, scales []float32) *FourBits {
	f := simd.FourBitKernels()
	if f == nil || simd.ElementKernels() == nil || n <= 0 || k <= 0 || block <= 0 || block%simd.FourBitSteps != 0 || k%block != 0 || len(codes) != n*k/2 || len(scales) != n*k/block {
		return nil
	}
	const cols = simd.FourBitColumns
	m := &FourBits{f: f, k: k, n: n, words: hugepages.Make[uint32](roundUp(n, cols) * k / simd.FourBitSteps), scales: hugepages.Make[float32](roundUp(n, cols) * k / block)}
	turnPanels(m.words, wordsIn(codes), n, k/simd.FourBitSteps, cols)
	turnPanels(m.scales, scales, n, k/block, cols)
	return m
}

// turnPanels writes n rows of words as panels of columns, a row of cols words for each place of a row of src.
func turnPanels[T move.Word](dst, src []T, n, row, cols int) {
	for j := 0; j < n; j += cols {
		move.Turn(dst[j*row:], cols, src[j*row:], row, row, min(cols, n-j))
	}
}

// Name is the name of the kernel.
func (m *FourBits) Name() string { return "nibbles/" + m.f.Set.String() }

// fourBitArgs is what a piece of a product needs.
type fourBitArgs struct {
	m          *FourBits
	x, y, bias []float32
	act        activation.Clamp
}

// Run computes the row y[n] of the row x[k], plus the bias where there is one, clamped.
func (m *FourBits) Run(p *workers.Pool, x, y, bias []float32, act activation.Clamp) {
	const cols = simd.FourBitColumns
	workers.Do(p, (m.n+cols-1)/cols, max(1, workers.Grain(8)/(cols*m.k)), fourBitArgs{m, x, y, bias, act}, func(q fourBitArgs, lo, hi int) {
		m, e := q.m, simd.ElementKernels()
		words, scales := len(m.words)/roundUp(m.n, cols)*cols, len(m.scales)/roundUp(m.n, cols)*cols
		sc, room := borrow(cols)
		for i := lo; i < hi; i++ {
			width := min(cols, m.n-i*cols)
			out := q.y[i*cols:][:width]
			sums := out
			if width < cols {
				sums = room
			}
			m.f.Row(sums, q.x, m.words[i*words:][:words], m.scales[i*scales:][:scales])
			if width < cols {
				copy(out, sums)
			}
			if q.bias != nil {
				e.Add(out, out, q.bias[i*cols:])
			}
			if q.act.On {
				e.Clamp(out, out, q.act.Min, q.act.Max)
			}
		}
		scratch.Put(sc)
	})
}
