package tpu

import (
	"cmp"
	"slices"
)

// stream contains the intervals of one engine in the order of their starts, each with a layer (-1
// for none). Intervals that overlap count as consecutive.
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

// divide assigns each instant in which anything ran to the layers that ran then, in equal parts,
// whatever the number of their engines. It returns the time in which anything ran, which is the
// sum of the parts, and the time in which two engines or more ran. Layer -1 gets a part, too.
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
				if !slices.Contains(active, layer) {
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

// sortByBegin sorts the intervals that count by their starts.
func sortByBegin(s *stream) {
	byBegin := func(a, b int32) int { return cmp.Compare(s.begin[a], s.begin[b]) }
	if !slices.IsSortedFunc(s.keep, byBegin) {
		slices.SortStableFunc(s.keep, byBegin)
	}
}

// add appends an interval that counts.
func (s *stream) add(begin, finish float64, layer int32) {
	s.keep = append(s.keep, int32(len(s.begin)))
	s.begin, s.finish, s.layer = append(s.begin, begin), append(s.finish, finish), append(s.layer, layer)
}
