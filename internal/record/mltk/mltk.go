// Package mltk reads the reports of the Silicon Labs MLTK model profiler (text, JSON and
// CSV, with plain numbers or decimal prefixes) and the text that its firmware prints
// on a board.
//
// Source of the formats: mltk/core (profiling_results, profile_model) and the
// model_profiler application of the SiliconLabs/mltk project.
package mltk

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
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
		Match: match,
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
	head := bytes.TrimLeft(bytes.TrimPrefix(f.Head, []byte("\xef\xbb\xbf")), " \t\r\n")
	if bytes.HasPrefix(head, []byte("{")) {
		if bytes.Contains(head, []byte(`"summary"`)) && bytes.Contains(head, []byte(`"runtime_memory_size"`)) && bytes.Contains(head, []byte(`"n_unsupported_layers"`)) {
			return json
		}
		return none
	}
	if !textscan.Any(f.Head, "Profiling Summary", "| OpCode", "index,opcode,", "name,accelerator,", "Starting Model Profiler", "Tensor runtime memory:", "Profiler Metrics", "Op0-", "Op1-", "Op2-") {
		return none
	}
	for _, l := range textscan.Head(f.Head, f.Whole) {
		l = strings.TrimSpace(textscan.Strip(l))
		switch {
		case l == "Profiling Summary", strings.HasPrefix(l, "| Index | OpCode"):
			return text
		case strings.HasPrefix(l, "index,opcode,"), strings.HasPrefix(l, "name,accelerator,input_shape,"):
			return table
		case console.Known(l):
			return device
		}
	}
	return none
}

func match(f *record.File) record.Sure {
	if kindOf(f) != none {
		return record.Certain
	}
	return record.No
}

// maxBytes bounds a report.
const maxBytes = 64 << 20

func read(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	files := paired(in.Files)
	return record.EachFile(ctx, &record.Input{Files: files, Options: in.Options}, func(f *record.File) ([]*runlog.Run, error) {
		switch kindOf(f) {
		case json:
			return readJSON(f, in)
		case device:
			return readDevice(f, in)
		}
		return readText(f, in)
	})
}

// paired leaves out the text of a report whose JSON stands beside it: both say the same.
func paired(files []*record.File) []*record.File {
	has := map[string]bool{}
	for _, f := range files {
		if kindOf(f) == json {
			has[draft.Stem(f)] = true
		}
	}
	var out []*record.File
	for _, f := range files {
		if kindOf(f) == text && has[draft.Stem(f)] {
			continue
		}
		out = append(out, f)
	}
	return out
}

// report is a summary and layers, texts by key.
type report struct {
	summary map[string]string
	order   []string
	layers  []map[string]string
	keys    []string // of layers, in order
}

// labels are the words of the text for the keys of JSON and CSV.
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

func readJSON(f *record.File, in *record.Input) ([]*runlog.Run, error) {
	b, err := f.Read(maxBytes)
	if err != nil {
		return nil, err
	}
	v, fault := jsontree.Parse(b)
	r := &report{summary: map[string]string{}}
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
	if d.Empty() {
		if fault == nil {
			fault = draft.ErrNothing
		}
		return nil, fault
	}
	if fault != nil {
		d.Dropped.Add(fmt.Sprintf("the text is damaged: %v", fault), 1)
	}
	return []*runlog.Run{d.Run()}, nil
}

func (r *report) put(key, value string) {
	if _, ok := r.summary[key]; !ok && len(r.order) < 500 {
		r.order = append(r.order, key)
	}
	if len(r.summary) < 500 {
		r.summary[key] = value
	}
}

// readText reads reports as text or CSV, one after the other.
func readText(f *record.File, in *record.Input) ([]*runlog.Run, error) {
	rd, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = rd.Close() }()
	s := textscan.NewScanner(rd)
	cur := &report{summary: map[string]string{}}
	var runs []*runlog.Run
	flush := func() {
		if len(cur.layers)+len(cur.summary) > 0 && len(runs) < 1000 {
			if d := cur.build(f); !d.Empty() {
				runs = append(runs, d.Run())
			}
		}
		cur = &report{summary: map[string]string{}}
	}
	isTable := kindOf(f) == table
	state := ""
	for s.Scan() {
		l := strings.TrimSpace(textscan.Strip(s.Text()))
		if isTable {
			state = cur.csv(s.Text(), state, flush)
			continue
		}
		switch {
		case l == "Profiling Summary":
			flush()
			state = "summary"
			continue
		case l == "Model Layers":
			state = "layers"
			continue
		case l == "Memory Plan":
			state = "plan"
			continue
		}
		if row, ok := textscan.Boxed(s.Text()); ok {
			if state != "plan" {
				cur.row(row)
			}
			continue
		}
		if k, v, ok := strings.Cut(l, ": "); ok && state == "summary" {
			cur.put(label(k), v)
		} else if state == "summary" && strings.HasSuffix(l, ":") {
			cur.put(label(strings.TrimSuffix(l, ":")), "")
		}
	}
	flush()
	if s.Err() != nil {
		return runs, draft.At(f, s.Number(), s.Err())
	}
	if len(runs) == 0 {
		return nil, draft.ErrNothing
	}
	return runs, nil
}

// row takes a row of the table of layers, its head first.
func (r *report) row(cells []string) {
	switch {
	case len(cells) == 0:
	case len(cells) > 1 && cells[0] == "Index":
		r.keys = r.keys[:0]
		for _, c := range cells {
			r.keys = append(r.keys, label(c))
		}
	case r.keys != nil && len(r.layers) < draft.MaxLayers:
		row := map[string]string{}
		for i, c := range cells[:min(len(cells), len(r.keys))] {
			row[r.keys[i]] = c
		}
		r.layers = append(r.layers, row)
	}
}

// csv takes a line of the two tables.
func (r *report) csv(l, state string, flush func()) string {
	cells := textscan.Fields(l, ',')
	switch {
	case strings.TrimSpace(l) == "":
		return state
	case strings.HasPrefix(l, "index,opcode,"):
		r.keys = cells
		return "layers"
	case strings.HasPrefix(l, "name,accelerator,"):
		flush()
		return "head:" + l
	case strings.HasPrefix(state, "head:"):
		for i, k := range textscan.Fields(strings.TrimPrefix(state, "head:"), ',') {
			r.put(k, textscan.Cell(cells, i))
		}
		return ""
	case state == "layers" && len(r.layers) < draft.MaxLayers:
		row := map[string]string{}
		for i, k := range r.keys {
			row[k] = textscan.Cell(cells, i)
		}
		r.layers = append(r.layers, row)
	}
	return state
}

// plan keeps the plan of the arena that a full report has.
func plan(d *draft.Draft, v *jsontree.Value) {
	if v == nil {
		return
	}
	whole := func(e *jsontree.Value) *int64 {
		if n, ok := e.Int(); ok && n >= 0 {
			return &n
		}
		return nil
	}
	m := &profile.Memory{Planner: "tflm", PersistentBytes: whole(v.Get("persistent")), ArenaBytes: whole(v.Get("buffers_size"))}
	for _, b := range v.Get("buffers").List() {
		at, size, first, last := whole(b.Get("offset")), whole(b.Get("size")), whole(b.Get("start")), whole(b.Get("end"))
		if at == nil || size == nil || first == nil || last == nil || *last < *first || len(m.Plan) >= draft.MaxLayers {
			continue
		}
		m.Plan = append(m.Plan, profile.Buffer{Name: draft.Text(b.Get("name").Str()), Bytes: *size, Offset: *at, First: *first, Last: *last})
	}
	d.P.Memory = m
}

var errDevice = errors.New("the log of a board ends before its profiler has printed an operator")
