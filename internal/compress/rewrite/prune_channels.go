package rewrite

import (
	"cmp"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/compress/mask"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// pruner chooses the channels and filters to prune, respecting their dependencies. Removable
// filters become zero together with all weights that read them, so removing them does not change
// the outputs.
type pruner struct {
	deps         *dependencyGraph
	changes      []Change
	orders       []*mask.Order      // by change, nil for changes that are not made
	layers       []*weights.Layer   // all layers of the model
	axes         map[int]axisLayout // by the layer's constant
	by           map[int]*weights.Layer
	change       map[int]int // change of a layer, by its constant
	mats         map[int][]float32
	removed      map[[2]int][]bool // indices to remove, by value and axis
	remaining    map[[2]int]int
	notRemovable []bool // changes with units that could not be removed
	removedUnits []int  // number of removed units
}

// pruneGroup is a group of units that must be pruned together.
type pruneGroup struct {
	units   []pruneUnit
	indices []axisIndex // nil where they only become zero
	score   float64
}

// pruneUnit is a channel or filter of a change.
type pruneUnit struct{ change, number int }

func newPruner(m *graph.Model, changes []Change) *pruner {
	shape := knownShapes(m)
	p := &pruner{deps: newDependencyGraph(m, shape), layers: weights.Find(m, shape), changes: changes, axes: map[int]axisLayout{}, by: map[int]*weights.Layer{}, change: map[int]int{}, mats: map[int][]float32{}, removed: map[[2]int][]bool{}, remaining: map[[2]int]int{}, notRemovable: make([]bool, len(changes)), removedUnits: make([]int, len(changes))}
	for _, l := range p.layers {
		p.by[l.Value], p.axes[l.Value] = l, axisLayoutOf(l)
	}
	return p
}

// prune chooses the units of all changes of channels and filters. mats are the new weights of all
// changes, nil for changes that are not made, whose effects have the cause.
func prune(m *graph.Model, changes []Change, effects []Effect, mats [][]float32) *pruner {
	p := newPruner(m, changes)
	orders := make([]*mask.Order, len(changes))
	p.orders = orders
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
		orders[i], effects[i].Cause = mask.New(c.Layer, mask.Magnitudes(mats[i]), c.Structure)
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
	items := p.groups(orders)
	size := map[pruneUnit]int{} // units of the same layer in the group of a unit
	for _, it := range items {
		count := it.count()
		for _, u := range it.units {
			size[u] = count[u.change]
		}
		p.takeGroup(it, target)
	}
	// The rest of a target becomes zero unit by unit without removal, unless it is less than half
	// of the unit's group.
	for i, o := range orders {
		left := target[i]
		for k := 0; o != nil && k < o.Len() && target[i] > 0; k++ {
			if n := o.Number(k); size[pruneUnit{i, n}] <= 2*left {
				p.zeroSingle(i, n, target)
			}
		}
	}
	return p
}

// zeroUnits counts the units that are entirely zero.
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

// groups collects the units of all changes into groups of dependent units, lowest score first.
func (p *pruner) groups(orders []*mask.Order) []pruneGroup {
	var items []pruneGroup
	seen := map[axisIndex]bool{}
	for i, o := range orders {
		if o == nil {
			continue
		}
		for k := range o.Len() {
			first, ok := p.unitIndex(i, o.Number(k))
			if !ok || seen[first] {
				continue
			}
			all, ok := p.deps.closure(first)
			if !ok {
				continue
			}
			for _, x := range all {
				seen[x] = true
			}
			if units, ok := p.units(all, orders); ok {
				items = append(items, pruneGroup{units: units, indices: all})
			}
		}
	}
	score := map[pruneUnit]float64{}
	for i, o := range orders {
		if o == nil {
			continue
		}
		s, total := mask.Magnitudes(p.mats[p.changes[i].Layer.Value]), 0.0
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
			score[pruneUnit{i, o.Number(k)}] = sum
		}
	}
	for i := range items {
		for _, u := range items[i].units {
			items[i].score += score[u] / float64(len(items[i].units))
		}
	}
	sorting.Stable(items, func(a, b pruneGroup) int { return cmp.Compare(a.score, b.score) })
	return items
}

// unitIndex returns the axis index of a unit.
func (p *pruner) unitIndex(i, number int) (axisIndex, bool) {
	c := &p.changes[i]
	l := c.Layer
	if l.MixedLayouts {
		return axisIndex{}, false
	}
	s := p.axes[l.Value]
	if c.Structure == study.Filter {
		if s.rowAxis < 0 {
			return axisIndex{}, false
		}
		return axisIndex{l.Value, s.rowAxis, s.row[number]}, true
	}
	// depthwise: the channel is the group, with all its outputs
	if l.Channels == 1 && l.Groups > 1 {
		if s.rowAxis < 0 {
			return axisIndex{}, false
		}
		return axisIndex{l.Value, s.rowAxis, s.row[number*l.Rows/l.Groups]}, true
	}
	if s.colAxis < 0 {
		return axisIndex{}, false
	}
	return axisIndex{l.Value, s.colAxis, s.col[number%l.Channels]}, true
}

// units lists the units of changes among indices. It is false where weights of layers outside of
// the changes would be pruned: all layers that produce the indices, or all that read them, must
// be among the changes.
func (p *pruner) units(all []axisIndex, orders []*mask.Order) ([]pruneUnit, bool) {
	var units []pruneUnit
	makers, readers, anyReader := true, true, false
	for _, x := range all {
		l := p.by[x.value]
		if l == nil {
			continue
		}
		if l.MixedLayouts || l.Fixed != "" && l.Fixed != study.AllZero {
			return nil, false
		}
		s := p.axes[x.value]
		depthwise := l.Channels == 1 && l.Groups > 1
		i, asked := p.change[x.value]
		asked = asked && orders[i] != nil
		switch {
		case x.axis == s.rowAxis && depthwise: // follows its input
			if !asked {
				break
			}
			for _, row := range s.rows(x.index) {
				if p.changes[i].Structure == study.Filter {
					units = append(units, pruneUnit{i, row})
				} else if per := l.Rows / l.Groups; row%per == 0 {
					units = append(units, pruneUnit{i, row / per})
				}
			}
		case x.axis == s.rowAxis:
			if asked && p.changes[i].Structure == study.Filter {
				for _, row := range s.rows(x.index) {
					units = append(units, pruneUnit{i, row})
				}
			} else {
				makers = false
			}
		case x.axis == s.colAxis:
			if anyReader = true; asked && p.changes[i].Structure == study.Channel {
				at := slices.Index(s.col, x.index)
				for g := range l.Groups {
					units = append(units, pruneUnit{i, g*l.Channels + at})
				}
			} else {
				readers = false
			}
		default: // along neither axis
			return nil, false
		}
	}
	// Without a reader whose weights become zero, removal would change the outputs.
	return units, anyReader && len(units) > 0 && (makers || readers)
}

// count returns the number of units of each change.
func (it *pruneGroup) count() map[int]int {
	count := map[int]int{}
	for _, u := range it.units {
		count[u.change]++
	}
	return count
}

// takeGroup prunes a group if each of its changes still wants at least half of its units (levels
// are rounded to whole groups), and no axis loses all its indices.
func (p *pruner) takeGroup(it pruneGroup, target []int) {
	count := it.count()
	for i, n := range count {
		if n > 2*target[i] {
			return
		}
	}
	for _, u := range it.units {
		m := p.mat(p.changes[u.change].Layer)
		if p.changes[u.change].Matrix != nil && slices.ContainsFunc(p.elements(u), func(e int) bool { return m[e] != 0 }) {
			return
		}
	}
	loss := map[[2]int]int{}
	for _, x := range it.indices {
		loss[[2]int{x.value, x.axis}]++
	}
	for k, n := range loss {
		if k[0] < 0 {
			continue
		}
		if _, ok := p.remaining[k]; !ok {
			p.remaining[k] = p.deps.shape(k[0])[k[1]]
		}
		if p.remaining[k] <= n {
			return
		}
	}
	for k, n := range loss {
		if k[0] >= 0 {
			p.remaining[k] -= n
		}
	}
	for i, n := range count {
		target[i] -= n
		p.removedUnits[i] += n
	}
	for _, x := range it.indices {
		if x.value < 0 {
			continue
		}
		k := [2]int{x.value, x.axis}
		if p.removed[k] == nil {
			p.removed[k] = make([]bool, p.deps.shape(x.value)[x.axis])
		}
		p.removed[k][x.index] = true
		if l := p.by[x.value]; l != nil {
			p.clear(l, x)
		}
	}
}

// mat returns a layer's new weights.
func (p *pruner) mat(l *weights.Layer) []float32 {
	m, ok := p.mats[l.Value]
	if !ok {
		m = l.Read(nil)
		p.mats[l.Value] = m
	}
	return m
}

// clear makes the weights of an index zero.
func (p *pruner) clear(l *weights.Layer, x axisIndex) {
	s, m := p.axes[l.Value], p.mat(l)
	if x.axis == s.rowAxis {
		for _, r := range s.rows(x.index) {
			clear(m[r*l.Cols:][:l.Cols])
		}
		return
	}
	c := slices.Index(s.col, x.index)
	for r := range l.Rows {
		clear(m[r*l.Cols+c*l.Taps:][:l.Taps])
	}
}

// elements lists the weights of a unit.
func (p *pruner) elements(u pruneUnit) []int { return p.orders[u.change].Elements(u.number, nil) }

// zeroSingle makes one unit zero without removing it, unless it is removed already.
func (p *pruner) zeroSingle(i, number int, target []int) {
	u := pruneUnit{i, number}
	if at, ok := p.unitIndex(i, number); ok {
		if r := p.removed[[2]int{at.value, at.axis}]; r != nil && r[at.index] {
			return
		}
	}
	m := p.mat(p.changes[i].Layer)
	for _, e := range p.elements(u) {
		m[e] = 0
	}
	target[i]--
	p.notRemovable[i] = true
}

// removeUnits makes the model without the chosen indices. It is false where the resulting shapes
// are not the expected ones, because something in the model depends on the removed indices.
func (p *pruner) removeUnits(m *graph.Model) (*graph.Model, bool) {
	e := newEdit(m)
	before := p.deps.shape
	after := func(id int) []int {
		if id < 0 || id >= len(p.deps.readers) {
			if id >= 0 {
				return e.g.Values[id].Shape
			}
			return nil
		}
		s := slices.Clone(before(id))
		for a := range s {
			if n, ok := p.remaining[[2]int{id, a}]; ok && p.removed[[2]int{id, a}] != nil {
				s[a] = n
			}
		}
		return s
	}
	for id := range p.deps.readers {
		if before(id) == nil || slices.Equal(before(id), after(id)) {
			continue
		}
		p.shrink(e, id, after(id))
	}
	for i := range e.g.Nodes {
		if shapesKnown(e.g.Nodes[i], before) {
			e.resize(i, before, after)
			e.shrinkPads(i, p.removed)
		}
	}
	out := e.finish()
	shapes := knownShapes(out)
	for id := range p.deps.readers {
		if want := after(id); want != nil && out.Main().Values[id].Const == nil && m.Main().Values[id].Const == nil && !slices.Equal(shapes(id), want) {
			return nil, false
		}
	}
	return out, true
}

// shrink removes indices from a value: its elements, its quantisation, its declared shape.
func (p *pruner) shrink(e *edit, id int, shape []int) {
	v := e.mutableValue(id)
	keep := make([][]int, len(shape))
	old := p.deps.shape(id)
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
		c := sliceTensor(v.Const, keep)
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

// sliceTensor returns a tensor with some indices of each axis.
func sliceTensor(c *tensor.Tensor, keep [][]int) *tensor.Tensor {
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

// sliceQuant returns the quantisation of the remaining indices.
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
