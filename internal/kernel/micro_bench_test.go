package kernel

import (
	"fmt"
	"testing"
	"time"
)

// quickest reports the rate of the quickest of many short rounds, which other
// load on the machine disturbs least.
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
