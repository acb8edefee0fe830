package scratch

import (
	"unsafe"
)

// AsInt32 views scratch memory as 32-bit integers.
func AsInt32(f []float32) []int32 {
	if len(f) == 0 {
		return nil
	}
	return unsafe.Slice((*int32)(unsafe.Pointer(&f[0])), len(f))
}

// AsUint8 views scratch memory as bytes.
func AsUint8(f []float64) []uint8 {
	if len(f) == 0 {
		return nil
	}
	return unsafe.Slice((*uint8)(unsafe.Pointer(&f[0])), 8*len(f))
}

// AsInt8 views bytes as signed values.
func AsInt8(b []uint8) []int8 {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*int8)(unsafe.Pointer(&b[0])), len(b))
}

// asInt16 views scratch memory as 16-bit integers.
func asInt16(f []float32) []int16 {
	if len(f) == 0 {
		return nil
	}
	return unsafe.Slice((*int16)(unsafe.Pointer(&f[0])), 2*len(f))
}

// AsBytes views scratch memory as bytes.
func AsBytes(f []float32) []uint8 {
	if len(f) == 0 {
		return nil
	}
	return unsafe.Slice((*uint8)(unsafe.Pointer(&f[0])), 4*len(f))
}

// Borrow16 returns scratch memory for n 16-bit integers.
func Borrow16(n int) (*[]float32, []int16) {
	s, f := Borrow(n/2 + 1)
	return s, asInt16(f)[:n]
}

// Borrow8 returns scratch memory for n bytes.
func Borrow8(n int) (*[]float32, []uint8) {
	s, f := Borrow(n/4 + 1)
	return s, AsBytes(f)[:n]
}

// Int16sOf views bytes at an even address as 16-bit integers.
func Int16sOf(v []uint8) []int16 {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*int16)(unsafe.Pointer(&v[0])), len(v)/2)
}

// BytesOf16 views 16-bit integers as bytes.
func BytesOf16(v []int16) []uint8 { return unsafe.Slice((*uint8)(unsafe.Pointer(&v[0])), 2*len(v)) }
