package peaks

import (
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/base/workers"
)

// TestSlices takes slices in turn while their time is within a part of the measurement's, and no
// more than a number for each part.
func TestSlices(t *testing.T) {
	t.Parallel()
	pool := workers.New(1, nil)
	defer pool.Close()
	at := time.Unix(0, 0)
	p := &Probe{o: Options{Pool: pool}, now: func() time.Time { return at }}
	for range 2 {
		p.parts = append(p.parts, &part{amount: 1, round: func() { at = at.Add(5 * time.Millisecond) }})
	}
	least := func() { // each slice has one round by this clock
		if n := p.r.Interleaved; p.spent != time.Duration(n)*5*time.Millisecond {
			t.Errorf("%d slices took %v", n, p.spent)
		}
	}
	if p.Slices(0) {
		t.Error("a slice before the measurement began")
	}
	if !p.Slices(time.Second) || p.spent < 50*time.Millisecond {
		t.Errorf("%v of slices in a second", p.spent)
	}
	least()
	if d := p.parts[0].slices - p.parts[1].slices; d < -1 || d > 1 {
		t.Errorf("%d and %d slices", p.parts[0].slices, p.parts[1].slices)
	}
	if before := p.spent; p.Slices(time.Second) || p.spent != before {
		t.Error("more slices than the part of the time allows")
	}
	p.Slices(time.Hour * 1000)
	if p.parts[0].slices != mostSlices || p.parts[1].slices != mostSlices || p.r.Interleaved != 2*mostSlices {
		t.Errorf("%d and %d slices, %d in total", p.parts[0].slices, p.parts[1].slices, p.r.Interleaved)
	}
	least()
}

// TestDisturbedSlices: rounds of a disturbed slice count only if there are no others.
func TestDisturbedSlices(t *testing.T) {
	t.Parallel()
	x := &part{}
	x.add([]float64{200, 1}, true)
	if r := x.rate(); r.Best != 200 || x.settled() {
		t.Errorf("all disturbed: %+v", r)
	}
	x.add([]float64{100, 99, 98}, false)
	if r := x.rate(); r.Best != 100 || r.Median != 99 || x.settled() {
		t.Errorf("one undisturbed: %+v", r)
	}
	x.add([]float64{101}, false)
	if r := x.rate(); r.Best != 101 || !x.settled() {
		t.Errorf("two undisturbed: %+v", r)
	}
	x.add([]float64{150}, false)
	if x.settled() {
		t.Error("slices that differ by half agree")
	}
}

// TestUsageOfSlices: a slice in which the system took the processor away is disturbed.
func TestUsageOfSlices(t *testing.T) {
	t.Parallel()
	pool := workers.New(1, nil)
	defer pool.Close()
	at, cpu, lost := time.Unix(0, 0), int64(0), int64(0)
	p := &Probe{now: func() time.Time { return at }}
	p.o = Options{Pool: pool, Usage: func() (int64, int64) { return cpu, lost }}
	for _, tt := range []struct {
		name      string
		waits     int64
		loses     int64
		disturbed bool
	}{{"undisturbed", 0, 0, false}, {"waits", 1e6, 0, true}, {"preempted", 0, 1, true}} {
		first := true
		x := &part{amount: 1, round: func() {
			at = at.Add(time.Millisecond)
			cpu += 1e6
			if first {
				cpu -= tt.waits
				lost += tt.loses
				first = false
				at = at.Add(time.Duration(tt.waits) * 20) // rounds take as long as the machine likes
			}
		}}
		p.slice(x)
		if got := len(x.best) == 0; got != tt.disturbed {
			t.Errorf("%s: disturbed %v", tt.name, got)
		}
	}
}

// TestTypes: only the types asked for are measured, and those of earlier calls are kept apart.
func TestTypes(t *testing.T) {
	t.Parallel()
	pool := workers.New(1, nil)
	defer pool.Close()
	o := Options{Pool: pool, CPUs: []int64{1004}, Types: []string{"int8"}}
	r, earlier, err := Of(t.Context(), o)
	if err != nil || earlier || r.Float.Best != 0 || !(r.Integer.Best > 0) {
		t.Fatalf("%+v, earlier %v, %v", r, earlier, err)
	}
	o.Types = []string{"float32"}
	if r, earlier, err = Of(t.Context(), o); err != nil || earlier || !(r.Float.Best > 0) || r.Integer.Best != 0 {
		t.Fatalf("%+v, earlier %v, %v", r, earlier, err)
	}
	o.Types = nil
	if r, earlier, err = Of(t.Context(), o); err != nil || !earlier || !(r.Float.Best > 0) || !(r.Integer.Best > 0) {
		t.Fatalf("%+v, earlier %v, %v", r, earlier, err)
	}
}
