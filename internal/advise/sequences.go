package advise

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/shellword"
	"github.com/opmeter/opmeter/internal/measure/ab"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/profile"
)

// shortest is the length of a sequence from which on a cache of keys and values matters.
const shortest = 8

// tokens returns the input that holds a sequence of tokens, with its length.
func (f *Facts) tokens() (in *profile.Tensor, length int) {
	for i := range f.Profile.Model.Inputs {
		t := &f.Profile.Model.Inputs[i]
		switch {
		case strings.Contains(strings.ToLower(t.Name), "past"), len(t.Shape) >= 4:
			return nil, 0 // a cache, or an image
		case (t.DType == "int64" || t.DType == "int32") && len(t.Shape) == 2 && t.Shape[1] >= shortest && in == nil:
			in, length = t, int(t.Shape[1])
		}
	}
	return in, length
}

// causal reports whether attention of a graph hides later tokens: by an attribute, a triangle that
// is cut out, or a constant mask.
func causal(g *graph.Graph, length int) bool {
	for _, n := range g.Nodes {
		if n.Op == "Trilu" || n.Attrs.Bool("unidirectional", false) || n.Attrs.Bool("is_causal", false) {
			return true
		}
	}
	return slices.ContainsFunc(g.Values, func(v *graph.Value) bool { return hidesLater(v.Const, length) })
}

// hidesLater reports whether a constant is a mask of length × length: zero up to the diagonal,
// large and negative behind it.
func hidesLater(c *tensor.Tensor, length int) bool {
	if !c.Known() || c.Type != tensor.Float32 || c.Len() != length*length || len(c.Shape) < 2 || c.Shape[len(c.Shape)-1] != length {
		return false
	}
	for i, x := range tensor.Of[float32](c) {
		if later := i%length > i/length; later && x > -100 || !later && x != 0 {
			return false
		}
	}
	return true
}

// cache advises to keep keys and values of earlier tokens.
func (f *Facts) cache() ([]*Advice, string) {
	now, ok := f.timed()
	switch {
	case f.Model == nil:
		return nil, noModel
	case !ok:
		return nil, noTimes
	}
	in, length := f.tokens()
	if in == nil {
		return nil, fmt.Sprintf("the model takes no sequence of %d tokens or more, or has a cache", shortest)
	}
	g := f.Model.Main()
	attends := slices.ContainsFunc(g.Nodes, func(n *graph.Node) bool {
		return n.Op == "Softmax" || n.Op == "SOFTMAX" || strings.Contains(n.Op, "Attention")
	})
	outs := f.Profile.Model.Outputs
	if !attends || !causal(g, length) || len(outs) == 0 || len(outs[0].Shape) != 3 || outs[0].Shape[1] != int64(length) {
		return nil, "not a language model: no causal attention with an output for each token"
	}
	var read float64 // bytes of weights that a step reads
	for i := range f.Profile.Layers {
		l := &f.Profile.Layers[i]
		if l.State == profile.Ran && l.MACs != nil && *l.MACs > 0 && l.WeightsBytes != nil {
			read += float64(*l.WeightsBytes)
		}
	}
	least := 1 / float64(length)
	if rate := readRate(&f.Profile.Target, read); rate > 0 {
		least = max(least, read/rate/now)
	}
	gain, ok := promise(now, least, least/2, 2*least, FromProfile, "a step reads all weights once at the measured rate of the cache or memory that holds them, or does its part of the arithmetic; a factor of two either way")
	if c := f.step(); c != nil {
		if gain, ok = later(now, c); !ok {
			return nil, fmt.Sprintf("a step of one token takes %.2f times the time (%.2f to %.2f, measured now)", c.Ratio, c.Low, c.High)
		}
	}
	if !ok {
		return nil, fmt.Sprintf("reading the weights takes %s of the time: a step would take as long", percent(least))
	}
	shape := "--shape " + shellword.Quote(fmt.Sprintf("%s=%dx1", in.Name, in.Shape[0]))
	return []*Advice{{
		Reason:  fmt.Sprintf("All %d tokens are computed anew for each new one: %s; with cached keys and values a step computes one token.", length, duration(now)),
		Figures: []Figure{{"tokens", float64(length), ""}, {"weights that a step reads", read, "B"}}, Gain: gain,
		Try: f.render("opmeter profile MODEL " + shape),
	}}, ""
}

// readRate is the rate of the first level of memory that holds a number of bytes, 0 if unknown.
func readRate(t *profile.Target, bytes float64) float64 {
	for i := range t.Levels {
		if l := &t.Levels[i]; l.Bytes == nil || bytes <= float64(*l.Bytes) {
			return l.BytesPerSecond
		}
	}
	if t.PeakBytesPerSecond != nil {
		return *t.PeakBytesPerSecond
	}
	return 0
}

// step measures the model on one token for a short time: work for each node, which the weights do
// not show, may take most of a step. It is nil where the model does not run so, or nothing measures.
func (f *Facts) step() *ab.Comparison {
	if f.Probe == nil {
		return nil
	}
	v, err := changeTokens(context.Background(), f)
	if err != nil {
		return nil
	}
	res, err := f.Probe(v)
	if err != nil || len(res.Comparisons) == 0 {
		return nil
	}
	return &res.Comparisons[0]
}

// changeTokens runs the model on one token. That is a step with a cache, without reading the cache.
func changeTokens(_ context.Context, f *Facts) (*Variant, error) {
	in, _ := f.tokens()
	if in == nil {
		return nil, errNoChange
	}
	return &Variant{Shapes: map[string][]int{in.Name: {int(in.Shape[0]), 1}}}, nil
}

// shapeOps are operators that compute shapes where their results are integers.
var shapeOps = []string{"Shape", "Size", "Gather", "Unsqueeze", "Squeeze", "Concat", "Slice", "Cast", "Range", "ConstantOfShape", "Add", "Sub", "Mul", "Div", "Where", "Equal", "SHAPE", "PACK", "STRIDED_SLICE"}

// openShapes advises to fix the shapes of inputs where an engine computes shapes in each run.
func (f *Facts) openShapes() ([]*Advice, string) {
	if f.Profile.Settings.Engine == own {
		return nil, "opmeter's engine computes shapes once, while planning"
	}
	now, ok := f.timed()
	if !ok {
		return nil, noTimes
	}
	var open []string
	for i := range f.Profile.Model.Inputs {
		t := &f.Profile.Model.Inputs[i]
		if slices.ContainsFunc(t.Declared, func(d int64) bool { return d < 0 }) {
			open = append(open, t.Name)
		}
	}
	if len(open) == 0 {
		return nil, "no input has an open dimension"
	}
	var layers []int
	for i := range f.Profile.Layers {
		l := &f.Profile.Layers[i]
		if l.State == profile.Ran && slices.Contains(shapeOps, l.Op) && len(l.Outputs) > 0 && (l.Outputs[0].DType == "int64" || l.Outputs[0].DType == "int32") {
			layers = append(layers, i)
		}
	}
	share, low, high := f.share(layers)
	g, ok := promise(now, 1-share, 1-high, 1-low/2, FromProfile, "shares of the layers that compute shapes, with their intervals; at least half of it")
	if !ok {
		return nil, fmt.Sprintf("computing shapes takes %s of the time", percent(share))
	}
	return []*Advice{{
		Reason:  fmt.Sprintf("%s has open dimensions: %s compute shapes in each run and take %s of the time.", strings.Join(open, ", "), plural(len(layers), "layer"), percent(share)),
		Figures: []Figure{{"layers", float64(len(layers)), ""}, {"share of the time", share, "1"}},
		Layers:  indices(layers), Gain: g,
	}}, ""
}

// changeShapes fixes the shapes of the inputs to those of the profile.
func changeShapes(_ context.Context, f *Facts) (*Variant, error) {
	if f.Model == nil {
		return nil, errNoChange
	}
	shapes := map[string][]int{}
	for i := range f.Profile.Model.Inputs {
		t := &f.Profile.Model.Inputs[i]
		var dims []int
		for _, d := range t.Shape {
			dims = append(dims, int(d))
		}
		shapes[t.Name] = dims
	}
	g := *f.Model.Main()
	g.Values = slices.Clone(g.Values)
	changed := false
	for _, id := range g.Inputs {
		v := *g.Values[id]
		if dims, ok := shapes[v.Name]; ok && !slices.Equal(v.Shape, dims) {
			v.Shape, v.HasShape, v.DimNames, v.Placeholder = dims, true, nil, nil
			g.Values[id], changed = &v, true
		}
	}
	if !changed {
		return nil, errNoChange
	}
	return &Variant{Model: weights.WithMain(f.Model, &g)}, nil
}
