package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// leastScores is the minimum number of scores per head for which fusion pays off. Fewer scores
// stay in the cache between separate operators too, which need not pack each head alone.
const leastScores = 1 << 16

// fuseAttentions finds softmax(q·k·scale + mask)·v written as several operators and lets the last
// of them compute it block by block, so that the scores stay in the cache.
func fuseAttentions(g *Graph) {
	if g.model.Format == "tflite" {
		fuseLiteAttentions(g)
		return
	}
	m := &matcher{g: g, uses: g.readers()}
	for i := range g.Tasks {
		if !m.is(i, "MatMul", 2) {
			continue
		}
		in, scale := m.attention(i)
		if in == nil {
			continue
		}
		n := g.Tasks[i].Node
		g.replace(i, &graph.Node{
			Index: n.Index, Name: n.Name, Function: n.Function, Op: "Attention", Version: 23, Inputs: in, Outputs: n.Outputs,
			Attrs: graph.Attrs{"scale": float32(scale), op.AttrProducts: int64(1)},
		}, m.taken...)
		g.Tasks[i].Lowered = true
	}
	g.InferAll()
}

// attention matches an attention that ends in MatMul i. It returns query, key, value and the
// optional mask, and the factor of the scores.
func (m *matcher) attention(i int) (in []int, scale float64) {
	m.begin(i)
	value := m.g.Tasks[i].Node.Inputs[1]
	soft := m.producer(m.uncast(m.g.Tasks[i].Node.Inputs[0]), "Softmax", 1)
	if soft == nil || soft.Version < 13 {
		return nil, 0
	}
	s := m.float32Value(soft.Inputs[0])
	if axis := soft.Attrs.Int("axis", -1); s == nil || axis != -1 && axis != s.Rank()-1 ||
		s.Rank() < 3 || s.Shape[s.Rank()-2]*s.Shape[s.Rank()-1] < leastScores {
		return nil, 0
	}
	scores, mask := m.uncast(soft.Inputs[0]), -1
	product, scale := m.scoreProduct(scores)
	if m.madeBy(scores, "Add") {
		add := m.producer(scores, "Add", 2)
		for k := 0; k < 2 && add != nil && product == nil; k++ {
			taken := len(m.taken)
			if mask = add.Inputs[1-k]; m.broadcastsTo(mask, s.Shape) {
				product, scale = m.scoreProduct(add.Inputs[k])
			}
			if product == nil {
				m.taken = m.taken[:taken]
			}
		}
	}
	if product == nil {
		return nil, 0
	}
	in = []int{product.Inputs[0], product.Inputs[1], value}
	q, k, v := m.float32Value(in[0]), m.float32Value(in[1]), m.float32Value(value)
	if q == nil || k == nil || v == nil {
		return nil, 0
	}
	r := q.Rank()
	if r < 3 || r > 4 || k.Rank() != r || v.Rank() != r || !slices.Equal(q.Shape[:r-2], k.Shape[:r-2]) || !slices.Equal(q.Shape[:r-2], v.Shape[:r-2]) ||
		q.Shape[r-1] != k.Shape[r-2] || k.Shape[r-1] != v.Shape[r-2] || q.Len()*k.Len()*v.Len() == 0 {
		return nil, 0
	}
	if mask >= 0 {
		in = append(in, mask)
	}
	return in, scale
}

// scoreProduct returns the MatMul that computes the scores, and the factor that they are
// multiplied by.
func (m *matcher) scoreProduct(id int) (product *graph.Node, scale float64) {
	id, scale = m.uncast(id), 1
	m.x = id
	if m.madeBy(id, "Div") {
		n := m.producer(id, "Div", 2)
		if n == nil {
			return nil, 0
		}
		by, ok := m.number(n.Inputs[1])
		if !ok {
			return nil, 0
		}
		id, scale = n.Inputs[0], 1/by
	} else if m.madeBy(id, "Mul") {
		n := m.producer(id, "Mul", 2)
		if n == nil {
			return nil, 0
		}
		k := 0
		by, ok := m.number(n.Inputs[1])
		if !ok {
			k = 1
			if by, ok = m.number(n.Inputs[0]); !ok {
				return nil, 0
			}
		}
		id, scale = n.Inputs[k], by
	}
	return m.producer(id, "MatMul", 2), scale
}

// uncast returns the input of a Cast to its own type, which some exporters write; else the value
// itself.
func (m *matcher) uncast(id int) int {
	i := m.g.maker[id] - 1
	if i < 0 || !m.is(i, "Cast", 1) || m.float32Value(id) == nil || m.float32Value(m.g.Tasks[i].Node.Inputs[0]) == nil {
		return id
	}
	if n := m.producer(id, "Cast", 1); n != nil {
		return n.Inputs[0]
	}
	return id
}

// madeBy reports whether an operator with the name computes a value.
func (m *matcher) madeBy(id int, name string) bool {
	i := m.g.maker[id] - 1
	return i >= 0 && m.is(i, name, 2)
}

// float32Value returns a float32 value whose shape is known, nil for others.
func (m *matcher) float32Value(id int) *tensor.Tensor {
	if x := m.g.Values[id]; known(x) && x.Type == tensor.Float32 {
		return x
	}
	return nil
}

// broadcastsTo reports whether a float32 value broadcasts to the shape of the scores.
func (m *matcher) broadcastsTo(id int, scores []int) bool {
	x := m.float32Value(id)
	if x == nil || x.Rank() == 0 || x.Rank() > len(scores) {
		return false
	}
	for a, n := range x.Shape {
		if n != 1 && n != scores[len(scores)-x.Rank()+a] {
			return false
		}
	}
	return true
}
