package openvino

import (
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

// group is the latency of the inputs of one shape, milliseconds.
type group struct {
	shape                  string
	median, mean, min, max float64
}

func readReport(f *record.File, in *record.Input) (*runReport, error) {
	if kindOf(f) == reportJSON {
		return readReportJSON(f, in)
	}
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	s := textscan.NewScanner(r)
	out := &runReport{}
	grouped := false
	for s.Scan() {
		l := strings.TrimSpace(s.Text())
		if strings.HasPrefix(l, "Data shape;") {
			grouped = true
			continue
		}
		fields := strings.Split(strings.TrimSuffix(l, ";"), ";")
		switch {
		case len(out.pairs)+len(out.groups) > 10_000:
		case grouped && len(fields) >= 5:
			g := group{shape: strings.Join(fields[:len(fields)-4], ";")}
			for i, to := range []*float64{&g.median, &g.mean, &g.min, &g.max} {
				*to, _ = textscan.Number(fields[len(fields)-4+i])
			}
			out.groups = append(out.groups, g)
		case len(fields) >= 2:
			out.pairs = append(out.pairs, [2]string{fields[0], strings.Join(fields[1:], ";")})
		default:
			grouped = false
		}
	}
	if len(out.pairs)+len(out.groups) == 0 {
		return nil, draft.ErrNothing
	}
	return out, s.Err()
}

// readReportJSON reads sections of objects.
func readReportJSON(f *record.File, in *record.Input) (*runReport, error) {
	text, err := f.Read(maxJSON)
	if err != nil {
		return nil, err
	}
	v, _ := jsontree.Parse(text)
	out := &runReport{}
	for _, section := range v.Items {
		for key, e := range section.Members() {
			if e.Kind != jsontree.List {
				out.pairs = append(out.pairs, [2]string{key, e.Brief()})
				continue
			}
			for _, g := range e.List() {
				x := group{shape: g.Get("data_shape").Str()}
				for _, p := range []struct {
					key string
					to  *float64
				}{{"latency_median", &x.median}, {"latency_average", &x.mean}, {"latency_min", &x.min}, {"latency_max", &x.max}} {
					*p.to, _ = g.Get(p.key).Float()
				}
				out.groups = append(out.groups, x)
			}
		}
	}
	if len(out.pairs)+len(out.groups) == 0 {
		return nil, draft.ErrNothing
	}
	return out, nil
}

// into puts the figures into a run.
func (r *runReport) into(d *draft.Draft) {
	m := &profile.Metric{}
	ms := func(v float64) *float64 { return new(v / 1e3) }
	for _, p := range r.pairs {
		key, text := strings.ToLower(p[0]), p[1]
		v, number := textscan.Number(text)
		name := strings.ReplaceAll(strings.TrimSuffix(strings.ReplaceAll(key, "_", " "), " (ms)"), "(ms)", "")
		switch {
		case key == "m" || key == "model":
			base := text[strings.LastIndexAny(text, `/\`)+1:]
			d.P.Model.Path, d.P.Model.Name = draft.Text(text), draft.Text(strings.TrimSuffix(base, ".xml"))
			if d.P.Model.Name == "" {
				d.P.Model.Name = "unnamed"
			}
			d.Note(p[0], text)
		case !number:
			if key == "target device" || key == "target_device" {
				d.P.Target.Description = draft.Text(text)
			}
			d.Note(p[0], text)
		case name == "latency" || name == "latency median":
			m.Median = ms(v)
		case name == "latency avg" || name == "latency average" || name == "avg latency":
			m.Mean = ms(v)
		case name == "latency min" || name == "min latency":
			m.Min = ms(v)
		case name == "latency max" || name == "max latency":
			m.Max = ms(v)
		case name == "number of iterations" || name == "iterations num" || name == "count":
			if n, ok := textscan.Whole(text); ok && n >= 0 {
				m.N, d.P.Settings.Runs = &n, &n
			}
		case name == "throughput":
			d.Total(profile.Quantity{Key: "inferences_per_s", Unit: "/s", Name: "Inferences per second", Group: "Rates", Better: 1}, v)
		case strings.Contains(name, "first inference time"):
			if v >= 0 {
				phases(d).FirstRunS = ms(v)
			}
		case strings.Contains(name, "read model time") || strings.Contains(name, "read network time"):
			if v >= 0 {
				phases(d).LoadS = ms(v)
			}
		case strings.Contains(name, "compile model time") || strings.Contains(name, "load network time"):
			if v >= 0 {
				phases(d).PlanS = ms(v)
			}
		case strings.Contains(key, "(ms)") || strings.Contains(name, " time") || strings.Contains(name, "latency"):
			d.Total(profile.Quantity{Key: "report_" + runlog.Key(name) + "_s", Unit: "s", Name: "Report: " + name, Group: "Time"}, v/1e3)
		default:
			d.Total(profile.Quantity{Key: "report_" + runlog.Key(name), Name: "Report: " + p[0]}, v)
		}
	}
	for i, g := range r.groups {
		if i == 0 && len(r.groups) == 1 {
			if m.Median == nil {
				m.Median = ms(g.median)
			}
			m.Mean, m.Min, m.Max = ms(g.mean), ms(g.min), ms(g.max)
		}
		key := "group_" + runlog.Key(g.shape)
		for _, x := range []struct {
			part string
			v    float64
		}{{"median", g.median}, {"mean", g.mean}, {"min", g.min}, {"max", g.max}} {
			d.Total(profile.Quantity{Key: key + "_" + x.part + "_s", Unit: "s", Name: "Latency of " + g.shape + ", " + x.part, Group: "Time"}, x.v/1e3)
		}
	}
	if m = draft.Metric(m); m != nil {
		m.Method = "benchmark_app's own clock"
		d.P.Totals.Latency, d.P.Totals.LatencySamples = m, nil
	}
}

func phases(d *draft.Draft) *profile.Phases {
	if d.P.Phases == nil {
		d.P.Phases = &profile.Phases{}
	}
	return d.P.Phases
}
