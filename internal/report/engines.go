package report

import (
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// numbered is the number of a lane for bars that overlap others of the same engine.
var numbered = lazyregexp.New(` \(\d+\)$`)

// busiest returns the part of the latency in which the busiest engine of a kind worked. The figure
// holds all engines of the kind together, and the lanes of the timeline tell how it is divided
// among them. ok is false where one of both is absent.
func busiest(p *profile.Profile, key, kind string) (part float64, ok bool) {
	busy, known := p.Totals.Value(key)
	latency, timed := p.Totals.Latency.Best()
	if !known || !timed || !(latency > 0) || p.Timeline == nil {
		return 0, false
	}
	lanes := map[string]float64{}
	sum, most := 0.0, 0.0
	for i := range p.Timeline.Lanes {
		l := &p.Timeline.Lanes[i]
		if l.Kind != timeline.Engine || !strings.Contains(l.Name, kind) {
			continue
		}
		name := l.Group + "\n" + numbered.ReplaceAllString(l.Name, "")
		for _, d := range l.Durations {
			lanes[name] += d
			sum += d
		}
		most = max(most, lanes[name])
	}
	if !(sum > 0) {
		return 0, false
	}
	return busy / latency * most / sum, true
}

// engineBound says which engine of an accelerator bounds an inference, such as "DMA-bound: copy
// engine busy 82.0 %, tensor engine 25.0 %"; "" for a profile without engines.
func engineBound(p *profile.Profile) string {
	tensor, known := busiest(p, "tiu_busy_s", "TIU")
	copies, too := busiest(p, "dma_busy_s", "DMA")
	if !known || !too {
		return ""
	}
	first, second := "tensor", "copy"
	a, b := tensor, copies
	if copies > tensor {
		first, second, a, b = second, first, b, a
	}
	text := fmt.Sprintf("%s engine busy %s, %s engine %s", first, Percent(a), second, Percent(b))
	// An engine that is busy for less than half of the time bounds nothing, and a lead of less
	// than a tenth is within what other inputs change.
	switch {
	case a > 1:
		return "" // a finding says that the record is wrong
	case a < 0.5:
		return "neither engine: " + text + "; the rest is waiting"
	case a <= 1.1*b:
		text = "balanced: " + text
	case copies > tensor:
		text = "DMA-bound: " + text
	default:
		text = "compute-bound: " + text
	}
	if both, ok := p.Totals.Value("parallel_s"); ok {
		latency, _ := p.Totals.Latency.Best()
		text += fmt.Sprintf(", both at once %s", Percent(both/latency))
	}
	return text
}
