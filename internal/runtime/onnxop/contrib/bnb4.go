package contrib

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// MatMulBnb4: y = a·bᵀ with b [N, K] in 4-bit values, the first of a byte in its upper half, and a
// scale for each block of the flattened matrix.

// bnb4Values lists the values of the two types: FP4 and NF4, as bitsandbytes defines them.
var bnb4Values = [2][16]float32{
	{0, 0.00520833333, 0.66666667, 1, 0.33333333, 0.5, 0.16666667, 0.25, 0, -0.00520833333, -0.66666667, -1, -0.33333333, -0.5, -0.16666667, -0.25},
	{
		-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0,
		0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1,
	},
}

type bnb4 struct{ m, n, k, block, kind int }

func newBnb4(c *op.Call) (*bnb4, error) {
	x, a := c.In[0].Shape, c.Node.Attrs
	v := &bnb4{n: a.Int("N", 0), k: a.Int("K", 0), block: a.Int("block_size", 0), kind: a.Int("quant_type", -1)}
	if !a.Bool("transB", true) || a.Bool("training_mode", false) {
		return nil, op.Unsupported("transB 0 or training_mode 1")
	}
	if v.kind != 0 && v.kind != 1 {
		return nil, op.Unsupported("quant_type %d", v.kind)
	}
	if len(x) < 1 || v.n < 1 || v.k < 1 || v.block < 1 || x[len(x)-1] != v.k || v.n > tensor.MaxBytes/v.k {
		return nil, fmt.Errorf("input %s with K=%d, N=%d, block_size=%d", tensor.FormatShape(x), v.k, v.n, v.block)
	}
	v.m = tensor.Elements(x[:len(x)-1])
	if want := (v.n*v.k + 1) / 2; c.In[1].Type != tensor.Uint8 || c.In[1].Len() != want {
		return nil, fmt.Errorf("weights %s of %v, want %d bytes", tensor.FormatShape(c.In[1].Shape), c.In[1].Type, want)
	}
	if want := (v.n*v.k + v.block - 1) / v.block; c.In[2].Len() != want {
		return nil, fmt.Errorf("absmax %s, want %d", tensor.FormatShape(c.In[2].Shape), want)
	}
	c.SetOut(0, c.In[0].Type, append(slices.Clone(x[:len(x)-1]), v.n))
	return v, nil
}

// prepareBnb4 dequantises some rows of the weights at a time.
func prepareBnb4(c *op.Call) (op.Run, error) {
	v := op.Must(newBnb4(c))
	height := min(nBitsRows, v.n)
	c.Kernel = gemm.Name(gemm.Params{M: v.m, N: height, K: v.k, TransB: true})
	rows := op.ScratchOf[float32](c, c.Pool.Threads()*height*v.k)
	return func(c *op.Call) error {
		x, y := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0])
		codes, scales := tensor.Of[uint8](c.In[1]), tensor.Of[float32](c.In[2])
		c.Pool.ForWorker((v.n+height-1)/height, 1, func(worker, lo, hi int) {
			workspace := rows[worker*height*v.k:][:height*v.k]
			for n0 := lo * height; n0 < min(v.n, hi*height); n0 += height {
				g := gemm.Params{M: v.m, N: min(height, v.n-n0), K: v.k, TransB: true, LDC: v.n}
				for i := range g.N * v.k {
					at := n0*v.k + i
					workspace[i] = bnb4Values[v.kind][codes[at/2]>>(4-at%2*4)&15] * scales[at/v.block]
				}
				gemm.Multiply(nil, g, x, workspace, y[n0:])
			}
		})
		return nil
	}, nil
}
