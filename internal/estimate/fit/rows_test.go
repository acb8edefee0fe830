package fit_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/estimate/fit"
)

// dense is a network of 100 x 10 and then 10 x 5 products; its work is two operators,
// 1050 products and 15 outputs.
const dense = "name: net\ntype: int8\ninput: {name: x, shape: [1, 100]}\nlayers:\n  - {op: dense, units: 10}\n  - {op: dense, units: 5}\n"

// slow costs 1000 a call, 100 an operator, 2 a product and 10 an output: 3450 cycles of
// the network above.
func slow() *chip.Target {
	tg := &chip.Target{ID: "board", Name: "Board", Core: chip.Core{Name: "Core"}, Clock: chip.Clock{Min: 10e6, Max: 200e6, Default: 100e6}}
	s := &chip.Structural{Family: "tflm-cmsis-nn", Tier: "dsp"}
	s.Integer.Cycles[cortexm.Call], s.Integer.Cycles[cortexm.Op], s.Integer.Cycles[cortexm.DenseMAC], s.Integer.Cycles[cortexm.DenseOutput] = 1000, 100, 2, 10
	tg.Runtimes = []chip.Runtime{{Name: "r", Cortexm: s}, {Name: "counted", MVP: &chip.Counted{}}}
	return tg
}

// TestLoadBoard has rows as people write them, and what is wrong with others: each is
// told with its row.
func TestLoadBoard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	float := strings.Replace(dense, "type: int8\n", "", 1)
	for name, text := range map[string]string{"net.yaml": dense, "float.yaml": float} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range []struct {
		name, table   string
		cycles, clock float64
		want          string
	}{
		{"milliseconds at the usual clock", "model_file,latency_ms\nnet.yaml,0.05\n", 5000, 100e6, ""},
		{"at another", "model_file,latency_ms,clock_mhz\nnet.yaml,0.05,80\n", 4000, 80e6, ""},
		{"the slowest clock", "model_file,latency_ms,clock_mhz\nnet.yaml,0.5,10\n", 5000, 10e6, ""},
		{"the fastest clock", "model_file,latency_ms,clock_mhz\nnet.yaml,0.05,200\n", 10000, 200e6, ""},
		{"too slow", "model_file,latency_ms,clock_mhz\nnet.yaml,0.05,9.9\n", 0, 0, `row 2: clock_mhz is "9.9"; board runs at 10 to 200 MHz`},
		{"too fast", "model_file,latency_ms,clock_mhz\nnet.yaml,0.05,80\nnet.yaml,0.05,201\n", 0, 0, `row 3: clock_mhz is "201"; board runs at 10 to 200 MHz`},
		{"no clock", "model_file,latency_ms,clock_mhz\nnet.yaml,0.05,0\n", 0, 0, `clock_mhz is "0"; expected a positive number`},
		{"cycles", "model_file,cycles\nnet.yaml,4200\n", 4200, 100e6, ""},
		{"both that agree", "model_file,cycles,latency_ms\nnet.yaml,4200,0.043\n", 4200, 100e6, ""},
		{"both, a twentieth apart", "model_file,cycles,latency_ms\nnet.yaml,4000,0.0421\n", 0, 0, `row 2: latency_ms is "0.0421", but cycles at 100 MHz make 0.04 ms; give one of them`},
		{"both, a twentieth below", "model_file,cycles,latency_ms\nnet.yaml,4000,0.0379\n", 0, 0, "give one of them"},
		{"both, one no number", "model_file,cycles,latency_ms\nnet.yaml,4000,x\n", 0, 0, "give one of them"},
		{"negative", "model_file,latency_ms\nnet.yaml,-1\n", 0, 0, `latency_ms is "-1"; expected a positive number of milliseconds`},
		{"no time at all", "model_file,latency_ms\nnet.yaml,0\n", 0, 0, `latency_ms is "0"`},
		{"not a number", "model_file,cycles\nnet.yaml,NaN\n", 0, 0, `cycles is "NaN"; expected a positive number`},
		{"no cycles", "model_file,cycles\nnet.yaml,0\n", 0, 0, `cycles is "0"; expected a positive number`},
		// A hundred times of 3450 cycles and a hundredth of it.
		{"just likely", "model_file,cycles\nnet.yaml,344900\n", 344900, 100e6, ""},
		{"just likely, fast", "model_file,cycles\nnet.yaml,34.6\n", 34.6, 100e6, ""},
		{"unlikely", "model_file,cycles\nnet.yaml,345100\n", 0, 0, "is 100 times what board is estimated to take"},
		{"unlikely fast", "model_file,cycles\nnet.yaml,34.4\n", 0, 0, "times what board is estimated to take"},
		{"floating point", "model_file,latency_ms\nfloat.yaml,0.05\n", 0, 0, "computes in floating point; only kernels of 8-bit integers are fitted"},
		{"spaces and a mark before names", "\ufeffmodel_file , latency_ms\nnet.yaml,0.05\n", 5000, 100e6, ""},
		{"a cell too many", "model_file,latency_ms\nnet.yaml,0.05,more\n", 5000, 100e6, ""},
		{"a quote that does not end", "model_file,latency_ms\n\"net.yaml,0.05\n", 0, 0, "read table"},
		{"no column of models", "latency_ms\n1\n", 0, 0, "expected model_file and latency_ms or cycles"},
		{"no column of times", "model_file\nnet.yaml\n", 0, 0, "expected model_file and latency_ms or cycles"},
	} {
		path := filepath.Join(dir, fmt.Sprintf("%d.csv", i))
		if err := os.WriteFile(path, []byte(c.table), 0o600); err != nil {
			t.Fatal(err)
		}
		tg := slow()
		ms, err := fit.LoadBoard(path, tg, &tg.Runtimes[0])
		if c.want != "" {
			if err == nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.name, err, c.want)
			}
			continue
		}
		if err != nil || len(ms) != 1 {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		m := ms[0]
		if !(math.Abs(m.Cycles-c.cycles) <= 1e-9*c.cycles) || m.Clock != c.clock || !(math.Abs(m.Seconds-c.cycles/c.clock) <= 1e-12) {
			t.Errorf("%s: %v cycles at %v Hz in %v s, want %v at %v", c.name, m.Cycles, m.Clock, m.Seconds, c.cycles, c.clock)
		}
		want := cortexm.Vector{cortexm.Call: 1, cortexm.Op: 2, cortexm.DenseMAC: 1050, cortexm.DenseOutput: 15}
		if m.Work != want || m.Source != "own measurements" || m.Model != "net.yaml" || m.Chip != "Board" || m.Core != "Core" || m.Family != "tflm-cmsis-nn" {
			t.Errorf("%s: %+v, want work %v", c.name, m, want)
		}
	}
	// Rows may say what they are.
	path := filepath.Join(dir, "named.csv")
	if err := os.WriteFile(path, []byte("model_file,cycles,source,model_name,runtime_version\n"+filepath.Join(dir, "net.yaml")+",4000,paper,mine,v2\nnet.yaml,4000,,,\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tg := slow()
	ms, err := fit.LoadBoard(path, tg, &tg.Runtimes[0])
	if err != nil || len(ms) != 2 || ms[0].Source != "paper" || ms[0].Model != "mine" || ms[0].Version != "v2" {
		t.Fatalf("%+v, %v", ms, err)
	}
	if got := fit.Sources(append(ms, ms...)); !slices.Equal(got, []string{"own measurements", "paper"}) {
		t.Errorf("sources %q", got)
	}
	if g := ms[0].Group(); g != (fit.Group{Family: "tflm-cmsis-nn", Core: "Core"}) {
		t.Errorf("group %+v", g)
	}
	if _, err := fit.LoadBoard(path, tg, &tg.Runtimes[1]); err == nil || !strings.Contains(err.Error(), "runtime counted of target board has the cycle model mvp") {
		t.Errorf("a runtime of another model: %v", err)
	}
	if _, err := fit.Board(tg, "counted", ms, fit.Default); err == nil || !strings.Contains(err.Error(), "cycle model mvp") {
		t.Errorf("a runtime of another model: %v", err)
	}
	tg.Runtimes[0].Cortexm.Integer.Cycles[cortexm.Op] = -1
	if _, err := fit.Board(tg, "r", ms, fit.Default); err == nil || !strings.Contains(err.Error(), "target board, runtime r: cycles of op are -1") {
		t.Errorf("a cost below zero: %v", err)
	}
}

// TestTotal adds up work; a layer that is not known is an operator all the same, and the
// call is one.
func TestTotal(t *testing.T) {
	t.Parallel()
	n := fit.Total([]cortexm.Layer{cortexm.Conv(2, 3, 1, 1, 4, 8, 0.25), {Missing: &chip.Missing{}}, cortexm.Dense(1, 10, 5), {Missing: &chip.Missing{}}})
	all := cortexm.Vector{cortexm.Call: 1, cortexm.Op: 4, cortexm.PointMAC: 192, cortexm.PointOutput: 48, cortexm.PointGather: 24, cortexm.DenseMAC: 50, cortexm.DenseOutput: 5}
	live := all
	live[cortexm.PointMAC], live[cortexm.PointOutput], live[cortexm.PointGather] = 48, 12, 6
	if n.All != all || n.Live != live {
		t.Errorf("all %v, live %v, want %v and %v", n.All, n.Live, all, live)
	}
}

// row is a measurement with one kind of work beside the call.
func row(source, model string, cycles float64, work cortexm.Vector) *fit.Measurement {
	return &fit.Measurement{Source: source, Model: model, Cycles: cycles, Seconds: 1, Clock: 1, Work: work}
}

// TestSummarise counts errors of predictions by hand: 1/2, 1/4, 0, 1/10 and one without.
func TestSummarise(t *testing.T) {
	t.Parallel()
	residual := func(source string, measured, predicted float64, how string) *fit.Residual {
		return &fit.Residual{M: row(source, "m", measured, cortexm.Vector{}), Predicted: predicted, How: how}
	}
	rs := []*fit.Residual{residual("a", 100, 150, "measured"), residual("a", 100, 75, "measured"), residual("b", 100, 100, "measured"), residual("b", 100, 110, "carried"), residual("c", 100, 1, "")}
	s := fit.Summarise(rs)
	// Sorted 0, 0.1, 0.25, 0.5: the middle is 0.175, nine tenths of the way 0.425. The
	// logarithms' middle lies between those of 1 and 1/1.1.
	if s.Rows != 4 || s.Sources != 2 || !(math.Abs(s.Median-0.175) < 1e-12) || !(math.Abs(s.P90-0.425) < 1e-12) || !(math.Abs(s.Bias-(1/math.Sqrt(1.1)-1)) < 1e-12) {
		t.Errorf("%+v", s)
	}
	// 110/100-1 is 0.1 but for its last bit
	if s.Within25 != 0.75 || !(s.Within10 == 0.25 || s.Within10 == 0.5) {
		t.Errorf("within a quarter %v, within a tenth %v", s.Within25, s.Within10)
	}
	if s := fit.Summarise([]*fit.Residual{residual("a", 100, 90.5, "x"), residual("a", 100, 111, "x")}); s.Within10 != 0.5 || s.Within25 != 1 {
		t.Errorf("within a tenth %v of 0.095 and 0.11", s.Within10)
	}
	if s := fit.Summarise(rs[4:]); s != (fit.Summary{}) {
		t.Errorf("of none %+v", s)
	}
	if r := rs[0]; !(math.Abs(r.Log()-math.Log(100.0/150)) < 1e-12) || !(math.Abs(r.Error()-0.5) < 1e-12) {
		t.Errorf("log %v, error %v", r.Log(), r.Error())
	}
	// The rank of nine tenths among ten: (10+1) 0.9 = 9.9 of 1 to 10.
	if got := fit.Quantile([]float64{10, 2, 3, 4, 5, 6, 7, 8, 9, 1}); !(got > 9.8 && got < 10) {
		t.Errorf("nine tenths of 1 to 10: %v", got)
	}
	if got := fit.Quantile(nil); got != 0 {
		t.Errorf("of none: %v", got)
	}
}

// TestFaster scales kernels and leaves overhead.
func TestFaster(t *testing.T) {
	t.Parallel()
	v := cortexm.Vector{cortexm.Call: 5, cortexm.Op: 7, cortexm.ConvMAC: 2, cortexm.PlainMove: 3}
	if got, want := fit.Faster(v, 4), (cortexm.Vector{cortexm.Call: 5, cortexm.Op: 7, cortexm.ConvMAC: 8, cortexm.PlainMove: 12}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got := fit.Dot([]float64{1, 2, 3}, []float64{4, 5, 6, 7}); got != 32 {
		t.Errorf("product %v, want 32", got)
	}
}

// TestFollow finds what rows tell: a board three times as slow in one kind of work and
// as the start in another, and keeps the start in what no row has, up to the common factor.
func TestFollow(t *testing.T) {
	t.Parallel()
	start := cortexm.Vector{cortexm.Call: 10, cortexm.ConvMAC: 2, cortexm.DenseMAC: 4, cortexm.PoolElement: 8}
	conv, dense := cortexm.Vector{cortexm.ConvMAC: 1000}, cortexm.Vector{cortexm.DenseMAC: 1000}
	got := fit.Follow([]*fit.Measurement{row("a", "x", 6000, conv), row("a", "y", 4000, dense), row("a", "z", 12000, conv.Plus(conv))}, start, 1e-6)
	for k, want := range map[int]float64{cortexm.Call: 10, cortexm.ConvMAC: 6, cortexm.DenseMAC: 4, cortexm.PoolElement: 24} {
		if !(math.Abs(got[k]-want) <= 1e-3*want) {
			t.Errorf("%s costs %v, want %v", cortexm.Names[k], got[k], want)
		}
	}
	// Drawn strongly, a row in one kind of work moves that half of the way in squares.
	one := fit.Follow([]*fit.Measurement{row("a", "x", 6000, conv), row("a", "y", 6000, dense), row("a", "z", 4000, dense)}, start, 1)
	if !(one[cortexm.DenseMAC] > 4 && one[cortexm.DenseMAC] < 6) {
		t.Errorf("rows that disagree make %v, want between 4 and 6", one[cortexm.DenseMAC])
	}
}

// TestRefine finds a speed that cores have in common, and counts rows far off less.
func TestRefine(t *testing.T) {
	t.Parallel()
	start := cortexm.Vector{cortexm.Call: 10, cortexm.Op: 1, cortexm.ConvMAC: 2, cortexm.DenseMAC: 4}
	conv, dense := cortexm.Vector{cortexm.ConvMAC: 1e6}, cortexm.Vector{cortexm.DenseMAC: 1e6}
	once := func(*fit.Measurement) float64 { return 1 }
	got := fit.Refine([]*fit.Measurement{row("a", "x", 6e6, conv), row("b", "y", 12e6, dense)}, once, start, 0.1, 0.1)
	for k, want := range map[int]float64{cortexm.Call: 10, cortexm.Op: 1, cortexm.ConvMAC: 6, cortexm.DenseMAC: 12} {
		if !(math.Abs(got[k]-want) <= 1e-6*want) {
			t.Errorf("three times as slow: %s costs %v, want %v", cortexm.Names[k], got[k], want)
		}
	}
	// A core of half the speed says the same.
	half := func(m *fit.Measurement) float64 { return map[string]float64{"x": 1, "y": 2}[m.Model] }
	got = fit.Refine([]*fit.Measurement{row("a", "x", 6e6, conv), row("b", "y", 24e6, dense)}, half, start, 0.1, 0.1)
	if !(math.Abs(got[cortexm.DenseMAC]-12) <= 1e-4) {
		t.Errorf("a core of half the speed: %v, want 12", got[cortexm.DenseMAC])
	}
	// Of five rows of one kind four say 6 and one says 60.
	var ms []*fit.Measurement
	for i, c := range []float64{6e6, 6e6, 6e6, 6e6, 60e6} {
		ms = append(ms, row(fmt.Sprint(i), "x", c, conv))
	}
	if got := fit.Refine(ms, once, start, 0.01, 0.1); !(math.Abs(got[cortexm.ConvMAC]-6) <= 0.05) {
		t.Errorf("with one row far off: %v, want 6", got[cortexm.ConvMAC])
	}
	// The same network five times from one source counts as much as once.
	many := []*fit.Measurement{row("b", "x", 9e6, conv), row("c", "x", 6e6, conv)}
	one := append(many[:2:2], row("a", "x", 4e6, conv))
	for range 5 {
		many = append(many, row("a", "x", 4e6, conv))
	}
	if a, b := fit.Refine(one, once, start, 0.01, 0.1)[cortexm.ConvMAC], fit.Refine(many, once, start, 0.01, 0.1)[cortexm.ConvMAC]; !(math.Abs(a-b) <= 1e-6) || !(a > 4 && a < 9) {
		t.Errorf("five of one source: %v, once: %v", b, a)
	}
	// Layers count a tenth.
	layer := row("b", "x", 9e6, conv)
	layer.Layer = true
	if got := fit.Refine([]*fit.Measurement{row("a", "x", 4e6, conv), layer}, once, start, 0.01, 0.1); !(math.Abs(got[cortexm.ConvMAC]-4) <= 0.05) {
		t.Errorf("a network and a layer: %v, want 4", got[cortexm.ConvMAC])
	}
}

// TestBoardFigures states what a calibrated target says about its error.
func TestBoardFigures(t *testing.T) {
	t.Parallel()
	work := func(products float64) cortexm.Vector {
		return cortexm.Vector{cortexm.Call: 1, cortexm.Op: 1, cortexm.DenseMAC: products}
	}
	// The start is exact: 1100 of overhead and 2 a product. Of sources a and b, that of
	// two leaves one out each.
	exact := []*fit.Measurement{row("a", "x", 1100+2e4, work(1e4)), row("b", "y", 1100+4e4, work(2e4))}
	tg := slow()
	tg.Runtimes[0].Cortexm.Integer.Near, tg.Runtimes[0].Cortexm.Integer.Far = 0.3, 0.6
	tg.Runtimes[0].Cortexm.Integer.Bands[cortexm.DenseMAC], tg.Runtimes[0].Cortexm.Integer.Bands[cortexm.PlainMAC] = 0.7, 0.8
	got, err := fit.Board(tg, "r", exact, fit.Default)
	if err != nil {
		t.Fatal(err)
	}
	x, c := got.Runtimes[0].Cortexm, got.Runtimes[0].Calibration
	// No residual is larger than rounding, so that the least half-width holds.
	close := func(what string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= 1e-6) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	close("near", x.Integer.Near, 0.02)
	close("far", x.Integer.Far, 2*0.02+0.1)
	close("layer", x.Integer.Layer, math.Hypot(0.02, 0.5))
	close("low", c.Band[0], math.Exp(-0.02))
	close("high", c.Band[1], math.Exp(0.02))
	close("coverage", *c.Coverage, 0.9)
	close("median error", *c.MedianError, 0)
	close("own band of what was told", x.Integer.Bands[cortexm.DenseMAC], 0)
	close("own band of what was not", x.Integer.Bands[cortexm.PlainMAC], 0.8)
	if c.Rows != 2 || c.Sources != 2 || !slices.Equal(c.On, []string{"a", "b"}) || !strings.Contains(c.Method, "one source left out at a time") || len(c.Errors) != 2 || c.Errors[0].Group != "x" || c.Errors[1].Rows != 1 {
		t.Errorf("calibration %+v", c)
	}
	// The same mix twice is one that was seen.
	if len(x.Seen) != 1 || x.Seen[0][cortexm.DenseMAC] != 1 {
		t.Errorf("seen %v", x.Seen)
	}
	if tg.Runtimes[0].Cortexm.Integer.Near != 0.3 || tg.Runtimes[0].Calibration != nil {
		t.Error("the given target was changed")
	}

	// A single model says nothing about others: the target's band stays.
	got, err = fit.Board(tg, "r", exact[:1], fit.Default)
	if err != nil {
		t.Fatal(err)
	}
	x, c = got.Runtimes[0].Cortexm, got.Runtimes[0].Calibration
	close("near of one", x.Integer.Near, 0.3)
	if c.MedianError != nil || c.P90Error != nil || len(c.Errors) != 0 || !strings.Contains(c.Method, "a single model does not predict others") {
		t.Errorf("calibration on one model %+v", c)
	}

	// One source with two models leaves out one model at a time. They disagree by four:
	// each is predicted from the other, a miss of log 4, which two residuals widen by half
	// of... twice itself: 1 + 2/2.
	apart := []*fit.Measurement{row("a", "x", 1e6, cortexm.Vector{cortexm.DenseMAC: 1e4}), row("a", "y", 4e6, cortexm.Vector{cortexm.DenseMAC: 1e4})}
	got, err = fit.Board(tg, "r", apart, fit.Default)
	if err != nil {
		t.Fatal(err)
	}
	x, c = got.Runtimes[0].Cortexm, got.Runtimes[0].Calibration
	if want := 2 * math.Log(4); !(math.Abs(x.Integer.Near-want) <= 1e-3) || !(x.Integer.Far >= x.Integer.Near) {
		t.Errorf("near %v, far %v, want %v", x.Integer.Near, x.Integer.Far, want)
	}
	if !strings.Contains(c.Method, "one model left out at a time") || c.Sources != 1 || !(math.Abs(*c.MedianError-(3+0.75)/2) <= 1e-3) {
		t.Errorf("calibration %+v, median error %v", c, *c.MedianError)
	}
	// Other mixes are others that were seen.
	mixed := append(exact, row("a", "z", 1e5, cortexm.Vector{cortexm.ConvMAC: 1e4}))
	tg.Runtimes[0].Cortexm.Integer.Cycles[cortexm.ConvMAC] = 2
	if got, err = fit.Board(tg, "r", mixed, fit.Default); err != nil || len(got.Runtimes[0].Cortexm.Seen) != 2 {
		t.Errorf("%v, %v", got, err)
	}
}
