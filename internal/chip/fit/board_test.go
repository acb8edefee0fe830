package fit_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/chip"
	"github.com/opmeter/opmeter/internal/chip/fit"
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
