package report

import (
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// phaseLines are the lines of the headline for the phases of a language model: speed and time of
// each with interval and quality, and what bounds it.
func phaseLines(p *profile.Profile) (fs []fact) {
	if p.Language == nil {
		return nil
	}
	for i := range p.Language.Phases {
		ph := &p.Language.Phases[i]
		label := capital(ph.Name())
		if s := phaseSpeed(ph); s != "" {
			fs = append(fs, fact{label, s})
		}
		if s := phaseWhy(p, ph); s != "" {
			fs = append(fs, fact{"", s})
		}
	}
	if len(fs) > 0 {
		fs = append(fs, fact{"Excluded", "tokenizer and sampling"}, fact{"Caches", caches(p.Language)})
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

// phaseSpeed is the number of tokens per second and the time of a phase.
func phaseSpeed(ph *profile.Phase) string {
	v, ok := ph.TokensPerS.Best()
	t, timed := ph.Latency.Best()
	if !ok || !timed {
		return ""
	}
	name := "TPOT"
	if ph.Kind == profile.PrefillPhase {
		name = "TTFT"
	}
	s := perSecond(v) + " tokens/s"
	if ph.Batch > 1 {
		s += fmt.Sprintf(" in a batch of %d", ph.Batch)
	}
	s += " · " + name + " " + Duration(t)
	if iv := ph.Latency.Interval(); iv != nil {
		s += " (95 % CI " + Range(iv[0], iv[1], Duration) + ")"
	}
	if q := words.Quality(ph.Trust); q != "" {
		s += " · quality: " + q
	}
	return s
}

// phaseWhy is what a phase reads, writes and computes, and how near it comes to its limit.
func phaseWhy(p *profile.Profile, ph *profile.Phase) string {
	var parts []string
	if ph.WeightsReadBytes != nil {
		parts = append(parts, "weights "+Bytes(*ph.WeightsReadBytes))
	}
	cache := "cache read " + Bytes(ph.CacheReadBytes) + ", written " + Bytes(ph.CacheWrittenBytes)
	if n := ph.CacheCopiedBytes; n != nil && *n > 0 {
		cache += ", copied " + Bytes(*n)
	}
	parts = append(parts, cache)
	if ph.Ops != nil {
		parts = append(parts, Quantity(float64(*ph.Ops), "op"))
		if ph.WeightsReadBytes != nil {
			parts = append(parts, digits(float64(*ph.Ops)/float64(max(1, *ph.WeightsReadBytes+ph.CacheReadBytes+ph.CacheWrittenBytes)))+" op/byte")
		}
	}
	if r := ph.Roof; r != nil && r.Use != nil {
		limit := r.DType + " arithmetic"
		if memoryFirst(ph, r) {
			limit = memoryLevel(p, r.Level) + " at " + Quantity(*r.BytesPerSecond, "B/s")
		}
		s := fmt.Sprintf("%s of the limit of %s", Percent(*r.Use), limit)
		if v := ph.RoofTokensPerS; v != nil {
			s += ", " + perSecond(*v) + " tokens/s"
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " · ")
}

// memoryFirst reports whether memory limits a phase before arithmetic does.
func memoryFirst(ph *profile.Phase, r *profile.Roof) bool {
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
	if c.Shared && c.Capacity != nil {
		return s + fmt.Sprintf(", buffers of %d positions", *c.Capacity)
	}
	if l.ContextLength != nil {
		s += fmt.Sprintf(", up to %d positions", *l.ContextLength)
	}
	return s
}
