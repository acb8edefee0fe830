package child

import (
	"context"

	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/measure/ab"
	"github.com/opmeter/opmeter/internal/measure/ab/worker"
)

// blocksOnRequest answers blocks of inferences until the parent says stop.
func (t *trial) blocksOnRequest(ctx context.Context) error {
	f := &worker.Function{Run: t.plain.Run, Parallel: t.parallel()}
	if err := t.pipe.Send(&external.Message{Turn: true}); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case d := <-t.blocks:
			var b ab.Block
			var err error
			if d == 0 {
				err = f.Warm(ctx)
			} else {
				b, err = f.Block(ctx, d)
			}
			if err != nil {
				return named("an inference", err)
			}
			if err := t.pipe.Send(&external.Message{Block: &b}); err != nil {
				return err
			}
		}
	}
}
