package device

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/opmeter/opmeter/internal/base/port"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
)

// Options configures a measurement on a device.
type Options struct {
	Rules
	// Protocols are the candidates: one if the user named it.
	Protocols []*Protocol
	// Port configures the port; if its speed is 0, several speeds are tried.
	Port port.Options
	// AtMost says that fewer inferences than Runs are not an error.
	AtMost bool
	// Timeout is how long a device may be silent, 0 for [DefaultTimeout].
	Timeout time.Duration
	// Waiting is called about once a second while bytes come and no inference does; may be nil.
	Waiting func(Waiting)
	// Open opens the port, nil for [port.Open].
	Open func(ctx context.Context, a port.Address, o port.Options) (port.Port, error)
	// Again configures repeated starts of a program, nil for a single start.
	Again *Again
	// Opened is called once the port is open, before anything is read; may be nil.
	Opened func(context.Context) error
	// Recognised is called with the protocol that was found; may be nil.
	Recognised func(*Seen)
}

// DefaultTimeout is how long a device may be silent. Slow boards need several seconds for an
// inference.
const DefaultTimeout = 10 * time.Second

// Session measures a device once. It is a source.
type Session struct {
	addr port.Address
	o    Options
	open func(ctx context.Context, a port.Address, o port.Options) (port.Port, error)
	// unkept is why the recording ended early.
	unkept atomic.Pointer[error]
}

// New returns a session with a device.
func New(a port.Address, o Options) *Session {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	s := &Session{addr: a, o: o, open: port.Open}
	if o.Open != nil {
		s.open = o.Open
	}
	return s
}

// connect opens the port.
func (s *Session) connect(ctx context.Context) (*Conn, error) {
	o := s.o.Port
	if o.Speed == 0 {
		o.Speed = speeds(s.o.Protocols, 0)[0]
	}
	o.RecordFailed = func(err error) { s.unkept.Store(&err) }
	p, err := s.open(ctx, s.addr, o)
	if err != nil {
		return nil, err
	}
	return &Conn{port: p, addr: s.addr, timeout: s.o.Timeout}, nil
}

// Run measures until there are enough inferences or the stream ends. Without an inference the
// error says why. If there are fewer than requested, the error says so, and the profile contains
// them.
func (s *Session) Run(ctx context.Context, to source.Sink) error {
	if s.o.Again != nil && s.o.Again.Wait != nil {
		if err := s.o.Again.Wait(ctx); err != nil {
			return err
		}
	}
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.port.Close() }()
	if s.o.Again != nil {
		c.starts = &starts{o: s.o.Again, connect: s.connect, n: 1, begun: time.Now()}
	}
	if s.o.Opened != nil {
		if err := s.o.Opened(ctx); err != nil {
			return err
		}
	}
	c.waiting = s.o.Waiting
	p, seen, err := c.recognise(ctx, s.o.Protocols, s.o.Port.Speed, s.o.Timeout)
	if err != nil {
		return err
	}
	if s.o.Recognised != nil {
		s.o.Recognised(seen)
	}
	if p.Warm || p.Once {
		s.o.Warmup = 0
	}
	if p.Once {
		s.o.Runs = min(s.o.Runs, 1)
	}
	r := NewRecorder(to, s.o.Rules)
	r.stopped = func() bool { return ctx.Err() != nil }
	if c.starts != nil {
		c.starts.r = r
	}
	if c.Live() {
		c.watch = &watch{r: r, limit: patience * s.o.Timeout, endless: s.o.Runs == 0, told: s.o.Waiting}
	}
	err = p.Run(ctx, c, &Job{Model: s.o.Model, Recorder: r})
	source.Gathers(to, true)
	if e := r.countWarmup(); e != nil && err == nil {
		err = e
	}
	missing, err := s.ended(ctx, r, p, err)
	if r.Described() {
		if c.starts != nil {
			r.Found("device.starts", profile.Info, "%s", c.starts.remark())
		}
		if e := s.unkept.Load(); e != nil {
			r.Found("device.recording", profile.Warning, "The recording does not have all that came: %v.", *e)
		}
		if e := r.end(missing); e != nil && err == nil {
			err = e
		}
	}
	return err
}

// ended returns what is missing when a protocol has ended, and whether that is an error.
func (s *Session) ended(ctx context.Context, r *Recorder, p *Protocol, err error) ([]profile.Missing, error) {
	gone, isGone := errors.AsType[*port.GoneError](err)
	// A connection closed in an orderly way ends like a file.
	if err == nil || errors.Is(err, ErrEnough) || errors.Is(err, io.EOF) || isGone && gone.Closed {
		m := profile.Missing{Cause: profile.ByEnd, Got: new(int64(r.kept)), Want: new(int64(s.o.Runs))}
		switch {
		case r.kept == 0:
			return []profile.Missing{{Cause: profile.ByEnd}}, s.none(r, p)
		case s.o.AtMost || errors.Is(err, ErrEnough) || r.kept >= s.o.Runs:
			return nil, nil
		}
		return []profile.Missing{m}, fmt.Errorf("%s: ended after %d of %d inferences", s.addr, r.kept, s.o.Runs)
	}
	m := profile.Missing{Cause: profile.ByError, Text: err.Error()}
	switch {
	case ctx.Err() != nil:
		m = profile.Missing{Cause: profile.ByCancel}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			m.Cause = profile.ByDeadline
		}
	case errors.Is(err, ErrSilent), errors.Is(err, ErrStuck):
		m.Cause = profile.ByDeadline
	case isGone:
		m.Cause, m.Text = profile.ByEnd, gone.Error()
	}
	if s.o.Runs > 0 {
		m.Got, m.Want = new(int64(r.kept)), new(int64(s.o.Runs))
	}
	return []profile.Missing{m}, err
}

// none returns the error of a stream that ended without an inference.
func (s *Session) none(r *Recorder, p *Protocol) error {
	return fmt.Errorf("%s: recognised %s, and no inference of it was complete", s.addr, p.Title)
}

// ProbeOptions configures listening to a port.
type ProbeOptions struct {
	Protocols []*Protocol
	Port      port.Options
	// Timeout is how long to wait for the first byte, 0 for [DefaultTimeout].
	Timeout time.Duration
}

// Probe listens to a port and reports what it received. The error is the port's, a [SilentError],
// or nil: an unknown stream is not an error here.
func Probe(ctx context.Context, a port.Address, o ProbeOptions) (*Seen, error) {
	s := New(a, Options{Protocols: o.Protocols, Port: o.Port, Timeout: o.Timeout})
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.port.Close() }()
	_, seen, err := c.recognise(ctx, o.Protocols, o.Port.Speed, s.o.Timeout)
	if _, ok := errors.AsType[*UnknownError](err); ok {
		err = nil
	}
	return seen, err
}
