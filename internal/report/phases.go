package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// phaseLines are the lines of the headline for the phases of a language model: speed and time of
// each with interval and quality, then what limits each.
func phaseLines(p *profile.Profile) (fs []fact) {
	if p.Language == nil {
		return nil
	}
	for i := range p.Language.Phases {
		ph := &p.Language.Phases[i]
		if v := phaseSpeed(p.Language, ph); v != "" {
			fs = append(fs, fact{capital(ph.Name()), v})
		}
	}
	if fs == nil {
		return nil
	}
	if t, ok := p.Totals.Value("ttft_s"); ok && p.Language.EncoderLength != nil {
		fs = append(fs, fact{"Time to first token", Duration(t) + ": the encoder and prefill"})
	}
	fs = append(fs, fact{"Excluded", "tokenizer and sampling"})
	for i := range p.Language.Phases {
		ph := &p.Language.Phases[i]
		fs = append(fs, fact{"Limit of " + ph.Name(), phaseLimit(p, ph)})
	}
	fs = append(fs, fact{"Caches", caches(p.Language)})
	if s := memoryByContext(p); s != "" {
		fs = append(fs, fact{"Memory by context", s})
	}
	fs = append(fs, fact{"Layers", "those of " + basePhase(p) + "; other phases have columns of their own"})
	for i := range fs {
		fs[i].value = text.Clean(fs[i].value)
	}
	return fs
}

// basePhase names the phase that the layers and the other figures are of.
func basePhase(p *profile.Profile) string {
	for i := range p.Language.Phases {
		if ph := &p.Language.Phases[i]; ph.Quantity == "latency_s" {
			return ph.Name()
		}
	}
	return "one of the phases"
}

// phaseUnit is what a phase has so many of in a second.
func phaseUnit(ph *profile.Phase) string {
	if ph.Kind == profile.EncodePhase {
		return " positions/s"
	}
	return " tokens/s"
}

// phaseSpeed is the number of tokens per second and the time of a phase.
func phaseSpeed(l *profile.LanguageModel, ph *profile.Phase) string {
	v, ok := ph.TokensPerS.Best()
	t, timed := ph.Latency.Best()
	if !ok || !timed {
		return ""
	}
	name := "TPOT"
	switch {
	case ph.Kind == profile.EncodePhase, ph.Kind == profile.PrefillPhase && l.EncoderLength != nil:
		name = "time"
	case ph.Kind == profile.PrefillPhase:
		name = "TTFT"
	}
	s := perSecond(v) + phaseUnit(ph)
	s += " · " + name + " " + Duration(t)
	iv := ph.Latency.Interval()
	switch b := ph.TokensPerS.Band; {
	case b != nil && iv != nil:
		s += " (" + Range(iv[0], iv[1], Duration) + ") · estimated " + Range(b[0], b[1], perSecond) + phaseUnit(ph)
	case iv != nil:
		s += " (95 % CI " + Range(iv[0], iv[1], Duration) + ")"
	}
	if q := words.Quality(ph.Trust); q != "" {
		s += " · quality: " + q
	}
	return s
}

// phaseLimit says how near a phase comes to its limit, and what it reads, writes and computes.
func phaseLimit(p *profile.Profile, ph *profile.Phase) string {
	var parts []string
	if r := ph.Roof; r != nil && r.Use != nil && ph.RoofTokensPerS != nil {
		limit := r.DType + " arithmetic"
		if memoryFirst(ph, r) {
			limit = memoryLevel(p, r.Level) + " at " + Quantity(*r.BytesPerSecond, "B/s")
		}
		reached := "reached"
		if ph.Latency.Kind == profile.Estimated {
			reached = "expected"
		}
		parts = append(parts, fmt.Sprintf("%s%s by %s, %s %s", perSecond(*ph.RoofTokensPerS), phaseUnit(ph), limit, Percent(*r.Use), reached))
	} else {
		parts = append(parts, "unknown")
	}
	moved := ph.CacheReadBytes + ph.CacheWrittenBytes
	if n := ph.WeightsReadBytes; n != nil {
		moved += *n
		parts = append(parts, "weights "+Bytes(*n))
	}
	if ph.Kind != profile.EncodePhase || ph.CacheWrittenBytes > 0 {
		cache := "cache read " + Bytes(ph.CacheReadBytes) + ", written " + Bytes(ph.CacheWrittenBytes)
		if n := ph.CacheCopiedBytes; n != nil && *n > 0 {
			cache += ", copied " + Bytes(*n)
		}
		parts = append(parts, cache)
	}
	if n := ph.Ops; n != nil {
		parts = append(parts, Quantity(float64(*n), "op"))
		if ph.WeightsReadBytes != nil && moved > 0 {
			parts = append(parts, digits(float64(*n)/float64(moved))+" op/byte")
		}
	}
	return strings.Join(parts, " · ")
}

// memoryFirst reports whether memory limits a phase before arithmetic does.
func memoryFirst(ph *profile.Phase, r *profile.Roof) bool {
	if ph.WeightsReadBytes == nil || ph.Ops == nil || r.BytesPerSecond == nil || r.OpsPerSecond == nil {
		return r.Bound == profile.BoundMemory
	}
	return float64(*ph.WeightsReadBytes+ph.CacheReadBytes+ph.CacheWrittenBytes)/(*r.BytesPerSecond) > float64(*ph.Ops)/(*r.OpsPerSecond)
}

// caches describes the caches of keys and values.
func caches(l *profile.LanguageModel) string {
	c := &l.Cache
	s := words.Plural(c.Layers, "layer")
	if c.Heads != nil && c.HeadSize != nil {
		s += fmt.Sprintf(" of %s of %d", words.Plural(*c.Heads, "head"), *c.HeadSize)
	}
	s += fmt.Sprintf(", %s, %s for each position", c.DType, Bytes(c.PositionBytes))
	switch {
	case c.Shared && c.Capacity != nil:
		s += fmt.Sprintf(", buffers of %d positions", *c.Capacity)
	case l.ContextLength != nil:
		s += fmt.Sprintf(", up to %d positions", *l.ContextLength)
	}
	if l.EncoderLength != nil && c.CrossBytes != nil {
		s += fmt.Sprintf("; %s for %s of the encoder", Bytes(*c.CrossBytes), words.Plural(*l.EncoderLength, "position"))
	}
	if c.StateBytes != nil {
		s += fmt.Sprintf("; states of %s", Bytes(*c.StateBytes))
	}
	return s
}

// memoryByContext says what weights, caches and activations need together: in the context of the
// base phase, in the longest one, and which context the memory of this computer holds.
func memoryByContext(p *profile.Profile) string {
	l := p.Language
	if len(l.Memory) == 0 {
		return ""
	}
	first, last := &l.Memory[0], &l.Memory[len(l.Memory)-1]
	for i := range l.Phases {
		for k := range l.Memory {
			if l.Phases[i].Quantity == "latency_s" && l.Memory[k].Context == l.Phases[i].Context {
				first = &l.Memory[k]
			}
		}
	}
	at, plan := []string{}, []string{}
	for _, c := range slices.Compact([]*profile.ContextMemory{first, last}) {
		at, plan = append(at, fmt.Sprintf("%s for %d positions", Bytes(c.Bytes()), c.Context)), append(plan, Bytes(c.PlanBytes))
	}
	each := l.Cache.PositionBytes
	for i := range l.Phases {
		if ph := &l.Phases[i]; ph.Quantity == "latency_s" {
			each *= ph.Batch
		}
	}
	s := fmt.Sprintf("%s: weights %s, %s each, activations %s", strings.Join(at, ", "), Bytes(first.WeightsBytes), Bytes(each), strings.Join(slices.Compact(plan), " and "))
	// Activations may grow with the context, too.
	fixed := first.Bytes()
	if n := last.Context - first.Context; n > 0 {
		each = (last.Bytes() - first.Bytes()) / n
	}
	fixed -= first.Context * each
	if p.Host == nil || p.Host.MemoryBytes == nil || !(each > 0) {
		return s
	}
	longest := max(0, (*p.Host.MemoryBytes-fixed)/each)
	if l.ContextLength != nil && longest >= *l.ContextLength-1 {
		return s
	}
	return s + fmt.Sprintf("; %s hold %s positions", Bytes(*p.Host.MemoryBytes), Count(longest))
}
