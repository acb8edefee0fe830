package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// limits says what limits the layers, by time, and what the limits are: those of this
// engine, and beside them what the processor could do.
func limits(p *profile.Profile) string {
	var sum, known float64
	by := map[profile.Bound]float64{}
	levels := map[string]float64{}
	var types []string
	for i := range p.Layers {
		l := &p.Layers[i]
		s, ok := l.Latency.Best()
		if !ok {
			continue
		}
		sum += s
		r := l.Roof
		if r == nil {
			continue
		}
		if r.DType != "" && !slices.Contains(types, r.DType) {
			types = append(types, r.DType)
		}
		if r.Bound == "" {
			continue
		}
		known += s
		by[r.Bound] += s
		if r.Bound == profile.BoundMemory {
			levels[r.Level] += s
		}
	}
	if !(sum > 0) {
		return ""
	}
	var parts []string
	if v := by[profile.BoundCompute]; v > 0 {
		parts = append(parts, Percent(v/sum)+" of the time near the limit of arithmetic")
	}
	for _, l := range []string{"L1", "L2", "L3", "memory"} {
		if v := levels[l]; v > 0 {
			parts = append(parts, fmt.Sprintf("%s near that of %s", Percent(v/sum), l))
		}
	}
	if v := by[profile.BoundNeither]; v > 0 {
		parts = append(parts, Percent(v/sum)+" far below both")
	}
	if known == 0 {
		switch t := &p.Target; {
		case t.PeakOpsPerSecond != nil && t.PeakBytesPerSecond == nil:
			return "only the peak of arithmetic is known, so that memory and arithmetic cannot be told apart"
		case t.PeakOpsPerSecond == nil && t.PeakBytesPerSecond != nil:
			return "only the rate of the memory is known, so that memory and arithmetic cannot be told apart"
		}
		return ""
	}
	s := strings.Join(parts, ", ")
	if e := engine(p, types); e != "" {
		s += "; " + e
	}
	return s
}

// engine says what this engine does of each type, and what the processor could do.
func engine(p *profile.Profile, types []string) string {
	var out []string
	for i := range p.Target.Peaks {
		k := &p.Target.Peaks[i]
		if !slices.Contains(types, k.DType) {
			continue
		}
		s := fmt.Sprintf("%s at most %s by this engine", k.DType, Quantity(k.OpsPerSecond, "op/s"))
		if v := k.ProcessorOpsPerSecond; v != nil {
			s += fmt.Sprintf(" (the processor could do %s with %s)", Quantity(*v, "op/s"), k.ProcessorSet)
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}
