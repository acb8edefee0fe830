package speed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// Options configure a measurement.
type Options struct {
	// Engine configures sessions, with registry and threads.
	Engine engine.Options
	// Inputs are the model's inputs, with the batch size to measure.
	Inputs []*tensor.Tensor
	// Changes are applied to all layers at once, one after the other; changes that make layers
	// smaller are applied by pruning group. Changes reported by Have are skipped. Have is also
	// called with the zero change: whether the unchanged model was measured.
	Changes []study.Change
	Have    func(study.Change) bool
	// Time is how long a changed model and the unchanged one are measured; 0 means 400 ms. It is
	// longer if six pairs of groups take longer.
	Time time.Duration
	// NoLimits skips the bottlenecks, which need a measurement of this computer's peaks.
	NoLimits bool
	// Progress is called with the current phase and its progress from 0 to 1. May be nil.
	Progress func(phase string, fraction float64)
}

// Limits of a comparison.
const (
	groupTime = 10 * time.Millisecond // of runs between two switches of the model
	minPairs  = 3                     // rounds of ABBA: six pairs, the minimum for an interval
	maxPairs  = 40
)

// UsualTime is the default time for a changed model and the unchanged one.
const UsualTime = 400 * time.Millisecond

// ErrNothing reports that no layer with weights runs.
var ErrNothing = errors.New("no layer with weights runs")

// Measure finds the times of layers, unchanged and with each change, and yields them as it finds
// them.
func Measure(ctx context.Context, m *graph.Model, layers []*weights.Layer, o Options, yield func(*study.SpeedPoints) error) error {
	release, err := loop.Lease(ctx)
	if err != nil {
		return err
	}
	defer release()
	defer loop.Quiet(machine.HeapGrowth())()
	r := &run{m: m, layers: layers, o: &o, ctx: ctx, yield: yield}
	r.o.Time = cmp.Or(r.o.Time, UsualTime)
	if r.dense, err = r.session(m, nil); err != nil {
		return err
	}
	defer r.dense.s.Close()
	r.parts, r.rest = parts(layers, allSteps(r.dense.s))
	if len(r.parts) == 0 {
		return r.nothingRuns()
	}
	r.findGroups()
	r.dense.assign(r.parts)
	r.progress("warming up", 0)
	if err := r.warmUp(); err != nil {
		return err
	}
	if !r.have(study.Change{}) {
		if err := r.measureUnchanged(); err != nil {
			return err
		}
	}
	for i, c := range o.Changes {
		r.progress("measuring "+Describe(c), float64(i)/float64(len(o.Changes)))
		if c.IsZero() || r.have(c) {
			continue
		}
		change := r.measureChange
		if c.Structure.Removes() {
			change = r.measureGroups
		}
		if err := change(c); err != nil {
			return err
		}
	}
	return yield(&study.SpeedPoints{Done: true})
}

// nothingRuns says why no layer runs, by the first failing layer.
func (r *run) nothingRuns() error {
	all := allSteps(r.dense.s)
	for _, l := range r.layers {
		for _, n := range readers(l) {
			if n >= 0 && n < len(all) && all[n].Err != nil {
				return fmt.Errorf("%w with inputs of these shapes: %s: %w", ErrNothing, l.Name, all[n].Err)
			}
		}
	}
	return ErrNothing
}

// Describe returns the displayed name of a change.
func Describe(c study.Change) string {
	s := string(c.Structure)
	if c.Structure != study.Dense {
		s += fmt.Sprintf(" %g %%", 100*c.Level)
	}
	if s != "" && c.Format != study.OriginalFormat {
		s += ", "
	}
	return cmp.Or(s+string(c.Format), "unchanged")
}

// run is one measurement.
type run struct {
	m             *graph.Model
	layers        []*weights.Layer
	o             *Options
	ctx           context.Context
	yield         func(*study.SpeedPoints) error
	dense         *model
	parts         []timedPart
	rest          []int
	groups        map[study.Structure][][]group // by model
	inferenceTime time.Duration                 // of the unchanged model
	samples       []float64                     // reused buffer for the times of a group
}

func (r *run) progress(phase string, f float64) {
	if r.o.Progress != nil {
		r.o.Progress(phase, f)
	}
}

func (r *run) have(c study.Change) bool { return r.o.Have != nil && r.o.Have(c) }

// model is a model ready to run.
type model struct {
	m         *graph.Model
	s         *engine.Session
	t         *engine.Timing
	originals []int   // see originalNodes
	steps     [][]int // by part
}

// session prepares a model. originals is nil for the unchanged one.
func (r *run) session(m *graph.Model, stands []int) (*model, error) {
	s, err := engine.New(m, r.o.Inputs, r.o.Engine)
	if err != nil {
		return nil, err
	}
	x := &model{m: m, s: s, originals: stands}
	if stands == nil {
		x.originals = allOriginalNodes(m, m)
	}
	for { // disable failing nodes, so that the rest can be measured
		err := s.Run(r.ctx)
		if err == nil {
			break
		}
		if e, ok := errors.AsType[*engine.NodeError](err); !ok || e.Graph != 0 || !s.Disable(e) {
			s.Close()
			return nil, err
		}
	}
	x.t = s.NewTiming()
	return x, nil
}

func (x *model) assign(ps []timedPart) {
	for i := range ps {
		x.steps = append(x.steps, ps[i].steps(x.originals))
	}
}

// kernel returns the kernel of a part: that of the first step that belongs to the layer itself.
func (x *model) kernel(p *timedPart, i int) string {
	all, other := allSteps(x.s), ""
	for _, s := range x.steps[i] {
		if all[s].State != engine.Runs {
			continue
		}
		if x.originals[s] == p.step && all[s].Kernel != "" && !onlyConverts(all[s].Node) {
			return all[s].Kernel
		}
		other = cmp.Or(other, all[s].Kernel)
	}
	return other
}

// onlyConverts reports whether an operator only converts number formats.
func onlyConverts(n *graph.Node) bool {
	return slices.Contains([]string{"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "Cast", "QUANTIZE", "DEQUANTIZE", "CAST"}, n.Op)
}

// groupTimes are medians over a group of runs, in seconds: of an inference, of each part, and of
// everything outside of layers. They are robust against single disturbed runs.
type groupTimes struct {
	whole float64
	parts []float64
	rest  float64
}

// inference is the time of an inference as the sum of its parts: on a busy machine almost every
// inference is interrupted somewhere, but each part is not in most of them.
func (t *groupTimes) inference(parts []timedPart) float64 {
	sum := t.rest
	for i := range parts {
		if len(parts[i].layers) > 0 {
			sum += t.parts[i]
		}
	}
	return sum
}

// runGroup runs a model n times, after one unmeasured run that warms the caches.
func (r *run) runGroup(x *model, n int) (groupTimes, error) {
	t := groupTimes{parts: make([]float64, len(x.steps))}
	if err := x.s.Run(r.ctx); err != nil {
		return t, err
	}
	rows := 2 + len(x.steps)
	if cap(r.samples) < rows*n {
		r.samples = make([]float64, rows*n)
	}
	took := r.samples[:rows*n] // by part, the whole model first
	for k := range n {
		if err := x.s.RunTimed(r.ctx, x.t); err != nil {
			return t, err
		}
		b := x.t.Bounds
		took[k] = float64(b[len(b)-1]-b[0]) * 1e-9
		rest := took[k]
		for i, steps := range x.steps {
			sum := int64(0)
			for _, s := range steps {
				sum += x.stepTime(s)
			}
			took[(i+1)*n+k] = float64(sum) * 1e-9
			if len(r.parts[i].layers) > 0 {
				rest -= float64(sum) * 1e-9
			}
		}
		took[(rows-1)*n+k] = max(rest, 0)
	}
	t.whole, t.rest = stats.Median(took[:n]), stats.Median(took[(rows-1)*n:])
	for i := range t.parts {
		t.parts[i] = stats.Median(took[(i+1)*n : (i+2)*n])
	}
	return t, nil
}

// minWarmUp is the minimum warm-up time of a model.
func (r *run) minWarmUp() time.Duration { return min(r.o.Time, UsualTime) }

// warmUp runs the unchanged model until its time is steady: at least three times, and at most
// three times the minimum warm-up time.
func (r *run) warmUp() error {
	var took []float64
	for begin := time.Now(); ; {
		t := time.Now()
		if err := r.dense.s.Run(r.ctx); err != nil {
			return err
		}
		took = append(took, time.Since(t).Seconds())
		since := time.Since(begin)
		late := took[len(took)/2:]
		j := stats.Judge(late)
		if len(took) >= 3 && since > 3*r.minWarmUp() || len(took) >= 20 && since > r.minWarmUp() && j.Steady != nil && *j.Steady {
			r.inferenceTime = time.Duration(stats.Median(late) * 1e9)
			return nil
		}
	}
}

// groupSize is the number of runs of a model in a group.
func (r *run) groupSize() int { return max(1, int(groupTime/max(r.inferenceTime, 1))) }

// measureUnchanged measures the unchanged model.
func (r *run) measureUnchanged() error {
	r.progress("measuring the unchanged model", 0)
	var got []groupTimes
	for begin := time.Now(); len(got) < 2*minPairs || time.Since(begin) < r.o.Time && len(got) < 4*maxPairs; {
		t, err := r.runGroup(r.dense, r.groupSize())
		if err != nil {
			return err
		}
		got = append(got, t)
	}
	out := &study.SpeedPoints{Latency: metric(column(got, func(t *groupTimes) float64 { return t.inference(r.parts) }), "sum of layers and other operators, groups of runs")}
	seconds := map[int]float64{}
	for i := range r.parts {
		p := &r.parts[i]
		fused := slices.DeleteFunc(slices.Clone(p.nodes), func(n int) bool {
			return slices.ContainsFunc(p.layers, func(l int) bool { return slices.Contains(readers(r.layers[l]), n) })
		})
		kernel := r.dense.kernel(p, i)
		for k, l := range p.layers {
			m := metric(column(got, func(t *groupTimes) float64 { return t.parts[i] * p.shares[k] }), p.method())
			seconds[l] = stats.Median(column(got, func(t *groupTimes) float64 { return t.parts[i] }))
			out.Layers = append(out.Layers, study.LayerTime{Layer: l, Latency: m, Kernel: kernel, Fused: inLayerGraph(r.layers[l], fused)})
		}
	}
	if !r.o.NoLimits {
		limits := r.bottlenecks(seconds)
		for i := range out.Layers {
			out.Layers[i].Limit = limits[out.Layers[i].Layer]
		}
	}
	sorting.Func(out.Layers, func(a, b study.LayerTime) int { return a.Layer - b.Layer })
	return r.yield(out)
}

// inLayerGraph converts positions among the nodes of all graphs to positions in the graph of a
// layer.
func inLayerGraph(l *weights.Layer, nodes []int) []int {
	first := readers(l)[0] - l.Nodes[0]
	if first == 0 {
		return nodes
	}
	out := make([]int, 0, len(nodes))
	for _, n := range nodes {
		if n >= first {
			out = append(out, n-first)
		}
	}
	return out
}

// method describes how the time of a layer was measured.
func (p *timedPart) method() string {
	if len(p.layers) > 1 {
		return "groups of runs, shared by work with layers computed together"
	}
	return "groups of runs"
}

// column returns one figure of all groups.
func column(ts []groupTimes, f func(*groupTimes) float64) []float64 {
	out := make([]float64, len(ts))
	for i := range ts {
		out[i] = f(&ts[i])
	}
	return out
}

func metric(samples []float64, method string) *profile.Metric {
	return profile.Summarize(profile.Measured, samples, method)
}

// compareWith measures a changed model interleaved with the unchanged one. The returned model has
// results, but a closed session.
func (r *run) compareWith(m *graph.Model, c study.Change) (changed *model, before, after []groupTimes, err error) {
	x, err := r.session(m, allOriginalNodes(r.m, m))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("with %s: %w", Describe(c), err)
	}
	defer func() {
		x.s.Close()
		runtime.GC() // between measurements, since it is off during them
	}()
	x.assign(r.parts)
	before, all, err := r.interleave(x)
	if err != nil {
		return nil, nil, nil, err
	}
	return x, before, all[0], nil
}

// measureChange measures the model with a change of all layers.
func (r *run) measureChange(c study.Change) error {
	m, effects, err := ApplyToAll(r.m, r.layers, c)
	if err != nil {
		return err
	}
	x, before, after, err := r.compareWith(m, c)
	if err != nil {
		return err
	}
	out := &study.SpeedPoints{}
	for i := range r.parts {
		p := &r.parts[i]
		if len(p.layers) == 0 {
			continue
		}
		ratio := metric(ratios(before, after, i), "pairs of interleaved groups of runs")
		was, now := r.dense.kernel(p, i), x.kernel(p, i)
		for k, l := range p.layers {
			pt := study.SpeedPoint{Layer: l, Change: c, Kernel: now, Cause: effects[l].Cause}
			if pt.Cause == "" && len(x.steps[i]) == 0 {
				pt.Cause = study.NotRun
			}
			if pt.Cause == "" {
				pt.Ratio = ratio
				pt.Latency = metric(column(after, func(t *groupTimes) float64 { return t.parts[i] * p.shares[k] }), p.method())
				if now == was {
					pt.Cause = study.NoKernel
				}
			}
			out.Points = append(out.Points, pt)
		}
	}
	for _, l := range r.rest {
		out.Points = append(out.Points, study.SpeedPoint{Layer: l, Change: c, Cause: study.NotRun})
	}
	sorting.Func(out.Points, func(a, b study.SpeedPoint) int { return a.Layer - b.Layer })
	return r.yield(out)
}

// ratios returns the times of a part with the change divided by those without, of adjacent
// groups.
func ratios(before, after []groupTimes, part int) []float64 {
	out := make([]float64, 0, len(before))
	for i := range before {
		if b := before[i].parts[part]; b > 0 {
			out = append(out, after[i].parts[part]/b)
		}
	}
	return out
}

// ApplyToAll makes the model with a change of all layers that support it. Effects are by layer.
func ApplyToAll(m *graph.Model, layers []*weights.Layer, c study.Change) (*graph.Model, []rewrite.Effect, error) {
	return applyToAll(m, layers, c, true)
}

func applyToAll(m *graph.Model, layers []*weights.Layer, c study.Change, remove bool) (*graph.Model, []rewrite.Effect, error) {
	changes := make([]rewrite.Change, len(layers))
	for i, l := range layers {
		changes[i] = rewrite.Change{Layer: l, Change: c}
	}
	return rewrite.Apply(m, changes, rewrite.Options{Remove: remove})
}
