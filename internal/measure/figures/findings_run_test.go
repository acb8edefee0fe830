package figures

import (
	"strings"
	"testing"

	"github.com/opmeter/opmeter/profile"
)

// TestOverheadFindings: profiling overhead is reported only if it is significant and above one
// per cent; gaps are never a warning.
func TestOverheadFindings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name              string
		plain, wall, gaps float64
		low, cost, high   float64
		want              []string // identifier, severity and words of each
	}{
		{"at rest", 1e-3, 1e-3, 1e-6, -1e-6, 2e-6, 5e-6, nil},
		{"chance, however large", 4e-6, 4e-6, 0, -40e-6, -24e-6, 5e-6, nil},
		{"certain and small", 1e-3, 1e-3, 0, 4e-6, 5e-6, 6e-6, nil},
		{"certain", 1e-4, 2.72e-4, 0, 1.6e-4, 1.72e-4, 1.8e-4, []string{"reconcile.overhead warning took 172 % longer than plain ones (172 µs)"}},
		{"faster for certain", 1e-3, 0.5e-3, 0, -6e-4, -5e-4, -4e-4, []string{"reconcile.overhead warning took 50 % less than plain ones (500 µs)"}},
		{"gaps", 1e-5, 1e-5, 2e-6, -1e-7, 0, 1e-7, []string{"reconcile.gaps info 20.0 % of the time is between operators"}},
	} {
		r := &profile.Reconcile{
			PlainS: &tt.plain, ProfiledS: &tt.wall, WallS: &tt.wall, OperatorsS: new(tt.wall - tt.gaps), GapsS: &tt.gaps,
			OverheadS: &profile.Metric{Kind: profile.Measured, Median: &tt.cost, CI95: &[2]float64{tt.low, tt.high}},
		}
		got := overhead(r)
		if len(got) != len(tt.want) {
			t.Errorf("%s: %+v", tt.name, got)
			continue
		}
		for i, w := range tt.want {
			f := strings.SplitN(w, " ", 3)
			if got[i].ID != f[0] || string(got[i].Severity) != f[1] || !strings.Contains(got[i].Text, f[2]) {
				t.Errorf("%s: %+v, want %s", tt.name, got[i], w)
			}
		}
	}
	if overhead(nil) != nil || overhead(&profile.Reconcile{WallS: new(0.0), PlainS: new(1.0)}) != nil {
		t.Error("findings about nothing")
	}
	few := &profile.Reconcile{WallS: new(1.0), GapsS: new(0.0), PlainS: new(1.0), OverheadS: profile.Value(profile.Measured, 5, "")}
	if got := overhead(few); got != nil {
		t.Errorf("a cost without an interval: %+v", got)
	}
}
