package enginediff

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/opmeter/opmeter/profile"
)

// layer is a layer that takes so many microseconds, of nodes of the main graph.
func layer(op string, us float64, nodes ...int64) profile.Layer {
	l := profile.Layer{Op: op, State: profile.Ran, Provenance: &profile.Provenance{Confidence: profile.Exact}}
	if us > 0 {
		l.Latency = profile.Value(profile.Measured, us*1e-6, "")
	}
	for _, n := range nodes {
		l.Provenance.SourceNodes = append(l.Provenance.SourceNodes, profile.SourceNode{Node: n})
	}
	return l
}

func of(ls ...profile.Layer) *profile.Profile {
	p := &profile.Profile{Layers: ls}
	for i := range ls {
		ls[i].Index = int64(i)
	}
	return p
}

// with returns the layer with changes.
func with(l profile.Layer, change func(*profile.Layer)) profile.Layer {
	change(&l)
	return l
}

func TestCompare(t *testing.T) {
	t.Parallel()
	name := profile.OtherEngine{Engine: "litert", Title: "LiteRT", Version: "2.3.0"}
	for _, c := range []struct {
		name      string
		own, them *profile.Profile
		want      []profile.OperatorShare
		layers    []int64
		text      string
	}{
		{
			"a layer that the own engine takes far longer for",
			of(layer("CONV_2D", 80, 0), layer("AVERAGE_POOL_2D", 20, 1)),
			of(layer("CONV_2D", 49, 0), layer("AVERAGE_POOL_2D", 1, 1)),
			[]profile.OperatorShare{{Op: "CONV_2D", Share: 0.98}, {Op: "AVERAGE_POOL_2D", Share: 0.02}},
			[]int64{1},
			"opmeter's own engine takes far longer than LiteRT 2.3.0 for #1 AVERAGE_POOL_2D (20 µs, 20.0 % of an inference instead of 1 µs, 2.0 %).",
		},
		{
			"a layer that the other engine takes far longer for",
			of(layer("Conv", 90, 0), layer("Resize", 10, 1)),
			of(layer("Conv", 100, 0), layer("Resize", 100, 1)),
			[]profile.OperatorShare{{Op: "Conv", Share: 0.5}, {Op: "Resize", Share: 0.5}},
			[]int64{1},
			"LiteRT 2.3.0 takes far longer than opmeter's own engine for #1 Resize (100 µs, 50.0 % of an inference instead of 10 µs, 10.0 %).",
		},
		{
			"an engine that is slower as a whole",
			of(layer("Conv", 60, 0), layer("Relu", 40, 1)),
			of(layer("Conv", 600, 0), layer("Relu", 400, 1)),
			[]profile.OperatorShare{{Op: "Conv", Share: 0.6}, {Op: "Relu", Share: 0.4}},
			nil, "",
		},
		{
			"a greater share of a shorter inference is no longer time",
			of(layer("Conv", 5, 0), layer("Relu", 5, 1)),
			of(layer("Conv", 95, 0), layer("Relu", 5, 1)),
			[]profile.OperatorShare{{Op: "Conv", Share: 0.95}, {Op: "Relu", Share: 0.05}},
			nil, "",
		},
		{
			"fusions of both engines are one group, with the name of its longest layer",
			of(layer("Conv", 50, 0), layer("Relu", 30, 1), with(layer("Add", 0, 2), func(l *profile.Layer) { l.State, l.FusedInto = profile.Fused, new(int64(1)) }), layer("Softmax", 20, 3)),
			of(layer("FusedConv", 10, 0, 1), layer("Add", 2, 2), layer("Softmax", 88, 3)),
			[]profile.OperatorShare{{Op: "Softmax", Share: 0.88}, {Op: "Conv", Share: 0.12}},
			[]int64{0, 1, 2, 3},
			"opmeter's own engine takes far longer than LiteRT 2.3.0 for #0 Conv (80 µs, 80.0 % of an inference instead of 12 µs, 12.0 %). " +
				"LiteRT 2.3.0 takes far longer than opmeter's own engine for #3 Softmax (88 µs, 88.0 % of an inference instead of 20 µs, 20.0 %).",
		},
		{
			"layers matched by order, without a time, and inserted ones name nothing",
			of(layer("Conv", 10, 0), layer("Relu", 40, 1), layer("Add", 50, 2)),
			of(
				with(layer("Conv", 80, 0), func(l *profile.Layer) { l.Provenance.Confidence = profile.ByOrder }),
				layer("Relu", 0, 1),
				with(layer("Reorder", 20, 2), func(l *profile.Layer) { l.Provenance.Inserted = true }),
			),
			[]profile.OperatorShare{{Op: "Conv", Share: 0.8}, {Op: "Reorder", Share: 0.2}},
			nil, "",
		},
		{"an engine that reports no operators", of(layer("Conv", 10, 0)), of(layer("Conv", 0, 0)), nil, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.them.Totals.Latency = profile.Value(profile.Measured, 3e-6, "")
			got, found := Compare(c.own, c.them, name)
			if got.Latency != c.them.Totals.Latency || got.Engine != "litert" {
				t.Errorf("%+v", got)
			}
			// Sums of fractions are rounded.
			if d := cmp.Diff(c.want, got.Operators, cmpopts.EquateApprox(0, 1e-12)); d != "" {
				t.Errorf("operators (-want +got):\n%s", d)
			}
			var layers []int64
			var text []string
			for _, f := range found {
				layers, text = append(layers, f.Layers...), append(text, f.Text)
			}
			if !slices.Equal(layers, c.layers) || strings.Join(text, " ") != c.text {
				t.Errorf("layers %v\n%s\nwant %v\n%s", layers, strings.Join(text, " "), c.layers, c.text)
			}
		})
	}
}
