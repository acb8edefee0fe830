package gemm

import (
	"fmt"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/kernels"
)

func BenchmarkMicro(b *testing.B) {
	for _, k := range []int{9, 27, 64, 576} {
		b.Run(fmt.Sprint("float32/", k), func(b *testing.B) { benchmarkMicro[float32](b, k) })
		b.Run(fmt.Sprint("float64/", k), func(b *testing.B) { benchmarkMicro[float64](b, k) })
	}
}

func benchmarkMicro[T float32 | float64](b *testing.B, k int) {
	left, right := make([]T, k*RowsPanel), make([]T, k*ColsPanel)
	var acc [8]T
	kernels.Quickest(b, "GFLOP/s", float64(2*8*k), func() { Micro(k, left, right, &acc) })
}
