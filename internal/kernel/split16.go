package kernel

import (
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/workers"
)

// Split16 computes sums of products of 16-bit numbers by 8-bit weights with kernels of float32: of the upper 8 bits of the numbers and
// of the lower ones, either exactly, since a sum of at most [SplitSteps] products is less than 2^24.
type Split16 struct {
	n      int // channels
	q      *Requant16
	run    func(p *workers.Pool, x, y []float32)
	x, y   [2][]float32
	in     []int16
	out    []int16
	split  func(lo, hi int)
	finish func(lo, hi int)
}

// SplitSteps is the largest number of products of a sum: 514·255·128 is just below 2^24.
const SplitSteps = 514

// NewSplit16 takes what adds up the products of in numbers in sums of n channels, out all together. room makes float32.
func NewSplit16(q *Requant16, n, in, out int, room func(n int) []float32, run func(p *workers.Pool, x, y []float32)) *Split16 {
	q.prepare(n)
	s := &Split16{n: n, q: q, run: run}
	for i := range 2 {
		s.x[i], s.y[i] = room(in), room(out)
	}
	s.split, s.finish = s.halves, s.rows
	return s
}

// Run writes the results y of x.
func (s *Split16) Run(p *workers.Pool, x, y []int16) {
	s.in, s.out = x, y
	p.For(len(x), 1<<14, s.split)
	for i := range 2 {
		s.run(p, s.x[i], s.y[i])
	}
	if s.n > 0 {
		p.For(len(y)/s.n, max(1, 1<<12/s.n), s.finish)
	}
	s.in, s.out = nil, nil
}

// halves takes numbers lo to hi apart.
func (s *Split16) halves(lo, hi int) {
	upper, lower := s.x[0][lo:hi], s.x[1][lo:hi]
	for i, v := range s.in[lo:hi] {
		upper[i], lower[i] = float32(v>>8), float32(v&255)
	}
}

// splitChannels is how many channels are quantised at a time.
const splitChannels = 32

// rows quantises rows lo to hi of the sums. With fewer than 256 steps these have 32 bits; where they may have more, or vectors have no loop,
// they are quantised one by one.
func (s *Split16) rows(lo, hi int) {
	f := simd.IntKernels()
	var sums [splitChannels]int32
	for r := lo; r < hi; r++ {
		for c := 0; c < s.n; c += splitChannels {
			at, width := r*s.n+c, min(splitChannels, s.n-c)
			upper, lower, short := s.y[0][at:][:width], s.y[1][at:][:width], true
			for i, v := range upper {
				sum := int64(v)<<8 + int64(lower[i])
				sums[i] = int32(sum)
				short = short && int64(sums[i]) == sum
			}
			if short && f != nil && s.q.scales.Mul != nil && f.Requantise16(s.out[at:], s.n, sums[:], splitChannels, 1, width, &s.q.scales, c, s.q.Zero, s.q.Min, s.q.Max) {
				continue
			}
			for i, v := range upper {
				s.out[at+i] = s.q.One(int64(v)<<8+int64(lower[i]), c+i)
			}
		}
	}
}
