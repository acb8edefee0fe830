package simd

import "golang.org/x/sys/cpu"

// detected tells whether the processor and the system have what s adds to the set
// below it.
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
