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

// Time of an imported inference that is in no operator is told of: shares are parts of the rest.
func TestTimeInNoOperator(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind   profile.TargetKind
		wall   float64
		layers []float64
		want   string
	}{
		{profile.TargetImport, 500e-6, []float64{120e-6, 30e-6}, "350 µs (70 %) of an inference are in no operator of the record. Shares are parts of the rest."},
		{profile.TargetImport, 160e-6, []float64{120e-6, 30e-6}, ""},
		{profile.TargetImport, 100e-6, []float64{120e-6, 30e-6}, ""}, // layers that overlap
		{profile.TargetImport, 500e-6, []float64{0, 0}, ""},          // no layer has a time
		{profile.TargetHost, 500e-6, []float64{120e-6, 30e-6}, ""},   // measured: see reconcile
	} {
		p := profile.Profile{Schema: profile.SchemaV1, Target: profile.Target{ID: "x", Kind: tt.kind}, Model: profile.Model{Name: "net"}}
		p.Totals.Latency = profile.Value(profile.Imported, tt.wall, "")
		for i := range tt.layers {
			l := profile.Layer{Index: int64(i), Op: "Conv", State: profile.Ran}
			if tt.layers[i] > 0 {
				l.Latency = profile.Value(profile.Imported, tt.layers[i], "")
			}
			p.Layers = append(p.Layers, l)
		}
		got, err := source.Collect(t.Context(), script{events: []profile.Event{{Described: &p}, {Done: &profile.Done{}}}, kill: -1}, source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var text string
		for _, f := range got.Findings {
			text += f.Text
		}
		if text != tt.want {
			t.Errorf("%s of %v: %q, want %q", tt.kind, tt.wall, text, tt.want)
		}
	}
}
