package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/tflite"
)

// changed makes one to three changes to a model's graphs and writes it again; nil where
// that cannot be written.
func changed(r *rand.Rand, all []source, s source) (data []byte, kinds []string) {
	m, err := modelfile.Parse(s.name, s.data)
	if err != nil {
		return nil, nil
	}
	for range 1 + r.IntN(3) {
		g := m.Graphs[r.IntN(len(m.Graphs))]
		if len(g.Nodes) == 0 || len(g.Values) == 0 {
			continue
		}
		c := changes[r.IntN(len(changes))]
		c.apply(&change{r, all, m, g, g.Nodes[r.IntN(len(g.Nodes))]})
		kinds = append(kinds, c.name)
	}
	if m.Format == "tflite" {
		data, err = tflite.Encode(m)
	} else {
		data, err = onnx.Encode(m)
	}
	if err != nil || len(kinds) == 0 {
		return nil, nil
	}
	return data, kinds
}

// change is the place of a change.
type change struct {
	*rand.Rand
	all []source
	m   *graph.Model
	g   *graph.Graph
	n   *graph.Node
}

var changes = []struct {
	name  string
	apply func(c *change)
}{
	{"attribute", attribute},
	{"attribute", attribute},
	{"attribute", attribute},
	{"attributes", attributes},
	{"type", retype},
	{"type", retype},
	{"shape", reshape},
	{"shape", reshape},
	{"edge", edge},
	{"absent", absent},
	{"double", double},
	{"output", output},
	{"quant", quant},
	{"elements", elements},
	{"elements", elements},
	{"operator", operator},
	{"version", version},
}

func one[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func (c *change) odd(old int64) int64 {
	return one(c.Rand, []int64{0, 1, -1, 2, -2, 3, 7, old + 1, old - 1, -old, old * 2, 100, 100_000, 1 << 20, math.MaxInt32, math.MinInt32, 1 << 40, math.MaxInt64, math.MinInt64})
}

func (c *change) oddFloat(old float32) float32 {
	return one(c.Rand, []float32{0, 1, -1, -old, old * 2, 1e-30, 1e30, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))})
}

func (c *change) value() *graph.Value { return c.g.Values[c.IntN(len(c.g.Values))] }

// operand is a value that the node reads or makes.
func (c *change) operand() *graph.Value {
	ids := slices.DeleteFunc(slices.Concat(c.n.Inputs, c.n.Outputs), func(id int) bool { return id < 0 })
	if len(ids) == 0 {
		return c.value()
	}
	return c.g.Values[one(c.Rand, ids)]
}

func names(a graph.Attrs) []string {
	out := make([]string, 0, len(a))
	for k := range a {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// attribute gives an attribute an odd value.
func attribute(c *change) {
	if len(c.n.Attrs) == 0 {
		return
	}
	name := one(c.Rand, names(c.n.Attrs))
	switch v := c.n.Attrs[name].(type) {
	case int64:
		c.n.Attrs[name] = c.odd(v)
	case bool:
		c.n.Attrs[name] = !v
	case float32:
		c.n.Attrs[name] = c.oddFloat(v)
	case string:
		c.n.Attrs[name] = one(c.Rand, []string{"", "x", "SAME", "VALID", "NOTSET", "SAME_UPPER", "RELU6", "TANH", "linear", "none", "reverse"})
	case []int64:
		w := slices.Clone(v)
		switch k := c.IntN(4); {
		case k == 0 || len(w) == 0:
			w = append(w, c.odd(1))
		case k == 1:
			w = w[:len(w)-1]
		default:
			i := c.IntN(len(w))
			w[i] = c.odd(w[i])
		}
		c.n.Attrs[name] = w
	case []float32:
		if len(v) > 0 {
			w := slices.Clone(v)
			i := c.IntN(len(w))
			w[i] = c.oddFloat(w[i])
			c.n.Attrs[name] = w[:len(w)-c.IntN(2)]
		}
	case []string:
		c.n.Attrs[name] = append(slices.Clone(v), "")
	case []byte:
		w := slices.Clone(v)
		if len(w) > 0 {
			w[c.IntN(len(w))] ^= byte(1 + c.IntN(255))
		}
		c.n.Attrs[name] = w
	case graph.GraphRef:
		c.n.Attrs[name] = graph.GraphRef(c.IntN(len(c.m.Graphs)))
	}
}

// attributes takes an attribute away or adds one of another node.
func attributes(c *change) {
	if c.n.Attrs == nil {
		c.n.Attrs = graph.Attrs{}
	}
	if n := names(c.n.Attrs); len(n) > 0 && c.IntN(2) == 0 {
		delete(c.n.Attrs, one(c.Rand, n))
		return
	}
	c.n.Attrs[one(c.Rand, []string{"axis", "axes", "group", "dilations", "keepdims", "p", "to", "size", "alpha"})] = c.odd(1)
}

var types = []tensor.Type{
	tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Int8, tensor.Uint8, tensor.Int16, tensor.Uint16,
	tensor.Int32, tensor.Uint32, tensor.Int64, tensor.Uint64, tensor.Bool, tensor.String, tensor.Complex64, tensor.Int4,
}

// retype gives a value another element type. The bytes of a constant stay as far as
// they reach.
func retype(c *change) {
	v := c.operand()
	t := one(c.Rand, types)
	v.Type = t
	if v.Const == nil {
		return
	}
	x := tensor.New(t, slices.Clone(v.Const.Shape)...)
	copy(x.Data, v.Const.Data)
	v.Const, v.Sparse, v.Offset = x, nil, -1
}

// reshape gives a value another shape. A constant gets elements for it.
func reshape(c *change) {
	v := c.operand()
	s := slices.Clone(v.Shape)
	switch k := c.IntN(5); {
	case k == 0 || len(s) == 0:
		s = slices.Insert(s, c.IntN(len(s)+1), one(c.Rand, []int{0, 1, 2, 3, 8}))
	case k == 1:
		s = slices.Delete(s, c.IntN(len(s)), len(s))
	default:
		i := c.IntN(len(s))
		s[i] = one(c.Rand, []int{0, 1, 2, 3, s[i] + 1, max(0, s[i]-1), s[i] * 2, 64})
	}
	if slices.ContainsFunc(s, func(d int) bool { return d < 0 }) || tensor.Elements(s) > 1<<16 {
		return
	}
	v.Shape, v.HasShape, v.Placeholder, v.DimNames = s, true, nil, nil
	if v.Const != nil {
		x := tensor.New(v.Const.Type, s...)
		copy(x.Data, v.Const.Data)
		copy(x.Strings, v.Const.Strings)
		v.Const, v.Sparse, v.Offset = x, nil, -1
	}
}

// edge lets the node read another value.
func edge(c *change) {
	if len(c.n.Inputs) > 0 {
		c.n.Inputs[c.IntN(len(c.n.Inputs))] = c.value().ID
	}
}

// absent leaves an input or an output out.
func absent(c *change) {
	list := &c.n.Inputs
	if c.IntN(3) == 0 {
		list = &c.n.Outputs
	}
	if len(*list) == 0 {
		return
	}
	if c.IntN(3) == 0 {
		*list = (*list)[:len(*list)-1]
		return
	}
	(*list)[c.IntN(len(*list))] = -1
}

// double lets the node read one more value, or one twice.
func double(c *change) {
	c.n.Inputs = append(c.n.Inputs, c.value().ID)
	if c.IntN(2) == 0 && len(c.n.Inputs) > 1 {
		c.n.Inputs[len(c.n.Inputs)-1] = c.n.Inputs[0]
	}
}

// output gives the node one more output that nothing reads.
func output(c *change) {
	v := &graph.Value{ID: len(c.g.Values), Name: "surplus", Type: one(c.Rand, types), Offset: -1}
	c.g.Values = append(c.g.Values, v)
	c.n.Outputs = append(c.n.Outputs, v.ID)
}

// quant spoils scales and zero points.
func quant(c *change) {
	v := c.operand()
	if v.Quant == nil || len(v.Quant.Scale) == 0 {
		for _, w := range c.g.Values {
			if w.Quant != nil && len(w.Quant.Scale) > 0 {
				v = w
			}
		}
	}
	if v.Quant == nil || len(v.Quant.Scale) == 0 {
		v.Quant = &tensor.Quant{Scale: []float32{c.oddFloat(1)}, Zero: []int64{0}}
		return
	}
	q := *v.Quant
	q.Scale, q.Zero = slices.Clone(q.Scale), slices.Clone(q.Zero)
	switch c.IntN(4) {
	case 0:
		q.Zero[c.IntN(len(q.Zero))] = c.odd(0)
	case 1:
		q.Axis = int(c.odd(0) % 1000)
	case 2:
		q.Scale, q.Zero = append(q.Scale, 1), append(q.Zero, 0)
	default:
		i := c.IntN(len(q.Scale))
		q.Scale[i] = c.oddFloat(q.Scale[i])
	}
	v.Quant = &q
}

// elements changes what a constant holds.
func elements(c *change) {
	var list []*graph.Value
	for _, id := range c.n.Inputs {
		if id >= 0 && c.g.Values[id].Const != nil {
			list = append(list, c.g.Values[id])
		}
	}
	if len(list) == 0 {
		for _, v := range c.g.Values {
			if v.Const != nil {
				list = append(list, v)
			}
		}
	}
	if len(list) == 0 {
		return
	}
	v := one(c.Rand, list)
	x := v.Const.Clone()
	for i := range x.Strings {
		x.Strings[i] = one(c.Rand, []string{"", "(", "\xff", "a,b->ab", "xxxxxxxxxxxxxxxxxxxxxxxx"})
	}
	if x.Type == tensor.Int32 || x.Type == tensor.Int64 {
		if n := x.Len(); n > 0 {
			i := c.IntN(n)
			if x.Type == tensor.Int32 {
				e := tensor.Of[int32](x)
				e[i] = int32(c.odd(int64(e[i])))
			} else {
				e := tensor.Of[int64](x)
				e[i] = c.odd(e[i])
			}
		}
	} else if len(x.Data) > 0 {
		for range 1 + c.IntN(8) {
			x.Data[c.IntN(len(x.Data))] = one(c.Rand, []byte{0, 1, 0x7f, 0x80, 0xff, byte(c.IntN(256))})
		}
	}
	v.Const, v.Sparse, v.Offset = x, nil, -1
}

// operator runs the node with another operator of any model.
func operator(c *change) {
	for range 8 {
		s := one(c.Rand, c.all)
		m, err := modelfile.Parse(s.name, s.data)
		if err != nil || m.Format != c.m.Format {
			continue
		}
		if g := m.Main(); len(g.Nodes) > 0 {
			n := one(c.Rand, g.Nodes)
			c.n.Domain, c.n.Op = n.Domain, n.Op
			c.n.Attrs = graph.Attrs{}
			for k, a := range n.Attrs {
				if _, body := a.(graph.GraphRef); !body {
					c.n.Attrs[k] = a
				}
			}
		}
		return
	}
}

// version changes the version of the operator, in ONNX that of all of its domain.
func version(c *change) {
	v := one(c.Rand, []int{1, 2, 5, 6, 7, 9, 11, 13, 17, 18, 21, 25})
	if c.m.Opsets != nil {
		c.m.Opsets[c.n.Domain] = v
	}
	c.n.Version = v
}
