package marks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Name is the number of a text, the same for the same text: of a stage, of a kind of
// frame, of a figure. The zero value is none.
type Name uint32

const (
	maxText  = 120
	maxNames = 4095
	maxLanes = 1000
)

// The state of the process: streams come one after the other.
var (
	active    atomic.Pointer[stream]
	frames    atomic.Uint64
	lostMarks atomic.Uint64

	opening sync.Mutex // of Open and Close
	streams uint64

	texts struct {
		sync.Mutex
		list []string
		at   map[string]Name
	}
	lanes struct {
		sync.Mutex
		list []*Lane
		free []int // numbers of those that were closed
		next int
	}
)

// Named returns the number of a text. 120 bytes of it count; of more than 4095 texts the
// later ones have none.
func Named(text string) Name {
	if len(text) > maxText {
		text = text[:maxText]
	}
	if i := strings.IndexByte(text, 0); i >= 0 {
		text = text[:i]
	}
	texts.Lock()
	defer texts.Unlock()
	if n, ok := texts.at[text]; ok {
		return n
	}
	if len(texts.list) >= maxNames {
		return 0
	}
	if texts.at == nil {
		texts.at = map[string]Name{}
	}
	texts.list = append(texts.list, text)
	n := Name(len(texts.list))
	texts.at[text] = n
	return n
}

// Enabled reports whether marks are written.
func Enabled() bool { return active.Load() != nil }

// Dropped is how many marks were left out since the program began, because the reader was
// too slow, the disk full, or there were more than 1000 lanes.
func Dropped() uint64 { return lostMarks.Load() }

// stream is one way out, from Open to Close.
type stream struct {
	id     uint64
	zero   time.Time
	before uint64       // marks that were left out before it
	last   atomic.Int64 // when the last round was

	mu       sync.Mutex // for all below, and for the tails of lanes
	out      output
	process  uint32
	sequence uint32
	greeted  bool
	written  int // names that the stream has
	dead     bool
	buf      []byte
	stop     chan struct{}
}

// Open opens the way out: a path, at which a file is made or appended to ("%p" in it is the
// number of the process), "fd:N" for an open descriptor such as a pipe, or
// "tcp:HOST:PORT" where somebody listens. "" takes the variable OPMETER_MARKS, whose
// absence is not an error. With an error marks stay off. What was open is closed.
func Open(to string) error {
	if to == "" {
		to = os.Getenv("OPMETER_MARKS")
		if to == "" {
			return nil
		}
	}
	opening.Lock()
	defer opening.Unlock()
	_ = closeStream() // of what was open before: this way is another
	to = strings.ReplaceAll(to, "%p", strconv.Itoa(os.Getpid()))
	out, err := reach(to)
	if err != nil {
		return fmt.Errorf("marks: %w", err)
	}
	streams++
	now := time.Now()
	mix := (uint64(now.UnixNano()) ^ uint64(os.Getpid())<<40) * 0x9E3779B97F4A7C15
	s := &stream{id: streams, zero: now, before: lostMarks.Load(), out: out, process: uint32(mix >> 32), buf: make([]byte, 0, maxBlock), stop: make(chan struct{})}
	active.Store(s)
	go s.watch()
	return nil
}

// Close writes what waits, with the last word, and turns marks off. A reader that does not
// read is waited for a second at most. The error says that something could not be written.
func Close() error {
	opening.Lock()
	defer opening.Unlock()
	return closeStream()
}

func closeStream() error {
	s := active.Load()
	if s == nil {
		return nil
	}
	s.mu.Lock()
	now := int64(time.Since(s.zero))
	s.out.last(time.Now().Add(time.Second))
	s.round(now)
	if !s.dead {
		s.send(blockEnd, binary.AppendUvarint(binary.AppendUvarint(s.start(), uint64(now)), lostMarks.Load()-s.before))
		s.dead = true
		close(s.stop)
	}
	active.CompareAndSwap(s, nil)
	lanes.Lock()
	for _, l := range lanes.list {
		l.tail.Store(l.head.Load())
	}
	lanes.Unlock()
	s.mu.Unlock()
	return s.out.close()
}

// Flush has what waits written now.
func Flush() {
	if s := active.Load(); s != nil {
		s.mu.Lock()
		s.round(int64(time.Since(s.zero)))
		s.mu.Unlock()
	}
}

// watch makes rounds for lanes that are silent.
func (s *stream) watch() {
	t := time.NewTicker(time.Duration(late) / 2)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-t.C:
			if now := int64(time.Since(s.zero)); now-s.last.Load() > late/2 {
				s.mu.Lock()
				s.round(now)
				s.mu.Unlock()
			}
		}
	}
}

// collect takes the lanes that were closed and written out of the list. It returns how many are
// closed and wait. The locks are held.
func collect() (waiting int, ring *[ringSize]mark) {
	kept := make([]*Lane, 0, len(lanes.list)+1) // a round may look at the old list
	for _, x := range lanes.list {
		if x.finished.Load() {
			if x.tail.Load() == x.head.Load() {
				lanes.free = append(lanes.free, x.number)
				ring = x.ring
				continue
			}
			waiting++
		}
		kept = append(kept, x)
	}
	lanes.list = kept
	return waiting, ring
}

// join gives a lane its ring and its number. Those of lanes that were closed and written are
// used again.
func (s *stream) join(l *Lane) bool {
	const few = 32
	s.mu.Lock()
	defer s.mu.Unlock()
	lanes.Lock()
	waiting, ring := collect()
	if waiting > 0 && len(lanes.free) == 0 && lanes.next >= few {
		lanes.Unlock()
		s.round(int64(time.Since(s.zero)))
		lanes.Lock()
		_, ring = collect()
	}
	defer lanes.Unlock()
	switch n := len(lanes.free); {
	case n > 0:
		l.number = lanes.free[n-1]
		lanes.free = lanes.free[:n-1]
	case lanes.next < maxLanes:
		l.number = lanes.next
		lanes.next++
	default:
		return false
	}
	if ring == nil {
		ring = new([ringSize]mark)
	}
	l.ring = ring
	lanes.list = append(lanes.list, l)
	return true
}

// errGone says that no one reads any more.
var errGone = errors.New("nobody reads any more")
