package profile

// Rates are figures that follow from others, nil where these are missing.
type Rates struct {
	OpsPerSecond        *float64 // operations a second
	MACsPerSecond       *float64 // multiply-accumulates a second
	InferencesPerSecond *float64 // batches a second; multiply by the batch for samples
	JoulesPerOp         *float64 // J
	JoulesPerMAC        *float64 // J
	Watts               *float64 // mean power of an inference, W
	CPUUtilization      *float64 // fraction of the latency in which the processor works, 0 to 1
	BytesPerSecond      *float64 // operands read and written a second
	OpsPerByte          *float64 // arithmetic intensity
}

// Rates derives the figures of the whole model. Work of layers that did not run, or
// of whose time nothing is known, is left out: it took no part of the time. The
// formulas are those of the MLTK profiler's summary: sums divided by sums,
// utilisation min(1, CPU cycles / (clock x latency)).
func (p *Profile) Rates() Rates {
	t := p.Totals
	for i := range p.Layers {
		l := &p.Layers[i]
		if !l.State.Blank() || l.Constant {
			continue
		}
		for _, x := range []struct{ total, part **int64 }{
			{&t.Ops, &l.Ops},
			{&t.MACs, &l.MACs},
			{&t.BytesRead, &l.BytesRead},
			{&t.BytesWritten, &l.BytesWritten},
		} {
			if *x.total != nil && *x.part != nil {
				*x.total = new(max(0, **x.total-**x.part))
			}
		}
	}
	r := rates(t.Figure)
	if s, ok := t.Latency.Best(); ok && s > 0 {
		r.InferencesPerSecond = new(1 / s)
		if c, ok := t.CPUCycles.Best(); ok && p.Target.ClockHz != nil && *p.Target.ClockHz > 0 {
			r.CPUUtilization = new(min(1, c/(*p.Target.ClockHz*s)))
		}
	}
	return r
}

// Rates derives the figures of one layer; InferencesPerSecond and CPUUtilization
// are nil.
func (l *Layer) Rates() Rates { return rates(l.Figure) }

func rates(figure func(string) *Metric) Rates {
	best := func(key string) *float64 {
		v, ok := figure(key).Best()
		if !ok {
			return nil
		}
		return &v
	}
	return Rates{
		OpsPerSecond: best("ops_per_s"), MACsPerSecond: best("macs_per_s"), BytesPerSecond: best("bytes_per_s"), OpsPerByte: best("ops_per_byte"),
		JoulesPerOp: best("energy_per_op_j"), JoulesPerMAC: best("energy_per_mac_j"), Watts: best("power_w"),
	}
}
