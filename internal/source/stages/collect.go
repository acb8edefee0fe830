package stages

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
)

// Kinds of marks.
const (
	markStageBegin = 1
	markStageEnd   = 2
	markFrameBegin = 3
	markFrameEnd   = 4
	markFrameEnter = 5
	markFrameLeave = 6
	markCount      = 7
	markLevel      = 8
	markModel      = 9
	markDropped    = 10
	markOwn        = 11
	markLane       = 12
	markLaneName   = 13
)

// Limits of stored data, for any stream.
const (
	MaxProcesses = 256
	MaxNodes     = 4096 // stages by position
	maxPipelines = 64
	maxNames     = 1 << 16 // per process
	maxText      = 200
	maxLanes     = 1024 // per process
	maxDepth     = 64
	maxFrames    = 4096 // per process, running or waiting for marks of other threads
	maxSpans     = 256  // per frame before merging
	maxFigures   = 200  // per frame
	maxModels    = 4096 // stages that run a model
	maxWaiting   = 1 << 18
	maxTime      = 1 << 60
)

// Problem is a violation of the rules of marks in a stream.
type Problem int

// Problems; each is counted.
const (
	EndWithoutBegin Problem = iota // stage end without begin
	LeftOpen                       // stage ended by the end of an outer one or of its frame
	TooDeep
	FrameWithoutBegin
	FrameUnfinished // frame not ended at the end of the stream
	FrameLate       // stage of a frame that was considered finished
	TooMany         // frames, stages, lanes, processes beyond the limits
	Malformed       // blocks with a valid checksum and invalid content
	DroppedMarks    // marks dropped by the application, as it reports
	LostBlocks      // by sequence numbers
	LostFrames      // incomplete frames
	problems
)

// Node is a stage at its position: in a pipeline, within other stages.
type Node struct {
	// Pipeline is the index in [Collector].Pipelines, Parent that of the enclosing node, -1 for
	// none.
	Pipeline, Parent int
	Name             string
}

// stageModel is a model that a stage runs.
type stageModel struct{ file, sha256 string }

// Pipeline is a kind of frame. Implied says that the application marks no frames: each call of an
// outermost stage outside of a frame is one.
type Pipeline struct {
	Name    string
	Implied bool
}

// Share is a stage's part of a frame, in nanoseconds.
type Share struct {
	Node  int
	Calls int64
	// Self excludes nested stages and the cost of marks.
	Self int64
}

// Figure is a value counted in a stage of a frame, with node -1 outside of stages.
type Figure struct {
	Node  int
	Name  string
	Value float64
}

// Frame is one pass through a pipeline.
type Frame struct {
	Process  *Process
	Number   uint64
	Pipeline int
	// Begin and End are nanoseconds since the start of the process, Own is the cost of marks
	// between them.
	Begin, End, Own int64
	Shares          []Share
	Figures         []Figure
	// Unmarked is the time in which no stage ran. Work is the total time of the outermost stages;
	// it exceeds the frame's duration if they ran in parallel.
	Unmarked, Work int64

	ended, partial, done bool
	open                 int   // running stages of the frame
	lanes                int   // lanes that worked for it, 2 for several
	lane                 *lane // lane that entered it last, or ended it
	spans                []span
	at                   map[int]int // index into Shares, if there are many
}

type span struct{ begin, end int64 }

// Bar is one call of a stage, or a frame if Node is -1.
type Bar struct {
	Process    *Process
	Lane       int // number in the process, -1 for the lane of frames
	Node       int
	Pipeline   int
	Begin, End int64 // nanoseconds since the start of the process
	Frame      uint64
}

// Level is a reading of a gauge.
type Level struct {
	Process *Process
	Node    int // -1 outside of stages
	Name    string
	At      int64
	Value   float64
}

// Process is one process of a stream.
type Process struct {
	// Index is its position in order of appearance, PID its process id, 0 unknown, Unix its start
	// time in nanoseconds, 0 unknown. Go says that it is written in Go. Ended says that it has
	// sent its end block.
	Index     int
	PID       uint64
	Unix      int64
	Go, Ended bool
	// First and Last are the times of its first and last mark.
	First, Last int64

	key        uint32
	names      map[uint32]string
	nodes      map[uint64]int
	lanes      map[uint32]*lane
	frames     map[uint64]*Frame
	order      []*Frame // ended frames, in order
	sync, past int64    // times of the last two
	next       uint32
	blocks     int64
	late       bool // its beginning is missing
	waiting    []pendingMark
	lost       uint64 // dropped marks, as reported by lanes
}

// Lane returns the name of a lane.
func (p *Process) Lane(number int) string {
	if l := p.lanes[uint32(number)]; l != nil && l.name != "" {
		return l.name
	}
	return fmt.Sprintf("thread %d", number+1)
}

// pendingMark is a mark that waits until earlier marks of other lanes are known.
type pendingMark struct {
	time  int64
	place int // position among the pending marks
	lane  *lane
	a, b  uint64
	name  uint32
	kind  uint8
}

// lane is a thread of a process.
type lane struct {
	number uint32
	name   string
	frame  *Frame
	stack  []openStage
	deep   int  // number of stages nested too deeply
	lost   bool // marks were lost: open stages may have ended
}

// openStage is a stage that is running.
type openStage struct {
	name       uint32
	node       int
	begin, own int64 // own: cost of marks and nested stages
	frame      *Frame
	implied    bool
}

// Collector builds frames from blocks. Nil callbacks are not called.
type Collector struct {
	// Frame is called for each complete frame, in the order in which they end. It must not retain
	// the frame's slices.
	Frame func(*Frame)
	// Bar is called for each call of a stage and for each frame.
	Bar func(Bar)
	// Level is called for each reading.
	Level func(Level)

	Nodes     []Node
	Pipelines []Pipeline
	Processes []*Process
	// Problems holds the counts by kind.
	Problems [problems]int64
	// Explicit reports whether the application marked any frame.
	Explicit bool

	processes map[uint32]*Process
	nodes     map[nodeKey]int
	pipes     map[Pipeline]int
	models    map[string]stageModel
}

type nodeKey struct {
	pipeline, parent int
	name             string
}

// Block processes a block.
func (c *Collector) Block(b Block) {
	p := c.process(b.Process)
	if p == nil {
		return
	}
	if p.blocks++; b.Sequence != p.next {
		// Sequence numbers start at 0; a reader may have started late.
		if gone := int64(b.Sequence - p.next); p.blocks > 1 && gone > 0 && gone < 1<<31 {
			c.Problems[LostBlocks] += gone
			c.processMarks(p, math.MaxInt64)
			c.markLost(p)
		} else {
			p.late = p.blocks == 1
		}
	}
	p.next = b.Sequence + 1
	r := &numbers{b: b.Body}
	switch b.Kind {
	case blockMarks:
		c.marks(p, r)
	case blockHello:
		lang := r.bytes(1)
		pid, unix := r.uvarint(), r.uvarint()
		if !r.bad {
			p.Go, p.PID, p.Unix = lang[0] == 1, pid, int64(min(unix, math.MaxInt64))
		}
	case blockNames:
		first, n := r.uvarint(), r.uvarint()
		for i := range n {
			text := r.bytes(r.uvarint())
			if r.bad || first+i >= maxNames {
				break
			}
			p.names[uint32(first+i)] = cleanText(text)
		}
	case blockSync:
		if t := r.uvarint(); !r.bad && t < maxTime {
			p.past, p.sync = p.sync, max(p.sync, int64(t))
			c.processMarks(p, p.sync)
			c.finishEnded(p, p.past, false)
		}
	case blockEnd:
		_, lost := r.uvarint(), r.uvarint()
		p.Ended = true
		c.processMarks(p, math.MaxInt64)
		if lost = min(lost, 1<<40); lost > p.lost {
			// No marks of their lanes followed.
			c.Problems[DroppedMarks] += int64(lost - p.lost)
			for _, f := range p.frames {
				f.partial = f.partial || f.lanes > 1 || !f.ended
			}
		}
		c.finishEnded(p, math.MaxInt64, false)
	}
	if r.bad {
		c.Problems[Malformed]++
	}
}

// cleanText truncates a text and replaces invalid UTF-8 and control characters.
func cleanText(b []byte) string {
	s := strings.ToValidUTF8(string(b[:min(len(b), maxText)]), "\ufffd")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// End marks the end of the stream: ended frames are complete, unfinished ones are not.
func (c *Collector) End() {
	for _, p := range c.Processes {
		c.processMarks(p, math.MaxInt64)
		c.finishEnded(p, math.MaxInt64, true)
		c.Problems[FrameUnfinished] += int64(len(p.frames))
	}
}

func (c *Collector) process(key uint32) *Process {
	if p := c.processes[key]; p != nil {
		return p
	}
	if len(c.Processes) >= MaxProcesses {
		c.Problems[TooMany]++
		return nil
	}
	if c.processes == nil {
		c.processes, c.nodes, c.pipes = map[uint32]*Process{}, map[nodeKey]int{}, map[Pipeline]int{}
	}
	p := &Process{
		Index: len(c.Processes), key: key, names: map[uint32]string{}, nodes: map[uint64]int{}, lanes: map[uint32]*lane{}, frames: map[uint64]*Frame{},
		First: math.MaxInt64,
	}
	c.processes[key] = p
	c.Processes = append(c.Processes, p)
	return p
}

func (p *Process) text(name uint32) string {
	if s, ok := p.names[name]; ok {
		return s
	}
	if name == 0 {
		return "unnamed"
	}
	return fmt.Sprintf("name %d", name)
}

// markLost records that marks of all lanes may be missing.
func (c *Collector) markLost(p *Process) {
	for _, l := range p.lanes {
		c.resetLane(l)
	}
	for _, f := range p.frames {
		f.partial = true
	}
}

// resetLane discards the open stages of a lane: their end marks may never come.
func (c *Collector) resetLane(l *lane) {
	for i := range l.stack {
		o := &l.stack[i]
		if o.frame != nil {
			o.frame.partial = true
			o.frame.open--
		}
		if o.implied {
			c.Problems[LostFrames]++
			o.frame.done = true
		}
	}
	if f := l.current(); f != nil {
		f.partial = true
	}
	l.stack, l.deep, l.lost = l.stack[:0], 0, true
}

// marks processes a block of marks.
func (c *Collector) marks(p *Process, r *numbers) {
	number, at := r.uvarint(), r.uvarint()
	if r.bad || number >= maxLanes || at >= maxTime {
		c.Problems[TooMany]++
		return
	}
	l := p.lanes[uint32(number)]
	if l == nil {
		l = &lane{number: uint32(number), lost: p.late}
		p.lanes[uint32(number)] = l
	}
	now := int64(at)
	for len(r.b) > 0 && r.b[0] != 0 {
		head := r.uvarint()
		w := pendingMark{lane: l, kind: uint8(head & 15), name: uint32(head >> 4)}
		r.bad = r.bad || head>>4 >= maxNames
		switch w.kind {
		case markCount, markModel, markDropped, markLane, markLaneName:
		default:
			d := r.uvarint()
			if d >= maxTime || now+int64(d) >= maxTime {
				r.bad = true
				return
			}
			now += int64(d)
		}
		switch w.kind {
		case markStageBegin, markStageEnd, markFrameLeave, markLane, markLaneName:
		case markFrameBegin, markFrameEnd, markFrameEnter, markDropped, markOwn:
			w.a = r.uvarint()
		case markCount:
			w.a = uint64(r.varint())
		case markLevel:
			if b := r.bytes(8); b != nil {
				w.a = binary.LittleEndian.Uint64(b)
			}
		case markModel:
			w.a, w.b = r.uvarint(), r.uvarint()
			r.bad = r.bad || w.a >= maxNames || w.b >= maxNames
		default:
			r.bad = true
		}
		if r.bad {
			return
		}
		w.time, w.place = now, len(p.waiting)
		p.waiting = append(p.waiting, w)
		p.First, p.Last = min(p.First, now), max(p.Last, now)
	}
	if len(p.waiting) >= maxWaiting {
		c.processMarks(p, math.MaxInt64)
	}
}

// processMarks processes the marks up to a time in chronological order: blocks of lanes arrive
// one after another, and a frame moves from one lane to another.
func (c *Collector) processMarks(p *Process, until int64) {
	earlier := func(a, b pendingMark) int { return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.place, b.place)) }
	if !slices.IsSortedFunc(p.waiting, earlier) {
		sorting.Func(p.waiting, earlier)
	}
	n := 0
	for n < len(p.waiting) && p.waiting[n].time <= until {
		c.mark(p, &p.waiting[n])
		n++
	}
	p.waiting = append(p.waiting[:0], p.waiting[n:]...)
	for i := range p.waiting {
		p.waiting[i].place = i
	}
}

// mark processes one mark.
func (c *Collector) mark(p *Process, w *pendingMark) {
	l := w.lane
	switch w.kind {
	case markStageBegin:
		c.stageBegin(p, l, w.name, w.time)
	case markStageEnd:
		c.stageEnd(p, l, w.name, w.time)
	case markFrameBegin:
		c.frameBegin(p, l, w.name, w.a, w.time)
	case markFrameEnd:
		c.frameEnd(p, l, w.a, w.time)
	case markFrameEnter:
		c.enter(l, p.frames[w.a])
	case markFrameLeave:
		l.frame = nil
	case markCount:
		c.count(p, l, w.name, float64(int64(w.a)))
	case markLevel:
		c.level(p, l, w.name, w.time, math.Float64frombits(w.a))
	case markModel:
		c.model(p, w.name, uint32(w.a), uint32(w.b))
	case markDropped:
		c.Problems[DroppedMarks] += int64(min(w.a, 1<<40))
		p.lost += min(w.a, 1<<40)
		c.resetLane(l)
		for _, f := range p.frames {
			// It may have belonged to any frame except those that this lane had ended.
			f.partial = f.partial || !f.ended || f.lane != l
		}
	case markOwn:
		c.own(l, int64(min(w.a, uint64(w.time))), w.time)
	case markLane:
		c.Problems[LeftOpen] += int64(len(l.stack))
		c.resetLane(l)
		l.frame, l.lost, l.name = nil, false, ""
		if w.name != 0 {
			l.name = p.text(w.name)
		}
	case markLaneName:
		l.name = p.text(w.name)
	}
}
