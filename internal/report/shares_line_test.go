package report

import (
	"testing"

	"github.com/opmeter/opmeter/profile"
)

// The line says whose shares are shown, and what another engine takes in multiples of the own one.
func TestSharesLine(t *testing.T) {
	t.Parallel()
	value := func(v float64) *profile.Metric { return profile.Value(profile.Measured, v, "") }
	of := func(other *profile.OtherEngine) *profile.Profile {
		return &profile.Profile{
			Model: profile.Model{Format: "tflite"}, Target: profile.Target{Kind: profile.TargetHost, Engine: "opmeter"}, Other: other,
			Totals: profile.Totals{Latency: value(10e-6)},
			Layers: []profile.Layer{{Op: "CONV_2D", Latency: value(6e-6), Share: new(0.6)}, {Op: "ADD", Latency: value(4e-6), Share: new(0.4)}},
		}
	}
	litert := profile.OtherEngine{Engine: "litert", Title: "LiteRT", Version: "2.3.0"}
	with := func(seconds float64, ops ...profile.OperatorShare) *profile.OtherEngine {
		o := litert
		o.Latency, o.Operators = value(seconds), ops
		return &o
	}
	failed := litert
	failed.Cause = &profile.Cause{Code: profile.ByError, Text: "it crashed"}
	estimate, foreign, gguf := of(nil), of(nil), of(nil)
	gguf.Model.Format = "gguf"
	estimate.Target.Kind, foreign.Target.Engine = profile.TargetSimulator, "LiteRT"
	for _, c := range []struct {
		p    *profile.Profile
		want string
	}{
		{of(nil), "those of opmeter's own engine; --engine litert measures yours"},
		{gguf, "those of opmeter's own engine; those of llama.cpp differ"},
		{of(&failed), "those of opmeter's own engine; --engine litert measures LiteRT"},
		{of(with(6.1e-6, profile.OperatorShare{Op: "CONV_2D", Share: 0.71})), "those of opmeter's own engine; LiteRT 2.3.0 takes 0.61 times as long and names CONV_2D first (71 % instead of 60 %)"},
		{of(with(250e-6, profile.OperatorShare{Op: "Reorder", Share: 0.5})), "those of opmeter's own engine; LiteRT 2.3.0 takes 25 times as long and names Reorder first (50 %)"},
		{of(with(20e-6)), "those of opmeter's own engine; LiteRT 2.3.0 takes 2 times as long; its operators are not known"},
		{estimate, ""},
		{foreign, ""},
	} {
		if got := sharesLine(c.p); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
