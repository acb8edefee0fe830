package onnx

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/model/protoread"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// The raw types hold a file's messages with unresolved names. A function's body is decoded once
// and built for each call.

type rawModel struct {
	ir                int64
	producer, version string
	doc               string
	graph             *rawGraph
	opsets            map[string]int
	funcs             []*rawFunc
	meta              []rawEntry
	training          bool
}

type rawEntry struct {
	key   string
	value []byte
}

type rawGraph struct {
	name            string
	nodes           []rawNode
	inits           []rawInit
	inputs, outputs []valueInfo
	infos           []valueInfo
	off             int64
}

type rawInit struct {
	name   string
	t      *tensor.Tensor
	off    int64 // of the message
	data   int64 // of the elements, -1 if they are not in the file
	sparse bool
	index  int
}

type rawNode struct {
	op, domain, name, overload string
	module                     string // path of its module, from the metadata
	in, out                    []string
	attrs                      []rawAttr
	off                        int64
}

// rawAttr's value is one of the types of graph.Attrs, or *rawGraph or
// []*rawGraph; nil for a reference to a function's attribute.
type rawAttr struct {
	name, ref string
	val       any
	off       int64
}

type rawFunc struct {
	name, domain, overload string
	in, out                []string
	defaults               []rawAttr
	nodes                  []rawNode
	infos                  []valueInfo
	opsets                 map[string]int
	index                  int
	off                    int64
}

// decoder decodes messages to raw types.
type decoder struct {
	ext    *external
	intern map[string]string
	// dense is the number of bytes that sparse tensors may still expand to.
	dense int64
}

// str reads a name; equal names share memory.
func (d *decoder) str(r *protoread.Reader) string {
	b := r.Bytes()
	if s, ok := d.intern[string(b)]; ok {
		return s
	}
	s := string(b)
	d.intern[s] = s
	return s
}

func (d *decoder) model(r protoread.Reader) (*rawModel, error) {
	m := &rawModel{opsets: map[string]int{}}
	for r.Next() {
		var err error
		switch r.Num() {
		case modelIRVersion:
			m.ir = r.Int()
		case modelProducer:
			m.producer = r.Str()
		case modelProducerVersion:
			m.version = r.Str()
		case modelDoc:
			m.doc = r.Str()
		case modelGraph:
			if m.graph != nil {
				return nil, errorf(r.Offset(), "model has a second graph")
			}
			m.graph, err = d.graph(r.Message())
			err = under(err, "graph")
		case modelOpsetImport:
			err = under(d.opset(r.Message(), m.opsets), "opset_import")
		case modelMetadata:
			var e rawEntry
			e, err = d.entry(r.Message())
			m.meta = append(m.meta, e)
			err = underAt(err, "metadata_props", len(m.meta)-1)
		case modelTraining:
			m.training = true
		case modelFunctions:
			var f *rawFunc
			f, err = d.function(r.Message())
			if f != nil {
				f.index = len(m.funcs)
			}
			err = underAt(err, "functions", len(m.funcs))
			m.funcs = append(m.funcs, f)
		}
		if err != nil {
			return nil, err
		}
	}
	return m, r.Err()
}

func (d *decoder) opset(r protoread.Reader, into map[string]int) error {
	domain, version := "", int64(0)
	for r.Next() {
		switch r.Num() {
		case opsetDomain:
			domain = d.str(&r)
		case opsetVersion:
			version = r.Int()
			if version < 0 || version > maxDeclaredVersion {
				return errorf(r.Offset(), "operator-set version %d", version)
			}
		}
	}
	into[normal(domain)] = int(version)
	return r.Err()
}

// normal converts the spelled-out default domain to the empty one.
func normal(domain string) string {
	if domain == "ai.onnx" {
		return ""
	}
	return domain
}

func (d *decoder) entry(r protoread.Reader) (e rawEntry, err error) {
	for r.Next() {
		switch r.Num() {
		case entryKey:
			e.key = r.Str()
		case entryValue:
			e.value = r.Bytes()
		}
	}
	return e, r.Err()
}

func (d *decoder) graph(r protoread.Reader) (*rawGraph, error) {
	g := &rawGraph{off: r.Start()}
	info := func(list *[]valueInfo, field string) error {
		v, err := d.valueInfo(r.Message())
		if err != nil {
			return underAt(err, field, len(*list))
		}
		*list = append(*list, v)
		return nil
	}
	dense, sparse := 0, 0
	for r.Next() {
		var err error
		switch r.Num() {
		case graphNode:
			var n rawNode
			n, err = d.node(r.Message())
			err = underAt(err, "node", len(g.nodes))
			g.nodes = append(g.nodes, n)
		case graphName:
			g.name = r.Str()
		case graphInitializer:
			var in rawInit
			in, err = d.initializer(r.Message())
			in.index = dense
			err = underAt(err, "initializer", dense)
			g.inits = append(g.inits, in)
			dense++
		case graphSparse:
			var in rawInit
			in, err = d.sparseInitializer(r.Message())
			in.index = sparse
			err = underAt(err, "sparse_initializer", sparse)
			g.inits = append(g.inits, in)
			sparse++
		case graphInput:
			err = info(&g.inputs, "input")
		case graphOutput:
			err = info(&g.outputs, "output")
		case graphValueInfo:
			err = info(&g.infos, "value_info")
		}
		if err != nil {
			return nil, err
		}
	}
	return g, r.Err()
}

func (d *decoder) initializer(r protoread.Reader) (rawInit, error) {
	off := r.Start()
	t, err := d.tensor(r)
	return rawInit{name: t.name, t: t.Tensor, off: off, data: t.data}, err
}

func (d *decoder) sparseInitializer(r protoread.Reader) (rawInit, error) {
	off := r.Start()
	t, err := d.sparse(r)
	return rawInit{name: t.name, t: t.Tensor, off: off, data: -1, sparse: true}, err
}

func (d *decoder) node(r protoread.Reader) (n rawNode, err error) {
	n.off = r.Start()
	for r.Next() {
		switch r.Num() {
		case nodeInput:
			n.in = append(n.in, d.str(&r))
		case nodeOutput:
			n.out = append(n.out, d.str(&r))
		case nodeName:
			n.name = r.Str()
		case nodeOpType:
			n.op = d.str(&r)
		case nodeDomain:
			n.domain = normal(d.str(&r))
		case nodeOverload:
			n.overload = d.str(&r)
		case nodeMetadata:
			var e rawEntry
			if e, err = d.entry(r.Message()); err != nil {
				return n, under(err, "metadata_props")
			}
			if m := d.modulePath(e); m != "" && (n.module == "" || e.key == scopesKey) {
				n.module = m
			}
		case nodeAttribute:
			var a rawAttr
			if a, err = d.attribute(r.Message()); err != nil {
				// The name is known only if the message was decoded that far.
				if a.name != "" {
					return n, under(err, fmt.Sprintf("attribute[%q]", a.name))
				}
				return n, underAt(err, "attribute", len(n.attrs))
			}
			n.attrs = append(n.attrs, a)
		}
	}
	if r.Err() == nil && n.op == "" {
		return n, errorf(n.off, "node has no operator type")
	}
	if r.Err() == nil && len(n.in)+len(n.out) == 0 {
		return n, errorf(n.off, "node has neither inputs nor outputs")
	}
	return n, r.Err()
}

// nonNil keeps an empty list distinguishable from an absent attribute.
func nonNil[T any](v []T) []T {
	if v == nil {
		return []T{}
	}
	return v
}

func (d *decoder) function(r protoread.Reader) (*rawFunc, error) {
	f := &rawFunc{opsets: map[string]int{}, off: r.Start()}
	for r.Next() {
		var err error
		switch r.Num() {
		case functionName:
			f.name = d.str(&r)
		case functionDomain:
			f.domain = normal(d.str(&r))
		case functionOverload:
			f.overload = d.str(&r)
		case functionInput:
			f.in = append(f.in, d.str(&r))
		case functionOutput:
			f.out = append(f.out, d.str(&r))
		case functionNode:
			var n rawNode
			n, err = d.node(r.Message())
			err = underAt(err, "node", len(f.nodes))
			f.nodes = append(f.nodes, n)
		case functionOpset:
			err = under(d.opset(r.Message(), f.opsets), "opset_import")
		case functionAttrProto:
			var a rawAttr
			a, err = d.attribute(r.Message())
			err = underAt(err, "attribute_proto", len(f.defaults))
			f.defaults = append(f.defaults, a)
		case functionValueInfo:
			var v valueInfo
			v, err = d.valueInfo(r.Message())
			err = underAt(err, "value_info", len(f.infos))
			f.infos = append(f.infos, v)
		}
		if err != nil {
			return nil, err
		}
	}
	if r.Err() == nil && f.name == "" {
		return nil, errorf(f.off, "function has no name")
	}
	return f, r.Err()
}

// appendDims reads one or more dimensions and appends them; the tensor checks their product.
func appendDims(shape []int, v []int64, off int64) ([]int, error) {
	for _, d := range v {
		if d < 0 || d > maxDim || d > math.MaxInt {
			return nil, errorf(off, "dimension %d", d)
		}
		shape = append(shape, int(d))
	}
	return shape, nil
}
