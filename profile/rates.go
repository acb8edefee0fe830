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

// Rates derives the figures of the whole model. The formulas are those of the
// MLTK profiler's summary: sums divided by sums, utilisation
// min(1, CPU cycles / (clock x latency)).
func (p *Profile) Rates() Rates {
	t := &p.Totals
	r := rates(t.Ops, t.MACs, t.BytesRead, t.BytesWritten, t.Latency, t.Energy)
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
func (l *Layer) Rates() Rates {
	return rates(l.Ops, l.MACs, l.BytesRead, l.BytesWritten, l.Latency, l.Energy)
}

func rates(ops, macs, read, written *int64, latency, energy *Metric) Rates {
	var r Rates
	div := func(n *int64, d float64, ok bool) *float64 {
		if n == nil || !ok || d <= 0 {
			return nil
		}
		return new(float64(*n) / d)
	}
	s, timed := latency.Best()
	r.OpsPerSecond = div(ops, s, timed)
	r.MACsPerSecond = div(macs, s, timed)
	var bytes *int64
	if read != nil && written != nil {
		bytes = new(*read + *written)
		r.BytesPerSecond = div(bytes, s, timed)
		r.OpsPerByte = div(ops, float64(*bytes), true)
	}
	if j, ok := energy.Best(); ok {
		if ops != nil && *ops > 0 {
			r.JoulesPerOp = new(j / float64(*ops))
		}
		if macs != nil && *macs > 0 {
			r.JoulesPerMAC = new(j / float64(*macs))
		}
		if timed && s > 0 {
			r.Watts = new(j / s)
		}
	}
	return r
}
