package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/external/litert"
	"github.com/opmeter/opmeter/internal/external/onnxruntime"
	"github.com/opmeter/opmeter/internal/external/openvino"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/source/join"
	"github.com/opmeter/opmeter/profile"
)

// answer is the file of a result, in the folder that is the argument.
const answer = "answer.json"

var opens = map[string]func(string) (external.Library, error){"onnxruntime": onnxruntime.Open, "litert": litert.Open, "openvino": openvino.Open}

// child does one task.
func child(text string) {
	runtime.LockOSThread()
	t, r := &task{}, &result{}
	err := json.Unmarshal([]byte(text), t)
	if err == nil && len(os.Args) == 2 {
		err = r.fill(t)
	}
	if err != nil {
		r.Error = err.Error()
	}
	b, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(filepath.Join(os.Args[1], answer), b, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "join:", err)
		os.Exit(1)
	}
}

func (r *result) fill(t *task) error {
	base, k, err := prepare(t.Model)
	if err != nil {
		return err
	}
	k.Folder = os.Args[1]
	if t.Level != "" {
		k.Options = []external.Option{{Key: "optimization", Value: t.Level}}
	}
	l, err := opens[t.Engine](t.Library)
	if err != nil {
		return err
	}
	run, err := writeRecord(l, k, t.Runs)
	if err != nil {
		return err
	}
	rows := run.Profile.Layers
	ms := join.Find(base.Layers, rows, run.Hints)
	join.Fill(run.Profile, base, ms)
	r.times(rows, ms)
	r.work(base.Layers, rows, ms)
	if t.Verbose {
		r.list(base.Layers, run, ms)
	}
	return nil
}

// times adds up the time of rows by how they were found.
func (r *result) times(rows []profile.Layer, ms []join.Match) {
	all := 0.0
	to := map[profile.Confidence]*float64{profile.Exact: &r.Exact, profile.ByTensor: &r.Tensor, profile.ByName: &r.Name, profile.ByOrder: &r.Order, profile.Unknown: &r.None}
	for i := range rows {
		s, ok := rows[i].Latency.Best()
		if !ok {
			continue
		}
		s += 1e-9 // of rows that take less than the profiler's unit each counts alike
		r.Rows++
		all += s
		if len(ms[i].Serves) > 0 {
			r.Own += s
			continue
		}
		*to[rows[i].Provenance.Confidence] += s
	}
	for _, v := range []*float64{&r.Own, &r.Exact, &r.Tensor, &r.Name, &r.Order, &r.None} {
		*v *= 100 / all
	}
}

// work adds up the multiplications that rows cover.
func (r *result) work(model, rows []profile.Layer, ms []join.Match) {
	had, sure := make([]bool, len(model)), make([]bool, len(model))
	for i, m := range ms {
		macs := int64(0)
		for k, l := range m.Layers {
			had[l] = true
			sure[l] = sure[l] || m.How[k] == profile.Exact || m.How[k] == profile.ByTensor
			macs += value(model[l].MACs)
		}
		if macs == 0 && rows[i].State == profile.Ran && multiplies(rows[i].Op) && len(m.Serves) == 0 {
			r.Empty++
		}
	}
	all := int64(0)
	for l := range model {
		if model[l].Constant || model[l].State.Elsewhere() {
			continue
		}
		n := value(model[l].MACs)
		all += n
		if had[l] {
			r.MACs += float64(n)
		} else if n > 0 && multiplies(model[l].Op) {
			r.Lost++
		}
		if sure[l] {
			r.SureMACs += float64(n)
		}
	}
	if r.Heavy = all > 0; r.Heavy {
		r.MACs *= 100 / float64(all)
		r.SureMACs *= 100 / float64(all)
	}
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// multiplies reports whether an operator is a convolution or a matrix multiplication.
func multiplies(op string) bool {
	s := strings.ToLower(strings.ReplaceAll(op, "_", ""))
	if strings.Contains(s, "reorder") {
		return false
	}
	for _, p := range []string{"conv", "matmul", "gemm", "fullyconnected", "innerproduct"} {
		if strings.Contains(s, p) && s != "convert" {
			return true
		}
	}
	return false
}

// list writes a line for each row, and for each operator that has none.
func (r *result) list(model []profile.Layer, run *runlog.Run, ms []join.Match) {
	rows := run.Profile.Layers
	had := make([]bool, len(model))
	for i := range rows {
		v, _ := rows[i].Latency.Best()
		l := fmt.Sprintf("%4d %9.2f us %-9s %s %q in %v out %v:", i, v*1e6, rows[i].Provenance.Confidence, rows[i].Op, rows[i].Name, run.Hints[i].Inputs, run.Hints[i].Outputs)
		if rows[i].State != profile.Ran {
			l = fmt.Sprintf("%4d %12s %-9s %s %q:", i, rows[i].State, rows[i].Provenance.Confidence, rows[i].Op, rows[i].Name)
		}
		for k, at := range ms[i].Layers {
			had[at] = true
			l += fmt.Sprintf(" %d %s %q %s;", at, model[at].Op, model[at].Name, ms[i].How[k])
		}
		for _, at := range ms[i].Serves {
			l += fmt.Sprintf(" for %d %s %q", at, model[at].Op, model[at].Name)
		}
		r.Lines = append(r.Lines, l)
	}
	for l := range model {
		if !had[l] && !model[l].Constant {
			r.Lines = append(r.Lines, fmt.Sprintf("no row: %d %s %q %s", l, model[l].Op, model[l].Name, model[l].State))
		}
	}
}

func writeRecord(l external.Library, t *external.Task, runs int) (*runlog.Run, error) {
	s, err := l.Load(t)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	p, ok := s.(external.Profiled)
	if !ok {
		return nil, fmt.Errorf("it has no profiler")
	}
	for range runs {
		if err := p.Run(); err != nil {
			return nil, err
		}
		if err := p.AfterRun(-1, false); err != nil {
			return nil, err
		}
	}
	run, err := p.Records()
	if err == nil && run == nil {
		err = fmt.Errorf("nothing was recorded")
	}
	return run, err
}

// prepare makes inputs of a model, and describes it with them.
func prepare(path string) (*profile.Profile, *external.Task, error) {
	m, err := modelfile.Open(path)
	if err != nil {
		return nil, nil, err
	}
	o := inputs.Options{}
	ins, src, err := inputs.Inputs(m, o)
	if err != nil {
		return nil, nil, err
	}
	in := opmeter.Inputs{}
	if h := inputs.Suggest(m, ins, src, o); h != nil {
		in.Dims = h.Dims
		for i, s := range h.Shapes {
			if s != nil {
				if in.Shapes == nil {
					in.Shapes = map[string][]int{}
				}
				in.Shapes[m.Main().Values[m.Main().Inputs[i]].Name] = s
			}
		}
		o.Dims, o.Shapes = in.Dims, in.Shapes
		if ins, _, err = inputs.Inputs(m, o); err != nil {
			return nil, nil, err
		}
	}
	om, err := opmeter.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = om.Close() }()
	base, err := opmeter.Count(om, in)
	if err != nil {
		return nil, nil, err
	}
	t := &external.Task{Model: path, Format: om.Format(), Threads: 1, Profiled: true}
	for i, x := range ins {
		t.Inputs = append(t.Inputs, external.Tensor{Name: m.Main().Values[m.Main().Inputs[i]].Name, DType: x.Type.String(), Shape: x.Shape, Data: x.Data, Strings: x.Strings})
	}
	return base, t, nil
}
