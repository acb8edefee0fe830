package math

import (
	"math"

	"github.com/opmeter/opmeter/internal/tensor"
)

// readFloat64 reads elements of any numeric type from start on. Integers of 64
// bits are rounded.
func readFloat64(dst []float64, x *tensor.Tensor, start int) {
	switch x.Type {
	case tensor.Float32:
		convertTo(dst, tensor.Of[float32](x)[start:])
	case tensor.Float64:
		copy(dst, tensor.Of[float64](x)[start:])
	case tensor.Float16:
		for i, h := range tensor.Of[uint16](x)[start : start+len(dst)] {
			dst[i] = float64(tensor.F16ToF32(h))
		}
	case tensor.BFloat16:
		for i, h := range tensor.Of[uint16](x)[start : start+len(dst)] {
			dst[i] = float64(tensor.BF16ToF32(h))
		}
	case tensor.Int8:
		convertTo(dst, tensor.Of[int8](x)[start:])
	case tensor.Int16:
		convertTo(dst, tensor.Of[int16](x)[start:])
	case tensor.Int32:
		convertTo(dst, tensor.Of[int32](x)[start:])
	case tensor.Int64:
		convertTo(dst, tensor.Of[int64](x)[start:])
	case tensor.Uint8, tensor.Bool:
		convertTo(dst, tensor.Of[uint8](x)[start:])
	case tensor.Uint16:
		convertTo(dst, tensor.Of[uint16](x)[start:])
	case tensor.Uint32:
		convertTo(dst, tensor.Of[uint32](x)[start:])
	case tensor.Uint64:
		convertTo(dst, tensor.Of[uint64](x)[start:])
	default:
		readSmall(dst, x, start)
	}
}

// readSmall reads float8 and packed types.
func readSmall(dst []float64, x *tensor.Tensor, start int) {
	tab := tensor.Float8Table(x.Type)
	if x.Type.Bits() == 8 {
		for i, c := range tensor.Of[uint8](x)[start : start+len(dst)] {
			dst[i] = float64(tab[c])
		}
		return
	}
	var codes [blockSize]uint8
	for len(dst) > 0 {
		n := min(len(dst), blockSize)
		tensor.Unpack(codes[:n], x, start)
		for i, c := range codes[:n] {
			switch {
			case tab != nil:
				dst[i] = float64(tab[c])
			case x.Type.IsSigned():
				dst[i] = float64(int8(c))
			default:
				dst[i] = float64(c)
			}
		}
		dst, start = dst[n:], start+n
	}
}

// readInt64 reads elements of any integer type or bool from start on. Uint64
// keeps its bits.
func readInt64(dst []int64, x *tensor.Tensor, start int) {
	switch x.Type {
	case tensor.Int8:
		convertTo(dst, tensor.Of[int8](x)[start:])
	case tensor.Int16:
		convertTo(dst, tensor.Of[int16](x)[start:])
	case tensor.Int32:
		convertTo(dst, tensor.Of[int32](x)[start:])
	case tensor.Int64:
		copy(dst, tensor.Of[int64](x)[start:])
	case tensor.Uint8, tensor.Bool:
		convertTo(dst, tensor.Of[uint8](x)[start:])
	case tensor.Uint16:
		convertTo(dst, tensor.Of[uint16](x)[start:])
	case tensor.Uint32:
		convertTo(dst, tensor.Of[uint32](x)[start:])
	case tensor.Uint64:
		convertTo(dst, tensor.Of[uint64](x)[start:])
	case tensor.Int4, tensor.Uint4, tensor.Int2, tensor.Uint2:
		var codes [blockSize]uint8
		for len(dst) > 0 {
			n := min(len(dst), blockSize)
			tensor.Unpack(codes[:n], x, start)
			for i, c := range codes[:n] {
				dst[i] = int64(c)
				if x.Type.IsSigned() {
					dst[i] = int64(int8(c))
				}
			}
			dst, start = dst[n:], start+n
		}
	}
}

// writeInt64 stores integers into a tensor of any integer type or bool, keeping
// the low bits. For packed types start must lie on a byte boundary.
func writeInt64(x *tensor.Tensor, start int, src []int64) {
	switch x.Type {
	case tensor.Int8:
		convertTo(tensor.Of[int8](x)[start:start+len(src)], src)
	case tensor.Int16:
		convertTo(tensor.Of[int16](x)[start:start+len(src)], src)
	case tensor.Int32:
		convertTo(tensor.Of[int32](x)[start:start+len(src)], src)
	case tensor.Int64:
		copy(tensor.Of[int64](x)[start:], src)
	case tensor.Uint8:
		convertTo(tensor.Of[uint8](x)[start:start+len(src)], src)
	case tensor.Uint16:
		convertTo(tensor.Of[uint16](x)[start:start+len(src)], src)
	case tensor.Uint32:
		convertTo(tensor.Of[uint32](x)[start:start+len(src)], src)
	case tensor.Uint64:
		convertTo(tensor.Of[uint64](x)[start:start+len(src)], src)
	case tensor.Bool:
		dst := tensor.Of[uint8](x)[start:]
		for i, v := range src {
			dst[i] = truth(v != 0)
		}
	default:
		var codes [blockSize]uint8
		for i, v := range src {
			codes[i] = uint8(v)
		}
		packAt(x, start, codes[:len(src)])
	}
}

// packAt stores codes of a packed type from a byte boundary on.
func packAt(x *tensor.Tensor, start int, codes []uint8) {
	part := tensor.Tensor{Type: x.Type, Data: x.Data[start*x.Type.Bits()/8:][:x.Type.Bytes(len(codes))]}
	tensor.Pack(&part, codes)
}

// writeFloat64 rounds src into a tensor of any type but string. Integer targets
// are truncated; values outside their range give the low bits of the int64 value,
// or the smallest integer for 32 and 64 bits, as common processors do.
func writeFloat64(x *tensor.Tensor, start int, src []float64, cv Conversion) {
	n := len(src)
	switch x.Type {
	case tensor.Float32:
		convertTo(tensor.Of[float32](x)[start:start+n], src)
	case tensor.Float64:
		copy(tensor.Of[float64](x)[start:], src)
	case tensor.Float16:
		dst := tensor.Of[uint16](x)[start:]
		for i, f := range src {
			dst[i] = tensor.F64ToF16(f)
		}
	case tensor.BFloat16:
		dst := tensor.Of[uint16](x)[start:]
		for i, f := range src {
			dst[i] = tensor.F64ToBF16(f)
		}
	case tensor.Uint64:
		dst := tensor.Of[uint64](x)[start:]
		for i, f := range src {
			if f >= 1<<63 && f < 1<<64 {
				dst[i] = uint64(f)
			} else {
				dst[i] = uint64(truncate(f))
			}
		}
	case tensor.Bool:
		dst := tensor.Of[uint8](x)[start:]
		for i, f := range src {
			dst[i] = truth(f != 0)
		}
	default:
		if x.Type.IsFloat() {
			writeSmall(x, start, src, cv)
			return
		}
		var ib [blockSize]int64
		for i, f := range src {
			ib[i] = truncate(f)
			if x.Type == tensor.Int32 && (ib[i] > math.MaxInt32 || ib[i] < math.MinInt32) {
				ib[i] = math.MinInt32
			}
		}
		writeInt64(x, start, ib[:n])
	}
}

// truncate drops the fraction; what int64 cannot hold gives its smallest value.
func truncate(f float64) int64 {
	if f >= -(1<<63) && f < 1<<63 {
		return int64(f)
	}
	return math.MinInt64
}

// writeSmall rounds to float8 and float4 types.
func writeSmall(x *tensor.Tensor, start int, src []float64, cv Conversion) {
	var codes [blockSize]uint8
	for i, f := range src {
		if x.Type == tensor.Float8E8M0 {
			codes[i] = tensor.F32ToE8M0(float32(f), cv.Saturate, cv.Round)
		} else {
			codes[i] = tensor.F64ToFloat8(x.Type, f, cv.Saturate)
		}
	}
	if x.Type.Bits() == 8 {
		copy(x.Data[start:], codes[:len(src)])
		return
	}
	packAt(x, start, codes[:len(src)])
}
