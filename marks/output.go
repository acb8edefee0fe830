package marks

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// output takes whole blocks.
type output interface {
	// put takes a block or refuses it; it does not keep the bytes. [errGone] is final.
	put(block []byte) error
	// limit is how large blocks may be.
	limit() int
	// last says that what follows is the last, for which a slow reader is waited for until then.
	last(until time.Time)
	// close ends it, and waits as long.
	close() error
}

// reach opens the way to where the user said.
func reach(to string) (output, error) {
	if at, ok := strings.CutPrefix(to, "tcp:"); ok {
		c, err := net.DialTimeout("tcp", at, 2*time.Second)
		if err != nil {
			return nil, err
		}
		return newQueue(c, maxBlock), nil
	}
	if number, ok := strings.CutPrefix(to, "fd:"); ok {
		n, err := strconv.ParseUint(number, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("%q: write fd:N with the number of an open descriptor", to)
		}
		f, err := descriptor(uintptr(n), to)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", to, err)
		}
		return of(f)
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_APPEND|nonblock, 0o666)
	if err != nil {
		return nil, err
	}
	return of(f)
}

// of is the output that suits what a file is.
func of(f *os.File) (output, error) {
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	if st.Mode().IsRegular() {
		return &file{f: f}, nil
	}
	return newQueue(f, pipeBlock), nil
}

// file is a regular file: it takes what comes, or is full.
type file struct {
	f    *os.File
	lost error
}

func (o *file) limit() int { return maxBlock }

func (o *file) put(b []byte) error {
	n, err := o.f.Write(b)
	if err != nil {
		o.lost = err
		if errors.Is(err, os.ErrClosed) {
			return errGone
		}
		return fmt.Errorf("%d of %d bytes: %w", n, len(b), err)
	}
	return nil
}

func (o *file) last(time.Time) {}

func (o *file) close() error {
	if err := o.f.Close(); o.lost == nil {
		return err
	}
	return o.lost
}

// queued is how many blocks wait for a reader: a megabyte.
const queued = 256

// sink is what a queue is written to.
type sink interface {
	Write([]byte) (int, error)
	Close() error
}

// queue writes blocks to a pipe or connection, whose reader may be slow, from a goroutine of
// its own.
type queue struct {
	to   sink
	most int
	in   chan []byte
	done chan struct{}
	gone atomic.Bool
	late *time.Timer // the end of patience, nil until the last blocks
}

func newQueue(to sink, most int) *queue {
	q := &queue{to: to, most: most, in: make(chan []byte, queued), done: make(chan struct{})}
	go q.run()
	return q
}

func (q *queue) run() {
	defer close(q.done)
	for b := range q.in {
		if q.gone.Load() {
			continue
		}
		if _, err := q.to.Write(b); err != nil {
			q.gone.Store(true)
		}
	}
}

func (q *queue) limit() int { return q.most }

// errFull says that a reader is slow.
var errFull = errors.New("the reader is slow")

func (q *queue) put(b []byte) error {
	if q.gone.Load() {
		return errGone
	}
	b = append([]byte(nil), b...)
	if q.late != nil {
		select {
		case q.in <- b:
			return nil
		case <-q.late.C:
			q.late.Reset(0) // and no longer for the others
			return errFull
		}
	}
	select {
	case q.in <- b:
		return nil
	default:
		return errFull
	}
}

func (q *queue) last(until time.Time) { q.late = time.NewTimer(time.Until(until)) }

func (q *queue) close() error {
	close(q.in)
	defer q.late.Stop()
	var err error
	select {
	case <-q.done:
	case <-q.late.C:
		err = errFull
	}
	q.to.Close()
	if q.gone.Load() {
		return errGone
	}
	return err
}
