// Package deepsparse reads the exports of DeepSparse's tools: results of
// deepsparse.benchmark as JSON, and layers of deepsparse.analyze as JSON, CSV or a table.
//
// Source of the formats: benchmark_model.py, analyze.py and debug_analysis.py of the
// DeepSparse project.
package deepsparse

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsontree"
	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// Format is the reader.
func Format() *record.Format {
	return &record.Format{
		Name:  "deepsparse",
		Title: "DeepSparse benchmark and analyze",
		Files: "JSON of deepsparse.benchmark --export_path, its console output, JSON or CSV of deepsparse.analyze",
		Gives: []string{"latency_s", "samples", "sparsity_activations", "shapes", "options"},
		Match: match,
		Read:  record.RunsPerFile(read),
	}
}

func match(f *record.File) record.Sure {
	h := record.Head(f.Head)
	return record.Certain.If(h.Has(`"benchmark_result"`, `"items_per_sec"`) || h.Has(`"layer_info"`) && h.HasAny(`"average_total_time"`, `"canonical_name"`) || isCSV(f) || isConsole(f))
}

// isCSV looks for the header of analyze, whose columns come in any order.
func isCSV(f *record.File) bool {
	if !textscan.Any(f.Head, "canonical_name") {
		return false
	}
	ls := append(textscan.Head(f.Head, f.Whole), "")
	return isHeader(textscan.NewColumns(textscan.Fields(ls[0], ',')))
}

func isHeader(c textscan.Columns) bool {
	return c.At("canonical_name") >= 0 && c.At("average_run_time_in_ms") >= 0
}

// maxBytes limits the size of a file.
const maxBytes = 64 << 20

func read(_ context.Context, _ *record.Input, f *record.File) ([]*runlog.Run, error) {
	switch {
	case isCSV(f):
		return readCSV(f)
	case isConsole(f):
		return readConsole(f)
	}
	var ds []*draft.Draft
	var damaged error
	err := f.EachJSON(maxBytes, func(v *jsontree.Value, fault error) {
		d := newDraft(f)
		if v.Has("layer_info") {
			analyze(d, v)
		} else {
			benchmark(d, v)
		}
		d.Dropped.Add(draft.NotFinite, v.Odd())
		if damaged = fault; fault != nil && !d.Empty() {
			d.Dropped.Add(fmt.Sprintf("the text is damaged: %v", fault), 1)
			damaged = nil
		}
		ds = append(ds, d)
	})
	return runs(ds, cmp.Or(err, damaged))
}

func newDraft(f *record.File) *draft.Draft {
	return draft.New("deepsparse", draft.Stem(f), "DeepSparse")
}

// runs makes the runs of a file.
func runs(ds []*draft.Draft, err error) (out []*runlog.Run, _ error) {
	ds = slices.DeleteFunc(ds, (*draft.Draft).Empty)
	draft.Apart(ds, false)
	for _, d := range ds {
		out = append(out, d.Run())
	}
	return draft.NotEmpty(out, err)
}

// printed are the lines of the console with the keys that they have in the JSON.
var printed = []struct{ line, key string }{
	{"Original Model Path: ", "orig_model_path"},
	{"Batch Size: ", "batch_size"},
	{"Scenario: ", "scenario"},
	{"Throughput (items/sec): ", "items_per_sec"},
	{"Latency Mean (ms/batch): ", "mean"},
	{"Latency Mean (ms): ", "mean"},
	{"Latency Median (ms/batch): ", "median"},
	{"Latency Median (ms): ", "median"},
	{"Latency Std (ms/batch): ", "std"},
	{"Latency Std (ms): ", "std"},
	{"Iterations: ", "iterations"},
}

// printedLine returns the key and text of a line of the console, "" for other lines.
func printedLine(l string) (key, text string) {
	l = strings.TrimSpace(textscan.Strip(l))
	for _, p := range printed {
		if text, ok := strings.CutPrefix(l, p.line); ok {
			return p.key, strings.TrimSpace(text)
		}
	}
	return "", ""
}

func isConsole(f *record.File) bool {
	return record.FindLine(f, func(l string) bool {
		key, text := printedLine(l)
		_, ok := textscan.Number(text)
		return ok && (key == "items_per_sec" || key == "mean")
	}, "Throughput (items/sec): ", "Latency Mean (ms")
}

// readConsole reads the console. A line that the run has already begins the next run.
func readConsole(f *record.File) ([]*runlog.Run, error) {
	var all []*jsontree.Value
	err := f.Lines(func(l string) {
		key, text := printedLine(l)
		if key == "" || len(all) > draft.MaxRuns {
			return
		}
		n := len(all)
		if n == 0 || all[n-1].Has(key) || all[n-1].Get("benchmark_result").Has(key) {
			all = append(all, &jsontree.Value{Kind: jsontree.Object})
			put(all[n], "benchmark_result", &jsontree.Value{Kind: jsontree.Object})
			n++
		}
		to := all[n-1]
		if key != "orig_model_path" && key != "batch_size" && key != "scenario" {
			to = to.Get("benchmark_result")
		}
		put(to, key, scalar(text))
	})
	var ds []*draft.Draft
	for _, v := range all {
		d := newDraft(f)
		benchmark(d, v)
		ds = append(ds, d)
	}
	return runs(ds, err)
}

// put adds a member to an object.
func put(to *jsontree.Value, key string, e *jsontree.Value) {
	to.Keys, to.Items = append(to.Keys, key), append(to.Items, e)
}

// scalar makes a number, or a text.
func scalar(text string) *jsontree.Value {
	e := &jsontree.Value{Kind: jsontree.String, Text: text}
	if n, ok := textscan.Number(text); ok {
		e.Kind, e.Num = jsontree.Number, n
	}
	return e
}

// benchmark reads the result of a benchmark. Times are milliseconds.
func benchmark(d *draft.Draft, v *jsontree.Value) {
	s := &d.P.Settings
	for key, e := range v.Members() {
		n := draft.Count(e.Int())
		switch {
		case key == "benchmark_result":
			result(d, e)
			continue
		case key == "engine":
			s.Engine = draft.Text(e.Str())
		case key == "version":
			s.EngineVersion = draft.Text(e.Str())
		case key == "orig_model_path":
			d.P.Model.Path = draft.Text(e.Str())
			if b := path.Base(strings.TrimPrefix(e.Str(), "zoo:")); b != "." && b != "/" {
				d.P.Model.Name = draft.Text(strings.TrimSuffix(b, ".onnx"))
			}
		case key == "batch_size" && n != nil:
			s.Batch = n
		case key == "num_cores" && n != nil:
			s.Threads = n
		default:
			keep(d, key, e)
			continue
		}
		d.Note(key, e.Brief())
	}
}

// keep keeps a member about the whole model: numbers as figures, others as notes.
func keep(d *draft.Draft, key string, e *jsontree.Value) {
	if f, ok := e.Float(); ok && e.Kind == jsontree.Number {
		q := profile.Quantity{Key: "benchmark_" + runlog.Key(key), Name: key}
		if key == "seconds_to_run" {
			q.Key, q.Unit = "benchmark_asked_s", "s"
		}
		d.Total(q, f)
		return
	}
	if e != nil && e.Kind != jsontree.Null {
		d.Note(key, e.Brief())
	}
}

// resultFields are members of a result that have own quantities.
var resultFields = draft.Fields{
	"items_per_sec": {Q: itemRate},
	"seconds_ran":   {Q: profile.Quantity{Key: "benchmark_s", Unit: "s", Name: "Time of the benchmark", Group: "Time"}},
}

var itemRate = profile.Quantity{Key: "items_per_s", Unit: "/s", Name: "Items per second", Group: "Rates", Better: 1}

func result(d *draft.Draft, v *jsontree.Value) {
	ms := func(key string) *float64 { return draft.Milli(v.Get(key).Float()) }
	m := &profile.Metric{Median: ms("median"), Mean: ms("mean"), StdDev: ms("std"), P90: ms("90.0%"), P95: ms("95.0%"), P99: ms("99.0%")}
	if n, ok := v.Get("iterations").Int(); ok {
		m.N = &n
	}
	d.P.Totals.Latency = draft.Metric(m)
	for key, item := range v.Members() {
		f, ok := item.Float()
		switch {
		case key == "median" || key == "mean" || key == "std" || key == "iterations" || key == "90.0%" || key == "95.0%" || key == "99.0%":
		case !ok:
			d.Note(key, item.Brief())
		case resultFields.Total(d, key, f):
		case strings.HasSuffix(key, "%"):
			d.Total(profile.Quantity{Key: "latency_p" + runlog.Key(key) + "_s", Unit: "s", Name: "Time, percentile " + key, Group: "Time"}, f/1e3)
		default:
			d.Total(profile.Quantity{Key: "result_" + runlog.Key(key), Name: key}, f)
		}
	}
}

// analyze reads layers and the layers inside them.
func analyze(d *draft.Draft, v *jsontree.Value) {
	var samples []float64
	for key, e := range v.Members() {
		n := draft.Count(e.Int())
		f, ok := e.Float()
		switch {
		case key == "layer_info":
			for _, l := range e.List() {
				layer(d, l, -1, 0)
			}
		case key == "iteration_times":
			for _, t := range e.List() {
				if f, ok := t.Float(); ok && f >= 0 {
					samples = append(samples, f/1e3)
				}
			}
		case key == "batch_size" && n != nil:
			d.P.Settings.Batch = n
		case key == "num_threads" && n != nil:
			d.P.Settings.Threads = n
		case key == "average_total_time":
			if d.P.Totals.Latency == nil {
				d.P.Totals.Latency = draft.Metric(&profile.Metric{Mean: draft.Milli(f, ok)})
			}
		case key == "items_per_second":
			if ok {
				d.Total(itemRate, f)
			}
		default:
			keep(d, key, e)
		}
	}
	if len(samples) > 0 {
		mean := d.P.Totals.Latency
		d.P.Totals.Latency, d.P.Totals.LatencySamples = draft.Samples(samples, "")
		if v, ok := mean.Best(); ok {
			d.Total(profile.Quantity{Key: "recorded_latency_s", Unit: "s", Name: "Time as recorded", Group: "Time"}, v)
		}
	}
}

// maxNesting limits the depth of layers within layers.
const maxNesting = 16

// layer adds a layer and those in it; it returns their time.
func layer(d *draft.Draft, v *jsontree.Value, parent, depth int) (seconds float64) {
	l := profile.Layer{Op: v.Get("name").Str(), Name: v.Get("canonical_name").Str()}
	if parent >= 0 {
		l.Parent = new(int64(parent))
	}
	h := runlog.Hint{}
	if l.Name != "" {
		h.Nodes, h.Outputs = []string{l.Name}, []string{l.Name}
	} else {
		l.Name = l.Op
	}
	i := d.Add(l, h)
	if i < 0 {
		return 0
	}
	for key, item := range v.Members() {
		if key != "sub_layer_info" {
			field(d, i, key, item)
		}
	}
	seconds, timed := d.Layer(i).Latency.Best()
	inside := 0.0
	parts := v.Get("sub_layer_info").List()
	if depth >= maxNesting {
		parts = nil
	}
	for _, s := range parts {
		inside += layer(d, s, i, depth+1)
	}
	if len(parts) > 0 && timed {
		y := d.Layer(i)
		y.Total = draft.Metric(&profile.Metric{Mean: &seconds})
		y.Latency = draft.Metric(&profile.Metric{Mean: new(max(0, seconds-inside)), Method: "without the layers inside it"})
	}
	return seconds
}

// Quantities of a layer.
var (
	utilisation = profile.Quantity{Key: "recorded_utilisation", Unit: "1", Head: "util.", Name: "Utilisation as recorded", Group: "Rates", Better: 1, Doc: "Part of the machine's peak that the layer reaches, by the engine."}
	flops       = profile.Quantity{Key: "recorded_ops_per_s", Unit: "/s", Head: "rec. op/s", Name: "Operations per second as recorded", Group: "Rates", Better: 1, Doc: "Rate of floating-point operations by the engine's count."}
)

var layerFields = draft.Fields{"average_utilization": {Q: utilisation}, "average_teraflops_per_second": {Q: flops, Scale: 1e12}}

// field keeps a member of a layer.
func field(d *draft.Draft, i int, key string, e *jsontree.Value) {
	f, ok := e.Float()
	y := d.Layer(i)
	switch {
	case key == "name" || key == "canonical_name":
	case key == "average_run_time_in_ms" && ok:
		y.Latency = draft.Metric(&profile.Metric{Mean: new(f / 1e3)})
	case ok && layerFields.Layer(d, i, key, f):
	case key == "activation_sparsity" && ok:
		if f >= 0 && f <= 1 {
			y.Sparsity = &profile.Sparsity{Activations: &f}
		}
	case key == "output_dims" && e.Kind == jsontree.Object:
		y.Outputs = []profile.Tensor{{Name: y.Name, Shape: dims(e.Items)}}
		d.Option(i, key, text(e))
	case e != nil && (e.Kind == jsontree.Object || e.Kind == jsontree.List):
		d.Option(i, key, text(e))
	case ok && e.Kind == jsontree.Number:
		d.Set(i, profile.Quantity{Key: "layer_" + runlog.Key(key), Name: key}, f)
	default:
		d.Option(i, key, e.Str())
	}
}

func dims(vs []*jsontree.Value) []int64 {
	out := []int64{}
	for _, v := range vs {
		n, ok := v.Int()
		if !ok {
			n = -1
		}
		out = append(out, max(-1, n))
	}
	return out
}

// text writes a map as n=16 c=3 h=3 w=3.
func text(e *jsontree.Value) string {
	if e.Kind != jsontree.Object || len(e.Keys) > 50 {
		return e.Brief()
	}
	var parts []string
	for k, item := range e.Members() {
		parts = append(parts, k+"="+item.Brief())
	}
	return strings.Join(parts, " ")
}

// readCSV reads the table of layers: maps became columns such as kernel_dims_h. A header that
// comes again begins another run.
func readCSV(f *record.File) ([]*runlog.Run, error) {
	var cols textscan.Columns
	var ds []*draft.Draft
	err := f.Lines(func(l string) {
		row := textscan.Fields(l, ',')
		switch c := textscan.NewColumns(row); {
		case isHeader(c):
			if cols = c; len(ds) < draft.MaxRuns {
				ds = append(ds, newDraft(f))
			}
		case len(row) >= 2 && len(ds) > 0:
			layer(ds[len(ds)-1], object(cols.Names(), row), -1, 0)
		}
	})
	return runs(ds, err)
}

// object makes the object of a row as the JSON has it.
func object(names, row []string) *jsontree.Value {
	v := &jsontree.Value{Kind: jsontree.Object}
	maps := map[string]*jsontree.Value{}
	for i, name := range names {
		cell := textscan.Cell(row, i)
		if cell == "" || name == "" {
			continue
		}
		e := scalar(cell)
		m := dimension.FindStringSubmatch(name)
		if m == nil {
			put(v, name, e)
			continue
		}
		if maps[m[1]] == nil {
			maps[m[1]] = &jsontree.Value{Kind: jsontree.Object}
			put(v, m[1], maps[m[1]])
		}
		put(maps[m[1]], m[2], e)
	}
	for _, m := range maps {
		inOrder(m)
	}
	return v
}

// dimension matches the column of a dimension, such as kernel_dims_h.
var dimension = lazyregexp.New(`^(output_dims|kernel_dims|strides)_(.*)$`)

// inOrder sorts dimensions, which a CSV has in any order.
func inOrder(m *jsontree.Value) {
	rank := func(k string) int { return strings.Index("n c d h w", k) }
	for i := range m.Keys {
		for k := i; k > 0 && rank(m.Keys[k]) < rank(m.Keys[k-1]); k-- {
			m.Keys[k], m.Keys[k-1] = m.Keys[k-1], m.Keys[k]
			m.Items[k], m.Items[k-1] = m.Items[k-1], m.Items[k]
		}
	}
}
