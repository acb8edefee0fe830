// Package llm recognises language models that keep the keys and values of earlier tokens in caches,
// and makes the inputs of their phases: prefill of a prompt and decode of a token.
package llm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Role is what an input of a language model is for.
type Role string

// Roles of inputs.
const (
	Tokens     Role = "tokens"      // numbers of the new tokens
	Embeddings Role = "embeddings"  // of the new tokens
	Mask       Role = "mask"        // which positions count, those in the cache included
	Positions  Role = "positions"   // of the new tokens
	LastKey    Role = "last key"    // index of the last position, of each sequence
	Total      Role = "total"       // number of positions, those in the cache included
	UseCache   Role = "use cache"   // whether the cache holds anything
	Logits     Role = "logits"      // for how many tokens logits are needed
	Past       Role = "past"        // number of positions in the cache
	Beams      Role = "beams"       // number of alternatives of a search
	States     Role = "states"      // what an encoder made of its input
	StatesMask Role = "states mask" // which positions of an encoder count
	Features   Role = "features"    // sound or images, the input of an encoder
)

// names has the roles of inputs by the names that exporters give them.
var names = map[string]Role{
	"input_ids": Tokens, "inputs_embeds": Embeddings,
	"attention_mask": Mask, "position_ids": Positions, "cache_position": Positions,
	"seqlens_k": LastKey, "total_sequence_length": Total,
	"use_cache_branch": UseCache, "num_logits_to_keep": Logits, "past_sequence_length": Past, "beam_width": Beams,
	"decoder_input_ids": Tokens, "decoder_attention_mask": Mask,
	"encoder_hidden_states": States, "encoder_attention_mask": StatesMask,
	"input_features": Features, "audio_features": Features, "input_values": Features, "pixel_values": Features,
}

// renamed says how the name of a cache after a run follows from its name before.
var renamed = []struct{ past, present string }{{"past_key_values", "present"}, {"past", "present"}}

// Kind says what a cache holds.
type Kind int

// Kinds of caches.
const (
	Self  Kind = iota // keys and values of the tokens: it grows with them
	Cross             // keys and values of the positions of an encoder
	State             // a state of fixed size, such as that of a convolution
)

// kinds has the kinds of caches by parts of their names. Others are [Self].
var kinds = []struct {
	part string
	kind Kind
}{{".encoder.", Cross}, {"cross", Cross}, {"conv", State}, {"recurrent", State}, {"ssm", State}, {"states", State}}

// kindOf is the kind of a cache with a name.
func (s *Setup) kindOf(name string) Kind {
	for _, p := range s.Caches {
		if _, ok := p.present(name); ok && p.Kind != Self {
			return p.Kind
		}
	}
	for _, k := range kinds {
		if strings.Contains(name, k.part) {
			return k.kind
		}
	}
	return Self
}

// operators have caches of keys and values among their inputs, from past on, and their outputs,
// from 1 on. Lengths are inputs with a role.
var operators = map[string]struct {
	past    int
	buffers bool // which may be longer than their valid part
	lengths map[int]Role
}{
	"com.microsoft:GroupQueryAttention": {3, true, map[int]Role{5: LastKey, 6: Total}},
	"com.microsoft:MultiHeadAttention":  {6, false, nil},
	"Attention":                         {4, false, nil},
}

// Lookups are operators that read rows of a table of weights.
var Lookups = map[string]bool{"Gather": true, "GatherBlockQuantized": true, "EmbedLayerNormalization": true, "GATHER": true, "EMBEDDING_LOOKUP": true}

// Model is a language model with caches.
type Model struct {
	// Inputs has the roles of inputs by position, without caches.
	Inputs map[int]Role
	// Caches are in the order of the inputs.
	Caches []Cache
	// Layers, Heads and HeadSize are the number of caches of keys, the heads in each and the
	// elements of a head; heads or their size are 0 if they differ between layers.
	Layers, Heads, HeadSize int
	// Type is that of the elements of the first cache.
	Type tensor.Type
	// Shared says that the caches are buffers of a fixed length, Capacity: a run writes to rows
	// that follow the valid ones. Other caches grow: a run copies them.
	Shared   bool
	Capacity int
	// Context is the largest number of positions, 0 if unknown.
	Context int
	// Encoder is the number of positions of an encoder that the file fixes, 0 if it leaves them open.
	Encoder int
	// Vocabulary is the number of different tokens, 0 if unknown.
	Vocabulary int

	g     *graph.Graph
	setup Setup
}

// Cache is a cache of keys, values or both, or a state.
type Cache struct {
	Kind Kind
	// Input and Output are the positions among the inputs and outputs of the graph. Output is -1 for
	// a cache of an encoder that a run does not return.
	Input, Output int
	// Axis is the dimension of the positions, -1 for a state, Batch that of the sequences.
	Axis, Batch int
	// Buffer says that the operator accepts a buffer that is longer than its valid part.
	Buffer bool
	shape  []int // as declared
	kind   tensor.Type
	both   bool // has keys and values
}

// Setup is what files beside a model say about it. The zero value says nothing.
type Setup struct {
	// Context is the largest number of positions, Encoder the number of those of an encoder, Bands
	// that of the frequency bands of sound, Channels and Pixels those of the channels of an image and
	// of the pixels of a side; 0 if unknown.
	Context, Encoder, Bands, Channels, Pixels int
	// Roles has those of inputs by their names, beside the usual ones.
	Roles map[string]Role
	// Caches names caches before and after a run, beside the usual names.
	Caches []Pair
	// Shared says that caches with open lengths are run as buffers of a fixed length, where all
	// operators that read them can.
	Shared bool
}

// Pair has the names of caches before and after a run, with %d for the layer. Present is "" for
// those that a run does not return.
type Pair struct {
	Past, Present string
	Kind          Kind
}

// present is the name after a run of the cache with a name before, and whether the pair has it.
func (p Pair) present(name string) (string, bool) {
	before, after, _ := strings.Cut(p.Past, "%d")
	if len(name) < len(before)+len(after) || !strings.HasPrefix(name, before) || !strings.HasSuffix(name, after) {
		return "", false
	}
	layer := name[len(before) : len(name)-len(after)]
	if _, err := strconv.ParseUint(layer, 10, 32); err != nil {
		return "", false
	}
	return strings.Replace(p.Present, "%d", layer, 1), true
}

// UnsupportedError says why the phases of a language model cannot be run.
type UnsupportedError struct{ Text string }

// Error returns the reason.
func (e *UnsupportedError) Error() string { return e.Text }

func unsupported(format string, args ...any) error {
	return &UnsupportedError{fmt.Sprintf(format, args...)}
}

// Detect returns the language model in a graph, nil for a model without caches of keys and values
// or without tokens. The error is an [UnsupportedError].
func Detect(m *graph.Model, s Setup) (*Model, error) {
	d := detect(m, s)
	pairs := d.pairs()
	if len(pairs) == 0 || !d.m.Has(Tokens) && !d.m.Has(Embeddings) {
		return nil, nil //nolint:nilnil // not a language model, which is no fault
	}
	for _, p := range pairs {
		c, err := d.newCache(d.m.g.Values[d.m.g.Inputs[p[0]]], p[0], p[1])
		if err != nil {
			return nil, err
		}
		c.Buffer = d.buffers[p[0]]
		d.m.Caches = append(d.m.Caches, c)
	}
	if err := d.sizes(); err != nil {
		return nil, err
	}
	d.limits(m)
	return d.m, nil
}

// DetectPart returns a part of a language model that has no caches: an encoder, or a decoder for
// the first tokens. It is nil for other models.
func DetectPart(m *graph.Model, s Setup) *Model {
	d := detect(m, s)
	if len(d.pairs()) > 0 || !d.m.Has(Tokens) && !d.m.Has(Embeddings) && !d.m.Has(Features) {
		return nil
	}
	d.limits(m)
	return d.m
}

// detect finds the roles of inputs.
func detect(m *graph.Model, s Setup) *detection {
	d := &detection{m: &Model{Inputs: map[int]Role{}, g: m.Main(), setup: s}, inputs: map[int]int{}, outputs: map[int]int{}, buffers: map[int]bool{}}
	for i, id := range d.m.g.Inputs {
		d.inputs[id] = i
		v := d.m.g.Values[id]
		r, ok := s.Roles[v.Name]
		if !ok {
			r, ok = names[v.Name]
		}
		if ok {
			d.m.Inputs[i] = r
		}
		if r == States && len(v.Shape) == 3 && v.Shape[1] > 0 {
			d.m.Encoder = v.Shape[1]
		}
	}
	for i, id := range d.m.g.Outputs {
		if id >= 0 {
			d.outputs[id] = i
		}
	}
	return d
}

// Encoded reports whether the model reads what an encoder made.
func (m *Model) Encoded() bool {
	return m.Has(States) || slices.ContainsFunc(m.Caches, func(c Cache) bool { return c.Kind == Cross })
}

// Share makes caches with open lengths buffers of so many positions if the setup asks for it and
// every operator that reads them can use buffers.
func (m *Model) Share(positions int) {
	if !m.setup.Shared || m.Shared {
		return
	}
	for _, c := range m.Caches {
		if c.Kind == Self && !m.buffered(m.g.Inputs[c.Input]) {
			return
		}
	}
	m.Shared, m.Capacity = true, positions
}

// buffered reports whether only GroupQueryAttention reads a value.
func (m *Model) buffered(id int) bool {
	for _, n := range m.g.Nodes {
		if slices.Contains(n.Inputs, id) && n.Key() != "com.microsoft:GroupQueryAttention" {
			return false
		}
	}
	return true
}

// Has reports whether an input has a role.
func (m *Model) Has(r Role) bool {
	for _, have := range m.Inputs {
		if have == r {
			return true
		}
	}
	return false
}

type detection struct {
	m               *Model
	inputs, outputs map[int]int  // positions by value
	buffers         map[int]bool // by input: its operator accepts buffers
}

// pairs returns the positions of caches among inputs and outputs, by name or by the operator that
// reads them, in the order of the inputs.
func (d *detection) pairs() (all [][2]int) {
	g := d.m.g
	byName := map[string]int{}
	for i, id := range g.Outputs {
		if id >= 0 {
			byName[g.Values[id].Name] = i
		}
	}
	found := map[int]int{}
	for i, id := range g.Inputs {
		if out, ok := d.byName(g.Values[id].Name, byName); ok {
			found[i] = out
		}
	}
	for _, n := range g.Nodes {
		o, ok := operators[n.Key()]
		for k := range 2 {
			if !ok || len(n.Inputs) <= o.past+k || len(n.Outputs) <= 1+k {
				continue
			}
			in, isInput := d.inputs[n.Inputs[o.past+k]]
			if out, isOutput := d.outputs[n.Outputs[1+k]]; isInput && isOutput {
				found[in], d.buffers[in] = out, o.buffers
			}
		}
		for k, r := range o.lengths {
			if k < len(n.Inputs) {
				if in, isInput := d.inputs[n.Inputs[k]]; isInput {
					d.m.Inputs[in] = r
				}
			}
		}
	}
	for i := range g.Inputs {
		if out, ok := found[i]; ok {
			all = append(all, [2]int{i, out})
		}
	}
	return all
}

// byName returns the position of the output that a cache with a name becomes, -1 for one of an
// encoder that is not returned.
func (d *detection) byName(name string, outputs map[string]int) (int, bool) {
	var after []string
	for _, p := range d.m.setup.Caches {
		if s, ok := p.present(name); ok {
			after = append(after, s)
		}
	}
	for _, r := range renamed {
		if strings.Contains(name, r.past) {
			after = append(after, strings.Replace(name, r.past, r.present, 1))
		}
	}
	for _, s := range after {
		if out, ok := outputs[s]; ok {
			return out, true
		}
	}
	return -1, len(after) > 0 && d.m.setup.kindOf(name) == Cross
}

// newCache finds the axes of a cache: [batch, heads, positions, size], or the same with another
// order, with keys and values in one tensor before them, or without heads. A state has any shape.
func (d *detection) newCache(v *graph.Value, in, out int) (Cache, error) {
	c := Cache{Kind: d.m.setup.kindOf(v.Name), Input: in, Output: out, Axis: -1, shape: v.Shape, kind: v.Type}
	rank := len(v.Shape)
	c.both = rank == 5 || strings.Contains(v.Name, "latent")
	switch {
	case c.Kind == State && v.HasShape && rank > 0 && v.Type.Bits() > 0:
	case !v.HasShape:
		return c, unsupported("cache %q has no shape in the file: expected 3 to 5 dimensions, such as [batch, heads, positions, size]", v.Name)
	case rank < 3 || rank > 5 || v.Type.Bits() == 0:
		return c, unsupported("cache %q has shape %s: expected 3 to 5 dimensions, such as [batch, heads, positions, size]", v.Name, tensor.FormatShape(v.Shape))
	}
	if rank == 5 && c.Kind != State {
		c.Batch = 1
	}
	var open []int
	for i, n := range v.Shape {
		if n >= 0 || i == c.Batch {
			continue
		}
		open = append(open, i)
		if i < len(v.DimNames) && isLength(v.DimNames[i]) && c.Axis < 0 {
			c.Axis = i
		}
	}
	switch {
	case c.Kind == State:
		c.Axis = -1
	case c.Axis >= 0:
	case len(open) == 1:
		c.Axis = open[0]
	default:
		c.Axis = rank - 2
	}
	for i, n := range v.Shape {
		if n < 0 && i != c.Axis && i != c.Batch {
			return c, unsupported("cache %q has shape %s: dimension %d has no size in the file", v.Name, tensor.FormatShape(v.Shape), i)
		}
	}
	return c, nil
}

// isLength reports whether the name of a dimension is that of a number of positions.
func isLength(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"past", "cache", "seq", "len", "total", "context"}, func(s string) bool { return strings.Contains(name, s) })
}

// sizes determines what is equal in all caches.
func (d *detection) sizes() error {
	m := d.m
	keys, first := 0, true
	m.Type = m.Caches[0].kind
	for i := range m.Caches {
		c := &m.Caches[i]
		if c.Kind == State {
			continue
		}
		length := max(0, c.shape[c.Axis])
		if c.Kind == Cross {
			if m.Encoder > 0 && length > 0 && length != m.Encoder {
				return unsupported("the encoder has %d positions in one input and %d in another", m.Encoder, length)
			}
			m.Encoder = max(m.Encoder, length)
			continue
		}
		if keys++; c.both {
			keys++
		}
		heads, size := c.headsAndSize()
		if first {
			m.Type, m.Capacity, m.Shared, m.Heads, m.HeadSize, first = c.kind, length, length > 0, heads, size, false
		}
		if length != m.Capacity {
			if min(length, m.Capacity) == 0 {
				return unsupported("some caches have an open length, and others %d positions", max(length, m.Capacity))
			}
			return unsupported("the caches have different lengths: %d and %d", m.Capacity, length)
		}
		if heads != m.Heads || size != m.HeadSize {
			m.Heads, m.HeadSize = 0, 0
		}
	}
	m.Layers = keys / 2
	return nil
}

// headsAndSize returns the two sizes beside batch and positions, 0 without them.
func (c *Cache) headsAndSize() (heads, size int) {
	var rest []int
	for i, n := range c.shape {
		if i != c.Axis && i != c.Batch && (len(c.shape) < 5 || i > 0) {
			rest = append(rest, n)
		}
	}
	if len(rest) != 2 {
		return 0, 0
	}
	return rest[0], rest[1]
}

// contextKey is the name of the metadata with the largest number of positions.
const contextKey = "context_length"

// limits finds the largest number of positions, and of tokens.
func (d *detection) limits(m *graph.Model) {
	least := func(n int) {
		if n > 0 && (d.m.Context == 0 || n < d.m.Context) {
			d.m.Context = n
		}
	}
	least(d.m.Capacity)
	least(d.m.setup.Context)
	for _, md := range m.Metadata {
		if n, err := strconv.Atoi(string(md.Data)); md.Name == contextKey && err == nil {
			least(n)
		}
	}
	for _, n := range d.m.g.Nodes {
		switch n.Key() {
		case "com.microsoft:GroupQueryAttention":
			if n.Attrs.Bool("do_rotary", false) {
				least(d.rows(n, 7))
			}
		case "com.microsoft:RotaryEmbedding":
			least(d.rows(n, 2))
		case "com.microsoft:EmbedLayerNormalization":
			d.m.Vocabulary = d.rows(n, 2)
			least(d.rows(n, 3))
		case "Gather", "com.microsoft:GatherBlockQuantized":
			if len(n.Inputs) < 2 || n.Attrs.Int("axis", n.Attrs.Int("gather_axis", 0)) != 0 {
				continue
			}
			switch d.role(n.Inputs[1]) {
			case Tokens:
				d.m.Vocabulary = d.rows(n, 0)
			case Positions:
				least(d.rows(n, 0))
			}
		}
	}
}

// role is that of the input that a value is, or is cast from; "" for others.
func (d *detection) role(id int) Role {
	for _, n := range d.m.g.Nodes {
		if n.Op == "Cast" && len(n.Inputs) == 1 && slices.Contains(n.Outputs, id) {
			id = n.Inputs[0]
			break
		}
	}
	if in, ok := d.inputs[id]; ok {
		return d.m.Inputs[in]
	}
	return ""
}

// rows is the first size of a constant input of a node, 0 without one.
func (d *detection) rows(n *graph.Node, k int) int {
	if k >= len(n.Inputs) || n.Inputs[k] < 0 {
		return 0
	}
	if c := d.m.g.Values[n.Inputs[k]].Const; c != nil && len(c.Shape) > 1 {
		return c.Shape[0]
	}
	return 0
}

// CacheBytes is the size of the keys and values of so many positions in all caches, of a batch of
// sequences: 2 · layers · batch · positions · heads · head size · bytes of an element.
func (m *Model) CacheBytes(batch, positions int) int64 { return m.bytes(Self, batch, positions, nil) }

// CrossBytes is the size of the keys and values of so many positions of an encoder.
func (m *Model) CrossBytes(batch, positions int) int64 { return m.bytes(Cross, batch, positions, nil) }

// StateBytes is the size of the states of a batch of sequences.
func (m *Model) StateBytes(batch int) int64 { return m.bytes(State, batch, 0, nil) }

// CopiedBytes is what a run of a phase writes to the caches beside the new keys and values: copies
// of those before, and zeros behind them in buffers. inPlace has the names of the inputs in whose
// memory outputs are written, by output.
func (m *Model) CopiedBytes(p Phase, inPlace map[string]string) int64 {
	return m.bytes(Self, p.Batch, max(m.Capacity-p.Tokens, p.Depth), inPlace)
}

// Pairs returns the names of the inputs and outputs of the caches: all, or those whose operators
// accept buffers.
func (m *Model) Pairs(buffers bool) (all [][2]string) {
	for i := range m.Caches {
		if c := &m.Caches[i]; c.Kind == Self && c.Output >= 0 && (c.Buffer || !buffers) {
			all = append(all, m.names(c))
		}
	}
	return all
}

func (m *Model) names(c *Cache) [2]string {
	return [2]string{m.g.Values[m.g.Inputs[c.Input]].Name, m.g.Values[m.g.Outputs[c.Output]].Name}
}

// bytes is the size of the caches of a kind, without those that are written in place.
func (m *Model) bytes(k Kind, batch, positions int, inPlace map[string]string) (sum int64) {
	for i := range m.Caches {
		c := &m.Caches[i]
		if c.Kind != k {
			continue
		}
		placed := false
		if len(inPlace) > 0 && c.Output >= 0 {
			pair := m.names(c)
			placed = inPlace[pair[1]] == pair[0]
		}
		if !placed {
			sum += int64(c.kind.Bytes(tensor.Elements(c.sized(batch, positions))))
		}
	}
	return sum
}

// sized is the shape of a cache of so many positions.
func (c *Cache) sized(batch, positions int) []int {
	s := slices.Clone(c.shape)
	if c.Axis >= 0 {
		s[c.Axis] = positions
	}
	if s[c.Batch] < 0 {
		s[c.Batch] = batch
	}
	return s
}
