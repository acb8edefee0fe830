package simd

// GroupLanes is the number of results that [Groups] handles together. MaxGroup is the maximum
// number of channels of a group; up to this number, the index tables stay in registers.
const (
	GroupLanes = 16
	MaxGroup   = 8
)

// Groups rearranges the channels of positions in [N,H,W,C] for convolutions with small groups.
// GroupLanes results, which may belong to several groups, are a block. For each channel of a
// group there are GroupLanes values that the results of a block use.
type Groups struct {
	Blocks int // of results
	put    func(dst, src *float32, step int, places *int32, positions int, mask uint32)
	times  int // channels of a group
	lanes  int // results of a register: a part of a block
	parts  []groupPart
}

// groupPart is what a register of results uses: the values that mask names from channel first on.
// For each channel of a group, places are offsets from that channel; a mask in lanes follows.
type groupPart struct {
	first  int
	mask   uint32
	places []int32
}

// NewGroups returns the rearrangement for groups of in channels and out results each. It returns
// nil if the results of a group fill a register by themselves, if those of a register use more
// channels than it holds, or if no kernel is available.
func NewGroups(groups, in, out int) *Groups {
	f := repeatKernels.pick()
	if f == nil || f.groups == nil || in > MaxGroup || out >= f.floatLanes {
		return nil
	}
	all := groups * out
	q := &Groups{Blocks: (all + GroupLanes - 1) / GroupLanes, put: f.groups[in-1], times: in, lanes: f.floatLanes}
	for o := 0; o < q.Blocks*GroupLanes; o += q.lanes {
		from, end := min(o, all-1), min(all, o+q.lanes)
		first, last := from/out*in, (max(from, end-1)/out+1)*in
		if last-first > q.lanes {
			return nil
		}
		p := groupPart{first: first, mask: uint32(1)<<(last-first) - 1}
		for i := range in {
			for lane := range q.lanes {
				// Lanes without a result repeat the last result.
				p.places = append(p.places, int32(min(o+lane, max(from, end-1))/out*in+i-first))
			}
		}
		for lane := range q.lanes {
			p.places = append(p.places, -int32(p.mask>>lane&1))
		}
		q.parts = append(q.parts, p)
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
	_ = dst[n*q.Size()-1]
	each := GroupLanes / q.lanes
	for i := range each {
		p := &q.parts[b*each+i]
		src := src[p.first:]
		_ = src[(n-1)*step]
		q.put(&dst[i*q.lanes], &src[0], 4*step, &p.places[0], n, p.mask)
	}
}
