package traceevent

import (
	"context"
	"io"

	"github.com/opmeter/opmeter/internal/jsonscan"
)

// batch is values that were found and not yet looked at.
type batch struct {
	data []byte
	ends []int
	keys []string
}

// batchBytes is when a batch is full.
const batchBytes = 512 << 10

// Each passes on the members of a document and the elements of the lists that stream, like
// [jsonscan.Each]. Values are found by another goroutine ahead of f, so that two
// processors share the work; f is called in order by the caller's. It ends early with the
// context's error.
func Each(ctx context.Context, r io.Reader, o jsonscan.Options, f func(key string, v []byte)) (res jsonscan.Result, err error) {
	full, free := make(chan *batch, 2), make(chan *batch, 3)
	for range cap(free) {
		free <- &batch{}
	}
	stop := make(chan struct{})
	go func() {
		defer close(full)
		b, quit := <-free, false
		send := func() error {
			full <- b
			select {
			case b = <-free:
			case <-stop:
				quit = true
				return context.Canceled
			}
			b.data, b.ends, b.keys = b.data[:0], b.ends[:0], b.keys[:0]
			return nil
		}
		res, err = jsonscan.Each(r, o, func(key string, v []byte) error {
			b.data = append(b.data, v...)
			b.ends = append(b.ends, len(b.data))
			b.keys = append(b.keys, key)
			if len(b.data) >= batchBytes {
				return send()
			}
			return nil
		})
		if !quit {
			full <- b
		}
	}()
	stopped := false
	for b := range full {
		if stopped {
			continue
		}
		begin := 0
		for i, end := range b.ends {
			f(b.keys[i], b.data[begin:end])
			begin = end
		}
		if cap(b.data) > 4*batchBytes {
			b.data = nil // one large value
		}
		if ctx.Err() != nil {
			stopped = true
			close(stop)
			continue
		}
		free <- b
	}
	if stopped {
		err = ctx.Err()
	}
	return res, err
}
