// Package source says what a source of figures is: something that reports events
// about a model while it works. [Collect] makes a profile of them, keeps a journal
// on disk, and turns whatever ends a source early into a profile that says so.
//
// It imports profile and nothing of the sources; these import it.
package source

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opmeter/opmeter/internal/base/mapped"
	"github.com/opmeter/opmeter/profile"
)

// Sink takes events. [profile.Builder] is one. An error means that the event was
// refused: the source then ends.
type Sink interface {
	Send(profile.Event) error
}

// Source reports what it finds out about a model. The first event describes it;
// the last one, done, is sent by [Collect] where Run did not. Run returns early with
// the context's error when that ends.
type Source interface {
	Run(ctx context.Context, to Sink) error
}

// Options says how events are collected.
type Options struct {
	// Version of the program, for the record.
	Version string
	// Created is the time of the profile; the zero value means now.
	Created time.Time
	// Journal is the file that events are appended to while the source works, ""
	// for none. It must not exist. Whoever has put the profile elsewhere removes it;
	// Collect does so only where there is no profile. A file that cannot be
	// made is an error that wraps [profile.ErrJournal]; one that cannot be written any
	// more is a finding.
	Journal string
}

// FaultError is a fault of the program in a source, not of the model.
type FaultError struct{ Value any }

// Error gives what the fault said.
func (e *FaultError) Error() string { return fmt.Sprintf("internal error: %v", e.Value) }

// Collect runs a source and returns the profile of its events, nil when it did not
// describe a model. With an error of the source the profile holds what was sent
// before and says so. When the context ends the profile says that too, and there is
// no error; where no model was described, the error is the context's.
//
// A source that does not end within [Patience] of its context, or the time that it asks for
// as [Patient], is left to itself: what it sends from then on is refused. One that
// [Gathers] is waited for longer.
func Collect(ctx context.Context, s Source, o Options) (p *profile.Profile, err error) {
	b := profile.NewBuilder()
	if o.Journal != "" {
		j, err := profile.NewJournal(o.Journal, b)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", profile.ErrJournal, err)
		}
		defer func() {
			if p == nil {
				_ = j.Remove()
			} else {
				_ = j.Close()
			}
		}()
	}
	t := &stamp{to: b, o: o}
	err = await(ctx, s, t)
	described, done := t.end()
	if !done {
		if e := b.Send(profile.Event{Done: &profile.Done{Incomplete: ended(ctx, err)}}); e != nil && described && err == nil {
			err = e
		}
	}
	if ctx.Err() != nil && described && !lasting(err) {
		err = nil
	}
	return b.Profile(), err
}

// lasting reports whether an error says more than that the source was stopped.
func lasting(err error) bool {
	_, changed := errors.AsType[*mapped.ChangedError](err)
	return changed
}

// Patience is how long a source may take to notice that its context has ended. Most
// need microseconds; some kernels compute for minutes without a look at anything.
const Patience = 250 * time.Millisecond

// Patient is a source that needs another time: one that waits for a program to end.
type Patient interface {
	Source
	Patience() time.Duration
}

// LastWord is how long a source may take after its context has ended if it [Gathers]. It
// needs some tens of milliseconds, unless everything else on the machine wants to run, too.
const LastWord = 10 * time.Second

// Gathers tells a sink that from here on its source only makes figures of what it has found
// and sends them, or, with false, that it goes on to work that may not notice the end of
// its context. A source that never says so may be at such work at any time.
func Gathers(to Sink, yes bool) {
	if s, ok := to.(*stamp); ok {
		s.gathers.Store(yes)
	}
}

type watchKey struct{}

// Watch returns a context for [Collect], and whether one that was stopped waits at the moment
// for the last figures: a program that is told to end can wait as well, so as not to lose them.
func Watch(ctx context.Context) (watched context.Context, waits func() bool) {
	n := new(atomic.Int32)
	return context.WithValue(ctx, watchKey{}, n), func() bool { return n.Load() > 0 }
}

// await runs a source until it ends, or until it should have.
func await(ctx context.Context, s Source, to *stamp) error {
	done := make(chan error, 1)
	go func() { done <- run(ctx, s, to) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	if n, ok := ctx.Value(watchKey{}).(*atomic.Int32); ok {
		n.Add(1)
		defer n.Add(-1)
	}
	patience := Patience
	if p, ok := s.(Patient); ok {
		patience = p.Patience()
	}
	stopped := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
		}
		took := time.Since(stopped)
		if took >= patience && (!to.gathers.Load() || took >= LastWord) {
			return ctx.Err()
		}
	}
}

// run keeps a fault in a source from ending the program.
func run(ctx context.Context, s Source, to Sink) (err error) {
	defer func() {
		if e := recover(); e != nil {
			err = &FaultError{e}
		}
	}()
	return s.Run(ctx, to)
}

// ended says why a source ended without a last word, nothing when it simply was
// done.
func ended(ctx context.Context, err error) []profile.Missing {
	if ctx.Err() != nil {
		m := profile.Missing{Cause: profile.ByCancel}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			m.Cause = profile.ByDeadline
		}
		if c := context.Cause(ctx); c != nil && !errors.Is(c, context.Canceled) && !errors.Is(c, context.DeadlineExceeded) {
			m.Text = c.Error()
		}
		return []profile.Missing{m}
	}
	if err != nil {
		return []profile.Missing{{Cause: profile.ByError, Text: err.Error()}}
	}
	return nil
}

// stamp puts time and version on the description, so that every source's profile
// has them.
type stamp struct {
	to *profile.Builder
	o  Options

	mu                     sync.Mutex
	described, done, ended bool

	gathers atomic.Bool // see [Gathers]
}

// end refuses everything that comes later and says what came until then.
func (s *stamp) end() (described, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	return s.described, s.done
}

func (s *stamp) Send(e profile.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return context.Canceled
	}
	if e.Described != nil {
		p := *e.Described
		if at := s.o.Created; !at.IsZero() {
			p.Created = at.UTC().Format(time.RFC3339)
		} else if p.Created == "" {
			p.Created = time.Now().UTC().Format(time.RFC3339)
		}
		if s.o.Version != "" {
			p.Settings.Version = s.o.Version
		}
		e.Described = &p
	}
	err := s.to.Send(e)
	if errors.Is(err, profile.ErrJournal) {
		// The event was taken. A disk that is full is no reason to lose the run.
		err = s.to.Send(profile.Event{Found: &profile.Finding{
			ID: profile.JournalShort, Severity: profile.Info,
			Text: fmt.Sprintf("The journal of this run ends early (%s); its figures are whole.", strings.TrimPrefix(err.Error(), profile.ErrJournal.Error()+": "+s.o.Journal+": ")),
		}})
	}
	if err == nil {
		s.described = s.described || e.Described != nil
		s.done = s.done || e.Done != nil
	}
	return err
}
