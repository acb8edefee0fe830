package gguf

import (
	"encoding/binary"
	"math"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// unpacking converts blocks of a type to those of MatMulNBits: weight = scale·(q − zero).
type unpacking struct {
	bits, block int // of the result
	// zeros says that blocks have their own zero points; without, it is the middle of the range.
	zeros bool
	// to converts one block of the file. q has a byte for each element.
	to func(src []byte, q []uint8, scale, zero []float32)
}

func half(b []byte) float32 {
	return tensor.F16ToF32(binary.LittleEndian.Uint16(b))
}

// split stores the low and high half bytes of src, which are 16 elements apart for each 16 bytes.
func split(q []uint8, src []byte) {
	for j, b := range src[:len(q)/2] {
		q[j], q[j+len(q)/2] = b&15, b>>4
	}
}

// offset is the zero point of a block with a minimum: scale·q + least. A block without a scale is
// constant.
func offset(q []uint8, scale, zero *float32, d, least float32) {
	if d == 0 {
		clear(q)
		*scale, *zero = least, -1
		return
	}
	*scale, *zero = d, -least/d
}

func q40(src []byte, q []uint8, scale, _ []float32) {
	scale[0] = half(src)
	split(q, src[2:])
}

func q41(src []byte, q []uint8, scale, zero []float32) {
	split(q, src[4:])
	offset(q, &scale[0], &zero[0], half(src), half(src[2:]))
}

// fifth adds the fifth bits of 32 elements.
func fifth(q []uint8, bits uint32) {
	for j := range q {
		q[j] |= uint8(bits>>j&1) << 4
	}
}

func q50(src []byte, q []uint8, scale, _ []float32) {
	scale[0] = half(src)
	split(q, src[6:])
	fifth(q, binary.LittleEndian.Uint32(src[2:]))
	for j := range q {
		q[j] += 128 - 16
	}
}

func q51(src []byte, q []uint8, scale, zero []float32) {
	split(q, src[8:])
	fifth(q, binary.LittleEndian.Uint32(src[4:]))
	offset(q, &scale[0], &zero[0], half(src), half(src[2:]))
}

func q80(src []byte, q []uint8, scale, _ []float32) {
	scale[0] = half(src)
	for j, b := range src[2:34] {
		q[j] = b ^ 128
	}
}

// pairs calls f for each element of a block of 256 whose 2-bit parts lie in 64 bytes: four groups
// of 32 elements share 32 bytes.
func pairs(f func(e, at, shift int)) {
	for e := range 256 {
		f(e, e/128*32+e%32, e%128/32*2)
	}
}

func q2k(src []byte, q []uint8, scale, zero []float32) {
	d, least := half(src[80:]), half(src[82:])
	pairs(func(e, at, shift int) { q[e] = src[16+at] >> shift & 3 })
	for b := range 16 {
		offset(q[16*b:][:16], &scale[b], &zero[b], d*float32(src[b]&15), -least*float32(src[b]>>4))
	}
}

func q3k(src []byte, q []uint8, scale, _ []float32) {
	d, sc := half(src[108:]), src[96:108]
	// The third bit is stored apart; without it the value is 4 less.
	pairs(func(e, at, shift int) { q[e] = 8 - 4 + (src[32+at] >> shift & 3) + src[e%32]>>(e/32)&1<<2 })
	for b := range 16 {
		low := sc[b%8] >> (b / 8 * 4) & 15
		scale[b] = d * float32(int(low|sc[8+b%4]>>(b/4*2)&3<<4)-32)
	}
}

// scaleMin returns the 6-bit scale and minimum of group j of 32 in a block of Q4_K and Q5_K.
func scaleMin(sc []byte, j int) (scale, least float32) {
	if j < 4 {
		return float32(sc[j] & 63), float32(sc[j+4] & 63)
	}
	return float32(sc[j+4]&15 | sc[j-4]>>6<<4), float32(sc[j+4]>>4 | sc[j]>>6<<4)
}

func groups(src []byte, q []uint8, scale, zero []float32) {
	d, least := half(src), half(src[2:])
	for j := range 8 {
		s, m := scaleMin(src[4:16], j)
		offset(q[32*j:][:32], &scale[j], &zero[j], d*s, -least*m)
	}
}

func q4k(src []byte, q []uint8, scale, zero []float32) {
	for j := range 4 {
		split(q[64*j:][:64], src[16+32*j:][:32])
	}
	groups(src, q, scale, zero)
}

func q5k(src []byte, q []uint8, scale, zero []float32) {
	for j := range 4 {
		split(q[64*j:][:64], src[48+32*j:][:32])
	}
	for e := range q {
		q[e] |= src[16+e%32] >> (e / 32) & 1 << 4
	}
	groups(src, q, scale, zero)
}

func q6k(src []byte, q []uint8, scale, _ []float32) {
	d := half(src[208:])
	for e := range q {
		// Half a block of 128 elements has 64 bytes of low parts and 32 of high ones.
		n, g, l := e/128, e%128/32, e%32
		low := src[64*n+g%2*32+l] >> (g / 2 * 4) & 15
		high := src[128+32*n+l] >> (2 * g) & 3
		q[e] = 128 - 32 + (low | high<<4)
	}
	for b := range 16 {
		scale[b] = d * float32(int8(src[192+b]))
	}
}

// Values of the 4-bit types that are not evenly spaced, with 128 added.
var (
	valuesNL    = shifted(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
	valuesMXFP4 = shifted(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)
)

func shifted(v ...int) (out [16]uint8) {
	for i, x := range v {
		out[i] = uint8(x + 128)
	}
	return out
}

func lookup(q []uint8, src []byte, values *[16]uint8) {
	split(q, src)
	for j := range q {
		q[j] = values[q[j]]
	}
}

func iq4nl(src []byte, q []uint8, scale, _ []float32) {
	scale[0] = half(src)
	lookup(q, src[2:], &valuesNL)
}

func iq4xs(src []byte, q []uint8, scale, _ []float32) {
	d, high := half(src), binary.LittleEndian.Uint16(src[2:])
	for b := range 8 {
		low := src[4+b/2] >> (b % 2 * 4) & 15
		scale[b] = d * float32(int(low|uint8(high>>(2*b)&3)<<4)-32)
		lookup(q[32*b:][:32], src[8+16*b:][:16], &valuesNL)
	}
}

// mxfp4 has values of twice the size, so that they are integers.
func mxfp4(src []byte, q []uint8, scale, _ []float32) {
	scale[0] = float32(math.Ldexp(1, int(src[0])-128))
	lookup(q, src[1:], &valuesMXFP4)
}
