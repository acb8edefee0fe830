package chrome

import (
	"cmp"
	"slices"

	"github.com/opmeter/opmeter/internal/record/traceevent"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile/timeline"
)

// mark is a beginning or an end.
type mark struct {
	ts    int64
	name  int32 // of the trace's names, -1 for any
	slice int32 // of a beginning: its place on the track
	end   bool
}

// pending is where beginnings wait for their ends.
type pending struct {
	p     *process
	track int32
	marks []mark
}

// mark keeps a beginning or an end until all are there: they come in any order.
func (b *reader) mark(w *pending, end bool) {
	if b.marks >= maxMarks {
		b.trace.Dropped.Add("beginnings and ends beyond the first 4,000,000", 1)
		return
	}
	b.marks++
	m := mark{ts: b.e.TS, name: b.trace.Name(traceevent.Text(b.e.Name)), end: end}
	if !end {
		// The slice has its place among others of the same time by its beginning.
		m.slice = b.trace.Add(w.track, track.Slice{Start: m.ts, Dur: -1, Bytes: -1, Layer: b.layer(), Iteration: -1, Label: -1, Type: -1})
		if m.slice < 0 {
			return
		}
	}
	w.marks = append(w.marks, m)
}

// asynchronous takes what begins and ends on no thread: operations of one
// identifier are on a row of their own, those of a process stand together.
func (b *reader) asynchronous() {
	e := b.e
	if e.Phase == 'n' || e.Phase == 'T' || e.Phase == 'p' {
		return // a step on the way
	}
	p := b.process(traceevent.Bare(e.PID))
	if p == nil {
		return
	}
	id, pid := e.ID, ""
	if e.ID2 != nil {
		traceevent.Members(e.ID2, func(k, v []byte) {
			if id, pid = v, p.pid; string(k) == "global" {
				pid = ""
			}
		})
	}
	b.key = traceevent.Key(b.key, e.Cat, traceevent.Bare(id), e.Scope, []byte(pid))
	w := b.async[string(b.key)]
	if w == nil {
		if len(b.async) >= maxAsync {
			b.trace.Dropped.Add("operations of more than 1,000,000 identifiers", 1)
			return
		}
		w = &pending{p: p, track: b.operations(p)}
		b.async[string(b.key)] = w
		b.waiting = append(b.waiting, w)
	}
	b.mark(w, e.Phase == 'e' || e.Phase == 'F')
}

// operations is the track of what goes on in a process beside its threads.
func (b *reader) operations(p *process) int32 {
	if !p.asked {
		p.asked, p.track = true, b.trace.Track(timeline.Host, "", "operations")
		b.trace.Tracks[p.track].Aside = true
	}
	return p.track
}

// match gives slices their ends.
func (b *reader) match() {
	for _, t := range b.list {
		b.pairs(&t.pending)
	}
	for _, w := range b.waiting {
		b.pairs(w)
	}
}

// pairs ends the slices of one row of beginnings and ends. An end closes the innermost
// slice under way that has its name; at the same time as a beginning it waits for it. Ends
// that nothing waits for are dropped; what has no end is under way until the end.
func (b *reader) pairs(w *pending) {
	ms := w.marks
	w.marks = nil
	if !slices.IsSortedFunc(ms, func(a, b mark) int { return cmp.Compare(a.ts, b.ts) }) {
		slices.SortStableFunc(ms, func(a, b mark) int { return cmp.Compare(a.ts, b.ts) })
	}
	var open []mark
	closes := func(m mark) bool {
		for i := len(open) - 1; i >= 0 && i >= len(open)-1000; i-- {
			if o := open[i]; o.name == m.name || m.name < 0 || o.name < 0 {
				s := &b.trace.Tracks[w.track].Slices[o.slice]
				s.Dur, s.Open = m.ts-o.ts, false
				open = append(open[:i], open[i+1:]...)
				return true
			}
		}
		return false
	}
	for i := 0; i < len(ms); {
		j := i
		var late []mark
		for ; j < len(ms) && ms[j].ts == ms[i].ts; j++ {
			switch {
			case !ms[j].end:
				open = append(open, ms[j])
			case !closes(ms[j]):
				late = append(late, ms[j])
			}
		}
		for _, m := range late {
			if !closes(m) {
				b.trace.Dropped.Add("ends without a beginning", 1)
			}
		}
		i = j
	}
}
