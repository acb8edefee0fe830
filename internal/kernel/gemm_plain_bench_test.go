package kernel

import (
	"fmt"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/kernel/activation"
)

// quickest reports the rate of the fastest of many short rounds, which other load on the machine
// disturbs least.
func quickest(b *testing.B, unit string, work float64, f func()) {
	rounds := max(1, int(1e5/work))
	least := time.Hour
	for b.Loop() {
		start := time.Now()
		for range rounds {
			f()
		}
		least = min(least, time.Since(start))
	}
	b.ReportMetric(work*float64(rounds)/least.Seconds()/1e9, unit)
}

func BenchmarkMicro(b *testing.B) {
	for _, k := range []int{9, 27, 64, 576} {
		b.Run(fmt.Sprint("float32/", k), func(b *testing.B) { benchmarkMicro[float32](b, k) })
		b.Run(fmt.Sprint("float64/", k), func(b *testing.B) { benchmarkMicro[float64](b, k) })
	}
}

func benchmarkMicro[T float32 | float64](b *testing.B, k int) {
	left, right := make([]T, k*rowsPanel), make([]T, k*colsPanel)
	var acc [8]T
	quickest(b, "GFLOP/s", float64(2*8*k), func() { micro(k, left, right, &acc) })
}

// BenchmarkWinograd shows from how many channels Winograd is faster.
func BenchmarkWinograd(b *testing.B) {
	for _, n := range []int{8, 12, 16, 24, 32, 128} {
		s := ConvShape{N: 1, C: n, H: 28, W: 28, OC: n, OH: 28, OW: 28, KH: 3, KW: 3, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, PadT: 1, PadL: 1}
		x, w, y := make([]float32, n*28*28), make([]float32, n*n*9), make([]float32, n*28*28)
		for _, minimal := range []bool{false, true} {
			c := NewConvNCHW(s, w, nil, activation.Clamp{})
			c.winograd2 = minimal
			c.SetWeights(w, nil)
			b.Run(fmt.Sprintf("%d/%t", n, minimal), func(b *testing.B) {
				quickest(b, "GFLOP/s", float64(2*n*n*9*28*28), func() { c.Run(nil, x, y) })
			})
		}
	}
}
