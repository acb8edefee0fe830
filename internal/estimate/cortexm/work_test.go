package cortexm_test

import (
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// TestAgainstManifest compares all and live multiply-accumulates with the counts that came with
// the model files. Those do not count LSTM layers, which are left out here; a test of their own
// has them. "Live" there leaves out weights that are near zero too: no more than four per cent
// more are live here, and no fewer.
func TestAgainstManifest(t *testing.T) {
	t.Parallel()
	f, err := os.Open(material.Path(t, "models", "mcu", "MANIFEST.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	checked, quantised, equal := 0, 0, 0
	for _, r := range rows[1:] {
		if !strings.HasSuffix(r[0], ".tflite") || r[10] == "" {
			continue
		}
		m, err := modelfile.Open(material.Path(t, "models", "mcu", r[0]))
		if err != nil {
			t.Errorf("%s: %v", r[0], err)
			continue
		}
		all, live, float := 0.0, 0.0, false
		for i, l := range cortexm.Layers(m, m.Main(), cortexm.Kernels{}) {
			op := m.Main().Nodes[i].Op
			if op == "UNIDIRECTIONAL_SEQUENCE_LSTM" {
				continue
			}
			float = float || l.Type == cortexm.Float
			all += l.MACs
			v := l.Live
			live += v[cortexm.ConvMAC] + v[cortexm.PointMAC] + v[cortexm.DepthwiseMAC] + v[cortexm.DenseMAC] + v[cortexm.PlainMAC]
			if l.Missing != nil && op != "STRIDED_SLICE" {
				t.Errorf("%s: node %d: %s", r[0], i, l.Missing.Text)
			}
		}
		checked++
		if want, err := strconv.ParseFloat(r[10], 64); err != nil || want != all {
			t.Errorf("%s: %v MACs, want %v", r[0], all, want)
		}
		if float {
			continue // plain C leaves out what lies on padding
		}
		quantised++
		want, err := strconv.ParseFloat(r[11], 64)
		if err != nil || !(live >= want*0.9999) || !(live <= want*1.04) {
			t.Errorf("%s: %v live MACs, want %v", r[0], live, want)
		}
		if math.Abs(want-live) <= 1e-9*want {
			equal++
		}
	}
	if checked < 36 || quantised < 27 || equal < quantised-4 {
		t.Errorf("%d models, %d quantised, live counts equal in %d", checked, quantised, equal)
	}
}

// TestRecurrent counts an LSTM by its definition: in each step four gates multiply the
// inputs and the state by a matrix each.
func TestRecurrent(t *testing.T) {
	t.Parallel()
	m, err := modelfile.Open(material.Path(t, "models", "mcu", "tflm_trained_lstm_int8.tflite"))
	if err != nil {
		t.Fatal(err)
	}
	const steps, inputs, units = 28, 28, 20 // rows and columns of a digit
	n := 0
	for _, l := range cortexm.Layers(m, m.Main(), cortexm.Kernels{Family: "tflm-reference"}) {
		if l.Kernel != "recurrent" {
			continue
		}
		n++
		if want := float64(steps * 4 * units * (inputs + units)); l.MACs != want || l.Work[cortexm.PlainMAC] != want {
			t.Errorf("%v MACs, %v of them in plain C, want %v", l.MACs, l.Work[cortexm.PlainMAC], want)
		}
	}
	if n != 1 {
		t.Errorf("%d recurrent layers", n)
	}
}

// TestConv states the work of a convolution and what plain C does of it: it gathers
// nothing, enters each position of the window for every output, and leaves padding out.
func TestConv(t *testing.T) {
	t.Parallel()
	const oh, ow, kh, kw, ci, co = 5, 7, 3, 2, 4, 6
	l := cortexm.Conv(oh, ow, kh, kw, ci, co, 1)
	want := cortexm.Vector{cortexm.Op: 1, cortexm.ConvMAC: oh * ow * kh * kw * ci * co, cortexm.ConvGather: oh * ow * kh * kw * ci, cortexm.ConvWindow: oh * ow * kh * kw, cortexm.ConvOutput: oh * ow * co}
	if l.Work != want || l.Live != want {
		t.Errorf("%v, want %v", l.Work, want)
	}
	p := l.InPlainC(0.75)
	want[cortexm.ConvGather], want[cortexm.ConvWindow], want[cortexm.ConvMAC] = 0, oh*ow*kh*kw*co, 0.75*want[cortexm.ConvMAC]
	if p.Work != want || p.Live != want {
		t.Errorf("in plain C %v, want %v", p.Work, want)
	}
	point := cortexm.Conv(oh, ow, 1, 1, ci, co, 1)
	want = cortexm.Vector{cortexm.Op: 1, cortexm.PointMAC: oh * ow * ci * co, cortexm.PointGather: oh * ow * ci, cortexm.PointOutput: oh * ow * co}
	if point.Work != want {
		t.Errorf("1x1: %v, want %v", point.Work, want)
	}
}
