package cli

import (
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// Parts of an ONNX file (onnx.proto, fields by their numbers).

func pbBytes(n protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), b)
}

func pbInt(n protowire.Number, v int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), uint64(v))
}

func pbNode(op, name string, in []string, out string) []byte {
	var b []byte
	for _, s := range in {
		b = append(b, pbBytes(1, []byte(s))...)
	}
	return pbBytes(1, slices.Concat(b, pbBytes(2, []byte(out)), pbBytes(3, []byte(name)), pbBytes(4, []byte(op))))
}

func pbWeights(name string, rows, cols int, of func(r, c int) float32) []byte {
	var raw []byte
	for r := range rows {
		for c := range cols {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(of(r, c)))
		}
	}
	return pbBytes(5, slices.Concat(pbInt(1, rows), pbInt(1, cols), pbInt(2, 1), pbBytes(8, []byte(name)), pbBytes(9, raw)))
}

func pbPort(field protowire.Number, name string, rows, cols int) []byte {
	dim := func(n int) []byte { return pbBytes(1, pbInt(1, n)) }
	shape := slices.Concat(dim(rows), dim(cols))
	return pbBytes(field, slices.Concat(pbBytes(1, []byte(name)), pbBytes(2, pbBytes(1, slices.Concat(pbInt(1, 1), pbBytes(2, shape))))))
}

// products has four matrix products with weights of which it is known how many blocks of 1x16
// are zero: 12 of 16 and some zeros beside them, 8 of 32, none there are, and rows that do not
// go by four. One name has what is hard to write.
func products(t *testing.T, dir string) string {
	t.Helper()
	first := func(r, c int) float32 {
		if b := 2*r + c/16; b < 12 || c%3 == 0 {
			return 0
		}
		return 1
	}
	second := func(r, _ int) float32 { return map[bool]float32{true: 0, false: 0.5}[r < 8] }
	one := func(int, int) float32 { return 0.25 }
	g := slices.Concat(
		pbNode("MatMul", `a "first", 100%; one`, []string{"x", "w1"}, "h1"), pbNode("MatMul", "second", []string{"h1", "w2"}, "h2"),
		pbNode("MatMul", "third", []string{"h2", "w3"}, "h3"), pbNode("MatMul", "fourth", []string{"h3", "w4"}, "h4"), pbNode("Softmax", "soft", []string{"h4"}, "y"),
		pbBytes(2, []byte("products")),
		pbWeights("w1", 8, 32, first), pbWeights("w2", 32, 16, second), pbWeights("w3", 16, 6, one), pbWeights("w4", 6, 4, one),
		pbPort(11, "x", 2, 8), pbPort(12, "y", 2, 4),
	)
	model := slices.Concat(pbInt(1, 8), pbBytes(7, g), pbBytes(8, pbInt(2, 17)))
	path := filepath.Join(dir, "products.onnx")
	if err := os.WriteFile(path, model, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// What the tables say of the products, worked out by hand.
var (
	wantNames  = []string{`a "first", 100%| one`, "second", "third", "fourth", "soft"}
	wantTypes  = []string{"InnerProduct", "InnerProduct", "InnerProduct", "InnerProduct", "Softmax"}
	wantSparse = []string{"75.00%", "25.00%", "0.00%", "0.00%", ""}
	wantCan    = []string{"true", "true", "true", "", ""}
	wantTarget = []string{" ", " 90%", " 90%", " ", " "}
	wantShape  = []string{"8x32", "32x16", "16x6", "6x4", ""}
	wantRow    = []int{2, 4, 3} // of the ratios of those that can be sparse
)

const sixteen = "operator type,post op,operator name,input tensor name,input shape,input dtype,output tensor name,output shape,output dtype,weight shape,weight sparse ratio,sparse support,operator latency (ms),aim to weight sparse ratio,sparse kernel pref ratio,aim to sparse latency(ms)"

func cell(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Errorf("%q is not a number", s)
	}
	return v
}

// checkTable reads a table by the rules of the profiler's layout and returns the times of its
// operators in milliseconds.
func checkTable(t *testing.T, path string) []float64 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord, r.LazyQuotes = -1, true
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1+3+1+5+3 {
		t.Fatalf("%s has %d rows", path, len(rows))
	}
	if s := strings.Join(rows[0], ","); s != "weight shape,90% 4x1 perf ratio,80% 4x1 perf ratio,70% 4x1 perf ratio,others" {
		t.Errorf("first row %q", s)
	}
	for i, shape := range []string{"8x32", "16x6", "32x16"} { // by numbers, not by letters
		if s := strings.Join(rows[1+i], ","); s != shape+",4.000000,4.000000,4.000000,1" {
			t.Errorf("ratios %q, want those of %s", s, shape)
		}
	}
	if s := strings.Join(rows[4], ","); s != sixteen {
		t.Errorf("columns %q", s)
	}
	var times []float64
	total, can := 0.0, 0.0
	for i := range 5 {
		c, row := rows[5+i], 6+i // of the sheet, from 1
		if len(c) != 16 {
			t.Fatalf("row %d has %d cells: %q", row, len(c), c)
		}
		m := cell(t, c[12])
		times, total = append(times, m), total+m
		if c[0] != wantTypes[i] || c[2] != wantNames[i] || c[9] != wantShape[i] || c[10] != wantSparse[i] || c[11] != wantCan[i] || c[13] != wantTarget[i] {
			t.Errorf("row %d: %q", row, c)
		}
		if wantCan[i] == "true" {
			can += m
		}
		ratio, aim := "", c[12]
		if wantTarget[i] == " 90%" {
			k := wantRow[i]
			ratio, aim = fmt.Sprintf("=IF(VALUE(N%d)=90%%,B%d,IF(VALUE(N%d)=80%%,C%d,IF(VALUE(N%d)=70%%,D%d,E%d)))", row, k, row, k, row, k, k), fmt.Sprintf("=M%d/O%d", row, row)
		}
		if c[14] != ratio || c[15] != aim {
			t.Errorf("row %d: ratio %q and aim %q, want %q and %q", row, c[14], c[15], ratio, aim)
		}
	}
	end := rows[10:]
	// Sums are of times before they were rounded: three decimals, or six and nine of short ones.
	if got := cell(t, end[0][12]); !(math.Abs(got-total) <= 3e-3) {
		t.Errorf("total %v ms, operators add up to %v", got, total)
	}
	if got := cell(t, end[1][12]); !(math.Abs(got-can) <= 2e-3) {
		t.Errorf("%v ms of those that can be sparse, want %v", got, can)
	}
	if got, want := cell(t, end[2][12]), cell(t, end[1][12])/(cell(t, end[0][12])+1e-6); !(math.Abs(got-want) <= 0.01*want) {
		t.Errorf("ratio %v, want %v", got, want)
	}
	for i, want := range [][]string{
		{"total latency(ms)", "total aim to sparse latency(ms)", "=SUM(P6:P10)"},
		{"sparse support latency(ms)", "aim to sparse support latency(ms)", "=P6+P7+P8"},
		{"sparse support latency ratio", "aim to sparse support latency ratio", "=P12/P11"},
	} {
		if c := end[i]; c[11] != want[0] || c[14] != want[1] || c[15] != want[2] {
			t.Errorf("total %d: %q", i, c)
		}
	}
	if c := end[0]; c[16] != "sparse improve" || c[17] != "=M11/P11" {
		t.Errorf("improvement %q", c)
	}
	return times
}

type traceEvent struct {
	Args           map[string]string
	Cat, Name, Ph  string
	Tid            string
	Pid            int
	Dur, Ts        float64
	forward, shape float64
}

func millis(t *testing.T, s string) float64 {
	t.Helper()
	ms, ok := strings.CutSuffix(s, "ms")
	if !ok || len(strings.Trim(strings.ReplaceAll(ms, ".", ""), "0")) > 6 {
		t.Errorf("%q is not a time of six digits", s)
	}
	return cell(t, ms)
}

// checkTrace reads a trace by the rules of the profiler's and returns for each operator its mean
// forward time without the first iteration, in milliseconds.
func checkTrace(t *testing.T, path string, iterations int) []float64 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		OtherData   map[string]string
		TraceEvents []traceEvent
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	es := doc.TraceEvents
	if doc.OtherData == nil || len(es) != 1+iterations*6 {
		t.Fatalf("%d events, other data %v", len(es), doc.OtherData)
	}
	for _, e := range es {
		if e.Ph != "X" || e.Pid != 0 {
			t.Errorf("%+v", e)
		}
	}
	// sums of decimals
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Max(1, b) }
	model := es[0]
	if model.Name != "model_inference" || model.Cat != "inference" || model.Tid != "inference" || model.Ts != 0 || model.Args != nil {
		t.Errorf("%+v", model)
	}
	means := make([]float64, 5)
	now := 0.0
	for n := range iterations {
		it := es[1+6*n]
		if it.Name != fmt.Sprintf("Iteration%d", n) || it.Cat != "iteration" || it.Tid != "Iteration" || !near(it.Ts, now) || it.Args != nil {
			t.Errorf("%+v", it)
		}
		sum := 0.0
		for k := range 5 {
			e := es[2+6*n+k]
			e.forward, e.shape = millis(t, e.Args["forward_time"]), millis(t, e.Args["reshape_time"])
			if e.Name != wantNames[k] || e.Cat != wantTypes[k] || e.Tid != "Operator" || !near(e.Ts, now+sum) {
				t.Errorf("%+v", e)
			}
			if d := e.Dur / 1e3; !(math.Abs(d-e.forward-e.shape) <= 1e-5*d) { // six digits each
				t.Errorf("%s lasts %v ms, its parts %v and %v", e.Name, d, e.forward, e.shape)
			}
			if n > 0 && e.shape != 0 {
				t.Errorf("prepared again in iteration %d: %+v", n, e)
			}
			var keys []string
			for key := range e.Args {
				keys = append(keys, key)
			}
			slices.Sort(keys)
			if s := strings.Join(keys, " "); s != "attributes forward_time input_shape input_tensor_name input_type output_shape output_tensor_name output_type reshape_time" {
				t.Errorf("arguments %s", s)
			}
			if k == 0 && (e.Args["input_shape"] != "2*8,8*32" || e.Args["input_type"] != "fp32,fp32" || e.Args["input_tensor_name"] != "x,w1" || e.Args["output_shape"] != "2*32") {
				t.Errorf("%v", e.Args)
			}
			if n > 0 {
				means[k] += e.forward / float64(iterations-1)
			}
			sum += e.Dur
		}
		if !near(it.Dur, sum) {
			t.Errorf("iteration %d lasts %v, its operators %v", n, it.Dur, sum)
		}
		now += it.Dur
	}
	if !near(model.Dur, now) {
		t.Errorf("the model lasts %v, its iterations %v", model.Dur, now)
	}
	return means
}

// checkInstance checks both files of an instance and that they tell the same.
func checkInstance(t *testing.T, dir, table string, iterations int) {
	t.Helper()
	name := strings.TrimSuffix(filepath.Base(table), ".csv")
	times := checkTable(t, table)
	means := checkTrace(t, filepath.Join(dir, "profiling_trace", name+".json"), iterations)
	for i, m := range means {
		// The table has three decimals at least, and of short times three digits.
		if !(math.Abs(times[i]-m) <= 5e-4+1e-3*m) {
			t.Errorf("%s: operator %d takes %v ms by the table, %v by the trace", name, i, times[i], m)
		}
	}
}

// TestInstances runs four instances in one process: files of each and all in one profile, with
// a timeline that has lanes of all four.
func TestInstances(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const runs = 6
	c := child("run", products(t, dir), "--runs", strconv.Itoa(runs), "--instances", "4", "--output", "out", "--profile", "four.json")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	root := filepath.Join(dir, "engine_profiling")
	tables, _ := filepath.Glob(filepath.Join(root, "profiling_csv", "*"))
	traces, _ := filepath.Glob(filepath.Join(root, "profiling_trace", "*"))
	if len(tables) != 4 || len(traces) != 4 {
		t.Fatalf("%v %v", tables, traces)
	}
	for n, table := range tables {
		if !strings.HasSuffix(table, fmt.Sprintf("_%d.csv", n)) {
			t.Errorf("instance %d is %s", n, table)
		}
		checkInstance(t, root, table, runs)
	}
	saved, _ := filepath.Glob(filepath.Join(root, "*.opmeter"))
	if len(saved) != 1 {
		t.Fatalf("%v", saved)
	}
	p, err := profile.Read(saved[0])
	if err != nil {
		t.Fatal(err)
	}
	four(t, p, 4*(runs-1))
	// One clock: all four begin within the time that one of them takes and some more.
	if v, ok := p.Totals.Value("inferences_per_s"); ok && !(v > 0) {
		t.Errorf("%v inferences per second", v)
	}
	if _, err := os.Stat(filepath.Join(dir, "four.json")); err != nil {
		t.Error(err)
	}
	// The same of the files alone.
	c = child("import", "engine_profiling", "-o", "merged.opmeter")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	q, err := profile.Read(filepath.Join(dir, "merged.opmeter"))
	if err != nil {
		t.Fatal(err)
	}
	// A reader cannot tell which iterations opmeter leaves out of the first instance: it is the
	// first here, too.
	four(t, q, 4*(runs-1))
	for i := range p.Layers {
		a, b := *p.Layers[i].Latency.Mean, *q.Layers[i].Latency.Mean
		if !(math.Abs(a-b) <= 1e-5*a+2e-9) { // six digits of each time
			t.Errorf("layer %d takes %v s on average, %v by the files", i, a, b)
		}
	}
	if st, err := os.Stat(root); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("rights of the folder: %v, %v", st.Mode(), err)
	}
}

// four checks a profile of four instances.
func four(t *testing.T, p *profile.Profile, n int64) {
	t.Helper()
	if p.Settings.Instances == nil || *p.Settings.Instances != 4 || len(p.Layers) != 5 {
		t.Fatalf("%+v, %d layers", p.Settings.Instances, len(p.Layers))
	}
	groups := map[string]int{}
	for _, l := range p.Timeline.Lanes {
		if l.Kind == timeline.Layer {
			groups[l.Group] += len(l.Starts)
		}
	}
	if len(groups) != 4 || groups["instance 0"] != 30 || groups["instance 3"] != 30 {
		t.Errorf("lanes of operators: %v", groups)
	}
	l := &p.Layers[1]
	if *l.Latency.N != n {
		t.Errorf("%d samples, want %d", *l.Latency.N, n)
	}
	mean := 0.0
	for k := range 4 {
		m := l.Figure(fmt.Sprintf("instance_%d_s", k))
		if m == nil {
			t.Fatalf("no figures of instance %d", k)
		}
		v, _ := m.Best()
		if m.Mean != nil {
			v = *m.Mean
		}
		mean += v / 4
	}
	if !(math.Abs(mean-*l.Latency.Mean) <= 1e-5*mean) { // six digits of a time
		t.Errorf("instances take %v s on average, all together %v", mean, *l.Latency.Mean)
	}
}

// TestProcesses starts four processes at once, as users of the Neural Engine do. Whatever
// the order in which they begin and end, each leaves its files and none writes over another's.
func TestProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	model := products(t, dir)
	done := make(chan error, 4)
	for k := range 4 {
		c := child("run", model, "--runs", "5", "--output", fmt.Sprintf("out%d", k))
		c.Dir = dir
		c.Env = append(c.Env, "ENGINE_PROFILING=0", "INST_NUM=4")
		go func() {
			out, err := c.CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			done <- err
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	root := filepath.Join(dir, "engine_profiling")
	tables, _ := filepath.Glob(filepath.Join(root, "profiling_csv", "*"))
	if len(tables) != 4 {
		t.Fatalf("%v", tables)
	}
	for _, table := range tables {
		checkInstance(t, root, table, 5)
	}
	// Without the variable nothing is recorded.
	c := child("run", model, "--output", "plain")
	c.Dir = t.TempDir()
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "engine_profiling")); err == nil {
		t.Error("recorded without being told to")
	}
}

func TestInstanceNumber(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int{"": 1, "4": 4, " 2 ": 2, "0": 1, "-3": 1, "four": 1, "1e9": 1} {
		if got := instancesOf(s); got != want {
			t.Errorf("INST_NUM=%q is %d, want %d", s, got, want)
		}
	}
}
