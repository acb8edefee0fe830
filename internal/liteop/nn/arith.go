package nn

import (
	"errors"
	"math"

	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// arith names a binary operator.
type arith uint8

const (
	addOp arith = iota
	subOp
	mulOp
	divOp
	maxOp
	minOp
	sqdiffOp
)

var errDivision = errors.New("division by zero")

func prepareArith(k arith) func(c *op.Call) (op.Run, error) {
	return func(c *op.Call) (op.Run, error) {
		w, err := newBroadcast(c.In[0].Shape, c.In[1].Shape)
		if err != nil {
			return nil, err
		}
		t := c.In[0].Type
		if (t == tensor.Int8 || t == tensor.Uint8 || t == tensor.Int16) && k != maxOp && k != minOp && (quantised(c.In[0]) || quantised(c.Out[0])) {
			switch t {
			case tensor.Int8:
				return quantArith[int8](c, k, w)
			case tensor.Uint8:
				return quantArith[uint8](c, k, w)
			}
			return quantArith[int16](c, k, w)
		}
		if c.Out[0].Type != t {
			return nil, op.Unsupported("%v inputs with %v output", t, c.Out[0].Type)
		}
		if f := tensor.PickInteger(t, plainArith[int8], plainArith[int16], plainArith[int32], plainArith[int64], plainArith[uint8], plainArith[uint16], plainArith[uint32], nil); f != nil {
			return f(c, k, w)
		}
		switch t {
		case tensor.Float32:
			return floatArith(c, k, w)
		}
		return nil, op.Unsupported("%v inputs", t)
	}
}

func floatArith(c *op.Call, k arith, w *broadcast) (op.Run, error) {
	act, err := activation(c)
	if err != nil {
		return nil, err
	}
	ta, tb := w.steps()
	return func(c *op.Call) error {
		x, y, out := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.In[1]), tensor.Of[float32](c.Out[0])
		w.each(c.Pool, func(a, b, o, n int) {
			dst := out[o : o+n]
			combine(k, dst, x[a:a+(n-1)*ta+1], y[b:b+(n-1)*tb+1])
			if act.On {
				for i, v := range dst {
					dst[i] = min(max(v, act.Min), act.Max)
				}
			}
		})
		return nil
	}, nil
}

// combine works on one row; an input of one element stands for a whole row.
func combine[T int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | float32](k arith, dst, x, y []T) {
	if len(dst) > 1 && len(x) == 1 {
		single(k, dst, x[0], y, true)
		return
	}
	if len(dst) > 1 && len(y) == 1 {
		single(k, dst, y[0], x, false)
		return
	}
	x, y = x[:len(dst)], y[:len(dst)]
	switch k {
	case addOp:
		for i := range dst {
			dst[i] = x[i] + y[i]
		}
	case subOp:
		for i := range dst {
			dst[i] = x[i] - y[i]
		}
	case mulOp:
		for i := range dst {
			dst[i] = x[i] * y[i]
		}
	case divOp:
		for i := range dst {
			dst[i] = x[i] / y[i]
		}
	case maxOp:
		for i := range dst {
			dst[i] = max(x[i], y[i])
		}
	case minOp:
		for i := range dst {
			dst[i] = min(x[i], y[i])
		}
	case sqdiffOp:
		for i := range dst {
			d := x[i] - y[i]
			dst[i] = d * d
		}
	}
}

// single is combine with a scalar s on the left or on the right.
func single[T int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | float32](k arith, dst []T, s T, v []T, left bool) {
	v = v[:len(dst)]
	switch {
	case k == addOp:
		for i, e := range v {
			dst[i] = e + s
		}
	case k == subOp && left:
		for i, e := range v {
			dst[i] = s - e
		}
	case k == subOp:
		for i, e := range v {
			dst[i] = e - s
		}
	case k == mulOp:
		for i, e := range v {
			dst[i] = e * s
		}
	case k == divOp && left:
		for i, e := range v {
			dst[i] = s / e
		}
	case k == divOp:
		for i, e := range v {
			dst[i] = e / s
		}
	case k == maxOp:
		for i, e := range v {
			dst[i] = max(e, s)
		}
	case k == minOp:
		for i, e := range v {
			dst[i] = min(e, s)
		}
	default:
		for i, e := range v {
			d := e - s
			dst[i] = d * d
		}
	}
}

// plainArith works on integers without scales. Sums wrap, as in C.
func plainArith[T int8 | uint8 | int16 | uint16 | int32 | uint32 | int64](c *op.Call, k arith, w *broadcast) (op.Run, error) {
	act, err := activation(c)
	if err != nil {
		return nil, err
	}
	ta, tb := w.steps()
	return func(c *op.Call) error {
		x, y, out := tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), tensor.Of[T](c.Out[0])
		if k == divOp {
			for _, v := range y {
				if v == 0 {
					return errDivision
				}
			}
		}
		w.each(c.Pool, func(a, b, o, n int) {
			dst := out[o : o+n]
			combine(k, dst, x[a:a+(n-1)*ta+1], y[b:b+(n-1)*tb+1])
			if !act.On {
				return
			}
			for i, v := range dst {
				if !math.IsInf(float64(act.Min), 0) && v < T(act.Min) {
					v = T(act.Min)
				}
				if !math.IsInf(float64(act.Max), 0) && v > T(act.Max) {
					v = T(act.Max)
				}
				dst[i] = v
			}
		})
		return nil
	}, nil
}
