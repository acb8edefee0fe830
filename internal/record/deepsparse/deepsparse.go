// Package deepsparse reads and writes what the tools of DeepSparse export: results of
// deepsparse.benchmark as JSON, and layers of deepsparse.analyze as JSON, CSV or a table.
//
// Source of the formats: benchmark_model.py, analyze.py and debug_analysis.py of the
// DeepSparse project.
package deepsparse

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsontree"
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
		Files: "JSON of deepsparse.benchmark --export_path, JSON or CSV of deepsparse.analyze",
		Gives: []string{"latency_s", "samples", "sparsity_activations", "shapes", "options"},
		Match: match,
		Read:  read,
	}
}

func match(f *record.File) record.Sure {
	has := func(keys ...string) bool {
		for _, k := range keys {
			if !bytes.Contains(f.Head, []byte(k)) {
				return false
			}
		}
		return true
	}
	switch {
	case has(`"benchmark_result"`, `"items_per_sec"`), has(`"layer_info"`, `"average_total_time"`), has(`"layer_info"`, `"canonical_name"`):
		return record.Certain
	case isCSV(f):
		return record.Certain
	}
	return record.No
}

// isCSV looks for the header of analyze, whose columns come in any order.
func isCSV(f *record.File) bool {
	if !textscan.Any(f.Head, "canonical_name") {
		return false
	}
	ls := textscan.Head(f.Head, f.Whole)
	if len(ls) == 0 {
		return false
	}
	c := textscan.NewColumns(textscan.Fields(ls[0], ','))
	return c.At("canonical_name") >= 0 && c.At("average_run_time_in_ms") >= 0
}

// maxBytes bounds a file.
const maxBytes = 64 << 20

func read(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	return record.EachFile(ctx, in, func(f *record.File) ([]*runlog.Run, error) {
		d := draft.New("deepsparse", draft.Stem(f), "DeepSparse")
		if isCSV(f) {
			err := readCSV(d, f, in)
			if d.Empty() {
				if err == nil {
					err = draft.ErrNothing
				}
				return nil, err
			}
			return []*runlog.Run{d.Run()}, err
		}
		text, err := f.Read(maxBytes)
		if err != nil {
			return nil, err
		}
		v, fault := jsontree.Parse(text)
		if v.Has("layer_info") {
			analyze(d, v)
		} else {
			benchmark(d, v)
		}
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
	})
}

// benchmark reads the result of a benchmark. Times are milliseconds.
func benchmark(d *draft.Draft, v *jsontree.Value) {
	s := &d.P.Settings
	for key, e := range v.Members() {
		n, whole := e.Int()
		whole = whole && n >= 0
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
		case key == "batch_size" && whole:
			s.Batch = &n
		case key == "num_cores" && whole:
			s.Threads = &n
		default:
			keep(d, key, e)
			continue
		}
		d.Note(key, e.Brief())
	}
}

// keep keeps a key of the whole: numbers as figures, the rest as remarks.
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

func result(d *draft.Draft, v *jsontree.Value) {
	ms := func(key string) *float64 {
		if f, ok := v.Get(key).Float(); ok {
			return new(f / 1e3)
		}
		return nil
	}
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
		case key == "items_per_sec":
			d.Total(profile.Quantity{Key: "items_per_s", Unit: "/s", Name: "Items per second", Group: "Rates", Better: 1}, f)
		case key == "seconds_ran":
			d.Total(profile.Quantity{Key: "benchmark_s", Unit: "s", Name: "Time of the benchmark", Group: "Time"}, f)
		case strings.HasSuffix(key, "%"):
			d.Total(profile.Quantity{Key: "latency_p" + runlog.Key(key) + "_s", Unit: "s", Name: "Time, percentile " + key, Group: "Time"}, f/1e3)
		default:
			d.Total(profile.Quantity{Key: "result_" + runlog.Key(key), Name: key}, f)
		}
	}
}

// analyze reads layers and what is inside them.
func analyze(d *draft.Draft, v *jsontree.Value) {
	var samples []float64
	for key, e := range v.Members() {
		n, whole := e.Int()
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
		case key == "batch_size" && whole && n >= 0:
			d.P.Settings.Batch = &n
		case key == "num_threads" && whole && n >= 0:
			d.P.Settings.Threads = &n
		case key == "average_total_time":
			if f, ok := e.Float(); ok && d.P.Totals.Latency == nil {
				d.P.Totals.Latency = draft.Metric(&profile.Metric{Mean: new(f / 1e3)})
			}
		case key == "items_per_second":
			if f, ok := e.Float(); ok {
				d.Total(profile.Quantity{Key: "items_per_s", Unit: "/s", Name: "Items per second", Group: "Rates", Better: 1}, f)
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

// maxNesting bounds layers within layers.
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
	inside, n := 0.0, 0
	if depth < maxNesting {
		for _, s := range v.Get("sub_layer_info").List() {
			inside += layer(d, s, i, depth+1)
			n++
		}
	}
	if n > 0 && timed {
		y := d.Layer(i)
		y.Total = draft.Metric(&profile.Metric{Mean: &seconds})
		y.Latency = draft.Metric(&profile.Metric{Mean: new(max(0, seconds-inside)), Method: "without the layers inside it"})
	}
	return seconds
}

var (
	utilisation = profile.Quantity{Key: "recorded_utilisation", Unit: "1", Head: "util.", Name: "Utilisation as recorded", Group: "Rates", Better: 1, Doc: "Part of the machine's peak that the layer reaches, by the engine."}
	flops       = profile.Quantity{Key: "recorded_ops_per_s", Unit: "/s", Head: "rec. op/s", Name: "Operations per second as recorded", Group: "Rates", Better: 1, Doc: "Rate of floating-point operations by the engine's count."}
)

// field keeps a key of a layer.
func field(d *draft.Draft, i int, key string, e *jsontree.Value) {
	f, ok := e.Float()
	y := d.Layer(i)
	switch {
	case key == "name" || key == "canonical_name":
	case key == "average_run_time_in_ms" && ok:
		y.Latency = draft.Metric(&profile.Metric{Mean: new(f / 1e3)})
	case key == "average_utilization" && ok:
		d.Set(i, utilisation, f)
	case key == "average_teraflops_per_second" && ok:
		d.Set(i, flops, f*1e12)
	case key == "activation_sparsity" && ok:
		if f >= 0 && f <= 1 {
			if y.Sparsity == nil {
				y.Sparsity = &profile.Sparsity{}
			}
			y.Sparsity.Activations = &f
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
		if !ok || n < 0 {
			n = -1
		}
		out = append(out, n)
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

// readCSV reads the table of layers: maps became columns such as kernel_dims_h.
func readCSV(d *draft.Draft, f *record.File, in *record.Input) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	s := textscan.NewScanner(r)
	var cols textscan.Columns
	for s.Scan() {
		row := textscan.Fields(s.Text(), ',')
		if cols.Names() == nil {
			cols = textscan.NewColumns(row)
			continue
		}
		if len(row) < 2 {
			continue
		}
		v := &jsontree.Value{Kind: jsontree.Object}
		put := func(to *jsontree.Value, key string, e *jsontree.Value) {
			to.Keys, to.Items = append(to.Keys, key), append(to.Items, e)
		}
		maps := map[string]*jsontree.Value{}
		for i, name := range cols.Names() {
			cell := textscan.Cell(row, i)
			if cell == "" || name == "" {
				continue
			}
			e := &jsontree.Value{Kind: jsontree.String, Text: cell}
			if n, err := strconv.ParseFloat(cell, 64); err == nil {
				e = &jsontree.Value{Kind: jsontree.Number, Num: n, Text: cell}
			}
			if base, dim, ok := dimension(name); ok {
				if maps[base] == nil {
					maps[base] = &jsontree.Value{Kind: jsontree.Object}
					put(v, base, maps[base])
				}
				put(maps[base], dim, e)
				continue
			}
			put(v, name, e)
		}
		for _, m := range maps {
			inOrder(m)
		}
		layer(d, v, -1, 0)
	}
	if s.Err() != nil {
		return draft.At(f, s.Number(), s.Err())
	}
	return nil
}

// dimension parts kernel_dims_h into kernel_dims and h.
func dimension(name string) (base, dim string, ok bool) {
	for _, b := range []string{"output_dims", "kernel_dims", "strides"} {
		if rest, ok := strings.CutPrefix(name, b+"_"); ok {
			return b, rest, true
		}
	}
	return "", "", false
}

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
