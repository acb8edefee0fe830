package loss

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/compress/sparsify"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// maxDB replaces the infinite ratio of identical outputs. It is far above the precision of 64-bit
// numbers.
const maxDB = 400

// comparison has the unchanged outputs.
type comparison struct {
	job *Job
	g   *graph.Graph
	// outs are by run and output. The first output has rows of numbers.
	outs          [][]*tensor.Tensor
	probabilities bool // rows of the first output are probabilities
	threshold     float64
	correct       []float64 // whether the unchanged model is correct, by sample
}

// keep stores the outputs of a run.
func (c *comparison) keep(outs []*tensor.Tensor) error {
	if len(outs) == 0 || outs[0] == nil || !outs[0].Type.IsNumber() {
		return errors.New("the model's first output is not numeric, or could not be computed")
	}
	c.outs = append(c.outs, outs)
	return nil
}

// base returns the metric of the unchanged model.
func (c *comparison) base(ctx context.Context) (*profile.Metric, error) {
	c.inspectOutputs()
	switch c.job.Settings.Metric {
	case Accuracy, Command:
	case Top1, Cosine:
		return profile.Value(profile.Counted, 1, "a model agrees with itself"), nil
	default:
		return nil, nil
	}
	r := c.newResult()
	for run, outs := range c.outs {
		if err := r.add(run, outs); err != nil {
			return nil, err
		}
	}
	c.correct = r.correct
	m, _, err := r.metric(ctx)
	return m, err
}

// inspectOutputs determines whether outputs are probabilities, and the threshold of a single
// score.
func (c *comparison) inspectOutputs() {
	c.probabilities, c.threshold = true, 0.5
	for _, outs := range c.outs {
		t := outs[0]
		v, n := toReal(t), rowLength(t)
		for i := 0; i+n <= len(v); i += n {
			total := 0.0
			for _, x := range v[i : i+n] {
				if x < 0 || x > 1 {
					c.probabilities, c.threshold = false, 0
				}
				total += x
			}
			// 8-bit probabilities add up to 1 within half a step each.
			if n < 2 || math.Abs(total-1) > 0.01+float64(n)/512 {
				c.probabilities = false
			}
		}
	}
}

// rowLength is the number of elements of the last axis.
func rowLength(t *tensor.Tensor) int {
	if len(t.Shape) == 0 {
		return 1
	}
	return max(t.Shape[len(t.Shape)-1], 1)
}

// result collects figures of a changed model's outputs: by sample where the outputs are rows by
// sample, else by run.
type result struct {
	c *comparison
	// per sample: squared difference, squared outputs, cosine, KL divergence, agreeing rows and
	// number of rows, correct labels
	num, den, cos, kl, agree, of, correct []float64
	oneShot                               []float64
	outs                                  [][]*tensor.Tensor // for a command
	severalRows                           bool
}

func (c *comparison) newResult() *result { return &result{c: c} }

// add compares the outputs of a run.
func (r *result) add(run int, outs []*tensor.Tensor) error {
	want := r.c.outs[run]
	batch := r.c.job.Data.Batch
	var got, base [][]float64
	for i, t := range want {
		if t == nil || !t.Type.IsNumber() {
			continue
		}
		if outs[i] == nil || outs[i].Len() != t.Len() {
			return fmt.Errorf("output %d of the changed model has another shape", i)
		}
		if len(t.Shape) == 0 || t.Shape[0]%batch != 0 {
			batch = 1
		}
		got, base = append(got, toReal(outs[i])), append(base, toReal(t))
	}
	if r.c.job.Settings.Metric == Command {
		r.outs = append(r.outs, outs)
	}
	if r.c.job.Settings.Method == study.OneShot {
		r.oneShot = append(r.oneShot, sparsify.KL(got, base))
	}
	for s := range batch {
		num, den, dot, norm := 0.0, 0.0, 0.0, 0.0
		for i := range base {
			n := len(base[i]) / batch
			for k, w := range base[i][s*n : (s+1)*n] {
				g := got[i][s*n+k]
				num, den = num+(g-w)*(g-w), den+w*w
				dot, norm = dot+g*w, norm+g*g
			}
		}
		cos := 1.0
		if num > 0 {
			cos = dot / math.Sqrt(norm*den)
		}
		r.num, r.den, r.cos = append(r.num, num), append(r.den, den), append(r.cos, cos)
		n := len(base[0]) / batch
		r.rows(got[0][s*n:(s+1)*n], base[0][s*n:(s+1)*n], rowLength(want[0]), run*r.c.job.Data.Batch+s)
	}
	return nil
}

// rows compares the first output as rows of class scores.
func (r *result) rows(got, want []float64, n, sample int) {
	kl, agree, count := 0.0, 0.0, 0.0
	first := -1.0
	for i := 0; i+n <= len(want); i += n {
		g, w := got[i:i+n], want[i:i+n]
		kl += r.c.klDivergence(g, w)
		a := r.c.class(g)
		if i == 0 {
			first = a
		}
		if a == r.c.class(w) {
			agree++
		}
		count++
	}
	r.kl, r.agree, r.of = append(r.kl, kl/max(count, 1)), append(r.agree, agree), append(r.of, count)
	if labels := r.c.job.Data.Labels; labels != nil {
		hit := 0.0
		if count == 1 && first == labels[sample] {
			hit = 1
		}
		r.severalRows = r.severalRows || count != 1
		r.correct = append(r.correct, hit)
	}
}

// class returns the index of the largest score, the first of equal ones. For a single score it
// returns whether it is above one half, or above zero where scores leave the range 0 to 1; an
// integer score is the class itself.
func (c *comparison) class(v []float64) float64 {
	if len(v) == 1 {
		if c.outs[0][0].Type.IsInteger() && c.outs[0][0].Quant == nil {
			return v[0]
		}
		if v[0] > c.threshold {
			return 1
		}
		return 0
	}
	best := 0
	for i, x := range v {
		if x > v[best] {
			best = i
		}
	}
	return float64(best)
}

// klDivergence returns the Kullback-Leibler divergence from the unchanged scores, as
// probabilities, to those of the changed model, in nats.
func (c *comparison) klDivergence(got, want []float64) float64 {
	p, q := c.logProbabilities(want), c.logProbabilities(got)
	s := 0.0
	for i := range p {
		if p[i] > -60 {
			s += math.Exp(p[i]) * (p[i] - max(q[i], -60))
		}
	}
	return max(s, 0)
}

// logProbabilities returns log-probabilities: log-softmax of scores; two classes for a single
// score.
func (c *comparison) logProbabilities(v []float64) []float64 {
	if c.probabilities {
		out := make([]float64, len(v))
		for i, x := range v {
			out[i] = math.Log(max(x, 1e-12))
		}
		return out
	}
	if len(v) == 1 {
		x := v[0]
		if c.threshold == 0.5 {
			x = min(max(x, 1e-12), 1-1e-12)
			return []float64{math.Log(x), math.Log(1 - x)}
		}
		v = []float64{x, 0}
	}
	most := slices.Max(v)
	total := 0.0
	for _, x := range v {
		total += math.Exp(x - most)
	}
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = x - most - math.Log(total)
	}
	return out
}

// metric returns the requested metric with its interval, and the others.
func (r *result) metric(ctx context.Context) (*profile.Metric, map[string]float64, error) {
	j := r.c.job
	name := j.Settings.Metric
	n := len(r.num)
	figure := map[string]func(times []float32) float64{
		RelativeError: func(t []float32) float64 { return ratio(r.num, r.den, t) },
		SNR: func(t []float32) float64 {
			return min(maxDB, -10*math.Log10(max(ratio(r.num, r.den, t), 1e-300)))
		},
		Cosine: func(t []float32) float64 { return ratio(r.cos, nil, t) },
		KL:     func(t []float32) float64 { return ratio(r.kl, nil, t) },
		Top1:   func(t []float32) float64 { return ratio(r.agree, r.of, t) },
	}
	if r.correct != nil && !r.severalRows {
		figure[Accuracy] = func(t []float32) float64 { return ratio(r.correct, nil, t) }
	} else if name == Accuracy {
		return nil, nil, fmt.Errorf("accuracy needs one row of scores for each sample, and the first output has the shape %s", tensor.FormatShape(r.c.outs[0][0].Shape))
	}
	more := map[string]float64{}
	for k, f := range figure {
		if v := f(nil); k != name && !math.IsNaN(v) && !math.IsInf(v, 0) {
			more[k] = v
		}
	}
	if name == Command {
		v, err := j.command(ctx, r.outs)
		if err != nil {
			return nil, nil, err
		}
		return metricValue(profile.Measured, v, n, math.NaN(), math.NaN(), "command "+j.Command[0]), more, nil
	}
	f := figure[name]
	if r.oneShot != nil {
		n = len(r.oneShot)
		f = func(t []float32) float64 { return ratio(r.oneShot, nil, t) }
	}
	v := f(nil)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil, more, nil
	}
	how := "interval by resampling samples"
	lo, hi := BootstrapInterval(n, j.Seed, f)
	switch {
	case r.oneShot != nil:
	case lo == hi && name != Accuracy && name != Top1:
		lo, hi = math.NaN(), math.NaN() // rare errors are unknown
	case name == Accuracy:
		how = scoreTest
		lo, hi = wilsonInterval(sum(r.correct), float64(n))
	case name == Top1:
		if r.singleRow() || lo == hi {
			how = scoreTest
			lo, hi = wilsonInterval(v*float64(n), float64(n))
		}
	}
	return metricValue(profile.Measured, v, n, lo, hi, "model run from the layer on; "+how), more, nil
}

// scoreTest describes the intervals of proportions.
const scoreTest = "interval of the score test"

// singleRow reports whether each sample has one row of scores.
func (r *result) singleRow() bool {
	return !slices.ContainsFunc(r.of, func(n float64) bool { return n != 1 })
}

// ratio returns the sum of a divided by the sum of b, or the mean of a. times has how often each
// sample counts; nil for once.
func ratio(a, b []float64, times []float32) float64 {
	s, t := 0.0, 0.0
	for i, v := range a {
		k := 1.0
		if times != nil {
			k = float64(times[i])
		}
		s += k * v
		if b == nil {
			t += k
		} else {
			t += k * b[i]
		}
	}
	return s / t
}
