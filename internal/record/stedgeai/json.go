package stedgeai

import (
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsontree"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/profile"
)

func count(v *jsontree.Value) *int64 { return draft.Count(v.Int()) }

// array makes a tensor without shape.
func array(name string, format, bytes, constant *jsontree.Value) profile.Tensor {
	return profile.Tensor{Name: draft.Text(name), DType: dtype(format.Str()), Bytes: count(bytes), Constant: constant.Str() == "true"}
}

// shape returns dimensions, negative ones as -1; nil if v is not a list of integers.
func shape(v *jsontree.Value) []int64 {
	s, ok := v.Ints()
	if !ok {
		return nil
	}
	for i := range s {
		s[i] = max(-1, s[i])
	}
	return s
}

// set sets a quantity of a layer to a number; other values are ignored.
func (n *network) set(i int, q profile.Quantity, v *jsontree.Value, scale float64) {
	n.d.SetKnown(i, q, draft.Known(v.Float()), scale)
}

// total sets a quantity of the model to a number; other values are ignored.
func (n *network) total(q profile.Quantity, v *jsontree.Value) {
	if f, ok := v.Float(); ok {
		n.d.Total(q, f)
	}
}

// graph reads a c_graph file.
func (n *network) graph(v *jsontree.Value) {
	d := n.d
	n.tflite = v.Get("type").Str() == "tflite"
	n.name(v.Get("model_name").Str())
	tensors := map[string]profile.Tensor{}
	for _, a := range v.Get("c_arrays").List() {
		for _, t := range a.Get("tensors").List() {
			x := array(t.Get("name").Str(), a.Get("format"), a.Get("c_size_in_byte"), a.Get("is_const"))
			x.Shape = shape(t.Get("shape"))
			if scale := a.Get("scale").List(); len(scale) == 1 {
				x.Scale = draft.Known(scale[0].Float())
				if zs := a.Get("zeropoint").List(); len(zs) == 1 {
					if z, ok := zs[0].Int(); ok {
						x.ZeroPoint = &z
					}
				}
			}
			tensors[x.Name] = x
		}
	}
	ports := func(vs *jsontree.Value) (out []profile.Tensor) {
		for _, e := range vs.List() {
			t, ok := tensors[e.Str()]
			if !ok {
				t = profile.Tensor{Name: draft.Text(e.Str())}
			}
			out = append(out, t)
		}
		return out
	}
	for _, l := range v.Get("c_layers").List() {
		i := n.layer(l.Get("c_id").Str(), l.Get("name").Str(), l.Get("layer_type").Str())
		if i < 0 {
			return
		}
		y := d.Layer(i)
		t := l.Get("tensors")
		y.Inputs, y.Outputs = append(ports(t.Get("inputs")), ports(t.Get("weights"))...), ports(t.Get("outputs"))
		y.Kernel = draft.Text(strings.Trim(l.Get("c_forward").Brief(), "[]"))
		y.WeightsBytes = count(l.Get("rom"))
		n.source(i, l.Get("m_id").Str())
		for key, e := range l.Members() {
			switch key {
			case "c_id", "m_id", "name", "layer_type", "c_forward", "rom", "tensors":
			case "macc":
				n.set(i, macc, e, 1)
			case "weight_sparsity":
				sparsity(y, e)
				d.Option(i, key, e.Brief())
			default:
				n.keep(i, key, e)
			}
		}
	}
	d.P.Model.Inputs, d.P.Model.Outputs = ports(v.Get("inputs")), ports(v.Get("outputs"))
	n.footprint(v.Get("memory_footprint"))
	for key, e := range v.Members() {
		switch {
		case key == "macc":
			n.total(macc, e)
		case e == nil || e.Kind == jsontree.List || e.Kind == jsontree.Object && key != "compilation_options":
		default:
			d.Note(key, e.Brief())
		}
	}
}

// sparsity reads a list: the share of zero weights, the number of weights, the number of zeros.
func sparsity(y *profile.Layer, v *jsontree.Value) {
	list := v.List()
	if len(list) == 0 {
		return
	}
	if f, ok := list[0].Float(); ok && f >= 0 && f <= 1 {
		y.Sparsity = &profile.Sparsity{Weights: &f}
	}
	if len(list) > 1 {
		y.Params = count(list[1])
	}
}

// keep keeps a member without a place in the profile: a number as quantity, others as option.
func (n *network) keep(i int, key string, e *jsontree.Value) {
	if f, ok := e.Float(); ok && e.Kind == jsontree.Number {
		n.d.Set(i, profile.Quantity{Key: "st_" + runlog.Key(key), Name: key}, f)
	} else if e != nil && e.Kind != jsontree.Null && len(e.Items)+len(e.Text) > 0 {
		n.d.Option(i, key, e.Brief())
	}
}

// plan returns the memory of the profile, which it adds if absent.
func (n *network) plan() *profile.Memory {
	if n.d.P.Memory == nil {
		n.d.P.Memory = &profile.Memory{}
	}
	return n.d.P.Memory
}

// memory sets the sizes of activations and weights; nil is ignored.
func (n *network) memory(activations, weights *int64) {
	t := &n.d.P.Totals
	if activations != nil {
		n.plan().ArenaBytes = activations
		if t.RAMBytes == nil {
			t.RAMBytes = activations
		}
	}
	if weights != nil {
		t.FlashBytes, t.WeightsBytes = weights, weights
	}
}

func (n *network) footprint(v *jsontree.Value) {
	n.memory(count(v.Get("activations")), count(v.Get("weights")))
}

// info reads a c_info file: nodes with their times if the network ran, buffers with their
// places.
func (n *network) info(v *jsontree.Value) {
	d := n.d
	for _, t := range v.Get("environment").Get("tools").List() {
		m := t.Get("input_model")
		n.tflite = m.Get("type").Str() == "tflite"
		n.name(m.Get("name").Str())
		if p := count(m.Get("n_params")); p != nil {
			d.P.Totals.Params = p
		}
		d.Note(t.Get("name").Str(), t.Get("version").Str())
	}
	buffers := map[string]profile.Tensor{}
	var plan []profile.Buffer
	for _, b := range v.Get("buffers").List() {
		t := array(strings.TrimSuffix(b.Get("name").Str(), "_array"), b.Get("format"), b.Get("size_bytes"), b.Get("is_param"))
		t.Shape = shape(b.Get("shape"))
		buffers[b.Get("id").Str()] = t
		first, last, at := count(b.Get("epochs").Get("start")), count(b.Get("epochs").Get("end")), count(b.Get("offset_start"))
		if !t.Constant && first != nil && last != nil && at != nil && t.Bytes != nil && *last >= *first && len(plan) < draft.MaxLayers {
			plan = append(plan, profile.Buffer{Name: t.Name, Bytes: *t.Bytes, Offset: *at, First: *first, Last: *last, Scratch: strings.Contains(t.Name, "scratch")})
		}
	}
	for _, g := range v.Get("graphs").List() {
		for _, e := range g.Get("nodes").List() {
			n.infoNode(e, buffers)
		}
		x := g.Get("exec_time")
		if m := execTime(x); m != nil {
			d.P.Totals.Latency = m
		}
		n.total(cpuCycles, x.Get("cycles"))
	}
	m := v.Get("memory_footprint")
	n.footprint(m)
	for key, item := range m.Members() {
		if key != "activations" && key != "weights" {
			n.total(profile.Quantity{Key: "footprint_" + runlog.Key(key) + "_bytes", Unit: "B", Name: "Footprint: " + key, Group: "Memory"}, item)
		}
	}
	if len(plan) > 0 {
		n.plan().Plan = plan
	}
}

// execTime is the time of a node or graph, nil if it did not run.
func execTime(v *jsontree.Value) *profile.Metric {
	return draft.Metric(&profile.Metric{Mean: draft.Milli(v.Get("duration_ms").Float())})
}

func (n *network) infoNode(e *jsontree.Value, buffers map[string]profile.Tensor) {
	d := n.d
	i := n.layer("", e.Get("name").Str(), e.Get("description").Str())
	if i < 0 {
		return
	}
	y := d.Layer(i)
	ports := func(ids *jsontree.Value) (out []profile.Tensor) {
		for _, id := range ids.List() {
			if t, ok := buffers[id.Str()]; ok {
				out = append(out, t)
			}
		}
		return out
	}
	if y.Inputs == nil && y.Outputs == nil {
		y.Inputs, y.Outputs = ports(e.Get("inputs")), ports(e.Get("outputs"))
	}
	for key, x := range e.Members() {
		switch key {
		case "name", "description", "id", "inputs", "outputs", "scratchs", "attributes":
		case "macc":
			n.set(i, macc, x, 1)
		case "mapping":
			switch {
			case strings.HasPrefix(x.Str(), "NODE_SW"):
				y.Placement = &profile.Placement{On: profile.CPU}
			case strings.HasPrefix(x.Str(), "NODE_HW"):
				y.Placement = &profile.Placement{On: "npu"}
			}
			d.Option(i, key, x.Str())
		case "sw_functions":
			if y.Kernel == "" {
				y.Kernel = draft.Text(strings.Trim(x.Brief(), "[]"))
			}
		case "original_nodes":
			if l := x.List(); len(l) > 0 {
				n.source(i, l[0].Str())
				if len(l) > 1 {
					d.Option(i, key, x.Brief())
				}
			}
		case "exec_time":
			if m := execTime(x); m != nil {
				y.Latency = m
			}
			n.set(i, cpuCycles, x.Get("cycles"), 1)
			n.set(i, recordedShare, x.Get("percentage"), 1e-2)
			if c := x.Get("counters"); len(c.List()) > 0 {
				d.Option(i, "counters", c.Brief())
			}
		default:
			n.keep(i, key, x)
		}
	}
}

// report reads a report: layers of the model. It adds only facts that an earlier graph lacks.
func (n *network) report(v *jsontree.Value) {
	d := n.d
	if fs := v.Get("model_files").List(); len(fs) > 0 {
		n.path(fs[0].Str(), v.Get("model_type").Str())
	}
	n.tflite = v.Get("model_type").Str() == "tflite"
	n.name(v.Get("model_name").Str())
	d.Note("date", v.Get("date_time").Str())
	d.P.Totals.Params = count(v.Get("model_n_params"))
	n.memory(count(v.Get("ram_size")), count(v.Get("rom_size")))
	n.total(macc, v.Get("rom_n_macc"))
	whole := d.Len() > 0
	first := map[string]int{}
	for _, l := range v.Get("layers").List() {
		if !whole {
			if l.Get("type").Str() != "Input" {
				n.reportLayer(l, first)
			}
		} else if i, ok := n.at[l.Get("name").Str()]; ok {
			if y := d.Layer(i); y.Params == nil {
				y.Params = count(l.Get("extras").Get("n_params"))
			}
			n.option(i, "original", l.Get("original").Str())
		}
	}
	for key, e := range v.Members() {
		switch {
		case key == "layers" || key == "model_name" || key == "date_time" || e == nil || e.Kind == jsontree.Null:
		case key == "rom_cfact" || key == "exec_duration" || key == "code_size" || key == "val_error" || strings.HasPrefix(key, "rom_heap") || key == "model_size":
			if f, ok := e.Float(); ok && f >= 0 {
				d.Total(profile.Quantity{Key: "report_" + runlog.Key(key), Name: "Report: " + key}, f)
			}
		case e.Kind != jsontree.Object && e.Kind != jsontree.List:
			d.Note(key, e.Brief())
		}
	}
}

// reportLayer makes a layer of the model. Layers with one number run as one: the first of them
// does the work of the others.
func (n *network) reportLayer(l *jsontree.Value, first map[string]int) {
	d := n.d
	id, x := l.Get("id").Str(), l.Get("extras")
	i := n.layer("", l.Get("name").Str(), l.Get("type").Str())
	if i < 0 {
		return
	}
	y := d.Layer(i)
	if k, ok := first[id]; ok && k != i {
		y.State, y.FusedInto = profile.Fused, new(int64(k))
	} else {
		first[id] = i
		n.source(i, id)
	}
	y.Params, y.WeightsBytes = count(x.Get("n_params")), count(x.Get("psize"))
	n.set(i, macc, x.Get("n_macc"), 1)
	o := x.Get("rom_output")
	out := array(y.Name, o.Get("fmt").Get("format"), o.Get("c_size"), nil)
	out.Shape = shape(o.Get("shape"))
	y.Outputs = []profile.Tensor{out}
	for _, e := range l.Get("inputs").List() {
		y.Inputs = append(y.Inputs, profile.Tensor{Name: draft.Text(e.Str())})
	}
	d.Option(i, "original", l.Get("original").Str())
	for key, item := range x.Members() {
		switch key {
		case "n_params", "psize", "n_macc", "rom_output":
		default:
			n.keep(i, key, item)
		}
	}
}
