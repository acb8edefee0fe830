package contrib

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// ExpertMatMul (opmeter): y[t, s] = dequantised(b[ids[t, s]])·x[t, s], for mixtures of experts and
// for matrices of single heads. Inputs: x [..., slots or 1, K], the matrices b of all experts in
// the form of MatMulNBits or [experts, N, K] in floating point, scales, zero_points, and as input 6
// the ids [..., slots], or [slots] for all rows.

// expertIDs is the input with the ids.
const expertIDs = 6

type expertMatMul struct {
	nBits
	experts, rows, slots int
	single               bool // all slots of a row multiply the same x
	shared               bool // all rows have the same ids
}

func newExpertMatMul(c *op.Call) (*expertMatMul, error) {
	x, a := c.In[0].Shape, c.Node.Attrs
	v := &expertMatMul{experts: a.Int("experts", 0), nBits: nBits{n: a.Int("N", 0), k: a.Int("K", 0), bits: a.Int("bits", 0), block: a.Int("block_size", 0)}}
	ids := c.Input(expertIDs)
	if ids == nil || ids.Type != tensor.Int64 || len(ids.Shape) == 0 {
		return nil, fmt.Errorf("the ids of the experts are missing")
	}
	if len(x) < 2 || x[len(x)-1] != v.k || v.experts < 1 || v.n < 1 || v.k < 1 {
		return nil, fmt.Errorf("input %s for %d experts with K=%d, N=%d", tensor.FormatShape(x), v.experts, v.k, v.n)
	}
	lead := x[:len(x)-2]
	v.rows, v.slots = tensor.Elements(lead), ids.Shape[len(ids.Shape)-1]
	v.single = x[len(x)-2] == 1 && v.slots != 1
	v.shared = len(ids.Shape) == 1 && len(lead) > 0
	if !v.single && x[len(x)-2] != v.slots || !v.shared && !slices.Equal(ids.Shape[:len(ids.Shape)-1], lead) {
		return nil, fmt.Errorf("input %s with ids %s", tensor.FormatShape(x), tensor.FormatShape(ids.Shape))
	}
	if err := v.weights(c); err != nil {
		return nil, err
	}
	c.SetOut(0, c.In[0].Type, append(slices.Clone(lead), v.slots, v.n))
	return v, nil
}

// weights checks the matrices.
func (v *expertMatMul) weights(c *op.Call) error {
	w := c.In[1]
	if v.bits == 0 {
		if v.blocks = 1; w.Len() != v.experts*v.n*v.k || !w.Type.IsFloat() {
			return fmt.Errorf("weights %s of %v for %d experts with K=%d, N=%d", tensor.FormatShape(w.Shape), w.Type, v.experts, v.k, v.n)
		}
		return nil
	}
	if v.bits != 2 && v.bits != 4 && v.bits != 8 || v.block < 8 || v.k%v.block != 0 {
		return op.Unsupported("%d bits in blocks of %d", v.bits, v.block)
	}
	v.blocks, v.bytes = v.k/v.block, v.block*v.bits/8
	all := v.experts * v.n * v.blocks
	if w.Type != tensor.Uint8 || w.Len() != all*v.bytes {
		return fmt.Errorf("weights %s of %v, want %d bytes", tensor.FormatShape(w.Shape), w.Type, all*v.bytes)
	}
	for _, i := range []int{2, 3} {
		if s := c.Input(i); s == nil && i == 2 || s != nil && (s.Len() != all || s.Type != tensor.Float32) {
			return fmt.Errorf("scales and zero points must have %d values in float32", all)
		}
	}
	return nil
}

// row returns the function that writes row n of all matrices in float32.
func (v *expertMatMul) row(c *op.Call) (func(dst []float32, n int), error) {
	if v.bits != 0 {
		return v.nBits.rows(c)
	}
	w := c.In[1]
	if w.Type == tensor.Float32 {
		all := tensor.Of[float32](w)
		return func(dst []float32, n int) { copy(dst, all[n*v.k:]) }, nil
	}
	return func(dst []float32, n int) { elem.ReadHalves(dst, w, n*v.k) }, nil
}

// slot is a product: place is row·slots + slot.
type slot struct{ expert, place int }

func prepareExpertMatMul(c *op.Call) (op.Run, error) {
	v := op.Must(newExpertMatMul(c))
	all := v.rows * v.slots
	order := make([]slot, all)
	x, y := op.ScratchOf[float32](c, all*v.k), op.ScratchOf[float32](c, all*v.n)
	multiply := v.lowBit(c)
	if multiply == nil {
		multiply = v.parts(c)
	}
	return func(c *op.Call) error {
		if err := v.assign(c, order); err != nil {
			return err
		}
		in, out := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0])
		for i, s := range order {
			from := s.place
			if v.single {
				from /= v.slots
			}
			copy(x[i*v.k:][:v.k], in[from*v.k:])
		}
		for lo := 0; lo < all; {
			hi := lo + 1
			for hi < all && order[hi].expert == order[lo].expert {
				hi++
			}
			if err := multiply(c, order[lo].expert, hi-lo, x[lo*v.k:hi*v.k], y[lo*v.n:hi*v.n]); err != nil {
				return err
			}
			lo = hi
		}
		for i, s := range order {
			copy(out[s.place*v.n:][:v.n], y[i*v.n:])
		}
		return nil
	}, nil
}

// assign sorts the products by their experts.
func (v *expertMatMul) assign(c *op.Call, order []slot) error {
	ids := tensor.Of[int64](c.In[expertIDs])
	for i := range order {
		id := ids[i%len(ids)]
		if id < 0 || id >= int64(v.experts) {
			return fmt.Errorf("expert %d of %d", id, v.experts)
		}
		order[i] = slot{int(id), i}
	}
	slices.SortFunc(order, func(a, b slot) int {
		if a.expert != b.expert {
			return a.expert - b.expert
		}
		return a.place - b.place
	})
	return nil
}

// expertProduct multiplies rows of x with the matrix of an expert.
type expertProduct func(c *op.Call, expert, rows int, x, y []float32) error

// lowBit packs the matrices in their quantised form, nil where that is not possible.
func (v *expertMatMul) lowBit(c *op.Call) expertProduct {
	if v.bits == 0 || !c.Known(1, 2, 3) {
		return nil
	}
	part := func(i, e int) *tensor.Tensor {
		t := c.Input(i)
		if t == nil {
			return nil
		}
		size := len(t.Data) / v.experts
		return &tensor.Tensor{Type: t.Type, Shape: []int{t.Len() / v.experts}, Data: t.Data[e*size:][:size:size]}
	}
	c.Keep(packedBytes(c))
	packed := make([]*gemm.LowBitMatrix, v.experts)
	for e := range packed {
		if packed[e] = v.nBits.lowBit(part(1, e), part(2, e), part(3, e)); packed[e] == nil {
			return nil
		}
	}
	for i := 1; i <= 3; i++ {
		if c.Has(i) {
			c.Copied(i)
		}
	}
	c.Kernel = packed[0].Name()
	multiply := (*gemm.LowBitMatrix).Run
	if v.roundsInput(c) {
		c.Computes, multiply = tensor.Int8, (*gemm.LowBitMatrix).RunInt8
	}
	return func(c *op.Call, e, rows int, x, y []float32) error {
		multiply(packed[e], c.Pool, rows, x, y, nil, activation.Clamp{})
		return nil
	}
}

// parts widens some rows of a matrix at a time.
func (v *expertMatMul) parts(c *op.Call) expertProduct {
	height := min(nBitsRows, v.n)
	if c.Kernel = gemm.Name(gemm.Params{M: 1, N: height, K: v.k, TransB: true}); v.rows == 1 {
		c.Kernel = gemm.GemvName()
	}
	wide := op.ScratchOf[float32](c, c.Pool.Threads()*height*v.k)
	rounds := v.bits > 0 && v.roundsInput(c)
	return func(c *op.Call, e, rows int, x, y []float32) error {
		row, err := v.row(c)
		if err != nil {
			return err
		}
		if rounds {
			gemm.RoundInt8(c.Pool, v.block, v.k, x, x)
		}
		c.Pool.ForWorker((v.n+height-1)/height, 1, func(worker, lo, hi int) {
			w := wide[worker*height*v.k:][:height*v.k]
			for n0 := lo * height; n0 < min(v.n, hi*height); n0 += height {
				g := gemm.Params{M: rows, N: min(height, v.n-n0), K: v.k, TransB: true, LDB: v.k, LDC: v.n}
				for i := range g.N {
					row(w[i*v.k:][:v.k], e*v.n+n0+i)
				}
				if rows == 1 {
					gemm.Gemv(nil, y[n0:][:g.N], w[:g.N*v.k], x)
					continue
				}
				gemm.Multiply(nil, g, x, w, y[n0:])
			}
		})
		return nil
	}
}

// expertDef is an operator of readers, which files cannot name.
func expertDef() op.Def {
	return op.Def{Domain: graph.Own, Name: "ExpertMatMul", Since: 1, Types: []tensor.Type{tensor.Float32}, Infer: op.Needs(2, op.Infer(newExpertMatMul)), Prepare: prepareExpertMatMul}
}
