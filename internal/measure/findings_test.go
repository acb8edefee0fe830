package measure

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/profile"
)

func TestFindings(t *testing.T) {
	t.Parallel()
	quiet := func() (*Result, *profile.Host) {
		random := rand.New(rand.NewPCG(1, 1))
		s := make([]float64, 40)
		for i := range s {
			s[i] = 0.1 + 1e-4*random.Float64()
		}
		r := &Result{Plain: s, Batch: 1, Pinned: true}
		r.Stability = Judge(s)
		return r, &profile.Host{CPUs: profile.Ptr(int64(4)), Governor: "performance", Before: &profile.HostState{}, After: &profile.HostState{}}
	}
	p := profile.Ptr[float64]
	tests := []struct {
		name string
		do   func(r *Result, h *profile.Host)
		want string
	}{
		{"quiet", func(*Result, *profile.Host) {}, ""},
		{"nothing measured", func(r *Result, _ *profile.Host) { r.Plain = nil; r.Stability = Judge(nil) }, "measure.none"},
		{"few", func(r *Result, _ *profile.Host) { r.Plain = r.Plain[:8]; r.Stability = Judge(r.Plain) }, "measure.few_samples"},
		{"unsteady", func(r *Result, _ *profile.Host) { r.Stability.Steady = profile.Ptr(false); r.Stability.Reason = "x" }, "measure.no_steady_state"},
		{"unstable", func(r *Result, _ *profile.Host) { r.Stability.Unstable = true }, "measure.unstable"},
		{"modes", func(r *Result, _ *profile.Host) { r.Stability.Modes = 2 }, "measure.two_modes"},
		{"dependent", func(r *Result, _ *profile.Host) { r.Stability.Lag1 = -0.9 }, "measure.autocorrelated"},
		{"outliers", func(r *Result, _ *profile.Host) { copy(r.Plain, []float64{1, 1, 1}) }, "measure.outliers"},
		{"batches", func(r *Result, _ *profile.Host) { r.Batch = 10 }, "measure.batched"},
		{"free", func(r *Result, _ *profile.Host) { r.Pinned = false }, "measure.not_pinned"},
		{"cannot bind", func(r *Result, _ *profile.Host) { r.Pinned, r.PinError = false, ErrNoPinning }, "measure.not_pinned"},
		{"collector", func(r *Result, _ *profile.Host) { r.GC = 2 }, "measure.gc"},
		{"stolen", func(_ *Result, h *profile.Host) { h.StolenS = p(0.2) }, "machine.stolen"},
		{"hardly stolen", func(_ *Result, h *profile.Host) { h.StolenS = p(0.01) }, ""},
		{"quota", func(_ *Result, h *profile.Host) { h.QuotaThrottledS = p(0.2) }, "machine.quota"},
		{"small quota", func(_ *Result, h *profile.Host) { h.CPUQuota = p(1) }, "machine.quota_small"},
		{"hot", func(_ *Result, h *profile.Host) { h.Throttled = profile.Ptr(int64(1)) }, "machine.throttled"},
		{"battery", func(_ *Result, h *profile.Host) { h.OnBattery = profile.Ptr(true) }, "machine.battery"},
		{"governor", func(_ *Result, h *profile.Host) { h.Governor = "powersave" }, "machine.governor"},
		{"busy", func(_ *Result, h *profile.Host) { h.Before.LoadAverage = p(3) }, "machine.busy"},
		{"frequency", func(_ *Result, h *profile.Host) { h.Before.FrequencyHz, h.After.FrequencyHz = p(3e9), p(2e9) }, "machine.frequency"},
		{"preempted", func(_ *Result, h *profile.Host) { h.InvoluntarySwitches = profile.Ptr(int64(100)) }, "machine.preempted"},
		{"too many threads", func(_ *Result, h *profile.Host) { h.CPUs = profile.Ptr(int64(1)) }, "measure.oversubscribed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, h := quiet()
			tt.do(r, h)
			var ids []string
			list := Findings(r, h, 2)
			for _, f := range list {
				ids = append(ids, f.ID)
				if strings.Contains(f.Text, "%!") || !strings.HasSuffix(f.Text, ".") {
					t.Errorf("text %q", f.Text)
				}
			}
			if d := cmp.Diff(tt.want, strings.Join(ids, " ")); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}
