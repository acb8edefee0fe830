package testengine_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/study"
)

// Benches run both models with an external engine, and have an interval of pairs that were
// measured at the same time.
func TestBench(t *testing.T) {
	t.Parallel()
	digits, quantised := material.Path(t, "models", "real", "winml_mnist.onnx"), material.Path(t, "models", "mcu", "tinymaix_mnist_valid_q.tflite")
	for _, c := range []struct{ name, lib, model string }{
		{"onnxruntime", "onnxruntime-1.32.*/onnxruntime/capi/libonnxruntime.so.1.*", digits},
		{"openvino", "openvino-*/openvino/libs/libopenvino_c.so*", digits},
		{"litert", "ai_edge_litert-*/ai_edge_litert/libLiteRt.so", quantised},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "bench.json")
			out, _ := alone(t, "compress", "bench", c.model, c.model, "--engine", c.name+"="+library(t, c.lib), "--time", "100ms", "--study", filepath.Join(dir, "m.study"), "-o", file)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var s study.Study
			if err := json.Unmarshal(text, &s); err != nil || len(s.Benches) != 1 || len(s.Benches[0].Points) != 1 {
				t.Fatalf("%v: %+v", err, s.Benches)
			}
			if p := s.Benches[0].Points[0]; p.Before == nil || p.After == nil || p.Speedup == nil || p.Speedup.CI95 == nil || p.Error != "" {
				t.Errorf("%+v", p)
			}
		})
	}
}
