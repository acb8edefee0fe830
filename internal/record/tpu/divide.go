package tpu

import (
	"cmp"
	"slices"
)

// stream is what one engine did: intervals in the order of their starts, of a layer
// each (-1 for none). Intervals that overlap are taken to follow one another.
type stream struct {
	begin, finish []float64
	layer         []int32
	keep          []int32 // the intervals that count, nil for all
}

func (s *stream) len() int {
	if s.keep != nil {
		return len(s.keep)
	}
	return len(s.begin)
}

func (s *stream) at(i int) (begin, finish float64, layer int32) {
	if s.keep != nil {
		i = int(s.keep[i])
	}
	return s.begin[i], s.finish[i], s.layer[i]
}

// divide gives each instant in which anything ran to the layers that ran then, in equal
// parts, whatever the number of their engines: the parts add up to the time in which
// anything ran, which is returned, with the time in which two engines or more did.
// Layer -1 has its part like others.
func divide(streams []stream, add func(layer int32, seconds float64)) (busy, shared float64) {
	pos := make([]int, len(streams))
	active := make([]int32, 0, len(streams))
	now := 0.0
	first := true
	for {
		// The next instant at which anything begins or ends.
		next, any := 0.0, false
		active = active[:0]
		running := 0
		for k := range streams {
			s := &streams[k]
			for pos[k] < s.len() {
				_, f, _ := s.at(pos[k])
				if first || f > now {
					break
				}
				pos[k]++
			}
			if pos[k] >= s.len() {
				continue
			}
			b, f, layer := s.at(pos[k])
			edge := b
			if !first && b <= now {
				edge = f
				running++
				have := false
				for _, a := range active {
					have = have || a == layer
				}
				if !have {
					active = append(active, layer)
				}
			}
			if !any || edge < next {
				next, any = edge, true
			}
		}
		if !any {
			return busy, shared
		}
		if d := next - now; !first && d > 0 && running > 0 {
			busy += d
			if running > 1 {
				shared += d
			}
			for _, l := range active {
				add(l, d/float64(len(active)))
			}
		}
		now, first = next, false
	}
}

// sortByBegin puts the intervals that count in the order of their starts.
func sortByBegin(s *stream) {
	sorted := true
	for i := 1; i < len(s.keep) && sorted; i++ {
		sorted = s.begin[s.keep[i-1]] <= s.begin[s.keep[i]]
	}
	if !sorted {
		slices.SortStableFunc(s.keep, func(a, b int32) int { return cmp.Compare(s.begin[a], s.begin[b]) })
	}
}
