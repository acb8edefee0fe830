// Package mltk reads the reports of the Silicon Labs MLTK model profiler (text, JSON and
// CSV, with plain numbers or decimal prefixes) and the text that its firmware prints
// on a board.
//
// Source of the formats: mltk/core (profiling_results, profile_model) and the
// model_profiler application of the SiliconLabs/mltk project.
package mltk

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsontree"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/mltk/console"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// Format is the reader.
func Format() *record.Format {
	return &record.Format{
		Name:  "mltk",
		Title: "Silicon Labs MLTK model profiler",
		Files: "profiling_report-*.txt and .json, the profiler's CSV, opmeter's own (report format mltk); console log of the model profiler on a board",
		Gives: []string{"latency_s", "cpu_cycles", "accelerator_cycles", "energy_j", "mltk_ops", "mltk_macs", "memory", "shapes", "options"},
		Match: func(f *record.File) record.Sure { return record.Certain.If(kindOf(f) != none) },
		Read:  read,
	}
}

type kind int

const (
	none kind = iota
	text
	json
	table
	device
)

func kindOf(f *record.File) kind {
	if h := f.JSONHead("{"); h != nil {
		if h.Has(`"summary"`, `"runtime_memory_size"`, `"n_unsupported_layers"`) {
			return json
		}
		return none
	}
	return record.FindLine(f, func(l string) kind {
		l = strings.TrimSpace(textscan.Strip(l))
		switch {
		case l == "Profiling Summary", strings.HasPrefix(l, "| Index | OpCode"):
			return text
		case strings.HasPrefix(l, layerHead), strings.HasPrefix(l, summaryHead+"input_shape,"):
			return table
		case console.Known(l):
			return device
		}
		return none
	}, "Profiling Summary", "| OpCode", layerHead, summaryHead, "Starting Model Profiler", "Tensor runtime memory:", "Profiler Metrics", "Op0-", "Op1-", "Op2-")
}

// Beginnings of the headers of CSV files.
const (
	layerHead   = "index,opcode,"
	summaryHead = "name,accelerator,"
)

// Limits of a file: its size, and its reports.
const (
	maxBytes   = 64 << 20
	maxReports = 1000
)

func read(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	return record.EachFile(ctx, &record.Input{Files: unpaired(in.Files)}, func(f *record.File) ([]*runlog.Run, error) {
		switch k := kindOf(f); k {
		case json:
			return readJSON(f)
		case device:
			return readDevice(f)
		default:
			return readText(f, k == table)
		}
	})
}

// unpaired returns the files without texts of reports that are also there as JSON: both have the
// same content.
func unpaired(files []*record.File) []*record.File {
	has := map[string]bool{}
	for _, f := range files {
		if kindOf(f) == json {
			has[draft.Stem(f)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(files), func(f *record.File) bool { return kindOf(f) == text && has[draft.Stem(f)] })
}

// report holds a summary and layers, texts by key.
type report struct {
	summary map[string]string
	order   []string // keys of the summary
	layers  []map[string]string
	keys    []string // of layers, in order
}

// labels maps words of the text to the keys of JSON and CSV.
var labels = map[string]string{
	"Name": "name", "Accelerator": "accelerator", "Input Shape": "input_shape", "Input Data Type": "input_dtype", "Output Shape": "output_shape",
	"Output Data Type": "output_dtype", "Flash, Model File Size (bytes)": "tflite_size", "RAM, Runtime Memory Size (bytes)": "runtime_memory_size",
	"Operation Count": "ops", "Multiply-Accumulate Count": "macs", "Layer Count": "n_layers", "Unsupported Layer Count": "n_unsupported_layers",
	"Accelerator Cycle Count": "accelerator_cycles", "CPU Cycle Count": "cpu_cycles", "CPU Utilization (%)": "cpu_utilization", "Clock Rate (hz)": "cpu_clock_rate",
	"Time (s)": "time", "Energy (J)": "energy", "J/Op": "j_per_op", "J/MAC": "j_per_mac", "Ops/s": "op_per_s", "MACs/s": "mac_per_s", "Inference/s": "inf_per_sec",
	"Index": "index", "OpCode": "opcode", "# Ops": "ops", "# MACs": "macs", "Acc Cycles": "accelerator_cycles", "CPU Cycles": "cpu_cycles",
	"Options": "options", "Supported?": "supported", "Error Msg": "error_msg",
}

func label(s string) string { return cmp.Or(labels[s], runlog.Key(s)) }

func newReport() *report { return &report{summary: map[string]string{}} }

func readJSON(f *record.File) ([]*runlog.Run, error) {
	v, fault, err := f.ParseJSON(maxBytes)
	if err != nil {
		return nil, err
	}
	r := newReport()
	for k, item := range v.Get("summary").Members() {
		r.put(k, item.Str())
	}
	for _, l := range v.Get("layers").List() {
		row := map[string]string{}
		for k, item := range l.Members() {
			row[k] = item.Str()
		}
		r.layers = append(r.layers, row)
		if r.keys == nil {
			r.keys = l.Keys
		}
	}
	d := r.build(f)
	plan(d, v.Get("memory_plan"))
	return d.Runs(fault)
}

// put adds a figure of the summary.
func (r *report) put(key, value string) {
	if _, ok := r.summary[key]; !ok && len(r.order) < 500 {
		r.order = append(r.order, key)
	}
	if len(r.summary) < 500 {
		r.summary[key] = value
	}
}

// layer adds a row of the table of layers.
func (r *report) layer(cells []string) {
	if r.keys == nil || len(r.layers) >= draft.MaxLayers {
		return
	}
	row := map[string]string{}
	for i, k := range r.keys {
		row[k] = textscan.Cell(cells, i)
	}
	r.layers = append(r.layers, row)
}

// readText reads reports as text or CSV, one after the other.
func readText(f *record.File, csv bool) (runs []*runlog.Run, err error) {
	cur := newReport()
	var ds []*draft.Draft
	flush := func() {
		if len(cur.layers)+len(cur.summary) > 0 && len(ds) < maxReports {
			if d := cur.build(f); !d.Empty() {
				ds = append(ds, d)
			}
		}
		cur = newReport()
	}
	state := ""
	var head []string // of the summary in CSV
	err = f.Lines(func(l string) {
		if csv {
			cells := textscan.Fields(l, ',')
			switch {
			case strings.TrimSpace(l) == "":
			case strings.HasPrefix(l, layerHead):
				if len(cur.layers) > 0 {
					flush()
				}
				cur.keys, state = cells, "layers"
			case strings.HasPrefix(l, summaryHead):
				flush()
				head, state = cells, "summary"
			case state == "summary":
				for i, k := range head {
					cur.put(k, textscan.Cell(cells, i))
				}
				state = ""
			case state == "layers":
				cur.layer(cells)
			}
			return
		}
		l = strings.TrimSpace(textscan.Strip(l))
		row, boxed := textscan.Boxed(l)
		key, value, ok := strings.Cut(l, ": ")
		if !ok {
			key, ok = strings.CutSuffix(l, ":")
		}
		switch {
		case l == "Profiling Summary":
			flush()
			state = l
		case l == "Model Layers" || l == "Memory Plan":
			state = l
		case boxed && (len(row) == 0 || state == "Memory Plan"):
		case boxed && len(row) > 1 && row[0] == "Index":
			if len(cur.layers) > 0 {
				flush()
			}
			cur.keys = nil
			for _, c := range row {
				cur.keys = append(cur.keys, label(c))
			}
		case boxed:
			cur.layer(row)
		case ok && state == "Profiling Summary":
			cur.put(label(key), value)
		}
	})
	flush()
	draft.Apart(ds, false)
	for _, d := range ds {
		runs = append(runs, d.Run())
	}
	return draft.NotEmpty(runs, err)
}

// plan keeps the plan of the arena that a full report has.
func plan(d *draft.Draft, v *jsontree.Value) {
	if v == nil {
		return
	}
	count := func(e *jsontree.Value) *int64 { return draft.Count(e.Int()) }
	m := &profile.Memory{Planner: "tflm", PersistentBytes: count(v.Get("persistent")), ArenaBytes: count(v.Get("buffers_size"))}
	for _, b := range v.Get("buffers").List() {
		at, size, first, last := count(b.Get("offset")), count(b.Get("size")), count(b.Get("start")), count(b.Get("end"))
		if at == nil || size == nil || first == nil || last == nil || *last < *first || len(m.Plan) >= draft.MaxLayers {
			continue
		}
		m.Plan = append(m.Plan, profile.Buffer{Name: draft.Text(b.Get("name").Str()), Bytes: *size, Offset: *at, First: *first, Last: *last})
	}
	d.P.Memory = m
}
