package simd

import (
	"sync"

	"golang.org/x/sys/cpu"
)

var partKernels = family[Parts]{AMX: {
	split: splitPartsAVX512,
	products: [3][3]func(p *partProgram){
		{parts11AMX, parts12AMX, parts13AMX},
		{parts21AMX, parts22AMX, parts23AMX},
		{parts31AMX, parts32AMX, parts33AMX},
	},
	sums: partSumsAVX512,
}}

// partsAvailable reports whether the processor has bfloat16 tiles that compute correctly. AMX
// must be available.
var partsAvailable = sync.OnceValue(func() bool { return cpu.X86.HasAMXBF16 && partKernels[AMX].check() })
