package track

import (
	"cmp"
	"slices"
)

// Flows collects the ends of arrows until the slices that they are bound to are known.
type Flows struct {
	at   map[string]int32
	ends []arrowEnd
	lost int64
}

type arrowEnd struct {
	flow int32
	ArrowEnd
}

// ArrowEnd is one end of an arrow.
type ArrowEnd struct {
	Track int32
	TS    int64
	// Slice is the number that [Trace.Add] returned, -1 for the slice at TS.
	Slice int32
	// Next binds the point to the first slice that begins at TS or later.
	Next bool
	// Leaves says that an arrow begins here; the arrow before ends.
	Leaves bool
}

// Add adds an end of the arrow with a key.
func (f *Flows) Add(key []byte, p ArrowEnd) {
	if len(f.ends) >= maxArrowEnds {
		f.lost++
		return
	}
	n, ok := f.at[string(key)]
	if !ok {
		if f.at == nil {
			f.at = map[string]int32{}
		}
		n = int32(len(f.at))
		f.at[string(key)] = n
	}
	f.ends = append(f.ends, arrowEnd{n, p})
}

// Links sets the arrows of a trace, from slice to slice in the order of time. It counts ends
// without a slice. Call it after [Trace.Nest].
func (f *Flows) Links(t *Trace) {
	slices.SortStableFunc(f.ends, func(a, b arrowEnd) int {
		return cmp.Or(cmp.Compare(a.flow, b.flow), cmp.Compare(a.TS, b.TS))
	})
	places := map[int32][]int32{}
	var last arrowEnd
	from := int32(-1)
	for i, p := range f.ends {
		if i == 0 || p.flow != last.flow || p.Leaves {
			from = -1
		}
		k := t.Tracks[p.Track]
		var at int32
		switch {
		case p.Slice >= 0:
			if places[p.Track] == nil {
				places[p.Track] = k.Places()
			}
			if at = -1; int(p.Slice) < len(places[p.Track]) {
				at = places[p.Track][p.Slice]
			}
		case p.Next:
			at = k.Next(p.TS)
		default:
			at = k.At(p.TS)
		}
		if at < 0 {
			f.lost++
			continue
		}
		if from >= 0 && (last.Track != p.Track || from != at) {
			t.Links = append(t.Links, Link{FromTrack: last.Track, From: from, ToTrack: p.Track, To: at})
		}
		last, from = p, at
	}
	t.Dropped.Add("ends of arrows at which there is nothing", f.lost)
}
