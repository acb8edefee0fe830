package chrome

import (
	"github.com/opmeter/opmeter/internal/record/traceevent"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile/timeline"
)

// pending collects beginnings and ends of slices of a thread or of operations of a process.
type pending struct {
	track.Pending
	p *process
}

// mark adds the event under way, a beginning or an end.
func (b *reader) mark(w *pending, end bool) {
	name := b.trace.Name(traceevent.Text(b.e.Name))
	if end {
		b.trace.End(&w.Pending, name, b.e.TS)
		return
	}
	b.trace.Begin(&w.Pending, name, track.Slice{Start: b.e.TS, Bytes: -1, Layer: b.layer(), Iteration: -1, Label: -1, Type: -1})
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
		w = &pending{p: p, Pending: track.Pending{Track: b.operations(p)}}
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

// pair sets the ends of slices.
func (b *reader) pair() {
	for _, t := range b.list {
		b.trace.Pair(&t.Pending)
	}
	for _, w := range b.waiting {
		b.trace.Pair(&w.Pending)
	}
}
