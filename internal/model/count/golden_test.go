package count_test

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tflite"
	"github.com/opmeter/opmeter/internal/runtime/describe"
	"github.com/opmeter/opmeter/internal/testing/material"
)

func open(t *testing.T, file string) *graph.Model {
	t.Helper()
	m, err := tflite.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	if m.Close != nil {
		t.Cleanup(func() { _ = m.Close() })
	}
	return m
}

func declared(m *graph.Model, g *graph.Graph, n *graph.Node) count.Work {
	return count.Count(m, g, n, count.Declared(g, n.Inputs), count.Declared(g, n.Outputs))
}

// printed is the value that the MLTK profiler prints for n: one decimal with a
// prefix. Device tables were cut to two decimals before they were rounded.
func printed(n int64, device bool) float64 {
	v, p := float64(n), 1.0
	for _, q := range []float64{1e12, 1e9, 1e6, 1e3} {
		if v >= q {
			v, p = v/q, q
			break
		}
	}
	if device {
		v = math.Trunc(v*100+1e-9) / 100
	}
	s, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'f', 1, 64), 64)
	return s * p
}

// TestMLTKLayers compares with every published layer that has a model file.
func TestMLTKLayers(t *testing.T) {
	t.Parallel()
	rows := material.Table(t, "data", "mltk_golden_layers.csv")
	files := map[string]string{}
	for _, r := range material.Table(t, "models", "mltk", "index.csv") {
		files[r["sha1"][:8]] = r["file"]
	}
	models := map[string]*graph.Model{}
	layers, wrong, options, without := 0, 0, 0, 0
	for _, r := range rows {
		file, ok := files[r["tflite_sha1_8"]]
		if !ok {
			without++
			continue
		}
		m := models[file]
		if m == nil {
			m = open(t, material.Path(t, "models", "mltk", file))
			models[file] = m
		}
		i, err := strconv.Atoi(r["index"])
		g := m.Main()
		if err != nil || i >= len(g.Nodes) || !strings.EqualFold(g.Nodes[i].Op, r["opcode"]) {
			t.Errorf("%s %s layer %s is %s there", r["table_id"], file, r["index"], r["opcode"])
			continue
		}
		n := g.Nodes[i]
		w := declared(m, g, n)
		layers++
		device := strings.HasPrefix(r["mode"], "device")
		for _, k := range []struct {
			name string
			got  *int64
		}{{"ops", w.MLTKOps}, {"macs", w.MLTKMACs}} {
			want := 0.0
			if s := r[k.name]; s != "" {
				if want, err = strconv.ParseFloat(s, 64); err != nil {
					t.Fatal(err)
				}
			}
			if k.got == nil || math.Abs(printed(*k.got, device)-want) > 1e-6*want {
				wrong++
				t.Errorf("%s %s layer %d %s (%s): %s = %v, published %v", r["table_id"], file, i, n.Op, r["mode"], k.name, show(k.got), want)
			}
		}
		// Some tables print no options but the number of their type.
		if o := r["options"]; strings.Contains(o, "ctivation:") && strings.Contains(o, ":") && !strings.HasPrefix(o, "Time") {
			options++
			if got := words(describe.Options(n)); !strings.EqualFold(got, strings.Replace(o, "Multipler", "Multiplier", 1)) {
				t.Errorf("%s %s layer %d: options %q, published %q", r["table_id"], file, i, got, o)
			}
		}
	}
	t.Logf("%d layers, %d values differ; %d options; %d layers have no model file", layers, wrong, options, without)
}

func show(v *int64) string {
	if v == nil {
		return "unknown"
	}
	return fmt.Sprint(*v)
}

// TestTFLiteMACs compares with independent counts by kind of operator.
func TestTFLiteMACs(t *testing.T) {
	t.Parallel()
	kinds := map[string]string{
		"CONV_2D": "conv", "DEPTHWISE_CONV_2D": "depthwise", "FULLY_CONNECTED": "fully connected", "TRANSPOSE_CONV": "transpose conv",
		"BATCH_MATMUL": "batch matmul", "UNIDIRECTIONAL_SEQUENCE_LSTM": "lstm gates", "SVDF": "svdf",
	}
	rows := material.Table(t, "golden", "tflite_macs.csv")
	same := 0
	for _, r := range rows {
		file := material.Path(t, "models", "real", r["model"])
		m := open(t, file)
		g := m.Main()
		got := map[string]int64{}
		for _, n := range g.Nodes {
			w := declared(m, g, n)
			if n.Domain != graph.TFLite {
				continue
			}
			if w.MACs == nil {
				t.Errorf("%s: %s (node %d) is unknown", r["model"], n.Op, n.Index)
				continue
			}
			if *w.MACs > 0 {
				k := kinds[n.Op]
				if k == "" {
					k = n.Op
				}
				got[k] += *w.MACs
			}
			if w.MACsExecuted != nil && *w.MACsExecuted > *w.MACs {
				t.Errorf("%s: %s (node %d) executes %d of %d", r["model"], n.Op, n.Index, *w.MACsExecuted, *w.MACs)
			}
		}
		ok := true
		for _, k := range kinds {
			want, err := strconv.ParseInt(r[k], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if got[k] != want {
				t.Errorf("%s: %s %d, want %d", r["model"], k, got[k], want)
				ok = false
			}
			delete(got, k)
		}
		for k, v := range got {
			t.Errorf("%s: %d multiply-accumulates of %s", r["model"], v, k)
		}
		if ok {
			same++
		}
	}
	t.Logf("%d of %d models agree", same, len(rows))
}

// TestEveryModelCounts works through every model file: nothing may fail, and the
// operators without a rule are named.
func TestEveryModelCounts(t *testing.T) {
	t.Parallel()
	dir := material.Path(t, "models")
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.tflite"))
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]int{}
	nodes, shapes := 0, map[string]int{}
	for _, file := range files {
		m, err := tflite.Open(file)
		if err != nil {
			continue // the reader's business
		}
		for _, g := range m.Graphs {
			for _, n := range g.Nodes {
				nodes++
				w := declared(m, g, n)
				describe.Options(n)
				count.Bodies(m, n, count.Declared(g, n.Inputs), nil)
				switch {
				case !count.Has(n):
					missing[n.Key()]++
				case w.MACs == nil:
					shapes[n.Key()]++
				}
			}
		}
		if m.Close != nil {
			_ = m.Close()
		}
	}
	t.Logf("%d files, %d nodes; no rule: %v; shape not known: %v", len(files), nodes, missing, shapes)
	for k := range missing {
		if !strings.HasPrefix(k, "CUSTOM:") {
			t.Errorf("no rule for %s", k)
		}
	}
}
