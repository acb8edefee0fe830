package stedgeai

import (
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

var (
	inspector  = lazyregexp.New(`^\s*(?:c_id|Clayer)\s+(?:m_id|id)\s.*\b(?:ms|dur \(ms\))`)
	resultLine = lazyregexp.New(`^Results for (?:"[^"]*".*?, )?(\d+) inference(?:s|\(s\)) @(\d+)(?:MHz)?/(\d+)MHz`)
	keyLine    = lazyregexp.New(`^([a-zA-Z][\w /()#-]*?)\s*:\s+(\S.*?)\s*$`)
	bytesText  = lazyregexp.New(`^([\d,]+) B\b`)
	itemsText  = lazyregexp.New(`^([\d,]+) items`)
	duration   = lazyregexp.New(`^([\d.]+) ms (?:\(average\)|by sample(?: \(([\d.]+)/([\d.]+)/([\d.]+)\))?)`)
	cyclesText = lazyregexp.New(`^([\d,]+)(?: -\d+/\+\d+)? \(average`)
	modelLayer = lazyregexp.New(`^(\S.*) \((\w[^,]*), ?(.*)\)$`)
	arrayText  = lazyregexp.New(`^(\w+)\(([\dx]+)\)`)
	portText   = lazyregexp.New(`^'([^']*)', (\w+)\(([\dx]+)\)`)
	wide       = lazyregexp.New(`\s{2,}`)
	dashes     = lazyregexp.New(`-+`)
)

// section is a kind of table.
type section int

const (
	nothing section = iota
	modelTable
	codeTable
	workTable
	timeTable
)

// page is a reader of a text.
type page struct {
	n      *network
	at     section
	head   string
	spans  [][]int
	names  []string
	last   int    // layer of the row above
	id     string // number of the model's layer above
	parts  map[string][]string
	origin map[string]string
	// results counts the runs on a board in the text; only the first one is read.
	results int64
}

func (n *network) text(f *record.File) error {
	p := &page{n: n, last: -1, parts: map[string][]string{}, origin: map[string]string{}}
	before := ""
	err := f.Lines(func(l string) {
		l = textscan.Strip(l)
		p.line(l, before)
		if strings.TrimSpace(l) != "" && !isRule(l) {
			before = l
		}
	})
	p.finish()
	n.d.Dropped.Add("results of further runs in the file: put each into a file of its own", p.results-1)
	return err
}

func isRule(l string) bool {
	l = strings.TrimSpace(l)
	return len(l) > 3 && strings.Trim(l, "- ") == ""
}

func (p *page) cells(l string) []string {
	out := make([]string, len(p.spans))
	for i, s := range p.spans {
		if s[0] < len(l) {
			end := min(s[1], len(l))
			if i == len(p.spans)-1 {
				end = len(l)
			}
			out[i] = strings.TrimSpace(l[s[0]:end])
		}
	}
	return out
}

// line reads a line; before is the last one that is not a rule.
func (p *page) line(l, before string) {
	trimmed := strings.TrimSpace(l)
	m := resultLine.FindStringSubmatch(trimmed)
	if m != nil || strings.HasPrefix(trimmed, "ST.AI Profiling results ") {
		p.results++
	}
	if p.results > 1 {
		return
	}
	if isRule(l) {
		if spans := dashes.FindAllStringIndex(l, -1); len(spans) > 2 {
			p.spans = spans
			p.begin(strings.TrimSpace(before))
		}
		return
	}
	if inspector.MatchString(l) {
		p.at, p.names, p.spans = timeTable, wide.Split(trimmed, -1), nil
		return
	}
	if m != nil {
		if v, ok := textscan.Whole(m[1]); ok {
			p.n.d.P.Settings.Runs = &v
		}
		if c, ok := textscan.Number(m[2]); ok && c > 0 {
			p.n.d.P.Target.ClockHz = new(c * 1e6)
		}
		return
	}
	switch c := p.cells(l); {
	case trimmed == "", p.at == modelTable && strings.HasPrefix(trimmed, "model/c-model"), p.at == workTable && strings.HasPrefix(trimmed, "total"):
		p.at = nothing
	case p.at == modelTable && len(c) >= 2:
		p.model(c)
	case p.at == codeTable && len(c) >= 8:
		p.code(c)
	case p.at == workTable && len(c) >= 5:
		if i, ok := p.n.byID[c[0]]; ok {
			p.n.d.Option(i, "operations", c[4])
		}
	case p.at == timeTable:
		p.time(wide.Split(trimmed, -1))
	}
	if m := keyLine.FindStringSubmatch(trimmed); m != nil && (p.at == nothing || p.at == timeTable) {
		p.pair(m[1], m[2])
	}
}

// begin selects the table by its header.
func (p *page) begin(head string) {
	switch {
	case strings.HasPrefix(head, "m_id") && strings.Contains(head, "layer ("):
		p.at = modelTable
	case strings.HasPrefix(head, "c_id") && strings.Contains(head, "layer_type") && strings.Contains(head, "tensors"):
		p.at = codeTable
	case strings.HasPrefix(head, "c_id") && strings.Contains(head, "#op"):
		p.at = workTable
	case strings.HasPrefix(head, "c_id") || strings.HasPrefix(head, "m_id") || strings.HasPrefix(head, "operation type"):
		if p.head != head {
			p.at = nothing
		}
	}
	p.head = head
}

// model reads a row of the model's layers.
func (p *page) model(c []string) {
	if c[0] != "" {
		p.id = c[0]
	}
	if m := modelLayer.FindStringSubmatch(c[1]); m != nil && len(p.parts[p.id]) < 100 {
		p.parts[p.id] = append(p.parts[p.id], m[1])
		if o := strings.TrimSpace(m[3]); o != "" && p.origin[p.id] == "" {
			p.origin[p.id] = o
		}
	}
}

// code reads a row of the layers of the generated code: tensors have separate rows.
func (p *page) code(c []string) {
	d := p.n.d
	if _, ok := textscan.Whole(c[0]); ok {
		p.last = p.n.layer(c[0], c[1], c[3])
		if p.last >= 0 {
			y := d.Layer(p.last)
			y.Inputs, y.Outputs = nil, nil
			d.SetKnown(p.last, macc, draft.Known(textscan.Number(c[4])), 1)
			if v := draft.Count(textscan.Whole(c[5])); v != nil {
				y.WeightsBytes = v
			}
			p.n.source(p.last, c[2])
		}
	}
	y := d.Layer(p.last)
	role, name, ok := strings.Cut(c[6], ": ")
	if y == nil || !ok || len(y.Inputs)+len(y.Outputs) > 1000 {
		return
	}
	t := profile.Tensor{Name: draft.Text(name)}
	if m := arrayText.FindStringSubmatch(c[7]); m != nil {
		t = tensor(name, m[1], m[2])
	}
	t.Constant = role == "W"
	switch role {
	case "I", "W":
		y.Inputs = append(y.Inputs, t)
	case "O":
		y.Outputs = append(y.Outputs, t)
	}
}

// tensor makes a tensor such as int8(1x28x1x40).
func tensor(name, kind, dims string) profile.Tensor {
	return profile.Tensor{Name: draft.Text(name), DType: dtype(kind), Shape: draft.Shape(dims, "x")}
}

// time reads a row of the times of layers.
func (p *page) time(row []string) {
	cols := textscan.NewColumns(p.names)
	if len(row) < 4 || len(row) < len(p.names)-1 {
		return
	}
	_, ok := textscan.Whole(row[0])
	ms, timed := cols.Number(row, "ms", "dur (ms)")
	if !ok || !timed {
		return
	}
	d := p.n.d
	i, have := p.n.byID[row[0]]
	if !have {
		kind := textscan.Cell(row, 2)
		if _, name, ok := strings.Cut(kind, "/("); ok {
			kind = strings.TrimSuffix(name, ")")
		}
		kind, _, _ = strings.Cut(kind, " (0x")
		if i = p.n.layer(row[0], strings.ToLower(kind)+"_"+row[0], kind); i < 0 {
			return
		}
		p.n.source(i, textscan.Cell(row, 1))
	}
	d.Layer(i).Latency = draft.Metric(&profile.Metric{Mean: new(ms / 1e3)})
	d.SetKnown(i, recordedShare, draft.Known(cols.Number(row, "%")), 1e-2)
	d.SetKnown(i, cpuCycles, draft.Known(textscan.Number(strings.Trim(cols.Text(row, "CPU cycles"), "[] "))), 1)
}

// submatch returns the first submatch, "" if the pattern does not match.
func submatch(pattern *lazyregexp.Regexp, s string) string {
	if m := pattern.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return ""
}

// pair reads a line of a summary. Lines without a place in the profile become notes.
func (p *page) pair(key, value string) {
	n, d := p.n, p.n.d
	if m := portText.FindStringSubmatch(value); m != nil {
		t := tensor(m[1], m[2], m[3])
		switch {
		case strings.HasPrefix(key, "input "):
			d.P.Model.Inputs = append(d.P.Model.Inputs, t)
		case strings.HasPrefix(key, "output "):
			d.P.Model.Outputs = append(d.P.Model.Outputs, t)
		}
	}
	size := draft.Count(textscan.Whole(submatch(bytesText, value)))
	total := func(q profile.Quantity, text string) bool {
		v, ok := textscan.Number(text)
		if ok {
			d.Total(q, v)
		}
		return ok
	}
	kept := true
	switch key {
	case "model file":
		n.path(value, "")
	case "type":
		n.path("", value)
	case "model_name":
		n.name(value)
	case "target/series":
		d.P.Target.Description = draft.Text(value)
		kept = false
	case "macc":
		kept = total(macc, value)
	case "weights (ro)":
		n.memory(nil, size)
	case "activations (rw)":
		n.memory(size, nil)
	case "ram (total)":
		if kept = size != nil; kept {
			d.P.Totals.RAMBytes = size
		}
	case "params #":
		if v, ok := textscan.Whole(submatch(itemsText, value)); ok {
			d.P.Totals.Params = &v
		}
		kept = itemsText.MatchString(value)
	case "nb sample(s)":
		if v := draft.Count(textscan.Whole(value)); v != nil {
			d.P.Settings.Runs = v
		} else {
			kept = false
		}
	case "duration":
		m := duration.FindStringSubmatch(value)
		if kept = m != nil; kept {
			d.P.Totals.Latency = p.spread(m)
		}
	case "CPU cycles":
		kept = total(cpuCycles, submatch(cyclesText, value)) || cyclesText.MatchString(value)
	case "cycles/MACC":
		kept = total(profile.Quantity{Key: "cycles_per_macc", Name: "Cycles per MACC", Group: "Target", Better: -1}, strings.Fields(value)[0])
	default:
		kept = false
	}
	if !kept {
		d.Note(key, value)
	}
}

// spread parses a duration: mean, and minimum, maximum and standard deviation of samples.
func (p *page) spread(m []string) *profile.Metric {
	out := &profile.Metric{}
	for i, to := range []**float64{&out.Mean, &out.Min, &out.Max, &out.StdDev} {
		*to = draft.Milli(textscan.Number(m[i+1]))
	}
	out.N = p.n.d.P.Settings.Runs
	return draft.Metric(out)
}

// finish adds the layers of the model to each layer of the code.
func (p *page) finish() {
	d := p.n.d
	for i := range d.P.Layers {
		id := d.Layer(i).Option("m_id")
		p.n.option(i, "model_layers", strings.Join(p.parts[id], ", "))
		p.n.option(i, "original", p.origin[id])
		if v, ok := textscan.Whole(id); ok && p.n.tflite && d.Hint(i).Index == nil {
			d.Hint(i).Index = &v
		}
	}
}
