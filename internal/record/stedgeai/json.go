package stedgeai

import (
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/base/jsontree"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/profile"
)

func count(v *jsontree.Value) *int64 {
	if n, ok := v.Int(); ok && n >= 0 {
		return &n
	}
	return nil
}

// graph reads a c_graph file.
func (n *network) graph(v *jsontree.Value) {
	d := n.d
	n.tflite = v.Get("type").Str() == "tflite"
	if s := v.Get("model_name").Str(); s != "" {
		d.P.Model.Name = draft.Text(s)
	}
	tensors := map[string]profile.Tensor{}
	for _, a := range v.Get("c_arrays").List() {
		size := count(a.Get("c_size_in_byte"))
		for _, t := range a.Get("tensors").List() {
			x := profile.Tensor{Name: draft.Text(t.Get("name").Str()), DType: dtype(a.Get("format").Str()), Bytes: size, Constant: a.Get("is_const").Str() == "true"}
			if s, ok := t.Get("shape").Ints(); ok {
				x.Shape = sane(s)
			}
			if len(a.Get("scale").List()) == 1 {
				if f, ok := a.Get("scale").List()[0].Float(); ok {
					x.Scale = &f
				}
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
				if f, ok := e.Float(); ok {
					d.Set(i, macc, f)
				}
			case "weight_sparsity":
				sparsity(y, e)
				d.Option(i, key, e.Brief())
			default:
				n.keep(i, key, e)
			}
		}
	}
	d.P.Model.Inputs, d.P.Model.Outputs = ports(v.Get("inputs")), ports(v.Get("outputs"))
	if m := v.Get("memory_footprint"); m != nil {
		n.memory(count(m.Get("activations")), count(m.Get("weights")))
	}
	for key, item := range v.Members() {
		switch e := item; {
		case key == "macc":
			if f, ok := e.Float(); ok {
				d.Total(macc, f)
			}
		case e == nil || e.Kind == jsontree.List || e.Kind == jsontree.Object && key != "compilation_options":
		default:
			d.Note(key, e.Brief())
		}
	}
}

// sparsity reads the part of zeros among the weights, their number, the zeros.
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

func sane(s []int64) []int64 {
	for i := range s {
		s[i] = max(-1, s[i])
	}
	return s
}

// keep keeps what has no meaning here.
func (n *network) keep(i int, key string, e *jsontree.Value) {
	if f, ok := e.Float(); ok && e.Kind == jsontree.Number {
		n.d.Set(i, profile.Quantity{Key: "st_" + runlog.Key(key), Name: key}, f)
		return
	}
	if e != nil && e.Kind != jsontree.Null && len(e.Items)+len(e.Text) > 0 {
		n.d.Option(i, key, e.Brief())
	}
}

// memory sets the sizes of activations and weights.
func (n *network) memory(activations, weights *int64) {
	p := n.d.P
	if activations != nil {
		if p.Memory == nil {
			p.Memory = &profile.Memory{}
		}
		p.Memory.ArenaBytes = activations
		if p.Totals.RAMBytes == nil {
			p.Totals.RAMBytes = activations
		}
	}
	if weights != nil {
		p.Totals.FlashBytes, p.Totals.WeightsBytes = weights, weights
	}
}

// info reads a c_info file: nodes with their times where the network ran, buffers with their
// places.
func (n *network) info(v *jsontree.Value) {
	d := n.d
	env := v.Get("environment")
	for _, t := range env.Get("tools").List() {
		m := t.Get("input_model")
		n.tflite = m.Get("type").Str() == "tflite"
		if s := m.Get("name").Str(); s != "" {
			d.P.Model.Name = draft.Text(s)
		}
		if p := count(m.Get("n_params")); p != nil {
			d.P.Totals.Params = p
		}
		d.Note(t.Get("name").Str(), t.Get("version").Str())
	}
	buffers := map[string]profile.Tensor{}
	var plan []profile.Buffer
	for _, b := range v.Get("buffers").List() {
		t := profile.Tensor{Name: draft.Text(strings.TrimSuffix(b.Get("name").Str(), "_array")), DType: dtype(b.Get("format").Str()), Bytes: count(b.Get("size_bytes")), Constant: b.Get("is_param").Str() == "true"}
		if s, ok := b.Get("shape").Ints(); ok {
			t.Shape = sane(s)
		}
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
		if m := execTime(g.Get("exec_time")); m != nil {
			d.P.Totals.Latency = m
		}
		if c, ok := g.Get("exec_time").Get("cycles").Float(); ok {
			d.Total(profile.Quantity{Key: "cpu_cycles"}, c)
		}
	}
	m := v.Get("memory_footprint")
	n.memory(count(m.Get("activations")), count(m.Get("weights")))
	for key, item := range m.Members() {
		if f, ok := item.Float(); ok && key != "activations" && key != "weights" {
			d.Total(profile.Quantity{Key: "footprint_" + runlog.Key(key) + "_bytes", Unit: "B", Name: "Footprint: " + key, Group: "Memory"}, f)
		}
	}
	if len(plan) > 0 {
		if d.P.Memory == nil {
			d.P.Memory = &profile.Memory{}
		}
		d.P.Memory.Plan = plan
	}
}

// execTime is the time of a node or graph; nil where it did not run.
func execTime(v *jsontree.Value) *profile.Metric {
	if f, ok := v.Get("duration_ms").Float(); ok {
		return draft.Metric(&profile.Metric{Mean: new(f / 1e3)})
	}
	return nil
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
			if f, ok := x.Float(); ok {
				d.Set(i, macc, f)
			}
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
			}
			if len(x.List()) > 1 {
				d.Option(i, key, x.Brief())
			}
		case "exec_time":
			if m := execTime(x); m != nil {
				y.Latency = m
			}
			if c, ok := x.Get("cycles").Float(); ok {
				d.Set(i, profile.Quantity{Key: "cpu_cycles"}, c)
			}
			if p, ok := x.Get("percentage").Float(); ok {
				d.Set(i, recordedShare, p/100)
			}
			if c := x.Get("counters"); len(c.List()) > 0 {
				d.Option(i, "counters", c.Brief())
			}
		default:
			n.keep(i, key, x)
		}
	}
}

var recordedShare = profile.Quantity{Key: "recorded_share", Unit: "1", Head: "rec. share", Name: "Share as recorded", Group: "Record"}

// report reads a report: layers of the model. Where the graph was read before, only what
// it lacks is taken.
func (n *network) report(v *jsontree.Value) {
	d := n.d
	if fs := v.Get("model_files").List(); len(fs) > 0 {
		n.path(fs[0].Str(), v.Get("model_type").Str())
	}
	n.tflite = v.Get("model_type").Str() == "tflite"
	if s := v.Get("model_name").Str(); s != "" {
		d.P.Model.Name = draft.Text(s)
	}
	if t := v.Get("date_time").Str(); t != "" {
		d.Note("date", t)
	}
	d.P.Totals.Params = count(v.Get("model_n_params"))
	n.memory(count(v.Get("ram_size")), count(v.Get("rom_size")))
	if f, ok := v.Get("rom_n_macc").Float(); ok {
		d.Total(macc, f)
	}
	whole := d.Len() > 0
	first := map[string]int{}
	for _, l := range v.Get("layers").List() {
		name, x := l.Get("name").Str(), l.Get("extras")
		if whole {
			if i, ok := n.at[name]; ok {
				if y := d.Layer(i); y.Params == nil {
					y.Params = count(x.Get("n_params"))
				}
				if d.Layer(i).Option("original") == "" {
					d.Option(i, "original", l.Get("original").Str())
				}
			}
			continue
		}
		if l.Get("type").Str() == "Input" {
			continue
		}
		n.reportLayer(l, x, name, first)
	}
	for key, item := range v.Members() {
		switch e := item; {
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

// reportLayer makes a layer of the model. Those of one number run as one: the first of them
// does the work of the others.
func (n *network) reportLayer(l, x *jsontree.Value, name string, first map[string]int) {
	d := n.d
	id := l.Get("id").Str()
	i := n.layer("", name, l.Get("type").Str())
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
	if f, ok := x.Get("n_macc").Float(); ok {
		d.Set(i, macc, f)
	}
	out := profile.Tensor{Name: y.Name, DType: dtype(x.Get("rom_output").Get("fmt").Get("format").Str()), Bytes: count(x.Get("rom_output").Get("c_size"))}
	if s, ok := x.Get("rom_output").Get("shape").Ints(); ok {
		out.Shape = sane(s)
	}
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
