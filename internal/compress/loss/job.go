package loss

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/base/mapped"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/compress/sparsify"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// Job makes a loss profile.
type Job struct {
	Model *graph.Model
	// Layers are the model's layers; points refer to positions in this list.
	Layers []*weights.Layer
	// Data are the samples. [study.Approximated] and [study.Magnitude] do not need any.
	Data *samples.Set
	// Settings have method, metric, choice and changes. The caller sets the fields about the
	// data.
	Settings study.LossSettings
	// Shapes returns the shape of a value where known, for [study.Approximated].
	Shapes func(id int) []int
	// Threads is the number of workers, 0 for one. Results do not depend on it.
	Threads int
	// MaxBytes bounds the memory of a pass over the data, 0 for 1 GiB. More data needs several
	// passes.
	MaxBytes int
	// Seed is the bootstrap seed.
	Seed uint64
	// Ranges says how activation ranges are derived from the data, for [study.Int8].
	Ranges RangeRule
	// Command is a program with arguments that computes the metric "command". It runs at most
	// CommandTime, 0 for a minute. Its last argument is a folder with out_0.npy and so on, and
	// labels.npy if there are labels.
	Command     []string
	CommandTime time.Duration
	// Skip reports points that exist already; nil for none.
	Skip func(layer int, c study.Change) bool
	// Energy receives the input energies of a layer whose weights are chosen by error, before the
	// layer's points: see [Scores]. Layers without a call are pruned by magnitude. May be nil.
	Energy func(layer int, means []float32) error
	// Anchors are the existing anchors of [study.Calibrated]. Anchor receives each new one; may
	// be nil.
	Anchors []study.LossPoint
	Anchor  func(p study.LossPoint) error
	// Point receives each point when it is found. An error ends the job.
	Point func(p study.LossPoint) error
	// Progress is called with the progress of the job, 0 to 1; may be nil.
	Progress func(share float64, doing string)

	pool  *workers.Pool
	found map[string]rewrite.Range // of activations, where formats need them
	ran   map[int]bool             // graphs that ran on the data
}

// Metrics of points.
const (
	RelativeError = "relative_error"
	SNR           = "snr_db"
	Cosine        = "cosine"
	KL            = "kl"
	Top1          = "top1"
	Accuracy      = "accuracy"
	Command       = "command"
	MagnitudeMean = "magnitude"
	Sensitivity   = "sensitivity"
)

// Metrics lists the metrics of a method, the default first.
func Metrics(m study.Method) []string { return slices.Clone(metrics[m]) }

var metrics = map[study.Method][]string{
	study.Approximated: {Sensitivity},
	study.Magnitude:    {MagnitudeMean},
	study.OutputError:  {RelativeError},
	study.Calibrated:   {RelativeError, KL},
	study.OneShot:      {KL},
	study.EndToEnd:     {RelativeError, SNR, Cosine, KL, Top1, Accuracy, Command},
}

// HigherIsBetter reports whether a higher value of a metric is better.
func HigherIsBetter(metric string) bool {
	return metric == SNR || metric == Cosine || metric == Top1 || metric == Accuracy
}

// Pruning criteria.
const (
	ByMagnitude = "magnitude"
	ByError     = "error"
)

// Run computes the points that are not skipped, layer by layer. base is the metric of the
// unchanged model, nil where it has none. A cancelled ctx ends the job between two steps.
func (j *Job) Run(ctx context.Context) (base *profile.Metric, err error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	j.pool, j.found = workers.New(max(j.Threads, 1), nil), nil
	defer j.pool.Close()
	err = mapped.Guard(func() error {
		switch m := j.Settings.Method; m {
		case study.Approximated:
			return j.approximated(ctx)
		case study.Magnitude:
			return j.magnitude(ctx)
		case study.OutputError:
			return j.outputErrors(ctx)
		case study.Calibrated:
			return j.calibrated(ctx)
		}
		base, err = j.endToEnd(ctx)
		return err
	})
	return base, err
}

func (j *Job) check() error {
	s := &j.Settings
	if all := Metrics(s.Method); s.Metric == "" && len(all) > 0 {
		s.Metric = all[0]
	}
	switch {
	case !slices.Contains(Metrics(s.Method), s.Metric):
		return fmt.Errorf("method %q has no metric %q", s.Method, s.Metric)
	case len(j.Layers) == 0:
		return errors.New("the model has no weights that could be changed")
	case j.Data == nil && s.Method != study.Approximated && s.Method != study.Magnitude:
		return fmt.Errorf("method %q needs data", s.Method)
	case s.Choice != "" && s.Choice != ByMagnitude && s.Choice != ByError:
		return fmt.Errorf("weights are chosen by %q or %q, not by %q", ByMagnitude, ByError, s.Choice)
	case s.Metric == Accuracy && j.Data.Labels == nil:
		return errors.New("accuracy needs labels")
	case s.Metric == Command && len(j.Command) == 0:
		return errors.New("the metric needs a command")
	}
	for _, c := range s.Changes {
		if !(c.Level >= 0 && c.Level <= 1) {
			return fmt.Errorf("level %v, want 0 to 1", c.Level)
		}
	}
	return nil
}

// defaultMaxBytes is the default memory limit of a pass.
const defaultMaxBytes = 1 << 30

func (j *Job) limit() int {
	if j.MaxBytes > 0 {
		return j.MaxBytes
	}
	return defaultMaxBytes
}

func (j *Job) skips(layer int, c study.Change) bool { return j.Skip != nil && j.Skip(layer, c) }

func (j *Job) progress(share float64, format string, args ...any) {
	if j.Progress != nil {
		j.Progress(min(max(share, 0), 1), fmt.Sprintf(format, args...))
	}
}

// missingChanges lists the changes of a layer that have no points yet.
func (j *Job) missingChanges(layer int) []study.Change {
	return slices.DeleteFunc(slices.Clone(j.Settings.Changes), func(c study.Change) bool { return j.skips(layer, c) })
}

// reportCause reports the same cause for several changes of a layer.
func (j *Job) reportCause(layer int, cs []study.Change, why study.Cause) error {
	for _, c := range cs {
		if err := j.Point(study.LossPoint{Layer: layer, Change: c, Cause: why}); err != nil {
			return err
		}
	}
	return nil
}

// metricValue makes the metric of a point. The interval is omitted if it is NaN, or if no sample
// has an error: agreement of all samples says nothing about rare errors.
func metricValue(kind profile.Kind, v float64, n int, lo, hi float64, method string) *profile.Metric {
	m := profile.Value(kind, v, method)
	if n > 0 {
		m.N = new(int64(n))
	}
	if !math.IsNaN(lo) && !math.IsNaN(hi) && (lo != 0 || hi != 0) {
		m.CI95 = &[2]float64{min(lo, v), max(hi, v)}
	}
	return m
}

// withoutData finds points that follow from sizes and weights alone. values returns the losses of
// a layer by level, or the cause why the layer has no losses.
func (j *Job) withoutData(ctx context.Context, method string, values func(l *weights.Layer) (func(level float64) float64, study.Cause)) error {
	for i, l := range j.Layers {
		if err := ctx.Err(); err != nil {
			return err
		}
		cs := j.missingChanges(i)
		if len(cs) == 0 {
			continue
		}
		value, why := values(l)
		for _, c := range cs {
			p := study.LossPoint{Layer: i, Change: c, Cause: why}
			if why == "" && c.Format != study.OriginalFormat {
				p.Cause = study.NoFormat
			}
			if p.Cause == "" {
				p.Value = metricValue(profile.Counted, value(c.Level), 0, math.NaN(), math.NaN(), method)
			}
			if err := j.Point(p); err != nil {
				return err
			}
		}
		j.progress(float64(i+1)/float64(len(j.Layers)), "%s", l.Name)
	}
	return nil
}

// approximated computes a loss from sizes alone: linear from 0 to the sensitivity at level 1.
func (j *Job) approximated(ctx context.Context) error {
	shapes := func(at int, ids []int) (s sparsify.Shapes) {
		g := j.Model.Graphs[at]
		for _, id := range ids {
			if id < 0 || g.Values[id].Const != nil {
				continue
			}
			var shape []int
			if j.Shapes != nil && at == 0 {
				shape = j.Shapes(id)
			}
			if shape == nil && g.Values[id].HasShape {
				shape = g.Values[id].Shape
			}
			s = s.With(shape)
		}
		return s
	}
	return j.withoutData(ctx, "sizes of inputs, outputs and weights", func(l *weights.Layer) (func(float64) float64, study.Cause) {
		n := j.Model.Graphs[l.Graph].Nodes[l.Node]
		v := sparsify.Sensitivity(shapes(l.Graph, n.Inputs), shapes(l.Graph, n.Outputs[:min(1, len(n.Outputs))]), l.Params)
		return func(level float64) float64 { return level * v }, ""
	})
}

// magnitude computes the mean magnitudes of the slices of weights that consecutive levels prune.
func (j *Job) magnitude(ctx context.Context) error {
	var levels []float64 // all, including those with existing points
	for _, c := range j.Settings.Changes {
		if c.Format == study.OriginalFormat {
			levels = append(levels, c.Level)
		}
	}
	slices.Sort(levels)
	levels = slices.Compact(levels)
	return j.withoutData(ctx, "mean weight magnitude of the level", func(l *weights.Layer) (func(float64) float64, study.Cause) {
		if l.Fixed == study.NoZero {
			return nil, l.Fixed
		}
		values := sparsify.Magnitude(l.Read(nil), levels)
		return func(level float64) float64 {
			k, _ := slices.BinarySearch(levels, level)
			return values[k]
		}, ""
	})
}
