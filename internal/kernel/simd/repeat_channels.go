package simd

// Repeats write each of neighbouring values several times, as depthwise convolutions with several results a channel want their channels.
type Repeats struct {
	times  int
	f      *repeatLoops
	floats []int32 // for each register of what is written the places of its values in that which is read
	words  []int16
}

// repeatLoops take whole registers of 16 float32, and of 32 words of 16 bits. Those of groups may be missing.
type repeatLoops struct {
	groups *[MostGroup]func(dst, src *float32, step int, places *int32, positions int, mask uint32) // by the channels of a group, less one
	floats func(dst, src *float32, places *int32, registers, times int)
	words  func(dst, src *int16, places *int16, registers, times int)
}

const floatLanes, wordLanes = 16, 32

// NewRepeats writes values so many times each.
func NewRepeats(times int) *Repeats {
	r := &Repeats{times: times, f: repeats.pick()}
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

// Floats writes the values of src to dst, which has room for all of them.
func (r *Repeats) Floats(dst, src []float32) {
	if n := len(src) / floatLanes; r.f != nil && n > 0 {
		_ = dst[:n*floatLanes*r.times]
		r.f.floats(&dst[0], &src[0], &r.floats[0], n, r.times)
		dst, src = dst[n*floatLanes*r.times:], src[n*floatLanes:]
	}
	repeat(dst, src, r.times)
}

// Words is Floats for words of 16 bits.
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
