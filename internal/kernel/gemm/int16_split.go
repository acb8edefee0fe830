package gemm

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// SplitInt16 multiplies 16-bit values by 8-bit weights with float32 kernels: one multiplication
// for the upper 8 bits of the values and one for the lower 8 bits. Both are exact, since a sum of
// at most [SplitSteps] products is less than 2^24.
type SplitInt16 struct {
	n      int // channels
	q      *Requant16
	run    func(p *workers.Pool, x, y []float32)
	x      [2][]float32
	y      []float32 // sums of both halves, one after the other, plus slack
	size   int       // of one half
	in     []int16
	out    []int16
	split  func(lo, hi int)
	finish func(lo, hi int)
}

// SplitSteps is the maximum number of products of a sum: 514·255·128 is just below 2^24.
const SplitSteps = 514

// NewSplitInt16 takes run, which multiplies in values and writes out sums in total, n channels
// per row. workspace allocates float32 memory.
func NewSplitInt16(q *Requant16, n, in, out int, workspace func(n int) []float32, run func(p *workers.Pool, x, y []float32)) *SplitInt16 {
	q.prepare(n)
	s := &SplitInt16{n: n, q: q, run: run, size: out, x: [2][]float32{workspace(in), workspace(in)}, y: workspace(2*out + simd.NonzerosPadding)}
	s.split, s.finish = s.splitBytes, s.rows
	return s
}

// Run computes y from x.
func (s *SplitInt16) Run(p *workers.Pool, x, y []int16) {
	s.in, s.out = x, y
	p.For(len(x), 1<<14, s.split)
	for i := range 2 {
		s.run(p, s.x[i], s.y[i*s.size:][:s.size])
	}
	if s.n > 0 {
		p.For(len(y)/s.n, max(1, 1<<12/s.n), s.finish)
	}
	s.in, s.out = nil, nil
}

// splitBytes splits values lo to hi.
func (s *SplitInt16) splitBytes(lo, hi int) {
	upper, lower := s.x[0][lo:hi], s.x[1][lo:hi]
	if simd.IntKernels().SplitFloats(upper, lower, s.in[lo:hi]) {
		return
	}
	for i, v := range s.in[lo:hi] {
		upper[i], lower[i] = float32(v>>8), float32(v&255)
	}
}

// rows requantises rows lo to hi of the sums.
func (s *SplitInt16) rows(lo, hi int) {
	q, at := s.q, lo*s.n
	if q.scales != nil && simd.IntKernels().RequantiseFloats(s.out[at:], s.y[at:], hi-lo, s.n, s.size, q.scales, q.Zero, q.Min, q.Max) {
		return
	}
	for i := at; i < hi*s.n; i++ {
		s.out[i] = q.One(int64(s.y[i])<<8+int64(s.y[s.size+i]), i%s.n)
	}
}
