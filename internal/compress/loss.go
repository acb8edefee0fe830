package compress

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/compress/loss"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// LossOptions configure a loss profile.
type LossOptions struct {
	// Name identifies the profile; "" derives one from method and metric.
	Name string
	// Method and Metric are "" for the defaults: see [Job.setDefaultLoss]. Choice of weights is
	// "" for magnitude.
	Method study.Method
	Metric string
	Choice string
	// Data are the samples.
	Data *Data
	// Changes are the changes to try: see [Grid].
	Changes []study.Change
	Threads int
	Ranges  loss.RangeRule
	// Command computes the metric "command".
	Command     []string
	CommandTime time.Duration
	Seed        uint64
}

// needsData reports whether a method runs the model.
func needsData(m study.Method) bool { return m != study.Approximated && m != study.Magnitude }

// lossSettings returns the settings that the profile stores.
func (j *Job) lossSettings(ctx context.Context, o *LossOptions) (study.LossSettings, error) {
	s := study.LossSettings{Name: o.Name, Method: o.Method, Metric: o.Metric, Choice: o.Choice, Changes: o.Changes}
	if s.Method == "" && len(o.Command) > 0 {
		s.Method = study.EndToEnd
	}
	if s.Method == "" || needsData(s.Method) {
		if err := o.Data.open(j); err != nil {
			return s, err
		}
		o.Data.settings(&s)
	}
	labels := o.Data.used != nil && o.Data.used.Labels != nil
	if err := j.setDefaultLoss(ctx, &s, o); err != nil {
		return s, err
	}
	switch all := loss.Metrics(s.Method); {
	case s.Choice != "" && s.Choice != loss.ByMagnitude && s.Choice != loss.ByError:
		return s, optionError("Choice", "use %s or %s, not %q", loss.ByMagnitude, loss.ByError, s.Choice)
	case all == nil:
		return s, optionError("Method", "no method %q: use one of %v", s.Method, study.Methods())
	case !slices.Contains(all, s.Metric):
		return s, optionError("Metric", "the method %s has no metric %q: use one of %v", s.Method, s.Metric, all)
	case s.Metric == loss.Accuracy && !labels:
		return s, optionError("Metric", "accuracy needs labels")
	case s.Metric == loss.Command && len(o.Command) == 0:
		return s, optionError("Metric", "the metric needs a command that computes it")
	case s.Random && s.Metric == loss.Command:
		return s, optionError("Metric", "a custom metric needs real data, not random inputs")
	}
	if s.Metric == loss.Accuracy {
		if err := j.checkAccuracy(ctx, o); err != nil {
			return s, err
		}
	}
	s.Higher = loss.HigherIsBetter(s.Metric)
	if needsData(s.Method) {
		s.Seed, s.Shapes = o.Seed, j.inputShapes(0)
	} else {
		s = study.LossSettings{Name: s.Name, Method: s.Method, Metric: s.Metric, Higher: s.Higher, Changes: s.Changes}
	}
	if s.Name == "" {
		s.Name = string(s.Method)
		if s.Method == study.EndToEnd {
			s.Name = s.Metric
		}
		if s.Random {
			s.Name += "-random"
		}
		if s.Shapes != "" {
			s.Name += j.shapeSuffix()
		}
		if s.Seed != 0 {
			s.Name += fmt.Sprintf("-seed%d", s.Seed)
		}
	}
	return s, nil
}

// maxDefaultMACs bounds the multiply-accumulates of the default method: a minute or two.
const maxDefaultMACs = 1e12

// setDefaultLoss fills in method and metric where they are not given. With labels it is accuracy,
// end to end. Without labels it is top-1 agreement for classifiers, and the output error for
// other models, end to end; where that takes too long, output errors of layers are calibrated to
// the model's. Random inputs only rank layers, so output errors of layers are left as they are.
func (j *Job) setDefaultLoss(ctx context.Context, s *study.LossSettings, o *LossOptions) error {
	d := o.Data.used
	labels, unsaid := d != nil && d.Labels != nil, s.Method == ""
	if unsaid {
		switch {
		case labels:
			s.Method = study.EndToEnd
		case d.Random:
			s.Method = study.OutputError
		case j.evaluationMACs(len(s.Changes)*d.Len()) > maxDefaultMACs:
			s.Method = study.Calibrated
		default:
			s.Method = study.EndToEnd
		}
	}
	switch {
	case s.Metric != "":
	case s.Method == study.EndToEnd && len(o.Command) > 0:
		s.Metric = loss.Command
	case s.Method == study.EndToEnd && labels:
		s.Metric = loss.Accuracy
	case s.Method == study.Calibrated || unsaid && s.Method == study.EndToEnd:
		classes, err := loss.IsClassifier(ctx, j.m, d, o.Threads)
		if err != nil {
			return contextError(ctx, err)
		}
		switch {
		case classes && s.Method == study.Calibrated:
			s.Metric = loss.KL
		case classes:
			s.Metric = loss.Top1
		default:
			s.Metric = loss.RelativeError
		}
	default:
		if all := loss.Metrics(s.Method); len(all) > 0 {
			s.Metric = all[0]
		}
	}
	return nil
}

// evaluationMACs estimates the multiply-accumulates of running the model the given number of
// times from each layer on; +Inf where unknown.
func (j *Job) evaluationMACs(times int) float64 {
	sum := weights.MACs(j.Layers)
	if sum == 0 {
		return math.Inf(1)
	}
	return sum / 2 * float64(len(j.Layers)*times)
}

// Loss makes a loss profile, or resumes the one of that name.
func (j *Job) Loss(ctx context.Context, o LossOptions) (*study.Loss, error) {
	if o.Data == nil {
		o.Data = &Data{}
	}
	s, err := j.lossSettings(ctx, &o)
	if err != nil {
		return nil, err
	}
	p := j.Study().Loss(s.Name)
	if p != nil {
		if err := checkLossSettings(p, &s); err != nil {
			return nil, err
		}
		s.Changes = union(p.Changes, s.Changes)
	}
	if p == nil || len(s.Changes) > len(p.Changes) {
		grown := study.Loss{Created: now()}
		if p != nil {
			grown = *p
		}
		grown.LossSettings, grown.Done = s, false
		if err := j.File.Append(study.Record{Loss: &grown}); err != nil {
			return nil, err
		}
	}
	p = j.Study().Loss(s.Name)
	if p.Done {
		return p, nil
	}
	return p, contextError(ctx, j.loss(ctx, &o, p))
}

// union lists the changes that are in either list.
func union(a, b []study.Change) []study.Change {
	out := slices.Clone(a)
	for _, c := range b {
		if !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// checkLossSettings refuses to resume a profile that was made with other settings.
func checkLossSettings(p *study.Loss, s *study.LossSettings) error {
	err := checkSettings("loss", p.Name, []setting{
		{"method", p.Method, s.Method},
		{"metric", p.Metric, s.Metric},
		{"data", p.Data, s.Data},
		{"samples", p.Samples, s.Samples},
		{"choice", p.Choice, s.Choice},
		{"labels", p.Labels, s.Labels},
		{"mean", fmt.Sprint(p.Mean), fmt.Sprint(s.Mean)},
		{"standard deviation", fmt.Sprint(p.Std), fmt.Sprint(s.Std)},
		{"seed", p.Seed, s.Seed},
		{"inputs", cmp.Or(p.Shapes, s.Shapes), s.Shapes},
	})
	if err == nil && p.DataSHA256 != "" && p.DataSHA256 != s.DataSHA256 {
		return optionError("Name", "the loss profile %q was made with a different version of %s: give this one another name", p.Name, p.Data)
	}
	return err
}

// batch is how many points are written to the study together; after pause all pending points are
// written.
const (
	batch = 64
	pause = 500 * time.Millisecond
)

// loss measures what a profile still lacks.
func (j *Job) loss(ctx context.Context, o *LossOptions, p *study.Loss) error {
	type place struct {
		layer  int
		change study.Change
	}
	have := map[place]bool{}
	for _, x := range p.Points {
		have[place{x.Layer, x.Change}] = true
	}
	add := &study.LossPoints{Name: p.Name}
	last := time.Now()
	flush := func() error {
		if len(add.Points)+len(add.Anchors)+len(add.InputEnergies) == 0 {
			return nil
		}
		err := j.File.Append(study.Record{LossPoints: add})
		add, last = &study.LossPoints{Name: p.Name}, time.Now()
		return err
	}
	keep := func(list *[]study.LossPoint, x study.LossPoint) error {
		// JSON cannot represent NaN and infinite figures.
		maps.DeleteFunc(x.More, func(_ string, v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
		*list = append(*list, x)
		if len(*list) >= batch || time.Since(last) > pause {
			return flush()
		}
		return nil
	}
	job := loss.Job{
		Model: j.m, Layers: j.Layers, Data: o.Data.used, Settings: p.LossSettings, Threads: o.Threads, Seed: o.Seed, Ranges: o.Ranges,
		Command: o.Command, CommandTime: o.CommandTime, Shapes: j.shape,
		Skip: func(layer int, c study.Change) bool { return have[place{layer, c}] },
		Energy: func(layer int, means []float32) error {
			add.InputEnergies = append(add.InputEnergies, study.InputEnergy{Layer: layer, Means: means})
			return nil
		},
		Anchors:  p.Anchors,
		Anchor:   func(x study.LossPoint) error { return keep(&add.Anchors, x) },
		Point:    func(x study.LossPoint) error { return keep(&add.Points, x) },
		Progress: func(share float64, doing string) { j.progress("loss: "+doing, share) },
	}
	base, err := job.Run(ctx)
	if ferr := flush(); err == nil {
		err = ferr
	}
	if err != nil {
		return err
	}
	return j.File.Append(study.Record{LossPoints: &study.LossPoints{Name: p.Name, Base: base, Done: true}})
}

// shape returns the shape of a value where it is completely known. Changed models have additional
// values, whose shapes are unknown.
func (j *Job) shape(id int) []int {
	if s := j.dims(id); !slices.ContainsFunc(s, func(d int) bool { return d < 0 }) {
		return s
	}
	return nil
}
