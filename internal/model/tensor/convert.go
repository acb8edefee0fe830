package tensor

import (
	"fmt"
	"math"
)

// IsNumber reports whether elements of the type can be read and written as numbers: floats and
// integers of any width, and booleans, which are 0 and 1.
func (t Type) IsNumber() bool { return t.IsFloat() || t.IsInteger() || t == Bool }

// IsHalf reports whether t is one of the two 16-bit floating-point types.
func (t Type) IsHalf() bool { return t == Float16 || t == BFloat16 }

// blockSize is the number of elements converted at a time in two-step conversions.
const blockSize = 256

// Convert converts as many elements as dst holds by the language's rules.
func Convert[D, S Number](dst []D, src []S) {
	src = src[:len(dst)]
	if same, ok := any(src).([]D); ok {
		copy(dst, same)
		return
	}
	for i, v := range src {
		dst[i] = D(v)
	}
}

// Read converts elements of a numeric tensor from start on, as many as dst holds. 64-bit integers
// are rounded for floating-point targets; between integers the low bits are kept; floating-point
// elements must fit integer targets. It panics with a [TypeError] for other types.
func Read[D Number](dst []D, x *Tensor, start int) {
	switch x.Type {
	case Float32:
		Convert(dst, Of[float32](x)[start:])
	case Float64:
		Convert(dst, Of[float64](x)[start:])
	case Float16:
		readHalves(dst, Words[uint16](x)[start:])
	case BFloat16:
		for i, h := range Words[uint16](x)[start : start+len(dst)] {
			dst[i] = D(BF16ToF32(h))
		}
	case Int8:
		Convert(dst, Of[int8](x)[start:])
	case Int16:
		Convert(dst, Of[int16](x)[start:])
	case Int32:
		Convert(dst, Of[int32](x)[start:])
	case Int64:
		Convert(dst, Of[int64](x)[start:])
	case Uint8, Bool:
		Convert(dst, Words[uint8](x)[start:])
	case Uint16:
		Convert(dst, Words[uint16](x)[start:])
	case Uint32:
		Convert(dst, Words[uint32](x)[start:])
	case Uint64:
		Convert(dst, Words[uint64](x)[start:])
	default:
		readSmall(dst, x, start)
	}
}

// readHalves converts by way of float32, for which there is a separate loop.
func readHalves[D Number](dst []D, src []uint16) {
	if same, ok := any(dst).([]float32); ok {
		readF16(same, src)
		return
	}
	var block [blockSize]float32
	for len(dst) > 0 {
		n := min(blockSize, len(dst))
		readF16(block[:n], src)
		Convert(dst[:n], block[:n])
		dst, src = dst[n:], src[n:]
	}
}

// readF16 has a single path for all finite numbers, zeros included: half of the rectified
// activations are zeros, in an order that branch prediction cannot learn. The bits of a half
// shifted to their positions in a float32 are the number times 2^-112.
func readF16(dst []float32, src []uint16) {
	src = src[:len(dst)]
	for i, h := range src {
		if h&0x7c00 != 0x7c00 {
			v := math.Float32frombits(uint32(h&0x7fff)<<13) * 0x1p112
			dst[i] = math.Float32frombits(math.Float32bits(v) | uint32(h&0x8000)<<16)
		} else {
			dst[i] = F16ToF32(h)
		}
	}
}

// readSmall reads float8 and packed types through their encodings.
func readSmall[D Number](dst []D, x *Tensor, start int) {
	if !x.Type.IsNumber() {
		panic(&TypeError{x.Type, "a number"})
	}
	table := Float8Table(x.Type)
	var codes [blockSize]uint8
	for len(dst) > 0 {
		n := min(len(dst), blockSize)
		Unpack(codes[:n], x, start)
		for i, c := range codes[:n] {
			switch {
			case table != nil:
				dst[i] = D(table[c])
			case x.Type.IsSigned():
				dst[i] = D(int8(c))
			default:
				dst[i] = D(c)
			}
		}
		dst, start = dst[n:], start+n
	}
}

// All reads every element of a numeric tensor into a new slice, or fails for other types.
func All[D Number](x *Tensor) ([]D, error) {
	if !x.Type.IsNumber() {
		return nil, fmt.Errorf("%v elements are not numbers here", x.Type)
	}
	out := make([]D, x.Len())
	Read(out, x, 0)
	return out, nil
}

// At reads element i of a numeric tensor; use [Read] for many elements.
func At(x *Tensor, i int) float64 {
	if x.Type == Float32 {
		return float64(Of[float32](x)[i])
	}
	var v [1]float64
	Read(v[:], x, i)
	return v[0]
}

// Put writes one element by the rules of [WriteFloat64]. The type must not be packed.
func Put(x *Tensor, i int, v float64) {
	WriteFloat64(x, i, []float64{v}, Conversion{Saturate: true})
}

// Fill writes f(i) to every element i of a numeric tensor by the rules of [WriteFloat64].
func Fill(x *Tensor, f func(i int) float64) {
	var block [blockSize]float64
	n := x.Len()
	for lo := 0; lo < n; lo += blockSize {
		b := block[:min(blockSize, n-lo)]
		for i := range b {
			b[i] = f(lo + i)
		}
		WriteFloat64(x, lo, b, Conversion{Saturate: true})
	}
}

// Conversion controls values that the target cannot represent.
type Conversion struct {
	Saturate bool      // float8: largest value instead of infinity or NaN
	Round    RoundMode // Float8E8M0
	// Clamp saturates integers at the bounds of their range for floating-point values outside of
	// it, and converts NaN to zero.
	Clamp bool
}

// WriteFloat32 rounds values to elements of a numeric tensor, from start on, by the rules of
// [WriteFloat64] with saturation.
func WriteFloat32(x *Tensor, start int, src []float32) {
	switch x.Type {
	case Float32:
		copy(Of[float32](x)[start:], src)
	case Float64:
		Convert(Of[float64](x)[start:start+len(src)], src)
	case Float16:
		writeF16(Words[uint16](x)[start:], src)
	case BFloat16:
		dst := Words[uint16](x)[start : start+len(src)]
		for i, f := range src {
			dst[i] = F32ToBF16(f)
		}
	default:
		var block [blockSize]float64
		for len(src) > 0 {
			b := block[:min(blockSize, len(src))]
			Convert(b, src)
			WriteFloat64(x, start, b, Conversion{Saturate: true})
			src, start = src[len(b):], start+len(b)
		}
	}
}

// writeF16 has a single path for finite results, zeros included. Adding the power of two whose
// last place is that of the half rounds; the difference to that power is the mantissa with its
// leading one, which is automatically absent below 2^-14.
func writeF16(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	for i, f := range src {
		b := math.Float32bits(f)
		a := b & 0x7fffffff
		if a >= 0x477ff000 { // from the tie between the largest half and infinity
			dst[i] = F32ToF16(f)
			continue
		}
		e := max(a&0x7f800000, 113<<23)
		power := e + 13<<23
		m := math.Float32bits(math.Float32frombits(a)+math.Float32frombits(power)) - power
		dst[i] = uint16(b>>16)&0x8000 | uint16(e>>13-113<<10+m)
	}
}

// WriteFloat64 rounds values once to elements of a numeric tensor, from start on. Integer targets
// are truncated. Without cv.Clamp, values outside of their range give the low bits of the int64
// value, or the smallest integer for 32 and 64 bits, as common processors do. For packed types
// start must be on a byte boundary.
func WriteFloat64(x *Tensor, start int, src []float64, cv Conversion) {
	n := len(src)
	switch x.Type {
	case Float32:
		Convert(Of[float32](x)[start:start+n], src)
	case Float64:
		copy(Of[float64](x)[start:], src)
	case Float16:
		dst := Words[uint16](x)[start:]
		for i, f := range src {
			dst[i] = F64ToF16(f)
		}
	case BFloat16:
		dst := Words[uint16](x)[start:]
		for i, f := range src {
			dst[i] = F64ToBF16(f)
		}
	case Uint64:
		dst := Words[uint64](x)[start:]
		for i, f := range src {
			switch {
			case f >= 1<<63 && f < 1<<64:
				dst[i] = uint64(f)
			case cv.Clamp && f >= 1<<64:
				dst[i] = math.MaxUint64
			case cv.Clamp && !(f > 0):
				dst[i] = 0
			default:
				dst[i] = uint64(Truncate(f))
			}
		}
	case Bool:
		dst := Words[uint8](x)[start:]
		for i, f := range src {
			dst[i] = Truth(f != 0)
		}
	default:
		writeBlocks(x, start, src, cv)
	}
}

// writeBlocks writes integers by way of int64, and minifloats.
func writeBlocks(x *Tensor, start int, src []float64, cv Conversion) {
	var whole [blockSize]int64
	var codes [blockSize]uint8
	for len(src) > 0 {
		n := min(blockSize, len(src))
		switch {
		case !x.Type.IsFloat():
			toIntegers(whole[:n], src, x.Type, cv.Clamp)
			WriteInt64(x, start, whole[:n])
		case x.Type.Bits() == 8:
			toCodes(x.Data[start:start+n], src, x.Type, cv)
		default:
			toCodes(codes[:n], src, x.Type, cv)
			packAt(x, start, codes[:n])
		}
		src, start = src[n:], start+n
	}
}

func toCodes(dst []uint8, src []float64, t Type, cv Conversion) {
	for i := range dst {
		if t == Float8E8M0 {
			dst[i] = F32ToE8M0(float32(src[i]), cv.Saturate, cv.Round)
		} else {
			dst[i] = F64ToFloat8(t, src[i], cv.Saturate)
		}
	}
}

func toIntegers(dst []int64, src []float64, t Type, clamp bool) {
	src = src[:len(dst)]
	switch {
	case clamp:
		for i, f := range src {
			dst[i] = clamped(t, f)
		}
	case t == Int32:
		for i, f := range src {
			if dst[i] = Truncate(f); dst[i] != int64(int32(dst[i])) {
				dst[i] = math.MinInt32
			}
		}
	default:
		for i, f := range src {
			dst[i] = Truncate(f)
		}
	}
}

// Truncate drops the fraction; values outside of int64 give its smallest value.
func Truncate(f float64) int64 {
	if f >= -(1<<63) && f < 1<<63 {
		return int64(f)
	}
	return math.MinInt64
}

// clamped truncates to the range of an integer type other than Uint64.
func clamped(t Type, f float64) int64 {
	bits := t.Bits()
	lo, hi := int64(0), int64(1)<<(bits-1)-1
	if t.IsSigned() {
		lo = -hi - 1
	} else {
		hi = 2*hi + 1
	}
	switch {
	case f != f:
		return 0
	case f <= float64(lo):
		return lo
	case f >= float64(hi):
		return hi
	}
	return int64(f)
}

// Truth is 1 for true and 0 for false, as booleans are stored.
func Truth(b bool) uint8 {
	var v uint8
	if b {
		v = 1
	}
	return v
}

// WriteInt64 stores integers into a tensor of integers or booleans, from start on, keeping the
// low bits. For packed types start must be on a byte boundary. It panics with a [TypeError] for
// other types.
func WriteInt64(x *Tensor, start int, src []int64) {
	n := len(src)
	switch x.Type {
	case Int8, Uint8: // the low bits of both are equal
		Convert(Words[uint8](x)[start:start+n], src)
	case Int16, Uint16:
		Convert(Words[uint16](x)[start:start+n], src)
	case Int32, Uint32:
		Convert(Words[uint32](x)[start:start+n], src)
	case Int64, Uint64:
		copy(view[int64](x)[start:], src)
	case Bool:
		dst := Words[uint8](x)[start:]
		for i, v := range src {
			dst[i] = Truth(v != 0)
		}
	default:
		if !x.Type.IsInteger() {
			panic(&TypeError{x.Type, "an integer"})
		}
		var codes [blockSize]uint8
		for len(src) > 0 {
			n := min(blockSize, len(src))
			Convert(codes[:n], src)
			packAt(x, start, codes[:n])
			src, start = src[n:], start+n
		}
	}
}

// Cast converts elements lo to hi between two numeric tensors. Combinations without a dedicated
// loop go through int64 between integers and through float64 otherwise, which represent every
// value of the types below 8 bits. For packed results lo must be on a byte boundary.
func Cast(out, in *Tensor, lo, hi int, cv Conversion) {
	if w := out.Type.Bits() / 8; out.Type == in.Type && w > 0 {
		copy(out.Data[lo*w:hi*w], in.Data[lo*w:])
		return
	}
	switch {
	case out.Type == Float32:
		Read(Of[float32](out)[lo:hi], in, lo)
		return
	case in.Type == Float32 && out.Type.IsHalf():
		WriteFloat32(out, lo, Of[float32](in)[lo:hi])
		return
	}
	from := in.Type
	if from == Bool {
		from = Uint8
	}
	// float32 holds them
	if out.Type.IsHalf() && (from == Float16 || from == BFloat16 || from.IsInteger() && from.Bits() <= 16) {
		var block [blockSize]float32
		for ; lo < hi; lo += blockSize {
			b := block[:min(blockSize, hi-lo)]
			Read(b, in, lo)
			WriteFloat32(out, lo, b)
		}
		return
	}
	direct := PickNumber(from, castReal[float32], castReal[float64],
		castInteger[int8], castInteger[int16], castInteger[int32], castInteger[int64],
		castInteger[uint8], castInteger[uint16], castInteger[uint32], castInteger[uint64])
	if direct != nil && direct(out, in, lo, hi) {
		return
	}
	var whole [blockSize]int64
	var real [blockSize]float64
	for ; lo < hi; lo += blockSize {
		n := min(blockSize, hi-lo)
		if in.Type.IsFloat() || out.Type.IsFloat() {
			Read(real[:n], in, lo)
			WriteFloat64(out, lo, real[:n], cv)
		} else {
			Read(whole[:n], in, lo)
			WriteInt64(out, lo, whole[:n])
		}
	}
}

// castReal has loops for targets with the same conversion result on all machines: not for
// integers, which may be too narrow.
func castReal[S Number](out, in *Tensor, lo, hi int) bool {
	src := Of[S](in)[lo:hi]
	switch out.Type {
	case Float64:
		Convert(Of[float64](out)[lo:hi], src)
	case Bool:
		dst := Words[uint8](out)[lo:hi]
		for i, x := range src {
			dst[i] = Truth(x != 0)
		}
	default:
		return false
	}
	return true
}

func castInteger[S Integer](out, in *Tensor, lo, hi int) bool {
	src := Of[S](in)[lo:hi]
	switch out.Type {
	case Int8, Uint8: // the low bits of both are equal
		Convert(Words[uint8](out)[lo:hi], src)
	case Int16, Uint16:
		Convert(Words[uint16](out)[lo:hi], src)
	case Int32, Uint32:
		Convert(Words[uint32](out)[lo:hi], src)
	case Int64, Uint64:
		Convert(Words[uint64](out)[lo:hi], src)
	default:
		return castReal[S](out, in, lo, hi)
	}
	return true
}

// packAt stores the bits of a packed type from a byte boundary on.
func packAt(x *Tensor, start int, codes []uint8) {
	part := Tensor{Type: x.Type, Data: x.Data[start*x.Type.Bits()/8:][:x.Type.Bytes(len(codes))]}
	Pack(&part, codes)
}

// Bounds returns the smallest and the largest value of an integer type.
func Bounds[T Integer]() (lo, hi T) {
	hi = ^T(0)
	if hi > 0 {
		return 0, hi
	}
	// Signed: double one until it turns negative.
	lo = 1
	for lo > 0 {
		lo <<= 1
	}
	return lo, ^lo
}
