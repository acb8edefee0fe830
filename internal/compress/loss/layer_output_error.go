package loss

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/compress/mask"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// momentGroup is a group of layers that read the same inputs in the same way and share moments.
type momentGroup struct {
	products []*linearOp // of the first layer
	layers   []*groupLayer
	m        *moments
	failed   error
	// totals and counts are by linear operator where there are several.
	totals [][]float64
	counts []int
}

// groupLayer is a layer of a group.
type groupLayer struct {
	index    int
	layer    *weights.Layer
	products []*linearOp
	// bias has the biases of the operators as real numbers; nil for none.
	bias   [][]float64
	sketch *sketch     // nil where not needed or not possible
	order  *mask.Order // of unstructured pruning by magnitude; nil where not needed
	// waiting are changes that need ranges first.
	waiting []pendingInt8
}

// slots bounds the number of groups of runs for intervals.
const slots = 64

// slotOf returns the slot of a run of n.
func slotOf(run, n int) int {
	if n <= slots {
		return run
	}
	return run * slots / n
}

// outputErrors finds the errors of layer outputs.
func (j *Job) outputErrors(ctx context.Context) error {
	if err := j.mainGraphErrors(ctx); err != nil {
		return err
	}
	return j.subgraphErrors(ctx)
}

// mainGraphErrors does so for the layers of the main graph.
func (j *Job) mainGraphErrors(ctx context.Context) error {
	blocks, alone, err := j.momentGroups()
	if err != nil {
		return err
	}
	for i, b := range blocks {
		if err := j.collectMoments(ctx, b, false, float64(i)/float64(len(blocks)), 1/float64(len(blocks))); err != nil {
			return err
		}
		for _, u := range b {
			for _, l := range u.layers {
				if u.failed != nil {
					alone = append(alone, l.index)
					continue
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := j.layerPoints(ctx, u, l); err != nil {
					return err
				}
			}
			u.m = nil
		}
		if err := j.int8Points(ctx, b); err != nil {
			return err
		}
	}
	slices.Sort(alone)
	for i, k := range alone {
		j.progress(float64(i)/float64(len(alone)), "%s alone", j.Layers[k].Name)
		if err := j.runIsolated(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// momentGroups groups layers that share moments, in blocks that fit the memory. alone are layers
// that are not linear in their weights.
func (j *Job) momentGroups() (blocks [][]*momentGroup, alone []int, err error) {
	by := map[string]*momentGroup{}
	var all []*momentGroup
	for i, l := range j.Layers {
		cs := j.missingChanges(i)
		if len(cs) == 0 || l.Graph > 0 {
			continue
		}
		if why := unchangeable(l, cs); why != "" {
			if err := j.reportCause(i, cs, why); err != nil {
				return nil, nil, err
			}
			continue
		}
		ps, ok := linearOpsOf(j.Model, l)
		if !ok {
			alone = append(alone, i)
			continue
		}
		key := ""
		for _, p := range ps {
			key += p.key()
		}
		u := by[key]
		if u == nil {
			u = &momentGroup{products: ps}
			by[key], all = u, append(all, u)
		}
		u.layers = append(u.layers, &groupLayer{index: i, layer: l, products: ps})
	}
	left := 0
	for _, u := range all {
		l := u.layers[0].layer
		n := momentBytes(l.Groups, l.Cols)
		if len(blocks) == 0 || n > left {
			blocks, left = append(blocks, nil), j.limit()
		}
		left -= n
		blocks[len(blocks)-1] = append(blocks[len(blocks)-1], u)
	}
	return blocks, alone, nil
}

// unchangeable returns the cause why none of the changes can be made, "" where some can.
func unchangeable(l *weights.Layer, cs []study.Change) study.Cause {
	if l.Fixed == study.AllZero && slices.ContainsFunc(cs, func(c study.Change) bool { return c.Format != study.OriginalFormat }) {
		return ""
	}
	return l.Fixed
}

// key identifies the inputs of an operator.
func (p *linearOp) key() string {
	at := p.node.Attrs
	s := fmt.Sprint(p.kind, p.operand.transposed, p.data, p.scale, p.zero, p.layer.Groups, p.layer.Channels, p.layer.Taps, p.window, p.node.Domain)
	for _, n := range []string{"strides", "pads", "dilations", "output_padding", "output_shape"} {
		s += fmt.Sprint(at.Ints(n))
	}
	for _, n := range []string{"stride_d", "stride_h", "stride_w", "dilation_d_factor", "dilation_h_factor", "dilation_w_factor"} {
		s += fmt.Sprint(at.Int(n, 1), ",")
	}
	s += at.Str("auto_pad", "") + at.Str("padding", "")
	if p.transposed != "" {
		s += fmt.Sprint(at.Bool(p.transposed, false))
	}
	if p.kind == deconvLast {
		s += fmt.Sprint(p.node.Inputs[0])
	}
	return s + ";"
}

// collectMoments computes the moments of groups in a single pass over the data.
func (j *Job) collectMoments(ctx context.Context, us []*momentGroup, squares bool, from, part float64) error {
	sets := make([][]int, len(us))
	for i, u := range us {
		l := u.layers[0].layer
		u.m = newMoments(l.Groups, l.Cols, j.pool)
		u.m.runs = j.Data.Runs()
		u.m.indexInputs = u.products[0].kind == lookup
		u.m.squaresOnly = squares || u.m.indexInputs
		for _, m := range u.layers {
			for _, p := range m.products {
				sets[i] = append(sets[i], p.neededValues()...)
				if p.kind == deconvLast {
					sets[i] = append(sets[i], p.node.Inputs[0])
				}
			}
		}
		if len(u.products) > 1 {
			u.totals, u.counts = make([][]float64, len(u.products)), make([]int, len(u.products))
			for i := range u.totals {
				u.totals[i] = make([]float64, l.Groups*l.Cols)
			}
		}
	}
	s := scratch{pool: j.pool}
	runs := j.Data.Runs()
	err := runPassBySet(ctx, j.Model, j.Data, sets, j.Threads, func(run, set int, v values) error {
		if set == 0 {
			j.progress(from+part*0.7*float64(run+1)/float64(runs), "sample %d of %d", (run+1)*j.Data.Batch, j.Data.Len())
		}
		us[set].addRun(run, runs, v, &s, j.limit(), j.Seed)
		return nil
	})
	for _, u := range us {
		u.m.finish()
	}
	return err
}

// addRun adds a run, unless an earlier one failed.
func (u *momentGroup) addRun(run, runs int, v values, s *scratch, limit int, seed uint64) {
	if run == 0 {
		u.prepare(v, runs, limit, seed)
	}
	if u.failed != nil {
		return
	}
	u.m.beginRun(u.slot(run, runs))
	for _, s := range u.m.sketches {
		s.begin(slotOf(run, runs))
	}
	u.failed = u.gather(v, s)
}

// slot returns the energy slot of a run: a single one, except for index inputs.
func (u *momentGroup) slot(run, runs int) int {
	if !u.m.indexInputs || u.m.cols*min(runs, slots) > 1<<26 {
		return 0
	}
	return slotOf(run, runs)
}

// prepare inspects the first run: the number of inputs to expect, and the biases.
func (u *momentGroup) prepare(v values, runs, limit int, seed uint64) {
	n := 0
	for _, p := range u.products {
		if t := v(p.data); t != nil {
			n += t.Len() / max(1, p.layer.Channels*p.layer.Groups) * runs
		}
	}
	few := n*4 < u.m.cols || momentBytes(u.m.groups, u.m.cols) > limit
	u.m.keepInputs = few && !u.m.indexInputs && !u.m.squaresOnly && u.products[0].kind != lookup
	if u.m.keepInputs && 4*n*u.m.cols*u.m.groups > limit {
		u.failed = errors.New("needs more memory than the limit")
	}
	for _, l := range u.layers {
		l.bias = make([][]float64, len(l.products))
		for i, p := range l.products {
			b, ok := p.realBias(v)
			if !ok {
				u.failed = fmt.Errorf("%s has a bias without one value per output", p.node.Key())
			}
			l.bias[i] = b
		}
	}
	if runs > 1 && !u.m.squaresOnly && u.failed == nil {
		for _, l := range u.layers {
			w := l.layer.Read(nil)
			if l.order, _ = mask.New(l.layer, mask.Magnitudes(w), study.Unstructured); l.order != nil {
				l.sketch = newSketch(l.layer, w, l.order, l.bias[0], seed)
				u.m.sketches = append(u.m.sketches, l.sketch)
			}
		}
	}
}

// realBias returns what an operator adds to its outputs, nil for nothing; false where it is not
// one number per output.
func (p *linearOp) realBias(v values) ([]float64, bool) {
	if p.bias < 0 {
		return nil, true
	}
	t := v(p.bias)
	if t == nil {
		return nil, false
	}
	rows := p.layer.Rows
	b := toReal(t)
	if len(b) != rows && len(b) != 1 || len(b) > 1 && t.Shape[len(t.Shape)-1] != rows {
		return nil, false
	}
	out := make([]float64, rows)
	beta := 1.0
	if p.alpha {
		alpha := float64(p.node.Attrs.Float("alpha", 1))
		if alpha == 0 {
			return nil, false
		}
		beta = float64(p.node.Attrs.Float("beta", 1)) / alpha
	}
	coded := t.Type.IsInteger() && (t.Quant == nil || len(t.Quant.Scale) != 1)
	x := 1.0
	if coded && p.scale >= 0 {
		if s := v(p.scale); s != nil && s.Len() == 1 {
			x = tensor.At(s, 0)
		}
	} else if coded {
		if d := v(p.data); d != nil && d.Quant != nil && len(d.Quant.Scale) == 1 {
			x = float64(d.Quant.Scale[0])
		}
	}
	for r := range out {
		out[r] = b[min(r, len(b)-1)] * beta
		if coded {
			w, _ := p.layer.Scale(r, 0)
			out[r] *= x * float64(w)
		}
	}
	return out, true
}

// gather adds the inputs of a run.
func (u *momentGroup) gather(v values, s *scratch) error {
	for i, p := range u.products {
		var before []float64
		n := u.m.n
		if u.totals != nil {
			before = slices.Clone(u.m.total)
		}
		if err := p.gather(v, u.m, s, nil); err != nil {
			return err
		}
		if u.totals != nil {
			for k, x := range u.m.total {
				u.totals[i][k] += x - before[k]
			}
			u.counts[i] += u.m.n - n
		}
	}
	return nil
}

// energyOf returns the sum of squares of the unchanged outputs, with biases.
func (u *momentGroup) energyOf(x *matrix, l *groupLayer) float64 {
	e := sum(x.rowSquares)
	outs := x.rows / x.groups
	for i, b := range l.bias {
		total, n := u.m.total, u.m.n
		if u.totals != nil {
			total, n = u.totals[i], u.counts[i]
		}
		for r, v := range b {
			if v == 0 {
				continue
			}
			s := 0.0
			for c, w := range x.w[r*x.cols:][:x.cols] {
				s += float64(w) * total[r/outs*x.cols+c]
			}
			e += 2*v*s + float64(n)*v*v
		}
	}
	return e
}

// scoresOf returns pruning scores: by magnitude, or by error on the data where m has finite means.
func scoresOf(w []float32, rows int, m *moments, byError bool) []float32 {
	if byError && m != nil {
		if means := m.means(); means != nil {
			return ErrorScores(w, rows, m.cols, means)
		}
	}
	return mask.Magnitudes(w)
}

// ErrorScores returns pruning scores by error on the data: squared weights times mean squared
// inputs, as passed to [Job].Energy.
func ErrorScores(w []float32, rows, cols int, means []float32) []float32 {
	out := make([]float32, len(w))
	outs := rows / (len(means) / cols)
	for i, v := range w {
		r, c := i/cols, i%cols
		out[i] = float32(float64(v) * float64(v) * float64(means[r/outs*cols+c]))
	}
	return out
}

// reportEnergy reports the input energies of a layer that is pruned by error on the data.
func (j *Job) reportEnergy(layer int, m *moments) error {
	if j.Energy == nil || j.Settings.Choice != ByError || m == nil {
		return nil
	}
	if means := m.means(); means != nil {
		return j.Energy(layer, means)
	}
	return nil
}

// layerPoints finds all points of a layer.
func (j *Job) layerPoints(ctx context.Context, u *momentGroup, l *groupLayer) error {
	w := l.layer.Read(nil)
	x := newMatrix(u.m, w, l.layer.Rows)
	x.sketch = l.sketch
	base := u.energyOf(x, l)
	cs := j.missingChanges(l.index)
	method := fmt.Sprintf("closed form from second moments of %d inputs; interval by resampling samples", u.m.n)
	put := func(c study.Change, e, lo, hi float64, cause study.Cause, method string) error {
		p := study.LossPoint{Layer: l.index, Change: c, Cause: cause}
		if cause == "" && base > 0 {
			p.Value = metricValue(profile.Measured, e/base, j.Data.Len(), e/base*lo, e/base*hi, method)
		} else if cause == "" {
			p.Cause = study.NotRun
		}
		return j.Point(p)
	}
	if err := j.reportEnergy(l.index, u.m); err != nil {
		return err
	}
	scores := scoresOf(w, l.layer.Rows, u.m, j.Settings.Choice == ByError)
	for _, s := range structures(cs) {
		if err := ctx.Err(); err != nil {
			return err
		}
		order, why := (*mask.Order)(nil), study.Cause("")
		switch {
		case s == study.Unstructured && l.order != nil && j.Settings.Choice != ByError:
			order = l.order
		case s != study.Dense:
			order, why = mask.New(l.layer, scores, s)
		}
		levels := levelsOf(cs, s)
		var fall []uint16
		var errs, lo, hi []float64
		if order != nil && len(levels) > 0 {
			fall = order.PruningLevels(levels)
			errs = x.levelErrors(fall, len(levels))
			lo, hi = x.errorIntervals(fall, levels, j.Seed)
		}
		for _, c := range cs {
			if c.Structure != s {
				continue
			}
			var err error
			switch {
			case why != "":
				err = put(c, 0, 0, 0, why, "")
			case c.Format != study.OriginalFormat:
				err = j.formatPoint(u, l, x, order, c, base)
			case s == study.Dense:
				err = put(c, 0, 1, 1, "", method)
			default:
				k, _ := slices.BinarySearch(levels, c.Level)
				err = put(c, errs[k], lo[k], hi[k], "", method)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// structures lists the structures of changes, in order.
func structures(cs []study.Change) []study.Structure {
	var out []study.Structure
	for _, c := range cs {
		indexOrAppend(&out, c.Structure)
	}
	return out
}

// levelsOf lists the levels of a structure in the original format, ascending.
func levelsOf(cs []study.Change, s study.Structure) []float64 {
	var out []float64
	for _, c := range cs {
		if c.Structure == s && c.Format == study.OriginalFormat {
			out = append(out, c.Level)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
