package firefox

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/record/stacks"
	"github.com/opmeter/opmeter/internal/record/traceevent"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile/timeline"
)

// maxThreads limits the threads of a profile.
const maxThreads = 5000

// nanos converts milliseconds to nanoseconds; ok is false if they do not fit.
func nanos(ms float64) (ns int64, ok bool) { return track.Nanos(ms, 1e6) }

// thread reads one thread.
func (b *reader) thread(v []byte, shift float64) {
	if b.threads++; b.threads > maxThreads {
		b.set.Dropped.Add("threads beyond the first 5,000", 1)
		return
	}
	var name, process, pid, tid string
	var samples, markers []byte
	traceevent.Fields(v, "name", &name, "processName", &process, "pid", &pid, "tid", &tid, "samples", &samples, "markers", &markers)
	group := process
	if b.own == nil && pid != "" {
		group = strings.TrimSpace(process + " " + pid)
		if _, err := strconv.Atoi(pid); err == nil && process == "" {
			group = "process " + pid
		}
	}
	name = cmp.Or(name, "thread "+tid)
	t := readTables(v)
	if !t.any && b.shared != nil {
		// Threads share everything but samples.
		own := t.strings
		t = b.shared
		if len(own) > 0 && len(t.strings) == 0 {
			t.strings = own
		}
	}
	b.order++
	if b.own != nil {
		b.ownThread(t, group, name, markers)
		return
	}
	t.resolve(b)
	n := b.trace.Track(timeline.Thread, group, name)
	b.trace.Tracks[n].Rank = 2 * b.order
	from, to := b.samples(t, readTable(samples), n, shift)
	b.markers(t, readTable(markers, "data"), group, name, from, to, shift)
}

// samples adds the samples of a thread and makes its bars. Unless weights are times, a sample
// lasts until the next one.
func (b *reader) samples(t *tables, s table, n int32, shift float64) (from, to int64) {
	var all []stacks.Weighted
	hits, _ := b.set.Count(stacks.Samples, 1)
	time, _ := b.set.Count(stacks.Time, 1e-9)
	timed := s.unit == "tracing-ms" // weights in milliseconds; otherwise numbers of samples
	for i, at := range s.times(shift) {
		ts, ok := nanos(at)
		if !ok {
			b.set.Dropped.Add("samples without a time", 1)
			continue
		}
		place := stacks.Root
		if k := s.index("stack", i); k >= 0 && k < len(t.places) {
			place = t.places[k]
		}
		w := 1.0
		if f := s.at("weight", i); !math.IsNaN(f) {
			w = f
		}
		switch {
		case place < 0:
		case timed:
			b.set.Add(time, place, w*1e6)
		default:
			b.set.Add(hits, place, w)
		}
		all = append(all, stacks.Weighted{At: ts, Place: place})
	}
	c := stacks.Chart{Set: &b.set, Trace: &b.trace, Track: n}
	last, _ := nanos(b.interval)
	if timed {
		time = -1 // the weights are in the column
	}
	c.Spread(time, all, last)
	if len(all) == 0 {
		return 0, 0
	}
	return all[0].At, all[len(all)-1].At + last
}

// markers makes bars of markers with a duration, on a track beside the thread. In old versions
// markers may use another clock than samples; those are skipped.
func (b *reader) markers(t *tables, m table, group, thread string, from, to int64, shift float64) {
	n := int32(-1)
	far := int64(0)
	add := func(name string, start, end float64) {
		s, ok := nanos(start + shift)
		e, ok2 := nanos(end + shift)
		if !ok || !ok2 || e < s {
			b.set.Dropped.Add("markers without a time that can be", 1)
			return
		}
		if to > from && (s > to+(to-from) || e < from-(to-from)) {
			far++
			return
		}
		if n < 0 {
			n = b.trace.Track(timeline.Host, group, thread+" markers")
			b.trace.Tracks[n].Aside, b.trace.Tracks[n].Rank = true, 2*b.order+1
		}
		b.trace.Add(n, track.Slice{Start: s, Dur: e - s, Bytes: -1, Layer: -1, Iteration: -1, Label: b.trace.Name([]byte(name)), Type: b.trace.Name([]byte("marker"))})
	}
	open := map[int][]float64{} // starts by name
	for i := range m.n {
		id := m.index("name", i)
		name := cmp.Or(t.text(id), "(unnamed)")
		start, end := m.at("startTime", i), m.at("endTime", i)
		phase := m.at("phase", i)
		if old := m.at("time", i); !math.IsNaN(old) {
			start, end, phase = b.oldMarker(m, i, old)
		}
		switch {
		case phase == 2 && !math.IsNaN(start):
			if len(open) < 10_000 {
				open[id] = append(open[id], start)
			}
		case phase == 3 && !math.IsNaN(end):
			if o := open[id]; len(o) > 0 {
				add(name, o[len(o)-1], end)
				open[id] = o[:len(o)-1]
			} else {
				b.set.Dropped.Add("ends of markers without a beginning", 1)
			}
		case !math.IsNaN(start) && !math.IsNaN(end) && phase != 0:
			add(name, start, end)
		}
	}
	b.set.Dropped.Add("markers by another clock than the samples", far)
}

// oldMarker reads the data of a marker of an old version: phase 1 is an interval, 2 a start, 3 an
// end.
func (b *reader) oldMarker(m table, i int, at float64) (start, end, phase float64) {
	start, end, phase = math.NaN(), math.NaN(), 0
	column := m.raw["data"]
	if i >= len(column) {
		return at, end, phase
	}
	interval := ""
	traceevent.Fields(column[i], "startTime", &start, "endTime", &end, "interval", &interval)
	switch {
	case interval == "start":
		return at, end, 2
	case interval == "end":
		return start, at, 3
	case !math.IsNaN(start) && !math.IsNaN(end):
		return start, end, 1
	}
	return at, end, 0
}

// counter reads a counter, such as allocated memory. Its values are differences.
func (b *reader) counter(v []byte, shift float64) {
	var name string
	var samples, groups []byte
	traceevent.Fields(v, "name", &name, "samples", &samples, "sampleGroups", &groups, "sample_groups", &groups)
	list := [][]byte{samples}
	add := func(v []byte) {
		var samples []byte
		traceevent.Fields(v, "samples", &samples)
		list = append(list, samples)
	}
	add(groups)
	traceevent.Elements(groups, add)
	unit := ""
	if name == "malloc" {
		unit = "B"
	}
	for _, v := range list {
		if v == nil {
			continue
		}
		s := readTable(v)
		c := b.trace.Counter("", cmp.Or(name, "counter"), unit)
		sum := 0.0
		for i, at := range s.times(shift) {
			ts, ok := nanos(at)
			if d := s.at("count", i); ok && !math.IsNaN(d) {
				sum += d
				b.trace.Value(c, ts, sum)
			}
		}
	}
}
