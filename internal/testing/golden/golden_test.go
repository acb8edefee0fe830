package golden

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/npy"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/tflite"
	"github.com/opmeter/opmeter/internal/runtime/synth"
	"github.com/opmeter/opmeter/internal/testing/material"
)

func overrides(t *testing.T) map[string]synth.Overrides {
	t.Helper()
	o, err := synth.LoadOverrides(material.Path(t, "oracle", "inputs.json"))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func results(t *testing.T, engine string) []*Result {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(material.Path(t, "golden"), "*.tflite", engine, "result.json"))
	var out []*Result
	for _, f := range files {
		r, err := Load(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		t.Fatalf("no results of %s", engine)
	}
	return out
}

// table collects what is wrong, one line a model.
type table struct{ rows []string }

func (b *table) add(model string, what ...string) {
	what = slices.DeleteFunc(what, func(s string) bool { return s == "" })
	b.rows = append(b.rows, fmt.Sprintf("%-52s %s", model, strings.Join(what, " | ")))
}

func (b *table) report(t *testing.T) {
	t.Helper()
	if len(b.rows) > 0 {
		t.Errorf("%d models fail:\n%s", len(b.rows), strings.Join(b.rows, "\n"))
	}
}

// TestTFLM compares every operator's output with the reference kernels of TFLite
// Micro, bit for bit. The references were made on amd64; elsewhere Go may fuse
// multiplication and addition, so that floats are only counted there.
func TestTFLM(t *testing.T) {
	over := overrides(t)
	models := material.Path(t, "models")
	var bad table
	count := struct{ models, equal, integer, integerEqual, float, floatEqual int }{}
	for _, r := range results(t, "tflm") {
		count.models++
		file, err := FindModel(models, r.Model)
		if err != nil {
			t.Error(err)
			continue
		}
		run, err := Open(file, over[r.Model])
		if err != nil {
			bad.add(r.Model, errorText(err))
			continue
		}
		var wrong []string
		if err := settled(run, len(r.Run2) > 0); err != nil {
			wrong = append(wrong, "run: "+errorText(err))
		}
		g := run.Model.Main()
		first, differ := "", 0
		for _, l := range r.Layers {
			got := run.Session.Value(l.Tensor)
			equal := got.Known() && Hash(got) == l.SHA256
			n, all := &count.integer, &count.integerEqual
			float := touchesFloat(g, l.Op)
			if float {
				n, all = &count.float, &count.floatEqual
			}
			*n++
			if equal {
				*all++
				continue
			}
			if float && runtime.GOARCH != "amd64" {
				continue
			}
			if differ++; first == "" {
				first = fmt.Sprintf("op %d %s tensor %d%s", l.Op, g.Nodes[l.Op].Key(), l.Tensor, difference(got, l))
			}
		}
		if differ > 0 {
			wrong = append(wrong, fmt.Sprintf("%d operators differ, first %s", differ, first))
		}
		wrong = append(wrong, compare(run, r, r.Outputs, "")...)
		if len(r.Run2) > 0 && len(wrong) == 0 {
			if err := run.Once(); err != nil {
				wrong = append(wrong, "second run: "+errorText(err))
			}
			wrong = append(wrong, compare(run, r, r.Run2, "second run ")...)
		}
		if trouble := run.Trouble(); trouble != "" || len(wrong) > 0 {
			bad.add(r.Model, append([]string{trouble}, wrong...)...)
		} else {
			count.equal++
		}
		if err := run.Close(); err != nil {
			t.Error(err)
		}
	}
	// What the material holds: fewer comparisons would mean that some were not made.
	if count.models < 29 || count.integer < 405 || count.float < 591 {
		t.Errorf("compared %d models, %d integer and %d float operators", count.models, count.integer, count.float)
	}
	t.Logf("TFLite Micro: %d of %d models equal; %d of %d integer and %d of %d float operators equal bit for bit",
		count.equal, count.models, count.integerEqual, count.integer, count.floatEqual, count.float)
	bad.report(t)
}

func difference(got *tensor.Tensor, l Layer) string {
	switch {
	case !got.Known():
		return " not computed"
	case len(got.Data) != l.Bytes:
		return fmt.Sprintf(": %d bytes, want %d", len(got.Data), l.Bytes)
	case got.Type.String() != l.Dtype:
		return fmt.Sprintf(": type %v, want %s", got.Type, l.Dtype)
	}
	return ""
}

// touchesFloat reports whether a node reads or writes floats.
func touchesFloat(g *graph.Graph, node int) bool {
	n := g.Nodes[node]
	return slices.ContainsFunc(slices.Concat(n.Inputs, n.Outputs), func(id int) bool { return id >= 0 && g.Values[id].Type.IsFloat() })
}

// compare checks the main graph's outputs against recorded ones, to the last bit
// on amd64.
func compare(run *Run, r *Result, outputs []Output, what string) []string {
	tol := Exact
	if runtime.GOARCH != "amd64" {
		tol = Tolerance{Relative: 1e-4, Steps: 1}
	}
	wrong := Compare(r.Dir, outputs, run.Outputs(), tol)
	for i := range wrong {
		wrong[i] = what + wrong[i]
	}
	return wrong
}

// TestTFLiteFloat compares with the two builds of TFLite for browsers. Float
// models must agree within 1e-4 of the largest output. Both run integers through
// kernels that rescale in floating point, and hybrid operators each in its own
// way: these get the tolerance that the two were measured to differ by.
func TestTFLiteFloat(t *testing.T) {
	over := overrides(t)
	models := material.Path(t, "models")
	var bad table
	type tally struct{ n, ok int }
	counts := map[kindOf]*tally{plainFloat: {}, hybrid: {}, quantised: {}}
	byModel := map[string][]*Result{}
	var order, skipped []string
	golden := material.Path(t, "golden")
	for _, engine := range []string{"tfjs", "litert"} {
		for _, r := range results(t, engine) {
			if byModel[r.Model] == nil {
				order = append(order, r.Model)
			}
			byModel[r.Model] = append(byModel[r.Model], r)
		}
	}
	slices.Sort(order)
	for _, name := range order {
		file, err := FindModel(models, name)
		if err != nil {
			t.Error(err)
			continue
		}
		run, err := Open(file, over[name])
		if err != nil {
			bad.add(name, errorText(err))
			continue
		}
		k := kind(run.Model)
		counts[k].n++
		tol := map[kindOf]Tolerance{plainFloat: {Relative: 1e-4}, hybrid: {Relative: 0.05}, quantised: {Relative: 0.05, Steps: 10}}[k]
		if k == quantised && sensitive[name] > 0 {
			tol.Relative = sensitive[name]
		}
		if k == quantised && exists(filepath.Join(golden, name, "tflm")) && integerLSTM(run.Model) {
			// Micro's integer LSTM is another algorithm than that of the full runtime;
			// TestTFLM holds the engine to it.
			counts[k].n--
			skipped = append(skipped, name)
			if err := run.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		var wrong []string
		if err := settled(run, false); err != nil {
			wrong = append(wrong, "run: "+errorText(err))
		}
		agrees := false
		for _, r := range byModel[name] {
			w := CompareFirst(r.Dir, r.Outputs, run.Outputs(), tol, prefix(run.Model, r))
			for i := range w {
				w[i] = filepath.Base(r.Dir) + ": " + w[i]
			}
			agrees = agrees || len(w) == 0
			wrong = append(wrong, w...)
		}
		// Where the two contradict each other one is enough.
		trouble := run.Trouble()
		if trouble == "" && (len(wrong) == 0 || k != plainFloat && agrees) {
			counts[k].ok++
		} else {
			bad.add(name, append([]string{k.String(), trouble}, wrong...)...)
		}
		if err := run.Close(); err != nil {
			t.Error(err)
		}
	}
	if counts[plainFloat].n < 21 || counts[hybrid].n < 3 || counts[quantised].n < 17 || len(skipped) > 3 {
		t.Errorf("compared %d float, %d hybrid, %d quantised models, left %d", counts[plainFloat].n, counts[hybrid].n, counts[quantised].n, len(skipped))
	}
	t.Logf("TFLite for browsers: %d models with integer LSTM left to TestTFLM: %s", len(skipped), strings.Join(skipped, ", "))
	for _, k := range []kindOf{plainFloat, hybrid, quantised} {
		t.Logf("TFLite for browsers: %d of %d %v models agree", counts[k].ok, counts[k].n, k)
	}
	bad.report(t)
}

// sensitive widens the tolerance of quantised models whose outputs jump on one step.
// MoveNet answers with the places of maxima, which for noise lie in flat maps:
// with the engine's rounding replaced by that of the browsers the same keypoints
// move by up to 0.3, while all outputs of the uint8 MobileNets become equal.
var sensitive = map[string]float64{"coral_movenet_lightning_int8.tflite": 0.15}

func integerLSTM(m *graph.Model) bool {
	for _, n := range m.Main().Nodes {
		if n.Op == "UNIDIRECTIONAL_SEQUENCE_LSTM" && n.Inputs[0] >= 0 && !m.Main().Values[n.Inputs[0]].Type.IsFloat() {
			return true
		}
	}
	return false
}

// prefix returns how many detections of a quantised detector can be compared,
// 0 when the model is not one: the list is sorted by score, so that below the
// first two whose scores are close the order is a matter of one step.
func prefix(m *graph.Model, r *Result) int {
	nodes := m.Main().Nodes
	if last := nodes[len(nodes)-1]; last.Op != "TFLite_Detection_PostProcess" || kind(m) != quantised || len(r.Outputs) < 3 {
		return 0
	}
	scores, err := npy.ReadFile(filepath.Join(r.Dir, r.Outputs[2].File), nil)
	if err != nil {
		return 0
	}
	list := numbers(scores)
	for i := range list[:len(list)-1] {
		if list[i]-list[i+1] < 0.02 {
			return max(i, 1)
		}
	}
	return len(list)
}

// TestTFLiteOps runs the operator-sized models.
func TestTFLiteOps(t *testing.T) {
	entries, err := LoadEntries(material.Path(t, "golden", "tflite_ops.json"))
	if err != nil {
		t.Fatal(err)
	}
	over := overrides(t)
	models := material.Path(t, "models", "tflite_ops")
	names := make([]string, 0, len(entries))
	for n := range entries {
		names = append(names, n)
	}
	slices.Sort(names)
	var bad table
	passed, disputed, none := 0, 0, 0
	for _, name := range names {
		e := entries[name]
		engine, ref := e.Trusted()
		switch {
		case len(e.Disputed) > 0:
			disputed++
			continue
		case ref == nil || invalid[name] != "":
			none++
			continue
		}
		run, err := Open(filepath.Join(models, name), over[name])
		if err != nil {
			bad.add(name, errorText(err))
			continue
		}
		var wrong []string
		if err := settled(run, false); err != nil {
			wrong = append(wrong, "run: "+errorText(err))
		}
		tol := Tolerance{Relative: 1e-4}
		if ref.Stateful && !stateful(run.Model) {
			// The engine gave two results for the same inputs: memory that nothing
			// has written.
			none++
			if err := run.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		if k := kind(run.Model); engine != "tflm" && k != plainFloat {
			tol = Tolerance{Relative: 0.02, Steps: 1}
		}
		for _, w := range Compare("", ref.Outputs, run.Outputs(), tol) {
			wrong = append(wrong, engine+": "+w)
		}
		if trouble := run.Trouble(); trouble != "" || len(wrong) > 0 {
			bad.add(name, append([]string{trouble}, wrong...)...)
		} else {
			passed++
		}
		if err := run.Close(); err != nil {
			t.Error(err)
		}
	}
	if passed+len(bad.rows) < 190 || disputed+none > 63 {
		t.Errorf("compared %d operator models, left %d", passed+len(bad.rows), disputed+none)
	}
	t.Logf("operator models: %d passed, %d failed, %d skipped (%d disputed between engines, %d without a result)", passed, len(bad.rows), disputed+none, disputed, none)
	bad.report(t)
}

// invalid lists models whose recorded results mean nothing.
var invalid = map[string]string{
	"litert_segment_sum_invalid_buffer.tflite": "reads a tensor that does not exist",
	"aeq_single_slice.tflite":                  "one begin and one size for three axes: the engines read past their end",
}

// settled runs a model as often as it takes until it computes as in all later runs: where the
// sets of amd64 fuse the rounding of sums, that is from the second run on, see fuse of the
// kernels. first asks for the first run, as models that remember do: their results are others
// then.
func settled(run *Run, first bool) error {
	if err := run.Once(); err != nil || first || runtime.GOARCH != "amd64" || stateful(run.Model) {
		return err
	}
	return run.Once()
}

// stateful reports whether a second run may differ from the first.
func stateful(m *graph.Model) bool {
	for _, g := range m.Graphs {
		for _, v := range g.Values {
			if v.Variable || v.Type == tensor.Resource {
				return true
			}
		}
		for _, n := range g.Nodes {
			if strings.HasPrefix(n.Op, "RANDOM_") || n.Op == "MULTINOMIAL" || n.Domain == graph.TFLiteCustom {
				return true
			}
		}
	}
	return false
}

// TestSeanet runs the int16 operators, whose expected values are exact.
func TestSeanet(t *testing.T) {
	cases, err := Cases(material.Path(t, "models", "tflite_conformance", "seanet_int16.tar.zst"))
	if err != nil {
		t.Fatal(err)
	}
	var bad table
	passed := 0
	for _, c := range cases {
		if why := seanet(c); why != "" {
			bad.add(c.Name, why)
			continue
		}
		passed++
	}
	if len(cases) < 127 {
		t.Errorf("%d cases of int16 conformance, 127 are known", len(cases))
	}
	t.Logf("int16 conformance: %d passed, %d failed, 0 skipped", passed, len(cases)-passed)
	bad.report(t)
}

func seanet(c Case) string {
	m, err := tflite.Parse(c.Model, c.Name)
	if err != nil {
		return errorText(err)
	}
	g := m.Main()
	if len(c.Inputs) != len(g.Inputs) || len(g.Outputs) != 1 {
		return fmt.Sprintf("%d inputs recorded, the model has %d", len(c.Inputs), len(g.Inputs))
	}
	in := make([]*tensor.Tensor, len(g.Inputs))
	for k, id := range g.Inputs {
		v := g.Values[id]
		in[k] = c.Inputs[k].Tensor(synth.Shape(v))
		if in[k] == nil || v.Type != in[k].Type {
			return fmt.Sprintf("input %d: %d values of %v recorded for %s %v", k, len(c.Inputs[k].List), c.Inputs[k].Type, tensor.FormatShape(v.Shape), v.Type)
		}
		in[k].Quant = v.Quant
	}
	run, err := Start(m, in)
	if err != nil {
		return errorText(err)
	}
	defer run.Session.Close()
	if err := run.Once(); err != nil {
		return strings.Join([]string{run.Trouble(), errorText(err)}, " | ")
	}
	got := run.Session.Output(0)
	if !got.Known() {
		return strings.Join([]string{run.Trouble(), "not computed"}, " | ")
	}
	if got.Type != c.Golden.Type || got.Len() != len(c.Golden.List) {
		return fmt.Sprintf("%s of %v, want %d values of %v", tensor.FormatShape(got.Shape), got.Type, len(c.Golden.List), c.Golden.Type)
	}
	differ, worst := 0, 0.0
	for i, x := range numbers(got) {
		if d := x - float64(c.Golden.List[i]); d != 0 {
			differ++
			worst = max(worst, max(d, -d))
		}
	}
	if differ > 0 {
		return strings.TrimPrefix(fmt.Sprintf("%s | %d of %d values differ, by up to %g", run.Trouble(), differ, len(c.Golden.List), worst), " | ")
	}
	return ""
}
