package fit_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/estimate/fit"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// TestBoard calibrates a generic core on the figures of one chip and reads the
// file back.
func TestBoard(t *testing.T) {
	t.Parallel()
	root := material.Path(t)
	set, err := chip.Load("")
	if err != nil {
		t.Fatal(err)
	}
	tg, err := set.Find("cortex-m33")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("model_file,latency_ms,clock_mhz\n")
	for _, r := range []struct {
		file string
		ms   float64
	}{{"mlperf_ad01_int8.tflite", 4.61}, {"mlperf_pretrainedResnet_quant.tflite", 246.2}, {"mlperf_kws_ref_model.tflite", 50.6}, {"mlperf_vww_96_int8.tflite", 162.4}} {
		fmt.Fprintf(&b, "%s,%v,200\n", filepath.Join(root, "models", "mcu", r.file), r.ms)
	}
	path := filepath.Join(t.TempDir(), "board.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	rt := tg.Runtime("tflm-cmsis-nn")
	ms, err := fit.LoadBoard(path, tg, rt)
	if err != nil {
		t.Fatal(err)
	}
	before := fit.Encode(tg, "")
	got, err := fit.Board(tg, "tflm-cmsis-nn", ms, fit.Default)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, fit.Encode(tg, "")) {
		t.Error("the given target was changed")
	}
	c := got.Runtime("tflm-cmsis-nn").Calibration
	if c.Rows != 4 || *c.MedianError > 0.2 {
		t.Errorf("%d rows, median error %v", c.Rows, *c.MedianError)
	}
	file := fit.Encode(got, "mine")
	back, err := chip.Parse(file, "cortex-m33.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(file, fit.Encode(back, "mine")) {
		t.Error("a file that was read back is written differently")
	}
	again, err := fit.Board(tg, "tflm-cmsis-nn", ms, fit.Default)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(file, fit.Encode(again, "mine")) {
		t.Error("the same measurements give another file")
	}
}

func TestBoardErrors(t *testing.T) {
	t.Parallel()
	set, err := chip.Load("")
	if err != nil {
		t.Fatal(err)
	}
	tg, err := set.Find("cortex-m33")
	if err != nil {
		t.Fatal(err)
	}
	rt := tg.Runtime("tflm-cmsis-nn")
	for _, c := range []struct{ name, table, want string }{
		{"empty", "", "is empty; expected a line with the names"},
		{"other columns", "model,time\nx,1\n", `row 1: has the columns ["model" "time"]; expected model_file and latency_ms or cycles`},
		{"no rows", "model_file,latency_ms\n", "has no measurements"},
		{"no model", "model_file,latency_ms\n,3\n", "row 2: model_file is missing"},
		{"no latency", "model_file,latency_ms\na.tflite,soon\n", `row 2: latency_ms is "soon"`},
		{"infinite", "model_file,cycles\na.tflite,+Inf\n", `cycles is "+Inf"`},
		{"bad clock", "model_file,latency_ms,clock_mhz\na.tflite,1,-3\n", `clock_mhz is "-3"`},
		{"no file", "model_file,latency_ms\nabsent.tflite,1\n", "absent.tflite"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "board.csv")
			if err := os.WriteFile(path, []byte(c.table), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := fit.LoadBoard(path, tg, rt)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	if _, err := fit.Board(tg, "none", nil, fit.Default); err == nil {
		t.Error("an unknown runtime is accepted")
	}
	if _, err := fit.Board(tg, "tflm-cmsis-nn", nil, fit.Default); err == nil {
		t.Error("no measurements are accepted")
	}
}

// Coefficients of integer kernels are not fitted to floating point.
func TestBoardRefusesFloat(t *testing.T) {
	t.Parallel()
	set, err := chip.Load("")
	if err != nil {
		t.Fatal(err)
	}
	tg, err := set.Find("cortex-m33")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "board.csv")
	row := "model_file,latency_ms\n" + material.Path(t, "models", "mcu", "mlperf_vww_96_float.tflite") + ",500\n"
	if err := os.WriteFile(path, []byte(row), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := fit.LoadBoard(path, tg, tg.Runtime("")); err == nil || !strings.Contains(err.Error(), "row 2") || !strings.Contains(err.Error(), "floating point") {
		t.Errorf("error is %v", err)
	}
}

// Whatever a board is like, the calibrated target returns its rows: within one per cent, or
// within three where a stronger pull towards the target predicts left-out rows better. The
// band that is stated holds each.
func TestBoardFollows(t *testing.T) {
	t.Parallel()
	set, err := chip.Load("")
	if err != nil {
		t.Fatal(err)
	}
	tg, err := set.Find("cortex-m33")
	if err != nil {
		t.Fatal(err)
	}
	start, err := cortexm.Coefficients(tg.Runtime(""))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for n := 1; n <= 8; n++ {
		var ms []*fit.Measurement
		truth := start
		for k := range truth {
			truth[k] *= math.Exp(3*random.Float64() - 1.5) // up to four and a half times either way
		}
		for i := range n {
			size := 8 << (i % 3)
			w := fit.Total([]cortexm.Layer{
				cortexm.Conv(size, size, 3, 3, 1+i, 8+4*i, 1), cortexm.Depthwise(size, size, 3, 3, 8+4*i, 1),
				cortexm.Conv(size, size, 1, 1, 8+4*i, 16, 1), cortexm.Dense(1, 100*(1+i*i), 10),
			})
			ms = append(ms, &fit.Measurement{Source: "mine", Model: string(rune('a' + i)), Cycles: truth.Dot(w.All), Seconds: 1, Clock: 1, Work: w.All})
		}
		got, err := fit.Board(tg, "", ms, fit.Default)
		if err != nil {
			t.Fatal(err)
		}
		rt := got.Runtime("")
		v, err := cortexm.Coefficients(rt)
		if err != nil {
			t.Fatal(err)
		}
		most := 0.01
		if n > 5 {
			most = 0.03
		}
		for _, m := range ms {
			miss := math.Abs(math.Log(v.Dot(m.Work) / m.Cycles))
			if !(miss < most) || !(miss <= rt.Cortexm.Integer.Near) {
				t.Errorf("%d rows: %s is missed by %v, the band is ±%v", n, m.Model, miss, rt.Cortexm.Integer.Near)
			}
		}
	}
}

// Five rows of convolutions that cost four tenths of what sure coefficients say move the estimate
// of other convolutions all the way. Whether dense layers moved as far the rows do not tell: the
// band holds them if they did, and if they did not.
func TestBoardContradicts(t *testing.T) {
	t.Parallel()
	set, err := chip.Load("")
	if err != nil {
		t.Fatal(err)
	}
	tg, err := set.Find("stm32l4r5")
	if err != nil {
		t.Fatal(err)
	}
	const runtime = "tflm-cmsis-nn"
	start, err := cortexm.Coefficients(tg.Runtime(runtime))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(3, 4))
	network := func(size, channels int) cortexm.Vector {
		return fit.Total([]cortexm.Layer{cortexm.Conv(size, size, 3, 3, 3, channels, 1), cortexm.Conv(size, size, 1, 1, channels, 2*channels, 1)}).All
	}
	dense := fit.Total([]cortexm.Layer{cortexm.Dense(1, 784, 128), cortexm.Dense(1, 128, 10)}).All
	in, within, rows := 0, 0, 0
	for i := range 20 {
		truth := start
		for k := range truth {
			if k < cortexm.DenseMAC || i%2 == 0 {
				truth[k] *= 0.4 * math.Exp(0.4*(random.Float64()-0.5))
			}
		}
		var ms []*fit.Measurement
		for i := range 5 {
			w := network(8+8*i, 8+4*(i%3))
			cycles := truth.Dot(w) * math.Exp(0.1*(random.Float64()-0.5))
			ms = append(ms, &fit.Measurement{Source: "mine", Model: string(rune('a' + i)), Cycles: cycles, Seconds: 1, Clock: 1, Work: w})
		}
		got, err := fit.Board(tg, runtime, ms, fit.Default)
		if err != nil {
			t.Fatal(err)
		}
		rt := got.Runtime(runtime)
		v, err := cortexm.Coefficients(rt)
		if err != nil {
			t.Fatal(err)
		}
		var seen []cortexm.Vector
		for _, s := range rt.Cortexm.Seen {
			seen = append(seen, cortexm.Vector(s))
		}
		prior := cortexm.Prior(rt.Cortexm.Family, rt.Cortexm.Tier)
		x := rt.Cortexm.Integer
		for _, w := range []cortexm.Vector{network(20, 24), dense} {
			half := cortexm.Half(x.Near, x.Far, x.Overhead, cortexm.Nearest(cortexm.Mix(prior, w), seen), cortexm.Overhead(v, w))
			miss := math.Abs(math.Log(truth.Dot(w) / v.Dot(w)))
			rows++
			if miss <= half {
				in++
			}
			if w != dense && miss <= math.Log(1.15) {
				within++
			}
		}
	}
	if in < rows*85/100 || within < rows/2*9/10 {
		t.Errorf("of %d networks %d are inside their bands, %d within 15 %%", rows, in, within)
	}
}

// Two measurements of one model that disagree are both in the band.
func TestBoardDisagreeing(t *testing.T) {
	t.Parallel()
	set, err := chip.Load("")
	if err != nil {
		t.Fatal(err)
	}
	tg, err := set.Find("cortex-m33")
	if err != nil {
		t.Fatal(err)
	}
	w := fit.Total([]cortexm.Layer{cortexm.Conv(16, 16, 3, 3, 8, 16, 1)})
	ms := []*fit.Measurement{
		{Source: "mine", Model: "a", Cycles: 1e6, Seconds: 1, Clock: 1, Work: w.All},
		{Source: "mine", Model: "a", Cycles: 4e6, Seconds: 1, Clock: 1, Work: w.All},
	}
	got, err := fit.Board(tg, "", ms, fit.Default)
	if err != nil {
		t.Fatal(err)
	}
	rt := got.Runtime("")
	v, err := cortexm.Coefficients(rt)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range ms {
		if miss := math.Abs(math.Log(v.Dot(m.Work) / m.Cycles)); !(miss <= rt.Cortexm.Integer.Near) {
			t.Errorf("%v cycles are missed by %v, the band is ±%v", m.Cycles, miss, rt.Cortexm.Integer.Near)
		}
	}
}
