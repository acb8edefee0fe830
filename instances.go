package opmeter

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/opmeter/opmeter/internal/measure/host"
	"github.com/opmeter/opmeter/profile"
)

// ErrNotRecorded is returned where sessions are asked for what they did that were made
// without [RunOptions].Record, or that have not run.
var ErrNotRecorded = errors.New("the session has recorded nothing")

// Profile tells of the runs of a session that was made with [RunOptions].Record: the times
// of its operators over all runs but the first (or of the one that there was), and a
// timeline of all. It holds no verdict: recording goes on in every run, and nothing was
// done to keep others from the machine. The error wraps [ErrNotRecorded].
func (s *Session) Profile() (*profile.Profile, error) {
	if s.rec == nil {
		return nil, ErrNotRecorded
	}
	var p *profile.Profile
	err := s.m.reading(func() (err error) { p, err = s.rec.Profile(); return err })
	if err == nil && p == nil {
		err = ErrNotRecorded
	}
	return p, err
}

// RunTogether runs several sessions of one model at the same time, each on a thread of its own and
// for as many inferences as runs says. They begin together. It returns when all are
// done, with the first error, which ends the others.
func RunTogether(ctx context.Context, sessions []*Session, runs int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	for _, s := range sessions {
		ready.Add(1)
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			<-begin
			for range runs {
				if err := s.Run(ctx); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	ready.Wait()
	close(begin)
	done.Wait()
	return context.Cause(ctx)
}

// Merge makes one profile of sessions of one model that ran at the same time and recorded:
// figures over all of them with those of each beside, and a timeline on one clock. The
// error is that of [Session.Profile].
func Merge(sessions []*Session) (*profile.Profile, error) {
	ps, starts := make([]*profile.Profile, len(sessions)), make([]int64, len(sessions))
	for i, s := range sessions {
		var err error
		if ps[i], err = s.Profile(); err != nil {
			return nil, err
		}
		starts[i] = s.rec.Start()
	}
	p := host.Merge(ps, starts)
	if p == nil {
		return nil, ErrNotRecorded
	}
	return p, p.Validate()
}
