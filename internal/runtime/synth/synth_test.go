package synth

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/material"
)

func TestGenerator(t *testing.T) {
	t.Parallel()
	g := NewGenerator(1, 0)
	for i, want := range []uint64{0x910a2dec89025cc1, 0xbeeb8da1658eec67, 0xf893a2eefb32555e} {
		if got := g.Next(); got != want {
			t.Errorf("draw %d is %#x, want %#x", i, got, want)
		}
	}
}

func TestFill(t *testing.T) {
	t.Parallel()
	seven := 7.9
	for _, tc := range []struct {
		name string
		typ  tensor.Type
		fill Fill
		want *tensor.Tensor
	}{
		{"const", tensor.Int32, Fill{Const: &seven}, tensor.From(tensor.Int32, []int{3}, []int32{7, 7, 7})},
		{"values", tensor.Float32, Fill{Values: []float64{1, 2, 0.5}}, tensor.From(tensor.Float32, []int{3}, []float32{1, 2, 0.5})},
		{"iota", tensor.Int64, Fill{Iota: 1}, tensor.From(tensor.Int64, []int{3}, []int64{0, 1, 2})},
		{"mod", tensor.Int64, Fill{Mod: 1}, tensor.From(tensor.Int64, []int{3}, []int64{0, 0, 0})},
		{"nibbles", tensor.Int4, Fill{Values: []float64{-1, 2, 3}}, &tensor.Tensor{Type: tensor.Int4, Shape: []int{3}, Data: []byte{0x2f, 3}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := Tensor(tc.typ, []int{3}, 1, 0, &tc.fill)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := Tensor(tensor.Float32, []int{2}, 1, 0, &Fill{Values: []float64{1}}); err == nil {
		t.Error("one value for two elements is accepted")
	}
	if _, err := Tensor(tensor.Float32, []int{1 << 30, 1 << 30}, 1, 0, nil); err == nil {
		t.Error("a huge shape is accepted")
	}
}

func TestShape(t *testing.T) {
	t.Parallel()
	v := &graph.Value{Shape: []int{-1, 4, -1}, Placeholder: []int{3, 4, 1}}
	if diff := cmp.Diff([]int{3, 4, 1}, Shape(v)); diff != "" {
		t.Error(diff)
	}
	v.Placeholder = nil
	if diff := cmp.Diff([]int{1, 4, 1}, Shape(v)); diff != "" {
		t.Error(diff)
	}
}

// TestRecordedInputs checks the generator against the hashes of every recorded run.
func TestRecordedInputs(t *testing.T) {
	t.Parallel()
	overrides, err := LoadOverrides(material.Path(t, "oracle", "inputs.json"))
	if err != nil {
		t.Fatal(err)
	}
	results, _ := filepath.Glob(filepath.Join(material.Path(t, "golden"), "*", "*", "result.json"))
	inputs := 0
	for _, file := range results {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r struct {
			Model  string `json:"model"`
			Inputs []struct {
				Name   string `json:"name"`
				Dtype  string `json:"dtype"`
				SHA256 string `json:"sha256"`
				Shape  []int  `json:"shape"`
			} `json:"inputs"`
		}
		if err := jsonx.Unmarshal(data, &r); err != nil {
			t.Fatal(err)
		}
		o := overrides[r.Model]
		for k, in := range r.Inputs {
			typ, ok := tensor.ParseType(in.Dtype)
			if !ok {
				t.Fatalf("%s: type %q", file, in.Dtype)
			}
			var fill *Fill
			if f, ok := o.Fill[in.Name]; ok {
				fill = &f
			}
			x, err := Tensor(typ, in.Shape, 1, k, fill)
			if err != nil {
				t.Fatal(err)
			}
			if h := sha256.Sum256(x.Data); hex.EncodeToString(h[:]) != in.SHA256 {
				t.Errorf("%s: input %d %q differs", file, k, in.Name)
			}
			inputs++
		}
	}
	if inputs == 0 {
		t.Error("no recorded inputs")
	}
	t.Logf("%d inputs of %d results equal", inputs, len(results))
}
