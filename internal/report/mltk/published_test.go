package mltk_test

import (
	"bytes"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/estimate"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/model/tflite"
	"github.com/opmeter/opmeter/internal/report/mltk"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
)

// estimated makes the profile of a published table, nil without its model file.
func estimated(t *testing.T, row map[string]string) *profile.Profile {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(material.Path(t, "models", "mltk"), "*__"+row["tflite_sha1_8"]+".tflite"))
	if err != nil || len(files) == 0 || row["tflite_match"] == "" {
		return nil
	}
	m, err := tflite.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	set, err := chip.Load("")
	if err != nil {
		t.Fatal(err)
	}
	id := map[string]string{"mvp": "efr32xg24-mvp", "none": "efr32xg24"}[row["accelerator"]]
	tg, err := set.Find(id)
	if err != nil {
		t.Fatal(err)
	}
	runtime := map[string]string{"baseline": "tflm-mvp-baseline", "speed_opt": "tflm-mvp"}[row["conv_kernel"]]
	p, err := estimate.Estimate(m, tg, chip.Options{Runtime: runtime, Name: row["model"]})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// cells takes the table of layers out of the text: a map by head for every row.
func cells(t *testing.T, text string) (summary map[string]string, rows []map[string]string) {
	t.Helper()
	summary = map[string]string{}
	var heads []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if label, v, ok := strings.Cut(line, ": "); ok && heads == nil {
			summary[label] = v
		}
		if !strings.HasPrefix(line, "|") {
			continue
		}
		fs := strings.Split(strings.Trim(line, "|"), "|")
		for i := range fs {
			fs[i] = strings.TrimSpace(fs[i])
		}
		if heads == nil {
			heads = fs
			continue
		}
		row := map[string]string{}
		for i, h := range heads {
			row[h] = fs[i]
		}
		rows = append(rows, row)
	}
	return summary, rows
}

// number reads what the layout prints, prefix included; an empty cell is 0.
func number(t *testing.T, s string) float64 {
	t.Helper()
	scale := 1.0
	if i := strings.IndexAny(s, "TGMkmunp"); i > 0 {
		scale = map[byte]float64{'T': 1e12, 'G': 1e9, 'M': 1e6, 'k': 1e3, 'm': 1e-3, 'u': 1e-6, 'n': 1e-9, 'p': 1e-12}[s[i]]
		s = s[:i]
	}
	if s == "" {
		return 0
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v * scale
}

// device is what comes from a board: its firmware cuts off after two decimals
// before the host rounds to one.
func device(v float64) float64 {
	scale := 1.0
	for _, s := range []float64{1e9, 1e6, 1e3} {
		if v >= s {
			scale = s
			break
		}
	}
	// The firmware prints from a binary fraction; a little keeps 1.15 from 1.14999.
	r, _ := strconv.ParseFloat(strconv.FormatFloat(math.Floor(v/scale*100+1e-9)/100, 'f', 1, 64), 64)
	return r * scale
}

// TestPublished compares with the published tables that have a model file: every
// printed digit of operations and multiply-accumulates, of accelerator cycles in
// simulations, the shapes, options and messages.
func TestPublished(t *testing.T) {
	t.Parallel()
	layers := map[string][]map[string]string{}
	for _, r := range material.Table(t, "data", "mltk_golden_layers.csv") {
		layers[r["table_id"]] = append(layers[r["table_id"]], r)
	}
	tables, rows, figures := 0, 0, 0
	for _, want := range material.Table(t, "data", "mltk_golden.csv") {
		id := want["table_id"]
		p := estimated(t, want)
		if p == nil {
			continue
		}
		tables++
		var b, raw bytes.Buffer
		if err := mltk.Text(&b, p, mltk.Options{}); err != nil {
			t.Fatal(err)
		}
		if err := mltk.Text(&raw, p, mltk.Options{Raw: true}); err != nil {
			t.Fatal(err)
		}
		simulated := strings.HasSuffix(want["mode"], "sim")
		same := func(where, got, plain, want string) {
			figures++
			v := number(t, got)
			if !simulated {
				v = device(number(t, plain))
			}
			if w := number(t, want); math.Abs(v-w) > 1e-9*math.Abs(w) {
				t.Errorf("%s: %s (%s), published %s", where, got, plain, want)
			}
		}
		got, list := cells(t, b.String())
		plainTotals, plainList := cells(t, raw.String())
		if simulated {
			// Sums of a device table are those of its rounded rows.
			same(id+" ops", got["Operation Count"], plainTotals["Operation Count"], want["ops"])
			same(id+" macs", got["Multiply-Accumulate Count"], plainTotals["Multiply-Accumulate Count"], want["macs"])
			same(id+" cycles", got["Accelerator Cycle Count"], plainTotals["Accelerator Cycle Count"], want["acc_cycles"])
		}
		if got["Layer Count"] != want["layers"] || len(list) != len(layers[id]) {
			t.Fatalf("%s: %s layers in %d rows, published %s", id, got["Layer Count"], len(list), want["layers"])
		}
		if got["Unsupported Layer Count"] != want["unsupported_layers"] {
			t.Errorf("%s: %s unsupported layers, published %s", id, got["Unsupported Layer Count"], want["unsupported_layers"])
		}
		for i, w := range layers[id] {
			rows++
			at := id + "/" + w["index"]
			g := list[i]
			same(at+" ops", g["# Ops"], plainList[i]["# Ops"], w["ops"])
			same(at+" macs", g["# MACs"], plainList[i]["# MACs"], w["macs"])
			// 73 550 is a tie of rounding
			if want["mode"] == "mvp_sim" && w["acc_cycles"] != "" && at != "T56/4" {
				same(at+" cycles", g["Acc Cycles"], plainList[i]["Acc Cycles"], w["acc_cycles"])
			}
			for head, key := range map[string]string{"Index": "index", "OpCode": "opcode", "Input Shape": "input_shape", "Output Shape": "output_shape"} {
				if g[head] != w[key] {
					t.Errorf("%s: %s is %q, published %q", at, head, g[head], w[key])
				}
			}
			// What is wrong is told in words of our own.
			if (g["Error Msg"] != "") != (w["error_msg"] != "") {
				t.Errorf("%s: Error Msg is %q, published %q", at, g["Error Msg"], w["error_msg"])
			}
			if g["Supported?"] != "" && g["Supported?"] != w["supported"] {
				t.Errorf("%s: supported %s, published %s", at, g["Supported?"], w["supported"])
			}
			// Early releases wrote options with numbers of types and a slip of the pen.
			options := strings.Replace(w["options"], "Multipler", "Multiplier", 1)
			if !strings.HasPrefix(options, "BuiltinOptionsType=") && !strings.EqualFold(g["Options"], options) {
				t.Errorf("%s: options %q, published %q", at, g["Options"], w["options"])
			}
		}
	}
	if tables < 50 {
		t.Errorf("only %d tables have a model file", tables)
	}
	t.Logf("%d figures of %d layers in %d tables equal", figures, rows, tables)
}

// TestJSONKeys holds the keys of the profiler's source.
func TestJSONKeys(t *testing.T) {
	t.Parallel()
	var row map[string]string
	for _, r := range material.Table(t, "data", "mltk_golden.csv") {
		if r["model"] == "tflite_micro_speech" && r["accelerator"] == "mvp" {
			row = r
		}
	}
	p := estimated(t, row)
	if p == nil {
		t.Fatal("no model file")
	}
	var b bytes.Buffer
	if err := mltk.JSON(&b, p, mltk.Options{Estimates: true}); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Summary       map[string]any    `json:"summary"`
		SummaryLabels map[string]string `json:"summary_labels"`
		Layers        []map[string]any  `json:"layers"`
		LayerLabels   map[string]string `json:"layer_labels"`
	}
	if err := jsonx.UnmarshalStrict(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for key, label := range map[string]string{
		"name": "Name", "accelerator": "Accelerator", "input_shape": "Input Shape", "input_dtype": "Input Data Type",
		"output_shape": "Output Shape", "output_dtype": "Output Data Type", "tflite_size": "Flash, Model File Size (bytes)",
		"runtime_memory_size": "RAM, Runtime Memory Size (bytes)", "ops": "Operation Count", "macs": "Multiply-Accumulate Count",
		"n_layers": "Layer Count", "n_unsupported_layers": "Unsupported Layer Count", "accelerator_cycles": "Accelerator Cycle Count",
		"cpu_cycles": "CPU Cycle Count", "cpu_utilization": "CPU Utilization (%)", "cpu_clock_rate": "Clock Rate (hz)", "time": "Time (s)",
		"energy": "Energy (J)", "j_per_op": "J/Op", "j_per_mac": "J/MAC", "op_per_s": "Ops/s", "mac_per_s": "MACs/s", "inf_per_sec": "Inference/s",
	} {
		if doc.Summary[key] == nil || doc.SummaryLabels[key] != label {
			t.Errorf("summary: %s is %v, %q", key, doc.Summary[key], doc.SummaryLabels[key])
		}
	}
	for key, label := range map[string]string{
		"index": "Index", "opcode": "OpCode", "ops": "# Ops", "macs": "# MACs", "accelerator_cycles": "Acc Cycles", "cpu_cycles": "CPU Cycles",
		"energy": "Energy (J)", "time": "Time (s)", "input_shape": "Input Shape", "output_shape": "Output Shape", "options": "Options",
		"supported": "Supported?", "error_msg": "Error Msg",
	} {
		if doc.Layers[2][key] == nil || doc.LayerLabels[key] != label {
			t.Errorf("layers: %s is %v, %q", key, doc.Layers[2][key], doc.LayerLabels[key])
		}
	}
	if len(doc.Summary) != 23 || len(doc.Layers[0]) != 13 {
		t.Errorf("%d and %d keys, want 23 and 13", len(doc.Summary), len(doc.Layers[0]))
	}
}
