package spans

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/profile/timeline"
)

// oneClock returns the timeline with all times on its own clock, t itself where
// they are already. A clock whose offset is not known begins where the timeline
// does: its lanes can be compared with each other only, and Method says so.
func oneClock(t *timeline.Timeline) *timeline.Timeline {
	if len(t.Clocks) == 0 {
		return t
	}
	out := *t
	out.Lanes, out.Counters = slices.Clone(t.Lanes), slices.Clone(t.Counters)
	start := 0.0 // of the lanes whose times are known
	first := map[string]float64{}
	for i := range t.Lanes {
		l := &t.Lanes[i]
		if len(l.Starts) == 0 {
			continue
		}
		if s, ok := first[l.Clock]; !ok || l.Starts[0] < s {
			first[l.Clock] = l.Starts[0]
		}
	}
	if s, ok := first[""]; ok {
		start = s
	}
	convert := map[string]func(float64) float64{}
	rates := map[string]float64{}
	var apart []string
	for _, c := range t.Clocks {
		rate := 1.0
		if c.Rate != nil {
			rate = *c.Rate
		}
		offset, shift := first[c.Name], start
		if c.OffsetS != nil {
			offset, shift = *c.OffsetS, 0
		} else {
			apart = append(apart, c.Name)
		}
		// Times of the model are not negative; a bar may begin a little before the
		// origin by the error of the clock's offset.
		convert[c.Name] = func(s float64) float64 { return max(0, (s-offset)*rate+shift) }
		rates[c.Name] = rate
	}
	for i := range out.Lanes {
		l := &out.Lanes[i]
		f := convert[l.Clock]
		if f == nil {
			continue
		}
		starts, durations, stalls := slices.Clone(l.Starts), slices.Clone(l.Durations), slices.Clone(l.Stalls)
		for j, s := range starts {
			end := f(s + durations[j])
			starts[j] = f(s)
			durations[j] = math.Max(0, end-starts[j])
			if j < len(stalls) {
				stalls[j] *= rates[l.Clock]
			}
		}
		l.Starts, l.Durations, l.Stalls = starts, durations, stalls
	}
	for i := range out.Counters {
		k := &out.Counters[i]
		if f := convert[k.Clock]; f != nil {
			k.Times = slices.Clone(k.Times)
			for j, s := range k.Times {
				k.Times[j] = f(s)
			}
		}
	}
	if len(apart) > 0 {
		out.Method = strings.TrimPrefix(fmt.Sprintf("%s; times by the clock %s can be compared among themselves only", t.Method, strings.Join(apart, ", ")), "; ")
	}
	return &out
}
