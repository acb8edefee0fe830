package array

import (
	"fmt"
	"testing"

	"github.com/opmeter/opmeter/internal/onnxop/move"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/workers"
)

// BenchmarkTranspose reports how fast bytes are moved; a plain copy is the bound.
func BenchmarkTranspose(b *testing.B) {
	pool := workers.New(1, nil)
	defer pool.Close()
	for _, tt := range []struct{ shape, perm []int }{
		{[]int{1 << 20}, []int{0}},
		{[]int{1, 224, 224, 3}, []int{0, 3, 1, 2}},
		{[]int{1, 3, 224, 224}, []int{0, 2, 3, 1}},
		{[]int{1, 56, 56, 64}, []int{0, 3, 1, 2}},
		{[]int{1024, 1024}, []int{1, 0}},
		{[]int{1, 128, 12, 64}, []int{0, 2, 1, 3}},
		{[]int{1, 128, 12, 64}, []int{0, 2, 3, 1}},
	} {
		for _, typ := range []tensor.Type{tensor.Float32, tensor.Uint8} {
			b.Run(fmt.Sprint(tt.shape, tt.perm, typ), func(b *testing.B) {
				x := tensor.New(typ, tt.shape...)
				st := tensor.Strides(tt.shape)
				var dims, src []int
				for _, a := range tt.perm {
					dims, src = append(dims, tt.shape[a]), append(src, st[a])
				}
				y := tensor.New(typ, dims...)
				var p move.Plan
				p.Set(dims, tensor.Strides(dims), src, 0, 0)
				b.SetBytes(int64(x.Bytes()))
				for b.Loop() {
					p.Run(pool, y, x)
				}
			})
		}
	}
}
