package compare

import (
	"slices"

	"github.com/opmeter/opmeter/profile"
)

// figureRow is a figure of the whole model: where it stands, and what it is called.
type figureRow struct {
	key, label, unit string
	topic            Topic
	better           int64
	get              func(p *profile.Profile) Figure
}

// total is a row of a quantity.
func total(key, label string, topic Topic) figureRow {
	q, _ := profile.Lookup(key)
	return figureRow{key, label, q.Unit, topic, q.Better, func(p *profile.Profile) Figure { return of(p.Totals.Figure(key)) }}
}

// count is a row of a count outside of the table of quantities: less is better.
func count(key, label, unit string, topic Topic, get func(p *profile.Profile) *int64) figureRow {
	return figureRow{key, label, unit, topic, -1, func(p *profile.Profile) Figure {
		if n := get(p); n != nil {
			return exact(float64(*n))
		}
		return Figure{}
	}}
}

// seconds is a row of a time of a phase: one observation without an interval.
func seconds(key, label string, get func(ph *profile.Phases) *float64) figureRow {
	return figureRow{key, label, "s", Time, -1, func(p *profile.Profile) Figure {
		if p.Phases == nil {
			return Figure{}
		}
		return Figure{Value: get(p.Phases)}
	}}
}

func memory(get func(m *profile.Memory) *int64) func(p *profile.Profile) *int64 {
	return func(p *profile.Profile) *int64 {
		if p.Memory == nil {
			return nil
		}
		return get(p.Memory)
	}
}

// wholeRows lists the figures of the whole model.
var wholeRows = []figureRow{
	total("latency_s", "latency", Time),
	total("cpu_cycles", "CPU cycles", Time),
	total("accelerator_cycles", "accelerator cycles", Time),
	total("instructions", "instructions", Time),
	total("ticks", "ticks", Time),
	total("reference_latency_s", "normalised latency", Time),
	total("inferences_per_s", "throughput", Time),
	total("prefill_tokens_per_s", "prefill tokens/s", Time),
	total("decode_tokens_per_s", "decode tokens/s", Time),
	total("ttft_s", "time to first token", Time),
	total("tpot_s", "time per output token", Time),
	seconds("load_s", "load", func(ph *profile.Phases) *float64 { return added(ph.LoadS, ph.PlanS) }),
	seconds("first_run_s", "first run", func(ph *profile.Phases) *float64 { return ph.FirstRunS }),
	total("energy_j", "energy", Energy),
	{"process_peak_bytes", "peak memory", "B", Memory, -1, func(p *profile.Profile) Figure {
		if p.Memory == nil || p.Memory.ProcessPeakBytes == nil {
			return Figure{}
		}
		return Figure{Value: new(float64(*p.Memory.ProcessPeakBytes))} // it varies
	}},
	count("arena_bytes", "arena", "B", Memory, memory(func(m *profile.Memory) *int64 { return m.ArenaBytes })),
	count("peak_bytes", "peak of activations", "B", Memory, memory(func(m *profile.Memory) *int64 { return m.PeakBytes })),
	count("ram_bytes", "RAM", "B", Memory, func(p *profile.Profile) *int64 { return p.Totals.RAMBytes }),
	count("flash_bytes", "flash", "B", Size, func(p *profile.Profile) *int64 { return p.Totals.FlashBytes }),
	count("file_bytes", "file", "B", Size, func(p *profile.Profile) *int64 { return p.Model.FileBytes }),
	count("weights_bytes", "weights", "B", Size, func(p *profile.Profile) *int64 { return p.Totals.WeightsBytes }),
	count("params", "parameters", "", Size, func(p *profile.Profile) *int64 { return p.Totals.Params }),
	count("macs", "MACs", "", Work, func(p *profile.Profile) *int64 { return p.Totals.MACs }),
	count("ops", "operations", "", Work, func(p *profile.Profile) *int64 { return p.Totals.Ops }),
	count("moved_bytes", "bytes moved", "B", Work, func(p *profile.Profile) *int64 {
		if r, w := p.Totals.BytesRead, p.Totals.BytesWritten; r != nil && w != nil {
			return new(*r + *w)
		}
		return nil
	}),
	count("layers", "layers", "", Size, func(p *profile.Profile) *int64 { return p.Totals.Layers }),
	count("unsupported_layers", "unsupported layers", "", Size, func(p *profile.Profile) *int64 { return p.Totals.UnsupportedLayers }),
}

// difference is a row about the outputs compared with those of another engine.
func difference(key, label, unit string, better int64, get func(d *profile.Difference) *float64) figureRow {
	return figureRow{key, label, unit, Accuracy, better, func(p *profile.Profile) Figure {
		if d := worst(p.Differences); d != nil && d.State != profile.NotComparable {
			return Figure{Value: get(d)}
		}
		return Figure{}
	}}
}

// outputRows are the magnitudes of the output that differs most.
var outputRows = []figureRow{
	difference("output_steps", "output difference, steps", "", -1, func(d *profile.Difference) *float64 { return d.Steps }),
	difference("output_same", "equal output elements", "1", 1, func(d *profile.Difference) *float64 { return d.Same }),
	difference("output_relative", "relative output error", "1", -1, func(d *profile.Difference) *float64 { return d.MaxRelative }),
	difference("output_snr_db", "output SNR, dB", "", 1, func(d *profile.Difference) *float64 { return d.SNR }),
	difference("output_cosine", "cosine of outputs", "", 1, func(d *profile.Difference) *float64 { return d.Cosine }),
}

// accuracies are the quantities of the profiles' own that rate the outputs.
func (b *builder) accuracies() (out []figureRow) {
	seen := map[string]bool{}
	for _, p := range b.ps {
		for _, q := range p.Quantities {
			if q.Group != "Accuracy" || seen[q.Key] {
				continue
			}
			seen[q.Key] = true
			out = append(out, figureRow{q.Key, q.Name, q.Unit, Accuracy, q.Better, func(p *profile.Profile) Figure { return of(p.Totals.Figure(q.Key)) }})
		}
	}
	return out
}

// whole fills in the figures of the whole model that a run has.
func (b *builder) whole() {
	b.t.Whole = []Row{}
	for _, f := range slices.Concat(wholeRows, outputRows, b.accuracies()) {
		row := Row{Key: f.key, Label: f.label, Unit: f.unit, Topic: f.topic, Better: f.better}
		any := false
		for k := range b.ps {
			fs := make([]Figure, len(b.repeats[k]))
			for i, p := range b.repeats[k] {
				fs[i] = whole(p, f.key, f.get(p))
			}
			v := mean(fs)
			any = any || v.Value != nil && (f.key != "unsupported_layers" || *v.Value > 0)
			row.Figures = append(row.Figures, v)
		}
		if !any {
			continue
		}
		for k := range b.ps {
			r, why := Ratio{Verdict: Open}, b.whyNot[k][f.topic]
			if k > 0 {
				r = b.ratio(f.topic, k, row.Figures[k], row.Figures[0], b.same[k])
			}
			row.Ratios = append(row.Ratios, r)
			row.Comparable = append(row.Comparable, why == "")
			row.Why = append(row.Why, why)
		}
		b.t.Whole = append(b.t.Whole, row)
	}
}
