package figures

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/profile/timeline"
)

// sampledInferences is the largest number of inferences in the sample of a timeline.
const sampledInferences = 16

// SampleTimeline reduces a timeline to a sample of whole inferences: the representative one, and
// others spread evenly over the measurement, up to a number of bars. The representative one is
// kept in any case. It is the inference whose layers are nearest to their medians, among those that
// calm accepts if there are any; nil accepts all. Bars of no inference are kept as far as
// the number allows. A timeline without inferences keeps its first bars.
func SampleTimeline(t *timeline.Timeline, bars int, calm func(inference int32) bool) *timeline.Timeline {
	if t == nil {
		return nil
	}
	s := newInferences(t)
	first, ok := s.representative(calm)
	if ok {
		t.Representative = new(int64(first))
	}
	keep := s.sample(first, ok, bars)
	free := max(0, bars-s.bars(keep))
	out := t.Keep(func(l *timeline.Lane, bar int) bool {
		if n := inferenceOf(l, bar); n >= 0 {
			return keep[n]
		}
		free--
		return free >= 0
	})
	out.NamesInUse()
	if free < 0 {
		out.Method += fmt.Sprintf("; of bars of no inference the first ones, without %d", -free)
	}
	if ok {
		ran := int64(len(s.all))
		if t.Iterations != nil {
			ran = max(ran, *t.Iterations)
		}
		out.Method += fmt.Sprintf("; sample of %d of %d inferences, spread evenly, with the representative one (iteration %d)", len(keep), ran, first)
	}
	return out
}

func inferenceOf(l *timeline.Lane, bar int) int32 {
	if l.Iterations == nil {
		return -1
	}
	return l.Iterations[bar]
}

// inference is what a timeline has of one.
type inference struct {
	number int32
	bars   int
	// layers has the time of each layer, in seconds.
	layers map[int32]float64
}

type inferences struct {
	all []*inference // by number
	at  map[int32]*inference
}

func newInferences(t *timeline.Timeline) *inferences {
	s := &inferences{at: map[int32]*inference{}}
	for i := range t.Lanes {
		l := &t.Lanes[i]
		for k := range l.Starts {
			n := inferenceOf(l, k)
			if n < 0 {
				continue
			}
			v := s.at[n]
			if v == nil {
				v = &inference{number: n, layers: map[int32]float64{}}
				s.at[n] = v
			}
			v.bars++
			layer := int32(-1) // the whole inference
			if l.Layers != nil {
				layer = l.Layers[k]
			}
			if layer >= 0 || l.Kind == timeline.Iteration {
				v.layers[layer] += l.Durations[k]
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(s.at)) {
		s.all = append(s.all, s.at[n])
	}
	return s
}

// representative returns the inference whose layers are nearest to their medians: the one with the
// smallest sum of distances.
func (s *inferences) representative(calm func(int32) bool) (number int32, ok bool) {
	from := s.all
	if calm != nil {
		if quiet := slices.DeleteFunc(slices.Clone(s.all), func(v *inference) bool { return !calm(v.number) }); len(quiet) > 0 {
			from = quiet
		}
	}
	times := map[int32][]float64{}
	for _, v := range from {
		for layer, t := range v.layers {
			times[layer] = append(times[layer], t)
		}
	}
	medians := map[int32]float64{}
	for layer, ts := range times {
		for len(ts) < len(from) {
			ts = append(ts, 0) // of an inference that did not reach it
		}
		medians[layer] = stats.Median(ts)
	}
	layers := slices.Sorted(maps.Keys(medians))
	least := math.Inf(1)
	for _, v := range from {
		sum := 0.0
		for _, layer := range layers {
			sum += math.Abs(v.layers[layer] - medians[layer])
		}
		if sum < least {
			least, number, ok = sum, v.number, true
		}
	}
	return number, ok
}

// sample selects inferences: one for certain, and as many others as the number of bars allows.
func (s *inferences) sample(certain int32, ok bool, bars int) map[int32]bool {
	keep := map[int32]bool{}
	if !ok {
		return keep
	}
	keep[certain] = true
	left := bars - s.at[certain].bars
	others := slices.DeleteFunc(slices.Clone(s.all), func(v *inference) bool { return v.number == certain })
	n := min(sampledInferences-1, len(others))
	for i := range n {
		v := others[i*len(others)/n]
		if v.bars > left {
			continue
		}
		keep[v.number] = true
		left -= v.bars
	}
	return keep
}

// bars is the number of bars of inferences.
func (s *inferences) bars(keep map[int32]bool) (n int) {
	for number := range keep {
		n += s.at[number].bars
	}
	return n
}
