package contrib

import (
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestMatMulBnb4 compares with the sum over dequantised weights. Blocks run on over rows.
func TestMatMulBnb4(t *testing.T) {
	t.Parallel()
	const m, k, block = 3, 7, 16
	for _, n := range []int{5, 70} {
		for kind := range 2 {
			r := source(uint64(n + kind))
			a, w, s := random(r, tensor.Float32, m, k), random(r, tensor.Uint8, (n*k+1)/2), random(r, tensor.Float32, (n*k+block-1)/block)
			node := optest.Node{Domain: graph.Microsoft, Op: "MatMulBnb4", Version: 1, Attrs: graph.Attrs{
				"K": int64(k), "N": int64(n), "block_size": int64(block), "quant_type": int64(kind),
			}}
			want := make([]float64, m*n)
			for i := range want {
				for q := range k {
					at := i%n*k + q
					code := w.Data[at/2] >> 4
					if at%2 == 1 {
						code = w.Data[at/2] & 15
					}
					want[i] += tensor.At(a, i/n*k+q) * float64(bnb4Values[kind][code]) * tensor.At(s, at/block)
				}
			}
			near(t, "product", run(t, node, a, w, s)[0], want, 1e-5)
			for name, v := range map[string]int64{"transB": 0, "training_mode": 1, "quant_type": 2, "K": 8, "N": 4, "block_size": 0} {
				old, had := node.Attrs[name]
				node.Attrs[name] = v
				if _, err := optest.Run(allDefs(), node, a, w, s); err == nil || strings.Contains(err.Error(), "panic") {
					t.Errorf("%s %d: error %v", name, v, err)
				}
				if delete(node.Attrs, name); had {
					node.Attrs[name] = old
				}
			}
		}
	}
}
