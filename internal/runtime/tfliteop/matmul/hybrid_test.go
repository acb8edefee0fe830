package matmul

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestHybridProducts compares products of floats by 8-bit numbers with their definition,
// bit-exactly: either operand transposed or not, one weight matrix for all or one each.
func TestHybridProducts(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(8, 1))
	for i := range 64 {
		adjX, adjY, asym, shared := i%2 == 1, i/2%2 == 1, i/4%2 == 1, i/8%2 == 1
		batch, m, n, k := 1+r.IntN(3), 1+r.IntN(40), 1+r.IntN(40), 1+r.IntN(50)
		x, w, weights := make([]float64, batch*m*k), make([]float64, batch*k*n), batch
		for i := range x {
			x[i] = float64(float32(r.NormFloat64()))
		}
		if shared {
			w, weights = w[:k*n], 1
		}
		for i := range w {
			w[i] = float64(r.IntN(255) - 127)
		}
		const by = float32(0.03)
		want := make([]float64, batch*m*n)
		row, q := make([]float32, k), make([]float32, k)
		for at := range batch * m {
			b := at / m
			for i := range row {
				if adjX {
					row[i] = float32(x[b*m*k+i*m+at%m])
				} else {
					row[i] = float32(x[at*k+i])
				}
			}
			scale, _ := layer.QuantiseRow(q, row, asym)
			for j := range n {
				var sum float64
				for i, v := range q {
					if adjY {
						sum += float64(v) * w[b%weights*k*n+j*k+i]
					} else {
						sum += float64(v) * w[b%weights*k*n+i*n+j]
					}
				}
				want[at*n+j] = float64(float32(sum) * (scale * by))
			}
		}
		xs, ys := []int{batch, m, k}, []int{weights, k, n}
		if adjX {
			xs[1], xs[2] = k, m
		}
		if adjY {
			ys[1], ys[2] = n, k
		}
		node := optest.Lite("BATCH_MATMUL", graph.Attrs{"adj_x": adjX, "adj_y": adjY, "asymmetric_quantize_inputs": asym}, tensor.Float32, nil)
		optest.Exactly(t, fmt.Sprintf("%d: %d of %d by %d by %d", i, batch, m, n, k), Defs(), node, []int{batch, m, n}, want,
			optest.Of(tensor.Float32, nil, xs, x...), optest.Of(tensor.Int8, optest.Affine(0, by), ys, w...))
	}
}
