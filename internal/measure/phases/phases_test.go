package phases_test

import (
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/measure/machine/rates"
	"github.com/opmeter/opmeter/internal/measure/phases"
	"github.com/opmeter/opmeter/internal/runtime/llm"
	"github.com/opmeter/opmeter/internal/testing/decoder"
	"github.com/opmeter/opmeter/profile"
)

// run is a phase whose two layers take times in seconds, none for an empty list.
func run(kind profile.PhaseKind, tokens, depth int, times ...float64) phases.Run {
	p := &profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "llm"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost}}
	p.Layers = []profile.Layer{{Op: "Gather", State: profile.Ran}, {Index: 1, Op: "MatMul", State: profile.Ran}}
	sum := 0.0
	for i, t := range times {
		p.Layers[i].Latency = profile.Value(profile.Measured, t, "")
		sum += t
	}
	if sum > 0 {
		p.Totals.Latency = profile.Value(profile.Measured, sum, "")
	} else {
		p.Incomplete = []profile.Missing{{Cause: profile.ByCancel}}
	}
	return phases.Run{Kind: kind, Phase: llm.Phase{Batch: 1, Tokens: tokens, Depth: depth}, Profile: p}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	m, err := llm.Detect(decoder.New(decoder.Small), llm.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	prefill, decode := run(profile.PrefillPhase, 16, 0, 0.25, 0.5), run(profile.DecodePhase, 1, 8, 0.125, 0.0625)
	for _, test := range []struct {
		name string
		runs []phases.Run
		// The latency of the profile, further quantities, and parts of it that are missing.
		latency float64
		keys    []string
		missing int
	}{
		{"both", []phases.Run{prefill, decode}, 0.1875, []string{"prefill_16_s"}, 0},
		{"stopped before the second was measured", []phases.Run{prefill, run(profile.DecodePhase, 1, 8)}, 0.75, []string{"decode_8_s"}, 1},
		{"stopped before the second began", []phases.Run{prefill, {Kind: profile.DecodePhase}}, 0.75, nil, 0},
		{"nothing was measured", []phases.Run{run(profile.PrefillPhase, 16, 0), run(profile.DecodePhase, 1, 8)}, 0, []string{"prefill_16_s"}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			runs := append([]phases.Run(nil), test.runs...)
			for i := range runs {
				if p := runs[i].Profile; p != nil {
					c := *p
					c.Layers = append([]profile.Layer(nil), p.Layers...)
					runs[i].Profile = &c
				}
			}
			p := phases.Merge(m, runs)
			if v, _ := p.Totals.Latency.Best(); v != test.latency {
				t.Errorf("latency %v, want %v", v, test.latency)
			}
			var keys []string
			for _, q := range p.Quantities {
				keys = append(keys, q.Key)
			}
			if len(keys) != len(test.keys) || len(keys) > 0 && keys[0] != test.keys[0] {
				t.Errorf("quantities %q, want %q", keys, test.keys)
			}
			if len(p.Incomplete) != test.missing {
				t.Errorf("%+v is missing, want %d", p.Incomplete, test.missing)
			}
			if err := p.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
	failed := run(profile.DecodePhase, 1, 8)
	failed.Profile.Layers[1].State, failed.Profile.Layers[1].Cause = profile.Failed, &profile.Cause{Code: profile.ByError, Text: "index 8 of 8"}
	if err := failed.Err(); err == nil || err.Error() != "1 of 2 layers did not run; the first is #1 MatMul: index 8 of 8" || decode.Err() != nil {
		t.Errorf("%v, %v", err, decode.Err())
	}
	if p := phases.Merge(m, []phases.Run{{Kind: profile.PrefillPhase}}); p != nil {
		t.Errorf("a profile of nothing: %+v", p)
	}
	p := phases.Merge(m, []phases.Run{prefill, decode})
	for key, want := range map[string]float64{"ttft_s": 0.75, "prefill_tokens_per_s": 16 / 0.75, "tpot_s": 0.1875, "decode_tokens_per_s": 1 / 0.1875, "prefill_16_s": 0.75} {
		if got, ok := p.Totals.Value(key); !ok || got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	if got, ok := p.Layers[1].Value("prefill_16_s"); !ok || got != 0.5 {
		t.Errorf("the second layer takes %v in prefill, want 0.5", got)
	}
}

// TestWeightsRead: of tables and experts only what a layer reads counts, in its size as stored.
func TestWeightsRead(t *testing.T) {
	t.Parallel()
	m, err := llm.Detect(decoder.New(decoder.Small), llm.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	data, table := profile.Tensor{Bytes: new(int64(16))}, profile.Tensor{Bytes: new(int64(1000)), Constant: true}
	for _, test := range []struct {
		name         string
		stored, read int64 // read is -1 if unknown
		inputs       []profile.Tensor
		want         int64
	}{
		{"all of a matrix", 1000, 1016, []profile.Tensor{data, table}, 1000},
		{"all of a matrix that the engine converts", 500, 1016, []profile.Tensor{data, table}, 500},
		{"rows of a table", 1000, 56, []profile.Tensor{table, data}, 40},
		{"rows of a converted table", 500, 56, []profile.Tensor{table, data, {Absent: true}}, 20},
		{"rows of two tables", 2000, 216, []profile.Tensor{data, table, table}, 200},
		{"no weights", 0, -1, []profile.Tensor{data}, 0},
		{"unknown reads", 1000, -1, []profile.Tensor{data, table}, -1},
		{"an input of unknown size", 1000, 1016, []profile.Tensor{{}, table}, -1},
	} {
		r := run(profile.DecodePhase, 1, 8, 0, 1)
		l := &r.Profile.Layers[1]
		l.WeightsBytes, l.Inputs = &test.stored, test.inputs
		if test.read >= 0 {
			l.BytesRead = &test.read
		}
		got := phases.Merge(m, []phases.Run{r}).Language.Phases[0].WeightsReadBytes
		if (got == nil) != (test.want < 0) || got != nil && *got != test.want {
			t.Errorf("%s: %v bytes are read, want %d", test.name, got, test.want)
		}
	}
}

// TestOps: the choice of experts has no count, and leaves that of the phase known.
func TestOps(t *testing.T) {
	t.Parallel()
	m, err := llm.Detect(decoder.New(decoder.Small), llm.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	for op, known := range map[string]bool{"TopK": true, "NonZero": false} {
		r := run(profile.DecodePhase, 1, 8, 0, 1)
		r.Profile.Layers[0].Op = op
		r.Profile.Totals.Ops, r.Profile.Totals.UncountedLayers = new(int64(1000)), new(int64(1))
		r.Profile.Layers[1].Ops = new(int64(1000))
		if got := phases.Merge(m, []phases.Run{r}).Language.Phases[0].Ops; (got != nil) != known {
			t.Errorf("beside %s: operations %v, want known: %t", op, got, known)
		}
	}
}

// TestEstimateChoice: layers without a number of operations have no time, but for TopK.
func TestEstimateChoice(t *testing.T) {
	t.Parallel()
	m, err := llm.Detect(decoder.New(decoder.Small), llm.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	for op, timed := range map[string]bool{"TopK": true, "NonZero": false} {
		r := run(profile.DecodePhase, 1, 8)
		l := &r.Profile.Layers[0]
		l.Op, l.Latency, l.BytesRead, l.BytesWritten = op, nil, new(int64(64)), new(int64(16))
		phases.Estimate(&r, m, &phases.Speeds{Read: rates.Rate{Best: 1e9, Median: 1e9}, Float: rates.Rate{Best: 1e9, Median: 1e9}})
		if (l.Latency != nil) != timed {
			t.Errorf("%s: time %+v, want one: %t", op, l.Latency, timed)
		}
	}
}

// TestRaise: copies measure memory, and a phase that only reads may be up to twice as fast. Its
// rate is the limit of all phases then.
func TestRaise(t *testing.T) {
	t.Parallel()
	m, err := llm.Detect(decoder.New(decoder.Small), llm.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	of := func(depth int, seconds float64) phases.Run {
		r := run(profile.DecodePhase, 1, depth, 0, seconds)
		p := r.Profile
		p.Target.Peaks = []profile.Peak{{DType: "float32", OpsPerSecond: 1e9}}
		p.Target.Levels = []profile.Level{{Name: "memory", BytesPerSecond: 1e6}}
		p.Totals.Ops = new(int64(1000))
		l := &p.Layers[1]
		l.WeightsBytes, l.BytesRead, l.MACs = new(int64(1e6)), new(int64(1e6)), new(int64(500))
		l.Inputs = []profile.Tensor{{DType: "float32", Bytes: new(int64(0))}}
		return r
	}
	near := func(what string, got *float64, want float64) {
		t.Helper()
		if got == nil || *got < 0.99*want || *got > 1.01*want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	ps := phases.Merge(m, []phases.Run{of(0, 0.8), of(1, 1.6)}).Language.Phases
	near("fastest phase", ps[0].Roof.Use, 1)
	near("its limit in tokens/s", ps[0].RoofTokensPerS, 1.25)
	near("slower phase", ps[1].Roof.Use, 0.5)
	if ps[1].Roof.Bound != profile.BoundMemory {
		t.Errorf("bound by %s", ps[1].Roof.Bound)
	}
	ps = phases.Merge(m, []phases.Run{of(0, 0.4), of(1, 1.6)}).Language.Phases
	if ps[0].Roof != nil || ps[0].RoofTokensPerS != nil {
		t.Errorf("2.5 times the rate of memory: %+v", ps[0].Roof)
	}
	near("beside a phase without a limit", ps[1].Roof.Use, 0.625)
	// The rate of reading counts where it is known.
	read := of(1, 1)
	read.Profile.Target.Levels[0].ReadBytesPerSecond = new(4e6)
	ps = phases.Merge(m, []phases.Run{read}).Language.Phases
	near("measured by reading", ps[0].Roof.Use, 0.25)
	near("tokens/s at the rate of reading", ps[0].RoofTokensPerS, 4)
}

// TestMergeShapes names the times of other shapes by their sizes.
func TestMergeShapes(t *testing.T) {
	t.Parallel()
	of := func(name string, times ...float64) phases.Run {
		r := run("", 1, 0, times...)
		r.Shapes = name
		return r
	}
	p := phases.MergeShapes([]phases.Run{of("Batch-Size 1", 0.25, 0.5), of(strings.Repeat("x", 95)+" 2", 0.5, 0.5), of("Batch-Size 3", 0.125, 0.25)})
	for key, want := range map[string]float64{"batch_size_1_s": 0.75, "shape_2_s": 1} {
		if v, _ := p.Totals.Value(key); v != want {
			t.Errorf("%s is %v, want %v", key, v, want)
		}
	}
	if v, _ := p.Layers[0].Value("batch_size_1_s"); v != 0.25 || len(p.Findings) != 1 {
		t.Errorf("the first layer takes %v, findings %+v", v, p.Findings)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	if phases.MergeShapes([]phases.Run{{Shapes: "a 1"}}) != nil {
		t.Error("a profile of nothing")
	}
}
