package marks

import (
	"math"
	"sync/atomic"
	"time"
)

// Kinds of marks, as they stand in the stream.
const (
	stageBegin = iota + 1
	stageEnd
	frameBegin
	frameEnd
	frameEnter
	frameLeave
	count
	level
	model
	dropped
	own
	laneStart
)

const (
	ringSize = 2048 // marks of a lane that may wait, a power of two
	spare    = 4    // places of the ring that only marks about marks take

	// soon and late are after how long the end of a frame, and any other mark, has what
	// waits written.
	soon, late = int64(100 * time.Millisecond), int64(500 * time.Millisecond)
	// again is the time between attempts to write to a reader that takes nothing.
	again = int64(5 * time.Millisecond)
)

// mark is one call as it waits in a lane.
type mark struct {
	time  int64 // nanoseconds since the start of the stream
	value uint64
	kind  uint32
	name  Name
}

// Lane is what marks are made with: one for each goroutine that makes some, as its calls
// are for one at a time. It is a row of the timeline. Begin and End of a stage, and those
// of frames, belong to the same lane, except where it says otherwise.
type Lane struct {
	made uint64        // marks that were made, for whoever has the lane
	head atomic.Uint64 // the same for rounds
	seen uint64        // tail as it was seen last
	lost uint64        // marks left out since the last one that was made
	id   uint64        // of the stream that the marks are of
	name Name
	ring *[ringSize]mark
	_    [64]byte      // so that rounds do not take the lane's line of the cache
	tail atomic.Uint64 // marks that were written; rounds write it
	upto uint64        // head when the round began

	number   int
	listed   bool // among those that rounds look at
	finished atomic.Bool
}

// Frame is one pass of the pipeline. It may be handed to other goroutines. The zero
// value is none.
type Frame uint64

// NewLane makes a lane of this name, "" for one of its number. It costs memory from its
// first mark on.
func NewLane(name string) *Lane {
	l := &Lane{}
	if name != "" {
		l.name = Named(name)
	}
	return l
}

// Close gives the lane up: what it has is written, its row goes to a lane that begins
// later. No mark may be made with it any more.
func (l *Lane) Close() { l.finished.Store(true) }

// BeginFrame begins a pass of the pipeline of this kind, for which the lane works from here
// on. The frame is the zero value while marks are off.
func (l *Lane) BeginFrame(kind Name) Frame {
	s := active.Load()
	if s == nil {
		return 0
	}
	f := frames.Add(1)
	s.add(l, frameBegin, kind, f, late)
	return Frame(f)
}

// EndFrame ends a frame, which any lane may have begun.
func (l *Lane) EndFrame(f Frame) {
	if s := active.Load(); s != nil {
		s.add(l, frameEnd, 0, uint64(f), soon)
	}
}

// Enter says that the lane works for a frame that another one has begun.
func (l *Lane) Enter(f Frame) {
	if s := active.Load(); s != nil {
		s.add(l, frameEnter, 0, uint64(f), late)
	}
}

// Leave says that the lane works for no frame.
func (l *Lane) Leave() {
	if s := active.Load(); s != nil {
		s.add(l, frameLeave, 0, 0, late)
	}
}

// Begin begins a stage. Stages of a lane stand within one another, at most 64 deep.
func (l *Lane) Begin(stage Name) {
	if s := active.Load(); s != nil {
		s.add(l, stageBegin, stage, 0, late)
	}
}

// End ends the stage.
func (l *Lane) End(stage Name) {
	if s := active.Load(); s != nil {
		s.add(l, stageEnd, stage, 0, late)
	}
}

// Count adds to a figure of the innermost stage of the lane, or of its frame: bytes, items,
// hits of a cache. What is added in one frame is one value.
func (l *Lane) Count(figure Name, amount int64) {
	if s := active.Load(); s != nil {
		s.add(l, count, figure, uint64(amount), late)
	}
}

// Level sets a figure that has a level at each moment: the length of a queue, a
// temperature.
func (l *Lane) Level(figure Name, value float64) {
	if s := active.Load(); s != nil {
		s.add(l, level, figure, math.Float64bits(value), late)
	}
}

// Model says which model a stage runs: the name of its file, and the SHA-256 of that in
// hexadecimal, "" for not known. Once is enough.
func (l *Lane) Model(stage Name, file, sha256 string) {
	s := active.Load()
	if s == nil || file == "" {
		return
	}
	v := uint64(Named(file))
	if sha256 != "" {
		v |= uint64(Named(sha256)) << 32
	}
	s.add(l, model, stage, v, late)
}

// add puts a mark into the lane, and has what waits written where the last time is longer
// ago than patience.
func (s *stream) add(l *Lane, kind uint32, name Name, value uint64, patience int64) {
	now := int64(time.Since(s.zero))
	head := l.made
	if head-l.seen > ringSize-spare || l.id != s.id || l.lost != 0 {
		if !s.room(l, now) {
			return
		}
		head = l.made
	}
	m := &l.ring[head%ringSize]
	m.time, m.value, m.kind, m.name = now, value, kind, name
	l.made = head + 1
	l.head.Store(head + 1)
	if now-s.last.Load() > patience {
		s.pause(l, now)
	}
}

// room is the way of a mark that is not the usual one: the first of a lane, or its ring is
// full. It reports whether there is room.
func (s *stream) room(l *Lane, now int64) bool {
	if l.ring == nil && !s.join(l) {
		lostMarks.Add(1)
		return false
	}
	l.seen = l.tail.Load()
	if l.made-l.seen > ringSize-spare {
		if l.lost == 0 || now-s.last.Load() > again {
			s.pause(l, now)
		}
		if l.made-l.seen > ringSize-spare {
			l.lost++
			lostMarks.Add(1)
			return false
		}
	}
	if l.id != s.id {
		l.id, l.lost = s.id, 0
		l.put(mark{now, 0, laneStart, l.name})
	}
	if l.lost != 0 {
		l.put(mark{now, l.lost, dropped, 0})
		l.lost = 0
	}
	return true
}

func (l *Lane) put(m mark) {
	l.ring[l.made%ringSize] = m
	l.made++
	l.head.Store(l.made)
}

// pause makes a round now, and tells what it took of this lane's time.
func (s *stream) pause(l *Lane, now int64) {
	s.mu.Lock()
	s.round(now)
	s.mu.Unlock()
	l.seen = l.tail.Load()
	after := int64(time.Since(s.zero))
	if l.made-l.seen < ringSize-spare && after > now && l.lost == 0 && l.id == s.id {
		l.put(mark{after, uint64(after - now), own, 0})
	}
}
