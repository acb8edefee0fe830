package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/base/subprocess"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/source"
)

// How long the program waits for its own work after Ctrl-C. A measurement that was cut
// short is still to be shown and written, which is over within half a second unless the machine
// is very busy: what has ended and is only made into figures and files is waited for as
// long as [source.LastWord]. Nothing else is worth a wait.
const (
	patience     = 50 * time.Millisecond
	longPatience = 350 * time.Millisecond
)

// sameSignal is how long after a signal another one counts as the same: a terminal or timeout(1)
// signals the program and its launcher, which passes the signal on.
const sameSignal = 200 * time.Millisecond

// errStopped is the end of a command that Ctrl-C stopped before it had a result.
var errStopped = withStatus(statusStopped, errors.New("stopped before there was a result"))

// errUnmeasured is the end of a measurement that was stopped before its first run was
// over.
var errUnmeasured = withStatus(statusStopped, errors.New("stopped before the first measurement"))

// pending is what a stop has to know of the work that goes on.
type pending struct {
	mu sync.Mutex
	// journals hold what was measured and is in no file yet, by the first file that it is for.
	journals map[string]string
	study    string        // file that has all that is known, "" for none
	keeps    time.Duration // how long a measurement that goes on may take to end, 0 for none
	writes   int           // results that are being written to files
}

// writing notes that a result is being written to its files, until the function that it
// returns is called: the end of a measurement waits for that.
func (p *pending) writing() (done func()) {
	add := func(n int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.writes += n
	}
	add(1)
	return func() { add(-1) }
}

// isWriting reports whether a result is being written to its files.
func (p *pending) isWriting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writes > 0
}

// measures notes that a measurement begins, which may take so long to end when it is told to.
func (p *pending) measures(wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keeps = max(p.keeps, wait)
}

// setJournal notes where the figures for a file are until they are there, "" for nowhere.
func (p *pending) setJournal(file, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.journals == nil {
		p.journals = map[string]string{}
	}
	if delete(p.journals, file); name != "" {
		p.journals[file] = name
	}
}

// journalOf is where the figures for files are.
func (p *pending) journalOf(files []string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(files) == 0 {
		return ""
	}
	return p.journals[files[0]]
}

// state is what a stop finds.
func (p *pending) state() (journals []string, study string, keeps time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Values(p.journals)), p.study, p.keeps
}

// Main runs the program with its arguments (without the program's name) and returns
// the exit status. Ctrl-C, SIGTERM and SIGHUP end a running measurement and keep what was
// measured; a second signal that is not the same ends the program and what it started. Work that
// does not end when it is told to, such as one long operator, is left where it is.
func Main(args []string, in io.Reader, out, errw io.Writer) int {
	sig := make(chan os.Signal, 1)
	a := newApp(watchParent(in, sig), out, errw)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ctx, gathers := source.Watch(ctx)
	signal.Notify(sig, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signal.Notify(sig, syscall.SIGHUP)
	}
	subprocess.Sweep()
	done := make(chan int, 1)
	go func() { done <- a.execute(ctx, args) }()
	select {
	case status := <-done:
		return status
	case s := <-sig:
		cancel()
		if s == syscall.SIGHUP {
			// A terminal that closes sends it twice: by itself and by its shell.
			signal.Ignore(syscall.SIGHUP)
			if len(sig) > 0 {
				<-sig
			}
		}
		status := statusStopped
		if n, ok := s.(syscall.Signal); ok {
			status = 128 + int(n)
		}
		return a.finish(done, gathers, sig, status)
	}
}

// watchParent returns the standard input. The end of a parent that holds a pipe open counts as
// SIGTERM.
func watchParent(in io.Reader, sig chan<- os.Signal) io.Reader {
	return subprocess.WatchParent(in, func() {
		select {
		case sig <- syscall.SIGTERM:
		default: // it ends already
		}
	})
}

// ends waits for work that was told to end, but not for long, and not after another signal. It
// returns the status of what ended.
func (a *app) ends(done <-chan int, gathers func() bool, again <-chan os.Signal) (status int, ended bool) {
	wait, measures := patience, false
	if _, _, keeps := a.state(); keeps > 0 {
		wait, measures = keeps, true
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for late := began.Add(wait); ; {
		select {
		case status := <-done:
			return status, true
		case <-again:
			if time.Since(began) >= sameSignal {
				return 0, false
			}
		case <-tick.C:
		}
		now := time.Now()
		if measures && (gathers() || a.isWriting()) && now.Sub(began) < source.LastWord {
			late = now.Add(wait) // what comes after that is to have its time, too
		}
		if now.After(late) {
			return 0, false
		}
	}
}

// finish is the end of the program that was told to stop, with the status for that.
func (a *app) finish(done <-chan int, gathers func() bool, again chan os.Signal, stopped int) int {
	status, ended := a.ends(done, gathers, again)
	if ended {
		if status == statusStopped {
			return stopped
		}
		return status
	}
	signal.Stop(again) // from here on the system's own handling applies
	atomicfile.Abandon()
	subprocess.EndAll()
	journals, study, _ := a.state()
	if a.tty {
		fmt.Fprint(a.err, "\r\x1b[K")
	}
	journals = slices.DeleteFunc(journals, func(j string) bool { _, err := os.Stat(j); return err != nil })
	for _, j := range journals {
		fmt.Fprintf(a.err, "opmeter: stopped; what was known is in %s: opmeter report opens it\n", text.Clean(j))
	}
	if study != "" {
		fmt.Fprintf(a.err, "opmeter: %v\n", oneLine(a.stoppedStudy(errStopped, study).Error()))
	} else if len(journals) == 0 {
		fmt.Fprintf(a.err, "opmeter: %v\n", errStopped)
	}
	return stopped
}
