package sensiml

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/opmeter/opmeter/internal/base/jsontree"
	"github.com/opmeter/opmeter/internal/base/jsonx"
)

// metrics is the result in the shape of the vendor's parser, with the right figures. Generators
// of a name that occurs several times have their columns beside it.
func (res *Result) metrics() *metrics {
	out := &metrics{runs: res.Runs}
	for i := range res.Models {
		m := &res.Models[i]
		times, cycles := table{}, table{}
		for k, name := range names(m.Features) {
			t, c := m.Features[k].cells(name)
			times, cycles = append(times, t), append(cycles, c)
		}
		out.featureTime, out.featureCycles = append(out.featureTime, times), append(out.featureCycles, cycles)
		classifier := m.Classifier
		if classifier == nil {
			classifier = &Row{}
		}
		t, c := classifier.cells(m.Type)
		if m.Type == "" {
			t.null, c.null = true, true
		}
		out.classifierTime, out.classifierCycles = append(out.classifierTime, table{t}), append(out.classifierCycles, table{c})
	}
	return out
}

// names are those of rows, made different: "Mean" where there is one, "Mean AccelerometerX" where
// there are several, with a number where that is not enough.
func names(rows []Row) []string {
	functions, full := map[string]int{}, map[string]int{}
	for i := range rows {
		functions[rows[i].Function]++
	}
	out := make([]string, len(rows))
	for i := range rows {
		r := &rows[i]
		out[i] = r.Name
		if r.Function != "" && functions[r.Function] == 1 {
			out[i] = r.Function
		}
		if full[out[i]]++; full[out[i]] > 1 {
			out[i] += fmt.Sprintf(" #%d", full[out[i]])
			full[out[i]]++
		}
	}
	return out
}

func (r *Row) cells(name string) (seconds, cycles cell) {
	seconds, cycles = cell{name: name, absent: true}, cell{name: name, absent: true}
	if r.Time != nil {
		seconds = cell{name: name, text: strconv.FormatFloat(r.Time.Mean, 'f', 9, 64), quoted: true}
	}
	if r.Cycles != nil {
		cycles = cell{name: name, text: strconv.FormatFloat(math.RoundToEven(r.Cycles.Mean), 'f', 0, 64)}
	}
	return seconds, cycles
}

// document is everything, with the keys of the vendor's parser first.
type document struct {
	FeatureTime     any     `json:"FeatureTimePerInference"`
	FeatureCycles   any     `json:"FeatureCyclesPerInference"`
	ClassifierTime  any     `json:"ClassifierAverageTime"`
	ClassifierCycle any     `json:"ClassifierAverageCycles"`
	Runs            any     `json:"RunCount"`
	Result          *Result `json:"result"`
}

// WriteJSON writes everything: the keys of the vendor's parser with the right figures, and under
// "result" all that is known.
func (res *Result) WriteJSON(w io.Writer) error {
	v := res.metrics().values()
	b, err := jsonx.MarshalIndent(document{v[keyFeatureTime], v[keyFeatureCycles], v[keyClassifierTime], v[keyClassifierCycle], v[keyRuns], res})
	if err == nil {
		_, err = w.Write(append(bytes.TrimRight(b, "\n"), '\n'))
	}
	return err
}

// WriteYAML writes what WriteJSON does as YAML.
func (res *Result) WriteYAML(w io.Writer) error {
	var b bytes.Buffer
	if err := res.WriteJSON(&b); err != nil {
		return err
	}
	doc, err := jsontree.Parse(b.Bytes())
	if err != nil {
		return err
	}
	var out strings.Builder
	yamlValue(&out, doc, 0, false)
	_, err = io.WriteString(w, out.String())
	return err
}

// yamlValue writes a value behind a key or a dash, with lines below it indented; item says that it
// stands behind a dash.
func yamlValue(out *strings.Builder, v *jsontree.Value, indent int, item bool) {
	pad := strings.Repeat("  ", indent)
	switch {
	case v.Kind == jsontree.Object && len(v.Items) > 0:
		if !item && indent > 0 {
			out.WriteByte('\n')
		}
		for i, x := range v.Items {
			if i > 0 || !item {
				out.WriteString(pad)
			}
			out.WriteString(yamlText(v.Keys[i]) + ":")
			if len(x.Items) == 0 {
				out.WriteByte(' ')
			}
			yamlValue(out, x, indent+1, false)
		}
	case v.Kind == jsontree.List && len(v.Items) > 0:
		out.WriteByte('\n')
		pad = strings.Repeat("  ", indent-1)
		for _, x := range v.Items {
			out.WriteString(pad + "- ")
			yamlValue(out, x, indent, true)
		}
	case v.Kind == jsontree.Object:
		out.WriteString("{}\n")
	case v.Kind == jsontree.List:
		out.WriteString("[]\n")
	case v.Kind == jsontree.Null:
		out.WriteString("null\n")
	case v.Kind == jsontree.String:
		out.WriteString(yamlText(v.Str()) + "\n")
	default:
		out.WriteString(v.Str() + "\n")
	}
}

// labelled is a row with what it is.
type labelled struct {
	model *ModelResult
	kind  string
	*Row
}

// all are the rows of the result in order.
func (res *Result) all() (out []labelled) {
	for i := range res.Models {
		m := &res.Models[i]
		add := func(kind string, rows []Row) {
			for k := range rows {
				out = append(out, labelled{m, kind, &rows[k]})
			}
		}
		add("generator", m.Features)
		if m.Classifier != nil {
			out = append(out, labelled{m, "classifier", m.Classifier})
		}
		if m.Whole != nil {
			out = append(out, labelled{m, "whole", m.Whole})
		}
		add("sum of a generator", m.ByGenerator)
		add("sum of a sensor", m.BySensor)
		add("sum of a category", m.ByCategory)
	}
	return out
}

var csvStats = []string{"mean", "median", "p5", "p95", "min", "max", "sigma", "low", "high", "first"}

// WriteCSV writes a line for each generator, classifier, whole and sum. Fields of figures that are
// not known are empty.
func (res *Result) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	head := []string{"model", "model_name", "row", "name", "generator", "columns", "category", "slot", "state", "n", "left"}
	for _, unit := range []string{"_cycles", "_s"} {
		for _, s := range csvStats {
			head = append(head, s+unit)
		}
	}
	_ = c.Write(append(head, "share"))
	for _, r := range res.all() {
		slot, n, left := "", "", ""
		if r.Slot != nil {
			slot = itoa(*r.Slot)
		}
		if s := r.best(); s != nil {
			n, left = itoa(s.N), itoa(s.Left)
		}
		line := []string{itoa(r.model.Index), r.model.Name, r.kind, r.Name, r.Function, strings.Join(r.Columns, "+"), r.Category, slot, string(r.State), n, left}
		for _, s := range []*Stats{r.Cycles, r.Time} {
			line = append(line, s.fields()...)
		}
		share := ""
		if r.Share != nil {
			share = number(*r.Share)
		}
		_ = c.Write(append(line, share))
	}
	c.Flush()
	return c.Error()
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func (s *Stats) fields() []string {
	out := make([]string, len(csvStats))
	if s == nil {
		return out
	}
	for i, v := range []*float64{&s.Mean, &s.Median, &s.P5, &s.P95, &s.Min, &s.Max, s.Sigma, s.Low, s.High, s.First} {
		if v != nil {
			out[i] = number(*v)
		}
	}
	return out
}

// WriteTable writes the result for people.
func (res *Result) WriteTable(w io.Writer) error {
	var b bytes.Buffer
	for i := range res.Models {
		res.table(&b, &res.Models[i])
	}
	for _, f := range res.Findings {
		mark := "note"
		if f.Warning {
			mark = "warning"
		}
		fmt.Fprintf(&b, "%s: %s\n", mark, f.Text)
	}
	if res.Incomplete != "" {
		fmt.Fprintf(&b, "incomplete: %s\n", res.Incomplete)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (res *Result) table(b *bytes.Buffer, m *ModelResult) {
	fmt.Fprintf(b, "Model %d", m.Index)
	for _, s := range []string{m.Name, m.Type} {
		if s != "" {
			fmt.Fprintf(b, "  %s", s)
		}
	}
	fmt.Fprintf(b, "  %d inferences", m.Runs)
	if m.Warmup > 0 {
		fmt.Fprintf(b, " after %d of warm-up", m.Warmup)
	}
	b.WriteString("\n\n")
	scale, unit := 1.0, "cycles"
	if res.Unit == "ns" || res.ClockHz != nil {
		scale, unit = 1e6, "µs"
	}
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "n\tmean, %s\tmedian\tp95\tmax\tσ\tshare\t\n", unit)
	row := func(name string, r *Row) {
		s := r.best()
		if s == nil {
			fmt.Fprintf(t, "-\t-\t-\t-\t-\t-\t-\t %s: %s\n", name, cmp.Or(r.State, NotReported))
			return
		}
		sigma, share := "-", "-"
		if s.Sigma != nil {
			sigma = figure(*s.Sigma * scale)
		}
		if r.Share != nil {
			share = fmt.Sprintf("%.1f%%", *r.Share*100)
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t %s\n", s.N, figure(s.Mean*scale), figure(s.Median*scale), figure(s.P95*scale), figure(s.Max*scale), sigma, share, name)
	}
	for i := range m.Features {
		row(m.Features[i].Name, &m.Features[i])
	}
	if m.Classifier != nil {
		row(strings.TrimSpace("classifier "+m.Type), m.Classifier)
	}
	if m.Whole != nil {
		name := "whole"
		if m.Partial {
			name = "whole, without those not reported"
		}
		row(name, m.Whole)
	}
	_ = t.Flush()
	if len(m.BySensor) > 1 {
		b.WriteString("\nby sensor\n")
		for i := range m.BySensor {
			row(m.BySensor[i].Name, &m.BySensor[i])
		}
		_ = t.Flush()
	}
	if len(m.ByGenerator) > 0 && len(m.ByGenerator) < len(m.Features) {
		b.WriteString("\nby generator\n")
		for i := range m.ByGenerator {
			row(m.ByGenerator[i].Name, &m.ByGenerator[i])
		}
		_ = t.Flush()
	}
	if len(m.Classes) > 0 {
		var list []string
		for _, c := range m.Classes {
			list = append(list, fmt.Sprintf("%s %d×", cmp.Or(c.Label, "class "+itoa(c.Number)), c.N))
		}
		fmt.Fprintf(b, "\nresults: %s\n", strings.Join(list, ", "))
	}
	if m.Load != nil {
		fmt.Fprintf(b, "load: %.1f%% of the time between two windows\n", *m.Load*100)
	}
	b.WriteByte('\n')
}

// figure writes a number for people.
func figure(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 || math.Abs(v) >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
