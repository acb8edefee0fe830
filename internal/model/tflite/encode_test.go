package tflite

import (
	"bytes"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// long lists the types of weights, too long to compare element by element.
var long = map[reflect.Type]bool{reflect.TypeFor[[]byte](): true, reflect.TypeFor[[]int64](): true, reflect.TypeFor[[]float32](): true}

// TestRoundTrip writes and reads again every model of the material. What a file
// does not keep: where bytes lie, how they were compressed, its own size.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	ignore := []cmp.Option{
		cmpopts.IgnoreFields(graph.Model{}, "Path", "FileBytes", "Close", "Check", "Warnings"),
		cmpopts.IgnoreFields(graph.Value{}, "Offset"),
		cmp.FilterPath(func(p cmp.Path) bool { return !long[p.Last().Type()] }, cmpopts.EquateEmpty()),
		cmp.Comparer(bytes.Equal), cmp.Comparer(slices.Equal[[]int64]), cmp.Comparer(slices.Equal[[]float32]),
	}
	n := 0
	for _, file := range modelFiles(t) {
		if _, bad := refused[filepath.Base(file)]; bad {
			continue
		}
		want, err := Open(file)
		if err != nil {
			t.Error(err)
			continue
		}
		data, err := Encode(want)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		got, err := Parse(data, file)
		if err != nil {
			t.Error(err)
			continue
		}
		for i, g := range got.Graphs {
			for k, v := range g.Values {
				if want.Graphs[i].Values[k].Placeholder == nil {
					v.Placeholder = nil // the writer makes one where it was absent
				}
			}
		}
		if diff := cmp.Diff(want, got, ignore...); diff != "" {
			t.Errorf("%s: %.2000s", file, diff)
		}
		n++
		if err := want.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d models equal after writing and reading", n)
}

// TestOptionTables writes every option table with values other than the defaults.
func TestOptionTables(t *testing.T) {
	t.Parallel()
	numbers := map[string]int{"CONV_2D": 1, "FULLY_CONNECTED": 8, "ADD": 11, "RESHAPE": 17, "MEAN": 27, "WHILE": 93, "RIGHT_SHIFT": 126, "STABLEHLO_COMPOSITE": 21, "STABLEHLO_CASE": 23}
	for name, want := range numbers {
		if got := optionsOf[name].number; got != want {
			t.Errorf("options of %s are number %d, want %d", name, got, want)
		}
	}
	for name, p := range optionsOf {
		a := graph.Attrs{}
		for _, f := range p.fields {
			a[f.name] = otherValue(f)
			if f.kind == kDeprecated {
				delete(a, f.name)
			}
		}
		g := &graph.Graph{Values: []*graph.Value{{ID: 0, Name: "x", Type: tensor.Float32, HasShape: true}}, Inputs: []int{0}, Outputs: []int{0}}
		g.Nodes = []*graph.Node{{Domain: graph.TFLite, Op: name, Version: 2, Inputs: []int{0}, Attrs: a}}
		m := &graph.Model{Graphs: []*graph.Graph{g, {Index: 1}}}
		data, err := Encode(m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := Parse(data, name)
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(a, got.Main().Nodes[0].Attrs, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func otherValue(f field) any {
	switch f.kind {
	case kInt32, kInt64:
		return f.def - 3
	case kFloat:
		return float32(0.5)
	case kBool:
		return f.def == 0
	case kEnum, kEnum32:
		return f.enum.text(int64(len(f.enum) + 1))
	case kString:
		return "text"
	case kBytes:
		return []byte{1, 2}
	case kInts, kInt64s:
		return []int64{-1, 5}
	case kBools:
		return []int64{1, 0}
	case kFloats:
		return []float32{1.5}
	case kEnums:
		return []string{f.enum[1]}
	case kGraph:
		return graph.GraphRef(1)
	case kGraphs:
		return []graph.GraphRef{1, 0}
	}
	return nil
}

func TestEncodeErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, want string
		change     func(*graph.Model)
	}{
		{"domain", `domain "ai.onnx.ml"`, func(m *graph.Model) { m.Main().Nodes[0].Domain = graph.ONNXML }},
		{"operator", `operator "Conv" does not exist`, func(m *graph.Model) { m.Main().Nodes[0].Op = "Conv" }},
		{"attribute", "1 attributes that its option table does not have", func(m *graph.Model) { m.Main().Nodes[0].Attrs["x"] = int64(1) }},
		{"enumeration", `no value "tanh"`, func(m *graph.Model) { m.Main().Nodes[0].Attrs["fused_activation_function"] = "tanh" }},
		{"type", "complex", func(m *graph.Model) { m.Main().Nodes[0].Attrs["pot_scale_int16"] = complex(1, 1) }},
		{"container", "type sequence does not exist", func(m *graph.Model) { m.Main().Values[0].Type = tensor.Sequence }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := &graph.Graph{Values: []*graph.Value{{Type: tensor.Float32, HasShape: true}}, Inputs: []int{0}}
			g.Nodes = []*graph.Node{{Domain: graph.TFLite, Op: "ADD", Version: 1, Inputs: []int{0, 0}, Attrs: graph.Attrs{}}}
			m := &graph.Model{Graphs: []*graph.Graph{g}}
			tc.change(m)
			if _, err := Encode(m); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}
