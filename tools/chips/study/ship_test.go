package study_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/estimate/fit"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/tools/chips/study"
)

// studied is the study of all measurements, made once: it takes seconds.
var studied = sync.OnceValues(func() (*study.Study, error) {
	data, err := study.LoadAll(material.Dir())
	if err != nil {
		return nil, err
	}
	return study.NewStudy(data, fit.Default), nil
})

func whole(t *testing.T) *study.Study {
	t.Helper()
	material.Path(t)
	s, err := studied()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestShippedFiles makes the shipped target files again and compares them byte for
// byte.
func TestShippedFiles(t *testing.T) {
	t.Parallel()
	for _, x := range whole(t).Targets() {
		got := fit.Encode(x, study.Comment)
		file := filepath.Join(material.Root(), "internal", "estimate", "chip", "chips", x.ID+".yaml")
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
	file := filepath.Join(material.Root(), "internal", "estimate", "chip", "chips", "efr32xg24.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if study.WriteRuntime(string(text), whole(t).Reference("cortex-m33")) != string(text) {
		t.Errorf("%s differs from what the fit gives now; run go generate ./tools/chips", file)
	}
}

// TestWriteRuntime puts a runtime if absent, and in the place of an old one.
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

// TestAccuracy holds the fit to what is asked of it: networks left out one at a time, on
// chips and runtimes that have others. Bands hold nine of ten and are not wider than that.
func TestAccuracy(t *testing.T) {
	t.Parallel()
	s := whole(t)
	byType := map[cortexm.Type][]*fit.Residual{}
	type share struct{ rows, in int }
	byGroup := map[fit.Group]share{}
	for _, h := range s.Bands.State(s.Residuals) {
		if h.How != "measured" {
			continue
		}
		typ := study.TypeOf(h.M)
		byType[typ] = append(byType[typ], h.Residual)
		n := byGroup[h.M.Group()]
		n.rows++
		if h.Inside() {
			n.in++
		}
		byGroup[h.M.Group()] = n
	}
	for typ, want := range map[cortexm.Type]struct {
		rows             int
		median, within25 float64
	}{cortexm.Int8: {300, 0.08, 0.9}, cortexm.Int16: {25, 0.1, 0.85}, cortexm.Float: {150, 0.08, 0.9}} {
		got := fit.Summarise(byType[typ])
		t.Logf("%v: %+v", typ, got)
		if got.Rows < want.rows || !(got.Median <= want.median) || !(got.Within25 >= want.within25) {
			t.Errorf("%v: %d rows, median error %.3f, %.3f within 25 %%; want %+v", typ, got.Rows, got.Median, got.Within25, want)
		}
	}
	groups := 0
	for g, n := range byGroup {
		if n.rows < 10 {
			continue
		}
		groups++
		if in := float64(n.in) / float64(n.rows); !(in >= 0.85 && in <= 0.95) {
			t.Errorf("%v: the band holds %.3f of %d rows", g, in, n.rows)
		}
	}
	if groups < 14 {
		t.Errorf("%d groups have ten rows", groups)
	}
}

// TestLeaveOuts holds bands to what is asked of them on unfamiliar boards and sources: nine
// of ten in each class of ten rows, no wider than 2.5 times where integers of the core were
// measured.
func TestLeaveOuts(t *testing.T) {
	t.Parallel()
	s := whole(t)
	type class struct {
		group fit.Group
		how   string
	}
	for _, l := range study.LeaveOuts {
		by := map[class][]*study.Held{}
		for _, h := range s.Bands.State(l.Residuals(s.Measurements, fit.Default)) {
			if c := (class{h.M.Group(), h.How}); h.How != "" {
				by[c] = append(by[c], h)
			}
		}
		classes := 0
		for c, list := range by {
			if len(list) < 10 {
				continue
			}
			classes++
			in := 0
			var widths []float64
			for _, h := range list {
				if h.Inside() {
					in++
				}
				widths = append(widths, math.Exp(2*h.Half))
			}
			slices.Sort(widths)
			share, width := float64(in)/float64(len(list)), stats.Median(widths)
			t.Logf("one %s left out, %v: %.3f of %d inside, %.2f wide", l.Name, c, share, len(list), width)
			if share < 0.84 {
				t.Errorf("one %s left out, %v: %.3f of %d inside", l.Name, c, share, len(list))
			}
			if (c.how == "measured" || c.how == "other chip") && c.group.Era == "" && study.TypeOf(list[0].M) == cortexm.Int8 && width > 2.5 {
				t.Errorf("one %s left out, %v: the band is %.2f wide", l.Name, c, width)
			}
		}
		if classes < 12 {
			t.Errorf("one %s left out: %d classes have ten rows", l.Name, classes)
		}
	}
}

// TestBands asks the rule of every shipped runtime: what was carried over from other chips
// is never surer than what was measured of the same kernels on the same core.
func TestBands(t *testing.T) {
	t.Parallel()
	set, err := chip.Load("")
	if err != nil {
		t.Fatal(err)
	}
	type kernels struct{ family, core, name string }
	type width struct {
		of        string
		near, far float64
	}
	measured, carried := map[kernels][]width{}, map[kernels][]width{}
	for _, x := range set.List() {
		for i := range x.Runtimes {
			r := &x.Runtimes[i]
			if r.Cortexm == nil {
				continue
			}
			k := kernels{r.Cortexm.Family, x.Core.Name, r.Name}
			w := width{x.ID, r.Cortexm.Integer.Near, r.Cortexm.Integer.Far}
			if !(w.near > 0) || !(w.far >= w.near) {
				t.Errorf("%s %s: half-widths %v and %v", x.ID, r.Name, w.near, w.far)
			}
			if r.Calibration.From == "" && x.Vendor != "" {
				measured[k] = append(measured[k], w)
			} else {
				carried[k] = append(carried[k], w)
			}
		}
	}
	pairs := 0
	for k, list := range carried {
		for _, c := range list {
			for _, m := range measured[k] {
				pairs++
				if c.near < m.near || c.far < m.far {
					t.Errorf("%v: ±%v to ±%v on %s, which was carried over, ±%v to ±%v on %s, which was measured", k, c.near, c.far, c.of, m.near, m.far, m.of)
				}
			}
		}
	}
	if pairs < 30 {
		t.Errorf("%d pairs were compared", pairs)
	}
}

// No core's kernels in plain C are further from the others than cores are: a single row
// of a board does not make it so.
func TestReferenceLevels(t *testing.T) {
	t.Parallel()
	set, err := chip.Load("")
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]float64{}
	for _, x := range set.List() {
		if r := x.Runtime("tflm-reference"); r != nil {
			by[x.Core.Name] = r.Cortexm.Integer.Cycles[cortexm.ConvMAC]
		}
	}
	if len(by) < 10 {
		t.Fatalf("%d cores", len(by))
	}
	for core, v := range by {
		next := 0.0
		for other, w := range by {
			if other != core {
				next = max(next, w)
			}
		}
		if !(v > 0) || v > 2*next {
			t.Errorf("%s: %v cycles for a product, %v on the next core", core, v, next)
		}
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
