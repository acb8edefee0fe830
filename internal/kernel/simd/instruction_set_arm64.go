package simd

import "golang.org/x/sys/cpu"

// detected reports whether the processor and the system support what s adds to the next lower
// instruction set.
func detected(s Set) bool {
	switch s {
	case NEON:
		return cpu.ARM64.HasASIMD
	case NEONDot:
		return cpu.ARM64.HasASIMDDP
	case I8MM:
		return cpu.ARM64.HasI8MM
	}
	return false
}
