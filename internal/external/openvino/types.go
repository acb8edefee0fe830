//go:build (linux || darwin || windows) && (amd64 || arm64)

package openvino

import "unsafe"

// dtype is an element type: opmeter's name, "" where it has none, and bits.
type dtype struct {
	name string
	bits int
}

// numbered are the orders in which releases number element types (ov_element_type_e of
// ov_common.h): 2023, with those of less than a byte from 2024, without "undefined" from 2025. Bits of 0
// are types of which no tensor can be made.
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
	// What follows is not looked at when the order is told apart: releases differ in how many there are.
	last = []dtype{{"", 4}, {"float8e4m3fn", 8}, {"float8e5m2", 8}, {"string", 0}, {"float4e2m1", 4}, {"float8e8m0", 8}}
)

// probe is how many elements a tensor gets whose size tells the width of its type: whole bytes for
// every width.
const probe = 24

// askTypes finds the order by the sizes of tensors of each number, nil where none of the
// known ones fits. Sizes tell the orders apart: the widths of two of them differ at the
// first number already, or at that of two bits.
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
			// Packed types may round up to whole bytes in old releases.
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

// newTensor makes a tensor with memory of the library's own.
func (l *library) newTensor(number int, dims []int64) (tensor uintptr, status int32) {
	var p pins
	defer p.Unpin()
	t := p.slot()
	args := append([]uintptr{uintptr(number)}, p.shape(dims)...)
	status = invoke(l.c.tensorCreate, append(args, uintptr(unsafe.Pointer(t)))...)
	return *t, status
}
