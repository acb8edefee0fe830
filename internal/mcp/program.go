package mcp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/opmeter/opmeter/internal/program"
)

// call is a call of a tool.
type call struct {
	ctx   context.Context
	s     *server
	req   *mcp.CallToolRequest
	steps float64 // notifications sent
}

// progress notifies the client, if it asked for that. Errors show with the answer.
func (c *call) progress(text string) {
	token := c.req.Params.GetProgressToken()
	if token == nil {
		return
	}
	c.steps++
	_ = c.req.Session.NotifyProgress(c.ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: c.steps, Message: text})
}

// result is what the program printed.
type result struct {
	out string
	// problem is its error, nil if it had none.
	problem error
}

// failed is the error of a program without a result.
func (r *result) failed() error {
	if r.problem != nil {
		return r.problem
	}
	return errors.New("opmeter ended without a result")
}

// run starts opmeter and waits for its end, one at a time. An error says that nothing was printed
// that can be used: the call was cancelled, took too long, or had no turn.
func (c *call) run(args ...string) (*result, error) {
	select {
	case c.s.queue <- struct{}{}:
		defer func() { <-c.s.queue }()
	default:
		return nil, fmt.Errorf("%d calls are waiting already: call again when one of them has ended", maxWaiting)
	}
	select {
	case c.s.turn <- struct{}{}:
	default:
		c.progress("waiting for another call")
		select {
		case c.s.turn <- struct{}{}:
		case <-c.ctx.Done():
			return nil, c.ctx.Err()
		}
	}
	defer func() { <-c.s.turn }()
	c.progress("started") // before the program can report its own progress
	// Names that are no files of the folder stay what they are, such as targets.
	out, err := (&program.Command{
		File: c.s.o.Program, Dir: c.s.store.dir, Args: args, Limit: c.s.o.Limit, Progress: func(text string) { c.progress(clip(text)) },
	}).Run(c.ctx)
	if p, ok := errors.AsType[*program.Problem](err); ok {
		text := strings.ReplaceAll(p.Text, c.s.store.dir+string(os.PathSeparator), "")
		return &result{out, errors.New(clipTo(agentWords(text), 1000))}, nil
	}
	switch {
	case errors.Is(err, program.ErrLimit):
		return nil, fmt.Errorf("the call exceeded the time limit of %v and was ended: measure for less time, use a smaller batch, or start opmeter mcp with --limit", c.s.o.Limit)
	case errors.Is(err, program.ErrEnded):
		return &result{out, err}, nil
	case err != nil:
		return nil, err
	}
	return &result{out: out}, nil
}
