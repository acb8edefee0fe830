package blocks

import (
	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/profile"
)

// maxWork bounds the comparisons of layers: some tenths of a second.
const maxWork = 30_000_000

// repeat is a sequence of layers in which each is equal to the one a period before.
type repeat struct{ begin, end, period int }

// bySequence returns repeated sequences of equal layers, by the division of the body with the
// fewest rows. Of equally good places to begin a block the one counts with the fewest live tensors,
// and between layers whose names have other numbers.
func bySequence(body profile.Layers, signs []int, known []bool) []unit {
	n := len(body)
	repeats := repeatsOf(signs, known)
	// The last place at which two blocks begin, descending: repeats become active in this
	// order.
	sorting.Stable(repeats, func(a, b repeat) int { return (b.end - 2*b.period) - (a.end - 2*a.period) })
	live := liveAt(body, false)
	names := make([]string, n)
	for i, l := range body {
		names[i] = numbersOf(l)
	}
	cost := make([]float64, n+1)
	from := make([]*repeat, n)
	var active []*repeat
	next, work := 0, 0
	for i := n - 1; i >= 0; i-- {
		for next < len(repeats) && repeats[next].end-2*repeats[next].period >= i {
			active = append(active, &repeats[next])
			next++
		}
		cost[i] = 1 + cost[i+1]
		kept := active[:0]
		for _, r := range active {
			if r.begin > i {
				continue
			}
			kept = append(kept, r)
			count := (r.end - i) / r.period
			if work++; work > maxWork {
				continue
			}
			c := float64(r.period+1) + doubt(i, r.period, count, live, names) + cost[i+count*r.period]
			// As early as possible, with the shortest period, where neither is better.
			if fewer := count*r.period > r.period+1; fewer && (c < cost[i] || c == cost[i] && (from[i] == nil || r.period < from[i].period)) {
				cost[i], from[i] = c, r
			}
		}
		active = kept
	}
	var out []unit
	for i := 0; i < n; {
		r := from[i]
		if r == nil {
			i++
			continue
		}
		var u unit
		for ; i+r.period <= r.end; i += r.period {
			block := make([]int, r.period)
			for k := range block {
				block[k] = i + k
			}
			u = append(u, block)
		}
		out = append(out, u)
	}
	return out
}

// repeatsOf returns the longest sequences that repeat, with the shortest period of each.
func repeatsOf(signs []int, known []bool) (out []repeat) {
	n := len(signs)
	seen := map[[2]int]bool{}
	most := n / 2
	if n > 0 {
		most = min(most, maxWork/n)
	}
	for p := 1; p <= most; p++ {
		equal := 0
		for i := p; i <= n; i++ {
			if i < n && known[i] && signs[i] == signs[i-p] {
				equal++
				continue
			}
			if r := (repeat{i - p - equal, i, p}); equal >= p && !seen[[2]int{r.begin, r.end}] {
				seen[[2]int{r.begin, r.end}] = true
				out = append(out, r)
			}
			equal = 0
		}
	}
	return out
}

// doubt says between 0 and 1 how little speaks for blocks at some places.
func doubt(begin, period, count int, live []int, names []string) float64 {
	const most = 8 // borders that are looked at
	step := (count + most) / most
	borders, alive, same := 0, 0, 0
	for k := 0; k <= count; k += step {
		i := begin + k*period
		borders++
		alive += live[i]
		if i > 0 && i < len(names) && names[i] != "" && names[i] == names[i-1] {
			same++
		}
	}
	alone := float64(alive) / float64(borders)
	return 0.4*alone/(alone+1) + 0.5*float64(same)/float64(borders)
}

// liveAt returns the number of tensors that are there before each layer and read from it on: those
// that a layer makes, and with all set also those that come from outside.
func liveAt(layers profile.Layers, all bool) []int {
	made, last := map[string]int{}, map[string]int{}
	for i, l := range layers {
		for k := range l.Inputs {
			if t := &l.Inputs[k]; !t.Constant && !t.Absent && t.Name != "" {
				last[t.Name] = i
				if _, ok := made[t.Name]; !ok && all {
					made[t.Name] = -1
				}
			}
		}
		for k := range l.Outputs {
			if name := l.Outputs[k].Name; name != "" {
				made[name] = i
			}
		}
	}
	change := make([]int, len(layers)+2)
	for name, i := range made {
		if to := last[name]; to > i {
			change[i+1]++
			change[to+1]--
		}
	}
	out := make([]int, len(layers)+1)
	alive := 0
	for i := range out {
		alive += change[i]
		out[i] = alive
	}
	return out
}
