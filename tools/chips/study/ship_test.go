package study_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/opmeter/opmeter/internal/chip"
	"github.com/opmeter/opmeter/internal/chip/cortexm"
	"github.com/opmeter/opmeter/internal/chip/fit"
	"github.com/opmeter/opmeter/internal/read/modelfile"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/tools/chips/study"
)

// TestShippedFiles makes the shipped target files again and compares them byte for
// byte.
func TestShippedFiles(t *testing.T) {
	t.Parallel()
	data, err := study.LoadAll(material.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	all := study.NewStudy(data, fit.Default)
	for _, x := range all.Targets() {
		got := fit.Encode(x, study.Comment)
		file := filepath.Join(material.Root(), "internal", "chip", "chips", x.ID+".yaml")
		want, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from what the fit gives now; run go generate ./tools/chips", file)
		}
	}
}

// TestReferenceByHand makes the runtime of the file that is otherwise written by hand
// again.
func TestReferenceByHand(t *testing.T) {
	t.Parallel()
	data, err := study.LoadAll(material.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(material.Root(), "internal", "chip", "chips", "efr32xg24.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rt := study.NewStudy(data, fit.Default).Reference("cortex-m33")
	if study.WriteRuntime(string(text), rt) != string(text) {
		t.Errorf("%s differs from what the fit gives now; run go generate ./tools/chips", file)
	}
}

// TestWriteRuntime puts a runtime where there is none, and in the place of an old one.
func TestWriteRuntime(t *testing.T) {
	t.Parallel()
	const before, after = "id: x\nruntimes:\n  - name: other\n    model: mvp\n", "sources:\n  - a book\n"
	const old = "  - name: \"r\"\n    title: \"old\"\n    coefficients:\n      call: 1\n"
	const want = "  - name: \"r\"\n    title: \"new\"\n    mvp:\n"
	rt := &chip.Runtime{Name: "r", Title: "new", MVP: &chip.Counted{}}
	const last = "  - name: last\n    model: mvp\n"
	for name, c := range map[string][2]string{
		"absent": {before + after, before + want + after},
		"old":    {before + old + last + after, before + want + last + after},
		"at end": {before + old, before + want},
	} {
		if got := study.WriteRuntime(c[0], rt); got != c[1] {
			t.Errorf("%s: got\n%s", name, got)
		}
	}
}

// TestAccuracy holds the fit to what is asked of it: sources left out one at a
// time, on cores and runtimes that have others.
func TestAccuracy(t *testing.T) {
	t.Parallel()
	data, err := study.LoadAll(material.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	var rs []*fit.Residual
	for _, r := range study.LeaveSourcesOut(data.Measurements, fit.Default) {
		if r.How == "measured" {
			rs = append(rs, r)
		}
	}
	s := fit.Summarise(rs)
	t.Logf("%+v", s)
	if s.Rows < 190 || s.Median > 0.1 || s.Within25 < 0.9 {
		t.Errorf("%d rows, median error %.3f, %.3f within 25 %%", s.Rows, s.Median, s.Within25)
	}
}

// TestCosts estimates through the shipped files what was measured.
func TestCosts(t *testing.T) {
	t.Parallel()
	set, err := chip.Load("")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		target, runtime, model string
		ms                     float64
	}{
		{"stm32u575", "x-cube-ai", "mlperf_pretrainedResnet_quant.tflite", 109.5},
		{"stm32u575", "x-cube-ai", "mlperf_vww_96_int8.tflite", 59.3},
		{"stm32l4r5", "x-cube-ai-7.3", "mlperf_kws_ref_model.tflite", 75.1},
		{"ra6m4", "tflm-cmsis-nn", "mlperf_ad01_int8.tflite", 4.61},
		{"ra8d1", "tflm-cmsis-nn", "mlperf_vww_96_int8.tflite", 13.39},
		{"apollo510", "", "mlperf_kws_ref_model.tflite", 7.856},
		{"rx65n", "", "mlperf_pretrainedResnet_quant.tflite", 289.4},
		{"esp32-s3", "", "tflm_person_detect.tflite", 54},
		{"esp32-c3", "tflm-reference", "tflm_person_detect.tflite", 3355},
	} {
		tg, err := set.Find(c.target)
		if err != nil {
			t.Error(err)
			continue
		}
		m, err := modelfile.Open(material.Path(t, "models", "mcu", c.model))
		if err != nil {
			t.Fatal(err)
		}
		costs, err := cortexm.Model{}.Costs(m, m.Main(), tg, tg.Runtime(c.runtime), chip.Options{})
		if err != nil {
			t.Error(err)
			continue
		}
		f := costs.Latency
		toMS := 1e3 / float64(tg.Clock.Default)
		t.Logf("%s %s %s: %.2f ms (%.2f to %.2f), measured %.2f %v", c.target, c.runtime, c.model, f.Value*toMS, f.Low*toMS, f.High*toMS, c.ms, costs.Remarks)
		if c.ms < f.Low*toMS || c.ms > f.High*toMS {
			t.Errorf("%s %s %s: measured %.2f ms is outside %.2f to %.2f", c.target, c.runtime, c.model, c.ms, f.Low*toMS, f.High*toMS)
		}
		sum := 0.0
		for i := range costs.Layers {
			if l := &costs.Layers[i]; l.Latency != nil {
				sum += l.Latency.Value
			}
		}
		if math.Abs(sum-f.Value) > 1e-6*f.Value {
			t.Errorf("%s: layers add up to %v of %v", c.target, sum, f.Value)
		}
	}
}
