package opmeter

import (
	"errors"
	"testing"

	"github.com/opmeter/opmeter/profile"
)

func TestFront(t *testing.T) {
	t.Parallel()
	point := func(latency, rate float64) SweepPoint {
		return SweepPoint{Latency: profile.Value(profile.Measured, latency, ""), Throughput: profile.Value(profile.Measured, rate, "")}
	}
	ps := []SweepPoint{point(1, 10), point(2, 30), point(2, 20), point(3, 30), point(4, 40), point(1, 10), {Err: errors.New("no")}, point(0.5, 5)}
	ps[7].Err = errors.New("half of it")
	front(ps)
	for i, want := range []bool{true, true, false, false, true, true, false, false} {
		if ps[i].Best != want {
			t.Errorf("point %d: %v, want %v", i, ps[i].Best, want)
		}
	}
}
