package simd

// GroupLanes is the number of results that [Groups] handles together. MaxGroup is the maximum
// number of channels of a group; up to this number, the index tables stay in registers.
const (
	GroupLanes = floatLanes
	MaxGroup   = 8
)

// Groups rearranges the channels of positions in [N,H,W,C] for convolutions with small groups.
// GroupLanes results, which may belong to several groups, are a block. For each channel of a
// group there is one register with the values that the results of a block use.
type Groups struct {
	Blocks int // of results
	put    func(dst, src *float32, step int, places *int32, positions int, mask uint32)
	times  int // channels of a group
	first  []int
	masks  []uint32
	places []int32 // for each block and each channel of a group: offsets from the first channel
}

// NewGroups returns the rearrangement for groups of in channels and out results each. It returns
// nil if a block uses more channels than a register holds, or if no kernel is available.
func NewGroups(groups, in, out int) *Groups {
	f := repeatKernels.pick()
	if f == nil || f.groups == nil || in > MaxGroup {
		return nil
	}
	all := groups * out
	q := &Groups{Blocks: (all + GroupLanes - 1) / GroupLanes, put: f.groups[in-1], times: in}
	for b := range q.Blocks {
		o, end := b*GroupLanes, min(all, (b+1)*GroupLanes)
		first, last := o/out*in, ((end-1)/out+1)*in
		if last-first > GroupLanes {
			return nil
		}
		q.first, q.masks = append(q.first, first), append(q.masks, uint32(1)<<(last-first)-1)
		for i := range in {
			for lane := range GroupLanes {
				// Lanes without a result repeat the last result.
				q.places = append(q.places, int32(min(o+lane, end-1)/out*in+i-first))
			}
		}
	}
	return q
}

// Size returns the number of values that are written for a position.
func (q *Groups) Size() int { return q.times * GroupLanes }

// Put writes to dst the values that block b uses of n positions. In src, positions are step
// values apart.
func (q *Groups) Put(dst, src []float32, step, b, n int) {
	if n <= 0 {
		return
	}
	src = src[q.first[b]:]
	_, _ = dst[n*q.Size()-1], src[(n-1)*step]
	q.put(&dst[0], &src[0], 4*step, &q.places[b*q.Size()], n, q.masks[b])
}
