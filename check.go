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

// timer times models by profiles that take turns.
type timer struct{ o Options }

// Time implements [recheck.Timer].
func (t *timer) Time(ctx context.Context, files []string, each time.Duration) ([]recheck.Series, error) {
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
