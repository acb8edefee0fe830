package all_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/all"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/profile"
)

// texts are small records of readers of text.
var texts = map[string]string{
	"tflite-benchmark": "STARTING!\nGraph: [net.tflite]\n#threads used for CPU inference: [4]\ncount=5 first=9 curr=9 min=9 max=9 avg=9 std=0\ncount=50 first=2500 curr=2500 min=2400 max=2600 avg=2500 std=1\n" +
		"Inference timings in us: Init: 1, First inference: 9, Warmup (avg): 9, Inference (avg): 2500\nOperator-wise Profiling Info for Regular Benchmark Runs:\n============================== Run Order ==============================\n" +
		"\t[node type]\t[first]\t[avg ms]\t[%]\t[cdf%]\t[mem KB]\t[times called]\t[Name]\n\tADD\t1.0\t1.5\t60%\t60%\t0\t1\t[a]:0\n\tMUL\t1.0\t1.0\t40%\t100%\t0\t1\t[b]:1\n\nTimings (microseconds): count=50 curr=2500\n",
	"tflm/lines":   "Start of inference\nCONV_2D took 2500 ticks (2 ms).\nDEPTHWISE_CONV_2D took 700 ticks (0 ms).\nFULLY_CONNECTED took 20 ticks (0 ms).\nSOFTMAX took 1500 ticks (1 ms).\n",
	"tflm/events":  "\"Event\",\"Tag\",\"Ticks\"\n0,CONV_2D,1000\n1,ADD,70\n2,SOFTMAX,5\n\n\"Unique Tag\",\"Total ticks across all events with that tag.\"\nCONV_2D, 1000\nADD, 70\nSOFTMAX, 5\n\"total number of ticks\", 1075\n",
	"tflm/tags":    "\"Unique Tag\",\"Total ticks across all events with that tag.\"\nCONV_2D, 1000\nADD, 70\nSOFTMAX, 5\n\"total number of ticks\", 1075\n",
	"tflm/table":   "index,operator,time_us\n0,CONV_2D,1500\n1,ADD,20\n2,SOFTMAX,20.5\nTotal,,1540.5\n",
	"mltk":         "Name: my_model\nVersion: 1\nAccelerator: MVP\nCPU clock: 78.0MHz\n--------------------------\nOp0-CONV_2D\n1.15M OPs\n497.66k MACs\n\n--------------------------\nInference\n10.5 ms\n33.20k CPU cycles\n1.20M Accelerator cycles\n100.00M OP/s\nOp0-CONV_2D\n9.0 ms\n12.34k CPU cycles\n1.20M Accelerator cycles\n\ndone\n",
	"openvino":     "Performance counters for 0-th infer request:\nconv1   Status.EXECUTED layerType: Convolution          execType: jit_avx2_f32     realTime (ms): 5.1 cpuTime (ms): 4.1\nrelu1   Status.OPTIMIZED_OUT layerType: ReLU            execType: x      realTime (ms): 0 cpuTime (ms): 0\nTotal time:     5.1 milliseconds\nCount:            40 iterations\nThroughput:   570.38 FPS\n",
	"openvino/csv": "layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms); %;\na;EXECUTED;Conv;jit;1;2;3;\nb;EXECUTED;Conv;jit;1;2;3;\nc;EXECUTED;Add;jit;1;2;3;\nTotal;;;;3;6;100;\n",
	"stedgeai": "Results for 10 inference(s) @168/168MHz (macc:874970)\n duration    : 62.976 ms (average)\n CPU cycles  : 10579924 (average)\n\nInspector report (layer by layer)\n\n" +
		"Clayer  id  desc                          oshape            ms        \n--------------------------------------------------------------------------------\n0       0   10011/(Merged Conv2d / Pool)  (10, 44, 1, 128)  14.470    \n1       4   10005/(Dense)                 (10, 1, 1, 128)   48.506    \n                                                            62.976 (total)\n",
	"tensorrt":          "=== Performance summary ===\nThroughput: 690.1 qps\nLatency: min = 1.40 ms, max = 90.10 ms, mean = 1.60 ms, median = 1.58 ms, percentile(99%) = 81.90 ms\n=== Profile (2000 iterations ) ===\n   Time(ms)     Avg.(ms)   Median(ms)   Time(%)   Layer\n      20.00       0.0100       0.0095       0.6   fc\n    1000.00       0.5000       0.4990      31.2   conv1 + bn1\n    1020.00       0.5100       0.5085     100.0   Total\n",
	"vela":              "Network summary for net\nAccelerator clock       500 MHz\nTotal SRAM used      0.95 KiB\nNPU operators = 44 (97.8%)\nBatch Inference time     0.23 ms, 4382.18 inferences/s (batch size 1)\n",
	"vela/csv":          "TFLite_operator,NNG Operator,SRAM Usage,Peak%,Op Cycles,Network%,NPU,SRAM AC,DRAM AC,OnFlash AC,OffFlash AC,MAC Count,Network%,Util%,Name\nCONV_2D,Conv2D,10,50,90,90,80,10,0,0,0,5,100,1,a\nADD,Add,10,50,10,10,9,10,0,0,0,0,0,1,b\nMUL,Mul,10,50,10,10,9,10,0,0,0,0,0,1,c\n",
	"deepsparse":        "Original Model Path: zoo:cv/classification/resnet/base\nBatch Size: 4\nScenario: sync\nThroughput (items/sec): 55.1905\nLatency Mean (ms/batch): 18\nLatency Median (ms/batch): 18.5\nIterations: 552\n",
	"go-bench":          "pkg: a\nBenchmarkX-4   \t 10\t 5 ns/op\nBenchmarkY-4   \t 10\t 7 ns/op\nBenchmarkZ-4   \t 10\t 9 ns/op\n",
	"ncnn":              "loop_count = 4\nnum_threads = 1\n  a  min =    1.50  max =    2.50  avg =    2.00\n  b  min =    1.50  max =    2.50  avg =    2.25\n",
	"mnn":               "Node Name \tOp Type \tAvg(ms) \t% \tFlops Rate \t\nconv1 \tConvolution \t1.500000 \t75.000000 \t90.000000 \t\npool \tPooling \t0.500000 \t25.000000 \t10.000000 \t\ntotal time : 2.000000 ms, total mflops : 3.500000 \n",
	"neuron-runtime":    "A (LEVEL 2) - Summary\nTotal Execution Time: 190.0 ms over 100 times inference.\nTime,Ratio,ExeTimes,Time/Inf.,Description\n150.0,79,100,1.5,Execute on APU\n40.0,21,100,0.4,Copy\n",
	"llama-bench":       "| model | size | params | backend | threads | test | t/s |\n| --- | ---: | ---: | --- | ---: | ---: | ---: |\n| llama 1B Q4_0 | 606.53 MiB | 1.10 B | CPU | 4 | pp512 | 86.41 ± 1.07 |\n| llama 1B Q4_0 | 606.53 MiB | 1.10 B | CPU | 4 | tg128 | 12.13 ± 0.06 |\n",
	"onnxruntime-genai": "Batch size: 1, prompt tokens: 128, tokens to generate: 128\nPrompt processing (time to first token):\n\tavg (us):       400000\n\tavg (tokens/s): 320\n\tp50 (us):       398000\n\tstddev (us):    7500.5\n\tn:              5 * 128 token(s)\nToken generation:\n\tavg (us):       90000\n\tavg (tokens/s): 11.1111\n",
	"hyperfine":         "command,mean,stddev,median,user,system,min,max\na,1,2,3,4,5,1,7\nb,1,2,3,4,5,1,7\nc,1,2,3,4,5,1,7\n",
}

// every puts a text before and after each line; %d is the number of the line.
func every(text, before, after string) string {
	var b strings.Builder
	for i, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		by := before
		if strings.Contains(by, "%d") {
			by = fmt.Sprintf(by, i+8)
		}
		b.WriteString(by + l + after + "\n")
	}
	return b.String()
}

// content is what a record says, without the time of its import.
type content struct {
	Model      profile.Model
	Settings   profile.Settings
	Totals     profile.Totals
	Layers     []profile.Layer
	Findings   []profile.Finding
	Incomplete []profile.Missing
}

// readAs reads a text as any record: what precedes each line is removed first.
func readAs(t *testing.T, text string) (format string, out []content) {
	t.Helper()
	f := record.WithoutPrefix(t.Context(), all.Formats(), record.Bytes("net.txt", []byte(text)), record.Options{})
	x := record.Surest(all.Formats(), f)
	if x == nil {
		return "none", nil
	}
	for _, p := range records.Read(t, x, []*record.File{f}, record.Options{}) {
		out = append(out, content{p.Model, p.Settings, p.Totals, p.Layers, p.Findings, p.Incomplete})
	}
	return x.Name, out
}

// TestPrefixes: a record with the same text before each of its lines has the profile of the record
// itself.
func TestPrefixes(t *testing.T) {
	t.Parallel()
	for name, text := range texts {
		format, want := readAs(t, text)
		if known, _, _ := strings.Cut(name, "/"); format != known || len(want) == 0 {
			t.Errorf("%s is read as %s, %d profiles", name, format, len(want))
			continue
		}
		for _, by := range [][2]string{
			{"user@host: "},
			{"devA: "},
			{"%d: "},
			{"%d:"},
			{"  %d\t"},
			{"* "},
			{"# "},
			{"// "},
			{"| ", " |"},
			{"web-%d  | "},
			{"[tag] "},
			{"run.log:%d:"},
			{"2026-11-28T23:11:44.1234567Z "},
			{"28.11.2026 23:11:%d "},
			{"\x1b[36mweb-1  |\x1b[0m "},
			{"user@host: [tag] "},
		} {
			got, ps := readAs(t, every(text, by[0], by[1]))
			if d := cmp.Diff(want, ps); got != format || d != "" {
				t.Errorf("%s after %q: read as %s: %s", name, by[0], got, d)
			}
		}
	}
}

// TestNoPrefix: a text that is read as it stands keeps what its lines have in common.
func TestNoPrefix(t *testing.T) {
	t.Parallel()
	for name, text := range texts {
		f := record.Bytes("net.txt", []byte(text))
		if record.WithoutPrefix(t.Context(), all.Formats(), f, record.Options{}) != f {
			t.Errorf("%s lost the beginning of its lines", name)
		}
	}
	for name, text := range map[string]string{
		"stacks":    strings.Repeat("main: run;conv: gemm 5\nmain: run;add 7\n", 5),
		"paths":     strings.Repeat("core::ops::call;main;core::ops::call 5\ncore::ops::call;main;add 7\n", 5),
		"one name":  strings.Repeat("BenchmarkX-4   \t 10\t 5 ns/op\n", 8),
		"one kind":  strings.Repeat("CONV_2D took 5 ticks (0 ms).\n", 8),
		"no record": strings.Repeat("error: nothing\n", 8),
	} {
		f := record.Bytes("x.txt", []byte(text))
		if record.WithoutPrefix(t.Context(), all.Formats(), f, record.Options{}) != f {
			t.Errorf("%s lost the beginning of its lines", name)
		}
	}
}

// TestLongPrefixed: what lies beyond the beginning of a file has no prefix either, and each byte
// of the file is told of once.
func TestLongPrefixed(t *testing.T) {
	t.Parallel()
	const rows = 20_000
	var b strings.Builder
	b.WriteString("devA: \"Event\",\"Tag\",\"Ticks\"\n")
	for i := range rows {
		fmt.Fprintf(&b, "devA: %d,OP_%d,2\n", i, i)
	}
	f, told := record.Bytes("x.log", []byte(b.String())), int64(0)
	f.Progress = func(n int64) { told += n }
	f = record.WithoutPrefix(t.Context(), all.Formats(), f, record.Options{})
	p := records.Read(t, record.Surest(all.Formats(), f), []*record.File{f}, record.Options{})[0]
	if v, _ := p.Totals.Value("ticks"); len(p.Layers) != rows || v != 2*rows || p.Layers[rows-1].Name != fmt.Sprintf("OP_%d", rows-1) {
		t.Errorf("%d layers, %g ticks", len(p.Layers), v)
	}
	if told != int64(b.Len()) {
		t.Errorf("told of %d bytes, want %d", told, b.Len())
	}
}

func FuzzPrefix(f *testing.F) {
	f.Add("devA: ", texts["tflm/events"])
	f.Add("12 \t: | ", texts["mltk"])
	f.Fuzz(func(t *testing.T, by, text string) {
		file := record.WithoutPrefix(t.Context(), all.Formats(), record.Bytes("x.log", []byte(every(text, by, ""))), record.Options{})
		if len(file.Head) > record.HeadBytes {
			t.Errorf("a beginning of %d bytes", len(file.Head))
		}
	})
}
