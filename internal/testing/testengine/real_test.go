package testengine_test

import (
	"math"
	"strings"
	"testing"

	root "github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/testing/decoder"
	"github.com/opmeter/opmeter/profile"
)

// ONNX Runtime and OpenVINO themselves compute in streams and show their peaks.
func TestRealStreams(t *testing.T) {
	t.Parallel()
	libs := map[string]string{
		"onnxruntime": library(t, "onnxruntime-1.32.*/onnxruntime/capi/libonnxruntime.so.1.*"),
		"openvino":    library(t, "openvino-*/openvino/libs/libopenvino_c.so*"),
	}
	helper, err := realHelper()
	if err != nil {
		t.Fatal(err)
	}
	m, err := root.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for name, lib := range libs {
		p, err := root.Profile(t.Context(), m, root.Options{Engine: &engine.Engine{Name: name, Library: lib, Helper: helper}, Runs: 10, Warmup: -1, Streams: 2, Cold: "start"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		rate, ok := p.Totals.Value("inferences_per_s")
		if cold := p.Totals.Figure("cold_start_s"); !ok || !(rate > 0) || cold == nil || *cold.N < 10 || p.Target.PeakOpsPerSecond == nil || !strings.HasPrefix(p.Target.PeakMethod, "measured here after the runs") {
			t.Errorf("%s: %v a second, %+v, %+v, %+v", name, rate, cold, p.Target, p.Findings)
		}
	}
}

// ONNX Runtime runs the phases of language models with the outputs of opmeter. Layers and gaps of
// each add up to its latency.
func TestRealPhases(t *testing.T) {
	t.Parallel()
	lib := library(t, "onnxruntime-1.32.*/onnxruntime/capi/libonnxruntime.so.1.*")
	helper, err := realHelper()
	if err != nil {
		t.Fatal(err)
	}
	for _, shared := range []bool{false, true} {
		c := decoder.Small
		c.Shared, c.HeadSize = shared, 16 // ONNX Runtime needs a multiple of 16
		data, err := onnx.Encode(decoder.New(c))
		if err != nil {
			t.Fatal(err)
		}
		m, err := root.OpenBytes("decoder.onnx", data)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		p, err := root.Profile(t.Context(), m, root.Options{
			Engine: &engine.Engine{Name: "onnxruntime", Library: lib, Helper: helper}, Runs: 10, Warmup: -1, SkipPeaks: true,
			Phases: &root.Phases{Prompts: []int{16}, Contexts: []int{0, 40}},
		})
		if err != nil {
			t.Fatalf("shared %v: %v", shared, err)
		}
		own, err := root.Profile(t.Context(), m, root.Options{Runs: 3, Warmup: -1, Phases: &root.Phases{Prompts: []int{16}, Contexts: []int{0, 40}}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Language.Phases {
			ph, sum := &p.Language.Phases[i], 0.0
			for k := range p.Layers {
				v, _ := p.Layers[k].Value(ph.Quantity)
				sum += v
			}
			r := ph.Reconcile
			if v, ok := ph.TokensPerS.Best(); !ok || !(v > 0) || r == nil || !(sum > 0) || math.Abs(sum+*r.GapsS-*r.WallS) > 1e-3**r.WallS {
				t.Errorf("shared %v, %s: layers %v, %+v", shared, ph.Name(), sum, r)
			}
			if o := &own.Language.Phases[i]; ph.Ops == nil || *ph.Ops != *o.Ops || *ph.WeightsReadBytes != *o.WeightsReadBytes {
				t.Errorf("shared %v, %s: %v operations and %v bytes of weights, want %d and %d", shared, ph.Name(), ph.Ops, ph.WeightsReadBytes, *o.Ops, *o.WeightsReadBytes)
			}
			if ph.CacheCopiedBytes != nil {
				t.Errorf("shared %v, %s: what ONNX Runtime copies is not known, not %d", shared, ph.Name(), *ph.CacheCopiedBytes)
			}
		}
		if len(p.Differences) != 5 {
			t.Errorf("shared %v: %d outputs were compared, want 5", shared, len(p.Differences))
		}
		for _, d := range p.Differences {
			if d.State != profile.Equal && d.State != profile.Rounding {
				t.Errorf("shared %v: %+v", shared, d)
			}
		}
	}
}
