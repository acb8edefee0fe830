package traceevent

import (
	"cmp"
	"slices"

	"github.com/opmeter/opmeter/internal/record/track"
)

// maxPoints bounds the ends of arrows that are kept.
const maxPoints = 1_000_000

// Flows collects the ends of arrows, until the slices that they are bound to are known.
type Flows struct {
	at     map[string]int32
	points []point
	key    []byte
	// Lost counts ends beyond a bound.
	Lost int64
}

type point struct {
	flow, track int32
	ts          int64
	next        bool // bound to the slice that begins next
	leaves      bool
}

// Point takes an event of an arrow: s, t or f.
func (f *Flows) Point(e *Event, track int32) {
	f.add(e, e.ID, track, e.Phase == 'f' && string(Bare(e.BindPoint)) != "e", e.Phase == 's')
}

// Bound takes a slice that names an arrow which leaves or reaches it.
func (f *Flows) Bound(e *Event, track int32) { f.add(e, e.BindID, track, false, !e.FlowIn) }

func (f *Flows) add(e *Event, id []byte, track int32, next, leaves bool) {
	if len(f.points) >= maxPoints {
		f.Lost++
		return
	}
	f.key = Key(f.key, Bare(id), Bare(e.Cat))
	n, ok := f.at[string(f.key)]
	if !ok {
		if f.at == nil {
			f.at = map[string]int32{}
		}
		n = int32(len(f.at))
		f.at[string(f.key)] = n
	}
	f.points = append(f.points, point{n, track, e.TS, next, leaves})
}

// Links gives the trace its arrows, from slice to slice in order of time. Ends at which
// nothing is are counted.
func (f *Flows) Links(t *track.Trace) {
	slices.SortStableFunc(f.points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.flow, b.flow), cmp.Compare(a.ts, b.ts))
	})
	var last point
	var from int32 = -1
	lost := f.Lost
	for i, p := range f.points {
		if i == 0 || p.flow != last.flow || p.leaves {
			from = -1
		}
		k := t.Tracks[p.track]
		var at int32
		if p.next {
			at = k.Next(p.ts)
		} else {
			at = k.At(p.ts)
		}
		if at < 0 {
			lost++
			continue
		}
		if from >= 0 && (last.track != p.track || from != at) {
			t.Links = append(t.Links, track.Link{FromTrack: last.track, From: from, ToTrack: p.track, To: at})
		}
		last, from = p, at
	}
	t.Dropped.Add("ends of arrows at which there is nothing", lost)
}
