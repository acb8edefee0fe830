package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/opmeter/opmeter/internal/atomicfile"
	"github.com/opmeter/opmeter/internal/report/text"
)

// How long the program waits for its own work after Ctrl-C. A measurement that was cut
// short is still to be shown and written, which has to be over within half a second;
// nothing else is worth a wait.
const (
	patience     = 50 * time.Millisecond
	longPatience = 350 * time.Millisecond
)

// errStopped is the end of a command that Ctrl-C stopped before it had a result.
var errStopped = withStatus(statusStopped, errors.New("stopped before there was a result"))

// errUnmeasured is the end of a measurement that was stopped before its first run was
// over.
var errUnmeasured = withStatus(statusStopped, errors.New("stopped before anything was measured"))

// pending is what a stop has to know of the work that goes on.
type pending struct {
	mu      sync.Mutex
	journal string // holds what was measured and is in no file yet, "" for none
	keeps   bool   // a measurement is going on
}

// measures notes that a measurement begins.
func (p *pending) measures() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keeps = true
}

// setJournal notes where the figures are until they are in their files.
func (p *pending) setJournal(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.journal = name
}

// state is what a stop finds.
func (p *pending) state() (journal string, keeps bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.journal, p.keeps
}

// Main runs the program with its arguments (without the program's name) and returns
// the exit status. Ctrl-C ends a running measurement and keeps what was measured; a
// second one ends the program. Work that does not end when it is told to, such as one
// long operator, is left where it is.
func Main(args []string, in io.Reader, out, errw io.Writer) int {
	a := newApp(in, out, errw)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sig := make(chan os.Signal, 1)
	signal.Notify(sig, os.Interrupt, syscall.SIGTERM)
	done := make(chan int, 1)
	go func() { done <- a.execute(ctx, args) }()
	select {
	case status := <-done:
		return status
	case s := <-sig:
		signal.Stop(sig) // from here on the system's own handling applies
		cancel()
		status := statusStopped
		if n, ok := s.(syscall.Signal); ok {
			status = 128 + int(n)
		}
		return a.finish(done, status)
	}
}

// finish waits for work that was told to end, but not for long.
func (a *app) finish(done <-chan int, stopped int) int {
	wait := patience
	if _, keeps := a.state(); keeps {
		wait = longPatience
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case status := <-done:
		if status == statusStopped {
			return stopped
		}
		return status
	case <-late.C:
	}
	atomicfile.Abandon()
	journal, _ := a.state()
	if a.tty {
		fmt.Fprint(a.err, "\r\x1b[K")
	}
	if _, err := os.Stat(journal); journal != "" && err == nil {
		fmt.Fprintf(a.err, "opmeter: stopped; what was known is in %s: opmeter report opens it\n", text.Clean(journal))
	} else {
		fmt.Fprintf(a.err, "opmeter: %v\n", errStopped)
	}
	return stopped
}
