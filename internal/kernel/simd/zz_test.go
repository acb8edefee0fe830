package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

func BenchmarkFuse(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	const n = 1024
	s := &Scales{Mul: make([]int32, n), Up: make([]int32, n), Down: make([]int32, n), Bias: make([]int32, n), Half: make([]int32, n)}
	least, most := make([]int32, n), make([]int32, n)
	for i := range n {
		s.Mul[i] = 1<<30 + int32(r.Uint32()>>2)
		if s.Mul[i] < 1<<30 {
			s.Mul[i] = math.MaxInt32
		}
		s.Down[i] = int32(6 + r.IntN(5))
		s.Half[i] = 1 << (s.Down[i] - 1)
		s.Bias[i] = int32(r.IntN(20000) - 10000)
		least[i], most[i] = -int32(r.IntN(1<<19)), int32(r.IntN(1<<19))
	}
	ok := 0
	b.ResetTimer()
	for b.Loop() {
		ok = 0
		for i := range n {
			if _, o := s.Fuse(i, least[i], most[i], -128, -128, 127); o {
				ok++
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/channel")
	b.ReportMetric(float64(ok)/n, "found")
}
