package activation

import (
	"math"
	"sync"

	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/libm"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// curve8 is the logistic function or tanh on int8: inputs are scaled to Q4.27 and saturate
// outside ±15.
type curve8 struct {
	exact  func(a int32) int32 // of Q4.27 to Q0.31
	rows   func(dst, src []float32)
	shift  int // of Q0.31 to codes
	offset int32
}

var (
	logistic8 = curve8{func(a int32) int32 { return fixed.Logistic(a, 4) }, libm.SigmoidTo, 23, -128}
	tanh8     = curve8{func(a int32) int32 { return fixed.Tanh(a, 4) }, libm.TanhTo, 24, 0}
)

func (f curve8) prepare(c *op.Call) (op.Run, error) {
	if x, y := c.In[0].Type, c.Out[0].Type; x != tensor.Int8 {
		return nil, op.Unsupported("%v input", x)
	} else if y != tensor.Int8 {
		return nil, op.Unsupported("%v input with %v output", x, y)
	}
	s, z, err := layer.ScaleOf(c.In[0])
	if err != nil {
		return nil, err
	}
	return layer.Lookup(0, f.table(s, z)), nil
}

// nearHalf is the distance from the middle between two quantised values within which floating
// point does not decide. The functions in fixed point and in float32 both have errors below
// 1/10000 of a step.
const nearHalf = 1. / 64

// curveWorkspaces is a pool of scratch memory for the arguments and results of a floating-point
// table.
var curveWorkspaces = sync.Pool{New: func() any { return new([2][256]float32) }}

// table computes the results of all 256 values. The results are those of fixed point; floating
// point determines most of them much faster.
func (f curve8) table(scale float32, zero int32) *[256]uint8 {
	m := fixed.FromReal(float64(scale) * (1 << 27))
	radius := math.Floor(math.Ldexp(15*(1<<27), -m.Shift))
	r := curveWorkspaces.Get().(*[2][256]float32)
	defer curveWorkspaces.Put(r)
	x, y := &r[0], &r[1]
	for i := range x {
		x[i] = float32(m.Apply(int32(i)-128-zero)) / (1 << 27)
	}
	f.rows(y[:], x[:])
	var table [256]uint8
	for i := range y {
		v, q := int32(i)-128-zero, int32(math.MaxInt8)
		if d := float64(v); d <= -radius {
			q = math.MinInt8
		} else if d < radius {
			real := float64(y[i]) * float64(int64(1)<<(31-f.shift))
			whole := math.Floor(real)
			if part := real - whole; part < 0.5-nearHalf {
				q = int32(whole)
			} else if part > 0.5+nearHalf {
				q = int32(whole) + 1
			} else {
				q = fixed.RoundShift(f.exact(m.Apply(v)), f.shift)
			}
			q = min(max(q+f.offset, math.MinInt8), math.MaxInt8)
		}
		table[uint8(i-128)] = uint8(q)
	}
	return &table
}
