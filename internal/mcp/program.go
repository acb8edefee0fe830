package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/opmeter/opmeter/internal/base/subprocess"
)

// call is a call of a tool.
type call struct {
	ctx   context.Context
	s     *server
	req   *mcp.CallToolRequest
	steps float64 // notifications sent
}

// maxOutput bounds what is kept of the standard output of the program.
const maxOutput = 8 << 20

// errLimit ends a call that takes too long.
var errLimit = errors.New("time limit")

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
	ctx, cancel := context.WithTimeoutCause(c.ctx, c.s.o.Limit, errLimit)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return nil, c.ended(ctx)
	}

	out := &head{}
	tail := &subprocess.Tail{}
	cmd := exec.Command(c.s.o.Program, args...)
	cmd.Dir = c.s.store.dir // names that are no files of this folder stay what they are, such as targets
	cmd.Env = append(os.Environ(), "OPMETER_PROGRESS=1", "OPMETER_PARENT=stdin", "NO_COLOR=1", "COLUMNS=160")
	// The program ends when its input does: also where this process is killed.
	life, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("opmeter does not start: %w", err)
	}
	defer life.Close()
	cmd.Stdout, cmd.Stderr = out, &messages{call: c, tail: tail}
	cmd.WaitDelay = 10 * time.Second // for what inherited the pipes
	c.progress("started")            // before the program can report its own progress
	var group subprocess.Group
	group.Prepare(cmd)
	if err := group.Start(cmd); err != nil {
		return nil, fmt.Errorf("opmeter does not start: %w", err)
	}
	stop := context.AfterFunc(ctx, group.Kill)
	err = cmd.Wait()
	stop()
	group.Kill()
	if ctx.Err() != nil {
		return nil, c.ended(ctx)
	}
	if out.full {
		return nil, fmt.Errorf("the answer exceeds %d bytes", maxOutput)
	}
	r := &result{out: out.String()}
	if err != nil {
		r.problem = c.s.complaint(tail, err)
	}
	return r, nil
}

// ended says why a call ended early.
func (c *call) ended(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errLimit) {
		return fmt.Errorf("the call exceeded the time limit of %v and was ended: measure for less time, use a smaller batch, or start opmeter mcp with --limit", c.s.o.Limit)
	}
	return c.ctx.Err()
}

// complaint is the error that the program printed.
func (s *server) complaint(tail *subprocess.Tail, err error) error {
	lines := tail.Lines()
	for i := len(lines) - 1; i >= 0; i-- {
		if text, ok := strings.CutPrefix(lines[i], "opmeter: "); ok {
			text = strings.ReplaceAll(text, s.store.dir+string(os.PathSeparator), "")
			return errors.New(clipTo(agentWords(text), 1000))
		}
	}
	return fmt.Errorf("opmeter ended without an answer: %w", err)
}

// head keeps the beginning of what is written to it.
type head struct {
	bytes.Buffer
	full bool
}

func (h *head) Write(p []byte) (int, error) {
	if h.Len()+len(p) > maxOutput {
		h.full = true
		return len(p), nil
	}
	return h.Buffer.Write(p)
}

// messages splits standard error into lines of progress and others.
type messages struct {
	call *call
	tail *subprocess.Tail
	part []byte
	last string
}

// longestLine bounds a line of standard error.
const longestLine = 4096

// Write takes a part of standard error. Progress is a line that a carriage return begins, and an
// escape sequence erases.
func (m *messages) Write(p []byte) (int, error) {
	for _, b := range p {
		switch {
		case b == '\n':
			_, _ = m.tail.Write(append(bytes.TrimPrefix(m.part, []byte(erase)), '\n'))
			m.part = m.part[:0]
		case b == '\r':
			m.show()
		case len(m.part) < longestLine:
			m.part = append(m.part, b)
		}
	}
	m.draw()
	return len(p), nil
}

// draw shows a line of progress that is complete: the program writes each at once.
func (m *messages) draw() {
	if bytes.HasPrefix(m.part, []byte(erase)) {
		m.show()
	}
}

// erase begins a line of progress.
const erase = "\x1b[K"

func (m *messages) show() {
	text, ok := strings.CutPrefix(string(m.part), erase)
	m.part = m.part[:0]
	if text = squeeze(text); ok && text != "" && text != m.last {
		m.last = text
		m.call.progress(text)
	}
}

// squeeze leaves out the bar of a line of progress: "measuring [==  ]  50 %" is "measuring 50 %".
func squeeze(s string) string {
	from, to := strings.IndexByte(s, '['), strings.IndexByte(s, ']')
	if from >= 0 && to > from {
		s = s[:from] + s[to+1:]
	}
	return clip(strings.Join(strings.Fields(s), " "))
}
