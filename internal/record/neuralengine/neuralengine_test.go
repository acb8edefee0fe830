package neuralengine_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/neuralengine"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
)

const header = "operator type,post op,operator name,input tensor name,input shape,input dtype,output tensor name,output shape,output dtype,weight shape,weight sparse ratio,sparse support,operator latency (ms),aim to weight sparse ratio,sparse kernel pref ratio,aim to sparse latency(ms)\n"

// table is as the engine writes it: one operator that can be sparse, one with commas in its
// name, one with a scalar among its inputs, one without outputs.
const table = "weight shape,90% 4x1 perf ratio,80% 4x1 perf ratio,70% 4x1 perf ratio,others\n256x1024,4.000000,2.500000,2.000000,1\n" + header +
	`InnerProduct,gelu_tanh,fc1,x;w;b,8x256;256x1024;1024,fp32;fp32;fp32,y,8x1024,fp32,256x1024,12.50%,true,2.000, 90%,"=IF(N4=90%,B2,IF(N4=80%,C2,IF(N4=70%,D2,E2)))",=M4/O4` + "\n" +
	`InnerProduct,,fc2,x;w;b,8x256;256x1024;1024,fp32;fp32;fp32,z,8x1024,fp32,256x1024,12.50%,true,1.000, 80%,"=IF(N5=90%,B2,IF(N5=80%,C2,IF(N5=70%,D2,E2)))",=M5/O5` + "\n" +
	"LayerNorm,,norm,a,b,y;g,8x1024;1024,fp32;fp32,norm,a,b,8x1024,fp32,,0.00%,,0.500, ,,0.500\n" +
	"Quantize,,q,y;scale,8x1024;fp32;fp32,q_out,8x1024,s8,,0.00%,,0.250, ,,0.250\n" +
	"Reorder,,nothing,y,8x1024,fp32,,0.00%,,0.125, ,,0.125\n" +
	",,,,,,,,,,,total latency(ms),3.875,,total aim to sparse latency(ms),=SUM(P4:P8),sparse improve,=M9/P9\n" +
	",,,,,,,,,,,sparse support latency(ms),3.000,,aim to sparse support latency(ms),=P4+P5\n" +
	",,,,,,,,,,,sparse support latency ratio,0.774193,,aim to sparse support latency ratio,=P10/P9\n"

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12 }

func read(t *testing.T, files ...*record.File) []*profile.Profile {
	t.Helper()
	return records.Read(t, neuralengine.Format(), files, record.Options{})
}

func value(l *profile.Layer, key string) float64 { v, _ := l.Value(key); return v }

func TestTable(t *testing.T) {
	t.Parallel()
	p := read(t, record.Bytes("profiling_2022-12-01_10-00-00_0.csv", []byte(table)))[0]
	if len(p.Layers) != 5 {
		t.Fatalf("%+v", p.Layers)
	}
	for i, want := range []float64{2e-3, 1e-3, 5e-4, 2.5e-4, 1.25e-4} {
		if v := value(&p.Layers[i], "latency_s"); !near(v, want) {
			t.Errorf("layer %d takes %g, want %g", i, v, want)
		}
	}
	// 2 ms at ratio 4, 1 ms at 2.5, the others as they are.
	for i, want := range []float64{5e-4, 4e-4, 5e-4, 2.5e-4, 1.25e-4} {
		if v := value(&p.Layers[i], "sparse_latency_s"); !near(v, want) {
			t.Errorf("layer %d would take %g, want %g", i, v, want)
		}
	}
	l := &p.Layers[0]
	if value(l, "sparsity_target") != .9 || value(l, "sparse_ratio") != 4 || value(l, "block_sparsity") != .125 || l.Option("append_op") != "gelu_tanh" || !l.Inputs[1].Constant || l.Inputs[1].DType != "float32" {
		t.Errorf("%+v", l)
	}
	if l = &p.Layers[2]; l.Name != "norm,a,b" || l.Outputs[0].Name != "norm,a,b" || fmt.Sprint(l.Inputs[1].Shape) != "[1024]" {
		t.Errorf("commas in a name: %+v", l)
	}
	if l = &p.Layers[3]; len(l.Inputs) != 2 || l.Name != "q" || l.Inputs[1].Shape == nil || len(l.Inputs[1].Shape) != 0 || l.Inputs[1].DType != "float32" || l.Outputs[0].DType != "int8" {
		t.Errorf("a scalar: %+v", l)
	}
	if l = &p.Layers[4]; len(l.Outputs) != 0 || l.Name != "nothing" {
		t.Errorf("no outputs: %+v", l)
	}
	for key, want := range map[string]float64{"sparse_latency_s": 1.775e-3, "sparse_support_s": 3e-3, "sparse_support_aim_s": 9e-4, "sparse_improve": 3.875 / 1.775, "sparse_support_aim_ratio": .9 / 1.775, "recorded_latency_s": 3.875e-3} {
		if v, _ := p.Totals.Value(key); !near(v, want) {
			t.Errorf("%s is %g, want %g", key, v, want)
		}
	}
}

// TestEdited: ratios and targets that people changed, formulas of their own, ones that need
// themselves.
func TestEdited(t *testing.T) {
	t.Parallel()
	text := strings.Replace(table, "=M5/O5", "=(M5-0.5)*2/(O5+-1.5)", 1)
	text = strings.Replace(text, "=M4/O4", `"=SUMIF(L4:L8,TRUE,M4:M8)+IF(VALUE(N4)<0.95,1,9)"`, 1)
	text = strings.Replace(text, ",0.500, ,,0.500", ",0.500, ,,=P6", 1)
	filled := strings.Replace(text, "L8,TRUE,M4", `L8,""<>"",M4`, 1)
	if p := read(t, record.Bytes("a.csv", []byte(filled)))[0]; !near(value(&p.Layers[0], "sparse_latency_s"), 4e-3) {
		t.Errorf("criterion of any text: %g", value(&p.Layers[0], "sparse_latency_s"))
	}
	p := read(t, record.Bytes("a.csv", []byte(text)))[0]
	if v := value(&p.Layers[1], "sparse_latency_s"); !near(v, 1e-3) { // (1-0.5)*2/(2.5-1.5)
		t.Errorf("%g", v)
	}
	if v := value(&p.Layers[0], "sparse_latency_s"); !near(v, 4e-3) { // 2+1, +1
		t.Errorf("%g", v)
	}
	if p.Layers[2].Figure("sparse_latency_s") != nil {
		t.Error("a formula that needs itself")
	}
}

// TestTwice: the table of another run in a file is left out and counted.
func TestTwice(t *testing.T) {
	t.Parallel()
	want := read(t, record.Bytes("a.csv", []byte(table)))[0]
	p := read(t, record.Bytes("a.csv", []byte(table+table)))[0]
	a, _ := want.Totals.Latency.Best()
	if v, _ := p.Totals.Latency.Best(); v != a || len(p.Layers) != len(want.Layers) || len(p.Incomplete) != len(want.Incomplete)+1 {
		t.Errorf("%d layers, %g s, want %d, %g", len(p.Layers), v, len(want.Layers), a)
	}
}

// TestInstances: files of several instances are one run with a figure of each.
func TestInstances(t *testing.T) {
	t.Parallel()
	other := strings.ReplaceAll(table, "true,2.000, 90%", "true,4.000, 90%")
	ps := read(t, record.Bytes("profiling_x_0.csv", []byte(table)), record.Bytes("profiling_x_1.csv", []byte(other)), record.Bytes("profiling_y_0.csv", []byte(table)))
	if len(ps) != 2 || len(ps[0].Layers) != 5 {
		t.Fatalf("%d runs", len(ps))
	}
	m := ps[0].Layers[0].Latency
	if *m.N != 2 || !near(*m.Mean, 3e-3) || !near(*m.Min, 2e-3) || len(ps[0].Layers[0].Samples) != 2 || !near(*ps[0].Totals.Latency.Max, 5.875e-3) {
		t.Errorf("%+v %+v", m, ps[0].Totals.Latency)
	}
}

// trace is as the engine writes it: two operators in three iterations, times of six digits.
func trace(cut int) string {
	var b strings.Builder
	b.WriteString(`{"otherData": {}, "traceEvents": [{"cat":"inference","dur":9000,"name":"model_inference","ph":"X","pid":0,"tid":"inference","ts":0}`)
	for i := range 3 {
		fmt.Fprintf(&b, `,{"cat":"iteration","dur":3000,"name":"Iteration%d","ph":"X","pid":0,"tid":"Iteration","ts":1.23457e+06}`, i)
		for k, op := range []string{"fc", "softmax"} {
			reshape := map[bool]string{true: "1.5ms", false: "0ms"}[i == 0 && k == 0]
			fmt.Fprintf(&b, `,{"args":{"reshape_time":"%s","forward_time":"%dms","input_tensor_name":"x,w","input_type":"fp32,s8","input_shape":"8*256,256*4","output_tensor_name":"y%d","output_type":"fp32","output_shape":"8*4","attributes":"append_op:sum;src1_perm:1,0"},"cat":"%s","dur":1000,"name":"%s","ph":"X","pid":0,"tid":"Operator","ts":1.23457e+06}`, reshape, k+1+i, k, []string{"InnerProduct", "Softmax"}[k], op)
		}
	}
	b.WriteString("]}")
	return b.String()[:b.Len()-cut]
}

func TestTrace(t *testing.T) {
	t.Parallel()
	p := read(t, record.Bytes("profiling_x_0.json", []byte(trace(0))))[0]
	if len(p.Layers) != 2 || len(p.Timeline.Lanes) != 2 || *p.Timeline.Iterations != 3 {
		t.Fatalf("%+v", p.Layers)
	}
	// The first iteration, 1.5+1 and 2 ms, counts separately; then 2, 3 and 3, 4 ms.
	if !near(*p.Phases.FirstRunS, 4.5e-3) || !near(*p.Layers[0].Latency.Mean, 2.5e-3) || !near(*p.Layers[1].Latency.Mean, 3.5e-3) || !near(*p.Totals.Latency.Mean, 6e-3) {
		t.Errorf("%+v %+v", p.Phases, p.Layers[0].Latency)
	}
	if v := value(&p.Layers[0], "reshape_s"); !near(v, 5e-4) {
		t.Errorf("reshape %g", v)
	}
	lane := p.Timeline.Lanes[1]
	for i, want := range []float64{0, 2.5e-3, 4.5e-3, 6.5e-3, 9.5e-3, 12.5e-3} {
		if !near(lane.Starts[i], want) {
			t.Errorf("bar %d at %g, want %g", i, lane.Starts[i], want)
		}
	}
	l := &p.Layers[0]
	if l.Option("append_op") != "sum" || l.Option("src1_perm") != "1,0" || fmt.Sprint(l.Inputs[1].Shape) != "[256 4]" || l.Inputs[1].DType != "int8" || fmt.Sprint(l.Outputs[0].Shape) != "[8 4]" {
		t.Errorf("%+v", l)
	}
	p = read(t, record.Bytes("a.json", []byte(trace(40))))[0]
	if *p.Layers[0].Latency.N != 1 || len(p.Incomplete) == 0 {
		t.Errorf("a trace that is cut counts its whole iterations: %+v", p.Layers[0].Latency)
	}
	// Table and trace of one instance.
	p = read(t, record.Bytes("profiling_x_0.json", []byte(trace(0))), record.Bytes("profiling_x_0.csv", []byte(strings.ReplaceAll(table, ",fc1,", ",fc,"))))[0]
	if len(p.Layers) != 6 || value(&p.Layers[0], "sparse_ratio") != 4 || !near(*p.Layers[0].Latency.Mean, 2.5e-3) || !near(value(&p.Layers[0], "table_s"), 2e-3) {
		t.Errorf("%+v", p.Layers[0])
	}
}

// TestRoundTrip reads what opmeter writes in this layout.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	p := sample.Large(12, 20, 0)
	p.Layers[3].Name = `a "quoted", name`
	var b bytes.Buffer
	if err := report.Write(&b, p, "neural-engine", report.Options{}); err != nil {
		t.Fatal(err)
	}
	got := read(t, record.Bytes("a.csv", b.Bytes()))[0]
	if len(got.Layers) != len(p.Layers) {
		t.Fatalf("%d layers of %d", len(got.Layers), len(p.Layers))
	}
	for i := range p.Layers {
		w, g := &p.Layers[i], &got.Layers[i]
		// Times are written with three decimals of a millisecond, more where they are short.
		if a, b := value(g, "latency_s"), value(w, "latency_s"); math.Abs(a-b) > 0.5e-6 || g.Op != w.Op || g.Name != w.Name || len(g.Outputs) != len(w.Outputs) {
			t.Errorf("layer %d: %g s, want %g: %+v", i, a, b, g)
		}
	}
}

func FuzzNeuralEngine(f *testing.F) {
	f.Add([]byte(table))
	f.Add([]byte(trace(0)))
	f.Add([]byte(header + "A,,n,x,1,fp32,y,1,fp32,,,,1, ,=SUM(A1:ZZZ99999999),=P3+SUM(M2:P3)\n"))
	f.Add([]byte(header + "A,,n,x,1,fp32,y,1,fp32,,,,1, ,=((((1))))," + "=" + strings.Repeat("-(", 300) + "1\n"))
	f.Fuzz(func(t *testing.T, b []byte) { records.Fuzz(t, neuralengine.Format(), "profiling_x_0.csv", b) })
}
