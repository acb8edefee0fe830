package gguf

import "fmt"

// Type is a type of tensor elements by its number in the file.
type Type uint32

// Element types that the package refers to.
const (
	F32  Type = 0
	F16  Type = 1
	BF16 Type = 30
)

// typeInfo is how a type stores its elements: Block elements take Bytes bytes.
type typeInfo struct {
	name         string
	block, bytes int
	unpack       *unpacking // nil for types that cannot be converted
}

// types lists the types by number. The numbers between are those of types that were removed.
var types = map[Type]typeInfo{
	0: {"F32", 1, 4, nil}, 1: {"F16", 1, 2, nil}, 30: {"BF16", 1, 2, nil}, 28: {"F64", 1, 8, nil},
	24: {"I8", 1, 1, nil}, 25: {"I16", 1, 2, nil}, 26: {"I32", 1, 4, nil}, 27: {"I64", 1, 8, nil},
	2:  {"Q4_0", 32, 18, &unpacking{bits: 4, block: 32, to: q40}},
	3:  {"Q4_1", 32, 20, &unpacking{bits: 4, block: 32, zeros: true, to: q41}},
	6:  {"Q5_0", 32, 22, &unpacking{bits: 8, block: 32, to: q50}},
	7:  {"Q5_1", 32, 24, &unpacking{bits: 8, block: 32, zeros: true, to: q51}},
	8:  {"Q8_0", 32, 34, &unpacking{bits: 8, block: 32, to: q80}},
	9:  {"Q8_1", 32, 36, nil},
	10: {"Q2_K", 256, 84, &unpacking{bits: 2, block: 16, zeros: true, to: q2k}},
	11: {"Q3_K", 256, 110, &unpacking{bits: 4, block: 16, to: q3k}},
	12: {"Q4_K", 256, 144, &unpacking{bits: 4, block: 32, zeros: true, to: q4k}},
	13: {"Q5_K", 256, 176, &unpacking{bits: 8, block: 32, zeros: true, to: q5k}},
	14: {"Q6_K", 256, 210, &unpacking{bits: 8, block: 16, to: q6k}},
	15: {"Q8_K", 256, 292, nil},
	16: {"IQ2_XXS", 256, 66, nil}, 17: {"IQ2_XS", 256, 74, nil}, 18: {"IQ3_XXS", 256, 98, nil}, 19: {"IQ1_S", 256, 50, nil},
	20: {"IQ4_NL", 32, 18, &unpacking{bits: 8, block: 32, to: iq4nl}},
	21: {"IQ3_S", 256, 110, nil}, 22: {"IQ2_S", 256, 82, nil},
	23: {"IQ4_XS", 256, 136, &unpacking{bits: 8, block: 32, to: iq4xs}},
	29: {"IQ1_M", 256, 56, nil}, 34: {"TQ1_0", 256, 54, nil}, 35: {"TQ2_0", 256, 66, nil},
	39: {"MXFP4", 32, 17, &unpacking{bits: 8, block: 32, to: mxfp4}}, 40: {"NVFP4", 64, 36, nil}, 41: {"Q1_0", 128, 18, nil},
}

// String returns the name of the type, such as "Q4_K".
func (t Type) String() string {
	if i, ok := types[t]; ok {
		return i.name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// Size returns the number of bytes of n elements; n must be a multiple of the type's block.
func (t Type) Size(n int) int { return n / types[t].block * types[t].bytes }
