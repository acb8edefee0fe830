package nn

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/kernel"
	"github.com/opmeter/opmeter/internal/onnxop/elem"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// gemmShape is the checked geometry of a Gemm node.
type gemmShape struct {
	m, n, k        int
	transA, transB bool
	alpha, beta    float32
	cr, cc         int // strides of C along rows and columns
}

func newGemm(c *op.Call) (*gemmShape, error) {
	if err := c.NeedInputs(2); err != nil {
		return nil, err
	}
	a, b, at := c.In[0].Shape, c.In[1].Shape, c.Node.Attrs
	if len(a) != 2 || len(b) != 2 {
		return nil, fmt.Errorf("%s times %s", tensor.FormatShape(a), tensor.FormatShape(b))
	}
	v := &gemmShape{m: a[0], k: a[1], n: b[1], alpha: at.Float("alpha", 1), beta: at.Float("beta", 1)}
	v.transA, v.transB = at.Bool("transA", false), at.Bool("transB", false)
	kb := b[0]
	if v.transA {
		v.m, v.k = a[1], a[0]
	}
	if v.transB {
		kb, v.n = b[1], b[0]
	}
	if kb != v.k {
		return nil, fmt.Errorf("%s times %s with transA=%t, transB=%t", tensor.FormatShape(a), tensor.FormatShape(b), v.transA, v.transB)
	}
	if x := c.Input(2); x != nil {
		s := x.Shape
		if len(s) > 2 {
			return nil, fmt.Errorf("input C of shape %s", tensor.FormatShape(s))
		}
		rows, cols := 1, 1
		if len(s) > 0 {
			cols = s[len(s)-1]
		}
		if len(s) > 1 {
			rows = s[0]
		}
		if cols != 1 && cols != v.n || rows != 1 && rows != v.m {
			return nil, fmt.Errorf("input C of shape %s for a %dx%d result", tensor.FormatShape(s), v.m, v.n)
		}
		if cols != 1 {
			v.cc = 1
		}
		if rows != 1 {
			v.cr = cols
		}
	}
	return v, nil
}

func inferGemm(c *op.Call) error {
	v, err := newGemm(c)
	if err != nil {
		return err
	}
	c.SetOut(0, c.In[0].Type, []int{v.m, v.n})
	return nil
}

func prepareGemmAny(c *op.Call) (op.Run, error) {
	if f := tensor.PickInteger(c.In[0].Type, nil, nil, prepareIntegerGemm[int32], prepareIntegerGemm[int64], nil, nil, prepareIntegerGemm[uint32], prepareIntegerGemm[uint64]); f != nil {
		return f(c)
	}
	return elem.PrepareReal(c, prepareGemm32, prepareGemm[float64])
}

// prepareGemm32 takes the packed path when B is constant and C is a row or absent.
func prepareGemm32(c *op.Call) (op.Run, error) {
	v, err := newGemm(c)
	if err != nil {
		return nil, err
	}
	row := !c.Has(2) || v.cr == 0 && v.cc == 1 && v.beta == 1
	if v.alpha != 1 || !row || !c.Const(1) || v.m*v.n == 0 {
		return prepareGemm[float32](c)
	}
	b := kernel.PackB(v.k, v.n, tensor.Of[float32](c.In[1]), 0, v.transB)
	g := kernel.GemmParams{M: v.m, N: v.n, K: v.k, TransA: v.transA, Act: c.Activation}
	return func(c *op.Call) error {
		p := g
		if c.Has(2) {
			p.BiasN = tensor.Of[float32](c.In[2])
		}
		kernel.GemmPacked(c.Pool, p, tensor.Of[float32](c.In[0]), b, tensor.Of[float32](c.Out[0]))
		return nil
	}, nil
}

func prepareGemm[T tensor.Real](c *op.Call) (op.Run, error) {
	v, err := newGemm(c)
	if err != nil {
		return nil, err
	}
	act := c.Activation
	return func(c *op.Call) error {
		y := tensor.Of[T](c.Out[0])
		gemm(c.Pool, matrices{m: v.m, n: v.n, k: v.k, transA: v.transA, transB: v.transB},
			tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), y)
		finishGemm(c, v, y)
		clamp(act, y)
		return nil
	}, nil
}

func prepareIntegerGemm[T int32 | int64 | uint32 | uint64](c *op.Call) (op.Run, error) {
	v, err := newGemm(c)
	if err != nil {
		return nil, err
	}
	act := c.Activation
	return func(c *op.Call) error {
		y := tensor.Of[T](c.Out[0])
		plainGemm(c.Pool, matrices{m: v.m, n: v.n, k: v.k, transA: v.transA, transB: v.transB},
			tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), y)
		finishGemm(c, v, y)
		clampInts(act, y)
		return nil
	}, nil
}

// finishGemm scales the product and adds beta times C.
func finishGemm[T tensor.Number](c *op.Call, v *gemmShape, y []T) {
	if v.alpha != 1 {
		for i := range y {
			y[i] = T(float64(y[i]) * float64(v.alpha))
		}
	}
	if !c.Has(2) || v.beta == 0 {
		return
	}
	x := tensor.Of[T](c.In[2])
	for i := range v.m {
		row := y[i*v.n:][:v.n]
		for j := range row {
			t := x[i*v.cr+j*v.cc]
			if v.beta != 1 {
				t = T(float64(t) * float64(v.beta))
			}
			row[j] += t
		}
	}
}
