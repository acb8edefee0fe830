package mltk

import (
	"cmp"
	"math"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// whole parses a figure with or without a decimal prefix; nil for other text and negative figures.
func whole(s string) *int64 {
	v, ok := textscan.Scaled(s)
	return draft.Count(int64(math.Round(v)), ok && v >= 0 && v <= 1<<53)
}

// build makes the run of a report.
func (r *report) build(f *record.File) *draft.Draft {
	d := draft.New("mltk", cmp.Or(r.summary["name"], draft.Stem(f)), "TensorFlow Lite Micro")
	p := d.P
	simulated := strings.Contains(f.Name, "simulated")
	if a := r.summary["accelerator"]; a != "" && !strings.EqualFold(a, "none") {
		p.Target.Accelerator = draft.Text(strings.ToLower(a))
	}
	p.Model.Inputs = tensors(r.summary["input_shape"], r.summary["input_dtype"])
	p.Model.Outputs = tensors(r.summary["output_shape"], r.summary["output_dtype"])
	p.Model.FileBytes = whole(r.summary["tflite_size"])
	p.Totals.RAMBytes = whole(r.summary["runtime_memory_size"])
	p.Totals.MLTKOps, p.Totals.MLTKMACs = whole(r.summary["ops"]), whole(r.summary["macs"])
	if c, ok := textscan.Scaled(r.summary["cpu_clock_rate"]); ok && c > 0 {
		p.Target.ClockHz = &c
	}
	for _, key := range r.order {
		r.total(d, key, simulated)
	}
	for _, l := range r.layers {
		r.addLayer(d, l, simulated)
	}
	return d
}

// acceleratorCycles is the quantity of cycles of the accelerator. A report of the simulator has
// the simulator's cycles.
func acceleratorCycles(simulated bool) profile.Quantity {
	if simulated {
		return profile.Quantity{Key: "simulator_cycles"}
	}
	return profile.Quantity{Key: "accelerator_cycles"}
}

var energy = profile.Quantity{Key: "energy_j"}

// summaryFields are figures of the summary.
var summaryFields = draft.Fields{
	"n_unsupported_layers": {Q: profile.Quantity{Key: "recorded_unsupported_layers", Name: "Layers that the accelerator refuses, as recorded", Whole: true}},
	"cpu_cycles":           {Q: profile.Quantity{Key: "cpu_cycles"}},
	"energy":               {Q: energy},
	"cpu_utilization":      {Q: profile.Quantity{Key: "cpu_utilisation", Unit: "1", Name: "Utilisation of the processor", Group: "Target"}, Scale: 1e-2},
	"inf_per_sec":          {Q: profile.Quantity{Key: "inferences_per_s", Unit: "/s", Name: "Inferences per second", Group: "Rates", Better: 1}},
}

// total keeps a figure of the summary.
func (r *report) total(d *draft.Draft, key string, simulated bool) {
	v, ok := textscan.Scaled(r.summary[key])
	if !ok || summaryFields.Total(d, key, v) {
		return
	}
	switch key {
	case "name", "accelerator", "input_shape", "input_dtype", "output_shape", "output_dtype", "tflite_size", "runtime_memory_size", "ops", "macs", "n_layers", "cpu_clock_rate",
		"j_per_op", "j_per_mac", "op_per_s", "mac_per_s":
		// They have other places in the profile, or are quotients of such figures.
	case "accelerator_cycles":
		d.Total(acceleratorCycles(simulated), v)
	case "time":
		d.P.Totals.Latency = draft.Value(v)
	default:
		d.Total(profile.Quantity{Key: runlog.Key(key), Name: key}, v)
	}
}

// addLayer makes a layer of a row.
func (r *report) addLayer(d *draft.Draft, row map[string]string, simulated bool) {
	l := profile.Layer{Op: strings.ToUpper(row["opcode"]), MLTKOps: whole(row["ops"]), MLTKMACs: whole(row["macs"])}
	l.Inputs, l.Outputs = tensors(row["input_shape"], ""), tensors(row["output_shape"], "")
	h := runlog.Hint{Index: whole(row["index"])}
	if h.Index != nil {
		l.Name = strings.ToLower(l.Op) + "_" + row["index"]
	}
	acc, timed := textscan.Scaled(row["accelerator_cycles"])
	on, accelerator := profile.CPU, d.P.Target.Accelerator
	if acc > 0 && accelerator != "" {
		on = accelerator
	}
	if accelerator != "" && timed {
		l.Placement = &profile.Placement{On: on}
	}
	if strings.EqualFold(row["supported"], "false") {
		l.Placement = &profile.Placement{On: on, Cause: profile.ByLimit, Text: draft.Text(row["error_msg"])}
	}
	i := d.Add(l, h)
	if i < 0 {
		return
	}
	for _, key := range r.keys {
		v, ok := textscan.Scaled(row[key])
		q := profile.Quantity{Key: runlog.Key(key), Name: key}
		switch key {
		case "index", "opcode", "ops", "macs", "input_shape", "output_shape", "supported", "error_msg":
			continue
		case "options":
			layerOptions(d, i, row[key])
			continue
		case "time":
			if ok {
				d.Layer(i).Latency = draft.Value(v)
			}
			continue
		case "accelerator_cycles":
			q = acceleratorCycles(simulated)
		case "energy":
			q = energy
		default:
			if t := row[key]; !ok && t != "None" {
				d.Option(i, key, t)
			}
		}
		if ok {
			d.Set(i, q, v)
		}
	}
}

var pair = lazyregexp.New(`([A-Za-z_]+)[:=](\S+)`)

// layerOptions parses "Padding:Same stride:2x2 activation:Relu", or "Type=none".
func layerOptions(d *draft.Draft, i int, s string) {
	for _, m := range pair.FindAllStringSubmatch(s, 50) {
		key, value := strings.ToLower(m[1]), m[2]
		if key == "type" && strings.EqualFold(value, "none") {
			continue
		}
		if key == "padding" || key == "activation" {
			value = strings.ToLower(value)
		}
		d.Option(i, key, value)
	}
}

// tensors parses shapes such as 1x96x96x1,24x3x3x1 and their types; 0 is a scalar.
func tensors(shapes, types string) (out []profile.Tensor) {
	ts := strings.Split(types, ",")
	for k, s := range strings.Split(shapes, ",") {
		s = strings.TrimSpace(s)
		if shapes == "" || s == "None" || k >= 1000 {
			return out
		}
		t := profile.Tensor{Shape: []int64{}}
		if s != "0" && s != "" {
			t.Shape = draft.Shape(s, "x")
		}
		if k < len(ts) {
			t.DType = draft.Text(strings.TrimSpace(ts[k]))
		}
		out = append(out, t)
	}
	return out
}
