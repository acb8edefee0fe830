package loop

// Reference is a loop of fixed work that measures the machine's current speed: always the same
// arithmetic on the same data, independent of the engine's kernels. A round has four parts of
// about equal time, so that it slows down when and about as much as inferences do:
//
//   - floats: float32 products summed in four accumulators, operands in the first-level
//     cache, as in the matrix kernels;
//   - integers: bytes widened, looked up, multiplied and summed in 32 bits, with a
//     shift and a clamp, as in quantised layers;
//   - memory: words of a quarter of a megabyte read and added, which fits a usual
//     second-level cache but not a first-level one;
//   - a chain: dependent 64-bit multiplications, whose speed depends on the clock
//     frequency only.
//
// A profile names the version of Go, because a change of the compiler may change the speed of the
// loop. It must be used by one goroutine at a time.
type Reference struct {
	x, w  [referenceFloats]float32
	bytes [referenceBytes]uint8
	table [256]int32
	words []uint64
	// sum keeps the compiler from eliminating the unused work.
	sum uint64
}

// ReferenceName identifies the work: another loop gets another name, and normalised times of the
// two are not compared.
const ReferenceName = "float, integer, memory, chain: 1"

// ReferenceRound is the time of a round at nominal speed, in seconds. It defines that speed,
// about that of one core of a server of 2023.
const ReferenceRound = 100e-6

// Sizes and repeats of the parts of a round.
const (
	referenceFloats = 2048
	referenceBytes  = 4096
	referenceWords  = 32 << 10

	floatPasses = 28
	bytePasses  = 8
	wordPasses  = 3
	chainSteps  = 21_400
)

// NewReference makes the data of the loop.
func NewReference() *Reference {
	r := &Reference{words: make([]uint64, referenceWords)}
	// A linear congruential generator (Knuth's MMIX) fills everything: no zeros, which some
	// processors treat specially, and no denormal numbers.
	state := uint64(1)
	next := func() uint64 {
		state = state*factor + 1442695040888963407
		return state >> 33
	}
	for i := range r.x {
		r.x[i], r.w[i] = float32(next()%1000+1)/1000, float32(next()%1000+1)/1000
	}
	for i := range r.bytes {
		r.bytes[i] = uint8(next())
	}
	for i := range r.table {
		r.table[i] = int32(next()%255) - 127
	}
	for i := range r.words {
		r.words[i] = next()
	}
	return r
}

// Round does the work once and returns a checksum, which is the same every time.
func (r *Reference) Round() uint64 {
	r.sum = uint64(r.floats()) ^ uint64(uint32(r.integers()))<<20 ^ r.memory() ^ chain(chainSteps)
	return r.sum
}

// floats multiplies and adds; the sum is rounded to an integer.
func (r *Reference) floats() int64 {
	var total float32
	for p := range floatPasses {
		var a, b, c, d float32
		x, w := r.x[:], r.w[:]
		for i := 0; i+4 <= len(x) && i+4 <= len(w); i += 4 {
			a += x[i] * w[i]
			b += x[i+1] * w[i+1]
			c += x[i+2] * w[i+2]
			d += x[i+3] * w[i+3]
		}
		total += (a + b + c + d) * float32(p+1)
	}
	return int64(total)
}

// integers looks up, multiplies and clamps.
func (r *Reference) integers() int32 {
	var total int32
	for p := range bytePasses {
		var a, b int32
		scale := int32(p + 3)
		in := r.bytes[:]
		for i := 0; i+2 <= len(in); i += 2 {
			a += r.table[in[i]] * scale
			b += r.table[in[i+1]] * int32(in[i])
			if i&63 == 0 {
				a = min(max(a>>1, -1<<20), 1<<20)
			}
		}
		total += a ^ b
	}
	return total
}

// memory reads and adds.
func (r *Reference) memory() uint64 {
	var a, b, c, d uint64
	for range wordPasses {
		w := r.words
		for i := 0; i+4 <= len(w); i += 4 {
			a += w[i]
			b ^= w[i+1]
			c += w[i+2]
			d ^= w[i+3]
		}
	}
	return a + b + c + d
}

// factor is that of Knuth's generator: odd, so that no product is ever zero.
const factor = 6364136223846793005

// chain multiplies by the factor repeatedly; each step depends on the last one.
func chain(steps int) uint64 {
	x := uint64(1)
	for range steps {
		x *= factor
	}
	return x
}
