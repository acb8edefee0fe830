package opmeter_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/testing/decoder"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
)

// language opens a small language model.
func language(t *testing.T, shared bool) *opmeter.Model {
	t.Helper()
	c := decoder.Small
	c.Shared = shared
	data, err := onnx.Encode(decoder.New(c))
	if err != nil {
		t.Fatal(err)
	}
	m, err := opmeter.OpenBytes("decoder.onnx", data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// few measures quickly.
func few(p *opmeter.Phases) opmeter.Options {
	return opmeter.Options{Runs: 8, Warmup: -1, Phases: p}
}

// TestPhases measures two kinds of models: in each phase layers and gaps add up to the latency, and
// the caches have the size of the formula.
func TestPhases(t *testing.T) {
	for name, c := range map[string]struct {
		shared bool
		heads  int64
	}{"caches that grow": {false, 4}, "shared buffers": {true, 2}} {
		t.Run(name, func(t *testing.T) {
			o := few(&opmeter.Phases{Prompts: []int{16, 4}, Contexts: []int{40, 0}})
			o.Inputs.Batch = 2
			p, err := opmeter.Profile(t.Context(), language(t, c.shared), o)
			if err != nil {
				t.Fatal(err)
			}
			l := p.Language
			if l == nil || l.Cache.Shared != c.shared || l.Cache.PositionBytes != 2*2*c.heads*8*4 || *l.ContextLength != 64 {
				t.Fatalf("%+v", l)
			}
			var names []string
			for i := range l.Phases {
				ph := &l.Phases[i]
				names = append(names, strings.TrimSuffix(ph.Name(), ", batch 2"))
				sum := 0.0
				for k := range p.Layers {
					v, _ := p.Layers[k].Value(ph.Quantity)
					sum += v
				}
				r := ph.Reconcile
				if !(sum > 0) || math.Abs(sum+*r.GapsS-*r.WallS) > 1e-3**r.WallS || math.Abs(sum-*r.OperatorsS) > 1e-3*sum {
					t.Errorf("%s: layers %v, %+v", ph.Name(), sum, r)
				}
				whole, _ := p.Totals.Value(ph.Quantity)
				if whole != *r.WallS {
					t.Errorf("%s: latency %v, wall %v", ph.Name(), whole, *r.WallS)
				}
				v, _ := ph.Latency.Best()
				rate, _ := ph.TokensPerS.Best()
				if want := float64(ph.Batch*ph.Tokens) / v; math.Abs(rate-want) > 1e-9*want || ph.Trust == nil {
					t.Errorf("%s: %v tokens/s, want %v; %+v", ph.Name(), rate, want, ph.Trust)
				}
				if ph.CacheReadBytes != ph.Batch*ph.Context*l.Cache.PositionBytes || ph.CacheWrittenBytes != ph.Batch*ph.Tokens*l.Cache.PositionBytes {
					t.Errorf("%s: reads %d bytes of the cache, writes %d", ph.Name(), ph.CacheReadBytes, ph.CacheWrittenBytes)
				}
				copied := ph.CacheReadBytes
				if c.shared {
					copied = 0 // written in place
				}
				if n := ph.CacheCopiedBytes; n == nil || *n != copied {
					t.Errorf("%s: copies %v bytes of the cache, want %d", ph.Name(), n, copied)
				}
			}
			if want := []string{"prefill 4", "prefill 16", "decode at 0", "decode at 40"}; !slices.Equal(names, want) {
				t.Errorf("phases %q, want %q", names, want)
			}
			// The longest context is planned: with what it needs when it is measured.
			contexts := []int64{0, 40, 63}
			if c.shared {
				contexts = []int64{64}
			}
			if len(l.Memory) != len(contexts) {
				t.Fatalf("memory by context: %+v, want %v", l.Memory, contexts)
			}
			for i := range l.Memory {
				m := &l.Memory[i]
				if m.Context != contexts[i] || m.CacheBytes != 2*m.Context*l.Cache.PositionBytes || !near(m.WeightsBytes, l.Memory[0].WeightsBytes) || !(m.PlanBytes > 0) {
					t.Errorf("memory by context: %+v, want %d positions", m, contexts[i])
				}
			}
			o.Phases = &opmeter.Phases{Contexts: []int{63}}
			longest, err := opmeter.Profile(t.Context(), language(t, c.shared), o)
			if err != nil {
				t.Fatal(err)
			}
			planned, measured := l.Memory[len(l.Memory)-1], longest.Language.Memory[0]
			if planned.CacheBytes != measured.CacheBytes || planned.PlanBytes != measured.PlanBytes || !near(planned.WeightsBytes, measured.WeightsBytes) {
				t.Errorf("memory in the longest context: %+v, measured %+v", planned, measured)
			}
			last, first := l.Phases[3], l.Phases[1]
			for key, want := range map[string]*profile.Metric{
				"ttft_s": first.Latency, "prefill_tokens_per_s": first.TokensPerS, "tpot_s": last.Latency, "decode_tokens_per_s": last.TokensPerS,
			} {
				got, ok := p.Totals.Value(key)
				if v, _ := want.Best(); !ok || got != v {
					t.Errorf("%s is %v, want %v", key, got, v)
				}
			}
			if *first.Ops < 4**last.Ops || *last.Ops <= *l.Phases[2].Ops {
				t.Errorf("%d operations for 16 tokens, %d for one, %d without a cache", *first.Ops, *last.Ops, *l.Phases[2].Ops)
			}
			// All weights, and of two tables of embeddings a row for each sequence. Four scalars scale
			// and mask scores.
			const block = 32 + 3*32*32 + 32*32 + 32 + 2*32*64
			const want = 4 * (2*block + 32 + 32*50 + 2*2*32 + 4)
			if got := *last.WeightsReadBytes; !c.shared && got != want {
				t.Errorf("%d bytes of weights are read, want %d", got, want)
			}
		})
	}
}

// near reports whether weights take the same memory, with a few constants that depend on the context.
func near(a, b int64) bool { return a > 0 && math.Abs(float64(a-b)) < 0.01*float64(b) }

// TestPhasesRefused: what phases cannot do is an error that names the option.
func TestPhasesRefused(t *testing.T) {
	t.Parallel()
	m := language(t, false)
	one := func(change func(o *opmeter.Options)) opmeter.Options {
		o := few(&opmeter.Phases{Prompts: []int{4}, Contexts: []int{0}})
		change(&o)
		return o
	}
	for _, test := range []struct {
		o      opmeter.Options
		option string
		want   string
	}{
		{few(&opmeter.Phases{}), "Phases", "use 1 to 16 prompts and contexts together, not 0"},
		{few(&opmeter.Phases{Prompts: []int{0}}), "Phases.Prompts", "use 1 to 1048576, not 0"},
		{few(&opmeter.Phases{Contexts: []int{3, 3}}), "Phases.Contexts", "has 3 twice"},
		{few(&opmeter.Phases{Contexts: []int{64}}), "Phases.Contexts", "the model has 64 positions: 64 in the cache and 1 new are too many"},
		{one(func(o *opmeter.Options) { o.Streams = 2 }), "Streams", "leave it out with phases"},
		{one(func(o *opmeter.Options) { o.Inputs.Dims = map[string]int{"sequence_length": 2} }), "Inputs.Dims", "leave it out with phases"},
		{one(func(o *opmeter.Options) { o.Inputs.Zeros = true }), "Inputs.Zeros", "leave it out with phases"},
	} {
		_, err := opmeter.Profile(t.Context(), m, test.o)
		e, ok := errors.AsType[*opmeter.OptionError](err)
		if !ok || e.Option != test.option || !strings.Contains(e.Text, test.want) {
			t.Errorf("%v, want %s: %s", err, test.option, test.want)
		}
	}
	o := few(&opmeter.Phases{Prompts: []int{4}})
	if err := opmeter.Check(t.Context(), m, &profile.Profile{}, o); err == nil || !strings.Contains(err.Error(), "leave the phases out") {
		t.Errorf("a check of layers: %v", err)
	}
	if _, err := opmeter.Sweep(t.Context(), m, opmeter.SweepOptions{Options: o}); err == nil || !strings.Contains(err.Error(), "a sweep has no phases") {
		t.Errorf("a sweep: %v", err)
	}
	other, err := opmeter.Open("examples/resnet8.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := opmeter.Profile(t.Context(), other, few(&opmeter.Phases{Prompts: []int{4}})); err == nil || !strings.Contains(err.Error(), "no caches of keys and values") {
		t.Errorf("a model without caches: %v", err)
	}
	if p := opmeter.DefaultPhases(other); p != nil {
		t.Errorf("a model without caches has phases %+v", p)
	}
	if p := opmeter.DefaultPhases(m); p == nil || !slices.Equal(p.Prompts, []int{32}) || !slices.Equal(p.Contexts, []int{0, 63}) {
		t.Errorf("phases %+v, want a prompt of 32 and contexts of 0 and 63 of 64 positions", p)
	}
}

// TestPhasesStopped: what was measured before the context ended is kept.
func TestPhasesStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := few(&opmeter.Phases{Prompts: []int{4}, Contexts: []int{8}})
	o.Runs, o.Time = 0, time.Hour
	o.Progress = func(phase string, _ float64) {
		if phase == "measuring" {
			cancel()
		}
	}
	p, err := opmeter.Profile(ctx, language(t, false), o)
	if err != nil || p == nil || p.Language == nil || len(p.Language.Phases) == 0 || len(p.Incomplete) == 0 {
		t.Fatalf("%+v, %v", p, err)
	}
}

// TestPhasesOfFiles measures models that exporters wrote: caches of keys and values in one tensor, of
// half precision, and beside weights of 4 bits.
func TestPhasesOfFiles(t *testing.T) {
	for _, test := range []struct {
		file   []string
		layers int64
		bytes  int64 // of a position
		longer int   // context that does not fit, 0 for none
	}{
		{[]string{"models", "real", "genai_tiny_gpt2_past.onnx"}, 5, 2 * 5 * 4 * 8 * 4, 512},
		{[]string{"models", "real", "genai_tiny_qwen35_fp16.onnx"}, 2, 2 * 2 * 2 * 16 * 2, 0},
		{[]string{"models", "synthetic", "synth_llama_tiny_fp32.onnx"}, 3, 2 * 3 * 2 * 32 * 4, 0},
		{[]string{"models", "synthetic", "synth_llama_tiny_w4_matmulnbits.onnx"}, 3, 2 * 3 * 2 * 32 * 4, 0},
	} {
		t.Run(test.file[2], func(t *testing.T) {
			m, err := opmeter.Open(material.Path(t, test.file...))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			p, err := opmeter.Profile(t.Context(), m, few(&opmeter.Phases{Prompts: []int{16}, Contexts: []int{0, 100}}))
			if err != nil {
				t.Fatal(err)
			}
			l := p.Language
			if l.Cache.Layers != test.layers || l.Cache.PositionBytes != test.bytes || len(l.Phases) != 3 {
				t.Errorf("%+v", l)
			}
			for i := range l.Phases {
				if v, ok := l.Phases[i].Latency.Best(); !ok || !(v > 0) {
					t.Errorf("%s has no latency", l.Phases[i].Name())
				}
			}
			if test.longer > 0 {
				_, err = opmeter.Profile(t.Context(), m, few(&opmeter.Phases{Prompts: []int{16}, Contexts: []int{test.longer}}))
				if _, ok := errors.AsType[*opmeter.OptionError](err); !ok {
					t.Errorf("one token after %d: %v", test.longer, err)
				}
			}
		})
	}
}

// TestPhasesApart measures one after the other where the memory does not hold all.
func TestPhasesApart(t *testing.T) {
	o := few(&opmeter.Phases{Prompts: []int{4}, Contexts: []int{0, 8}})
	o.MaxMemory = 1 << 19
	p, err := opmeter.Profile(t.Context(), language(t, false), o)
	if err != nil || len(p.Language.Phases) != 3 || !slices.ContainsFunc(p.Findings, func(f profile.Finding) bool { return f.ID == "phases.apart" }) {
		t.Fatalf("%+v, %v", p, err)
	}
}

// TestEstimatePhases: layers and totals have bands, tokens per second are those of the time, and a
// model without caches is refused.
func TestEstimatePhases(t *testing.T) {
	ph := &opmeter.Phases{Prompts: []int{16}, Contexts: []int{0, 40}}
	p, err := opmeter.EstimatePhases(t.Context(), language(t, false), opmeter.Options{Phases: ph})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Language.Phases) != 3 {
		t.Fatalf("%d phases, want 3", len(p.Language.Phases))
	}
	for i := range p.Language.Phases {
		ph := &p.Language.Phases[i]
		sum := 0.0
		for k := range p.Layers {
			v, _ := p.Layers[k].Value(ph.Quantity)
			sum += v
		}
		v, _ := ph.Latency.Best()
		b, rates := ph.Latency.Band, ph.TokensPerS.Band
		if ph.Latency.Kind != profile.Estimated || b == nil || !(b[0] < v && v < b[1]) || math.Abs(sum-v) > 1e-9*v {
			t.Errorf("%s: %+v, sum of the layers %v", ph.Name(), ph.Latency, sum)
		}
		if tokens := float64(ph.Tokens); rates == nil || math.Abs(rates[0]*b[1]-tokens) > 1e-9*tokens {
			t.Errorf("%s: band of times %v, of rates %v", ph.Name(), b, rates)
		}
		if ph.CacheCopiedBytes != nil && *ph.CacheCopiedBytes > 0 {
			t.Errorf("%s: copies %d bytes of the cache", ph.Name(), *ph.CacheCopiedBytes)
		}
	}
	o := few(ph)
	o.Threads = 3 // no other test has rates for these
	if _, err := opmeter.EstimatePhases(t.Context(), language(t, false), o); err != nil {
		t.Fatal(err)
	}
	after, err := opmeter.Profile(t.Context(), language(t, false), o)
	if err != nil {
		t.Fatal(err)
	}
	if after.Host.CacheL1DBytes != nil && !slices.ContainsFunc(after.Target.Levels, func(l profile.Level) bool { return l.Name == "L1" }) {
		t.Errorf("after an estimate, a profile lacks the levels of the caches: %+v", after.Target.Levels)
	}
	m, err := opmeter.Open("examples/resnet8.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, o := range []opmeter.Options{{Phases: ph}, {}} {
		if _, err := opmeter.EstimatePhases(t.Context(), m, o); err == nil {
			t.Errorf("%+v: no error", o.Phases)
		}
	}
}
