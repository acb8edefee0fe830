package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/report/words"
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
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest(b), rest(a)) })
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
	var sum, known float64
	by := map[profile.Bound]float64{}
	levels := map[string]float64{}
	for i := range p.Layers {
		l := &p.Layers[i]
		s, ok := l.Latency.Best()
		if !ok || l.State == profile.NotReached {
			continue
		}
		sum += s
		r := l.Roof
		if r == nil || r.Bound == "" {
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
	if known == 0 {
		switch t := &p.Target; {
		case t.PeakOpsPerSecond != nil && t.PeakBytesPerSecond == nil:
			return "unknown: memory bandwidth of the target is not known"
		case t.PeakOpsPerSecond == nil && t.PeakBytesPerSecond != nil:
			return "unknown: peak arithmetic rate of the target is not known"
		}
		return ""
	}
	parts := []part{{"%d %% compute-bound", by[profile.BoundCompute]}}
	names := []string{"L1", "L2", "L3", "memory"}
	for _, l := range slices.Sorted(maps.Keys(levels)) {
		if !slices.Contains(names, l) {
			names = append(names, l)
		}
	}
	for _, l := range names {
		parts = append(parts, part{"%d %% " + strings.ReplaceAll(memoryLevel(p, l), "%", "%%") + "-bound", levels[l]})
	}
	parts = append(parts, part{"%d %% below 10 %% of peak (overhead)", by[profile.BoundNeither]}, part{"%d %% unknown", max(0, sum-known)})
	return strings.Join(percents(parts), ", ")
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
		s := fmt.Sprintf("%s %s measured with this engine", k.DType, Quantity(k.OpsPerSecond, "op/s"))
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
	for _, g := range ran.Group(words.Op) {
		if v, ok := g.Sum("share"); ok && v > 0 {
			parts = append(parts, part{g.Name, v})
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.value, a.value) })
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
