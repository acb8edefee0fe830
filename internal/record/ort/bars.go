package ort

import (
	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/profile/timeline"
)

// maxBars limits the bars; above it, every second inference is removed.
const maxBars = 60_000

// bars keeps the times of nodes in evenly spread inferences.
type bars struct {
	runs  []span
	bars  []bar
	every int // one of every inferences is kept
	seen  int
	open  bool
	hosts []bar // parts of sessions and device kernels; row is the position of the name
	names []string
	at    map[string]int32 // of names
}

// span is one inference; its bars end before to.
type span struct {
	number  int
	thread  int32
	ts, end int64
	to      int
}

type bar struct {
	ts, end     int64
	row, thread int32
}

func (b *bars) begin(run *item) {
	b.open = b.seen%b.every == 0
	if b.open {
		b.runs = append(b.runs, span{number: b.seen, thread: run.thread, ts: run.ts, end: run.end, to: len(b.bars)})
	}
	b.seen++
}

func (b *bars) add(it *item, row int32) {
	if b.open && len(b.bars) < 2*maxBars {
		b.bars = append(b.bars, bar{it.ts, it.end, row, it.thread})
	}
}

func (b *bars) end() {
	if !b.open {
		return
	}
	b.runs[len(b.runs)-1].to = len(b.bars)
	for len(b.bars) > maxBars && len(b.runs) > 1 {
		b.thin()
	}
}

// thin removes every second inference.
func (b *bars) thin() {
	from, n := 0, 0
	kept := b.bars[:0]
	for i, s := range b.runs {
		part := b.bars[from:s.to]
		from = s.to
		if i%2 == 0 {
			kept = append(kept, part...)
			s.to = len(kept)
			b.runs[n] = s
			n++
		}
	}
	b.runs, b.bars = b.runs[:n], kept
	b.every *= 2
}

// maxHosts limits the bars of sessions and devices.
const maxHosts = 20_000

// other keeps a bar that is not a node's; thread is onHost or onDevice.
func (b *bars) other(e *event, thread int32) {
	if len(b.hosts) >= maxHosts {
		return
	}
	at, ok := b.at[string(e.name)]
	if !ok {
		if b.at == nil {
			b.at = map[string]int32{}
		}
		at = int32(len(b.names))
		b.names = append(b.names, jsonscan.Decode(e.name))
		b.at[b.names[at]] = at
	}
	b.hosts = append(b.hosts, bar{e.ts, e.ts + e.dur, at, thread})
}

// Threads of bars that are not a node's.
const (
	onHost   = -1
	onDevice = -2
)

// timeline makes the timeline; its time 0 is the begin of profiling.
func (r *reader) timeline() *timeline.Timeline {
	b := &r.bars
	l := runlog.Lanes{Limit: 2*maxBars + maxHosts + len(b.runs)}
	at := func(ts, end int64) runlog.Bar {
		return runlog.Bar{Start: float64(ts) / 1e6, Duration: float64(end-ts) / 1e6, Layer: -1, Iteration: -1, Label: -1, Type: -1, Bytes: -1}
	}
	for _, h := range b.hosts {
		x := at(h.ts, h.end)
		x.Label = l.Name(b.names[h.row])
		if h.thread == onDevice {
			l.Add(l.Lane(timeline.Stream, "device", "kernels", ""), x)
		} else {
			l.Add(l.Lane(timeline.Host, "", "session", ""), x)
		}
	}
	from := 0
	for _, s := range b.runs {
		x := at(s.ts, s.end)
		x.Iteration = int32(s.number)
		l.Add(l.Lane(timeline.Iteration, "", "iterations", ""), x)
		for _, n := range b.bars[from:s.to] {
			x := at(n.ts, n.end)
			x.Layer, x.Iteration = n.row, int32(s.number)
			l.Add(l.Lane(timeline.Layer, "", "thread "+r.names[n.thread], ""), x)
		}
		from = s.to
	}
	method := "ONNX Runtime's profiler, whole microseconds"
	if b.every > 1 {
		method += "; not every inference is kept"
	}
	t := l.Timeline("begin of profiling", method)
	if t != nil {
		t.Iterations = new(int64(r.runs))
	}
	return t
}
