// Package phases makes one profile of the profiles of a language model's phases.
package phases

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/runtime/llm"
	"github.com/opmeter/opmeter/profile"
)

// Run is a phase and its profile, nil if it was not measured.
type Run struct {
	Kind  profile.PhaseKind
	Phase llm.Phase
	// Shapes names the sizes of an inference's inputs, such as "batch 4", "" for phases.
	Shapes  string
	Profile *profile.Profile
	// File is that of the model if it is another one than that of the last run, "" otherwise.
	File string
	// CrossRead and CrossWritten say that it reads and writes the caches of an encoder's positions.
	CrossRead, CrossWritten bool
	// Counts describes the model in this phase, for engines that run other layers than those of the
	// model; nil for others.
	Counts *profile.Profile
}

// Name says which phase it is.
func (r *Run) Name() string {
	if r.Shapes != "" {
		return r.Shapes
	}
	ph := profile.Phase{Kind: r.Kind, Batch: int64(r.Phase.Batch), Tokens: int64(r.Phase.Tokens), Context: int64(r.Phase.Depth)}
	return ph.Name()
}

// Bytes is the size of the weights and caches that a counted run reads.
func (r *Run) Bytes(m *llm.Model) int64 {
	n := m.CacheBytes(r.Phase.Batch, r.Phase.Depth)
	if w := weightsRead(r.Profile); w != nil {
		n += *w
	}
	return n
}

// key is that of the times of the phase.
func (r *Run) key() string {
	n := r.Phase.Tokens
	if r.Kind == profile.DecodePhase {
		n = r.Phase.Depth
	}
	if r.Phase.Batch > 1 {
		return fmt.Sprintf("%s_%d_batch_%d_s", r.Kind, n, r.Phase.Batch)
	}
	return fmt.Sprintf("%s_%d_s", r.Kind, n)
}

// Merge returns the profile of the last run that has a latency, with the times of the other runs as
// further quantities and a description of all. It is nil without any profile.
func Merge(m *llm.Model, runs []Run) *profile.Profile {
	base := last(runs)
	if base < 0 {
		return nil
	}
	out := runs[base].Profile
	out.Language = describe(m, runs[base].Phase)
	out.Settings.Batch = new(int64(runs[base].Phase.Batch))
	for i := range runs {
		r := &runs[i]
		if r.Profile == nil {
			continue
		}
		ph := phase(m, r)
		if ph.Quantity = "latency_s"; i != base {
			ph.Quantity = r.key()
			add(out, r, ph.Quantity)
		}
		out.Language.Phases = append(out.Language.Phases, ph)
		headline(out, m, &ph)
		if i != base {
			incomplete(out, r)
		}
	}
	firstToken(out)
	raise(out.Language.Phases)
	out.Language.Memory = memory(m, runs, base)
	return out
}

// last is the last run with a latency, or with a profile if none has one, -1 without any.
func last(runs []Run) int {
	base := -1
	for i := range runs {
		if p := runs[i].Profile; p != nil && (base < 0 || measured(p) || !measured(runs[base].Profile)) {
			base = i
		}
	}
	return base
}

// incomplete takes over what a run lacks. Layers of another run are not those of the profile.
func incomplete(out *profile.Profile, r *Run) {
	for _, x := range r.Profile.Incomplete {
		if x.Layers == nil {
			out.Incomplete = append(out.Incomplete, x)
		}
	}
}

// MergeShapes is [Merge] for runs of one model in different shapes.
func MergeShapes(runs []Run) *profile.Profile {
	base := last(runs)
	if base < 0 {
		return nil
	}
	out := runs[base].Profile
	for i := range runs {
		if r := &runs[i]; i != base && r.Profile != nil {
			add(out, r, r.shapesKey(i))
			incomplete(out, r)
		}
	}
	if len(out.Quantities) > 0 {
		out.Findings = append(out.Findings, profile.Finding{
			ID: "shapes.base", Severity: profile.Info,
			Text: fmt.Sprintf("Layers and other figures are those of %s. Times in other shapes have columns of their own.", runs[base].Name()),
		})
	}
	return out
}

// mostKey is a length of names that keys of quantities can have.
const mostKey = 90

// shapesKey is the key of the times of the i-th run in other shapes: "batch 4" has batch_4_s.
func (r *Run) shapesKey(i int) string {
	name := strings.Map(func(c rune) rune {
		switch {
		case c == ' ', 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			return c
		case 'A' <= c && c <= 'Z':
			return c - 'A' + 'a'
		}
		return ' '
	}, r.Shapes)
	if key := strings.Join(strings.Fields(name), "_"); len(key) <= mostKey {
		return key + "_s"
	}
	return fmt.Sprintf("shape_%d_s", i+1)
}

// firstToken sets the time to the first token of a model with an encoder: that of the last run of
// the encoder and the last prefill together.
func firstToken(out *profile.Profile) {
	var encode, prefill *profile.Metric
	for i := range out.Language.Phases {
		switch ph := &out.Language.Phases[i]; ph.Kind {
		case profile.EncodePhase:
			encode = ph.Latency
		case profile.PrefillPhase:
			prefill = ph.Latency
		}
	}
	a, ok := encode.Best()
	b, both := prefill.Best()
	if !ok || !both {
		return
	}
	sum := &profile.Metric{Kind: prefill.Kind, Median: new(a + b), Method: "recommended times of the encoder and of prefill added"}
	if x, y := encode.Interval(), prefill.Interval(); x != nil && y != nil {
		sum.CI95 = &[2]float64{x[0] + y[0], x[1] + y[1]}
	}
	_ = out.Totals.Set("ttft_s", sum)
}

// memory returns what the measured decodes need by context, or what the base run needs.
func memory(m *llm.Model, runs []Run, base int) (all []profile.ContextMemory) {
	decodes := runs[base].Kind == profile.DecodePhase
	for i := range runs {
		r := &runs[i]
		if r.Profile == nil || r.Phase.Batch != runs[base].Phase.Batch || decodes != (r.Kind == profile.DecodePhase) || !decodes && i != base {
			continue
		}
		t, weights := &r.Profile.Totals, r.Profile.Totals.WeightsBytes
		if x := r.Profile.Memory; x != nil && x.WeightsBytes != nil {
			weights = x.WeightsBytes
		}
		if t.RAMBytes != nil && weights != nil {
			all = append(all, ContextMemory(m, r.Phase, *weights, *t.RAMBytes))
		}
		if m.Shared && all != nil {
			break // buffers need the same in each context
		}
	}
	return all
}

// ContextMemory is the memory of a phase with these weights and this plan.
func ContextMemory(m *llm.Model, p llm.Phase, weights, plan int64) profile.ContextMemory {
	n := p.Depth
	if m.Shared {
		n = m.Capacity
	}
	caches := m.CacheBytes(p.Batch, n) + m.CrossBytes(p.Batch, m.Positions(p)) + m.StateBytes(p.Batch)
	return profile.ContextMemory{Context: int64(n), WeightsBytes: weights, CacheBytes: caches, PlanBytes: plan}
}

func measured(p *profile.Profile) bool { return p.Totals.Latency != nil }

// Err says why a run has no latency although it ended, nil if it has one or was not begun.
func (r *Run) Err() error {
	if r.Profile == nil || measured(r.Profile) {
		return nil
	}
	layers, _ := r.Profile.Unrun()
	if len(layers) == 0 {
		return errors.New("it has no latency")
	}
	l := &r.Profile.Layers[layers[0]]
	why := "it does not run"
	if l.Cause != nil && l.Cause.Text != "" {
		why = l.Cause.Text
	}
	return fmt.Errorf("%d of %d layers did not run; the first is #%d %s: %s", len(layers), len(r.Profile.Layers), layers[0], l.Op, why)
}

func describe(m *llm.Model, ph llm.Phase) *profile.LanguageModel {
	known := func(n int) *int64 {
		if n == 0 {
			return nil
		}
		return new(int64(n))
	}
	bytes := func(n int64) *int64 { return known(int(n)) }
	encoder := m.Positions(ph)
	return &profile.LanguageModel{
		ContextLength: known(m.Context), EncoderLength: known(encoder),
		Cache: profile.KVCache{
			Layers: int64(m.Layers), Heads: known(m.Heads), HeadSize: known(m.HeadSize), DType: m.Type.String(),
			Shared: m.Shared, Capacity: known(m.Capacity), PositionBytes: m.CacheBytes(1, 1), CrossBytes: bytes(m.CrossBytes(1, encoder)), StateBytes: bytes(m.StateBytes(1)),
		},
	}
}

// add puts the times of a run into the profile of another, as a quantity.
func add(out *profile.Profile, r *Run, key string) {
	group, doc := "Language model", fmt.Sprintf("Time in a run of %d new tokens after %d in the cache.", r.Phase.Tokens, r.Phase.Depth)
	switch {
	case r.Shapes != "":
		group, doc = "Shapes", fmt.Sprintf("Time of an inference with %s.", r.Shapes)
	case r.Kind == profile.EncodePhase:
		doc = fmt.Sprintf("Time in a run of the encoder that makes %d positions.", r.Phase.Tokens)
	}
	out.Quantities = append(out.Quantities, profile.Quantity{
		Key: key, Unit: "s", Head: r.Name(), Name: "Time in " + r.Name(), Group: group, Adds: true, Better: -1, Doc: doc,
	})
	set := func(set func(string, *profile.Metric) error, v *profile.Metric) {
		if v != nil {
			_ = set(key, v) // the key is valid and nobody else has it
		}
	}
	set(out.Totals.Set, r.Profile.Totals.Latency)
	if r.File != "" {
		out.Findings = append(out.Findings, profile.Finding{
			ID: "phases.file", Severity: profile.Info,
			Text: fmt.Sprintf("%s runs %s, whose layers are not in the table: profile this file to see them.", r.Name(), r.File),
		})
		return
	}
	if !slices.EqualFunc(out.Layers, r.Profile.Layers, func(a, b profile.Layer) bool { return a.Op == b.Op && a.Name == b.Name }) {
		out.Findings = append(out.Findings, profile.Finding{
			ID: "phases.layers", Severity: profile.Warning,
			Text: fmt.Sprintf("The engine runs other layers in %s: it has no times of layers.", r.Name()),
		})
		return
	}
	for i := range out.Layers {
		set(out.Layers[i].Set, r.Profile.Layers[i].Latency)
	}
}

// headline sets the figures of the whole model that a phase has: later phases replace those of
// earlier ones.
func headline(out *profile.Profile, m *llm.Model, ph *profile.Phase) {
	if ph.Latency == nil || m.Encoded() && ph.Kind != profile.DecodePhase {
		return // prefill alone is not what a prompt costs where there is an encoder
	}
	rate, time := "decode_tokens_per_s", "tpot_s"
	if ph.Kind == profile.PrefillPhase {
		rate, time = "prefill_tokens_per_s", "ttft_s"
	}
	_, _ = out.Totals.Set(rate, ph.TokensPerS), out.Totals.Set(time, ph.Latency)
}

// phase describes a run.
func phase(m *llm.Model, r *Run) profile.Phase {
	p, batch, tokens, depth := r.Profile, r.Phase.Batch, r.Phase.Tokens, r.Phase.Depth
	counts := cmp.Or(r.Counts, p)
	ph := profile.Phase{
		Kind: r.Kind, Batch: int64(batch), Tokens: int64(tokens), Context: int64(depth),
		Reconcile: p.Reconcile, Trust: p.Trust, Ops: ops(counts), WeightsReadBytes: weightsRead(counts), RAMBytes: p.Totals.RAMBytes,
	}
	if r.Kind != profile.EncodePhase {
		ph.CacheReadBytes, ph.CacheWrittenBytes = m.CacheBytes(batch, depth), m.CacheBytes(batch, tokens)
	}
	if cross := m.CrossBytes(batch, m.Positions(r.Phase)); r.CrossRead {
		ph.CacheReadBytes += cross
	} else if r.CrossWritten {
		ph.CacheWrittenBytes += cross
	}
	if r.Kind != profile.EncodePhase {
		ph.CacheReadBytes += m.StateBytes(batch)
		ph.CacheWrittenBytes += m.StateBytes(batch)
	}
	estimated := p.Totals.Latency != nil && p.Totals.Latency.Kind == profile.Estimated
	// What others copy is not known.
	if p.Target.Engine == "opmeter" && r.Kind != profile.EncodePhase && !estimated {
		ph.CacheCopiedBytes = new(m.CopiedBytes(r.Phase, p.Settings.InPlace))
	}
	if h, ok := p.Headline(); ok {
		ph.Latency = p.Totals.Figure(h.Key)
		ph.TokensPerS = rate(float64(batch*tokens), h, ph.Latency)
		roof(&ph, p)
	}
	return ph
}

// ops is the number of operations of a profile, nil if those of some layers are unknown. The few
// comparisons of TopK, which chooses experts, do not count.
func ops(p *profile.Profile) *int64 {
	var choices int64
	for i := range p.Layers {
		if chooses(&p.Layers[i]) {
			choices++
		}
	}
	if n := p.Totals.UncountedLayers; n != nil && *n > choices {
		return nil
	}
	return p.Totals.Ops
}

// chooses reports whether a layer chooses experts, whose number of operations is not known.
func chooses(l *profile.Layer) bool { return l.Op == "TopK" && l.Ops == nil }

// rate is a number of tokens divided by a time.
func rate(tokens float64, h profile.Headline, of *profile.Metric) *profile.Metric {
	if !(h.Value > 0) {
		return nil
	}
	m := &profile.Metric{Kind: of.Kind, N: of.N, Median: new(tokens / h.Value), Method: "tokens divided by the recommended time"}
	if h.Low > 0 && h.Low < h.High {
		interval := &[2]float64{tokens / h.High, tokens / h.Low}
		if of.Kind == profile.Estimated {
			m.Band = interval
		} else {
			m.CI95 = interval
		}
	}
	return m
}

// weightsRead is the size as stored of the weights that a run reads, nil if unknown for a layer. Of
// tables and experts only what the layer reads counts.
func weightsRead(p *profile.Profile) *int64 {
	var sum int64
	for i := range p.Layers {
		l := &p.Layers[i]
		if l.Constant || l.State == profile.Folded || l.State == profile.NotReached || l.WeightsBytes == nil || *l.WeightsBytes == 0 {
			continue
		}
		if l.BytesRead == nil {
			return nil
		}
		read, all := *l.BytesRead, int64(0)
		for k := range l.Inputs {
			switch in := &l.Inputs[k]; {
			case in.Absent:
			case in.Bytes == nil:
				return nil
			case in.Constant:
				all += *in.Bytes
			default:
				read -= *in.Bytes
			}
		}
		part := 1.0
		if all > 0 {
			part = min(max(float64(read)/float64(all), 0), 1)
		}
		sum += int64(math.Round(part * float64(*l.WeightsBytes)))
	}
	return &sum
}

// roof places a phase under the roofline of its profile, as one layer that reads weights and caches
// once. Memory has the rate of reading, or that of a copy if the former is not known.
func roof(ph *profile.Phase, p *profile.Profile) {
	if ph.Ops == nil || ph.WeightsReadBytes == nil {
		return
	}
	whole := profile.Layer{
		Ops: ph.Ops, BytesRead: new(*ph.WeightsReadBytes + ph.CacheReadBytes), BytesWritten: &ph.CacheWrittenBytes,
		Latency: ph.Latency, Computes: arithmetic(p),
	}
	r := p.Target.RoofOf(&whole)
	if r == nil || r.OpsPerSecond == nil || r.BytesPerSecond == nil {
		return
	}
	for i := range p.Target.Levels {
		if l := &p.Target.Levels[i]; l.Name == r.Level && l.ReadBytesPerSecond != nil {
			r.BytesPerSecond = l.ReadBytesPerSecond
		}
	}
	ph.Roof = r
}

// mostRaise is by how much a phase may exceed the rate of a level of memory: without a rate of
// reading, that of a copy counts, and other programs may have slowed the measurement down.
const mostRaise = 2

// raise raises the rate of a level of memory to that of the fastest phase, and compares all phases
// with it. A phase beyond what can be true has no limit.
func raise(list []profile.Phase) {
	rates := map[string]float64{}
	for i := range list {
		ph := &list[i]
		if r := ph.Roof; r != nil {
			v, _ := ph.Latency.Best()
			rate := bytes(ph) / v
			if rate > mostRaise**r.BytesPerSecond {
				ph.Roof = nil
				continue
			}
			rates[r.Level] = max(rates[r.Level], rate, *r.BytesPerSecond)
		}
	}
	for i := range list {
		ph := &list[i]
		if ph.Roof == nil {
			continue
		}
		r := *ph.Roof
		r.BytesPerSecond = new(rates[r.Level])
		v, _ := ph.Latency.Best()
		byBytes, byOps := bytes(ph) / *r.BytesPerSecond, float64(*ph.Ops) / *r.OpsPerSecond
		least := max(byBytes, byOps)
		r.Use = new(least / v)
		switch ph.Roof = &r; {
		case *r.Use > 1:
			ph.Roof = nil
			continue
		case *r.Use < profile.FarBelow:
			r.Bound = profile.BoundOverhead
		case byBytes > byOps:
			r.Bound = profile.BoundMemory
		default:
			r.Bound = profile.BoundCompute
		}
		ph.RoofTokensPerS = new(float64(ph.Batch*ph.Tokens) / least)
	}
}

// bytes is what a phase reads of weights and caches and writes to these.
func bytes(ph *profile.Phase) float64 {
	return float64(*ph.WeightsReadBytes + ph.CacheReadBytes + ph.CacheWrittenBytes)
}

// arithmetic is the element type with the most multiply-accumulates.
func arithmetic(p *profile.Profile) (most string) {
	sums := map[string]int64{}
	for i := range p.Layers {
		l := &p.Layers[i]
		if l.MACs == nil || l.Constant || l.State == profile.NotReached {
			continue
		}
		t := l.ArithmeticType()
		if sums[t] += *l.MACs; sums[t] > sums[most] {
			most = t
		}
	}
	return most
}
