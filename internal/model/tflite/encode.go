package tflite

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/model/flatbuffer"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Encode writes a model with TFLite operators only. Equal constants share one buffer; sparse
// constants are written as in [graph.Sparse]. Models over 2 GiB are refused.
func Encode(m *graph.Model) ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	e := &encoder{m: m, codes: map[opcode]int{}, seen: map[[32]byte]int{}, buffers: []*flatbuffer.Object{{}}}
	root := &flatbuffer.Object{}
	root.Int32(0, schemaVersion, 0)
	var graphs []*flatbuffer.Object
	for _, g := range m.Graphs {
		o, err := e.graph(g)
		if err != nil {
			return nil, fmt.Errorf("graph %d %q: %w", g.Index, g.Name, err)
		}
		graphs = append(graphs, o)
	}
	var metadata []*flatbuffer.Object
	for _, x := range m.Metadata {
		o := &flatbuffer.Object{}
		o.String(0, x.Name)
		o.Int32(1, int32(e.buffer(x.Data)), 0)
		metadata = append(metadata, o)
	}
	root.Tables(1, e.codeTables)
	root.Tables(2, graphs)
	root.String(3, m.Description)
	root.Tables(4, e.buffers)
	if metadata != nil {
		root.Tables(6, metadata)
	}
	if s := e.signatures(); s != nil {
		root.Tables(7, s)
	}
	return flatbuffer.Build(root, identifier)
}

type encoder struct {
	m          *graph.Model
	codes      map[opcode]int
	codeTables []*flatbuffer.Object
	buffers    []*flatbuffer.Object
	seen       map[[32]byte]int // buffers by content
}

// buffer returns the index of a buffer with the data, 0 for none.
func (e *encoder) buffer(data []byte) int {
	if len(data) == 0 {
		return 0
	}
	key := sha256.Sum256(data)
	if i, ok := e.seen[key]; ok {
		return i
	}
	o := &flatbuffer.Object{}
	o.Bytes(0, data, 16)
	e.buffers = append(e.buffers, o)
	e.seen[key] = len(e.buffers) - 1
	return e.seen[key]
}

func (e *encoder) signatures() []*flatbuffer.Object {
	var out []*flatbuffer.Object
	list := func(s []graph.SignatureTensor) []*flatbuffer.Object {
		var out []*flatbuffer.Object
		for _, x := range s {
			o := &flatbuffer.Object{}
			o.String(0, x.Name)
			o.Int32(1, int32(x.Value), 0)
			out = append(out, o)
		}
		return out
	}
	for _, s := range e.m.Signatures {
		o := &flatbuffer.Object{}
		o.Tables(0, list(s.Inputs))
		o.Tables(1, list(s.Outputs))
		o.String(2, s.Key)
		o.Int32(4, int32(s.Graph), 0)
		out = append(out, o)
	}
	return out
}

func (e *encoder) graph(g *graph.Graph) (*flatbuffer.Object, error) {
	if len(g.Captures) > 0 {
		return nil, errors.New("captured values cannot be written")
	}
	o := &flatbuffer.Object{}
	s := &graphEncoder{encoder: e, g: g}
	for _, v := range g.Values {
		t, err := s.tensor(v)
		if err != nil {
			return nil, fmt.Errorf("value %d %q: %w", v.ID, v.Name, err)
		}
		s.tensors = append(s.tensors, t)
	}
	var nodes []*flatbuffer.Object
	for _, n := range g.Nodes {
		t, err := e.node(n)
		if err != nil {
			return nil, fmt.Errorf("node %d (%s): %w", n.Index, n.Key(), err)
		}
		nodes = append(nodes, t)
	}
	o.Tables(0, append(s.tensors, s.extra...))
	flatbuffer.Int32s(o, 1, g.Inputs)
	flatbuffer.Int32s(o, 2, g.Outputs)
	o.Tables(3, nodes)
	if g.Name != "" {
		o.String(4, g.Name)
	}
	return o, nil
}

// graphEncoder collects the tensors of one graph. extra are tensors with blockwise scales, which
// follow the graph's own values.
type graphEncoder struct {
	*encoder
	g              *graph.Graph
	tensors, extra []*flatbuffer.Object
}

func typeNumber(t tensor.Type) (uint8, error) {
	for i, x := range tensorTypes {
		if x.typ == t {
			return uint8(i), nil
		}
	}
	return 0, fmt.Errorf("type %v does not exist in TFLite", t)
}

func (s *graphEncoder) tensor(v *graph.Value) (*flatbuffer.Object, error) {
	o := &flatbuffer.Object{}
	shape := v.Shape
	if slices.ContainsFunc(shape, func(d int) bool { return d < 0 }) {
		flatbuffer.Int32s(o, 7, shape)
		if shape = v.Placeholder; len(shape) != len(v.Shape) {
			shape = slices.Clone(v.Shape)
			for i := range shape {
				shape[i] = max(shape[i], 1)
			}
		}
	}
	flatbuffer.Int32s(o, 0, shape)
	o.Bool(8, v.HasShape && len(shape) == 0, false)
	typ, err := typeNumber(v.Type)
	if err != nil {
		return nil, err
	}
	o.Uint8(1, typ, 0)
	if c := v.Const; c != nil {
		data := c.Data
		switch {
		case c.Type != v.Type || !slices.Equal(c.Shape, v.Shape):
			return nil, fmt.Errorf("constant of %s %v for a value of %s %v", tensor.FormatShape(c.Shape), c.Type, tensor.FormatShape(v.Shape), v.Type)
		case c.Type == tensor.String:
			data = packStrings(c.Strings)
		case !hasBytes(c.Type, c.Len(), len(data)):
			return nil, fmt.Errorf("constant has %d bytes, needs %d", len(data), c.Type.Bytes(c.Len()))
		case v.Sparse != nil:
			p, err := pack(c, v.Quant, v.Sparse)
			if err != nil {
				return nil, err
			}
			data = p.data
			o.Table(6, p.table(v.Sparse))
		}
		o.Int32(2, int32(s.buffer(data)), 0)
	}
	o.String(3, v.Name)
	if v.Quant != nil {
		q, err := s.quant(v.Quant)
		if err != nil {
			return nil, err
		}
		o.Table(4, q)
	}
	o.Bool(5, v.Variable, false)
	return o, nil
}

func packStrings(list []string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(list)))
	at := 4 + 4*(len(list)+1)
	for _, s := range list {
		b = binary.LittleEndian.AppendUint32(b, uint32(at))
		at += len(s)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(at))
	return append(b, strings.Join(list, "")...)
}

func (s *graphEncoder) quant(q *tensor.Quant) (*flatbuffer.Object, error) {
	if len(q.Scale) != len(q.Zero) || len(q.Scale) == 0 {
		return nil, fmt.Errorf("quantisation with %d scales and %d zero points", len(q.Scale), len(q.Zero))
	}
	o := &flatbuffer.Object{}
	if q.Block > 0 {
		d := &flatbuffer.Object{}
		d.Int32(0, int32(s.scales(q.Scale)), 0)
		d.Int32(1, int32(s.zeros(q.Zero)), 0)
		d.Int32(2, int32(q.Block), 0)
		o.Uint8(4, detailsBlockwise, 0)
		o.Table(5, d)
		return o, nil
	}
	o.Float32s(2, q.Scale)
	o.Int64s(3, q.Zero)
	o.Int32(6, int32(q.Axis), 0)
	return o, nil
}

// scales finds the constant with blockwise scales, or adds one.
func (s *graphEncoder) scales(scale []float32) int {
	for _, v := range s.g.Values {
		if v.Const != nil && v.Const.Type.IsFloat() && v.Const.Len() == len(scale) && slices.Equal(floats(v.Const), scale) {
			return v.ID
		}
	}
	return s.add(tensor.From(tensor.Float32, []int{len(scale)}, scale))
}

// zeros does the same for zero points; -1 if all are zero.
func (s *graphEncoder) zeros(zero []int64) int {
	if !slices.ContainsFunc(zero, func(z int64) bool { return z != 0 }) {
		return -1
	}
	have := make([]int64, len(zero))
	for _, v := range s.g.Values {
		if v.Const != nil && v.Const.Type.IsInteger() && v.Const.Len() == len(zero) && integers(v.Const, have) && slices.Equal(have, zero) {
			return v.ID
		}
	}
	return s.add(tensor.From(tensor.Int64, []int{len(zero)}, zero))
}

func (s *graphEncoder) add(c *tensor.Tensor) int {
	id := len(s.g.Values) + len(s.extra)
	o := &flatbuffer.Object{}
	typ, _ := typeNumber(c.Type) // float32 or int64
	flatbuffer.Int32s(o, 0, c.Shape)
	o.Uint8(1, typ, 0)
	o.Int32(2, int32(s.buffer(c.Data)), 0)
	o.String(3, fmt.Sprintf("quantization/%d", id))
	s.extra = append(s.extra, o)
	return id
}

// code returns the index of an operator code.
func (e *encoder) code(n *graph.Node) (int, error) {
	key := opcode{n.Domain, n.Op, n.Version}
	if i, ok := e.codes[key]; ok {
		return i, nil
	}
	number, o := opCustom, &flatbuffer.Object{}
	switch n.Domain {
	case graph.TFLiteCustom:
		o.String(1, n.Op)
	case graph.TFLite:
		number = slices.Index(builtinNames[:], n.Op)
		if s, ok := strings.CutPrefix(n.Op, "BUILTIN_"); ok && number < 0 {
			var err error
			if number, err = strconv.Atoi(s); err != nil {
				number = -1
			}
		}
		if number < 0 || number == opCustom || number > math.MaxInt32 {
			return 0, fmt.Errorf("operator %q does not exist in TFLite", n.Op)
		}
	default:
		return 0, fmt.Errorf("operator of domain %q", n.Domain)
	}
	o.Uint8(0, uint8(min(number, opPlaceholder)), 0)
	o.Int32(2, int32(n.Version), 1)
	o.Int32(3, int32(number), 0)
	e.codeTables = append(e.codeTables, o)
	e.codes[key] = len(e.codeTables) - 1
	return e.codes[key], nil
}

func (e *encoder) node(n *graph.Node) (*flatbuffer.Object, error) {
	o := &flatbuffer.Object{}
	code, err := e.code(n)
	if err != nil {
		return nil, err
	}
	o.Int32(0, int32(code), 0)
	flatbuffer.Int32s(o, 1, n.Inputs)
	flatbuffer.Int32s(o, 2, n.Outputs)
	left := len(n.Attrs)
	if v, ok := n.Attrs["intermediates"].([]int64); ok {
		flatbuffer.Int32s(o, 8, v)
		left--
	}
	if n.Domain == graph.TFLiteCustom {
		if b, ok := n.Attrs["custom_options"].([]byte); ok {
			o.Bytes(5, b, 16)
			left--
		}
	} else if p, ok := optionsOf[n.Op]; ok {
		t, used, err := encodeOptions(p.fields, n.Attrs)
		if err != nil {
			return nil, err
		}
		left -= used
		slot := 3
		if p.second {
			slot = 11
		}
		if used > 0 || n.Table == p.name {
			o.Uint8(slot, uint8(p.number), 0)
			o.Table(slot+1, t)
		}
	}
	if left > 0 {
		return nil, fmt.Errorf("%d attributes that its option table does not have", left)
	}
	return o, nil
}

// encodeOptions writes the attributes that are fields of a table, and counts them.
func encodeOptions(fields []field, a graph.Attrs) (o *flatbuffer.Object, used int, err error) {
	o = &flatbuffer.Object{}
	for slot, f := range fields {
		v, ok := a[f.name]
		if !ok {
			continue
		}
		used++
		if err := encodeField(o, slot, f, v); err != nil {
			return nil, 0, err
		}
	}
	return o, used, nil
}

func encodeField(o *flatbuffer.Object, slot int, f field, v any) error {
	switch v := v.(type) {
	case int64:
		switch {
		case f.kind == kInt64:
			o.Int64(slot, v, f.def)
			return nil
		case f.kind == kInt32 && v == int64(int32(v)):
			o.Int32(slot, int32(v), int32(f.def))
			return nil
		}
	case float32:
		if f.kind == kFloat {
			o.Float32(slot, v, 0)
			return nil
		}
	case bool:
		if f.kind == kBool {
			o.Bool(slot, v, f.def != 0)
			return nil
		}
	case string:
		switch f.kind {
		case kString:
			o.String(slot, v)
			return nil
		case kEnum, kEnum32:
			n, ok := f.enum.number(v)
			if !ok {
				return fmt.Errorf("attribute %q has no value %q", f.name, v)
			}
			if f.kind == kEnum {
				o.Uint8(slot, uint8(n), uint8(f.def))
			} else {
				o.Int32(slot, int32(n), int32(f.def))
			}
			return nil
		}
	case []byte:
		if f.kind == kBytes {
			o.Bytes(slot, v, 16)
			return nil
		}
	case []int64:
		return encodeInts(o, slot, f, v)
	case []float32:
		if f.kind == kFloats {
			o.Float32s(slot, v)
			return nil
		}
	case []string:
		if f.kind == kEnums {
			list := make([]int64, len(v))
			for i, s := range v {
				var ok bool
				if list[i], ok = f.enum.number(s); !ok {
					return fmt.Errorf("attribute %q has no value %q", f.name, s)
				}
			}
			flatbuffer.Int32s(o, slot, list)
			return nil
		}
	case graph.GraphRef:
		if f.kind == kGraph {
			o.Int32(slot, int32(v), 0)
			return nil
		}
	case []graph.GraphRef:
		if f.kind == kGraphs {
			flatbuffer.Int32s(o, slot, v)
			return nil
		}
	}
	return fmt.Errorf("attribute %q cannot hold %v (%T)", f.name, v, v)
}

func encodeInts(o *flatbuffer.Object, slot int, f field, v []int64) error {
	switch f.kind {
	case kInts:
		flatbuffer.Int32s(o, slot, v)
	case kInt64s:
		o.Int64s(slot, v)
	case kBools:
		b := make([]byte, len(v))
		for i, x := range v {
			b[i] = byte(x)
		}
		o.Bytes(slot, b, 1)
	default:
		return fmt.Errorf("attribute %q cannot hold a list of integers", f.name)
	}
	return nil
}

// number is the inverse of text.
func (e enum) number(s string) (int64, bool) {
	if i := slices.Index(e, s); i >= 0 {
		return int64(i), true
	}
	t, ok := strings.CutPrefix(s, "UNKNOWN_")
	n, err := strconv.ParseInt(t, 10, 32)
	return n, ok && err == nil
}
