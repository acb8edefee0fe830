package tpu

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/profile/timeline"
)

type builder struct {
	t       *timeline.Timeline
	names   map[string]int32
	bars    int
	dropped int64 // dropped counts bars beyond the limit and bars without a usable time
}

type laneKey struct {
	kind               timeline.LaneKind
	group, name, clock string
}

func newBuilder() *builder { return &builder{t: &timeline.Timeline{}, names: map[string]int32{}} }

const maxNames = 100_000

// name returns the number of a text, -1 for "" and for texts beyond the limit.
func (b *builder) name(s string) int32 {
	if s == "" {
		return -1
	}
	if i, ok := b.names[s]; ok {
		return i
	}
	if len(b.t.Names) >= maxNames {
		return -1
	}
	i := int32(len(b.t.Names))
	b.names[s] = i
	b.t.Names = append(b.t.Names, s)
	return i
}

type bar struct {
	start, duration             float64
	layer, label, kind          int32
	iteration, subnet           int32
	direction                   int32
	stall                       float64
	bytes                       int64
	use                         float64 // -1 if unknown
	number, conflicts, commands float64 // -1 if unknown
}

// empty returns a bar with a time and no other property.
func empty(start, finish float64) bar {
	return bar{start: start, duration: max(0, finish-start), layer: -1, label: -1, kind: -1, iteration: -1, subnet: -1, direction: -1, bytes: -1, use: -1, number: -1, conflicts: -1, commands: -1}
}

type place struct{ lane, bar int32 }

const (
	maxApart = 16      // lanes for the bars of one lane that overlap
	mostTime = 1e8     // seconds from the origin
	rounding = 0.25e-9 // error of sums in seconds, far below a cycle
)

// lane adds bars to a lane. Without bars it adds no lane. Bars that overlap in part go to further
// lanes. The result has the place of each bar, lane -1 for dropped bars.
func (b *builder) lane(k laneKey, bars []bar) []place {
	where := make([]place, len(bars))
	order := make([]int32, len(bars))
	for i := range order {
		order[i], where[i] = int32(i), place{-1, -1}
	}
	sorting.Stable(order, func(x, y int32) int {
		return cmp.Or(cmp.Compare(bars[x].start, bars[y].start), cmp.Compare(bars[y].duration, bars[x].duration))
	})
	var lanes [][]int32
	var open [][]float64
	for _, i := range order {
		x := &bars[i]
		end := x.start + x.duration
		put := 0
		for ; put < len(lanes); put++ {
			s := open[put]
			for len(s) > 0 && s[len(s)-1] <= x.start+rounding {
				s = s[:len(s)-1]
			}
			open[put] = s
			if len(s) == 0 || end <= s[len(s)-1]+rounding {
				break
			}
		}
		if put == maxApart || b.bars >= maxBars || !(x.start >= 0 && x.start < mostTime) || !(x.duration >= 0 && x.duration < mostTime) {
			b.dropped++
			continue
		}
		if put == len(lanes) {
			lanes, open = append(lanes, nil), append(open, nil)
		}
		where[i] = place{int32(len(b.t.Lanes) + put), int32(len(lanes[put]))}
		lanes[put], open[put] = append(lanes[put], i), append(open[put], end)
		b.bars++
	}
	for n, list := range lanes {
		key := k
		if n > 0 {
			key.name = fmt.Sprintf("%s (%d)", k.name, n+1)
		}
		b.t.Lanes = append(b.t.Lanes, columns(key, bars, list))
	}
	return where
}

// columns returns a lane. Columns without a known value are left out.
func columns(k laneKey, bars []bar, list []int32) timeline.Lane {
	l := timeline.Lane{Name: k.name, Kind: k.kind, Group: k.group, Clock: k.clock}
	floats := func(none float64, of func(*bar) float64) []float64 { return column(bars, list, none, of) }
	ints := func(of func(*bar) int32) []int32 { return column(bars, list, -1, of) }
	l.Starts = floats(math.NaN(), func(x *bar) float64 { return x.start })
	l.Durations = floats(math.NaN(), func(x *bar) float64 { return x.duration })
	l.Layers = ints(func(x *bar) int32 { return x.layer })
	l.Labels = ints(func(x *bar) int32 { return x.label })
	l.Types = ints(func(x *bar) int32 { return x.kind })
	l.Iterations = ints(func(x *bar) int32 { return x.iteration })
	l.Subnets = ints(func(x *bar) int32 { return x.subnet })
	l.Directions = ints(func(x *bar) int32 { return x.direction })
	l.Stalls = floats(0, func(x *bar) float64 { return min(x.stall, x.duration) })
	l.Utilisation = floats(-1, func(x *bar) float64 { return x.use })
	l.Bytes = column(bars, list, -1, func(x *bar) int64 { return x.bytes })
	figures := map[string][]float64{
		quantities[qCommand].Key:  floats(-1, func(x *bar) float64 { return x.number }),
		quantities[qConflict].Key: floats(-1, func(x *bar) float64 { return x.conflicts }),
		quantities[qCommands].Key: floats(-1, func(x *bar) float64 { return x.commands }),
	}
	for key, v := range figures {
		if v == nil {
			delete(figures, key)
		}
	}
	if len(figures) > 0 {
		l.Figures = figures
	}
	return l
}

// column returns a property of the listed bars, nil if all of them have the value none.
func column[T int32 | int64 | float64](bars []bar, list []int32, none T, of func(*bar) T) []T {
	out, have := make([]T, len(list)), false
	for i, j := range list {
		out[i] = of(&bars[j])
		have = have || out[i] != none
	}
	if !have {
		return nil
	}
	return out
}

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
		sorting.Stable(s.keep, byBegin)
	}
}

// add appends an interval that counts.
func (s *stream) add(begin, finish float64, layer int32) {
	s.keep = append(s.keep, int32(len(s.begin)))
	s.begin, s.finish, s.layer = append(s.begin, begin), append(s.finish, finish), append(s.layer, layer)
}
