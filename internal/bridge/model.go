package bridge

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/base/mapped"
	"github.com/opmeter/opmeter/internal/base/subprocess"
	"github.com/opmeter/opmeter/internal/estimate"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/describe"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/source"
)

// Model is an open model. It is safe for concurrent use.
type Model struct {
	Graph *graph.Model
	// Load is how long reading the file took.
	Load time.Duration
	// Identity returns the model's hashes, computed by the first call.
	Identity func() (*describe.Identity, error)
	// Prepared returns the model ready for estimates in its own shapes, prepared by the first call.
	Prepared func() (*estimate.Model, error)

	hold hold
}

// NewModel returns a model that was read from a file or from data, nil for a file.
func NewModel(g *graph.Model, data []byte, load time.Duration) *Model {
	m := &Model{Graph: g, Load: load, hold: hold{g: g}}
	m.Identity = sync.OnceValues(func() (id *describe.Identity, err error) {
		err = m.Reading(func() (err error) { id, err = describe.Identify(g, data); return err })
		return id, err
	})
	m.Prepared = sync.OnceValues(func() (e *estimate.Model, err error) {
		if err := g.Complete(); err != nil {
			return nil, err
		}
		err = m.Reading(func() (err error) { e, err = estimate.Prepare(g, inputs.Options{}, m.Identity); return err })
		return e, err
	})
	return m
}

// Identify starts to compute the model's hashes in the background.
func (m *Model) Identify() {
	m.hold.take()
	go func() {
		defer m.hold.give()
		_, _ = m.Identity()
	}()
}

// Close releases the file, at the latest when work that was stopped has ended.
func (m *Model) Close() error { return m.hold.close() }

// MemoryLimit returns the limit of an option in bytes for a model that is to run; without one, 0,
// it is what this process may use. The error is a [machine.HoldError] for more than it can hold,
// or that of a model without its external data.
func (m *Model) MemoryLimit(most int64) (int, error) {
	if err := m.Graph.Complete(); err != nil {
		return 0, err
	}
	if most == 0 {
		return m.PlanLimit()
	}
	return int(most), machine.Holds(most)
}

// nodeBytes is about what planning and describing a node takes.
const nodeBytes = 6 << 10

// PlanLimit returns how many bytes this process may use. The error is an [op.LimitError] for a
// model with more nodes than can be planned in that.
func (m *Model) PlanLimit() (int, error) {
	limit, _ := machine.MemoryLimit()
	if n := nodeBytes * m.nodes(); m.Large() && n > limit {
		return 0, fmt.Errorf("planning %d nodes %w", m.nodes(), &op.LimitError{Want: n, Limit: limit})
	}
	return limit, nil
}

func (m *Model) nodes() (n int) {
	for _, g := range m.Graph.Graphs {
		n += len(g.Nodes)
	}
	return n
}

// Large reports whether the model has so many nodes that their descriptions matter: about 1 KiB
// for each.
func (m *Model) Large() bool { return m.nodes() > 20_000 }

// Base returns the last part of the model's path, or of its path inside an archive.
func (m *Model) Base() string {
	path := m.Graph.Path
	if _, member, ok := strings.Cut(path, "!"); ok {
		path = member
	}
	return filepath.Base(path)
}

// File returns the path of a file that other programs can read: the model's own, or a temporary
// one of what was read from an archive, a description or memory. clean removes the latter.
func (m *Model) File() (path string, clean func(), err error) {
	if m.Graph.Content == nil {
		path, err = filepath.Abs(m.Graph.Path)
		return path, func() {}, err
	}
	folder, clean, err := subprocess.Folder("model")
	if err != nil {
		return "", nil, err
	}
	name := strings.TrimSuffix(m.Base(), filepath.Ext(m.Base()))
	path = filepath.Join(folder, name+"."+m.Graph.Format)
	if err := os.WriteFile(path, m.Graph.Content, 0o600); err != nil {
		clean()
		return "", nil, err
	}
	return path, clean, nil
}

// hold keeps a model's file mapped while anything reads it: work that ignores its context may
// outlive the call that started it.
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

// give ends what take began.
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

// Reading calls fn, which reads the model's constants or computes with them. If the file changed
// meanwhile, everything that was read is doubtful: that error has precedence over fn's.
func (m *Model) Reading(fn func() error) error {
	m.hold.take()
	defer m.hold.give()
	err := mapped.Guard(fn)
	if m.Graph.Check != nil {
		if changed := m.Graph.Check(); changed != nil {
			return changed
		}
	}
	return err
}

// Source wraps a source that reads the model's constants.
func (m *Model) Source(s source.Source) source.Source { return reader{s, m} }

type reader struct {
	source.Source
	m *Model
}

// Run implements [source.Source].
func (r reader) Run(ctx context.Context, to source.Sink) error {
	return r.m.Reading(func() error { return r.Source.Run(ctx, to) })
}

// Patience is how long the source takes to end: see [source.Patient].
func (r reader) Patience() time.Duration {
	if p, ok := r.Source.(source.Patient); ok {
		return p.Patience()
	}
	return source.Patience
}
