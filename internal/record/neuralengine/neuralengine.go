// Package neuralengine reads the two files of the profiler in Intel's Neural Engine (of Extension
// for Transformers and Neural Compressor): the comma-separated table with the formulas of its
// what-if model, and the trace of all iterations.
//
// Both have quirks that its source explains: names have no quotes, a scalar prints nothing
// and not even its separator, times of the trace have no gaps between them and six digits.
package neuralengine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
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
		// The profiler puts tables and traces of a run into two folders of one folder.
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
	return record.Certain.If(isTrace(f) || record.FindLine(f, func(l string) bool {
		return strings.HasPrefix(l, tableHead) || strings.HasPrefix(l, "weight shape,90% 4x1 perf ratio")
	}, tableHead, "weight shape,90%"))
}

var stringTid = lazyregexp.New(`"tid":\s*"(?:inference|Iteration|Operator)"`)

// isTrace recognises the trace: the names of its threads are strings.
func isTrace(f *record.File) bool {
	h := f.JSONHead("{")
	return h.Has(`"traceEvents"`, "model_inference") && stringTid.Match(h)
}

var instanceName = lazyregexp.New(`^(.*)_(\d+)$`)

// instance splits a file's name into that of the run and the instance.
func instance(f *record.File) (run, n string) {
	s := draft.Stem(f)
	if m := instanceName.FindStringSubmatch(s); m != nil && strings.HasPrefix(s, "profiling_") {
		return m[1], m[2]
	}
	return s, ""
}

// timeName is a file's name with the time at which an instance ended.
var timeName = lazyregexp.New(`^profiling_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d$`)

// runsOf finds instances of one run that ended in different seconds: their numbers continue
// from file to file. It returns the name of the run, which is that of its first instance, by the
// names of the other files.
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
	sorting.Func(ends, func(a, b end) int { return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(a.n, b.n)) })
	out := map[string]string{}
	file := func(e end) string { return fmt.Sprintf("%s_%d", e.name, e.n) }
	for i, e := range ends[min(1, len(ends)):] {
		before := ends[i]
		if run := out[file(before)]; e.n == before.n+1 && (run != "" || e.name != before.name) {
			out[file(e)] = cmp.Or(run, before.name)
		}
	}
	return out
}

// runFiles holds the files of one run.
type runFiles struct {
	name string
	// signature has the operators, to separate models with one name.
	signature string

	tables []*table
	traces []*trace
	first  *record.File
}

// byModel separates runs of different models with one name, which ended in the same second.
func (r *runFiles) byModel() []*runFiles {
	var out []*runFiles
	find := func(signature string) *runFiles {
		for _, o := range out {
			if o.signature == signature {
				return o
			}
		}
		o := &runFiles{name: r.name, signature: signature, first: r.first}
		if len(out) > 0 {
			o.name = fmt.Sprintf("%s (%d)", r.name, len(out)+1)
		}
		out = append(out, o)
		return o
	}
	for _, t := range r.traces {
		o := find(t.signature.String())
		o.traces = append(o.traces, t)
	}
	// A table belongs to the trace of its instance, others to tables with equal operators.
	for _, t := range r.tables {
		var o *runFiles
		for _, x := range out {
			if slices.ContainsFunc(x.traces, func(y *trace) bool { return y.instance == t.instance }) {
				o = x
			}
		}
		if o == nil {
			o = find(t.signature.String())
		}
		o.tables = append(o.tables, t)
	}
	return out
}

func (r *runFiles) read(ctx context.Context, f *record.File) error {
	_, n := instance(f)
	if !isTrace(f) {
		t, err := readTable(f, n)
		if t != nil {
			r.tables = append(r.tables, t)
		}
		return err
	}
	t, err := readTrace(ctx, f, n)
	if t != nil {
		r.traces = append(r.traces, t)
	}
	return err
}

func read(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	runs := runsOf(in.Files)
	nameOf := func(f *record.File) string {
		name, n := instance(f)
		return cmp.Or(runs[name+"_"+n], name)
	}
	groups, errs := record.Groups(ctx, in.Files, nameOf, func(f *record.File) *runFiles {
		return &runFiles{name: nameOf(f), first: f}
	}, func(r *runFiles, f *record.File) error { return r.read(ctx, f) })
	var out []*runlog.Run
	for _, r := range groups {
		for _, one := range r.byModel() {
			if d := one.build(); !d.Empty() {
				out = append(out, d.Run())
			} else if len(errs) == 0 {
				errs = append(errs, record.Fault(r.first, draft.ErrNothing))
			}
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

// mostInstances limits the instances with own figures in a run.
const mostInstances = 64

// single sets the times of each instance: of its trace, without the first iteration if there are
// others, or of its table.
func (r *runFiles) single(d *draft.Draft, at map[string]int) {
	set := func(i, k int, instance string, seconds float64) {
		name := cmp.Or(instance, strconv.Itoa(k))
		d.Set(i, profile.Quantity{
			Key: "instance_" + name + "_s", Unit: "s", Head: "instance " + name, Name: "Time in instance " + name, Group: "Instances", Adds: true, Better: -1,
			Doc: "Time in instance " + name + " alone.",
		}, seconds)
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
			set(i, k, t.instance, float64(sums[i])/float64(n)/1e9)
		}
	}
	if len(r.traces) > 1 {
		return
	}
	for k, t := range r.tables[:min(len(r.tables), mostInstances)] {
		for _, o := range t.ops {
			if i, ok := at[o.key]; ok && o.latency != nil {
				set(i, k, t.instance, *o.latency)
			}
		}
	}
}

// key distinguishes operators with one name.
func key(name string, seen map[string]int) string {
	seen[name]++
	return fmt.Sprintf("%s\x00%d", name, seen[name])
}

// latencies sets times over the tables of all instances.
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
	for _, i := range slices.Sorted(maps.Keys(values)) {
		method := ""
		if len(values[i]) > 1 {
			method = "one figure of each instance"
		}
		m, kept := draft.Figure(values[i], method)
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

// dtypes are the engine's names of types.
var dtypes = map[string]string{"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "s8": "int8", "u8": "uint8", "s32": "int32", "s64": "int64", "fp8": "float8"}

// dtype returns the name that profiles use; s may be such a name.
func dtype(s string) string { return cmp.Or(dtypes[s], s) }

// ports makes tensors of lists of names, shapes and types. A scalar prints nothing: if there are
// fewer shapes than names, it is unknown whose they are.
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

// list splits a cell; an empty one has no elements.
func list(s, sep string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, sep)
}

// shape parses 256x1024; "" is a scalar, "?" unknown.
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
