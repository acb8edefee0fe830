package order

import (
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// word is what one looks for in lines of float32: a key of 32 bits, which sorts as [Float] does, and the place below it.
func word(x float32, flip uint32, i int) uint64 {
	b := math.Float32bits(x)
	if b<<1 == 0 {
		b = 0
	}
	key := b ^ (uint32(int32(b)>>31) | 1<<31)
	if b<<1 > 0xff000000 { // no number
		key = math.MaxUint32
	}
	return uint64(key^flip)<<32 | uint64(i)
}

// roomsOfWords hold the words of a line, and as many more.
var roomsOfWords = sync.Pool{New: func() any { return new([]uint64) }}

// search is what a piece of [Lines.TopFloats] needs.
type search struct {
	Lines
	at      []int
	src     []float32
	k       int
	largest bool
}

// TopFloats is [Lines.TopK] of float32 themselves.
func (l Lines) TopFloats(pool *workers.Pool, at []int, src []float32, k int, largest bool) {
	if len(at) > 0 {
		workers.Do(pool, l.Outer*l.Inner, max(1, 1<<13/l.N), search{l, at, src, k, largest}, search.lines)
	}
}

// lines searches lines lo to hi.
func (s search) lines(lo, hi int) {
	flip := uint32(0)
	if s.largest {
		flip = math.MaxUint32
	}
	room := roomsOfWords.Get().(*[]uint64)
	*room = slices.Grow((*room)[:0], 2*s.N)[:2*s.N]
	words, spare := (*room)[:s.N], (*room)[s.N:]
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
	roomsOfWords.Put(room)
}

// extreme is the place of the first of the largest, or smallest, of values, looked for in vectors; -1 where that is not possible, or something is no
// number.
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

// bestWords leaves the first k of all in order; places are their bits below low, and rise. spare is as long as all.
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

// leastWords leaves the least k of all, in no order: a heap holds the worst of the best on top while the rest is looked through.
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

// sinkWord restores the heap after element j was exchanged.
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

// radixFrom is the number of words from which on they are sorted digit by digit.
const radixFrom = 400

// radix sorts words by their bits from low on, eight at a time, those that all have in common left out; what is equal stays in its order.
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

// Falling orders places by the values there, the largest first, of equal ones the first first; what is no number comes last.
func Falling(places []int, values []float32) {
	room := roomsOfWords.Get().(*[]uint64)
	*room = slices.Grow((*room)[:0], 2*len(places))[:2*len(places)]
	words := (*room)[:len(places)]
	for i, p := range places {
		x := values[p]
		if words[i] = word(x, math.MaxUint32, i); x != x {
			words[i] |= math.MaxUint32 << 32
		}
	}
	if len(words) < radixFrom {
		slices.Sort(words)
	} else {
		words = radix(words, (*room)[len(places):], 32)
	}
	for i, w := range words {
		words[i] = uint64(places[uint32(w)])
	}
	for i, p := range words {
		places[i] = int(p)
	}
	roomsOfWords.Put(room)
}
