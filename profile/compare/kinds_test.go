package compare_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
	"github.com/opmeter/opmeter/profile/compare"
)

// chained connects the layers of a profile in a row, and takes their nodes away.
func chained(p *profile.Profile, hash, dtype string) *profile.Profile {
	p.Model.StructureSHA256 = strings.Repeat(hash, 64)
	for i := range p.Layers {
		l := &p.Layers[i]
		l.Provenance, l.Name = nil, ""
		tensor := func(k int) []profile.Tensor {
			return []profile.Tensor{{Name: hash + string(rune('a'+k)), DType: dtype, Shape: []int64{1, 8, 4, 4}}}
		}
		l.Inputs, l.Outputs = tensor(i), tensor(i+1)
	}
	return p
}

// TestGroupKinds: rows of different models say how their layers differ from those of the first.
func TestGroupKinds(t *testing.T) {
	t.Parallel()
	float := chained(run("a", 10, .1, row("Conv", 4, .1), row("Relu", 1, .1), row("MaxPool", 2, .1), row("Softmax", 3, .1)), "a", "float32")
	half := chained(run("b", 8, .1, row("Conv", 3, .1), row("Relu", 1, .1), row("MaxPool", 2, .1), row("Softmax", 2, .1)), "b", "float16")
	shorter := chained(run("c", 7, .1, row("Conv", 4, .1), row("MaxPool", 2, .1), row("Softmax", 1, .1)), "c", "float32")
	for _, tt := range []struct {
		name string
		ps   []*profile.Profile
		want []string
	}{
		{"half precision", []*profile.Profile{float, half}, []string{"Conv quantised certain", "Relu quantised certain", "MaxPool quantised certain", "Softmax quantised certain"}},
		{"one less", []*profile.Profile{float, shorter}, []string{"Conv same certain", "Relu removed", "MaxPool same certain", "Softmax same certain"}},
		{"one more", []*profile.Profile{shorter, float}, []string{"Conv same certain", "MaxPool same certain", "Softmax same certain", "Relu inserted"}},
		{"three", []*profile.Profile{float, half, shorter}, []string{"Conv quantised certain", "Relu quantised certain", "MaxPool quantised certain", "Softmax quantised certain"}},
	} {
		var got []string
		for _, g := range table(t, tt.ps...).Groups {
			s := g.Op + " " + string(g.Kind)
			if g.Certain {
				s += " certain"
			}
			if g.Kind != align.Removed && g.Kind != align.Inserted && g.Confidence != align.ByStructure {
				t.Errorf("%s: %s was found %s", tt.name, g.Op, g.Confidence)
			}
			got = append(got, s)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestMatches: what the layers of one run are says nothing about those of another.
func TestMatches(t *testing.T) {
	t.Parallel()
	made := func(hash, dtype string, ops ...string) *profile.Profile {
		var rows []profile.Layer
		for _, op := range ops {
			rows = append(rows, row(op, 2, .1))
		}
		return chained(run(hash, 10, .1, rows...), hash, dtype)
	}
	ps := map[string]*profile.Profile{
		"float": made("a", "float32", "Conv", "Relu", "MaxPool", "Softmax"), "equal": made("b", "float32", "Conv", "Relu", "MaxPool", "Softmax"),
		"half": made("c", "float16", "Conv", "Relu", "MaxPool", "Softmax"), "shorter": made("d", "float32", "Conv", "MaxPool", "Softmax"),
	}
	want := map[string]string{"equal": "same same same same", "half": "quantised quantised quantised quantised", "shorter": "same removed same same"}
	for _, order := range [][]string{{"equal", "half", "shorter"}, {"half", "shorter", "equal"}, {"shorter", "equal", "half"}} {
		runs := []*profile.Profile{ps["float"]}
		for _, name := range order {
			runs = append(runs, ps[name])
		}
		x := table(t, runs...)
		for i, name := range order {
			var got []string
			for _, g := range x.Groups {
				m := g.Match(i + 1)
				got = append(got, string(m.Kind))
				if m.Certain != (m.Kind != align.Removed) {
					t.Errorf("%s of %v: %s: certain %v", name, order, g.Op, m.Certain)
				}
			}
			if s := strings.Join(got, " "); s != want[name] {
				t.Errorf("%s of %v: %s, want %s", name, order, s, want[name])
			}
		}
	}
	// A run without the layers of a gathered row says so.
	x, err := compare.With([]compare.Named{{Profile: ps["float"]}, {Profile: ps["half"]}, {Profile: ps["shorter"]}}, compare.Options{By: compare.ByOp})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range x.Groups {
		removed := g.Match(2).Kind == align.Removed
		if g.Match(1).Kind != "" || removed != (g.Op == "Relu") {
			t.Errorf("%s: %+v", g.Op, g.Matches)
		}
	}
}

// TestUnrelated: of models whose heavy operators differ, rows are kinds of operators. Models that
// have one layer in common are not of this kind.
func TestUnrelated(t *testing.T) {
	t.Parallel()
	convolutions := func() *profile.Profile {
		return chained(run("a", 10, .1, row("Conv", 4, .1), row("Conv", 2, .1), row("MaxPool", 1, .1), row("CONV_2D", 3, .1)), "a", "float32")
	}
	products := func() *profile.Profile {
		return chained(run("b", 8, .1, row("MatMul", 3, .1), row("Gemm", 2, .1), row("MatMul", 3, .1)), "b", "float32")
	}
	for _, tt := range []struct {
		name string
		b    *profile.Profile
		want []string // operator, kind, layers of both; nil for rows of layers
	}{
		{"no layers in common", products(), []string{"conv removed 3 0", "maxpool removed 1 0", "matmul inserted 0 3"}},
		{"a layer in common", chained(run("b", 8, .1, row("Conv", 4, .1), row("MatMul", 2, .1), row("MatMul", 2, .1)), "b", "float32"), nil},
		{"other names", chained(run("b", 10, .1, row("Conv", 4, .1), row("Conv", 2, .1), row("MaxPool", 1, .1), row("Conv", 3, .1)), "b", "float32"), nil},
	} {
		x := table(t, convolutions(), tt.b)
		noted := slices.ContainsFunc(x.Notes, func(n compare.Note) bool { return n.Code == compare.Unrelated })
		if noted != (tt.want != nil) {
			t.Errorf("%s: noted %v", tt.name, noted)
		}
		if tt.want == nil {
			continue
		}
		var got []string
		for _, g := range x.Groups {
			got = append(got, fmt.Sprint(g.Op, " ", g.Kind, " ", len(g.Layers[0]), " ", len(g.Layers[1])))
		}
		if !slices.Equal(got, tt.want) || x.By != compare.ByOp {
			t.Errorf("%s: %q by %q, want %q", tt.name, got, x.By, tt.want)
		}
	}
}

// TestGathered: gathered rows hold layers of many kinds, and say only whether a run has none.
func TestGathered(t *testing.T) {
	t.Parallel()
	a := chained(run("a", 10, .1, row("Conv", 4, .1), row("Conv", 1, .1), row("MaxPool", 2, .1), row("Softmax", 3, .1)), "a", "float32")
	b := chained(run("b", 9, .1, row("Conv", 4, .1), row("MaxPool", 2, .1), row("Softmax", 3, .1)), "b", "float32")
	x, err := compare.With([]compare.Named{{Profile: b}, {Profile: a}}, compare.Options{By: compare.ByOp})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range x.Groups {
		if g.Kind != "" || !g.Certain {
			t.Errorf("%s: %q, certain %v", g.Op, g.Kind, g.Certain)
		}
	}
}

// TestLabel: rows are named by operator and number where a program made the name.
func TestLabel(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"block/conv": "block/conv", "conv_12": "conv_12", "": "Conv", "398": "Conv #7", "t12": "Conv #7", "onnx::Conv_12": "Conv #7", "arith.constant4": "Conv #7",
		"StatefulPartitionedCall:0": "Conv #7", "layer1.0.conv2": "layer1.0.conv2", "StatefulPartitionedCall/net/conv": "StatefulPartitionedCall/net/conv",
	} {
		g := compare.Group{Op: "Conv", Name: name, Layers: [][]int64{nil, {7, 8}}}
		if got := g.Label(); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestNamedByLeader: a row is named by the layer that the others serve, and gathered by it.
func TestNamedByLeader(t *testing.T) {
	t.Parallel()
	for op, together := range map[string]string{
		"Conv": "QLinearConv", "Add": "QLinearAdd", "GlobalAveragePool": "QLinearGlobalAveragePool", "Flatten": "Flatten", "Relu": "Relu", "Gemm": "QGemm",
	} {
		for _, before := range []string{"DequantizeLinear", "DEQUANTIZE", "Cast"} {
			a := run("a", 10, .1, row(before, 1, .1, 0), row(op, 4, .1, 1), row("QuantizeLinear", 2, .1, 2))
			b := run("b", 10, .1, row(together, 4, .1, 0, 1, 2))
			if g := table(t, a, b).Groups[0]; g.Op != op {
				t.Errorf("%s %s: named %s", before, op, g.Op)
			}
			x, err := compare.With([]compare.Named{{Profile: a}, {Profile: b}}, compare.Options{By: compare.ByOp})
			if err != nil {
				t.Fatal(err)
			}
			if g := x.Groups[0]; g.Op != op || len(x.Groups) != 1 {
				t.Errorf("%s %s: %d rows, gathered by %s", before, op, len(x.Groups), g.Op)
			}
		}
	}
	// What makes a constant for a convolution does not lead it.
	a := run("a", 10, .1, row("ConstantOfShape", 1, .1, 0), row("Conv", 4, .1, 1))
	x, err := compare.With([]compare.Named{{Profile: a}, {Profile: run("b", 10, .1, row("Conv", 4, .1, 0, 1))}}, compare.Options{By: compare.ByOp})
	if err != nil {
		t.Fatal(err)
	}
	if g := x.Groups[0]; g.Op != "Conv" {
		t.Errorf("gathered by %s", g.Op)
	}
}
