package worker

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/base/lines"
	"github.com/opmeter/opmeter/internal/base/subprocess"
	"github.com/opmeter/opmeter/internal/measure/ab"
)

const (
	// BlockTime is the duration of a block: long enough for the caches to fill, short enough that
	// the machine is the same in the blocks of all alternatives.
	BlockTime = 10 * time.Millisecond
	// silent is how long a worker may say nothing: some compile large models for minutes.
	silent = 5 * time.Minute
	// mostInputs is the number of inputs whose shapes a worker may state.
	mostInputs = 64
	// leaving is how long a worker may take to end when it is told to.
	leaving = time.Second
)

// Error is the fault of a process of an alternative.
type Error struct {
	// Name is the alternative, Text what went wrong.
	Name, Text string
	// Status is the exit status that the worker asked for, 0 for none.
	Status int
	// ended says that the process ended without an answer.
	ended bool
}

func (e *Error) Error() string {
	// An error about a file begins with it: a name that is the file says no more.
	before, after, ok := strings.Cut(e.Text, e.Name)
	if ok && strings.ContainsAny(after[:min(len(after), 1)], ": ") && (before == "" || strings.ContainsAny(before[len(before)-1:], `/\`)) && !strings.Contains(before, ": ") {
		return e.Text
	}
	return e.Name + ": " + e.Text
}

// Is reports whether a process ended that should not have.
func (e *Error) Is(target error) bool { return target == errEnded && e.ended }

// errEnded is the error of a process that ended without an answer.
var errEnded = errors.New("the process ended")

// Processes is a source of blocks: workers that answer requests as [Serve] does.
type Processes struct {
	// Alternatives are started with their Command.
	Alternatives []ab.Alternative
	// CPUs are the processors that each process is bound to, nil for any.
	CPUs []int
	// Silent is how long a worker may say nothing, 0 for five minutes.
	Silent  time.Duration
	running []*child
	// hurried says that the user waits for the end.
	hurried bool
}

var _ ab.Blocks = (*Processes)(nil)

// Begin implements [ab.Blocks]: all processes of a round load their models at the same time, and
// warm up one after the other. In each round another one is the first: the system places their
// memory in that order.
func (s *Processes) Begin(ctx context.Context, process int) error {
	defer func() { s.hurried = ctx.Err() != nil }()
	n := len(s.Alternatives)
	s.running = make([]*child, n)
	each := func(do func(i int) error) error {
		for k := range n {
			i := (k + process) % n
			if err := do(i); err != nil && ctx.Err() != nil {
				return &ab.Unfinished{Alternative: i, Err: ctx.Err()}
			} else if err != nil {
				return err
			}
		}
		return nil
	}
	err := each(func(i int) (err error) {
		s.running[i], err = start(&s.Alternatives[i], s.CPUs)
		return err
	})
	if err == nil {
		err = each(func(i int) error { return s.running[i].ready(ctx, s.silent()) })
	}
	if err == nil {
		err = each(func(i int) error {
			_, err := s.running[i].ask(ctx, request{Warm: true}, s.silent())
			return err
		})
	}
	return err
}

// Inputs returns the shapes of the inputs of an alternative that was begun, nil if unknown.
func (s *Processes) Inputs(alternative int) []string { return s.running[alternative].inputs }

func (s *Processes) silent() time.Duration { return cmp.Or(s.Silent, silent) }

// Block implements [ab.Blocks].
func (s *Processes) Block(ctx context.Context, _, alternative int) (ab.Block, error) {
	p := s.running[alternative]
	a, err := p.ask(ctx, request{BlockS: BlockTime.Seconds()}, s.silent())
	s.hurried = ctx.Err() != nil
	if err != nil {
		return ab.Block{}, err
	}
	if a.Block == nil {
		return ab.Block{}, p.fault("an answer without a block")
	}
	return *a.Block, nil
}

// End implements [ab.Blocks].
func (s *Processes) End(int) {
	s.running = slices.DeleteFunc(s.running, func(p *child) bool { return p == nil })
	for _, p := range s.running {
		_ = p.in.Close()
	}
	patience := leaving
	if s.hurried {
		patience /= 10
	}
	for _, p := range s.running {
		p.end(patience)
	}
	s.running = nil
}

// child is a worker.
type child struct {
	name   string
	cmd    *exec.Cmd
	group  subprocess.Group
	in     io.Closer
	to     io.Writer
	out    io.Closer
	stderr *subprocess.Tail
	came   chan received
	inputs []string // shapes of the model's inputs
}

type received struct {
	answer answer
	err    error
}

// start starts a worker.
func start(a *ab.Alternative, cpus []int) (*child, error) {
	p := &child{name: a.Name, stderr: &subprocess.Tail{}, came: make(chan received, 1)}
	p.cmd = exec.Command(a.Command[0], a.Command[1:]...)
	p.cmd.Stderr = p.stderr
	// A process that inherits the standard error of the worker must not keep Wait from returning.
	p.cmd.WaitDelay = leaving
	p.group.Prepare(p.cmd)
	in, err := p.cmd.StdinPipe()
	var out io.ReadCloser
	if err == nil {
		out, err = p.cmd.StdoutPipe()
	}
	if err == nil {
		err = p.group.Start(p.cmd, cpus...)
	}
	if err != nil {
		return nil, p.fault("%v", err)
	}
	p.in, p.to, p.out = in, in, out
	go p.receive(out)
	return p, nil
}

// receive reads answers until there are no more.
func (p *child) receive(out io.Reader) {
	defer close(p.came)
	r := bufio.NewReader(out)
	for {
		var next received
		var b []byte
		if b, next.err = lines.Read(r, mostLine); next.err == nil {
			next.err = jsonx.UnmarshalStrict(b, &next.answer)
		}
		p.came <- next
		if next.err != nil {
			return
		}
	}
}

// ready waits until the model is loaded.
func (p *child) ready(ctx context.Context, patience time.Duration) error {
	a, err := p.answer(ctx, patience)
	switch {
	case errors.Is(err, errEnded):
		return p.fault("%s; programs without this command of opmeter are compared with --command", text(err))
	case err == nil && a.Protocol != Protocol:
		return p.fault("its worker is of another release than this opmeter: compare the programs with --command")
	}
	if len(a.Inputs) <= mostInputs {
		p.inputs = a.Inputs
	}
	return err
}

// ask sends a request and waits for the answer.
func (p *child) ask(ctx context.Context, r request, patience time.Duration) (answer, error) {
	b, err := jsonx.Marshal(r)
	if err != nil {
		return answer{}, err
	}
	// A worker that ended cannot be written to: its last answer says why.
	_, _ = p.to.Write(append(b, '\n'))
	return p.answer(ctx, patience)
}

// answer waits for an answer.
func (p *child) answer(ctx context.Context, patience time.Duration) (answer, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return answer{}, ctx.Err()
	case <-timer.C:
		return answer{}, p.fault("the process did not answer for %v", patience)
	case r, ok := <-p.came:
		switch {
		case !ok || r.err != nil && isEnd(r.err):
			return answer{}, p.died()
		case r.err != nil:
			return answer{}, p.fault("it prints what no worker of opmeter says (%v); compare programs with --command", r.err)
		case r.answer.Error != "":
			return answer{}, &Error{Name: p.name, Text: r.answer.Error, Status: r.answer.Status}
		}
		return r.answer, nil
	}
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) }

func (p *child) fault(format string, args ...any) error {
	return &Error{Name: p.name, Text: fmt.Sprintf(format, args...)}
}

// died says how a process ended that should not have, with its last words.
func (p *child) died() error {
	p.end(leaving)
	return &Error{Name: p.name, Text: fmt.Sprintf("the process ended: %v%s", p.cmd.ProcessState, lastWords(p.stderr)), ended: true}
}

// text is that of an [Error] without the name of the alternative.
func text(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Text
	}
	return err.Error()
}

// end waits for a process to end, not for long, and ends all that it started.
func (p *child) end(patience time.Duration) {
	done := make(chan struct{})
	go func() {
		for range p.came { // discard remaining answers
		}
		_ = p.cmd.Wait()
		close(done)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		p.group.Kill()
		// Something that it started may hold the other end where it cannot be found.
		_ = p.out.Close()
		<-done
	}
	p.group.Kill() // remaining processes that it started
}

// mostWords bounds what is quoted of the standard error of a process, in characters.
const mostWords = 300

// lastWords quotes the last line that a process printed, as the end of a sentence.
func lastWords(t *subprocess.Tail) string {
	last := ""
	for _, l := range t.Lines() {
		if l = strings.TrimSpace(l); l != "" {
			last = l
		}
	}
	if last == "" {
		return "; it printed nothing to standard error"
	}
	if r := []rune(last); len(r) > mostWords {
		last = string(r[:mostWords]) + "…"
	}
	return "; its last words: " + last
}
