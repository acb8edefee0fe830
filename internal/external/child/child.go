// Package child is the child process of internal/external: the program opmeter-engine, which
// opens an engine's library. It reads requests from standard input and answers on standard
// output. It exits when its input ends, even while a library call is running.
package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/measure/machine"
)

// Engines maps an engine's name to the function that opens its library.
type Engines map[string]func(library string) (external.Library, error)

// server serves one request.
type server struct {
	pipe    *external.Pipe
	engines Engines
	req     *external.Request
	turns   chan struct{}
	// blocks are the durations of requested blocks.
	blocks chan time.Duration
	stop   context.CancelFunc
	folder string // removed where the parent is gone
	// measuring says that there are results, or will be after the next inference.
	measuring atomic.Bool
	exit      func(status int)
}

// Serve answers one request. in and out are connected to the parent; whatever the library prints
// goes elsewhere. When in ends, exit is called.
func Serve(in io.Reader, out io.Writer, engines Engines, exit func(status int)) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := &server{pipe: external.NewPipe(in, out), engines: engines, turns: make(chan struct{}, 1), blocks: make(chan time.Duration, 1), stop: cancel, exit: exit}
	if f := os.Getenv(external.FolderVariable); strings.HasPrefix(filepath.Base(f), external.FolderPrefix) {
		s.folder = f
	}
	// The parent waits only briefly for this: no other program sends it.
	s.progress(external.Starting, 0)
	m, err := s.pipe.Receive()
	switch {
	case err != nil:
		s.clear()
		s.exit(1)
		return
	case m.Stop: // it was stopped before it asked for anything
		s.clear()
		s.end(nil)
		return
	case m.Request == nil || m.Request.Protocol != external.Protocol:
		s.end(external.Errorf(external.NoHelper, "opmeter-engine is of another release than opmeter: install both from the same one"))
		return
	}
	s.req = m.Request
	if t := s.req.Task; t != nil {
		t.Inputs = m.Tensors
		if t.Folder != "" {
			s.folder = t.Folder
		}
	}
	go s.listen()
	runtime.LockOSThread()
	s.end(s.guarded(ctx))
}

// listen reads the parent's messages during the measurement.
func (s *server) listen() {
	for {
		m, err := s.pipe.Receive()
		switch {
		case err != nil:
			// The parent is gone. A library call may be running on the main thread: exit the
			// process.
			s.clear()
			s.exit(1)
			return
		case m.Go && s.req.Blocks:
			select {
			case s.blocks <- time.Duration(m.BlockNS):
			default: // the parent asks for one at a time
			}
		case m.Go:
			select {
			case s.turns <- struct{}{}:
			default:
			}
		case m.Stop:
			if !s.measuring.Load() {
				// A library call may be running on the main thread, and nothing waits for it.
				s.end(nil)
				s.exit(0)
				return
			}
			// The library may compute for long: the parent is to know that its word arrived.
			s.progress(external.Ending, 0)
			s.stop()
		}
	}
}

// clear removes the child's files when the parent is gone.
func (s *server) clear() {
	if s.folder != "" {
		_ = os.RemoveAll(s.folder)
	}
}

// guarded answers the request and turns a panic into an error.
func (s *server) guarded(ctx context.Context) (err error) {
	defer func() {
		if e := recover(); e != nil {
			err = external.Errorf(external.Failed, "internal error of opmeter-engine: %v; this is a defect of opmeter: please report it with the command and the model", e)
		}
	}()
	return s.answer(ctx)
}

// end sends the final message.
func (s *server) end(err error) {
	m := &external.Message{Done: true}
	if err != nil && !errors.Is(err, context.Canceled) {
		e, ok := errors.AsType[*external.Error](err)
		if !ok {
			e = external.Errorf(external.Failed, "%v", err)
		}
		m = &external.Message{Error: e}
	}
	_ = s.pipe.Send(m)
}

// answer opens the library and executes the request.
func (s *server) answer(ctx context.Context) error {
	open := s.engines[s.req.Engine]
	if open == nil {
		return external.Errorf(external.NotFound, "opmeter-engine knows no engine %q", s.req.Engine)
	}
	if c := s.req.CPUs; len(c) > 0 {
		// Threads that the library starts inherit the binding of the thread that starts them.
		if err := machine.Pin(c...); err != nil {
			return external.Errorf(external.Failed, "cannot bind its threads: %v", err)
		}
	}
	if n := s.req.MaxMemory; n > 0 {
		if err := limitData(n); err != nil {
			return external.Errorf(external.Failed, "cannot limit the memory of a process here: %v", err)
		}
	}
	if s.req.Task != nil {
		if err := s.wait(ctx); err != nil {
			return err
		}
	}
	s.progress("opening the library", 0)
	lib, err := open(s.req.Library)
	if err != nil {
		return s.opened(err)
	}
	about := lib.About()
	if err := s.pipe.Send(&external.Message{About: &about}); err != nil || s.req.Task == nil {
		return err
	}
	if f := s.req.Task.Format; !slices.Contains(about.Formats, f) {
		return external.Errorf(external.NoFormat, "%s %s reads models of the format %s and not %s: opmeter engines lists what others read", about.Title, about.Version, strings.Join(about.Formats, " or "), f)
	}
	return (&trial{server: s, lib: lib, about: about}).run(ctx)
}

// opened converts the error of a library that does not open. Only the text of the loader's or the
// library's error says that memory ran out.
func (s *server) opened(err error) error {
	lacks := func(words string) bool { return strings.Contains(err.Error(), words) }
	if n := s.req.MaxMemory; n > 0 && (lacks("failed to map segment") || lacks("annot allocate memory") || lacks("bad_alloc")) {
		return external.Errorf(external.NoMemory, "%s does not fit into the memory that --max-memory allows, %d MiB: give it more", s.req.Library, n>>20)
	}
	return err
}

// wait waits for the child's turn if measurements are interleaved.
func (s *server) wait(ctx context.Context) error {
	if !s.req.Interleaved {
		return ctx.Err()
	}
	if used := machine.ProcessTime(); used != nil && s.req.Task.Threads > 1 {
		rest(used, time.Sleep)
	}
	if err := s.pipe.Send(&external.Message{Turn: true}); err != nil {
		return err
	}
	select {
	case <-s.turns:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rest waits until the library's threads sleep, before another measurement gets the processors.
// ONNX Runtime's threads spin for about 20 ms and would take a processor from the next
// measurement. used is the process's CPU time in nanoseconds. After 50 steps of 2 ms rest stops
// waiting.
func rest(used func() int64, sleep func(time.Duration)) {
	const step, most = 2 * time.Millisecond, 50
	for range most {
		from := used()
		if sleep(step); used()-from < int64(step)/10 {
			return
		}
	}
}

func (s *server) progress(phase string, f float64) {
	_ = s.pipe.Send(&external.Message{Progress: &external.Progress{Phase: phase, Fraction: f}})
}

// named puts the current action before a library's error that does not name it.
func named(doing string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*external.Error](err); ok {
		return err
	}
	return fmt.Errorf("%s: %w", doing, err)
}
