package ort_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/ort"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
)

// imported reads one record.
func imported(t testing.TB, f *record.File) *profile.Profile {
	t.Helper()
	if s := ort.Format().Match(f); s == record.No {
		t.Fatalf("%s: not recognised", f.Path)
	}
	runs, err := ort.Format().Read(t.Context(), &record.Input{Files: []*record.File{f}})
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 1 {
		t.Fatalf("%d runs", len(runs))
	}
	p, err := source.Collect(t.Context(), runs[0], source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return p
}

type event struct {
	Cat, Name string
	Ts, Dur   int64
	Tid       int64
	Args      struct {
		Op    string `json:"op_name"`
		Index string `json:"node_index"`
		Out   string `json:"output_size"`
	}
}

// TestRecords compares real records with a reading of their own: runs, times of nodes by
// name over all runs but the first, and bytes written.
func TestRecords(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(material.Path(t, "raw", "traces", "ort"), "*.json*"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		name := filepath.Base(path)
		if name == "failed_run_empty_file.json" || name == "truncated_mid_event.json" || strings.HasPrefix(name, "old_format") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compare(t, path)
		})
	}
}

func compare(t *testing.T, path string) {
	all, faults, err := record.Find(path)
	if err != nil || len(faults) > 0 || len(all) != 1 {
		t.Fatal(all, faults, err)
	}
	p := imported(t, all[0])
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	var events []event
	if err := json.NewDecoder(r).Decode(&events); err != nil {
		t.Fatal(err)
	}
	var runs, inner []event
	for _, e := range events {
		if e.Name == "model_run" {
			runs = append(runs, e)
		}
	}
	within := func(a, b event) bool { return a.Ts >= b.Ts && a.Ts+a.Dur <= b.Ts+b.Dur }
	for _, e := range events {
		if strings.HasSuffix(e.Name, "Executor::Execute") {
			inner = append(inner, e)
		}
	}
	outermost := func(e event) bool {
		for _, o := range inner {
			if o != e && within(e, o) && o.Dur > e.Dur {
				return false
			}
		}
		return true
	}
	bodies := inner[:0:0]
	for _, e := range inner {
		if !outermost(e) {
			bodies = append(bodies, e)
		}
	}
	var wall, top int64
	kernels := map[string]int64{} // by name, for nodes that run nothing else
	calls := map[string]int{}
	for _, m := range runs[1:] {
		wall += m.Dur
	}
	for _, e := range events {
		if e.Cat != "Node" || !within(event{Ts: e.Ts, Dur: e.Dur}, event{Ts: runs[1].Ts, Dur: 1 << 40}) {
			continue
		}
		nested := false
		for _, b := range bodies {
			nested = nested || within(e, b)
		}
		if !nested {
			top += e.Dur
		}
		kernels[e.Name] += e.Dur
		calls[e.Name]++
	}
	n := int64(len(runs) - 1)
	if *p.Totals.Latency.N != n {
		t.Errorf("%d runs, want %d", *p.Totals.Latency.N, n)
	}
	same(t, "time of runs", *p.Totals.Latency.Mean*float64(n), wall)
	same(t, "first run", *p.Phases.FirstRunS, runs[0].Dur)
	sum := 0.0
	byName, byCalls := map[string]float64{}, map[string]float64{}
	owns := map[string]bool{}
	for i := range p.Layers {
		l := &p.Layers[i]
		if l.Latency == nil {
			t.Fatalf("layer %d has no time", i)
		}
		v := *l.Latency.Mean * float64(n)
		sum += v
		byName[l.Name] += v
		c := 1.0
		if l.Calls != nil {
			c = *l.Calls
		}
		byCalls[l.Name] += c * float64(n)
		if l.Total != nil {
			owns[l.Name] = true
		}
	}
	same(t, "sum of the layers", sum, top)
	for name, us := range kernels {
		short := strings.TrimSuffix(name, "_kernel_time")
		if owns[short] {
			continue
		}
		same(t, short, byName[short], us)
		if got := byCalls[short]; math.Round(got) != float64(calls[name]) {
			t.Errorf("%s: %v calls, want %d", short, got, calls[name])
		}
	}
}

// same compares seconds with whole microseconds: both are sums of these, but for the
// rounding of a mean.
func same(t *testing.T, what string, seconds float64, us int64) {
	t.Helper()
	if d := math.Abs(seconds*1e6 - float64(us)); !(d < 1e-6*math.Max(1, float64(us))) {
		t.Errorf("%s: %v µs, want %d", what, seconds*1e6, us)
	}
}

// events writes events as the runtime does.
type events struct {
	strings.Builder
	n int
}

func (r *events) add(cat string, tid int, ts, dur int64, name, args string) {
	r.WriteString(map[bool]string{true: "[\n", false: ",\n"}[r.n == 0])
	r.n++
	fmt.Fprintf(r, `{"cat" : "%s","pid" :1,"tid" :%d,"dur" :%d,"ts" :%d,"ph" : "X","name" :"%s","args" : {%s}}`, cat, tid, dur, ts, name, args)
}

func (r *events) node(tid int, ts, dur int64, name, op string, index int) {
	r.add("Node", tid, ts, dur, name+"_kernel_time", `"op_name" : "`+op+`","node_index" : "`+strconv.Itoa(index)+`","provider" : "CPUExecutionProvider"`)
}

func (r *events) done() *record.File {
	return record.Bytes("record.json", []byte(r.String()+"\n]\n"))
}

// times lists layers with their times in microseconds and their parents.
func times(p *profile.Profile) string {
	var b strings.Builder
	for i := range p.Layers {
		l := &p.Layers[i]
		parent := ""
		if l.Parent != nil {
			parent = "<" + strconv.FormatInt(*l.Parent, 10)
		}
		calls := ""
		if l.Calls != nil {
			calls = fmt.Sprintf("x%g", *l.Calls)
		}
		total := ""
		if l.Total != nil {
			total = fmt.Sprintf("(%.0f)", *l.Total.Median*1e6)
		}
		fmt.Fprintf(&b, "%s%s %.0f%s%s ", l.Name, parent, *l.Latency.Median*1e6, total, calls)
	}
	return strings.TrimSpace(b.String())
}

// loop adds a run with a loop of two passes through a body of two nodes, whose name
// outside is the same as within.
func loop(r *events, at int64, byStart bool) {
	type e struct {
		ts, dur int64
		node    bool
		name    string
		op      string
		index   int
	}
	list := []e{ // in the order in which they end
		{at + 1, 4, true, "a", "Add", 0},
		{at + 11, 2, true, "a", "Mul", 0},
		{at + 13, 3, true, "b", "Add", 1},
		{at + 11, 6, false, "", "", 0},
		{at + 21, 2, true, "a", "Mul", 0},
		{at + 23, 3, true, "b", "Add", 1},
		{at + 21, 6, false, "", "", 0},
		{at + 10, 20, true, "loop", "Loop", 1},
		{at + 30, 0, true, "c", "Shape", 2},
		{at + 1, 30, false, "", "", 0},
		{at, 40, false, "model_run", "", 0},
	}
	if byStart {
		for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
			list[i], list[j] = list[j], list[i]
		}
		// Written when they began: the outer one first, then by time.
		for i := range list {
			for j := i; j > 0 && list[j].ts < list[j-1].ts; j-- {
				list[j], list[j-1] = list[j-1], list[j]
			}
		}
	}
	for _, x := range list {
		switch {
		case x.node:
			r.node(7, x.ts, x.dur, x.name, x.op, x.index)
		case x.name == "":
			r.add("Session", 7, x.ts, x.dur, "SequentialExecutor::Execute", "")
		default:
			r.add("Session", 7, x.ts, x.dur, x.name, "")
		}
	}
}

// TestBodies tells the nodes of a body from their owner, whatever the order of events.
func TestBodies(t *testing.T) {
	t.Parallel()
	const want = "a 4 loop 10(20) a<1 4x2 b<1 6x2 c 0"
	for _, byStart := range []bool{false, true} {
		var r events
		r.add("Session", 7, 0, 5, "model_loading_uri", "")
		r.add("Session", 7, 5, 7, "session_initialization", "")
		for i := range 3 {
			loop(&r, 100+int64(i)*100, byStart)
		}
		p := imported(t, r.done())
		if got := times(p); got != want {
			t.Errorf("by start %v: %s, want %s", byStart, got, want)
		}
		if n, v := *p.Totals.Latency.N, *p.Totals.Latency.Median; n != 2 || v != 40e-6 {
			t.Errorf("%d runs of %v s", n, v)
		}
		if *p.Phases.LoadS != 5e-6 || *p.Phases.PlanS != 7e-6 || *p.Phases.FirstRunS != 40e-6 {
			t.Errorf("phases %+v", p.Phases)
		}
	}
}

// TestThreads keeps runs apart that overlap on several threads.
func TestThreads(t *testing.T) {
	t.Parallel()
	var r events
	for i := range int64(4) {
		at := i * 100
		r.node(1, at+1, 5, "x", "Add", 0)
		r.node(2, at+3, 7, "x", "Add", 0)
		r.node(1, at+7, 2, "y", "Mul", 1)
		r.node(2, at+11, 9, "y", "Mul", 1)
		r.add("Session", 1, at, 10, "model_run", "")
		r.add("Session", 2, at+2, 20, "model_run", "")
	}
	p := imported(t, r.done())
	if n := *p.Totals.Latency.N; n != 7 {
		t.Errorf("%d runs, want 7: all but the first", n)
	}
	// The first run, of thread 1, counts separately: x is 3 times 5 and 4 times 7.
	// rounding of a mean
	if got, want := *p.Layers[0].Latency.Mean*7e6, 3*5+4*7.0; !(math.Abs(got-want) < 1e-6) {
		t.Errorf("x took %v µs, want %v", got, want)
	}
}

// TestUnreadable leaves inferences out in which the duration or start of a call cannot be read.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`"dur":NaN,"ts":105`, `"dur":1e400,"ts":105`, `"dur":-1,"ts":105`, `"dur":1e300,"ts":105`,
		`"dur":"abc","ts":105`, `"ts":105`, `"dur":10,"ts":NaN`,
	} {
		for _, lost := range []int{3, 1} { // of 3 and of 1 inferences, one has the text
			list := []string{}
			for i := range lost {
				at := 100 + 100*i
				dur := fmt.Sprintf(`"dur":10,"ts":%d`, at+5)
				if i == 0 {
					dur = text
				}
				list = append(list,
					fmt.Sprintf(`{"cat":"Node","pid":1,"tid":1,%s,"ph":"X","name":"a_kernel_time","args":{"op_name":"Conv","node_index":"0"}}`, dur),
					fmt.Sprintf(`{"cat":"Node","pid":1,"tid":1,"dur":4,"ts":%d,"ph":"X","name":"b_kernel_time","args":{"op_name":"Relu","node_index":"1"}}`, at+15),
					fmt.Sprintf(`{"cat":"Session","pid":1,"tid":1,"dur":30,"ts":%d,"ph":"X","name":"model_run","args":{}}`, at))
			}
			p := imported(t, record.Bytes("a.json", []byte("["+strings.Join(list, ",\n")+"]")))
			if !slices.ContainsFunc(p.Findings, func(f profile.Finding) bool { return f.ID == "record.incomplete" }) {
				t.Errorf("%s: %+v", text, p.Findings)
			}
			if len(p.Layers) != 2 {
				t.Fatalf("%s: %d layers", text, len(p.Layers))
			}
			if lost == 1 {
				if p.Totals.Latency != nil || p.Layers[0].Latency != nil || p.Layers[1].Latency != nil {
					t.Errorf("%s: no inference is complete, but %+v", text, p.Totals.Latency)
				}
				continue
			}
			// The first complete inference counts separately.
			m := p.Layers[0].Latency
			if *m.Min != 10e-6 || *m.Max != 10e-6 || *p.Totals.Latency.N != 1 || *p.Totals.Latency.Median != 30e-6 {
				t.Errorf("%s: %+v, total %+v", text, m, p.Totals.Latency)
			}
		}
	}
}

// TestBroken reads names that hold quotes, files that were cut, and files without runs.
func TestBroken(t *testing.T) {
	t.Parallel()
	var r events
	for i := range int64(3) {
		r.node(1, i*100+1, 5, `we"ird`, "Add", 0)
		r.node(1, i*100+7, 2, `a"b","c":{"d`, "Mul", 1)
		r.add("Session", 1, i*100, 10, "model_run", "")
	}
	p := imported(t, r.done())
	if got, want := times(p), `we"ird 5 a"b","c":{"d 2`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	whole := r.String()
	for _, cut := range []int{len(whole) - 30, len(whole) - 150, len(whole) * 2 / 3} {
		p := imported(t, record.Bytes("cut.json", []byte(whole[:cut])))
		if len(p.Incomplete) == 0 {
			t.Errorf("cut at %d of %d: nobody says so", cut, len(whole))
		}
		if got := *p.Layers[0].Latency.Median; got != 5e-6 {
			t.Errorf("cut at %d: %v s", cut, got)
		}
	}
	var none events
	none.node(1, 10, 5, "x", "Add", 0)
	none.node(1, 20, 7, "y", "Mul", 1)
	none.node(1, 30, 6, "x", "Add", 0)
	none.node(1, 40, 7, "y", "Mul", 1)
	none.node(1, 50, 6, "x", "Add", 0)
	none.node(1, 60, 7, "y", "Mul", 1)
	if got, want := times(imported(t, none.done())), "x 6 y 7"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// FuzzRead checks that whatever is read is a valid profile.
func FuzzRead(f *testing.F) {
	for _, byStart := range []bool{false, true} {
		var r events
		loop(&r, 5, byStart)
		loop(&r, 105, byStart)
		f.Add([]byte(r.String() + "]"))
	}
	var x events
	x.add("Node", 1, 4, 5, "_kernel_time", `"op_name" : "Conv","input_type_shape" : [{"float":[1,2]}],"output_size" : "8","thread_scheduling_stats" : {"main_thread":{"block_size":[1],"Run":3},"sub_threads":{"5":{"num_run":1}}}`)
	x.add("Kernel", -1, 4, 5, "k", `"op_name" : "Conv"`)
	f.Add([]byte(x.String()))
	f.Fuzz(func(t *testing.T, b []byte) {
		runs, _ := ort.Format().Read(t.Context(), &record.Input{Files: []*record.File{record.Bytes("x", b)}})
		for _, r := range runs {
			p, err := source.Collect(t.Context(), r, source.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Validate(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
