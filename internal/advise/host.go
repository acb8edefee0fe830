package advise

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/measure/ab"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// Reasons why rules say nothing.
const (
	noTimes = "no time of the model is known"
	noModel = "the model's file is not known: advice needs its graph"
	noProbe = "it is measured with a model, not with a saved profile: opmeter advise MODEL"
	small   = "the pessimistic end of the expected gain is below 2 %"
)

// int8 measures the model with the weights of some layers in int8. What that gains depends on the
// processor, the sizes of the layers and what is converted between them: no rule of thumb holds.
func (f *Facts) int8(r formatRule, what string) ([]*Advice, string) {
	if f.Model == nil {
		return nil, noModel
	}
	layers := f.classed(r.class)
	share, _, _ := f.share(layers)
	if share < leastShare {
		return nil, fmt.Sprintf("%s take %s of the time", what, percent(share))
	}
	if f.Probe == nil {
		return nil, noProbe
	}
	v, err := changeFormat(r)(context.Background(), f)
	if err != nil {
		return nil, err.Error()
	}
	return f.probeModel(v, 0, 1, fmt.Sprintf("%s of the time is in %s of float32.", percent(share), plural(len(layers), "layer")), layers,
		Figure{"share of the time", share, "1"}, Figure{"layers", float64(len(layers)), ""})
}

func (f *Facts) staticInt8() ([]*Advice, string) {
	return f.int8(int8Rule, "layers that multiply float32 by weights")
}

func (f *Facts) dynamicInt8() ([]*Advice, string) {
	if f.Model != nil && f.Model.Format != "onnx" {
		return nil, "TFLite has no such operators"
	}
	return f.int8(dynamicRule, "matrix multiplications of float32 by weights")
}

// formatRule is a change of the weights' format: of which layers.
type formatRule struct {
	format study.Format
	layers func(*weights.Layer) bool
	class  func(*profile.Layer) bool // of the layers that gain; nil for all
}

var (
	int8Rule    = formatRule{study.Int8, func(l *weights.Layer) bool { return !lookup(l) }, floatWeights}
	dynamicRule = formatRule{study.Dynamic8, func(l *weights.Layer) bool { return !lookup(l) }, floatMatrix}
	tableRule   = formatRule{study.Weight8, lookup, nil}
)

// lookup reports whether a layer is a table that an operator gathers rows from.
func lookup(l *weights.Layer) bool {
	return slices.Contains([]string{"Gather", "GATHER", "EMBEDDING_LOOKUP"}, l.Op)
}

func changeFormat(r formatRule) func(context.Context, *Facts) (*Variant, error) {
	return func(_ context.Context, f *Facts) (*Variant, error) {
		keep := r.layers
		if r.class != nil && f.Profile.Target.Kind == profile.TargetHost {
			keep = func(l *weights.Layer) bool { return r.layers(l) && f.gains(l, r.class) }
		}
		m, err := quantised(f.Model, f.Feed, r.format, keep)
		return variant(m, err)
	}
}

// gains reports whether a layer is of a class that gains: kernels for sparse weights, for instance,
// lose by int8.
func (f *Facts) gains(l *weights.Layer, class func(*profile.Layer) bool) bool {
	return l.Graph == 0 && !slices.ContainsFunc(l.Nodes, func(n int) bool {
		at, ok := f.layers[n]
		return !ok || !class(&f.Profile.Layers[at])
	})
}

// variant is a variant of a changed model, which is nil where nothing changed.
func variant(m *graph.Model, err error) (*Variant, error) {
	if err == nil && m == nil {
		err = errNoChange
	}
	if err != nil {
		return nil, err
	}
	return &Variant{Model: m}, nil
}

// removal makes the advice to remove nodes of the graph: it saves what they take. none is the
// reason where there are no such nodes.
func (f *Facts) removal(nodes []int, kept float64, none, what string) ([]*Advice, string) {
	now, ok := f.timed()
	if !ok {
		return nil, noTimes
	}
	if len(nodes) == 0 {
		return nil, none
	}
	var layers []int
	for _, n := range nodes {
		if at, ok := f.layers[n]; ok && f.Profile.Layers[at].State == profile.Ran {
			layers = append(layers, at)
		}
	}
	share, low, high := f.share(layers)
	// What remains may run slower without the nodes: they brought its operands into the caches.
	g, ok := promise(now, 1-share*(1-kept), 1-high, 1-low*(1-kept)/2, FromProfile, "shares of the layers with their intervals; at least half of it, since operands change their layout")
	if !ok {
		return nil, fmt.Sprintf("they take %s of the time", percent(share))
	}
	return []*Advice{{
		Reason:  fmt.Sprintf(what, len(layers), percent(share)),
		Figures: []Figure{{"layers", float64(len(layers)), ""}, {"share of the time", share, "1"}},
		Layers:  indices(layers), Gain: g,
	}}, ""
}

// absent says that the model has no operators of some kinds, or that none of them has a property.
func (f *Facts) absent(what, property string, ops ...string) string {
	n := 0
	for _, node := range f.Model.Main().Nodes {
		if slices.Contains(ops, node.Op) {
			n++
		}
	}
	if n == 0 {
		return "the model has none"
	}
	return fmt.Sprintf("the model has %s; none %s", plural(n, what), property)
}

func (f *Facts) transposes() ([]*Advice, string) {
	if f.Model == nil {
		return nil, noModel
	}
	none := f.absent("transposition", "cancels with another one", "Transpose", "TRANSPOSE")
	return f.removal(rewrite.CancellingTransposes(f.Model), 0, none, "%d transpositions cancel and take %s of the time.")
}

func changeTransposes(_ context.Context, f *Facts) (*Variant, error) {
	m, removed := rewrite.CancelTransposes(f.Model)
	if len(removed) == 0 {
		m = nil
	}
	return variant(m, nil)
}

func (f *Facts) batchNorm() ([]*Advice, string) {
	if f.Model == nil {
		return nil, noModel
	}
	_, folded := rewrite.FoldBatchNorm(f.Model)
	none := f.absent("batch normalisation", "follows a layer with constant float32 weights whose output goes nowhere else", "BatchNormalization")
	return f.removal(folded, 0, none, "%d batch normalisations run as operators of their own and take %s of the time.")
}

func changeBatchNorm(_ context.Context, f *Facts) (*Variant, error) {
	m, folded := rewrite.FoldBatchNorm(f.Model)
	if len(folded) == 0 {
		m = nil
	}
	return variant(m, nil)
}

// threadsOf is the number of threads of the run, 0 if unknown.
func (f *Facts) threadsOf() int {
	if n := f.Profile.Settings.Threads; n != nil {
		return int(*n)
	}
	return 0
}

// processors is the number of processors that the run may use, 0 if unknown.
func (f *Facts) processors() int {
	h := f.Profile.Host
	switch {
	case h == nil:
		return 0
	case len(h.AffinityCPUs) > 0:
		return len(h.AffinityCPUs)
	case h.CPUs != nil:
		return int(*h.CPUs)
	}
	return 0
}

// probe measures another number of threads for a short time: whether threads help depends on the
// processors that are free now, which no factor knows.
func (f *Facts) probe(threads int, reason string) ([]*Advice, string) {
	if f.Probe == nil {
		return nil, noProbe
	}
	now, ok := f.timed()
	if !ok {
		return nil, noTimes
	}
	v := &Variant{Threads: threads}
	res, err := f.Probe(v)
	if err != nil {
		return nil, err.Error()
	}
	if len(res.Comparisons) == 0 {
		return nil, f.tooShort(v)
	}
	c := &res.Comparisons[0]
	g, ok := later(now, c)
	if !ok || c.High > 1-leastProbed {
		return nil, fmt.Sprintf("with %s it takes %.2f times the time (%.2f to %.2f, measured now); to advise it, the interval must save %s or more", plural(threads, "thread"), c.Ratio, c.Low, c.High, percent(leastProbed))
	}
	return []*Advice{{
		Reason:  fmt.Sprintf(reason, c.Ratio, c.Low, c.High),
		Figures: []Figure{{"time as a part of that now", c.Ratio, "1"}, {"processors", float64(f.processors()), ""}},
		Gain:    g, Try: f.render(fmt.Sprintf("opmeter profile MODEL INPUTS --threads %d", threads)), threads: threads,
	}}, ""
}

func (f *Facts) moreThreads() ([]*Advice, string) {
	switch n, cpus := f.threadsOf(), f.processors(); {
	case n != 1:
		return nil, fmt.Sprintf("the run has %d threads", n)
	case cpus < 2:
		return nil, fmt.Sprintf("%d processors may be used", cpus)
	default:
		return f.probe(cpus, fmt.Sprintf("%d processors may be used; with a thread on each the model takes %%.2f times the time (%%.2f to %%.2f).", cpus))
	}
}

func (f *Facts) fewerThreads() ([]*Advice, string) {
	n, cpus := f.threadsOf(), f.processors()
	if n < 2 {
		return nil, "the run has one thread"
	}
	to := 1
	if n > cpus && cpus > 1 {
		to = cpus
	}
	return f.probe(to, fmt.Sprintf("%d threads on %s do not help: with %d the model takes %%.2f times the time (%%.2f to %%.2f).", n, plural(cpus, "processor"), to))
}

// batchSize is the batch that is measured.
const batchSize = 8

func (f *Facts) batches() ([]*Advice, string) {
	if why := f.fixedBatch(); why != "" {
		return nil, why
	}
	now, ok := f.timed()
	switch {
	case !ok:
		return nil, noTimes
	case f.Probe == nil:
		return nil, noProbe
	case now*batchSize > ProbeTime.Seconds()/20:
		return nil, fmt.Sprintf("a batch of %d would take about %s, too long for a short run: opmeter sweep --batch 1,%d measures it", batchSize, duration(now*batchSize), batchSize)
	}
	return f.probeModel(&Variant{Batch: batchSize}, 0, 1, fmt.Sprintf("The inputs have a batch dimension, and the items of a batch share fixed costs and the reading of %s of weights.", bytes(f.weightBytes())), nil,
		Figure{"items in a batch", batchSize, ""})
}

// weightBytes is the size of the weights, 0 if unknown.
func (f *Facts) weightBytes() int64 {
	if n := f.Profile.Totals.WeightsBytes; n != nil {
		return *n
	}
	return 0
}

// fixedBatch says why the batch cannot be changed, "" if it can.
func (f *Facts) fixedBatch() string {
	if f.Model == nil {
		return noModel
	}
	ins := f.Profile.Model.Inputs
	if len(ins) == 0 {
		return "the model has no inputs"
	}
	for i := range ins {
		t := &ins[i]
		if t.Constant {
			continue
		}
		if len(t.Shape) == 0 || t.Shape[0] != 1 {
			return fmt.Sprintf("input %s has no batch of 1", t.Name)
		}
	}
	feed := f.Feed
	feed.Batch = batchSize
	shapes, err := outputShapes(f.Model, feed)
	if err != nil || slices.ContainsFunc(shapes, func(d []int) bool { return len(d) == 0 || d[0] != batchSize }) {
		return "the model has a fixed batch" // a constant shape inside it, for instance
	}
	return ""
}

func changeBatch(_ context.Context, f *Facts) (*Variant, error) {
	if why := f.fixedBatch(); why != "" {
		return nil, errors.New(why)
	}
	return &Variant{Batch: batchSize}, nil
}

func (f *Facts) first() ([]*Advice, string) {
	now, ok := f.timed()
	ph := f.Profile.Phases
	if !ok || ph == nil || ph.LoadS == nil || ph.PlanS == nil || ph.FirstRunS == nil {
		return nil, "the phases before steady state are not known"
	}
	all := *ph.PlanS + *ph.FirstRunS // loading may be shared by processes: it is told apart
	if all < 10*now || all < 1e-3 {
		return nil, fmt.Sprintf("planning and the first inference take %s, a later one %s", duration(all), duration(now))
	}
	if f.Model != nil && f.Probe != nil {
		return f.firstProbed(now)
	}
	g, ok := promise(all, now/all, now/all/10, min(10*now/all, 0.5), FromProfile, "phases of this run, measured once each: a factor of ten either way")
	if !ok {
		return nil, small
	}
	return []*Advice{{
		Reason:  fmt.Sprintf("Planning (%s) and the first inference (%s) take %.0f times as long as a later one (%s); loading the file takes %s.", duration(*ph.PlanS), duration(*ph.FirstRunS), all/now, duration(now), duration(*ph.LoadS)),
		Figures: []Figure{{"plan", *ph.PlanS, "s"}, {"first inference", *ph.FirstRunS, "s"}, {"later inference", now, "s"}, {"load", *ph.LoadS, "s"}},
		Gain:    g,
	}}, ""
}

// firstFactor is the least ratio of a first inference to a later one, and firstBand widens the
// interval of the short run: what planning takes depends on the caches more than inferences do.
const (
	firstFactor = 10
	firstBand   = 2
)

// firstProbed measures planning and the first inference in several sessions: the phases of a profile
// are measured once.
func (f *Facts) firstProbed(now float64) ([]*Advice, string) {
	res, err := f.Probe(&Variant{Keep: true})
	if err != nil {
		return nil, err.Error()
	}
	if len(res.Comparisons) == 0 {
		return nil, f.tooShort(&Variant{Keep: true})
	}
	c := &res.Comparisons[0]
	if !(c.Ratio > 0 && c.Ratio*firstFactor < 1) {
		return nil, fmt.Sprintf("planning and the first inference take %.1f times as long as a later one (measured now)", 1/c.Ratio)
	}
	all := now / c.Ratio
	g, ok := promise(all, c.Ratio, c.Low/firstBand, min(c.High*firstBand, 0.5), FromProbe,
		fmt.Sprintf("a short interleaved run of %d sessions here now; its interval is widened by a factor of %d for other states of the caches", c.Processes, firstBand))
	if !ok {
		return nil, small
	}
	ph := f.Profile.Phases
	return []*Advice{{
		Reason:  fmt.Sprintf("Planning and the first inference take %.0f times as long as a later one (%s), measured now. In the profile, planning took %s and the first inference %s; loading the file took %s.", 1/c.Ratio, duration(now), duration(*ph.PlanS), duration(*ph.FirstRunS), duration(*ph.LoadS)),
		Figures: []Figure{{"time as a part of that now", c.Ratio, "1"}, {"plan", *ph.PlanS, "s"}, {"first inference", *ph.FirstRunS, "s"}, {"later inference", now, "s"}, {"load", *ph.LoadS, "s"}},
		Gain:    g,
	}}, ""
}

// leastFaster is how much faster another engine has to be in one process to be measured in several.
const leastFaster = 0.05

func (f *Facts) otherEngine() ([]*Advice, string) {
	now, ok := f.timed()
	o := f.Profile.Other
	if !ok || o == nil || o.Latency == nil {
		return nil, "no other engine was measured beside this one"
	}
	v, ok := o.Latency.Best()
	if !ok {
		return nil, "no other engine was measured beside this one"
	}
	if v > now*(1-leastFaster) {
		return nil, fmt.Sprintf("%s takes %s, opmeter's engine %s", o.Title, duration(v), duration(now))
	}
	// Both latencies are of one process each, one after the other.
	if f.Beside == nil {
		return nil, fmt.Sprintf("%s took %s in one process: %s compares both in several", o.Title, duration(v),
			strings.Replace(f.render("opmeter ab MODEL INPUTS --engine opmeter,ENGINE"), "ENGINE", o.Engine, 1))
	}
	res, err := f.Beside(o.Engine)
	if err != nil {
		return nil, err.Error()
	}
	if len(res.Comparisons) == 0 {
		return nil, fmt.Sprintf("the short run with %s ended before %d rounds were measured", o.Title, ab.MinProcesses)
	}
	c := &res.Comparisons[0]
	measured := fmt.Sprintf("%s takes %.2f times the time of opmeter's engine (%.2f to %.2f, measured now in %d processes)", o.Name(), c.Ratio, c.Low, c.High, c.Processes)
	g, ok := later(now, c)
	if !ok || c.High > 1-leastProbed {
		return nil, fmt.Sprintf("%s; to advise it, the interval must save %s or more", measured, percent(leastProbed))
	}
	return []*Advice{{
		Reason:  measured + ".",
		Figures: []Figure{{"time as a part of that now", c.Ratio, "1"}, {"latency", now, "s"}}, Gain: g,
		Try: strings.Replace(f.command(RuleOf("other-engine")), "ENGINE", o.Engine, 1),
	}}, ""
}
