package tflite

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/model/flatbuffer"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Parse reads a model from memory. The model's constants are views into data,
// which must stay unchanged. name is used in errors and as Model.Path.
func Parse(data []byte, name string) (*graph.Model, error) {
	p := &parser{
		data: data, r: flatbuffer.NewReader(data),
		m: &graph.Model{Format: "tflite", Path: name, FileBytes: int64(len(data))},
	}
	p.model()
	if err := p.r.Err(); err != nil {
		return nil, fileError(name, err)
	}
	if err := p.m.Validate(); err != nil {
		return nil, fileError(name, err)
	}
	return p.m, nil
}

// parser has the state of reading one model. The flatbuffer reader keeps errors.
type parser struct {
	data    []byte
	r       *flatbuffer.Reader
	m       *graph.Model
	codes   []opcode
	buffers []buffer
	graphs  int // number of subgraphs
	// expanded counts the bytes of expanded sparse constants.
	expanded int
	// warned suppresses repeated warnings.
	warned map[string]int
}

type opcode struct {
	domain, name string
	version      int
}

type buffer struct {
	data   []byte
	offset int64
}

// maxWarnings bounds the warnings of one kind.
const maxWarnings = 3

func (p *parser) warn(kind, format string, args ...any) {
	if p.warned == nil {
		p.warned = map[string]int{}
	}
	switch p.warned[kind]++; {
	case p.warned[kind] <= maxWarnings:
		p.m.Warnings = append(p.m.Warnings, fmt.Sprintf(format, args...))
	case p.warned[kind] == maxWarnings+1:
		p.m.Warnings = append(p.m.Warnings, "Further tensors or operators with: "+kind+".")
	}
}

func (p *parser) model() {
	t := p.r.Root("Model", identifier)
	m := p.m
	m.IRVersion = int(t.Uint32(0, "version", 0))
	if t.Valid() && m.IRVersion != schemaVersion {
		t.Fail("version", "schema version %d, only %d can be read", m.IRVersion, schemaVersion)
		return
	}
	m.Description = t.String(3, "description")
	p.readBuffers(t.Tables(4, "buffers"))
	p.opcodes(t.Tables(1, "operator_codes"))
	graphs := t.Tables(2, "subgraphs")
	p.graphs = graphs.Len()
	if t.Valid() && p.graphs == 0 {
		t.Fail("subgraphs", "the model has no subgraph")
		return
	}
	for i := range graphs.Len() {
		m.Graphs = append(m.Graphs, p.subgraph(graphs.At(i), i))
	}
	if p.r.Err() != nil {
		return
	}
	m.Name = m.Main().Name
	p.metadata(t.Tables(6, "metadata"))
	p.signatures(t.Tables(7, "signature_defs"))
}

func (p *parser) readBuffers(v flatbuffer.Tables) {
	p.buffers = make([]buffer, 0, v.Len())
	for i := range v.Len() {
		t := v.At(i)
		var b buffer
		b.data, b.offset = t.Bytes(0, "data")
		// Large files keep the bytes behind the FlatBuffer; 0 and 1 mean "unset".
		if off := t.Uint64(1, "offset", 0); off > 1 {
			size := t.Uint64(2, "size", 0)
			if off > uint64(len(p.data)) || size > uint64(len(p.data))-off {
				t.Fail("offset", "%d bytes at byte %d lie outside the file of %d bytes: truncated or damaged", size, off, len(p.data))
				return
			}
			b.data, b.offset = p.data[off:off+size:off+size], int64(off)
		}
		p.buffers = append(p.buffers, b)
	}
	if len(p.buffers) > 0 && len(p.buffers[0].data) > 0 {
		p.warn("buffer 0", "Buffer 0 holds %d bytes although it stands for \"no data\"; they are ignored.", len(p.buffers[0].data))
		p.buffers[0] = buffer{offset: -1}
	}
}

// buffer returns a buffer that a table refers to.
func (p *parser) buffer(t flatbuffer.Table, field string, i uint32) buffer {
	switch {
	case i == 0 || p.r.Err() != nil:
	case int64(i) >= int64(len(p.buffers)):
		t.Fail(field, "buffer %d of %d", i, len(p.buffers))
	default:
		return p.buffers[i]
	}
	return buffer{offset: -1}
}

func (p *parser) opcodes(v flatbuffer.Tables) {
	for i := range v.Len() {
		t := v.At(i)
		// The byte field is older and ran out of numbers: the larger one counts.
		code := max(int32(t.Int8(0, "deprecated_builtin_code", 0)), t.Int32(3, "builtin_code", 0))
		c := opcode{domain: graph.TFLite, version: max(int(t.Int32(2, "version", 1)), 1)}
		switch {
		case code == opCustom:
			c.domain, c.name = graph.TFLiteCustom, t.String(1, "custom_code")
		case code < 0 || int(code) >= len(builtinNames):
			// A newer schema: the file can still be listed.
			c.name = fmt.Sprintf("BUILTIN_%d", code)
			p.warn("unknown operator code", "Operator code %d is not known.", code)
		default:
			c.name = builtinNames[code]
		}
		p.codes = append(p.codes, c)
	}
}

func (p *parser) subgraph(t flatbuffer.Table, index int) *graph.Graph {
	g := &graph.Graph{Index: index, Name: t.String(4, "name")}
	tensors := t.Tables(0, "tensors")
	g.Values = make([]*graph.Value, 0, tensors.Len())
	raw, values := make([]rawTensor, tensors.Len()), make([]graph.Value, tensors.Len())
	for i := range tensors.Len() {
		raw[i] = p.tensor(tensors.At(i), i, &values[i])
		g.Values = append(g.Values, raw[i].v)
	}
	g.Inputs = p.ids(t, 1, "inputs", len(raw), false)
	g.Outputs = p.ids(t, 2, "outputs", len(raw), false)
	ops := t.Tables(3, "operators")
	g.Nodes = make([]*graph.Node, 0, ops.Len())
	nodes := make([]graph.Node, ops.Len())
	for i := range ops.Len() {
		nodes[i] = p.operator(ops.At(i), i, len(raw))
		g.Nodes = append(g.Nodes, &nodes[i])
	}
	if p.r.Err() != nil {
		return g
	}
	p.constants(g, raw)
	for i := range raw {
		p.blockwise(g, &raw[i])
	}
	p.readable(g, ops)
	if err := order(g); err != nil {
		t.Fail("operators", "%w", err)
	}
	return g
}

// readable checks that all values that operators read exist and have a single producer. Custom
// operators of accelerator compilers read tensors without one: their scratch memory.
func (p *parser) readable(g *graph.Graph, ops flatbuffer.Tables) {
	exists := make([]bool, len(g.Values))
	for i, v := range g.Values {
		exists[i] = v.Const != nil || v.Variable
	}
	for _, id := range g.Inputs {
		exists[id] = true
	}
	for i, n := range g.Nodes {
		for k, id := range n.Outputs {
			if id < 0 || g.Values[id].Variable {
				continue
			}
			if exists[id] {
				ops.At(i).Fail("outputs", "output %d of %s, tensor %d %q, is an input of the graph or already written by another operator", k, n.Key(), id, g.Values[id].Name)
				return
			}
			exists[id] = true
		}
	}
	for i, n := range g.Nodes {
		for k, id := range n.Inputs {
			if id >= 0 && !exists[id] && n.Domain == graph.TFLiteCustom {
				g.Values[id].Scratch = true
			} else if id >= 0 && !exists[id] {
				ops.At(i).Fail("inputs", "input %d of %s, tensor %d %q, has no data: it is not an input, no operator makes it and its buffer is empty", k, n.Key(), id, g.Values[id].Name)
				return
			}
		}
	}
}

// ids reads a vector of tensor indices, where -1 may stand for an absent one.
func (p *parser) ids(t flatbuffer.Table, slot int, name string, n int, optional bool) []int {
	ids := t.Ints(slot, name)
	for i, id := range ids {
		if id >= n || id < -1 || id == -1 && !optional {
			t.Fail(name, "entry %d is tensor %d of %d", i, id, n)
			return nil
		}
	}
	return ids
}

func (p *parser) operator(t flatbuffer.Table, index, tensors int) graph.Node {
	n := graph.Node{Index: index}
	if c := t.Uint32(0, "opcode_index", 0); int64(c) < int64(len(p.codes)) {
		n.Domain, n.Op, n.Version = p.codes[c].domain, p.codes[c].name, p.codes[c].version
	} else {
		t.Fail("opcode_index", "operator code %d of %d", c, len(p.codes))
	}
	n.Inputs = p.ids(t, 1, "inputs", tensors, true)
	n.Outputs = p.ids(t, 2, "outputs", tensors, true)
	n.Attrs = p.attributes(t, &n)
	if v := p.ids(t, 8, "intermediates", tensors, true); len(v) > 0 {
		n.Attrs["intermediates"] = widen(v)
	}
	return n
}

func widen(v []int) []int64 {
	out := make([]int64, len(v))
	for i, x := range v {
		out[i] = int64(x)
	}
	return out
}

func (p *parser) metadata(v flatbuffer.Tables) {
	for i := range v.Len() {
		t := v.At(i)
		b := p.buffer(t, "buffer", t.Uint32(1, "buffer", 0))
		p.m.Metadata = append(p.m.Metadata, graph.Metadata{Name: t.String(0, "name"), Data: b.data})
	}
}

func (p *parser) signatures(v flatbuffer.Tables) {
	for i := range v.Len() {
		t := v.At(i)
		s := graph.Signature{Key: t.String(2, "signature_key"), Graph: int(t.Uint32(4, "subgraph_index", 0))}
		if s.Graph >= len(p.m.Graphs) {
			t.Fail("subgraph_index", "subgraph %d of %d", s.Graph, len(p.m.Graphs))
			return
		}
		values := len(p.m.Graphs[s.Graph].Values)
		s.Inputs = tensorMap(t.Tables(0, "inputs"), values)
		s.Outputs = tensorMap(t.Tables(1, "outputs"), values)
		p.m.Signatures = append(p.m.Signatures, s)
	}
}

func tensorMap(v flatbuffer.Tables, values int) []graph.SignatureTensor {
	var out []graph.SignatureTensor
	for i := range v.Len() {
		t := v.At(i)
		id := t.Uint32(1, "tensor_index", 0)
		if int64(id) >= int64(values) {
			t.Fail("tensor_index", "tensor %d of %d", id, values)
			return nil
		}
		out = append(out, graph.SignatureTensor{Name: t.String(0, "name"), Value: int(id)})
	}
	return out
}

// order sorts the nodes topologically. Files list them in execution order, so usually nothing
// changes.
func order(g *graph.Graph) error {
	maker := make([]int, len(g.Values)) // 1 + node that produces the value
	sorted := true
	for i, n := range g.Nodes {
		for _, id := range n.Outputs {
			if id >= 0 && !g.Values[id].Variable {
				maker[id] = i + 1
			}
		}
	}
	for i, n := range g.Nodes {
		for _, id := range n.Inputs {
			if id >= 0 && maker[id] > i+1 {
				sorted = false
			}
		}
	}
	if sorted {
		return nil
	}
	out, err := topological(g, maker)
	if err != nil {
		return err
	}
	for i, n := range out {
		n.Index = i
	}
	g.Nodes = out
	return nil
}

// topological visits nodes depth first in file order, without recursion: a hostile chain may be
// as long as the file.
func topological(g *graph.Graph, maker []int) ([]*graph.Node, error) {
	type visit struct{ node, next int }
	const (
		open = 1
		done = 2
	)
	state := make([]uint8, len(g.Nodes))
	out := make([]*graph.Node, 0, len(g.Nodes))
	var stack []visit
	for start := range g.Nodes {
		if state[start] != 0 {
			continue
		}
		state[start] = open
		stack = append(stack, visit{node: start})
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			n := g.Nodes[top.node]
			if top.next == len(n.Inputs) {
				state[top.node] = done
				out = append(out, n)
				stack = stack[:len(stack)-1]
				continue
			}
			id := n.Inputs[top.next]
			top.next++
			if id < 0 || maker[id] == 0 {
				continue
			}
			switch from := maker[id] - 1; state[from] {
			case open:
				return nil, fmt.Errorf("operators form a cycle through tensor %d %q", id, g.Values[id].Name)
			case 0:
				state[from] = open
				stack = append(stack, visit{node: from})
			}
		}
	}
	return out, nil
}

// hasBytes reports whether n elements of a type are stored in exactly b bytes.
func hasBytes(t tensor.Type, n, b int) bool { return t.Bits() > 0 && t.Bytes(n) == b }
