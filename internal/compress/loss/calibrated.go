package loss

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// The error of a layer's own output ranks the levels of that layer, but does not say how much the
// model's outputs suffer. Therefore a few changes of each layer, the anchors, are run end to end
// on a few samples. A curve through them converts errors of layer outputs to losses of the model.
// It is linear on logarithmic scales (a power law) between two anchors, and proportional below
// the first and above the last: model outputs are linear in small errors, so squared errors are
// proportional. Formats have no levels and their errors differ from pruning errors, so each
// format is its own anchor.

// OwnError is the name of the layer's own output error among the further metrics of a point.
const OwnError = "output_error"

// anchorLevels are the anchors of unstructured pruning. removeLevels are those of channels and
// filters, of which few can be removed before a layer loses its function.
var (
	anchorLevels = []float64{.6, .8, .95}
	removeLevels = []float64{.4, .8}
)

// Number of samples for anchors: by default maxAnchorSamples, down to minAnchorSamples where all
// anchors need more than anchorWork multiply-accumulates, about a minute.
const (
	maxAnchorSamples = 32
	minAnchorSamples = 8
	anchorWork       = 1e12
)

// layerChange is a change of a layer.
type layerChange struct {
	layer  int
	change study.Change
}

// anchorFamily returns the class of changes that share anchors: channels, filters (which remove
// complete outputs), each format, and all others.
func anchorFamily(c study.Change) study.Change {
	switch {
	case c.Structure.Removes():
		return study.Change{Structure: c.Structure}
	case c.Structure == study.Dense:
		return study.Change{Format: c.Format}
	}
	return study.Change{}
}

// anchorsOf returns the anchors of a change.
func anchorsOf(c study.Change) (out []study.Change) {
	levels, s := anchorLevels, study.Unstructured
	switch f := anchorFamily(c); {
	case f.Format != study.OriginalFormat:
		return []study.Change{f}
	case f.Structure != study.Dense:
		levels, s = removeLevels, f.Structure
	}
	for _, v := range levels {
		out = append(out, study.Change{Structure: s, Level: v})
	}
	return out
}

// calibration converts errors of layer outputs to losses of the model.
type calibration struct {
	j       *Job
	t       coupledLayers
	anchors map[layerChange]study.LossPoint
	own     map[layerChange]study.LossPoint
	done    map[layerChange]bool
}

// calibrated finds losses of the model from errors of layer outputs.
func (j *Job) calibrated(ctx context.Context) error {
	c := &calibration{j: j, anchors: map[layerChange]study.LossPoint{}, own: map[layerChange]study.LossPoint{}, done: map[layerChange]bool{}}
	var extra []study.Change
	for _, x := range j.Settings.Changes {
		for _, a := range anchorsOf(x) {
			indexOrAppend(&extra, a)
		}
	}
	c.t = j.coupledLayers(j.Settings.Changes)
	for _, p := range j.Anchors {
		c.anchors[layerChange{p.Layer, p.Change}] = p
	}
	if err := j.findRanges(ctx); err != nil { // on all of the data
		return err
	}
	if err := c.run(ctx, extra); err != nil {
		return err
	}
	own := *j
	own.Settings.Method, own.Settings.Metric = study.OutputError, RelativeError
	own.Settings.Changes = slices.Clone(j.Settings.Changes)
	for _, a := range extra {
		indexOrAppend(&own.Settings.Changes, a)
	}
	own.Skip = func(layer int, x study.Change) bool { return !c.needs(layer, x) }
	own.Point = c.add
	own.Progress = nil
	if j.Progress != nil {
		own.Progress = func(share float64, doing string) { j.Progress(anchorShare+(1-anchorShare)*share, doing) }
	}
	return own.outputErrors(ctx)
}

// anchorShare is the share of the anchors in the displayed progress.
const anchorShare = .7

// needs reports whether a layer, or one coupled with it, lacks a point of a change in the same
// anchor family.
func (c *calibration) needs(layer int, like study.Change) bool {
	return slices.ContainsFunc(c.j.Settings.Changes, func(x study.Change) bool {
		return anchorFamily(x) == anchorFamily(like) && slices.ContainsFunc(c.t.members(layer, x), func(l int) bool { return !c.j.skips(l, x) })
	})
}

// run measures missing anchors.
func (c *calibration) run(ctx context.Context, changes []study.Change) error {
	a := *c.j
	a.Settings.Method, a.Settings.Changes = study.EndToEnd, changes
	a.Skip = func(layer int, x study.Change) bool {
		_, have := c.anchors[layerChange{layer, x}]
		return have || !c.needs(layer, x)
	}
	a.Point = func(p study.LossPoint) error {
		c.anchors[layerChange{p.Layer, p.Change}] = p
		if c.j.Anchor == nil {
			return nil
		}
		return c.j.Anchor(p)
	}
	a.Energy = nil // not from these few samples
	if c.j.Progress != nil {
		a.Progress = func(share float64, doing string) { c.j.Progress(anchorShare*share, doing) }
	}
	if a.Data = a.anchorSamples(); len(a.wantedTrials()) == 0 {
		return nil
	}
	_, err := a.endToEnd(ctx)
	return err
}

// anchorSamples returns the samples for anchors: spread over the data, or the first ones where a
// run depends on the previous one.
func (j *Job) anchorSamples() *samples.Set {
	attempts := 0
	for _, t := range j.wantedTrials() {
		attempts += len(t.changes)
	}
	n := maxAnchorSamples
	// on average half of the model depends on a layer
	if each := weights.MACs(j.Layers) / 2 * float64(attempts); each > 0 {
		n = int(min(max(anchorWork/each, minAnchorSamples), maxAnchorSamples))
	}
	return pickSamples(j.Data, n, !stateful(j.Model))
}

// pickSamples returns about n samples, spread over the data or the first ones.
func pickSamples(data *samples.Set, n int, spread bool) *samples.Set {
	all := data.Runs()
	k := min((n+data.Batch-1)/data.Batch, all)
	runs := make([]int, k)
	for i := range runs {
		runs[i] = i
		if spread {
			runs[i] = i * all / k
		}
	}
	return data.Pick(runs)
}

// add receives the error of a layer's own output, and reports the points that follow from it.
func (c *calibration) add(p study.LossPoint) error {
	c.own[layerChange{p.Layer, p.Change}] = p
	if !slices.Contains(anchorsOf(p.Change), p.Change) {
		return c.point(p.Layer, p.Change)
	}
	for _, x := range c.j.Settings.Changes {
		if anchorFamily(x) == anchorFamily(p.Change) {
			if err := c.point(p.Layer, x); err != nil {
				return err
			}
		}
	}
	return nil
}

// point reports the points of a change once everything needed is known.
func (c *calibration) point(layer int, x study.Change) error {
	all := c.t.members(layer, x)
	if c.done[layerChange{all[0], x}] || !slices.Contains(c.j.Settings.Changes, x) || !slices.ContainsFunc(all, func(l int) bool { return !c.j.skips(l, x) }) {
		return nil
	}
	for _, y := range append(anchorsOf(x), x) {
		if _, known, _ := c.ownError(all, y); !known {
			return nil
		}
	}
	c.done[layerChange{all[0], x}] = true
	value, why := c.loss(all, x)
	for _, l := range all {
		p := study.LossPoint{Layer: l, Change: x, Value: value, Cause: why, With: rewrite.OtherMembers(all, l)}
		if v, ok := c.own[layerChange{l, x}].Value.Best(); ok && why == "" {
			p.More = map[string]float64{OwnError: v}
		}
		if err := c.j.Point(p); err != nil {
			return err
		}
	}
	return nil
}

// interval is a figure with the ends of its interval, both equal to it if it has none.
type interval struct{ lo, mid, hi float64 }

func intervalOf(m *profile.Metric) (b interval, ok bool) {
	v, ok := m.Best()
	if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
		return b, false
	}
	if m.CI95 == nil {
		return interval{v, v, v}, true
	}
	return interval{m.CI95[0], v, m.CI95[1]}, true
}

// ownError sums the output errors of some layers. known is false where one is missing; a cause
// says that one does not exist.
func (c *calibration) ownError(layers []int, x study.Change) (sum interval, known bool, why study.Cause) {
	for _, l := range layers {
		p, ok := c.own[layerChange{l, x}]
		if !ok {
			return sum, false, ""
		}
		e, ok := intervalOf(p.Value)
		if !ok {
			return sum, true, cmp.Or(p.Cause, study.NoData)
		}
		sum = interval{sum.lo + e.lo, sum.mid + e.mid, sum.hi + e.hi}
	}
	return sum, true, ""
}

// loss returns the loss of the model with a change of some layers; for an anchor the measured
// value.
func (c *calibration) loss(layers []int, x study.Change) (*profile.Metric, study.Cause) {
	if p, ok := c.anchors[layerChange{layers[0], x}]; ok {
		return p.Value, p.Cause
	}
	own, _, why := c.ownError(layers, x)
	if why != "" {
		return nil, why
	}
	var errs []float64
	var lo, mid, hi []float64
	var n *int64
	for _, a := range anchorsOf(x) {
		p := c.anchors[layerChange{layers[0], a}]
		e, _, failed := c.ownError(layers, a)
		v, ok := intervalOf(p.Value)
		switch {
		case p.Cause != "":
			why = p.Cause
		case failed != "":
			why = failed
		case ok && e.mid > 0 && (len(errs) == 0 || e.mid > errs[len(errs)-1]):
			errs, lo, mid, hi = append(errs, e.mid), append(lo, v.lo), append(mid, v.mid), append(hi, v.hi)
			n = p.Value.N
		}
	}
	if own.mid > 0 && len(errs) == 0 {
		return nil, cmp.Or(why, study.NoData)
	}
	m := profile.Value(profile.Estimated, interpolate(errs, mid, own.mid), "layer output error, calibrated by end-to-end runs")
	if m.N = n; len(errs) > 0 {
		if a, b := interpolate(errs, lo, own.lo), interpolate(errs, hi, own.hi); a < b {
			m.Band = &[2]float64{min(a, *m.Median), max(b, *m.Median)}
		}
	}
	return m, ""
}

// interpolate returns the loss at an error, given losses at rising errors above zero.
func interpolate(errs, losses []float64, at float64) float64 {
	k, _ := slices.BinarySearch(errs, at)
	switch n := len(errs); {
	case n == 0 || at <= 0:
		return 0
	case k == 0:
		return losses[0] * at / errs[0]
	case k == n:
		return losses[n-1] * at / errs[n-1]
	}
	a, b := losses[k-1], losses[k]
	if a <= 0 || b <= 0 { // a power law needs positive values
		return a + (b-a)*(at-errs[k-1])/(errs[k]-errs[k-1])
	}
	return a * math.Pow(b/a, math.Log(at/errs[k-1])/math.Log(errs[k]/errs[k-1]))
}
