package tflite

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/model/protoread"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/profile"
)

// maxProto limits the size of a protocol-buffer file.
const maxProto = 256 << 20

// kind is one of the three messages that the tool writes.
type kind int

const (
	none kind = iota
	profiling
	result
	runtime
)

// message lists the fields that a message may have, by number: a field type, or the fields of an
// inner message.
type message map[int]any

type fieldType int

const (
	text fieldType = iota // printable
	integer
	integers
	float
	mark // bytes; at least one such field must be present
)

// Messages of the formats.
var (
	opMessage       = message{1: text, 2: mark, 3: mark, 4: integer, 5: text, 6: integer}
	profileMessage  = message{1: message{1: text, 2: integer, 3: opMessage}, 2: message{1: text, 2: opMessage}}
	subgraphMessage = message{1: integer, 2: mark, 3: mark, 4: integers, 5: integer}
	latencyMessage  = message{1: float, 2: float, 3: float, 4: float, 5: float, 6: float, 7: float, 8: float, 9: float, 10: float}
	memoryMessage   = message{1: integer, 2: integer, 3: float}
	miscMessage     = message{1: float, 2: integer, 3: integer, 4: float}
	resultMessages  = map[int]message{2: latencyMessage, 3: memoryMessage, 4: miscMessage}
)

// mostFields is above the highest number of a field in messages of figures.
const mostFields = 11

// fits reports whether a message has only these fields, and whether a mark is present.
func (m message) fits(r protoread.Reader) (ok, marked bool) {
	for r.Next() {
		switch f := m[r.Num()].(type) {
		case message:
			ok, inner := f.fits(r.Message())
			if !ok {
				return false, false
			}
			marked = marked || inner
		case fieldType:
			switch f {
			case text:
				if !printable(r.Bytes()) {
					return false, false
				}
			case integer:
				r.Int()
			case integers:
				r.Ints(nil)
			case float:
				r.Float()
			case mark:
				r.Bytes()
				marked = true
			}
		default:
			return false, false
		}
	}
	return r.Err() == nil, marked
}

func printable(b []byte) bool {
	return utf8.Valid(b) && !slices.ContainsFunc([]rune(string(b)), func(r rune) bool { return !unicode.IsPrint(r) })
}

// kindOf examines the beginning of a message: all fields must belong to the kind, and one must be
// specific to it.
func kindOf(head []byte, whole bool) kind {
	if len(head) < 4 || head[0] != 0x0a && head[0] != 0x12 && head[0] != 0x1a {
		return none
	}
	possible := map[kind]bool{profiling: true, result: true, runtime: true}
	sure := none
	r := protoread.NewReader(head)
	for r.Next() {
		n, b := r.Num(), r.Bytes()
		if r.Err() != nil || n < 1 || n > 4 || n == 1 && !printable(b) {
			return none
		}
		if n == 1 {
			continue
		}
		fits := func(m message) bool {
			ok, _ := m.fits(protoread.NewReader(b))
			return ok
		}
		marked := func(m message) bool {
			ok, marked := m.fits(protoread.NewReader(b))
			return ok && marked
		}
		if n == 4 || len(b) > 0 && !marked(profileMessage) {
			possible[profiling] = false
		} else if len(b) > 0 {
			sure = profiling
		}
		if !fits(resultMessages[n]) {
			possible[result] = false
		} else if len(b) > 0 && n == 2 {
			sure = result
		}
		if n != 2 || !marked(subgraphMessage) {
			possible[runtime] = false
		} else {
			sure = runtime
		}
	}
	if r.Err() != nil && whole || sure == none {
		return none
	}
	for _, k := range []kind{profiling, result, runtime} {
		if possible[k] && (sure == k || !possible[sure]) {
			return k
		}
	}
	return none
}

func readProto(f *record.File) ([]*runlog.Run, error) {
	b, err := f.Read(maxProto)
	if err != nil {
		return nil, err
	}
	d := draft.New("tflite-benchmark", draft.Stem(f), "TensorFlow Lite")
	r := protoread.NewReader(b)
	name := ""
	switch kindOf(f.Head, f.Whole) {
	case profiling:
		err = readProfiling(d, r, &name)
	case result:
		err = readResult(d, r, &name)
	case runtime:
		err = readRuntime(d, r, &name)
	}
	if name != "" {
		d.P.Model.Name = draft.Text(strings.TrimSuffix(name, ".tflite"))
	}
	if d.Empty() {
		return draft.NotEmpty(nil, err)
	}
	if err != nil {
		d.Lost = append(d.Lost, profile.Loss{Cause: profile.Cause{Code: profile.ByRecord, Text: err.Error()}})
		d.Found("record.cut", profile.Warning, "The file is damaged and was read as far as it goes: %v.", err)
	}
	return []*runlog.Run{d.Run()}, nil
}

// opStat is an OpProfilingStat.
type opStat struct {
	first, last, avg, min, max, sum, count int64
	stddev                                 float64
}

func readStat(r protoread.Reader) *opStat {
	var s opStat
	// Field 5, the variance, follows from the standard deviation.
	_ = r.Scan(1, &s.first, 2, &s.last, 3, &s.avg, 4, &s.stddev, 6, &s.min, 7, &s.max, 8, &s.sum, 9, &s.count)
	return &s
}

// mean is exact if the sum is present: the average is truncated to whole microseconds. It is 0
// for nil.
func (s *opStat) mean() float64 {
	if s == nil {
		return 0
	}
	if s.count > 0 && s.sum > 0 {
		return float64(s.sum) / float64(s.count)
	}
	return float64(s.avg)
}

// operator is an OpProfileData.
type operator struct {
	node, name    string
	time, mem     *opStat
	called, order int64
}

func readOperator(r protoread.Reader) (o operator, err error) {
	o.called = 1
	err = r.Scan(1, &o.node, 4, &o.called, 5, &o.name, 6, &o.order,
		2, func(r protoread.Reader) { o.time = readStat(r) }, 3, func(r protoread.Reader) { o.mem = readStat(r) })
	return o, err
}

// calls is the number of calls in an inference, at least 1.
func (o *operator) calls() float64 { return math.Max(1, float64(o.called)) }

// graphProfile is the profile of a graph or of the delegates.
type graphProfile struct {
	block
	ops []operator
}

// readGraphs reads a ModelProfilingData and returns the first error of an inner message, or the
// one of the message itself.
func readGraphs(r protoread.Reader) (out []graphProfile, err error) {
	graph := func(delegate bool) func(protoread.Reader) {
		return func(r protoread.Reader) {
			g := graphProfile{block: block{delegate: delegate}}
			add := func(r protoread.Reader) {
				o, e := readOperator(r)
				err = cmp.Or(err, e)
				if len(g.ops) < draft.MaxLayers {
					g.ops = append(g.ops, o)
				}
			}
			fields := []any{1, &g.graph, 2, &g.index, 3, add}
			if delegate {
				fields = []any{1, &g.graph, 2, add}
			}
			err = cmp.Or(err, r.Scan(fields...))
			sorting.Stable(g.ops, func(a, b operator) int { return cmp.Compare(a.order, b.order) })
			out = append(out, g)
		}
	}
	e := r.Scan(1, graph(false), 2, graph(true))
	return out, cmp.Or(e, err)
}

// readProfiling reads a BenchmarkProfilingData.
func readProfiling(d *draft.Draft, r protoread.Reader, name *string) error {
	var first error
	read := func(use func(gs []graphProfile)) func(protoread.Reader) {
		return func(r protoread.Reader) {
			gs, err := readGraphs(r)
			first = cmp.Or(first, err)
			use(gs)
		}
	}
	err := r.Scan(1, name, 3, read(func(gs []graphProfile) { fillProfiles(d, gs) }), 2, read(func(gs []graphProfile) {
		for _, g := range gs {
			for _, o := range g.ops {
				d.Total(initTime(o.node), o.time.mean()*o.calls()/1e6)
			}
		}
	}))
	return cmp.Or(first, err)
}

// fillProfiles makes layers of profiles of graphs and delegates.
func fillProfiles(d *draft.Draft, gs []graphProfile) {
	var n nesting
	for gi := range gs {
		g := &gs[gi]
		for k := range g.ops {
			o := &g.ops[k]
			i := addRow(d, &row{node: o.node, name: o.name, called: float64(o.called)}, &g.block)
			if i < 0 {
				return
			}
			o.figures(d, i)
			if g.delegate {
				d.Layer(i).Scope = draft.Text(g.graph)
			}
			n.add(d, i, &g.block, delegated(d.Layer(i).Op))
		}
	}
	n.apply(d)
}

func (o *operator) figures(d *draft.Draft, i int) {
	y := d.Layer(i)
	y.Latency = nil
	if o.time == nil {
		return
	}
	// The statistics are of calls; a layer's time is over all calls of an inference.
	n := o.calls()
	m := &profile.Metric{Mean: new(o.time.mean() * n / 1e6)}
	if n == 1 { // minima and maxima of calls are not those of inferences
		m.Min, m.Max = new(float64(o.time.min)/1e6), new(float64(o.time.max)/1e6)
		m.StdDev, m.N = new(o.time.stddev/1e6), &o.time.count
	} else {
		y.Calls = &n
	}
	y.Latency = draft.Metric(m)
	d.Set(i, firstTime, float64(o.time.first)/1e6)
	d.Set(i, lastTime, float64(o.time.last)/1e6)
	if o.mem != nil {
		d.Set(i, memory, o.mem.mean()*1e3)
	}
}

// readResult reads a BenchmarkResult.
func readResult(d *draft.Draft, r protoread.Reader, name *string) error {
	values := func(of message, to *[mostFields]*float64) func(protoread.Reader) {
		return func(m protoread.Reader) {
			for m.Next() {
				switch of[m.Num()] {
				case integer:
					to[m.Num()] = new(float64(m.Int()))
				case float:
					to[m.Num()] = new(float64(m.Float()))
				}
			}
		}
	}
	var latency, memory, misc [mostFields]*float64
	err := r.Scan(1, name, 2, values(latencyMessage, &latency), 3, values(memoryMessage, &memory), 4, values(miscMessage, &misc))
	for i, v := range latency {
		if v != nil {
			latency[i] = new(*v / 1e3)
		}
	}
	t := &profile.Metric{Mean: latency[1], Min: latency[2], Max: latency[3], StdDev: latency[4], Median: latency[5], P95: latency[7]}
	if misc[2] != nil {
		t.N = new(int64(*misc[2]))
		d.P.Settings.Runs = t.N
	}
	d.P.Totals.Latency = draft.Metric(t)
	d.P.Phases = &profile.Phases{PlanS: positive(latency[8]), FirstRunS: positive(latency[9])}
	if n := misc[3]; n != nil && *n >= 0 {
		d.P.Phases.Warmup = &profile.Warmup{Count: new(int64(*n))}
	}
	for _, x := range []struct {
		v     *float64
		q     profile.Quantity
		scale float64
	}{
		{latency[6], p5Time, 1},
		{latency[10], warmup, 1},
		{memory[1], processMemory("delta", true), 1 << 10},
		{memory[2], processMemory("delta", false), 1 << 10},
		{memory[3], processMemory("peak", false), 1 << 20},
		{misc[1], profile.Quantity{Key: "recorded_model_bytes", Unit: "B", Name: "Model file as recorded", Group: "Memory"}, 1e6},
		{misc[4], profile.Quantity{Key: "model_bytes_per_s", Unit: "B/s", Name: "Model bytes per second", Group: "Rates"}, 1e6},
	} {
		if x.v != nil {
			d.Total(x.q, *x.v*x.scale)
		}
	}
	return err
}

func positive(v *float64) *float64 {
	if v == nil || !(*v >= 0) || math.IsInf(*v, 0) {
		return nil
	}
	return v
}
