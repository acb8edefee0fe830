package simd

// Repeats writes each value several times in a row, as depthwise convolutions with a channel
// multiplier need their input channels.
type Repeats struct {
	times  int
	f      *repeatKernelSet
	floats []int32 // for each output register: the indices of its values in the input register
	words  []int16
}

// repeatKernelSet holds kernels for full registers of 16 float32 and of 32 int16. groups may be
// nil.
type repeatKernelSet struct {
	// Indexed by the channels of a group, minus one.
	groups *[MaxGroup]func(dst, src *float32, step int, places *int32, positions int, mask uint32)
	floats func(dst, src *float32, places *int32, registers, times int)
	words  func(dst, src *int16, places *int16, registers, times int)
}

const floatLanes, wordLanes = 16, 32

// NewRepeats returns Repeats that writes each value times times.
func NewRepeats(times int) *Repeats {
	r := &Repeats{times: times, f: repeatKernels.pick()}
	if r.f == nil {
		return r
	}
	for i := range times * floatLanes {
		r.floats = append(r.floats, int32(i/times))
	}
	for i := range times * wordLanes {
		r.words = append(r.words, int16(i/times))
	}
	return r
}

// Floats writes the repeated values of src to dst, which has at least len(src)·times elements.
func (r *Repeats) Floats(dst, src []float32) {
	if n := len(src) / floatLanes; r.f != nil && n > 0 {
		_ = dst[:n*floatLanes*r.times]
		r.f.floats(&dst[0], &src[0], &r.floats[0], n, r.times)
		dst, src = dst[n*floatLanes*r.times:], src[n*floatLanes:]
	}
	repeat(dst, src, r.times)
}

// Words is Floats for int16.
func (r *Repeats) Words(dst, src []int16) {
	if n := len(src) / wordLanes; r.f != nil && n > 0 {
		_ = dst[:n*wordLanes*r.times]
		r.f.words(&dst[0], &src[0], &r.words[0], n, r.times)
		dst, src = dst[n*wordLanes*r.times:], src[n*wordLanes:]
	}
	repeat(dst, src, r.times)
}

func repeat[T float32 | int16](dst, src []T, times int) {
	for i, v := range src {
		to := dst[i*times:][:times]
		for j := range to {
			to[j] = v
		}
	}
}
