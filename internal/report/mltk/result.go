package mltk

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// Options sets what a report shows. The zero value is the profiler's own default
// for its command line.
type Options struct {
	// Raw writes plain numbers where the layout has decimal prefixes: in the text
	// and in both files of [Folder]. JSON and CSV by themselves are always plain.
	Raw bool
	// Estimates adds estimated processor cycles, time and energy. Measured ones
	// are always shown.
	Estimates bool
	// Full adds what the accelerator did and the memory plan.
	Full bool
	// Accelerator replaces the accelerator's name, "" for that of the profile.
	Accelerator string
	// Text makes text from a file safe for where it is shown; nil leaves it.
	Text func(string) string
}

// field is one figure with its key in JSON and CSV and its label in text. The
// value is a string, bool, int64 or float64, or nil when it is not known.
type field struct {
	key, label string
	value      any
}

// result is a profile in the profiler's terms.
type result struct {
	summary []field
	layers  [][]field // all with the same keys
	plan    *plan     // only of full reports
	remark  string    // what the totals leave out
}

// layer is what the profiler records of a layer.
type layer struct {
	*profile.Layer
	ops, macs *int64
	acc, cpu  *int64
	time      *float64
	energy    *float64
	message   string
}

// count is what the accelerator did for the layer, 0 where it did nothing.
func (l *layer) count(key string) int64 {
	v, _ := l.Value(key)
	return int64(v)
}

// newResult gathers the figures and leaves out what the profiler leaves out.
func newResult(p *profile.Profile, o Options) *result {
	var ls []layer
	for i := range p.Layers {
		if p.Layers[i].Parent == nil { // the profiler knows the main graph only
			ls = append(ls, measure(p, &p.Layers[i], o))
		}
	}
	var t layer // totals
	unsupported := int64(0)
	for i := range ls {
		l := &ls[i]
		add(&t.ops, l.ops)
		add(&t.macs, l.macs)
		add(&t.acc, l.acc)
		add(&t.cpu, l.cpu)
		add(&t.time, l.time)
		add(&t.energy, l.energy)
		if l.message != "" {
			unsupported++
		}
	}
	var extra []string // keys of the accelerator's counts that some layer has
	if o.Full {
		for _, key := range []string{"accelerator_instructions", "accelerator_no_ops", "accelerator_programs", "accelerator_stalls"} {
			if slices.ContainsFunc(ls, func(l layer) bool { return l.count(key) != 0 }) {
				extra = append(extra, key)
			}
		}
	}
	r := &result{summary: summary(p, &t, int64(len(ls)), unsupported, o)}
	total := make([]int64, len(extra))
	for i := range ls {
		l := &ls[i]
		fs := []field{
			{"index", "Index", int64(i)},
			{"opcode", "OpCode", strings.ToLower(l.Op)},
			{"ops", "# Ops", known(l.ops)},
			{"macs", "# MACs", known(l.macs)},
		}
		if some(t.acc) {
			fs = append(fs, field{"accelerator_cycles", "Acc Cycles", known(l.acc)})
		}
		for k, key := range extra {
			n := l.count(key)
			total[k] += n
			fs = append(fs, field{key, title(key), n})
		}
		if some(t.cpu) {
			fs = append(fs, field{"cpu_cycles", "CPU Cycles", known(l.cpu)})
		}
		if some(t.energy) {
			fs = append(fs, field{"energy", "Energy (J)", known(l.energy)})
		}
		if some(t.time) {
			fs = append(fs, field{"time", "Time (s)", known(l.time)})
		}
		fs = append(fs, field{"input_shape", "Input Shape", shapes(l.Inputs)}, field{"output_shape", "Output Shape", shapes(l.Outputs)}, field{"options", "Options", options(l.Layer)})
		if unsupported > 0 {
			var message any
			if l.message != "" {
				message = l.message
			}
			fs = append(fs, field{"supported", "Supported?", l.message == ""}, field{"error_msg", "Error Msg", message})
		}
		r.layers = append(r.layers, fs)
	}
	for k, key := range extra {
		r.summary = append(r.summary, field{key, title(key), total[k]})
	}
	if o.Full {
		r.plan = newPlan(p, ls)
	}
	if some(t.time) {
		r.remark = words.Incomplete(p)
	}
	return r
}

// measure reads a layer's figures.
func measure(p *profile.Profile, l *profile.Layer, o Options) layer {
	m := layer{Layer: l, ops: l.MLTKOps, macs: l.MLTKMACs, message: message(l)}
	latency := l.Latency
	if l.Total != nil {
		latency = l.Total // with the bodies, which are not listed
	}
	shown := func(m *profile.Metric) (float64, bool) {
		v, ok := m.Best()
		return v, ok && (o.Estimates || m.Kind == profile.Measured)
	}
	if v, ok := l.SimulatorCycles.Best(); ok {
		m.acc = new(int64(math.Round(v)))
	} else if v, ok := l.AcceleratorCycles.Best(); ok && l.AcceleratorCycles.Kind == profile.Measured {
		m.acc = new(int64(math.Round(v)))
	} else if yes, known := l.Accelerated(); known && !yes {
		m.acc = new(int64(0))
	}
	if v, ok := shown(l.CPUCycles); ok {
		m.cpu = new(int64(math.Round(v)))
	}
	if v, ok := shown(l.Energy); ok {
		m.energy = &v
	}
	switch v, ok := shown(latency); {
	case !ok:
	case p.Target.Kind == profile.TargetSimulator && m.cpu != nil && hertz(p) > 0:
		// The profiler takes the longer of the two, which overlap in truth only in part.
		cycles := *m.cpu
		if m.acc != nil {
			cycles = max(cycles, *m.acc)
		}
		m.time = new(float64(cycles) / hertz(p))
	default:
		m.time = &v
	}
	return m
}

// summary lists the figures of the whole model, t being the sums over n layers.
func summary(p *profile.Profile, t *layer, n, unsupported int64, o Options) []field {
	accelerator := cmp.Or(o.Accelerator, p.Target.Accelerator, "None")
	if accelerator != "None" {
		accelerator = strings.ToUpper(accelerator)
	}
	fs := []field{
		{"name", "Name", p.Model.Name},
		{"accelerator", "Accelerator", accelerator},
		{"input_shape", "Input Shape", shapes(p.Model.Inputs)},
		{"input_dtype", "Input Data Type", types(p.Model.Inputs)},
		{"output_shape", "Output Shape", shapes(p.Model.Outputs)},
		{"output_dtype", "Output Data Type", types(p.Model.Outputs)},
		{"tflite_size", "Flash, Model File Size (bytes)", known(p.Model.FileBytes)},
		{"runtime_memory_size", "RAM, Runtime Memory Size (bytes)", known(p.Totals.RAMBytes)},
		{"ops", "Operation Count", known(t.ops)},
		{"macs", "Multiply-Accumulate Count", known(t.macs)},
		{"n_layers", "Layer Count", n},
		{"n_unsupported_layers", "Unsupported Layer Count", unsupported},
	}
	if some(t.acc) {
		fs = append(fs, field{"accelerator_cycles", "Accelerator Cycle Count", known(t.acc)})
	}
	clock := hertz(p)
	if some(t.cpu) {
		fs = append(fs, field{"cpu_cycles", "CPU Cycle Count", known(t.cpu)})
		if some(t.time) && clock > 0 {
			fs = append(fs, field{"cpu_utilization", "CPU Utilization (%)", 100 * min(float64(*t.cpu) / *t.time / clock, 1)})
		}
	}
	if clock > 0 && some(t.time) {
		fs = append(fs, field{"cpu_clock_rate", "Clock Rate (hz)", int64(clock)})
	}
	if some(t.time) {
		fs = append(fs, field{"time", "Time (s)", *t.time})
	}
	if some(t.energy) {
		fs = append(fs, field{"energy", "Energy (J)", *t.energy}, field{"j_per_op", "J/Op", per(*t.energy, t.ops)}, field{"j_per_mac", "J/MAC", per(*t.energy, t.macs)})
	}
	if some(t.time) {
		fs = append(fs, field{"op_per_s", "Ops/s", rate(t.ops, *t.time)}, field{"mac_per_s", "MACs/s", rate(t.macs, *t.time)}, field{"inf_per_sec", "Inference/s", 1 / *t.time})
	}
	return fs
}

func hertz(p *profile.Profile) float64 {
	if p.Target.ClockHz == nil {
		return 0
	}
	return *p.Target.ClockHz
}

// per divides by a count, 0 by 0 as the profiler does.
func per(v float64, n *int64) any {
	switch {
	case n == nil:
		return nil
	case *n == 0:
		return float64(0)
	}
	return v / float64(*n)
}

func rate(n *int64, s float64) any {
	if n == nil {
		return nil
	}
	return float64(*n) / s
}

// add adds what is known.
func add[T int64 | float64](sum **T, v *T) {
	if v == nil {
		return
	}
	if *sum == nil {
		*sum = new(T)
	}
	**sum += *v
}

// some reports whether a total is there and not zero.
func some[T int64 | float64](v *T) bool { return v != nil && *v > 0 }

func known[T int64 | float64](v *T) any {
	if v == nil {
		return nil
	}
	return *v
}

// title turns a key into a label: accelerator_no_ops, Accelerator No Ops.
func title(key string) string {
	words := strings.Split(key, "_")
	for i, w := range words {
		words[i] = strings.ToUpper(w[:min(1, len(w))]) + w[min(1, len(w)):]
	}
	return strings.Join(words, " ")
}

// shapes joins the shapes of all tensors that are there, constants included. The
// profiler writes 0 for a scalar, and a tensor without a shape is one for its runtime.
func shapes(ts []profile.Tensor) string {
	var out []string
	for _, t := range ts {
		if t.Absent {
			continue
		}
		dims := make([]string, len(t.Shape))
		for i, d := range t.Shape {
			dims[i] = fmt.Sprint(d)
		}
		out = append(out, cmp.Or(strings.Join(dims, "x"), "0"))
	}
	return strings.Join(out, ",")
}

func types(ts []profile.Tensor) string {
	var out []string
	for _, t := range ts {
		if !t.Absent {
			out = append(out, t.DType)
		}
	}
	return strings.Join(out, ",")
}

// message is what the accelerator's kernels say about a layer that one of them
// refuses, "" for supported ones: also where another kernel took it afterwards.
// Layers that the accelerator has no kernel for, or not in their type, count as
// supported.
func message(l *profile.Layer) string {
	switch {
	case l.State == profile.Unsupported:
		return words.State(l)
	case l.Placement != nil && l.Placement.Cause == profile.ByLimit:
		return cmp.Or(l.Placement.Text, "limit exceeded")
	}
	return ""
}

// optionTypes are the types of options that the profiler names where it does not
// show the options themselves, for profiles that do not name the option table.
var optionTypes = map[string]string{
	"SOFTMAX": "softmax", "PAD": "pad", "MEAN": "reducer", "SHAPE": "shape", "STRIDED_SLICE": "stridedslice", "PACK": "pack", "SUB": "sub",
}

// detailed lists the operators whose options the profiler shows.
var detailed = map[string]bool{
	"CONV_2D": true, "DEPTHWISE_CONV_2D": true, "TRANSPOSE_CONV": true, "FULLY_CONNECTED": true, "ADD": true,
	"MUL": true, "AVERAGE_POOL_2D": true, "MAX_POOL_2D": true,
}

// options is the text of the profiler's later releases: words begin with capitals.
func options(l *profile.Layer) string {
	activation := func(o profile.Option) bool { return o.Key == "activation" }
	if !detailed[l.Op] || !slices.ContainsFunc(l.Options, activation) {
		t, ok := optionTypes[l.Op]
		switch {
		case l.OptionTable != "":
			t = strings.ToLower(l.OptionTable)
		case ok:
			t += "options"
		default:
			t = "none"
		}
		return "Type=" + t
	}
	list := slices.DeleteFunc(slices.Clone(l.Options), func(o profile.Option) bool {
		return l.Op == "TRANSPOSE_CONV" && activation(o)
	})
	parts := make([]string, len(list))
	for i, o := range list {
		k, v := o.Key, o.Value
		if k == "padding" || k == "activation" {
			v = strings.ReplaceAll(title(v), " ", "_")
		}
		if i == 0 {
			k = title(k)
		}
		parts[i] = k + ":" + v
	}
	return strings.Join(parts, " ")
}
