package marks

import (
	"cmp"
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/source/stages"
	"github.com/opmeter/opmeter/profile/timeline"
)

type interval struct{ begin, end int64 }

// covered returns the length of the union of intervals in seconds.
func covered(list []interval) (s float64) {
	sorting.Func(list, func(a, b interval) int { return cmp.Compare(a.begin, b.begin) })
	until := int64(math.MinInt64)
	for _, x := range list {
		if from := max(x.begin, until); x.end > from {
			s += float64(x.end-from) / 1e9
			until = x.end
		}
	}
	return s
}

// origin returns the start of the first process. A process without a start time begins there,
// too.
func (r *reader) origin() (first int64) {
	first = math.MaxInt64
	for _, p := range r.c.Processes {
		if p.Unix > 0 {
			first = min(first, p.Unix)
		}
	}
	return first
}

// begin returns the start of a process in nanoseconds after the origin.
func begin(p *stages.Process, origin int64) int64 {
	if p.Unix <= 0 {
		return 0
	}
	return p.Unix - origin
}

// group returns the name of a process in the timeline, "" for a single process.
func (r *reader) group(p *stages.Process) string {
	if len(r.c.Processes) == 1 {
		return ""
	}
	if p.PID == 0 {
		return fmt.Sprintf("process %d", p.Index+1)
	}
	return fmt.Sprintf("process %d", p.PID)
}

// timeline returns the bars of a pipeline, and those without a pipeline: a lane per thread, and
// one for frames.
func (r *reader) timeline(pipeline int, l *stages.Layout) *timeline.Timeline {
	var lanes runlog.Lanes
	origin := r.origin()
	order := map[[2]int]int{} // lanes, by process and thread
	first := math.Inf(1)
	own := func(b *stages.Bar) bool {
		return b.Pipeline == pipeline || b.Pipeline < 0 || r.c.Explicit && r.c.Pipelines[b.Pipeline].Implied
	}
	for i := range r.bars {
		if b := &r.bars[i]; own(b) {
			first = min(first, float64(begin(b.Process, origin)+b.Begin)/1e9)
		}
	}
	number := map[[2]uint64]int32{} // of frames, by their end
	// Frames are above threads.
	for _, frames := range []bool{true, false} {
		for i := range r.bars {
			b := &r.bars[i]
			if !own(b) || frames != (b.Lane < 0) {
				continue
			}
			k := [2]int{b.Process.Index, b.Lane}
			at, ok := order[k]
			if !ok {
				kind, name := timeline.Iteration, "frames"
				if !frames {
					kind, name = timeline.Thread, b.Process.Lane(b.Lane)
				}
				at = lanes.Lane(kind, r.group(b.Process), name, "")
				order[k] = at
			}
			x := runlog.Bar{
				Start: float64(begin(b.Process, origin)+b.Begin)/1e9 - first, Duration: float64(b.End-b.Begin) / 1e9,
				Layer: -1, Iteration: -1, Label: -1, Type: -1, Bytes: -1,
			}
			id := [2]uint64{uint64(b.Process.Index), b.Frame}
			if frames {
				number[id] = int32(len(number))
				x.Label = lanes.Name(r.c.Pipelines[b.Pipeline].Name)
			} else if layer, ok := l.At[b.Node]; ok {
				x.Layer = int32(layer)
			} else if b.Node >= 0 {
				x.Label = lanes.Name(r.c.Nodes[b.Node].Name)
			}
			if n, ok := number[id]; ok && b.Frame != 0 {
				x.Iteration = n
			}
			lanes.Add(at, x)
		}
	}
	t := lanes.Timeline("first mark", "marks of the application")
	if t == nil {
		return nil
	}
	*t.Dropped += r.noBars
	r.counters(t, origin, first)
	return t
}

// counters adds levels as counters.
func (r *reader) counters(t *timeline.Timeline, origin int64, first float64) {
	const most = 100 // counters
	at := map[string]int{}
	for i := range r.readings {
		x := &r.readings[i]
		k := r.group(x.Process) + "\x00" + x.Name
		n, ok := at[k]
		if !ok {
			if len(t.Counters) >= most {
				continue
			}
			q, _ := stages.Quantity(x.Name, false)
			n = len(t.Counters)
			at[k] = n
			t.Counters = append(t.Counters, timeline.Counter{Name: x.Name, Unit: q.Unit, Group: r.group(x.Process)})
		}
		c := &t.Counters[n]
		c.Times = append(c.Times, float64(begin(x.Process, origin)+x.At)/1e9-first)
		c.Values = append(c.Values, x.Value)
	}
	for i := range t.Counters {
		sortPoints(&t.Counters[i])
	}
}

// sortPoints sorts the points of a counter by time: the file has them by thread.
func sortPoints(c *timeline.Counter) {
	at := make([]int, len(c.Times))
	for i := range at {
		at[i] = i
	}
	sorting.Stable(at, func(a, b int) int { return cmp.Compare(c.Times[a], c.Times[b]) })
	times, values := make([]float64, len(at)), make([]float64, len(at))
	for i, k := range at {
		times[i], values[i] = c.Times[k], c.Values[k]
	}
	c.Times, c.Values = times, values
}
