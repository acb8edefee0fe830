package tensor

import "fmt"

// Type is the element type of a tensor, or the kind of a container.
type Type uint8

// Element types. Names follow ONNX where the formats differ.
const (
	Invalid Type = iota
	Float32
	Float64
	Float16
	BFloat16
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Bool
	String
	Complex64
	Complex128
	Int4  // two per byte, low nibble first
	Uint4 // two per byte, low nibble first
	Int2  // four per byte, low bits first
	Uint2 // four per byte, low bits first
	Float8E4M3FN
	Float8E4M3FNUZ
	Float8E5M2
	Float8E5M2FNUZ
	Float8E8M0
	Float4E2M1 // two per byte, low nibble first
	Float6E2M3 // four in three bytes, low bits first
	Float6E3M2 // four in three bytes, low bits first
	Sequence   // container: Tensor.Elems
	Optional   // container: Tensor.Elems has no or one element
	Map        // container: Tensor.Elems is {keys, values}
	Resource   // TFLite handle; Tensor.Strings[0] names the resource
	Variant    // TFLite variant, never computed
	numTypes
)

var typeInfo = [numTypes]struct {
	name string
	bits int
}{
	Invalid: {"invalid", 0},
	Float32: {"float32", 32}, Float64: {"float64", 64}, Float16: {"float16", 16}, BFloat16: {"bfloat16", 16},
	Int8: {"int8", 8}, Int16: {"int16", 16}, Int32: {"int32", 32}, Int64: {"int64", 64},
	Uint8: {"uint8", 8}, Uint16: {"uint16", 16}, Uint32: {"uint32", 32}, Uint64: {"uint64", 64},
	Bool: {"bool", 8}, String: {"string", 0},
	Complex64: {"complex64", 64}, Complex128: {"complex128", 128},
	Int4: {"int4", 4}, Uint4: {"uint4", 4}, Int2: {"int2", 2}, Uint2: {"uint2", 2},
	Float8E4M3FN: {"float8e4m3fn", 8}, Float8E4M3FNUZ: {"float8e4m3fnuz", 8},
	Float8E5M2: {"float8e5m2", 8}, Float8E5M2FNUZ: {"float8e5m2fnuz", 8},
	Float8E8M0: {"float8e8m0", 8}, Float4E2M1: {"float4e2m1", 4},
	Float6E2M3: {"float6e2m3", 6}, Float6E3M2: {"float6e3m2", 6},
	Sequence: {"sequence", 0}, Optional: {"optional", 0}, Map: {"map", 0},
	Resource: {"resource", 0}, Variant: {"variant", 0},
}

// String returns the lower-case name, such as "float32".
func (t Type) String() string {
	if t >= numTypes {
		return fmt.Sprintf("type(%d)", uint8(t))
	}
	return typeInfo[t].name
}

// ParseType is the inverse of [Type.String]. Unknown names give Invalid, false.
func ParseType(s string) (Type, bool) {
	for i := range typeInfo {
		if i != 0 && typeInfo[i].name == s {
			return Type(i), true
		}
	}
	return Invalid, false
}

// Bits returns the width of one element in bits, 0 for strings and containers.
func (t Type) Bits() int {
	if t >= numTypes {
		return 0
	}
	return typeInfo[t].bits
}

// Bytes returns the storage of n packed elements in bytes, rounded up, 0 for
// strings and containers.
func (t Type) Bytes(n int) int { return (n*t.Bits() + 7) / 8 }

// IsFloat reports whether t is a real floating-point type of any width.
func (t Type) IsFloat() bool {
	switch t {
	case Float32, Float64, Float16, BFloat16, Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ, Float8E8M0, Float4E2M1, Float6E2M3, Float6E3M2:
		return true
	}
	return false
}

// IsInteger reports whether t is a signed or unsigned integer of any width.
func (t Type) IsInteger() bool { return t >= Int8 && t <= Uint64 || t >= Int4 && t <= Uint2 }

// IsSigned reports whether t is a signed integer.
func (t Type) IsSigned() bool { return t >= Int8 && t <= Int64 || t == Int4 || t == Int2 }

// IsContainer reports whether t is a sequence, an optional or a map.
func (t Type) IsContainer() bool { return t == Sequence || t == Optional || t == Map }
