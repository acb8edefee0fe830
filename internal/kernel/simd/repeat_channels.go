package simd

// Repeats writes each value several times in a row, as depthwise convolutions with a channel
// multiplier need their input channels.
type Repeats struct {
	times  int
	f      *repeatKernelSet
	floats []int32 // for each output register: the indices of its values in the input register
	words  []int16
}

// repeatKernelSet holds kernels for full registers. groups may be nil.
type repeatKernelSet struct {
	floatLanes, wordLanes int // values of a register; 8 words are permuted as bytes
	// Indexed by the channels of a group, minus one.
	groups *[MaxGroup]func(dst, src *float32, step int, places *int32, positions int, mask uint32)
	floats func(dst, src *float32, places *int32, registers, times int)
	words  func(dst, src *int16, places *int16, registers, times int)
}

// NewRepeats returns Repeats that writes each value times times.
func NewRepeats(times int) *Repeats {
	r := &Repeats{times: times, f: repeatKernels.pick()}
	if r.f == nil {
		return r
	}
	for i := range times * r.f.floatLanes {
		r.floats = append(r.floats, int32(i/times))
	}
	for i := range times * r.f.wordLanes {
		place := int16(i / times)
		if r.f.wordLanes == 8 {
			place = 2*place | (2*place+1)<<8
		}
		r.words = append(r.words, place)
	}
	return r
}

// Floats writes the repeated values of src to dst, which has at least len(src)·times elements.
func (r *Repeats) Floats(dst, src []float32) {
	if r.f != nil && len(src) >= r.f.floatLanes {
		n := len(src) / r.f.floatLanes
		done := n * r.f.floatLanes
		_ = dst[:done*r.times]
		r.f.floats(&dst[0], &src[0], &r.floats[0], n, r.times)
		dst, src = dst[done*r.times:], src[done:]
	}
	repeat(dst, src, r.times)
}

// Words is Floats for int16.
func (r *Repeats) Words(dst, src []int16) {
	if r.f != nil && len(src) >= r.f.wordLanes {
		n := len(src) / r.f.wordLanes
		done := n * r.f.wordLanes
		_ = dst[:done*r.times]
		r.f.words(&dst[0], &src[0], &r.words[0], n, r.times)
		dst, src = dst[done*r.times:], src[done:]
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
