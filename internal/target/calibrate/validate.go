package calibrate

import (
	"math"
	"sort"

	"github.com/opmeter/opmeter/internal/measure"
)

// Residual is a left-out measurement with what was predicted for it.
type Residual struct {
	M *Measurement
	// Predicted cycles without the measurement's source, and How the coefficients
	// came about: see [Fit.Coefficients].
	Predicted float64
	How       string
}

// Log is the logarithm of measured over predicted.
func (r *Residual) Log() float64 { return math.Log(r.M.Cycles / r.Predicted) }

// Error is the absolute error of the prediction relative to the measurement.
func (r *Residual) Error() float64 { return math.Abs(r.Predicted/r.M.Cycles - 1) }

// LeaveSourcesOut predicts every whole-model measurement from the other sources.
func LeaveSourcesOut(ms []*Measurement, s Settings) []*Residual {
	var out []*Residual
	for _, src := range Sources(ms) {
		var rest []*Measurement
		for _, m := range ms {
			if m.Source != src {
				rest = append(rest, m)
			}
		}
		f := Train(rest, s)
		for _, m := range ms {
			if m.Source != src || m.Layer {
				continue
			}
			v, how := f.Coefficients(m.Group())
			r := &Residual{M: m, How: how}
			if how != "" {
				r.Predicted = v.Dot(m.Work)
			}
			out = append(out, r)
		}
	}
	return out
}

// Summary of residuals.
type Summary struct {
	Rows, Sources      int
	Median, P90        float64 // of the absolute relative error
	Within25, Within10 float64
	Bias               float64 // median of measured over predicted, less one
}

// Summarise residuals that have a prediction.
func Summarise(rs []*Residual) Summary {
	var errs, logs []float64
	src := map[string]bool{}
	s := Summary{}
	for _, r := range rs {
		if r.How == "" {
			continue
		}
		src[r.M.Source] = true
		errs = append(errs, r.Error())
		logs = append(logs, r.Log())
		if r.Error() <= 0.25 {
			s.Within25++
		}
		if r.Error() <= 0.1 {
			s.Within10++
		}
	}
	s.Rows, s.Sources = len(errs), len(src)
	if s.Rows == 0 {
		return s
	}
	sort.Float64s(errs)
	s.Median, s.P90 = measure.Quantile(errs, 0.5), measure.Quantile(errs, 0.9)
	s.Within25 /= float64(s.Rows)
	s.Within10 /= float64(s.Rows)
	s.Bias = math.Exp(measure.Median(logs)) - 1
	return s
}
