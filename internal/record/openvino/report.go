package openvino

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsontree"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// runReport is a benchmark_report.
type runReport struct {
	pairs  [][2]string // of all sections
	groups []group
}

// group is the latency of the inputs of one shape: median, mean, minimum and maximum in
// milliseconds.
type group struct {
	shape string
	ms    [4]float64
}

// readReport reads a report, nil if it has no content.
func readReport(f *record.File) (out *runReport, err error) {
	out = &runReport{}
	if kindOf(f) == reportJSON {
		err = out.json(f)
	} else {
		err = out.csv(f)
	}
	if len(out.pairs)+len(out.groups) == 0 {
		return nil, cmp.Or(err, draft.ErrNothing)
	}
	return out, err
}

func (r *runReport) csv(f *record.File) error {
	grouped := false
	return f.Lines(func(l string) {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "Data shape;") {
			grouped = true
			return
		}
		fields := strings.Split(strings.TrimSuffix(l, ";"), ";")
		n := len(fields)
		switch {
		case len(r.pairs)+len(r.groups) > 10_000:
		case grouped && n >= 5:
			g := group{shape: strings.Join(fields[:n-4], ";")}
			for i := range g.ms {
				g.ms[i], _ = textscan.Number(fields[n-4+i])
			}
			r.groups = append(r.groups, g)
		case n >= 2:
			r.pairs = append(r.pairs, [2]string{fields[0], strings.Join(fields[1:], ";")})
		default:
			grouped = false
		}
	})
}

// line adds a figure that the tool printed at its end, with its unit.
func (r *runReport) line(name, figure, unit string) {
	name = strings.ToLower(name)
	switch name {
	case "count":
		name = "number of iterations"
	case "median", "average", "min", "max", "avg":
		name = "latency " + name
	}
	name = strings.TrimSuffix(name, " took")
	if strings.HasSuffix(name, " model") {
		name += " time"
	}
	if unit == "ms" {
		name += " (ms)"
	}
	if v, ok := textscan.Decimal(figure); ok {
		figure = strconv.FormatFloat(v, 'f', -1, 64)
	}
	if len(r.pairs) < 1000 {
		r.pairs = append(r.pairs, [2]string{name, figure})
	}
}

// json reads sections of objects.
func (r *runReport) json(f *record.File) error {
	v, _, err := f.ParseJSON(maxJSON)
	if err != nil {
		return err
	}
	for _, section := range v.Items {
		for key, e := range section.Members() {
			if e.Kind != jsontree.List {
				r.pairs = append(r.pairs, [2]string{key, e.Brief()})
			}
			for _, g := range e.List() {
				x := group{shape: g.Get("data_shape").Str()}
				for i, key := range []string{"latency_median", "latency_average", "latency_min", "latency_max"} {
					x.ms[i], _ = g.Get(key).Float()
				}
				r.groups = append(r.groups, x)
			}
		}
	}
	return nil
}

// times maps names in reports to parts of the latency.
var times = map[string]func(m *profile.Metric) **float64{
	"latency": median, "latency median": median,
	"latency avg": mean, "latency average": mean, "avg latency": mean,
	"latency min": least, "min latency": least,
	"latency max": greatest, "max latency": greatest,
}

func median(m *profile.Metric) **float64   { return &m.Median }
func mean(m *profile.Metric) **float64     { return &m.Mean }
func least(m *profile.Metric) **float64    { return &m.Min }
func greatest(m *profile.Metric) **float64 { return &m.Max }

// phase returns the phase that a name in a report describes, nil for other names.
func phase(p *profile.Phases, name string) **float64 {
	for _, x := range []struct {
		part string
		to   **float64
	}{
		{"first inference time", &p.FirstRunS},
		{"read model time", &p.LoadS},
		{"read network time", &p.LoadS},
		{"compile model time", &p.PlanS},
		{"load network time", &p.PlanS},
	} {
		if strings.Contains(name, x.part) {
			return x.to
		}
	}
	return nil
}

// into puts the figures into a run.
func (r *runReport) into(d *draft.Draft) {
	if len(r.pairs)+len(r.groups) == 0 {
		return
	}
	m := &profile.Metric{}
	ph := profile.Phases{}
	if d.P.Phases != nil {
		ph = *d.P.Phases
	}
	for _, p := range r.pairs {
		key, text := strings.ToLower(p[0]), p[1]
		v, number := textscan.Number(text)
		name := strings.ReplaceAll(strings.TrimSuffix(strings.ReplaceAll(key, "_", " "), " (ms)"), "(ms)", "")
		to := phase(&ph, name)
		switch {
		case key == "m" || key == "model":
			base := text[strings.LastIndexAny(text, `/\`)+1:]
			d.P.Model.Path, d.P.Model.Name = draft.Text(text), cmp.Or(draft.Text(strings.TrimSuffix(base, ".xml")), "unnamed")
			d.Note(p[0], text)
		case !number:
			if key == "target device" || key == "target_device" {
				d.P.Target.Description = draft.Text(text)
			}
			d.Note(p[0], text)
		case times[name] != nil:
			*times[name](m) = new(v / 1e3)
		case name == "number of iterations" || name == "iterations num" || name == "count":
			if n := draft.Count(textscan.Whole(text)); n != nil {
				m.N, d.P.Settings.Runs = n, n
			}
		case name == "throughput":
			d.Total(profile.Quantity{Key: "inferences_per_s", Unit: "/s", Name: "Inferences per second", Group: "Rates", Better: 1}, v)
		case to != nil:
			if v >= 0 {
				*to = new(v / 1e3)
				d.P.Phases = &ph
			}
		case strings.Contains(key, "(ms)") || strings.Contains(name, " time") || strings.Contains(name, "latency"):
			d.Total(profile.Quantity{Key: "report_" + runlog.Key(name) + "_s", Unit: "s", Name: "Report: " + name, Group: "Time"}, v/1e3)
		default:
			d.Total(profile.Quantity{Key: "report_" + runlog.Key(name), Name: "Report: " + p[0]}, v)
		}
	}
	for _, g := range r.groups {
		for i, part := range []string{"median", "mean", "min", "max"} {
			v := g.ms[i] / 1e3
			if to := []**float64{&m.Median, &m.Mean, &m.Min, &m.Max}[i]; len(r.groups) == 1 && (i > 0 || *to == nil) {
				*to = &v
			}
			d.Total(profile.Quantity{Key: "group_" + runlog.Key(g.shape) + "_" + part + "_s", Unit: "s", Name: "Latency of " + g.shape + ", " + part, Group: "Time"}, v)
		}
	}
	if m = draft.Metric(m); m != nil {
		m.Method = "benchmark_app's own clock"
		d.P.Totals.Latency, d.P.Totals.LatencySamples = m, nil
	}
}
