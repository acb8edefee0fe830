package opmeter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/base/mapped"
	"github.com/opmeter/opmeter/internal/measure/host"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/npy"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/profile"
)

// RunOptions configures a [Session]. The zero value takes one thread and random inputs of seed 0.
type RunOptions struct {
	// Inputs are the inputs of the first run, and of later ones except for Carry.
	Inputs Inputs
	// Threads is the number of threads that compute, 0 for 1, at most 1024.
	Threads int
	// Carry feeds outputs back as inputs of the next run, as in [Options].
	Carry map[string]string
	// Exact computes quantised patterns of ONNX in floating point and rounds 16-bit floats after
	// each operator, as in [Options].
	Exact bool
	// KeepAll computes every operator by itself, so that [Session.Operators] has the
	// outputs of all of them.
	KeepAll bool
	// Record reads the clock at every operator of every run, for [Session.Profile].
	Record bool
	// MaxLoop limits loops without a known number of iterations, as in [Options].
	MaxLoop time.Duration
	// MaxMemory limits the model's memory, as in [Options].
	MaxMemory int64
}

// Validate checks the options without a model. The error is an [OptionError].
func (o *RunOptions) Validate() error {
	if o.MaxMemory < 0 {
		return wrong("MaxMemory", "use 0 or more, not %d", o.MaxMemory)
	}
	if err := validThreads(o.Threads); err != nil {
		return err
	}
	return o.Inputs.Validate()
}

// Session is a model prepared to run. It is for one goroutine at a time.
type Session struct {
	m   *Model
	s   *engine.Session
	ins []*tensor.Tensor
	rec *host.Recorder // nil for a session that does not record
	// fixed holds copies of outputs that are constants of the model's file, by position.
	fixed map[int]*tensor.Tensor
	share memoryShare
}

// Tensor is an input or output with its elements.
type Tensor struct {
	// Name of the value in the model.
	Name string
	// DType is the element type in lower case, such as "float32"; empty for a value
	// that could not be computed.
	DType string
	// Place is the position among the inputs or outputs of the model or operator, from 0.
	Place int
	// Shape lists the dimensions, empty for a scalar.
	Shape []int
	// Data holds the elements, little-endian; nil for strings, sequences and values
	// that were not computed. It is valid until the next run.
	Data []byte
	// Strings holds the elements of a tensor of strings.
	Strings []string

	t *tensor.Tensor
}

// Array reports whether the tensor has elements that [Tensor.WriteNPY] can write.
func (t *Tensor) Array() bool {
	if t.t == nil || t.t.Type.IsContainer() || t.t.Type == tensor.Resource || t.t.Type == tensor.Variant {
		return false
	}
	return t.t.Type != tensor.String || npy.Holds(t.t)
}

// WriteNPY writes the tensor in NumPy's file format. It returns an error unless [Tensor.Array] is
// true.
func (t *Tensor) WriteNPY(w io.Writer) error {
	if !t.Array() {
		return fmt.Errorf("%s cannot be written as a .npy file", t.Name)
	}
	return npy.Write(w, t.t)
}

// Operator is a node of the main graph after a run.
type Operator struct {
	// Node is its position in the file, Op the operator with its domain.
	Node     int
	Op, Name string
	// Err says why it did not run, nil if it did.
	Err error
	// Outputs are its results, only in sessions with KeepAll.
	Outputs []Tensor
}

// NewSession prepares a model to run. An operator that the engine lacks is not an error:
// [Session.Operators] reports it. Errors are an [OptionError] or [ModelError].
func NewSession(m *Model, o RunOptions) (*Session, error) {
	ss, err := NewSessions(m, o, 1)
	if err != nil {
		return nil, err
	}
	return ss[0], nil
}

// NewSessions prepares n sessions of a model that may run at the same time. They share the limit of
// memory in equal parts, for they need the same. n below 1 is an [OptionError]; other errors are
// those of [NewSession].
func NewSessions(m *Model, o RunOptions, n int) (ss []*Session, err error) {
	if n < 1 {
		return nil, wrong("instances", "use 1 or more, not %d", n)
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	f, err := o.Inputs.feed(m.in)
	if err != nil {
		return nil, err
	}
	limit, err := m.in.MemoryLimit(o.MaxMemory)
	if err != nil {
		return nil, failed(m.in.Graph.Path, err)
	}
	f.MaxBytes = max(limit/n, 1)
	defer func() {
		if err != nil {
			for _, s := range ss {
				s.Close()
			}
			ss = nil
		}
	}()
	share := memoryShare{limit, n}
	for range n {
		s, err := newSession(m, f, o)
		if err != nil {
			return ss, share.explain(err)
		}
		s.share = share
		ss = append(ss, s)
	}
	return ss, nil
}

// memoryShare says how many sessions share a limit of memory in bytes.
type memoryShare struct{ limit, sessions int }

// explain adds to an error about memory that the limit is a part of another.
func (s memoryShare) explain(err error) error {
	if _, ok := errors.AsType[*op.LimitError](err); ok && s.sessions > 1 {
		return fmt.Errorf("%w: %d instances share a limit of %.1f MiB", err, s.sessions, float64(s.limit)/(1<<20))
	}
	return err
}

// newSession makes a session with its part of the memory.
func newSession(m *Model, f inputs.Options, o RunOptions) (*Session, error) {
	if o.Record {
		return recorded(m, f, o)
	}
	var ins []*tensor.Tensor
	err := m.in.Reading(func() (err error) { ins, _, err = host.Inputs(m.in.Graph, f); return err })
	if err != nil {
		return nil, failed(m.in.Graph.Path, err)
	}
	carry, err := host.Carries(m.in.Graph.Main(), carries(o.Carry))
	if err != nil {
		return nil, failed(m.in.Graph.Path, err)
	}
	var places []engine.Carry
	if ph := o.Inputs.phase; ph != nil && ph.Buffers {
		if places, err = host.Carries(m.in.Graph.Main(), ph.places(true)); err != nil {
			return nil, failed(m.in.Graph.Path, err)
		}
	}
	var s *engine.Session
	err = m.in.Reading(func() (err error) {
		s, err = engine.New(m.in.Graph, ins, engine.Options{Registry: operators.Registry(), Threads: o.Threads, KeepAll: o.KeepAll, Carry: carry, InPlace: places, Exact: o.Exact, MaxBytes: f.MaxBytes, Held: engine.InputBytes(ins), MaxLoop: maxLoop(o.MaxLoop)})
		return err
	})
	if err != nil {
		return nil, failed(m.in.Graph.Path, err)
	}
	return &Session{m: m, s: s, ins: ins}, nil
}

// recorded makes a session that records.
func recorded(m *Model, f inputs.Options, o RunOptions) (*Session, error) {
	h := host.Options{
		Feed: f, Threads: max(o.Threads, 1), Exact: o.Exact, KeepAll: o.KeepAll, Carry: carries(o.Carry), MaxLoop: maxLoop(o.MaxLoop),
		Version: buildinfo.Version(), LoadS: m.in.Load.Seconds(),
	}
	s := &Session{m: m}
	err := m.in.Reading(func() (err error) { s.rec, err = host.NewRecorder(m.in.Graph, m.in.Identity, h); return err })
	if err != nil {
		return nil, failed(m.in.Graph.Path, err)
	}
	s.s, s.ins = s.rec.Session(), s.rec.Inputs()
	return s, nil
}

// Close ends the session's threads.
func (s *Session) Close() { s.s.Close() }

// Run computes one inference. When ctx ends it returns early, between two operators. Errors are the
// context's or a [NodeError].
func (s *Session) Run(ctx context.Context) error {
	err := s.m.in.Reading(func() error {
		run := s.s.Run
		if s.rec != nil {
			run = s.rec.Run
		}
		if err := run(ctx); err != nil {
			return err
		}
		s.detach()
		return nil
	})
	return s.share.explain(failed(s.m.in.Graph.Path, err))
}

// detach copies outputs that are constants of the file, since their readers do not guard against
// changes of mapped files.
func (s *Session) detach() {
	if s.fixed != nil {
		return
	}
	s.fixed = map[int]*tensor.Tensor{}
	for i, id := range s.m.in.Graph.Main().Outputs {
		if id < 0 {
			continue
		}
		if t := s.s.Output(i); t != nil && mapped.Holds(t.Data) {
			s.fixed[i] = t.Clone()
		}
	}
}

// Inputs lists the inputs of the first run, in the model's order.
func (s *Session) Inputs() []Tensor {
	g := s.m.in.Graph.Main()
	out := make([]Tensor, len(g.Inputs))
	for i, id := range g.Inputs {
		out[i] = shown(g, id, s.ins[i])
		out[i].Place = i
	}
	return out
}

// Outputs lists the model's outputs in its order. An output that could not be computed, or only with
// zeros in place of what an operator did not compute, has no type.
func (s *Session) Outputs() []Tensor {
	g, lost := s.m.in.Graph.Main(), s.lost()
	out := make([]Tensor, 0, len(g.Outputs))
	for i, id := range g.Outputs {
		if id >= 0 {
			t := s.s.Output(i)
			if c := s.fixed[i]; c != nil {
				t = c
			}
			if lost[id] {
				t = nil
			}
			o := shown(g, id, t)
			o.Place = i
			out = append(out, o)
		}
	}
	return out
}

// lost returns the values that depend on an operator that did not run.
func (s *Session) lost() map[int]bool {
	lost := map[int]bool{}
	for _, st := range s.s.Steps() {
		gone := st.Err != nil
		s.m.in.Graph.EachInput(st.Node, func(id int) { gone = gone || lost[id] })
		if gone {
			for _, id := range st.Node.Outputs {
				lost[id] = true
			}
		}
	}
	return lost
}

// Operators lists the nodes of the main graph in order.
func (s *Session) Operators() []Operator {
	g := s.m.in.Graph.Main()
	steps := s.s.Steps()
	out := make([]Operator, len(steps))
	for i := range steps {
		st := &steps[i]
		out[i] = Operator{Node: st.Node.Index, Op: st.Node.Key(), Name: st.Node.Name, Err: s.share.explain(st.Err)}
		for k, id := range st.Node.Outputs {
			if id < 0 || st.Err != nil {
				continue
			}
			if t := s.s.Value(id); t != nil {
				o := shown(g, id, t)
				o.Place = k
				out[i].Outputs = append(out[i].Outputs, o)
			}
		}
	}
	return out
}

// shown returns the public form of a value of a graph.
func shown(g *graph.Graph, id int, t *tensor.Tensor) Tensor {
	out := Tensor{Name: g.Values[id].Name, t: t}
	if t == nil {
		return out
	}
	out.DType, out.Shape = t.Type.String(), t.Shape
	if t.Type == tensor.String {
		out.Strings = t.Strings
	}
	if out.Shape == nil {
		out.Shape = []int{}
	}
	if t.Known() && t.Type != tensor.String && !t.Type.IsContainer() {
		out.Data = t.Data
	}
	return out
}

// ErrNotRecorded is returned by [Session.Profile] and [MergeSessions] for sessions without
// [RunOptions].Record, or without runs.
var ErrNotRecorded = errors.New("the session has recorded nothing")

// Profile returns the profile of a session with [RunOptions].Record: the times of its operators
// over all runs but the first, or of a single run, and a timeline of all. It has no measurement
// quality: every run is instrumented, and other work on the machine is not kept away. The error
// wraps [ErrNotRecorded].
func (s *Session) Profile() (*profile.Profile, error) {
	if s.rec == nil {
		return nil, ErrNotRecorded
	}
	var p *profile.Profile
	err := s.m.in.Reading(func() (err error) { p, err = s.rec.Profile(); return err })
	if err == nil && p == nil {
		err = ErrNotRecorded
	}
	return p, err
}

// RunConcurrently runs several sessions of one model at the same time, each on a thread of its own
// and for a number of inferences. They begin together. It returns when all have ended; the first
// error ends the others and is returned.
func RunConcurrently(ctx context.Context, sessions []*Session, runs int) error {
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

// MergeSessions makes one profile of sessions of one model that recorded and ran at the same time:
// figures over all of them and of each, and a timeline on one clock. The error is that of
// [Session.Profile].
func MergeSessions(sessions []*Session) (*profile.Profile, error) {
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
