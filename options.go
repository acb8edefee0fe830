package opmeter

import (
	"fmt"
	"time"

	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/bridge"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/measure/host"
	"github.com/opmeter/opmeter/internal/measure/loadgen"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/synth"
	"github.com/opmeter/opmeter/profile"
)

// Inputs configures the inputs of a model and with them the shapes in which it runs. The zero value
// makes random inputs of seed 0 in the model's own shapes, with 1 for dimensions that the file
// leaves open; [profile.Tensor] marks these, and a finding warns of them. Integers that the model
// uses as a shape, a length, indices and the like get suitable values ([profile.Made]).
type Inputs struct {
	// Seed of random inputs. The same seed gives the same inputs in every release and on every
	// machine.
	Seed uint64
	// Zeros feeds zeros in place of random inputs.
	Zeros bool
	// Batch replaces the first dimension of every input, 0 leaves it. An input with a named batch
	// dimension at another position is set there.
	Batch int
	// Shapes sets shapes by the input's name, for dimensions that the model leaves open or to try
	// other sizes.
	Shapes map[string][]int
	// Dims sets dimensions by the names that ONNX files give them, in all inputs that have the
	// name. Shapes and Files have precedence.
	Dims map[string]int
	// Files feeds .npy files by the input's name; they set its shape.
	Files map[string]string
	// Iterations sets how often loops run whose iterations depend on data, by the name of the
	// layer, or by its index after "#". It applies to [Count] and [Estimate] alone: a run
	// determines them itself.
	Iterations map[string]int64
	// Overrides is a JSON file that sets shapes and fills of generated inputs by the model file's
	// base name, "" for none.
	Overrides string

	phase *phaseInputs // of a language model, nil for none
}

// Validate checks the inputs without a model. The error is an [OptionError].
func (i *Inputs) Validate() error {
	if i.Batch < 0 {
		return wrong("Inputs.Batch", "use 1 or more, not %d", i.Batch)
	}
	for name, shape := range i.Shapes {
		for _, d := range shape {
			if d < 0 {
				return wrong("Inputs.Shapes", "use dimensions of 0 or more for input %q, not %d", name, d)
			}
		}
	}
	for name, d := range i.Dims {
		if d < 0 {
			return wrong("Inputs.Dims", "use 0 or more for dimension %q, not %d", name, d)
		}
	}
	for name, n := range i.Iterations {
		if n < 0 || n > maxIterations {
			return wrong("Inputs.Iterations", "use 0 to %d for loop %q, not %d", int64(maxIterations), name, n)
		}
	}
	return nil
}

// maxIterations keeps counts of nested loops exact.
const maxIterations = 1_000_000_000

// wrong returns the error for an option.
func wrong(option, format string, args ...any) error {
	return &OptionError{Option: option, Text: fmt.Sprintf(format, args...)}
}

// feed checks the inputs of a run and translates them for a model.
func (i *Inputs) feed(m *bridge.Model) (inputs.Options, error) {
	if len(i.Iterations) > 0 {
		return inputs.Options{}, wrong("Inputs.Iterations", "a run determines how often loops run: leave it out, or count or estimate the model")
	}
	return i.shapes(m)
}

// shapes is feed where nothing is run.
func (i *Inputs) shapes(m *bridge.Model) (inputs.Options, error) {
	o := inputs.Options{Iterations: i.Iterations, Seed: i.Seed, Zeros: i.Zeros, Batch: i.Batch, Shapes: i.Shapes, Dims: i.Dims, Files: i.Files}
	if err := i.Validate(); err != nil {
		return o, err
	}
	if i.Overrides != "" {
		all, err := synth.LoadOverrides(i.Overrides)
		if err != nil {
			return o, modelError(i.Overrides, err)
		}
		o.Overrides = all[m.Base()]
	}
	if i.phase != nil {
		return i.phase.model.Feed(o, i.phase.Phase)
	}
	return o, nil
}

// Options configures [Profile]. The zero value takes one thread, random inputs of seed 0, and as
// many runs as fit into two seconds after half a second of warm-up.
type Options struct {
	// Inputs are the inputs of every inference.
	Inputs Inputs
	// Engine runs the model, nil for opmeter's own engine.
	Engine *engine.Engine
	// Threads is the number of threads that compute, 0 for 1, at most 1024.
	Threads int
	// Pin binds every thread to a processor of its own, one per core if possible.
	Pin bool
	// Runs is the number of measured inferences of each pass, under load of each stream, and
	// more until every stream has had one. 0 takes as many as fit into Time, at least 3.
	Runs int
	// Time is the time for all measured inferences if Runs is 0; 0 means 2 s.
	Time time.Duration
	// Warmup is the least time to warm up, 0 for half a second, negative for none. Warm-up lasts
	// at most three times as long while run times are not steady.
	Warmup time.Duration
	// Streams also measures so many sessions that run at the same time, each with Threads threads:
	// throughput, and the latency under that load. 0 and 1 leave that out; at most 1024. The
	// unloaded latency and the layers' shares come from one inference after the other in any case.
	Streams int
	// Rate also measures how the streams keep up with so many inferences a second, due at fixed
	// times. Latencies then count from the due time. 0 lets streams run as fast as they can.
	Rate float64
	// Cold also measures inferences after the processor's caches were flushed, or with a model that
	// was just opened; "" leaves that out.
	Cold profile.Cold
	// Carry feeds outputs back: after each inference the output named by a key becomes the input
	// named by its value, as the state of a streaming model does.
	Carry map[string]string
	// Exact computes operators between DequantizeLinear and QuantizeLinear in floating point, as
	// the file says, and rounds 16-bit floats after each operator. Other engines do neither.
	Exact bool
	// KeepSamples keeps every measured time in place of a thousand per layer. It also keeps a
	// timeline of the instrumented inferences: all of them, or an evenly spread selection with a
	// million operators.
	KeepSamples bool
	// MaxEvents above 0 keeps a sample of the timeline: the representative inference, whose layers
	// are nearest to their medians, and up to 15 others, spread evenly. MaxEvents is the largest
	// number of their operators; the representative inference is kept in any case.
	MaxEvents int
	// MaxMACs is the largest number of multiply-accumulates of one inference; a model with more
	// gives a [TooLargeError]. 0 means no limit.
	MaxMACs int64
	// MaxLoop limits the time that a loop of the model takes in an inference, if the loop has no
	// known number of iterations (WHILE, Loop without a trip count of up to a million) or the
	// inference has more than a million iterations. A loop that takes longer counts as endless: it
	// fails, and the rest of the model is measured. 0 means 3 s, negative no limit.
	MaxLoop time.Duration
	// Phases measures prefill and decode of a language model, each for Time or Runs and interleaved,
	// in place of an inference. The profile is of the decode with the deepest cache, and has the times
	// of the other phases beside: see [profile.LanguageModel]. Only Seed and Batch of Inputs apply.
	// nil measures an inference. [DefaultPhases] suit a model.
	Phases *Phases
	// Lists measures the model in every combination of some sizes, each for Time or Runs and
	// interleaved, in place of those of Inputs. The profile is of the last combination, and has the
	// times of the others beside. With Phases, each phase is measured in each batch. nil measures the
	// sizes of Inputs.
	Lists *Lists
	// MaxMemory limits the bytes of inputs, results and working memory of the model. A model above
	// the limit is refused; an operator that needs more in a run fails alone, and the model then
	// has no latency. 0 means the memory that is free of this computer, the container and the
	// limits of the process, less a reserve. More than these can hold is an [OptionError].
	MaxMemory int64
	// Progress is called with the current phase and its progress from 0 to 1, at most ten times a
	// second and outside timed regions. It must not measure itself. May be nil.
	Progress func(phase string, fraction float64)
	// Interleaver is shared by profiles that are interleaved, nil for none.
	Interleaver *Interleaver
	// Journal is a file that keeps results while the model runs, so that a killed process leaves
	// them behind: [profile.Read] opens it. The file must not exist; the caller removes it once the
	// profile is saved elsewhere. "" keeps none.
	Journal string
	// SkipPeaks leaves out the peak performance of this computer, which an external engine
	// otherwise measures with models of its own. Without it the profile has no roofline.
	SkipPeaks bool
}

// Validate checks the options without a model, as [Profile] does first. The error is an
// [OptionError].
func (o *Options) Validate() error {
	switch {
	case o.Runs < 0:
		return wrong("Runs", "use 0 or more, not %d", o.Runs)
	case o.Time < 0:
		return wrong("Time", "use a time such as 2s, not %v", o.Time)
	case o.MaxMemory < 0:
		return wrong("MaxMemory", "use 0 or more, not %d", o.MaxMemory)
	case o.MaxEvents < 0:
		return wrong("MaxEvents", "use 0 or more, not %d", o.MaxEvents)
	case o.MaxMACs < 0:
		return wrong("MaxMACs", "use 0 or more, not %d", o.MaxMACs)
	}
	if err := validThreads(o.Threads); err != nil {
		return err
	}
	switch {
	case o.Streams < 0 || o.Streams > loadgen.MaxStreams:
		return wrong("Streams", "use 1 to %d, not %d", loadgen.MaxStreams, o.Streams)
	case !(o.Rate >= 0 && o.Rate <= loadgen.MaxRate):
		return wrong("Rate", "use a rate above 0 and up to %g a second, not %v", loadgen.MaxRate, o.Rate)
	case o.Cold != "" && o.Cold != profile.ColdCaches && o.Cold != profile.ColdStart:
		return wrong("Cold", "use %q or %q, not %q", profile.ColdCaches, profile.ColdStart, o.Cold)
	}
	if err := o.fitsProgram(); err != nil {
		return err
	}
	if o.Phases != nil {
		if err := o.Phases.validate(o); err != nil {
			return err
		}
	}
	if o.Lists != nil {
		if err := o.Lists.validate(o); err != nil {
			return err
		}
	}
	return o.Inputs.Validate()
}

// validThreads checks the number of threads, and the instruction set that the environment selects.
func validThreads(n int) error {
	if n < 0 || n > 1024 {
		return wrong("Threads", "use 1 to 1024, not %d", n)
	}
	if err := simd.Refused(); err != nil {
		return &OptionError{Option: simd.Variable, Text: err.Error(), Err: err}
	}
	return nil
}

// host checks the options and translates them for a model.
func (o *Options) host(m *Model) (host.Options, error) {
	if err := o.Validate(); err != nil {
		return host.Options{}, err
	}
	f, err := o.Inputs.feed(m.in)
	if err != nil {
		return host.Options{}, err
	}
	if f.MaxBytes, err = m.in.MemoryLimit(o.MaxMemory); err != nil {
		return host.Options{}, failed(m.in.Graph.Path, err)
	}
	h := host.Options{
		Feed: f, Threads: max(o.Threads, 1), Pin: o.Pin, Runs: o.Runs, Time: o.Time, Exact: o.Exact, Samples: o.KeepSamples, MaxEvents: o.MaxEvents, MaxMACs: o.MaxMACs,
		Progress: o.Progress, Version: buildinfo.Version(), LoadS: m.in.Load.Seconds(), WarmupTime: o.Warmup,
		MaxLoop: maxLoop(o.MaxLoop), Streams: o.Streams, Rate: o.Rate, Cold: o.Cold,
	}
	switch {
	case h.Runs > 0:
		h.Time = 0
	case h.Time == 0:
		h.Time = loop.DefaultTime
	}
	if o.Warmup < 0 {
		h.WarmupRuns = -1
	}
	h.Carry = carries(o.Carry)
	if ph := o.Inputs.phase; ph != nil {
		h.InPlace = ph.places(o.Engine != nil)
	}
	return h, nil
}

// maxLoop returns the loop limit of the options with its default; 0 means no limit.
func maxLoop(d time.Duration) time.Duration {
	switch {
	case d == 0:
		return 3 * time.Second
	case d < 0:
		return 0
	}
	return d
}

func carries(names map[string]string) []host.Carry {
	var out []host.Carry
	for from, to := range names {
		out = append(out, host.Carry{Output: from, Input: to})
	}
	return out
}
