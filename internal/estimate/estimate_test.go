package estimate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/profile"
)

// dense is a model of one fully connected layer and one operator after it.
func dense(typ tensor.Type, in, out int, domain, then string) *graph.Model {
	v := func(id int, name string, shape ...int) *graph.Value {
		return &graph.Value{ID: id, Name: name, Type: typ, Shape: shape, HasShape: true}
	}
	g := &graph.Graph{Inputs: []int{0}, Outputs: []int{3}}
	g.Values = []*graph.Value{v(0, "in", 1, in), v(1, "w", out, in), v(2, "mid", 1, out), v(3, "out", 1, out)}
	g.Values[1].Const = tensor.New(typ, out, in)
	g.Nodes = []*graph.Node{
		{Index: 0, Domain: graph.TFLite, Op: "FULLY_CONNECTED", Version: 1, Inputs: []int{0, 1}, Outputs: []int{2}},
		{Index: 1, Domain: domain, Op: then, Version: 1, Inputs: []int{2}, Outputs: []int{3}},
	}
	return &graph.Model{Format: "tflite", Path: "net.tflite", FileBytes: int64(in*out + 1000), Graphs: []*graph.Graph{g}}
}

func has(p *profile.Profile, id string, s profile.Severity) bool {
	return slices.ContainsFunc(p.Findings, func(f profile.Finding) bool { return f.ID == id && f.Severity == s })
}

// lacks lists the layers that the profile lacks for a cause, "" for none.
func lacks(p *profile.Profile, cause profile.CauseCode) string {
	for _, m := range p.Incomplete {
		if m.Cause == cause {
			return fmt.Sprint(m.Layers)
		}
	}
	return ""
}

func TestFindings(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		m        *graph.Model
		id       string
		severity profile.Severity
		on       string
		cause    profile.CauseCode
		text     string
	}{
		{"all known", dense(tensor.Int8, 64, 10, graph.TFLite, "SOFTMAX"), "target.ram", profile.Info, "mvp", "", ""},
		{"float model", dense(tensor.Float32, 64, 10, graph.TFLite, "SOFTMAX"), "target.type", profile.Warning, profile.CPU, profile.ByType, "MVP takes int8, this layer has float32"},
		{"unknown operator", dense(tensor.Int8, 64, 10, graph.TFLiteCustom, "Foo"), "target.incomplete", profile.Problem, "mvp", "", ""},
		{"limit", dense(tensor.Int8, 1025, 10, graph.TFLite, "SOFTMAX"), "target.limit", profile.Warning, profile.CPU, profile.ByLimit, "a row of weights has 1025 values, a dimension of an array takes at most 1024"},
		{"too large for flash", dense(tensor.Int8, 2048, 1024, graph.TFLite, "SOFTMAX"), "target.flash", profile.Problem, "mvp", "", ""},
		{"too large for RAM", dense(tensor.Int8, 64, 200000, graph.TFLite, "SOFTMAX"), "target.ram", profile.Problem, profile.CPU, profile.ByLimit, "there are 200000 outputs, a dimension of an array takes at most 1024"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := estimate(t, tt.m, "efr32xg24-mvp", "")
			if !has(p, tt.id, tt.severity) {
				t.Errorf("no finding %s %s in %+v", tt.severity, tt.id, p.Findings)
			}
			l := p.Layers[0]
			if l.Placement == nil || l.Placement.On != tt.on || l.Placement.Cause != tt.cause || !strings.Contains(l.Placement.Text, tt.text) {
				t.Errorf("placement %+v, want on %s by %q: %s", l.Placement, tt.on, tt.cause, tt.text)
			}
		})
	}
}

// A layer without an estimate has no figure, is named, and marks the totals.
func TestIncomplete(t *testing.T) {
	t.Parallel()
	p := estimate(t, dense(tensor.Int8, 64, 10, graph.TFLiteCustom, "Foo"), "efr32xg24-mvp", "")
	l := p.Layers[1]
	if l.Latency != nil || l.CPUCycles != nil || l.Energy != nil || l.State != profile.NoEstimate || l.Cause == nil || l.Cause.Code != profile.ByOperator {
		t.Errorf("layer %+v", l)
	}
	if lacks(p, profile.ByNoFigures) != "[1]" || !strings.Contains(p.Totals.Latency.Method, "incomplete: 1 of 2") {
		t.Errorf("%+v, %q", p.Incomplete, p.Totals.Latency.Method)
	}
}

// A model without any estimate has no totals of time, and everything else.
func TestNothingKnown(t *testing.T) {
	t.Parallel()
	m := dense(tensor.Int8, 64, 10, graph.TFLiteCustom, "Foo")
	m.Main().Nodes[0].Op, m.Main().Nodes[0].Domain = "Bar", graph.TFLiteCustom
	p := estimate(t, m, "efr32xg24-mvp", "")
	if p.Totals.Latency != nil || p.Totals.Energy != nil || p.Totals.AcceleratorCycles != nil {
		t.Errorf("totals %+v", p.Totals)
	}
	if p.Totals.RAMBytes == nil || p.Totals.FlashBytes == nil {
		t.Errorf("totals %+v", p.Totals)
	}
	if lacks(p, profile.ByNoFigures) != "[0 1]" {
		t.Errorf("incomplete %+v", p.Incomplete)
	}
	i := slices.IndexFunc(p.Findings, func(f profile.Finding) bool { return f.ID == "target.incomplete" })
	if i < 0 || p.Findings[i].Text != "No layer has an estimate (CUSTOM:Bar, CUSTOM:Foo): nothing can be said of time." {
		t.Errorf("findings %+v", p.Findings)
	}
}

// Types without measurements are told.
func TestTypes(t *testing.T) {
	t.Parallel()
	p := estimate(t, dense(tensor.Uint8, 64, 10, graph.TFLite, "SOFTMAX"), "stm32l4r5", "x-cube-ai")
	i := slices.IndexFunc(p.Findings, func(f profile.Finding) bool { return f.ID == "target.types" })
	if i < 0 || p.Findings[i].Text != "1 layer computes in uint8, which was not measured: int8 figures are used." {
		t.Errorf("%+v", p.Findings)
	}
}

// The roofline follows from the target file.
func TestPeaks(t *testing.T) {
	t.Parallel()
	for id, want := range map[string][2]float64{"stm32l4r5": {480e6, 480e6}, "efr32xg24-mvp": {312e6, 0}, "cortex-m0plus": {0, 96e6}} {
		p := estimate(t, dense(tensor.Int8, 64, 10, graph.TFLite, "SOFTMAX"), id, "").Target
		for i, v := range []*float64{p.PeakOpsPerSecond, p.PeakBytesPerSecond} {
			if want[i] == 0 && v != nil || want[i] != 0 && (v == nil || *v != want[i]) {
				t.Errorf("%s: peak %d is %v, want %v", id, i, v, want[i])
			}
		}
		if p.PeakMethod == "" {
			t.Errorf("%s: no method", id)
		}
	}
}

// A loop is estimated for one pass through its body, and says so.
func TestLoop(t *testing.T) {
	t.Parallel()
	m := dense(tensor.Int8, 64, 10, graph.TFLite, "WHILE")
	m.Main().Nodes[1].Attrs = graph.Attrs{"body_subgraph_index": graph.GraphRef(1)}
	body := dense(tensor.Int8, 10, 10, graph.TFLite, "SOFTMAX").Main()
	body.Index = 1
	m.Graphs = append(m.Graphs, body)
	for _, id := range []string{"efr32xg24-mvp", "stm32l4r5"} {
		p := estimate(t, m, id, "")
		l := p.Layers[1]
		if l.Total == nil || lacks(p, profile.ByData) != "[1]" || !has(p, "target.iterations", profile.Problem) {
			t.Errorf("%s: %+v, %+v", id, l.Total, p.Incomplete)
		}
		if total, sum := best(p.Totals.Latency), best(p.Layers[0].Latency)+best(l.Total); total < 0.999*sum || total > 1.001*sum {
			t.Errorf("%s: %v s, layers %v s", id, total, sum)
		}
		if len(p.Layers) != 4 || p.Layers[3].Parent == nil || *p.Layers[3].Parent != 1 || p.Layers[2].Latency == nil {
			t.Errorf("%s: the body is not listed: %+v", id, p.Layers[2:])
		}
	}
}

// A loop without iterations costs nothing: the other layers have a total. Remarks of its graphs
// are not repeated.
func TestNoIterations(t *testing.T) {
	t.Parallel()
	for _, trips := range []int64{0, 2} {
		m := dense(tensor.Float32, 64, 10, graph.ONNX, "Loop")
		m.Format, m.Path, m.Opsets = "onnx", "net.onnx", map[string]int{"": 13}
		g := m.Main()
		g.Nodes[0].Op, g.Nodes[0].Domain, g.Nodes[0].Version = "MatMul", graph.ONNX, 13
		g.Values[1].Shape, g.Values[1].Const = []int{64, 10}, tensor.New(tensor.Float32, 64, 10)
		g.Values = append(g.Values, &graph.Value{ID: 4, Name: "trips", Type: tensor.Int64, Shape: []int{}, HasShape: true, Const: tensor.From(tensor.Int64, []int{}, []int64{trips})})
		g.Nodes[1].Version, g.Nodes[1].Inputs, g.Nodes[1].Attrs = 13, []int{4, -1, 2}, graph.Attrs{"body": graph.GraphRef(1)}
		v := func(id int, name string, typ tensor.Type, shape ...int) *graph.Value {
			return &graph.Value{ID: id, Name: name, Type: typ, Shape: append([]int{}, shape...), HasShape: true}
		}
		body := &graph.Graph{Index: 1, Parent: g, Inputs: []int{0, 1, 2}, Outputs: []int{1, 4}}
		body.Values = []*graph.Value{v(0, "i", tensor.Int64), v(1, "c", tensor.Bool), v(2, "v", tensor.Float32, 1, 10), v(3, "w", tensor.Float32, 10, 10), v(4, "v2", tensor.Float32, 1, 10)}
		body.Values[3].Const = tensor.New(tensor.Float32, 10, 10)
		body.Nodes = []*graph.Node{{Index: 0, Op: "MatMul", Version: 13, Inputs: []int{2, 3}, Outputs: []int{4}}}
		m.Graphs = append(m.Graphs, body)
		p := estimate(t, m, "stm32h743", "")
		if p.Incomplete != nil || p.Totals.Latency == nil || p.Layers[1].Total == nil || (best(p.Layers[1].Total) == 0) != (trips == 0) {
			t.Errorf("%d iterations: incomplete %+v, latency %+v, loop %+v", trips, p.Incomplete, p.Totals.Latency, p.Layers[1].Total)
		}
		said := map[string]int{}
		for _, f := range p.Findings {
			if said[f.Text]++; said[f.Text] > 1 {
				t.Errorf("twice: %s", f.Text)
			}
		}
	}
}

// The energy of an inference holds that of the graphs that it runs.
func TestEnergyOfBodies(t *testing.T) {
	t.Parallel()
	m := dense(tensor.Int8, 64, 10, graph.TFLite, "CALL")
	m.Main().Nodes[1].Attrs = graph.Attrs{"subgraph": graph.GraphRef(1)}
	body := dense(tensor.Int8, 500, 500, graph.TFLite, "SOFTMAX").Main()
	body.Index = 1
	m.Graphs = append(m.Graphs, body)
	p := estimate(t, m, "stm32l4r5", "")
	sumsHold(t, p)
	if best(p.Totals.Energy) < 2*best(p.Layers[0].Energy) {
		t.Errorf("%v J, the first layer alone %v J", best(p.Totals.Energy), best(p.Layers[0].Energy))
	}
}

// What runs in the first inference only is not a part of an inference's time.
func TestCallOnce(t *testing.T) {
	t.Parallel()
	m := dense(tensor.Int8, 64, 10, graph.TFLite, "CALL_ONCE")
	m.Main().Nodes[1].Attrs = graph.Attrs{"init_subgraph_index": graph.GraphRef(1)}
	body := dense(tensor.Int8, 2000, 500, graph.TFLite, "SOFTMAX").Main()
	body.Index = 1
	m.Graphs = append(m.Graphs, body)
	p := estimate(t, m, "stm32l4r5", "")
	sumsHold(t, p)
	if l := p.Layers[1].Latency; l == nil || best(l) > best(p.Layers[0].Latency) || !has(p, "target.remark", profile.Info) {
		t.Errorf("%+v, %+v", l, p.Findings)
	}
}

// sumsHold checks that layers add up to the totals, and shares to one.
func sumsHold(t *testing.T, p *profile.Profile) {
	t.Helper()
	for what, get := range map[string]func(*profile.Layer) *profile.Metric{
		"latency": func(l *profile.Layer) *profile.Metric { return l.Latency },
		"cycles":  func(l *profile.Layer) *profile.Metric { return l.CPUCycles },
		"energy":  func(l *profile.Layer) *profile.Metric { return l.Energy },
	} {
		total := map[string]*profile.Metric{"latency": p.Totals.Latency, "cycles": p.Totals.CPUCycles, "energy": p.Totals.Energy}[what]
		sum, share := 0.0, 0.0
		for i := range p.Layers {
			if m := get(&p.Layers[i]); m != nil {
				sum += best(m)
			}
			if s := p.Layers[i].Share; s != nil {
				share += *s
			}
		}
		if _, most := p.Unrun(); most && total == nil {
			continue // of which most has no figure, nothing is said of the whole
		}
		if total == nil && sum > 0 || total != nil && math.Abs(best(total)-sum) > 1e-6*sum {
			t.Errorf("%s on %s: layers have a %s of %v, the total is %+v", p.Model.Path, p.Target.ID, what, sum, total)
		}
		if best(p.Totals.Latency) > 0 && math.Abs(share-1) > 1e-6 {
			t.Errorf("%s on %s: shares add up to %v", p.Model.Path, p.Target.ID, share)
		}
	}
}

// Graphs that run each other, and themselves, a hundred times each end at once.
func TestManyBodies(t *testing.T) {
	t.Parallel()
	m := dense(tensor.Int8, 64, 10, graph.TFLite, "CALL")
	m.Main().Nodes[1].Attrs = graph.Attrs{"subgraph": graph.GraphRef(1)}
	for g := 1; g <= 12; g++ {
		b := dense(tensor.Int8, 10, 10, graph.TFLite, "SOFTMAX").Main()
		b.Index = g
		for range 100 {
			call := *b.Nodes[1]
			call.Index, call.Op, call.Attrs = len(b.Nodes), "CALL", graph.Attrs{"subgraph": graph.GraphRef(1 + g%12)}
			b.Nodes = append(b.Nodes, &call)
		}
		m.Graphs = append(m.Graphs, b)
	}
	if p := estimate(t, m, "stm32l4r5", ""); p.Totals.Latency == nil {
		t.Error("no latency")
	}
}

// Damaged models: operators without their inputs, shapes beyond any memory.
func TestDamaged(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"AVERAGE_POOL_2D", "CONV_2D", "TRANSPOSE_CONV", "ADD", "SPLIT", "FULLY_CONNECTED", "UNIDIRECTIONAL_SEQUENCE_LSTM"} {
		for _, id := range []string{"efr32xg24-mvp", "stm32l4r5"} {
			m := dense(tensor.Int8, 64, 10, graph.TFLite, op)
			m.Main().Nodes[1].Inputs = nil
			estimate(t, m, id, "")
			m = dense(tensor.Int8, 64, 10, graph.TFLite, op)
			m.Main().Values[3].Shape = []int{1 << 31, 1 << 31, 3, 5}
			if l := estimate(t, m, id, "").Layers[1]; l.Latency != nil && best(l.Latency) < 0 {
				t.Errorf("%s on %s: %v s", op, id, best(l.Latency))
			}
		}
	}
}

// A branch has the figures of the longer side and a band that holds both.
func TestBranch(t *testing.T) {
	t.Parallel()
	m := dense(tensor.Int8, 64, 10, graph.TFLite, "IF")
	m.Main().Nodes[1].Attrs = graph.Attrs{"else_subgraph_index": graph.GraphRef(1), "then_subgraph_index": graph.GraphRef(2)}
	for g, n := range []int{10, 500} {
		b := dense(tensor.Int8, n, n, graph.TFLite, "SOFTMAX").Main()
		b.Index = g + 1
		m.Graphs = append(m.Graphs, b)
	}
	p := estimate(t, m, "stm32l4r5", "")
	l := p.Totals.Latency
	if l == nil || p.Incomplete != nil || l.Band[0] > best(l)/20 {
		t.Errorf("latency %+v, incomplete %+v", l, p.Incomplete)
	}
	if p.Layers[2].State != profile.NotReached || p.Layers[4].State != profile.Ran || best(p.Layers[1].Total) < best(p.Layers[4].Latency) {
		t.Errorf("layers %+v", p.Layers)
	}
}

// Floating point runs on the processor of a chip whose accelerator takes integers.
func TestFloatFallback(t *testing.T) {
	t.Parallel()
	p := estimate(t, dense(tensor.Float32, 64, 10, graph.TFLite, "SOFTMAX"), "efr32xg24-mvp", "")
	l := p.Layers[0]
	if p.Incomplete != nil || l.Latency == nil || l.Latency.Band == nil || !strings.HasPrefix(l.Kernel, "cpu/") || !has(p, "target.type", profile.Warning) {
		t.Errorf("incomplete %+v, layer %+v", p.Incomplete, l)
	}
}

// Every estimate of a shipped target has a band.
func TestBands(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"efr32xg24", "efr32xg24-mvp"} {
		p := estimate(t, dense(tensor.Int8, 64, 10, graph.TFLite, "SOFTMAX"), id, "")
		ms := []*profile.Metric{p.Totals.Latency, p.Totals.CPUCycles, p.Totals.Energy, p.Totals.AcceleratorCycles}
		for _, l := range p.Layers {
			ms = append(ms, l.Latency, l.CPUCycles, l.Energy, l.AcceleratorCycles)
		}
		for i, m := range ms {
			if m != nil && m.Kind == profile.Estimated && m.Band == nil {
				t.Errorf("%s: figure %d has no band", id, i)
			}
		}
	}
}

func TestUse(t *testing.T) {
	t.Parallel()
	m := dense(tensor.Int8, 64, 10, graph.TFLite, "SOFTMAX")
	tg := find(t, "efr32xg24-mvp")
	tests := []struct {
		name string
		opt  chip.Options
		want string
	}{
		{"runtime", chip.Options{Runtime: "none"}, `target efr32xg24-mvp has no runtime "none"; it has tflm-mvp, tflm-mvp-baseline, tflm-mvp-0.6`},
		{"clock", chip.Options{Clock: 100e6}, "target efr32xg24-mvp runs at up to 78 MHz, not at 100 MHz"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Estimate(m, tg, tt.opt)
			var u *UseError
			if !errors.As(err, &u) || err.Error() != tt.want {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
	// Half the clock takes twice the time.
	full, err := Estimate(m, tg, chip.Options{})
	if err != nil {
		t.Fatal(err)
	}
	half, err := Estimate(m, tg, chip.Options{Clock: 39e6})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := best(full.Totals.Latency), best(half.Totals.Latency); b < 1.999*a || b > 2.001*a {
		t.Errorf("%v s at full clock, %v s at half", a, b)
	}
}

// What the runtime does not take is a state of the layer with its cause, a finding and
// no figure, on any runtime of TensorFlow Lite Micro; others are not judged by its rules.
func TestRefused(t *testing.T) {
	t.Parallel()
	hybrid := func(weights tensor.Type) *graph.Model {
		m := dense(tensor.Float32, 64, 10, graph.TFLite, "SOFTMAX")
		w := m.Main().Values[1]
		w.Type, w.Const = weights, tensor.New(weights, 10, 64)
		return m
	}
	for _, c := range []struct {
		name  string
		m     *graph.Model
		cause profile.CauseCode
	}{
		{"hybrid", hybrid(tensor.Int8), profile.ByUse},
		{"half-precision weights", hybrid(tensor.Float16), profile.ByUse},
		{"without sign", dense(tensor.Uint8, 64, 10, graph.TFLite, "RESHAPE"), profile.ByType},
	} {
		for _, runtime := range []string{"tflm-cmsis-nn", "tflm-reference"} {
			p := estimate(t, c.m, "stm32l4r5", runtime)
			l := &p.Layers[0]
			if l.State != profile.Unsupported || l.Cause == nil || l.Cause.Code != c.cause || l.Latency != nil || l.CPUCycles != nil {
				t.Errorf("%s, %s: state %s, cause %+v, latency %v", c.name, runtime, l.State, l.Cause, l.Latency)
			}
			if !has(p, "target.refused", profile.Problem) || lacks(p, profile.ByUse) != "[0]" {
				t.Errorf("%s, %s: %+v, %+v", c.name, runtime, p.Findings, p.Incomplete)
			}
			// What is left is a small part of the work: its time is not the model's.
			if p.Layers[1].Latency == nil || p.Totals.Latency != nil || p.Totals.Energy != nil {
				t.Errorf("%s, %s: the layer that is left takes %+v, the total is %+v", c.name, runtime, p.Layers[1].Latency, p.Totals.Latency)
			}
		}
		p := estimate(t, c.m, "stm32l4r5", "x-cube-ai")
		if p.Layers[0].State == profile.Unsupported {
			t.Errorf("%s: X-CUBE-AI judged by the rules of another runtime", c.name)
		}
	}
}

// Program code counts with its spread: a model fits where the most of it does, does not
// where the least does not, and is near the limit between.
func TestFlash(t *testing.T) {
	t.Parallel()
	set, err := chip.Load("")
	if err != nil {
		t.Fatal(err)
	}
	tg, err := set.Find("stm32l4r5")
	if err != nil {
		t.Fatal(err)
	}
	code := tg.Runtime("").Code
	if code == nil || !(code[0] > 10<<10 && code[1] > code[0]) {
		t.Fatalf("program code %v", code)
	}
	have, _ := tg.Flash()
	for _, c := range []struct {
		model chip.Bytes
		want  profile.Severity
	}{
		{have - code[1], profile.Info},
		{have - code[1] + 1, profile.Warning},
		{have - code[0], profile.Warning},
		{have - code[0] + 1, profile.Problem},
	} {
		m := dense(tensor.Int8, 64, 10, graph.TFLite, "SOFTMAX")
		m.FileBytes = int64(c.model)
		p := estimate(t, m, "stm32l4r5", "")
		if !has(p, "target.flash", c.want) {
			t.Errorf("a model of %d bytes: %+v, want %s", c.model, p.Findings, c.want)
		}
	}
}
