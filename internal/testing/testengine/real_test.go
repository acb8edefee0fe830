package testengine_test

import (
	"strings"
	"testing"

	root "github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/engine"
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
