package stages

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
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

// Bounds of what is held, whatever a stream says.
const (
	MaxProcesses = 256
	MaxNodes     = 4096 // stages by where they stand
	maxPipelines = 64
	maxNames     = 1 << 16 // of a process
	maxText      = 200
	maxLanes     = 1024 // of a process
	maxDepth     = 64
	maxFrames    = 4096 // of a process, under way or waiting for what threads still tell
	maxSpans     = 256  // of a frame before they are put together
	maxFigures   = 200  // of a frame
	maxModels    = 4096 // stages that run one
	maxWaiting   = 1 << 18
	maxTime      = 1 << 60
)

// Problem is something in a stream that contradicts the rules of marks.
type Problem int

// Problems, each counted.
const (
	EndWithoutBegin Problem = iota // of a stage
	LeftOpen                       // a stage that an outer one, or its frame, ended with it
	TooDeep
	FrameWithoutBegin
	FrameUnfinished // when the stream ended
	FrameLate       // a stage of a frame that was taken for finished
	TooMany         // frames, stages, lanes, processes beyond the bounds
	Malformed       // blocks that are checked and make no sense
	DroppedMarks    // by the application, as it says
	LostBlocks      // by their numbers
	LostFrames      // frames that lack something
	problems
)

// Node is a stage by where it stands: in a pipeline, within others.
type Node struct {
	// Pipeline is the index in [Collector].Pipelines, Parent that of the node around it, -1
	// for none.
	Pipeline, Parent int
	Name             string
}

// runs is a model that a stage runs.
type runs struct{ file, sha256 string }

// Pipeline is a kind of frame. Implied says that it has none of its own: its frames are the
// passes of an outermost stage that no frame is around.
type Pipeline struct {
	Name    string
	Implied bool
}

// Share is a stage's part of a frame, in nanoseconds.
type Share struct {
	Node  int
	Calls int64
	// Self is without the stages within and without what marks themselves took.
	Self int64
}

// Figure is what was counted in a stage of a frame, in none of them with node -1.
type Figure struct {
	Node  int
	Name  string
	Value float64
}

// Frame is one pass of a pipeline.
type Frame struct {
	Process  *Process
	Number   uint64
	Pipeline int
	// Begin and End are nanoseconds since the process's start, Own is what marks themselves
	// took between them.
	Begin, End, Own int64
	Shares          []Share
	Figures         []Figure
	// Unmarked is the time in which no stage of it ran, Work what its outermost stages took
	// together: more than the frame where they ran at the same time.
	Unmarked, Work int64

	ended, partial, done bool
	open                 int   // stages of it that run
	lanes                int   // that worked for it, 2 for several
	lane                 *lane // that entered it last, or ended it
	spans                []span
	at                   map[int]int // place in Shares, where they are many
}

type span struct{ begin, end int64 }

// Bar is one call of a stage, or a frame where Node is -1.
type Bar struct {
	Process    *Process
	Lane       int // number in the process, -1 for that of frames
	Node       int
	Pipeline   int
	Begin, End int64 // nanoseconds since the process's start
	Frame      uint64
}

// Level is a reading of a figure.
type Level struct {
	Process *Process
	Node    int // -1 outside of stages
	Name    string
	At      int64
	Value   float64
}

// Process is one process of a stream.
type Process struct {
	// Index is its place in the order in which they came, PID its number, 0 unknown, Unix the
	// time of its start in nanoseconds, 0 unknown. Go says that it is written in Go. Ended says that it has
	// said its last word.
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
	order      []*Frame // those that have ended, in that order
	sync, past int64    // the last two
	next       uint32
	blocks     int64
	late       bool // its beginning is not there
	waiting    []waiting
	lost       uint64 // marks that it dropped, as lanes say
}

// Lane is the name of a lane.
func (p *Process) Lane(number int) string {
	if l := p.lanes[uint32(number)]; l != nil && l.name != "" {
		return l.name
	}
	return fmt.Sprintf("thread %d", number+1)
}

// waiting is a mark until those of other lanes that were made before it are known.
type waiting struct {
	time  int64
	place int // among those that wait
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
	stack  []open
	deep   int  // stages that were too deep
	torn   bool // marks were lost: what is open may have ended
}

// open is a stage that runs.
type open struct {
	name       uint32
	node       int
	begin, own int64 // own: marks and stages within
	frame      *Frame
	implied    bool
}

// Collector makes frames of blocks. Nil functions are for nobody.
type Collector struct {
	// Frame is told of each pass that is whole, in the order in which they end. It may not
	// keep the lists of it.
	Frame func(*Frame)
	// Bar is told of each call of a stage and of each frame.
	Bar func(Bar)
	// Level is told of each reading.
	Level func(Level)

	Nodes     []Node
	Pipelines []Pipeline
	Processes []*Process
	// Problems counts by kind.
	Problems [problems]int64
	// Explicit reports whether there was any frame of its own.
	Explicit bool

	processes map[uint32]*Process
	nodes     map[nodeKey]int
	pipes     map[Pipeline]int
	models    map[string]runs
}

type nodeKey struct {
	pipeline, parent int
	name             string
}

// Block takes a block.
func (c *Collector) Block(b Block) {
	p := c.process(b.Process)
	if p == nil {
		return
	}
	if p.blocks++; b.Sequence != p.next {
		// Numbers begin at 0; a reader may have come late.
		if gone := int64(b.Sequence - p.next); p.blocks > 1 && gone > 0 && gone < 1<<31 {
			c.Problems[LostBlocks] += gone
			c.order(p, math.MaxInt64)
			c.tear(p)
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
			p.names[uint32(first+i)] = clean(text)
		}
	case blockSync:
		if t := r.uvarint(); !r.bad && t < maxTime {
			p.past, p.sync = p.sync, max(p.sync, int64(t))
			c.order(p, p.sync)
			c.settle(p, p.past, false)
		}
	case blockEnd:
		_, lost := r.uvarint(), r.uvarint()
		p.Ended = true
		c.order(p, math.MaxInt64)
		if lost = min(lost, 1<<40); lost > p.lost {
			// After these nothing came from their lanes.
			c.Problems[DroppedMarks] += int64(lost - p.lost)
			for _, f := range p.frames {
				f.partial = f.partial || f.lanes > 1 || !f.ended
			}
		}
		c.settle(p, math.MaxInt64, false)
	}
	if r.bad {
		c.Problems[Malformed]++
	}
}

// clean bounds a text and takes out what is no text.
func clean(b []byte) string {
	s := strings.ToValidUTF8(string(b[:min(len(b), maxText)]), "\ufffd")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// End says that the stream has ended: frames that wait are complete, those under way are not.
func (c *Collector) End() {
	for _, p := range c.Processes {
		c.order(p, math.MaxInt64)
		c.settle(p, math.MaxInt64, true)
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

// tear says that marks of all lanes may be missing.
func (c *Collector) tear(p *Process) {
	for _, l := range p.lanes {
		c.torn(l)
	}
	for _, f := range p.frames {
		f.partial = true
	}
}

// torn forgets what is open in a lane: its ends may never come.
func (c *Collector) torn(l *lane) {
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
	l.stack, l.deep, l.torn = l.stack[:0], 0, true
}

// marks takes a block of marks.
func (c *Collector) marks(p *Process, r *numbers) {
	number, at := r.uvarint(), r.uvarint()
	if r.bad || number >= maxLanes || at >= maxTime {
		c.Problems[TooMany]++
		return
	}
	l := p.lanes[uint32(number)]
	if l == nil {
		l = &lane{number: uint32(number), torn: p.late}
		p.lanes[uint32(number)] = l
	}
	now := int64(at)
	for len(r.b) > 0 && r.b[0] != 0 {
		head := r.uvarint()
		w := waiting{lane: l, kind: uint8(head & 15), name: uint32(head >> 4)}
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
		c.order(p, math.MaxInt64)
	}
}

// order takes the marks that were made up to a time, in the order in which they were made: lanes
// come one after the other, and a frame goes from one to the other.
func (c *Collector) order(p *Process, until int64) {
	earlier := func(a, b waiting) int { return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.place, b.place)) }
	if !slices.IsSortedFunc(p.waiting, earlier) {
		slices.SortFunc(p.waiting, earlier)
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

// mark takes one mark.
func (c *Collector) mark(p *Process, w *waiting) {
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
		c.torn(l)
		for _, f := range p.frames {
			// It may have been a mark of any frame, but for those that this lane had ended.
			f.partial = f.partial || !f.ended || f.lane != l
		}
	case markOwn:
		c.own(l, int64(min(w.a, uint64(w.time))), w.time)
	case markLane:
		c.Problems[LeftOpen] += int64(len(l.stack))
		c.torn(l)
		l.frame, l.torn, l.name = nil, false, ""
		if w.name != 0 {
			l.name = p.text(w.name)
		}
	case markLaneName:
		l.name = p.text(w.name)
	}
}
