// Package neuralengine reads the two files of the profiler in Intel's Neural Engine (of Extension
// for Transformers and Neural Compressor): the comma-separated table with the formulas of its
// what-if model, and the trace of all iterations.
//
// Both have quirks that its source explains: names stand without quotes, a scalar prints nothing
// and not even its separator, times of the trace are laid end to end and keep six digits.
package neuralengine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// Format is the reader.
func Format() *record.Format {
	return &record.Format{
		Name:  "neural-engine",
		Title: "Intel Neural Engine profiler",
		Files: "profiling_<time>_<n>.csv and .json of ENGINE_PROFILING; opmeter's own table (report format neural-engine); files of several instances become one run",
		Gives: []string{"latency_s", "samples", "timeline", "shapes", "options"},
		Match: match,
		Read:  read,
		// The profiler puts tables and traces of a run into folders beside each other.
		Folder: func(dir string) string {
			if b := path.Base(dir); b == "profiling_csv" || b == "profiling_trace" {
				return path.Dir(dir)
			}
			return dir
		},
	}
}

const tableHead = "operator type,post op,operator name,"

func match(f *record.File) record.Sure {
	if isTrace(f) {
		return record.Certain
	}
	if !textscan.Any(f.Head, tableHead, "weight shape,90%") {
		return record.No
	}
	for _, l := range textscan.Head(f.Head, f.Whole) {
		if strings.HasPrefix(l, tableHead) || strings.HasPrefix(l, "weight shape,90% 4x1 perf ratio") {
			return record.Certain
		}
	}
	return record.No
}

var stringTid = regexp.MustCompile(`"tid":\s*"(?:inference|Iteration|Operator)"`)

// isTrace recognises the trace: its threads are named by strings.
func isTrace(f *record.File) bool {
	head := bytes.TrimLeft(f.Head, " \t\r\n")
	return bytes.HasPrefix(head, []byte("{")) && bytes.Contains(head, []byte(`"traceEvents"`)) && bytes.Contains(head, []byte("model_inference")) && stringTid.Match(head)
}

var instanceName = regexp.MustCompile(`^(.*)_(\d+)$`)

// instance parts a file's name into that of the run and the instance.
func instance(f *record.File) (run, n string) {
	s := draft.Stem(f)
	if m := instanceName.FindStringSubmatch(s); m != nil && strings.HasPrefix(s, "profiling_") {
		return m[1], m[2]
	}
	return s, ""
}

// timeName is a file's name with the time at which an instance ended.
var timeName = regexp.MustCompile(`^profiling_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d$`)

// runsOf finds instances of one run that ended in different seconds: their numbers go on
// from file to file. It gives the run's name, that of its first instance, for names of
// files that have another one.
func runsOf(files []*record.File) map[string]string {
	type end struct {
		name string
		n    int
	}
	var ends []end
	for _, f := range files {
		name, number := instance(f)
		n, err := strconv.Atoi(number)
		if e := (end{name, n}); err == nil && timeName.MatchString(name) && !slices.Contains(ends, e) {
			ends = append(ends, e)
		}
	}
	slices.SortFunc(ends, func(a, b end) int { return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(a.n, b.n)) })
	out := map[string]string{}
	for i, e := range ends {
		if i > 0 && e.n == ends[i-1].n+1 && e.name != ends[i-1].name {
			before := ends[i-1]
			out[fmt.Sprintf("%s_%d", e.name, e.n)] = cmp.Or(out[fmt.Sprintf("%s_%d", before.name, before.n)], before.name)
		} else if i > 0 && e.name == ends[i-1].name {
			// Of one second, as the first of them.
			if run := out[fmt.Sprintf("%s_%d", e.name, ends[i-1].n)]; run != "" && e.n == ends[i-1].n+1 {
				out[fmt.Sprintf("%s_%d", e.name, e.n)] = run
			}
		}
	}
	return out
}

// alike parts what goes by one name where it is of different models: two that ended in the
// same second.
func (r *runFiles) alike() []*runFiles {
	var out []*runFiles
	find := func(signature string) *runFiles {
		for _, o := range out {
			if o.signature == signature {
				return o
			}
		}
		o := &runFiles{name: r.name, signature: signature, files: r.files}
		if len(out) > 0 {
			o.name = fmt.Sprintf("%s (%d)", r.name, len(out)+1)
		}
		out = append(out, o)
		return o
	}
	for _, t := range r.traces {
		var s strings.Builder
		for _, o := range t.ops {
			s.WriteString(o.key + "\x00")
		}
		o := find(s.String())
		o.traces = append(o.traces, t)
	}
	// A table goes with the trace of its instance, others with tables of the same operators.
	for _, t := range r.tables {
		var s strings.Builder
		for _, o := range t.ops {
			s.WriteString(o.key + "\x00")
		}
		o := (*runFiles)(nil)
		for _, x := range out {
			if slices.ContainsFunc(x.traces, func(y *trace) bool { return y.instance == t.instance }) {
				o = x
			}
		}
		if o == nil {
			o = find(s.String())
		}
		o.tables = append(o.tables, t)
	}
	return out
}

// runFiles holds the files of one run.
type runFiles struct {
	name string
	// signature is the operators, where several models go by one name.
	signature string

	tables []*table
	traces []*trace
	files  []*record.File
}

func read(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	by := map[string]*runFiles{}
	var order []*runFiles
	var errs []error
	runs := runsOf(in.Files)
	for _, f := range in.Files {
		if err := ctx.Err(); err != nil {
			errs = append(errs, err)
			break
		}
		name, n := instance(f)
		name = cmp.Or(runs[name+"_"+n], name)
		r := by[name]
		if r == nil {
			r = &runFiles{name: name}
			by[name] = r
			order = append(order, r)
		}
		r.files = append(r.files, f)
		var err error
		if isTrace(f) {
			var t *trace
			if t, err = readTrace(f, in, n); t != nil {
				r.traces = append(r.traces, t)
			}
		} else {
			var t *table
			if t, err = readTable(f, in, n); t != nil {
				r.tables = append(r.tables, t)
			}
		}
		if err != nil {
			errs = append(errs, record.Fault(f, err))
		}
	}
	var out []*runlog.Run
	for _, r := range order {
		for _, one := range r.alike() {
			d := one.build()
			if d.Empty() {
				if len(errs) == 0 {
					errs = append(errs, record.Fault(r.files[0], draft.ErrNothing))
				}
				continue
			}
			out = append(out, d.Run())
		}
	}
	return out, errors.Join(errs...)
}

// build makes one run of all instances: an operator's figures are over all of them.
func (r *runFiles) build() *draft.Draft {
	d := draft.New("neural-engine", r.name, "Neural Engine")
	at := map[string]int{}
	if len(r.traces) > 0 {
		traces(d, r.traces, at)
	}
	for k, t := range r.tables {
		t.into(d, at, k == 0)
	}
	if len(r.tables) > 0 {
		latencies(d, r.tables, at, len(r.traces) == 0)
		whatIf(d, r.tables[0])
	}
	if n := max(len(r.tables), len(r.traces)); n > 1 {
		d.P.Settings.Instances = new(int64(n))
		r.single(d, at)
		d.Found("neural_engine.instances", profile.Info, "%d instances ran the model. The figures are over all of them; the record does not say on which processors each ran.", n)
	}
	return d
}

// mostInstances is the number of instances whose own figures a run has.
const mostInstances = 64

// single sets the times of each instance beside those over all: of its trace, without the first
// iteration where there are others, or of its table.
func (r *runFiles) single(d *draft.Draft, at map[string]int) {
	quantity := func(name string) profile.Quantity {
		return profile.Quantity{
			Key: "instance_" + name + "_s", Unit: "s", Head: "instance " + name, Name: "Time in instance " + name, Group: "Instances", Adds: true, Better: -1,
			Doc: "Time in instance " + name + " alone.",
		}
	}
	for k, t := range r.traces[:min(len(r.traces), mostInstances)] {
		sums, counts := map[int]int64{}, map[int]int64{}
		for n, calls := range t.iterations {
			if n == 0 && len(t.iterations) > 1 {
				continue
			}
			for _, c := range calls {
				if i, ok := at[t.ops[c.layer].key]; ok {
					sums[i] += c.forward + c.reshape
					counts[i]++
				}
			}
		}
		for i, n := range counts {
			d.Set(i, quantity(cmp.Or(t.instance, strconv.Itoa(k))), float64(sums[i])/float64(n)/1e9)
		}
	}
	if len(r.traces) > 1 {
		return
	}
	for k, t := range r.tables[:min(len(r.tables), mostInstances)] {
		for _, o := range t.ops {
			if i, ok := at[o.key]; ok && o.latency != nil {
				d.Set(i, quantity(cmp.Or(t.instance, strconv.Itoa(k))), *o.latency)
			}
		}
	}
}

// key tells operators of one name apart.
func key(name string, seen map[string]int) string {
	seen[name]++
	return fmt.Sprintf("%s\x00%d", name, seen[name])
}

// latencies sets times and what was estimated over the tables of all instances.
func latencies(d *draft.Draft, ts []*table, at map[string]int, times bool) {
	values := map[int][]float64{}
	totals := make([]float64, len(ts))
	for k, t := range ts {
		for _, o := range t.ops {
			if i, ok := at[o.key]; ok && o.latency != nil {
				values[i] = append(values[i], *o.latency)
				totals[k] += *o.latency
			}
		}
	}
	for _, i := range slices.Sorted(keys(values)) {
		vs := values[i]
		m, kept := draft.Samples(vs, "one figure of each instance")
		if len(vs) == 1 {
			m, kept = draft.Value(vs[0]), nil
		}
		if times || d.Layer(i).Latency == nil {
			d.Layer(i).Latency, d.Layer(i).Samples = m, kept
		} else if v, ok := m.Best(); ok {
			d.Set(i, profile.Quantity{Key: "table_s", Unit: "s", Head: "table", Name: "Time in the table", Group: "Time", Adds: true, Doc: "Time by the profiler's table, without preparing shapes."}, v)
		}
	}
	if times && len(totals) > 1 {
		d.P.Totals.Latency, d.P.Totals.LatencySamples = draft.Samples(totals, "sum of the operators of each instance")
	}
}

func keys(m map[int][]float64) func(func(int) bool) {
	return func(yield func(int) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// dtypes are the engine's names of types.
var dtypes = map[string]string{"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "s8": "int8", "u8": "uint8", "s32": "int32", "s64": "int64", "fp8": "float8"}

// dtype gives the name that profiles use; it may stand there already.
func dtype(s string) string { return cmp.Or(dtypes[s], s) }

// ports makes tensors of lists of names, shapes and types. A scalar prints nothing: where
// there are fewer shapes than names nobody can tell whose they are.
func ports(names, shapes, types []string, dims string) (out []profile.Tensor) {
	n := max(len(names), len(types))
	for i := range n {
		t := profile.Tensor{}
		if i < len(names) {
			t.Name = draft.Text(names[i])
		}
		if i < len(types) {
			t.DType = dtype(types[i])
		}
		if len(shapes) == n {
			t.Shape = shape(shapes[i], dims)
		}
		out = append(out, t)
	}
	return out
}

// list parts a cell; an empty one has nothing.
func list(s, sep string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, sep)
}

// shape reads 256x1024; "" is a scalar and "?" not known.
func shape(s, sep string) []int64 {
	if s == "?" {
		return nil
	}
	out := []int64{}
	for _, f := range list(s, sep) {
		n, ok := textscan.Whole(f)
		switch {
		case f == "?":
			n = -1
		case !ok || n < -1:
			return nil
		}
		out = append(out, n)
	}
	return out
}
