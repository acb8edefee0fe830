package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a running child.
type process struct {
	cmd    *exec.Cmd
	pipe   *Pipe
	stdin  io.Closer
	stdout io.Closer
	stderr *tail
	folder string // of the child's files
	came   chan received
	doing  string // what it said last to be doing
}

type received struct {
	m   *Message
	err error
}

// maxTail is how much of what a child prints is kept.
const maxTail = 64 << 10

// tail keeps the first and the last of what is written.
type tail struct {
	mu    sync.Mutex
	first []byte
	last  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	if room := maxTail - len(t.first); room > 0 {
		k := min(room, len(p))
		t.first = append(t.first, p[:k]...)
		p = p[k:]
	}
	t.last = append(t.last, p...)
	if d := len(t.last) - maxTail; d > 0 {
		t.last = append(t.last[:0], t.last[d:]...)
	}
	return n, nil
}

func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Split(string(bytes.ToValidUTF8(append(bytes.Clone(t.first), t.last...), []byte("?"))), "\n")
}

// start starts a child and sends its request.
func start(helper string, req *Request) (*process, error) {
	folder, err := os.MkdirTemp("", "opmeter-engine-")
	if err != nil {
		return nil, err
	}
	p := &process{folder: folder, stderr: &tail{}, came: make(chan received)}
	p.cmd = exec.Command(helper)
	p.cmd.Stderr = p.stderr
	// Whoever inherits the child's standard error must not keep it from ending.
	p.cmd.WaitDelay = time.Second
	apart(p.cmd)
	in, err := p.cmd.StdinPipe()
	var out io.ReadCloser
	if err == nil {
		out, err = p.cmd.StdoutPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		_ = os.RemoveAll(folder)
		return nil, Errorf(NoHelper, "%s does not start: %v", helper, err)
	}
	p.stdin, p.stdout, p.pipe = in, out, NewPipe(out, in)
	m := &Message{Request: req}
	if req.Task != nil {
		t := *req.Task
		t.Folder = folder
		c := *req
		c.Task = &t
		m.Request, m.Tensors = &c, t.Inputs
	}
	// A child that does not read would hold up whoever waits for it.
	go func() {
		defer close(p.came)
		if err := p.pipe.Send(m); err != nil && !isGone(err) {
			p.came <- received{nil, err}
			return
		}
		for {
			m, err := p.pipe.Receive()
			p.came <- received{m, err}
			if err != nil {
				return
			}
		}
	}()
	return p, nil
}

// isGone reports whether a child ended before it read what it was sent: how is told when it is read
// from.
func isGone(err error) bool { return errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) }

// receive waits for a message for at most a time.
func (p *process) receive(ctx context.Context, wait time.Duration) (*Message, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case r, ok := <-p.came:
		if !ok {
			return nil, io.EOF
		}
		if r.m != nil && r.m.Progress != nil {
			p.doing = r.m.Progress.Phase
		}
		return r.m, r.err
	case <-timer.C:
		return nil, errLate
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

var errLate = errors.New("the child does not come back")

// end ends the child, whatever it does, with all that it started, and removes its files.
func (p *process) end(patience time.Duration) {
	_ = p.stdin.Close()
	done := make(chan struct{})
	go func() {
		for range p.came { // what it still says
		}
		_ = p.cmd.Wait()
		close(done)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		kill(p.cmd)
		_ = p.stdout.Close() // something that it started and that left its group may hold the other end
	}
	<-done
	kill(p.cmd) // what it started may be left
	_ = os.RemoveAll(p.folder)
}

// died says how a child ended that was not told to. It has ended.
func (p *process) died(title string) *Error {
	st := p.cmd.ProcessState
	while := ""
	if p.doing != "" {
		while = " while " + p.doing
	}
	lines := p.stderr.lines()
	if sig, ok := signalled(st); ok && sig == "SIGKILL" {
		return Errorf(Killed, "%s was killed from outside%s: by somebody, or by the system for want of memory", title, while)
	} else if ok {
		return Errorf(Crashed, "%s crashed%s (%s)%s", title, while, sig, saying(lines))
	}
	if sig := goSignal(lines); sig != "" {
		return Errorf(Crashed, "%s crashed%s (%s)%s", title, while, sig, saying(lines))
	}
	return Errorf(Crashed, "%s ended the process%s (%v)%s", title, while, st, saying(lines))
}

// goSignal finds the signal in what Go prints of a fault in a library.
func goSignal(lines []string) string {
	for _, l := range lines {
		if i := strings.Index(l, "SIG"); i >= 0 && (strings.HasPrefix(l, "SIG") || strings.HasPrefix(l, "[signal ")) {
			name, _, _ := strings.Cut(l[i:], ":")
			name, _, _ = strings.Cut(name, " ")
			return name
		}
	}
	return ""
}

// saying are the last words of a library before a fault, as the end of a sentence.
func saying(lines []string) string {
	last := ""
	for _, l := range lines {
		t := strings.TrimSpace(l)
		if strings.HasPrefix(t, "SIG") || strings.HasPrefix(t, "fatal error: ") || strings.HasPrefix(t, "goroutine ") || strings.HasPrefix(t, "runtime: ") {
			break
		}
		if t != "" {
			last = t
		}
	}
	if last == "" {
		return ""
	}
	const most = 300
	if r := []rune(last); len(r) > most {
		last = string(r[:most]) + "…"
	}
	return fmt.Sprintf("; its last words: %s", last)
}
