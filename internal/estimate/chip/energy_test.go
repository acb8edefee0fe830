package chip_test

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/chip"
)

// The parts of a power model add up; what is not known stays out.
func TestEnergyOfLayer(t *testing.T) {
	t.Parallel()
	cycles := &chip.Figure{Value: 1000, Low: 800, High: 1200}
	layer := &chip.LayerCost{Latency: cycles, CPU: &chip.Figure{Value: 500, Low: 500, High: 500}}
	macs := int64(100)
	for _, tt := range []struct {
		name string
		e    *chip.Energy
		l    *chip.LayerCost
		want *chip.Figure
	}{
		{"no power model", nil, layer, nil},
		{"no latency", &chip.Energy{Watts: 1}, &chip.LayerCost{}, nil},
		{"of the cycle model", nil, &chip.LayerCost{Energy: cycles}, cycles},
		{"watts at 1 kHz", &chip.Energy{Watts: 2}, layer, &chip.Figure{Value: 2, Low: 1.6, High: 2.4}},
		{"cycles", &chip.Energy{ElapsedCycle: 1, CPUCycle: 2, MAC: 3, Band: &[2]float64{0.5, 2}}, layer, &chip.Figure{Value: 2300, Low: 1050, High: 5000}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := tt.e.Layer(tt.l, 1000, &macs)
			if (got == nil) != (tt.want == nil) || got != nil && !near(*got, *tt.want) {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

// Errors of cycles and power are independent: their squares, in logarithms, add up.
func TestEnergyOfInference(t *testing.T) {
	t.Parallel()
	cycles := &chip.Figure{Value: 1000, Low: 1000 / math.Exp(0.3), High: 1000 * math.Exp(0.3)}
	e := &chip.Energy{ElapsedCycle: 2, CPUCycle: 1, Band: &[2]float64{math.Exp(-0.4), math.Exp(0.4)}}
	want := chip.Figure{Value: 3000, Low: 3000 * math.Exp(-0.5), High: 3000 * math.Exp(0.5)}
	if got := e.Inference(cycles); !near(*got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, e := range []*chip.Energy{nil, {Watts: 1}, {ElapsedCycle: 1, MAC: 1}} {
		if got := e.Inference(cycles); got != nil {
			t.Errorf("%+v of %+v", got, e)
		}
	}
}

// near allows for the rounding of a few sums and powers.
func near(a, b chip.Figure) bool {
	same := func(x, y float64) bool { return math.Abs(x-y) <= 1e-12*math.Abs(y) }
	return same(a.Value, b.Value) && same(a.Low, b.Low) && same(a.High, b.High)
}
