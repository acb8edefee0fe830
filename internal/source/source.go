// Package source defines sources of measurements, which report events about a model while they
// work.
//
// [Collect] builds a profile from the events, keeps a journal on disk, and records in the profile
// why a source ended early.
//
// The package imports profile and none of the sources; they import it.
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

// Sink receives events. [profile.Builder] is one. An error means that the event was rejected; the
// source then ends.
type Sink interface {
	Send(profile.Event) error
}

// Source reports its measurements of a model. The first event describes the model. The last one,
// done, is sent by [Collect] if Run did not send it. Run returns early with the context's error
// when the context ends.
type Source interface {
	Run(ctx context.Context, to Sink) error
}

// Options says how events are collected.
type Options struct {
	// Version of the program, for the record.
	Version string
	// Created is the time of the profile; the zero value means now.
	Created time.Time
	// Journal is the file that events are appended to while the source works, "" for none. It
	// must not exist. The caller removes it after storing the profile elsewhere; Collect removes
	// it only if there is no profile. A file that cannot be created is an error that wraps
	// [profile.ErrJournal]. A later write error is a finding.
	Journal string
}

// FaultError is a bug of the program in a source, not a defect of the model.
type FaultError struct{ Value any }

// Error returns the text of the panic.
func (e *FaultError) Error() string { return fmt.Sprintf("internal error: %v", e.Value) }

// Collect runs a source and returns the profile of its events, nil if it did not describe a
// model. If the source fails, the profile holds the events until then and records the error. If
// the context ends, the profile records that, and the error is nil. If no model was described,
// the error is the context's.
//
// A source that does not end within [Patience] after its context, or within the time that it
// requests as [Patient], is abandoned: its later events are rejected. A source that [Gathers]
// gets more time.
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
		if e := b.Send(profile.Event{Done: &profile.Done{Incomplete: missingCause(ctx, err)}}); e != nil && described && err == nil {
			err = e
		}
	}
	if ctx.Err() != nil && described && !outlivesStop(err) {
		err = nil
	}
	if p = b.Take(); p != nil {
		bounds(p)
	}
	return p, err
}

// outlivesStop reports whether an error matters although the source was stopped.
func outlivesStop(err error) bool {
	_, changed := errors.AsType[*mapped.ChangedError](err)
	return changed
}

// Patience is the time in which a source must notice that its context has ended. Most need
// microseconds; some kernels compute for minutes without checking.
const Patience = 250 * time.Millisecond

// Patient is a source that needs another time, such as one that waits for a program to end.
type Patient interface {
	Source
	Patience() time.Duration
}

// LastWord is the time that a source has after its context has ended if it [Gathers]. It needs
// some tens of milliseconds, unless the machine is overloaded.
const LastWord = 10 * time.Second

// Gathers tells a sink that from now on its source only computes and sends figures from what it
// has measured. With false, the source continues with work that may not notice the end of its
// context. A source that never calls it may do such work at any time.
func Gathers(to Sink, yes bool) {
	if s, ok := to.(*stamp); ok {
		s.gathers.Store(yes)
	}
}

type watchKey struct{}

// Watch returns a context for [Collect], and a function that reports whether a stopped Collect is
// waiting for the last figures. A program that is told to end can then wait too and not lose
// them.
func Watch(ctx context.Context) (watched context.Context, waits func() bool) {
	n := new(atomic.Int32)
	return context.WithValue(ctx, watchKey{}, n), func() bool { return n.Load() > 0 }
}

// Holds notes in a context of [Watch] that there will be figures, until the function that it
// returns is called.
func Holds(ctx context.Context) (release func()) {
	n, ok := ctx.Value(watchKey{}).(*atomic.Int32)
	if !ok {
		return func() {}
	}
	n.Add(1)
	return func() { n.Add(-1) }
}

// await runs a source until it ends, or until its time after the context's end is over.
func await(ctx context.Context, s Source, to *stamp) error {
	done := make(chan error, 1)
	go func() { done <- run(ctx, s, to) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	defer Holds(ctx)()
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

// run converts a panic of a source into an error.
func run(ctx context.Context, s Source, to Sink) (err error) {
	defer func() {
		if e := recover(); e != nil {
			err = &FaultError{e}
		}
	}()
	return s.Run(ctx, to)
}

// missingCause returns why a source ended without a done event, nothing if it completed.
func missingCause(ctx context.Context, err error) []profile.Missing {
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

// stamp adds time and version to the description, so that every source's profile has them.
type stamp struct {
	to *profile.Builder
	o  Options

	mu                     sync.Mutex
	described, done, ended bool

	gathers atomic.Bool // see [Gathers]
}

// end rejects all later events and returns which events came until then.
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
		// The event was accepted. A full disk is not a reason to lose the run.
		err = s.to.Send(profile.Event{Found: &profile.Finding{
			ID: profile.JournalShort, Severity: profile.Info,
			Text: fmt.Sprintf("The journal of this run ends early (%s); the profile is complete.", strings.TrimPrefix(err.Error(), profile.ErrJournal.Error()+": "+s.o.Journal+": ")),
		}})
	}
	if err == nil {
		s.described = s.described || e.Described != nil
		s.done = s.done || e.Done != nil
	}
	return err
}
