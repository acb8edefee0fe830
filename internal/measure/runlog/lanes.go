package runlog

import (
	"cmp"
	"fmt"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/profile/timeline"
)

// MaxBars bounds the bars of a timeline that a record brings, unless a reader keeps
// fewer.
const MaxBars = 250_000

// Lanes makes a timeline of bars in any order. Bars of one lane that overlap in part
// are put on several lanes. The zero value is ready.
type Lanes struct {
	// Limit is the most bars that are kept, [MaxBars] when it is 0; what does not fit is
	// counted in [timeline.Timeline].Dropped.
	Limit int

	lanes   []lane
	at      map[laneKey]int
	names   map[string]int32
	list    []string
	bars    int
	dropped int64
}

type laneKey struct {
	kind        timeline.LaneKind
	group, name string
	clock       string
}

type lane struct {
	laneKey
	bars []Bar
}

// Bar is one thing that took time.
type Bar struct {
	// Start and Duration are seconds; subtract the origin of a large clock before, in
	// integers.
	Start, Duration float64
	// Layer and Iteration are indices, -1 for none.
	Layer, Iteration int32
	// Label and Type are what [Lanes.Name] gave, -1 for those of the layer.
	Label, Type int32
	// Bytes that were moved, -1 for not known.
	Bytes int64
}

// Lane gives the number of a lane for [Lanes.Add]. Group is the process or device,
// clock names a clock of its own, "" for the timeline's.
func (l *Lanes) Lane(kind timeline.LaneKind, group, name, clock string) int {
	k := laneKey{kind, group, name, clock}
	if i, ok := l.at[k]; ok {
		return i
	}
	if l.at == nil {
		l.at = map[laneKey]int{}
	}
	l.at[k] = len(l.lanes)
	l.lanes = append(l.lanes, lane{laneKey: k})
	return len(l.lanes) - 1
}

// maxNames bounds the different texts of a timeline.
const maxNames = 100_000

// Name gives the number of a text, -1 for "" and for texts that are too many.
func (l *Lanes) Name(s string) int32 {
	if s == "" {
		return -1
	}
	if i, ok := l.names[s]; ok {
		return i
	}
	if len(l.list) >= maxNames {
		return -1
	}
	if l.names == nil {
		l.names = map[string]int32{}
	}
	i := int32(len(l.list))
	l.names[s] = i
	l.list = append(l.list, s)
	return i
}

// Add adds a bar to a lane. Bars of no finite time are dropped and counted.
func (l *Lanes) Add(lane int, b Bar) {
	limit := l.Limit
	if limit == 0 {
		limit = MaxBars
	}
	const most = timeline.MaxSeconds / 4 // times may still be moved to begin at 0
	if l.bars >= limit || !(b.Start > -most && b.Start < most) || !(b.Duration >= 0 && b.Duration < most) {
		l.dropped++
		return
	}
	l.bars++
	l.lanes[lane].bars = append(l.lanes[lane].bars, b)
}

// Timeline makes the timeline, nil when there are no bars. Lanes stand in the order
// in which they were made.
func (l *Lanes) Timeline(origin, method string) *timeline.Timeline {
	if l.bars == 0 {
		return nil
	}
	// A timeline begins at 0. Records that count from elsewhere are moved as a whole.
	first := 0.0
	for i := range l.lanes {
		for k := range l.lanes[i].bars {
			first = min(first, l.lanes[i].bars[k].Start)
		}
	}
	if first < 0 {
		origin = "first event"
		for i := range l.lanes {
			for k := range l.lanes[i].bars {
				l.lanes[i].bars[k].Start -= first
			}
		}
	}
	t := &timeline.Timeline{Origin: origin, Method: method, Names: l.list, Dropped: &l.dropped}
	for i := range l.lanes {
		for k, bars := range apart(l.lanes[i].bars) {
			if len(bars) == 0 {
				continue
			}
			key := l.lanes[i].laneKey
			if k > 0 {
				key.name = fmt.Sprintf("%s (%d)", key.name, k+1)
			}
			t.Lanes = append(t.Lanes, columns(key, bars))
		}
	}
	return t
}

// maxApart bounds the lanes that one lane becomes.
const maxApart = 64

// apart sorts bars and deals them out, so that those of one lane are apart or within one
// another. Bars that would need too many lanes are cut where the outer one ends.
func apart(bars []Bar) [][]Bar {
	sorting.Stable(bars, func(a, b Bar) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.Duration, a.Duration))
	})
	var out [][]Bar
	var open [][]float64 // ends of the bars under way in each lane, the innermost last
	for _, b := range bars {
		end := b.Start + b.Duration
		placed := false
		for k := range out {
			s := open[k]
			for len(s) > 0 && s[len(s)-1] <= b.Start {
				s = s[:len(s)-1]
			}
			open[k] = s
			if len(s) == 0 || end <= s[len(s)-1] {
				out[k], open[k] = append(out[k], b), append(s, end)
				placed = true
				break
			}
		}
		if placed {
			continue
		}
		if len(out) < maxApart {
			out, open = append(out, []Bar{b}), append(open, []float64{end})
			continue
		}
		s := open[0]
		b.Duration = s[len(s)-1] - b.Start
		for b.Start+b.Duration > s[len(s)-1] { // a rounding of the sum
			b.Duration = max(0, b.Duration*(1-1e-15)-1e-300)
		}
		out[0], open[0] = append(out[0], b), append(s, b.Start+b.Duration)
	}
	return out
}

// columns makes a lane; columns that no bar has anything for are left out.
func columns(k laneKey, bars []Bar) timeline.Lane {
	n := len(bars)
	l := timeline.Lane{Name: k.name, Kind: k.kind, Group: k.group, Clock: k.clock, Starts: make([]float64, n), Durations: make([]float64, n)}
	var layers, labels, types, iterations, bytes bool
	for i := range bars {
		b := &bars[i]
		l.Starts[i], l.Durations[i] = b.Start, b.Duration
		layers = layers || b.Layer >= 0
		labels = labels || b.Label >= 0
		types = types || b.Type >= 0
		iterations = iterations || b.Iteration >= 0
		bytes = bytes || b.Bytes >= 0
	}
	ints := func(has bool, of func(*Bar) int32) []int32 {
		if !has {
			return nil
		}
		out := make([]int32, n)
		for i := range bars {
			out[i] = of(&bars[i])
		}
		return out
	}
	l.Layers = ints(layers, func(b *Bar) int32 { return b.Layer })
	l.Labels = ints(labels, func(b *Bar) int32 { return b.Label })
	l.Types = ints(types, func(b *Bar) int32 { return b.Type })
	l.Iterations = ints(iterations, func(b *Bar) int32 { return b.Iteration })
	if bytes {
		l.Bytes = make([]int64, n)
		for i := range bars {
			l.Bytes[i] = bars[i].Bytes
		}
	}
	return l
}
