package mltk

import (
	"math"
	"regexp"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// number reads a figure with or without a prefix; None and empty cells are not known.
func number(s string) (float64, bool) { return textscan.Scaled(s) }

func whole(s string) *int64 {
	v, ok := number(s)
	if !ok || v < 0 || v > 1<<53 {
		return nil
	}
	return new(int64(math.Round(v)))
}

// build makes the run of a report.
func (r *report) build(f *record.File) *draft.Draft {
	name := r.summary["name"]
	if name == "" {
		name = draft.Stem(f)
	}
	d := draft.New("mltk", name, "TensorFlow Lite Micro")
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
	if c, ok := number(r.summary["cpu_clock_rate"]); ok && c > 0 {
		p.Target.ClockHz = &c
	}
	for _, key := range r.order {
		r.total(d, key, simulated)
	}
	for _, l := range r.layers {
		r.layer(d, l, simulated)
	}
	return d
}

// acceleratorCycles is the quantity of cycles of the accelerator: those of a report of the
// simulator are the simulator's.
func acceleratorCycles(simulated bool) profile.Quantity {
	if simulated {
		return profile.Quantity{Key: "simulator_cycles"}
	}
	return profile.Quantity{Key: "accelerator_cycles"}
}

// total keeps a figure of the summary.
func (r *report) total(d *draft.Draft, key string, simulated bool) {
	v, ok := number(r.summary[key])
	if !ok {
		return
	}
	switch key {
	case "name", "accelerator", "input_shape", "input_dtype", "output_shape", "output_dtype", "tflite_size", "runtime_memory_size", "ops", "macs", "n_layers", "cpu_clock_rate",
		"j_per_op", "j_per_mac", "op_per_s", "mac_per_s": // said elsewhere, or quotients of what is
	case "n_unsupported_layers":
		d.Total(profile.Quantity{Key: "recorded_unsupported_layers", Name: "Layers that the accelerator refuses, as recorded", Whole: true}, v)
	case "accelerator_cycles":
		d.Total(acceleratorCycles(simulated), v)
	case "cpu_cycles":
		d.Total(profile.Quantity{Key: "cpu_cycles"}, v)
	case "energy":
		d.Total(profile.Quantity{Key: "energy_j"}, v)
	case "time":
		d.P.Totals.Latency = draft.Value(v)
	case "cpu_utilization":
		d.Total(profile.Quantity{Key: "cpu_utilisation", Unit: "1", Name: "Utilisation of the processor", Group: "Target"}, v/100)
	case "inf_per_sec":
		d.Total(profile.Quantity{Key: "inferences_per_s", Unit: "/s", Name: "Inferences per second", Group: "Rates", Better: 1}, v)
	default:
		d.Total(profile.Quantity{Key: runlog.Key(key), Name: key}, v)
	}
}

// layer keeps a row.
func (r *report) layer(d *draft.Draft, row map[string]string, simulated bool) {
	l := profile.Layer{Op: strings.ToUpper(row["opcode"]), MLTKOps: whole(row["ops"]), MLTKMACs: whole(row["macs"])}
	l.Inputs, l.Outputs = tensors(row["input_shape"], ""), tensors(row["output_shape"], "")
	h := runlog.Hint{}
	if n := whole(row["index"]); n != nil {
		h.Index = n
		l.Name = strings.ToLower(l.Op) + "_" + row["index"]
	}
	i := d.Add(l, h)
	if i < 0 {
		return
	}
	y := d.Layer(i)
	acc, timed := number(row["accelerator_cycles"])
	on := profile.CPU
	if acc > 0 && d.P.Target.Accelerator != "" {
		on = d.P.Target.Accelerator
	}
	if d.P.Target.Accelerator != "" && timed {
		y.Placement = &profile.Placement{On: on}
	}
	if strings.EqualFold(row["supported"], "false") {
		y.Placement = &profile.Placement{On: on, Cause: profile.ByLimit, Text: draft.Text(row["error_msg"])}
	}
	for _, key := range r.keys {
		v, ok := number(row[key])
		switch key {
		case "index", "opcode", "ops", "macs", "input_shape", "output_shape", "supported", "error_msg":
		case "options":
			layerOptions(d, i, row[key])
		case "accelerator_cycles":
			if ok {
				d.Set(i, acceleratorCycles(simulated), v)
			}
		case "time":
			if ok {
				y.Latency = draft.Value(v)
			}
		case "energy":
			if ok {
				d.Set(i, profile.Quantity{Key: "energy_j"}, v)
			}
		default:
			if ok {
				d.Set(i, profile.Quantity{Key: runlog.Key(key), Name: key}, v)
			} else if t := row[key]; t != "" && t != "None" {
				d.Option(i, key, t)
			}
		}
	}
}

var pair = regexp.MustCompile(`([A-Za-z_]+)[:=](\S+)`)

// layerOptions reads "Padding:Same stride:2x2 activation:Relu", or "Type=none".
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

// tensors reads shapes such as 1x96x96x1,24x3x3x1 and types beside them; 0 is a scalar.
func tensors(shapes, types string) (out []profile.Tensor) {
	ts := strings.Split(types, ",")
	for k, s := range strings.Split(shapes, ",") {
		s = strings.TrimSpace(s)
		if shapes == "" || s == "None" || k >= 1000 {
			return out
		}
		t := profile.Tensor{Shape: []int64{}}
		if s != "0" && s != "" {
			for _, f := range strings.Split(s, "x") {
				n, ok := textscan.Whole(f)
				if !ok || n < 0 {
					n = -1
				}
				t.Shape = append(t.Shape, n)
			}
		}
		if k < len(ts) {
			t.DType = draft.Text(strings.TrimSpace(ts[k]))
		}
		out = append(out, t)
	}
	return out
}
