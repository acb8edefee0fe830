package xlsx

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// summary writes the sheet "Summary".
func (b *book) summary(p *profile.Profile, t *table) {
	s := &summary{b: b, sheet: b.sheet(), p: p, t: t, cells: map[string]string{}}
	s.widths(34, 20, 12, 12, 80)
	s.add(26, label("Profile of "+p.Model.Name, style{title: true}))
	if len(p.Incomplete) > 0 {
		s.para("Incomplete", words.Incomplete(p))
	}
	s.figures()
	s.findings()
	s.model()
	s.target()
	s.settings()
	s.head("About this workbook")
	s.para("Figures", "Base units: seconds, joules, bytes, hertz, counts. Empty cells are unknown. The kind is the origin of a figure: counted from the model, measured, simulated, estimated, or imported from another tool. Formulas update when a cell is edited. The sheet Columns explains every column.")
	s.para("Samples", s.samples())
	s.para("Sums of layers", "Totals of a run come from its plain pass, times of layers from the instrumented one, so that their sum differs from the latency by what lies between operators and by the profiling overhead.")
}

// summary is the sheet "Summary" with the places of the figures so far.
type summary struct {
	*sheet
	b     *book
	p     *profile.Profile
	t     *table
	cells map[string]string // place of a figure's value by its label
}

func (s *summary) head(text string) {
	s.add(0)
	h := style{head: true}
	s.add(20, label(text, h), cell{style: h}, cell{style: h}, cell{style: h}, cell{style: h})
}

// fact writes a line of text, unless it is empty.
func (s *summary) fact(name, value string) {
	if value != "" {
		s.add(0, label(name, style{bold: true}), label(value, style{}))
	}
}

// para writes text over the width of the sheet.
func (s *summary) para(name, value string) {
	s.paraIn(name, value, "")
}

// colours are those of findings.
var colours = map[profile.Severity]string{profile.Warning: "B26B00", profile.Problem: "B3261E"}

func (s *summary) paraIn(name, value, color string) {
	n := min(lines(value, 118), 27) // a row is 409 points high at most
	s.add(15*float64(n), label(name, style{bold: true, color: color}), label(value, style{wrap: true}))
	s.merge(1, 4)
}

func (s *summary) count(name string, v *int64, unit string) {
	if v != nil {
		s.add(0, label(name, style{bold: true}), cell{v: *v, style: style{format: "#,##0"}}, label(unit, style{faint: true, indent: true}))
	}
}

func (s *summary) quantity(name string, v *float64, format, unit string) {
	if v != nil {
		s.add(0, label(name, style{bold: true}), number(v, format), label(unit, style{faint: true, indent: true}))
	}
}

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

func (s *summary) model() {
	m := &s.p.Model
	s.head("Model")
	s.fact("name", m.Name)
	s.fact("file", m.Path)
	format := m.Format
	if m.FormatVersion != nil {
		format += " version " + strconv.FormatInt(*m.FormatVersion, 10)
	}
	s.fact("format", format)
	s.count("file size", m.FileBytes, "bytes")
	s.fact("SHA-256", m.SHA256)
	s.fact("producer", m.Producer)
	s.fact("description", m.Description)
	for _, list := range []struct {
		name string
		ts   []profile.Tensor
	}{{"input", m.Inputs}, {"output", m.Outputs}} {
		for i, t := range list.ts {
			if i == 8 {
				s.fact("", fmt.Sprintf("and %d more", len(list.ts)-i))
				break
			}
			s.fact(list.name, join(t.Name, t.DType, words.Taken(&t), words.Made(&t)))
		}
	}
}

func (s *summary) target() {
	t, h := &s.p.Target, s.p.Host
	s.head("Target")
	s.fact("target", t.ID)
	s.fact("kind", string(t.Kind))
	s.fact("accelerator", t.Accelerator)
	s.fact("engine", t.Engine)
	s.quantity("clock", t.ClockHz, "#,##0", "Hz")
	if h == nil {
		return
	}
	s.fact("processor", h.CPUModel)
	s.count("cores", h.Cores, "")
	s.count("memory", h.MemoryBytes, "bytes")
	s.fact("system", join(h.OS, h.Arch, h.Kernel))
	s.fact("governor", h.Governor)
	s.fact("virtual machine", h.Virtual)
	s.fact("fingerprint", h.Fingerprint)
}

func (s *summary) settings() {
	t := &s.p.Settings
	s.head("Settings")
	s.fact("date", s.p.Created)
	s.fact("opmeter", t.Version)
	s.fact("engine", join(t.Engine, t.EngineVersion))
	s.fact("kernels", t.KernelSet)
	s.count("threads", t.Threads, "")
	if len(t.PinnedCPUs) > 0 {
		s.fact("pinned to CPUs", strings.Trim(fmt.Sprint(t.PinnedCPUs), "[]"))
	}
	s.count("requested runs", t.Runs, "")
	s.quantity("requested time", t.TimeS, "0.###", "s")
	s.count("requested warm-up", t.WarmupRuns, "runs")
	s.quantity("requested warm-up", t.WarmupS, "0.###", "s")
	s.count("batch", t.Batch, "")
	s.fact("inputs", t.InputKind)
	if t.Seed != nil {
		// As text: a spreadsheet's numbers have 15 digits.
		s.fact("seed", strconv.FormatUint(*t.Seed, 10))
	}
	s.fact("passes", t.Passes)
	s.fact("garbage collector", t.GarbageCollector)
}

// figure writes a figure of the whole model: its value, unit, kind and a remark.
// With a formula, v is its result.
func (s *summary) figure(name string, v *float64, f, format, unit string, kind profile.Kind, remark string) {
	if v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) {
		return
	}
	s.cells[name] = at(1, s.row+1)
	if size := math.Abs(*v); unit == "s" && size > 0 {
		// a small one beside large ones must not show as zero
		format = seconds([]*float64{&size, &s.t.time})
	}
	h := 0.0
	if n := lines(remark, 80); n > 1 {
		h = 15 * float64(min(n, 27))
	}
	s.add(h, label(name, style{bold: true}), cell{v: *v, formula: f, style: style{format: format}}, label(unit, style{faint: true, indent: true}), label(string(kind), style{}), label(remark, style{wrap: true, faint: true}))
}

// total writes a total of the model. It is a formula where it is the sum of the
// layers, a number where it is not (weights that several layers share count once).
func (s *summary) total(name, key string, v *int64, unit string, remark string) {
	if v == nil {
		return
	}
	x, f := float64(*v), ""
	if c := s.t.get(key); c != nil {
		if sum, ok := c.sum(); ok && sum == x {
			f = "SUM(" + s.t.ref(key) + ")"
		}
	}
	s.figure(name, &x, f, "#,##0", unit, profile.Counted, remark)
}

// metric writes a figure with its spread, a line for each part.
func (s *summary) metric(name string, m *profile.Metric, format, unit string) {
	v, ok := m.Best()
	if !ok {
		return
	}
	var remark []string
	if iv := m.Interval(); iv != nil {
		name := "95 % CI"
		if iv == m.Band {
			name = "90 % band"
		}
		remark = append(remark, fmt.Sprintf("%s %.4g to %.4g", name, iv[0], iv[1]))
	}
	if m.N != nil {
		remark = append(remark, fmt.Sprintf("%d samples", *m.N))
	}
	if m.Method != "" {
		remark = append(remark, m.Method)
	}
	what := ""
	if by := m.Estimator(); by != "value" {
		what = " (" + by + ")"
	}
	s.figure(name+what, &v, "", format, unit, m.Kind, strings.Join(remark, "; "))
	s.cells[name] = s.cells[name+what]
	for _, x := range []struct {
		name string
		v    *float64
	}{{"min", m.Min}, {"median", m.Median}, {"mean", m.Mean}, {"p90", m.P90}, {"p95", m.P95}, {"p99", m.P99}, {"max", m.Max}, {"standard deviation", m.StdDev}} {
		if x.v != nil && what != "" && " ("+x.name+")" != what {
			s.figure(name+" ("+x.name+")", x.v, "", format, unit, m.Kind, "")
		}
	}
}

func (s *summary) figures() {
	t := &s.p.Totals
	s.head("Results")
	h := style{bold: true}
	s.add(0, label("figure", h), label("value", style{bold: true, right: true}), label("unit", style{bold: true, indent: true}), label("kind", h), label("remark", h))
	left := func(n *int64, what string) string {
		if n == nil || *n == 0 {
			return ""
		}
		return fmt.Sprintf("without %d layers that %s", *n, what)
	}
	if n := float64(s.t.n); s.t.n > 0 {
		s.figure("layers", &n, "COUNTA("+s.t.ref("op")+")", "#,##0", "", profile.Counted, left(t.UnsupportedLayers, "cannot run"))
	}
	uncounted := left(t.UncountedLayers, "cannot be counted")
	s.total("operations", "ops", t.Ops, "ops", uncounted)
	s.total("multiply-accumulates", "macs", t.MACs, "MACs", uncounted)
	s.total("MACs without padding", "macs_executed", t.MACsExecuted, "MACs", "")
	s.total("parameters", "params", t.Params, "", "each counted once")
	s.total("weights", "", t.WeightsBytes, "bytes", "as stored")
	s.total("bytes read", "bytes_read", t.BytesRead, "bytes", "each operand once per layer")
	s.total("bytes written", "bytes_written", t.BytesWritten, "bytes", "")
	s.total("RAM", "", t.RAMBytes, "bytes", "working memory of an inference")
	s.total("flash", "", t.FlashBytes, "bytes", "")
	const sec = "0.000" // of a time of zero, see figure
	s.metric("latency", t.Latency, sec, "s")
	if s.t.time > 0 {
		kind := profile.Kind("")
		for i := range s.p.Layers {
			if m := s.p.Layers[i].Latency; m != nil {
				kind = m.Kind
				break
			}
		}
		s.figure("sum of layers", &s.t.time, "SUM("+s.t.ref("latency_s")+")", sec, "s", kind, "shares of layers refer to this sum")
		s.b.Define(timeName, summarySheet+"!$B$"+strconv.Itoa(s.row))
	}
	s.metric("energy", t.Energy, "0.000E+00", "J")
	s.metric("CPU cycles", t.CPUCycles, "#,##0", "cycles")
	s.metric("accelerator cycles", t.AcceleratorCycles, "#,##0", "cycles")
	for _, q := range s.p.AllQuantities() {
		name := q.Name
		if s.cells[name] != "" { // a name that formulas go by
			name += " (" + q.Key + ")"
		}
		s.metric(name, t.Figures[q.Key], numberFormat(q.Unit, q.Whole), q.Unit)
	}
	s.rates()
	if r := s.p.Reconcile; r != nil {
		s.figure("sum of layers and gaps", r.WallS, "", sec, "s", profile.Measured, "the latency, which the shares divide")
		s.figure("time in operators", r.OperatorsS, "", sec, "s", profile.Measured, "")
		s.figure("time not in layers", r.GapsS, "", sec, "s", profile.Measured, "")
		if v, ok := r.OverheadS.Best(); ok {
			s.figure("profiling overhead", &v, "", sec, "s", r.OverheadS.Kind, r.OverheadS.Method)
		}
	}
	if ph := s.p.Phases; ph != nil {
		s.figure("load", ph.LoadS, "", sec, "s", profile.Measured, "")
		s.figure("compile", ph.PlanS, "", sec, "s", profile.Measured, "")
		s.figure("first run", ph.FirstRunS, "", sec, "s", profile.Measured, "")
		if w := ph.Warmup; w != nil {
			s.figure("warm-up", w.TimeS, "", "0.000", "s", profile.Measured, w.Reason)
		}
	}
}

// rates writes the figures that follow from others, as formulas.
func (s *summary) rates() {
	r, t := s.p.Rates(), &s.p.Totals
	var kind, energy profile.Kind
	if t.Latency != nil {
		kind = t.Latency.Kind
	}
	if t.Energy != nil {
		energy = t.Energy.Kind
	}
	c := s.cells
	quotient := func(name string, v *float64, over, under, format, unit string, k profile.Kind) {
		if v != nil && under != "" && over != "" {
			s.figure(name, v, over+"/"+under, format, unit, k, "")
		}
	}
	// Work that took no part of the time is not a part of a rate.
	work := func(cell, key string) string {
		n, _ := s.p.Select(func(l *profile.Layer) bool { return l.State.Blank() && !l.Constant }).Sum(key)
		if cell == "" || n == 0 {
			return cell
		}
		return "(" + cell + "-" + strconv.FormatFloat(n, 'f', -1, 64) + ")"
	}
	ops, macs := work(c["operations"], "ops"), work(c["multiply-accumulates"], "macs")
	read, written, bytes := work(c["bytes read"], "bytes_read"), work(c["bytes written"], "bytes_written"), ""
	if read != "" && written != "" {
		bytes = "(" + read + "+" + written + ")"
	}
	quotient("inferences per second", r.InferencesPerSecond, "1", c["latency"], "#,##0.00", "1/s", kind)
	quotient("operations per second", r.OpsPerSecond, ops, c["latency"], "#,##0", "ops/s", kind)
	quotient("multiply-accumulates per second", r.MACsPerSecond, macs, c["latency"], "#,##0", "MACs/s", kind)
	quotient("bytes per second", r.BytesPerSecond, bytes, c["latency"], "#,##0", "bytes/s", kind)
	quotient("operations per byte", r.OpsPerByte, ops, bytes, "0.00", "ops/byte", profile.Counted)
	quotient("energy per operation", r.JoulesPerOp, c["energy"], ops, "0.000E+00", "J/op", energy)
	quotient("energy per multiply-accumulate", r.JoulesPerMAC, c["energy"], macs, "0.000E+00", "J/MAC", energy)
	quotient("mean power", r.Watts, c["energy"], c["latency"], "0.000E+00", "W", energy)
	if v := r.CPUUtilization; v != nil && c["CPU cycles"] != "" && c["latency"] != "" {
		s.figure("CPU utilisation", v, fmt.Sprintf("MIN(1,%s/(%s*%s))", c["CPU cycles"], strconv.FormatFloat(*s.p.Target.ClockHz, 'f', -1, 64), c["latency"]), "0.0%", "", kind, "cycles over clock times latency")
	}
}

func (s *summary) findings() {
	if len(s.p.Findings) == 0 {
		return
	}
	s.head("Findings")
	for _, f := range s.p.Findings {
		s.paraIn(string(f.Severity), f.Text, colours[f.Severity])
	}
}

// samples says where the samples are.
func (s *summary) samples() string {
	n := len(s.p.Totals.LatencySamples)
	for i := range s.p.Layers {
		n += len(s.p.Layers[i].Samples)
	}
	if n == 0 {
		return "The profile holds no samples of single runs."
	}
	return fmt.Sprintf("The profile holds %d samples; this workbook has their statistics only. The saved profile (.opmeter) and the JSON file have them, in latency_samples_s and samples_s.", n)
}
