// Package studies turns the results of a compression study into profiles, so that they can be
// compared with others.
package studies

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// Named is a profile with what it is of.
type Named struct {
	Name    string
	Profile *profile.Profile
}

// Profiles returns what a study holds: the unchanged model by each performance profile, and the
// compressed model of each plan, as measured or else as predicted. Only predicted plans have times
// of layers: a study measures the whole model.
func Profiles(s *study.Study) []Named {
	var out []Named
	for _, x := range s.Speeds {
		out = append(out, Named{x.Name, unchanged(s, x)})
	}
	for _, x := range s.Plans {
		p := planned(s, x)
		if p.Totals.Latency == nil && len(p.Totals.Figures) == 0 && p.Totals.Params == nil {
			continue
		}
		out = append(out, Named{x.Name, p})
	}
	return out
}

// unchanged is the profile of the model before compression.
func unchanged(s *study.Study, x *study.Speed) *profile.Profile {
	p := base(s, x, x.Created)
	p.Totals.Latency, p.Totals.Energy = x.Latency, x.Energy
	for _, t := range x.Layers {
		if l := layerOf(p, t.Layer); l != nil {
			l.Latency, l.Energy, l.Kernel = t.Latency, t.Energy, t.Kernel
			if l.Ops == nil {
				l.Ops = t.Ops
			}
		}
	}
	var params, macs int64
	counted := true
	for i := range s.Layers {
		l := &s.Layers[i]
		params += l.Params
		if counted = counted && l.MACs != nil; counted {
			macs += *l.MACs
		}
	}
	p.Totals.Params = &params
	if counted && len(s.Layers) > 0 {
		p.Totals.MACs = &macs
	}
	if l := lossOf(s, ""); l != nil {
		setLoss(p, l, l.Base)
	}
	return p
}

// planned is the profile of the compressed model of a plan.
func planned(s *study.Study, x *study.Plan) *profile.Profile {
	i := slices.IndexFunc(s.Speeds, func(y *study.Speed) bool { return y.Name == x.Speed })
	speed := &study.Speed{SpeedSettings: study.SpeedSettings{Target: "host"}}
	if i >= 0 {
		speed = s.Speeds[i]
	}
	p := base(s, speed, x.Created)
	o := &x.Predicted
	if x.Measured != nil {
		o = x.Measured
	} else {
		p.Target.Kind = profile.TargetSimulator
	}
	t := &p.Totals
	t.Latency, t.Energy, t.Params, t.WeightsBytes, t.MACs = o.LatencyS, o.Energy, o.Params, o.Bytes, o.MACs
	for _, c := range x.Choices {
		if l := layerOf(p, c.Layer); l != nil {
			// The layer is another one now: what it was counts for nothing.
			l.Params, l.MACs = nil, nil
			if c.TimeS != nil && x.Measured == nil {
				l.Latency = profile.Value(profile.Estimated, *c.TimeS, "prediction of the study")
			}
			if c.Change.IsZero() {
				l.Params, l.MACs = &s.Layers[c.Layer].Params, s.Layers[c.Layer].MACs
			}
		}
	}
	if l := lossOf(s, x.Loss); l != nil {
		setLoss(p, l, after(l, o.Loss))
	}
	return p
}

// after is the metric of a compressed model. Of metrics where more is better, an outcome has the
// decrease.
func after(l *study.Loss, loss *profile.Metric) *profile.Metric {
	if !l.Higher {
		return loss
	}
	base, ok := l.Base.Best()
	drop, also := loss.Best()
	if !ok || !also {
		return nil
	}
	return profile.Value(loss.Kind, base-drop, loss.Method)
}

// base is a profile of the study's layers without figures.
func base(s *study.Study, x *study.Speed, created time.Time) *profile.Profile {
	p := &profile.Profile{Schema: profile.SchemaV1, Model: s.Model, Target: profile.Target{ID: cmp.Or(x.Target, "host"), Kind: profile.TargetSimulator}}
	if !created.IsZero() {
		p.Created = created.UTC().Format(time.RFC3339)
	}
	if p.Target.ID == "host" {
		p.Target.Kind = profile.TargetHost
	}
	p.Settings.Engine = cmp.Or(x.Engine, "opmeter")
	if x.Threads > 0 {
		p.Settings.Threads = new(int64(x.Threads))
	}
	if x.Batch > 0 {
		p.Settings.Batch = new(int64(x.Batch))
	}
	p.Layers = make([]profile.Layer, len(s.Layers))
	for i := range s.Layers {
		l := &s.Layers[i]
		p.Layers[i] = profile.Layer{
			Index: int64(i), Op: l.Op, Name: l.Name, State: profile.Ran, MACs: l.MACs, Params: &l.Params,
			Provenance: &profile.Provenance{Confidence: profile.Exact},
		}
		nodes := l.Nodes
		if len(nodes) == 0 {
			nodes = []int{l.Node}
		}
		for _, n := range nodes {
			p.Layers[i].Provenance.SourceNodes = append(p.Layers[i].Provenance.SourceNodes, profile.SourceNode{Graph: int64(l.Graph), Node: int64(n)})
		}
	}
	return p
}

// layerOf returns a layer of the study, nil for a position that it does not have.
func layerOf(p *profile.Profile, i int) *profile.Layer {
	if i < 0 || i >= len(p.Layers) {
		return nil
	}
	return &p.Layers[i]
}

// lossOf finds a loss profile by its name, or the only one.
func lossOf(s *study.Study, name string) *study.Loss {
	for _, l := range s.Losses {
		if l.Name == name || name == "" && len(s.Losses) == 1 {
			return l
		}
	}
	return nil
}

// setLoss stores the accuracy or loss of the model under the name of its metric.
func setLoss(p *profile.Profile, l *study.Loss, m *profile.Metric) {
	if m == nil || l.Metric == "" {
		return
	}
	q := profile.Quantity{Key: "study_" + l.Metric, Name: metricName(l.Metric), Group: "Accuracy", Better: -1, Model: true, Doc: fmt.Sprintf("%s by the method %s of the study.", metricName(l.Metric), l.Method)}
	if l.Higher {
		q.Better = 1
	}
	if p.Totals.Set(q.Key, m) == nil {
		p.Quantities = append(p.Quantities, q)
	}
}

func metricName(metric string) string {
	switch metric {
	case "relative_error":
		return "relative output error"
	case "snr_db":
		return "output SNR, dB"
	case "cosine":
		return "cosine of outputs"
	case "kl":
		return "KL divergence of outputs"
	case "top1":
		return "equal top-1 class"
	}
	return metric
}
