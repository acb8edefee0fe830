package opmeter

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/buildinfo"
	"github.com/opmeter/opmeter/internal/estimate"
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/host"
	"github.com/opmeter/opmeter/internal/read/modelfile"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/profile"
)

// Model is an open model file. Its weights are views into the file, so it must
// stay open, and the file unchanged, while it is in use.
type Model struct {
	g    *graph.Model
	load time.Duration
	// estimable is g with shapes that the file lacks, found when first asked for.
	estimable func() *estimate.Model
	// hash is the SHA-256 of the file, found when first asked for.
	hash func() (string, error)
}

// Open reads a .tflite, .onnx or .mltk.zip file. The content decides, not the
// name. Weights are mapped, not copied. The error names the file, the place in
// the model and the byte offset where something is wrong.
func Open(path string) (*Model, error) {
	t := time.Now()
	g, err := modelfile.Open(path)
	if err != nil {
		return nil, err
	}
	return &Model{
		g: g, load: time.Since(t),
		estimable: sync.OnceValue(func() *estimate.Model { return estimate.Prepare(g) }),
		hash:      sync.OnceValues(func() (string, error) { return host.HashFile(g.Path) }),
	}, nil
}

// Close releases the file. The model must not be used afterwards.
func (m *Model) Close() error {
	if m.g.Close == nil {
		return nil
	}
	return m.g.Close()
}

// Format is "tflite" or "onnx".
func (m *Model) Format() string { return m.g.Format }

// Inputs lists the model's inputs: name, element type and shape, with -1 for
// dimensions that the file leaves open.
func (m *Model) Inputs() []profile.Tensor { return ports(m.g.Main(), m.g.Main().Inputs) }

// Outputs lists the model's outputs like [Model.Inputs]. The shape is nil where
// the file does not declare it.
func (m *Model) Outputs() []profile.Tensor { return ports(m.g.Main(), m.g.Main().Outputs) }

func ports(g *graph.Graph, ids []int) []profile.Tensor {
	out := make([]profile.Tensor, 0, len(ids))
	for _, id := range ids {
		if id < 0 {
			continue
		}
		v := g.Values[id]
		p := profile.Tensor{Name: v.Name}
		if v.Type != tensor.Invalid {
			p.DType = v.Type.String()
		}
		if v.HasShape {
			p.Shape = make([]int64, len(v.Shape))
			for i, d := range v.Shape {
				p.Shape[i] = int64(d)
			}
		}
		out = append(out, p)
	}
	return out
}

// Profile runs the model on this computer and measures every operator. Without
// options it takes one thread, random inputs of seed 0, and 50 runs or about one
// second of each pass after half a second of warm-up.
//
// Totals come from plain runs, shares from instrumented ones that take turns with
// them. Operators that the engine lacks are listed with the reason and do not
// keep the others from being measured. When ctx ends early, the profile holds
// what was measured until then and Profile.Incomplete says so. The profile is
// never nil; with an error it holds at most static counts.
//
// Calls from several goroutines wait for each other: one measurement at a time has
// the processors and, while it runs, the garbage collector's settings of the process
// (debug.SetGCPercent, debug.SetMemoryLimit), which are as before when it returns.
// The program should not change them meanwhile, nor do other heavy work. A progress
// function must not profile.
func Profile(ctx context.Context, m *Model, options ...Option) (*profile.Profile, error) {
	o := settings(m, options)
	p, err := host.Profile(ctx, m.g, o)
	return finish(p, m, err)
}

// Count reports what follows from the model alone: shapes, operations,
// multiply-accumulates, parameters and the memory plan, for the shapes that the
// options set. Nothing is measured.
func Count(m *Model, options ...Option) (*profile.Profile, error) {
	p, err := host.Count(m.g, settings(m, options))
	return finish(p, m, err)
}

func finish(p *profile.Profile, m *Model, err error) (*profile.Profile, error) {
	if err != nil {
		return p, fmt.Errorf("%s: %w", m.g.Path, err)
	}
	if m.g.Path != "" {
		if p.Model.SHA256, err = m.hash(); err != nil {
			return p, err
		}
	}
	return p, nil
}

func settings(m *Model, options []Option) host.Options {
	o := host.Options{Version: buildinfo.Version(), LoadS: m.load.Seconds(), Time: 2 * time.Second, Threads: 1}
	for _, f := range options {
		f(&o)
	}
	return o
}

// Option changes how [Profile] and [Count] work.
type Option func(*host.Options)

// Threads sets the number of threads that compute, 1 by default.
func Threads(n int) Option { return func(o *host.Options) { o.Threads = n } }

// Pin binds every thread to a processor of its own, one a core where possible.
func Pin() Option { return func(o *host.Options) { o.Pin = true } }

// Runs sets the number of measured inferences of each pass; the default is as
// many as fit into the time, at least 3.
func Runs(n int) Option {
	return func(o *host.Options) {
		o.Runs = n
		o.Time = 0
	}
}

// For sets the time for all measured inferences, 2 s by default.
func For(d time.Duration) Option {
	return func(o *host.Options) {
		o.Time = d
		o.Runs = 0
	}
}

// Warmup sets the least time and number of inferences before measuring, half a
// second and 3 by default; negative values mean none. Warming up goes on for at
// most three times as long while the runs are not steady.
func Warmup(d time.Duration, runs int) Option {
	return func(o *host.Options) { o.WarmupTime, o.WarmupRuns = d, runs }
}

// Seed sets the seed of random inputs, 0 by default. The same seed gives the
// same inputs in every release and on every machine.
func Seed(n uint64) Option { return func(o *host.Options) { o.Feed.Seed = n } }

// Zeros feeds zeros instead of random inputs.
func Zeros() Option { return func(o *host.Options) { o.Feed.Zeros = true } }

// Batch sets the first dimension of every input.
func Batch(n int) Option { return func(o *host.Options) { o.Feed.Batch = n } }

// Shape sets the shape of an input, for dimensions that the model leaves open or
// to try other sizes.
func Shape(input string, dims ...int) Option {
	return func(o *host.Options) {
		if o.Feed.Shapes == nil {
			o.Feed.Shapes = map[string][]int{}
		}
		o.Feed.Shapes[input] = dims
	}
}

// InputFile feeds an input from a .npy file; its shape counts.
func InputFile(input, file string) Option {
	return func(o *host.Options) {
		if o.Feed.Files == nil {
			o.Feed.Files = map[string]string{}
		}
		o.Feed.Files[input] = file
	}
}

// MaxMACs refuses models that need more multiply-accumulates for one inference,
// for work through many models of unknown size. 0, the default, refuses none.
func MaxMACs(n int64) Option { return func(o *host.Options) { o.MaxMACs = n } }

// Carry feeds an output back: after each inference it becomes the named input of
// the next, as the state of a streaming model or a key-value cache does.
func Carry(output, input string) Option {
	return func(o *host.Options) { o.Carry = append(o.Carry, host.Carry{Output: output, Input: input}) }
}

// KeepSamples keeps every measured time in the profile, not only its summary, and
// a timeline of the instrumented inferences: of all of them, or of as many, evenly
// spread, as have a million operators.
func KeepSamples() Option { return func(o *host.Options) { o.Samples = true } }

// Progress calls f, at most ten times a second and outside timed regions, with
// what is being done and how far it is, from 0 to 1.
func Progress(f func(phase string, fraction float64)) Option {
	return func(o *host.Options) { o.Progress = f }
}
