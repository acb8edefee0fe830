package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/profile"
)

// languageProfile is that of a model with 64 KiB of cache for each position.
func languageProfile() *profile.Profile {
	mib := func(n float64) *int64 { return new(int64(n * (1 << 20))) }
	time := func(v float64) *profile.Metric {
		return &profile.Metric{Kind: profile.Measured, Median: &v, CI95: &[2]float64{0.9 * v, 1.1 * v}}
	}
	rate := func(v float64) *profile.Metric { return &profile.Metric{Kind: profile.Measured, Median: &v} }
	roof := func(ops, bytes, use float64) *profile.Roof {
		return &profile.Roof{DType: "float32", Level: "memory", OpsPerSecond: &ops, BytesPerSecond: &bytes, Use: &use}
	}
	p := &profile.Profile{
		Schema: profile.SchemaV1, Model: profile.Model{Name: "llm", Format: "onnx"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost, Engine: "opmeter"},
		Host: &profile.Host{MemoryBytes: mib(1024)},
		Language: &profile.LanguageModel{
			Cache:         profile.KVCache{Layers: 16, Heads: new(int64(8)), HeadSize: new(int64(64)), DType: "float32", PositionBytes: 64 << 10},
			ContextLength: new(int64(8192)),
			Memory: []profile.ContextMemory{
				{Context: 1024, WeightsBytes: 420 << 20, CacheBytes: 128 << 20, PlanBytes: 2 << 20},
				{Context: 8191, WeightsBytes: 420 << 20, CacheBytes: 8191 << 17, PlanBytes: 2 << 20},
			},
			Phases: []profile.Phase{
				{
					Kind: profile.PrefillPhase, Batch: 2, Tokens: 128, Quantity: "prefill_128_s", Latency: time(0.5), TokensPerS: rate(512),
					Ops: new(int64(2e11)), WeightsReadBytes: mib(400), CacheWrittenBytes: 16 << 20, CacheCopiedBytes: new(int64(0)),
					Roof: roof(5e11, 10e9, 0.8), RoofTokensPerS: new(640.0),
				},
				{
					Kind: profile.DecodePhase, Batch: 2, Tokens: 1, Context: 1024, Quantity: "latency_s", Latency: time(0.1), TokensPerS: rate(20),
					Ops: new(int64(1e9)), WeightsReadBytes: mib(400), CacheReadBytes: 128 << 20, CacheWrittenBytes: 128 << 10, CacheCopiedBytes: mib(128),
					Roof: roof(5e11, 10e9, 0.55), RoofTokensPerS: new(36.3), RAMBytes: mib(2),
				},
				{Kind: profile.DecodePhase, Batch: 2, Tokens: 1, Context: 4096, Quantity: "decode_4096_s"},
			},
		},
	}
	p.Totals.Latency, p.Totals.WeightsBytes = time(0.1), mib(420)
	return p
}

// TestPhaseLines checks the headline of a language model: figures first, then limits.
func TestPhaseLines(t *testing.T) {
	t.Parallel()
	want := `Prefill 128, batch 2: 512 tokens/s · TTFT 500 ms (95 % CI 450 to 550 ms)
Decode at 1024, batch 2: 20.0 tokens/s · TPOT 100 ms (95 % CI 90.0 to 110 ms)
Excluded: tokenizer and sampling
Limit of prefill 128, batch 2: 640 tokens/s by float32 arithmetic, 80.0 % reached · weights 400 MiB · cache read 0 B, written 16.0 MiB · 200 Gop · 458 op/byte
Limit of decode at 1024, batch 2: 36.3 tokens/s by DRAM at 10.0 GB/s, 55.0 % reached · weights 400 MiB · cache read 128 MiB, written 128 KiB, copied 128 MiB · 1.00 Gop · 1.81 op/byte
Limit of decode at 4096, batch 2: unknown · cache read 0 B, written 0 B
Caches: 16 layers of 8 heads of 64, float32, 64.0 KiB for each position, up to 8192 positions
Memory by context: 550 MiB for 1024 positions, 1.41 GiB for 8191 positions: weights 420 MiB, 128 KiB each, activations 2.00 MiB; 1.00 GiB hold 4.82 k positions
Layers: those of decode at 1024, batch 2; other phases have columns of their own`
	var lines []string
	for _, f := range phaseLines(languageProfile()) {
		lines = append(lines, f.label+": "+f.value)
	}
	if d := cmp.Diff(want, strings.Join(lines, "\n")); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	title, fs := headline(languageProfile())
	if title == "" || fs[0].label != "Prefill 128, batch 2" {
		t.Errorf("%s, %+v", title, fs)
	}
	for _, f := range fs {
		if f.label == "Latency" {
			t.Errorf("the latency of one phase stands as that of the model: %s", f.value)
		}
	}
}

// TestMemoryByContext: buffers have one size, and memory that holds the longest context is not a
// limit.
func TestMemoryByContext(t *testing.T) {
	t.Parallel()
	p := languageProfile()
	p.Host.MemoryBytes = new(int64(1 << 40))
	if got, want := memoryByContext(p), "550 MiB for 1024 positions, 1.41 GiB for 8191 positions: weights 420 MiB, 128 KiB each, activations 2.00 MiB"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// Activations that grow like the caches: copies of these.
	p.Language.Memory[0].PlanBytes, p.Language.Memory[1].PlanBytes, p.Host.MemoryBytes = 1024<<17, 8191<<17, new(int64(1444<<20))
	if got, want := memoryByContext(p), "676 MiB for 1024 positions, 2.41 GiB for 8191 positions: weights 420 MiB, 128 KiB each, activations 128 MiB and 1.00 GiB; 1.41 GiB hold 4.10 k positions"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	p.Language.Cache.Shared, p.Language.Cache.Capacity = true, new(int64(2048))
	p.Language.Memory, p.Host.MemoryBytes = []profile.ContextMemory{{Context: 2048, WeightsBytes: 420 << 20, CacheBytes: 256 << 20, PlanBytes: 2 << 20}}, new(int64(1<<40))
	if got, want := memoryByContext(p), "678 MiB for 2048 positions: weights 420 MiB, 128 KiB each, activations 2.00 MiB"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	p.Language.Memory = nil
	if got := memoryByContext(p); got != "" {
		t.Errorf("without a plan: %s", got)
	}
}
