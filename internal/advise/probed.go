package advise

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/measure/ab"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// leastProbed is what a change must save at least in a short run. Other programs come and go, and a
// later run differs by more than the interval of this one: bench/advise measured later runs of 30
// changes. 20 ratios were in the interval, and 27 in that widened by laterRun on either side.
const (
	leastProbed = 0.1
	laterRun    = 1.08
)

// leastShare is the part of the time from which on layers are worth a short run.
const leastShare = 0.05

// probed says what a short run measured.
func probed(c *ab.Comparison) string {
	return fmt.Sprintf("a short interleaved run here now, %d pairs of blocks; its interval is widened by %s for later runs", c.Blocks, percent(laterRun-1))
}

// later promises what a short run measured, for later runs.
func later(now float64, c *ab.Comparison) (Gain, bool) {
	return promise(now, c.Ratio, c.Low/laterRun, c.High*laterRun, FromProbe, probed(c))
}

// tooShort says what to do where the short run ended too early for an answer.
func (f *Facts) tooShort(v *Variant) string {
	s := fmt.Sprintf("the short run of %v ended before %d rounds were measured: ", ProbeTime, ab.MinProcesses)
	switch {
	case v.Batch > 0:
		return s + "measure longer with " + f.render(fmt.Sprintf("opmeter sweep MODEL ON --batch 1,%d", v.Batch))
	case v.Threads > 0:
		return s + "measure longer with " + f.render(fmt.Sprintf("opmeter sweep MODEL INPUTS --threads %d,%d", f.threadsOf(), v.Threads))
	}
	return s + "try again when fewer other programs run"
}

// probeModel measures a changed model for a short time, and advises it if it saves at least a part.
// More than most cannot be saved: then other load disturbed the run.
func (f *Facts) probeModel(v *Variant, least, most float64, reason string, layers []int, figures ...Figure) ([]*Advice, string) {
	now, ok := f.timed()
	switch {
	case !ok:
		return nil, noTimes
	case f.Probe == nil:
		return nil, noProbe
	}
	res, err := f.Probe(v)
	if err != nil {
		return nil, err.Error()
	}
	if len(res.Comparisons) == 0 {
		return nil, f.tooShort(v)
	}
	c := res.Comparisons[0]
	what := "the changed model"
	if v.Batch > 0 {
		what = fmt.Sprintf("an item of a batch of %d", v.Batch)
		c.Ratio, c.Low, c.High = c.Ratio/float64(v.Batch), c.Low/float64(v.Batch), c.High/float64(v.Batch)
	}
	measured := fmt.Sprintf("%s takes %.2f times the time (%.2f to %.2f, measured now)", what, c.Ratio, c.Low, c.High)
	g, ok := later(now, &c)
	if least = max(least, leastProbed); !ok || c.High > 1-least {
		return nil, fmt.Sprintf("%s; to advise it, the interval must save %s or more", measured, percent(least))
	}
	if c.High < 1-most {
		return nil, measured + ", which is less than the layers that stay take: other load disturbed the run"
	}
	return []*Advice{{
		Reason:  reason + " " + strings.ToUpper(measured[:1]) + measured[1:] + ".",
		Figures: append(figures, Figure{"time as a part of that now", c.Ratio, "1"}),
		Layers:  indices(layers), Gain: g,
	}}, ""
}

// blocks are the numbers of outputs that a tile of a kernel computes, by instruction set. Only sets
// are listed on which a partly filled tile was measured to cost as much as a full one.
var blocks = map[string]int{"avx2": 8, "avxvnni": 8, "avx512": 16, "vnni": 16, "amx": 16}

// excess is how many outputs of a layer are in a tile that they hardly fill, 0 for none. It is at
// most an eighth of the outputs and half of the tile: more are not worth losing. Tiles of ONNX's
// Conv lie along the pixels: one filter in 33 was measured to save 4 % there, but 30 % in TFLite.
func (f *Facts) excess(l *weights.Layer) int {
	block := blocks[f.Profile.Settings.KernelSet]
	if block == 0 || l.Graph != 0 || l.Fixed != "" || lookup(l) || l.Op == "Conv" || l.Channels == 1 && l.Groups > 1 {
		return 0
	}
	rest := l.Rows % block
	if 8*rest > l.Rows || 2*rest > block {
		return 0
	}
	return rest
}

// ofNodes are the layers of the profile that run layers with weights.
func (f *Facts) ofNodes(list []*weights.Layer) (out []int) {
	for _, l := range list {
		for _, n := range l.Nodes {
			if at, ok := f.layers[n]; ok && f.Profile.Layers[at].State == profile.Ran && !slices.Contains(out, at) {
				out = append(out, at)
			}
		}
	}
	return out
}

// pruned changes layers. Layers whose change would not be complete stay as they are. changed are
// those that change.
func (f *Facts) pruned(layers []*weights.Layer, to func(*weights.Layer) study.Change) (m *graph.Model, changed []*weights.Layer, err error) {
	for len(layers) > 0 {
		var changes []rewrite.Change
		for _, l := range layers {
			changes = append(changes, rewrite.Change{Layer: l, Change: to(l)})
		}
		out, effects, err := rewrite.Apply(f.Model, changes, rewrite.Options{Remove: true})
		if err != nil {
			return nil, nil, err
		}
		var whole []*weights.Layer
		for i := range effects {
			if effects[i].Cause == "" {
				whole = append(whole, layers[i])
			}
		}
		if len(whole) == len(layers) {
			return out, whole, nil
		}
		layers = whole
	}
	return nil, nil, nil
}

// trimmed removes the outputs of layers that hardly fill a tile.
func (f *Facts) trimmed() (m *graph.Model, changed []*weights.Layer, err error) {
	all, err := layersOf(f.Model, f.Feed)
	if err != nil {
		return nil, nil, err
	}
	all = slices.DeleteFunc(all, func(l *weights.Layer) bool { return f.excess(l) == 0 })
	return f.pruned(all, func(l *weights.Layer) study.Change {
		return study.Change{Structure: study.Filter, Level: float64(f.excess(l)) / float64(l.Rows)}
	})
}

func (f *Facts) channels() ([]*Advice, string) {
	set := f.Profile.Settings.KernelSet
	switch {
	case f.Model == nil:
		return nil, noModel
	case blocks[set] == 0:
		return nil, fmt.Sprintf("the tiles of %s kernels were not measured", set)
	}
	m, changed, err := f.trimmed()
	switch {
	case err != nil:
		return nil, err.Error()
	case m == nil:
		if slices.ContainsFunc(f.Model.Main().Nodes, func(n *graph.Node) bool { return n.Op == "Conv" }) {
			return nil, fmt.Sprintf("no layer beside the ONNX convolutions has a few outputs more than a multiple of %d that can be removed; the tiles of those lie along the pixels", blocks[set])
		}
		return nil, fmt.Sprintf("no layer has a few outputs more than a multiple of %d that can be removed", blocks[set])
	}
	layers := f.ofNodes(changed)
	share, _, _ := f.share(layers)
	if share < leastShare {
		return nil, fmt.Sprintf("layers with a few outputs more than a multiple of %d take %s of the time", blocks[set], percent(share))
	}
	removed, outputs, most := 0, 0, 0.0
	for _, l := range changed {
		removed, outputs = removed+f.excess(l), outputs+l.Rows
		most = max(most, float64(f.excess(l))/float64(l.Rows))
	}
	l := changed[0]
	reason := fmt.Sprintf("%s with %s of the time have a few outputs more than a multiple of %d, which a tile of %s kernels computes: %s has %d, %d fill tiles.",
		plural(len(changed), "layer"), percent(share), blocks[set], set, l.Name, l.Rows, l.Rows-f.excess(l))
	// Fewer channels save time in any case. The advice is about what they save beyond their part.
	return f.probeModel(&Variant{Model: m}, most*share, 1, reason, layers,
		Figure{"outputs to remove", float64(removed), ""}, Figure{"outputs of these layers", float64(outputs), ""}, Figure{"outputs of a tile", float64(blocks[set]), ""})
}

func changeChannels(_ context.Context, f *Facts) (*Variant, error) {
	m, _, err := f.trimmed()
	return variant(m, err)
}

// Shares of zeros of layers that pruning further is tried on, and the level that it is tried with:
// the first of the usual ones at which kernels for sparse weights run.
const (
	someZeros  = 0.3
	tryZeros   = 0.9
	sparseName = "sparse"
)

// sparser prunes layers with many zeros, which kernels for dense weights compute, further.
func (f *Facts) sparser() (m *graph.Model, changed []*weights.Layer, err error) {
	all, err := layersOf(f.Model, f.Feed)
	if err != nil {
		return nil, nil, err
	}
	all = slices.DeleteFunc(all, func(l *weights.Layer) bool {
		zeros := float64(l.Zeros) / float64(max(l.Weights(), 1))
		return l.Graph != 0 || l.Fixed != "" || lookup(l) || zeros < someZeros || zeros >= tryZeros ||
			slices.ContainsFunc(l.Nodes, func(n int) bool {
				at, ok := f.layers[n]
				return !ok || strings.HasPrefix(f.Profile.Layers[at].Kernel, sparseName)
			})
	})
	return f.pruned(all, func(*weights.Layer) study.Change {
		return study.Change{Structure: study.Unstructured, Level: tryZeros}
	})
}

func (f *Facts) sparse() ([]*Advice, string) {
	if f.Model == nil {
		return nil, noModel
	}
	m, changed, err := f.sparser()
	switch {
	case err != nil:
		return nil, err.Error()
	case m == nil:
		return nil, fmt.Sprintf("no layer has %s to %s zeros and a kernel for dense weights", percent(someZeros), percent(tryZeros))
	}
	layers := f.ofNodes(changed)
	share, _, high := f.share(layers)
	if share < leastShare {
		return nil, fmt.Sprintf("layers with many zeros and kernels for dense weights take %s of the time", percent(share))
	}
	var zeros, all int64
	for _, l := range changed {
		zeros, all = zeros+l.Zeros, all+l.Weights()
	}
	reason := fmt.Sprintf("%s with %s of the time have %s zeros, but run kernels for dense weights: the zeros save nothing. With %s zeros kernels for sparse weights run.",
		plural(len(changed), "layer"), percent(share), percent(float64(zeros)/float64(all)), percent(tryZeros))
	return f.probeModel(&Variant{Model: m}, 0, high, reason, layers,
		Figure{"zeros", float64(zeros) / float64(all), "1"}, Figure{"share of the time", share, "1"})
}

func changeSparse(_ context.Context, f *Facts) (*Variant, error) {
	m, _, err := f.sparser()
	return variant(m, err)
}

// Codes of element types in ONNX files.
const onnxFloat32, onnxFloat16 = 1, 10

// widened is an ONNX model that stores and computes in float32 what was float16, nil where nothing
// is. Its inputs and outputs are float32, too.
func widened(m *graph.Model) *graph.Model {
	if m.Format != "onnx" || len(m.Graphs) != 1 {
		return nil
	}
	wide := func(t *tensor.Tensor) *tensor.Tensor {
		out := tensor.New(tensor.Float32, t.Shape...)
		tensor.Cast(out, t, 0, t.Len(), tensor.Conversion{})
		return out
	}
	g := *m.Main()
	g.Values, g.Nodes = slices.Clone(g.Values), slices.Clone(g.Nodes)
	changed := false
	for i, v := range g.Values {
		if v.Type != tensor.Float16 {
			continue
		}
		n := *v
		if n.Type = tensor.Float32; n.Const != nil {
			if !n.Const.Known() {
				return nil
			}
			n.Const, n.Offset = wide(n.Const), -1
		}
		g.Values[i], changed = &n, true
	}
	for i, n := range g.Nodes {
		t := n.Attrs.Tensor("value")
		if n.Attrs.Int("to", 0) != onnxFloat16 && (t == nil || t.Type != tensor.Float16) {
			continue
		}
		x := *n
		x.Attrs = maps.Clone(n.Attrs)
		if t != nil && t.Type == tensor.Float16 {
			x.Attrs["value"] = wide(t)
		} else {
			x.Attrs["to"] = int64(onnxFloat32)
		}
		g.Nodes[i], changed = &x, true
	}
	if !changed {
		return nil
	}
	return weights.WithMain(m, &g)
}

func (f *Facts) halves() ([]*Advice, string) {
	if f.Model == nil {
		return nil, noModel
	}
	var layers []int
	for i := range f.Profile.Layers {
		l := &f.Profile.Layers[i]
		if l.State == profile.Ran && slices.ContainsFunc(l.Inputs, func(t profile.Tensor) bool { return t.DType == "float16" }) {
			layers = append(layers, i)
		}
	}
	share, _, high := f.share(layers)
	if share < leastShare {
		return nil, fmt.Sprintf("layers with float16 operands take %s of the time", percent(share))
	}
	m := widened(f.Model)
	if m == nil {
		return nil, "the float16 values of the model cannot be stored as float32"
	}
	return f.probeModel(&Variant{Model: m}, 0, high, fmt.Sprintf("%s with %s of the time read float16, which their kernels convert.", plural(len(layers), "layer"), percent(share)), layers,
		Figure{"share of the time", share, "1"}, Figure{"layers", float64(len(layers)), ""})
}

func changeHalves(_ context.Context, f *Facts) (*Variant, error) {
	return variant(widened(f.Model), nil)
}
