package agent

import (
	"slices"
	"time"
)

// Limits of what is held.
const (
	maxCounters = 64       // figures of the firmware's own, by name
	maxFigures  = 1 << 14  // of them in one inference
	maxData     = 16 << 20 // bytes of one block of data
	window      = 256      // frames of which it is known whether they came
)

// Op is what an inference says of an operator, over all its calls.
type Op struct {
	Index uint16
	// Calls is how often it ended.
	Calls int
	// Counts is the time in the operator itself, without operators within it.
	Counts int64
	// Inner is the number of operators right within it, Agent that of calls of the agent within
	// it and not within those.
	Inner, Agent int64
	// Within says that it stood in another operator at least once.
	Within bool

	stretch int  // of frames without a loss between them
	mixed   bool // came in several
}

// Counter is a figure of the firmware's own.
type Counter struct {
	Index int // of the operator, -1 for the inference
	Name  string
	Value float64 // summed over the calls of the operator
}

// Run is an inference.
type Run struct {
	// Number counts inferences of a start of the device; where Partial, it may be too small.
	Number uint64
	// Counts is from begin to end, Own is the part of it that the agent took to send, both zero
	// in partial ones. Calls is the number of calls of the agent.
	Counts, Own, Calls uint64
	Ops                []Op // in the order in which they ended first
	Counters           []Counter
	// Partial says that frames of it were lost, or that its counter may have gone round.
	Partial bool
	// Wrong says that the firmware used the agent wrongly, so that no figure of it counts.
	Wrong bool
	// Sure says that nothing was lost since the last hello, so that all tags are known.
	Sure bool

	begun   bool // its begin came
	joined  bool // listening began in the middle of it
	at      map[uint16]int
	stretch int

	counterAt map[counterKey]int
}

type counterKey struct {
	index int
	name  string
}

// Event is what a stream tells: one of its parts is set.
type Event struct {
	Hello   *Hello
	Run     *Run
	Memory  *Memory
	Data    *Data
	Text    string // a remark through the agent
	Output  []byte // what the firmware printed beside the agent
	Problem *Problem
	// Restart says that the device began anew. What is known of it may not hold any more; tags
	// and texts of the hello are there for the last time.
	Restart bool
	// Done says that the firmware is through.
	Done bool
	// Version is that of a format that this host does not know.
	Version uint8
}

// Memory is memory in use.
type Memory struct {
	Name  string
	Bytes uint32
}

// Data is a block of data.
type Data struct {
	Name  string
	Index int
	Bytes []byte
}

// Problem is a wrong use of the agent.
type Problem struct {
	Code  uint8
	Index uint64
}

// Lost counts what did not come.
type Lost struct {
	Frames    int64 // that the sequence shows to be lost
	Runs      int64 // inferences of which nothing came
	Data      int64 // blocks of data that are not complete
	Noise     int64 // bytes that are neither frame nor text
	Twice     int64 // frames that came twice or too late, and were left out
	Malformed int64 // frames with a right check and a wrong body
	Foreign   int64 // frames of types that are not known
	Counters  int64 // figures of the firmware's own beyond those that are held
}

// Stream makes inferences of a stream of bytes. It does no input or output.
type Stream struct {
	// Tags are the texts of operators by index, Info those of the hello by key.
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
}

// maxDepth is how deep the agent can be told to let operators stand within each other.
const maxDepth = 64

// slot is what is known of a frame of the last some.
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

// inner sums operators that stand in one that has not ended.
type inner struct{ counts, ops, calls int64 }

// NewStream makes a stream that tells its events to a function. What events point to is the
// function's to keep, except for their bytes of output.
func NewStream(out func(Event)) *Stream {
	s := &Stream{out: out}
	s.forget()
	return s
}

// forget drops all that is known of the device.
func (s *Stream) forget() {
	s.Tags, s.Info = map[uint16]string{}, map[uint8]string{}
	s.hello, s.sure, s.last, s.orphan = nil, false, -1, false
	s.slots = [window]slot{}
	s.remark, s.data = nil, nil
	if s.names == nil {
		s.names = map[string]bool{}
	}
}

// Feed takes bytes that came at a time.
func (s *Stream) Feed(p []byte, at time.Time) {
	s.dec.Feed(p, func(p Piece) { s.piece(p, at) })
}

// Gap says that bytes were lost because the device was away. It may have been started anew, or
// have other firmware now.
func (s *Stream) Gap() {
	s.dec.Flush(func(p Piece) { s.piece(p, time.Time{}) })
	if s.began {
		s.away()
	}
}

// End says that nothing more comes.
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

// drop gives up a block of data.
func (s *Stream) drop() {
	if s.data != nil {
		s.Lost.Data++
		s.data = nil
	}
}

func (s *Stream) piece(p Piece, at time.Time) {
	switch {
	case p.Frame != nil:
		if s.order(p.Frame) {
			s.clock(at)
			if err := s.frame(p.Frame); err != nil {
				s.Lost.Malformed++
				s.gap()
			}
		}
	case p.Text != nil:
		s.out(Event{Output: p.Text})
	default:
		s.Lost.Noise += int64(p.Noise)
	}
}

// order says whether a frame is the next one, or one after it; it sees what is missing between.
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
			// A number that was there with other words: the device began anew, and what it
			// said first was lost.
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

// clock marks an inference during which the counter may have gone round unseen: more time went by
// between two frames than it counts.
func (s *Stream) clock(at time.Time) {
	if h := s.hello; s.run != nil && h != nil && h.Period > 0 && h.Hz > 0 && !at.IsZero() && !s.seen.IsZero() {
		if at.Sub(s.seen).Seconds() > float64(h.Period)/float64(h.Hz) {
			s.run.Partial = true
		}
	}
	s.seen = at
}

// close tells of the running inference: one that did not end is partial.
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
		// What came before and after a loss may be of two inferences.
		r.Counts, r.Own, r.Calls, r.Counters = 0, 0, 0, nil
		r.Ops = slices.DeleteFunc(r.Ops, func(o Op) bool { return o.mixed })
	}
	s.out(Event{Run: r})
}

// open begins an inference; whole says that its begin came.
func (s *Stream) open(number uint64, whole bool) {
	s.run = &Run{Number: number, Partial: !whole, Sure: s.sure, begun: whole, at: map[uint16]int{}, counterAt: map[counterKey]int{}}
	s.run.joined = !whole && s.last < 0 && (s.hello == nil || s.hello.Flags&flagRepeat != 0)
	s.inner = [maxDepth + 2]inner{}
	s.orphan = s.orphan || !whole
}

// frame takes the next frame.
func (s *Stream) frame(f *Frame) error {
	r := body{b: f.Body}
	switch f.Type {
	case THello:
		return s.greet(f.Body)
	case TInfo:
		key, text := r.octet(), r.text()
		if !r.bad {
			s.Info[key] = text
		}
	case TTag:
		index, text := r.number(1<<16-1), r.text()
		if !r.bad {
			s.Tags[uint16(index)] = text
		}
	case TBegin:
		n := r.number(1<<32 - 1)
		if !r.bad {
			s.begin(n)
		}
	case TOp:
		return s.op(f.Body)
	case TEnd:
		return s.end(f.Body)
	case TCounter:
		return s.counter(f.Body)
	case TMemory:
		m := Memory{r.text(), uint32(r.number(1<<32 - 1))}
		if !r.bad {
			s.out(Event{Memory: &m})
		}
	case TText:
		return s.say(f.Body)
	case TData:
		return s.block(f.Body)
	case TDone:
		s.close(true)
		s.out(Event{Done: true})
	case TProblem:
		p := Problem{r.octet(), r.number(1<<64 - 1)}
		if !r.bad {
			s.problem(p)
		}
	default:
		s.Lost.Foreign++
	}
	return r.err()
}

// greet takes a hello.
func (s *Stream) greet(b []byte) error {
	h, v, err := parseHello(b)
	if err != nil {
		return err
	}
	if v != version {
		s.out(Event{Version: v})
		return nil
	}
	s.close(true) // hellos stand between inferences
	if s.hello != nil {
		old, now := *s.hello, h
		old.Flags |= flagRepeat
		now.Flags |= flagRepeat
		old.Inferences, now.Inferences = 0, 0
		if old != now {
			s.away() // another device, or another start of it
			s.began = true
		}
	}
	s.hello, s.sure = &h, true
	s.out(Event{Hello: &h})
	return nil
}

// begin takes the begin of an inference.
func (s *Stream) begin(n uint64) {
	s.close(true)
	if int64(n) <= s.last {
		s.away() // numbers only grow: this is another start
		s.began = true
	}
	if s.last >= 0 || s.hello != nil && s.hello.Flags&flagRepeat == 0 {
		s.Lost.Runs += int64(n) - s.last - 1
		if s.orphan && s.Lost.Runs > 0 {
			s.Lost.Runs--
		}
	}
	s.last, s.orphan = int64(n), false
	s.open(n, true)
}

// op takes an operator that ended.
func (s *Stream) op(b []byte) error {
	o, err := parseOp(b)
	if err != nil || o.depth > maxDepth {
		return errBody
	}
	if s.run == nil {
		s.open(uint64(s.last+1), false)
	}
	in := s.inner[o.depth+1]
	if o.calls == 0 && in != (inner{}) {
		return errBody // nothing stood in it, and something did
	}
	s.inner[o.depth+1] = inner{}
	around := &s.inner[o.depth]
	around.counts += int64(o.counts)
	around.ops++
	around.calls += int64(o.calls) + 2
	if s.run.Partial && o.calls > 0 {
		return nil // what of its time belongs to operators within it may be lost
	}
	own := int64(o.counts) - in.counts
	agent := int64(o.calls) - in.calls
	if own < 0 || agent < 0 || around.counts < 0 || around.calls < 0 {
		s.run.Partial = true
		return nil
	}
	k, ok := s.run.at[o.index]
	if !ok {
		k = len(s.run.Ops)
		s.run.at[o.index] = k
		s.run.Ops = append(s.run.Ops, Op{Index: o.index, stretch: s.run.stretch})
	}
	x := &s.run.Ops[k]
	x.mixed = x.mixed || x.stretch != s.run.stretch
	x.Calls++
	x.Counts += own
	x.Inner += in.ops
	x.Agent += agent + 2*in.ops
	x.Within = x.Within || o.depth > 0
	if x.Counts < 0 {
		s.run.Wrong = true // more than 292 years: no device measured that
	}
	return nil
}

// end takes the end of an inference.
func (s *Stream) end(b []byte) error {
	e, err := parseEnd(b)
	if err != nil {
		return err
	}
	if s.run == nil {
		if int64(e.number) <= s.last {
			return nil // its begin was a problem, and it is told of
		}
		s.open(e.number, false)
	}
	s.last, s.orphan = int64(e.number), false
	r := s.run
	if r.begun && r.Number != e.number {
		r.Partial = true
	}
	r.Number = e.number
	calls := 0
	for i := range r.Ops {
		calls += r.Ops[i].Calls
	}
	if uint64(calls) != e.ops {
		r.Partial = true
	}
	r.Counts, r.Own, r.Calls = e.counts, e.own, e.calls
	s.close(false)
	return nil
}

// counter takes a figure of the firmware's own.
func (s *Stream) counter(b []byte) error {
	c, err := parseCounter(b)
	if err != nil {
		return err
	}
	if s.run == nil {
		return nil // between inferences it is of none
	}
	if !s.names[c.name] {
		if len(s.names) >= maxCounters {
			s.Lost.Counters++
			return nil
		}
		s.names[c.name] = true
	}
	k := counterKey{c.index, c.name}
	if i, ok := s.run.counterAt[k]; ok {
		s.run.Counters[i].Value += float64(c.value)
		return nil
	}
	if len(s.run.Counters) >= maxFigures {
		s.Lost.Counters++
		return nil
	}
	s.run.counterAt[k] = len(s.run.Counters)
	s.run.Counters = append(s.run.Counters, Counter{c.index, c.name, float64(c.value)})
	return nil
}

// say takes a piece of a remark.
func (s *Stream) say(b []byte) error {
	r := body{b: b}
	more, piece := r.octet(), r.bytes()
	if r.bad {
		return errBody
	}
	if len(s.remark) < maxText {
		s.remark = append(s.remark, piece...)
	}
	if more == 0 {
		text := clean(s.remark)
		s.remark = nil
		s.out(Event{Text: text})
	}
	return nil
}

// block takes a piece of data.
func (s *Stream) block(b []byte) error {
	d, err := parseData(b)
	if err != nil {
		return err
	}
	if d.at == 0 {
		s.drop()
		if d.size > maxData {
			s.Lost.Data++
			return nil
		}
		s.data, s.want = &Data{Name: d.name, Index: d.index}, d.size
	}
	x := s.data
	if x == nil {
		return nil // its beginning was lost
	}
	if x.Name != d.name || x.Index != d.index || uint64(len(x.Bytes)) != d.at || s.want != d.size {
		s.drop()
		return nil
	}
	x.Bytes = append(x.Bytes, d.piece...)
	if uint64(len(x.Bytes)) == s.want {
		s.data = nil
		s.out(Event{Data: x})
	} else if len(d.piece) == 0 {
		s.drop()
	}
	return nil
}

// problem takes what the agent says of its use.
func (s *Stream) problem(p Problem) {
	if s.run != nil {
		switch p.Code {
		case problemNest, problemOutside:
		default:
			s.run.Wrong = true
		}
	}
	s.out(Event{Problem: &p})
}
