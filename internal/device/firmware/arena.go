package firmware

import (
	"math"

	"github.com/opmeter/opmeter/internal/runtime/memplan"
)

// alignment of values in the arena, in bytes.
const alignment = 16

// place plans the arena: it assigns each value its offset.
func (g *generator) place() {
	end := len(g.steps)
	index := map[*value]int{}
	bufs := make([]memplan.Buffer, 0, len(g.order))
	for _, v := range g.order {
		if v.last == math.MaxInt32 {
			v.last = end
		}
		v.last = max(v.last, v.first)
		b := memplan.Buffer{Bytes: max(v.bytes, 1), First: v.first, Last: v.last}
		if p := v.inPlace; p != nil && p.initial == nil && p.last == v.first && p.bytes >= v.bytes {
			b.InPlace = index[p] // index plus one, 0 for none
		}
		bufs = append(bufs, b)
		index[v] = len(bufs)
	}
	offsets, total := memplan.Greedy(bufs, alignment)
	for i, v := range g.order {
		v.offset = offsets[i]
	}
	g.arena = total
}
