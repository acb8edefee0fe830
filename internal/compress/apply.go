package compress

import (
	"errors"
	"fmt"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/study"
)

// changedModel is a model with a plan applied.
type changedModel struct {
	m *graph.Model
	// effects are by choice of the plan that changes something, of the layers at the same places.
	effects []rewrite.Effect
	layers  []int
}

// applied makes the model of a plan. ranges are those of activations of 8 bits, nil for the plan's own, else for made data.
func (j *Job) applied(p *study.Plan, ranges map[string]rewrite.Range) (c changedModel, err error) {
	var changes []rewrite.Change
	remove := false
	if ranges == nil && p.Ranges != nil {
		ranges = map[string]rewrite.Range{}
		for name, r := range p.Ranges {
			ranges[name] = rewrite.Range{Lo: r[0], Hi: r[1]}
		}
	}
	for _, x := range p.Choices {
		if x.Change.IsZero() {
			continue
		}
		changes = append(changes, rewrite.Change{Layer: j.Layers[x.Layer], Change: x.Change})
		c.layers = append(c.layers, x.Layer)
		remove = remove || x.Change.Structure == study.Channel || x.Change.Structure == study.Filter
	}
	c.m, c.effects, err = rewrite.Apply(j.m, changes, rewrite.Options{Remove: remove, Ranges: ranges})
	return c, err
}

// Plan finds a plan by name, "" for the last one.
func (j *Job) plan(name string) (*study.Plan, error) {
	all := j.Study().Plans
	switch {
	case len(all) == 0:
		return nil, wrong("Plan", "the study has no plan")
	case name == "":
		return all[len(all)-1], nil
	}
	if p := j.Study().Plan(name); p != nil {
		return p, nil
	}
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.Name
	}
	return nil, wrong("Plan", "the study has no plan %q, but %q", name, names)
}

// Applied is a compressed model.
type Applied struct {
	// Data is its file.
	Data []byte
	// Graph is the model.
	Graph *graph.Model
	// Refused are layers that stayed as they are though the plan changes them, with the reasons.
	Refused map[int]study.Cause
}

// Apply writes the model of a plan; "" is the last one.
func (j *Job) Apply(name string, ranges map[string]rewrite.Range) (*Applied, error) {
	p, err := j.plan(name)
	if err != nil {
		return nil, err
	}
	c, err := j.applied(p, ranges)
	if err != nil {
		return nil, err
	}
	out := &Applied{Graph: c.m, Refused: map[int]study.Cause{}}
	for i, e := range c.effects {
		if e.Cause != "" {
			out.Refused[c.layers[i]] = e.Cause
		}
	}
	if len(c.effects) > 0 && len(out.Refused) == len(c.effects) {
		return nil, fmt.Errorf("the plan %q changes nothing: %w", p.Name, errNothing)
	}
	out.Data, err = rewrite.Encode(c.m)
	return out, err
}

// errNothing tells that no change of a plan could be made.
var errNothing = errors.New("no layer can be changed as it says")
