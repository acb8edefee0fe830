package onnx

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Encode writes the model as an ONNX file with all constants inside. It is meant for models built
// by tests and tools: one message is built in memory, so the file must stay below 2 GiB.
// Quantisation attached to values, which ONNX lacks, is an error.
func Encode(m *graph.Model) ([]byte, error) { return encode(m, nil) }

func encode(m *graph.Model, beside *ExternalFile) ([]byte, error) {
	if len(m.Graphs) == 0 {
		return nil, fmt.Errorf("model has no graph")
	}
	e := &encoder{m: m, beside: beside, names: map[*graph.Graph][]string{}, open: map[*graph.Graph]bool{}}
	g, err := e.graph(m.Main())
	if err != nil {
		return nil, err
	}
	var b message
	b.int(modelIRVersion, int64(max(m.IRVersion, 4)))
	b.optional(modelProducer, m.Producer)
	b.optional(modelDoc, m.Description)
	b.bytes(modelGraph, g)
	for _, d := range slices.Sorted(maps.Keys(m.Opsets)) {
		var o message
		o.optional(opsetDomain, d)
		o.int(opsetVersion, int64(m.Opsets[d]))
		b.bytes(modelOpsetImport, o)
	}
	for _, md := range m.Metadata {
		var o message
		o.bytes(entryKey, []byte(md.Name))
		o.bytes(entryValue, md.Data)
		b.bytes(modelMetadata, o)
	}
	if len(b) > math.MaxInt32 {
		return nil, fmt.Errorf("model of %d bytes is too large for one file", len(b))
	}
	return b, nil
}

// message is a protocol-buffer message under construction.
type message []byte

func (b *message) bytes(field protowire.Number, v []byte) {
	*b = protowire.AppendTag(*b, field, protowire.BytesType)
	*b = protowire.AppendBytes(*b, v)
}

func (b *message) str(field protowire.Number, s string) {
	*b = protowire.AppendTag(*b, field, protowire.BytesType)
	*b = protowire.AppendString(*b, s)
}

func (b *message) optional(field protowire.Number, s string) {
	if s != "" {
		b.str(field, s)
	}
}

func (b *message) int(field protowire.Number, v int64) {
	*b = protowire.AppendTag(*b, field, protowire.VarintType)
	*b = protowire.AppendVarint(*b, uint64(v))
}

func (b *message) float(field protowire.Number, v float32) {
	*b = protowire.AppendTag(*b, field, protowire.Fixed32Type)
	*b = protowire.AppendFixed32(*b, math.Float32bits(v))
}

type encoder struct {
	m      *graph.Model
	beside *ExternalFile             // receives large constants; nil keeps all inside
	names  map[*graph.Graph][]string // name of each value
	open   map[*graph.Graph]bool     // graphs that are being written
}

// nameValues gives every value of a graph a unique name. In subgraphs a name equals an outer name
// exactly for values of the enclosing graphs: captured ones, and constants, which the reader
// copies into the subgraphs that use them. The latter are returned as outer. It is an error if a
// subgraph is in another graph than the one whose values it captures, or contains itself.
func (e *encoder) nameValues(g *graph.Graph) (names []string, outer map[int]bool, err error) {
	names = make([]string, len(g.Values))
	outer = map[int]bool{}
	taken := map[string]*tensor.Tensor{}
	// The graphs around a subgraph are in e.open, even if its parents form a cycle.
	for p := g.Parent; e.open[p]; p = p.Parent {
		if p == g {
			return nil, nil, fmt.Errorf("graph %q lies within itself", g.Name)
		}
		for i, s := range e.names[p] {
			if _, ok := taken[s]; !ok {
				taken[s] = p.Values[i].Const
			}
		}
	}
	for _, c := range g.Captures {
		if g.Parent == nil || c.Inner < 0 || c.Inner >= len(names) || c.Outer < 0 || c.Outer >= len(e.names[g.Parent]) {
			return nil, nil, fmt.Errorf("graph %q captures value %d, which the graph around it lacks", g.Name, c.Outer)
		}
		names[c.Inner] = e.names[g.Parent][c.Outer]
		outer[c.Inner] = true
	}
	for i, v := range g.Values {
		if outer[i] {
			continue
		}
		name := v.Name
		if c, ok := taken[name]; ok && c != nil && c == v.Const {
			names[i], outer[i] = name, true
			continue
		}
		for k := i; ; k++ {
			if _, ok := taken[name]; !ok && name != "" {
				break
			}
			name = fmt.Sprintf("%s_%d", v.Name, k)
		}
		taken[name] = nil
		names[i] = name
	}
	e.names[g] = names
	return names, outer, nil
}

func (e *encoder) graph(g *graph.Graph) (message, error) {
	if e.open[g] {
		return nil, fmt.Errorf("graph %q lies within itself", g.Name)
	}
	e.open[g] = true
	defer delete(e.open, g)
	names, outer, err := e.nameValues(g)
	if err != nil {
		return nil, err
	}
	var b message
	for _, n := range g.Nodes {
		node, err := e.node(n, names)
		if err != nil {
			return nil, fmt.Errorf("node %d (%s %q): %w", n.Index, n.Key(), n.Name, err)
		}
		b.bytes(graphNode, node)
	}
	b.optional(graphName, g.Name)
	special := map[int]bool{}
	for _, id := range slices.Concat(g.Inputs, g.Outputs) {
		special[id] = true
	}
	for i, v := range g.Values {
		if outer[i] {
			continue
		}
		if v.Quant != nil {
			return nil, fmt.Errorf("value %q: ONNX has no quantised values", v.Name)
		}
		if v.Const != nil {
			t, err := encodeTensor(names[i], v.Const, e.beside)
			if err != nil {
				return nil, fmt.Errorf("value %q: %w", v.Name, err)
			}
			b.bytes(graphInitializer, t)
		} else if !special[i] && v.Type != tensor.Invalid {
			b.bytes(graphValueInfo, valueMessage(names[i], v))
		}
	}
	for _, id := range g.Inputs {
		b.bytes(graphInput, valueMessage(names[id], g.Values[id]))
	}
	for _, id := range g.Outputs {
		if id < 0 {
			b.bytes(graphOutput, nil)
			continue
		}
		b.bytes(graphOutput, valueMessage(names[id], g.Values[id]))
	}
	return b, nil
}

// EncodeValue encodes the declaration of a graph input or output (ValueInfoProto): name, and type
// and shape as far as known.
func EncodeValue(v *graph.Value) []byte { return valueMessage(v.Name, v) }

func valueMessage(name string, v *graph.Value) message {
	var b message
	b.str(infoName, name)
	if v.Type == tensor.Invalid {
		return b
	}
	b.bytes(infoType, typeMessage(v))
	return b
}

func typeMessage(v *graph.Value) message {
	var t message
	element := func() message {
		return typeMessage(&graph.Value{Type: v.Elem})
	}
	switch v.Type {
	case tensor.Sequence, tensor.Optional:
		var c message
		if v.Elem != tensor.Invalid {
			c.bytes(containerElem, element())
		}
		t.bytes(map[tensor.Type]protowire.Number{tensor.Sequence: typeSequence, tensor.Optional: typeOptional}[v.Type], c)
		return t
	case tensor.Map:
		var c message
		c.int(mapTypeKey, dataType(tensor.Int64))
		if v.Elem != tensor.Invalid {
			c.bytes(mapTypeValue, element())
		}
		t.bytes(typeMap, c)
		return t
	}
	var c message
	c.int(tensorTypeElem, dataType(v.Type))
	if v.HasShape {
		var s message
		for i, n := range v.Shape {
			var d message
			if n >= 0 {
				d.int(dimValue, int64(n))
			} else if i < len(v.DimNames) {
				d.optional(dimParam, v.DimNames[i])
			}
			s.bytes(shapeDim, d)
		}
		c.bytes(tensorTypeShape, s)
	}
	t.bytes(typeTensor, c)
	return t
}

func (e *encoder) node(n *graph.Node, names []string) (message, error) {
	var b message
	for _, id := range n.Inputs {
		if id < 0 {
			b.str(nodeInput, "")
			continue
		}
		b.str(nodeInput, names[id])
	}
	for _, id := range n.Outputs {
		if id < 0 {
			b.str(nodeOutput, "")
			continue
		}
		b.str(nodeOutput, names[id])
	}
	b.optional(nodeName, n.Name)
	b.str(nodeOpType, n.Op)
	b.optional(nodeDomain, n.Domain)
	for _, name := range attrOrder(n.Attrs) {
		a, err := e.attribute(name, n.Attrs[name])
		if err != nil {
			return nil, fmt.Errorf("attribute %q: %w", name, err)
		}
		b.bytes(nodeAttribute, a)
	}
	return b, nil
}

// attrOrder sorts attributes by name. Those with graphs come last, by graph index, so that
// reading the file yields the same graph indices.
func attrOrder(a graph.Attrs) []string {
	index := func(name string) int {
		switch v := a[name].(type) {
		case graph.GraphRef:
			return int(v)
		case []graph.GraphRef:
			if len(v) > 0 {
				return int(v[0])
			}
		}
		return 0
	}
	return slices.SortedFunc(maps.Keys(a), func(x, y string) int {
		return cmp.Or(cmp.Compare(index(x), index(y)), cmp.Compare(x, y))
	})
}

func (e *encoder) attribute(name string, v any) (message, error) {
	var b message
	b.str(attrName, name)
	kind := kindUndefined
	body := func(field protowire.Number, r graph.GraphRef) error {
		if int(r) <= 0 || int(r) >= len(e.m.Graphs) {
			return fmt.Errorf("graph %d of %d", r, len(e.m.Graphs))
		}
		g, err := e.graph(e.m.Graphs[r])
		if err == nil {
			b.bytes(field, g)
		}
		return err
	}
	var err error
	switch v := v.(type) {
	case float32:
		kind = kindFloat
		b.float(attrF, v)
	case int64:
		kind = kindInt
		b.int(attrI, v)
	case bool:
		kind = kindInt
		b.int(attrI, map[bool]int64{true: 1}[v])
	case string:
		kind = kindString
		b.str(attrS, v)
	case []byte:
		kind = kindString
		b.bytes(attrS, v)
	case []float32:
		kind = kindFloats
		for _, f := range v {
			b.float(attrFloats, f)
		}
	case []int64:
		kind = kindInts
		for _, i := range v {
			b.int(attrInts, i)
		}
	case []string:
		kind = kindStrings
		for _, s := range v {
			b.str(attrStrings, s)
		}
	case *tensor.Tensor:
		kind = kindTensor
		var t message
		if t, err = encodeTensor("", v, nil); err == nil {
			b.bytes(attrT, t)
		}
	case []*tensor.Tensor:
		kind = kindTensors
		for _, x := range v {
			t, err := encodeTensor("", x, nil)
			if err != nil {
				return nil, err
			}
			b.bytes(attrTensors, t)
		}
	case graph.GraphRef:
		kind = kindGraph
		err = body(attrG, v)
	case []graph.GraphRef:
		kind = kindGraphs
		for _, r := range v {
			if err := body(attrGraphs, r); err != nil {
				return nil, err
			}
		}
	default:
		err = fmt.Errorf("value of type %T", v)
	}
	b.int(attrType, int64(kind))
	return b, err
}

func encodeTensor(name string, t *tensor.Tensor, beside *ExternalFile) (message, error) {
	n, err := tensor.CheckShape(t.Type, t.Shape)
	if err != nil {
		return nil, err
	}
	code := dataType(t.Type)
	if code == 0 || !t.Known() {
		return nil, fmt.Errorf("cannot write a tensor of %v", t.Type)
	}
	var b message
	for _, d := range t.Shape {
		b.int(tensorDims, int64(d))
	}
	b.int(tensorDataType, code)
	b.optional(tensorName, name)
	if t.Type == tensor.String {
		if len(t.Strings) != n {
			return nil, fmt.Errorf("%d strings for shape %s", len(t.Strings), tensor.FormatShape(t.Shape))
		}
		for _, s := range t.Strings {
			b.str(tensorStringData, s)
		}
		return b, nil
	}
	if len(t.Data) < t.Type.Bytes(n) {
		return nil, fmt.Errorf("%d bytes for %s of %v", len(t.Data), tensor.FormatShape(t.Shape), t.Type)
	}
	data := t.Data[:t.Type.Bytes(n)]
	if beside != nil && len(data) >= pageSize {
		beside.add(&b, data)
		return b, nil
	}
	b.bytes(tensorRawData, data)
	return b, nil
}
