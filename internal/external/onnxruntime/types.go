package onnxruntime

// Element types by ONNXTensorElementDataType, as opmeter names them.
var elements = [...]struct {
	name string
	bits int
}{
	1: {"float32", 32}, 2: {"uint8", 8}, 3: {"int8", 8}, 4: {"uint16", 16}, 5: {"int16", 16}, 6: {"int32", 32}, 7: {"int64", 64},
	8: {"string", 0}, 9: {"bool", 8}, 10: {"float16", 16}, 11: {"float64", 64}, 12: {"uint32", 32}, 13: {"uint64", 64},
	14: {"complex64", 64}, 15: {"complex128", 128}, 16: {"bfloat16", 16},
	17: {"float8e4m3fn", 8}, 18: {"float8e4m3fnuz", 8}, 19: {"float8e5m2", 8}, 20: {"float8e5m2fnuz", 8},
	21: {"uint4", 4}, 22: {"int4", 4}, 23: {"float4e2m1", 4}, 24: {"uint2", 2}, 25: {"int2", 2}, 26: {"float8e8m0", 8},
}

// isString is the number of the string type.
const isString = 8

// element returns the number of an element type, 0 if the library does not have it.
func element(name string) int {
	for i := range elements {
		if elements[i].name == name && name != "" {
			return i
		}
	}
	return 0
}

// dtype returns the name of an element type.
func dtype(number int) string {
	if number > 0 && number < len(elements) {
		return elements[number].name
	}
	return "unknown"
}

// size returns the bytes of n elements; sub-byte types are packed.
func size(number int, n int64) int64 {
	if number <= 0 || number >= len(elements) {
		return 0
	}
	return (n*int64(elements[number].bits) + 7) / 8
}

// maxElements bounds the elements of a tensor: more exceed any memory, and their size in bytes
// overflows.
const maxElements = 1 << 46

// count returns the number of elements of a shape, -1 for an invalid one.
func count[T int | int64](shape []T) int64 {
	n := int64(1)
	for _, d := range shape {
		if d < 0 {
			return -1
		}
		if d == 0 {
			return 0
		}
	}
	for _, d := range shape {
		if n > maxElements/int64(d) {
			return -1
		}
		n *= int64(d)
	}
	return n
}

// kinds of values by ONNXType, except for dense tensors.
var kinds = map[int]string{0: "unknown", 2: "sequence", 3: "map", 4: "opaque", 5: "sparse", 6: "optional"}

const isTensor = 1
