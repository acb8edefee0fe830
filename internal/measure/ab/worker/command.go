package worker

import (
	"context"
	"errors"
	"os/exec"
	"time"

	"github.com/opmeter/opmeter/internal/base/subprocess"
	"github.com/opmeter/opmeter/internal/measure/ab"
)

// Commands is a source of blocks: programs that are timed as a whole, from start to end. Each
// block is a process of its own.
type Commands struct {
	// Alternatives are run with their Command, without input; what they print is discarded.
	Alternatives []ab.Alternative
	// CPUs are the processors that each process is bound to, nil for any.
	CPUs []int
	// Now reads a monotonic clock; nil is that of the system.
	Now func() time.Time
}

var _ ab.Blocks = (*Commands)(nil)

// Begin implements [ab.Blocks]. Before the first round each command runs once, so that the system
// holds its files in memory.
func (s *Commands) Begin(ctx context.Context, process int) error {
	if process > 0 {
		return ctx.Err()
	}
	for i := range s.Alternatives {
		if _, err := s.Block(ctx, process, i); err != nil && ctx.Err() != nil {
			return &ab.Unfinished{Alternative: i, Err: ctx.Err()}
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Block implements [ab.Blocks].
func (s *Commands) Block(ctx context.Context, _, alternative int) (ab.Block, error) {
	a := &s.Alternatives[alternative]
	c := exec.CommandContext(ctx, a.Command[0], a.Command[1:]...)
	stderr := &subprocess.Tail{}
	c.Stderr, c.WaitDelay = stderr, leaving
	var g subprocess.Group
	g.Prepare(c)
	c.Cancel = func() error {
		g.Kill()
		return nil
	}
	now := s.Now
	if now == nil {
		now = time.Now
	}
	began := now()
	if err := g.Start(c, s.CPUs...); err != nil && ctx.Err() == nil {
		return ab.Block{}, &Error{Name: a.Name, Text: err.Error()}
	}
	err := c.Wait()
	took := now().Sub(began)
	g.Kill() // processes that it left behind
	switch {
	case ctx.Err() != nil:
		return ab.Block{}, ctx.Err()
	case errors.Is(err, exec.ErrWaitDelay): // something that it started holds its output
	case err != nil:
		return ab.Block{}, &Error{Name: a.Name, Text: "the command failed: " + err.Error() + lastWords(stderr)}
	}
	return ab.Block{Seconds: took.Seconds(), Inferences: 1}, nil
}

// End implements [ab.Blocks].
func (s *Commands) End(int) {}
