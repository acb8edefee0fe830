package port

import (
	"context"
	"sync"
)

// queueSize is the maximum number of received bytes that wait for a reader: about half a minute
// at 3 Mbaud.
const queueSize = 8 << 20

// pieceSize is the capacity of one piece of a queue.
const pieceSize = 32 << 10

// queue holds received bytes in order until they are read.
type queue struct {
	mu      sync.Mutex
	pieces  []piece
	held    int
	end     error         // what comes behind the pieces, nil for not yet
	changed chan struct{} // has an element when there may be something to read
	room    chan struct{} // has an element when there may be room
}

// piece is a run of bytes, or the mark of a gap.
type piece struct {
	data []byte
	gap  bool
}

func newQueue() *queue {
	return &queue{changed: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// put appends bytes, and waits for capacity until ctx ends.
func (q *queue) put(ctx context.Context, p []byte) error {
	for {
		q.mu.Lock()
		if q.held < queueSize {
			q.append(p)
			q.mu.Unlock()
			wake(q.changed)
			return nil
		}
		q.mu.Unlock()
		select {
		case <-q.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// append copies bytes to the last pieces.
func (q *queue) append(p []byte) {
	q.held += len(p)
	for len(p) > 0 {
		last := len(q.pieces) - 1
		if last < 0 || q.pieces[last].gap || len(q.pieces[last].data) == cap(q.pieces[last].data) {
			q.pieces = append(q.pieces, piece{data: make([]byte, 0, max(512, min(pieceSize, len(p))))})
			last++
		}
		d := &q.pieces[last].data
		n := min(len(p), cap(*d)-len(*d))
		*d = append(*d, p[:n]...)
		p = p[n:]
	}
}

// gap marks that bytes are lost here.
func (q *queue) gap() {
	q.mu.Lock()
	// One mark covers consecutive gaps without bytes in between.
	if n := len(q.pieces); n == 0 || !q.pieces[n-1].gap {
		q.pieces = append(q.pieces, piece{gap: true})
	}
	q.mu.Unlock()
	wake(q.changed)
}

// finish sets the final error, unless it is set.
func (q *queue) finish(err error) {
	q.mu.Lock()
	if q.end == nil {
		q.end = err
	}
	q.mu.Unlock()
	wake(q.changed)
}

// clear discards unread bytes.
func (q *queue) clear() {
	q.mu.Lock()
	q.pieces, q.held = nil, 0
	q.mu.Unlock()
	wake(q.room)
}

// take reads the available bytes; done is false if none are available.
func (q *queue) take(p []byte) (n int, err error, done bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for n < len(p) && len(q.pieces) > 0 {
		first := &q.pieces[0]
		if first.gap {
			if n > 0 {
				break
			}
			q.drop()
			return 0, ErrReopened, true
		}
		m := copy(p[n:], first.data)
		n += m
		first.data = first.data[m:]
		if len(first.data) == 0 {
			q.drop()
		}
	}
	if n > 0 {
		q.held -= n
		wake(q.room)
		return n, nil, true
	}
	return 0, q.end, q.end != nil
}

// drop removes the first piece.
func (q *queue) drop() {
	q.pieces[0] = piece{}
	q.pieces = q.pieces[1:]
}
