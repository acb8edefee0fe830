package op

// ISA names an instruction-set level that a kernel variant needs.
type ISA uint8

// Levels, in no order: a variant names exactly what it needs.
const (
	Go     ISA = iota // plain Go, every machine
	AVX2              // amd64 with AVX2 and FMA
	AVX512            // amd64 with AVX-512 F, BW, DQ, VL
	VNNI              // AVX512 with 8-bit dot products
	NEON              // arm64 baseline
	Dot               // arm64 with 8-bit dot products
)

// String returns the level's name in lower case.
func (i ISA) String() string {
	return [...]string{"go", "avx2", "avx512", "avx512-vnni", "neon", "neon-dot"}[i]
}

// Has reports whether this machine and build can run the level. Only plain Go
// kernels exist so far.
func (i ISA) Has() bool { return i == Go }
