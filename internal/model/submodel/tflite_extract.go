package submodel

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/flatbuffer"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/tflite"
)

// Field slots of TensorFlow Lite's schema, version 3, by table.
const (
	modelSubgraphs  = 2
	modelSignatures = 7

	subgraphInputs    = 1
	subgraphOutputs   = 2
	subgraphOperators = 3

	operatorInputs  = 1
	operatorOutputs = 2
)

// liteFile has the positions in a file that extraction changes.
type liteFile struct {
	data []byte
	// operators is the position of the first entry of the operator vector, tables are those of
	// the operator tables.
	operators int
	tables    []int
	// outputs is the position of the field that refers to the output vector.
	outputs int
	// inputs is the position of the field that refers to the input vector, 0 for none.
	inputs int
	// list has the inputs.
	list []int
	// signatures is the position of the first entry of the signature vector, 0 for none.
	signatures int
}

func newTFLite(data []byte, name string) (*Source, error) {
	m, err := tflite.Parse(data, name)
	if err != nil {
		return nil, err
	}
	g := m.Main()
	s := &Source{m: m, outputs: map[int]bool{}, inputs: map[int]bool{}}
	s.number = func(id int) (int, bool) { return id, true }
	s.name = func(v int) string {
		if v < len(g.Values) {
			return g.Values[v].Name
		}
		return ""
	}
	for _, id := range g.Outputs {
		s.outputs[id] = true
	}
	r := flatbuffer.NewReader(data)
	root := r.Root("Model", "TFL3")
	sub := root.Tables(modelSubgraphs, "subgraphs").At(0)
	f := &liteFile{data: data}
	ops := sub.Tables(subgraphOperators, "operators")
	for i := range ops.Len() {
		t := ops.At(i)
		n := node{reads: presentIDs(t.Ints(operatorInputs, "inputs")), writes: presentIDs(t.Ints(operatorOutputs, "outputs"))}
		n.effect = len(n.writes) == 0
		for _, id := range slices.Concat(n.reads, n.writes) {
			if id < len(g.Values) {
				v := g.Values[id]
				n.effect = n.effect || v.Variable || v.Type == tensor.Resource || v.Type == tensor.Variant
			}
		}
		s.nodes = append(s.nodes, n)
	}
	var n int
	f.operators, n, _ = sub.VectorAt(subgraphOperators, "operators", 4)
	f.inputs, _ = sub.FieldAt(subgraphInputs, "inputs", 4)
	f.list = presentIDs(sub.Ints(subgraphInputs, "inputs"))
	for _, id := range f.list {
		s.inputs[id] = true
	}
	f.outputs, _ = sub.FieldAt(subgraphOutputs, "outputs", 4)
	f.signatures, _, _ = root.VectorAt(modelSignatures, "signature_defs", 4)
	for i := range n {
		at := f.operators + 4*i
		f.tables = append(f.tables, at+int(binary.LittleEndian.Uint32(data[at:])))
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	if n != len(s.nodes) || n != len(g.Nodes) || f.outputs == 0 {
		return nil, errorf(Malformed, "%s has no operators or no outputs", name)
	}
	s.file = matchOperators(g, s.nodes)
	s.emit = f.emit
	return s, nil
}

func presentIDs(ids []int) []int { return slices.DeleteFunc(ids, func(id int) bool { return id < 0 }) }

// matchOperators finds the file's operator for each node. The reader sorts operators that are not
// in execution order; then they are matched by their outputs.
func matchOperators(g *graph.Graph, file []node) []int {
	out := make([]int, len(g.Nodes))
	used := make([]bool, len(file))
	same := func(n *graph.Node, f *node) bool {
		return slices.Equal(presentIDs(slices.Clone(n.Outputs)), f.writes) && slices.Equal(presentIDs(slices.Clone(n.Inputs)), f.reads)
	}
	by := map[int][]int{} // operators by their first output
	for i := range file {
		key := -1
		if len(file[i].writes) > 0 {
			key = file[i].writes[0]
		}
		by[key] = append(by[key], i)
	}
	for i, n := range g.Nodes {
		out[i] = -1
		if same(n, &file[i]) && !used[i] {
			out[i], used[i] = i, true
			continue
		}
		key := -1
		if w := presentIDs(slices.Clone(n.Outputs)); len(w) > 0 {
			key = w[0]
		}
		for _, k := range by[key] {
			if !used[k] && same(n, &file[k]) {
				out[i], used[k] = k, true
				break
			}
		}
	}
	return out
}

// emit writes the file: operator entries move up, the outputs become a new vector at the end, and
// signatures, which name other outputs, are dropped.
func (f *liteFile) emit(keep []bool, outputs []int, in *windowInputs) ([]byte, error) {
	b := make([]byte, len(f.data), len(f.data)+4*len(outputs)+16)
	copy(b, f.data)
	n := 0
	for i, k := range keep {
		if !k {
			continue
		}
		at := f.operators + 4*n
		if f.tables[i] <= at { // impossible: a table follows its vector
			return nil, errorf(Malformed, "operator %d lies before its vector", i)
		}
		binary.LittleEndian.PutUint32(b[at:], uint32(f.tables[i]-at))
		n++
	}
	binary.LittleEndian.PutUint32(b[f.operators-4:], uint32(n))
	if f.signatures > 0 {
		binary.LittleEndian.PutUint32(b[f.signatures-4:], 0)
	}
	b, err := f.list32(b, f.outputs, outputs)
	if err != nil || in == nil {
		return b, err
	}
	if f.inputs == 0 {
		return nil, errorf(Malformed, "the file has no list of inputs")
	}
	var ids []int
	for _, id := range f.list {
		if in.used[id] {
			ids = append(ids, id)
		}
	}
	return f.list32(b, f.inputs, append(ids, in.more...))
}

// list32 appends a vector of integers and lets a field refer to it.
func (f *liteFile) list32(b []byte, field int, ids []int) ([]byte, error) {
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	if len(b)-field > math.MaxInt32 {
		return nil, errorf(TooLarge, "the file has %d bytes: what is added to it lies beyond the 2 GiB of a FlatBuffer", len(f.data))
	}
	binary.LittleEndian.PutUint32(b[field:], uint32(len(b)-field))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(ids)))
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	return b, nil
}
