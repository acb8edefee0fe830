// Package pprof writes profiles for pprof: the layers as a call graph in which the
// operators lie within their scopes, their kind and the model.
//
// Source of the format: proto/profile.proto of github.com/google/pprof, whose
// library writes it.
package pprof

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	format "github.com/google/pprof/profile"

	"github.com/opmeter/opmeter/internal/report/spans"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// column is one kind of figure. All are of one inference, so that profiles with
// different numbers of runs can be subtracted.
type column struct {
	name, unit string
	value      func(*profile.Layer) (float64, bool)
}

// figure takes a quantity, scaled to the column's unit.
func figure(key string, scale float64) func(*profile.Layer) (float64, bool) {
	return func(l *profile.Layer) (float64, bool) {
		v, ok := l.Value(key)
		return v * scale, ok
	}
}

func columns() []column {
	return []column{
		{"inferences", "count", func(*profile.Layer) (float64, bool) { return 1, true }},
		{"wall", "nanoseconds", figure("latency_s", 1e9)},
		{"bytes", "bytes", func(l *profile.Layer) (float64, bool) {
			r, read := l.Value("bytes_read")
			w, written := l.Value("bytes_written")
			return r + w, read && written
		}},
		{"macs", "count", figure("macs", 1)},
		{"cpu_cycles", "count", figure("cpu_cycles", 1)},
		{"accelerator_cycles", "count", figure("accelerator_cycles", 1)},
		{"energy", "nanojoules", figure("energy_j", 1e9)},
	}
}

// Write writes p, compressed. A figure that a layer has not, while others have,
// is 0: the format knows no absence.
func Write(w io.Writer, p *profile.Profile) error {
	f := convert(p)
	if err := f.CheckValid(); err != nil {
		return err
	}
	return f.Write(w)
}

// converter numbers functions and locations.
type converter struct {
	f         *format.Profile
	file      string
	functions map[string]*format.Function
	locations map[place]*format.Location
}

type place struct {
	function uint64
	line     int64
}

func convert(p *profile.Profile) *format.Profile {
	file := p.Model.Path
	if file == "" {
		file = p.Model.Name
	}
	m := &format.Mapping{ID: 1, Start: 1, Limit: 1 << 40, File: file, HasFunctions: true, HasFilenames: true, HasLineNumbers: true}
	f := &format.Profile{
		Mapping: []*format.Mapping{m}, DefaultSampleType: "wall",
		PeriodType: &format.ValueType{Type: "wall", Unit: "nanoseconds"}, Period: 1,
		Comments: comments(p),
	}
	if t, err := time.Parse(time.RFC3339, p.Created); err == nil {
		f.TimeNanos = t.UnixNano()
	}
	if s, ok := p.Totals.Latency.Best(); ok {
		f.DurationNanos = int64(math.Round(s * 1e9))
	}
	c := &converter{f: f, file: file, functions: map[string]*format.Function{}, locations: map[place]*format.Location{}}
	var used []column
	for i, col := range columns() {
		known := i < 2 // count and time are always there
		for j := range p.Layers {
			if takesPart(&p.Layers[j]) && !known {
				_, known = col.value(&p.Layers[j])
			}
		}
		if known {
			used = append(used, col)
			f.SampleType = append(f.SampleType, &format.ValueType{Type: col.name, Unit: col.unit})
		}
	}
	names := leafNames(p)
	for i := range p.Layers {
		l := &p.Layers[i]
		if !takesPart(l) {
			continue
		}
		s := &format.Sample{Location: c.stack(p, names, i)}
		for _, col := range used {
			v, _ := col.value(l)
			s.Value = append(s.Value, int64(math.Round(min(v, math.MaxInt64/2))))
		}
		c.labels(p, l, s)
		f.Sample = append(f.Sample, s)
	}
	return f
}

// takesPart tells layers that are work of an inference, measured or not, from those
// that are done beforehand, by another layer, or not at all.
func takesPart(l *profile.Layer) bool {
	return !l.State.Elsewhere() && !l.State.Idle() && l.State != profile.NotReached
}

func comments(p *profile.Profile) []string {
	out := []string{"per-operator profile of one inference of " + p.Model.Name + " on " + p.Target.ID}
	for i := range p.Layers {
		if m := p.Layers[i].Latency; m != nil {
			out = append(out, fmt.Sprintf("wall: %s, %s", m.Kind, strings.TrimSpace("best figure of each layer. "+m.Method)))
			break
		}
	}
	if len(p.Incomplete) > 0 {
		out = append(out, "incomplete: "+words.Incomplete(p))
	}
	return out
}

// leafNames gives every layer a name of its own.
func leafNames(p *profile.Profile) []string {
	count := map[string]int{}
	for i := range p.Layers {
		count[name(&p.Layers[i])]++
	}
	out := make([]string, len(p.Layers))
	for i := range p.Layers {
		out[i] = name(&p.Layers[i])
		if count[out[i]] > 1 {
			out[i] = fmt.Sprintf("%s #%d", out[i], i)
		}
	}
	return out
}

func name(l *profile.Layer) string {
	if l.Name != "" {
		return l.Name
	}
	return fmt.Sprintf("%s #%d", l.Op, l.Index)
}

// stack lists the operator, the scopes around it from the inside out, the
// control flow whose body it is in, its kind and the model.
func (c *converter) stack(p *profile.Profile, names []string, i int) []*format.Location {
	l := &p.Layers[i]
	out := []*format.Location{c.at("operator", names[i], spans.Node(l)+1)}
	scopes, parents := spans.Path(p, i)
	for _, sc := range slices.Backward(scopes) {
		out = append(out, c.at("scope", sc, 0))
	}
	for _, o := range slices.Backward(parents) {
		out = append(out, c.at("operator", names[o], spans.Node(&p.Layers[o])+1))
	}
	return append(out, c.at("kind", l.Op, 0), c.at("model", p.Model.Name, 0))
}

// at returns the location of a line in a function. An operator and a scope of
// the same name are two functions.
func (c *converter) at(kind, name string, line int64) *format.Location {
	name = strings.ToValidUTF8(name, "\ufffd")
	fn := c.functions[kind+"\x00"+name]
	if fn == nil {
		fn = &format.Function{ID: uint64(len(c.f.Function) + 1), Name: name, SystemName: kind + ":" + name, Filename: c.file, StartLine: line}
		c.functions[kind+"\x00"+name] = fn
		c.f.Function = append(c.f.Function, fn)
	}
	k := place{fn.ID, line}
	if l := c.locations[k]; l != nil {
		return l
	}
	id := uint64(len(c.f.Location) + 1)
	l := &format.Location{ID: id, Mapping: c.f.Mapping[0], Address: id, Line: []format.Line{{Function: fn, Line: line}}}
	c.locations[k] = l
	c.f.Location = append(c.f.Location, l)
	return l
}

func (c *converter) labels(p *profile.Profile, l *profile.Layer, s *format.Sample) {
	s.Label = map[string][]string{}
	put := func(key, v string) {
		if v != "" {
			s.Label[key] = []string{strings.ToValidUTF8(v, "\ufffd")}
		}
	}
	put("op_type", l.Op)
	put("provider", p.Target.Engine)
	put("device", p.Target.ID)
	put("kernel", l.Kernel)
	put("graph", l.Graph)
	if len(l.Outputs) > 0 {
		o := l.Outputs[0]
		put("dtype", o.DType)
		if o.Shape != nil {
			put("output_shape", words.Dims(o.Shape, "x"))
		}
	}
	s.NumLabel, s.NumUnit = map[string][]int64{}, map[string][]string{}
	number := func(key string, v int64, unit string) {
		s.NumLabel[key], s.NumUnit[key] = []int64{v}, []string{unit}
	}
	number("layer", l.Index, "count")
	if l.Provenance != nil && len(l.Provenance.SourceNodes) > 0 {
		number("node_index", spans.Node(l), "count")
	}
	if l.WeightsBytes != nil {
		number("parameter_size", *l.WeightsBytes, "bytes")
	}
}
