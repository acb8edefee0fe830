package peaks

import (
	"runtime"
	"slices"
	"strings"
	"time"
)

// Theory is what a processor could do by its instruction set: operations of one thread
// in a clock cycle, a multiply-accumulate being two.
type Theory struct {
	// Set names the instruction set as features do.
	Set string
	// OpsPerCycle is lanes times two times the units that work at once.
	OpsPerCycle float64
}

// sets lists by element type what instruction sets do in a cycle, the best first.
//
// Sources: Intel 64 and IA-32 Architectures Optimization Reference Manual (AMX: 2,048
// 8-bit operations a cycle, 1,024 of bfloat16; VNNI and FMA on two ports), Arm software optimisation
// guides of Neoverse N1 and V1 (two pipes of 128 bits). Processors with one port or
// pipe do half: it is a bound, not a promise.
var sets = map[string][]Theory{
	"float32": {
		// A float32 is three bfloat16, and six products of these are as exact as one of float32
		// (internal/kernel/simd, Parts).
		{"amxbf16", 1024 / 6.0},
		{"avx512f", 16 * 2 * 2},
		{"fma3", 8 * 2 * 2},
		{"avx", 8 * 2}, // one port multiplies, another one adds
		{"asimd", 4 * 2 * 2},
		{"sse4.2", 4 * 2},
	},
	"int8": {
		{"amxint8", 2048},
		{"avx512vnni", 64 * 2 * 2},
		{"avxvnni", 32 * 2 * 2},
		// Three instructions on two ports for 32 products: multiply, widen, add.
		{"avx2", 32 * 2 * 2 / 3.0},
		{"i8mm", 32 * 2 * 2},
		{"asimddp", 16 * 2 * 2},
	},
}

// TheoryOf returns what a processor of a vendor, as its CPUID names it, with these features could do with an element type;
// ok is false where that is not known.
//
// AMD's Zen 4 carries out instructions of 512 bits in two halves (AMD, Software Optimization Guide for the Zen4
// Microarchitecture); it lacks VP2INTERSECT, which AMD's later ones have.
func TheoryOf(dtype, vendor string, features []string) (t Theory, ok bool) {
	for _, t := range sets[dtype] {
		if !slices.Contains(features, t.Set) {
			continue
		}
		if strings.HasPrefix(t.Set, "avx512") && vendor == "AuthenticAMD" && !slices.Contains(features, "avx512vp2intersect") {
			t.OpsPerCycle /= 2
		}
		return t, true
	}
	return Theory{}, false
}

// multiplyCycles is the latency of a multiplication of 64 bits: three cycles on every
// x86-64 processor since 2011 and on AMD's since 2017 (Fog, Instruction tables). 0
// where processors of an architecture differ.
func multiplyCycles() float64 {
	if runtime.GOARCH == "amd64" {
		return 3
	}
	return 0
}

// Clock is the frequency of a processor while it works, in Hz: by multiplications of
// which each waits for the one before, for some two milliseconds. 0 where their latency is not
// known.
func Clock() float64 {
	cycles := multiplyCycles()
	if cycles == 0 {
		return 0
	}
	const steps = 20_000
	x := uint64(1)
	rates := rounds(2*time.Millisecond, 3, steps*cycles, func() {
		for range steps {
			x *= 6364136223846793005 // odd: never zero
		}
	})
	if len(rates) == 0 || x == 0 {
		return 0
	}
	return slices.Max(rates)
}
