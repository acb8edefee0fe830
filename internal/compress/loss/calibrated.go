package loss

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// The error of a layer's own output says which level of a layer loses more, and nothing of how much the model's outputs suffer from it. A few changes
// of each layer, the anchors, are therefore run end to end on a few samples, and errors of the layer's own output become losses of the model by the
// curve through them: straight on logarithmic scales between two anchors, as a power of the error, and in proportion below the first and above the
// last, since of small errors outputs move with the layer's, so that squares go with squares. Formats have no levels, and errors of another kind than
// weights that are gone: each is its own anchor.

// OwnError is the name of the error of the layer's own output among further metrics of a point.
const OwnError = "output_error"

// anchorLevels are those of single weights, and those of channels and filters, of which few can go before a layer loses all that it knows.
var (
	anchorLevels = []float64{.6, .8, .95}
	removeLevels = []float64{.4, .8}
)

// Samples that anchors are run on: usually mostAnchored, and down to fewestAnchored where all of them take more than anchorWork
// multiply-accumulates, about a minute.
const (
	mostAnchored   = 32
	fewestAnchored = 8
	anchorWork     = 1e12
)

// place is a change of a layer.
type place struct {
	layer  int
	change study.Change
}

// family is what changes share that have the same anchors: those of channels, of filters, which leave whole outputs away, of a format, and all
// others.
func family(c study.Change) study.Change {
	switch {
	case c.Structure.Removes():
		return study.Change{Structure: c.Structure}
	case c.Structure == study.Dense:
		return study.Change{Format: c.Format}
	}
	return study.Change{}
}

// anchorsOf are those of a change.
func anchorsOf(c study.Change) (out []study.Change) {
	levels, s := anchorLevels, study.Unstructured
	switch f := family(c); {
	case f.Format != study.Same:
		return []study.Change{f}
	case f.Structure != study.Dense:
		levels, s = removeLevels, f.Structure
	}
	for _, v := range levels {
		out = append(out, study.Change{Structure: s, Level: v})
	}
	return out
}

// calibration makes losses of the model of errors of layers' own outputs.
type calibration struct {
	j       *Job
	t       together
	anchors map[place]study.LossPoint
	own     map[place]study.LossPoint
	done    map[place]bool
}

// calibrated finds losses of the model by errors of layers' own outputs.
func (j *Job) calibrated(ctx context.Context) error {
	c := &calibration{j: j, anchors: map[place]study.LossPoint{}, own: map[place]study.LossPoint{}, done: map[place]bool{}}
	var extra []study.Change
	for _, x := range j.Settings.Changes {
		for _, a := range anchorsOf(x) {
			if !slices.Contains(extra, a) {
				extra = append(extra, a)
			}
		}
	}
	c.t = j.together(j.Settings.Changes)
	for _, p := range j.Anchors {
		c.anchors[place{p.Layer, p.Change}] = p
	}
	if err := j.ranges(ctx); err != nil { // on all of the data
		return err
	}
	if err := c.run(ctx, extra); err != nil {
		return err
	}
	own := *j
	own.Settings.Method, own.Settings.Metric = study.OutputError, RelativeError
	own.Settings.Changes = slices.Clone(j.Settings.Changes)
	for _, a := range extra {
		if !slices.Contains(own.Settings.Changes, a) {
			own.Settings.Changes = append(own.Settings.Changes, a)
		}
	}
	own.Skip = func(layer int, x study.Change) bool { return !c.needs(layer, x) }
	own.Point = c.add
	own.Progress = nil
	if j.Progress != nil {
		own.Progress = func(share float64, doing string) { j.Progress(anchorShare+(1-anchorShare)*share, doing) }
	}
	return own.output(ctx)
}

// anchorShare is that of the anchors in the work, for people.
const anchorShare = .7

// needs reports whether a change is missing of a layer, or of one that goes with it, or another one that has the same anchors.
func (c *calibration) needs(layer int, like study.Change) bool {
	return slices.ContainsFunc(c.j.Settings.Changes, func(x study.Change) bool {
		return family(x) == family(like) && slices.ContainsFunc(c.t.members(layer, x), func(l int) bool { return !c.j.skips(l, x) })
	})
}

// run finds the anchors that are missing.
func (c *calibration) run(ctx context.Context, changes []study.Change) error {
	a := *c.j
	a.Settings.Method, a.Settings.Changes = study.EndToEnd, changes
	a.Skip = func(layer int, x study.Change) bool {
		_, have := c.anchors[place{layer, x}]
		return have || !c.needs(layer, x)
	}
	a.Point = func(p study.LossPoint) error {
		c.anchors[place{p.Layer, p.Change}] = p
		if c.j.Anchor == nil {
			return nil
		}
		return c.j.Anchor(p)
	}
	a.Energy = nil // of these few samples
	if c.j.Progress != nil {
		a.Progress = func(share float64, doing string) { c.j.Progress(anchorShare*share, doing) }
	}
	if a.Data = a.few(); len(a.asked()) == 0 {
		return nil
	}
	_, err := a.endToEnd(ctx)
	return err
}

// few are the samples that anchors are run on: from all of the data, but the first ones where a run depends on the one before.
func (j *Job) few() *samples.Set {
	attempts := 0
	for _, t := range j.asked() {
		attempts += len(t.changes)
	}
	n := mostAnchored
	if each := weights.MACs(j.Layers) / 2 * float64(attempts); each > 0 { // half the model depends on the layer in the middle
		n = int(min(max(anchorWork/each, fewestAnchored), mostAnchored))
	}
	return some(j.Data, n, !stateful(j.Model))
}

// some are about n samples, spread over the data or the first ones.
func some(data *samples.Set, n int, spread bool) *samples.Set {
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

// add takes the error of a layer's own output, and gives the points that follow.
func (c *calibration) add(p study.LossPoint) error {
	c.own[place{p.Layer, p.Change}] = p
	if !slices.Contains(anchorsOf(p.Change), p.Change) {
		return c.point(p.Layer, p.Change)
	}
	for _, x := range c.j.Settings.Changes {
		if family(x) == family(p.Change) {
			if err := c.point(p.Layer, x); err != nil {
				return err
			}
		}
	}
	return nil
}

// point gives those of a change where all that they follow from is known.
func (c *calibration) point(layer int, x study.Change) error {
	all := c.t.members(layer, x)
	if c.done[place{all[0], x}] || !slices.Contains(c.j.Settings.Changes, x) || !slices.ContainsFunc(all, func(l int) bool { return !c.j.skips(l, x) }) {
		return nil
	}
	for _, y := range append(anchorsOf(x), x) {
		if _, known, _ := c.error(all, y); !known {
			return nil
		}
	}
	c.done[place{all[0], x}] = true
	value, why := c.loss(all, x)
	for _, l := range all {
		p := study.LossPoint{Layer: l, Change: x, Value: value, Cause: why, With: without(all, l)}
		if v, ok := c.own[place{l, x}].Value.Best(); ok && why == "" {
			p.More = map[string]float64{OwnError: v}
		}
		if err := c.j.Point(p); err != nil {
			return err
		}
	}
	return nil
}

// bounds are a figure with the ends of its interval, both itself where it has none.
type bounds struct{ lo, mid, hi float64 }

func boundsOf(m *profile.Metric) (b bounds, ok bool) {
	v, ok := m.Best()
	if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
		return b, false
	}
	if m.CI95 == nil {
		return bounds{v, v, v}, true
	}
	return bounds{m.CI95[0], v, m.CI95[1]}, true
}

// error is the sum of the errors of some layers' own outputs; known is false where one is missing, and a cause says that there is none.
func (c *calibration) error(layers []int, x study.Change) (sum bounds, known bool, why study.Cause) {
	for _, l := range layers {
		p, ok := c.own[place{l, x}]
		if !ok {
			return sum, false, ""
		}
		e, ok := boundsOf(p.Value)
		if !ok {
			return sum, true, cmp.Or(p.Cause, study.NoData)
		}
		sum = bounds{sum.lo + e.lo, sum.mid + e.mid, sum.hi + e.hi}
	}
	return sum, true, ""
}

// loss is that of the model with a change of some layers; of an anchor, what was measured.
func (c *calibration) loss(layers []int, x study.Change) (*profile.Metric, study.Cause) {
	if p, ok := c.anchors[place{layers[0], x}]; ok {
		return p.Value, p.Cause
	}
	own, _, why := c.error(layers, x)
	if why != "" {
		return nil, why
	}
	var errs []float64
	var lo, mid, hi []float64
	var n *int64
	for _, a := range anchorsOf(x) {
		p := c.anchors[place{layers[0], a}]
		e, _, failed := c.error(layers, a)
		v, ok := boundsOf(p.Value)
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
	m := profile.Value(profile.Estimated, through(errs, mid, own.mid), "error of the layer's own output, by runs of the model from the layer on")
	if m.N = n; len(errs) > 0 {
		if a, b := through(errs, lo, own.lo), through(errs, hi, own.hi); a < b {
			m.Band = &[2]float64{min(a, *m.Median), max(b, *m.Median)}
		}
	}
	return m, ""
}

// through is the loss at an error by those at rising errors above zero.
func through(errs, losses []float64, at float64) float64 {
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
	if a <= 0 || b <= 0 { // no power
		return a + (b-a)*(at-errs[k-1])/(errs[k]-errs[k-1])
	}
	return a * math.Pow(b/a, math.Log(at/errs[k-1])/math.Log(errs[k]/errs[k-1]))
}
