package engine

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TestWatch: watched values are reported when a set is complete, unchanged by in-place steps, and
// then release their memory.
func TestWatch(t *testing.T) {
	t.Parallel()
	lines := []string{"Inc a x", "Twice b a", "Twice c b", "Inc d c", "Inc y d"}
	in := []*tensor.Tensor{vec(make([]float32, 100)...)}
	g := build(0, nil, "x", "a b c d y", lines...)
	id := func(name string) int { return value(g, name).ID }
	sets := [][]int{{id("a")}, {id("a"), id("b")}, {id("d"), id("c")}, {id("x")}, {id("y")}}
	var s *Session
	var seen []float32
	var order []int
	stop := errors.New("enough")
	end := -1
	o := Options{Watch: sets, Seen: func(k int) error {
		order = append(order, k)
		for _, id := range sets[k] {
			seen = append(seen, tensor.Of[float32](s.Value(id))[0])
		}
		if k == end {
			return stop
		}
		return nil
	}}
	s = start(t, o, in, g)
	for range 2 {
		seen, order = nil, nil
		run(t, s)
		if !slices.Equal(order, []int{0, 1, 2, 4, 3}) || !slices.Equal(seen, []float32{1, 1, 2, 5, 4, 6, 0}) {
			t.Errorf("sets %v with %v", order, seen)
		}
	}
	arena, _ := s.Memory()
	all, _ := start(t, Options{}, in, build(0, nil, "x", "a b c d y", lines...)).Memory()
	if arena >= all {
		t.Errorf("%d bytes, %d where values stay to the end", arena, all)
	}
	if end = 1; !errors.Is(s.Run(context.Background()), stop) {
		t.Error("the run did not end with the error")
	}
}
