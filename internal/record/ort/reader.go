package ort

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/measure/runlog"
)

// Bounds of what is kept.
const (
	maxPending = 1_000_000 // events that wait for the end of their inference
	maxRows    = 100_000   // different operators
	maxThreads = 256
)

// reader makes rows and inferences of events in the order in which they come.
type reader struct {
	now      event
	ids      map[string]int32 // of names with operator and index
	nodes    []*node          // by id
	lastOf   map[string]int32 // node that ran last, by operator
	rows     []row
	rowAt    map[rowKey]int32
	threads  map[string]int32
	names    []string // of threads
	pending  []item   // events whose inference is not known yet
	late     *item    // an inference whose nodes come after it
	runner   []bool   // by thread: it runs the session
	tally    runlog.Tally
	bars     bars
	sessions int   // events of sessions
	runs     int   // inferences
	seen     int64 // events
	from     int64 // events that end before are not taken, microseconds
	shift    int64 // of the file's times, microseconds
	summed   bool
	looked   int // events looked at to find those of inferences, and taken
	taken    int
	load     *float64
	plan     *float64
	arena    int64 // most that the arena held, -1 for not known
	peak     int64
	workers  int
	dropped  runlog.Dropped
	qs       runlog.Quantities
	key      []byte
	args     arguments // of the present event
}

// rowKey tells rows apart: a node's index is its own within its graph only.
type rowKey struct {
	parent, node, nth int32
}

// item is an event that is kept until its inference ends.
type item struct {
	ts, end int64 // microseconds
	node    int32 // -1 for an executor
	thread  int32
	body    []int32 // positions of what it ran
}

func newReader() *reader {
	return &reader{ids: map[string]int32{}, rowAt: map[rowKey]int32{}, lastOf: map[string]int32{}, threads: map[string]int32{}, arena: -1, peak: -1, bars: bars{every: 1}, from: math.MinInt64}
}

// event takes one event.
func (r *reader) event(v []byte) {
	if !r.whole(v) && !r.line(v) {
		r.dropped.Add("events that are not valid JSON", 1)
	}
}

// whole takes a text that is one event; it reports whether it is.
func (r *reader) whole(v []byte) bool {
	if !r.now.parse(v, &r.args) {
		return false
	}
	r.take()
	return true
}

func (r *reader) take() {
	e := &r.now
	r.seen++
	if e.timed && e.ts+e.dur <= r.from && !loading(e) {
		return
	}
	e.ts += r.shift
	switch string(e.cat) {
	case "Session":
		r.session()
	case "Node":
		r.node()
	case "Kernel":
		r.kernel()
	case "Api":
	default:
		r.dropped.Add("events of categories that are not known", 1)
	}
}

func (r *reader) session() {
	e := &r.now
	r.sessions++
	if !e.timed {
		r.dropped.Add("events without a time", 1)
		return
	}
	s := float64(e.dur) / 1e6
	switch {
	case bytes.HasPrefix(e.name, []byte("model_loading")):
		r.load = add(r.load, s)
	case string(e.name) == "session_initialization":
		r.plan = add(r.plan, s)
	case string(e.name) == "model_run":
		r.args.begin()
		r.modelRun()
	case executor(e.name):
		r.keep(item{ts: e.ts, end: e.ts + e.dur, node: -1, thread: r.thread()})
	default:
		// Parts of a run that some builds time, such as batches: they enclose nodes.
		r.bars.session(e)
	}
}

// loading reports whether an event is of what comes before inferences.
func loading(e *event) bool {
	return string(e.cat) == "Session" && (bytes.HasPrefix(e.name, []byte("model_loading")) || string(e.name) == "session_initialization")
}

func add(to *float64, v float64) *float64 {
	if to != nil {
		v += *to
	}
	return &v
}

func (r *reader) thread() int32 {
	if t, ok := r.threads[string(r.now.tid)]; ok {
		return t
	}
	if len(r.names) >= maxThreads {
		return maxThreads - 1
	}
	t := int32(len(r.names))
	name := string(r.now.tid)
	r.threads[name] = t
	r.names = append(r.names, name)
	r.runner = append(r.runner, false)
	return t
}

func (r *reader) keep(i item) {
	if len(r.pending) >= maxPending {
		r.dropped.Add("nodes of an inference with more than a million of them", 1)
		return
	}
	r.pending = append(r.pending, i)
}

// node takes the event of a node.
func (r *reader) node() {
	e := &r.now
	if !e.timed {
		r.dropped.Add("events without a time", 1)
		return
	}
	name := e.name
	switch {
	case bytes.HasSuffix(name, []byte(kernelTime)):
		name = name[:len(name)-len(kernelTime)]
	case bytes.HasSuffix(name, []byte(fenceBefore)), bytes.HasSuffix(name, []byte(fenceAfter)):
		return // waiting for other devices, 0 on processors: not part of the node's time
	}
	id := r.id(name)
	if id < 0 {
		r.dropped.Add("nodes beyond the first hundred thousand different ones", 1)
		return
	}
	r.keep(item{ts: e.ts, end: e.ts + e.dur, node: id, thread: r.thread()})
}

// id numbers nodes, and adds the event's arguments to those of its node.
func (r *reader) id(name []byte) int32 {
	a := &r.args
	a.done()
	k := append(append(append(r.key[:0], name...), 0), a.op...)
	for i := range 8 {
		k = append(k, byte(a.index>>(8*i)))
	}
	if len(name) == 0 {
		k = append(k, a.in...) // nothing else tells nodes without names apart
	}
	r.key = k
	id, ok := r.ids[string(k)]
	if !ok {
		if len(r.nodes) >= maxRows {
			return -1
		}
		id = int32(len(r.nodes))
		r.ids[string(k)] = id
		r.nodes = append(r.nodes, newNode(jsonscan.Decode(name), a))
	}
	r.nodes[id].take(r, a)
	r.lastOf[r.nodes[id].op] = id
	return id
}

// kernel adds the time of a device's kernel to the node that ran last with the operator
// it names: the record has no other link.
func (r *reader) kernel() {
	e := &r.now
	a := &r.args
	a.done()
	id, ok := r.lastOf[string(a.op)]
	if !ok || !e.timed {
		r.dropped.Add("device kernels without a node", 1)
		return
	}
	r.nodes[id].device.add(float64(e.dur) / 1e6)
	r.bars.kernel(e)
}

// modelRun ends an inference, or begins one where events are ordered by their start.
func (r *reader) modelRun() {
	e := &r.now
	run := item{ts: e.ts, end: e.ts + e.dur, thread: r.thread()}
	r.runner[run.thread] = true
	if r.late != nil {
		l := *r.late
		r.late = nil
		r.inference(&l)
	}
	if r.inside(&run) {
		r.inference(&run)
		return
	}
	r.late = &run
}

// inside reports whether an event that waits lies within a run.
func (r *reader) inside(run *item) bool {
	for i := len(r.pending) - 1; i >= 0; i-- {
		if p := &r.pending[i]; p.ts >= run.ts && p.end <= run.end {
			return true
		}
	}
	return false
}

// finish takes what is left at the end.
func (r *reader) finish() {
	if r.late != nil {
		l := *r.late
		r.late = nil
		r.inference(&l)
	}
	if len(r.pending) == 0 {
		return
	}
	if r.runs > 0 {
		r.dropped.Add("nodes of an inference whose end is not recorded", int64(len(r.pending)))
		r.pending = nil
		return
	}
	// No inference has an event of its own: one ends where its first node comes again.
	all := r.pending
	r.pending = nil
	first := int32(-1)
	from := 0
	for i := range all {
		n := all[i].node
		if n < 0 {
			continue
		}
		if first < 0 {
			first = n
		} else if n == first && r.nodes[n].name != "" {
			r.pieces(all[from:i])
			from = i
		}
	}
	r.pieces(all[from:])
}

func (r *reader) pieces(items []item) {
	r.pending = append(r.pending[:0], items...)
	run := item{ts: items[0].ts, end: items[0].end, thread: items[0].thread, node: -1}
	for i := range items {
		run.ts, run.end = min(run.ts, items[i].ts), max(run.end, items[i].end)
	}
	r.inference(&run)
}

// inference adds up what lies within a run. Events before it that belong to no run are
// dropped; those of a run on another thread wait.
func (r *reader) inference(run *item) {
	var mine, rest []item
	several := r.several()
	within := func(p *item) bool { return p.ts >= run.ts && p.end <= run.end }
	// Nodes run on the thread that asked for the inference, or all on those of a pool.
	alone := slices.ContainsFunc(r.pending, func(p item) bool { return p.thread == run.thread && p.node >= 0 && within(&p) })
	for _, p := range r.pending {
		switch {
		case within(&p) && (p.thread == run.thread || !alone && !r.runner[p.thread]):
			mine = append(mine, p)
		case p.end <= run.ts && !several && p.thread == run.thread:
			if p.node >= 0 {
				r.dropped.Add("nodes outside of any inference", 1)
			}
		default:
			rest = append(rest, p)
		}
	}
	// Looking again and again at what never belongs to a run must not take forever.
	r.taken += len(mine)
	if r.looked += len(r.pending); r.looked > 1_000_000+64*r.taken {
		r.dropped.Add("nodes outside of any inference", int64(len(rest)))
		r.looked, rest = 0, nil
	}
	r.pending = append(r.pending[:0], rest...)
	r.runs++
	top := r.tree(mine)
	r.bars.begin(run)
	nth := map[rowKey]int32{}
	for _, i := range top {
		r.count(mine, i, -1, nth)
	}
	wall := 1000 * (run.end - run.ts)
	if run.node < 0 {
		wall = -1 // nobody recorded the whole: it is the sum of its nodes
		r.summed = true
	}
	r.tally.End(wall)
	r.bars.end()
}

func (r *reader) several() bool {
	n := 0
	for _, x := range r.runner {
		if x {
			n++
		}
	}
	return n > 1
}

// tree finds what ran within what, thread by thread, and returns the outermost. Of
// events that end at the same microsecond the inner one was written first.
func (r *reader) tree(items []item) (top []int32) {
	ordered := slices.IsSortedFunc(items, func(a, b item) int { return cmp.Compare(a.end, b.end) })
	order := make([]int32, len(items))
	for i := range order {
		order[i] = int32(i)
	}
	if !ordered {
		slices.SortStableFunc(order, func(a, b int32) int {
			x, y := &items[a], &items[b]
			switch {
			case x.end != y.end:
				return cmp.Compare(x.end, y.end)
			case (x.ts == x.end) != (y.ts == y.end):
				// What took no time and begins where the other one ends comes after it.
				if x.ts == x.end {
					return 1
				}
				return -1
			case x.ts != y.ts:
				return cmp.Compare(y.ts, x.ts)
			}
			return int(b - a) // the outer one began, and was written, first
		})
	}
	open := make([][]int32, len(r.names))
	for _, i := range order {
		it := &items[i]
		s := open[it.thread]
		from := len(s)
		inner := it.node < 0 || holds(r.nodes[it.node].op)
		for from > 0 && items[s[from-1]].ts >= it.ts && (inner || items[s[from-1]].node < 0) {
			from--
		}
		for _, k := range s[from:] {
			if items[k].node < 0 {
				it.body = append(it.body, items[k].body...)
			} else {
				it.body = append(it.body, k)
			}
		}
		open[it.thread] = append(s[:from], i)
	}
	for _, s := range open {
		for _, i := range s {
			if items[i].node < 0 {
				top = append(top, items[i].body...)
			} else {
				top = append(top, i)
			}
		}
	}
	slices.SortStableFunc(top, func(a, b int32) int { return cmp.Compare(items[a].ts, items[b].ts) })
	return top
}

// count adds a node with what it ran.
func (r *reader) count(items []item, i, parent int32, nth map[rowKey]int32) {
	it := &items[i]
	k := rowKey{parent: parent, node: it.node}
	if n := r.nodes[it.node]; n.name == "" || n.index < 0 && parent < 0 {
		// Without a name or number nodes are told apart by their order.
		k.nth = nth[k]
		nth[rowKey{parent: parent, node: it.node}]++
	}
	at, ok := r.rowAt[k]
	if !ok {
		if len(r.rows) >= maxRows {
			r.dropped.Add("nodes beyond the first hundred thousand different ones", 1)
			return
		}
		at = int32(len(r.rows))
		r.rowAt[k] = at
		r.rows = append(r.rows, row{node: it.node, parent: parent})
	}
	self := it.end - it.ts
	for _, b := range it.body {
		self -= items[b].end - items[b].ts
	}
	r.tally.Call(int(at), 1000*max(0, self))
	r.bars.add(it, at)
	for _, b := range it.body {
		r.count(items, b, at, nth)
	}
}

// row is a layer of the profile: a node where it is run from.
type row struct{ node, parent int32 }
