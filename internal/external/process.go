package external

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/opmeter/opmeter/internal/base/subprocess"
)

// process is a running child.
type process struct {
	cmd    *exec.Cmd
	pipe   *Pipe
	stdin  io.Closer
	stdout io.Closer
	stderr *subprocess.Tail
	group  subprocess.Group
	remove func() // removes the folder of the child's files
	came   chan received
	doing  string // the phase last reported
	killed bool   // it did not end when it was told to
}

type received struct {
	m   *Message
	err error
}

// FolderVariable names the child's folder in its environment: a child whose parent ends before it
// sent a request removes the folder as well. The folder's name begins with FolderPrefix.
const (
	FolderVariable = "OPMETER_ENGINE_FOLDER"
	FolderPrefix   = "opmeter-" + folderKind + "-"
	folderKind     = "engine"
)

// unsignalled returns the GODEBUG settings of the child with signal-based preemption disabled,
// added to the settings in effect. A library owns its threads while it computes: a signal
// interrupts its waits, and Linux 6.18 ended one of six processes in which OpenVINO computed in
// streams, because no frame was left for such a signal.
func unsignalled(settings string) string {
	if settings != "" {
		settings += ","
	}
	return "GODEBUG=" + settings + "asyncpreemptoff=1"
}

// start starts a child and sends its request.
func start(helper string, req *Request) (*process, error) {
	folder, remove, err := subprocess.Folder(folderKind)
	if err != nil {
		return nil, err
	}
	p := &process{remove: remove, stderr: &subprocess.Tail{}, came: make(chan received)}
	p.cmd = exec.Command(helper)
	p.cmd.Env = append(os.Environ(), FolderVariable+"="+folder, unsignalled(os.Getenv("GODEBUG")))
	p.cmd.Stderr = p.stderr
	// A process that inherits the child's standard error must not keep Wait from returning.
	p.cmd.WaitDelay = time.Second
	p.group.Prepare(p.cmd)
	in, err := p.cmd.StdinPipe()
	var out io.ReadCloser
	if err == nil {
		out, err = p.cmd.StdoutPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		remove()
		return nil, Errorf(NoHelper, "%s does not start: %v", helper, err)
	}
	p.group.Started(p.cmd)
	p.stdin, p.stdout, p.pipe = in, out, NewPipe(out, in)
	m := &Message{Request: req}
	if req.Task != nil {
		t := *req.Task
		t.Folder = folder
		c := *req
		c.Task = &t
		m.Request, m.Tensors = &c, t.Inputs
	}
	// Send in a goroutine: a child that does not read must not block the caller.
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

// isGone reports whether a child ended before it read its message. The reason is known once the
// child's output is read.
func isGone(err error) bool { return errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) }

// receive waits for a message, at most for the given time.
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

// end ends the child with all processes that it started, and removes its files.
func (p *process) end(patience time.Duration) {
	_ = p.stdin.Close()
	done := make(chan struct{})
	go func() {
		for range p.came { // discard remaining messages
		}
		_ = p.cmd.Wait()
		close(done)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		p.killed = true
		p.group.Kill()
		// Something that it started may hold the other end where it cannot be found.
		_ = p.stdout.Close()
	}
	<-done
	p.group.Kill() // remaining processes that it started
	p.remove()
}

// died describes how a child ended unexpectedly. The child has ended. most is its memory limit, 0
// for none; next says what to do.
func (p *process) died(title string, most int64, next string) *Error {
	st := p.cmd.ProcessState
	while := ""
	if p.doing != "" {
		while = " while " + p.doing
	}
	lines := p.stderr.Lines()
	if subprocess.Starved(lines, most > 0) {
		return Errorf(NoMemory, "%s ran out of memory%s: %s", title, while, moreMemory(most))
	}
	if p.killed {
		return Errorf(Crashed, "%s closed its output%s without an answer and did not end, so opmeter ended it: %s%s", title, while, next, saying(lines))
	}
	if sig, ok := signalled(st); ok && sig == "SIGKILL" {
		return Errorf(Killed, "%s was killed from outside%s: by a user, or by the system because memory ran out; try again, with less at the same time", title, while)
	} else if ok {
		return Errorf(Crashed, "%s crashed%s (%s): %s%s", title, while, sig, next, saying(lines))
	}
	if sig := goSignal(lines); sig != "" {
		return Errorf(Crashed, "%s crashed%s (%s): %s%s", title, while, sig, next, saying(lines))
	}
	return Errorf(Crashed, "%s ended the process%s (%v): %s%s", title, while, st, next, saying(lines))
}

// moreMemory advises what to do when memory ran out. most is the limit in bytes, 0 for none.
func moreMemory(most int64) string {
	if most > 0 {
		return fmt.Sprintf("--max-memory allows %d MiB, give it more or take a smaller batch or fewer streams", most>>20)
	}
	return "take a smaller batch or fewer streams"
}

// printed returns what a library printed about an error that it reported only in general terms,
// as the end of a sentence: the first line that names an error, otherwise the last line.
func printed(lines []string) string {
	for _, l := range lines {
		if t := strings.TrimSpace(l); strings.HasPrefix(t, "ERROR") {
			return quoted("it printed", t)
		}
	}
	return quoted("it printed", lastWords(lines))
}

// goSignal finds the signal in Go's message about a fault in a library.
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

// saying returns the last words of a library before a fault, as the end of a sentence.
func saying(lines []string) string { return quoted("its last words", lastWords(lines)) }

// quoted returns what a library printed, as the end of a sentence; "" if it printed nothing.
func quoted(what, text string) string {
	if text == "" {
		return ""
	}
	const most = 300
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return fmt.Sprintf("; %s: %s", what, text)
}

// lastWords returns the last line before Go's message about a fault.
func lastWords(lines []string) string {
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
	return last
}
