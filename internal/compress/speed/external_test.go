package speed

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// denseModel is a model of n matrix multiplications.
func denseModel(n int) *graph.Model {
	value := func(id int, name string, shape ...int) *graph.Value {
		return &graph.Value{ID: id, Name: name, Type: tensor.Float32, Shape: shape, HasShape: true, Offset: -1}
	}
	g := &graph.Graph{Name: "g", Inputs: []int{0}, Outputs: []int{2 * n}, Values: []*graph.Value{value(0, "x", 1, 16)}}
	for i := range n {
		w := value(2*i+1, fmt.Sprint("w", i), 16, 16)
		w.Const = tensor.New(tensor.Float32, 16, 16)
		tensor.Fill(w.Const, func(k int) float64 { return float64(k%13) - 6 })
		g.Values = append(g.Values, w, value(2*i+2, fmt.Sprint("y", i), 1, 16))
		g.Nodes = append(g.Nodes, &graph.Node{Index: i, Name: fmt.Sprint("m", i), Op: "MatMul", Version: 13, Inputs: []int{2 * i, 2*i + 1}, Outputs: []int{2*i + 2}})
	}
	return &graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 13}, Graphs: []*graph.Graph{g}}
}

// engineProfile is the profile of a model by an engine in which node n takes seconds(n).
func engineProfile(m *graph.Model, seconds func(n *graph.Node) float64) *profile.Profile {
	p := &profile.Profile{}
	sum := 0.0
	for i, n := range m.Main().Nodes {
		v := seconds(n)
		t := profile.Value(profile.Measured, v, "")
		t.CI95 = &[2]float64{.99 * v, 1.01 * v}
		p.Layers = append(p.Layers, profile.Layer{
			Op: "engine " + n.Op, Latency: t,
			Provenance: &profile.Provenance{SourceNodes: []profile.SourceNode{{Node: int64(i)}}},
		})
		sum += v
	}
	// A change of layout belongs to no node.
	p.Layers = append(p.Layers, profile.Layer{
		Op: "reorder", Latency: profile.Value(profile.Measured, 1, ""),
		Provenance: &profile.Provenance{Inserted: true, SourceNodes: []profile.SourceNode{{Node: 0}}},
	})
	p.Totals.Latency = profile.Value(profile.Measured, sum+1, "")
	return p
}

// TestMeasureExternal takes times of layers and gains from another engine: int8 halves them, and
// zeros change nothing.
func TestMeasureExternal(t *testing.T) {
	t.Parallel()
	m := denseModel(3)
	layers := weights.Find(m, nil)
	half := func(n *graph.Node) float64 {
		if onlyConverts(n) {
			return 0.05e-3
		}
		return 2e-3
	}
	full := func(*graph.Node) float64 { return 4e-3 }
	zeros, integers := study.Change{Structure: study.Unstructured, Level: .9}, study.Change{Format: study.Int8}
	done := study.Change{Format: study.Half}
	o := ExternalOptions{
		Changes: []study.Change{zeros, integers, done},
		Have:    func(c study.Change) bool { return c == done },
		Compare: func(_ context.Context, changed *graph.Model) (*Pair, error) {
			p := &Pair{Before: engineProfile(m, full)}
			if p.After = p.Before; changed != nil {
				p.Changed, p.After = changed, engineProfile(changed, full)
				if slices.ContainsFunc(changed.Main().Nodes, onlyConverts) {
					p.After = engineProfile(changed, half)
				}
			}
			return p, nil
		},
	}
	var s study.Speed
	err := MeasureExternal(t.Context(), m, layers, o, func(p *study.SpeedPoints) error {
		if p.Layers != nil {
			s.Layers, s.Latency = p.Layers, p.Latency
		}
		s.Points = append(s.Points, p.Points...)
		return nil
	})
	if err != nil || len(s.Layers) != len(layers) || len(s.Points) != 2*len(layers) {
		t.Fatalf("%v: %d layers, %d points of %d layers", err, len(s.Layers), len(s.Points), len(layers))
	}
	for _, l := range s.Layers {
		if v, _ := l.Latency.Best(); math.Abs(v-4e-3) > 1e-12 || l.Kernel == "" {
			t.Errorf("layer %d: %v s by %q", l.Layer, v, l.Kernel)
		}
	}
	for _, p := range s.Points {
		r, ok := p.Ratio.Best()
		switch {
		case p.Change == zeros:
			if !ok || r != 1 || p.Cause != study.Unsettled {
				t.Errorf("layer %d with zeros: ratio %v, cause %q", p.Layer, r, p.Cause)
			}
		case p.Cause == study.NoFormat: // the engine's integer operators exclude this one
		case !ok || r < .5 || r > .6 || p.Cause != "":
			t.Errorf("layer %d with int8: ratio %v, cause %q", p.Layer, r, p.Cause)
		}
	}
}

// TestDisturbedPair measures again where another process held one of the models up.
func TestDisturbedPair(t *testing.T) {
	t.Parallel()
	of := func(seconds, high float64) *profile.Profile {
		p := &profile.Profile{}
		p.Totals.Latency = profile.Value(profile.Measured, seconds, "")
		p.Totals.Latency.CI95 = &[2]float64{seconds, high}
		return p
	}
	for _, tt := range []struct {
		name  string
		pairs [][2]*profile.Profile
		want  int // the pair that is taken
		tries int
	}{
		{"steady", [][2]*profile.Profile{{of(1, 1.1), of(.5, .6)}}, 0, 1},
		{"wide interval", [][2]*profile.Profile{{of(1, 50), of(.5, .6)}, {of(1, 1.1), of(.5, .6)}}, 1, 2},
		{"slow unchanged model", [][2]*profile.Profile{{of(50, 51), of(.5, .6)}, {of(1, 1.1), of(.5, .6)}}, 0, 1},
		{"always disturbed", [][2]*profile.Profile{{of(1, 9), of(.5, .6)}, {of(1, 3), of(.5, .6)}, {of(1, 7), of(.5, .6)}}, 1, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := 0
			o := ExternalOptions{Compare: func(context.Context, *graph.Model) (*Pair, error) {
				n++
				return &Pair{Before: tt.pairs[n-1][0], After: tt.pairs[n-1][1]}, nil
			}}
			got, err := o.steadyPair(t.Context(), nil)
			if err != nil || n != tt.tries || got.Before != tt.pairs[tt.want][0] {
				t.Errorf("%v after %d attempts", err, n)
			}
		})
	}
	// The unchanged model was fast before: 50 times its time is a disturbance.
	n := 0
	o := ExternalOptions{fastest: 1, Compare: func(context.Context, *graph.Model) (*Pair, error) {
		n++
		if n == 1 {
			return &Pair{Before: of(50, 51), After: of(.5, .6)}, nil
		}
		return &Pair{Before: of(1, 1.1), After: of(.5, .6)}, nil
	}}
	if p, err := o.steadyPair(t.Context(), nil); err != nil || n != 2 || *p.Before.Totals.Latency.Median != 1 {
		t.Errorf("%v after %d attempts", err, n)
	}
}
