package track

import (
	"cmp"
	"slices"
)

// Pending holds beginnings and ends of slices of a track, in any order, until all are known.
type Pending struct {
	// Track is the number of the track.
	Track int32
	marks []mark
}

// mark is a beginning or an end.
type mark struct {
	ts    int64
	name  int32
	slice int32 // of a beginning: see [Trace.Add]
	end   bool
}

// Begin adds a slice whose end follows, and returns the result of [Trace.Add]. Ends with the same
// name, a number of the caller, close the slice; -1 allows any end.
func (t *Trace) Begin(w *Pending, name int32, s Slice) int32 {
	if t.marksFull() {
		return -1
	}
	s.Dur = -1
	n := t.Add(w.Track, s)
	if n >= 0 {
		w.marks = append(w.marks, mark{ts: s.Start, name: name, slice: n})
	}
	return n
}

// End adds the end of a slice with a name, -1 for any name.
func (t *Trace) End(w *Pending, name int32, ts int64) {
	if !t.marksFull() {
		w.marks = append(w.marks, mark{ts: ts, name: name, end: true})
	}
}

func (t *Trace) marksFull() bool {
	if t.marks++; t.marks <= maxMarks {
		return false
	}
	t.Dropped.Add("beginnings and ends beyond the first 4,000,000", 1)
	return true
}

// Pair sets the ends of slices. An end closes the innermost open slice with its name. At equal
// times, an end may precede its beginning. Ends without a beginning are dropped. A slice without
// an end stays open.
func (t *Trace) Pair(w *Pending) {
	ms := w.marks
	w.marks = nil
	byTime := func(a, b mark) int { return cmp.Compare(a.ts, b.ts) }
	if !slices.IsSortedFunc(ms, byTime) {
		slices.SortStableFunc(ms, byTime)
	}
	var open []mark
	closes := func(m mark) bool {
		for i := len(open) - 1; i >= 0 && i >= len(open)-1000; i-- {
			if o := open[i]; o.name == m.name || m.name < 0 || o.name < 0 {
				s := &t.Tracks[w.Track].Slices[o.slice]
				s.Dur, s.Open = m.ts-o.ts, false
				open = slices.Delete(open, i, i+1)
				return true
			}
		}
		return false
	}
	for i := 0; i < len(ms); {
		var early []mark
		at := ms[i].ts
		for ; i < len(ms) && ms[i].ts == at; i++ {
			if !ms[i].end {
				open = append(open, ms[i])
			} else if !closes(ms[i]) {
				early = append(early, ms[i])
			}
		}
		for _, m := range early {
			if !closes(m) {
				t.Dropped.Add("ends without a beginning", 1)
			}
		}
	}
}
