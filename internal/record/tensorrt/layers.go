package tensorrt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsontree"
	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/profile"
)

// profiled is a document of exportProfile: the number of iterations and the layers.
type profiled struct {
	count float64
	rows  []*jsontree.Value
}

// runs returns the number of iterations, nil if it is not a positive integer.
func (p *profiled) runs() *int64 {
	if n := int64(p.count); p.count > 0 && p.count < 1e15 && p.count == float64(n) {
		return &n
	}
	return nil
}

var (
	timeSum = profile.Quantity{Key: "recorded_sum_s", Unit: "s", Head: "sum", Name: "Time in all iterations", Group: "Time", Adds: true, Better: -1, Doc: "Time of the layer over all iterations of the profile."}
	share   = profile.Quantity{Key: "recorded_share", Unit: "1", Head: "rec. share", Name: "Share as recorded", Group: "Record", Doc: "Part of the time by the record's own table."}
)

// member is what the documents of an engine say about one run.
type member struct {
	p     *profiled
	t     *times
	info  *described
	metas []*jsontree.Value
}

// members joins the documents to runs. The n-th document of each kind belongs to the n-th run if
// there are equally many; one description of layers belongs to all runs. undecided says that the
// numbers differ: then documents of different kinds are not joined.
func (s *set) members() (out []member, undecided bool) {
	n := max(len(s.profiles), len(s.times), 1)
	if len(s.profiles) == 0 && len(s.times) == 0 {
		n = max(len(s.infos), 1)
	}
	out = make([]member, n)
	var apart []member
	for i, p := range s.profiles {
		if len(s.profiles) == n {
			out[i].p = p
		} else {
			apart = append(apart, member{p: p})
		}
	}
	for i, t := range s.times {
		if len(s.times) == n {
			out[i].t = t
		} else {
			apart = append(apart, member{t: t})
		}
	}
	for i := range out {
		switch {
		case len(s.infos) == 1:
			out[i].info = s.infos[0]
		case len(s.infos) == n:
			out[i].info = s.infos[i]
		}
		switch {
		case n == 1 || len(s.metas) == 1:
			out[i].metas = s.metas
		case len(s.metas) == n:
			out[i].metas = s.metas[i : i+1]
		}
	}
	joined := func(k int) bool { return k <= 1 || k == n }
	return append(out, apart...), len(apart) > 0 || !joined(len(s.infos)) || n > 1 && !joined(len(s.metas))
}

// drafts makes a draft of each run of the engine.
func (s *set) drafts() (out []*draft.Draft) {
	members, undecided := s.members()
	for i, m := range members {
		d := draft.New("tensorrt", s.name, "TensorRT")
		layers(d, m.p, m.info)
		if m.t != nil {
			m.t.into(d)
		}
		if m.info != nil {
			for _, b := range m.info.bindings {
				d.Note("binding", b)
			}
		}
		for _, v := range m.metas {
			metadata(d, v)
		}
		if i == 0 {
			d.Dropped.Add("text that is neither JSON nor a record of an export", s.bad)
			d.Dropped.Add("records beyond their bound", s.large)
			d.Dropped.Add(fmt.Sprintf("documents beyond the first %d", draft.MaxRuns), s.lost)
			if s.cut {
				d.Dropped.Add("the file ends within a record", 1)
			}
		}
		if d.Empty() && d.P.Target.Description == "" && len(s.metas) == 0 {
			continue
		}
		out = append(out, d)
	}
	if undecided && len(out) > 0 {
		out[0].Found("tensorrt.documents", profile.Warning, "The files have %d profiles of layers, %d lists of times and %d descriptions of layers. Which of them belong together is not said, so they are not joined.", len(s.profiles), len(s.times), len(s.infos))
	}
	return out
}

// runs makes the runs of the engine.
func (s *set) runs() []*runlog.Run {
	ds := s.drafts()
	for _, l := range s.logs {
		if d := l.draft(s.name); d != nil {
			ds = append(ds, d)
		}
	}
	draft.Apart(ds, false)
	var out []*runlog.Run
	for _, d := range ds {
		out = append(out, d.Run())
	}
	return out
}

var otherProfile = lazyregexp.New(` \[profile (\d+)\]$`)

// layers makes the layers of a profile, of the layers' descriptions, or of both.
func layers(d *draft.Draft, p *profiled, of *described) {
	var infos []*jsontree.Value
	if of != nil {
		infos = of.layers
	}
	add := func(name string, state profile.State, info *jsontree.Value) int {
		i := d.Add(profile.Layer{Name: name, Op: operator(name), State: state}, runlog.Hint{Nodes: nodes(name)})
		describe(d, i, info)
		return i
	}
	if p == nil {
		for _, v := range infos {
			add(infoName(v), "", v)
		}
		return
	}
	d.P.Settings.Runs = p.runs()
	// Descriptions are matched to times by name; those with equal names in their order.
	waiting := map[string][]*jsontree.Value{}
	for _, v := range infos {
		n := infoName(v)
		waiting[n] = append(waiting[n], v)
	}
	used := map[*jsontree.Value]bool{}
	for _, r := range p.rows {
		full := r.Get("name").Str()
		name := full
		if len(waiting[name]) == 0 {
			name = otherProfile.ReplaceAllString(name, "")
		}
		var info *jsontree.Value
		if w := waiting[name]; len(w) > 0 {
			info, waiting[name] = w[0], w[1:]
			used[info] = true
		}
		i := add(full, "", nil)
		if i < 0 {
			break
		}
		p.figures(d, i, r)
		describe(d, i, info)
		if m := otherProfile.FindStringSubmatch(full); m != nil {
			d.Option(i, "shape_profile", m[1])
		}
	}
	// Layers without a time copy nothing or are parts of others.
	for _, v := range infos {
		if !used[v] {
			add(infoName(v), profile.NotReached, v)
		}
	}
}

// figures sets the times of a layer. One with a time of 0 never ran.
func (p *profiled) figures(d *draft.Draft, i int, row *jsontree.Value) {
	y := d.Layer(i)
	ms := func(key string) *float64 { return draft.Milli(row.Get(key).Float()) }
	sum := ms("timeMs")
	m := &profile.Metric{Mean: ms("averageMs"), Median: ms("medianMs")}
	if p.count > 1 {
		m.N = p.runs()
	}
	zero := func(v *float64) bool { return v == nil || *v == 0 }
	unknown := sum != nil && *sum > 0 && zero(m.Mean) && zero(m.Median)
	if unknown {
		m.Mean, m.Median = nil, nil // rounded to 0, or of no iterations
	}
	if total, ok := row.Get("timeMs").Float(); m.Mean == nil && ok && p.count > 0 {
		m.Mean = new(total / p.count / 1e3)
	}
	if unknown && m.Mean == nil {
		d.Dropped.Add("layers with a time in all iterations and an average of 0", 1)
	}
	if y.Latency = draft.Metric(m); sum != nil && *sum == 0 {
		y.State, y.Latency = profile.NotReached, nil
	}
	d.SetKnown(i, timeSum, sum, 1)
	d.SetKnown(i, share, draft.Known(row.Get("percentage").Float()), 1e-2)
	for key, item := range row.Members() {
		switch key {
		case "name", "timeMs", "averageMs", "medianMs", "percentage":
		default:
			keep(d, i, key, item)
		}
	}
}

// keep keeps a member without a place in the profile: numbers as figures, others as options.
func keep(d *draft.Draft, i int, key string, v *jsontree.Value) {
	if f, ok := v.Float(); ok && v.Kind == jsontree.Number {
		d.Set(i, profile.Quantity{Key: draft.Key(key), Name: key}, f)
		return
	}
	d.Option(i, key, v.Brief())
}

func infoName(v *jsontree.Value) string {
	if v != nil && v.Kind == jsontree.String {
		return v.Text
	}
	return v.Get("Name").Str()
}

// options are members that describe how a layer was built. Some are numbers, but not figures to
// add up or compare.
var options = []string{
	"ParameterType", "ParameterSubType", "Kernel", "Stride", "PaddingMode", "PrePadding", "PostPadding", "Dilation", "OutMaps", "Groups", "HasSparseWeights",
	"Activation", "HasBias", "HasReLU", "TacticValue", "Origin", "PoolingType", "WindowSize", "StreamId", "BlendFactor", "AverageCountExcludesPadding",
	"FirstTranspose", "SecondTranspose", "Reshape", "ZeroIsPlaceholder", "Axes", "HasLog", "Start", "Size", "Mode", "Fill", "KeepDimensions", "Operation",
}

// describe adds a layer's description.
func describe(d *draft.Draft, i int, v *jsontree.Value) {
	y := d.Layer(i)
	if y == nil || v == nil || v.Kind != jsontree.Object {
		return
	}
	h := d.Hint(i)
	for key, e := range v.Members() {
		switch key {
		case "Name":
		case "LayerType":
			if op := e.Str(); op != "" {
				y.Op = draft.Text(op)
			}
		case "Inputs":
			y.Inputs = tensors(d, i, "input", e)
		case "Outputs":
			y.Outputs = tensors(d, i, "output", e)
			for _, t := range y.Outputs {
				h.Outputs = append(h.Outputs, t.Name)
			}
		case "TacticName":
			y.Kernel = draft.Text(e.Str())
		case "Weights", "Bias":
			weights(d, i, key, e)
		case "Metadata":
			if ns := onnxNodes(e.Str()); len(ns) > 0 {
				h.Nodes = ns
			}
			d.Option(i, key, e.Str())
		default:
			if slices.Contains(options, key) {
				d.Option(i, key, e.Brief())
			} else {
				keep(d, i, key, e)
			}
		}
	}
}

// weights counts constants of a layer.
func weights(d *draft.Draft, i int, key string, v *jsontree.Value) {
	n, ok := v.Get("Count").Int()
	if !ok || n <= 0 || n > 1<<48 {
		return
	}
	y := d.Layer(i)
	kind := v.Get("Type").Str()
	d.Option(i, key+"Type", kind)
	d.Option(i, key+"Count", v.Get("Count").Str())
	y.Params = plus(y.Params, n)
	if size := widths[elementType(kind)]; size > 0 {
		y.WeightsBytes = plus(y.WeightsBytes, n*size)
	}
}

// plus returns *to + n; nil counts as 0.
func plus(to *int64, n int64) *int64 {
	if to != nil {
		n += *to
	}
	return &n
}

// widths are bytes of elements.
var widths = map[string]int64{"float32": 4, "float16": 2, "bfloat16": 2, "float8": 1, "int8": 1, "uint8": 1, "int32": 4, "int64": 8, "bool": 1}

// elements are the words for types at the end of the descriptions of formats.
var elements = map[string]string{
	"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp8": "float8", "uint8": "uint8", "int8": "int8", "int32": "int32", "int64": "int64",
	"bool": "bool", "half": "float16", "float": "float32",
}

// elementType finds the last word for a type in a text such as "Four wide channel
// vectorized row major Int8 format".
func elementType(prose string) string {
	for _, word := range slices.Backward(strings.Fields(strings.ToLower(prose))) {
		if t := elements[word]; t != "" {
			return t
		}
	}
	return ""
}

// maxTensors limits the inputs or outputs of a layer.
const maxTensors = 1000

func tensors(d *draft.Draft, i int, side string, v *jsontree.Value) (out []profile.Tensor) {
	var formats, places []string
	for _, e := range v.List() {
		if len(out) >= maxTensors {
			break
		}
		format := cmp.Or(e.Get("Format/Datatype").Str(), e.Get("Format").Str())
		t := profile.Tensor{Name: draft.Text(e.Get("Name").Str()), DType: cmp.Or(elementType(format), elementType(e.Get("Datatype").Str()))}
		if dims, ok := e.Get("Dimensions").Ints(); ok {
			t.Shape = dims
			n := widths[t.DType]
			for k, x := range dims {
				if x < 0 {
					dims[k], n = -1, 0
				} else if x > 0 && n > (1<<53)/x {
					n = 0
				} else {
					n *= x
				}
			}
			if widths[t.DType] > 0 && (n > 0 || slices.Contains(dims, 0)) {
				t.Bytes = &n
			}
		}
		out = append(out, t)
		formats = append(formats, format)
		if p := e.Get("Location").Str(); p != "" && !slices.Contains(places, p) {
			places = append(places, p)
		}
	}
	d.Option(i, side+"_format", strings.Join(formats, "; "))
	d.Option(i, side+"_location", strings.Join(places, "; "))
	return out
}
