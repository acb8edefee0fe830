package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/profile"
)

// part is a part of a whole with its name.
type part struct {
	name  string
	value float64
}

// percents writes the parts of a whole in whole per cent that add up to 100, by the largest
// remainder. A part that rounds to nothing is left out.
func percents(parts []part) []string {
	var sum float64
	for _, p := range parts {
		sum += p.value
	}
	if !(sum > 0) {
		return nil
	}
	whole := make([]int, len(parts))
	order := make([]int, len(parts))
	left := 100
	rest := func(i int) float64 { return 100*parts[i].value/sum - float64(whole[i]) }
	for i, p := range parts {
		whole[i] = int(math.Floor(100 * p.value / sum))
		order[i] = i
		left -= whole[i]
	}
	sorting.Stable(order, func(a, b int) int { return cmp.Compare(rest(b), rest(a)) })
	for _, i := range order[:min(left, len(order))] {
		whole[i]++
	}
	var out []string
	for i, p := range parts {
		if whole[i] > 0 {
			out = append(out, fmt.Sprintf(p.name, whole[i]))
		}
	}
	return out
}

// memoryLevel is the name of a level of memory as a bottleneck.
func memoryLevel(p *profile.Profile, level string) string {
	if level == "memory" && p.Target.Kind == profile.TargetHost {
		return "DRAM"
	}
	return level
}

// bottleneck says what bounds the model: the engines of an accelerator that were recorded, else the
// layers by time. Parts of the time add up to 100 %.
func bottleneck(p *profile.Profile) string {
	if s := engineBound(p); s != "" {
		return s
	}
	bounds := p.Bounds
	if bounds == nil {
		bounds = p.BoundParts()
	}
	if len(bounds) == 0 {
		switch t := &p.Target; {
		case !slices.ContainsFunc(p.Layers, func(l profile.Layer) bool { return l.Latency != nil }):
			return ""
		case t.PeakOpsPerSecond != nil && t.PeakBytesPerSecond == nil:
			return "unknown: memory bandwidth of the target is not known"
		case t.PeakOpsPerSecond == nil && t.PeakBytesPerSecond != nil:
			return "unknown: peak arithmetic rate of the target is not known"
		}
		return ""
	}
	var parts []part
	for i := range bounds {
		parts = append(parts, part{"%d %% " + strings.ReplaceAll(boundWords(p, &bounds[i]), "%", "%%"), bounds[i].Share})
	}
	return strings.Join(percents(parts), ", ")
}

// boundWords names what bounds a part of the time, with the mean utilisation of its limit.
func boundWords(p *profile.Profile, b *profile.BoundPart) string {
	at := func(of string) string {
		if b.Use == nil || !(*b.Use > 0) {
			return ""
		}
		return fmt.Sprintf(" at %.0f %% of %s", 100**b.Use, of)
	}
	switch b.Bound {
	case profile.BoundCompute:
		return "compute-bound" + at("peak")
	case profile.BoundMemory:
		return memoryLevel(p, b.Level) + "-bound" + at(bandwidth(&p.Target, b.Level))
	case profile.BoundOverhead:
		return "overhead-bound"
	}
	return "unknown"
}

// bandwidth names the bandwidth of a level of memory: one that a layer raised is what this layer
// reached, not what the memory can do.
func bandwidth(t *profile.Target, level string) string {
	for i := range t.Levels {
		if l := &t.Levels[i]; l.Name == level && l.ReachedBy != nil {
			return fmt.Sprintf("what #%d reached", *l.ReachedBy)
		}
	}
	return "bandwidth"
}

// peaks lists the measured peak of this engine for each type that the layers compute in, with the
// theoretical peak of the processor where that is higher.
func peaks(p *profile.Profile) string {
	var types, out []string
	for i := range p.Layers {
		if r := p.Layers[i].Roof; r != nil && r.DType != "" && !slices.Contains(types, r.DType) {
			types = append(types, r.DType)
		}
	}
	for i := range p.Target.Peaks {
		k := &p.Target.Peaks[i]
		if !slices.Contains(types, k.DType) {
			continue
		}
		how := "measured with this engine"
		if k.ReachedBy != nil {
			how = fmt.Sprintf("reached by layer #%d", *k.ReachedBy)
		}
		s := fmt.Sprintf("%s %s %s", k.DType, Quantity(k.OpsPerSecond, "op/s"), how)
		if v := k.ProcessorOpsPerSecond; v != nil && *v > k.OpsPerSecond {
			s += fmt.Sprintf(" (theoretical %s with %s)", Quantity(*v, "op/s"), k.ProcessorSet)
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

// operators says where the time goes: the operators with the largest share, at most four.
func operators(p *profile.Profile) string {
	const most, least = 4, 0.01
	ran := p.Select(func(l *profile.Layer) bool { return l.State != profile.NotReached })
	var parts []part
	for _, g := range ran.Group((*profile.Layer).OpText) {
		if v, ok := g.Sum("share"); ok && v > 0 {
			parts = append(parts, part{g.Name, v})
		}
	}
	sorting.Stable(parts, func(a, b part) int { return cmp.Compare(b.value, a.value) })
	var sum, rest float64
	for _, x := range parts {
		sum += x.value
	}
	shown := parts[:0:0]
	for i, x := range parts {
		if i < most && x.value >= least*sum || i == 0 {
			shown = append(shown, part{strings.ReplaceAll(x.name, "%", "%%") + " %d %%", x.value})
		} else {
			rest += x.value
		}
	}
	return strings.Join(percents(append(shown, part{"others %d %%", rest})), " · ")
}
