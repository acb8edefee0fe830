package recheck_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/measure/recheck"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/submodel"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/profile"
)

// chain is a model of three operators in sequence.
func chain(t *testing.T) *submodel.Source {
	t.Helper()
	g := &graph.Graph{Name: "g", Inputs: []int{0}, Outputs: []int{3}}
	for i := range 4 {
		g.Values = append(g.Values, &graph.Value{ID: i, Name: fmt.Sprintf("v%d", i), Type: tensor.Float32, Shape: []int{4}, HasShape: true, Offset: -1})
	}
	for i, op := range []string{"Relu", "Neg", "Exp"} {
		g.Nodes = append(g.Nodes, &graph.Node{Index: i, Op: op, Inputs: []int{i}, Outputs: []int{i + 1}})
	}
	data, err := onnx.Encode(&graph.Model{Format: "onnx", Graphs: []*graph.Graph{g}, IRVersion: 8, Opsets: map[string]int{"": 13}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := submodel.New(data, "chain.onnx", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// engine is a simulated engine in which the operator's name determines its time, and the machine
// slows down meanwhile.
type engine struct {
	seconds map[string]float64
	rows    func(ops []string) []recheck.Row
	err     error
	asked   []int
	values  error // error of runs that compute the inputs of a submodel
}

func (e *engine) Time(_ context.Context, pieces []recheck.Piece, turns int) ([]recheck.Series, error) {
	if e.err != nil {
		return nil, e.err
	}
	e.asked = append(e.asked, turns)
	out := make([]recheck.Series, len(pieces))
	for i, x := range pieces {
		ops := []string{"Relu", "Neg", "Exp"}
		if x.File != "whole" {
			data, err := os.ReadFile(x.File)
			if err != nil {
				return nil, err
			}
			kept := ops[:0:0]
			for _, op := range ops {
				if bytes.Contains(data, []byte(op)) {
					kept = append(kept, op)
				}
			}
			ops = kept
		}
		sum := 0.0
		for _, op := range ops {
			sum += e.seconds[op]
		}
		for k := range 100 {
			out[i].Plain = append(out[i].Plain, sum*(1+float64(k)/100))
		}
		if e.rows != nil {
			out[i].Rows = e.rows(ops)
		}
	}
	return out, nil
}

// Values returns the inputs of the chain's second and third operator.
func (e *engine) Values(_ context.Context, _, _ string) ([]submodel.Given, map[string]string, error) {
	given := []submodel.Given{{Name: "v1", Type: tensor.Float32, Shape: []int{4}}, {Name: "v2", Type: tensor.Float32, Shape: []int{4}}}
	return given, nil, e.values
}

// profiled is a profile of the chain with times of its layers.
func profiled(seconds ...float64) *profile.Profile {
	p := &profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "m"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost}}
	sum := 0.0
	for i, s := range seconds {
		sum += s
		p.Layers = append(p.Layers, profile.Layer{
			Index: int64(i), Op: []string{"Relu", "Neg", "Exp"}[i], State: profile.Ran, Share: new(0.1),
			Latency:    &profile.Metric{Kind: profile.Measured, Median: new(s), CI95: &[2]float64{s * .95, s * 1.05}},
			Provenance: &profile.Provenance{Confidence: profile.Exact, SourceNodes: []profile.SourceNode{{Node: int64(i)}}},
		})
	}
	p.Totals.Latency = profile.Value(profile.Measured, sum, "")
	return p
}

func check(t *testing.T, p *profile.Profile, e *engine) {
	t.Helper()
	if err := recheck.Check(t.Context(), p, recheck.Options{Source: chain(t), File: "whole", Timer: e, Folder: t.TempDir(), Time: time.Second}); err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
}

func rows(ops []string) []recheck.Row {
	var out []recheck.Row
	for _, op := range ops {
		out = append(out, recheck.Row{Op: op, Seconds: 1})
	}
	return out
}

// TestAgrees has an accurate profiler, on a machine that slows down by half: fractions of the
// whole stay the same.
func TestAgrees(t *testing.T) {
	t.Parallel()
	p := profiled(1, 2, 3)
	e := &engine{seconds: map[string]float64{"Relu": 10, "Neg": 20, "Exp": 30}, rows: rows}
	check(t, p, e)
	l := p.Layers[2] // half of the time: no other layer is checked
	v := l.Figures["checked_s"]
	// 30 of 60, of a whole of 6; sums of a hundred samples round in the last digits.
	if v == nil || !(math.Abs(*v.Median-3) <= 1e-12) || l.Check.Outcome != profile.CheckAgrees {
		t.Errorf("%+v, %+v", v, l.Check)
	}
	if len(e.asked) != 1 || p.Layers[0].Check != nil || p.Layers[1].Check != nil {
		t.Error("others were checked, too")
	}
	if len(p.Findings) != 1 || p.Findings[0].ID != "check.agrees" {
		t.Errorf("%+v", p.Findings)
	}
}

// TestDiffers has a profiler that attributes time to the wrong layer.
func TestDiffers(t *testing.T) {
	t.Parallel()
	p := profiled(1, 4, 1)
	check(t, p, &engine{seconds: map[string]float64{"Relu": 1, "Neg": 2, "Exp": 3}})
	l := p.Layers[1]
	if v := l.Figures["checked_s"]; v == nil || !(math.Abs(*v.Median-2) <= 1e-12) || l.Check.Outcome != profile.CheckDiffers {
		t.Errorf("%+v, %+v", v, l.Check)
	}
	if len(p.Findings) != 1 || p.Findings[0].ID != "check.differs" || !strings.Contains(p.Findings[0].Text, "layer 1 (Neg): 4e+03 ms against 2e+03 ms") {
		t.Errorf("%+v", p.Findings)
	}
}

// TestFirst has no layer before it: the overhead of an inference does not make a difference.
func TestFirst(t *testing.T) {
	t.Parallel()
	p := profiled(4, 1, 1)
	check(t, p, &engine{seconds: map[string]float64{"Relu": 5, "Neg": .5, "Exp": .5}})
	if l := p.Layers[0]; l.Check.Outcome == profile.CheckDiffers || !(math.Abs(*l.Figures["checked_s"].Median-5) <= 1e-12) {
		t.Errorf("%+v, %v", l.Check, *l.Figures["checked_s"].Median)
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	seconds := map[string]float64{"Relu": 1, "Neg": 1, "Exp": 4}
	for _, tt := range []struct {
		name   string
		engine *engine
		change func(p *profile.Profile)
		want   profile.CheckOutcome
	}{
		{"refused", &engine{err: fmt.Errorf("%w: no", recheck.ErrRefused)}, nil, profile.CheckRefused},
		{"fused with what comes before", &engine{seconds: seconds, values: errors.New("none"), rows: func(ops []string) []recheck.Row { return rows([]string{strings.Join(ops[:1], "")}) }}, nil, profile.CheckOther},
		{"another node beside it", &engine{seconds: seconds, rows: func(ops []string) []recheck.Row {
			out := rows(ops)
			if strings.Contains(strings.Join(ops, ""), "Exp") { // the uncertainty exceeds the limit
				out = append(out, recheck.Row{Op: "Copy", Seconds: 3})
			}
			return out
		}}, nil, profile.CheckOther},
		{"a body", &engine{seconds: seconds}, func(p *profile.Profile) { p.Layers[2].Provenance.SourceNodes[0].Graph = 1 }, profile.CheckBody},
		{"unjoined", &engine{seconds: seconds}, func(p *profile.Profile) { p.Layers[2].Provenance.SourceNodes = nil }, profile.CheckUnjoined},
		{"shared", &engine{seconds: seconds}, func(p *profile.Profile) { p.Layers[0].Provenance.SourceNodes[0].Node = 2 }, profile.CheckShared},
		{"inserted beside it", &engine{seconds: seconds}, func(p *profile.Profile) {
			p.Layers[0].Provenance.SourceNodes[0].Node, p.Layers[0].Provenance.Inserted = 2, true
		}, profile.CheckAgrees},
		{"inserted", &engine{seconds: seconds}, func(p *profile.Profile) { p.Layers[2].Provenance.Inserted = true }, profile.CheckUnjoined},
		{"no such node", &engine{seconds: seconds}, func(p *profile.Profile) { p.Layers[2].Provenance.SourceNodes[0].Node = 7 }, profile.CheckNotCut},
		{"wide", &engine{seconds: seconds}, func(p *profile.Profile) { p.Layers[2].Latency.CI95 = &[2]float64{0, 8} }, profile.CheckOpen},
	} {
		p := profiled(1, 1, 4)
		if tt.change != nil {
			tt.change(p)
		}
		check(t, p, tt.engine)
		if c := p.Layers[2].Check; c == nil || c.Outcome != tt.want {
			t.Errorf("%s: %+v, want %s", tt.name, c, tt.want)
		}
	}
}

func TestStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := profiled(1, 1, 4)
	err := recheck.Check(ctx, p, recheck.Options{Source: chain(t), File: "whole", Timer: &engine{}, Folder: t.TempDir(), Time: time.Second})
	if !errors.Is(err, context.Canceled) || p.Layers[2].Check.Outcome != profile.CheckStopped {
		t.Errorf("%v, %+v", err, p.Layers[2].Check)
	}
	if left, _ := filepath.Glob(filepath.Join(t.TempDir(), "*")); left != nil {
		t.Error("files stay")
	}
}

// TestStretch has a layer after others: it is timed with the one before it and without it, not
// with all.
func TestStretch(t *testing.T) {
	t.Parallel()
	p := profiled(1, 1, 8)
	// The engine copies the output of the submodel with the layer, in one of ten seconds: its
	// profiler reports it, and it is subtracted.
	e := &engine{seconds: map[string]float64{"Relu": 1, "Neg": 1, "Exp": 9}, rows: func(ops []string) []recheck.Row {
		if len(ops) == 3 {
			t.Error("all that comes before was taken, too")
		}
		out := rows(ops)
		if ops[len(ops)-1] == "Exp" {
			out = append(out, recheck.Row{Op: "Copy", Seconds: 0.5})
		}
		return out
	}}
	e.rows = allowWhole(e.rows)
	check(t, p, e)
	l := p.Layers[2]
	v := l.Figures["checked_s"]
	// 9 of 11, of a whole of 10, less 0.5.
	if want := 10*9.0/11 - 0.5; v == nil || !(math.Abs(*v.Median-want) <= 1e-9) || !strings.Contains(v.Method, "short submodel") {
		t.Errorf("%+v, want %v", v, want)
	}
	if l.Check == nil || l.Check.Outcome != profile.CheckAgrees || !strings.Contains(l.Check.Text, "with the layer also Copy") {
		t.Errorf("%+v", l.Check)
	}
}

// allowWhole lets the whole model have its rows.
func allowWhole(f func([]string) []recheck.Row) func([]string) []recheck.Row {
	return func(ops []string) []recheck.Row {
		if len(ops) == 3 {
			return rows(ops)
		}
		return f(ops)
	}
}

// TestNoTime has a submodel that takes longer without the layer than with it: that gives no
// figure.
func TestNoTime(t *testing.T) {
	t.Parallel()
	p := profiled(1, 1, 4)
	e := &engine{seconds: map[string]float64{"Relu": 1, "Neg": 5, "Exp": -2}}
	check(t, p, e)
	if l := p.Layers[2]; l.Figures["checked_s"] != nil || l.Check == nil || l.Check.Outcome != profile.CheckOpen {
		t.Errorf("%v, %+v", l.Figures["checked_s"], l.Check)
	}
	// An inconclusive check is repeated, with at least as many rounds.
	if len(e.asked) != 2 || e.asked[1] < e.asked[0] {
		t.Errorf("turns of %v", e.asked)
	}
}

// TestValuesFail has an engine that cannot compute the inputs of a submodel: everything before
// the layer is included.
func TestValuesFail(t *testing.T) {
	t.Parallel()
	p := profiled(1, 1, 4)
	check(t, p, &engine{seconds: map[string]float64{"Relu": 1, "Neg": 1, "Exp": 4}, values: errors.New("no such operator")})
	l := p.Layers[2]
	if v := l.Figures["checked_s"]; v == nil || !(math.Abs(*v.Median-4) <= 1e-9) || l.Check.Outcome != profile.CheckAgrees || !strings.Contains(v.Method, "two submodels") {
		t.Errorf("%+v, %+v", v, l.Check)
	}
}

// TestCaches has a submodel that is faster than the layer in the whole model: if memory accesses
// can explain the difference, the layer is neither confirmed nor contradicted.
func TestCaches(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		bytes int64 // at one a second
		want  profile.CheckOutcome
	}{{0, profile.CheckDiffers}, {1, profile.CheckDiffers}, {3, profile.CheckOpen}} {
		p := profiled(1, 1, 4)
		p.Target.PeakBytesPerSecond = new(1.0)
		p.Layers[2].BytesRead = new(tt.bytes)
		// a third of 6 instead of 4
		check(t, p, &engine{seconds: map[string]float64{"Relu": 2, "Neg": 2, "Exp": 2}})
		if c := p.Layers[2].Check; c == nil || c.Outcome != tt.want {
			t.Errorf("%d bytes: %+v, want %s", tt.bytes, c, tt.want)
		}
	}
}
