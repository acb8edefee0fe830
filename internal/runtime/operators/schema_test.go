package operators

import (
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// TestTables parses every line of the tables and checks that each operator is in one.
func TestTables(t *testing.T) {
	t.Parallel()
	r := Registry()
	for _, s := range r.Schemas {
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
	}
	for _, d := range r.All() {
		known := false
		for _, s := range r.Schemas {
			known = known || s.Has(d.Domain, d.Name, d.Since)
		}
		if !known {
			t.Errorf("%s %s of version %d is in no table", d.Domain, d.Name, d.Since)
		}
	}
}

// TestLists checks that all definitions of an operator are in one list.
func TestLists(t *testing.T) {
	t.Parallel()
	for name, lists := range map[string][]func() []op.Def{"TFLite": liteLists, "others": onnxLists} {
		in := map[[2]string]int{}
		for i, l := range lists {
			for _, d := range l() {
				k := [2]string{d.Domain, d.Name}
				if j, ok := in[k]; ok && j != i {
					t.Errorf("%s: %s %s is in lists %d and %d", name, d.Domain, d.Name, j, i)
				}
				in[k] = i
			}
		}
	}
}

// TestWrongTypes gives operators inputs of unsupported types, in otherwise valid models: none is
// planned.
func TestWrongTypes(t *testing.T) {
	t.Parallel()
	r := Registry()
	value := func(y tensor.Type) *tensor.Tensor { return &tensor.Tensor{Type: y, Shape: []int{2}} }
	f, i := value(tensor.Float32), value(tensor.Int32)
	for _, tt := range []struct {
		domain, op string
		version    int
		in         []*tensor.Tensor
	}{
		{"", "Conv", 11, []*tensor.Tensor{f, i}},
		{"", "Gemm", 13, []*tensor.Tensor{f, i}},
		{"", "ConvTranspose", 11, []*tensor.Tensor{i, i}},
		{"", "LSTM", 14, []*tensor.Tensor{f, f, i}},
		{"", "LayerNormalization", 17, []*tensor.Tensor{f, i}},
		{"", "DequantizeLinear", 13, []*tensor.Tensor{value(tensor.Int8), i}},
		{"com.microsoft", "BiasGelu", 1, []*tensor.Tensor{f, i}},
		{"ai.onnx.ml", "Normalizer", 1, []*tensor.Tensor{value(tensor.String)}},
		{graph.TFLite, "CONV_2D", 1, []*tensor.Tensor{f, i}},
		{graph.TFLite, "FULLY_CONNECTED", 1, []*tensor.Tensor{value(tensor.Int8), f}},
		{graph.TFLite, "ADD", 1, []*tensor.Tensor{f, i}},
		{graph.TFLite, "GATHER", 1, []*tensor.Tensor{f, f}},
	} {
		n := &graph.Node{Domain: tt.domain, Op: tt.op, Version: tt.version}
		if err := r.Check(n, tt.in, []*tensor.Tensor{{}}); err == nil {
			t.Errorf("%s takes %v and %v", tt.op, tt.in[0].Type, tt.in[len(tt.in)-1].Type)
		}
	}
}

// TestFound checks that each definition is found in the part of the registry for its domain.
func TestFound(t *testing.T) {
	t.Parallel()
	r := Registry()
	all := r.All()
	if len(all) < 600 {
		t.Errorf("%d definitions", len(all))
	}
	for _, d := range all {
		if r.Find(d.Domain, d.Name, d.Since) != d {
			t.Errorf("%q %s %d is not found", d.Domain, d.Name, d.Since)
		}
	}
}
