package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/profile"
)

// TestHeadline has the first lines of profiles of every kind of target.
func TestHeadline(t *testing.T) {
	t.Parallel()
	n := func(v int64) *int64 { return &v }
	sized := func(p *profile.Profile) *profile.Profile {
		p.Totals.RAMBytes, p.Totals.FlashBytes = n(2048), n(4096)
		p.Memory = &profile.Memory{PeakBytes: n(1024), TFLMArenaBytes: n(1536)}
		return p
	}
	host := func() *profile.Profile {
		p := sized(&profile.Profile{Model: profile.Model{Name: "kws", Format: "tflite"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost, Engine: "opmeter"}})
		p.Settings.Threads, p.Settings.KernelSet, p.Host = n(2), "avx2", &profile.Host{CPUs: n(8)}
		p.Totals.Latency = &profile.Metric{Kind: profile.Measured, N: n(50), Median: new(238e-6), CI95: &[2]float64{231e-6, 245e-6}}
		p.Trust = &profile.Trust{Verdict: profile.Good}
		return p
	}
	chip := func() *profile.Profile {
		p := sized(&profile.Profile{Model: profile.Model{Name: "kws.onnx", Format: "onnx"}, Target: profile.Target{ID: "m4", Kind: profile.TargetSimulator, Engine: "tflm", ClockHz: new(80e6)}})
		p.Totals.Latency = &profile.Metric{Kind: profile.Estimated, Median: new(2e-3), Band: &[2]float64{999e-6, 3e-3}}
		return p
	}
	fits := func(ram, flash profile.Severity) *profile.Profile {
		p := chip()
		p.Findings = []profile.Finding{{ID: "target.ram", Severity: ram}, {ID: "target.flash", Severity: flash}}
		return p
	}
	for _, c := range []struct {
		name string
		p    *profile.Profile
		want string
	}{
		{"good", host(), "kws.tflite on this computer (2 threads, avx2)\nLatency 238 µs (95 % CI 231 to 245 µs) · quality: fit for comparing\nMemory peak activations 1.00 KiB · TFLM tensor arena 1.50 KiB + persistent part · flash 4.00 KiB (model)\nNext step compare with the engine that you ship: opmeter profile kws.tflite --engine opmeter,litert"},
		{"one of several signatures", func() *profile.Profile {
			p := host()
			p.Model.Signature, p.Model.Signatures = "dec", []string{"dec", "enc"}
			return p
		}(), "Signature dec; the file also has enc: choose with --signature NAME\nLatency 238 µs"},
		{"undisturbed", func() *profile.Profile {
			p := host()
			p.Trust = &profile.Trust{Verdict: profile.Unreliable, Quote: "undisturbed_latency_s", Doubts: []profile.Doubt{{Code: profile.DoubtWaiting, Verdict: profile.Unreliable}}}
			p.Totals.Figures = map[string]*profile.Metric{"undisturbed_latency_s": {Kind: profile.Measured, Median: new(2e-4)}}
			return p
		}(), "Latency 200 µs (undisturbed runs) · quality: unstable: repeat (machine busy)\nMemory"},
		{"the interval is that of the median", func() *profile.Profile {
			p := host()
			p.Totals.Latency.Mean = new(300e-6)
			return p
		}(), "Latency 238 µs (95 % CI 231 to 245 µs)"},
		{"a mean of unknown runs", func() *profile.Profile {
			p := host()
			p.Totals.Latency = &profile.Metric{Kind: profile.Imported, Mean: new(200e-6)}
			return p
		}(), "Latency 200 µs (mean)"},
		{"one thread", func() *profile.Profile {
			p := host()
			p.Settings.Threads = n(1)
			return p
		}(), "Next step try --threads 2 (of 8 CPUs)"},
		{"another engine", func() *profile.Profile {
			p := host()
			p.Target.Engine, p.Settings.EngineVersion = "onnxruntime", "1.20"
			return p
		}(), "(2 threads, onnxruntime 1.20)\n"},
		{"estimate", chip(), "kws.onnx on m4 (tflm, 80.0 MHz, estimate)\nLatency 2.00 ms (90 % band 999 µs to 3.00 ms)\nMemory RAM 2.00 KiB · flash 4.00 KiB (model) + program code\nNext step measure on the board"},
		{"fits", fits(profile.Info, profile.Info), "3.00 ms) · fits in RAM and flash\n"},
		{"no RAM", fits(profile.Problem, profile.Warning), " · does not fit: too little RAM\n"},
		{"neither", fits(profile.Problem, profile.Problem), " · does not fit: too little RAM and flash\n"},
		{"little flash", fits(profile.Info, profile.Warning), " · flash may not suffice\n"},
		{"refused", func() *profile.Profile {
			p := chip()
			p.Findings = []profile.Finding{{ID: "target.refused", Severity: profile.Problem}}
			return p
		}(), " · the runtime does not load this model\nMemory RAM 2.00 KiB · flash 4.00 KiB (model) + program code\nNext step see the problem in the findings below"},
		{"device", func() *profile.Profile {
			p := chip()
			p.Target.Kind, p.Target.ID, p.Target.ClockHz = profile.TargetDevice, "board", nil
			return p
		}(), "kws.onnx on board (tflm, measured)\n"},
		{"record", func() *profile.Profile {
			p := chip()
			p.Target = profile.Target{ID: "gpu", Kind: profile.TargetImport, Engine: "tensorrt"}
			p.Totals.Latency = &profile.Metric{Kind: profile.Imported, N: n(20), Median: new(2e-3)}
			return p
		}(), "kws.onnx, imported from tensorrt\nLatency 2.00 ms (median of 20 runs)\n"},
		{"cycles alone", func() *profile.Profile {
			p := chip()
			p.Totals.Latency, p.Totals.CPUCycles = nil, profile.Value(profile.Measured, 2e6, "")
			return p
		}(), "estimate)\nCPU cycles 2.00 M\n"},
		{"no cost", func() *profile.Profile {
			p := chip()
			p.Totals.Latency = nil
			return p
		}(), ""},
	} {
		title, fs := headline(c.p)
		got := title
		for _, f := range fs {
			got += "\n" + f.label + " " + f.value
		}
		if !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
	// At 80 columns the answer takes at most ten lines before the table.
	var b bytes.Buffer
	if err := Write(&b, fixed(), "table", Options{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if head, _, _ := strings.Cut(b.String(), "\n\n"); strings.Count(head, "\n") >= 10 {
		t.Errorf("long:\n%s", head)
	}
}

// TestOperators has operators by their share; the parts add up to 100 %.
func TestOperators(t *testing.T) {
	t.Parallel()
	of := func(shares ...float64) *profile.Profile {
		p := &profile.Profile{}
		for i, s := range shares {
			p.Layers = append(p.Layers, profile.Layer{State: profile.Ran, Op: string(rune('A' + i)), Share: new(s), Latency: profile.Value(profile.Measured, s, "")})
		}
		return p
	}
	for _, c := range []struct {
		p    *profile.Profile
		want string
	}{
		{of(), ""},
		{of(1), "A 100 %"},
		{of(0.2, 0.8), "B 80 % · A 20 %"},
		{of(0.335, 0.335, 0.33), "A 34 % · B 33 % · C 33 %"},
		{of(0.5, 0.2, 0.1, 0.1, 0.1), "A 50 % · B 20 % · C 10 % · D 10 % · others 10 %"},
		{of(0.995, 0.005), "A 100 %"},
		{of(0.985, 0.008, 0.007), "A 99 % · others 1 %"},
	} {
		if got := operators(c.p); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestEngineRelease states a version once.
func TestEngineRelease(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{"ONNX Runtime 1.32.0", "1.32.0", "ONNX Runtime 1.32.0"},
		{"ONNX Runtime", "1.32.0", "ONNX Runtime 1.32.0"},
		{"LiteRT", "", "LiteRT"},
	} {
		if got := engineRelease(c[0], c[1]); got != c[2] {
			t.Errorf("%q %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}
