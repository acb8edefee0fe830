// Package decoder builds small language models with random weights: decoders of known architecture
// with caches of keys and values, in the forms that exporters write.
package decoder

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/synth"
)

// Config has the sizes of a model.
type Config struct {
	Layers, Width, Heads, KVHeads, HeadSize, MLP, Vocabulary, Context int
	// Shared makes caches that are buffers of Context positions, written by GroupQueryAttention with
	// rotary positions. Others are concatenated with the new keys and values, and have as many heads
	// as queries.
	Shared bool
	// Open leaves the length of shared caches to the caller, as ONNX Runtime GenAI exports them.
	Open bool
	Seed uint64
}

// Small is a configuration for tests.
var Small = Config{Layers: 2, Width: 32, Heads: 4, KVHeads: 2, HeadSize: 8, MLP: 64, Vocabulary: 50, Context: 64}

type builder struct {
	Config
	g     *graph.Graph
	draws int
	scope string

	positions, mask, bias            int
	lengths, total, cosines, sinuses int

	// outer builds the graph around this one, nil for a main graph. Branches share its weights, by
	// their draws.
	outer   *builder
	weights map[int]int
}

// New builds a model.
func New(c Config) *graph.Model {
	b := &builder{Config: c, g: &graph.Graph{Name: "decoder"}}
	if !c.Shared {
		b.KVHeads = b.Heads
	}
	b.build()
	return b.model()
}

// model is the model of a graph and its branches.
func (b *builder) model(branches ...*graph.Graph) *graph.Model {
	name := b.g.Name
	return &graph.Model{
		Format: "onnx", Path: name + ".onnx", Name: name, Producer: "opmeter",
		Opsets: map[string]int{graph.ONNX: 23, graph.Microsoft: 1}, IRVersion: 10, Graphs: append([]*graph.Graph{b.g}, branches...),
	}
}

func (b *builder) value(v *graph.Value) int {
	v.ID, v.Offset = len(b.g.Values), -1
	b.g.Values = append(b.g.Values, v)
	return v.ID
}

// declare sets the type and shape of a value; dimensions are sizes or names.
func (b *builder) declare(id int, name string, t tensor.Type, dims []any) {
	v := b.g.Values[id]
	v.Name, v.Type, v.HasShape = name, t, true
	for _, d := range dims {
		size, fixed := d.(int)
		name, _ := d.(string)
		if !fixed {
			size = -1
		}
		v.Shape, v.DimNames = append(v.Shape, size), append(v.DimNames, name)
	}
}

func (b *builder) input(name string, t tensor.Type, dims ...any) int {
	id := b.value(&graph.Value{})
	b.declare(id, name, t, dims)
	b.g.Inputs = append(b.g.Inputs, id)
	return id
}

func (b *builder) output(id int, name string, t tensor.Type, dims ...any) {
	b.declare(id, name, t, dims)
	b.g.Outputs = append(b.g.Outputs, id)
}

func (b *builder) constant(t *tensor.Tensor) int {
	return b.value(&graph.Value{Name: fmt.Sprintf("constant_%d", len(b.g.Values)), Type: t.Type, Shape: t.Shape, HasShape: true, Const: t})
}

func (b *builder) ints(list ...int64) int {
	return b.constant(tensor.From(tensor.Int64, []int{len(list)}, list))
}

func (b *builder) scalar(t tensor.Type, x float64) int {
	c := tensor.New(t)
	tensor.Put(c, 0, x)
	return b.constant(c)
}

// random adds weights from -width to width around a mean.
func (b *builder) random(mean, width float64, shape ...int) int {
	b.draws++
	t, g := tensor.New(tensor.Float32, shape...), synth.NewGenerator(b.Seed, b.draws)
	tensor.Fill(t, func(int) float64 { return mean + width*(2*float64(g.Next()>>40)/(1<<24)-1) })
	if b.outer == nil {
		return b.constant(t)
	}
	if _, ok := b.outer.weights[b.draws]; !ok {
		b.outer.weights[b.draws] = b.outer.constant(t)
	}
	return b.capture(b.outer.weights[b.draws])
}

func (b *builder) node(domain, op string, attrs graph.Attrs, outputs int, in ...int) []int {
	n := &graph.Node{Index: len(b.g.Nodes), Name: fmt.Sprintf("/%s/%s_%d", b.scope, op, len(b.g.Nodes)), Domain: domain, Op: op, Version: 23, Attrs: attrs, Inputs: in}
	if domain == graph.Microsoft {
		n.Version = 1
	}
	for i := range outputs {
		n.Outputs = append(n.Outputs, b.value(&graph.Value{Name: fmt.Sprintf("%s_%d", n.Name, i)}))
	}
	b.g.Nodes = append(b.g.Nodes, n)
	return n.Outputs
}

func (b *builder) op(op string, attrs graph.Attrs, in ...int) int {
	return b.node(graph.ONNX, op, attrs, 1, in...)[0]
}

func (b *builder) linear(x, in, out int) int {
	return b.op("MatMul", nil, x, b.random(0, math.Sqrt(3/float64(in)), in, out))
}

func (b *builder) norm(x int) int {
	return b.op("RMSNormalization", graph.Attrs{"axis": int64(-1), "epsilon": float32(1e-5)}, x, b.random(1, 0.1, b.Width))
}

func (b *builder) build() {
	ids := b.input("input_ids", tensor.Int64, "batch_size", "sequence_length")
	b.scope = "embed"
	x := b.op("Gather", nil, b.random(0, 1, b.Vocabulary, b.Width), ids)
	if b.Shared {
		b.lengths = b.input("seqlens_k", tensor.Int32, "batch_size")
		b.total = b.input("total_sequence_length", tensor.Int32, 1)
		b.angles()
	} else {
		b.mask = b.input("attention_mask", tensor.Int64, "batch_size", "past_sequence_length + sequence_length")
		b.positions = b.input("position_ids", tensor.Int64, "batch_size", "sequence_length")
		x = b.op("Add", nil, x, b.op("Gather", nil, b.random(0, 1, b.Context, b.Width), b.positions))
		b.visible()
	}
	var caches [][2]int
	for l := range b.Layers {
		b.scope = fmt.Sprintf("layers.%d/attention", l)
		a, kv := b.attention(l, b.norm(x))
		x = b.op("Add", nil, x, a)
		b.scope = fmt.Sprintf("layers.%d/mlp", l)
		x = b.op("Add", nil, x, b.linear(b.op("Relu", nil, b.linear(b.norm(x), b.Width, b.MLP)), b.MLP, b.Width))
		caches = append(caches, kv)
	}
	b.scope = "head"
	b.output(b.linear(b.norm(x), b.Width, b.Vocabulary), "logits", tensor.Float32, "batch_size", "sequence_length", b.Vocabulary)
	for l, kv := range caches {
		for i, kind := range []string{"key", "value"} {
			b.output(kv[i], fmt.Sprintf("present.%d.%s", l, kind), tensor.Float32, "batch_size", b.KVHeads, b.length("past_sequence_length + sequence_length"), b.HeadSize)
		}
	}
}

// length is the size of caches, or its name.
func (b *builder) length(name string) any {
	if b.Shared && !b.Open {
		return b.Context
	}
	return name
}

// angles adds the rotary positions of a half of a head.
func (b *builder) angles() {
	n := b.HeadSize / 2
	table := func(f func(float64) float64) int {
		t := tensor.New(tensor.Float32, b.Context, n)
		tensor.Fill(t, func(i int) float64 { return f(float64(i/n) * math.Pow(10_000, -float64(i%n)/float64(n))) })
		return b.constant(t)
	}
	b.cosines, b.sinuses = table(math.Cos), table(math.Sin)
}

// visible adds what is added to scores: [batch, 1, tokens, positions], nothing for positions up to
// that of the token.
func (b *builder) visible() {
	b.scope = "mask"
	size := b.op("Gather", graph.Attrs{"axis": int64(0)}, b.op("Shape", nil, b.mask), b.scalar(tensor.Int64, 1))
	keys := b.op("Range", nil, b.scalar(tensor.Int64, 0), size, b.scalar(tensor.Int64, 1))
	before := b.op("LessOrEqual", nil, keys, b.op("Unsqueeze", nil, b.positions, b.ints(1, 3)))
	counts := b.op("Cast", graph.Attrs{"to": int64(9)}, b.op("Unsqueeze", nil, b.mask, b.ints(1, 2)))
	b.bias = b.op("Where", nil, b.op("And", nil, before, counts), b.scalar(tensor.Float32, 0), b.scalar(tensor.Float32, -1e9))
}

func (b *builder) attention(l, x int) (y int, kv [2]int) {
	wide, narrow := b.Heads*b.HeadSize, b.KVHeads*b.HeadSize
	q, k, v := b.linear(x, b.Width, wide), b.linear(x, b.Width, narrow), b.linear(x, b.Width, narrow)
	var past [2]int
	for i, kind := range []string{"key", "value"} {
		past[i] = b.input(fmt.Sprintf("past_key_values.%d.%s", l, kind), tensor.Float32, "batch_size", b.KVHeads, b.length("past_sequence_length"), b.HeadSize)
	}
	if b.Shared {
		attrs := graph.Attrs{"num_heads": int64(b.Heads), "kv_num_heads": int64(b.KVHeads), "do_rotary": int64(1)}
		out := b.node(graph.Microsoft, "GroupQueryAttention", attrs, 3, q, k, v, past[0], past[1], b.lengths, b.total, b.cosines, b.sinuses)
		return b.linear(out[0], wide, b.Width), [2]int{out[1], out[2]}
	}
	for i, fresh := range []int{k, v} {
		kv[i] = b.op("Concat", graph.Attrs{"axis": int64(2)}, past[i], b.split(fresh))
	}
	return b.attend(q, kv, b.bias), kv
}

// split puts the heads before the positions.
func (b *builder) split(x int) int {
	x = b.op("Reshape", nil, x, b.ints(0, 0, int64(b.Heads), int64(b.HeadSize)))
	return b.op("Transpose", graph.Attrs{"perm": []int64{0, 2, 1, 3}}, x)
}

// attend is attention of queries over keys and values of all heads. A bias of 0 adds nothing to the
// scores.
func (b *builder) attend(q int, kv [2]int, bias int) int {
	scores := b.op("MatMul", nil, b.split(q), b.op("Transpose", graph.Attrs{"perm": []int64{0, 1, 3, 2}}, kv[0]))
	scores = b.op("Mul", nil, scores, b.scalar(tensor.Float32, 1/math.Sqrt(float64(b.HeadSize))))
	if bias > 0 {
		scores = b.op("Add", nil, scores, bias)
	}
	weights := b.op("Softmax", graph.Attrs{"axis": int64(-1)}, scores)
	y := b.op("Transpose", graph.Attrs{"perm": []int64{0, 2, 1, 3}}, b.op("MatMul", nil, weights, kv[1]))
	wide := b.Heads * b.HeadSize
	return b.linear(b.op("Reshape", nil, y, b.ints(0, 0, int64(wide))), wide, b.Width)
}
