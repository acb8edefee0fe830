package port

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// way is the implementation of one kind of port.
type way interface {
	// read reads at least a byte, or returns 0 and nil if none arrived for some tenths of a
	// second. Errors are those of Port.Read.
	read(p []byte) (int, error)
	// write sends bytes.
	write(p []byte) (int, error)
	// interrupt makes a pending write return.
	interrupt()
	setSpeed(baud int) error
	// quit is called before Close waits for the reader, and makes a read return that otherwise
	// would not.
	quit()
	// close releases resources, after reads and writes have returned.
	close() error
}

// How long Close waits for pending reads and writes before it abandons them, and the interval at
// which a disconnected device is searched for.
const (
	closePatience = time.Second
	lookAgain     = 100 * time.Millisecond
)

// stream is a [Port] over a way: it reads bytes into a queue, records them, and reopens the way.
type stream struct {
	addr Address
	o    Options
	dial func(ctx context.Context, baud int) (way, error)

	q       *queue
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	pumped  chan struct{} // closed when the pump is over
	writing chan struct{} // holds an element while somebody writes

	mu     sync.Mutex
	way    way // nil while the device is away
	speed  int
	closed bool
	record io.Writer // nil after it has failed
	failed error     // what it has failed with
}

func newStream(a Address, o Options) *stream {
	s := &stream{addr: a, o: o, q: newQueue(), speed: o.Speed, record: o.Record, pumped: make(chan struct{}), writing: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// start opens the way and begins to read.
func (s *stream) start(ctx context.Context) error {
	w, err := s.dial(ctx, s.speed)
	if err != nil {
		s.cancel()
		return err
	}
	s.way = w
	go s.pump(w)
	return nil
}

// pump reads until the way ends for good.
func (s *stream) pump(w way) {
	defer close(s.pumped)
	buf := make([]byte, 64<<10)
	for {
		n, err := w.read(buf)
		if n > 0 {
			s.keep(buf[:n])
			if s.q.put(s.ctx, buf[:n]) != nil {
				return
			}
		}
		if s.ctx.Err() != nil {
			return
		}
		if err == nil {
			continue
		}
		gone, ok := errors.AsType[*GoneError](err)
		if ok && s.o.Reconnect > 0 {
			if w = s.again(); w != nil {
				s.q.gap()
				continue
			}
			gone.Waited = s.o.Reconnect
		}
		s.q.finish(err)
		return
	}
}

// keep writes received bytes to the recording.
func (s *stream) keep(p []byte) {
	s.mu.Lock()
	w := s.record
	s.mu.Unlock()
	if w == nil {
		return
	}
	n, err := w.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err == nil {
		return
	}
	s.mu.Lock()
	s.record, s.failed = nil, err
	s.mu.Unlock()
	if s.o.RecordFailed != nil {
		s.o.RecordFailed(err)
	}
}

// again waits for a disconnected device and reopens it; it returns nil if the device does not
// come back or the port is closed.
func (s *stream) again() way {
	s.mu.Lock()
	old := s.way
	s.way = nil
	s.mu.Unlock()
	// The system reassigns a device's old name only once nobody has it open.
	if old != nil {
		old.interrupt()
		_ = old.close()
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Reconnect)
	defer cancel()
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		s.mu.Lock()
		speed := s.speed
		s.mu.Unlock()
		w, err := s.dial(ctx, speed)
		if err != nil {
			continue
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			_ = w.close()
			return nil
		}
		if s.speed != speed {
			// A failure shows in the received data.
			_ = w.setSpeed(s.speed)
		}
		s.way = w
		return w
	}
}

// Read implements [Port].
func (s *stream) Read(ctx context.Context, p []byte) (int, error) {
	if len(p) == 0 {
		return 0, ctx.Err()
	}
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if n, err, done := s.q.take(p); done {
			return n, err
		}
		select {
		case <-ctx.Done():
		case <-s.q.changed:
		case <-s.ctx.Done():
			return 0, os.ErrClosed
		}
	}
}

// Away reports whether the device is disconnected and awaited: its silence then means nothing.
func (s *stream) Away() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.way == nil && !s.closed
}

// Write implements [Port].
func (s *stream) Write(ctx context.Context, p []byte) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	select {
	case s.writing <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-s.ctx.Done():
		return 0, os.ErrClosed
	}
	s.mu.Lock()
	w, closed := s.way, s.closed
	s.mu.Unlock()
	if closed || w == nil {
		<-s.writing
		if closed {
			return 0, os.ErrClosed
		}
		return 0, &GoneError{Port: s.addr}
	}
	type result struct {
		n   int
		err error
	}
	over := make(chan result, 1)
	own := append([]byte(nil), p...) // the caller may reuse p before the write returns
	go func() {
		n, err := w.write(own)
		<-s.writing
		over <- result{n, err}
	}()
	select {
	case r := <-over:
		return r.n, r.err
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
	w.interrupt()
	select {
	case r := <-over:
		n := r.n
		if r.err == nil {
			// the system accepted the bytes, and was told to discard what is not on the wire yet
			n = 0
		}
		return n, s.stopped(ctx)
	case <-time.After(lookAgain):
		return 0, s.stopped(ctx)
	}
}

// stopped returns why a write ended early.
func (s *stream) stopped(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return os.ErrClosed
}

// SetSpeed implements [Port].
func (s *stream) SetSpeed(baud int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.addr.Kind != Serial {
		return ErrNoSpeed
	}
	switch {
	case s.closed:
		return os.ErrClosed
	case baud == s.speed:
		return nil
	case s.way != nil:
		if err := s.way.setSpeed(baud); err != nil {
			return err
		}
	}
	s.speed = baud
	s.q.clear()
	return nil
}

// Close implements [Port].
func (s *stream) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	w := s.way
	s.mu.Unlock()
	s.cancel()
	s.q.finish(os.ErrClosed)
	var err error
	if w != nil {
		w.quit()
		w.interrupt()
	}
	over := make(chan error, 1)
	go func() {
		<-s.pumped
		if w == nil {
			over <- nil
			return
		}
		s.writing <- struct{}{}
		over <- w.close()
	}()
	select {
	case err = <-over:
	case <-time.After(closePatience):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return s.failed
	}
	return err
}
