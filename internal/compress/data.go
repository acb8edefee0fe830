package compress

import (
	"strings"

	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/study"
)

// HeldOut is the share of samples of real data that profiles do not use: plans are tried on them.
const HeldOut = 0.3

// few is the number of samples below which none are held out.
const few = 16

// Data are the samples that losses are found on, opened when they are first needed.
type Data struct {
	Options samples.Options

	used, held *samples.Set
	sum        string // of all samples, "" for made ones
}

// open reads the samples of a model, and divides them.
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
	d.used, d.held = all, all
	if !all.Random {
		d.sum = all.Sum()
	}
	if !all.Random && all.Len() >= few {
		d.used, d.held = all.Split(HeldOut, o.Seed)
	}
	return nil
}

// settings notes where samples came from.
func (d *Data) settings(s *study.LossSettings) {
	s.Data, s.Samples, s.Random = d.used.Path, d.used.Len(), d.used.Random
	s.DataSHA256 = d.sum
	s.Labels, s.Mean, s.Std = d.Options.Labels, d.Options.Mean, d.Options.Std
	if c := d.Options.Column; c != "" {
		s.Labels = strings.TrimSpace(s.Labels + " column " + c)
	}
}
