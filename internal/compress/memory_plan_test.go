package compress

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/compress/choose"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/study"
)

// held is a target with the given memory sizes, 0 for the target's own.
func held(t *testing.T, ram, flash int64) *chip.Target {
	t.Helper()
	set, err := chip.Load("")
	if err != nil {
		t.Fatal(err)
	}
	found, err := set.Find("nrf52840")
	if err != nil {
		t.Fatal(err)
	}
	out := *found
	out.Memories = slices.Clone(out.Memories)
	for i := range out.Memories {
		m := &out.Memories[i]
		switch {
		case m.Role == "ram" && ram > 0:
			m.Size = chip.Bytes(ram)
		case m.Role == "flash" && flash > 0:
			m.Size = chip.Bytes(flash)
		}
	}
	return &out
}

// TestMemoryPlan makes plans for memory limits. A model that fits stays unchanged, another one
// becomes smaller, and an impossible limit is refused with the nearest plan. The least memory
// within a loss equals that of the written file.
func TestMemoryPlan(t *testing.T) {
	t.Parallel()
	j := opened(t, "ds_cnn.yaml", filepath.Join(t.TempDir(), "m.study"))
	changes, err := Grid(false, []float64{.25, .5, .75}, []study.Structure{study.Filter}, []study.Format{})
	if err != nil {
		t.Fatal(err)
	}
	nrf := held(t, 0, 0)
	sp, err := j.Speed(t.Context(), SpeedOptions{Target: nrf, Changes: changes})
	if err != nil || sp.Energy == nil {
		t.Fatalf("%v: energy %v", err, sp.Energy)
	}
	if _, err := j.Loss(t.Context(), LossOptions{Method: study.Magnitude, Changes: changes, Data: &Data{}}); err != nil {
		t.Fatal(err)
	}
	fit := func(target *chip.Target) (*study.Plan, error) {
		return j.Plan(t.Context(), PlanOptions{Goal: study.Goal{Fit: target.ID}, Target: target, Ends: true})
	}
	p, err := fit(nrf)
	if err != nil || slices.ContainsFunc(p.Choices, func(c study.Choice) bool { return !c.Change.IsZero() }) {
		t.Fatalf("a target that holds the model: %v, %+v", err, p)
	}
	ram, flash := *p.Predicted.RAM, *p.Predicted.Flash
	if ram.Limit == nil || flash.Limit == nil || ram.AtLeast {
		t.Fatalf("RAM %+v, flash %+v", ram, flash)
	}
	for _, tt := range []struct {
		name       string
		ram, flash int64
		want       string
	}{
		{"less RAM", ram.Bytes * 9 / 10, 0, ""},
		{"less flash", 0, flash.Bytes - 4000, ""},
		{"less of both", ram.Bytes * 9 / 10, flash.Bytes - 4000, ""},
		{"next to nothing", 100, 0, "no plan fits nrf52840: the nearest takes "},
	} {
		target := held(t, tt.ram, tt.flash)
		p, err := fit(target)
		if tt.want != "" {
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), " of 100 bytes of RAM and ") {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		a, err := j.Apply(t.Context(), "", nil, false)
		if err != nil {
			t.Fatal(err)
		}
		r, f, err := j.memory(t.Context(), a.Graph, target)
		if err != nil || r.Bytes != p.Predicted.RAM.Bytes || f.Bytes != p.Predicted.Flash.Bytes || r.Bytes > *r.Limit || f.Bytes > *f.Limit {
			t.Errorf("%s: %v: RAM %+v, flash %+v, said %+v and %+v", tt.name, err, r, f, p.Predicted.RAM, p.Predicted.Flash)
		}
	}
	least := func(most float64) *study.Plan {
		p, err := j.Plan(t.Context(), PlanOptions{Goal: study.Goal{MaxLoss: &most, Cost: choose.RAM}, Ends: true})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	some, more := least(.5), least(1e6)
	if some.Predicted.RAM.Bytes > ram.Bytes || more.Predicted.RAM.Bytes >= some.Predicted.RAM.Bytes {
		t.Errorf("%d bytes of RAM, %d for a loss, %d for all", ram.Bytes, some.Predicted.RAM.Bytes, more.Predicted.RAM.Bytes)
	}
	if !slices.IsSortedFunc(more.Front, func(a, b study.FrontPoint) int { return int(a.Cost - b.Cost) }) || !slices.IsSortedFunc(more.Front, func(a, b study.FrontPoint) int {
		if a.Loss > b.Loss {
			return -1
		}
		return 1
	}) {
		t.Error("the front does not rise")
	}
	e, err := j.Plan(t.Context(), PlanOptions{Goal: study.Goal{MaxLoss: new(1e6), Cost: choose.Energy}, Ends: true})
	whole, _ := sp.Energy.Best()
	if v, ok := e.Predicted.Energy.Best(); err != nil || !ok || v >= whole {
		t.Errorf("%v: %v of %v J", err, v, whole)
	}
	sp.Energy = nil
	if _, err := j.Plan(t.Context(), PlanOptions{Goal: study.Goal{MaxLoss: new(1.), Cost: choose.Energy}}); err == nil || !strings.Contains(err.Error(), "a target with energy figures (apollo510, efr32xg24,") {
		t.Errorf("no energy: %v", err)
	}
}
