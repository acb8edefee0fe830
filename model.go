package opmeter

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/base/mapped"
	"github.com/opmeter/opmeter/internal/estimate"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/runtime/describe"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
)

// Model is an open model. Its weights are views into the file, so it must stay
// open, and the file unchanged, while it is in use. Any number of goroutines may
// use it at once.
type Model struct {
	g    *graph.Model
	hold *hold
	load time.Duration
	// identity is the model's hashes, found when first asked for.
	identity func() (*describe.Identity, error)
	// prepared is the model ready for estimates in its own shapes.
	prepared func() (*estimate.Model, error)
}

// Open reads a .tflite, .onnx or .mltk.zip file, or builds the network that a
// .yaml description has. The content decides, not the name. Weights are mapped,
// not copied: a file that changes while the model is in use is a [ModelError] that
// wraps [ErrChanged], wherever that is found. The error is a [ModelError].
func Open(path string) (*Model, error) {
	t := time.Now()
	g, err := modelfile.Open(path)
	if err != nil {
		return nil, modelError(path, err)
	}
	return newModel(g, nil, time.Since(t)), nil
}

// OpenBytes reads a model from memory; data must not change while the model is in
// use. The name stands for that of a file: its ending tells a description from a
// model. External data of ONNX models cannot be read. The error is a [ModelError].
func OpenBytes(name string, data []byte) (*Model, error) {
	t := time.Now()
	g, err := modelfile.Parse(name, data)
	if err != nil {
		return nil, modelError(name, err)
	}
	return newModel(g, data, time.Since(t)), nil
}

func newModel(g *graph.Model, data []byte, load time.Duration) *Model {
	m := &Model{g: g, hold: &hold{g: g}, load: load}
	m.identity = sync.OnceValues(func() (id *describe.Identity, err error) {
		err = m.reading(func() (err error) { id, err = describe.Identify(g, data); return err })
		return id, err
	})
	m.prepared = sync.OnceValues(func() (e *estimate.Model, err error) {
		err = m.reading(func() (err error) { e, err = estimate.Prepare(g, inputs.Options{}, m.identity); return err })
		return e, err
	})
	return m
}

// identify finds the model's hashes while something else is done.
func (m *Model) identify() {
	m.hold.take()
	go func() {
		defer m.hold.give()
		_, _ = m.identity()
	}()
}

// Close releases the file, at the latest when work that was stopped has come to its
// end. The model must not be used afterwards.
func (m *Model) Close() error { return m.hold.close() }

// Format is "tflite" or "onnx".
func (m *Model) Format() string { return m.g.Format }

// Name is the file as it was named.
func (m *Model) Name() string { return m.g.Path }

// Inputs lists the model's inputs: name, element type and shape, with -1 for
// dimensions that the file leaves open.
func (m *Model) Inputs() []profile.Tensor { return declared(m.g.Main(), m.g.Main().Inputs) }

// Outputs lists the model's outputs like [Model.Inputs]. The shape is nil where
// the file does not declare it.
func (m *Model) Outputs() []profile.Tensor { return declared(m.g.Main(), m.g.Main().Outputs) }

func declared(g *graph.Graph, ids []int) []profile.Tensor {
	out := make([]profile.Tensor, 0, len(ids))
	for _, id := range ids {
		if id >= 0 {
			out = append(out, describe.Port(g, id, nil))
		}
	}
	return out
}

// memory is a limit of the options in bytes.
func (m *Model) memory(most int64) int {
	if most > 0 {
		return int(most)
	}
	size := m.g.FileBytes
	for _, g := range m.g.Graphs {
		for _, v := range g.Values {
			if v.Const != nil {
				size += int64(len(v.Const.Data))
			}
		}
	}
	return int(min(int64(machine.MemoryLimit()), max(512<<20, 128*size)))
}

// base is the last part of a path, or of the member of an archive.
func base(path string) string {
	if _, member, ok := strings.Cut(path, "!"); ok {
		path = member
	}
	return filepath.Base(path)
}

// hold keeps a model's file mapped while anything reads it: work that does not end
// when it is told to may outlive the call that asked for it.
type hold struct {
	mu     sync.Mutex
	users  int
	closed bool
	g      *graph.Model
}

func (h *hold) take() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.users++
}

// give is the end of what take began.
func (h *hold) give() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users--; h.closed {
		_ = h.release() // whoever closed the model has gone on
	}
}

// close releases the file, now or after its last reader.
func (h *hold) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	return h.release()
}

// release is called with the lock held.
func (h *hold) release() error {
	if h.users > 0 || h.g.Close == nil {
		return nil
	}
	end := h.g.Close
	h.g.Close = nil
	return end()
}

// reading calls fn, which reads the model's constants or computes with them. A file
// that changed meanwhile makes everything that was read of it doubtful: that error has
// precedence.
func (m *Model) reading(fn func() error) error {
	m.hold.take()
	defer m.hold.give()
	err := mapped.Guard(fn)
	if m.g.Check != nil {
		if changed := m.g.Check(); changed != nil {
			return changed
		}
	}
	return err
}

// reader is a source that reads the model's constants.
type reader struct {
	source.Source
	m *Model
}

// Run implements [source.Source].
func (r reader) Run(ctx context.Context, to source.Sink) error {
	return r.m.reading(func() error { return r.Source.Run(ctx, to) })
}

// Patience is how long the source takes to end: see [source.Patient].
func (r reader) Patience() time.Duration {
	if p, ok := r.Source.(source.Patient); ok {
		return p.Patience()
	}
	return source.Patience
}
