package device

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Again configures repeated starts of a program: when it ends before there are enough inferences,
// or when measurements are interleaved.
//
// The first inferences of each start are warm-up, as many as [Rules] say. If a start gives no
// more than those, the whole first start is warm-up.
type Again struct {
	// Wait is called before each start and waits for the turn of this measurement; nil if it is
	// the only one.
	Wait func(context.Context) error
	// Part and PartTime bound a start of interleaved measurements: after this many counted
	// inferences, or at least one in this time, the program is ended for the next turn. 0 means
	// no bound.
	Part     int
	PartTime time.Duration
	// Time is the time limit of all starts together, effective once three inferences count; 0 for
	// no limit.
	Time time.Duration
}

// least is the number of counted inferences before the time limit applies.
const least = 3

// errNothing says that a start gave no inference, so that another start would not either.
var errNothing = errors.New("no inference of it was complete")

// starts tracks the starts of a program. A nil value starts nothing again.
type starts struct {
	o       *Again
	connect func(context.Context) (*Conn, error)
	r       *Recorder // nil until the protocol is known
	n       int
	begun   time.Time
	before  time.Duration // that the starts before took
	came    bool          // bytes of this start came
	cut     bool          // the one before was ended
}

// spent is how long the program has run.
func (s *starts) spent() time.Duration { return s.before + time.Since(s.begun) }

// enough reports whether the time limit has passed.
func (s *starts) enough() bool {
	return s.o.Time > 0 && s.r.kept >= least && s.spent() >= s.o.Time
}

// mustStop reports whether the running program has to be ended now.
func (s *starts) mustStop() bool {
	if s == nil || s.r == nil {
		return false
	}
	if s.enough() {
		return true
	}
	kept := s.r.start.kept
	return s.o.Wait != nil && kept > 0 && (s.o.Part > 0 && kept >= s.o.Part || s.o.PartTime > 0 && time.Since(s.begun) >= s.o.PartTime)
}

// canRestart reports whether a program that has ended may be restarted: it must have given an
// inference.
func (s *starts) canRestart() bool {
	return s != nil && s.r != nil && (s.n > 1 || s.r.start.seen > 0)
}

// flagChunk sets the flags on the first chunk of a start.
func (s *starts) flagChunk(x *Chunk) {
	if s == nil || s.came {
		return
	}
	s.came = true
	x.Again, x.Cut = s.n > 1, s.cut
}

// again ends the program, or has seen it end, and starts it again. The error is [ErrEnough] or
// io.EOF if no further start is wanted.
func (c *Conn) again(ctx context.Context, cut bool) error {
	s := c.starts
	_ = c.port.Close()
	switch {
	case s.enough() && cut:
		return ErrEnough
	case s.enough():
		return io.EOF
	case s.r.start.seen == 0:
		return fmt.Errorf("%s: start %d: %w", c.addr, s.n, errNothing)
	}
	s.before = s.spent()
	if s.o.Wait != nil {
		if err := s.o.Wait(ctx); err != nil {
			return err
		}
	}
	s.begun = time.Now()
	next, err := s.connect(ctx)
	if err != nil {
		return err
	}
	c.port = next.port
	s.n++
	s.came, s.cut = false, cut
	s.r.start.again(s.r.rules.Warmup)
	return nil
}

// remark says how often the program was started.
func (s *starts) remark() string {
	text := "The program was started once"
	if s.n > 1 {
		text = fmt.Sprintf("The program was started %d times", s.n)
	}
	switch {
	case s.o.Wait == nil:
	case s.n > 1:
		text += ", in turn with the other engines"
	default:
		text += ", by itself, and took no turns with the other engines"
	}
	return text + ". Times are those that it tells, by its own clock and of inputs of its own; its outputs are not seen."
}

// started counts inferences since a program was started.
type started struct {
	seen, kept int
	warmup     int // inferences that are left out still
}

// again begins the next start.
func (s *started) again(warmup int) {
	if s.seen <= warmup {
		warmup = 0 // a start gives nothing else
	}
	*s = started{warmup: warmup}
}

// inference counts one inference, and reports whether it is warm-up of a later start than the
// first.
func (s *started) inference(x *Inference) bool {
	s.seen++
	if s.warmup > 0 && !x.Partial {
		s.warmup--
		return true
	}
	return false
}
