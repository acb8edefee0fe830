package litert

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/profile"
)

// Kinds of events, LiteRtProfilerEventType.
const (
	plainEvent     = 1 // "Invoke" with the number of the graph
	operatorEvent  = 2 // of the interpreter, with the node's position
	delegateEvent  = 4 // of a delegate, with its own numbers
	delegatedEvent = 8 // the same, counted among operators
)

// event is a profiler event of an executed operator.
type event struct {
	tag     string
	kind    int32
	elapsed uint64 // microseconds
	number  int64  // event_metadata1
	graph   int64  // event_metadata2
}

// place identifies an operator in the sequence of operators of a graph.
type place struct {
	graph, block, number int64
	tag                  string
}

// row is a layer of the record.
type row struct {
	layer profile.Layer
	hint  runlog.Hint
	owner int // row whose node runs the graph, -1 for none
}

// Limits on what is kept of a record.
const (
	maxRows   = draft.MaxLayers
	maxGraphs = 1 << 16
)

// recorder turns events into layers and their times.
type recorder struct {
	known     *known
	scattered bool
	tally     runlog.Tally
	rows      []row
	at        map[place]int
	node      map[[2]int64]int // row by graph and node
	laid      map[int64]bool
	owners    map[int64]int // row of the node that last ran a graph
	runs      int

	self, calls []int64 // of the run, by row
	block       map[int64]int64
	next        map[int64]int64 // number that the next operator of a delegate has, by graph
	last        map[int64]int
}

func newRecorder(k *known, scattered bool) *recorder {
	return &recorder{
		known: k, scattered: scattered, at: map[place]int{}, node: map[[2]int64]int{}, laid: map[int64]bool{}, owners: map[int64]int{},
		block: map[int64]int64{}, next: map[int64]int64{}, last: map[int64]int{},
	}
}

// forget drops the times and keeps the layers.
func (r *recorder) forget() { r.tally, r.runs = runlog.Tally{}, 0 }

// add adds the events of one run that took wall nanoseconds, and whether it was disturbed.
func (r *recorder) add(events []event, wall int64, disturbed bool) {
	for i := range events {
		if g := events[i].graph; ran(&events[i]) && !r.laid[g] && len(r.laid) < maxGraphs {
			r.laid[g] = true
			r.lay(g, events[i:])
		}
	}
	clear(r.self)
	clear(r.calls)
	r.walk(events, func(p place, e *event) {
		i, ok := r.at[p]
		if !ok {
			i = r.lone(p)
		}
		if i < 0 {
			return
		}
		r.count(i, p, e)
	})
	for i, n := range r.calls {
		if n == 0 {
			continue
		}
		r.tally.Call(i, r.self[i])
		for range min(n-1, 1<<20) {
			r.tally.Call(i, 0)
		}
	}
	if disturbed {
		r.tally.Disturbed()
	}
	r.tally.End(wall)
	r.runs++
}

// ran reports whether an event is an operator's.
func ran(e *event) bool {
	return (e.kind == operatorEvent || e.kind == delegateEvent || e.kind == delegatedEvent) && e.graph >= 0 && e.number >= 0
}

// walk assigns each operator its place. Operators of delegates are numbered from 0 in each
// partition of a graph that a delegate took, and partitions are counted from the start of the
// graph.
func (r *recorder) walk(events []event, use func(p place, e *event)) {
	clear(r.block)
	clear(r.next)
	clear(r.last)
	for i := range events {
		e := &events[i]
		switch {
		case e.kind == plainEvent && e.tag == "Invoke":
			delete(r.block, e.graph)
			delete(r.next, e.graph)
			delete(r.last, e.graph)
		case !ran(e) || len(r.block) > maxGraphs:
		case e.kind == operatorEvent:
			delete(r.next, e.graph)
			use(place{e.graph, -1, e.number, e.tag}, e)
		default:
			if n, ok := r.next[e.graph]; !ok || e.number < n {
				r.block[e.graph]++
			}
			r.next[e.graph] = e.number + 1
			use(place{e.graph, r.block[e.graph], e.number, e.tag}, e)
		}
	}
}

// count adds an event to its row. A node that runs a body is not charged with the body's time.
func (r *recorder) count(i int, p place, e *event) {
	ns := int64(min(e.elapsed, 1<<50)) * 1000
	r.self[i] += ns
	last, seen := r.last[p.graph]
	if !seen || last != i || p.block < 0 {
		r.calls[i]++
	}
	r.last[p.graph] = i
	if o := r.rows[i].owner; o >= 0 && o != i {
		r.self[o] -= ns
	}
	if g := r.graph(p.graph); g != nil && p.block < 0 && p.number < int64(len(g.nodes)) {
		for _, b := range g.nodes[p.number].graphs {
			r.owners[int64(b)] = i
		}
	}
}

func (r *recorder) graph(g int64) *knownGraph {
	if r.known == nil || g < 0 || g >= int64(len(r.known.graphs)) {
		return nil
	}
	return &r.known.graphs[g]
}

// lay creates the rows of a graph from its first run.
func (r *recorder) lay(graph int64, events []event) {
	var places []place
	var steps []step
	begun := 0
	seen := map[place]bool{}
	r.walk(events, func(p place, _ *event) {
		if p.graph != graph {
			return
		}
		if seen[p] {
			begun = 1 // the graph runs again
		}
		if begun > 0 || len(steps) > maxRows {
			return
		}
		seen[p] = true
		places = append(places, p)
		s := step{node: -1, name: p.tag}
		if p.block < 0 {
			s.node = int(p.number)
		}
		steps = append(steps, s)
	})
	owners, sure := r.place(graph, steps)
	for j, p := range places {
		switch n := owners[j]; {
		case n >= 0:
			r.join(p, int64(n), steps[j], sure[j])
		default:
			r.lone(p)
		}
	}
	r.parts(graph, places)
}

// place returns the node of each step, -1 for none, and whether that is certain.
func (r *recorder) place(graph int64, steps []step) (out []int, sure []bool) {
	out, sure = make([]int, len(steps)), make([]bool, len(steps))
	for j := range out {
		out[j] = -1
	}
	g := r.graph(graph)
	if g == nil {
		return out, sure
	}
	own := make([]bool, len(g.nodes)) // nodes that the interpreter ran itself
	for _, s := range steps {
		if s.node >= 0 && s.node < len(own) {
			own[s.node] = true
		}
	}
	list := g.order(func(node int) bool { return !own[node] }, r.scattered)
	position := make([]int, len(g.nodes))
	for i := range position {
		position[i] = -1
	}
	names := make([]string, len(list))
	for i, n := range list {
		position[n], names[i] = i, g.nodes[n].op
	}
	at, sure := align(names, steps, func(node int) int {
		if node >= len(position) {
			return -1
		}
		return position[node]
	})
	for j, i := range at {
		if i >= 0 {
			out[j] = list[i]
		}
	}
	return out, sure
}

// join adds a step to the row of its node. An uncertain one gets the node's kind only: the join
// with the model then uses the order, and reports so.
func (r *recorder) join(p place, node int64, s step, sure bool) {
	g := r.graph(p.graph)
	i, ok := r.node[[2]int64{p.graph, node}]
	if !ok {
		n := &g.nodes[node]
		l := profile.Layer{Op: n.op, Name: n.op}
		h := runlog.Hint{}
		if sure {
			h.Outputs = n.names
			if len(n.names) > 0 {
				l.Name = n.names[0]
			}
			if p.graph == 0 {
				h.Index = new(node)
			}
		}
		if i = r.row(l, h, p.graph); i < 0 {
			return
		}
		r.node[[2]int64{p.graph, node}] = i
	}
	if s.node < 0 {
		k := &r.rows[i].layer.Kernel
		if *k != "" {
			*k += " + "
		}
		*k = draft.Text(*k + s.name)
	} else if _, kernel, ok := strings.Cut(s.name, "/"); ok {
		r.rows[i].layer.Kernel = draft.Text(kernel)
	}
	r.at[p] = i
}

// lone creates a row for a step whose part of the model is unknown.
func (r *recorder) lone(p place) int {
	op, _, _ := strings.Cut(p.tag, " (")
	l := profile.Layer{Op: op, Name: op}
	if p.block >= 0 {
		l.Kernel, l.Scope = p.tag, "delegate"
	}
	i := r.row(l, runlog.Hint{}, p.graph)
	if i >= 0 {
		r.at[p] = i
	}
	return i
}

// row appends a row; it returns -1 if there are too many.
func (r *recorder) row(l profile.Layer, h runlog.Hint, graph int64) int {
	if len(r.rows) >= maxRows {
		return -1
	}
	owner := -1
	if graph > 0 {
		l.Graph = "subgraph"
		if g := r.graph(graph); g != nil {
			if g.name != "" {
				l.Graph = draft.Text(g.name)
			}
			if i, ok := r.node[[2]int64{int64(g.owner), int64(g.by)}]; ok && g.owner >= 0 {
				owner = i
			}
		}
		if i, ok := r.owners[graph]; ok {
			owner = i
		}
	}
	if owner >= 0 {
		l.Parent = new(int64(owner))
	}
	l.State = profile.Ran
	r.rows = append(r.rows, row{l, h, owner})
	r.self, r.calls = append(r.self, 0), append(r.calls, 0)
	return len(r.rows) - 1
}

// parts assigns the model's nodes to delegate nodes that report nothing about their contents: the
// nodes between two nodes of the interpreter, in order.
func (r *recorder) parts(graph int64, places []place) {
	g := r.graph(graph)
	if g == nil {
		return
	}
	var nodes []int // rows
	own := make([]bool, len(g.nodes))
	for _, p := range places {
		switch {
		case p.block >= 0:
			return // delegates tell
		case p.number < int64(len(own)):
			own[p.number] = true
		case strings.Contains(strings.ToLower(p.tag), "delegate"):
			nodes = append(nodes, r.at[p])
		}
	}
	var parts [][]string
	open := false
	for _, n := range g.order(func(node int) bool { return !own[node] }, r.scattered) {
		switch {
		case own[n]:
			open = false
			continue
		case !open:
			open = true
			parts = append(parts, nil)
		}
		last := len(parts) - 1
		parts[last] = append(parts[last], g.nodes[n].names...)
	}
	if len(parts) != len(nodes) {
		return
	}
	for k, i := range nodes {
		if i >= 0 && i < len(r.rows) {
			r.rows[i].hint.Outputs = slices.Clone(parts[k])
		}
	}
}

// record returns what was recorded so far, nil for nothing.
func (r *recorder) record(name string, threads int) *runlog.Run {
	if r.runs == 0 || len(r.rows) == 0 {
		return nil
	}
	d := draft.New("tflite", name, "LiteRT")
	for i := range r.rows {
		d.Add(r.rows[i].layer, r.rows[i].hint)
	}
	n := int64(threads)
	d.P.Settings.Threads = &n
	r.tally.Fill(d.P)
	return d.Run()
}
