package quantise

import (
	"unsafe"
)

// Bits views 8-bit values as bytes.
func Bits[T int8 | uint8](v []T) []uint8 {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*uint8)(unsafe.Pointer(&v[0])), len(v))
}

// Weight is an integer weight before packing.
type Weight interface{ int8 | uint8 | int16 | int32 }
