package sparsify

import (
	_ "embed"
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/base/jsonx"
)

// allocations are analyses and profiles that were drawn, and what Sparsify 0.12 made of them when
// it was run.
//
//go:embed testdata/allocations.json
var allocations []byte

type originalNode struct {
	ID              string      `json:"node_id"`
	Sparsity        *float64    `json:"sparsity"`
	Recovery        *float64    `json:"est_recovery"`
	LossSensitivity *float64    `json:"est_loss_sensitivity"`
	PerfSensitivity *float64    `json:"est_perf_sensitivity"`
	Time            *float64    `json:"est_time"`
	TimeBaseline    *float64    `json:"est_time_baseline"`
	TimeGain        *float64    `json:"est_time_gain"`
	Params          *float64    `json:"params"`
	Compression     *float64    `json:"compression"`
	Flops           *float64    `json:"flops"`
	FlopsGain       *float64    `json:"flops_gain"`
	PerfCurve       []jsonx.Raw `json:"perf_sensitivities"`
	LossCurve       []jsonx.Raw `json:"loss_sensitivities"`
}

type originalCase struct {
	Analysis *Analysis `json:"analysis"`
	Perf     *Profile  `json:"perf"`
	Loss     *Profile  `json:"loss"`
	Settings struct {
		Sparsity    float64 `json:"sparsity"`
		Balance     float64 `json:"balance"`
		MinSparsity float64 `json:"minsp"`
		MinGain     float64 `json:"mingain"`
		MinRecovery float64 `json:"minrec"`
	} `json:"settings"`
	Nodes []originalNode      `json:"nodes"`
	Model originalNode        `json:"model"`
	Base  map[string]*float64 `json:"base"`
}

// TestAgainstOriginal compares allocations and estimates with those of the original: sparsities
// exactly, figures but for the order of sums.
func TestAgainstOriginal(t *testing.T) {
	t.Parallel()
	var cases []originalCase
	if err := jsonx.Unmarshal(allocations, &cases); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		s := c.Settings
		got := Allocate(c.Analysis, c.Perf, c.Loss, Settings{Sparsity: s.Sparsity, Balance: s.Balance, MinSparsity: s.MinSparsity, MinGain: s.MinGain, MinRecovery: s.MinRecovery})
		if len(got.Layers) != len(c.Nodes) {
			t.Fatalf("case %d: %d layers, want %d", i, len(got.Layers), len(c.Nodes))
		}
		same := func(what string, got, want *float64, slack float64) {
			if (got == nil) != (want == nil) || got != nil && math.Abs(*got-*want) > slack*math.Abs(*want) {
				t.Errorf("case %d, %s: %v, want %v", i, what, value(got), value(want))
			}
		}
		const sums = 1e-12
		figures := func(what string, e *Estimates, n *originalNode) {
			for _, f := range []struct {
				name      string
				got, want *float64
			}{
				{"recovery", e.Recovery, n.Recovery},
				{"loss sensitivity", e.LossSensitivity, n.LossSensitivity},
				{"performance sensitivity", e.PerfSensitivity, n.PerfSensitivity},
				{"time", e.Time, n.Time},
				{"time before", e.TimeBaseline, n.TimeBaseline},
				{"gain", e.TimeGain, n.TimeGain},
				{"parameters", e.Params, n.Params},
				{"compression", e.Compression, n.Compression},
				{"operations", e.Flops, n.Flops},
				{"gain of operations", e.FlopsGain, n.FlopsGain},
			} {
				same(what+": "+f.name, f.got, f.want, sums)
			}
		}
		for k := range got.Layers {
			l, n := &got.Layers[k], &c.Nodes[k]
			same(n.ID+": baseline", l.BaselineSparsity, c.Base[n.ID], 0)
			same(n.ID+": sparsity", l.Sparsity, n.Sparsity, 0)
			figures(n.ID, &l.Estimates, n)
			for j := range n.PerfCurve {
				same(n.ID+": performance curve", l.PerfSensitivities[j], second(t, n.PerfCurve[j]), sums)
				same(n.ID+": loss curve", l.LossSensitivities[j], second(t, n.LossCurve[j]), sums)
			}
		}
		figures("model", &got.Model, &c.Model)
	}
}

func value(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}

// second is the value of a pair of level and value.
func second(t *testing.T, pair jsonx.Raw) *float64 {
	var out []*float64
	if err := jsonx.Unmarshal(pair, &out); err != nil || len(out) != 2 {
		t.Fatalf("%s: %v", pair, err)
	}
	return out[1]
}
