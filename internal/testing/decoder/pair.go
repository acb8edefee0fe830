package decoder

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Form says how the files of a model with an encoder and a decoder are divided.
type Form int

// Forms of pairs.
const (
	// Merged is sound to text, with a decoder whose branches are without and with caches, as Optimum
	// merges them.
	Merged Form = iota
	// Separate is text to text, with a decoder for the first tokens and one for those after.
	Separate
	// Crossed is sound to text, with an encoder that makes the caches of its positions, as ONNX
	// Runtime GenAI exports it.
	Crossed
)

// Frames and bands of the sound, and the positions that an encoder makes of the frames.
const (
	Bands     = 8
	Positions = 24
	frames    = 2 * Positions
)

// Pair is a model with an encoder and a decoder.
type Pair struct {
	Encoder, Decoder *graph.Model
	// Start is the decoder for the first tokens, nil if Decoder runs them.
	Start *graph.Model
}

// NewPair builds a model. Weights of all files are parts of the same network.
func NewPair(c Config, f Form) Pair {
	c.KVHeads = c.Heads
	p := Pair{Encoder: encoder(c, f), Decoder: pairDecoder(c, f, true)}
	switch f {
	case Separate:
		p.Start = pairDecoder(c, f, false)
	case Merged:
		p.Decoder = merged(c)
	}
	return p
}

// encoderDraws sets weights of the encoder apart from those of the decoder, and crossDraws those
// that make keys and values of the encoder's positions.
const (
	encoderDraws = 1 << 20
	crossDraws   = 1 << 21
)

func encoder(c Config, f Form) *graph.Model {
	name := "encoder_model"
	if f == Crossed {
		name = "encoder"
	}
	b := &builder{Config: c, g: &graph.Graph{Name: name}, draws: encoderDraws, scope: "encoder"}
	var x int
	length, bias := any(Positions), 0
	if f == Separate {
		length = "encoder_sequence_length"
		ids := b.input("input_ids", tensor.Int64, "batch_size", length)
		bias = b.padding(b.input("attention_mask", tensor.Int64, "batch_size", length))
		x = b.op("Gather", nil, b.random(0, 1, b.Vocabulary, b.Width), ids)
	} else {
		sound := map[Form]string{Merged: "input_features", Crossed: "audio_features"}[f]
		x = b.input(sound, tensor.Float32, "batch_size", Bands, frames)
		const kernel = 3
		w := b.random(0, math.Sqrt(1.0/Bands), b.Width, Bands, kernel)
		x = b.op("Conv", graph.Attrs{"strides": []int64{2}, "pads": []int64{1, 1}, "kernel_shape": []int64{kernel}}, x, w)
		x = b.op("Add", nil, b.op("Transpose", graph.Attrs{"perm": []int64{0, 2, 1}}, x), b.random(0, 1, Positions, b.Width))
	}
	for range b.Layers {
		n := b.norm(x)
		q, k, v := b.linear(n, b.Width, b.wide()), b.linear(n, b.Width, b.wide()), b.linear(n, b.Width, b.wide())
		x = b.op("Add", nil, x, b.attend(q, [2]int{b.split(k), b.split(v)}, bias))
		x = b.feedForward(x)
	}
	x = b.norm(x)
	if f != Crossed {
		b.output(x, "last_hidden_state", tensor.Float32, "batch_size", length, b.Width)
		return b.model()
	}
	b.output(b.op("Identity", nil, x), "encoder_hidden_states", tensor.Float32, "batch_size", length, b.Width)
	for l := range b.Layers {
		for i, id := range b.crossCaches(l, x) {
			b.output(id, fmt.Sprintf("present_%s_cross_%d", kinds[i], l), tensor.Float32, "batch_size", b.Heads, length, b.HeadSize)
		}
	}
	return b.model()
}

var kinds = [2]string{"key", "value"}

func (b *builder) wide() int { return b.Heads * b.HeadSize }

func (b *builder) feedForward(x int) int {
	return b.op("Add", nil, x, b.linear(b.op("Relu", nil, b.linear(b.norm(x), b.Width, b.MLP)), b.MLP, b.Width))
}

// padding is what is added to the scores of positions that a mask excludes.
func (b *builder) padding(mask int) int {
	counts := b.op("Cast", graph.Attrs{"to": int64(9)}, b.op("Unsqueeze", nil, mask, b.ints(1, 2)))
	return b.op("Where", nil, counts, b.scalar(tensor.Float32, 0), b.scalar(tensor.Float32, -1e9))
}

// crossCaches makes the keys and values of a layer from what an encoder made.
func (b *builder) crossCaches(l, states int) (kv [2]int) {
	at := b.draws
	b.draws = crossDraws + 2*l
	for i := range kv {
		kv[i] = b.split(b.linear(states, b.Width, b.wide()))
	}
	b.draws = at
	return kv
}

// names are those of the caches of a form: before and after a run, of the decoder and the encoder.
func (f Form) names(past, cross bool, kind string, layer int) string {
	if f == Crossed {
		return fmt.Sprintf("%s_%s_%s_%d", map[bool]string{false: "present", true: "past"}[past], kind, map[bool]string{false: "self", true: "cross"}[cross], layer)
	}
	return fmt.Sprintf("%s.%d.%s.%s", map[bool]string{false: "present", true: "past_key_values"}[past], layer, map[bool]string{false: "decoder", true: "encoder"}[cross], kind)
}

// pairDecoder builds a decoder for tokens after others in a cache, or for the first ones.
func pairDecoder(c Config, f Form, cached bool) *graph.Model {
	name := map[bool]string{false: "decoder_model", true: "decoder_with_past_model"}[cached]
	if f == Crossed {
		name = "decoder"
	}
	b := &builder{Config: c, g: &graph.Graph{Name: name}}
	b.steps(f, b.pairInputs(f, cached, !cached), cached)
	return b.model()
}

// pairInputs declares the inputs of a decoder by name.
func (b *builder) pairInputs(f Form, cached, states bool) map[string]int {
	in := map[string]int{"input_ids": b.input("input_ids", tensor.Int64, "batch_size", "sequence_length")}
	if f == Separate {
		in["encoder_attention_mask"] = b.input("encoder_attention_mask", tensor.Int64, "batch_size", "encoder_sequence_length")
	}
	if states {
		in["encoder_hidden_states"] = b.input("encoder_hidden_states", tensor.Float32, "batch_size", "encoder_sequence_length", b.Width)
	}
	for l := range b.Layers {
		for _, cross := range []bool{false, true} {
			for _, kind := range kinds {
				length := any(map[bool]string{false: "past_sequence_length", true: "encoder_sequence_length"}[cross])
				if cross && f == Crossed {
					length = Positions
				}
				if name := f.names(true, cross, kind, l); cached {
					in[name] = b.input(name, tensor.Float32, "batch_size", b.Heads, length, b.HeadSize)
				}
			}
		}
	}
	return in
}

// steps builds the layers of a decoder and its outputs.
func (b *builder) steps(f Form, in map[string]int, cached bool) {
	b.scope = "embed"
	at := func(x, axis int) int {
		return b.op("Gather", graph.Attrs{"axis": int64(0)}, b.op("Shape", nil, x), b.scalar(tensor.Int64, float64(axis)))
	}
	ids := in["input_ids"]
	before, total := b.scalar(tensor.Int64, 0), at(ids, 1)
	if cached {
		before = at(in[f.names(true, false, "key", 0)], 2)
		total = b.op("Add", nil, before, total)
	}
	one := b.scalar(tensor.Int64, 1)
	positions := b.op("Range", nil, before, total, one)
	keys := b.op("Range", nil, b.scalar(tensor.Int64, 0), total, one)
	visible := b.op("LessOrEqual", nil, keys, b.op("Unsqueeze", nil, positions, b.ints(1)))
	b.bias = b.op("Where", nil, visible, b.scalar(tensor.Float32, 0), b.scalar(tensor.Float32, -1e9))
	padding := 0
	if mask, ok := in["encoder_attention_mask"]; ok {
		padding = b.padding(mask)
	}
	x := b.op("Gather", nil, b.random(0, 1, b.Vocabulary, b.Width), ids)
	x = b.op("Add", nil, x, b.op("Gather", nil, b.random(0, 1, b.Context, b.Width), positions))
	var caches [][2][2]int
	for l := range b.Layers {
		b.scope = fmt.Sprintf("layers.%d", l)
		n := b.norm(x)
		q := b.linear(n, b.Width, b.wide())
		var self, cross [2]int
		for i, kind := range kinds {
			self[i] = b.split(b.linear(n, b.Width, b.wide()))
			if cached {
				self[i] = b.op("Concat", graph.Attrs{"axis": int64(2)}, in[f.names(true, false, kind, l)], self[i])
			}
		}
		x = b.op("Add", nil, x, b.attend(q, self, b.bias))
		if cached {
			for i, kind := range kinds {
				cross[i] = in[f.names(true, true, kind, l)]
			}
		} else {
			cross = b.crossCaches(l, in["encoder_hidden_states"])
		}
		x = b.op("Add", nil, x, b.attend(b.linear(b.norm(x), b.Width, b.wide()), cross, padding))
		x = b.feedForward(x)
		caches = append(caches, [2][2]int{self, cross})
	}
	b.scope = "head"
	b.output(b.linear(b.norm(x), b.Width, b.Vocabulary), "logits", tensor.Float32, "batch_size", "sequence_length", b.Vocabulary)
	for l, both := range caches {
		for k, kv := range both {
			if cross := k == 1; !cross || !cached || b.outer != nil {
				for i, id := range kv {
					if cross && cached { // a branch returns what it did not change
						id = b.op("Identity", nil, id)
					}
					b.output(id, f.names(false, cross, kinds[i], l), tensor.Float32, "batch_size", b.Heads, "length", b.HeadSize)
				}
			}
		}
	}
}

// capture makes a value of the graph around a branch a value of the branch.
func (b *builder) capture(outer int) int {
	v := b.outer.g.Values[outer]
	id := b.value(&graph.Value{Name: v.Name, Type: v.Type, Shape: v.Shape, DimNames: v.DimNames, HasShape: v.HasShape, Const: v.Const})
	b.g.Captures = append(b.g.Captures, graph.Capture{Inner: id, Outer: outer})
	return id
}

// merged builds a decoder that chooses between branches without and with caches.
func merged(c Config) *graph.Model {
	b := &builder{Config: c, g: &graph.Graph{Name: "decoder_model_merged"}, weights: map[int]int{}}
	in := b.pairInputs(Merged, true, true)
	choice := b.input("use_cache_branch", tensor.Bool, 1)
	var branches []*graph.Graph
	for i, cached := range []bool{true, false} {
		body := &builder{Config: c, g: &graph.Graph{Name: fmt.Sprintf("branch_%t", cached), Index: 1 + i, Parent: b.g}, outer: b}
		captured := map[string]int{}
		for _, id := range b.g.Inputs {
			if name := b.g.Values[id].Name; name != "use_cache_branch" {
				captured[name] = body.capture(in[name])
			}
		}
		body.steps(Merged, captured, cached)
		branches = append(branches, body.g)
	}
	of := branches[0]
	out := b.node(graph.ONNX, "If", graph.Attrs{"then_branch": graph.GraphRef(1), "else_branch": graph.GraphRef(2)}, len(of.Outputs), choice)
	for i, id := range out {
		v := of.Values[of.Outputs[i]]
		b.g.Values[id] = &graph.Value{ID: id, Offset: -1, Name: v.Name, Type: v.Type, Shape: v.Shape, DimNames: v.DimNames, HasShape: true}
		b.g.Outputs = append(b.g.Outputs, id)
		for _, body := range branches { // names of values are unique in nested graphs
			body.Values[body.Outputs[i]].Name += "/" + body.Name
		}
	}
	return b.model(branches...)
}

// Settings returns the name and the text of the file that says what is in the folder of a pair.
func Settings(c Config, f Form) (name, text string) {
	if f != Crossed {
		return "config.json", fmt.Sprintf("{\"is_encoder_decoder\": true, \"max_position_embeddings\": %d}\n", c.Context)
	}
	return "genai_config.json", fmt.Sprintf(`{
  "model": {
    "type": "whisper", "context_length": %d,
    "encoder": {"filename": "encoder.onnx", "inputs": {"audio_features": "audio_features"}},
    "decoder": {
      "filename": "decoder.onnx",
      "inputs": {
        "input_ids": "input_ids",
        "past_key_names": "past_key_self_%%d", "past_value_names": "past_value_self_%%d",
        "cross_past_key_names": "past_key_cross_%%d", "cross_past_value_names": "past_value_cross_%%d"
      },
      "outputs": {"logits": "logits", "present_key_names": "present_key_self_%%d", "present_value_names": "present_value_self_%%d"}
    }
  },
  "search": {"past_present_share_buffer": false}
}
`, c.Context)
}
