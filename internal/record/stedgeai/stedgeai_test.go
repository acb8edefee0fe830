package stedgeai_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/stedgeai"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/profile"
)

func path(t *testing.T, name string) string {
	t.Helper()
	return material.Path(t, "raw", "traces", "stm32", name)
}

func total(p *profile.Profile, key string) float64 { v, _ := p.Totals.Value(key); return v }

func sum(p *profile.Profile, key string) (s float64) {
	for i := range p.Layers {
		v, _ := p.Layers[i].Value(key)
		s += v
	}
	return s
}

// TestText holds the figures of the report: work and storage of its ten layers.
func TestText(t *testing.T) {
	t.Parallel()
	p := records.Read(t, stedgeai.Format(), records.Files(t, path(t, "sww_generate_report.txt")), record.Options{})[0]
	if len(p.Layers) != 10 || sum(p, "macc") != 827256 || total(p, "macc") != 827256 || sum(p, "weights_bytes") != 49412 {
		t.Fatalf("%d layers, %g, %g", len(p.Layers), sum(p, "macc"), sum(p, "weights_bytes"))
	}
	if *p.Totals.Params != 46883 || *p.Totals.RAMBytes != 10116 || *p.Totals.FlashBytes != 49412 || *p.Memory.ArenaBytes != 10116 || p.Model.Name != "str_ww_ref_model" {
		t.Errorf("%+v", p.Totals)
	}
	l := &p.Layers[8]
	if l.Name != "gemm_9" || l.Op != "Dense" || l.Option("m_id") != "9" || l.Option("original") != "FULLY_CONNECTED" || l.Option("operations") != "smul_s8_s8" || len(l.Inputs) != 3 || fmt.Sprint(l.Outputs[0].Shape) != "[1 3]" || l.Outputs[0].DType != "int8" {
		t.Errorf("%+v", l)
	}
	if in := p.Model.Inputs; len(in) != 1 || in[0].Name != "serving_default_input_10" || in[0].DType != "int8" || fmt.Sprint(in[0].Shape) != "[1 30 1 40]" || len(p.Model.Outputs) != 1 {
		t.Errorf("%+v", in)
	}
	if o := p.Layers[1].Option("model_layers"); o != "conv2d_1, nl_1_nl" {
		t.Error(o)
	}
}

// TestJSON: three files of one network are one run, whose sums are those of the files.
func TestJSON(t *testing.T) {
	t.Parallel()
	var g struct {
		Layers []struct{ Macc, Rom float64 } `json:"c_layers"`
		Macc   float64
	}
	b, err := os.ReadFile(path(t, "sww_int8_c_graph.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	var macc, rom float64
	for _, l := range g.Layers {
		macc += l.Macc
		rom += l.Rom
	}
	ps := records.Read(t, stedgeai.Format(), records.Files(t, path(t, "sww_int8_c_graph.json"), path(t, "sww_int8_c_info.json"), path(t, "sww_int8_stedgeai_report.json")), record.Options{})
	if len(ps) != 1 {
		t.Fatalf("%d runs", len(ps))
	}
	p := ps[0]
	if len(p.Layers) != len(g.Layers) || sum(p, "macc") != macc || sum(p, "weights_bytes") != rom || total(p, "macc") != g.Macc || macc != g.Macc {
		t.Errorf("%d layers, %g and %g, want %d, %g, %g", len(p.Layers), sum(p, "macc"), sum(p, "weights_bytes"), len(g.Layers), macc, rom)
	}
	l := &p.Layers[0]
	if l.Kernel != "forward_dw_sssa8_ch" || l.Placement.On != profile.CPU || l.Option("original") != "DEPTHWISE_CONV_2D" || fmt.Sprint(l.Outputs[0].Shape) != "[28 1 40]" || *l.Outputs[0].ZeroPoint != -3 {
		t.Errorf("%+v", l)
	}
	if in := p.Model.Inputs; len(in) != 1 || fmt.Sprint(in[0].Shape) != "[30 1 40]" || len(p.Model.Outputs) != 1 {
		t.Errorf("%+v", in)
	}
	if len(p.Memory.Plan) == 0 || *p.Memory.ArenaBytes != 5836 || *p.Totals.Params != 46883 {
		t.Errorf("%+v", p.Memory)
	}
	alone := records.Read(t, stedgeai.Format(), records.Files(t, path(t, "sww_int8_stedgeai_report.json")), record.Options{})[0]
	fused := 0
	for i := range alone.Layers {
		if alone.Layers[i].State == profile.Fused {
			fused++
		}
	}
	if len(alone.Layers) != 17 || fused == 0 || sum(alone, "params") != 46883 {
		t.Errorf("the report alone: %d layers, %d fused, %g parameters", len(alone.Layers), fused, sum(alone, "params"))
	}
}

// TestValidate: times on the target, as older and newer tools print them.
func TestValidate(t *testing.T) {
	t.Parallel()
	read := func(text string) *profile.Profile {
		return records.Read(t, stedgeai.Format(), []*record.File{record.Bytes("network_validate_report.txt", []byte(text))}, record.Options{})[0]
	}
	p := read("Results for 10 inference(s) @168/168MHz (macc:874970)\n duration    : 62.976 ms (average)\n CPU cycles  : 10579924 (average)\n cycles/MACC : 12.09 (average for all layers)\n\nInspector report (layer by layer)\n signature      : EF7C5473\n\n" +
		"Clayer  id  desc                          oshape            ms        \n--------------------------------------------------------------------------------\n" +
		"0       0   10011/(Merged Conv2d / Pool)  (10, 44, 1, 128)  14.470    \n1       4   10005/(Dense)                 (10, 1, 1, 128)   48.506    \n                                                            62.976 (total)\n")
	if len(p.Layers) != 2 || p.Layers[0].Op != "Merged Conv2d / Pool" || math.Abs(sum(p, "latency_s")-62.976e-3) > 1e-12 || *p.Target.ClockHz != 168e6 || *p.Settings.Runs != 10 || total(p, "cpu_cycles") != 10579924 || total(p, "cycles_per_macc") != 12.09 {
		t.Errorf("%+v", p)
	}
	p = read("ST Edge AI Core v2.0.0\nST.AI Profiling results v2.0 - \"network\"\n------------\nnb sample(s)   :   540\nduration       :   11.970 ms by sample (11.733/12.052/0.097)\nmacc           :   2938\ncycles/MACC    :   20.37\n------------\n\n" +
		" Inference time per node\n ----------------------------------------\n c_id    m_id   type                   dur (ms)       %    cumul  CPU cycles       name\n ----------------------------------------\n 0       1      Conv2D (0x103)            8.000   66.8%    66.8%  [ 640,000 ]      node_0\n 1       2      Dense (0x104)             3.970   33.2%   100.0%  [ 317,600 ]      node_1\n ----------------------------------------\n")
	m := p.Totals.Latency
	if len(p.Layers) != 2 || math.Abs(*m.Mean-11.97e-3) > 1e-15 || math.Abs(*m.Min-11.733e-3) > 1e-15 || *m.N != 540 || total(p, "cpu_cycles") != 957600 || p.Layers[1].Op != "Dense" || p.Layers[1].Option("m_id") != "2" {
		t.Errorf("%+v %+v", m, p.Layers)
	}
}

// TestTwice: the results of a second run in a file are not mixed with those of the first.
func TestTwice(t *testing.T) {
	t.Parallel()
	one := func(ms float64) string {
		return fmt.Sprintf("Results for 10 inference(s) @168/168MHz (macc:874970)\n duration    : %g ms (average)\n\nInspector report (layer by layer)\n\nClayer  id  desc                          oshape            ms        \n----------------------------------------\n0       0   10011/(Dense)                 (10, 44, 1, 128)  %.3f    \n\n", ms, ms)
	}
	text := one(14.5) + one(20)
	for _, text := range []string{text, "12:00:00.123 -> " + strings.ReplaceAll(text, "\n", "\n12:00:00.123 -> ")} {
		p := records.Read(t, stedgeai.Format(), []*record.File{record.Bytes("network_validate_report.txt", []byte(text))}, record.Options{})[0]
		if v, _ := p.Totals.Latency.Best(); v != 14.5e-3 || len(p.Layers) != 1 || math.Abs(sum(p, "latency_s")-14.5e-3) > 1e-12 || len(p.Incomplete) != 1 || *p.Incomplete[0].Want != 1 {
			t.Errorf("%g s, %+v", v, p.Incomplete)
		}
	}
}

func FuzzSTEdgeAI(f *testing.F) {
	f.Add([]byte("ST Edge AI Core v1.0.0\nmodel file         :   /a/b.tflite\ntype               :   tflite\nweights (ro)       :   49,412 B (48.25 KiB)\nmacc               :   1,000\n------ ---------------- ---- --------------- -------- ------- ------------ ------------ \nc_id   name (*_layer)   id   layer_type      macc     rom     tensors      shape (array id) \n------ ---------------- ---- --------------- -------- ------- ------------ ------------ \n0      conv2d_0         0    Conv2D          3400     280     I: in        int8(1x30) (38) \n"))
	f.Add([]byte(`{"c_arrays":[{"c_size_in_byte":4,"format":"s8","tensors":[{"name":"a","shape":[1,-5]}]}],"c_layers":[{"c_id":0,"name":"l","layer_type":"x","macc":5,"rom":6,"m_id":0,"tensors":{"outputs":["a"]},"weight_sparsity":[0.5,10,5]}],"activations_alignment":4}`))
	f.Add([]byte(`{"buffers":[{"id":1,"mpool_id":0,"name":"b","size_bytes":5,"epochs":{"start":0,"end":1},"offset_start":0}],"graphs":[{"nodes":[{"name":"n","description":"d","macc":1,"exec_time":{"duration_ms":2,"cycles":3}}]}]}`))
	f.Add([]byte(`{"cli_parameters":"","tools_api_version":"1","layers":[{"id":0,"name":"a","type":"Conv2D","extras":{"n_macc":5,"psize":6}},{"id":0,"name":"b","type":"NL","extras":{}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) { records.Fuzz(t, stedgeai.Format(), "a_report.txt", b) })
}
