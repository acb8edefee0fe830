package recurrent

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/quant"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Additional inputs of com.microsoft's DynamicQuantizeLSTM. Its W and R are 8-bit quantised with
// the outputs last: [directions, inputs, 4·hidden].
const (
	inWScale = 8 + iota
	inWZero
	inRScale
	inRZero
)

// outputsLast reports whether W and R have the outputs as their last dimension.
func outputsLast(c *op.Call) bool { return c.Node.Op == "DynamicQuantizeLSTM" }

// byteGates multiplies rows of floats by the 8-bit weights of a direction. Rows are quantised to
// uint8 over their range, widened to include zero: all inputs of a sequence together, and each
// row of the state on its own. ONNX Runtime does the latter if it has a thread for each row, and
// takes several rows together if it has fewer.
type byteGates struct {
	n, k       int
	alone      bool // each row has its own range
	w          int  // the input with the weights; scale and zero point of them
	scale, off int
	rows       *tensor.Tensor
	sums, wide []int32
	factors    []float32 // scale of each output, by direction
	table      []gemm.ByteTable
	packed     []*gemm.PackedInt8 // by direction
	ready      bool
}

// newByteGates prepares products of at most rows rows.
func newByteGates(c *op.Call, v *recurrentShape, rows, w, scale, off int) (*byteGates, error) {
	g := &byteGates{n: v.gates * v.hidden, k: c.In[w].Shape[1], w: w, scale: scale, off: off, table: make([]gemm.ByteTable, 1)}
	if !quant.IsByte(c.In[w]) {
		return nil, op.Unsupported("weights of %v", c.In[w].Type)
	}
	for _, i := range []int{scale, off} {
		if x := c.Input(i); x == nil || x.Len() != v.dirs && x.Len() != v.dirs*g.n {
			return nil, fmt.Errorf("input %d has no scale or zero point for each direction or output", i)
		}
	}
	g.rows = &tensor.Tensor{Type: tensor.Uint8, Shape: []int{rows * g.k}, Data: c.Scratch(rows * g.k)}
	g.sums, g.factors = op.ScratchOf[int32](c, rows*g.n), make([]float32, v.dirs*g.n)
	c.Keep(v.dirs * g.n * g.k)
	for range v.dirs {
		g.packed = append(g.packed, gemm.NewPackedInt8(g.n, g.k))
	}
	if g.k == 0 || g.n == 0 {
		return g, nil
	}
	c.Kernel = g.packed[0].Name(rows)
	if c.Const(w) && c.Const(off) && c.Const(scale) {
		for d := range g.packed {
			g.fill(c, d)
		}
		g.ready = true
		c.Copied(w)
	} else {
		g.wide = op.ScratchOf[int32](c, g.n*g.k)
	}
	return g, nil
}

// fill packs the weights of a direction, and expands their scales.
func (g *byteGates) fill(c *op.Call, dir int) {
	wide := g.wide
	if wide == nil {
		wide = make([]int32, g.n*g.k)
	}
	tensor.Read(wide, c.In[g.w], dir*len(wide))
	zeros := quant.Zeros(c.In[g.off])
	per := len(zeros) / len(g.packed)
	for i := range wide {
		wide[i] -= zeros[dir*per+i%g.n%per]
	}
	g.packed[dir].Fill(wide, 1, g.n)
	scales := tensor.Of[float32](c.In[g.scale])
	per = len(scales) / len(g.packed)
	for j := range g.n {
		g.factors[dir*g.n+j] = scales[dir*per+j%per]
	}
}

// twin multiplies by the same weights with its own scratch memory, for another thread.
func (g *byteGates) twin(c *op.Call) *byteGates {
	t := *g
	t.rows = &tensor.Tensor{Type: tensor.Uint8, Shape: g.rows.Shape, Data: c.Scratch(len(g.rows.Data))}
	t.sums, t.table = op.ScratchOf[int32](c, len(g.sums)), make([]gemm.ByteTable, 1)
	if g.wide != nil {
		t.wide = op.ScratchOf[int32](c, len(g.wide))
	}
	return &t
}

// run multiplies rows x by the weights of a direction into y.
func (g *byteGates) run(c *op.Call, pool *workers.Pool, dir int, x, y []float32) {
	if g.k == 0 || g.n == 0 || len(x) == 0 {
		clear(y)
		return
	}
	if !g.ready {
		g.fill(c, dir)
	}
	rows := len(x)
	if g.alone {
		rows = g.k
	}
	for ; len(x) > 0; x, y = x[rows:], y[rows/g.k*g.n:] {
		g.multiply(pool, dir, x[:rows], y)
	}
}

// multiply computes rows that have one range.
func (g *byteGates) multiply(pool *workers.Pool, dir int, x, y []float32) {
	m := len(x) / g.k
	scale, zero := quant.Dynamic(x)
	quant.QuantizeReal(g.rows, 0, x, scale, zero)
	g.table[0].Fill(false, zero)
	sums := g.sums[:m*g.n]
	gemm.MultiplyInt8(pool, m, g.rows.Data, g.table, g.packed[dir], sums)
	factors := g.factors[dir*g.n:][:g.n]
	y = y[:len(sums)]
	if e := simd.ElementKernels(); e != nil && e.ScaleRows(y, g.n, sums, g.n, m, factors, nil, nil, scale, true) {
		return
	}
	element.Int32ToFloat32(y, sums)
	for ; len(y) > 0; y = y[g.n:] {
		for j, f := range factors {
			y[j] *= scale * f
		}
	}
}

func prepareDynamicQuantizeLSTM(c *op.Call) (_ op.Run, err error) {
	v := op.Must(newRecurrent(c, 4, "Sigmoid", "Tanh", "Tanh"))
	if v.batchFirst {
		return nil, op.Unsupported("layout 1")
	}
	q := newCells(c, v, lstmStep[float32])
	if q.bytesW, err = newByteGates(c, v, v.seq*v.batch, inW, inWScale, inWZero); err != nil {
		return nil, err
	}
	if q.bytesR, err = newByteGates(c, v, v.batch, inR, inRScale, inRZero); err != nil {
		return nil, err
	}
	q.bytesR.alone = true
	q.split(c)
	return q.run, nil
}
