package gguf

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// architecture says how a family of models differs from a plain decoder where the tensors of the
// file do not tell it.
type architecture struct {
	// interleaved rotates neighbouring elements of a head; others rotate those half a head apart.
	interleaved bool
	// gelu is the activation of the MLP, SiLU without it.
	gelu bool
	// scaled multiplies embeddings by the root of their length.
	scaled bool
	// window returns whether a layer attends to the last keys only, nil if none does.
	window func(layer int) bool
	// local is the rotary base of layers with a window, 0 for that of the file.
	local float64
	// wide is the number of layers of the one size whose scores are scaled by the root of
	// embedding length by heads, 0 for none.
	wide int
	// route weights the experts of layers that have some, nil for families without.
	route *routing
	// latent is attention whose keys and values come from one small vector.
	latentKV bool
	// clamped limits the halves of the MLP as gpt-oss does.
	clamped bool
	// mlpNorm is the norm before the MLP, "ffn_norm" without it.
	mlpNorm string
	// recurrent layers have a state space and neither attention nor MLP.
	recurrent bool
}

// architectures lists the supported families by their name in files.
var architectures = map[string]architecture{
	"llama":     {interleaved: true, route: &routing{normalise: true}},
	"mistral3":  {interleaved: true},
	"granite":   {interleaved: true},
	"qwen2":     {},
	"qwen2moe":  {route: &routing{}},
	"qwen3":     {},
	"qwen3moe":  {route: &routing{normalise: true}},
	"phi3":      {window: func(int) bool { return true }},
	"gemma":     {gelu: true, scaled: true},
	"gemma2":    {gelu: true, scaled: true, window: func(l int) bool { return l%2 == 0 }, wide: 46},
	"gemma3":    {gelu: true, scaled: true, window: func(l int) bool { return l%6 < 5 }, local: 10_000, wide: 62},
	"deepseek2": {interleaved: true, latentKV: true, route: &routing{}},
	"gpt-oss":   {clamped: true, mlpNorm: "post_attention_norm", window: func(l int) bool { return l%2 == 0 }, route: &routing{late: true}},
	"mamba":     {recurrent: true},
}

// Architectures lists the supported architectures.
func Architectures() []string { return slices.Sorted(maps.Keys(architectures)) }

// network has the sizes of a model.
type network struct {
	architecture
	name                         string
	layers, width, vocab         int
	context                      int
	epsilon                      float32
	base, factor                 float64 // of rotary angles
	window                       int
	softcap, lastcap             float32
	embedScale, residual, logits float32 // factors, 0 for none
	attentionScale               float32 // 0 for 1/√head size
}

// maxLayers bounds the graph that a file can ask for.
const maxLayers = 4096

func newNetwork(f *File) (*network, error) {
	name := f.Text("general.architecture")
	a, ok := architectures[name]
	switch {
	case name == "":
		return nil, fmt.Errorf("metadata general.architecture is missing: the file has no language model")
	case !ok:
		return nil, fmt.Errorf("architecture %q is not supported, only %s", name, strings.Join(Architectures(), ", "))
	}
	n := &network{architecture: a, name: name}
	var err error
	size := func(key string, def, most float64) int {
		x := f.Float(name+"."+key, def)
		if !(x >= 1 && x <= most && x == math.Trunc(x)) && err == nil {
			is := digits(x)
			switch _, number := number(f.Meta[name+"."+key]); {
			case f.Meta[name+"."+key] == nil:
				is = "missing"
			case !number:
				is = "not a number"
			}
			err = fmt.Errorf("metadata %s.%s is %s, expected an integer from 1 to %s", name, key, is, digits(most))
		}
		return int(x)
	}
	n.layers = size("block_count", 0, maxLayers)
	n.width = size("embedding_length", 0, 1<<24)
	n.context = size("context_length", 2048, 1<<40)
	if err != nil {
		return nil, err
	}
	real := func(key string, def float64) float64 { return f.Float(name+"."+key, def) }
	n.epsilon = float32(real("attention.layer_norm_rms_epsilon", 1e-5))
	n.base, n.factor = real("rope.freq_base", 10_000), 1
	if f.Text(name+".rope.scaling.type") == "linear" {
		n.factor = real("rope.scaling.factor", 1)
	}
	n.window = int(min(max(real("attention.sliding_window", 0), 0), 1<<40))
	n.softcap, n.lastcap = float32(real("attn_logit_softcapping", 0)), float32(real("final_logit_softcapping", 0))
	n.embedScale, n.residual, n.logits = float32(real("embedding_scale", 0)), float32(real("residual_scale", 0)), float32(real("logit_scale", 0))
	n.attentionScale = float32(real("attention.scale", 0))
	if n.scaled {
		n.embedScale = float32(math.Sqrt(float64(n.width)))
	}
	return n, nil
}

// digits writes a number without an exponent if it has up to 15 digits.
func digits(x float64) string {
	if math.Abs(x) < 1e15 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// perLayer returns a size that a file has once, or for each layer.
func (n *network) perLayer(f *File, key string, layer int, def float64) (int, error) {
	const most = 1 << 24
	v := f.Meta[n.name+"."+key]
	x, ok := number(v)
	if a, list := v.(Array); list {
		x, ok = a.Float(layer)
	}
	if !ok {
		x = def
	}
	if !(x >= 1 && x <= most && x == math.Trunc(x)) {
		return 0, fmt.Errorf("metadata %s.%s is %s for layer %d, expected an integer from 1 to %d", n.name, key, digits(x), layer, most)
	}
	return int(x), nil
}
