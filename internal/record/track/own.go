package track

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// Own rebuilds the layers of a trace that opmeter wrote. All trace formats describe bars and
// layers with the same arguments.
type Own struct {
	Quantities runlog.Quantities
	layers     []ownLayer
	at         map[int64]int32
}

type ownLayer struct {
	index int64
	named bool
	profile.Layer
}

// IsOwn reports whether opmeter wrote a trace, by the name of the program that wrote it.
func IsOwn(writer string) bool {
	first, _, _ := strings.Cut(writer, " ")
	return first == "opmeter"
}

// NameOwn sets model and target from a title of a trace, such as "mobilenet on stm32h7".
func NameOwn(p *profile.Profile, title string) {
	if i := strings.LastIndex(title, " on "); i > 0 {
		p.Model.Name, p.Target.ID = title[:i], title[i+4:]
	}
}

// OwnBar holds the arguments of one bar.
type OwnBar struct {
	// Layer is the index of the layer in the profile, Iteration the number of the iteration; -1
	// if unknown.
	Layer, Iteration int64
	// InLayers says that the lane of the bar is one of layers.
	InLayers bool

	extra   Extra
	has     bool
	bytes   int64
	texts   [][2]string
	numbers []ownNumber
}

type ownNumber struct {
	key string
	v   float64
}

// NewOwnBar returns a bar without arguments.
func NewOwnBar() *OwnBar {
	return &OwnBar{Layer: -1, Iteration: -1, bytes: -1, extra: Extra{Utilisation: -1}}
}

// Text adds a text argument.
func (b *OwnBar) Text(key, v string) {
	switch key {
	case "subnet":
		b.extra.Subnet, b.has = v, true
	case "direction":
		b.extra.Direction, b.has = v, true
	case "forward_time", "reshape_time":
		b.InLayers = true
	default:
		b.texts = append(b.texts, [2]string{key, v})
	}
}

// Number adds a numeric argument; infinities and NaN are ignored.
func (b *OwnBar) Number(key string, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	switch key {
	case "iteration":
		b.Iteration = index(v)
	case "layer":
		b.Layer = index(v)
	case "moved_bytes":
		if v >= 0 && v < 1<<62 {
			b.bytes = int64(v)
		}
	case "utilisation":
		b.extra.Utilisation, b.has = v, true
	case "stall_s", "stall_us":
		if key == "stall_us" {
			v /= 1e6
		}
		if v > 0 && v < timeline.MaxSeconds {
			b.extra.Stall, b.has = v, true
		}
	default:
		if f, ok := strings.CutPrefix(key, "bar_"); ok && runlog.Key(f) == f {
			if b.extra.Figures == nil {
				b.extra.Figures = map[string]float64{}
			}
			if len(b.extra.Figures) < 50 {
				b.extra.Figures[f], b.has = v, true
			}
			return
		}
		b.numbers = append(b.numbers, ownNumber{key, v})
	}
}

// index converts a number to an index, -1 if it is not one.
func index(v float64) int64 {
	if !(v >= 0 && v < 1<<30) {
		return -1
	}
	return int64(v)
}

// Apply applies the arguments to a slice. name and kind are the texts of the bar.
func (o *Own) Apply(t *Trace, track int32, s *Slice, b *OwnBar, name, kind []byte) {
	k := t.Tracks[track]
	s.Bytes, s.Iteration = b.bytes, int32(b.Iteration)
	if b.has {
		s.Extra = t.Extra(b.extra)
	}
	if b.Layer < 0 {
		s.Label = t.Name(name)
		if string(kind) != string(k.Kind) {
			if k.Kind == "" && slices.Contains(timeline.Kinds(), timeline.LaneKind(kind)) {
				k.Kind = timeline.LaneKind(kind)
			} else {
				s.Type = t.Name(kind)
			}
		}
		if k.Kind != "" && string(k.Kind) == string(kind) && string(name) == k.Name {
			s.Label = -1
		}
		return
	}
	if b.InLayers || len(b.texts) > 0 {
		k.Kind = timeline.Layer
	} else if k.Kind == "" {
		k.Kind = timeline.Engine
	}
	n := o.layer(b.Layer)
	if n < 0 {
		s.Label, s.Type = t.Name(name), t.Name(kind)
		return
	}
	s.Layer = n
	l := &o.layers[n]
	if b.InLayers && !l.named {
		l.named = true
		l.Name = string(name)
	}
	o.describe(l, b)
	if l.Op == "" {
		l.Op = string(kind)
	}
	// A text that differs from that of the layer belongs to the bar.
	if s := string(name); s != cmp.Or(l.Name, l.Op) && l.Name == "" {
		l.Name = s
	}
	if string(name) != cmp.Or(l.Name, l.Op) {
		s.Label = t.Name(name)
	}
	if string(kind) != l.Op {
		s.Type = t.Name(kind)
	}
}

func (o *Own) layer(i int64) int32 {
	if n, ok := o.at[i]; ok {
		return n
	}
	if o.at == nil {
		o.at = map[int64]int32{}
	}
	if len(o.layers) >= MaxLayers {
		return -1
	}
	n := int32(len(o.layers))
	o.layers = append(o.layers, ownLayer{index: i, Layer: profile.Layer{}})
	o.at[i] = n
	return n
}

// describe applies the arguments to the layer of the bar.
func (o *Own) describe(l *ownLayer, b *OwnBar) {
	var lists map[string]string
	for _, t := range b.texts {
		key, v := t[0], t[1]
		switch key {
		case "op":
			l.Op = v
		case "name":
			l.Name, l.named = v, true
		case "scope":
			l.Scope = v
		case "graph":
			l.Graph = v
		case "kernel":
			l.Kernel = v
		case "options":
			l.Options = options(v, " ")
		case "attributes":
			l.Options = options(v, ";")
		case "inputs":
			l.Inputs = tensors(v)
		case "outputs":
			l.Outputs = tensors(v)
		default:
			if lists == nil {
				lists = map[string]string{}
			}
			lists[key] = v
		}
	}
	columns(&l.Inputs, lists, "input")
	columns(&l.Outputs, lists, "output")
	for _, n := range b.numbers {
		if runlog.Key(n.key) == n.key {
			Set(&o.Quantities, &l.Layer, profile.Quantity{Key: n.key, Unit: unit(n.key)}, n.v)
		}
	}
	if l.Name == l.Op {
		l.Name = ""
	}
}

// unit returns the base unit of a quantity by the suffix of its key.
func unit(key string) string {
	for _, u := range [][2]string{{"_s", "s"}, {"_bytes", "B"}, {"_hz", "Hz"}, {"_j", "J"}, {"_cycles", "cycles"}} {
		if strings.HasSuffix(key, u[0]) {
			return u[1]
		}
	}
	return ""
}

// options parses "padding:same stride:2x2".
func options(s, sep string) (out []profile.Option) {
	for part := range strings.SplitSeq(s, sep) {
		key, v, ok := strings.Cut(part, ":")
		switch {
		case ok && key != "":
			out = append(out, profile.Option{Key: key, Value: v})
		case len(out) > 0:
			out[len(out)-1].Value += sep + part
		}
	}
	return out
}

// tensors parses "image int8 1x32x32x3, …". Names may contain blanks, types and shapes do not.
func tensors(s string) (out []profile.Tensor) {
	for part := range strings.SplitSeq(s, ", ") {
		var t profile.Tensor
		words := strings.Fields(part)
		if n := len(words); n > 0 {
			if d, ok := Dims(words[n-1], "x"); ok {
				t.Shape, words = d, words[:n-1]
			}
		}
		if n := len(words); n > 1 || n == 1 && t.Shape != nil && isType(words[0]) {
			t.DType, words = words[n-1], words[:n-1]
		}
		t.Name = strings.Join(words, " ")
		out = append(out, t)
	}
	return out
}

// isType distinguishes element types from names of tensors.
var isType = lazyregexp.New(`^(float|int|uint|bool|string|complex|bfloat)\d*$`).MatchString

// columns combines lists of names, types and shapes of the tensors on a side ("input" or "output").
// Names with commas make lists of different lengths, which are ignored.
func columns(to *[]profile.Tensor, lists map[string]string, side string) {
	name, typ, shape := lists[side+"_tensor_name"], lists[side+"_type"], lists[side+"_shape"]
	if name+typ+shape == "" {
		return
	}
	*to = nil
	names, types, shapes := strings.Split(name, ","), strings.Split(typ, ","), strings.Split(shape, ",")
	if len(types) != len(names) || len(shapes) != len(names) {
		return
	}
	for i := range names {
		d, _ := Dims(shapes[i], "*")
		*to = append(*to, profile.Tensor{Name: names[i], DType: types[i], Shape: d})
	}
}

// Dims parses a shape such as "1x32x32x3"; "?" is an unknown dimension.
func Dims(s, sep string) (out []int64, ok bool) {
	if s == "" {
		return nil, false
	}
	for part := range strings.SplitSeq(s, sep) {
		if part == "?" {
			out = append(out, -1)
			continue
		}
		d, err := strconv.ParseInt(part, 10, 64)
		if err != nil || d < 0 {
			return nil, false
		}
		out = append(out, d)
	}
	return out, true
}

// Done returns the layers in their original order and renumbers the slices.
func (o *Own) Done(t *Trace) []profile.Layer {
	sorted, to := Sorted(o.layers, func(a, b *ownLayer) int { return cmp.Compare(a.index, b.index) })
	out := make([]profile.Layer, len(sorted))
	for i := range sorted {
		out[i] = sorted[i].Layer
	}
	for _, k := range t.Tracks {
		if k.Kind == "" {
			k.Kind = timeline.Thread
		}
	}
	t.Relabel(to)
	return out
}

// Fill makes the profile of a trace: layers, quantities and the timeline.
func (o *Own) Fill(p *profile.Profile, t *Trace, f *Flows, origin, method string) {
	t.dropStalls()
	p.Layers, p.Quantities = o.Done(t), o.Quantities.List
	t.Nest()
	f.Links(t)
	p.Timeline = t.Timeline(origin, method)
}

// dropStalls removes bars that only show how long the bar around them waited.
func (t *Trace) dropStalls() {
	stall, ok := t.names["stall"]
	if !ok {
		return
	}
	for _, k := range t.Tracks {
		n := len(k.Slices)
		k.Slices = slices.DeleteFunc(k.Slices, func(s Slice) bool { return s.Label == stall && s.Type == stall && s.Layer < 0 })
		t.count -= n - len(k.Slices)
	}
}
