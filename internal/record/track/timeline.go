package track

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/profile/timeline"
)

// maxSpan is the maximum length of a timeline in nanoseconds, about 30 years, as in profiles.
const maxSpan = int64(999_999_999) * 1e9

// exactSpan is the length up to which start + duration is exact to 0.5 ns, as the check of lanes
// requires.
const exactSpan = int64(1_000_000) * 1e9

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// Origin returns the first time of all slices and counters.
func (t *Trace) Origin() int64 {
	origin, _, ok := t.Span(func(*Track) bool { return true })
	for _, c := range t.Counters {
		for _, p := range c.points {
			if !ok || p.ts < origin {
				origin, ok = p.ts, true
			}
		}
	}
	return origin
}

// Timeline returns the timeline, nil if it would be empty. Call it after [Trace.Nest]. Groups and
// the tracks of a group are ordered by rank.
func (t *Trace) Timeline(origin, method string) *timeline.Timeline {
	zero := t.Origin()
	limit := cmp.Or(t.Limit, runlog.MaxBars)
	until, dropped := t.until(zero, limit)
	out := &timeline.Timeline{Origin: origin, Method: method, Names: t.list, Lanes: []timeline.Lane{}}
	if until < maxSpan {
		out.Method = fmt.Sprintf("%s; the %d bars that begin in the first %.6g s are kept", method, t.count-int(dropped), seconds(until))
	}
	type place struct {
		rank  int64
		first int
	}
	groups := map[string]place{}
	for i, k := range t.Tracks {
		g, ok := groups[k.Group]
		if !ok {
			g = place{k.GroupRank, i}
		}
		groups[k.Group] = place{min(g.rank, k.GroupRank), g.first}
	}
	tracks := slices.Clone(t.Tracks)
	slices.SortStableFunc(tracks, func(a, b *Track) int {
		x, y := groups[a.Group], groups[b.Group]
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.first, y.first), cmp.Compare(a.Rank, b.Rank))
	})
	b := lanes{t: t, out: out, zero: zero, until: until, subnets: map[string]int32{}}
	for _, k := range tracks {
		b.track(k)
	}
	b.links()
	for _, c := range t.Counters {
		k, late := c.counter(zero)
		dropped += late
		if len(k.Times) > 0 {
			out.Counters = append(out.Counters, k)
		}
	}
	out.Names = t.list
	if len(out.Lanes)+len(out.Counters) == 0 {
		return nil
	}
	if n := dropped + t.Dropped.Total(); n > 0 {
		out.Dropped = &n
	}
	return out
}

// until returns the time from which slices are dropped, so that at most limit remain.
func (t *Trace) until(zero int64, limit int) (until, dropped int64) {
	var starts []int64
	for _, s := range t.All() {
		if s.Start-zero > maxSpan-s.Dur {
			dropped++
		} else {
			starts = append(starts, s.Start-zero)
		}
	}
	if len(starts) <= limit {
		return maxSpan, dropped
	}
	slices.Sort(starts)
	until = starts[limit]
	n, _ := slices.BinarySearch(starts, until)
	return until, dropped + int64(len(starts)-n)
}

// lanes converts tracks to lanes.
type lanes struct {
	t           *Trace
	out         *timeline.Timeline
	zero, until int64
	subnets     map[string]int32
}

// track makes one lane for each row of a track.
func (b *lanes) track(k *Track) {
	k.lane, k.bar = make([]int32, len(k.Slices)), make([]int32, len(k.Slices))
	rows := make([]timeline.Lane, k.rows)
	for i := range k.Slices {
		s := &k.Slices[i]
		k.lane[i] = -1
		if s.Start-b.zero >= b.until || s.Start-b.zero > maxSpan-s.Dur {
			continue
		}
		r := 0
		if k.row != nil {
			r = int(k.row[i])
		}
		l := &rows[r]
		k.lane[i], k.bar[i] = int32(r), int32(len(l.Starts))
		start := seconds(s.Start - b.zero)
		l.Starts = append(l.Starts, start)
		d := seconds(s.Dur)
		if s.End()-b.zero > exactSpan {
			d = length(start, seconds(s.End()-b.zero))
		}
		l.Durations = append(l.Durations, d)
		l.Layers, l.Labels, l.Types = append(l.Layers, s.Layer), append(l.Labels, s.Label), append(l.Types, s.Type)
		l.Iterations, l.Bytes = append(l.Iterations, s.Iteration), append(l.Bytes, s.Bytes)
		if s.Extra > 0 {
			b.extra(l, &b.t.Extras[s.Extra-1])
		}
	}
	place := make([]int32, len(rows))
	for r := range rows {
		l := &rows[r]
		place[r] = -1
		if len(l.Starts) == 0 {
			continue
		}
		l.Kind, l.Group, l.Name = k.Kind, k.Group, cmp.Or(k.Name, string(k.Kind))
		if r > 0 {
			l.Name = fmt.Sprintf("%s (%d)", l.Name, r+1)
		}
		trim(l)
		within(l)
		place[r] = int32(len(b.out.Lanes))
		b.out.Lanes = append(b.out.Lanes, *l)
	}
	for i := range k.lane {
		if k.lane[i] >= 0 {
			k.lane[i] = place[k.lane[i]]
		}
	}
}

// length returns the largest duration with start + duration ≤ end in floating point, so that bars
// that touch or nest still do.
func length(start, end float64) float64 {
	d := end - start
	for range 4 {
		switch sum := start + d; {
		case sum > end:
			d = math.Nextafter(d, 0)
		case sum < end:
			if more := math.Nextafter(d, math.Inf(1)); start+more <= end {
				d = more
			} else {
				return d
			}
		default:
			return d
		}
	}
	return d
}

// within ends bars of a very long lane with the bar around them: seconds do not resolve
// nanoseconds there, so sums may differ.
func within(l *timeline.Lane) {
	long := false
	for i, s := range l.Starts {
		long = long || s+l.Durations[i] > seconds(exactSpan)
	}
	if !long {
		return
	}
	var ends []float64
	for i, s := range l.Starts {
		for len(ends) > 0 && ends[len(ends)-1] <= s+0.5e-9 {
			ends = ends[:len(ends)-1]
		}
		if k := len(ends); k > 0 && s+l.Durations[i] > ends[k-1] {
			l.Durations[i] = length(s, ends[k-1])
		}
		ends = append(ends, s+l.Durations[i])
	}
}

// extra sets the rare columns for the last bar of a lane.
func (b *lanes) extra(l *timeline.Lane, x *Extra) {
	n := len(l.Starts) - 1
	if x.Subnet != "" {
		i, ok := b.subnets[x.Subnet]
		if !ok {
			i = int32(len(b.out.Subnets))
			b.subnets[x.Subnet] = i
			b.out.Subnets = append(b.out.Subnets, x.Subnet)
		}
		l.Subnets = append(fill(l.Subnets, n, -1), i)
	}
	if x.Direction != "" {
		l.Directions = append(fill(l.Directions, n, -1), b.t.Name([]byte(x.Direction)))
	}
	if x.Stall > 0 {
		l.Stalls = append(fill(l.Stalls, n, 0), x.Stall)
	}
	if x.Utilisation >= 0 {
		l.Utilisation = append(fill(l.Utilisation, n, -1), x.Utilisation)
	}
	for key, v := range x.Figures {
		if l.Figures == nil {
			l.Figures = map[string][]float64{}
		}
		l.Figures[key] = append(fill(l.Figures[key], n, -1), v)
	}
}

func fill[T any](v []T, n int, with T) []T {
	for len(v) < n {
		v = append(v, with)
	}
	return v
}

// pad fills a column that is in use.
func pad[T any](v *[]T, n int, with T) {
	if *v != nil {
		*v = fill(*v, n, with)
	}
}

// trim gives all columns the same length and removes those without values.
func trim(l *timeline.Lane) {
	n := len(l.Starts)
	for _, c := range []*[]int32{&l.Layers, &l.Labels, &l.Types, &l.Iterations} {
		if !slices.ContainsFunc(*c, func(v int32) bool { return v >= 0 }) {
			*c = nil
		}
	}
	if !slices.ContainsFunc(l.Bytes, func(v int64) bool { return v >= 0 }) {
		l.Bytes = nil
	}
	pad(&l.Subnets, n, -1)
	pad(&l.Directions, n, -1)
	pad(&l.Stalls, n, 0)
	pad(&l.Utilisation, n, -1)
	for key, f := range l.Figures {
		l.Figures[key] = fill(f, n, -1)
	}
}

// links sets the arrows whose two slices are in the timeline.
func (b *lanes) links() {
	for _, l := range b.t.Links {
		from, to := b.t.Tracks[l.FromTrack], b.t.Tracks[l.ToTrack]
		if len(b.out.Links) >= maxLinks {
			b.t.Dropped.Add("arrows beyond the first 250,000", 1)
			continue
		}
		if from.lane[l.From] >= 0 && to.lane[l.To] >= 0 {
			b.out.Links = append(b.out.Links, timeline.Link{FromLane: from.lane[l.From], FromBar: from.bar[l.From], ToLane: to.lane[l.To], ToBar: to.bar[l.To]})
		}
	}
}

// Counter is a value over time.
type Counter struct {
	Group, Name, Unit string
	// Series and Key are for the importer.
	Series, Key string
	points      []point
}

type point struct {
	ts int64
	v  float64
}

// Counter adds a counter. Beyond the limit it returns nil, which [Trace.Value] accepts.
func (t *Trace) Counter(group, name, unit string) *Counter {
	if len(t.Counters) >= maxCounters {
		return nil
	}
	c := &Counter{Group: group, Name: name, Unit: unit}
	t.Counters = append(t.Counters, c)
	return c
}

// Value sets the value of a counter from a time (nanoseconds) on.
func (t *Trace) Value(c *Counter, ts int64, v float64) {
	switch {
	case c == nil || t.points >= MaxPoints:
		t.Dropped.Add("values of counters beyond the first 500,000", 1)
	case ts < -most || ts > most || math.IsNaN(v) || math.IsInf(v, 0):
		t.Dropped.Add("counter values that are not numbers", 1)
	default:
		t.points++
		c.points = append(c.points, point{ts, v})
	}
}

// Most returns the largest value; ok is false without values.
func (c *Counter) Most() (v float64, ok bool) {
	for i, p := range c.points {
		if i == 0 || p.v > v {
			v = p.v
		}
		ok = true
	}
	return v, ok
}

// counter returns the counter of a timeline that begins at origin, and the number of values
// beyond its end.
func (c *Counter) counter(origin int64) (k timeline.Counter, late int64) {
	k = timeline.Counter{Name: cmp.Or(c.Name, "counter"), Unit: c.Unit, Group: c.Group, Times: []float64{}, Values: []float64{}}
	slices.SortStableFunc(c.points, func(a, b point) int { return cmp.Compare(a.ts, b.ts) })
	for _, p := range c.points {
		if p.ts-origin > maxSpan {
			late++
			continue
		}
		k.Times, k.Values = append(k.Times, seconds(p.ts-origin)), append(k.Values, p.v)
	}
	return k, late
}
