package tfliteop

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// recordedCase is one operator with the result of another engine.
type recordedCase struct {
	name, op string
	attrs    graph.Attrs
	in       []recordedTensor
	out      recordedOutput
}

// recordedTensor is an input filled by a congruential generator, so that recorded results need no
// input files.
type recordedTensor struct {
	t             tensor.Type
	shape         []int
	seed          uint32
	whole         []int32 // given instead of made
	scale         []float32
	zero          int64
	axis          int
	fixed         bool // a constant of the model
	state, absent bool // zeros that the operator keeps; nothing
}

// recordedOutput is the length of the result and the FNV-1a hash of its bytes.
type recordedOutput struct {
	t     tensor.Type
	scale float32
	zero  int64
	len   int
	hash  uint64
}

// make fills the tensor: floats in [-1, 1), the whole range of small types (int8 stays symmetric,
// as weights are), and 17 bits of larger integers.
func (r recordedTensor) make() *tensor.Tensor {
	if r.absent {
		return nil
	}
	x := tensor.New(r.t, r.shape...)
	if len(r.scale) > 0 {
		x.Quant = optest.Affine(r.zero, r.scale...)
		x.Quant.Axis = r.axis
	}
	if r.state {
		return x
	}
	s := r.seed
	for i := range x.Len() {
		s = s*1664525 + 1013904223
		switch r.t {
		case tensor.Float32:
			tensor.Of[float32](x)[i] = float32(s>>8)/8388608 - 1
		case tensor.Int8:
			tensor.Of[int8](x)[i] = max(int8(s>>24), -127)
		case tensor.Uint8:
			x.Data[i] = uint8(s >> 24)
		case tensor.Int16:
			tensor.Of[int16](x)[i] = int16(s >> 16)
		case tensor.Int32:
			tensor.Of[int32](x)[i] = int32(s>>16) - 1<<15
			if r.whole != nil {
				tensor.Of[int32](x)[i] = r.whole[i]
			}
		}
	}
	return x
}

// TestRecorded compares the operators bit-exactly with the reference kernels: the quantisation
// rule of hybrid operators, the type in which scales are multiplied, the type and the order of
// sums.
func TestRecorded(t *testing.T) {
	t.Parallel()
	for _, c := range recorded {
		t.Run(c.name, func(t *testing.T) {
			if c.out.t == tensor.Float32 && runtime.GOARCH != "amd64" {
				t.Skip("elsewhere the compiler may fuse multiplication and addition")
			}
			var in []*tensor.Tensor
			var constant []bool
			for _, r := range c.in {
				in = append(in, r.make())
				constant = append(constant, r.fixed || r.whole != nil)
			}
			var q *tensor.Quant
			if c.out.scale > 0 {
				q = optest.Affine(c.out.zero, c.out.scale)
			}
			got := run(t, node(c.op, c.attrs, c.out.t, q, constant...), in...)
			if got.Type != c.out.t || got.Len() != c.out.len {
				t.Fatalf("%d elements of %v, want %d of %v", got.Len(), got.Type, c.out.len, c.out.t)
			}
			h := fnv.New64a()
			h.Write(got.Data)
			if sum := h.Sum64(); sum != c.out.hash {
				t.Errorf("hash %#016x, want %#016x", sum, c.out.hash)
			}
		})
	}
	if len(recorded) < 60 {
		t.Errorf("%d cases", len(recorded))
	}
}

// TestProductOfScales gives uint8 layers sums (by their biases, with a zero input) for which a
// multiplier from the float32 product of scales rounds to another value than one from the float64
// product. The reference uses the former for uint8 and the latter for int8.
func TestProductOfScales(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	for _, typ := range []tensor.Type{tensor.Uint8, tensor.Int8} {
		var sx, sw, so float32
		var single, double float64
		var sums []int32
		for len(sums) < 8 {
			sums = sums[:0]
			sx, sw, so = 1e-4*(1+r.Float32()), 1e-3*(1+r.Float32()), 1+r.Float32()
			single, double = float64(sx*sw)/float64(so), float64(sx)*float64(sw)/float64(so)
			a, b := fixed.FromReal(single), fixed.FromReal(double)
			for k := 20; k < 90 && len(sums) < 8; k++ {
				tie := int64((float64(k) + 0.5) / double)
				for v := tie - 300; v < tie+300 && v < math.MaxInt32; v++ {
					if a.Apply(int32(v)) != b.Apply(int32(v)) {
						sums = append(sums, int32(v))
						break
					}
				}
			}
		}
		m, zero := single, int64(100)
		if typ == tensor.Int8 {
			m, zero = double, -20
		}
		wq := optest.Affine(zero, sw)
		if typ == tensor.Int8 {
			wq = optest.Affine(0, sw)
		}
		bias := tensor.New(tensor.Int32, 8)
		copy(tensor.Of[int32](bias), sums)
		x, w, d := tensor.New(typ, 1, 1, 1, 8), tensor.New(typ, 8, 1, 1, 8), tensor.New(typ, 1, 1, 1, 8)
		for i := range x.Data {
			x.Data[i] = byte(zero)
		}
		x.Quant, w.Quant, d.Quant = optest.Affine(zero, sx), wq, wq
		shape := tensor.New(tensor.Int32, 4)
		copy(tensor.Of[int32](shape), []int32{1, 1, 1, 8})
		attrs := graph.Attrs{"padding": "VALID", "stride_h": int64(1), "stride_w": int64(1)}
		oq := optest.Affine(3, so)
		for name, got := range map[string]*tensor.Tensor{
			"CONV_2D":           run(t, node("CONV_2D", attrs, typ, oq, false, true, true), x, w, bias),
			"DEPTHWISE_CONV_2D": run(t, node("DEPTHWISE_CONV_2D", attrs, typ, oq, false, true, true), x, d, bias),
			"TRANSPOSE_CONV":    run(t, node("TRANSPOSE_CONV", attrs, typ, oq, true, true, false, true), shape, w, x, bias),
		} {
			var want []int64
			for _, v := range sums {
				want = append(want, scaleBack(int64(v), m, got, false))
			}
			t.Run(fmt.Sprint(typ, " ", name), func(t *testing.T) { equal(t, got, want) })
		}
	}
}
