package tpu

import (
	"cmp"
	"math"
	"slices"

	"github.com/opmeter/opmeter/profile/timeline"
)

// builder puts a timeline together.
type builder struct {
	t     *timeline.Timeline
	names map[string]int32
	bars  int
	// lanes by what they are called, in the order in which they were made.
	at map[laneKey]int
	// dropped counts bars that did not fit.
	dropped int64
	limit   int
}

type laneKey struct {
	kind               timeline.LaneKind
	group, name, clock string
}

func newBuilder(limit int) *builder {
	return &builder{t: &timeline.Timeline{}, names: map[string]int32{}, at: map[laneKey]int{}, limit: limit}
}

const maxNames = 100_000

// name is the number of a text, -1 for "" and for texts that are too many.
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

// bar is one thing that took time.
type bar struct {
	start, duration             float64
	layer, label, kind          int32
	iteration, subnet           int32
	direction                   int32
	stall                       float64
	bytes                       int64
	use                         float64 // -1 for not known
	number, conflicts, commands float64 // -1 for not known
}

// empty is a bar of which nothing but its time is known.
func empty(start, finish float64) bar {
	return bar{start: start, duration: max(0, finish-start), layer: -1, label: -1, kind: -1, iteration: -1, subnet: -1, direction: -1, bytes: -1, use: -1, number: -1, conflicts: -1, commands: -1}
}

// place says where a bar went.
type place struct{ lane, bar int32 }

const (
	maxApart = 16      // lanes that one becomes where bars overlap
	mostTime = 1e8     // seconds from the origin
	rounding = 0.25e-9 // of sums of seconds: far below a cycle
)

// lane adds bars to a lane; those that overlap in part go to further ones. The
// result says where each bar went, lane -1 for nowhere.
func (b *builder) lane(k laneKey, bars []bar) []place {
	where := make([]place, len(bars))
	order := make([]int32, len(bars))
	for i := range order {
		order[i], where[i] = int32(i), place{-1, -1}
	}
	slices.SortStableFunc(order, func(x, y int32) int {
		if c := cmp.Compare(bars[x].start, bars[y].start); c != 0 {
			return c
		}
		return cmp.Compare(bars[y].duration, bars[x].duration)
	})
	var lanes [][]int32
	var open [][]float64
	for _, i := range order {
		x := &bars[i]
		if b.bars >= b.limit || !(x.start >= 0 && x.start < mostTime) || !(x.duration >= 0 && x.duration < mostTime) {
			b.dropped++
			continue
		}
		end := x.start + x.duration
		put := -1
		for n := range lanes {
			s := open[n]
			for len(s) > 0 && s[len(s)-1] <= x.start+rounding {
				s = s[:len(s)-1]
			}
			open[n] = s
			if len(s) == 0 || end <= s[len(s)-1]+rounding {
				put = n
				break
			}
		}
		if put < 0 {
			if len(lanes) >= maxApart {
				b.dropped++
				continue
			}
			put = len(lanes)
			lanes, open = append(lanes, nil), append(open, nil)
		}
		where[i] = place{int32(put), int32(len(lanes[put]))}
		lanes[put], open[put] = append(lanes[put], i), append(open[put], end)
		b.bars++
	}
	first := make([]int32, len(lanes))
	for n, list := range lanes {
		key := k
		if n > 0 {
			key.name = k.name + " (" + string(rune('0'+(n+1)/10)) + string(rune('0'+(n+1)%10)) + ")"
			if n+1 < 10 {
				key.name = k.name + " (" + string(rune('0'+n+1)) + ")"
			}
		}
		first[n] = int32(len(b.t.Lanes))
		b.t.Lanes = append(b.t.Lanes, columns(key, bars, list))
	}
	for i := range where {
		if where[i].lane >= 0 {
			where[i].lane = first[where[i].lane]
		}
	}
	return where
}

// columns makes a lane; columns that no bar has anything for are left out.
func columns(k laneKey, bars []bar, list []int32) timeline.Lane {
	l := timeline.Lane{Name: k.name, Kind: k.kind, Group: k.group, Clock: k.clock}
	floats := func(of func(*bar) float64, none float64) []float64 {
		out, have := make([]float64, len(list)), false
		for i, j := range list {
			out[i] = of(&bars[j])
			have = have || out[i] != none
		}
		if !have {
			return nil
		}
		return out
	}
	ints := func(of func(*bar) int32) []int32 {
		out, have := make([]int32, len(list)), false
		for i, j := range list {
			out[i] = of(&bars[j])
			have = have || out[i] >= 0
		}
		if !have {
			return nil
		}
		return out
	}
	l.Starts = floats(func(x *bar) float64 { return x.start }, math.NaN())
	l.Durations = floats(func(x *bar) float64 { return x.duration }, math.NaN())
	l.Layers = ints(func(x *bar) int32 { return x.layer })
	l.Labels = ints(func(x *bar) int32 { return x.label })
	l.Types = ints(func(x *bar) int32 { return x.kind })
	l.Iterations = ints(func(x *bar) int32 { return x.iteration })
	l.Subnets = ints(func(x *bar) int32 { return x.subnet })
	l.Directions = ints(func(x *bar) int32 { return x.direction })
	l.Stalls = floats(func(x *bar) float64 { return min(x.stall, x.duration) }, 0)
	l.Utilisation = floats(func(x *bar) float64 { return x.use }, -1)
	if n := floats(func(x *bar) float64 { return float64(x.bytes) }, -1); n != nil {
		l.Bytes = make([]int64, len(list))
		for i, j := range list {
			l.Bytes[i] = bars[j].bytes
		}
	}
	for _, f := range []struct {
		key string
		of  func(*bar) float64
	}{
		{qCommand.Key, func(x *bar) float64 { return x.number }},
		{qConflict.Key, func(x *bar) float64 { return x.conflicts }},
		{qCommands.Key, func(x *bar) float64 { return x.commands }},
	} {
		if v := floats(f.of, -1); v != nil {
			if l.Figures == nil {
				l.Figures = map[string][]float64{}
			}
			l.Figures[f.key] = v
		}
	}
	return l
}
