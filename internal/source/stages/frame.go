package stages

import (
	"cmp"
	"math"

	"github.com/opmeter/opmeter/internal/base/sorting"
)

// pipeline returns the index of a kind of frame, -1 if there are too many.
func (c *Collector) pipeline(k Pipeline) int {
	if i, ok := c.pipes[k]; ok {
		return i
	}
	if len(c.Pipelines) >= maxPipelines {
		c.Problems[TooMany]++
		return -1
	}
	c.pipes[k] = len(c.Pipelines)
	c.Pipelines = append(c.Pipelines, k)
	return len(c.Pipelines) - 1
}

// node returns the index of a stage at its position, -1 if there are too many.
func (c *Collector) node(p *Process, pipeline, parent int, name uint32) int {
	quick := uint64(pipeline+1)<<48 | uint64(parent+1)<<16 | uint64(name)
	if n, ok := p.nodes[quick]; ok {
		return n
	}
	k := nodeKey{pipeline, parent, p.text(name)}
	n, ok := c.nodes[k]
	if !ok {
		if len(c.Nodes) >= MaxNodes {
			c.Problems[TooMany]++
			return -1
		}
		n = len(c.Nodes)
		c.Nodes = append(c.Nodes, Node{Pipeline: pipeline, Parent: parent, Name: k.name})
		c.nodes[k] = n
	}
	if _, known := p.names[name]; known {
		p.nodes[quick] = n
	}
	return n
}

func (c *Collector) frameBegin(p *Process, l *lane, kind uint32, number uint64, now int64) {
	pipe := c.pipeline(Pipeline{Name: p.text(kind)})
	if pipe < 0 || p.frames[number] != nil || len(p.frames) >= maxFrames {
		c.Problems[TooMany]++
		l.frame = nil
		return
	}
	if len(l.stack) == 0 {
		l.lost = false
	}
	c.Explicit = true
	f := newFrame(p, pipe, number, now)
	p.frames[number] = f
	c.enter(l, f)
}

// newFrame returns a frame that has begun.
func newFrame(p *Process, pipe int, number uint64, now int64) *Frame {
	return &Frame{Process: p, Number: number, Pipeline: pipe, Begin: now, End: now}
}

// current returns the frame that a lane works for, nil if none.
func (l *lane) current() *Frame {
	if l.frame != nil && l.frame.done {
		l.frame = nil
	}
	return l.frame
}

// enter makes a lane work for a frame, nil for none.
func (c *Collector) enter(l *lane, f *Frame) {
	l.frame = f
	if f != nil && f.lane != l {
		f.lane = l
		f.lanes = min(f.lanes+1, 2)
	}
}

func (c *Collector) frameEnd(p *Process, l *lane, number uint64, now int64) {
	f := p.frames[number]
	if f == nil || f.ended {
		if !l.lost {
			c.Problems[FrameWithoutBegin]++
		}
		return
	}
	// Stages of the frame that run in this lane end with it.
	for len(l.stack) > 0 && l.stack[len(l.stack)-1].frame == f {
		c.Problems[LeftOpen]++
		c.close(p, l, now)
	}
	if l.frame == f {
		l.frame = nil
	}
	f.ended, f.lane, f.End = true, l, max(now, f.Begin)
	p.order = append(p.order, f)
	if len(p.order) >= maxFrames/2 {
		c.finish(p, p.order[0])
		p.order = append(p.order[:0], p.order[1:]...)
	}
}

// finishEnded finishes the frames that ended before a time up to which all marks are known.
func (c *Collector) finishEnded(p *Process, until int64, all bool) {
	kept := p.order[:0]
	for _, f := range p.order {
		if all || f.End <= until && f.open == 0 {
			c.finish(p, f)
		} else {
			kept = append(kept, f)
		}
	}
	clear(p.order[len(kept):])
	p.order = kept
}

// finish reports a frame.
func (c *Collector) finish(p *Process, f *Frame) {
	delete(p.frames, f.Number)
	if f.open > 0 {
		f.partial = true
	}
	f.done = true
	c.report(f)
	if c.Bar != nil {
		c.Bar(Bar{Process: p, Lane: -1, Node: -1, Pipeline: f.Pipeline, Begin: f.Begin, End: f.End, Frame: f.Number})
	}
}

// report computes the remaining values of a frame and passes it to the callback.
func (c *Collector) report(f *Frame) {
	if f.partial {
		c.Problems[LostFrames]++
		return
	}
	if f.lanes > 1 {
		f.Own = 0 // the threads do not wait for each other's marks
	}
	f.merge()
	covered := int64(0)
	for _, s := range f.spans {
		covered += max(0, min(s.end, f.End)-max(s.begin, f.Begin))
	}
	f.Unmarked = max(0, f.End-f.Begin-covered)
	if c.Frame != nil {
		c.Frame(f)
	}
}

// merge merges adjacent and overlapping spans.
func (f *Frame) merge() {
	sorting.Func(f.spans, func(a, b span) int { return cmp.Compare(a.begin, b.begin) })
	n := 0
	for _, s := range f.spans {
		if n > 0 && s.begin <= f.spans[n-1].end {
			f.spans[n-1].end = max(f.spans[n-1].end, s.end)
			continue
		}
		f.spans[n] = s
		n++
	}
	f.spans = f.spans[:n]
}

// span records an interval in which the frame was active.
func (f *Frame) span(begin, end int64) {
	if n := len(f.spans); n > 0 && begin == f.spans[n-1].end {
		f.spans[n-1].end = end // the usual case: contiguous spans
		return
	}
	if len(f.spans) >= maxSpans {
		if f.merge(); len(f.spans) >= maxSpans {
			// Merging would hide the smallest gap: sacrifice the one between the last two.
			last := len(f.spans) - 1
			f.spans[last-1].end, f.spans = f.spans[last].end, f.spans[:last]
		}
	}
	f.spans = append(f.spans, span{begin, end})
}

// share returns a stage's part of the frame.
func (f *Frame) share(node int) *Share {
	const few = 24
	if len(f.Shares) <= few {
		for i := len(f.Shares) - 1; i >= 0; i-- {
			if f.Shares[i].Node == node {
				return &f.Shares[i]
			}
		}
	} else {
		if f.at == nil {
			f.at = map[int]int{}
			for i := range f.Shares {
				f.at[f.Shares[i].Node] = i
			}
		}
		if i, ok := f.at[node]; ok {
			return &f.Shares[i]
		}
		f.at[node] = len(f.Shares)
	}
	f.Shares = append(f.Shares, Share{Node: node})
	return &f.Shares[len(f.Shares)-1]
}

func (c *Collector) stageBegin(p *Process, l *lane, name uint32, now int64) {
	if len(l.stack) >= maxDepth {
		c.Problems[TooDeep]++
		l.deep++
		return
	}
	o := openStage{name: name, node: -1, begin: now, frame: l.current()}
	parent, pipe := -1, -1
	switch n := len(l.stack); {
	case n > 0 && l.stack[n-1].frame == l.frame:
		parent = l.stack[n-1].node
		pipe = l.stack[n-1].pipeline(c)
	case l.frame != nil:
		pipe = l.frame.Pipeline
	case n == 0 && (!l.lost || !c.Explicit):
		// A frame of its own.
		if pipe = c.pipeline(Pipeline{Name: p.text(name), Implied: true}); pipe >= 0 {
			o.frame, o.implied = newFrame(p, pipe, 0, now), true
			l.frame = o.frame
			o.frame.lanes = 1
		}
	}
	if pipe >= 0 && (parent >= 0 || len(l.stack) == 0 || l.stack[len(l.stack)-1].frame != l.frame) {
		o.node = c.node(p, pipe, parent, name)
	}
	if o.frame != nil {
		o.frame.open++
	}
	l.stack = append(l.stack, o)
}

// pipeline returns the pipeline of a running stage, -1 if unknown.
func (o *openStage) pipeline(c *Collector) int {
	if o.node >= 0 {
		return c.Nodes[o.node].Pipeline
	}
	return -1
}

func (c *Collector) stageEnd(p *Process, l *lane, name uint32, now int64) {
	if l.deep > 0 {
		l.deep--
		return
	}
	at := len(l.stack) - 1
	for at >= 0 && l.stack[at].name != name {
		at--
	}
	if at < 0 {
		if !l.lost {
			c.Problems[EndWithoutBegin]++
		}
		return
	}
	for len(l.stack) > at+1 {
		c.Problems[LeftOpen]++
		c.close(p, l, now)
	}
	c.close(p, l, now)
}

// close ends the innermost stage of a lane.
func (c *Collector) close(p *Process, l *lane, now int64) {
	o := l.stack[len(l.stack)-1]
	l.stack = l.stack[:len(l.stack)-1]
	took := max(0, now-o.begin)
	if n := len(l.stack); n > 0 {
		l.stack[n-1].own += took
	}
	if c.Bar != nil {
		b := Bar{Process: p, Lane: int(l.number), Node: o.node, Pipeline: o.pipeline(c), Begin: o.begin, End: now}
		if o.frame != nil {
			b.Frame = o.frame.Number
		}
		c.Bar(b)
	}
	f := o.frame
	switch {
	case f == nil:
		return
	case f.done:
		c.Problems[FrameLate]++
		return
	}
	f.open--
	if o.node >= 0 {
		s := f.share(o.node)
		s.Calls++
		s.Self += max(0, took-o.own)
	}
	if n := len(l.stack); n == 0 || l.stack[n-1].frame != f {
		f.span(o.begin, now)
		f.Work += took
	}
	if o.implied {
		if l.frame == f {
			l.frame = nil
		}
		f.End = now
		f.done = true
		c.report(f)
	}
}

// own subtracts the time that a lane spent on writing marks.
func (c *Collector) own(l *lane, d, now int64) {
	l.current()
	if n := len(l.stack); n > 0 {
		d = min(d, max(0, now-l.stack[n-1].begin))
		// The enclosing stages lose it as part of this nested one.
		l.stack[n-1].own += d
	} else if l.frame != nil {
		d = min(d, max(0, now-l.frame.Begin))
		l.frame.span(now-d, now)
	}
	if l.frame != nil {
		l.frame.Own += d
	}
}

func (c *Collector) count(p *Process, l *lane, name uint32, v float64) {
	f, node := l.current(), -1
	if n := len(l.stack); n > 0 && l.stack[n-1].frame == f {
		node = l.stack[n-1].node
	}
	if f == nil {
		return
	}
	text := p.text(name)
	for i := range f.Figures {
		if x := &f.Figures[i]; x.Node == node && x.Name == text {
			x.Value += v
			return
		}
	}
	if len(f.Figures) >= maxFigures {
		c.Problems[TooMany]++
		return
	}
	f.Figures = append(f.Figures, Figure{node, text, v})
}

func (c *Collector) level(p *Process, l *lane, name uint32, now int64, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		c.Problems[Malformed]++
		return
	}
	if c.Level == nil {
		return
	}
	node := -1
	if n := len(l.stack); n > 0 {
		node = l.stack[n-1].node
	}
	c.Level(Level{p, node, p.text(name), now, v})
}

// model records which model a stage runs, at any position.
func (c *Collector) model(p *Process, stage, file, sum uint32) {
	if c.models == nil {
		c.models = map[string]stageModel{}
	}
	s := ""
	if sum != 0 {
		s = p.text(sum)
	}
	if name := p.text(stage); c.models[name].file != "" || len(c.models) < maxModels {
		c.models[name] = stageModel{p.text(file), s}
	}
}

// Model returns the model that a stage runs according to the application, by the stage's name.
func (c *Collector) Model(stage string) (file, sha256 string) {
	m := c.models[stage]
	return m.file, m.sha256
}
