package sources

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/estimate"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/measure/host"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
)

// described keeps the first event of a source and ends it there.
type described struct{ p *profile.Profile }

var errEnough = errors.New("described")

func (d *described) Send(e profile.Event) error {
	d.p = e.Described
	return errEnough
}

// static is what must not depend on the source: everything but target, settings and
// what was found out later.
func static(p *profile.Profile) *profile.Profile {
	q := &profile.Profile{Model: p.Model, Layers: make([]profile.Layer, len(p.Layers)), Memory: &profile.Memory{}}
	if p.Memory != nil {
		q.Memory.PeakBytes, q.Memory.TFLMArenaBytes = p.Memory.PeakBytes, p.Memory.TFLMArenaBytes
	}
	q.Totals.Params, q.Totals.WeightsBytes, q.Totals.FlashBytes = p.Totals.Params, p.Totals.WeightsBytes, p.Totals.FlashBytes
	for i := range p.Layers {
		l := &p.Layers[i]
		q.Layers[i] = profile.Layer{
			Index: l.Index, Name: l.Name, Op: l.Op, Domain: l.Domain, Version: l.Version, Scope: l.Scope, Graph: l.Graph, Parent: l.Parent,
			Options: l.Options, Inputs: l.Inputs, Outputs: l.Outputs, Constant: l.Constant,
			Ops: l.Ops, MACs: l.MACs, MACsExecuted: l.MACsExecuted, MLTKOps: l.MLTKOps, MLTKMACs: l.MLTKMACs,
			Params: l.Params, WeightsBytes: l.WeightsBytes, BytesRead: l.BytesRead, BytesWritten: l.BytesWritten, LiveBytes: l.LiveBytes,
			Calls: l.Calls, Provenance: l.Provenance, Sparsity: l.Sparsity,
		}
	}
	return q
}

// maxFile bounds the models that are tried: what takes seconds to read adds nothing.
const maxFile = 64 << 20

// models calls f with every model of the reference material.
func models(t *testing.T, f func(path string, m *graph.Model)) {
	t.Helper()
	err := filepath.WalkDir(material.Path(t, "models"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".tflite") && !strings.HasSuffix(path, ".onnx") {
			return err
		}
		if info, err := os.Stat(path); err != nil || info.Size() > maxFile {
			return err
		}
		m, err := modelfile.Open(path)
		if err != nil {
			return nil //nolint:nilerr // the reader's business
		}
		f(path, m)
		if m.Close != nil {
			return m.Close()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// targets are chips with and without accelerator.
func targets(t *testing.T) []*chip.Target {
	t.Helper()
	set, err := chip.Load("")
	if err != nil {
		t.Fatal(err)
	}
	var out []*chip.Target
	for _, id := range []string{"efr32xg24-mvp", "stm32l4r5"} {
		x, err := set.Find(id)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, x)
	}
	return out
}

// TestDescriptions asserts that every source gives an equal static part for every
// model.
func TestDescriptions(t *testing.T) {
	t.Parallel()
	ts := targets(t)
	n := 0
	models(t, func(path string, m *graph.Model) {
		var here described
		err := (&host.Source{Model: m, Options: host.Options{Static: true}}).Run(t.Context(), &here)
		if here.p == nil {
			t.Logf("%s: not described: %v", filepath.Base(path), err)
			return
		}
		ready, err := estimate.Prepare(m, inputs.Options{}, nil)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return
		}
		want := static(here.p)
		for _, x := range ts {
			var there described
			if err := (&estimate.Source{Model: ready, Target: x}).Run(t.Context(), &there); !errors.Is(err, errEnough) {
				t.Errorf("%s on %s: %v", path, x.ID, err)
				continue
			}
			if d := cmp.Diff(want, static(there.p)); d != "" {
				t.Errorf("%s: host and %s differ (-host +%s):\n%s", path, x.ID, x.ID, short(d))
			}
		}
		n++
	})
	if n < 300 {
		t.Errorf("%d models were described, expected hundreds", n)
	}
	t.Logf("%d models described alike", n)
}

// TestResults runs what is small: the final profiles still have the description, the
// counts of layers times their calls, and totals by one rule.
func TestResults(t *testing.T) {
	t.Parallel()
	ts := targets(t)
	n := 0
	models(t, func(path string, m *graph.Model) {
		var d described
		if _ = (&host.Source{Model: m, Options: host.Options{Static: true}}).Run(t.Context(), &d); d.p == nil {
			return
		}
		if sum, _ := d.p.Select(func(*profile.Layer) bool { return true }).Sum("ops"); sum > 20e6 {
			return
		}
		var ps []*profile.Profile
		for _, s := range []source.Source{
			&host.Source{Model: m, Options: host.Options{Static: true}},
			&host.Source{Model: m, Options: host.Options{Runs: 1, WarmupTime: -1, WarmupRuns: -1}},
			&estimate.Source{Model: prepared(t, m), Target: ts[0]},
		} {
			p, err := source.Collect(context.Background(), s, source.Options{})
			if err != nil && p == nil {
				t.Errorf("%s: %v", path, err)
				return
			}
			if err := p.Validate(); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			follows(t, path, d.p, p)
			ps = append(ps, p)
		}
		// Where nothing depends on a run the totals of counts agree, too.
		for _, p := range ps[1:] {
			if settled(d.p) && settled(p) {
				if d := cmp.Diff(counts(ps[0]), counts(p)); d != "" {
					t.Errorf("%s: totals of %s and %s differ:\n%s", path, ps[0].Target.ID, p.Target.ID, d)
				}
			}
		}
		n++
	})
	t.Logf("%d models", n)
}

func prepared(t *testing.T, m *graph.Model) *estimate.Model {
	t.Helper()
	p, err := estimate.Prepare(m, inputs.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// settled reports whether all counts follow from the model, and calls are those of
// the description.
func settled(p *profile.Profile) bool {
	for i := range p.Layers {
		l := &p.Layers[i]
		if l.Parent != nil || l.Ops == nil || l.BytesRead == nil || l.BytesWritten == nil {
			return false
		}
	}
	return true
}

func counts(p *profile.Profile) profile.Totals {
	t := p.Totals
	return profile.Totals{
		Layers: t.Layers, Ops: t.Ops, MACs: t.MACs, MACsExecuted: t.MACsExecuted, MLTKOps: t.MLTKOps, MLTKMACs: t.MLTKMACs,
		Params: t.Params, WeightsBytes: t.WeightsBytes, BytesRead: t.BytesRead, BytesWritten: t.BytesWritten, FlashBytes: t.FlashBytes, UncountedLayers: t.UncountedLayers,
	}
}

// follows checks that a result keeps its description: names, options, provenance, and
// counts times calls.
func follows(t *testing.T, path string, d, p *profile.Profile) {
	t.Helper()
	if len(d.Layers) != len(p.Layers) {
		t.Errorf("%s: %d layers described, the result has %d", path, len(d.Layers), len(p.Layers))
		return
	}
	for i := range d.Layers {
		a, b := &d.Layers[i], &p.Layers[i]
		if a.Op != b.Op || a.Name != b.Name || !cmp.Equal(a.Options, b.Options) || !cmp.Equal(a.Provenance, b.Provenance) || a.Constant != b.Constant || !cmp.Equal(a.Params, b.Params) {
			t.Errorf("%s: layer %d was described otherwise:\n%s", path, i, short(cmp.Diff(a, b)))
		}
		if a.MACs == nil || b.MACs == nil {
			continue
		}
		calls := func(l *profile.Layer) float64 {
			if l.Calls != nil {
				return *l.Calls
			}
			return 1
		}
		if ca := calls(a); ca > 0 {
			if want := math.Round(float64(*a.MACs) / ca * calls(b)); want != float64(*b.MACs) {
				t.Errorf("%s: layer %d has %d MACs in %v calls, described were %d in %v", path, i, *b.MACs, calls(b), *a.MACs, ca)
			}
		}
	}
}

func short(s string) string {
	if len(s) > 3000 {
		return s[:3000] + "…"
	}
	return s
}
