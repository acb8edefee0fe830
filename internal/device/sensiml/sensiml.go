// Package sensiml is the protocol of SensiML Knowledge Packs: JSON lines with the cycles of
// feature generators and classifier. The public package sensiml parses them; this package turns
// them into inferences.
package sensiml

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/sensiml"
)

// silentResults is the number of classes without a figure after which a pack counts as built
// without profiling.
const silentResults = 50

// Protocol returns the protocol for a pack with a model.json, or nil if absent: layers are
// then numbered slots.
func Protocol(p *sensiml.Pack) *device.Protocol {
	return &device.Protocol{
		Name:   "sensiml",
		Title:  "SensiML Knowledge Pack",
		Speeds: []int{115200, 460800, 921600},
		Sure:   sensiml.Sure,
		Run:    func(ctx context.Context, c *device.Conn, j *device.Job) error { return run(ctx, c, j, p) },
	}
}

// session is a run of the protocol.
type session struct {
	j    *device.Job
	live *sensiml.Live
	// first is the layer index of each model's first generator.
	first   []int
	results int
}

func run(ctx context.Context, c *device.Conn, j *device.Job, p *sensiml.Pack) error {
	s := &session{j: j, live: sensiml.NewLive(p, sensiml.Rules{})}
	var d sensiml.Decoder
	var failed error
	take := func(m *sensiml.Message) bool {
		if m.Kind == sensiml.KindResult {
			s.results++
		}
		failed = s.inferences(s.live.Add(m))
		return failed == nil
	}
	for {
		x, err := c.Read(ctx, 0)
		if x.Gap {
			d.Gap()
		}
		d.Feed(x.Data, take)
		switch {
		case failed != nil:
			return s.end(&d, failed)
		case err != nil:
			d.End(take)
			if failed == nil {
				failed = s.inferences(s.live.End())
			}
			if errors.Is(failed, device.ErrEnough) {
				err = failed
			}
			return s.end(&d, s.why(err))
		case !s.live.Started() && s.results >= silentResults:
			return errors.New("the pack prints classes and no figures: build it with debug and profile, for a processor that can be profiled")
		}
	}
}

// why explains a stream that ended without figures.
func (s *session) why(err error) error {
	if s.live.Started() || s.results == 0 {
		return err
	}
	return fmt.Errorf("%d results came and no figures: build the pack with debug and profile: %w", s.results, err)
}

// inferences passes inferences to the recorder, the description before the first.
func (s *session) inferences(list []sensiml.LiveInference) error {
	if len(list) > 0 && !s.j.Described() {
		if err := s.describe(); err != nil {
			return err
		}
	}
	key := "cpu_cycles"
	by := 1.0
	if s.live.Unit() == "ns" {
		key, by = "latency_s", 1e-9
	}
	for _, x := range list {
		in := device.Inference{Whole: map[string]float64{}, Partial: len(x.Bad) > 0}
		for i, v := range x.Figures {
			if !math.IsNaN(v) {
				in.Layers = append(in.Layers, device.LayerFigures{Layer: s.first[x.Model] + i, Figures: map[string]float64{key: v * by}})
			}
		}
		for _, i := range x.Bad {
			s.j.Lost(s.first[x.Model]+i, 1, profile.ByRecord, "a figure that contradicts the device's own times or lies far outside all others: a damaged digit")
		}
		if err := s.j.Inference(in); err != nil {
			return err
		}
	}
	return nil
}

// describe creates the layers: generators and classifier of each model.
func (s *session) describe() error {
	models := s.live.Models()
	p := &profile.Profile{Model: profile.Model{Name: "sensiml", Format: "sensiml"}, Layers: []profile.Layer{}}
	p.Target.Engine = "SensiML Knowledge Pack"
	for i := range models {
		m := &models[i]
		s.first = append(s.first, len(p.Layers))
		one := sensiml.Layers(m)
		name := cmp.Or(m.Name, fmt.Sprintf("model %d", m.Index))
		if len(models) == 1 {
			p.Model.Name = name
		}
		for k := range one {
			l := one[k]
			l.Index = int64(len(p.Layers))
			if len(models) > 1 {
				l.Name = name + ": " + l.Name
			}
			p.Layers = append(p.Layers, l)
		}
	}
	unit := device.Cycles
	if s.live.Unit() == "ns" {
		unit = device.Nanoseconds
	}
	if err := s.j.Describe(p, nil); err != nil {
		return err
	}
	s.j.Clock(0, unit)
	if len(models) > 1 {
		s.j.Found("sensiml.models", profile.Info, "The pack has %d models, whose layers are named after them. Totals are of one inference of each; opmeter device sensiml shows the models by themselves.", len(models))
	}
	return nil
}

// passing are findings about the last inferences only, whose losses were reported one by one.
var passing = map[string]bool{"sensiml.outlier": true, "sensiml.contradiction": true, "sensiml.second": true, "sensiml.from_times": true, "sensiml.first": true}

// end reports the final findings.
func (s *session) end(d *sensiml.Decoder, err error) error {
	if !s.j.Described() {
		return err
	}
	res := s.live.Result()
	d.To(res)
	for _, f := range res.Findings {
		if passing[f.ID] {
			continue
		}
		severity := profile.Info
		if f.Warning {
			severity = profile.Warning
		}
		s.j.Found(f.ID, severity, "%s", f.Text)
	}
	for _, i := range s.live.Late() {
		s.j.Found("sensiml.late", profile.Warning, "Model %d began to print when the layers were told of already, and has none: name the pack's model.json, or measure again.", i)
	}
	s.counts(res)
	return err
}

// counts adds the number of results by class to the profile.
func (s *session) counts(res *sensiml.Result) {
	for i := range res.Models {
		m := &res.Models[i]
		if m.Results == 0 {
			continue
		}
		text := ""
		for k, c := range m.Classes {
			if k == 20 {
				text += ", and others"
				break
			}
			if k > 0 {
				text += ", "
			}
			text += fmt.Sprintf("%s %d", cmp.Or(c.Label, fmt.Sprintf("class %d", c.Number)), c.N)
		}
		s.j.Found("sensiml.classes", profile.Info, "%s gave %d results: %s.", cmp.Or(m.Name, fmt.Sprintf("Model %d", m.Index)), m.Results, cmp.Or(text, "values"))
	}
}
