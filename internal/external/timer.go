package external

import (
	"context"
	"errors"
	"time"

	"github.com/opmeter/opmeter/internal/measure/ab"
)

// Timer is a model that is loaded in an external engine and answers blocks of inferences. It is
// for one goroutine.
type Timer struct {
	x    *exchange
	stop context.CancelFunc
}

// exchange connects a timer with the goroutine that hears the child.
type exchange struct {
	// asked are durations of blocks, 0 for a warm-up; answered has one value for each, after one
	// for the loaded model.
	asked    chan time.Duration
	answered chan ab.Block
	// over is closed when the child has ended; err says why.
	over chan struct{}
	err  error
}

// NewTimer loads a model in a child process and waits until it is there.
func NewTimer(ctx context.Context, o Options) (*Timer, error) {
	ctx, stop := context.WithCancel(ctx)
	x := &exchange{asked: make(chan time.Duration), answered: make(chan ab.Block), over: make(chan struct{})}
	o.Request.Alone, o.Request.Blocks, o.blocks = true, true, x
	go func() {
		defer close(x.over)
		x.err = New(o).Run(ctx, nil)
	}()
	t := &Timer{x, stop}
	if _, err := t.answer(ctx); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Warm runs the model until its latency is steady.
func (t *Timer) Warm(ctx context.Context) error {
	_, err := t.ask(ctx, 0)
	return err
}

// Block times inferences for about a duration.
func (t *Timer) Block(ctx context.Context, d time.Duration) (ab.Block, error) {
	return t.ask(ctx, max(d, 1))
}

func (t *Timer) ask(ctx context.Context, d time.Duration) (ab.Block, error) {
	select {
	case t.x.asked <- d:
		return t.answer(ctx)
	case <-t.x.over:
		return ab.Block{}, t.x.ended()
	case <-ctx.Done():
		return ab.Block{}, ctx.Err()
	}
}

func (t *Timer) answer(ctx context.Context) (ab.Block, error) {
	select {
	case b := <-t.x.answered:
		return b, nil
	case <-t.x.over:
		return ab.Block{}, t.x.ended()
	case <-ctx.Done():
		return ab.Block{}, ctx.Err()
	}
}

// ended is why the child ended.
func (x *exchange) ended() error {
	if x.err != nil {
		return x.err
	}
	return errors.New("the child ended without an error")
}

// Close ends the child and waits until it has ended.
func (t *Timer) Close() {
	t.stop()
	<-t.x.over
}

// exchange passes on a block of the child, nil for the loaded model, and asks it for the next one.
func (s *Source) exchange(ctx context.Context, b *ab.Block) error {
	x := s.o.blocks
	if x == nil {
		return errors.New("the child sends a block without a request")
	}
	if b == nil {
		b = &ab.Block{}
	}
	select {
	case x.answered <- *b:
	case <-ctx.Done():
		return nil // noticed where messages are awaited
	}
	select {
	case d := <-x.asked:
		err := s.p.pipe.Send(&Message{Go: true, BlockNS: int64(d)})
		if err != nil && isGone(err) {
			return errGone
		}
		return err
	case <-ctx.Done():
		return nil
	}
}
