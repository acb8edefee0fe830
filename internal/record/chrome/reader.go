package chrome

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/record/traceevent"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// reader collects events in the order of the file.
type reader struct {
	trace  track.Trace
	layers track.Layers
	own    *own
	head   map[string]string
	events int64
	phases [128]int64

	processes map[string]*process
	threads   map[string]*thread
	list      []*thread
	last      *thread
	lastKey   []byte
	async     map[string]*pending
	waiting   []*pending
	counters  map[string]*track.Counter
	flows     track.Flows
	samples   sampler
	e         *traceevent.Event // the current event
	key       []byte
}

func newReader() *reader {
	return &reader{
		head: map[string]string{}, processes: map[string]*process{}, threads: map[string]*thread{},
		async: map[string]*pending{}, counters: map[string]*track.Counter{},
		samples: sampler{byID: map[string]frame{}, v8: map[string]*v8Part{}, places: map[string]int32{}},
	}
}

type process struct {
	pid, name string
	rank      int64
	track     int32 // of its operations
	asked     bool
}

type thread struct {
	tid  string
	name string
	rank int64
	pending
}

// thread returns the thread of the current event, nil beyond the limit.
func (b *reader) thread() *thread {
	pid, tid := traceevent.Bare(b.e.PID), traceevent.Bare(b.e.TID)
	b.key = traceevent.Key(b.key, pid, tid)
	if b.last != nil && bytes.Equal(b.key, b.lastKey) {
		return b.last
	}
	t, ok := b.threads[string(b.key)]
	if !ok {
		p := b.process(pid)
		if p == nil || len(b.threads) >= maxThreads {
			b.trace.Dropped.Add("events of more than 10,000 threads", 1)
			return nil
		}
		kind := timeline.Thread
		if b.own != nil {
			kind = ""
		}
		t = &thread{tid: track.Clip(tid), pending: pending{p: p, Pending: track.Pending{Track: b.trace.Track(kind, "", "")}}}
		b.threads[string(b.key)] = t
		b.list = append(b.list, t)
	}
	b.last, b.lastKey = t, append(b.lastKey[:0], b.key...)
	return t
}

func (b *reader) process(pid []byte) *process {
	p := b.processes[string(pid)]
	if p == nil && len(b.processes) < maxThreads {
		p = &process{pid: track.Clip(pid), rank: int64(len(b.processes))}
		b.processes[string(pid)] = p
	}
	return p
}

// event reads one event.
func (b *reader) event() {
	e := b.e
	if e.Phase == 0 || e.Phase >= 128 {
		b.trace.Dropped.Add("events without a phase", 1)
		return
	}
	b.events++
	b.phases[e.Phase]++
	if e.Phase == 'M' {
		b.metadata()
		return
	}
	if !e.HasTS {
		if e.Phase != 'c' {
			b.trace.Dropped.Add("events without a time", 1)
		}
		return
	}
	if b.own != nil && e.Phase != 'X' && e.Phase != 'C' && e.Phase != 's' && e.Phase != 'f' {
		b.trace.Dropped.Add("events of phases that opmeter does not write", 1)
		return
	}
	switch e.Phase {
	case 'X':
		b.complete()
	case 'B', 'E':
		if t := b.thread(); t != nil {
			b.mark(&t.pending, e.Phase == 'E')
		}
	case 'I', 'i', 'R':
		b.instant()
	case 'C':
		b.counter()
	case 'b', 'e', 'n', 'S', 'F', 'T', 'p':
		b.asynchronous()
	case 's', 't', 'f':
		if t := b.thread(); t != nil {
			e.Arrow(&b.flows, t.Track)
		}
	case 'P':
		b.samples.event(b, e)
	}
}

// complete adds a slice that has a duration.
func (b *reader) complete() {
	e := b.e
	t := b.thread()
	if t == nil {
		return
	}
	if !e.HasDur {
		if e.Dur, e.HasDur = traceevent.Nanos(e.ThreadDur); !e.HasDur {
			b.trace.Dropped.Add("slices without a length", 1)
			return
		}
	}
	if e.Dur < 0 {
		b.trace.Dropped.Add("slices of negative length", 1)
		return
	}
	s := track.Slice{Start: e.TS, Dur: e.Dur, Bytes: -1, Layer: -1, Iteration: -1, Label: -1, Type: -1}
	if b.own != nil {
		b.own.bar(b, t, s)
		return
	}
	s.Layer = b.layer()
	if seq := b.trace.Add(t.Track, s); seq >= 0 && e.BindID != nil && (e.FlowIn || e.FlowOut) {
		e.Bound(&b.flows, t.Track)
	}
}

// layer returns the layer of the current event, by name and category. In timelines of TensorFlow,
// arguments name operator and node.
func (b *reader) layer() int32 {
	name, op := traceevent.Text(b.e.Name), traceevent.Text(b.e.Cat)
	if i := bytes.IndexByte(op, ','); i > 0 {
		op = op[:i]
	}
	if string(op) == "Op" {
		var o, n []byte
		b.e.Fields("op", &o, "name", &n)
		if o != nil {
			op = traceevent.Text(o)
		}
		if n != nil {
			name = traceevent.Text(n)
		}
	}
	if len(name) == 0 {
		name = []byte("(unnamed)")
	}
	if len(op) == 0 {
		op = []byte("slice")
	}
	n := b.layers.Of(name, op)
	b.layers.Arguments(n, func(add func(key, value string)) {
		b.e.Each(func(k, v []byte) {
			if len(v) > 0 && v[0] != '{' && v[0] != '[' {
				add(track.Clip(k), track.Clip(traceevent.Text(v)))
			}
		})
	}, func(o *profile.Option) bool {
		var v []byte
		b.e.Fields(o.Key, &v)
		return string(traceevent.Text(v)) == o.Value || track.Clip(traceevent.Text(v)) == o.Value
	})
	return n
}

// instant adds an event without a duration.
func (b *reader) instant() {
	if t := b.thread(); t != nil {
		b.trace.Add(t.Track, track.Slice{
			Start: b.e.TS, Bytes: -1, Layer: -1, Iteration: -1,
			Label: b.trace.Name(traceevent.Text(b.e.Name)), Type: b.trace.Name([]byte("instant")),
		})
	}
}

// counter adds values of a counter: one series per argument.
func (b *reader) counter() {
	e := b.e
	p := b.process(traceevent.Bare(e.PID))
	if p == nil {
		return
	}
	name, id := traceevent.Text(e.Name), traceevent.Bare(e.ID)
	n := 0
	e.Each(func(k, v []byte) {
		f, ok := jsonscan.Number(v)
		if !ok {
			b.trace.Dropped.Add("counter values that are not numbers", 1)
			return
		}
		if n++; n > 100 {
			b.trace.Dropped.Add("series of a counter beyond the first 100", 1)
			return
		}
		b.key = traceevent.Key(b.key, []byte(p.pid), name, id, k)
		c, ok := b.counters[string(b.key)]
		if !ok {
			c = b.trace.Counter("", track.Clip(name), "")
			if c != nil {
				c.Series, c.Key = track.Clip(traceevent.Text(k)), p.pid
				if len(id) > 0 {
					c.Name += " " + track.Clip(id)
				}
				b.counters[string(b.key)] = c
			}
		}
		b.trace.Value(c, e.TS, f)
	})
}

// metadata reads names and ranks.
func (b *reader) metadata() {
	switch string(traceevent.Bare(b.e.Name)) {
	case "process_name", "process_sort_index":
		if p := b.process(traceevent.Bare(b.e.PID)); p != nil {
			b.e.Fields("name", &p.name, "sort_index", &p.rank)
		}
	case "thread_name", "thread_sort_index":
		if t := b.thread(); t != nil {
			b.e.Fields("name", &t.name, "sort_index", &t.rank)
		}
	}
}

// nameTracks names and orders the tracks after the last event.
func (b *reader) nameTracks() {
	count := map[string]int{}
	for _, p := range b.processes {
		count[p.name]++
	}
	for _, t := range b.list {
		k := b.trace.Tracks[t.Track]
		k.Group, k.Name, k.GroupRank, k.Rank = b.group(t.p, count), cmp.Or(t.name, "thread "+t.tid), t.p.rank, t.rank
	}
	for _, w := range b.waiting {
		k := b.trace.Tracks[w.Track]
		k.Group, k.GroupRank, k.Rank = b.group(w.p, count), w.p.rank, 1<<40
	}
	names := map[[2]string]int{}
	for _, c := range b.trace.Counters {
		names[[2]string{c.Key, c.Name}]++
	}
	for _, c := range b.trace.Counters {
		p := b.processes[c.Key]
		several := names[[2]string{c.Key, c.Name}] > 1
		c.Group = b.group(p, count)
		switch {
		case b.own != nil:
			if c.Series != "count" {
				c.Unit = c.Series
			}
		case several || c.Name == "":
			c.Name = strings.TrimSpace(c.Name + " " + c.Series)
		}
	}
}

// group returns the name of a process in the timeline.
func (b *reader) group(p *process, count map[string]int) string {
	switch {
	case b.own != nil && p.pid == "1":
		return ""
	case p.name == "":
		return "process " + p.pid
	case count[p.name] > 1 && b.own == nil:
		return fmt.Sprintf("%s (%s)", p.name, p.pid)
	}
	return p.name
}

// pending collects beginnings and ends of slices of a thread or of operations of a process.
type pending struct {
	track.Pending
	p *process
}

// mark adds the current event, a beginning or an end.
func (b *reader) mark(w *pending, end bool) {
	name := b.trace.Name(traceevent.Text(b.e.Name))
	if end {
		b.trace.End(&w.Pending, name, b.e.TS)
		return
	}
	b.trace.Begin(&w.Pending, name, track.Slice{Start: b.e.TS, Bytes: -1, Layer: b.layer(), Iteration: -1, Label: -1, Type: -1})
}

// asynchronous adds beginnings and ends that belong to no thread. They are paired by identifier;
// all operations of a process are on one track.
func (b *reader) asynchronous() {
	e := b.e
	if e.Phase == 'n' || e.Phase == 'T' || e.Phase == 'p' {
		return // an intermediate step
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

// operations returns the track of asynchronous operations of a process.
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
