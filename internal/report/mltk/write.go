package mltk

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/profile"
)

// Text writes the summary and the table of layers.
func Text(w io.Writer, p *profile.Profile, o Options) error {
	r := newResult(p, o)
	var b strings.Builder
	show := func(f field) string {
		v := f.value
		if !o.Raw {
			v = units(f)
		}
		s := plain(v, "None")
		if o.Text != nil {
			s = o.Text(s)
		}
		return s
	}
	b.WriteString("Profiling Summary\n")
	for _, f := range r.summary {
		b.WriteString(f.label + ": " + show(f) + "\n")
	}
	b.WriteString("\nModel Layers\n")
	rows := make([][]string, 0, len(r.layers)+1)
	for _, l := range r.layers {
		if len(rows) == 0 {
			head := make([]string, len(l))
			for i, f := range l {
				head[i] = f.label
			}
			rows = append(rows, head)
		}
		row := make([]string, len(l))
		for i, f := range l {
			if row[i] = show(f); f.key == "error_msg" && f.value == nil && !o.Raw {
				row[i] = ""
			}
		}
		rows = append(rows, row)
	}
	boxed(&b, rows)
	if r.plan != nil {
		r.plan.text(&b, o)
	}
	if r.remark != "" {
		b.WriteString("\nIncomplete: " + show(field{value: r.remark}) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// boxed draws a table with a frame, flush left, the first row being its head.
func boxed(b *strings.Builder, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	width := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, c := range r {
			width[i] = max(width[i], text.Width(c))
		}
	}
	rule := "+"
	for _, n := range width {
		rule += strings.Repeat("-", n+2) + "+"
	}
	rule += "\n"
	b.WriteString(rule)
	for i, r := range rows {
		b.WriteByte('|')
		for k, c := range r {
			b.WriteString(" " + c + strings.Repeat(" ", width[k]-text.Width(c)) + " |")
		}
		b.WriteByte('\n')
		if i == 0 {
			b.WriteString(rule)
		}
	}
	b.WriteString(rule)
}

// JSON writes the summary and the layers with plain numbers.
func JSON(w io.Writer, p *profile.Profile, o Options) error {
	o.Raw = true
	return writeJSON(w, p, o)
}

func writeJSON(w io.Writer, p *profile.Profile, o Options) error {
	r := newResult(p, o)
	for i, f := range r.summary {
		if name, ok := f.value.(string); ok && f.key == "accelerator" && name != "None" {
			r.summary[i].value = strings.ToLower(name) // as scripts pass it to the profiler
		}
	}
	values := func(fs []field) object {
		out := object{}
		for _, f := range fs {
			switch {
			case o.Raw:
			case f.key == "error_msg" && f.value == nil:
				f.value = ""
			default:
				f.value = units(f)
			}
			out = append(out, f)
		}
		return out
	}
	labels := func(fs []field) object {
		out := object{}
		for _, f := range fs {
			out = append(out, field{key: f.key, value: f.label})
		}
		return out
	}
	layers := []object{}
	var heads []field
	for _, l := range r.layers {
		layers, heads = append(layers, values(l)), l
	}
	doc := object{
		{key: "summary", value: values(r.summary)},
		{key: "summary_labels", value: labels(r.summary)},
		{key: "layers", value: layers},
		{key: "layer_labels", value: labels(heads)},
	}
	if r.plan != nil {
		doc = append(doc, field{key: "memory_plan", value: r.plan.object()})
	}
	if r.remark != "" {
		doc = append(doc, field{key: "incomplete", value: r.remark})
	}
	return jsonx.MarshalWrite(w, doc)
}

// object is a JSON object with its members in order.
type object []field

// MarshalJSON implements the interface of JSON libraries.
func (o object) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, f := range o {
		if i > 0 {
			out = append(out, ',')
		}
		key, err := jsonx.Marshal(f.key)
		if err != nil {
			return nil, err
		}
		value, err := jsonx.Marshal(f.value)
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, key...), ':'), value...)
	}
	return append(out, '}'), nil
}

// CSV writes two tables with plain numbers: the summary in one row, an empty
// line, and the layers. Their heads are the keys of the JSON.
func CSV(w io.Writer, p *profile.Profile, o Options) error {
	r := newResult(p, o)
	out := csv.NewWriter(w)
	table := func(rows [][]field) error {
		for i, fs := range rows {
			head, row := make([]string, len(fs)), make([]string, len(fs))
			for k, f := range fs {
				head[k], row[k] = f.key, plain(f.value, "")
				if _, ok := f.value.(string); ok && o.Text != nil {
					row[k] = o.Text(row[k])
				}
			}
			if i == 0 {
				if err := out.Write(head); err != nil {
					return err
				}
			}
			if err := out.Write(row); err != nil {
				return err
			}
		}
		out.Flush()
		return out.Error()
	}
	if err := table([][]field{r.summary}); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return table(r.layers)
}

// Folder writes the report as text and JSON into a folder, which it makes if
// absent, and returns the names of the two files.
func Folder(dir string, p *profile.Profile, o Options) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	source := "simulated"
	switch p.Target.Kind {
	case profile.TargetDevice:
		source = "embedded"
	case profile.TargetHost:
		// Not a name of that profiler: nobody shall take these times for a chip's.
		source = "host"
	}
	accelerator, _ := summary(p, &layer{}, 0, 0, o)[1].value.(string)
	name := "profiling_report-"
	if a := strings.ToLower(filepath.Base(accelerator)); a != "none" {
		name += a + "-" // without an accelerator there is nothing to name
	}
	base := filepath.Join(dir, name+source)
	text, data := base+".txt", base+".json"
	return []string{text, data}, errors.Join(
		atomicfile.Stream(text, func(w io.Writer) error { return Text(w, p, o) }),
		atomicfile.Stream(data, func(w io.Writer) error { return writeJSON(w, p, o) }),
	)
}

// bare are the keys whose numbers never get a prefix, with the decimals of those
// that are not whole.
var bare = map[string]int{"index": 0, "n_layers": 0, "n_unsupported_layers": 0, "cpu_utilization": 1, "inf_per_sec": 1}

// units writes a number with a decimal prefix, one decimal and no blank between;
// everything else stays as it is.
func units(f field) any {
	var v float64
	switch x := f.value.(type) {
	case int64:
		v = float64(x)
	case float64:
		v = x
	default:
		return f.value
	}
	if decimals, ok := bare[f.key]; ok {
		if decimals == 0 {
			return f.value
		}
		return strconv.FormatFloat(v, 'f', decimals, 64)
	}
	return prefixed(v)
}

// prefixed writes 0.0355 as 35.5m, 2835000 as 2.8M and 0 as 0.
func prefixed(v float64) string {
	if v == 0 {
		return "0"
	}
	scale, prefix := 1e-12, "p"
	for _, s := range []struct {
		scale  float64
		prefix string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}, {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}} {
		if math.Abs(v) >= s.scale {
			scale, prefix = s.scale, s.prefix
			break
		}
	}
	return strconv.FormatFloat(v/scale, 'f', 1, 64) + prefix
}

// plain writes a value as Python's str does, which the profiler's readers know.
func plain(v any, none string) string {
	switch v := v.(type) {
	case nil:
		return none
	case bool:
		if v {
			return "True"
		}
		return "False"
	case float64:
		if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e16) {
			return strconv.FormatFloat(v, 'e', -1, 64)
		}
		s := strconv.FormatFloat(v, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	return fmt.Sprint(v)
}
