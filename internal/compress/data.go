package compress

import (
	"strings"

	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/study"
)

// HeldOut is the share of real samples that no choice sees: chosen plans are checked on them.
const HeldOut = 0.3

// minSplitSamples is the number of samples below which none are held out.
const minSplitSamples = 16

// Limits of the default number of samples. Within them it is as many as some thirty runs of the
// model on all of them take about a minute, with inputs of at most maxDefaultBytes.
const (
	minDefaultSamples = 256
	maxDefaultSamples = 2048
	maxTrialMACs      = 4e9 // multiply-accumulates of a run on all samples
	maxDefaultBytes   = 256 << 20
)

// profileSamples is the largest default number of samples that profiles use: they run the model
// for each layer and change, plans only a few dozen times.
const profileSamples = 256

// Data are the samples that losses are measured on, opened when first needed.
type Data struct {
	// Options.Limit is 0 for a number of samples by the cost of a run.
	Options samples.Options

	// used are the samples of profiles, and tried those on which plans are chosen, used ones
	// included. No choice sees the held ones.
	used, tried, held *samples.Set
	sum               string // hash of all samples, "" for generated ones
	checked           bool   // the unchanged model is better than chance
}

// open reads the samples of a model and splits them.
func (d *Data) open(j *Job) error {
	if d.used != nil {
		return nil
	}
	j.progress("reading data", 0)
	o := d.Options
	o.Feed, o.MaxBytes = j.o.Feed, (j.o.Feed.MaxBytes+1)/2 // the sessions need memory too
	o.SessionBytes = j.o.Feed.MaxBytes
	if o.Limit == 0 {
		o.Limit = j.defaultSamples()
	}
	all, err := samples.Open(j.m, o)
	if err != nil {
		return err
	}
	if err := j.checkLabels(d, all); err != nil {
		return err
	}
	d.used, d.tried, d.held = all, all, all
	if all.Random {
		return nil
	}
	d.sum = all.SHA256()
	if all.Len() >= minSplitSamples {
		d.tried, d.held = all.Split(HeldOut, o.Seed)
		d.used = d.tried
	}
	if n := d.tried.Len(); d.Options.Limit == 0 && n > profileSamples {
		d.used, _ = d.tried.Split(1-float64(profileSamples)/float64(n), o.Seed+1)
	}
	return nil
}

// defaultSamples is the number of samples that are used unless users say how many.
func (j *Job) defaultSamples() int {
	n := float64(maxDefaultSamples)
	if macs := weights.MACs(j.Layers); macs > 0 {
		n = min(n, maxTrialMACs/macs)
	}
	if ins, _, err := inputs.Shapes(j.m, j.o.Feed); err == nil {
		bytes := 0
		for _, x := range ins {
			bytes += x.Type.Bytes(x.Len())
		}
		n = min(n, maxDefaultBytes/float64(max(bytes, 1)))
	}
	return max(int(n), minDefaultSamples)
}

// settings records the origin of the samples.
func (d *Data) settings(s *study.LossSettings) {
	s.Data, s.Samples, s.Random = d.used.Path, d.used.Len(), d.used.Random
	s.DataSHA256, s.Available = d.sum, d.used.Available
	if d.held != d.used {
		s.Tried, s.HeldOut = d.tried.Len(), d.held.Len()
	}
	s.Labels, s.Mean, s.Std = d.Options.Labels, d.Options.Mean, d.Options.Std
	if c := d.Options.Column; c != "" {
		s.Labels = strings.TrimSpace(s.Labels + " column " + c)
	}
}
