package opmeter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/cut"
	"github.com/opmeter/opmeter/internal/measure"
	"github.com/opmeter/opmeter/internal/recheck"
	"github.com/opmeter/opmeter/profile"
)

// Check measures the slowest layers of a profile in a second way and notes in the profile what came of it: what the
// model up to and with a layer takes longer than the model without it is the layer's figure checked_s, [profile.Layer.Check]
// says whether both agree, and a finding sums it up. The profile is one of the model by the same options. It takes about
// as long as the profile itself. What cannot be checked is an outcome and no error.
func Check(ctx context.Context, m *Model, p *profile.Profile, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if o.Engine.program() {
		return wrong("Engine", "%s", "layers cannot be checked with tflm=PROGRAM: which model it runs is its own affair")
	}
	if o.Time <= 0 {
		o.Time = 2 * time.Second
	}
	folder, err := os.MkdirTemp("", "opmeter-check-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	file, clean, err := m.file()
	if err != nil {
		return err
	}
	defer clean()
	s, err := cut.Open(file)
	if err != nil {
		return failed(m.g.Path, err)
	}
	defer func() { _ = s.Close() }()
	files, err := m.saveInputs(o, folder)
	if err != nil {
		return err
	}
	progress := o.Progress
	o.Inputs, o.Progress, o.Journal, o.KeepSamples, o.Carry = Inputs{Files: files}, nil, "", true, nil
	o.Streams, o.Rate, o.Cold, o.bare = 0, 0, "", true
	r := recheck.Options{Source: s, File: file, Timer: &timer{o}, Folder: folder, Time: o.Time}
	if progress != nil {
		r.Progress = func(f float64) { progress("checking the slowest layers", f) }
	}
	return recheck.Check(ctx, p, r)
}

// saveInputs writes the inputs of the options as files, so that cut models get the same ones.
func (m *Model) saveInputs(o Options, folder string) (map[string]string, error) {
	s, err := NewSession(m, RunOptions{Inputs: o.Inputs, Threads: 1, MaxMemory: o.MaxMemory})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	files := map[string]string{}
	for i, x := range s.Inputs() {
		if !x.Array() || x.Name == "" {
			continue
		}
		name := filepath.Join(folder, fmt.Sprintf("input-%d.npy", i))
		f, err := os.Create(name)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(x.WriteNPY(f), f.Close()); err != nil {
			return nil, err
		}
		files[x.Name] = name
	}
	return files, nil
}

// timer times models by profiles that take turns, or, with opmeter's own engine, which measures one model at a time in
// a process, by sessions that do.
type timer struct{ o Options }

// Time implements [recheck.Timer].
func (t *timer) Time(ctx context.Context, files []string, each time.Duration) ([]recheck.Series, error) {
	if t.o.Engine == nil {
		return t.native(ctx, files, each)
	}
	var turns Turns
	out := make([]recheck.Series, len(files))
	errs := make([]error, len(files))
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i, f := range files {
		o := t.o
		o.Turns, o.Time, o.Runs = &turns, each, 0
		wg.Go(func() {
			if errs[i] = one(ctx, f, o, &out[i]); errs[i] != nil {
				cancel() // the others would be for nothing
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return nil, fmt.Errorf("%w: %w", recheck.ErrRefused, err)
		}
	}
	return out, errors.Join(errs...)
}

// turnTime is how long a turn of a session lasts at least: long enough to settle, short enough that the machine is the same
// over a round.
const turnTime = 5 * time.Millisecond

// native times models with opmeter's own engine. The first rounds, a fifth of the time, are for warming up.
func (t *timer) native(ctx context.Context, files []string, each time.Duration) ([]recheck.Series, error) {
	out := make([]recheck.Series, len(files))
	sessions := make([]*Session, len(files))
	for i, f := range files {
		m, err := Open(f)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", recheck.ErrRefused, err)
		}
		defer m.Close()
		s, err := NewSession(m, RunOptions{Inputs: t.o.Inputs, Threads: t.o.Threads, Exact: t.o.Exact, MaxLoop: t.o.MaxLoop, MaxMemory: t.o.MaxMemory})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", recheck.ErrRefused, err)
		}
		defer s.Close()
		sessions[i] = s
	}
	release, err := measure.Lease(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	start := time.Now()
	whole := each * time.Duration(len(files))
	for rounds := 0; rounds < 5 || time.Since(start) < whole; rounds++ {
		warm := rounds == 0 || time.Since(start) < whole/5
		for i, s := range sessions {
			for began := time.Now(); ; {
				at := time.Now()
				if err := s.Run(ctx); err != nil {
					return nil, err
				}
				took := time.Since(at)
				if !warm {
					out[i].Plain = append(out[i].Plain, took.Seconds())
				}
				if time.Since(began) >= turnTime {
					break
				}
			}
		}
	}
	return out, nil
}

// one measures one model.
func one(ctx context.Context, file string, o Options, to *recheck.Series) error {
	m, err := Open(file)
	if err != nil {
		return err
	}
	defer m.Close()
	p, err := Profile(ctx, m, o)
	if err != nil {
		return err
	}
	to.Plain = p.Totals.LatencySamples
	for i := range p.Layers {
		l := &p.Layers[i]
		if v, ok := l.Latency.Best(); ok && l.State == profile.Ran {
			to.Rows = append(to.Rows, recheck.Row{Op: l.Op, Seconds: v})
		}
	}
	return nil
}
