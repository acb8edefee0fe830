package study

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/opmeter/opmeter/profile"
)

// Record is an entry of a study's journal: exactly one of its fields is set.
type Record struct {
	// Speed, Loss, Plan and Bench add an item, or replace the one of that name with all its
	// points.
	Speed *Speed `json:"speed,omitzero"`
	Loss  *Loss  `json:"loss,omitzero"`
	Plan  *Plan  `json:"plan,omitzero"`
	Bench *Bench `json:"bench,omitzero"`
	// SpeedPoints, LossPoints and BenchPoints add to the item of that name.
	SpeedPoints *SpeedPoints `json:"speed_points,omitzero"`
	LossPoints  *LossPoints  `json:"loss_points,omitzero"`
	BenchPoints *BenchPoints `json:"bench_points,omitzero"`
	// Removed deletes an item.
	Removed *Removed `json:"removed,omitzero"`
}

// SpeedPoints adds results to a performance profile. A point of the same layer and change
// replaces the earlier one.
type SpeedPoints struct {
	Name    string          `json:"name"`
	Latency *profile.Metric `json:"latency_s,omitzero"`
	Energy  *profile.Metric `json:"energy_j,omitzero"`
	Layers  []LayerTime     `json:"layers,omitzero"`
	Points  []SpeedPoint    `json:"points,omitzero"`
	Mixed   []MixedModel    `json:"mixed,omitzero"` // measured last
	Done    bool            `json:"done,omitzero"`
}

// LossPoints adds results to a loss profile, like [SpeedPoints].
type LossPoints struct {
	Name          string          `json:"name"`
	Base          *profile.Metric `json:"base,omitzero"`
	InputEnergies []InputEnergy   `json:"energies,omitzero"`
	Anchors       []LossPoint     `json:"anchors,omitzero"`
	Points        []LossPoint     `json:"points,omitzero"`
	Done          bool            `json:"done,omitzero"`
}

// BenchPoints adds results to a benchmark. A point of the same engine, threads and batch replaces
// the earlier one.
type BenchPoints struct {
	Name   string       `json:"name"`
	Points []BenchPoint `json:"points,omitzero"`
}

// Removed names a deleted item.
type Removed struct {
	// Kind is "speed", "loss", "plan" or "bench".
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// begin is the first record of a file.
type begin struct {
	Study   string        `json:"study"`
	Created time.Time     `json:"created"`
	Model   profile.Model `json:"model"`
	Layers  []Layer       `json:"layers"`
}

// opened records the process that works on the study, for the error message of others.
type opened struct {
	PID int       `json:"pid"`
	At  time.Time `json:"at"`
}

// stored is a record as encoded in the file.
type stored struct {
	Begin  *begin  `json:"begin,omitzero"`
	Opened *opened `json:"opened,omitzero"`
	Record
}

// pointKey identifies a point of a profile.
type pointKey struct {
	layer  int
	change Change
}

// state is a study with an index of its points.
type state struct {
	Study
	speeds, losses map[string]map[pointKey]int
	owner          int // PID of the process that opened it last
}

// apply applies a record. A record that does not fit gives an error and changes nothing.
func (s *state) apply(r *stored) error {
	switch {
	case r.Opened != nil:
		s.owner = r.Opened.PID
	case r.Speed != nil:
		if err := errors.Join(checkName(r.Speed.Name), s.checkSpeed(r.Speed.Layers, r.Speed.Points), s.checkMixed(r.Speed.Mixed), checkMetrics(r.Speed.Latency, r.Speed.Energy)); err != nil {
			return err
		}
		p := *r.Speed
		p.Points, p.Layers, p.Mixed = nil, slices.Clone(p.Layers), slices.Clone(p.Mixed)
		s.speeds[p.Name] = map[pointKey]int{}
		s.Speeds = replaceOrAppend(s.Speeds, &p, func(x *Speed) string { return x.Name })
		s.addSpeed(&p, r.Speed.Points)
	case r.Loss != nil:
		if err := errors.Join(checkName(r.Loss.Name), s.checkLoss(r.Loss.Points), s.checkLoss(r.Loss.Anchors), s.checkEnergies(r.Loss.InputEnergies), checkMetrics(r.Loss.Base)); err != nil {
			return err
		}
		p := *r.Loss
		p.Points, p.InputEnergies, p.Anchors = nil, slices.Clone(p.InputEnergies), slices.Clone(p.Anchors)
		s.losses[p.Name] = map[pointKey]int{}
		s.Losses = replaceOrAppend(s.Losses, &p, func(x *Loss) string { return x.Name })
		s.addLoss(&p, r.Loss.Points)
	case r.Plan != nil:
		if err := errors.Join(checkName(r.Plan.Name), s.checkPlan(r.Plan)); err != nil {
			return err
		}
		s.Plans = replaceOrAppend(s.Plans, r.Plan, func(x *Plan) string { return x.Name })
	case r.Bench != nil:
		if err := errors.Join(checkName(r.Bench.Name), checkBench(r.Bench.Points)); err != nil {
			return err
		}
		b := *r.Bench
		b.Points = slices.Clone(b.Points)
		s.Benches = replaceOrAppend(s.Benches, &b, func(x *Bench) string { return x.Name })
	default:
		return s.applyAddition(r)
	}
	return nil
}

// applyAddition applies a record that adds to an item or deletes it.
func (s *state) applyAddition(r *stored) error {
	switch {
	case r.SpeedPoints != nil:
		a := r.SpeedPoints
		p := s.Speed(a.Name)
		if p == nil {
			return fmt.Errorf("points of an unknown performance profile %q", a.Name)
		}
		if err := errors.Join(s.checkSpeed(a.Layers, a.Points), s.checkMixed(a.Mixed), checkMetrics(a.Latency, a.Energy)); err != nil {
			return err
		}
		if a.Latency != nil {
			p.Latency = a.Latency
		}
		if a.Energy != nil {
			p.Energy = a.Energy
		}
		if a.Layers != nil {
			p.Layers = slices.Clone(a.Layers)
		}
		s.addSpeed(p, a.Points)
		p.Mixed = append(p.Mixed, a.Mixed...)
		p.Done = p.Done || a.Done
	case r.LossPoints != nil:
		a := r.LossPoints
		p := s.Loss(a.Name)
		if p == nil {
			return fmt.Errorf("points of an unknown loss profile %q", a.Name)
		}
		if err := errors.Join(s.checkLoss(a.Points), s.checkLoss(a.Anchors), s.checkEnergies(a.InputEnergies), checkMetrics(a.Base)); err != nil {
			return err
		}
		if a.Base != nil {
			p.Base = a.Base
		}
		for _, e := range a.InputEnergies {
			if i := slices.IndexFunc(p.InputEnergies, func(x InputEnergy) bool { return x.Layer == e.Layer }); i >= 0 {
				p.InputEnergies[i] = e
			} else {
				p.InputEnergies = append(p.InputEnergies, e)
			}
		}
		p.Anchors = append(p.Anchors, a.Anchors...)
		s.addLoss(p, a.Points)
		p.Done = p.Done || a.Done
	case r.BenchPoints != nil:
		b := s.Bench(r.BenchPoints.Name)
		if b == nil {
			return fmt.Errorf("points of an unknown benchmark %q", r.BenchPoints.Name)
		}
		if err := checkBench(r.BenchPoints.Points); err != nil {
			return err
		}
		for _, x := range r.BenchPoints.Points {
			same := func(y BenchPoint) bool { return y.Engine == x.Engine && y.Threads == x.Threads && y.Batch == x.Batch }
			if i := slices.IndexFunc(b.Points, same); i >= 0 {
				b.Points[i] = x
			} else {
				b.Points = append(b.Points, x)
			}
		}
	case r.Removed != nil:
		s.remove(r.Removed)
	}
	return nil // unknown records come from a later version
}

func (s *state) remove(r *Removed) {
	switch r.Kind {
	case "speed":
		s.Speeds = slices.DeleteFunc(s.Speeds, func(p *Speed) bool { return p.Name == r.Name })
		delete(s.speeds, r.Name)
	case "loss":
		s.Losses = slices.DeleteFunc(s.Losses, func(p *Loss) bool { return p.Name == r.Name })
		delete(s.losses, r.Name)
	case "plan":
		s.Plans = slices.DeleteFunc(s.Plans, func(p *Plan) bool { return p.Name == r.Name })
	case "bench":
		s.Benches = slices.DeleteFunc(s.Benches, func(p *Bench) bool { return p.Name == r.Name })
	}
}

func (s *state) addSpeed(p *Speed, points []SpeedPoint) {
	at := s.speeds[p.Name]
	for _, x := range points {
		k := pointKey{x.Layer, x.Change}
		if i, ok := at[k]; ok {
			p.Points[i] = x
			continue
		}
		at[k] = len(p.Points)
		p.Points = append(p.Points, x)
	}
}

func (s *state) addLoss(p *Loss, points []LossPoint) {
	at := s.losses[p.Name]
	for _, x := range points {
		k := pointKey{x.Layer, x.Change}
		if i, ok := at[k]; ok {
			p.Points[i] = x
			continue
		}
		at[k] = len(p.Points)
		p.Points = append(p.Points, x)
	}
}

// replaceOrAppend replaces the element of the same name, or appends x.
func replaceOrAppend[T any](all []*T, x *T, name func(*T) string) []*T {
	if i := slices.IndexFunc(all, func(y *T) bool { return name(y) == name(x) }); i >= 0 {
		all[i] = x
		return all
	}
	return append(all, x)
}

// maxName bounds the names of profiles, plans and benchmarks, in bytes.
const maxName = 200

func checkName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("a name must have 1 to %d bytes, not %d", maxName, len(name))
	}
	return nil
}

// checkMetrics validates metrics; nil means unknown.
func checkMetrics(ms ...*profile.Metric) error {
	for _, m := range ms {
		if m == nil {
			continue
		}
		if err := m.Validate(); err != nil {
			return err
		}
	}
	return nil
}

func (s *state) checkLayer(i int) error {
	if i < 0 || i >= len(s.Layers) {
		return fmt.Errorf("layer %d of %d", i, len(s.Layers))
	}
	return nil
}

// Validate reports an invalid level.
func (c Change) Validate() error {
	if math.IsNaN(c.Level) || c.Level < 0 || c.Level > 1 {
		return fmt.Errorf("level %v: use 0 to 1", c.Level)
	}
	return nil
}

func (s *state) checkSpeed(layers []LayerTime, points []SpeedPoint) error {
	for _, l := range layers {
		if err := errors.Join(s.checkLayer(l.Layer), checkMetrics(l.Latency, l.Energy)); err != nil {
			return err
		}
	}
	for _, p := range points {
		if err := errors.Join(s.checkLayer(p.Layer), p.Change.Validate(), checkMetrics(p.Latency, p.Ratio, p.Energy, p.RestS, p.RestJ)); err != nil {
			return err
		}
		for _, o := range p.Affected {
			if err := errors.Join(s.checkLayer(o.Layer), checkMetrics(o.Ratio, o.Energy)); err != nil {
				return err
			}
		}
		for _, l := range p.With {
			if err := s.checkLayer(l); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *state) checkMixed(all []MixedModel) error {
	for _, m := range all {
		if len(m.Changes) > len(s.Layers) {
			return fmt.Errorf("a mixed model changes %d layers of %d", len(m.Changes), len(s.Layers))
		}
		for _, c := range m.Changes {
			if err := c.Validate(); err != nil {
				return err
			}
		}
		if err := checkMetrics(m.Ratio); err != nil {
			return err
		}
	}
	return nil
}

func (s *state) checkLoss(points []LossPoint) error {
	for _, p := range points {
		if err := errors.Join(s.checkLayer(p.Layer), p.Change.Validate(), checkMetrics(p.Value)); err != nil {
			return err
		}
		for _, l := range p.With {
			if err := s.checkLayer(l); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkEnergies checks that there is a mean for each column of each group, as pruning scores need
// them.
func (s *state) checkEnergies(all []InputEnergy) error {
	for _, e := range all {
		if err := s.checkLayer(e.Layer); err != nil {
			return err
		}
		l := &s.Layers[e.Layer]
		if want := l.Cols * max(l.Groups, 1); len(e.Means) != want || want == 0 {
			return fmt.Errorf("layer %d: %d input energies, expected %d", e.Layer, len(e.Means), want)
		}
		for _, x := range e.Means {
			if !(x >= 0) {
				return fmt.Errorf("layer %d: invalid input energy %v", e.Layer, x)
			}
		}
	}
	return nil
}

func (s *state) checkPlan(p *Plan) error {
	for _, c := range p.Choices {
		if err := errors.Join(s.checkLayer(c.Layer), c.Change.Validate()); err != nil {
			return err
		}
	}
	for _, i := range p.Goal.Exclude {
		if err := s.checkLayer(i); err != nil {
			return err
		}
	}
	for _, f := range p.Front {
		if len(f.Changes) > len(s.Layers) {
			return fmt.Errorf("a plan of the front changes %d layers of %d", len(f.Changes), len(s.Layers))
		}
	}
	out := []*Outcome{&p.Predicted}
	if p.Measured != nil {
		out = append(out, p.Measured)
	}
	for _, o := range out {
		if err := checkMetrics(o.LatencyS, o.Speedup, o.Loss, o.Energy); err != nil {
			return err
		}
	}
	return nil
}

func checkBench(points []BenchPoint) error {
	for _, p := range points {
		if err := checkMetrics(p.Before, p.After, p.Speedup); err != nil {
			return err
		}
	}
	return nil
}

// Speed returns the performance profile of that name, or nil.
func (s *Study) Speed(name string) *Speed {
	for _, p := range s.Speeds {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Loss returns the loss profile of that name, or nil.
func (s *Study) Loss(name string) *Loss {
	for _, p := range s.Losses {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Plan returns the plan of that name, or nil.
func (s *Study) Plan(name string) *Plan {
	for _, p := range s.Plans {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Bench returns the benchmark of that name, or nil.
func (s *Study) Bench(name string) *Bench {
	for _, p := range s.Benches {
		if p.Name == name {
			return p
		}
	}
	return nil
}
