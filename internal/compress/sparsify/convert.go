package sparsify

import (
	"cmp"
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// FromSpeed makes a performance profile of the times with one structure in the original format.
// It returns nil for operation counts, or if the model's time is missing.
func FromSpeed(s *study.Speed, layers []study.Layer, of study.Structure) *Profile {
	if s == nil || s.Counted {
		return nil
	}
	whole, ok := s.Latency.Best()
	if !ok {
		return nil
	}
	p := &Profile{Name: s.Name, BatchSize: max(1, s.Batch), CoreCount: s.Threads, PruningEstimations: true, PruningStructure: structureName(of)}
	if s.KernelSet != "" {
		p.InstructionSets = []string{s.KernelSet}
	}
	b := &Baseline{Model: ModelBaseline{whole}, Ops: []OpBaseline{}}
	q := &PruningSeries{Ops: []OpSeries{}}
	saved := map[float64]float64{}
	for _, t := range s.Layers {
		base, ok := t.Latency.Best()
		if !ok || t.Layer < 0 || t.Layer >= len(layers) {
			continue
		}
		l := &layers[t.Layer]
		b.Ops = append(b.Ops, OpBaseline{ID: l.ID, Name: l.Name, Index: &l.Node, Measurement: base})
		op := OpSeries{ID: l.ID, Name: l.Name, Index: &l.Node, Series: Series{BaselineKey: ownKey(l)}}
		op.Measurements = Measurements{entry(op.BaselineKey, base)}
		for _, x := range s.Points {
			if x.Layer != t.Layer || !plain(x.Change, of) || Key(x.Change.Level) == op.BaselineKey {
				continue
			}
			v, ok := x.Latency.Best()
			if r, is := x.Ratio.Best(); is {
				v, ok = base*r, true
			}
			if ok {
				op.Measurements = append(op.Measurements, entry(Key(x.Change.Level), v))
				saved[x.Change.Level] += base - v
			}
		}
		q.Ops = append(q.Ops, op)
	}
	q.Model = Series{BaselineKey: "0.0", Measurements: Measurements{entry("0.0", whole)}}
	for at, v := range saved {
		q.Model.Measurements = append(q.Model.Measurements, entry(Key(at), whole-v))
	}
	q.sort()
	p.Analysis.Baseline, p.Analysis.Pruning = b, q
	return p
}

// FromLoss makes a loss profile of the losses with one structure. Metrics for which higher is
// better become drops from the unchanged model.
func FromLoss(s *study.Loss, layers []study.Layer, of study.Structure) *Profile {
	if s == nil {
		return nil
	}
	p := &Profile{Name: s.Name, PruningEstimations: true, PruningStructure: structureName(of), PruningEstimationType: "weight_magnitude"}
	if s.Method != study.Magnitude {
		p.PruningEstimationType = "one_shot"
	}
	base, _ := s.Base.Best()
	q := &PruningSeries{Ops: []OpSeries{}}
	b := &Baseline{Ops: []OpBaseline{}}
	at := map[int]int{}
	sums := map[float64]float64{}
	for _, x := range s.Points {
		v, ok := x.Value.Best()
		if !ok || x.Layer < 0 || x.Layer >= len(layers) || !plain(x.Change, of) {
			continue
		}
		if s.Higher {
			v = base - v
		}
		i, ok := at[x.Layer]
		if !ok {
			l := &layers[x.Layer]
			i = len(q.Ops)
			at[x.Layer] = i
			b.Ops = append(b.Ops, OpBaseline{ID: l.ID, Name: l.Name, Index: &l.Node})
			q.Ops = append(q.Ops, OpSeries{ID: l.ID, Name: l.Name, Index: &l.Node, Series: Series{BaselineKey: "0.0", Measurements: Measurements{entry("0.0", 0)}}})
		}
		q.Ops[i].Measurements = append(q.Ops[i].Measurements, entry(Key(x.Change.Level), v))
		sums[x.Change.Level] += v
	}
	q.Model = Series{BaselineKey: "0.0", Measurements: Measurements{entry("0.0", 0)}}
	for level, v := range sums {
		q.Model.Measurements = append(q.Model.Measurements, entry(Key(level), v))
	}
	q.sort()
	p.Analysis.Baseline, p.Analysis.Pruning = b, q
	return p
}

// plain reports whether a change has one structure and keeps the format.
func plain(c study.Change, of study.Structure) bool {
	return c.Structure == of && c.Format == study.OriginalFormat && c.Level > 0
}

func entry(key string, v float64) Measurement { return Measurement{Name: key, Value: v} }

// ownKey is the key of the unpruned layer: its share of zero weights.
func ownKey(l *study.Layer) string {
	if l.Zeros == 0 || l.Weights() == 0 {
		return "0.0"
	}
	return Key(float64(l.Zeros) / float64(l.Weights()))
}

// sort puts measurements in the order of levels.
func (q *PruningSeries) sort() {
	by := func(a, b Measurement) int {
		x, _ := level(a.Name)
		y, _ := level(b.Name)
		return cmp.Compare(x, y)
	}
	sorting.Stable(q.Model.Measurements, by)
	for i := range q.Ops {
		sorting.Stable(q.Ops[i].Measurements, by)
	}
}

// structures are names in loss profiles.
var structures = map[study.Structure]string{
	study.Unstructured: "unstructured", study.Block4: "block_4", study.Block1x4: "block_4", study.Channel: "channel", study.Filter: "filter",
}

func structureName(s study.Structure) string { return cmp.Or(structures[s], string(s)) }

func structureNamed(name string) study.Structure {
	switch name {
	case "block_4":
		return study.Block4
	case "channel", "filter":
		return study.Structure(name)
	}
	return study.Unstructured
}

// method of figures from a Sparsify file.
const method = "from a Sparsify profile"

// ToSpeed converts a Sparsify profile to a performance profile of a study. Layers are matched by
// the name of their first output; unmatched are those that the study lacks. A layer whose
// baseline is not at level 0 was already pruned: that level is its unchanged time.
func ToSpeed(p *Profile, layers []study.Layer) (s *study.Speed, unmatched []string) {
	s = &study.Speed{SpeedSettings: study.SpeedSettings{Name: p.Name, Target: "sparsify", Batch: p.BatchSize, Threads: p.CoreCount}, Done: true}
	if base, _, _ := p.times(); base > 0 {
		s.Latency = profile.Value(profile.Imported, base, method)
	}
	of := structureNamed(p.PruningStructure)
	at, done := byID(layers), map[int]bool{}
	found, unmatched := p.prunedLayers(layers)
	for _, l := range found {
		done[l.layer] = true
		s.Layers = append(s.Layers, study.LayerTime{Layer: l.layer, Latency: profile.Value(profile.Imported, l.base, method)})
		for _, v := range l.points {
			x := study.SpeedPoint{Layer: l.layer, Change: study.Change{Structure: of, Level: v.sparsity}, Latency: profile.Value(profile.Imported, v.value, method)}
			if l.base > 0 {
				x.Ratio = profile.Value(profile.Imported, v.value/l.base, method)
			}
			s.Points = append(s.Points, x)
			s.Changes = addChange(s.Changes, x.Change)
		}
	}
	if p.Analysis.Baseline != nil {
		for _, op := range p.Analysis.Baseline.Ops {
			if i, ok := at[op.ID]; ok && !done[i] {
				s.Layers = append(s.Layers, study.LayerTime{Layer: i, Latency: profile.Value(profile.Imported, op.Measurement, method)})
			}
		}
	}
	return s, unmatched
}

// ToLoss converts a Sparsify profile to a loss profile of a study.
func ToLoss(p *Profile, layers []study.Layer) (s *study.Loss, unmatched []string) {
	s = &study.Loss{LossSettings: study.LossSettings{Name: p.Name, Method: study.Magnitude, Metric: "magnitude", Choice: "magnitude"}, Done: true}
	if p.PruningEstimationType == "one_shot" {
		s.Method, s.Metric = study.OneShot, "kl"
	}
	of := structureNamed(p.PruningStructure)
	found, unmatched := p.prunedLayers(layers)
	for _, l := range found {
		for _, v := range l.points {
			c := study.Change{Structure: of, Level: v.sparsity}
			s.Points = append(s.Points, study.LossPoint{Layer: l.layer, Change: c, Value: profile.Value(profile.Imported, v.value-l.base, method)})
			s.Changes = addChange(s.Changes, c)
		}
	}
	return s, unmatched
}

// prunedLayer has the unpruned value of a layer of a study and those at other levels.
type prunedLayer struct {
	layer  int
	base   float64
	points []point
}

// prunedLayers finds the layers of a profile's operators. unmatched are operators without a layer
// or without a baseline.
func (p *Profile) prunedLayers(layers []study.Layer) (out []prunedLayer, unmatched []string) {
	if p.Analysis.Pruning == nil {
		return nil, nil
	}
	at := byID(layers)
	for _, op := range p.Analysis.Pruning.Ops {
		i, ok := at[op.ID]
		base, is := op.baseline()
		if !ok || !is {
			unmatched = append(unmatched, op.ID)
			continue
		}
		l := prunedLayer{layer: i, base: base}
		for _, m := range op.Measurements {
			if level, _ := level(m.Name); m.Name != op.BaselineKey && level != 0 {
				l.points = append(l.points, point{level, m.Value})
			}
		}
		out = append(out, l)
	}
	return out, unmatched
}

func addChange(cs []study.Change, c study.Change) []study.Change {
	if slices.Contains(cs, c) {
		return cs
	}
	return append(cs, c)
}

func byID(layers []study.Layer) map[string]int {
	out := map[string]int{}
	for i, l := range layers {
		if _, ok := out[l.ID]; !ok {
			out[l.ID] = i
		}
	}
	return out
}

// Plan returns Sparsify's allocation as a plan of a study, from its own profiles or those of the
// study. Nodes without a layer are left out.
func Plan(a *Analysis, layers []study.Layer, perf, loss *Profile, s Settings) (*study.Plan, *Allocation) {
	got := Allocate(a, perf, loss, s)
	p := &study.Plan{Compat: "sparsify", Goal: study.Goal{Sparsity: &s.Sparsity}, Choices: make([]study.Choice, len(layers))}
	if perf != nil {
		p.Speed = perf.Name
	}
	if loss != nil {
		p.Loss = loss.Name
	}
	for i := range layers {
		p.Choices[i] = study.Choice{Layer: i, Cause: study.Excluded}
	}
	at := byID(layers)
	for k, l := range got.Layers {
		i, ok := at[l.NodeID]
		if !ok {
			continue
		}
		c := &p.Choices[i]
		c.TimeS = l.Time
		switch {
		case l.Sparsity != nil && *l.Sparsity > 0:
			c.Cause, c.Change = "", study.Change{Structure: structureNamed(s.MaskType), Level: *l.Sparsity}
		case k == 0:
			c.Cause = study.First
		}
	}
	m := got.Model
	o := &p.Predicted
	if m.Time != nil {
		o.LatencyS = profile.Value(profile.Estimated, *m.Time, "sparsify")
		o.Speedup = profile.Value(profile.Estimated, *m.TimeGain, "sparsify")
	}
	if m.Params != nil {
		o.Params = new(int64(*m.Params))
		o.Zeros = new(int64(*m.ParamsBaseline) - int64(*m.Params))
	}
	return p, got
}
