package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/report/page"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/xlsx"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// StudyOptions sets what is shown of a study.
type StudyOptions struct {
	// Speed, Loss and Plan name those that the table shows, "" for the last ones.
	Speed, Loss, Plan string
	// number of layers, those that take longest; 0 for all, in the model's order
	Top   int
	Width int // columns of the terminal, 0 for no limit
}

// StudyFormats are the formats of studies.
var StudyFormats = []string{"table", "csv", "json", "xlsx", "html"}

var studyEndings = map[string]string{".txt": "table", ".csv": "csv", ".json": "json", ".xlsx": "xlsx", ".html": "html"}

// StudyFormat is the format of a study by the ending of a file.
func StudyFormat(path string) (string, error) {
	if f := studyEndings[strings.ToLower(filepath.Ext(path))]; f != "" {
		return f, nil
	}
	return "", fmt.Errorf("%s: the ending does not name a format of studies: use one of .txt .csv .json .xlsx .html", path)
}

// WriteStudy writes a study in a format of [StudyFormats].
func WriteStudy(w io.Writer, s *study.Study, format string, o StudyOptions) error {
	switch format {
	case "table":
		return studyText(w, s, o)
	case "csv":
		return studyCSV(w, s)
	case "json":
		return jsonx.MarshalWrite(w, s)
	case "xlsx":
		return xlsx.WriteTables(w, "Study of "+s.Model.Name, studySheets(s))
	case "html":
		return page.WriteStudy(w, s, buildinfo.Version())
	}
	return fmt.Errorf("unknown format %q: use one of %s", format, strings.Join(StudyFormats, ", "))
}

// StudyFile writes a study to a file in the format that the ending names. The file appears whole
// or not at all.
func StudyFile(path string, s *study.Study, o StudyOptions) error {
	format, err := StudyFormat(path)
	if err != nil {
		return err
	}
	o.Width, o.Top = 0, 0
	return atomicfile.Stream(path, func(w io.Writer) error { return WriteStudy(w, s, format, o) })
}

// tables of a study.

// changeHeads and changeCells are the columns of a change.
var changeHeads = []string{"structure", "level", "format"}

func changeCells(c study.Change) []any {
	out := []any{nil, nil, nil}
	if c.Structure != study.Dense {
		out[0], out[1] = string(c.Structure), c.Level
	}
	if c.Format != study.OriginalFormat {
		out[2] = string(c.Format)
	}
	return out
}

// metricHeads and metricCells are those of a figure.
func metricHeads(key string) []string { return []string{key, key + "_low", key + "_high", key + "_n"} }

func metricCells(m *profile.Metric) []any {
	out := []any{nil, nil, nil, nil}
	if v, ok := middle(m); ok {
		out[0] = v
	}
	if low, high, ok := interval(m); ok {
		out[1], out[2] = low, high
	}
	if m != nil && m.N != nil {
		out[3] = *m.N
	}
	return out
}

// middle is the figure to show of a study's metric: its median, with which its interval goes.
func middle(m *profile.Metric) (float64, bool) {
	if m != nil && m.Median != nil {
		return *m.Median, true
	}
	return m.Best()
}

// interval is the 95 % interval of a figure, or the band of an estimate.
func interval(m *profile.Metric) (low, high float64, ok bool) {
	switch {
	case m == nil:
	case m.CI95 != nil:
		return m.CI95[0], m.CI95[1], true
	case m.Band != nil:
		return m.Band[0], m.Band[1], true
	}
	return 0, 0, false
}

func studySheets(s *study.Study) []xlsx.Table {
	return slices.DeleteFunc([]xlsx.Table{layerSheet(s), timeSheet(s), speedSheet(s), lossSheet(s), planSheet(s), choiceSheet(s), frontSheet(s), benchSheet(s)},
		func(t xlsx.Table) bool { return len(t.Rows) == 0 })
}

func layerName(s *study.Study, layer int) any {
	if layer < 0 || layer >= len(s.Layers) {
		return nil
	}
	return s.Layers[layer].Name
}

func optional[T int64 | float64](v *T) any {
	if v == nil {
		return nil
	}
	return *v
}

func filled(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func layerSheet(s *study.Study) xlsx.Table {
	t := xlsx.Table{Name: "Layers", Heads: []string{"layer", "node", "op", "name", "weight", "shape", "type", "rows", "cols", "groups", "params", "zeros", "sparsity", "macs", "cause"}}
	for i := range s.Layers {
		l := &s.Layers[i]
		sparsity := any(nil)
		if n := l.Weights(); n > 0 {
			sparsity = float64(l.Zeros) / float64(n)
		}
		shape := make([]string, len(l.Shape))
		for k, d := range l.Shape {
			shape[k] = strconv.Itoa(d)
		}
		t.Rows = append(t.Rows, []any{int64(i), int64(l.Node), l.Op, l.Name, l.Weight, strings.Join(shape, "x"), l.Type, int64(l.Rows), int64(l.Cols), int64(l.Groups), l.Params, l.Zeros, sparsity, optional(l.MACs), filled(string(l.Fixed))})
	}
	return t
}

func timeSheet(s *study.Study) xlsx.Table {
	t := xlsx.Table{Name: "Times", Heads: slices.Concat([]string{"speed", "target", "batch", "threads", "layer", "name"}, metricHeads("latency_s"), metricHeads("energy_j"), []string{"ops", "kernel", "limit", "fused"})}
	for _, p := range s.Speeds {
		for _, l := range p.Layers {
			t.Rows = append(t.Rows, slices.Concat([]any{p.Name, p.Target, int64(p.Batch), int64(p.Threads), int64(l.Layer), layerName(s, l.Layer)}, metricCells(l.Latency), metricCells(l.Energy),
				[]any{optional(l.Ops), filled(l.Kernel), filled(l.Limit), filled(positions(l.Fused))}))
		}
	}
	return t
}

func speedSheet(s *study.Study) xlsx.Table {
	t := xlsx.Table{Name: "Speed", Heads: slices.Concat([]string{"speed", "layer", "name"}, changeHeads, metricHeads("latency_s"), metricHeads("ratio"), metricHeads("rest_s"), metricHeads("energy_j"), []string{"others", "with", "kernel", "cause"})}
	for _, p := range s.Speeds {
		for _, x := range p.Points {
			others := make([]string, len(x.Affected))
			for i, o := range x.Affected {
				r, _ := middle(o.Ratio)
				others[i] = fmt.Sprintf("%d:%.4g", o.Layer, r)
			}
			t.Rows = append(t.Rows, slices.Concat([]any{p.Name, int64(x.Layer), layerName(s, x.Layer)}, changeCells(x.Change), metricCells(x.Latency), metricCells(x.Ratio), metricCells(x.RestS), metricCells(x.Energy),
				[]any{filled(strings.Join(others, " ")), filled(positions(x.With)), filled(x.Kernel), filled(string(x.Cause))}))
		}
	}
	return t
}

func lossSheet(s *study.Study) xlsx.Table {
	t := xlsx.Table{Name: "Loss", Heads: slices.Concat([]string{"loss", "method", "metric", "layer", "name"}, changeHeads, metricHeads("value"), []string{"with", "cause"})}
	for _, p := range s.Losses {
		for _, x := range p.Points {
			t.Rows = append(t.Rows, slices.Concat([]any{p.Name, string(p.Method), p.Metric, int64(x.Layer), layerName(s, x.Layer)}, changeCells(x.Change), metricCells(x.Value), []any{filled(positions(x.With)), filled(string(x.Cause))}))
		}
	}
	return t
}

// positions lists those of layers or operators: "3 5".
func positions(layers []int) string {
	out := make([]string, len(layers))
	for i, l := range layers {
		out[i] = strconv.Itoa(l)
	}
	return strings.Join(out, " ")
}

// roomCells are the bytes that are taken of a memory, and those that there are.
func roomCells(r *study.MemoryUse) []any {
	if r == nil {
		return []any{nil, nil}
	}
	return []any{r.Bytes, optional(r.Limit)}
}

func planSheet(s *study.Study) xlsx.Table {
	t := xlsx.Table{Name: "Plans", Heads: slices.Concat([]string{"plan", "speed", "loss", "compat", "outcome"}, metricHeads("latency_s"), metricHeads("speedup"), metricHeads("loss_value"), metricHeads("energy_j"), []string{"params", "zeros", "weight_bytes", "macs", "ram_bytes", "ram_limit", "flash_bytes", "flash_limit", "bound", "gap"})}
	for _, p := range s.Plans {
		row := func(what string, o *study.Outcome) {
			t.Rows = append(t.Rows, slices.Concat([]any{p.Name, p.Speed, p.Loss, filled(p.Compat), what}, metricCells(o.LatencyS), metricCells(o.Speedup), metricCells(o.Loss), metricCells(o.Energy),
				[]any{optional(o.Params), optional(o.Zeros), optional(o.Bytes), optional(o.MACs)}, roomCells(o.RAM), roomCells(o.Flash), []any{optional(p.Bound), optional(p.Gap)}))
		}
		row("predicted", &p.Predicted)
		if p.Measured != nil {
			row("measured", p.Measured)
		}
	}
	return t
}

func choiceSheet(s *study.Study) xlsx.Table {
	t := xlsx.Table{Name: "Choices", Heads: slices.Concat([]string{"plan", "layer", "name"}, changeHeads, []string{"latency_s", "loss_value", "cause"})}
	for _, p := range s.Plans {
		for _, c := range p.Choices {
			t.Rows = append(t.Rows, slices.Concat([]any{p.Name, int64(c.Layer), layerName(s, c.Layer)}, changeCells(c.Change), []any{optional(c.TimeS), optional(c.LossValue), filled(string(c.Cause))}))
		}
	}
	return t
}

func frontSheet(s *study.Study) xlsx.Table {
	t := xlsx.Table{Name: "Front", Heads: []string{"plan", "cost", "loss_value", "chosen"}}
	for _, p := range s.Plans {
		for _, f := range p.Front {
			t.Rows = append(t.Rows, []any{p.Name, f.Cost, f.Loss, f.Chosen})
		}
	}
	return t
}

func benchSheet(s *study.Study) xlsx.Table {
	t := xlsx.Table{Name: "Bench", Heads: slices.Concat([]string{"bench", "engine", "threads", "batch"}, metricHeads("before_s"), metricHeads("after_s"), metricHeads("speedup"), []string{"cause", "error"})}
	for _, b := range s.Benches {
		for _, p := range b.Points {
			t.Rows = append(t.Rows, slices.Concat([]any{b.Name, p.Engine, int64(p.Threads), int64(p.Batch)}, metricCells(p.Before), metricCells(p.After), metricCells(p.Speedup), []any{filled(string(p.Cause)), filled(p.Error)}))
		}
	}
	return t
}

// studyCSV writes all tables as one: a row has the cells of its own table, and the name of that.
func studyCSV(w io.Writer, s *study.Study) error {
	tables := studySheets(s)
	heads := []string{"table"}
	at := map[string]int{}
	for _, t := range tables {
		for _, h := range t.Heads {
			if at[h] == 0 {
				at[h] = len(heads)
				heads = append(heads, h)
			}
		}
	}
	out := csv.NewWriter(w)
	if err := out.Write(heads); err != nil {
		return err
	}
	line := make([]string, len(heads))
	for _, t := range tables {
		for _, r := range t.Rows {
			clear(line)
			line[0] = strings.ToLower(t.Name)
			for i, v := range r {
				line[at[t.Heads[i]]] = csvCell(v)
			}
			if err := out.Write(line); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

func csvCell(v any) string {
	switch x := v.(type) {
	case string:
		return text.Cell(x)
	case float64:
		return PlainNumber(x)
	case int64:
		return strconv.FormatInt(x, 10)
	case bool:
		return strconv.FormatBool(x)
	}
	return ""
}
