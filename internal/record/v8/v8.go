// Package v8 reads CPU profiles of V8: .cpuprofile files of Node.js and of Chrome's developer
// tools, and the parts of such profiles in traces.
//
// Source of the format: the Profiler domain of the Chrome DevTools Protocol.
package v8

import (
	"context"
	"errors"
	"math"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/stacks"
	"github.com/opmeter/opmeter/internal/record/traceevent"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile/timeline"
)

// Format reads .cpuprofile files.
func Format() *record.Format {
	return &record.Format{
		Name:  "cpuprofile",
		Title: "V8 processor profile",
		Files: ".cpuprofile files of node --cpu-prof and of Chrome's developer tools",
		Gives: []string{"latency_s", "with_callees_s", "samples", "timeline"},
		Match: func(f *record.File) record.Sure {
			h := f.JSONHead("{")
			return record.Certain.If(!h.Has(`"traceEvents"`) &&
				(h.Has(`"callFrame"`, `"nodes"`) || h.Has(`"functionName"`, `"head"`, `"hitCount"`)))
		},
		Read: record.RunPerFile(read),
	}
}

// maxValue limits the bytes of one member of the file.
const maxValue = 256 << 20

func read(ctx context.Context, f *record.File) (*runlog.Run, error) {
	set := &stacks.Set{}
	b := &Builder{Set: set}
	res, err := f.ScanJSON(ctx, jsonscan.Options{MaxValue: maxValue, Single: true}, func(key string, v []byte) { b.Member([]byte(key), v) })
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if res.More {
		set.Dropped.Add(record.MoreDocuments, 1)
	}
	if len(b.order) == 0 {
		if err == nil {
			err = errors.New("no nodes: want an object with nodes and samples")
		}
		return nil, err
	}
	run := track.NewRun(f, "cpuprofile")
	run.Profile.Target.Engine = "V8"
	var t track.Trace
	time, _ := set.Count(stacks.Time, 1e-9)
	count, _ := set.Count(stacks.Samples, 1)
	samples, last := b.Done(count)
	c := stacks.Chart{Set: set, Trace: &t, Track: t.Track(timeline.Thread, "", "samples")}
	c.Spread(time, samples, last)
	stacks.Finish(run, set, &t, stacks.Sampled)
	if res.Cut || err != nil {
		run.Lose("the file is cut")
	}
	return run, nil
}

// Builder collects the parts of a profile: nodes of the call tree, samples that refer to them,
// and the times between samples.
type Builder struct {
	Set *stacks.Set
	// Start and End are in nanoseconds, 0 if unknown.
	Start, End int64

	nodes    map[int64]*node
	places   map[int64]int32 // stacks of nodes
	order    []int64
	samples  []int64
	deltas   []int64 // microseconds
	times    []int64 // in old files, nanoseconds
	children [][2]int64
}

type node struct {
	parent int64
	rooted bool // has a parent
	f      stacks.Function
	hits   int64
}

// maxSamples limits the samples of a profile.
const maxSamples = 5_000_000

// Member reads a member of a profile, or of a part of one in a trace.
func (b *Builder) Member(key, v []byte) {
	switch string(key) {
	case "nodes":
		traceevent.Elements(v, func(v []byte) { b.node(v, 0, false, 0) })
	case "head": // the tree of an old file, whose nodes contain one another
		b.node(v, 0, false, 0)
	case "samples": // the nodes
		b.samples = b.numbers(v, b.samples)
	case "timeDeltas": // microseconds from the sample before
		b.deltas = b.numbers(v, b.deltas)
	case "timestamps": // microseconds, in old files
		traceevent.Elements(v, func(v []byte) {
			if ns, ok := traceevent.Nanos(v); ok && len(b.times) < maxSamples {
				b.times = append(b.times, ns)
			}
		})
	case "startTime":
		b.Start, _ = traceevent.Nanos(v)
	case "endTime":
		b.End, _ = traceevent.Nanos(v)
	}
}

func (b *Builder) node(v []byte, parent int64, rooted bool, depth int) {
	if len(b.order) >= stacks.MaxNodes || depth > jsonscan.MaxDepth {
		b.Set.Dropped.Add("nodes beyond the first 2,000,000", 1)
		return
	}
	n := &node{parent: parent, rooted: rooted}
	const none = math.MinInt64
	id, own, line := int64(none), int64(none), int64(none)
	var children, call []byte
	traceevent.Fields(v, "id", &id, "parent", &own, "hitCount", &n.hits, "callFrame", &call, "children", &children,
		"functionName", &n.f.Name, "url", &n.f.File, "lineNumber", &line, "codeType", &n.f.Category)
	traceevent.Fields(call, "functionName", &n.f.Name, "url", &n.f.File, "lineNumber", &line, "codeType", &n.f.Category)
	if own != none {
		n.parent, n.rooted = own, true
	}
	if line >= 0 && line < 1<<31 {
		n.f.Line = line + 1 // lines count from 0, -1 stands for none
	}
	if id == none {
		b.Set.Dropped.Add("nodes without an identifier", 1)
		return
	}
	if b.nodes == nil {
		b.nodes, b.places = map[int64]*node{}, map[int64]int32{}
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

// Len returns the number of samples.
func (b *Builder) Len() int { return len(b.samples) }

// place returns the stack of a node, without the common root.
func (b *Builder) place(id int64) int32 {
	return stacks.Chain(b.Set, b.places, id, func(id int64) (stacks.Function, int64, bool) {
		n := b.nodes[id]
		if n == nil || !n.rooted && n.f.Name == "(root)" {
			return stacks.Function{}, 0, false
		}
		if !n.rooted {
			return n.f, math.MinInt64, true // no node has this identifier
		}
		return n.f, n.parent, true
	})
}

// Done counts the samples in a column. It returns them with their times, and the duration of the
// last one in nanoseconds.
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
	if len(samples) == 0 { // there are only hit counts
		for _, id := range b.order {
			if n, place := b.nodes[id], b.place(id); n.hits > 0 && place >= 0 {
				b.Set.Add(count, place, float64(n.hits))
			}
		}
	}
	if len(samples) > 0 && b.End > latest && b.End-latest < 1e15 {
		last = b.End - latest
	}
	return samples, last
}
