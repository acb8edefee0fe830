package chip

import "math"

// Inference returns the energy of an inference that keeps the processor busy for the given
// cycles, in joules. It is nil if the power model is nil or has parts that depend on more than
// cycles. The errors of cycles and of power are independent, so that their squares add up.
func (e *Energy) Inference(cycles *Figure) *Figure {
	if e == nil || e.Watts != 0 || e.MAC != 0 {
		return nil // the layers are summed
	}
	v := cycles.Value * (e.ElapsedCycle + e.CPUCycle)
	if e.Band == nil || e.Band[0] <= 0 || e.Band[1] <= 0 || cycles.Low <= 0 {
		return &Figure{Value: v, Low: v, High: v}
	}
	low := math.Hypot(math.Log(cycles.Value/cycles.Low), math.Log(e.Band[0]))
	high := math.Hypot(math.Log(cycles.High/cycles.Value), math.Log(e.Band[1]))
	return Scaled(v, math.Exp(-low), math.Exp(high))
}

// Layer returns the energy of one layer at a clock in hertz, in joules. macs is the number of
// multiply-accumulates, nil if unknown. The cycle model's own figure takes precedence over the
// power model; the result is nil without either.
func (e *Energy) Layer(c *LayerCost, clock float64, macs *int64) *Figure {
	if c.Energy != nil || e == nil || c.Latency == nil {
		return c.Energy
	}
	at := func(elapsed, cpu float64) float64 {
		v := elapsed*e.ElapsedCycle + e.Watts*elapsed/clock + cpu*e.CPUCycle
		if e.MAC != 0 && macs != nil {
			v += e.MAC * float64(*macs)
		}
		return v
	}
	f := &Figure{}
	var cpu Figure
	if c.CPU != nil {
		cpu = *c.CPU
	}
	f.Value, f.Low, f.High = at(c.Latency.Value, cpu.Value), at(c.Latency.Low, cpu.Low), at(c.Latency.High, cpu.High)
	if e.Band != nil {
		f.Low, f.High = f.Low*e.Band[0], f.High*e.Band[1]
	}
	return f
}
