package traceevent

import (
	"context"
	"io"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/record"
)

// Read calls event for events of the lists that o streams, and other for all other members of a
// file, see [jsonscan.Each]. An element that is not an object is an empty event. An event is
// valid until the function returns. Read stops with the error of the context. It reads and
// decompresses ahead in a goroutine.
func Read(ctx context.Context, f *record.File, o jsonscan.Options, event func(key string, e *Event), other func(key string, v []byte)) (res jsonscan.Result, err error) {
	err = f.With(func(r io.Reader) error {
		if f.Whole { // there is nothing to read ahead
			res, err = each(ctx, r, o, event, other)
		} else {
			res, err = Each(ctx, r, o, event, other)
		}
		return err
	})
	return res, err
}

// Each is [Read] for a document from r.
func Each(ctx context.Context, r io.Reader, o jsonscan.Options, event func(key string, e *Event), other func(key string, v []byte)) (jsonscan.Result, error) {
	a := newAhead(r)
	defer a.stop()
	return each(ctx, a, o, event, other)
}

func each(ctx context.Context, r io.Reader, o jsonscan.Options, event func(key string, e *Event), other func(key string, v []byte)) (jsonscan.Result, error) {
	var e Event
	n := 0
	o.Object = func(key string, text []byte) int {
		if n++; n&0xfff == 0 && ctx.Err() != nil {
			return 0 // the callback then stops
		}
		size := e.Parse(text)
		if size > 0 {
			event(key, &e)
		}
		return size
	}
	res, err := jsonscan.Each(r, o, func(key string, v []byte) error {
		switch {
		case key != "" && !o.Stream(key):
			other(key, v)
		case e.Parse(v) > 0:
			event(key, &e)
		default:
			e = Event{pairs: e.pairs[:0], key: e.key}
			event(key, &e)
		}
		return ctx.Err()
	})
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return res, err
}

// ahead reads ahead in a goroutine.
type ahead struct {
	full, free chan []byte
	quit       chan struct{}
	now        []byte
	whole      []byte // the buffer that contains now
	err        error  // set before full is closed
}

// pieceBytes is the size of one read.
const pieceBytes = 256 << 10

func newAhead(r io.Reader) *ahead {
	a := &ahead{full: make(chan []byte, 3), free: make(chan []byte, 4), quit: make(chan struct{})}
	for range cap(a.free) {
		a.free <- make([]byte, pieceBytes)
	}
	go func() {
		defer close(a.full)
		for {
			var b []byte
			select {
			case b = <-a.free:
			case <-a.quit:
				return
			}
			n, err := r.Read(b[:pieceBytes])
			a.full <- b[:n] // does not block: full holds all but one
			if err != nil {
				a.err = err
				return
			}
		}
	}()
	return a
}

// Read implements io.Reader.
func (a *ahead) Read(b []byte) (int, error) {
	for len(a.now) == 0 {
		if a.whole != nil {
			a.free <- a.whole
			a.whole = nil
		}
		p, ok := <-a.full
		if !ok {
			return 0, a.err
		}
		a.whole, a.now = p[:pieceBytes], p
	}
	n := copy(b, a.now)
	a.now = a.now[n:]
	return n, nil
}

// stop ends the goroutine after its current read.
func (a *ahead) stop() {
	close(a.quit)
	for range a.full {
	}
}
