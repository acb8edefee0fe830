package align

import "slices"

// view is a network of which only some nodes are kept: the others pass their first operand on.
type view struct {
	g    *network
	keep []bool
	ins  [][]int // by node, what makes its operands: -1 for inputs of the graph
	from [][]int // by node, which result of it each operand is
	outs [][]use
}

// filter says which nodes a view keeps.
type filter uint8

const (
	everything filter = iota
	computing         // without conversions
	cores             // core operators alone
)

func (g *network) view(f filter) *view {
	v := &view{g: g, keep: make([]bool, len(g.nodes)), ins: make([][]int, len(g.nodes)), from: make([][]int, len(g.nodes)), outs: make([][]use, len(g.nodes))}
	root := make([]int, len(g.nodes))
	for _, i := range g.order {
		n := &g.nodes[i]
		v.keep[i] = f == everything || n.role == core || f == computing && n.role != conversion
		root[i] = i
		if !v.keep[i] {
			root[i] = -1
			if n.principal >= 0 {
				root[i] = root[n.principal]
			}
			continue
		}
		for _, e := range n.ins {
			if e.helper && f != everything {
				continue
			}
			from := e.from
			if from >= 0 {
				from = root[from]
			}
			if from == i { // a cycle in a hostile file
				from = -1
			}
			if from >= 0 {
				v.outs[from] = append(v.outs[from], use{i, len(v.ins[i])})
			}
			v.ins[i], v.from[i] = append(v.ins[i], from), append(v.from[i], e.output)
		}
	}
	return v
}

// hashes are the hashes of all that comes before each node, and of all that comes after it, the
// node itself included.
type hashes struct{ up, down []uint64 }

// hash computes the hashes with a label of each node. Operands of commutative operators count in
// any order unless strict is set.
func (v *view) hash(label func(*node) uint64, strict bool) hashes {
	n := len(v.g.nodes)
	h := hashes{make([]uint64, n), make([]uint64, n)}
	labels := make([]uint64, n)
	var around []uint64
	for _, i := range v.g.order {
		if !v.keep[i] {
			continue
		}
		labels[i] = label(&v.g.nodes[i])
		around = around[:0]
		for k, m := range v.ins[i] {
			switch {
			case m >= 0:
				around = append(around, h.up[m]+uint64(v.from[i][k]))
			case strict:
				around = append(around, uint64(1+v.from[i][k]))
			default:
				around = append(around, 1)
			}
		}
		if !strict && commutative[v.g.nodes[i].class] {
			slices.Sort(around)
		}
		h.up[i] = mix(labels[i], around)
	}
	for _, i := range slices.Backward(v.g.order) {
		if !v.keep[i] {
			continue
		}
		around = around[:0]
		for _, u := range v.outs[i] {
			at := uint64(u.operand)
			if !strict && commutative[v.g.nodes[u.by].class] {
				at = 0
			}
			around = append(around, mix(h.down[u.by], []uint64{at}))
		}
		slices.Sort(around)
		if strict {
			around = append(around, uint64(v.g.nodes[i].result))
		}
		h.down[i] = mix(labels[i], around)
	}
	return h
}

// contexts hashes the labels within some steps of each node: before it, after it, and in both
// directions.
func (v *view) contexts(label func(*node) uint64, steps int, before, after bool) []uint64 {
	now := make([]uint64, len(v.g.nodes))
	own := make([]uint64, len(v.g.nodes))
	for i := range now {
		if v.keep[i] {
			own[i] = label(&v.g.nodes[i])
			now[i] = own[i]
		}
	}
	var around []uint64
	for range steps {
		next := make([]uint64, len(now))
		for i := range now {
			if !v.keep[i] {
				continue
			}
			around = around[:0]
			if before {
				for _, m := range v.ins[i] {
					if m >= 0 {
						around = append(around, now[m])
					}
				}
				slices.Sort(around)
			}
			if after {
				around = append(around, 0)
				from := len(around)
				for _, u := range v.outs[i] {
					around = append(around, now[u.by])
				}
				slices.Sort(around[from:])
			}
			next[i] = mix(own[i], around)
		}
		now = next
	}
	return now
}

// mix hashes numbers. Collisions of hostile files give wrong pairs and no other harm.
func mix(h uint64, values []uint64) uint64 {
	h ^= 0x9e3779b97f4a7c15
	for _, v := range values {
		h = (h ^ v) * 0xff51afd7ed558ccd
		h ^= h >> 32
	}
	h = (h ^ uint64(len(values))) * 0xc4ceb9fe1a85ec53
	return h ^ h>>29
}

// text hashes texts.
func text(parts ...string) uint64 {
	h := uint64(14695981039346656037)
	for _, s := range parts {
		for k := range len(s) {
			h = (h ^ uint64(s[k])) * 1099511628211
		}
		h = (h ^ 0xff) * 1099511628211
	}
	return h
}
