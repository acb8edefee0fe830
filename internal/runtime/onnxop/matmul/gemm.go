package matmul

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// GemmShape is the checked geometry of a Gemm node.
type GemmShape struct {
	M, N, K        int
	TransA, TransB bool
	Alpha, beta    float32
	Cr, Cc         int // strides of C along rows and columns
}

// NewGemm checks the shapes of a Gemm and sets output 0.
func NewGemm(c *op.Call) (*GemmShape, error) {
	a, b, at := c.In[0].Shape, c.In[1].Shape, c.Node.Attrs
	if len(a) != 2 || len(b) != 2 {
		return nil, fmt.Errorf("%s times %s", tensor.FormatShape(a), tensor.FormatShape(b))
	}
	v := &GemmShape{M: a[0], K: a[1], N: b[1], Alpha: at.Float("alpha", 1), beta: at.Float("beta", 1)}
	v.TransA, v.TransB = at.Bool("transA", false), at.Bool("transB", false)
	kb := b[0]
	if v.TransA {
		v.M, v.K = a[1], a[0]
	}
	if v.TransB {
		kb, v.N = b[1], b[0]
	}
	if kb != v.K {
		return nil, fmt.Errorf("%s times %s with transA=%t, transB=%t", tensor.FormatShape(a), tensor.FormatShape(b), v.TransA, v.TransB)
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
		if cols != 1 && cols != v.N || rows != 1 && rows != v.M {
			return nil, fmt.Errorf("input C of shape %s for a %dx%d result", tensor.FormatShape(s), v.M, v.N)
		}
		if cols != 1 {
			v.Cc = 1
		}
		if rows != 1 {
			v.Cr = cols
		}
	}
	c.SetOut(0, c.In[0].Type, []int{v.M, v.N})
	return v, nil
}

func prepareGemmAny(c *op.Call) (op.Run, error) {
	if f := tensor.PickInteger(c.In[0].Type, nil, nil, prepareIntegerGemm[int32], prepareIntegerGemm[int64], nil, nil, prepareIntegerGemm[uint32], prepareIntegerGemm[uint64]); f != nil {
		return f(c)
	}
	return elem.PrepareReal(c, PrepareGemm32, PrepareGemm[float64])
}

// packs reports whether a float32 Gemm packs B.
func (v *GemmShape) packs(c *op.Call) bool {
	row := !c.Has(2) || v.Cr == 0 && v.Cc == 1 && v.beta == 1
	return v.Alpha == 1 && row && c.Const(1) && v.M*v.N > 0
}

// takesSame reports whether Gemm does not need the elements of a uniform B. Zeros are skipped,
// and not packed.
func takesSame(c *op.Call, i int, one *tensor.Tensor) bool {
	if i != 1 || one.Type != tensor.Float32 || c.In[0].Type != tensor.Float32 || !one.Known() || tensor.Single[float32](one) == 0 {
		return false
	}
	v, err := NewGemm(c)
	return err == nil && v.packs(c)
}

// PrepareGemm32 uses the packed path if B is constant and C is a row or absent.
func PrepareGemm32(c *op.Call) (op.Run, error) {
	v := op.Must(NewGemm(c))
	if !v.packs(c) {
		return PrepareGemm[float32](c)
	}
	b := packed(c, v.M, v.K, v.N, v.TransB)
	c.Copied(1)
	g := gemm.Params{M: v.M, N: v.N, K: v.K, TransA: v.TransA, Act: c.Activation}
	c.Kernel = b.Name(g)
	return func(c *op.Call) error {
		p := g
		if c.Has(2) {
			p.BiasN = tensor.Of[float32](c.In[2])
		}
		gemm.MultiplyPacked(c.Pool, p, tensor.Of[float32](c.In[0]), b, tensor.Of[float32](c.Out[0]))
		return nil
	}, nil
}

// packed packs input 1, a constant of k by n values or its transpose, for products of m rows.
func packed(c *op.Call, m, k, n int, turned bool) *gemm.PackedB {
	if len(c.Uniform) > 1 && c.Uniform[1] != nil {
		c.Keep(4 * k * n)
		return gemm.PackConstant(k, n, tensor.Single[float32](c.Uniform[1]))
	}
	far := c.ConstantsExceedCache()
	return op.Share(c, 1, fmt.Sprintf("product %d %d %t %t", k, n, turned, m == 1), func() *gemm.PackedB {
		c.Keep(4 * k * n)
		b := gemm.PackForRows(m, far, k, n, tensor.Of[float32](c.In[1]), 0, turned)
		c.Keep(-b.Saved())
		return b
	})
}

// PrepareGemm makes a Gemm of floating-point matrices.
func PrepareGemm[T tensor.Real](c *op.Call) (op.Run, error) {
	v := op.Must(NewGemm(c))
	act := c.Activation
	c.Kernel = "unpacked"
	return func(c *op.Call) error {
		y := tensor.Of[T](c.Out[0])
		Gemm(c.Pool, Matrices{M: v.M, N: v.N, K: v.K, TransA: v.TransA, TransB: v.TransB},
			tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), y)
		finishGemm(c, v, y)
		elem.Clamp(act, y)
		return nil
	}, nil
}

func prepareIntegerGemm[T int32 | int64 | uint32 | uint64](c *op.Call) (op.Run, error) {
	v := op.Must(NewGemm(c))
	act := c.Activation
	return func(c *op.Call) error {
		y := tensor.Of[T](c.Out[0])
		PlainGemm(c.Pool, Matrices{M: v.M, N: v.N, K: v.K, TransA: v.TransA, TransB: v.TransB},
			tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), y)
		finishGemm(c, v, y)
		clampInts(act, y)
		return nil
	}, nil
}

// finishGemm scales the product and adds beta times C.
func finishGemm[T tensor.Number](c *op.Call, v *GemmShape, y []T) {
	if v.Alpha != 1 {
		for i := range y {
			y[i] = T(float64(y[i]) * float64(v.Alpha))
		}
	}
	if !c.Has(2) || v.beta == 0 {
		return
	}
	x := tensor.Of[T](c.In[2])
	for i := range v.M {
		row := y[i*v.N:][:v.N]
		for j := range row {
			t := x[i*v.Cr+j*v.Cc]
			if v.beta != 1 {
				t = T(float64(t) * float64(v.beta))
			}
			row[j] += t
		}
	}
}
