package mltk

import (
	"errors"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/mltk/console"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

var errDevice = errors.New("the log of a board ends before its profiler has printed an operator")

// readDevice reads the output of the firmware: the model, the work of each operator, then the
// times of an inference and of each operator.
func readDevice(f *record.File) (runs []*runlog.Run, err error) {
	l := &console.Log{}
	flush := func() {
		if d := build(l, draft.Stem(f)); d != nil && len(runs) < maxReports {
			runs = append(runs, d.Run())
		}
		l = &console.Log{}
	}
	err = f.Lines(func(line string) {
		line = textscan.Strip(line)
		if console.Starts(line) {
			flush()
		}
		l.Line(line, false)
	})
	flush()
	if err == nil && len(runs) == 0 {
		err = errDevice
	}
	return runs, err
}

// build makes the run, nil if no operator was printed.
func build(l *console.Log, name string) *draft.Draft {
	r := l.Reading("mltk", name)
	if r == nil {
		return nil
	}
	d := r.Draft
	for i, figures := range r.Layers {
		y := d.Layer(i)
		for key, v := range figures {
			if key == "latency_s" {
				y.Latency = draft.Value(v.Value)
				continue
			}
			d.Set(i, v.Quantity, v.Value)
			if v.High > v.Value {
				m := profile.Value(profile.Imported, v.Value, "as printed: digits beyond are cut off")
				m.Band = &[2]float64{v.Value, v.High}
				_ = y.Set(key, m) // fails for a quantity that was refused before
			}
		}
	}
	for key, v := range r.Whole {
		if key == "latency_s" {
			d.P.Totals.Latency = draft.Value(v.Value)
		} else {
			d.Total(v.Quantity, v.Value)
		}
	}
	return d
}
