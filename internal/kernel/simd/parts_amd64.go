package simd

import (
	"sync"

	"golang.org/x/sys/cpu"
)

var partLoops = family[Parts]{AMX: {
	split: splitPartsAVX512,
	products: [3][3]func(p *partProgram){
		{parts11AMX, parts12AMX, parts13AMX},
		{parts21AMX, parts22AMX, parts23AMX},
		{parts31AMX, parts32AMX, parts33AMX},
	},
	sums: partSumsAVX512,
}}

// partsWork tells whether the processor has tiles of bfloat16, whose set must be there, and they compute what they should.
var partsWork = sync.OnceValue(func() bool { return cpu.X86.HasAMXBF16 && partLoops[AMX].check() })

//go:noescape
func parts11AMX(p *partProgram)

//go:noescape
func parts12AMX(p *partProgram)

//go:noescape
func parts13AMX(p *partProgram)

//go:noescape
func parts21AMX(p *partProgram)

//go:noescape
func parts22AMX(p *partProgram)

//go:noescape
func parts23AMX(p *partProgram)

//go:noescape
func parts31AMX(p *partProgram)

//go:noescape
func parts32AMX(p *partProgram)

//go:noescape
func parts33AMX(p *partProgram)

//go:noescape
func splitPartsAVX512(p *splitArgs)

//go:noescape
func partSumsAVX512(p *partSums)
