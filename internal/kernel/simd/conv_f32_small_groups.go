package simd

// GroupLanes is the number of results that [Groups] take together, and MostGroup the most channels that a group may have: their tables stay in registers.
const (
	GroupLanes = floatLanes
	MostGroup  = 8
)

// Groups write the channels of positions as convolutions of small groups over [N,H,W,C] take them: GroupLanes results, which may be of several
// groups, are a block, and for each channel of a group there is a register of the values that the results of a block take.
type Groups struct {
	Blocks int // of results
	put    func(dst, src *float32, step int, places *int32, positions int, mask uint32)
	times  int // channels of a group
	first  []int
	masks  []uint32
	places []int32 // for each block, and each channel of a group, where its values lie from the first one on
}

// NewGroups is for groups of in channels and out results each; nil where a block sees more channels than a register holds, or where the set has
// no such loop.
func NewGroups(groups, in, out int) *Groups {
	f := repeats.pick()
	if f == nil || f.groups == nil || in > MostGroup {
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
				// Lanes without a result take what the last one takes.
				q.places = append(q.places, int32(min(o+lane, end-1)/out*in+i-first))
			}
		}
	}
	return q
}

// Size is the number of values that are written for a position.
func (q *Groups) Size() int { return q.times * GroupLanes }

// Put writes to dst what block b takes of n positions, whose channels begin step values apart in src.
func (q *Groups) Put(dst, src []float32, step, b, n int) {
	if n <= 0 {
		return
	}
	src = src[q.first[b]:]
	_, _ = dst[n*q.Size()-1], src[(n-1)*step]
	q.put(&dst[0], &src[0], 4*step, &q.places[b*q.Size()], n, q.masks[b])
}
