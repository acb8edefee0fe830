package loss

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/compress/mask"
	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// errMemory ends a pass that exceeds the memory limit.
var errMemory = errors.New("exceeds the memory limit")

// runIsolated finds the points of a layer by running its operators in isolation with each change.
func (j *Job) runIsolated(ctx context.Context, layer int) error {
	l, cs := j.Layers[layer], j.missingChanges(layer)
	only, ids := weights.Part(j.Model, l.Nodes)
	kept := make([][]*tensor.Tensor, j.Data.Runs())
	bytes := 0
	unrun := false
	err := runPass(ctx, j.Model, j.Data, ids, j.Threads, func(run int, v values) error {
		for _, id := range ids {
			t := v(id)
			if t == nil || !t.Known() {
				unrun = true
				return nil
			}
			kept[run] = append(kept[run], t.Clone())
			bytes += len(t.Data)
		}
		if bytes > j.limit() {
			return errMemory
		}
		return nil
	})
	switch {
	case errors.Is(err, errMemory):
		return j.reportCause(layer, cs, study.NoMemory)
	case err != nil:
		return err
	case unrun:
		return j.reportCause(layer, cs, study.NotRun)
	}
	base, err := j.outputsOf(ctx, only, kept)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return j.reportCause(layer, cs, study.NotRun)
	}
	w := l.Read(nil)
	scores := mask.Magnitudes(w) // the energy of its inputs is unknown
	orders := map[study.Structure]*mask.Order{}
	for _, c := range cs {
		p := study.LossPoint{Layer: layer, Change: c}
		if orders[c.Structure] == nil && c.Structure != study.Dense {
			orders[c.Structure], p.Cause = mask.New(l, scores, c.Structure)
		}
		if p.Cause == "" {
			err := j.isolatedPoint(ctx, &p, only, kept, base, w, orders[c.Structure])
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				p.Cause = study.NotRun
			}
		}
		if err := j.Point(p); err != nil {
			return err
		}
	}
	return nil
}

// isolatedPoint finds one point.
func (j *Job) isolatedPoint(ctx context.Context, p *study.LossPoint, only *graph.Model, kept [][]*tensor.Tensor, base [][]float64, w []float32, order *mask.Order) error {
	l, c := j.Layers[p.Layer], p.Change
	mat := slices.Clone(w)
	if order != nil {
		order.Zero(mat, c.Level)
	}
	local := *l
	for i, n := range only.Main().Nodes { // positions refer to the submodel
		if slices.Equal(n.Outputs, j.Model.Main().Nodes[l.Node].Outputs) {
			local.Node, local.Nodes = i, []int{i}
		}
	}
	if len(l.Nodes) > 1 && c.Format != study.OriginalFormat {
		p.Cause = study.NoFormat
		return nil
	}
	if len(l.Nodes) > 1 {
		local.Nodes = nil
	}
	m, effects, err := rewrite.Apply(only, []rewrite.Change{{Layer: &local, Change: study.Change{Format: c.Format}, Matrix: mat}}, rewrite.Options{})
	if err != nil {
		return err
	}
	if p.Cause = effects[0].Cause; p.Cause != "" {
		return nil
	}
	got, err := j.outputsOf(ctx, m, kept)
	if err != nil {
		return err
	}
	n := len(base)
	num, den := make([]float64, n), make([]float64, n)
	for i := range base {
		num[i], den[i] = squaredDistance(got[i], base[i])
	}
	f := func(times []float32) float64 { return ratio(num, den, times) }
	v := f(nil)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		p.Cause = study.NotRun
		return nil
	}
	lo, hi := BootstrapInterval(n, j.Seed, f)
	p.Value = metricValue(profile.Measured, v, j.Data.Len(), lo, hi, "operator run in isolation, weights chosen by magnitude; interval by resampling samples")
	return nil
}

// squaredDistance returns the squared norms of the difference and of want.
func squaredDistance(got, want []float64) (num, den float64) {
	for i, w := range want {
		if i < len(got) {
			num += (got[i] - w) * (got[i] - w)
		}
		den += w * w
	}
	return num, den
}

// outputsOf returns the first outputs of a model for recorded inputs, as real numbers.
func (j *Job) outputsOf(ctx context.Context, m *graph.Model, kept [][]*tensor.Tensor) ([][]float64, error) {
	o := engine.Options{Registry: operators.Registry(), Threads: j.Threads}
	s, err := newSession(m, kept[0], j.Data, o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var out [][]float64
	err = runEach(ctx, s, m, j.Data.WithInputs(kept), func(int) error {
		t := withQuant(s.Output(0), m.Main().Values[m.Main().Outputs[0]])
		if t == nil || !t.Known() || !t.Type.IsNumber() {
			return fmt.Errorf("%s has no numeric output", m.Main().Nodes[len(m.Main().Nodes)-1].Key())
		}
		out = append(out, toReal(t))
		return nil
	})
	return out, err
}
