package ort

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/measure/runlog"
)

// Limits of a file.
const (
	maxPending = 1_000_000 // events before the end of their inference
	maxRows    = 100_000   // different operators
	maxThreads = 256
)

// reader makes rows and inferences of events in the order of the file.
type reader struct {
	now     event
	ids     map[string]int32 // by name, operator and index
	nodes   []*node          // by id
	lastOf  map[string]int32 // node that ran last, by operator
	rows    []row
	rowAt   map[rowKey]int32
	threads map[string]int32
	names   []string // of threads
	pending []item   // events whose inference is not known yet
	late    *item    // an inference whose nodes follow it
	runner  []bool   // by thread: it runs the session
	tally   runlog.Tally
	// disturbed is that of the present session, nth the number of its next inference.
	disturbed func(inference int) bool
	nth       int
	bars      bars
	sessions  int    // events of sessions
	runs      int    // inferences with all times
	left      int    // inferences that are left out: a time of a call cannot be read
	partial   []item // the items of the first one that is left out
	seen      int64  // events
	from      int64  // events that end before are ignored, microseconds
	shift     int64  // of the file's times, microseconds
	summed    bool
	looked    int // pending events that were compared with inferences
	taken     int // those of them that belong to one
	load      *float64
	plan      *float64
	arena     int64 // maximum size of the arena, -1 if unknown
	peak      int64
	workers   int
	dropped   runlog.Dropped
	qs        runlog.Quantities
	key       []byte
	args      arguments // of the present event
	// split begins the reader of the next session of the file; nil for one session.
	split func() *reader
}

// rowKey identifies rows: a node's index is unique only within its graph.
type rowKey struct {
	parent, node, nth int32
}

// item is an event that is kept until its inference ends.
type item struct {
	ts, end int64 // microseconds
	node    int32 // -1 for an executor
	thread  int32
	body    []int32 // positions of the items that it ran
	lost    bool    // the duration cannot be read
	adrift  bool    // the start cannot be read either: it is part of the inference around it
}

func newReader() *reader {
	return &reader{ids: map[string]int32{}, rowAt: map[rowKey]int32{}, lastOf: map[string]int32{}, threads: map[string]int32{}, arena: -1, peak: -1, bars: bars{every: 1}, from: math.MinInt64}
}

// begun reports whether nodes or inferences of the session were read.
func (r *reader) begun() bool { return r.runs+r.left > 0 || r.late != nil || len(r.pending) > 0 }

// event reads one event.
func (r *reader) event(v []byte) {
	if !r.whole(v) && !r.line(v) {
		r.dropped.Add("events that are not valid JSON", 1)
	}
}

// whole reads a text if it is one event, and reports whether it is.
func (r *reader) whole(v []byte) bool {
	if !r.now.parse(v, &r.args) {
		return false
	}
	r.take()
	return true
}

func (r *reader) take() {
	e := &r.now
	if r.split != nil && r.begun() && loading(e) {
		next := r.split()
		next.now = *e
		next.take()
		return
	}
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
	if !r.timed() {
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
		r.keep(r.item(-1))
	default:
		// Parts of a run that some builds time, such as batches: they enclose nodes.
		r.bars.other(e, onHost)
	}
}

// timed reports whether the event has times; otherwise it counts as skipped.
func (r *reader) timed() bool {
	if !r.now.timed {
		r.dropped.Add("events without a time", 1)
	}
	return r.now.timed
}

// item makes an item of the event.
func (r *reader) item(node int32) item {
	return item{ts: r.now.ts, end: r.now.ts + r.now.dur, node: node, thread: r.thread()}
}

// loading reports whether an event precedes all inferences.
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

// node reads the event of a node.
func (r *reader) node() {
	name := r.now.name
	timed := r.timed()
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
	it := r.item(id)
	if !timed {
		it.end, it.lost, it.adrift = it.ts, true, !r.now.placed
	}
	r.keep(it)
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
		k = append(k, a.in...) // nothing else distinguishes nodes without names
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

// kernel adds the time of a device's kernel to the last node with its operator: the record has no
// other link.
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
	r.bars.other(e, onDevice)
}

// modelRun ends an inference, or begins one if events are ordered by their start.
func (r *reader) modelRun() {
	run := r.item(0)
	r.runner[run.thread] = true
	r.endLate()
	if r.inside(&run) {
		r.inference(&run)
	} else {
		r.late = &run
	}
}

// endLate ends the inference whose nodes followed it.
func (r *reader) endLate() {
	if late := r.late; late != nil {
		r.late = nil
		r.inference(late)
	}
}

// inside reports whether a pending event is within a run.
func (r *reader) inside(run *item) bool {
	return slices.ContainsFunc(r.pending, func(p item) bool { return p.within(run) })
}

func (i *item) within(run *item) bool {
	return i.adrift || i.ts >= run.ts && i.end <= run.end
}

// finish reads the pending events at the end of the file.
func (r *reader) finish() {
	r.endLate()
	all := r.pending
	r.pending = nil
	defer r.incomplete()
	switch {
	case len(all) == 0:
		return
	case r.runs+r.left > 0:
		r.dropped.Add("nodes of an inference whose end is not recorded", int64(len(all)))
		return
	}
	// Inferences have no events: one ends at the repetition of its first node.
	first := int32(-1)
	from := 0
	for i := range all {
		switch n := all[i].node; {
		case n < 0:
		case first < 0:
			first = n
		case n == first && r.nodes[n].name != "":
			r.pieces(all[from:i])
			from = i
		}
	}
	r.pieces(all[from:])
}

func (r *reader) pieces(items []item) {
	r.pending = append(r.pending[:0], items...)
	run := item{ts: math.MaxInt64, end: math.MinInt64, thread: items[0].thread, node: -1}
	for i := range items {
		if !items[i].adrift {
			run.ts, run.end = min(run.ts, items[i].ts), max(run.end, items[i].end)
		}
	}
	r.inference(&run)
}

// incomplete adds the layers of an inference without all times, if there is no other inference.
func (r *reader) incomplete() {
	if r.runs > 0 || r.partial == nil {
		return
	}
	nth := map[rowKey]int32{}
	for _, i := range r.tree(r.partial) {
		r.count(r.partial, i, -1, nth)
	}
	r.tally.Drop()
	r.partial = nil
}

// inference adds up the events within a run. Events before it that belong to no run are
// skipped; those of a run on another thread stay pending.
func (r *reader) inference(run *item) {
	var mine, rest []item
	runners := 0
	for _, x := range r.runner {
		if x {
			runners++
		}
	}
	// Nodes run on the thread of the inference, or all on those of a pool.
	alone := slices.ContainsFunc(r.pending, func(p item) bool { return p.thread == run.thread && p.node >= 0 && p.within(run) })
	for _, p := range r.pending {
		switch {
		case p.within(run) && (p.thread == run.thread || !alone && !r.runner[p.thread]):
			mine = append(mine, p)
		case p.end <= run.ts && runners < 2 && p.thread == run.thread:
			if p.node >= 0 {
				r.dropped.Add("nodes outside of any inference", 1)
			}
		default:
			rest = append(rest, p)
		}
	}
	// This limits the work for events that never belong to a run.
	r.taken += len(mine)
	if r.looked += len(r.pending); r.looked > 1_000_000+64*r.taken {
		r.dropped.Add("nodes outside of any inference", int64(len(rest)))
		r.looked, rest = 0, nil
	}
	r.pending = append(r.pending[:0], rest...)
	nth := r.nth
	r.nth++
	if slices.ContainsFunc(mine, func(i item) bool { return i.lost }) {
		r.left++
		if r.partial == nil {
			r.partial = mine
		}
		return
	}
	r.runs++
	top := r.tree(mine)
	r.bars.begin(run)
	occurrences := map[rowKey]int32{}
	for _, i := range top {
		r.count(mine, i, -1, occurrences)
	}
	if r.disturbed != nil && r.disturbed(nth) {
		r.tally.Disturbed()
	}
	wall := 1000 * (run.end - run.ts)
	if run.node < 0 {
		wall = -1 // the whole is not recorded: it is the sum of its nodes
		r.summed = true
	}
	r.tally.End(wall)
	r.bars.end()
}

// tree finds the items that each item ran, thread by thread, and returns the outermost. Of
// events that end at the same microsecond, the inner one was written first.
func (r *reader) tree(items []item) (top []int32) {
	order := make([]int32, len(items))
	for i := range order {
		order[i] = int32(i)
	}
	if !slices.IsSortedFunc(items, func(a, b item) int { return cmp.Compare(a.end, b.end) }) {
		// An event without duration that begins at the end of another one follows it. The outer one
		// of two events began, and was written, first.
		empty := func(i int32) int {
			if items[i].ts == items[i].end {
				return 1
			}
			return 0
		}
		sorting.Stable(order, func(a, b int32) int {
			x, y := &items[a], &items[b]
			return cmp.Or(cmp.Compare(x.end, y.end), empty(a)-empty(b), cmp.Compare(y.ts, x.ts), int(b-a))
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
		it.body = flatten(items, it.body, s[from:])
		open[it.thread] = append(s[:from], i)
	}
	for _, s := range open {
		top = flatten(items, top, s)
	}
	sorting.Stable(top, func(a, b int32) int { return cmp.Compare(items[a].ts, items[b].ts) })
	return top
}

// flatten appends items to to, with the items that an executor ran in its place.
func flatten(items []item, to, list []int32) []int32 {
	for _, i := range list {
		if items[i].node < 0 {
			to = append(to, items[i].body...)
		} else {
			to = append(to, i)
		}
	}
	return to
}

// count adds a node and the nodes that it ran.
func (r *reader) count(items []item, i, parent int32, nth map[rowKey]int32) {
	it := &items[i]
	k := rowKey{parent: parent, node: it.node}
	if n := r.nodes[it.node]; n.name == "" || n.index < 0 && parent < 0 {
		// Nodes without a name or number are distinguished by their order.
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
	r.bars.add(it, at)
	for _, b := range it.body {
		self -= items[b].end - items[b].ts
	}
	r.tally.Call(int(at), 1000*max(0, self))
	for _, b := range it.body {
		r.count(items, b, at, nth)
	}
}

// row is a layer of the profile: a node and the row that runs it, -1 for the session.
type row struct{ node, parent int32 }
