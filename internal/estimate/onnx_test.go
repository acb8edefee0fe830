package estimate

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
)

// The reference networks of MLPerf Tiny exist as .tflite and, made by others, as
// ONNX with conversions around each operator: estimates agree.
func TestSameNetworkInONNX(t *testing.T) {
	t.Parallel()
	for onnx, lite := range map[string]string{
		"mlperf_kai_kws_ref_model_int8.onnx": "mlperf_kws_ref_model.tflite",
		"mlperf_kai_resnet_int8.onnx":        "mlperf_pretrainedResnet_quant.tflite",
		"mlperf_kai_mobilenet_v1_int8.onnx":  "mlperf_vww_96_int8.tflite",
	} {
		for _, id := range []string{"efr32xg24-mvp", "stm32l4r5", "ra8d1"} {
			var ms [2]*profile.Profile
			for i, name := range []string{onnx, lite} {
				m, err := modelfile.Open(material.Path(t, "models", "mcu", name))
				if err != nil {
					t.Fatal(err)
				}
				if m.Close != nil {
					defer m.Close() //nolint:errcheck // only read
				}
				if ms[i], err = Estimate(m, find(t, id), chip.Options{}); err != nil {
					t.Fatal(err)
				}
				if err := ms[i].Validate(); err != nil {
					t.Error(err)
				}
			}
			a, b := products(ms[0]), products(ms[1])
			t.Logf("%s %s: %.2f ms, as .tflite %.2f ms; peak %d and %d bytes", id, onnx, 1e3*a, 1e3*b, *ms[0].Memory.PeakBytes, *ms[1].Memory.PeakBytes)
			if *ms[0].Memory.PeakBytes > 5**ms[1].Memory.PeakBytes {
				t.Errorf("%s: peak of %d bytes", onnx, *ms[0].Memory.PeakBytes)
			}
			if math.Abs(a/b-1) > 0.02 {
				t.Errorf("%s %s: %.2f ms, as .tflite %.2f ms", id, onnx, 1e3*a, 1e3*b)
			}
			if !has(ms[0], "target.format", profile.Info) {
				t.Errorf("%s %s: nothing is said about the format", id, onnx)
			}
		}
	}
}

// products is the time of layers with multiply-accumulates: the ONNX files take and
// give floating point, which the others do not convert.
func products(p *profile.Profile) (s float64) {
	for i := range p.Layers {
		if l := &p.Layers[i]; l.MACs != nil && *l.MACs > 0 {
			s += best(l.Latency)
		}
	}
	return s
}
