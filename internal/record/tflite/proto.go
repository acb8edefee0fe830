package tflite

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/model/protoread"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/profile"
)

// maxProto bounds a protocol-buffer file.
const maxProto = 256 << 20

// kind is one of the three messages that the tool writes.
type kind int

const (
	none kind = iota
	profiling
	result
	runtime
)

// matchProto recognises the messages by the shape of their fields: they have no mark of
// their own.
func matchProto(f *record.File) record.Sure {
	if kindOf(f.Head, f.Whole) != none {
		return record.Likely
	}
	return record.No
}

// kindOf walks the beginning of a message. What contradicts all kinds is none of them.
func kindOf(head []byte, whole bool) kind {
	if len(head) < 4 || head[0] != 0x0a && head[0] != 0x12 && head[0] != 0x1a {
		return none
	}
	possible := map[kind]bool{profiling: true, result: true, runtime: true}
	sure := none
	r := protoread.NewReader(head)
	for r.Next() {
		switch r.Num() {
		case 1:
			b := r.Bytes()
			if r.Err() != nil || !printable(b) {
				return none
			}
		case 2, 3, 4:
			b := r.Bytes()
			if r.Err() != nil {
				return none
			}
			if r.Num() == 4 || len(b) > 0 && !isProfile(b) {
				possible[profiling] = false
			} else if len(b) > 0 {
				sure = profiling
			}
			if !isMetrics(b, r.Num()) {
				possible[result] = false
			} else if len(b) > 0 && r.Num() == 2 {
				sure = result
			}
			if r.Num() != 2 || !isSubgraph(b) {
				possible[runtime] = false
			} else {
				sure = runtime
			}
		default:
			return none
		}
	}
	if r.Err() != nil && whole {
		return none
	}
	for _, k := range []kind{profiling, result, runtime} {
		if possible[k] && sure != none && (sure == k || !possible[sure]) {
			return k
		}
	}
	return none
}

func printable(b []byte) bool {
	return utf8.Valid(b) && !slices.ContainsFunc([]rune(string(b)), func(r rune) bool { return !unicode.IsPrint(r) })
}

// isProfile reports whether b is a ModelProfilingData with an operator that has a type and a
// figure.
func isProfile(b []byte) bool {
	r := protoread.NewReader(b)
	found := false
	for r.Next() {
		if n := r.Num(); n != 1 && n != 2 {
			return false
		}
		delegate := r.Num() == 2
		g := r.Message()
		for g.Next() {
			switch n := g.Num(); {
			case n == 1:
				if !printable(g.Bytes()) {
					return false
				}
			case n == 2 && !delegate:
				g.Int()
			case n == 3 && !delegate || n == 2:
				o := g.Message()
				for o.Next() {
					switch o.Num() {
					case 1, 5:
						if !printable(o.Bytes()) {
							return false
						}
					case 2, 3:
						o.Bytes()
						found = true
					case 4, 6:
						o.Int()
					default:
						return false
					}
				}
				if o.Err() != nil {
					return false
				}
			default:
				return false
			}
		}
		if g.Err() != nil {
			return false
		}
	}
	return found && r.Err() == nil
}

// isMetrics reports whether b is one of the messages of figures of a BenchmarkResult.
func isMetrics(b []byte, field int) bool {
	most := map[int]int{2: 10, 3: 3, 4: 4}[field]
	r := protoread.NewReader(b)
	for r.Next() {
		if r.Num() < 1 || r.Num() > most {
			return false
		}
		if whole := field == 3 && r.Num() < 3 || field == 4 && (r.Num() == 2 || r.Num() == 3); whole {
			r.Int()
		} else {
			r.Float()
		}
	}
	return r.Err() == nil
}

// isSubgraph reports whether b is a RuntimeSubgraph with nodes or edges.
func isSubgraph(b []byte) bool {
	r := protoread.NewReader(b)
	found := false
	for r.Next() {
		switch r.Num() {
		case 1, 5:
			r.Int()
		case 2, 3:
			m := r.Message()
			found = m.Err() == nil
		case 4:
			r.Ints(nil)
		default:
			return false
		}
	}
	return found && r.Err() == nil
}

func readProto(f *record.File, in *record.Input) ([]*runlog.Run, error) {
	b, err := f.Read(maxProto)
	if err != nil {
		return nil, err
	}
	var d *draft.Draft
	switch kindOf(f.Head, f.Whole) {
	case profiling:
		d, err = readProfiling(b, draft.Stem(f))
	case result:
		d, err = readResult(b, draft.Stem(f))
	case runtime:
		d, err = readRuntime(b, draft.Stem(f))
	}
	if d == nil || d.Empty() {
		if err == nil {
			err = draft.ErrNothing
		}
		return nil, err
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
	has                                    bool
}

func readStat(r protoread.Reader) (s opStat) {
	s.has = true
	for r.Next() {
		switch r.Num() {
		case 1:
			s.first = r.Int()
		case 2:
			s.last = r.Int()
		case 3:
			s.avg = r.Int()
		case 4:
			s.stddev = float64(r.Float())
		case 5: // the variance says the same
		case 6:
			s.min = r.Int()
		case 7:
			s.max = r.Int()
		case 8:
			s.sum = r.Int()
		case 9:
			s.count = r.Int()
		}
	}
	return s
}

// mean is exact where the sum is there: the average is cut to whole microseconds.
func (s *opStat) mean() float64 {
	if s.count > 0 && s.sum > 0 {
		return float64(s.sum) / float64(s.count)
	}
	return float64(s.avg)
}

// operator is an OpProfileData.
type operator struct {
	node, name    string
	time, mem     opStat
	called, order int64
}

func readOperator(r protoread.Reader) (o operator, err error) {
	o.called = 1
	for r.Next() {
		switch r.Num() {
		case 1:
			o.node = string(r.Bytes())
		case 2:
			o.time = readStat(r.Message())
		case 3:
			o.mem = readStat(r.Message())
		case 4:
			o.called = r.Int()
		case 5:
			o.name = string(r.Bytes())
		case 6:
			o.order = r.Int()
		}
	}
	return o, r.Err()
}

// graphProfile is what a message says of a graph or of delegates.
type graphProfile struct {
	block
	ops []operator
}

// readGraphs reads a ModelProfilingData.
func readGraphs(r protoread.Reader) (out []graphProfile, err error) {
	for r.Next() {
		delegate := r.Num() == 2
		if r.Num() > 2 {
			continue
		}
		g := graphProfile{block: block{delegate: delegate}}
		m := r.Message()
		for m.Next() {
			switch n := m.Num(); {
			case n == 1:
				g.graph = m.Str()
			case n == 2 && !delegate:
				g.index = m.Int()
			case n == 3 && !delegate, n == 2:
				o, e := readOperator(m.Message())
				if e != nil && err == nil {
					err = e
				}
				if len(g.ops) < draft.MaxLayers {
					g.ops = append(g.ops, o)
				}
			}
		}
		if e := m.Err(); e != nil && err == nil {
			err = e
		}
		slices.SortStableFunc(g.ops, func(a, b operator) int { return cmp.Compare(a.order, b.order) })
		out = append(out, g)
	}
	if e := r.Err(); e != nil {
		err = e
	}
	return out, err
}

// readProfiling reads a BenchmarkProfilingData.
func readProfiling(b []byte, name string) (*draft.Draft, error) {
	d := draft.New("tflite-benchmark", name, "TensorFlow Lite")
	r := protoread.NewReader(b)
	var first error
	for r.Next() {
		switch r.Num() {
		case 1:
			if s := r.Str(); s != "" {
				d.P.Model.Name = draft.Text(strings.TrimSuffix(s, ".tflite"))
			}
		case 2, 3:
			gs, err := readGraphs(r.Message())
			if err != nil && first == nil {
				first = err
			}
			if r.Num() == 3 {
				fillProfiles(d, gs)
				continue
			}
			for i := range gs {
				for k := range gs[i].ops {
					o := &gs[i].ops[k]
					d.Total(profile.Quantity{Key: "init_" + runlog.Key(o.node) + "_s", Unit: "s", Name: "Initialisation: " + o.node, Group: "Time"}, o.time.mean()*math.Max(1, float64(o.called))/1e6)
				}
			}
		}
	}
	if first == nil {
		first = r.Err()
	}
	return d, first
}

// fillProfiles makes layers of profiles of graphs and delegates.
func fillProfiles(d *draft.Draft, gs []graphProfile) {
	var inside, owners, byDelegate, takers []int
	for gi := range gs {
		g := &gs[gi]
		for k := range g.ops {
			o := &g.ops[k]
			i := addRow(d, &row{node: o.node, name: o.name, called: float64(o.called)}, &g.block)
			if i < 0 {
				return
			}
			o.figures(d, i)
			switch {
			case g.delegate:
				byDelegate = append(byDelegate, i)
				d.Layer(i).Scope = draft.Text(g.graph)
			case g.index > 0:
				inside = append(inside, i)
			}
			if !g.delegate && delegated(d.Layer(i).Op) {
				takers = append(takers, i)
			}
			if !g.delegate && bodies[d.Layer(i).Op] {
				owners = append(owners, i)
			}
		}
	}
	nest(d, owners, inside, "control flow")
	nest(d, takers, byDelegate, "delegates")
}

func (o *operator) figures(d *draft.Draft, i int) {
	y := d.Layer(i)
	y.Latency = nil
	if !o.time.has {
		return
	}
	// The statistics are of calls; a layer's time is over all calls of an inference.
	n := math.Max(1, float64(o.called))
	part := func(v int64) *float64 {
		if n != 1 {
			return nil // extremes of calls are none of inferences
		}
		return new(float64(v) / 1e6)
	}
	m := &profile.Metric{Mean: new(o.time.mean() * n / 1e6), Min: part(o.time.min), Max: part(o.time.max)}
	if n == 1 {
		m.StdDev, m.N = new(o.time.stddev/1e6), &o.time.count
	} else {
		y.Calls = &n
	}
	y.Latency = draft.Metric(m)
	d.Set(i, firstTime, float64(o.time.first)/1e6)
	d.Set(i, profile.Quantity{Key: "last_s", Unit: "s", Head: "last", Name: "Time in the last run", Group: "Time"}, float64(o.time.last)/1e6)
	if o.mem.has {
		d.Set(i, memory, o.mem.mean()*1e3)
	}
}

// readResult reads a BenchmarkResult.
func readResult(b []byte, name string) (*draft.Draft, error) {
	d := draft.New("tflite-benchmark", name, "TensorFlow Lite")
	r := protoread.NewReader(b)
	var v [5][11]*float64
	for r.Next() {
		switch n := r.Num(); n {
		case 1:
			if s := r.Str(); s != "" {
				d.P.Model.Name = draft.Text(strings.TrimSuffix(s, ".tflite"))
			}
		case 2, 3, 4:
			m := r.Message()
			for m.Next() {
				if k := m.Num(); k >= 1 && k <= 10 {
					if whole := n == 3 && k < 3 || n == 4 && (k == 2 || k == 3); whole {
						v[n][k] = new(float64(m.Int()))
					} else {
						v[n][k] = new(float64(m.Float()))
					}
				}
			}
		}
	}
	ms := func(i int) *float64 {
		if v[2][i] == nil {
			return nil
		}
		return new(*v[2][i] / 1e3)
	}
	t := &profile.Metric{Mean: ms(1), Min: ms(2), Max: ms(3), StdDev: ms(4), Median: ms(5), P95: ms(7)}
	if v[4][2] != nil {
		t.N = new(int64(*v[4][2]))
		d.P.Settings.Runs = t.N
	}
	d.P.Totals.Latency = draft.Metric(t)
	ph := &profile.Phases{PlanS: positive(ms(8)), FirstRunS: positive(ms(9))}
	if n := v[4][3]; n != nil && *n >= 0 {
		ph.Warmup = &profile.Warmup{Count: new(int64(*n))}
	}
	d.P.Phases = ph
	for _, x := range []struct {
		v     *float64
		q     profile.Quantity
		scale float64
	}{
		{v[2][6], profile.Quantity{Key: "latency_p5_s", Unit: "s", Name: "Inference, p5", Group: "Time"}, 1e-3},
		{v[2][10], profile.Quantity{Key: "warmup_s", Unit: "s", Name: "Inference while warming up", Group: "Time"}, 1e-3},
		{v[3][1], profile.Quantity{Key: "memory_delta_init_bytes", Unit: "B", Name: "Memory of the process, delta, initialised", Group: "Memory"}, 1 << 10},
		{v[3][2], profile.Quantity{Key: "memory_delta_bytes", Unit: "B", Name: "Memory of the process, delta", Group: "Memory"}, 1 << 10},
		{v[3][3], profile.Quantity{Key: "memory_peak_bytes", Unit: "B", Name: "Memory of the process, peak", Group: "Memory"}, 1 << 20},
		{v[4][1], profile.Quantity{Key: "recorded_model_bytes", Unit: "B", Name: "Model file as recorded", Group: "Memory"}, 1e6},
		{v[4][4], profile.Quantity{Key: "model_bytes_per_s", Unit: "B/s", Name: "Model bytes per second", Group: "Rates"}, 1e6},
	} {
		if x.v != nil {
			d.Total(x.q, *x.v*x.scale)
		}
	}
	return d, r.Err()
}

func positive(v *float64) *float64 {
	if v == nil || !(*v >= 0) || math.IsInf(*v, 0) {
		return nil
	}
	return v
}
