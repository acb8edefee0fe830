package rates

import (
	"runtime"
	"slices"
	"strings"
	"time"
)

// Theory is the theoretical peak of a processor by its instruction set: operations of one thread
// per clock cycle, a multiply-accumulate being two.
type Theory struct {
	// Set names the instruction set as features do.
	Set string
	// OpsPerCycle is lanes times two times the number of parallel execution units.
	OpsPerCycle float64
}

// sets lists by element type what instruction sets compute per cycle, the best first.
//
// Sources: Intel 64 and IA-32 Architectures Optimization Reference Manual (AMX: 2,048 8-bit
// operations per cycle, 1,024 of bfloat16; VNNI and FMA on two ports), Arm software optimisation
// guides of Neoverse N1 and V1 (two pipes of 128 bits). Processors with one port or pipe compute
// half: it is a bound, not a promise.
var sets = map[string][]Theory{
	"float32": {
		// A float32 is split into three bfloat16; six products of these are as exact as one in
		// float32 (internal/kernel/simd, Parts).
		{"amxbf16", 1024 / 6.0},
		{"avx512f", 16 * 2 * 2},
		{"fma3", 8 * 2 * 2},
		{"avx", 8 * 2}, // one port multiplies, another adds
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

// TheoryOf returns the theoretical peak of a processor of a vendor, as named by CPUID, with these
// features for an element type; ok is false if it is unknown.
//
// AMD's Zen 4 executes 512-bit instructions in two halves (AMD, Software Optimization Guide for
// the Zen4 Microarchitecture); it lacks VP2INTERSECT, which AMD's later processors have.
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

// multiplyCycles returns the latency of a 64-bit multiplication: three cycles on every x86-64
// processor since 2011 and on AMD's since 2017 (Fog, Instruction tables). It returns 0 if
// processors of an architecture differ.
func multiplyCycles() float64 {
	if runtime.GOARCH == "amd64" {
		return 3
	}
	return 0
}

// Clock measures the frequency of a processor under load, in Hz, with a chain of dependent
// multiplications for some two milliseconds. It returns 0 if their latency is not known.
func Clock() float64 {
	cycles := multiplyCycles()
	if cycles == 0 {
		return 0
	}
	const steps = 20_000
	x := uint64(1)
	all := Rounds(time.Now, 2*time.Millisecond, 3, steps*cycles, func() {
		for range steps {
			x *= 6364136223846793005 // odd: never zero
		}
	})
	if len(all) == 0 || x == 0 {
		return 0
	}
	return slices.Max(all)
}
