package order

import (
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// word packs the 32-bit key of x, which sorts like [Float], above the index i.
func word(x float32, flip uint32, i int) uint64 {
	b := math.Float32bits(x)
	if b<<1 == 0 {
		b = 0
	}
	key := b ^ (uint32(int32(b)>>31) | 1<<31)
	if b<<1 > 0xff000000 { // NaN
		key = math.MaxUint32
	}
	return uint64(key^flip)<<32 | uint64(i)
}

// wordScratch holds scratch buffers for twice the words of a line.
var wordScratch = sync.Pool{New: func() any { return new([]uint64) }}

// search holds the arguments of a work item of [Lines.TopFloats].
type search struct {
	Lines
	at      []int
	src     []float32
	k       int
	largest bool
}

// TopFloats is [Lines.TopK] for float32 elements.
func (l Lines) TopFloats(pool *workers.Pool, at []int, src []float32, k int, largest bool) {
	if len(at) > 0 {
		workers.Do(pool, l.Outer*l.Inner, max(1, 1<<13/l.N), search{l, at, src, k, largest}, search.lines)
	}
}

// lines processes lines lo to hi.
func (s search) lines(lo, hi int) {
	flip := uint32(0)
	if s.largest {
		flip = math.MaxUint32
	}
	workspace := wordScratch.Get().(*[]uint64)
	*workspace = slices.Grow((*workspace)[:0], 2*s.N)[:2*s.N]
	words, spare := (*workspace)[:s.N], (*workspace)[s.N:]
	for line := lo; line < hi; line++ {
		o, in := line/s.Inner, line%s.Inner
		own := s.src[o*s.N*s.Inner+in:]
		if s.k == 1 && s.Inner == 1 {
			if i := extreme(own[:s.N], s.largest); i >= 0 {
				s.at[o] = o*s.N + i
				continue
			}
		}
		if s.Inner == 1 {
			for i, x := range own[:s.N] {
				words[i] = word(x, flip, i)
			}
		} else {
			for i := range words {
				words[i] = word(own[i*s.Inner], flip, i)
			}
		}
		for j, w := range bestWords(words, spare, s.k, 32) {
			s.at[(o*s.k+j)*s.Inner+in] = (o*s.N+int(uint32(w)))*s.Inner + in
		}
	}
	wordScratch.Put(workspace)
}

// extreme returns the index of the first maximum or minimum with SIMD kernels; -1 without them or
// if v contains NaN.
func extreme(v []float32, largest bool) int {
	e := simd.ElementKernels()
	if e == nil {
		return -1
	}
	least, most := e.Extent(v, v[0], v[0])
	if largest {
		least = most
	}
	return slices.Index(v, least)
}

// bestWords puts the first k words in order. The bits below low are ascending indices. spare is
// as long as all.
func bestWords(all, spare []uint64, k, low int) []uint64 {
	if k == 1 {
		least := all[0]
		for _, w := range all[1:] {
			least = min(least, w)
		}
		all[0] = least
		return all[:1]
	}
	if k <= len(all)/4 {
		all = leastWords(all, k)
		slices.Sort(all)
		return all
	}
	if len(all) < radixFrom {
		slices.Sort(all)
	} else {
		all = radix(all, spare, low)
	}
	return all[:k]
}

// leastWords puts the least k words first, unordered. It uses a heap with the worst of the best
// on top.
func leastWords(all []uint64, k int) []uint64 {
	heap := all[:k]
	for j := k/2 - 1; j >= 0; j-- {
		sinkWord(heap, j)
	}
	if k == 0 {
		return heap
	}
	for _, w := range all[k:] {
		if w < heap[0] {
			heap[0] = w
			sinkWord(heap, 0)
		}
	}
	return heap
}

// sinkWord restores the heap after element j was replaced.
func sinkWord(heap []uint64, j int) {
	v := heap[j]
	for {
		s := 2*j + 1
		if s >= len(heap) {
			break
		}
		w := heap[s]
		if s+1 < len(heap) && heap[s+1] > w {
			s++
			w = heap[s]
		}
		if w <= v {
			break
		}
		heap[j], j = w, s
	}
	heap[j] = v
}

// radixFrom is the minimum number of words for radix sort.
const radixFrom = 400

// radix sorts words by their bits from low, eight at a time, and skips bits that all have in
// common. It is stable.
func radix(all, spare []uint64, low int) []uint64 {
	differ := uint64(0)
	for _, w := range all {
		differ |= w ^ all[0]
	}
	for shift := low; shift < bits.Len64(differ); shift += 8 {
		if differ>>shift&0xff == 0 {
			continue
		}
		var place [256]int
		for _, w := range all {
			place[uint8(w>>shift)]++
		}
		sum := 0
		for d, n := range place {
			place[d], sum = sum, sum+n
		}
		for _, w := range all {
			d := uint8(w >> shift)
			spare[place[d]] = w
			place[d]++
		}
		all, spare = spare, all
	}
	return all
}

// SortDescending sorts places by their values, largest first. The sort is stable; NaN comes last.
func SortDescending(places []int, values []float32) {
	workspace := wordScratch.Get().(*[]uint64)
	*workspace = slices.Grow((*workspace)[:0], 2*len(places))[:2*len(places)]
	words := (*workspace)[:len(places)]
	for i, p := range places {
		x := values[p]
		if words[i] = word(x, math.MaxUint32, i); x != x {
			words[i] |= math.MaxUint32 << 32
		}
	}
	if len(words) < radixFrom {
		slices.Sort(words)
	} else {
		words = radix(words, (*workspace)[len(places):], 32)
	}
	for i, w := range words {
		words[i] = uint64(places[uint32(w)])
	}
	for i, p := range words {
		places[i] = int(p)
	}
	wordScratch.Put(workspace)
}
