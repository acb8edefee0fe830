package compress

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/compress/loss"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/study"
)

// CheckData reads the samples of a loss profile and checks labels and task against the outputs of
// the model, before anything is measured.
func (j *Job) CheckData(ctx context.Context, o *LossOptions) error {
	if o.Data == nil || o.Method != "" && !needsData(o.Method) {
		return nil
	}
	if err := o.Data.open(j); err != nil {
		return err
	}
	if o.Metric != "" && o.Metric != loss.Accuracy || len(o.Command) > 0 {
		return nil
	}
	return j.checkAccuracy(ctx, o)
}

// classOutput describes the first output: the number of classes that a row of it tells apart, 0
// where any integer may be a class or the shape is unknown; and whether each sample has one row.
func (j *Job) classOutput(batch int) (classes int, single bool) {
	g := j.m.Main()
	if len(g.Outputs) == 0 || g.Outputs[0] < 0 {
		return 0, true
	}
	v := g.Values[g.Outputs[0]]
	shape := j.dims(v.ID)
	if len(shape) == 0 || slices.ContainsFunc(shape, func(d int) bool { return d < 0 }) {
		return 0, true
	}
	n, rows := shape[len(shape)-1], 1
	for _, d := range shape[:len(shape)-1] {
		rows *= d
	}
	if len(shape) == 1 && n == batch { // a number for each sample
		n, rows = 1, batch
	}
	switch {
	case n != 1:
		return n, rows <= batch
	case v.Type.IsInteger() && v.Quant == nil: // the class itself
		return 0, rows <= batch
	}
	return 2, rows <= batch
}

// checkLabels refuses labels that no output can give.
func (j *Job) checkLabels(d *Data, all *samples.Set) error {
	if all.Labels == nil {
		return nil
	}
	file := cmp.Or(d.Options.Labels, all.Path)
	fail := func(place, format string, args ...any) error {
		return &samples.DataError{File: file, Place: place, Text: fmt.Sprintf(format, args...)}
	}
	classes, single := j.classOutput(all.Batch)
	if !single {
		shape := tensor.FormatShape(j.dims(j.m.Main().Outputs[0]))
		return fail("", "has one label for each sample, and the first output has several rows of scores, shape %s: leave the labels out, or compute the metric with --metric-command", shape)
	}
	if classes == 0 {
		return nil
	}
	if n := len(all.Classes); n > 0 && n != classes {
		return fail("", "has %d different names, and the first output tells %d classes apart: write the number of each class, from 0 to %d", n, classes, classes-1)
	}
	low, high := math.Inf(1), math.Inf(-1)
	at, whole := -1, true
	for i, v := range all.Labels {
		low, high = min(low, v), max(high, v)
		if at < 0 && (v < 0 || v >= float64(classes) || v != math.Trunc(v)) {
			at = i
		}
		whole = whole && v == math.Trunc(v)
	}
	if at < 0 {
		return nil
	}
	bad := fmt.Sprintf("the label %v is not a class of the first output, which has %d: use 0 to %d", all.Labels[at], classes, classes-1)
	switch {
	case !whole:
		bad += ". Values of a regression are not class labels: leave them out to compare outputs, or compute the metric with --metric-command"
	case low >= 1 && high == float64(classes):
		bad += ". The labels seem to count from 1: subtract 1"
	case low >= 0 && high >= float64(classes):
		bad += fmt.Sprintf(". The labels go from %v to %v: is this the right model?", low, high)
	}
	return fail("", "%s", bad)
}

// checkAccuracy refuses labels that the unchanged model meets less often than chance: its drops
// would say nothing.
func (j *Job) checkAccuracy(ctx context.Context, o *LossOptions) error {
	d := o.Data
	if d.used.Labels == nil || d.checked {
		return nil
	}
	classes, _ := j.classOutput(d.used.Batch)
	if classes < 2 {
		return nil
	}
	job := loss.Job{
		Model: j.m, Layers: j.Layers, Data: d.used, Threads: o.Threads, Seed: o.Seed,
		Settings: study.LossSettings{Method: study.EndToEnd, Metric: loss.Accuracy},
		Progress: func(share float64, doing string) { j.progress("checking labels: "+doing, share) },
	}
	t, err := job.Trial(ctx)
	if err != nil {
		return contextError(ctx, fmt.Errorf("checking labels: %w", err))
	}
	d.checked = true
	found, ok := t.Base.Best()
	chance := 1 / float64(classes)
	if !ok || t.Base.CI95 == nil || t.Base.CI95[1] >= chance {
		return nil
	}
	text := fmt.Sprintf("the unchanged model is right for %.3g %% of %d samples, less than the %.3g %% of guessing: ", 100*found, d.used.Len(), 100*chance)
	if names := d.used.Classes; names != nil {
		some := slices.Clone(names[:min(len(names), 6)])
		for i, s := range some {
			some[i] = fmt.Sprintf("%q is %d", s, i)
		}
		text += "names are numbered in alphabetical order (" + strings.Join(some, ", ") + "); write the model's class numbers in their place"
	} else {
		text += "check that the labels belong to these samples and that the inputs are normalised as in training (--mean, --std)"
	}
	return &samples.DataError{File: cmp.Or(d.Options.Labels, d.used.Path), Text: text}
}
