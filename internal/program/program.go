// Package program runs opmeter as a child process for servers: with a time limit, its progress as
// texts, and its error as the line that it printed. A broken model ends the child alone.
package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/subprocess"
)

// Command is a run of opmeter.
type Command struct {
	// File is the program, Dir its working folder.
	File, Dir string
	Args      []string
	// Limit is the longest time that it may take, 0 for no limit.
	Limit time.Duration
	// Progress gets what the program does, nil for nobody.
	Progress func(text string)
}

// MaxOutput bounds the standard output of the program in bytes.
const MaxOutput = 8 << 20

var (
	// ErrLimit says that the program took too long and was ended.
	ErrLimit = errors.New("time limit")
	// ErrEnded says that the program ended without saying why: it was killed or has a defect.
	ErrEnded = errors.New("opmeter ended without an answer")
	// ErrOutput says that it printed more than [MaxOutput].
	ErrOutput = fmt.Errorf("the answer exceeds %d bytes", MaxOutput)
)

// Problem is the error that the program printed.
type Problem struct{ Text string }

func (p *Problem) Error() string { return p.Text }

// Run runs the program and returns what it printed, also together with a [Problem].
func (c *Command) Run(ctx context.Context) (string, error) {
	if c.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Limit, ErrLimit)
		defer cancel()
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	out, tail := &head{}, &subprocess.Tail{}
	cmd := exec.Command(c.File, c.Args...)
	cmd.Dir = c.Dir
	cmd.Env = append(os.Environ(), "OPMETER_PROGRESS=1", subprocess.HeldByStdin, "NO_COLOR=1", "COLUMNS=160")
	// The program ends when its input does: also where this process is killed.
	life, err := cmd.StdinPipe()
	if err != nil {
		return "", fmt.Errorf("opmeter does not start: %w", err)
	}
	defer life.Close()
	cmd.Stdout, cmd.Stderr = out, &messages{show: c.Progress, tail: tail}
	cmd.WaitDelay = 10 * time.Second // for what inherited the pipes
	var group subprocess.Group
	group.Prepare(cmd)
	if err := group.Start(cmd); err != nil {
		return "", fmt.Errorf("opmeter does not start: %w", err)
	}
	stop := context.AfterFunc(ctx, group.Kill)
	err = cmd.Wait()
	stop()
	group.Kill()
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case out.full:
		return "", ErrOutput
	case err != nil:
		return out.String(), complaint(tail, err)
	}
	return out.String(), nil
}

// complaint is the error that the program printed.
func complaint(tail *subprocess.Tail, err error) error {
	lines := tail.Lines()
	for i := len(lines) - 1; i >= 0; i-- {
		if text, ok := strings.CutPrefix(lines[i], "opmeter: "); ok {
			return &Problem{text}
		}
	}
	return fmt.Errorf("%w: %w", ErrEnded, err)
}

// head keeps the beginning of what is written to it.
type head struct {
	bytes.Buffer
	full bool
}

func (h *head) Write(p []byte) (int, error) {
	if h.Len()+len(p) > MaxOutput {
		h.full = true
		return len(p), nil
	}
	return h.Buffer.Write(p)
}

// messages splits standard error into lines of progress and others.
type messages struct {
	show func(string)
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
			m.draw()
		case len(m.part) < longestLine:
			m.part = append(m.part, b)
		}
	}
	// A line of progress is complete: the program writes each at once.
	if bytes.HasPrefix(m.part, []byte(erase)) {
		m.draw()
	}
	return len(p), nil
}

// erase begins a line of progress.
const erase = "\x1b[K"

func (m *messages) draw() {
	text, ok := strings.CutPrefix(string(m.part), erase)
	m.part = m.part[:0]
	if text = squeeze(text); ok && text != "" && text != m.last {
		m.last = text
		if m.show != nil {
			m.show(text)
		}
	}
}

// squeeze leaves out the bar of a line of progress: "measuring [==  ]  50 %" is "measuring 50 %".
func squeeze(s string) string {
	from, to := strings.IndexByte(s, '['), strings.IndexByte(s, ']')
	if from >= 0 && to > from {
		s = s[:from] + s[to+1:]
	}
	return strings.Join(strings.Fields(s), " ")
}
