package fit

import (
	"math"
	"sort"

	"github.com/opmeter/opmeter/internal/base/stats"
)

// Coverage is the share of measurements that bands should contain.
const Coverage = 0.9

// Residual is a held-out measurement with its prediction.
type Residual struct {
	M *Measurement
	// Predicted is the cycles predicted without the measurement's source. How says where the
	// coefficients came from: "measured" on the same core and runtime, or transferred from
	// others; "" if nothing could be predicted.
	Predicted float64
	How       string
	// Distance is the network's distance to the networks of the other sources.
	Distance float64
	// Overhead is the share of predicted cycles outside of kernels.
	Overhead float64
}

// Log returns the logarithm of measured over predicted.
func (r *Residual) Log() float64 { return math.Log(r.M.Cycles / r.Predicted) }

// Error returns the absolute error of the prediction relative to the measurement.
func (r *Residual) Error() float64 { return math.Abs(r.Predicted/r.M.Cycles - 1) }

// Summary of residuals.
type Summary struct {
	Rows, Sources      int
	Median, P90        float64 // of the absolute relative error
	Within25, Within10 float64
	Bias               float64 // median of measured over predicted, less one
}

// Summarise summarises the residuals that have a prediction.
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
	s.Median, s.P90 = stats.Quantile(errs, 0.5), stats.Quantile(errs, 0.9)
	s.Within25 /= float64(s.Rows)
	s.Within10 /= float64(s.Rows)
	s.Bias = math.Exp(stats.Median(logs)) - 1
	return s
}

// Quantile returns the half-width that contains the share [Coverage] of future errors, by the
// conformal rule: among n residuals the one of rank (n+1)*coverage.
func Quantile(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	return stats.Conformal(v, Coverage)
}

// FewLayers is the half-width for layers if hardly any were measured.
const FewLayers = 0.5
