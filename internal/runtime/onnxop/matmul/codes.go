package matmul

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// CodesMatMul is created by plans for a MatMul whose constant weights come from DequantizeLinear:
// x [..., K], quantised weights [K, N], scales and zero points for blocks of block_size rows
// [blocks, N] or, without blocks, one per column or per tensor; a bias [N].

// codesProduct is its geometry.
type codesProduct struct {
	m, n, k, block, blocks int
	bits                   int
	signed                 bool
}

func newCodesProduct(c *op.Call) (*codesProduct, error) {
	x, w, s := c.In[0].Shape, c.In[1].Shape, c.In[2]
	v := &codesProduct{block: c.Node.Attrs.Int("block_size", 0)}
	switch c.In[1].Type {
	case tensor.Int4, tensor.Int8:
		v.signed = true
	case tensor.Uint4, tensor.Uint8:
	default:
		return nil, op.Unsupported("codes of %v", c.In[1].Type)
	}
	v.bits = c.In[1].Type.Bits()
	if len(w) != 2 || len(x) < 1 || x[len(x)-1] != w[0] || w[0] < 1 || v.block < 0 {
		return nil, fmt.Errorf("input %s for codes %s in blocks of %d", tensor.FormatShape(x), tensor.FormatShape(w), v.block)
	}
	v.m, v.k, v.n, v.blocks = tensor.Elements(x[:len(x)-1]), w[0], w[1], 1
	fits := s.Len() == 1 || slices.Equal(s.Shape, w[1:])
	if v.block > 0 {
		v.blocks = (v.k + v.block - 1) / v.block
		fits = slices.Equal(s.Shape, []int{v.blocks, v.n})
	}
	if z := c.Input(3); !fits || z != nil && (z.Len() != s.Len() || z.Type != c.In[1].Type) {
		return nil, fmt.Errorf("scales %s and zero points for codes %s in blocks of %d", tensor.FormatShape(s.Shape), tensor.FormatShape(w), v.block)
	}
	if b := c.Input(4); b != nil && b.Len() != v.n {
		return nil, fmt.Errorf("bias %s for %d columns", tensor.FormatShape(b.Shape), v.n)
	}
	c.SetOut(0, c.In[0].Type, append(slices.Clone(x[:len(x)-1]), v.n))
	return v, nil
}

func prepareCodesMatMul(c *op.Call) (op.Run, error) {
	v := op.Must(newCodesProduct(c))
	if !c.Known(1, 2, 3) {
		return nil, op.Unsupported("codes, scales and zero points that are not constant")
	}
	act := c.Activation
	w := v.packed(c)
	for i := 1; i <= 3; i++ {
		if c.Has(i) {
			c.Copied(i)
		}
	}
	if w != nil {
		c.Kernel = w.Name()
		return func(c *op.Call) error {
			w.Run(c.Pool, v.m, tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0]), elem.Elements[float32](c, 4), act)
			return nil
		}, nil
	}
	g := gemm.Params{M: v.m, N: v.n, K: v.k, Act: act}
	c.Keep(4 * v.k * v.n)
	kept := gemm.PackB(v.k, v.n, v.wide(c), 0, false)
	c.Kernel = kept.Name(g)
	return func(c *op.Call) error {
		g.BiasN = elem.Elements[float32](c, 4)
		gemm.MultiplyPacked(c.Pool, g, tensor.Of[float32](c.In[0]), kept, tensor.Of[float32](c.Out[0]))
		return nil
	}, nil
}

// place returns the index of a weight's scale.
func (v *codesProduct) place(scales, row, col int) int {
	switch {
	case scales == 1:
		return 0
	case v.block == 0:
		return col
	}
	return row/v.block*v.n + col
}

// wide dequantises the weights to float32.
func (v *codesProduct) wide(c *op.Call) []float32 {
	w, scales, zeros := make([]float32, v.k*v.n), tensor.Of[float32](c.In[2]), c.Input(3)
	tensor.Read(w, c.In[1], 0)
	for i := range w {
		at := v.place(len(scales), i/v.n, i%v.n)
		if zeros != nil {
			w[i] -= float32(tensor.At(zeros, at))
		}
		w[i] *= scales[at]
	}
	return w
}

// packed keeps the weights quantised; nil if they are few, or the instruction set has no kernels
// for them.
func (v *codesProduct) packed(c *op.Call) *gemm.LowBitMatrix {
	shape := gemm.LowBitShape{Bits: v.bits, K: v.k, N: v.n, Block: v.block}
	if v.block == 0 {
		shape.Block = (v.k + gemm.LowBitBlock - 1) / gemm.LowBitBlock * gemm.LowBitBlock
	}
	if !shape.KeepsLowBit(v.m) {
		return nil
	}
	c.Keep(v.k * v.n * v.bits / 8)
	given := tensor.Of[float32](c.In[2])
	scales := make([]float32, v.n*v.blocks)
	middle := 0
	if !v.signed {
		middle = 1 << (v.bits - 1)
	}
	var zeros []int8
	// codes without a sign are numbers from zero on where nothing else is said
	if c.Has(3) || middle > 0 {
		zeros = make([]int8, len(scales))
	}
	for i := range scales {
		at := v.place(len(given), i%v.blocks*v.block, i/v.blocks)
		if scales[i] = given[at]; zeros != nil {
			zero := 0
			if c.Has(3) {
				zero = int(tensor.At(c.In[3], at))
			}
			zeros[i] = int8(zero - middle)
		}
	}
	return gemm.NewLowBitMatrix(shape, v.turned(c.In[1].Data, v.blocks*shape.Block), v.signed, scales, zeros)
}

// turned returns the transposed matrix with a row of line quantised values for each column.
func (v *codesProduct) turned(codes []uint8, line int) []uint8 {
	row := line * v.bits / 8
	out := make([]uint8, v.n*row)
	if v.bits == 8 {
		const side = 64
		for j0 := 0; j0 < v.n; j0 += side {
			for k := range v.k {
				for j, q := range codes[k*v.n+j0:][:min(side, v.n-j0)] {
					out[(j0+j)*row+k] = q
				}
			}
		}
		return out
	}
	const side = 64
	for j0 := 0; j0 < v.n; j0 += side {
		for k := range v.k {
			shift := k % 2 * 4
			for j := j0; j < min(j0+side, v.n); j++ {
				at := k*v.n + j
				out[j*row+k/2] |= codes[at/2] >> (at % 2 * 4) & 15 << shift
			}
		}
	}
	return out
}
