package sample

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSamplesAreValid(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{}, {Hostile: true, Samples: true}, {Layers: 200, Iterations: 3, Cores: 8, Bars: 20_000}, {Layers: 1}} {
		p := New(o)
		if err := p.Validate(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
		if d := cmp.Diff(p, New(o)); d != "" {
			t.Errorf("%+v gives two profiles", o)
		}
		bars := 0
		for _, l := range p.Timeline.Lanes {
			bars += len(l.Starts)
		}
		if bars < o.Bars {
			t.Errorf("%+v: %d bars", o, bars)
		}
	}
}

func TestVersionsAreValid(t *testing.T) {
	t.Parallel()
	for _, hostile := range []bool{false, true} {
		for k, p := range Versions(120, 3, hostile) {
			if err := p.Validate(); err != nil {
				t.Errorf("version %d: %v", k, err)
			}
		}
	}
}
