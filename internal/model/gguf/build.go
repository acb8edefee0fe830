package gguf

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/opmeter/opmeter/internal/base/mapped"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// opset is the operator set of the graphs.
const opset = 23

// Open maps a file and builds its graph.
func Open(path string) (*graph.Model, error) {
	f, err := mapped.Open(path)
	if err != nil {
		return nil, err
	}
	var m *graph.Model
	if err = mapped.Guard(func() (err error) { m, err = Parse(f.Data, path); return err }); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	m.Close, m.Check = f.Close, f.Check
	return m, nil
}

// Parse builds the graph of a file in memory, which must stay unchanged while the model is used.
func Parse(data []byte, name string) (*graph.Model, error) {
	m, err := parse(data, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

func parse(data []byte, name string) (*graph.Model, error) {
	f, err := ParseFile(data)
	if err != nil {
		return nil, err
	}
	n, err := newNetwork(f)
	if err != nil {
		return nil, err
	}
	b := &builder{
		network: n, f: f, data: data, g: &graph.Graph{Name: f.Text("general.name")}, used: map[string]bool{}, matrices: map[*Tensor]matrix{},
		language: &graph.Language{}, mask: -1,
	}
	if err := b.build(); err != nil {
		return nil, err
	}
	m := &graph.Model{
		Format: "gguf", Path: name, Name: b.g.Name, Description: f.Text("general.description"), FileBytes: int64(len(data)),
		Opsets: map[string]int{graph.ONNX: opset, graph.Microsoft: 1}, IRVersion: f.Version, Graphs: []*graph.Graph{b.g},
		Warnings: b.warnings, Language: b.language,
	}
	if slices.ContainsFunc(b.g.Nodes, func(n *graph.Node) bool { return n.Domain == graph.Own }) {
		m.Opsets[graph.Own] = 1
	}
	if f.Float(b.key("context_length"), 0) > 0 {
		m.Metadata = []graph.Metadata{{Name: "context_length", Data: strconv.AppendInt(nil, int64(b.context), 10)}}
	}
	m.Convert = sync.OnceValue(b.convert)
	return m, m.Validate()
}

// tokens is the name of the table of token embeddings.
const tokens = "token_embd.weight"

// filler is a constant whose elements are converted on first use.
type filler interface{ fill(pool *workers.Pool) }

type builder struct {
	*network
	f        *File
	data     []byte
	g        *graph.Graph
	scope    string
	used     map[string]bool // tensors that the graph reads
	fillers  []filler
	matrices map[*Tensor]matrix
	missing  string // types that cannot be converted
	warnings []string
	language *graph.Language
	err      error

	ids, positions, lens, total  int
	size, mask                   int // number of keys; those that a token sees, -1 before
	cos, sin, localCos, localSin int
}

// convert fills the constants with the weights of the file.
func (b *builder) convert() error {
	if b.missing != "" {
		return fmt.Errorf("weights of type %s can be counted but not run", b.missing)
	}
	pool := workers.New(runtime.GOMAXPROCS(0), nil)
	defer pool.Close()
	return mapped.Guard(func() error {
		for _, p := range b.fillers {
			p.fill(pool)
		}
		mapped.Release(b.data)
		return nil
	})
}

func (b *builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

func (b *builder) add(v *graph.Value) int {
	v.ID, v.Offset = len(b.g.Values), cmp.Or(v.Offset, -1)
	b.g.Values = append(b.g.Values, v)
	return v.ID
}

func (b *builder) input(name string, t tensor.Type, dims ...any) int {
	v := &graph.Value{Name: name, Type: t, HasShape: true}
	for _, d := range dims {
		if s, ok := d.(string); ok {
			v.Shape, v.DimNames = append(v.Shape, -1), append(v.DimNames, s)
		} else {
			v.Shape, v.DimNames = append(v.Shape, d.(int)), append(v.DimNames, "")
		}
	}
	id := b.add(v)
	b.g.Inputs = append(b.g.Inputs, id)
	return id
}

func (b *builder) constant(name string, t *tensor.Tensor) int {
	return b.add(&graph.Value{Name: name, Type: t.Type, Shape: t.Shape, HasShape: true, Const: t})
}

func (b *builder) ints(name string, list ...int64) int {
	t := tensor.New(tensor.Int64, len(list))
	copy(tensor.Of[int64](t), list)
	return b.constant(b.name(name), t)
}

func (b *builder) scalar(name string, x int64) int {
	t := tensor.New(tensor.Int64)
	tensor.Of[int64](t)[0] = x
	return b.constant(b.name(name), t)
}

func (b *builder) float(name string, x float32) int {
	t := tensor.New(tensor.Float32)
	tensor.Of[float32](t)[0] = x
	return b.constant(b.name(name), t)
}

// name returns a name below the current scope, with a number where it is taken.
func (b *builder) name(s string) string {
	if b.scope != "" {
		s = b.scope + "/" + s
	}
	base := s
	for k := 2; b.used["node "+s]; k++ {
		s = fmt.Sprintf("%s_%d", base, k)
	}
	b.used["node "+s] = true
	return s
}

// node adds an operator of a domain and returns its outputs.
func (b *builder) node(domain, op, name string, attrs graph.Attrs, outputs int, inputs ...int) []int {
	n := &graph.Node{Index: len(b.g.Nodes), Name: b.name(name), Domain: domain, Op: op, Version: opset, Attrs: attrs, Inputs: inputs, Scope: b.scope}
	if domain != graph.ONNX {
		n.Version = 1
	}
	for i := range outputs {
		out := n.Name
		if i > 0 {
			out = fmt.Sprintf("%s:%d", n.Name, i)
		}
		n.Outputs = append(n.Outputs, b.add(&graph.Value{Name: out}))
	}
	b.g.Nodes = append(b.g.Nodes, n)
	return n.Outputs
}

func (b *builder) op(op, name string, attrs graph.Attrs, inputs ...int) int {
	return b.node(graph.ONNX, op, name, attrs, 1, inputs...)[0]
}

// tensor returns a tensor of the file with a shape, of which 0 fits any size; nil without it.
func (b *builder) tensor(name string, shape ...int) *Tensor {
	t := b.f.Tensor(name)
	if t == nil {
		return nil
	}
	b.used[name] = true
	if !slices.EqualFunc(t.Shape, shape, func(have, want int) bool { return want == 0 || have == want }) {
		b.fail("tensor %q has shape %s, expected %s", name, tensor.FormatShape(t.Shape), tensor.FormatShape(shape))
	}
	return t
}

// required is tensor for one that must be there.
func (b *builder) required(name string, shape ...int) *Tensor {
	t := b.tensor(name, shape...)
	if t == nil {
		b.fail("tensor %q is missing", name)
	}
	return t
}

func (b *builder) later(f filler) { b.fillers = append(b.fillers, f) }

// stored returns the constant for elements that begin where those of a tensor do in the file.
func (b *builder) stored(t *Tensor, to *tensor.Tensor) int {
	id := b.constant(t.Name, to)
	b.g.Values[id].Offset = t.Offset
	return id
}

// floats returns the constant of a floating-point tensor, transposed or not.
func (b *builder) floats(t *Tensor, transpose bool) int {
	p := newPlain(t, transpose)
	b.later(p)
	return b.stored(t, p.to)
}

// vector returns the constant of a float32 tensor; -1 without the tensor.
func (b *builder) vector(t *Tensor) int {
	if t == nil {
		return -1
	}
	if t.Type != F32 {
		b.fail("tensor %q has type %v, expected F32", t.Name, t.Type)
		return -1
	}
	return b.floats(t, false)
}

// unsupported says once for each type that it cannot run.
func (b *builder) unsupported(t *Tensor) {
	if list := strings.Split(b.missing, ", "); !slices.Contains(list, t.Type.String()) {
		b.missing = strings.TrimPrefix(b.missing+", "+t.Type.String(), ", ")
	}
}

// shortName is the last part of a tensor's name.
func shortName(name string) string { return name[strings.LastIndex(name, ".")+1:] }

// linear multiplies x with a matrix of the file [out, in], which may have a bias.
func (b *builder) linear(name string, x, out, in int) int {
	t := b.required(name+".weight", out, in)
	bias := b.vector(b.tensor(name+".bias", out))
	if b.err != nil {
		return -1
	}
	return b.product(shortName(name), t, bias, x)
}

func (b *builder) product(name string, t *Tensor, bias, x int) int {
	if _, is := plainTypes[t.Type]; is {
		return b.plain(name, t, bias, x)
	}
	w := b.matrix(t)
	in := []int{x, w.data, w.scales}
	if w.zeros >= 0 || bias >= 0 {
		in = append(in, w.zeros)
	}
	if bias >= 0 {
		in = append(in, -1, bias)
	}
	attrs := graph.Attrs{"K": int64(t.Shape[1]), "N": int64(t.Shape[0]), "bits": int64(w.bits), "block_size": int64(w.block), graph.RoundsRows: int64(1)}
	return b.node(graph.Microsoft, "MatMulNBits", name, attrs, 1, in...)[0]
}

// matrix has the constants of block-quantised weights.
type matrix struct{ data, scales, zeros, bits, block int }

// matrix returns the constants of a tensor, each only once.
func (b *builder) matrix(t *Tensor) matrix {
	if w, ok := b.matrices[t]; ok {
		return w
	}
	u := types[t.Type].unpack
	if u == nil { // only counted: as many bits as an element takes, in blocks of 32
		b.unsupported(t)
		u = &unpacking{bits: closest(t), block: 32}
	}
	p := newPacked(t, u)
	if t.Name == tokens { // a table: rows without blocks
		p.data.Shape = []int{p.data.Shape[0], p.data.Shape[1] * p.data.Shape[2]}
	}
	b.later(p)
	w := matrix{data: b.stored(t, p.data), scales: b.constant(t.Name+".scale", p.scales), zeros: -1, bits: u.bits, block: u.block}
	b.g.Values[w.data].Coded = &graph.Coded{Type: t.Type.String(), Weights: int64(t.Len()), Bytes: int64(len(t.Data))}
	if p.zeros != nil {
		w.zeros = b.constant(t.Name+".zero", p.zeros)
	}
	for _, part := range []int{w.scales, w.zeros} {
		if part >= 0 {
			b.g.Values[part].Coded = &graph.Coded{Type: t.Type.String()}
		}
	}
	b.matrices[t] = w
	return w
}

// closest returns the number of bits of MatMulNBits that is next to that of a type.
func closest(t *Tensor) int {
	switch per := float64(len(t.Data)) * 8 / float64(t.Len()); {
	case per < 3:
		return 2
	case per < 6:
		return 4
	}
	return 8
}

// plain multiplies with a floating-point matrix. Those of 16 bits stay 16 bits wide: the engine
// computes in float32 and removes the casts.
func (b *builder) plain(name string, t *Tensor, bias, x int) int {
	codes := map[Type]int64{F16: 10, BF16: 16}
	if to := codes[t.Type]; to != 0 {
		x = b.op("Cast", name+"_in", graph.Attrs{"to": to}, x)
	}
	y := b.op("MatMul", name, nil, x, b.floats(t, true))
	if codes[t.Type] != 0 {
		y = b.op("Cast", name+"_out", graph.Attrs{"to": int64(1)}, y)
	}
	if bias >= 0 {
		y = b.op("Add", name+"_bias", nil, y, bias)
	}
	return y
}

// embed gathers rows of the table of tokens.
func (b *builder) embed() int {
	t := b.required(tokens, 0, b.width)
	if b.err != nil {
		return -1
	}
	b.vocab = t.Shape[0]
	var x int
	if _, is := plainTypes[t.Type]; is {
		if x = b.op("Gather", "gather", graph.Attrs{"axis": int64(0)}, b.floats(t, false), b.ids); t.Type != F32 {
			x = b.op("Cast", "widen", graph.Attrs{"to": int64(1)}, x)
		}
	} else {
		w := b.matrix(t)
		if w.bits < 4 {
			b.unsupported(t)
		}
		in := []int{w.data, b.ids, w.scales}
		if w.zeros >= 0 {
			in = append(in, w.zeros)
		}
		attrs := graph.Attrs{"bits": int64(w.bits), "block_size": int64(w.block), "gather_axis": int64(0), "quantize_axis": int64(1)}
		x = b.node(graph.Microsoft, "GatherBlockQuantized", "gather", attrs, 1, in...)[0]
	}
	if b.embedScale != 0 {
		x = b.op("Mul", "scale", nil, x, b.float("factor", b.embedScale))
	}
	return x
}

func (b *builder) norm(name string, x int, width int) int {
	w := b.vector(b.required(name+".weight", width))
	return b.op("RMSNormalization", shortName(name), graph.Attrs{"axis": int64(-1), "epsilon": b.epsilon}, x, w)
}

// angles adds the cosines and sines of the positions.
func (b *builder) angles(name string, base float64, dim int) (cos, sin int) {
	inv := tensor.New(tensor.Float32, 1, 1, dim/2)
	factors := b.f.Tensor("rope_freqs.weight")
	if short := b.f.Tensor("rope_factors_short.weight"); short != nil {
		factors = short
		b.used["rope_factors_long.weight"] = true
	}
	if factors != nil {
		b.tensor(factors.Name, dim/2)
	}
	for i := range dim / 2 {
		f := b.factor
		if factors != nil && b.err == nil && factors.Type == F32 {
			f *= float64(tensor.Of[float32](&tensor.Tensor{Type: tensor.Float32, Shape: factors.Shape, Data: factors.Data})[i])
		}
		tensor.Of[float32](inv)[i] = float32(math.Pow(base, -2*float64(i)/float64(dim)) / f)
	}
	at := b.op("Unsqueeze", name+"_positions", nil, b.op("Cast", name+"_float", graph.Attrs{"to": int64(1)}, b.positions), b.ints(name+"_axis", 2))
	angle := b.op("Mul", name+"_angle", nil, at, b.constant(b.name(name+"_frequencies"), inv))
	return b.op("Cos", name+"_cos", nil, angle), b.op("Sin", name+"_sin", nil, angle)
}

func (b *builder) build() error {
	b.ids = b.input("input_ids", tensor.Int64, "batch_size", "sequence_length")
	dim := 0
	if !b.recurrent {
		var err error
		if dim, err = b.places(); err != nil {
			return err
		}
	}
	b.scope = "embedding"
	x := b.embed()
	var presents []int
	for l := 0; l < b.layers && b.err == nil; l++ {
		var caches []int
		var err error
		if x, caches, err = b.layer(l, x, dim); err != nil {
			return err
		}
		presents = append(presents, caches...)
	}
	if b.err != nil {
		return b.err
	}
	b.scope = "head"
	b.g.Outputs = append([]int{b.head(x)}, presents...)
	return b.finish()
}

// places adds what follows from the positions of the tokens: the lengths of the caches and the
// rotary angles. It returns the number of elements that are rotated.
func (b *builder) places() (dim int, err error) {
	mask := b.input("attention_mask", tensor.Int64, "batch_size", "total_sequence_length")
	b.positions = b.input("position_ids", tensor.Int64, "batch_size", "sequence_length")
	b.scope = "lengths"
	b.size = b.op("Gather", "size", graph.Attrs{"axis": int64(0)}, b.op("Shape", "shape", nil, mask), b.scalar("second", 1))
	size := 0.0
	if !b.latentKV {
		sum := b.op("ReduceSum", "sum", graph.Attrs{"keepdims": int64(1)}, mask, b.ints("axis", 1))
		b.lens = b.op("Cast", "last", graph.Attrs{"to": int64(6)}, b.op("Sub", "less_one", nil, sum, b.ints("one", 1)))
		b.total = b.op("Cast", "total", graph.Attrs{"to": int64(6)}, b.size)
		h, err := b.heads(0)
		if err != nil {
			return 0, err
		}
		size = float64(h.size)
	}
	if dim, err = b.perLayer(b.f, "rope.dimension_count", 0, size); err != nil {
		return 0, err
	}
	b.scope = "rotary"
	b.cos, b.sin = b.angles("rope", b.base, dim)
	b.localCos, b.localSin = b.cos, b.sin
	if b.local != 0 && b.window > 0 {
		b.localCos, b.localSin = b.angles("local", b.local, dim)
	}
	return dim, b.err
}
