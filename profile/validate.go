package profile

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Validate checks what every reader relies on: the schema, known words, figures
// that are finite and not negative, intervals in order, references in range. The
// error names the field by its JSON path.
func (p *Profile) Validate() error {
	if p == nil {
		return errors.New("no profile")
	}
	c := &checker{}
	if p.Schema != SchemaV1 {
		c.fail("schema", "is %q, want %q", p.Schema, SchemaV1)
	}
	c.word("target.kind", string(p.Target.Kind), string(TargetHost), string(TargetSimulator), string(TargetDevice), string(TargetImport))
	c.need("model.name", p.Model.Name)
	c.need("target.id", p.Target.ID)
	c.hash("model.sha256", p.Model.SHA256)
	c.hash("model.structure_sha256", p.Model.StructureSHA256)
	c.hash("model.weights_sha256", p.Model.WeightsSHA256)
	c.counts("model", named{"file_bytes", p.Model.FileBytes}, named{"format_version", p.Model.FormatVersion})
	c.tensors("model.inputs", p.Model.Inputs)
	c.tensors("model.outputs", p.Model.Outputs)
	c.reals("target", realNamed{"clock_hz", p.Target.ClockHz},
		realNamed{"peak_ops_per_second", p.Target.PeakOpsPerSecond}, realNamed{"peak_bytes_per_second", p.Target.PeakBytesPerSecond})
	c.totals(&p.Totals)
	c.phases(p.Phases)
	c.peaks(&p.Target, len(p.Layers))
	c.boundParts(p.Bounds)
	c.reconcile(p.Reconcile)
	c.trust(p.Trust)
	c.memory(p.Memory, len(p.Layers))
	c.host(p.Host)
	c.settings(&p.Settings)
	for i := range p.Layers {
		c.layer(i, &p.Layers[i], len(p.Layers))
	}
	c.blocks(p.Blocks, len(p.Layers))
	c.quantities(p.Quantities)
	c.differences(p.Differences)
	c.otherEngine(p.Other)
	c.language(p.Language)
	if p.Timeline != nil && c.err == nil {
		if err := p.Timeline.Validate(len(p.Layers)); err != nil {
			c.fail("timeline."+err.Error(), "")
		}
	}
	c.missing(p.Incomplete, len(p.Layers))
	for i := range p.Findings {
		c.finding(fmt.Sprintf("findings[%d]", i), &p.Findings[i], len(p.Layers))
	}
	return c.err
}

// checker keeps the first fault it finds.
type checker struct{ err error }

func (c *checker) fail(at, format string, args ...any) {
	if c.err == nil {
		c.err = errors.New(strings.TrimSpace(at + " " + fmt.Sprintf(format, args...)))
	}
}

func (c *checker) need(at, s string) {
	if s == "" {
		c.fail(at, "is missing")
	}
}

func (c *checker) word(at, s string, words ...string) {
	if !slices.Contains(words, s) {
		c.fail(at, "is %q, want one of %q", s, words)
	}
}

func (c *checker) hash(at, s string) {
	if s == "" {
		return
	}
	ok := len(s) == 64
	for _, r := range s {
		ok = ok && (r >= '0' && r <= '9' || r >= 'a' && r <= 'f')
	}
	if !ok {
		c.fail(at, "is not 64 hexadecimal digits in lower case")
	}
}

func (c *checker) ref(at string, i *int64, n int) {
	if i != nil && (*i < 0 || *i >= int64(n)) {
		c.fail(at, "names layer %d of %d", *i, n)
	}
}

type named struct {
	name string
	v    *int64
}

type realNamed struct {
	name string
	v    *float64
}

type metricNamed struct {
	name string
	v    *Metric
}

func (c *checker) counts(at string, vs ...named) {
	for _, v := range vs {
		if v.v != nil && *v.v < 0 {
			c.fail(at+"."+v.name, "is %d", *v.v)
		}
	}
}

// within checks that a count is part of another.
func (c *checker) within(at string, part, of *int64) {
	if part != nil && (of == nil || *part > *of) {
		c.fail(at, "is %d, more than what it is a part of", *part)
	}
}

func (c *checker) reals(at string, vs ...realNamed) {
	for _, v := range vs {
		if v.v != nil && !(*v.v >= 0 && !math.IsInf(*v.v, 0)) {
			c.fail(at+"."+v.name, "is %v", *v.v)
		}
	}
}

func (c *checker) fraction(at string, v *float64) {
	if v != nil && !isFraction(*v) {
		c.fail(at, "is %v, want 0 to 1", *v)
	}
}

// isFraction reports whether a number is from 0 to 1; quotients may be a rounding above.
func isFraction(v float64) bool { return v >= 0 && v <= 1+1e-9 }

func (c *checker) metrics(at string, vs ...metricNamed) {
	for _, v := range vs {
		if v.v == nil {
			continue
		}
		if err := v.v.Validate(); err != nil {
			c.fail(at+"."+v.name+":", "%v", err)
		}
		if b, ok := v.v.Best(); ok && b < 0 {
			c.fail(at+"."+v.name, "is negative: %v", b)
		}
	}
}

func (c *checker) samples(at string, vs []float64) {
	for i, v := range vs {
		if !(v >= 0 && !math.IsInf(v, 0)) {
			c.fail(at, "has %v at %d", v, i)
		}
	}
}

func (c *checker) tensors(at string, ts []Tensor) {
	for i, t := range ts {
		for k, shape := range [][]int64{t.Shape, t.Declared} {
			for _, d := range shape {
				if d < -1 {
					c.fail(fmt.Sprintf("%s[%d].%s", at, i, [...]string{"shape", "declared"}[k]), "has dimension %d", d)
				}
			}
		}
		if n := len(t.DimNames); n > 0 && n != len(t.Declared) {
			c.fail(fmt.Sprintf("%s[%d].dim_names", at, i), "has %d names for %d dimensions", n, len(t.Declared))
		}
		for _, d := range t.Assumed {
			if d < 0 || d >= int64(len(t.Shape)) {
				c.fail(fmt.Sprintf("%s[%d].assumed", at, i), "names dimension %d of %d", d, len(t.Shape))
			}
		}
		if m := t.Made; m != nil {
			c.need(fmt.Sprintf("%s[%d].made.use", at, i), string(m.Use))
		}
		if t.Bytes != nil && *t.Bytes < 0 {
			c.fail(fmt.Sprintf("%s[%d].bytes", at, i), "is %d", *t.Bytes)
		}
		if t.Scale != nil && (math.IsNaN(*t.Scale) || math.IsInf(*t.Scale, 0)) {
			c.fail(fmt.Sprintf("%s[%d].scale", at, i), "is %v", *t.Scale)
		}
		if s := t.ChannelScales; s != nil && !(0 <= s[0] && s[0] <= s[1] && !math.IsInf(s[1], 0)) {
			c.fail(fmt.Sprintf("%s[%d].channel_scales", at, i), "is %v", *s)
		}
		if t.ChannelAxis != nil && *t.ChannelAxis < 0 {
			c.fail(fmt.Sprintf("%s[%d].channel_axis", at, i), "is %d", *t.ChannelAxis)
		}
	}
}

func (c *checker) totals(t *Totals) {
	c.counts("totals", named{"layers", t.Layers}, named{"ops", t.Ops}, named{"macs", t.MACs}, named{"macs_executed", t.MACsExecuted},
		named{"mltk_ops", t.MLTKOps}, named{"mltk_macs", t.MLTKMACs}, named{"params", t.Params}, named{"weights_bytes", t.WeightsBytes}, named{"computed_params", t.ComputedParams},
		named{"bytes_read", t.BytesRead}, named{"bytes_written", t.BytesWritten}, named{"uncounted_layers", t.UncountedLayers},
		named{"unsupported_layers", t.UnsupportedLayers}, named{"ram_bytes", t.RAMBytes}, named{"flash_bytes", t.FlashBytes})
	if b := t.CodeBytes; b != nil {
		c.counts("totals", named{"code_bytes", &b[0]}, named{"code_bytes", &b[1]})
	}
	c.metrics("totals", metricNamed{"latency_s", t.Latency}, metricNamed{"cpu_cycles", t.CPUCycles},
		metricNamed{"accelerator_cycles", t.AcceleratorCycles}, metricNamed{"simulator_cycles", t.SimulatorCycles}, metricNamed{"energy_j", t.Energy})
	c.samples("totals.latency_samples_s", t.LatencySamples)
	c.figures("totals.figures", t.Figures)
}

func (c *checker) settings(s *Settings) {
	c.counts("settings", named{"batch", s.Batch}, named{"threads", s.Threads}, named{"runs", s.Runs}, named{"warmup_runs", s.WarmupRuns}, named{"streams", s.Streams}, named{"instances", s.Instances})
	if s.Scenario != "" {
		c.word("settings.scenario", string(s.Scenario), string(Throughput), string(FixedRate))
	}
	if s.Cold != "" {
		c.word("settings.cold", string(s.Cold), string(ColdCaches), string(ColdStart))
	}
	c.hash("settings.target_sha256", s.TargetSHA256)
	c.reals("settings", realNamed{"time_s", s.TimeS}, realNamed{"warmup_s", s.WarmupS}, realNamed{"rate_per_s", s.RatePerS})
	for _, name := range slices.Sorted(maps.Keys(s.Inputs)) {
		c.hash("settings.inputs."+name+".sha256", s.Inputs[name].SHA256)
	}
}

func (c *checker) quantities(qs []Quantity) {
	have := make(map[string]bool, len(qs))
	for i := range qs {
		if err := qs[i].validate(); err != nil {
			c.fail(fmt.Sprintf("quantities[%d]:", i), "%v", err)
		}
		if have[qs[i].Key] {
			c.fail(fmt.Sprintf("quantities[%d].key", i), "is %q for a second time", qs[i].Key)
		}
		have[qs[i].Key] = true
	}
}

func (c *checker) phases(p *Phases) {
	if p == nil {
		return
	}
	c.reals("phases", realNamed{"load_s", p.LoadS}, realNamed{"plan_s", p.PlanS}, realNamed{"first_run_s", p.FirstRunS}, realNamed{"peaks_s", p.PeaksS})
	if w := p.Warmup; w != nil {
		c.reals("phases.warmup", realNamed{"time_s", w.TimeS})
		c.counts("phases.warmup", named{"count", w.Count})
	}
}

func (c *checker) reconcile(r *Reconcile) {
	if r == nil {
		return
	}
	c.reals("reconcile", realNamed{"wall_s", r.WallS}, realNamed{"operators_s", r.OperatorsS}, realNamed{"gaps_s", r.GapsS},
		realNamed{"plain_s", r.PlainS}, realNamed{"profiled_s", r.ProfiledS})
	// Overheads may come out negative by noise: that is information too.
	for _, m := range []metricNamed{{"overhead_s", r.OverheadS}, {"overhead_per_operator_s", r.OverheadPerOperatorS}} {
		if m.v != nil {
			if err := m.v.Validate(); err != nil {
				c.fail("reconcile."+m.name+":", "%v", err)
			}
		}
	}
	if u := r.Unassigned; u != nil && (math.IsNaN(*u) || math.IsInf(*u, 0)) {
		c.fail("reconcile.unassigned", "is %v", *u)
	}
}

func (c *checker) memory(m *Memory, layers int) {
	if m == nil {
		return
	}
	c.counts("memory", named{"arena_bytes", m.ArenaBytes}, named{"peak_bytes", m.PeakBytes}, named{"persistent_bytes", m.PersistentBytes},
		named{"scratch_bytes", m.ScratchBytes}, named{"weights_bytes", m.WeightsBytes}, named{"process_peak_bytes", m.ProcessPeakBytes},
		named{"allocated_per_run_bytes", m.AllocatedPerRunBytes}, named{"tflm_arena_bytes", m.TFLMArenaBytes}, named{"align_bytes", m.AlignBytes})
	for i, l := range m.StepLayers {
		if l < -1 || l >= int64(layers) {
			c.fail(fmt.Sprintf("memory.step_layers[%d]", i), "names layer %d of %d", l, layers)
		}
	}
	for i, e := range m.Plan {
		if e.Bytes < 0 || e.Offset < 0 || e.Last < e.First {
			c.fail(fmt.Sprintf("memory.plan[%d]", i), "has %d bytes at %d from step %d to %d", e.Bytes, e.Offset, e.First, e.Last)
		}
	}
}

func (c *checker) host(h *Host) {
	if h == nil {
		return
	}
	c.counts("host", named{"cores", h.Cores}, named{"cpus", h.CPUs}, named{"cache_l1d_bytes", h.CacheL1DBytes}, named{"cache_l2_bytes", h.CacheL2Bytes},
		named{"cache_l3_bytes", h.CacheL3Bytes}, named{"memory_bytes", h.MemoryBytes}, named{"throttled", h.Throttled},
		named{"involuntary_switches", h.InvoluntarySwitches}, named{"gc_during_runs", h.GCDuringRuns})
	c.reals("host", realNamed{"nominal_hz", h.NominalHz}, realNamed{"max_hz", h.MaxHz}, realNamed{"cpu_quota", h.CPUQuota},
		realNamed{"clock_resolution_s", h.ClockResolutionS}, realNamed{"clock_cost_s", h.ClockCostS},
		realNamed{"watched_s", h.WatchedS}, realNamed{"stolen_s", h.StolenS}, realNamed{"quota_throttled_s", h.QuotaThrottledS})
	for i, s := range []*HostState{h.Before, h.After} {
		if s != nil {
			c.reals("host."+[...]string{"before", "after"}[i], realNamed{"frequency_hz", s.FrequencyHz}, realNamed{"load_average", s.LoadAverage})
			if t := s.TemperatureC; t != nil && !(*t > -274 && *t < 1000) {
				c.fail("host."+[...]string{"before", "after"}[i]+".temperature_c", "is %v", *t)
			}
		}
	}
}

// The valid words of a layer. They are shared because a large profile checks each of its layers
// after each event.
var (
	stateWords      = []string{string(Ran), string(Folded), string(Fused), string(Unsupported), string(Skipped), string(Failed), string(NotReached), string(Lost), string(NoEstimate)}
	confidenceWords = []string{string(Exact), string(ByTensor), string(ByName), string(ByOrder), string(Unknown)}
	causeWords      = []string{
		string(ByOperator), string(ByType), string(ByLimit), string(ByUse), string(ByInput), string(ByShape), string(ByData), string(ByMemory),
		string(ByBodies), string(ByError), string(ByCancel), string(ByDeadline), string(ByEnd), string(ByRecord), string(ByNoFigures), string(ByResolution), string(ByLoop), string(ByWork),
	}
)

// layer checks layer i of n. It makes the names of places for a wrong layer only.
func (c *checker) layer(i int, l *Layer, n int) {
	if c.err != nil {
		return
	}
	var quick checker
	if quick.layerAt("", i, l, n); quick.err != nil {
		c.layerAt(fmt.Sprintf("layers[%d]", i), i, l, n)
	}
}

// rank checks the interval of the share and the places of a layer.
func (c *checker) rank(at string, l *Layer) {
	if iv := l.ShareCI95; iv != nil && !(isFraction(iv[0]) && isFraction(iv[1]) && iv[0] <= iv[1]) {
		c.fail(at+".share_ci95", "is %v, want two fractions in order", *iv)
	}
	if r := l.Rank; r != nil && !(1 <= r[0] && r[0] <= r[1]) {
		c.fail(at+".rank", "is %v, want two places from 1 in order", *r)
	}
}

func (c *checker) layerAt(at string, i int, l *Layer, n int) {
	if l.Index != int64(i) {
		c.fail(at+".index", "is %d", l.Index)
	}
	c.need(at+".op", l.Op)
	c.ref(at+".parent", l.Parent, i) // a parent stands before its body
	c.ref(at+".fused_into", l.FusedInto, n)
	if l.FusedInto != nil && *l.FusedInto == int64(i) {
		c.fail(at+".fused_into", "is the layer itself")
	}
	c.tensors(at+".inputs", l.Inputs)
	c.tensors(at+".outputs", l.Outputs)
	c.counts(at, named{"version", l.Version}, named{"ops", l.Ops}, named{"macs", l.MACs}, named{"macs_executed", l.MACsExecuted},
		named{"mltk_ops", l.MLTKOps}, named{"mltk_macs", l.MLTKMACs}, named{"params", l.Params}, named{"weights_bytes", l.WeightsBytes},
		named{"shared_params", l.SharedParams}, named{"shared_weights_bytes", l.SharedWeightsBytes},
		named{"bytes_read", l.BytesRead}, named{"bytes_written", l.BytesWritten}, named{"live_bytes", l.LiveBytes})
	c.within(at+".shared_params", l.SharedParams, l.Params)
	c.within(at+".shared_weights_bytes", l.SharedWeightsBytes, l.WeightsBytes)
	c.metrics(at, metricNamed{"latency_s", l.Latency}, metricNamed{"total_s", l.Total}, metricNamed{"expected_s", l.Expected},
		metricNamed{"cpu_cycles", l.CPUCycles}, metricNamed{"accelerator_cycles", l.AcceleratorCycles}, metricNamed{"simulator_cycles", l.SimulatorCycles}, metricNamed{"energy_j", l.Energy})
	c.figures(at+".figures", l.Figures)
	c.reals(at, realNamed{"calls", l.Calls})
	c.fraction(at+".share", l.Share)
	c.rank(at, l)
	c.roof(at+".roof", l.Roof)
	c.samples(at+".samples_s", l.Samples)
	c.state(at+".state", l.State)
	if (l.State == Fused) != (l.FusedInto != nil) {
		c.fail(at+".fused_into", "and state %q do not agree", l.State)
	}
	if l.Cause != nil {
		c.cause(at+".cause.code", l.Cause.Code)
	}
	if p := l.Placement; p != nil {
		c.need(at+".placement.on", p.On)
		if p.Cause != "" {
			c.cause(at+".placement.cause", p.Cause)
		}
	}
	for k, o := range l.Options {
		if o.Key == "" {
			c.fail(fmt.Sprintf("%s.options[%d].key", at, k), "is missing")
		}
	}
	if l.Check != nil {
		c.word(at+".check.outcome", string(l.Check.Outcome), checkOutcomes...)
	}
	if p := l.Provenance; p != nil {
		c.confidence(at+".provenance.confidence", p.Confidence)
		for _, s := range p.SourceNodes {
			if s.Graph < 0 || s.Node < 0 {
				c.fail(at+".provenance.source_nodes", "names node %d of graph %d", s.Node, s.Graph)
			}
			if s.Confidence != "" {
				c.confidence(at+".provenance.source_nodes.confidence", s.Confidence)
			}
			c.fraction(at+".provenance.source_nodes.share", s.Share)
		}
	}
	if w := l.Weights; w != nil && (w.Input < 0 || slices.ContainsFunc(w.Shape, func(d int64) bool { return d < 0 })) {
		c.fail(at+".weights", "has shape %v as input %d", w.Shape, w.Input)
	}
	if w := l.Weights; w != nil {
		for _, v := range []*float64{w.Min, w.Max, w.Mean, w.StdDev} {
			if v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0)) {
				c.fail(at+".weights", "has the statistic %v", *v)
			}
		}
	}
	if s := l.Sparsity; s != nil {
		c.fraction(at+".sparsity.weights", s.Weights)
		c.fraction(at+".sparsity.activations", s.Activations)
		for _, name := range slices.Sorted(maps.Keys(s.Blocks)) {
			c.fraction(at+".sparsity.blocks."+name, new(s.Blocks[name]))
		}
		c.counts(at+".sparsity", named{"stored_bytes", s.StoredBytes})
	}
}

func (c *checker) cause(at string, code CauseCode) {
	c.word(at, string(code), causeWords...)
}

func (c *checker) confidence(at string, v Confidence) {
	c.word(at, string(v), confidenceWords...)
}

// figures checks a map of figures. Foreign ones may be negative. Of several faults the
// one with the first key is told.
func (c *checker) figures(at string, fs map[string]*Metric) {
	sound := true
	for key, m := range fs {
		sound = sound && isKey(key) && m != nil && m.Validate() == nil
	}
	if sound {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(fs)) {
		m := fs[key]
		if !isKey(key) {
			c.fail(at+":", "%v", badKey(key))
		}
		if m == nil {
			c.fail(at+"."+key, "is null")
		} else if err := m.Validate(); err != nil {
			c.fail(at+"."+key+":", "%v", err)
		}
	}
}

func (c *checker) state(at string, s State) {
	c.word(at, string(s), stateWords...)
}

func (c *checker) missing(ms []Missing, layers int) {
	for i, m := range ms {
		at := fmt.Sprintf("incomplete[%d]", i)
		c.cause(at+".cause", m.Cause)
		c.counts(at, named{"got", m.Got}, named{"want", m.Want})
		for _, l := range m.Layers {
			c.ref(at+".layers", &l, layers)
		}
	}
}

func (c *checker) finding(at string, f *Finding, layers int) {
	c.need(at+".id", f.ID)
	c.need(at+".text", f.Text)
	c.word(at+".severity", string(f.Severity), string(Info), string(Warning), string(Problem))
	for _, l := range f.Layers {
		c.ref(at+".layers", &l, layers)
	}
}
