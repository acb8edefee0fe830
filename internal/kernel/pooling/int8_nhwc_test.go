package pooling

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/kernels"
)

// TestPoolInt8 compares pooled bytes with their definition: padding on any side, strides, limits
// and channel counts off whole registers, for each instruction set with kernels.
func TestPoolInt8(t *testing.T) {
	pool := workers.New(3, nil)
	defer pool.Close()
	for _, set := range simd.Available() {
		undo := simd.Use(set)
		r := rand.New(rand.NewPCG(5, 9))
		for range 600 {
			s := conv.Shape{N: 1 + r.IntN(2), C: 1 + r.IntN(150), H: 1 + r.IntN(9), W: 1 + r.IntN(12), KH: 1 + r.IntN(9), KW: 1 + r.IntN(9)}
			s.StrideH, s.StrideW, s.DilH, s.DilW = 1+r.IntN(3), 1+r.IntN(3), 1, 1
			s.PadT, s.PadL = r.IntN(s.KH), r.IntN(s.KW)
			s.OH, s.OW = 1+r.IntN(9), 1+r.IntN(12)
			b := Int8{Shape: s, Max: r.IntN(2) == 1, Signed: r.IntN(2) == 1, Hi: 255}
			if b.Signed {
				b.Lo, b.Hi = -128, 127
			}
			if r.IntN(2) == 1 {
				b.Lo += int32(r.IntN(128))
				b.Hi -= int32(r.IntN(128))
			}
			if !b.Prepare() {
				if simd.PoolKernels() != nil {
					t.Fatalf("%v: %+v is refused", set, s)
				}
				break
			}
			x, got := kernels.RandomBytes(r, s.N*s.C*s.H*s.W), make([]uint8, s.N*s.C*s.OH*s.OW)
			if r.IntN(4) == 0 {
				for i := range x { // the largest sums
					x[i] = leastByte(b.Signed) - 1 + uint8(r.IntN(2))
				}
			}
			want := pooledBytes(&b, x)
			if b.Run(pool, x, got); !bytes.Equal(got, want) {
				t.Fatalf("%v: %+v: %v, want %v", set, b, got, want)
			}
		}
		undo()
	}
}

// pooledBytes is the definition.
func pooledBytes(b *Int8, x []uint8) (y []uint8) {
	s := &b.Shape
	for i := range s.N * s.OH * s.OW * s.C {
		n, oy, ox, c := i/s.C/s.OW/s.OH, i/s.C/s.OW%s.OH, i/s.C%s.OW, i%s.C
		count, sum, most := int32(0), int32(0), kernels.Value(leastByte(b.Signed), b.Signed)
		for ky := range s.KH {
			for kx := range s.KW {
				if y, x0 := oy*s.StrideH-s.PadT+ky, ox*s.StrideW-s.PadL+kx; y >= 0 && y < s.H && x0 >= 0 && x0 < s.W {
					v := kernels.Value(x[((n*s.H+y)*s.W+x0)*s.C+c], b.Signed)
					count, sum, most = count+1, sum+v, max(most, v)
				}
			}
		}
		v := most
		if !b.Max {
			count = max(count, 1)
			if v = (sum + count/2) / count; sum < 0 {
				v = (sum - count/2) / count
			}
		}
		y = append(y, uint8(min(max(v, b.Lo), b.Hi)))
	}
	return y
}

// leastByte returns the bits of the smallest value.
func leastByte(signed bool) uint8 {
	if signed {
		return 0x80
	}
	return 0
}

// TestPoolInt16 compares max pooling of 16-bit values with its definition, including windows that
// cover only padding.
func TestPoolInt16(t *testing.T) {
	pool := workers.New(3, nil)
	defer pool.Close()
	for _, set := range simd.Available() {
		undo := simd.Use(set)
		r := rand.New(rand.NewPCG(6, 9))
		for range 200 {
			s := conv.Shape{N: 1 + r.IntN(2), C: 1 + r.IntN(80), H: 1 + r.IntN(9), W: 1 + r.IntN(12), KH: 1 + r.IntN(4), KW: 1 + r.IntN(4)}
			s.StrideH, s.StrideW, s.DilH, s.DilW = 1+r.IntN(3), 1+r.IntN(3), 1, 1
			s.PadT, s.PadL = r.IntN(s.KH), r.IntN(s.KW)
			s.OH, s.OW = 1+r.IntN(9), 1+r.IntN(12)
			b := Int8{Shape: s, Max: true, Words: true, Lo: math.MinInt16, Hi: math.MaxInt16}
			if !b.Prepare() {
				if simd.PoolKernels() != nil {
					t.Fatalf("%v: %+v is refused", set, s)
				}
				break
			}
			x, got, want := kernels.RandomBytes(r, 2*s.N*s.C*s.H*s.W), make([]uint8, 2*s.N*s.C*s.OH*s.OW), []uint8(nil)
			for i := range s.N * s.OH * s.OW * s.C {
				n, oy, ox, c := i/s.C/s.OW/s.OH, i/s.C/s.OW%s.OH, i/s.C%s.OW, i%s.C
				most := int16(math.MinInt16)
				for ky := range s.KH {
					for kx := range s.KW {
						if y, x0 := oy*s.StrideH-s.PadT+ky, ox*s.StrideW-s.PadL+kx; y >= 0 && y < s.H && x0 >= 0 && x0 < s.W {
							most = max(most, int16(binary.LittleEndian.Uint16(x[2*(((n*s.H+y)*s.W+x0)*s.C+c):])))
						}
					}
				}
				want = binary.LittleEndian.AppendUint16(want, uint16(most))
			}
			if b.Run(pool, x, got); !bytes.Equal(got, want) {
				t.Fatalf("%v: %+v: %v, want %v", set, b, got, want)
			}
		}
		undo()
	}
	if b := (Int8{Max: true, Words: true, Lo: 0, Hi: math.MaxInt16}); b.Prepare() {
		t.Error("limits are taken")
	}
}
