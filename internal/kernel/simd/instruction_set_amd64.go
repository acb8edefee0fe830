package simd

import "golang.org/x/sys/cpu"

// detected reports whether the processor and the system support what s adds to the next lower
// instruction set.
func detected(s Set) bool {
	x := &cpu.X86
	switch s {
	case AVX2:
		return x.HasAVX && x.HasAVX2 && x.HasFMA && x.HasBMI2 && x.HasPOPCNT
	case AVXVNNI:
		return x.HasAVXVNNI
	case AVX512:
		return x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512CD
	case VNNI:
		return x.HasAVX512VNNI && x.HasAVX512VBMI && x.HasAVX512VBMI2
	case AMX:
		return x.HasAMXTile && x.HasAMXInt8 && amxAvailable()
	}
	return false
}
