package source_test

import (
	"testing"

	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
)

// TestBounds: a part of a whole above 100 %, or a rate above the peak of the chip that a record
// names, is a finding; a ratio without a bound is none.
func TestBounds(t *testing.T) {
	t.Parallel()
	described := func(kind profile.TargetKind, key string, v, seconds float64) profile.Profile {
		p := profile.Profile{
			Schema: profile.SchemaV1, Model: profile.Model{Name: "m"},
			Target:     profile.Target{ID: "x", Kind: kind, PeakOpsPerSecond: new(1e9), PeakBytesPerSecond: new(1e9)},
			Layers:     []profile.Layer{{Index: 0, Op: "Conv", Name: "c", State: profile.Ran, Ops: new(int64(1e6)), BytesRead: new(int64(10)), BytesWritten: new(int64(10))}},
			Quantities: []profile.Quantity{{Key: key, Unit: "1", Name: "Figure"}},
		}
		if err := p.Layers[0].Set(key, profile.Value(profile.Imported, v, "")); err != nil {
			t.Fatal(err)
		}
		p.Layers[0].Latency = profile.Value(profile.Imported, seconds, "")
		return p
	}
	for name, c := range map[string]struct {
		p    profile.Profile
		want int
	}{
		"utilisation":      {described(profile.TargetImport, "x_utilisation", 16.998, 1), 1},
		"full utilisation": {described(profile.TargetImport, "x_utilisation", 1, 1), 0},
		"a ratio":          {described(profile.TargetImport, "x_against_y", 16.998, 1), 0},
		"above the peak":   {described(profile.TargetImport, "x_share", 0.5, 0.5e-3), 1},
		"at the peak":      {described(profile.TargetImport, "x_share", 0.5, 1e-3), 0},
		"measured peak":    {described(profile.TargetHost, "x_share", 0.5, 0.5e-3), 0},
	} {
		p, err := source.Collect(t.Context(), script{events: []profile.Event{{Described: &c.p}, {Done: &profile.Done{}}}, kill: -1}, source.Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		n := 0
		for _, f := range p.Findings {
			if f.ID == "figures.bound" && f.Severity == profile.Problem {
				n++
			}
		}
		if n != c.want {
			t.Errorf("%s: %d findings, want %d: %+v", name, n, c.want, p.Findings)
		}
	}
}
