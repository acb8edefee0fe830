package mltk

import (
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/mltk/console"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// readDevice reads what the firmware prints: the model, the work of each operator, then what
// an inference and each operator took.
func readDevice(f *record.File, _ *record.Input) ([]*runlog.Run, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	s := textscan.NewScanner(r)
	var runs []*runlog.Run
	l := &console.Log{}
	flush := func() {
		if d := build(l, draft.Stem(f)); d != nil && len(runs) < 1000 {
			runs = append(runs, d.Run())
		}
		l = &console.Log{}
	}
	for s.Scan() {
		if console.Starts(s.Text()) {
			flush()
		}
		l.Line(s.Text(), false)
	}
	flush()
	if s.Err() != nil {
		return runs, draft.At(f, s.Number(), s.Err())
	}
	if len(runs) == 0 {
		return nil, errDevice
	}
	return runs, nil
}

// build makes the run; nil where no operator was printed.
func build(l *console.Log, name string) *draft.Draft {
	r := l.Reading("mltk", name)
	if r == nil {
		return nil
	}
	d := r.Draft
	for i, figures := range r.Layers {
		for key, v := range figures {
			if key == "latency_s" {
				d.Layer(i).Latency = draft.Value(v.Value)
				continue
			}
			d.Set(i, v.Quantity, v.Value)
			band(d.Layer(i), key, v)
		}
	}
	for key, v := range r.Whole {
		if key == "latency_s" {
			d.P.Totals.Latency = draft.Value(v.Value)
			continue
		}
		d.Total(v.Quantity, v.Value)
	}
	return d
}

// band says between which values a figure lies whose digits were cut off.
func band(l *profile.Layer, key string, v console.Value) {
	if v.High <= v.Value {
		return
	}
	m := profile.Value(profile.Imported, v.Value, "as printed: digits beyond are cut off")
	m.Band = &[2]float64{v.Value, v.High}
	_ = l.Set(key, m) // a foreign figure that was refused has none
}
