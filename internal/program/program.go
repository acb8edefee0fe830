// Package program runs opmeter as a child process for servers: with a time limit, its progress as
// texts, and its error as the line that it printed. A broken model ends the child alone.
package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
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
	// Memory bounds the private memory of the program and of all that it starts in bytes, Disk the
	// files of Dir, which then holds its temporary files, too. 0 is no limit. Memory, and the size of
	// a single file while it is written, are bounded on Linux only.
	Memory, Disk int64
	// Progress gets what the program does, nil for nobody.
	Progress func(text string)
	// Warnings are the errors that it printed although it ended well. Run sets them.
	Warnings []string
}

// MaxOutput bounds the standard output of the program in bytes.
const MaxOutput = 8 << 20

var (
	// ErrLimit says that the program took too long and was ended.
	ErrLimit = errors.New("time limit")
	// ErrMemory says that the program exceeded its memory.
	ErrMemory = errors.New("memory limit")
	// ErrDisk says that the program wrote too much.
	ErrDisk = errors.New("disk limit")
	// ErrEnded says that the program ended without saying why: it was killed or has a defect.
	ErrEnded = errors.New("opmeter ended without an answer")
	// ErrKilled says that it was killed, as the system does when memory runs out. It is an ErrEnded.
	ErrKilled = fmt.Errorf("%w: it was killed", ErrEnded)
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
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	out, tail := &head{}, &subprocess.Tail{}
	cmd := exec.Command(c.File, c.Args...)
	cmd.Dir = c.Dir
	cmd.Env = append(os.Environ(), "OPMETER_PROGRESS=1", subprocess.HeldByStdin, "NO_COLOR=1", "COLUMNS=160")
	if c.Memory > 0 { // garbage is collected before the limit ends the program
		cmd.Env = append(cmd.Env, "GOMEMLIMIT="+strconv.FormatInt(c.Memory/10*9, 10))
	}
	if c.Disk > 0 && c.Dir != "" {
		cmd.Env = append(cmd.Env, "TMPDIR="+c.Dir, "TMP="+c.Dir)
	}
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
	if err := group.Limit(c.Memory, c.Disk); err != nil {
		end(fmt.Errorf("limits of the program: %w", err))
	}
	watched := make(chan struct{})
	go func() { defer close(watched); c.watch(ctx, &group, end) }()
	err = cmd.Wait()
	stop()
	group.Kill()
	cause := context.Cause(ctx)
	end(nil)
	<-watched
	switch {
	case cause != nil:
		return "", cause
	case out.full:
		return "", ErrOutput
	case c.Disk > 0 && size(c.Dir) > c.Disk: // written before the system bounded it, or between two looks
		return "", ErrDisk
	case err != nil:
		return out.String(), c.complaint(tail, err)
	}
	for _, line := range tail.Lines() {
		if text, ok := strings.CutPrefix(line, "opmeter: "); ok {
			c.Warnings = append(c.Warnings, text)
		}
	}
	return out.String(), nil
}

// lookAfter is the time between two looks at what the program uses.
const lookAfter = time.Second

// watch ends a program that uses too much. The system bounds each process and each file; here it is
// their sum.
func (c *Command) watch(ctx context.Context, group *subprocess.Group, end context.CancelCauseFunc) {
	if c.Memory <= 0 && c.Disk <= 0 {
		return
	}
	t := time.NewTicker(lookAfter)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
		switch {
		case c.Memory > 0 && group.Memory() > c.Memory:
			end(ErrMemory)
		case c.Disk > 0 && size(c.Dir) > c.Disk:
			end(ErrDisk)
		}
	}
}

// size is how many bytes the files of a folder have. Links are not followed.
func size(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil { // others were removed meanwhile
			if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
				bytes += info.Size()
			}
		}
		return nil
	})
	return bytes
}

// complaint is the error that the program printed, or the limit that ended it.
func (c *Command) complaint(tail *subprocess.Tail, err error) error {
	lines := tail.Lines()
	for _, line := range slices.Backward(lines) {
		text, ok := strings.CutPrefix(line, "opmeter: ")
		switch {
		case ok && c.Disk > 0 && strings.HasSuffix(text, "file too large"):
			return ErrDisk
		case ok:
			return &Problem{text}
		}
	}
	switch {
	case subprocess.Starved(lines, c.Memory > 0):
		return ErrMemory
	case slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "SIGXFSZ") }):
		return ErrDisk
	}
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		if s, ok := e.Sys().(syscall.WaitStatus); ok && s.Signaled() && s.Signal() == syscall.SIGKILL {
			return ErrKilled
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
