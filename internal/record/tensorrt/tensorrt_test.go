package tensorrt_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tensorrt"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

func load(t *testing.T, name string) (out []map[string]any) {
	t.Helper()
	f, err := os.Open(material.Path(t, "raw", "traces", "trt", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := json.NewDecoder(r).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// near compares sums of some hundred figures with six digits.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b)) }

// TestEngines reads all files of each engine together and compares with the documents: sums of
// means and of times, the median of the inferences.
func TestEngines(t *testing.T) {
	t.Parallel()
	for stem, times := range map[string]string{
		"mobilenet_qat": ".engine.timing.json.gz", "resnet50_tf_fp16_rtx3090": ".engine.timing.json", "resnet50_tf_qat_rtx3090": ".engine.timing.json",
		"resnet_pt_fp32_a100": ".engine.timing.json", "resnet_pt_qat_a100": ".engine.timing.json",
	} {
		var paths []string
		for _, p := range records.In(t, material.Path(t, "raw", "traces", "trt")) {
			if strings.Contains(p, "/"+stem+".") {
				paths = append(paths, p)
			}
		}
		ps := records.Read(t, tensorrt.Format(), records.Files(t, paths...), record.Options{})
		if len(ps) != 1 {
			t.Fatalf("%s: %d files became %d runs", stem, len(paths), len(ps))
		}
		p := ps[0]
		rows := load(t, stem+".engine.profile.json")[1:]
		var mean, sum, gotMean, gotSum float64
		for _, r := range rows {
			mean += r["averageMs"].(float64) / 1e3
			sum += r["timeMs"].(float64) / 1e3
		}
		typed := 0
		for i := range p.Layers {
			l := &p.Layers[i]
			if l.Latency != nil {
				gotMean += *l.Latency.Mean
			}
			v, _ := l.Value("recorded_sum_s")
			gotSum += v
			if l.Op != "unknown" && len(l.Outputs) > 0 && l.Outputs[0].DType != "" && len(l.Outputs[0].Shape) > 0 {
				typed++
			}
		}
		if len(p.Layers) != len(rows) || !near(gotMean, mean) || !near(gotSum, sum) || typed != len(rows) {
			t.Errorf("%s: %d layers, %d of them described, %g and %g s; want %d, %g, %g", stem, len(p.Layers), typed, gotMean, gotSum, len(rows), mean, sum)
		}
		var latency []float64
		for _, r := range load(t, stem+times) {
			latency = append(latency, r["latencyMs"].(float64)/1e3)
		}
		slices.Sort(latency)
		m := p.Totals.Latency
		if *m.N != int64(len(latency)) || *m.Min != latency[0] || *m.Max != latency[len(latency)-1] || *p.Timeline.Iterations != int64(len(latency)) {
			t.Errorf("%s: %+v of %d", stem, m, len(latency))
		}
	}
}

func TestDetails(t *testing.T) {
	t.Parallel()
	dir := material.Path(t, "raw", "traces", "trt")
	p := records.Read(t, tensorrt.Format(), records.Files(t, dir+"/resnet_pt_fp32_a100.engine.profile.json", dir+"/resnet_pt_fp32_a100.engine.graph.json", dir+"/resnet_pt_fp32_a100.engine.metadata.json"), record.Options{})[0]
	l := &p.Layers[0]
	if l.Op != "CaskConvolution" || l.Kernel != "ampere_scudnn_128x64_relu_xregs_large_nn_v1" || *l.Params != 9408+64 || *l.WeightsBytes != 4*(9408+64) {
		t.Errorf("%+v", l)
	}
	want := []profile.Tensor{{Name: "onnx::MaxPool_125", DType: "float32", Shape: []int64{32, 64, 112, 112}, Bytes: new(int64(32 * 64 * 112 * 112 * 4))}}
	if d := cmp.Diff(want, l.Outputs); d != "" {
		t.Error(d)
	}
	for key, want := range map[string]string{"kernel": "[7,7]", "stride": "[2,2]", "out_maps": "64", "activation": "RELU", "has_bias": "1", "weights_type": "Float", "input_location": "Device"} {
		if got := l.Option(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if p.Target.Description != "NVIDIA A100 80GB PCIe" || *p.Target.ClockHz != 1.41e9 {
		t.Errorf("%+v", p.Target)
	}
	if p.Layers[7].State != profile.NotReached || p.Layers[7].Latency != nil {
		t.Errorf("a layer of no time: %+v", p.Layers[7])
	}
}

func hint(t *testing.T, text string, i int) runlog.Hint {
	t.Helper()
	runs, err := tensorrt.Format().Read(t.Context(), &record.Input{Files: []*record.File{record.Bytes("a.json", []byte(text))}})
	if err != nil {
		t.Fatal(err)
	}
	records.Collect(t, runs[0])
	return runs[0].Hints[i]
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"Conv_0 + Relu_1":                                  {"Conv_0", "Relu_1"},
		"a/1x1 + a/relu || b/3x3 + b/relu":                 {"a/1x1", "a/relu", "b/3x3", "b/relu"},
		"w + QuantizeLinear_8 + Conv_12 + PWN(Clip_16)":    {"w", "QuantizeLinear_8", "Conv_12", "Clip_16"},
		"PWN(PWN(Sigmoid_1), Mul_2)":                       {"Sigmoid_1", "Mul_2"},
		"{ForeignNode[first...last]}":                      {"first", "last"},
		"{a,b,c}":                                          {"a", "b", "c"},
		"Conv_3 [profile 1]":                               {"Conv_3"},
		"Reformatting CopyNode for Input Tensor 0 to Conv": nil,
		"conv1 + relu input reformatter 0":                 nil,
		"(Unnamed Layer* 307) [ElementWise]":               nil,
		"Conv_1_clone_2":                                   {"Conv_1"},
	} {
		h := hint(t, `[{"count":1},{"name":"`+name+`","timeMs":1,"averageMs":1,"percentage":1}]`, 0)
		if d := cmp.Diff(want, h.Nodes); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	for name, want := range map[string]string{
		"Conv_0 + Relu_1": "Conv+Relu", "conv1.weight + QuantizeLinear_7 + Conv_9": "QuantizeLinear+Conv", "Conv__435 + resnet50/conv1_relu/Relu": "Conv+Relu",
		"Reformatting CopyNode for Input Tensor 0 to Conv_3": "Reformat", "conv1/7x7_s2": "unknown", "PWN(Sigmoid_1, Mul_2)": "Sigmoid+Mul",
	} {
		p := records.Read(t, tensorrt.Format(), []*record.File{record.Bytes("a.json", []byte(`[{"count":1},{"name":"`+name+`","timeMs":1,"averageMs":1,"percentage":1}]`))}, record.Options{})[0]
		if p.Layers[0].Op != want {
			t.Errorf("%s is %s, want %s", name, p.Layers[0].Op, want)
		}
	}
	h := hint(t, `{"Layers":[{"Name":"fused","LayerType":"x","Metadata":"[ONNX Layer: /a/Conv]\u001e[ONNX Layer: b[0]]"}]}`, 0)
	if d := cmp.Diff([]string{"/a/Conv", "b[0]"}, h.Nodes); d != "" {
		t.Error(d)
	}
}

// TestTraps: several documents in one file, nan, layers as plain strings, old times whose ends
// less starts are not their durations, text that is cut.
func TestTraps(t *testing.T) {
	t.Parallel()
	read := func(text string) []*profile.Profile {
		return records.Read(t, tensorrt.Format(), []*record.File{record.Bytes("a.json", []byte(text))}, record.Options{})
	}
	one := `[{"count":2},{"name":"a","timeMs":4,"averageMs":2,"percentage":nan}]`
	ps := read(one + "\n" + strings.Replace(one, "4", "8", 1))
	if v, _ := ps[1].Layers[0].Value("recorded_sum_s"); len(ps) != 2 || v != 8e-3 || *ps[0].Settings.Runs != 2 {
		t.Errorf("%d runs", len(ps))
	}
	p := read(`{"Layers":["Conv_0 + Relu_1","Conv_2"]}`)[0]
	if len(p.Layers) != 2 || p.Layers[0].Name != "Conv_0 + Relu_1" {
		t.Errorf("%+v", p.Layers)
	}
	p = read(`[{"startInMs":5,"endInMs":9,"startComputeMs":4,"endComputeMs":9,"startOutMs":9,"endOutMs":10,"inMs":1,"computeMs":3,"outMs":0.5,"latencyMs":4.5,"endToEndMs":6}]`)[0]
	for key, want := range map[string]float64{"copy_to_device_s": 1e-3, "compute_s": 3e-3, "copy_to_host_s": 5e-4, "end_to_end_s": 6e-3, "latency_s": 4.5e-3} {
		if v, _ := p.Totals.Value(key); !near(v, want) {
			t.Errorf("%s is %g, want %g", key, v, want)
		}
	}
	p = read(`[{"startEnqMs":0,"endEnqMs":1,"startComputeMs":0.5,"endComputeMs":2,"computeMs":1.5,"latencyMs":1.5},{"startEnqMs":1,"endEnqMs":2,"startComputeMs":2,"endComputeMs":3,"computeMs":1,"latencyMs":1}`)[0]
	if len(p.Timeline.Lanes) != 2 || p.Timeline.Lanes[0].Kind != timeline.Host || p.Timeline.Lanes[1].Kind != timeline.Stream || len(p.Incomplete) == 0 {
		t.Errorf("%+v", p.Timeline.Lanes)
	}
	p = read("[\n  { \"count\" : 1 }\n, { \"name\" : \"a \"quoted\" b\", \"timeMs\" : 3, \"averageMs\" : 3, \"percentage\" : 50 }\n, { \"name\" : \"c\", \"timeMs\" : 3, \"averageMs\" : 3, \"percentage\" : 50 }\n]\n")[0]
	if len(p.Layers) != 2 || p.Layers[0].Name != `a "quoted" b` || !near(*p.Layers[0].Latency.Mean, 3e-3) {
		t.Errorf("names without escaping: %+v", p.Layers)
	}
	// Layers of one name are joined in their order.
	p = records.Read(t, tensorrt.Format(), []*record.File{
		record.Bytes("m.profile.json", []byte(`[{"count":1},{"name":"a","timeMs":1,"averageMs":1},{"name":"a","timeMs":2,"averageMs":2}]`)),
		record.Bytes("m.graph.json", []byte(`{"Layers":[{"Name":"a","LayerType":"First"},{"Name":"a","LayerType":"Second"},{"Name":"b","LayerType":"Third"}],"Bindings":["x"]}`)),
	}, record.Options{})[0]
	if len(p.Layers) != 3 || p.Layers[0].Op != "First" || p.Layers[1].Op != "Second" || p.Layers[2].State != profile.NotReached {
		t.Errorf("%+v", p.Layers)
	}
}

func FuzzTensorRT(f *testing.F) {
	f.Add([]byte(`[{"count":2},{"name":"a + b || PWN(c, d)","timeMs":4,"averageMs":2,"medianMs":2,"percentage":nan}]`))
	f.Add([]byte(`{"Layers":[{"Name":"a","LayerType":"x","Inputs":[{"Name":"i","Dimensions":[1,-1],"Format/Datatype":"Row major linear FP32"}],"Weights":{"Type":"Half","Count":5},"Metadata":"[ONNX Layer: b]"}],"Bindings":["x"]}`))
	f.Add([]byte(`[{"startEnqMs":0,"endEnqMs":1,"startComputeMs":0.5,"endComputeMs":2,"computeMs":1.5,"latencyMs":1.5}]`))
	f.Add([]byte(`{"performance_summary":{"Throughput":2,"Latency":[1,2,3,4,5]},"device_information":{"Selected Device":"x","Compute Clock Rate":1.5}}`))
	f.Add([]byte(newSummary(1) + newProfile))
	f.Fuzz(func(t *testing.T, b []byte) { records.Fuzz(t, tensorrt.Format(), "a.json", b) })
}
