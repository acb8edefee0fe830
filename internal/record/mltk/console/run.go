package console

import (
	"math"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// Reading is the content of a text about one inference.
type Reading struct {
	// Draft has the model as the board names it, its layers and findings, but no measured
	// figures.
	Draft *draft.Draft
	// Whole has figures of the model, Layers those of each layer, by key.
	Whole  map[string]Value
	Layers []map[string]Value
	// Missing is the number of operators without a line, which may have been lost. Silent is their
	// number in a complete text: the firmware prints nothing about operators that took no time.
	Missing, Silent int64
}

// Unknown is the name of an operator about which nothing is printed.
const Unknown = "unknown"

// Value is a figure. The true one lies between Value and High: digits are cut off.
type Value struct {
	Value, High float64
	// Quantity describes it; opmeter's own quantities have the key only.
	Quantity profile.Quantity
}

// Reading ends the text and returns its content, nil if it has no figures. name is used for a model
// that the text does not name. No more lines may follow.
func (l *Log) Reading(format, name string) *Reading {
	if l.Empty() {
		return nil
	}
	contradictions := l.check()
	d := draft.New(format, name, "TensorFlow Lite Micro")
	l.details(d)
	r := &Reading{Draft: d, Whole: map[string]Value{}}
	for n := int64(0); n <= l.last && len(l.Ops) > 0; n++ {
		o := l.Ops[n]
		y := profile.Layer{State: profile.Ran}
		if o == nil {
			o = &Op{Name: Unknown}
			if l.Done && l.Damaged == 0 {
				r.Silent++
			} else {
				r.Missing++
				y.State, y.Cause = profile.Lost, &profile.Cause{Code: profile.ByRecord}
			}
		}
		y.Op, y.Name = o.Name, strings.ToLower(o.Name)
		i := d.Add(y, runlog.Hint{Index: new(n)})
		if i < 0 {
			break
		}
		r.Layers = append(r.Layers, o.layer(d, i))
	}
	d.P.Totals.MLTKOps, d.P.Totals.MLTKMACs = l.Whole.figures(r.Whole)
	l.findings(d, r, contradictions)
	return r
}

// details sets the model and the target.
func (l *Log) details(d *draft.Draft) {
	for _, p := range l.Details {
		v, ok := textscan.Scaled(strings.TrimSuffix(p[1], "Hz"))
		switch {
		case p[0] == "Name":
			d.P.Model.Name = draft.Text(p[1])
		case p[0] == "Accelerator" && !strings.EqualFold(p[1], "none"):
			d.P.Target.Accelerator = draft.Text(strings.ToLower(p[1]))
		case p[0] == "CPU clock" && ok && v > 0:
			d.P.Target.ClockHz = &v
		case p[0] == "Tensor runtime memory":
			if v, ok := textscan.Scaled(strings.Fields(p[1])[0]); ok && v >= 0 && v <= 1<<53 {
				d.P.Totals.RAMBytes = new(int64(math.Round(v)))
			}
		}
		d.Note(p[0], p[1])
	}
}

// findings adds findings about missing and contradictory parts of the text.
func (l *Log) findings(d *draft.Draft, r *Reading, contradictions []string) {
	if r.Missing > 0 {
		d.Lost = append(d.Lost, profile.Loss{Records: new(r.Missing), Cause: profile.Cause{Code: profile.ByRecord, Text: "operators without a line in the log"}})
	}
	if r.Silent > 0 {
		d.Found("mltk.silent", profile.Info, "The board printed nothing of %d operators: its profiler leaves out what took less than its clock can tell.", r.Silent)
	}
	if l.Damaged > 0 {
		d.Lost = append(d.Lost, profile.Loss{Records: new(l.Damaged), Cause: profile.Cause{Code: profile.ByRecord, Text: "lines that are damaged, stand twice or belong to no operator that is known"}})
		d.Found("mltk.damaged", profile.Warning, "%d lines of the board's text were left out: they are damaged, stand twice, or it is not known which operator they are of.", l.Damaged)
	}
	if len(contradictions) > 0 {
		d.Found("mltk.sums", profile.Warning, "The operators do not add up to what the board printed of the whole (%s): at least one of these figures is damaged. Measure again.", strings.Join(contradictions, ", "))
	}
	switch {
	case l.Failed != "":
		d.Found("mltk.failed", profile.Warning, "The board's profiler reported a failure: %s", l.Failed)
	case !l.Done:
		d.Found("mltk.cut", profile.Warning, "The log does not end with the profiler's last word: operators may be missing.")
	}
}

// figures adds the measured figures to out, and returns the counts of work.
func (o *Op) figures(out map[string]Value) (ops, macs *int64) {
	for _, f := range o.Figures {
		n := draft.Count(int64(math.Round(f.Value)), f.Value <= 1<<53)
		switch {
		case f.bad:
		case f.Unit == "OPs":
			ops = n
		case f.Unit == "MACs":
			macs = n
		default:
			o.put(out, f)
		}
	}
	return ops, macs
}

// layer sets the known facts about an operator and returns the measured figures.
func (o *Op) layer(d *draft.Draft, i int) map[string]Value {
	y := d.Layer(i)
	out := map[string]Value{}
	y.MLTKOps, y.MLTKMACs = o.figures(out)
	a := d.P.Target.Accelerator
	if a == "" && o.Refused == "" {
		return out
	}
	y.Placement = &profile.Placement{On: profile.CPU}
	if a != "" && out["accelerator_cycles"].Value > 0 {
		y.Placement.On = a
	}
	if o.Refused != "" {
		y.Placement.Cause, y.Placement.Text = profile.ByLimit, o.Refused
	}
	return out
}

// put keeps a measured figure, except rates: they follow from others.
func (o *Op) put(out map[string]Value, f *Figure) {
	v := Value{Value: f.Value, High: f.High}
	switch f.Unit {
	case "OP/s", "MAC/s":
		return
	case "ms", "us", "s":
		v.Quantity.Key = "latency_s"
	case "CPU cycles":
		v.Quantity.Key = "cpu_cycles"
	case "Accelerator cycles":
		v.Quantity.Key = "accelerator_cycles"
	default:
		name := strings.TrimPrefix(f.Unit, "=")
		v.Quantity = profile.Quantity{Key: runlog.Key(name), Name: name}
	}
	switch f.Note {
	case "", sumNote:
	case "free running":
		// The counter ran on while the processor waited for the accelerator.
		v.Quantity = profile.Quantity{Key: "free_running_cycles", Unit: "cycles", Name: "Cycles from begin to end", Group: "Target", Better: -1}
	default:
		v.Quantity = profile.Quantity{Key: v.Quantity.Key + "_" + runlog.Key(f.Note), Unit: "cycles", Name: f.Unit + ", " + f.Note}
	}
	if _, ok := out[v.Quantity.Key]; ok && f.Note != sumNote {
		return
	}
	out[v.Quantity.Key] = v
}
