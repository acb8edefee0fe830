package v8

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/record/stacks"
	"github.com/opmeter/opmeter/internal/record/traceevent"
)

// Builder takes the parts of a profile as they come: nodes of its tree of calls, samples
// that name them, and the time from each sample to the next.
type Builder struct {
	Set *stacks.Set
	// Start and End are nanoseconds, 0 for not known.
	Start, End int64

	nodes    map[int64]*node
	order    []int64
	samples  []int64
	deltas   []int64 // microseconds
	times    []int64 // of old files, nanoseconds
	children [][2]int64
}

type node struct {
	parent  int64
	rooted  bool // has a parent
	f       stacks.Function
	hits    int64
	place   int32
	placed  bool
	visited bool
}

// maxSamples bounds the samples of a profile.
const maxSamples = 5_000_000

// Nodes takes a list of nodes.
func (b *Builder) Nodes(list []byte) {
	traceevent.Elements(list, func(v []byte) { b.node(v, 0, false, 0) })
}

// Head takes the tree of an old file, whose nodes hold one another.
func (b *Builder) Head(v []byte) { b.node(v, 0, false, 0) }

func (b *Builder) node(v []byte, parent int64, rooted bool, depth int) {
	if len(b.order) >= stacks.MaxNodes || depth > jsonscan.MaxDepth {
		b.Set.Dropped.Add("nodes beyond the first 2,000,000", 1)
		return
	}
	n := &node{parent: parent, rooted: rooted, place: stacks.Root}
	id := int64(math.MinInt64)
	var children []byte
	traceevent.Members(v, func(k, v []byte) {
		switch string(k) {
		case "id":
			if i, ok := jsonscan.Int(v); ok {
				id = i
			}
		case "parent":
			if i, ok := jsonscan.Int(v); ok {
				n.parent, n.rooted = i, true
			}
		case "hitCount":
			n.hits, _ = jsonscan.Int(v)
		case "callFrame":
			traceevent.Members(v, func(k, v []byte) { frame(&n.f, k, v) })
		case "children":
			children = v
		default:
			frame(&n.f, k, v)
		}
	})
	if id == math.MinInt64 {
		b.Set.Dropped.Add("nodes without an identifier", 1)
		return
	}
	if b.nodes == nil {
		b.nodes = map[int64]*node{}
	}
	if _, ok := b.nodes[id]; !ok {
		b.order = append(b.order, id)
	}
	b.nodes[id] = n
	traceevent.Elements(children, func(c []byte) {
		if len(c) > 0 && c[0] == '{' {
			b.node(c, id, true, depth+1)
			return
		}
		if i, ok := jsonscan.Int(c); ok && len(b.children) < stacks.MaxNodes {
			b.children = append(b.children, [2]int64{i, id})
		}
	})
}

func frame(f *stacks.Function, k, v []byte) {
	switch string(k) {
	case "functionName":
		f.Name = string(traceevent.Text(v))
	case "url":
		f.File = string(traceevent.Text(v))
	case "lineNumber":
		// Lines count from 0, -1 is for none.
		if n, ok := jsonscan.Int(v); ok && n >= 0 && n < 1<<31 {
			f.Line = n + 1
		}
	case "codeType":
		f.Category = string(traceevent.Text(v))
	}
}

// Samples takes a list of the nodes that samples found.
func (b *Builder) Samples(list []byte) { b.samples = b.numbers(list, b.samples) }

// Deltas takes a list of microseconds, each from the sample before to the next one.
func (b *Builder) Deltas(list []byte) { b.deltas = b.numbers(list, b.deltas) }

// Times takes a list of points in time, microseconds, as old files have them.
func (b *Builder) Times(list []byte) {
	traceevent.Elements(list, func(v []byte) {
		if ns, ok := traceevent.Nanos(v); ok && len(b.times) < maxSamples {
			b.times = append(b.times, ns)
		}
	})
}

func (b *Builder) numbers(list []byte, to []int64) []int64 {
	traceevent.Elements(list, func(v []byte) {
		n, ok := jsonscan.Int(v)
		if !ok {
			f, num := jsonscan.Number(v)
			n, ok = int64(math.Round(f)), num && math.Abs(f) < 1e15
		}
		if !ok || len(to) >= maxSamples {
			b.Set.Dropped.Add("samples that are not numbers or too many", 1)
			return
		}
		to = append(to, n)
	})
	return to
}

// Len is the number of samples.
func (b *Builder) Len() int { return len(b.samples) }

// place finds the place of a node in the tree, without the root that holds everything.
func (b *Builder) place(id int64) int32 {
	var way []*node
	n := b.nodes[id]
	for n != nil && !n.placed && !n.visited {
		n.visited = true // a ring of parents ends here
		way = append(way, n)
		if !n.rooted {
			break
		}
		n = b.nodes[n.parent]
	}
	at := stacks.Root
	if n != nil && n.placed {
		at = n.place
	}
	for i := len(way) - 1; i >= 0; i-- {
		n := way[i]
		n.placed, n.place = true, at
		if n.rooted || n.f.Name != "(root)" {
			f := n.f
			if f.Name == "" {
				f.Name = "(anonymous)"
			}
			at = b.Set.Call(at, b.Set.Function(f))
			n.place = at
		}
	}
	if n := b.nodes[id]; n != nil {
		return n.place
	}
	return stacks.Root
}

// Done counts the samples in a column, and gives them with their times and how long the
// last one lasted, nanoseconds.
func (b *Builder) Done(count int) (samples []stacks.Weighted, last int64) {
	for _, c := range b.children {
		if n := b.nodes[c[0]]; n != nil && !n.rooted && c[0] != c[1] {
			n.parent, n.rooted = c[1], true
		}
	}
	for _, id := range b.order {
		b.place(id)
	}
	at, latest := b.Start, int64(math.MinInt64)
	lost := int64(0)
	for i, id := range b.samples {
		switch {
		case i < len(b.times):
			at = b.times[i]
		case i < len(b.deltas):
			const most = int64(1e15) // a month of microseconds, and more
			at += min(max(b.deltas[i], -most), most) * 1000
			at = min(max(at, -most*1000), most*1000)
		}
		if b.nodes[id] == nil {
			lost++
			continue
		}
		samples, latest = append(samples, stacks.Weighted{At: at, Place: b.place(id)}), max(latest, at)
	}
	b.Set.Dropped.Add("samples of nodes that are absent", lost)
	for _, s := range samples {
		if s.Place >= 0 {
			b.Set.Add(count, s.Place, 1)
		}
	}
	if len(samples) == 0 { // only how often each was hit
		for _, id := range b.order {
			if n := b.nodes[id]; n.hits > 0 && n.place >= 0 {
				b.Set.Add(count, n.place, float64(n.hits))
			}
		}
	}
	if len(samples) > 0 && b.End > latest && b.End-latest < 1e15 {
		last = b.End - latest
	}
	return samples, last
}
