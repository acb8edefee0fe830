package rewrite

import (
	"cmp"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/compress/mask"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// pruner chooses which channels and filters go, so that what goes together goes together. Filters whose lanes
// can be taken out are zero with all that reads them, so that it makes no difference to the outputs whether they are
// taken out.
type pruner struct {
	l       *lanes
	changes []Change
	layers  []*weights.Layer // all of the model
	spots   map[int]spots    // by the layer's constant
	by      map[int]*weights.Layer
	change  map[int]int // change of a layer, by its constant
	mats    map[int][]float32
	removed map[[2]int][]bool // lanes to take out, by value and axis
	left    map[[2]int]int
	stuck   []bool // changes of which units could not be taken out
	gone    []int  // units taken out
}

// item are units that go together.
type item struct {
	units []unit
	lanes []lane // nil where they only become zero
	score float64
}

// unit is a channel or filter of a change.
type unit struct{ change, number int }

func newPruner(m *graph.Model, changes []Change) *pruner {
	shape := planned(m)
	p := &pruner{l: newLanes(m, shape), layers: weights.Find(m, shape), changes: changes, spots: map[int]spots{}, by: map[int]*weights.Layer{}, change: map[int]int{}, mats: map[int][]float32{}, removed: map[[2]int][]bool{}, left: map[[2]int]int{}, stuck: make([]bool, len(changes)), gone: make([]int, len(changes))}
	for _, l := range p.layers {
		p.by[l.Value], p.spots[l.Value] = l, spotsOf(l)
	}
	return p
}

// prune chooses for all changes of channels and filters. mats are the new weights of all changes, nil for those that
// are not made, whose effects say why.
func prune(m *graph.Model, changes []Change, effects []Effect, mats [][]float32) *pruner {
	p := newPruner(m, changes)
	orders := make([]*mask.Order, len(changes))
	target := make([]int, len(changes))
	for i := range changes {
		c := &changes[i]
		if mats[i] == nil {
			continue
		}
		p.change[c.Layer.Value] = i
		if p.mats[c.Layer.Value] = mats[i]; !c.Structure.Removes() {
			continue
		}
		orders[i], effects[i].Cause = mask.New(c.Layer, p.scores(i), c.Structure)
		if effects[i].Cause != "" {
			mats[i] = nil
			delete(p.mats, c.Layer.Value)
		} else {
			target[i] = orders[i].Count(c.Level)
			if c.Matrix != nil {
				target[i] = zeroUnits(orders[i], c.Matrix)
			}
		}
	}
	items := p.items(orders)
	size := map[unit]int{} // units of its layer that a unit goes with
	for _, it := range items {
		count := it.count()
		for _, u := range it.units {
			size[u] = count[u.change]
		}
		p.take(it, target)
	}
	// What is left of a target goes without being taken out, one by one, but for what is less than half of what goes together.
	for i, o := range orders {
		left := target[i]
		for k := 0; o != nil && k < o.Len() && target[i] > 0; k++ {
			if n := o.Number(k); size[unit{i, n}] <= 2*left {
				p.single(i, n, target)
			}
		}
	}
	return p
}

// scores are those of a change's weights: their magnitudes.
func (p *pruner) scores(i int) []float32 {
	mat := p.mats[p.changes[i].Layer.Value]
	out := make([]float32, len(mat))
	for i, x := range mat {
		out[i] = float32(math.Abs(float64(x)))
	}
	return out
}

// zeroUnits counts the units that are all zero.
func zeroUnits(o *mask.Order, mat []float32) (n int) {
	var list []int
	for i := range o.Len() {
		list = o.Unit(i, list[:0])
		if slices.ContainsFunc(list, func(e int) bool { return mat[e] != 0 }) {
			break
		}
		n++
	}
	return n
}

// items groups the units of all changes by the lanes that go with them, least score first.
func (p *pruner) items(orders []*mask.Order) []item {
	var items []item
	seen := map[lane]bool{}
	for i, o := range orders {
		if o == nil {
			continue
		}
		for k := range o.Len() {
			first, ok := p.lane(i, o.Number(k))
			if !ok || seen[first] {
				continue
			}
			all, ok := p.l.class(first)
			if !ok {
				continue
			}
			for _, x := range all {
				seen[x] = true
			}
			if units, ok := p.units(all, orders); ok {
				items = append(items, item{units: units, lanes: all})
			}
		}
	}
	score := map[unit]float64{}
	for i, o := range orders {
		if o == nil {
			continue
		}
		s, total := p.scores(i), 0.0
		for _, x := range s {
			total += float64(x)
		}
		total = max(total, math.SmallestNonzeroFloat64)
		var list []int
		for k := range o.Len() {
			list = o.Unit(k, list[:0])
			sum := 0.0
			for _, e := range list {
				sum += float64(s[e]) / total
			}
			score[unit{i, o.Number(k)}] = sum
		}
	}
	for i := range items {
		for _, u := range items[i].units {
			items[i].score += score[u] / float64(len(items[i].units))
		}
	}
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(a.score, b.score) })
	return items
}

// lane is the one of a unit.
func (p *pruner) lane(i, number int) (lane, bool) {
	c := &p.changes[i]
	l := c.Layer
	if l.Mixed {
		return lane{}, false
	}
	s := p.spots[l.Value]
	if c.Structure == study.Filter {
		if s.rowAxis < 0 {
			return lane{}, false
		}
		return lane{l.Value, s.rowAxis, s.row[number]}, true
	}
	if l.Channels == 1 && l.Groups > 1 { // depthwise: the channel is the group, with all its outputs
		if s.rowAxis < 0 {
			return lane{}, false
		}
		return lane{l.Value, s.rowAxis, s.row[number*l.Rows/l.Groups]}, true
	}
	if s.colAxis < 0 {
		return lane{}, false
	}
	return lane{l.Value, s.colAxis, s.col[number%l.Channels]}, true
}

// units lists the units of changes among lanes. False where others' weights would go that nobody asked to go: those
// that make the lanes, or those that read them, have to be asked.
func (p *pruner) units(all []lane, orders []*mask.Order) ([]unit, bool) {
	var units []unit
	makers, readers, anyReader := true, true, false
	for _, x := range all {
		l := p.by[x.value]
		if l == nil {
			continue
		}
		if l.Mixed || l.Fixed != "" && l.Fixed != study.AllZero {
			return nil, false
		}
		s := p.spots[x.value]
		depthwise := l.Channels == 1 && l.Groups > 1
		i, asked := p.change[x.value]
		asked = asked && orders[i] != nil
		switch {
		case x.axis == s.rowAxis && depthwise: // follows its input
			if !asked {
				break
			}
			for _, row := range s.rows(x.at) {
				if p.changes[i].Structure == study.Filter {
					units = append(units, unit{i, row})
				} else if per := l.Rows / l.Groups; row%per == 0 {
					units = append(units, unit{i, row / per})
				}
			}
		case x.axis == s.rowAxis:
			if asked && p.changes[i].Structure == study.Filter {
				for _, row := range s.rows(x.at) {
					units = append(units, unit{i, row})
				}
			} else {
				makers = false
			}
		case x.axis == s.colAxis:
			if anyReader = true; asked && p.changes[i].Structure == study.Channel {
				at := slices.Index(s.col, x.at)
				for g := range l.Groups {
					units = append(units, unit{i, g*l.Channels + at})
				}
			} else {
				readers = false
			}
		default: // along neither
			return nil, false
		}
	}
	// Without a reader whose weights become zero, what is taken out would be missed.
	return units, anyReader && len(units) > 0 && (makers || readers)
}

// count is how many units of each change an item has.
func (it *item) count() map[int]int {
	count := map[int]int{}
	for _, u := range it.units {
		count[u.change]++
	}
	return count
}

// take takes an item if all its changes want half as many units or more, which rounds levels to what goes together, and no axis loses all
// lanes.
func (p *pruner) take(it item, target []int) {
	count := it.count()
	for i, n := range count {
		if n > 2*target[i] {
			return
		}
	}
	for _, u := range it.units {
		if c := &p.changes[u.change]; c.Matrix != nil && !p.isZero(u) {
			return
		}
	}
	loss := map[[2]int]int{}
	for _, x := range it.lanes {
		loss[[2]int{x.value, x.axis}]++
	}
	for k, n := range loss {
		if k[0] < 0 {
			continue
		}
		if _, ok := p.left[k]; !ok {
			p.left[k] = p.l.shape(k[0])[k[1]]
		}
		if p.left[k] <= n {
			return
		}
	}
	for k, n := range loss {
		if k[0] >= 0 {
			p.left[k] -= n
		}
	}
	for i, n := range count {
		target[i] -= n
		p.gone[i] += n
	}
	for _, x := range it.lanes {
		if x.value < 0 {
			continue
		}
		k := [2]int{x.value, x.axis}
		if p.removed[k] == nil {
			p.removed[k] = make([]bool, p.l.shape(x.value)[x.axis])
		}
		p.removed[k][x.at] = true
		if l := p.by[x.value]; l != nil {
			p.clear(l, x)
		}
	}
}

// mat are a layer's new weights.
func (p *pruner) mat(l *weights.Layer) []float32 {
	m, ok := p.mats[l.Value]
	if !ok {
		m = l.Read(nil)
		p.mats[l.Value] = m
	}
	return m
}

// clear makes the weights of a lane zero.
func (p *pruner) clear(l *weights.Layer, x lane) {
	s, m := p.spots[l.Value], p.mat(l)
	if x.axis == s.rowAxis {
		for _, r := range s.rows(x.at) {
			clear(m[r*l.Cols:][:l.Cols])
		}
		return
	}
	c := slices.Index(s.col, x.at)
	for r := range l.Rows {
		clear(m[r*l.Cols+c*l.Taps:][:l.Taps])
	}
}

// elements are those of a unit.
func (p *pruner) elements(u unit) []int {
	c := &p.changes[u.change]
	l := c.Layer
	var out []int
	if c.Structure == study.Filter {
		for k := range l.Cols {
			out = append(out, u.number*l.Cols+k)
		}
		return out
	}
	g, ch := u.number/l.Channels, u.number%l.Channels
	outs := l.Rows / l.Groups
	for r := g * outs; r < (g+1)*outs; r++ {
		for t := range l.Taps {
			out = append(out, r*l.Cols+ch*l.Taps+t)
		}
	}
	return out
}

func (p *pruner) isZero(u unit) bool {
	m := p.mat(p.changes[u.change].Layer)
	return !slices.ContainsFunc(p.elements(u), func(e int) bool { return m[e] != 0 })
}

// single makes one unit zero without taking it out, unless it is gone already.
func (p *pruner) single(i, number int, target []int) {
	u := unit{i, number}
	if at, ok := p.lane(i, number); ok {
		if r := p.removed[[2]int{at.value, at.axis}]; r != nil && r[at.at] {
			return
		}
	}
	m := p.mat(p.changes[i].Layer)
	for _, e := range p.elements(u) {
		m[e] = 0
	}
	target[i]--
	p.stuck[i] = true
}

// takeOut makes the model without the lanes that were chosen. False where its shapes would not be those that are
// expected: then something in it counts on the lanes.
func (p *pruner) takeOut(m *graph.Model) (*graph.Model, bool) {
	e := newEdit(m)
	before := p.l.shape
	after := func(id int) []int {
		if id < 0 || id >= len(p.l.readers) {
			if id >= 0 {
				return e.g.Values[id].Shape
			}
			return nil
		}
		s := slices.Clone(before(id))
		for a := range s {
			if n, ok := p.left[[2]int{id, a}]; ok && p.removed[[2]int{id, a}] != nil {
				s[a] = n
			}
		}
		return s
	}
	for id := range p.l.readers {
		if before(id) == nil || slices.Equal(before(id), after(id)) {
			continue
		}
		p.shrink(e, id, after(id))
	}
	for i := range e.g.Nodes {
		if known(e.g.Nodes[i], before) {
			e.resize(i, before, after)
			e.repad(i, p.removed)
		}
	}
	out := e.finish()
	shapes := planned(out)
	for id := range p.l.readers {
		if want := after(id); want != nil && out.Main().Values[id].Const == nil && m.Main().Values[id].Const == nil && !slices.Equal(shapes(id), want) {
			return nil, false
		}
	}
	return out, true
}

// shrink takes lanes out of a value: of its elements, its quantisation, its declared shape.
func (p *pruner) shrink(e *edit, id int, shape []int) {
	v := e.value(id)
	keep := make([][]int, len(shape))
	old := p.l.shape(id)
	for a, d := range old {
		r := p.removed[[2]int{id, a}]
		for i := range d {
			if r == nil || !r[i] {
				keep[a] = append(keep[a], i)
			}
		}
	}
	if q := v.Quant; q != nil {
		v.Quant = sliceQuant(q, old, keep)
	}
	if v.Const != nil {
		c := slice(v.Const, keep)
		if q := v.Const.Quant; q != nil {
			c.Quant = sliceQuant(q, old, keep)
		}
		v.Const, v.Sparse, v.Offset = c, nil, -1
	}
	if len(v.Shape) == len(shape) {
		s := slices.Clone(v.Shape)
		for a, d := range s {
			if d == old[a] {
				s[a] = shape[a]
			}
		}
		v.Shape = s
	}
	if len(v.Placeholder) == len(shape) {
		v.Placeholder = slices.Clone(shape)
	}
}

// slice is a tensor with some indices of each axis.
func slice(c *tensor.Tensor, keep [][]int) *tensor.Tensor {
	shape := make([]int, len(keep))
	for a := range keep {
		shape[a] = len(keep[a])
	}
	out := tensor.New(c.Type, shape...)
	strides := tensor.Strides(c.Shape)
	bits := c.Type.Bits()
	var codes, from []uint8
	if bits < 8 {
		from, codes = make([]uint8, c.Len()), make([]uint8, out.Len())
		tensor.Unpack(from, c, 0)
	}
	at := make([]int, len(shape))
	for i := range out.Len() {
		e := 0
		for a, k := range at {
			e += keep[a][k] * strides[a]
		}
		if bits < 8 {
			codes[i] = from[e]
		} else {
			copy(out.Data[i*bits/8:][:bits/8], c.Data[e*bits/8:])
		}
		tensor.Next(at, shape)
	}
	if bits < 8 {
		tensor.Pack(out, codes)
	}
	return out
}

// sliceQuant is a quantisation of what is left of a value's axes.
func sliceQuant(q *tensor.Quant, old []int, keep [][]int) *tensor.Quant {
	if len(q.Scale) < 2 || q.Block > 0 || q.Axis < 0 || q.Axis >= len(old) || len(q.Scale) != old[q.Axis] {
		return q
	}
	out := &tensor.Quant{Axis: q.Axis}
	for _, i := range keep[q.Axis] {
		out.Scale, out.Zero = append(out.Scale, q.Scale[i]), append(out.Zero, q.Zero[i])
	}
	return out
}
