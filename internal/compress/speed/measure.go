package speed

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

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

// Options say what to measure and how.
type Options struct {
	// Engine says how sessions are made, with its registry and threads.
	Engine engine.Options
	// Inputs are those of the model, of the batch that is meant.
	Inputs []*tensor.Tensor
	// Changes are made to all layers at once, one after the other, those that make layers smaller group by group; those that Have
	// reports are left out. It is asked for the zero change, too: whether the unchanged model was measured.
	Changes []study.Change
	Have    func(study.Change) bool
	// Time is how long a changed model and the unchanged one take turns; 0 means 400 ms. It is more where six
	// pairs of groups take longer.
	Time time.Duration
	// NoLimits leaves out what bounds layers, for which the peaks of this computer are measured.
	NoLimits bool
	// Progress is told what is being done and how far it is, from 0 to 1. May be nil.
	Progress func(phase string, fraction float64)
}

// Bounds of a comparison.
const (
	turn  = 10 * time.Millisecond // of runs between two changes of the model
	least = 3                     // turns of ABBA: six pairs, from which on there is an interval
	most  = 40
)

// UsualTime is how long a changed model and the unchanged one take turns where nobody says.
const UsualTime = 400 * time.Millisecond

// ErrNothing tells that no layer of a model runs that has weights.
var ErrNothing = errors.New("no layer with weights runs")

// Measure finds the times of layers, unchanged and with each change, and yields them as it finds them.
func Measure(ctx context.Context, m *graph.Model, layers []*weights.Layer, o Options, yield func(*study.SpeedPoints) error) error {
	release, err := loop.Lease(ctx)
	if err != nil {
		return err
	}
	defer release()
	defer loop.Quiet(machine.HeapRoom())()
	r := &run{m: m, layers: layers, o: &o, ctx: ctx, yield: yield}
	if r.o.Time == 0 {
		r.o.Time = UsualTime
	}
	if r.dense, err = r.session(m, nil); err != nil {
		return err
	}
	defer r.dense.s.Close()
	r.parts, r.rest = parts(layers, allSteps(r.dense.s))
	if len(r.parts) == 0 {
		return r.nothing()
	}
	r.group()
	r.dense.assign(r.parts)
	r.progress("warming up", 0)
	if err := r.warm(); err != nil {
		return err
	}
	if !r.have(study.Change{}) {
		if err := r.unchanged(); err != nil {
			return err
		}
	}
	for i, c := range o.Changes {
		r.progress("measuring "+Words(c), float64(i)/float64(len(o.Changes)))
		if c.IsZero() || r.have(c) {
			continue
		}
		change := r.changed
		if c.Structure.Removes() {
			change = r.grouped
		}
		if err := change(c); err != nil {
			return err
		}
	}
	return yield(&study.SpeedPoints{Done: true})
}

// nothing says why no layer runs, by the first that fails.
func (r *run) nothing() error {
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

// Words names a change for people.
func Words(c study.Change) string {
	s := string(c.Structure)
	if c.Structure != study.Dense {
		s += fmt.Sprintf(" %g %%", 100*c.Level)
	}
	if c.Format != study.OriginalFormat {
		if s != "" {
			s += ", "
		}
		s += string(c.Format)
	}
	if s == "" {
		return "unchanged"
	}
	return s
}

// run is one measurement.
type run struct {
	m      *graph.Model
	layers []*weights.Layer
	o      *Options
	ctx    context.Context
	yield  func(*study.SpeedPoints) error
	dense  *model
	parts  []part
	rest   []int
	groups map[study.Structure][][]group // by model
	each   time.Duration                 // of an inference of the unchanged model
	took   []float64                     // room for the times of a group
}

func (r *run) progress(phase string, f float64) {
	if r.o.Progress != nil {
		r.o.Progress(phase, f)
	}
}

func (r *run) have(c study.Change) bool { return r.o.Have != nil && r.o.Have(c) }

// model is a model that is made ready to run.
type model struct {
	m      *graph.Model
	s      *engine.Session
	t      *engine.Timing
	stands []int   // see trace
	steps  [][]int // by part
}

// session makes a model ready. stands is nil for the unchanged one.
func (r *run) session(m *graph.Model, stands []int) (*model, error) {
	s, err := engine.New(m, r.o.Inputs, r.o.Engine)
	if err != nil {
		return nil, err
	}
	x := &model{m: m, s: s, stands: stands}
	if stands == nil {
		x.stands = traces(m, m)
	}
	for { // a node that fails is taken out, so that the rest can be measured
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

func (x *model) assign(ps []part) {
	for i := range ps {
		x.steps = append(x.steps, ps[i].steps(x.stands))
	}
}

// kernel names what computes a part: that of the first of its steps which is of the layer itself.
func (x *model) kernel(p *part, i int) string {
	all := allSteps(x.s)
	for _, s := range x.steps[i] {
		if x.stands[s] == p.step && all[s].Kernel != "" && all[s].State == engine.Runs && !moves(all[s].Node) {
			return all[s].Kernel
		}
	}
	for _, s := range x.steps[i] {
		if all[s].State == engine.Runs && all[s].Kernel != "" {
			return all[s].Kernel
		}
	}
	return ""
}

// moves reports whether an operator converts numbers and computes nothing.
func moves(n *graph.Node) bool {
	switch n.Op {
	case "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "Cast", "QUANTIZE", "DEQUANTIZE", "CAST":
		return true
	}
	return false
}

// times are medians over a group of runs, in seconds: of an inference, and of each part. A run that another program
// disturbed moves them little.
type times struct {
	whole float64
	parts []float64
}

// runs runs a model n times after one run that does not count, since the caches hold what the other needs.
func (r *run) runs(x *model, n int) (times, error) {
	t := times{parts: make([]float64, len(x.steps))}
	if err := x.s.Run(r.ctx); err != nil {
		return t, err
	}
	rows := 1 + len(x.steps)
	if cap(r.took) < rows*n {
		r.took = make([]float64, rows*n)
	}
	took := r.took[:rows*n] // by part, the whole first
	for k := range n {
		if err := x.s.RunTimed(r.ctx, x.t); err != nil {
			return t, err
		}
		b := x.t.Bounds
		took[k] = float64(b[len(b)-1]-b[0]) * 1e-9
		for i, steps := range x.steps {
			sum := int64(0)
			for _, s := range steps {
				sum += x.spent(s)
			}
			took[(i+1)*n+k] = float64(sum) * 1e-9
		}
	}
	t.whole = stats.Median(took[:n])
	for i := range t.parts {
		t.parts[i] = stats.Median(took[(i+1)*n : (i+2)*n])
	}
	return t, nil
}

// settle is how long a model warms up at least.
func (r *run) settle() time.Duration { return min(r.o.Time, UsualTime) }

// warm runs the unchanged model until its time is steady, for at most three times as long as it warms up, and at least three times.
func (r *run) warm() error {
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
		if len(took) >= 3 && since > 3*r.settle() || len(took) >= 20 && since > r.settle() && j.Steady != nil && *j.Steady {
			r.each = time.Duration(stats.Median(late) * 1e9)
			return nil
		}
	}
}

// size is how many runs of a model make a group.
func (r *run) size() int { return max(1, int(turn/max(r.each, 1))) }

// unchanged measures the model as it is.
func (r *run) unchanged() error {
	r.progress("measuring the model as it is", 0)
	var got []times
	for begin := time.Now(); len(got) < 2*least || time.Since(begin) < r.o.Time && len(got) < 4*most; {
		t, err := r.runs(r.dense, r.size())
		if err != nil {
			return err
		}
		got = append(got, t)
	}
	out := &study.SpeedPoints{Latency: metric(column(got, func(t *times) float64 { return t.whole }), "groups of runs")}
	seconds := map[int]float64{}
	for i := range r.parts {
		p := &r.parts[i]
		fused := slices.DeleteFunc(slices.Clone(p.nodes), func(n int) bool {
			return slices.ContainsFunc(p.layers, func(l int) bool { return slices.Contains(readers(r.layers[l]), n) })
		})
		kernel := r.dense.kernel(p, i)
		for k, l := range p.layers {
			m := metric(column(got, func(t *times) float64 { return t.parts[i] * p.shares[k] }), p.method())
			seconds[l] = stats.Median(column(got, func(t *times) float64 { return t.parts[i] }))
			out.Layers = append(out.Layers, study.LayerTime{Layer: l, Latency: m, Kernel: kernel, Fused: within(r.layers[l], fused)})
		}
	}
	if !r.o.NoLimits {
		limits := r.limits(seconds)
		for i := range out.Layers {
			out.Layers[i].Limit = limits[out.Layers[i].Layer]
		}
	}
	slices.SortFunc(out.Layers, func(a, b study.LayerTime) int { return a.Layer - b.Layer })
	return r.yield(out)
}

// within are positions of nodes in the graph of a layer, of those among the nodes of all graphs.
func within(l *weights.Layer, nodes []int) []int {
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

// method says how the time of a layer came about.
func (p *part) method() string {
	if len(p.layers) > 1 {
		return "groups of runs, shared by work with layers computed together"
	}
	return "groups of runs"
}

// column picks one figure of all groups.
func column(ts []times, f func(*times) float64) []float64 {
	out := make([]float64, len(ts))
	for i := range ts {
		out[i] = f(&ts[i])
	}
	return out
}

func metric(samples []float64, method string) *profile.Metric {
	return profile.Summarize(profile.Measured, samples, method)
}

// against measures a changed model in turns with the unchanged one. Of the former there is what was found, and no session.
func (r *run) against(m *graph.Model, c study.Change) (changed *model, before, after []times, err error) {
	x, err := r.session(m, traces(r.m, m))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("with %s: %w", Words(c), err)
	}
	defer func() {
		x.s.Close()
		runtime.GC() // between measurements, since it is off within them
	}()
	x.assign(r.parts)
	before, all, err := r.turns(x)
	if err != nil {
		return nil, nil, nil, err
	}
	return x, before, all[0], nil
}

// changed measures the model with a change of all layers in turns with the unchanged one.
func (r *run) changed(c study.Change) error {
	m, effects, err := Changed(r.m, r.layers, c)
	if err != nil {
		return err
	}
	x, before, after, err := r.against(m, c)
	if err != nil {
		return err
	}
	out := &study.SpeedPoints{}
	for i := range r.parts {
		p := &r.parts[i]
		if len(p.layers) == 0 {
			continue
		}
		ratio := metric(ratios(before, after, i), "pairs of groups in turns")
		was, now := r.dense.kernel(p, i), x.kernel(p, i)
		for k, l := range p.layers {
			pt := study.SpeedPoint{Layer: l, Change: c, Kernel: now, Cause: effects[l].Cause}
			if pt.Cause == "" && len(x.steps[i]) == 0 {
				pt.Cause = study.NotRun
			}
			if pt.Cause == "" {
				pt.Ratio = ratio
				pt.Latency = metric(column(after, func(t *times) float64 { return t.parts[i] * p.shares[k] }), p.method())
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
	slices.SortFunc(out.Points, func(a, b study.SpeedPoint) int { return a.Layer - b.Layer })
	return r.yield(out)
}

// ratios are the times of a part with the change by those without, of neighbouring groups.
func ratios(before, after []times, part int) []float64 {
	out := make([]float64, 0, len(before))
	for i := range before {
		if b := before[i].parts[part]; b > 0 {
			out = append(out, after[i].parts[part]/b)
		}
	}
	return out
}

// Changed makes the model with a change of all layers that can have it. Effects are by layer.
func Changed(m *graph.Model, layers []*weights.Layer, c study.Change) (*graph.Model, []rewrite.Effect, error) {
	changes := make([]rewrite.Change, len(layers))
	for i, l := range layers {
		changes[i] = rewrite.Change{Layer: l, Change: c}
	}
	return rewrite.Apply(m, changes, rewrite.Options{Remove: c.Structure.Removes()})
}
