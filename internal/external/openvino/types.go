//go:build (linux || darwin || windows) && (amd64 || arm64)

package openvino

import "unsafe"

// dtype is an element type: opmeter's name, "" if it has none, and the size in bits.
type dtype struct {
	name string
	bits int
}

// numbered are the numberings of element types by release (ov_element_type_e of ov_common.h):
// 2023, with sub-byte types from 2024, without "undefined" from 2025. Tensors of types with 0
// bits cannot be created.
var numbered = [][]dtype{
	append(append([]dtype{{}, {}}, first...), dtype{"", 1}, dtype{"uint4", 4}, dtype{"uint8", 8}, dtype{"uint16", 16}, dtype{"uint32", 32}, dtype{"uint64", 64}),
	append(append(append([]dtype{{}, {}}, first...), second...), last...),
	append(append(append([]dtype{{}}, first...), second...), last...),
}

var (
	first = []dtype{
		{"bool", 8},
		{"bfloat16", 16},
		{"float16", 16},
		{"float32", 32},
		{"float64", 64},
		{"int4", 4},
		{"int8", 8},
		{"int16", 16},
		{"int32", 32},
		{"int64", 64},
	}
	second = []dtype{{"", 1}, {"uint2", 2}, {"", 3}, {"uint4", 4}, {"", 6}, {"uint8", 8}, {"uint16", 16}, {"uint32", 32}, {"uint64", 64}}
	// The following types are not compared: releases differ in how many there are.
	last = []dtype{{"", 4}, {"float8e4m3fn", 8}, {"float8e5m2", 8}, {"string", 0}, {"float4e2m1", 4}, {"float8e8m0", 8}}
)

// probe is the number of elements of the tensor whose size shows the width of a type: whole bytes
// for every width.
const probe = 24

// askTypes finds the numbering by the sizes of tensors of each number, nil if no known one fits.
// Sizes suffice: the numberings differ at the first number already, or at the two-bit type.
func (l *library) askTypes() []dtype {
	bits := func(number int) int {
		t, s := l.newTensor(number, []int64{probe})
		if s != 0 || t == 0 {
			return 0
		}
		defer invoke(l.c.tensorFree, t)
		var size uintptr
		if invoke(l.c.tensorBytes, t, uintptr(unsafe.Pointer(&size))) != 0 {
			return 0
		}
		return int(size) * 8 / probe
	}
	seen := make([]int, 24)
	for i := range seen {
		seen[i] = bits(i)
	}
	for _, order := range numbered {
		fits := true
		for i, t := range order[:min(len(order), 20)] {
			// Old releases may round packed types up to whole bytes.
			if t.bits >= 8 && seen[i] != t.bits || t.bits == 0 && seen[i] != 0 {
				fits = false
				break
			}
		}
		if fits {
			return order
		}
	}
	return nil
}

func (l *library) typeOf(number int32) dtype {
	if number < 0 || int(number) >= len(l.types) {
		return dtype{}
	}
	return l.types[number]
}

// newTensor creates a tensor with memory of the library.
func (l *library) newTensor(number int, dims []int64) (tensor uintptr, status int32) {
	var p pins
	defer p.Unpin()
	t := p.slot()
	args := append([]uintptr{uintptr(number)}, p.shape(dims)...)
	status = invoke(l.c.tensorCreate, append(args, uintptr(unsafe.Pointer(t)))...)
	return *t, status
}
