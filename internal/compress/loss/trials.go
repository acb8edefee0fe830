package loss

import (
	"cmp"
	"maps"
	"slices"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// trial is a set of changes that start from stored values: of one layer, or of layers that lose
// channels or filters only together.
type trial struct {
	layers  []int
	changes []study.Change
	inputs  []int // read by the suffixes
	bytes   int   // per run
}

// coupledLayers are the layers that lose channels or filters together, by structure and layer.
// Independent layers have no entry.
type coupledLayers map[study.Structure]map[int][]int

// coupledLayers finds the coupled layers for the structures among changes. Sparsify's divergences
// are of single layers.
func (j *Job) coupledLayers(cs []study.Change) coupledLayers {
	out := coupledLayers{}
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

// members returns the layers that must have a change together with a layer, itself included.
func (t coupledLayers) members(layer int, c study.Change) []int {
	if all := t[c.Structure][layer]; all != nil {
		return all
	}
	return []int{layer}
}

// wantedTrials lists the missing changes, by the layers that have them together: changes of
// single layers first.
func (j *Job) wantedTrials() (out []*trial) {
	t := j.coupledLayers(j.Settings.Changes)
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

// trials lists the trials to run, with their inputs.
func (j *Job) trials(sizes []int) (out []*trial, total int, err error) {
	for _, t := range j.wantedTrials() {
		_, ids, err := rewrite.Suffix(j.Model, j.mainOperators(t.layers))
		why := study.Cause("")
		for _, i := range t.layers {
			l := j.Layers[i]
			why = cmp.Or(why, unchangeable(l, t.changes))
			// outputs on these data do not depend on it
			if why == "" && (err != nil || !j.ranOnData(l)) {
				why = study.NotRun
			}
		}
		if why != "" {
			for _, i := range t.layers {
				if err := j.reportCause(i, t.changes, why); err != nil {
					return nil, 0, err
				}
			}
			continue
		}
		for _, c := range farthestChanges(t.changes) {
			changes := make([]rewrite.Change, len(t.layers))
			for k, i := range t.layers {
				changes[k] = rewrite.Change{Layer: j.Layers[i], Change: c}
			}
			// otherwise the trial fails and reports its cause
			if _, _, more, _, err := j.applyChanges(t.layers, changes); err == nil {
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

// mainOperators returns the operators of the main graph that run some layers.
func (j *Job) mainOperators(layers []int) []int {
	nodes := map[int]bool{}
	for _, i := range layers {
		for _, n := range j.Layers[i].MainNodes {
			nodes[n] = true
		}
	}
	return slices.Sorted(maps.Keys(nodes))
}

// ranOnData reports whether a graph with the layer ran on the data.
func (j *Job) ranOnData(l *weights.Layer) bool {
	return j.ran[l.Graph] || slices.ContainsFunc(l.Twins, func(t *weights.Layer) bool { return j.ran[t.Graph] })
}

// farthestChanges returns the changes that may affect more than the layer's own weights: each
// format, and the highest level of channels and filters.
func farthestChanges(cs []study.Change) []study.Change {
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

// applyChanges makes a model with changes: the complete model, the part that depends on the
// changes, and the values it reads. A change that cannot be made has a cause.
func (j *Job) applyChanges(layers []int, changes []rewrite.Change) (m, part *graph.Model, reads []int, why study.Cause, err error) {
	m, effects, err := rewrite.Apply(j.Model, changes, rewrite.Options{Ranges: j.found})
	if err != nil {
		return nil, nil, nil, "", err
	}
	for _, e := range effects {
		if e.Cause != "" {
			return nil, nil, nil, e.Cause, nil
		}
	}
	part, reads, err = suffixOf(j.Model, m, j.mainOperators(layers))
	return m, part, reads, "", err
}

// nextBlock returns how many trials share the values of one pass, and the number of runs at a
// time.
func (j *Job) nextBlock(trials []*trial) (n, runs int) {
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
