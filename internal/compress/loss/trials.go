package loss

import (
	"maps"
	"slices"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// trial is changes from values that are kept: of one layer, or of layers that only lose channels or filters together.
type trial struct {
	layers  []int
	changes []study.Change
	inputs  []int // that the suffixes read
	bytes   int   // a run
}

// together are the layers that lose channels or filters together, by structure and layer; layers that lose theirs alone have none.
type together map[study.Structure]map[int][]int

// together finds those of the structures among changes. Sparsify's divergences are of single layers.
func (j *Job) together(cs []study.Change) together {
	out := together{}
	for _, c := range cs {
		if out[c.Structure] != nil || !c.Structure.Removes() || j.Settings.Method == study.OneShot {
			continue
		}
		of := map[int][]int{}
		for _, g := range rewrite.Groups(j.Model, j.Layers, c.Structure) {
			for _, l := range g.Layers {
				if len(g.Layers) > 1 {
					of[l] = g.Layers
				}
			}
		}
		out[c.Structure] = of
	}
	return out
}

// members are the layers that have to have a change with a layer, itself among them.
func (t together) members(layer int, c study.Change) []int {
	if all := t[c.Structure][layer]; all != nil {
		return all
	}
	return []int{layer}
}

// without are the members but for one, nil for none.
func without(members []int, layer int) []int {
	if len(members) < 2 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(members), func(k int) bool { return k == layer })
}

// asked are the changes that are missing, by the layers that have them together: those of a layer alone first.
func (j *Job) asked() (out []*trial) {
	t := j.together(j.Settings.Changes)
	for i := range j.Layers {
		own := &trial{layers: []int{i}}
		var tied []*trial
		for _, c := range j.Settings.Changes {
			all := t.members(i, c)
			if i != all[0] || !slices.ContainsFunc(all, func(l int) bool { return !j.skips(l, c) }) {
				continue
			}
			if len(all) == 1 {
				own.changes = append(own.changes, c)
				continue
			}
			k := slices.IndexFunc(tied, func(x *trial) bool { return slices.Equal(x.layers, all) })
			if k < 0 {
				k, tied = len(tied), append(tied, &trial{layers: all})
			}
			tied[k].changes = append(tied[k].changes, c)
		}
		if len(own.changes) > 0 {
			out = append(out, own)
		}
		out = append(out, tied...)
	}
	return out
}

// trials lists what is to be done, with what it needs.
func (j *Job) trials(sizes []int) (out []*trial, total int, err error) {
	for _, t := range j.asked() {
		_, ids, err := rewrite.Suffix(j.Model, j.operators(t.layers))
		why := study.Cause("")
		for _, i := range t.layers {
			l := j.Layers[i]
			if why == "" {
				why = fixed(l, t.changes)
			}
			if why == "" && (err != nil || !j.runs(l)) { // outputs on these data say nothing of it
				why = study.Unrun
			}
		}
		if why != "" {
			for _, i := range t.layers {
				if err := j.causes(i, t.changes, why); err != nil {
					return nil, 0, err
				}
			}
			continue
		}
		for _, c := range farthest(t.changes) {
			if more, err := j.reads(t.layers, c); err == nil { // else it fails when it is tried, and has its cause then
				ids = append(ids, more...)
			}
		}
		slices.Sort(ids)
		t.inputs = slices.Compact(ids)
		for _, id := range t.inputs {
			t.bytes += sizes[id]
		}
		out = append(out, t)
		total += len(t.changes)
	}
	return out, total, nil
}

// operators are those of the main graph that run some layers.
func (j *Job) operators(layers []int) []int {
	nodes := map[int]bool{}
	for _, i := range layers {
		for _, n := range j.Layers[i].Main {
			nodes[n] = true
		}
	}
	return slices.Sorted(maps.Keys(nodes))
}

// runs reports whether a graph that has a layer ran on the data.
func (j *Job) runs(l *weights.Layer) bool {
	return j.ran[l.Graph] || slices.ContainsFunc(l.Twins, func(t *weights.Layer) bool { return j.ran[t.Graph] })
}

// farthest are changes that may reach beyond the layer's own weights: of each format, and of channels and filters the
// highest level.
func farthest(cs []study.Change) []study.Change {
	var out []study.Change
	for _, c := range cs {
		if !c.Structure.Removes() {
			c.Structure, c.Level = study.Dense, 0
		}
		k := slices.IndexFunc(out, func(o study.Change) bool { return o.Structure == c.Structure && o.Format == c.Format })
		switch {
		case c.IsZero():
		case k < 0:
			out = append(out, c)
		default:
			out[k].Level = max(out[k].Level, c.Level)
		}
	}
	return out
}

// reads are the values that the model reads from what a change changes on.
func (j *Job) reads(layers []int, c study.Change) ([]int, error) {
	changes := make([]rewrite.Change, len(layers))
	for k, i := range layers {
		changes[k] = rewrite.Change{Layer: j.Layers[i], Change: c}
	}
	_, _, ids, why, err := j.rewritten(layers, changes)
	if why != "" {
		return nil, err
	}
	return ids, err
}

// rewritten makes a model with changes: the whole, and what depends on them with what that reads. A change that cannot be made has a cause.
func (j *Job) rewritten(layers []int, changes []rewrite.Change) (m, part *graph.Model, reads []int, why study.Cause, err error) {
	m, effects, err := rewrite.Apply(j.Model, changes, rewrite.Options{Ranges: j.found})
	if err != nil {
		return nil, nil, nil, "", err
	}
	for _, e := range effects {
		if e.Cause != "" {
			return nil, nil, nil, e.Cause, nil
		}
	}
	part, reads, err = suffixOf(j.Model, m, j.operators(layers))
	return m, part, reads, "", err
}

// block says how many of the trials are done with the values of one pass, and with how many runs at a time.
func (j *Job) block(trials []*trial) (n, runs int) {
	all := j.Data.Runs()
	bytes := 0
	for n < len(trials) {
		t := trials[n]
		if n > 0 && bytes+t.bytes > j.limit()/all {
			break
		}
		bytes += t.bytes
		n++
	}
	return n, max(1, min(all, j.limit()/max(bytes, 1)))
}
