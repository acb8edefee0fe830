package submodel

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/protoread"
)

// Field numbers of the public ONNX schema (onnx.proto, IR version 13), by message.
const (
	modelGraph    = 7
	modelTraining = 20

	graphNode        = 1
	graphInitializer = 5
	graphInput       = 11
	graphOutput      = 12
	graphValueInfo   = 13
	graphSparse      = 15

	nodeInput     = 1
	nodeOutput    = 2
	nodeAttribute = 5

	attributeTensor  = 5
	attributeGraph   = 6
	attributeTensors = 10
	attributeGraphs  = 11

	infoName = 1

	tensorName     = 8
	tensorRaw      = 9
	tensorExternal = 13
	tensorLocation = 14

	sparseValues = 1
)

// field is a field of a message.
type field struct {
	num  protowire.Number
	typ  protowire.Type
	raw  []byte // including the tag
	body []byte // of a length-delimited field
}

// fields iterates over a message.
func fields(b []byte, visit func(field) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeField(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		f := field{num: num, typ: typ, raw: b[:n:n]}
		if typ == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(b)
			body, k := protowire.ConsumeBytes(b[tag:n])
			if k < 0 {
				return protowire.ParseError(k)
			}
			f.body = body
		}
		if err := visit(f); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// text returns a length-delimited field of a message as a name, the last one if there are
// several.
func text(b []byte, num protowire.Number) (s string, err error) {
	err = fields(b, func(f field) error {
		if f.num == num {
			s = string(f.body)
		}
		return nil
	})
	return s, err
}

// onnxFile is a file's main graph.
type onnxFile struct {
	m           *graph.Model
	model       []field
	graph       []field
	names       map[string]int // number of a value
	list        []string
	nodes       []field
	consts      map[string][]byte // elements of initialisers in external files, by name
	constsKnown bool
}

func newONNX(data []byte, name, dir string) (*Source, error) {
	m, err := onnx.Parse(data, name, dir)
	if err != nil {
		return nil, err
	}
	f := &onnxFile{m: m, names: map[string]int{}}
	s := &Source{m: m, outputs: map[int]bool{}, inputs: map[int]bool{}, emit: f.emit}
	s.name = func(v int) string { return f.list[v] }
	s.number = func(id int) (int, bool) {
		v, ok := f.names[m.Main().Values[id].Name]
		return v, ok
	}
	weights := map[int]bool{}
	err = fields(data, func(x field) error {
		f.model = append(f.model, x)
		if x.num != modelGraph {
			return nil
		}
		return fields(x.body, func(x field) error {
			f.graph = append(f.graph, x)
			return nil
		})
	})
	for _, x := range f.graph {
		if err != nil {
			break
		}
		switch x.num {
		case graphNode:
			var n node
			n, err = f.node(x.body)
			s.nodes = append(s.nodes, n)
			f.nodes = append(f.nodes, x)
		case graphOutput:
			var out string
			out, err = text(x.body, infoName)
			s.outputs[f.value(out)] = true
		case graphInput:
			var in string
			in, err = text(x.body, infoName)
			s.inputs[f.value(in)] = true
		case graphInitializer:
			var name string
			name, err = text(x.body, tensorName)
			weights[f.value(name)] = true
		}
	}
	if err != nil {
		return nil, closeAfter(m, err)
	}
	for v := range weights { // an input with an initialiser is a weight, as in old files
		delete(s.inputs, v)
	}
	s.file = f.matchNodes(s.nodes)
	return s, nil
}

func closeAfter(m *graph.Model, err error) error {
	if m.Close != nil {
		_ = m.Close()
	}
	return err
}

// value returns the number of a name.
func (f *onnxFile) value(name string) int {
	id, ok := f.names[name]
	if !ok {
		id = len(f.list)
		f.names[name] = id
		f.list = append(f.list, name)
	}
	return id
}

// node reads the inputs and outputs of a node, subgraphs included. Names in subgraphs without an
// outer producer are harmless.
func (f *onnxFile) node(b []byte) (n node, err error) {
	reads := map[int]bool{}
	err = f.nodeNames(b, 0, func(name string, writes bool) {
		id := f.value(name)
		switch {
		case writes:
			n.writes = append(n.writes, id)
		case !reads[id]:
			reads[id] = true
			n.reads = append(n.reads, id)
		}
	})
	return n, err
}

// nodeNames visits the names in a node; outputs only of the outermost node.
func (f *onnxFile) nodeNames(b []byte, depth int, visit func(name string, writes bool)) error {
	if depth > protoread.MaxDepth {
		return fmt.Errorf("bodies nest deeper than %d", protoread.MaxDepth)
	}
	return fields(b, func(x field) error {
		switch {
		case x.num == nodeInput && len(x.body) > 0:
			visit(string(x.body), false)
		case x.num == nodeOutput && len(x.body) > 0 && depth == 0:
			visit(string(x.body), true)
		case x.num == nodeAttribute:
			return fields(x.body, func(x field) error {
				if x.num == attributeGraph || x.num == attributeGraphs {
					return f.bodyNames(x.body, depth+1, visit)
				}
				return nil
			})
		}
		return nil
	})
}

func (f *onnxFile) bodyNames(b []byte, depth int, visit func(name string, writes bool)) error {
	return fields(b, func(x field) error {
		switch x.num {
		case graphNode:
			return f.nodeNames(x.body, depth, visit)
		case graphOutput: // may be a value from outside
			name, err := text(x.body, infoName)
			if name != "" {
				visit(name, false)
			}
			return err
		}
		return nil
	})
}

// matchNodes finds the file's node for each of the model's, in which constants are not nodes and
// function calls are inlined.
func (f *onnxFile) matchNodes(nodes []node) []int {
	made := map[string]int{}
	for i, n := range nodes {
		for _, v := range n.writes {
			made[f.list[v]] = i
		}
	}
	g := f.m.Main()
	out := make([]int, len(g.Nodes))
	reader := map[int][]int{} // nodes of the model by their inputs
	for i, n := range g.Nodes {
		out[i] = -1
		for _, id := range n.Inputs {
			reader[id] = append(reader[id], i)
		}
		for _, id := range n.Outputs {
			if id < 0 {
				continue
			}
			if at, ok := made[g.Values[id].Name]; ok {
				out[i] = at
				break
			}
		}
	}
	// Internal values of a function belong to the call in which they are read.
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := g.Nodes[i]
		if out[i] >= 0 || len(n.Function) == 0 {
			continue
		}
		for _, id := range n.Outputs {
			for _, k := range reader[id] {
				if r := g.Nodes[k]; out[i] < 0 && out[k] >= 0 && len(r.Function) > 0 && r.Function[0] == n.Function[0] {
					out[i] = out[k]
				}
			}
		}
	}
	return out
}

// message is a message under construction.
type message []byte

func (m *message) bytes(num protowire.Number, b []byte) {
	*m = protowire.AppendTag(*m, num, protowire.BytesType)
	*m = protowire.AppendBytes(*m, b)
}

// emit writes the file with some nodes, in file order; the outputs take the position of the first
// output.
func (f *onnxFile) emit(keep []bool, outputs []int, in *windowInputs) ([]byte, error) {
	used := map[string]bool{} // names in the remaining nodes
	for i, k := range keep {
		if !k {
			continue
		}
		if err := f.nodeNames(f.nodes[i].body, 0, func(name string, _ bool) { used[name] = true }); err != nil {
			return nil, err
		}
	}
	out := map[string]bool{}
	for _, id := range outputs {
		out[f.list[id]] = true
	}
	g, err := f.emitGraph(keep, outputs, used, out, in)
	if err != nil {
		return nil, err
	}
	var b message
	done := false
	for _, x := range f.model {
		switch {
		case x.num == modelGraph && !done:
			b.bytes(modelGraph, g)
			done = true
		case x.num == modelGraph || x.num == modelTraining: // names removed nodes
		default:
			b = append(b, x.raw...)
		}
		if len(b) > math.MaxInt32 {
			return nil, errorf(TooLarge, "the cut has more than the 2 GiB of an ONNX file")
		}
	}
	return b, nil
}

func (f *onnxFile) emitGraph(keep []bool, outputs []int, used, out map[string]bool, in *windowInputs) (message, error) {
	infos, gone, err := f.valueInfos(used)
	if err != nil {
		return nil, err
	}
	var b message
	at, wrote := 0, false
	more := map[string]bool{}
	if in != nil {
		for _, v := range in.values {
			more[v.Name] = true
			b.bytes(graphInput, onnx.EncodeValue(v))
		}
	}
	for _, x := range f.graph {
		name := ""
		switch x.num {
		case graphInitializer:
			name, err = text(x.body, tensorName)
		case graphSparse:
			err = fields(x.body, func(x field) (err error) {
				if x.num == sparseValues {
					name, err = text(x.body, tensorName)
				}
				return err
			})
		case graphInput, graphValueInfo:
			name, err = text(x.body, infoName)
		}
		if err != nil {
			return nil, err
		}
		switch x.num {
		case graphNode:
			if at++; !keep[at-1] {
				continue
			}
			if err := rejectExternal(x.body, 0); err != nil {
				return nil, err
			}
		case graphInitializer:
			if !used[name] {
				continue
			}
			if body, err := f.inlineExternal(x.body, name); err != nil {
				return nil, err
			} else if body != nil {
				b.bytes(graphInitializer, body)
				continue
			}
		case graphSparse:
			if !used[name] {
				continue
			}
		case graphInput:
			if gone[name] { // without its default it would be an input that is never supplied
				continue
			}
			if in != nil && !used[name] {
				continue
			}
		case graphValueInfo:
			if !used[name] || out[name] || more[name] {
				continue
			}
		case graphOutput:
			if !wrote {
				for _, id := range outputs {
					b.bytes(graphOutput, infos[f.list[id]])
				}
			}
			wrote = true
			continue
		}
		if len(b) > math.MaxInt32 {
			return nil, errorf(TooLarge, "the cut has more than the 2 GiB of an ONNX file")
		}
		b = append(b, x.raw...)
	}
	if !wrote {
		for _, id := range outputs {
			b.bytes(graphOutput, infos[f.list[id]])
		}
	}
	return b, nil
}

// valueInfos returns for every value its declaration, as in the file or with the name alone:
// engines infer types themselves. gone are initialisers without readers.
func (f *onnxFile) valueInfos(used map[string]bool) (infos map[string][]byte, gone map[string]bool, err error) {
	infos, gone = map[string][]byte{}, map[string]bool{}
	for _, x := range f.graph {
		if err != nil {
			return nil, nil, err
		}
		var name string
		switch x.num {
		case graphOutput, graphValueInfo:
			if name, err = text(x.body, infoName); infos[name] == nil {
				infos[name] = x.body
			}
		case graphInitializer:
			if name, err = text(x.body, tensorName); !used[name] {
				gone[name] = true
			}
		}
	}
	for _, name := range f.list {
		if infos[name] == nil {
			var b message
			b.bytes(infoName, []byte(name))
			infos[name] = b
		}
	}
	return infos, gone, err
}

// inlineExternal returns an initialiser with its external elements embedded, nil if they are
// internal.
func (f *onnxFile) inlineExternal(b []byte, name string) ([]byte, error) {
	external, err := isExternal(b)
	if err != nil || !external {
		return nil, err
	}
	if !f.constsKnown {
		f.constsKnown = true
		f.consts = map[string][]byte{}
		for _, v := range f.m.Main().Values {
			if v.Const != nil && v.Const.Data != nil {
				f.consts[v.Name] = v.Const.Data
			}
		}
	}
	data, ok := f.consts[name]
	if !ok {
		return nil, errorf(NoConstant, "the elements of %q are absent", name)
	}
	if len(data) > math.MaxInt32 {
		return nil, errorf(TooLarge, "%q has more than the 2 GiB of an ONNX file", name)
	}
	out := make(message, 0, len(data)+len(name)+64)
	err = fields(b, func(x field) error {
		if x.num != tensorExternal && x.num != tensorLocation && x.num != tensorRaw {
			out = append(out, x.raw...)
		}
		return nil
	})
	out.bytes(tensorRaw, data)
	return out, err
}

// isExternal reports whether the elements of a tensor are in another file.
func isExternal(b []byte) (yes bool, err error) {
	err = fields(b, func(x field) error {
		if x.num == tensorLocation && x.typ == protowire.VarintType {
			_, _, tag := protowire.ConsumeTag(x.raw)
			v, _ := protowire.ConsumeVarint(x.raw[tag:])
			yes = v == 1
		}
		return nil
	})
	return yes, err
}

// rejectExternal rejects nodes whose attributes or subgraphs have external elements.
func rejectExternal(b []byte, depth int) error {
	if depth > protoread.MaxDepth {
		return fmt.Errorf("bodies nest deeper than %d", protoread.MaxDepth)
	}
	outside := func(b []byte) error {
		yes, err := isExternal(b)
		if yes {
			err = errorf(NoConstant, "an attribute or a body has elements in another file")
		}
		return err
	}
	return fields(b, func(x field) error {
		if x.num != nodeAttribute {
			return nil
		}
		return fields(x.body, func(x field) error {
			switch x.num {
			case attributeTensor, attributeTensors:
				return outside(x.body)
			case attributeGraph, attributeGraphs:
				return fields(x.body, func(x field) error {
					switch x.num {
					case graphNode:
						return rejectExternal(x.body, depth+1)
					case graphInitializer:
						return outside(x.body)
					}
					return nil
				})
			}
			return nil
		})
	})
}
