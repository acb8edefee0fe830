package describe

import (
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/profile"
)

// halfBytes is the size of an element of a cache in float16, the usual type.
const halfBytes = 2

// language adds the figures of a language model that its layers do not have.
func language(p *profile.Profile, l *graph.Language) {
	if l == nil {
		return
	}
	set := func(key string, v float64) { _ = p.Totals.Set(key, profile.Value(profile.Counted, v, "")) }
	note := func(id, format string, args ...any) {
		p.Findings = append(p.Findings, profile.Finding{ID: id, Severity: profile.Info, Text: fmt.Sprintf(format, args...)})
	}
	var weights, bytes int64
	var types []string
	for _, t := range l.Types {
		weights, bytes = weights+t.Weights, bytes+t.Bytes
		types = append(types, fmt.Sprintf("%s %s (%s weights, %s)", t.Type, bitsText(t.Bytes, t.Weights), countText(t.Weights), sizeText(t.Bytes)))
	}
	if weights > 0 {
		set("bits_per_weight", float64(bytes)*8/float64(weights))
		note("weights.types", "Bits of a weight in the file, scales included: %s on average; %s.", bitsText(bytes, weights), strings.Join(types, ", "))
	}
	if l.Experts > 0 && p.Totals.Params != nil {
		set("active_params", float64(l.ActiveParams))
		note("weights.experts", "A token uses %d of %d experts of a layer: %s of %s parameters.", l.UsedExperts, l.Experts, countText(l.ActiveParams), countText(*p.Totals.Params))
	}
	if n := l.CacheElements; n > 0 {
		set("cache_bytes_per_token", float64(n*halfBytes))
		note("memory.cache", "A token adds %s elements to the caches of keys and values (%s): %s in float16.", countText(n), l.CacheFormula, sizeText(n*halfBytes))
	}
	if n := l.StateElements; n > 0 {
		const floatBytes = 4
		note("memory.state", "The states have %s elements for any number of tokens: %s in float32.", countText(n), sizeText(n*floatBytes))
	}
}

// bitsText writes the bits of a weight.
func bitsText(bytes, weights int64) string {
	return fmt.Sprintf("%.4g bits", float64(bytes)*8/float64(weights))
}

// countText writes a count, sizeText a number of bytes, with three digits and a prefix.
func countText(n int64) string { return prefixed(float64(n), 1000, "", " k", " M", " G", " T") }

func sizeText(n int64) string {
	return prefixed(float64(n), 1024, " B", " KiB", " MiB", " GiB", " TiB")
}

func prefixed(v, step float64, units ...string) string {
	for len(units) > 1 && v >= 999.5 {
		v, units = v/step, units[1:]
	}
	return fmt.Sprintf("%.3g%s", v, units[0])
}
