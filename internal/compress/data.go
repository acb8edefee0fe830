package compress

import (
	"strings"

	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/study"
)

// HeldOut is the share of real samples left out of profiles: plans are evaluated on them.
const HeldOut = 0.3

// minSplitSamples is the number of samples below which none are held out.
const minSplitSamples = 16

// Data are the samples that losses are measured on, opened when first needed.
type Data struct {
	Options samples.Options

	used, held *samples.Set
	sum        string // hash of all samples, "" for generated ones
	checked    bool   // the unchanged model is better than chance
}

// open reads the samples of a model and splits them.
func (d *Data) open(j *Job) error {
	if d.used != nil {
		return nil
	}
	j.progress("reading data", 0)
	o := d.Options
	o.Feed, o.MaxBytes = j.o.Feed, j.o.Feed.MaxBytes
	all, err := samples.Open(j.m, o)
	if err != nil {
		return err
	}
	if err := j.checkLabels(d, all); err != nil {
		return err
	}
	d.used, d.held = all, all
	if !all.Random {
		d.sum = all.SHA256()
	}
	if !all.Random && all.Len() >= minSplitSamples {
		d.used, d.held = all.Split(HeldOut, o.Seed)
	}
	return nil
}

// settings records the origin of the samples.
func (d *Data) settings(s *study.LossSettings) {
	s.Data, s.Samples, s.Random = d.used.Path, d.used.Len(), d.used.Random
	s.DataSHA256, s.Available = d.sum, d.used.Available
	if d.held != d.used {
		s.HeldOut = d.held.Len()
	}
	s.Labels, s.Mean, s.Std = d.Options.Labels, d.Options.Mean, d.Options.Std
	if c := d.Options.Column; c != "" {
		s.Labels = strings.TrimSpace(s.Labels + " column " + c)
	}
}
