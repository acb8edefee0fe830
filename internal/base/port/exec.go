package port

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/base/subprocess"
)

const (
	// stderrKept is how many bytes at the end of a program's standard error are reported when it
	// fails.
	stderrKept = 4 << 10
	// lingering is how long the children of a program that has ended may continue to write before
	// they are killed, too.
	lingering = 500 * time.Millisecond
)

// program is a way that reads a program's standard output and writes to its standard input.
type program struct {
	name   string
	cmd    *exec.Cmd
	out    *os.File // what it writes
	in     *os.File // what it reads
	stderr tail
	both   bool // what it writes to standard error is read, too
	group  subprocess.Group
	exited chan struct{} // closed when it has ended
	wait   error         // how, set before that
	copied chan struct{} // closed when standard error has ended
	quits  sync.Once
}

// start starts the program of an address. both says that its standard error is read like its
// output.
func start(a Address, both bool) (way, error) {
	w, err := split(a.Name, runtime.GOOS == "windows")
	if err != nil {
		return nil, &OpenError{Address: a, Cause: BadAddress, Err: err}
	}
	list := w.list
	if w.shell {
		if runtime.GOOS == "windows" {
			return nil, &OpenError{Address: a, Cause: BadAddress, Err: errors.New("pipes, redirections and patterns need a shell"), Advice: "write exec:cmd /C COMMAND"}
		}
		list = []string{"/bin/sh", "-c", a.Name}
	}
	p := &program{name: clip(a.Name, 200), both: both, cmd: exec.Command(list[0], list[1:]...), exited: make(chan struct{}), copied: make(chan struct{})}
	if err := p.start(); err != nil {
		return nil, refused(a, list[0], err)
	}
	return p, nil
}

// refused converts the error of a program that does not start.
func refused(a Address, name string, err error) error {
	e := &OpenError{Address: a, Cause: Failed, Err: err}
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		e.Cause, e.Advice = Missing, fmt.Sprintf("%q is neither a path nor found on PATH; one in this folder is ./%s", clip(name, 60), clip(name, 60))
		if len(name) > 1 && (name[0] == '.' || name[0] == '/') {
			e.Advice = "check the path"
		}
	case errors.Is(err, fs.ErrPermission):
		e.Cause, e.Advice = Permission, "make it executable: chmod +x "+clip(name, 60)
	}
	return e
}

// start creates the pipes and starts the program in its own process group.
func (p *program) start() error {
	files := make([]*os.File, 0, 6)
	drop := func(list []*os.File) {
		for _, f := range list {
			f.Close()
		}
	}
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			drop(files)
			return err
		}
		files = append(files, r, w)
	}
	p.cmd.Stdin, p.in = files[0], files[1]
	p.out, p.cmd.Stdout = files[2], files[3]
	errs := files[4]
	p.cmd.Stderr = files[5]
	if p.both {
		p.cmd.Stderr = files[3]
	}
	p.group.Prepare(p.cmd)
	if err := p.group.Start(p.cmd); err != nil {
		drop(files)
		return err
	}
	drop([]*os.File{files[0], files[3], files[5]})
	go func() {
		defer close(p.copied)
		defer errs.Close()
		// End of file and failure are treated alike: nothing more follows.
		_, _ = io.Copy(&p.stderr, errs)
	}()
	go p.watch(errs)
	return nil
}

// watch waits for the program's end, and kills its remaining children.
func (p *program) watch(errs *os.File) {
	p.wait = p.cmd.Wait()
	close(p.exited)
	limit := time.Now().Add(lingering)
	// Children that hold the pipes may continue to write for a while; the data in the pipes is
	// read in any case.
	_ = p.out.SetReadDeadline(limit)
	_ = errs.SetReadDeadline(limit)
	time.AfterFunc(lingering, p.group.Kill)
}

func (p *program) read(b []byte) (int, error) {
	n, err := p.out.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) && n == 0 && p.over() {
		// The program has ended, and its children had their time; the rest of the pipe is read.
		_ = p.out.SetReadDeadline(time.Now().Add(lingering / 10))
		n, err = p.out.Read(b)
	}
	if n > 0 || err == nil {
		return n, nil
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, err
	}
	// A program may close its output and continue.
	<-p.exited
	<-p.copied
	return 0, p.ended()
}

// over reports whether the program has ended.
func (p *program) over() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// ended returns the program's error, if it failed.
func (p *program) ended() error {
	if p.wait == nil {
		return io.EOF
	}
	e := &ExitError{Command: p.name, Status: -1, Stderr: p.stderr.String()}
	x, ok := errors.AsType[*exec.ExitError](p.wait)
	if !ok {
		return fmt.Errorf("%s: %w", p.name, p.wait)
	}
	e.Status, e.Signal = x.ExitCode(), signalOf(x)
	return e
}

func (p *program) write(b []byte) (int, error) {
	_ = p.in.SetWriteDeadline(time.Time{})
	n, err := p.in.Write(b)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%s: it does not read what is sent to it: %w", p.name, err)
	}
	return n, err
}

func (p *program) interrupt() { _ = p.in.SetWriteDeadline(time.Now()) }

func (p *program) setSpeed(int) error { return ErrNoSpeed }

// quit kills the program with its children: nobody reads its output any more.
func (p *program) quit() {
	p.quits.Do(func() {
		p.group.Kill()
		p.in.Close()
		_ = p.out.SetReadDeadline(time.Now())
	})
}

func (p *program) close() error {
	p.quit()
	p.out.Close()
	return nil
}

// tail keeps the last bytes written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	p = p[max(0, n-stderrKept):]
	if over := len(t.buf) + len(p) - stderrKept; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	t.buf = append(t.buf, p...)
	return n, nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
