package pytorch_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/pytorch"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/profile"
)

// event is an event by a plain reading.
type event struct {
	Ph, Cat, Name string
	TS, Dur       float64 // microseconds
	PID, TID      any
}

func load(t *testing.T, path string) (list []event) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err == nil {
		b, err = io.ReadAll(z)
	}
	var d struct{ TraceEvents []event }
	if err == nil {
		err = json.Unmarshal(b, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d.TraceEvents
}

func isOp(e *event) bool {
	return e.Cat == "cpu_op" || e.Cat == "Operator" && (!strings.Contains(e.Name, "#") || strings.Contains(e.Name, "::"))
}

func isWork(e *event) bool {
	switch e.Cat {
	case "kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset", "mtia_ccp_events":
		return true
	}
	return false
}

// TestFiles compares all real traces with a plain reading of their JSON: bars of operators and of
// devices by name, the time of the device in the steps, and the own time of operators.
func TestFiles(t *testing.T) {
	t.Parallel()
	for _, path := range records.In(t, material.Path(t, "raw", "traces", "pytorch")) {
		if testing.Short() && strings.Contains(path, "mtia") {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			ps := records.Read(t, pytorch.Format(), records.Files(t, path), record.Options{})
			if len(ps) != 1 {
				t.Fatalf("%d profiles", len(ps))
			}
			p := ps[0]
			list := load(t, path)
			want := map[string]records.Sum{}
			others := map[string]bool{}
			for i := range list {
				e := &list[i]
				if e.Ph != "X" || e.Cat == "Trace" || strings.HasPrefix(e.Name, "ProfilerStep#") && e.Cat != "gpu_user_annotation" {
					continue
				}
				name := e.Name
				if name == "" {
					others[""] = true
				}
				s := want[name]
				want[name] = records.Sum{Count: s.Count + 1, Seconds: s.Seconds + e.Dur/1e6}
			}
			got := records.Bars(p)
			for name, w := range want {
				// Durations are exact to a nanosecond, their sums to rounding.
				if g := got[name]; !others[name] && (g.Count != w.Count || !(math.Abs(g.Seconds-w.Seconds) <= 1e-9+1e-9*w.Seconds)) {
					t.Errorf("%s: %+v, want %+v", name, g, w)
				}
			}
			own(t, p, list)
		})
	}
}

// own compares the sum of all operators' own times in one step with the lengths of the outermost
// ones, thread by thread: the same by another way.
func own(t *testing.T, p *profile.Profile, list []event) {
	t.Helper()
	nanos := func(us float64) int64 { return int64(math.Round(us * 1e3)) }
	type slice struct{ a, b int64 }
	var steps []slice
	seen := map[string]bool{}
	text := func(v any) string { b, _ := json.Marshal(v); return strings.Trim(string(b), `"`) }
	threads := map[[2]string][]slice{}
	for i := range list {
		e := &list[i]
		if e.Ph != "X" || e.Cat == "gpu_user_annotation" {
			continue
		}
		s := slice{nanos(e.TS), nanos(e.TS) + nanos(e.Dur)}
		switch {
		case strings.HasPrefix(e.Name, "ProfilerStep#"):
			if !seen[e.Name] {
				steps = append(steps, s)
			}
			seen[e.Name] = true
		case isOp(e):
			k := [2]string{text(e.PID), text(e.TID)}
			threads[k] = append(threads[k], s)
		}
	}
	held := make([]int, len(steps)) // operators
	for _, ss := range threads {
		for _, s := range ss {
			for i, o := range steps {
				if s.a >= o.a && s.a < o.b {
					held[i]++
				}
			}
		}
	}
	var counted []slice
	for i, o := range steps {
		if held[i] > 0 {
			counted = append(counted, o)
		}
	}
	if len(counted) > 1 {
		return // figures are of some of them
	}
	want, twice := int64(0), int64(0)
	for _, ss := range threads {
		slices.SortFunc(ss, func(a, b slice) int { return cmp.Or(cmp.Compare(a.a, b.a), cmp.Compare(b.b, a.b)) })
		end := int64(math.MinInt64)
		for _, s := range ss {
			if s.b <= end || len(counted) == 1 && (s.a < counted[0].a || s.a >= counted[0].b) {
				continue
			}
			want += s.b - s.a
			if s.a < end {
				twice += end - s.a // overlaps in part
			}
			end = s.b
		}
	}
	got := 0.0
	for i := range p.Layers {
		if v, ok := p.Layers[i].Latency.Best(); ok && p.Layers[i].Op != "kernel" {
			got += v
		}
	}
	// Slices that overlap in part are each counted whole; what lies in them is nested in one.
	if len(threads) > 0 && !(math.Abs(got-float64(want)/1e9) <= float64(twice)/1e9+1e-9*float64(len(list))) {
		t.Errorf("operators took %v s, want %v, of which %v twice", got, float64(want)/1e9, float64(twice)/1e9)
	}
}

// TestDevice compares the time of the device with a plain reading: all work of records whose
// operators are in one step.
func TestDevice(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"hta_alexnet.json.gz", "hta_triton_example.json.gz", "hta_amd_mi250.json.gz"} {
		path := material.Path(t, "raw", "traces", "pytorch", name)
		p := records.Read(t, pytorch.Format(), records.Files(t, path), record.Options{})[0]
		want := 0.0
		for _, e := range load(t, path) {
			if e.Ph == "X" && isWork(&e) {
				want += e.Dur / 1e6
			}
		}
		got := 0.0
		for _, v := range records.Layers(p, "device_s") {
			got += v
		}
		if !(math.Abs(got-want) < 1e-9) || got == 0 {
			t.Errorf("%s: %v s on the device, want %v", name, got, want)
		}
	}
}

// small is a trace of two steps after a first one: an operator in another one, its launch and
// kernel.
const small = `{"schemaVersion":1,"deviceProperties":[{"id":0,"name":"GPU X","totalGlobalMem":8000000000}],
"distributedInfo":{"backend":"nccl","rank":RANK,"world_size":2},"username":"somebody","host_name":"secret","baseTimeNanoseconds":1000000000,
"traceEvents":[
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#4","pid":1,"tid":1,"ts":0,"dur":100.000},
{"ph":"X","cat":"cpu_op","name":"aten::linear","pid":1,"tid":1,"ts":1,"dur":50,"args":{"External id":1,"Input Dims":[[2,3],[3,4],[]],"Input type":["float","c10::Half",""],"Concrete Inputs":["","","5"],"Call stack":"/home/somebody/x.py"}},
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":5,"dur":30,"args":{"External id":2}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":10,"dur":5,"args":{"External id":7,"correlation":7}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":20,"dur":8.5,"args":{"External id":7,"correlation":7,"stream":7,"bytes":64,"est. achieved occupancy %":50}},
{"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":1,"ts":6,"args":{"Bytes":4096,"Total Allocated":5000,"Total Reserved":8000,"Device Type":1,"Device Id":0}},
{"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":1,"ts":7,"args":{"Bytes":-4096,"Total Allocated":904,"Device Type":1,"Device Id":0}},
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#5","pid":1,"tid":1,"ts":200,"dur":80},
{"ph":"X","cat":"user_annotation","name":"Optimizer.step#SGD.step","pid":1,"tid":1,"ts":201,"dur":60},
{"ph":"X","cat":"cpu_op","name":"aten::linear","pid":1,"tid":1,"ts":202,"dur":40,"args":{"External id":3,"Input Dims":[[2,3],[3,4],[]],"Input type":["float","c10::Half",""],"Concrete Inputs":["","","6"]}},
{"ph":"X","cat":"kernel","name":"lonely","pid":0,"tid":7,"ts":230,"dur":4,"args":{"correlation":99,"stream":7}},
{"ph":"X","cat":"cpu_op","name":"aten::outside","pid":1,"tid":1,"ts":400,"dur":1,"args":{"External id":4}},
{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"python"}},
{"ph":"M","name":"process_labels","pid":0,"tid":0,"args":{"labels":"GPU 0"}},
{"ph":"X","cat":"Trace","name":"PyTorch Profiler (0)","pid":"Spans","tid":"PyTorch Profiler","ts":0,"dur":500}
]}`

func read(t *testing.T, files ...string) []*profile.Profile {
	t.Helper()
	var in []*record.File
	for i, f := range files {
		in = append(in, record.Bytes("run/rank"+string(rune('0'+i))+".pt.trace.json", []byte(f)))
	}
	return records.Read(t, pytorch.Format(), in, record.Options{})
}

func TestSmall(t *testing.T) {
	t.Parallel()
	p := read(t, strings.Replace(small, "RANK", "0", 1))[0]
	type layer struct {
		op, scope string
		parent    int64
		state     profile.State
		micros    float64
		device    float64
	}
	var got []layer
	for i := range p.Layers {
		l := &p.Layers[i]
		x := layer{op: l.Op, scope: l.Scope, parent: -1, state: l.State}
		if l.Parent != nil {
			x.parent = *l.Parent
		}
		if v, ok := l.Latency.Best(); ok {
			x.micros = math.Round(v*1e9) / 1e3
		}
		if v, ok := l.Value("device_s"); ok {
			x.device = math.Round(v*1e9) / 1e3
		}
		got = append(got, x)
	}
	// The first of two steps counts separately: figures are of the second one.
	want := []layer{
		{"aten::linear", "", -1, profile.NotReached, 0, 0},
		{"aten::mm", "", 0, profile.NotReached, 0, 0},
		{"aten::linear", "Optimizer.step#SGD.step", -1, profile.Ran, 40, 0},
		{"kernel", "", -1, profile.Ran, 0, 4},
		{"aten::outside", "", -1, profile.NotReached, 0, 0},
	}
	if d := gocmp.Diff(want, got, gocmp.AllowUnexported(layer{})); d != "" {
		t.Error(d)
	}
	l := &p.Layers[0]
	wantInputs := []profile.Tensor{{DType: "float32", Shape: []int64{2, 3}}, {DType: "float16", Shape: []int64{3, 4}}, {Absent: true}}
	if d := gocmp.Diff(wantInputs, l.Inputs); d != "" || len(l.Options) != 0 {
		t.Errorf("%s %v: arguments differ between calls", d, l.Options)
	}
	if p.Layers[1].Kernel != "gemm" {
		t.Errorf("kernel %q", p.Layers[1].Kernel)
	}
	if p.Phases == nil || *p.Phases.FirstRunS != 100e-6 || *p.Reconcile.WallS != 80e-6 {
		t.Errorf("%+v %+v", p.Phases, p.Reconcile)
	}
	if p.Target.Accelerator != "GPU X" || p.Target.Engine != "PyTorch" {
		t.Errorf("%+v", p.Target)
	}
	if m := p.Totals.Figure("device_peak_bytes"); m == nil || *m.Median != 5000 {
		t.Errorf("peak of memory: %+v", m)
	}
	b, err := json.Marshal(p)
	if err != nil || bytes.Contains(b, []byte("somebody")) || bytes.Contains(b, []byte("secret")) {
		t.Errorf("%v: names of people or computers are in the profile", err)
	}
	if len(p.Timeline.Links) != 1 || len(p.Timeline.Counters) != 2 {
		t.Errorf("%d links, %d counters", len(p.Timeline.Links), len(p.Timeline.Counters))
	}
	k := p.Timeline.Links[0]
	if l := p.Timeline.Lanes[k.ToLane]; l.Starts[k.ToBar] != 20e-6 || l.Durations[k.ToBar] != 8.5e-6 || l.Bytes[k.ToBar] != 64 || l.Group != "GPU 0" {
		t.Errorf("the arrow ends at %+v", l)
	}
}

// TestNoSteps takes the whole record where it has no steps, and kernels where it has no
// operators.
func TestNoSteps(t *testing.T) {
	t.Parallel()
	s := strings.ReplaceAll(strings.Replace(small, "RANK", "0", 1), "ProfilerStep#", "Step ")
	p := read(t, s)[0]
	// 50 - 30, 30, 40 and 1; the kernel's time is the device's.
	if d := gocmp.Diff(map[string]float64{"aten::linear": 60, "aten::mm": 30, "aten::outside": 1}, micros(p, "latency_s")); d != "" {
		t.Error(d)
	}
	if d := gocmp.Diff(map[string]float64{"aten::mm": 8.5, "lonely": 4}, micros(p, "device_s")); d != "" {
		t.Error(d)
	}
	s = strings.ReplaceAll(s, "cpu_op", "overhead")
	p = read(t, s)[0]
	if d := gocmp.Diff(map[string]float64{"gemm": 8.5, "lonely": 4}, micros(p, "latency_s")); d != "" {
		t.Error(d)
	}
}

func micros(p *profile.Profile, key string) map[string]float64 {
	out := map[string]float64{}
	for name, v := range records.Layers(p, key) {
		out[name] = math.Round(v*1e9) / 1e3
	}
	return out
}

// TestRanks makes one profile of the ranks of a run, and several of similar files.
func TestRanks(t *testing.T) {
	t.Parallel()
	a, b := strings.Replace(small, "RANK", "0", 1), strings.Replace(small, "RANK", "1", 1)
	ps := read(t, a, b)
	if len(ps) != 1 {
		t.Fatalf("%d profiles of two ranks", len(ps))
	}
	groups := map[string]bool{}
	for _, l := range ps[0].Timeline.Lanes {
		rank, _, _ := strings.Cut(l.Group, ":")
		groups[rank] = true
	}
	if d := gocmp.Diff(map[string]bool{"rank 0": true, "rank 1": true}, groups); d != "" {
		t.Error(d)
	}
	// Two steps of two ranks, of which the first one counts separately.
	if n := *ps[0].Totals.Latency.N; n != 1 {
		t.Errorf("%d steps", n)
	}
	if ps := read(t, a, a); len(ps) != 2 {
		t.Errorf("%d profiles of the same rank twice", len(ps))
	}
}

// TestSlowestRank: a step takes as long as its slowest rank.
func TestSlowestRank(t *testing.T) {
	t.Parallel()
	// steps holds milliseconds by the number of the step.
	rank := func(rank int, steps [][2]int) string {
		events, at := []string{}, 1000
		for i, s := range steps {
			us := s[1] * 1000
			events = append(events, fmt.Sprintf(`{"ph":"X","cat":"user_annotation","name":"ProfilerStep#%d","pid":1,"tid":1,"ts":%d,"dur":%d}`, s[0], at, us),
				fmt.Sprintf(`{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":%d,"dur":%d,"args":{"External id":%d}}`, at+10, us-1000, i+1))
			at += us + 10
		}
		return fmt.Sprintf(`{"schemaVersion":1,"distributedInfo":{"backend":"nccl","rank":%d,"world_size":4},"traceEvents":[%s]}`, rank, strings.Join(events, ","))
	}
	one := func(ms int) [][2]int { return [][2]int{{3, ms}} }
	ps := read(t, rank(0, one(30)), rank(1, one(10)), rank(2, one(12)), rank(3, one(12)))
	if records.Found(ps[0], "pytorch.missing_ranks") || records.Found(ps[0], "pytorch.unequal_steps") {
		t.Errorf("all ranks and steps are there: %+v", ps[0].Findings)
	}
	if len(ps) != 1 {
		t.Fatalf("%d profiles", len(ps))
	}
	p := ps[0]
	near := func(key string, want float64) {
		t.Helper()
		if v, ok := p.Totals.Value(key); !ok || math.Abs(v-want) > 1e-9 {
			t.Errorf("%s is %g, want %g", key, v, want)
		}
	}
	near("latency_s", 30e-3)
	near("rank_0_s", 30e-3)
	near("rank_1_s", 10e-3)
	near("ranks_mean_s", 16e-3)
	near("ranks_slowest_s", 30e-3)
	near("ranks_imbalance", 30.0/16)
	if v, _ := p.Layers[0].Latency.Best(); math.Abs(v-29e-3) > 1e-9 || p.Phases != nil || p.Model.Name != "rank, 4 ranks" || !records.Found(p, "pytorch.ranks") {
		t.Errorf("layer takes %g s; %+v, %q", v, p.Phases, p.Model.Name)
	}
	// Steps of a rank that others did not record count for nobody; the first step counts
	// separately.
	p = read(t, rank(0, [][2]int{{1, 500}, {2, 90}, {3, 30}, {4, 14}}), rank(1, [][2]int{{2, 50}, {3, 10}, {4, 40}}))[0]
	for id, want := range map[string]string{"pytorch.missing_ranks": "2 of 4 (2, 3)", "pytorch.unequal_steps": "recorded: 1."} {
		if !slices.ContainsFunc(p.Findings, func(f profile.Finding) bool { return f.ID == id && strings.Contains(f.Text, want) }) {
			t.Errorf("no %s with %q: %+v", id, want, p.Findings)
		}
	}
	near("latency_s", 35e-3)
	near("rank_0_s", 22e-3)
	near("rank_1_s", 25e-3)
	if m := p.Totals.Latency; *m.N != 2 || *m.Min != 30e-3 || *m.Max != 40e-3 || *p.Phases.FirstRunS != 90e-3 {
		t.Errorf("%+v", m)
	}
	// Each rank wrote a file for each of two cycles: the files are sorted by rank.
	var cycles []*record.File
	for _, f := range []struct{ rank, step, ms int }{{0, 3, 30}, {0, 8, 10}, {1, 3, 20}, {1, 8, 50}} {
		name := fmt.Sprintf("run/worker%d_step_%d.pt.trace.json", f.rank, f.step)
		cycles = append(cycles, record.Bytes(name, []byte(rank(f.rank, [][2]int{{f.step, f.ms}}))))
	}
	ps = records.Read(t, pytorch.Format(), cycles, record.Options{})
	if len(ps) != 2 {
		t.Fatalf("%d profiles of two cycles", len(ps))
	}
	for i, want := range []float64{30e-3, 50e-3} {
		p = ps[i]
		near("latency_s", want)
	}
	// Ranks without a step in common are not joined.
	p = read(t, rank(0, [][2]int{{1, 20}}), rank(1, [][2]int{{2, 50}}))[0]
	near("latency_s", 50e-3)
	if !records.Found(p, "pytorch.steps") {
		t.Errorf("%+v", p.Findings)
	}
}

// TestCut keeps what came before the end.
func TestCut(t *testing.T) {
	t.Parallel()
	s := strings.Replace(small, "RANK", "0", 1)
	p := read(t, s[:strings.Index(s, `{"ph":"X","cat":"kernel","name":"lonely"`)+20])[0]
	if len(p.Layers) != 3 || len(p.Incomplete) != 1 || !strings.Contains(p.Incomplete[0].Text, "cut") {
		t.Errorf("%d layers, %+v", len(p.Layers), p.Incomplete)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(strings.Replace(small, "RANK", "0", 1)))
	f.Add([]byte(`{"schemaVersion":1,"deviceProperties":[],"traceEvents":[{"ph":"X","cat":"Operator","name":"a#b","ts":1,"dur":2},{"ph":"X","cat":"Kernel","name":"k","ts":9e300,"dur":1},{"ph":"X","cat":"Runtime","ts":1,"dur":1,"args":{"correlation":-1}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) { records.Fuzz(t, pytorch.Format(), "trace.json", data) })
}
