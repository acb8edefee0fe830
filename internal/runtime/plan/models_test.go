package plan_test

import (
	"bytes"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/internal/runtime/synth"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// mostMACs skips models whose run takes a noticeable part of a second: their shapes follow from
// the same rules.
const mostMACs = 100e6

// TestModels compares the plan of every reference model with the engine's shapes after a run:
// every shape that the plan states must be the actual one.
func TestModels(t *testing.T) {
	t.Parallel()
	over, err := synth.LoadOverrides(material.Path(t, "oracle", "inputs.json"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	err = filepath.WalkDir(material.Path(t, "models"), func(p string, d fs.DirEntry, err error) error {
		if strings.HasSuffix(p, ".tflite") || strings.HasSuffix(p, ".onnx") {
			files = append(files, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var known, all, ran int
	for _, f := range files {
		m, err := modelfile.Open(f)
		if err != nil {
			continue
		}
		k, n, ok := compare(t, f, m, over[filepath.Base(f)])
		known, all = known+k, all+n
		if ok {
			ran++
		}
		if m.Close != nil {
			_ = m.Close()
		}
	}
	t.Logf("%d models, %d of %d values are known before a run", ran, known, all)
	if known*10 < all*9 {
		t.Error("less than nine in ten shapes are known")
	}
}

func compare(t *testing.T, f string, m *graph.Model, o synth.Overrides) (known, all int, ok bool) {
	t.Helper()
	in, _, err := inputs.Inputs(m, inputs.Options{Seed: 1, Overrides: o})
	if err != nil {
		return 0, 0, false
	}
	for _, keep := range []bool{true, false} {
		p, err := plan.Make(m, in, plan.Options{Registry: operators.Registry(), KeepAll: keep})
		if err != nil {
			t.Errorf("%s: %v", f, err)
			return 0, 0, false
		}
		if macs(m, p) > mostMACs {
			return 0, 0, false
		}
		s, err := engine.New(m, in, engine.Options{Registry: operators.Registry(), KeepAll: keep, Threads: 2})
		if err != nil {
			t.Errorf("%s: %v", f, err)
			return 0, 0, false
		}
		err = s.Run(t.Context())
		if err != nil {
			s.Close()
			return 0, 0, false
		}
		known, all = 0, 0
		for g := range m.Graphs {
			if g > 0 && p.Steps(g) == nil && s.BodySteps(g) != nil {
				t.Errorf("%s: graph %d runs and is not planned", f, g)
			}
			k, n := claims(t, f, p.Steps(g), s.GraphSteps(g))
			known, all = known+k, all+n
		}
		s.Close()
	}
	return known, all, true
}

// claims compares what a plan knows of a graph with what a run has shown.
func claims(t *testing.T, f string, plan, run []plan.Step) (known, all int) {
	t.Helper()
	for i, st := range plan {
		if len(run) == 0 {
			return known, all
		}
		if st.Node != run[i].Node {
			t.Fatalf("%s: node %d is another", f, i)
		}
		for _, pair := range [][2][]*tensor.Tensor{{st.In, run[i].In}, {st.Out, run[i].Out}} {
			for k, a := range pair[0] {
				b := pair[1][k]
				if b == nil {
					continue
				}
				all++
				if a == nil {
					continue
				}
				known++
				same := a.Type == b.Type && len(a.Shape) == len(b.Shape)
				for d := range a.Shape {
					same = same && (a.Shape[d] == b.Shape[d] || a.Shape[d] == -1)
				}
				if slices.Contains(a.Shape, -1) {
					known--
				}
				if !same {
					t.Errorf("%s: graph %d node %d (%s): %v %v is planned, %v %v has come", filepath.Base(f), st.Graph, i, st.Node.Key(), a.Type, a.Shape, b.Type, b.Shape)
				}
			}
		}
	}
	return known, all
}

func macs(m *graph.Model, p *plan.Plan) float64 {
	sum := 0.0
	for _, st := range p.Steps(0) {
		if w := count.Count(m, m.Main(), st.Node, st.In, st.Out); w.MACs != nil {
			sum += float64(*w.MACs)
		}
	}
	return sum
}

// TestQuantisedModels compares 8-bit networks written with conversions with themselves in
// floating point. With these inputs no sum is so close to a tie that the two round differently,
// so the outputs must be bit-exact. What estimates count as integer operators must run as such in
// the engine.
func TestQuantisedModels(t *testing.T) {
	t.Parallel()
	lowered := 0
	for _, dir := range []string{"real", "mcu"} {
		files, err := filepath.Glob(filepath.Join(material.Path(t, "models", dir), "*.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			m, err := modelfile.Open(f)
			if err != nil {
				continue
			}
			if in, _, err := inputs.Inputs(m, inputs.Options{Seed: 1}); err == nil && converts(m.Main()) {
				lowered += quantisedModel(t, filepath.Base(f), m, in)
			}
			if m.Close != nil {
				_ = m.Close()
			}
		}
	}
	if lowered < 90 {
		t.Errorf("only %d operators were lowered", lowered)
	}
}

func converts(g *graph.Graph) bool {
	return slices.ContainsFunc(g.Nodes, func(n *graph.Node) bool { return n.Op == "DequantizeLinear" })
}

func quantisedModel(t *testing.T, name string, m *graph.Model, in []*tensor.Tensor) (lowered int) {
	t.Helper()
	p, err := plan.Make(m, in, plan.Options{Registry: operators.Registry()})
	if err != nil {
		t.Fatal(err)
	}
	s := p.Shaped()
	integer, gone := plan.Quantised(s.Main())
	for i, st := range p.Steps(0) {
		if st.State != plan.Runs && st.State != plan.Fused {
			continue
		}
		n := s.Main().Nodes[i]
		is := st.State == plan.Fused && st.Runs == nil || st.Runs != nil && st.Runs.Op != n.Op || st.Runs != nil && !slices.Equal(st.Runs.Inputs, n.Inputs)
		if (integer[n] || gone[n]) != is {
			t.Errorf("%s: node %d (%s) counts as integer: %v, and is planned so: %v", name, i, n.Op, integer[n] || gone[n], is)
		}
		if integer[n] {
			lowered++
		}
	}
	var out [2]*engine.Session
	for k, exact := range []bool{true, false} {
		e, err := engine.New(m, in, engine.Options{Registry: operators.Registry(), Exact: exact, Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if err := e.Run(t.Context()); err != nil {
			return lowered
		}
		out[k] = e
	}
	for k := range m.Main().Outputs {
		a, b := out[0].Output(k), out[1].Output(k)
		if a == nil || b == nil {
			continue
		}
		if !bytes.Equal(a.Data, b.Data) {
			t.Errorf("%s: output %d differs from that in floating point", name, k)
		}
	}
	return lowered
}
