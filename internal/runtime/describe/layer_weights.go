package describe

import (
	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/profile"
)

// constants counts each constant of a model once, regardless of how many nodes and graphs read
// it. Graphs of a file may share a buffer.
type constants struct {
	seen map[*tensor.Tensor]bool
	data map[*byte]bool
}

// first reports whether the constant has not been counted yet, and records it.
func (c *constants) first(t *tensor.Tensor) bool {
	if c.seen[t] {
		return false
	}
	if c.seen == nil {
		c.seen, c.data = map[*tensor.Tensor]bool{}, map[*byte]bool{}
	}
	c.seen[t] = true
	if len(t.Data) == 0 {
		return true
	}
	at := &t.Data[0]
	known := c.data[at]
	c.data[at] = true
	return !known
}

// maxLoadSteps bounds the steps through layers that run at load, for all layers together.
const maxLoadSteps = 1 << 20

// weightOwner assigns weights to layers.
type weightOwner struct {
	*describer
	load    []bool        // by slot: it runs once at load
	makers  []map[int]int // by graph and value: one plus the slot that makes it at load
	steps   int           // left of maxLoadSteps
	counted constants
}

// layerWeights sets the weights of layers. A constant that is read through layers which run once
// at load, such as a Transpose, belongs to the layer that reads the result. The first layer that
// reads a constant counts it; for others it is shared.
func (d *describer) layerWeights(ls []profile.Layer) {
	o := &weightOwner{describer: d, load: make([]bool, len(d.slots)), makers: make([]map[int]int, len(d.m.Graphs)), steps: maxLoadSteps}
	for i := range d.slots {
		if o.load[i] = o.runsAtLoad(i); !o.load[i] {
			continue
		}
		g := d.slots[i].Graph
		if o.makers[g] == nil {
			o.makers[g] = map[int]int{}
		}
		for _, id := range d.slots[i].Node.Outputs {
			o.makers[g][id] = i + 1
		}
	}
	for _, load := range []bool{false, true} {
		for i := range d.slots {
			if o.load[i] == load {
				o.assign(i, &ls[i])
			}
		}
	}
}

// assign sets the weights of a slot's layer.
func (o *weightOwner) assign(i int, l *profile.Layer) {
	var params, bytes, sharedParams, sharedBytes int64
	o.each(i, !o.load[i], map[int]bool{}, func(v *graph.Value, n int64) {
		size := v.StoredBytes()
		if !o.counted.first(v.Const) {
			if o.load[i] {
				return // the layers that read its result count it
			}
			sharedParams, sharedBytes = sharedParams+n, sharedBytes+size
		}
		params, bytes = params+n, bytes+size
	})
	l.Params, l.WeightsBytes = &params, &bytes
	if sharedParams > 0 || sharedBytes > 0 {
		l.SharedParams, l.SharedWeightsBytes = &sharedParams, &sharedBytes
	}
}

// runsAtLoad reports whether a slot computes constants from constants: it is folded, or fused
// into the layer that reads its result.
func (o *weightOwner) runsAtLoad(i int) bool {
	s := &o.slots[i]
	if s.State == plan.Folded {
		return true
	}
	values, any := o.m.Graphs[s.Graph].Values, false
	for _, id := range s.Node.Inputs {
		if id < 0 || id >= len(values) {
			continue
		}
		if v := values[id]; o.makers[s.Graph][id] == 0 && (v.Const == nil || v.Variable) {
			return false
		}
		any = true
	}
	return any && s.State == plan.Fused
}

// each calls found for each weight that a slot reads, once, if follow through layers that run at
// load.
func (o *weightOwner) each(i int, follow bool, seen map[int]bool, found func(v *graph.Value, params int64)) {
	s := &o.slots[i]
	values := o.m.Graphs[s.Graph].Values
	for k, id := range s.Node.Inputs {
		if id < 0 || id >= len(values) || seen[id] {
			continue
		}
		seen[id] = true
		if v := values[id]; count.Weight(s.Node, k, v) {
			found(v, count.Params(s.Node, k, v))
		} else if from := o.makers[s.Graph][id]; from > 0 && follow && o.steps > 0 {
			o.steps--
			o.each(from-1, follow, seen, found)
		}
	}
}
