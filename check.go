package opmeter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/base/subprocess"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/recheck"
	"github.com/opmeter/opmeter/internal/model/submodel"
	"github.com/opmeter/opmeter/profile"
)

// Check measures the slowest layers of a profile a second time, by another method, and notes the
// result in the profile. It times a short part of the model with and without the layer. The
// difference is the layer's quantity checked_s; [profile.Layer.Check] says whether both figures
// agree, and a finding sums it up.
//
// The profile must be of this model, made with the same options. A check takes about as long as
// the profile, or longer if one inference takes more than a hundredth of that time. A layer that
// cannot be checked is a result, not an error.
func Check(ctx context.Context, m *Model, p *profile.Profile, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if o.Phases != nil {
		return wrong("Phases", "%s", "layers are checked in an inference: leave the phases out")
	}
	if o.Lists != nil {
		return wrong("Lists", "%s", "layers are checked in an inference of one size: leave the lists out")
	}
	if isProgram(o.Engine) {
		return wrong("Engine", "%s", "layers cannot be checked with tflm=PROGRAM: which model it runs is its own affair")
	}
	if o.Time <= 0 {
		o.Time = loop.DefaultTime
	}
	folder, remove, err := subprocess.Folder("check")
	if err != nil {
		return err
	}
	defer remove()
	file, clean, err := m.in.File()
	if err != nil {
		return err
	}
	defer clean()
	s, err := submodel.Open(file)
	if err != nil {
		return failed(m.in.Graph.Path, err)
	}
	defer func() { _ = s.Close() }()
	files, err := m.saveInputs(o, folder)
	if err != nil {
		return err
	}
	progress := o.Progress
	o.Inputs, o.Progress, o.Journal, o.KeepSamples, o.Carry = Inputs{Files: files}, nil, "", true, nil
	o.Streams, o.Rate, o.Cold, o.SkipPeaks = 0, 0, "", true
	r := recheck.Options{Source: s, File: file, Timer: &timer{o}, Folder: folder, Time: o.Time}
	if progress != nil {
		r.Progress = func(f float64) { progress("checking the slowest layers", f) }
	}
	return recheck.Check(ctx, p, r)
}

// saveInputs writes the inputs of the options to files, so that sub-models get the same data.
func (m *Model) saveInputs(o Options, folder string) (map[string]string, error) {
	s, err := NewSession(m, RunOptions{Inputs: o.Inputs, Threads: 1, MaxMemory: o.MaxMemory})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return save(s.Inputs(), folder, "input")
}

// save writes named tensors that have elements to .npy files and returns the files by name.
func save(list []Tensor, folder, what string) (map[string]string, error) {
	files := map[string]string{}
	for i, x := range list {
		if !x.Array() || x.Name == "" {
			continue
		}
		name := filepath.Join(folder, fmt.Sprintf("%s-%d.npy", what, i))
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

// timer times models by interleaved measurements.
type timer struct{ o Options }

// checkWarmup is the default warm-up of a sub-model; there are many of them.
const checkWarmup = 200 * time.Millisecond

// Time implements [recheck.Timer].
func (t *timer) Time(ctx context.Context, pieces []recheck.Piece, slots int) ([]recheck.Series, error) {
	measure := t.external
	if t.o.Engine == nil {
		release, err := loop.Lease(ctx)
		if err != nil {
			return nil, err
		}
		defer release()
		measure = t.native
	}
	var order Interleaver
	out := make([]recheck.Series, len(pieces))
	errs := make([]error, len(pieces))
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i, x := range pieces {
		wg.Go(func() {
			if errs[i] = measure(ctx, &x, slots, &order, &out[i]); errs[i] != nil {
				cancel() // the result needs all of them
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

// length returns how long to measure a sub-model for a number of slots. A model that fills a slot
// gets that many runs. A shorter one runs many times in each slot and gets the slots' time.
func length(x *recheck.Piece, slots int) (runs int, d time.Duration) {
	if x.Seconds >= recheck.TurnTime {
		return slots, 0
	}
	return 0, time.Duration(float64(slots) * recheck.TurnTime * float64(time.Second))
}

// open opens a sub-model and returns its inputs.
func (t *timer) open(x *recheck.Piece) (*Model, Inputs, error) {
	m, err := Open(x.File)
	if err != nil {
		return nil, Inputs{}, err
	}
	in := Inputs{Files: map[string]string{}}
	for _, id := range m.in.Graph.Main().Inputs {
		name := m.in.Graph.Main().Values[id].Name
		if f := cmp.Or(x.Inputs[name], t.o.Inputs.Files[name]); f != "" {
			in.Files[name] = f
		}
	}
	return m, in, nil
}

// session prepares a model for opmeter's own engine.
func (t *timer) session(m *Model, in Inputs) (*Session, error) {
	return NewSession(m, RunOptions{Inputs: in, Threads: t.o.Threads, Exact: t.o.Exact, MaxLoop: t.o.MaxLoop, MaxMemory: t.o.MaxMemory})
}

// native measures a sub-model with opmeter's own engine. The caller holds the lease; garbage
// collector settings belong to the process and stay.
func (t *timer) native(ctx context.Context, x *recheck.Piece, slots int, order *Interleaver, to *recheck.Series) error {
	m, in, err := t.open(x)
	if err != nil {
		return err
	}
	defer m.Close()
	s, err := t.session(m, in)
	if err != nil {
		return err
	}
	defer s.Close()
	turn := order.t.Join()
	defer turn.Leave()
	if err := turn.Wait(ctx); err != nil { // others measure while this one would warm up
		return err
	}
	runs, d := length(x, slots)
	o := loop.Options{Runs: runs, Time: d, WarmupTime: cmp.Or(t.o.Warmup, checkWarmup), KeepGC: true, Leased: true, Turn: turn.Wait}
	res, err := loop.Measure(ctx, o, func() error { return s.Run(ctx) })
	to.Plain = res.Plain
	return err
}

// external measures a sub-model with an external engine: each slot has two groups of plain
// inferences.
func (t *timer) external(ctx context.Context, x *recheck.Piece, slots int, order *Interleaver, to *recheck.Series) error {
	m, in, err := t.open(x)
	if err != nil {
		return err
	}
	defer m.Close()
	o := t.o
	runs, d := length(x, slots)
	// Half of the runs, or of the time, are instrumented.
	o.Inputs, o.Interleaver, o.Runs, o.Time, o.Warmup = in, order, 2*runs, 2*d, cmp.Or(t.o.Warmup, checkWarmup)
	p, err := m.profile(ctx, o)
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

// Values implements [recheck.Timer] with opmeter's own engine.
func (t *timer) Values(ctx context.Context, file, folder string) (given []submodel.Given, files map[string]string, err error) {
	m, in, err := t.open(&recheck.Piece{File: file})
	if err != nil {
		return nil, nil, err
	}
	defer m.Close()
	s, err := t.session(m, in)
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	if err := s.Run(ctx); err != nil {
		return nil, nil, err
	}
	for _, x := range s.Outputs() {
		if x.t != nil && x.Array() {
			given = append(given, submodel.Given{Name: x.Name, Type: x.t.Type, Shape: slices.Clone(x.Shape)})
		}
	}
	files, err = save(s.Outputs(), folder, filepath.Base(file))
	return given, files, err
}
