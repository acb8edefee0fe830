package mltk

import (
	"regexp"
	"strings"

	"github.com/opmeter/opmeter/internal/ingest"
	"github.com/opmeter/opmeter/internal/ingest/draft"
	"github.com/opmeter/opmeter/internal/ingest/textscan"
	"github.com/opmeter/opmeter/profile"
)

var (
	opLine     = regexp.MustCompile(`^Op(\d+)-([A-Za-z]\w*)\s*$`)
	refused    = regexp.MustCompile(`^(?:.*\s)?Op(\d+)-(\S+) not supported: (.*)$`)
	figureLine = regexp.MustCompile(`^([\d.]+)\s?([kMGTmunp]?)\s?(OPs|MACs|ms|us|s|CPU cycles|Accelerator cycles|OP/s|MAC/s)\b`)
	customLine = regexp.MustCompile(`^([A-Za-z][\w \-/%]*?)\s?[=:]\s?([\d.]+[kMGTmunp]?)\s*$`)
	detailLine = regexp.MustCompile(`^(Name|Version|Date|Hash|Accelerator|Description|Tensor runtime memory|Input|Output|CPU clock|Classes)\s?:\s*(\S.*)$`)
)

// deviceOp is an operator of a board's log.
type deviceOp struct {
	name    string
	figures [][2]string // unit or name, value with its prefix
	refused string
}

// readDevice reads what the firmware prints: the model, the work of each operator, then what
// an inference and each operator took.
func readDevice(f *ingest.File, in *ingest.Input) ([]*ingest.Run, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	s := textscan.NewScanner(r)
	var runs []*ingest.Run
	l := &deviceLog{}
	flush := func() {
		if d := l.build(draft.Stem(f)); d != nil && len(runs) < 1000 {
			runs = append(runs, d.Run())
		}
		l = &deviceLog{}
	}
	for s.Scan() {
		text := strings.TrimSpace(textscan.Strip(s.Text()))
		if strings.Contains(text, "Starting Model Profiler") {
			flush()
			continue
		}
		l.line(text)
	}
	flush()
	if s.Err() != nil {
		return runs, draft.At(f, s.Number(), s.Err())
	}
	if len(runs) == 0 {
		return nil, errDevice
	}
	return runs, nil
}

// deviceLog is the log of one model.
type deviceLog struct {
	details [][2]string
	ops     map[int64]*deviceOp
	last    int64
	whole   deviceOp
	at      *deviceOp
	done    bool
}

func (l *deviceLog) op(n int64, name string) *deviceOp {
	if n < 0 || n >= draft.MaxLayers {
		return &deviceOp{}
	}
	if l.ops == nil {
		l.ops = map[int64]*deviceOp{}
	}
	o := l.ops[n]
	if o == nil {
		o = &deviceOp{name: name}
		l.ops[n] = o
		l.last = max(l.last, n)
	}
	if o.name == "" {
		o.name = name
	}
	return o
}

func (l *deviceLog) line(s string) {
	if m := refused.FindStringSubmatch(s); m != nil {
		if n := whole(m[1]); n != nil {
			l.op(*n, m[2]).refused = m[3]
		}
		return
	}
	if m := opLine.FindStringSubmatch(s); m != nil {
		if n := whole(m[1]); n != nil {
			l.at = l.op(*n, m[2])
		}
		return
	}
	switch {
	case strings.HasPrefix(s, "Inference") && !strings.Contains(s, "/s"):
		l.at = &l.whole
		return
	case strings.EqualFold(s, "done"):
		l.done, l.at = true, nil
		return
	case s == "" || strings.HasPrefix(s, "--"):
		l.at = nil
		return
	}
	if m := detailLine.FindStringSubmatch(s); m != nil && len(l.details) < 100 {
		l.details = append(l.details, [2]string{m[1], m[2]})
		return
	}
	if l.at == nil || len(l.at.figures) > 100 {
		return
	}
	if m := figureLine.FindStringSubmatch(s); m != nil {
		l.at.figures = append(l.at.figures, [2]string{m[3], m[1] + m[2]})
	} else if m := customLine.FindStringSubmatch(s); m != nil {
		l.at.figures = append(l.at.figures, [2]string{"=" + m[1], m[2]})
	}
}

// build makes the run; nil where no operator was printed.
func (l *deviceLog) build(name string) *draft.Draft {
	if len(l.ops) == 0 && len(l.whole.figures) == 0 {
		return nil
	}
	d := draft.New("mltk", name, "TensorFlow Lite Micro")
	for _, p := range l.details {
		v, ok := number(strings.TrimSuffix(p[1], "Hz"))
		switch {
		case p[0] == "Name":
			d.P.Model.Name = draft.Text(p[1])
		case p[0] == "Accelerator" && !strings.EqualFold(p[1], "none"):
			d.P.Target.Accelerator = draft.Text(strings.ToLower(p[1]))
		case p[0] == "CPU clock" && ok && v > 0:
			d.P.Target.ClockHz = &v
		case p[0] == "Tensor runtime memory":
			d.P.Totals.RAMBytes = whole(strings.Fields(p[1])[0])
		}
		d.Note(p[0], p[1])
	}
	missing := int64(0)
	for n := int64(0); n <= l.last && len(l.ops) > 0; n++ {
		o := l.ops[n]
		state := profile.Ran
		if o == nil {
			o = &deviceOp{name: "unknown"}
			state = profile.Lost
			missing++
		}
		y := profile.Layer{Op: o.name, Name: strings.ToLower(o.name), State: state}
		i := d.Add(y, ingest.Hint{Index: new(n)})
		if i < 0 {
			break
		}
		if state == profile.Lost {
			d.Layer(i).Cause = &profile.Cause{Code: profile.ByRecord}
		}
		o.into(d, i)
	}
	l.whole.total(d)
	if missing > 0 {
		d.Lost = append(d.Lost, profile.Loss{Records: &missing, Cause: profile.Cause{Code: profile.ByRecord, Text: "operators without a line in the log"}})
	}
	if !l.done {
		d.Found("mltk.cut", profile.Warning, "The log does not end with the profiler's last word: operators may be missing.")
	}
	return d
}

// seconds reads a time with its unit.
func seconds(unit string, v float64) (float64, bool) {
	scale, ok := map[string]float64{"ms": 1e3, "us": 1e6, "s": 1}[unit]
	if !ok {
		return 0, false
	}
	return v / scale, true
}

func (o *deviceOp) into(d *draft.Draft, i int) {
	y := d.Layer(i)
	accelerated := false
	for _, f := range o.figures {
		v, ok := number(f[1])
		if !ok {
			continue
		}
		switch unit := f[0]; unit {
		case "OPs":
			y.MLTKOps = whole(f[1])
		case "MACs":
			y.MLTKMACs = whole(f[1])
		case "CPU cycles":
			d.Set(i, profile.Quantity{Key: "cpu_cycles"}, v)
		case "Accelerator cycles":
			d.Set(i, profile.Quantity{Key: "accelerator_cycles"}, v)
			accelerated = v > 0
		case "OP/s", "MAC/s": // quotients of what is there
		default:
			if t, ok := seconds(unit, v); ok {
				y.Latency = draft.Value(t)
			} else {
				d.Set(i, profile.Quantity{Name: strings.TrimPrefix(unit, "=")}, v)
			}
		}
	}
	if a := d.P.Target.Accelerator; a != "" {
		y.Placement = &profile.Placement{On: profile.CPU}
		if accelerated {
			y.Placement.On = a
		}
		if o.refused != "" {
			y.Placement.Cause, y.Placement.Text = profile.ByLimit, draft.Text(o.refused)
		}
	} else if o.refused != "" {
		y.Placement = &profile.Placement{On: profile.CPU, Cause: profile.ByLimit, Text: draft.Text(o.refused)}
	}
}

func (o *deviceOp) total(d *draft.Draft) {
	for _, f := range o.figures {
		v, ok := number(f[1])
		if !ok {
			continue
		}
		switch unit := f[0]; unit {
		case "OPs":
			d.Total(profile.Quantity{Key: "mltk_ops"}, v)
		case "MACs":
			d.Total(profile.Quantity{Key: "mltk_macs"}, v)
		case "CPU cycles":
			d.Total(profile.Quantity{Key: "cpu_cycles"}, v)
		case "Accelerator cycles":
			d.Total(profile.Quantity{Key: "accelerator_cycles"}, v)
		case "OP/s", "MAC/s":
		default:
			if t, ok := seconds(unit, v); ok {
				d.P.Totals.Latency = draft.Value(t)
			} else {
				d.Total(profile.Quantity{Name: strings.TrimPrefix(unit, "=")}, v)
			}
		}
	}
}
