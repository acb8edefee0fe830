package stacks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile"
)

// Frame is a function on a stack. Kind is set in profiles that opmeter writes: "operator",
// "scope", "kind" or "model".
type Frame struct {
	Function
	Kind string
}

// Label is a label of a sample.
type Label struct {
	Key, Text, Unit string
	Number          int64
	IsNumber        bool
}

// Column is the name and unit of a value that samples have, such as "cpu" and "nanoseconds".
type Column struct{ Name, Unit string }

// Record collects samples with several values. In profiles of programs the functions become
// layers. In profiles of models each sample belongs to an operator, which its labels name.
type Record struct {
	Set Set
	// Columns are the values of each sample. Default names the most important one, "" if unknown.
	Columns []Column
	Default string

	in      []int // columns of the set, -1 without one
	samples int64
	ops     []operator
	at      map[string]int32
	foreign bool // a sample does not belong to an operator
}

// operator is an operator of a model with the sums of its values.
type operator struct {
	profile.Layer
	key    string // of the operator
	owner  string // name of the outer operator
	index  int64  // in the profile, -1 if unknown
	node   int64  // in the model, -1 if unknown
	device string
	engine string
	values []float64
}

var units = []struct {
	names []string
	base  string
	by    float64
}{
	{[]string{"nanoseconds", "nanosecond", "ns"}, "s", 1e-9},
	{[]string{"microseconds", "microsecond", "us", "µs"}, "s", 1e-6},
	{[]string{"milliseconds", "millisecond", "ms"}, "s", 1e-3},
	{[]string{"seconds", "second", "s"}, "s", 1},
	{[]string{"bytes", "byte", "b", "by"}, "B", 1},
	{[]string{"kilobytes", "kb", "kib"}, "B", 1 << 10},
	{[]string{"megabytes", "mb", "mib"}, "B", 1 << 20},
	{[]string{"nanojoules"}, "J", 1e-9},
	{[]string{"microjoules"}, "J", 1e-6},
	{[]string{"joules"}, "J", 1},
	{[]string{"count", "1", ""}, "", 1},
}

// Scale returns the base unit of a unit and the factor for its values.
func Scale(unit string) (base string, by float64) {
	for _, u := range units {
		if slices.Contains(u.names, strings.ToLower(unit)) {
			return u.base, u.by
		}
	}
	return unit, 1
}

// columns chooses the quantities of columns. One time column becomes the latency of the layers.
func (r *Record) columns() {
	main := -1
	for i, c := range r.Columns {
		if base, _ := Scale(c.Unit); base == "s" && (main < 0 || c.Name == r.Default) {
			main = i
		}
	}
	for i, c := range r.Columns {
		base, by := Scale(c.Unit)
		q := profile.Quantity{Key: runlog.Key(c.Name), Unit: base, Name: cmp.Or(c.Name, "Value"), Head: c.Name, Group: "Record", Adds: true, Whole: base == "" || base == "B", Doc: "What the profiler counted in the function itself."}
		switch {
		case i == main:
			q = Time
		case base == "" && c.Name == "samples":
			q = Samples
		case base == "s":
			q.Key += "_s"
		case base == "B":
			q.Key += "_bytes"
		}
		if _, known := profile.Lookup(q.Key); known && q.Key != "latency_s" || q.Key == "" {
			q.Key = strings.TrimSuffix("recorded_"+q.Key, "_")
		}
		n, ok := r.Set.Count(q, by)
		if !ok {
			n = -1
		}
		r.in = append(r.in, n)
	}
}

// Add adds a sample: its stack, the innermost function first, one value per column, and its
// labels.
func (r *Record) Add(frames []Frame, values []int64, labels []Label) {
	if r.in == nil {
		r.columns()
	}
	r.samples++
	place := Root
	for i := len(frames) - 1; i >= 0; i-- {
		f := frames[i].Function
		f.Name = cmp.Or(f.Name, "[unknown]")
		place = r.Set.Call(place, r.Set.Function(f))
	}
	if place < 0 {
		r.Set.Dropped.Add("samples without a stack", 1)
	}
	for i, n := range r.in {
		if i < len(values) && n >= 0 && place >= 0 && values[i] != 0 {
			r.Set.Add(n, place, float64(values[i]))
		}
	}
	if !r.foreign && !r.operator(frames, values, labels) {
		r.foreign, r.ops, r.at = true, nil, nil
	}
}

// Len returns the number of samples.
func (r *Record) Len() int64 { return r.samples }

// operator adds a sample of an operator and reports whether it is one.
func (r *Record) operator(frames []Frame, values []int64, labels []Label) bool {
	o := operator{index: -1, node: -1}
	for _, l := range labels {
		switch {
		case l.IsNumber && l.Key == "layer":
			o.index = l.Number
		case l.IsNumber && l.Key == "node_index":
			o.node = l.Number
		case l.IsNumber && l.Key == "parameter_size" && l.Number > 0:
			o.WeightsBytes = new(l.Number)
		case !l.IsNumber:
			o.text(l.Key, clip(l.Text))
		}
	}
	if o.Op == "" || len(frames) == 0 {
		return false
	}
	leaf := frames[0].Name
	o.Name = clip(leaf)
	if s, ok := strings.CutSuffix(leaf, fmt.Sprintf(" #%d", o.index)); ok && o.index >= 0 {
		if o.Name = clip(s); s == o.Op {
			o.Name = ""
		}
	}
	for _, f := range frames[1:] {
		if f.Kind == "scope" && o.Scope == "" {
			o.Scope = clip(f.Name)
		}
		if f.Kind == "operator" && o.owner == "" {
			o.owner = f.Name
		}
	}
	key := fmt.Sprintf("%s\x00%s\x00%d\x00%d\x00%s", leaf, o.Op, o.index, o.node, o.Scope)
	n, ok := r.at[key]
	if !ok {
		if len(r.ops) >= track.MaxLayers {
			return false
		}
		if r.at == nil {
			r.at = map[string]int32{}
		}
		n = int32(len(r.ops))
		o.key, o.values = leaf, make([]float64, len(r.Columns))
		r.at[key] = n
		r.ops = append(r.ops, o)
	}
	for i := range r.ops[n].values {
		if i < len(values) {
			r.ops[n].values[i] += float64(values[i])
		}
	}
	return true
}

// text sets a field from a label.
func (o *operator) text(key, s string) {
	switch key {
	case "op_type":
		o.Op = s
	case "provider":
		o.engine = s
	case "device":
		o.device = s
	case "kernel":
		o.Kernel = s
	case "graph":
		o.Graph = s
	case "dtype", "output_shape":
		o.output(key, s)
	}
}

// ortShape matches a shape as ONNX Runtime writes it, such as {"float":[1,16,64,64]}.
var ortShape = lazyregexp.New(`(?:\{"([^"]*)"[^\[]*)?\[([^\[\]]*)\]`)

// output reads the type or the shape ("1x16x64x64") of the first output.
func (o *operator) output(key, s string) {
	if len(o.Outputs) == 0 {
		o.Outputs = []profile.Tensor{{}}
	}
	if key == "dtype" {
		o.Outputs[0].DType = s
		return
	}
	if m := ortShape.FindStringSubmatch(s); m != nil {
		o.Outputs[0].DType = cmp.Or(m[1], o.Outputs[0].DType)
		s = strings.NewReplacer(" ", "", ",", "x").Replace(m[2])
	}
	if shape, ok := track.Dims(s, "x"); ok && len(shape) <= 64 {
		o.Outputs[0].Shape = shape
	}
}

// Run fills a run. The layers are the operators of a model, or the functions of a program.
func (r *Record) Run(run *runlog.Run) {
	if r.in == nil {
		r.columns()
	}
	if r.foreign || len(r.ops) == 0 {
		var none track.Trace
		Finish(run, &r.Set, &none, "")
		return
	}
	r.modelRun(run)
}

// modelRun makes layers of operators. Values are sums over all inferences; one of the columns is
// the number of inferences.
func (r *Record) modelRun(run *runlog.Run) {
	p := run.Profile
	times := slices.IndexFunc(r.Columns, func(c Column) bool { return c.Name == "inferences" })
	sorting.Stable(r.ops, func(a, b operator) int { return cmp.Compare(a.index, b.index) })
	at := map[string]int64{}
	for i := range r.ops {
		if _, ok := at[r.ops[i].key]; !ok {
			at[r.ops[i].key] = int64(i)
		}
	}
	var qs runlog.Quantities
	for i := range r.ops {
		o := &r.ops[i]
		l := o.Layer
		if n, ok := at[o.owner]; ok && n < int64(i) {
			l.Parent = &n
		}
		runs := 1.0
		if times >= 0 && o.values[times] > 0 {
			runs = o.values[times]
		}
		for c, v := range o.values {
			// In this format, 0 also stands for an unknown value.
			if c != times && v != 0 {
				base, by := Scale(r.Columns[c].Unit)
				track.Set(&qs, &l, figure(r.Columns[c].Name, base), v*by/runs)
			}
		}
		h := runlog.Hint{}
		if o.Name != "" {
			h.Nodes = []string{o.Name}
		}
		if o.node >= 0 {
			h.Index = new(o.node)
		}
		run.Hints = append(run.Hints, h)
		p.Layers = append(p.Layers, l)
		p.Target.ID, p.Target.Engine = cmp.Or(p.Target.ID, o.device), cmp.Or(p.Target.Engine, o.engine)
	}
	if times >= 0 && len(r.ops) > 0 && r.ops[0].values[times] > 0 && r.ops[0].values[times] < 1e15 {
		p.Settings.Runs = new(int64(r.ops[0].values[times]))
	}
	p.Quantities = qs.List
	r.Set.Dropped.To(run)
}

// figure returns the quantity of a column in the profile of a model.
func figure(name, base string) profile.Quantity {
	key := runlog.Key(name)
	switch {
	case (name == "wall" || name == "cpu" || name == "time") && base == "s":
		return profile.Quantity{Key: "latency_s"}
	case name == "energy" && base == "J":
		return profile.Quantity{Key: "energy_j"}
	case name == "bytes" && base == "B":
		return profile.Quantity{Key: "moved_bytes", Unit: "B", Name: "Bytes read and written", Head: "moved", Group: "Record", Adds: true, Whole: true, Better: -1, Doc: "Size of what the layer reads and writes in one inference."}
	}
	q := profile.Quantity{Key: key, Unit: base, Name: name, Head: name, Group: "Record", Adds: true}
	if _, known := profile.Lookup(key); known || key == "" {
		return q
	}
	switch base {
	case "B":
		q.Key += "_bytes"
	case "s":
		q.Key += "_s"
	case "J":
		q.Key += "_j"
	}
	return q
}
