package count_test

import (
	"testing"

	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// TestONNXMACs compares networks of known size, with shapes from the engine's
// planner.
func TestONNXMACs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		file     string
		min, max int64 // multiply-accumulates that papers and other counters state
	}{
		{"onnx_light_resnet50.onnx", 3_850_000_000, 4_120_000_000},
		{"onnx_light_squeezenet.onnx", 340_000_000, 870_000_000},
		{"onnx_light_vgg19.onnx", 19_600_000_000, 19_680_000_000},
		{"mltr13_resnet.onnx", 12_501_632, 12_501_632},
		{"mltr13_kws_ref_model.onnx", 2_656_768, 2_656_768},
		{"mltr13_deep_autoencoder.onnx", 264_192, 264_192},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			m, err := onnx.Open(material.Path(t, "models", "real", tt.file))
			if err != nil {
				t.Fatal(err)
			}
			if m.Close != nil {
				defer func() { _ = m.Close() }()
			}
			var in []*tensor.Tensor
			for _, id := range m.Main().Inputs {
				v := m.Main().Values[id]
				shape := make([]int, len(v.Shape))
				for i, d := range v.Shape {
					shape[i] = max(d, 1)
				}
				in = append(in, tensor.New(v.Type, shape...))
			}
			s, err := engine.New(m, in, engine.Options{Registry: operators.Registry(), KeepAll: true})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			macs := int64(0)
			for _, st := range s.Steps() {
				w := count.Count(m, m.Graphs[st.Graph], st.Node, st.In, st.Out)
				switch {
				case w.MACs == nil:
					t.Errorf("%s %q is unknown (%v)", st.Node.Key(), st.Node.Name, st.Err)
				default:
					macs += *w.MACs
				}
			}
			if macs < tt.min || macs > tt.max {
				t.Errorf("%d multiply-accumulates, want %d to %d", macs, tt.min, tt.max)
			}
			t.Logf("%d multiply-accumulates", macs)
		})
	}
}
