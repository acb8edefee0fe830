package agent

import (
	"fmt"
	"slices"
	"time"
)

// Limits on what is held.
const (
	maxCounters = 64       // figures of the firmware's own, by name
	maxFigures  = 1 << 14  // of them in one inference
	maxData     = 16 << 20 // bytes of one block of data
	window      = 256      // frames of which it is known whether they came
)

// Stream decodes inferences from bytes. It does no input or output.
type Stream struct {
	// Tags are the names of operators by index, Info the texts of the hello by key.
	Tags map[uint16]string
	Info map[uint8]string
	Lost Lost

	out   func(Event)
	dec   Decoder
	hello *Hello
	sure  bool // nothing was lost since the hello

	began bool
	next  uint16
	slots [window]slot

	last   int64 // number of the last inference that told its number, -1 for none
	orphan bool  // a part of one that did not tell it came since
	run    *Run
	inner  [maxDepth + 2]inner
	names  map[string]bool
	remark []byte
	data   *Data
	want   uint64
	seen   time.Time // when the last frame came
	noise  int       // bytes since then that are not text
	talk   int       // and those that are
}

// maxDepth is the largest nesting depth that the agent can be configured for.
const maxDepth = 64

// slot records a frame of the recent window.
type slot struct {
	sequence uint16
	check    uint32
	state    uint8
}

const (
	slotEmpty = iota
	slotMissing
	slotHere
)

// inner sums the operators nested in one that has not ended.
type inner struct{ counts, ops, calls int64 }

// NewStream returns a stream that passes its events to a function. The function may keep
// everything that events point to, except for the output bytes.
func NewStream(out func(Event)) *Stream {
	s := &Stream{out: out}
	s.forget()
	return s
}

// forget drops everything known about the device.
func (s *Stream) forget() {
	s.Tags, s.Info = map[uint16]string{}, map[uint8]string{}
	s.hello, s.sure, s.last, s.orphan = nil, false, -1, false
	s.slots = [window]slot{}
	s.remark, s.data = nil, nil
	if s.names == nil {
		s.names = map[string]bool{}
	}
}

// Feed takes bytes that arrived at a given time.
func (s *Stream) Feed(p []byte, at time.Time) {
	s.dec.Feed(p, func(p Piece) { s.piece(p, at) })
}

// Gap says that bytes were lost because the device was disconnected. It may have been restarted,
// or have other firmware now.
func (s *Stream) Gap() {
	s.dec.Flush(func(p Piece) { s.piece(p, time.Time{}) })
	if s.began {
		s.away()
	}
}

// End says that the stream has ended.
func (s *Stream) End() {
	s.dec.Flush(func(p Piece) { s.piece(p, time.Time{}) })
	s.close(true)
	s.drop()
}

// away closes what is open and forgets the device.
func (s *Stream) away() {
	s.close(true)
	s.drop()
	s.out(Event{Restart: true})
	s.forget()
	s.began = false
}

// drop discards an incomplete block of data.
func (s *Stream) drop() {
	if s.data != nil {
		s.Lost.Data++
		s.data = nil
	}
}

func (s *Stream) piece(p Piece, at time.Time) {
	switch {
	case p.Frame != nil:
		s.noise, s.talk = 0, 0
		if s.order(p.Frame) {
			s.clock(at)
			if err := s.frame(p.Frame); err != nil {
				s.Lost.Malformed++
				s.gap()
			}
		}
	case p.Text != nil:
		s.talk += len(p.Text)
		s.out(Event{Output: p.Text})
	default:
		s.noise += p.Noise
		s.Lost.Noise += int64(p.Noise)
	}
}

// adrift returns an error after so many bytes without a frame that none can be expected.
func (s *Stream) adrift() error {
	if s.noise > maxNoise || s.talk > maxTalk {
		return fmt.Errorf("no frame of the agent among the last %d bytes: the device speaks at another speed or does something else now", s.noise+s.talk)
	}
	return nil
}

// order reports whether a frame is the next one or a later one, and notes missing frames in
// between.
func (s *Stream) order(f *Frame) bool {
	start := f.Type == THello && len(f.Body) > 1 && f.Body[0] == version && f.Body[1]&flagRepeat == 0
	switch {
	case start:
		if s.began {
			s.away()
		}
	case !s.began:
	default:
		d := int16(f.Sequence - s.next)
		if d < 0 {
			x := &s.slots[f.Sequence%window]
			if int(d) >= -window && x.sequence == f.Sequence && (x.state == slotMissing || x.state == slotHere && x.check == f.Check) {
				x.state = slotHere
				x.check = f.Check
				s.Lost.Twice++
				return false
			}
			// A known sequence number with different contents: the device restarted, and its
			// first frames were lost.
			s.away()
			break
		}
		if d > 0 {
			s.Lost.Frames += int64(d)
			for i := max(0, int(d)-window); i < int(d); i++ {
				n := s.next + uint16(i)
				s.slots[n%window] = slot{sequence: n, state: slotMissing}
			}
			s.gap()
		}
	}
	s.began = true
	s.next = f.Sequence + 1
	s.slots[f.Sequence%window] = slot{f.Sequence, f.Check, slotHere}
	return true
}

// gap notes that frames are missing.
func (s *Stream) gap() {
	s.sure = false
	if s.run != nil {
		s.run.Partial = true
		s.run.stretch++
		s.inner = [maxDepth + 2]inner{}
	}
	s.drop()
	s.remark = nil
}

// clock marks an inference whose counter may have wrapped around: more time passed between two
// frames than the counter's period.
func (s *Stream) clock(at time.Time) {
	if h := s.hello; s.run != nil && h != nil && h.Period > 0 && h.Hz > 0 && !at.IsZero() && !s.seen.IsZero() {
		if at.Sub(s.seen).Seconds() > float64(h.Period)/float64(h.Hz) {
			s.run.Partial = true
		}
	}
	s.seen = at
}

// close reports the current inference: one that did not end is partial.
func (s *Stream) close(partial bool) {
	r := s.run
	if r == nil {
		return
	}
	s.run = nil
	if r.joined {
		return // nothing was lost: it began before anybody listened
	}
	r.Partial = r.Partial || partial
	if r.Partial {
		// Values before and after a loss may belong to two inferences.
		r.Counts, r.Own, r.Calls, r.Counters = 0, 0, 0, nil
		r.Ops = slices.DeleteFunc(r.Ops, func(o Op) bool { return o.mixed })
	}
	s.out(Event{Run: r})
}

// open begins an inference; whole says that its begin arrived.
func (s *Stream) open(number uint64, whole bool) {
	s.run = &Run{Number: number, Partial: !whole, Sure: s.sure, begun: whole, at: map[uint16]int{}, counterAt: map[counterKey]int{}}
	s.run.joined = !whole && s.last < 0 && (s.hello == nil || s.hello.Flags&flagRepeat != 0)
	s.inner = [maxDepth + 2]inner{}
	s.orphan = s.orphan || !whole
}
