package tflm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/tflm"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// TestTaken refuses nothing of the models that the runtime ran: there are reference
// outputs of it.
func TestTaken(t *testing.T) {
	t.Parallel()
	ran, err := filepath.Glob(filepath.Join(material.Path(t, "golden"), "*", "tflm"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, dir := range []string{"mcu", "mltk", "real", "synthetic", "tflite_ops", "tflite_conformance"} {
		list, err := os.ReadDir(material.Path(t, "models", dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			files[f.Name()] = material.Path(t, "models", dir, f.Name())
		}
	}
	checked := 0
	for _, dir := range ran {
		name := filepath.Base(filepath.Dir(dir))
		if files[name] == "" {
			continue
		}
		m, err := modelfile.Open(files[name])
		if err != nil {
			t.Error(err)
			continue
		}
		checked++
		if list, _ := tflm.Refused(m, tflm.Latest); len(list) > 0 {
			t.Errorf("%s ran and is refused: %+v", name, list[0])
		}
	}
	if checked < 25 {
		t.Errorf("%d models were checked", checked)
	}
}

// TestHybrid refuses networks whose weights alone are of 8 bits.
func TestHybrid(t *testing.T) {
	t.Parallel()
	list, err := filepath.Glob(filepath.Join(material.Path(t, "models", "edgemark"), "*.tflite"))
	if err != nil || len(list) < 40 {
		t.Fatalf("%d files, %v", len(list), err)
	}
	for _, file := range list {
		m, err := modelfile.Open(file)
		if err != nil {
			t.Error(err)
			continue
		}
		got, _ := tflm.Refused(m, tflm.Latest)
		// The converter leaves small weights as they are.
		hybrid := false
		for _, n := range m.Main().Nodes {
			if n.Op == "FULLY_CONNECTED" || n.Op == "CONV_2D" {
				hybrid = hybrid || m.Main().Values[n.Inputs[0]].Type == tensor.Float32 && m.Main().Values[n.Inputs[1]].Type == tensor.Int8
			}
		}
		if hybrid != (len(got) > 0) || hybrid && !strings.Contains(file, "q_dynamic") {
			t.Errorf("%s: hybrid %v, refused %+v", filepath.Base(file), hybrid, got)
		}
		for _, r := range got {
			if r.Code != tflm.RefusedMixture {
				t.Errorf("%s: %+v", filepath.Base(file), r)
			}
		}
	}
}

// one makes a model of one operator over operands of given types.
func one(op string, types ...tensor.Type) *graph.Model {
	g := &graph.Graph{Nodes: []*graph.Node{{Op: op, Domain: graph.TFLite}}}
	for i, t := range types {
		g.Values = append(g.Values, &graph.Value{ID: i, Type: t, Shape: []int{1, 4}, HasShape: true})
		g.Nodes[0].Inputs = append(g.Nodes[0].Inputs, i)
	}
	return &graph.Model{Format: "tflite", Graphs: []*graph.Graph{g}}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	const f32, f16, i4, i8, u8, i16 = tensor.Float32, tensor.Float16, tensor.Int4, tensor.Int8, tensor.Uint8, tensor.Int16
	for _, c := range []struct {
		op    string
		types []tensor.Type
		year  int
		want  tflm.RefusalCode
		needs int
	}{
		{"CONV_2D", []tensor.Type{f32, f32}, tflm.Latest, "", 2020},
		{"CONV_2D", []tensor.Type{i8, i8}, tflm.Latest, "", 2020},
		{"CONV_2D", []tensor.Type{i16, i8}, tflm.Latest, "", 2020},
		{"CONV_2D", []tensor.Type{i8, i4}, tflm.Latest, "", 2023},
		{"CONV_2D", []tensor.Type{i8, i4}, 2022, tflm.RefusedMixture, 0},
		{"CONV_2D", []tensor.Type{f32, i8}, tflm.Latest, tflm.RefusedMixture, 0},
		{"CONV_2D", []tensor.Type{f32, f16}, tflm.Latest, tflm.RefusedMixture, 0},
		{"CONV_2D", []tensor.Type{i16, i16}, tflm.Latest, tflm.RefusedMixture, 0},
		{"CONV_2D", []tensor.Type{u8, u8}, tflm.Latest, tflm.RefusedType, 0},
		{"CONV_2D", []tensor.Type{u8, u8}, 2020, "", 2020},
		{"TRANSPOSE_CONV", []tensor.Type{tensor.Int32, i8, i8}, tflm.Latest, "", 2021},
		{"TRANSPOSE_CONV", []tensor.Type{tensor.Int32, i8, f32}, tflm.Latest, tflm.RefusedMixture, 0},
		{"FULLY_CONNECTED", []tensor.Type{f32, i8}, tflm.Latest, tflm.RefusedMixture, 0},
		{"DEQUANTIZE", []tensor.Type{f16}, tflm.Latest, tflm.RefusedMixture, 0},
		{"DEQUANTIZE", []tensor.Type{i8}, tflm.Latest, "", 2020},
		{"ADD", []tensor.Type{u8, u8}, tflm.Latest, tflm.RefusedType, 0},
		{"RESHAPE", []tensor.Type{u8}, tflm.Latest, "", 2020},
		{"QUANTIZE", []tensor.Type{u8}, tflm.Latest, "", 2020},
		{"GELU", []tensor.Type{f32}, tflm.Latest, tflm.RefusedOperator, 0},
		{"TOPK_V2", []tensor.Type{f32}, tflm.Latest, tflm.RefusedOperator, 0},
		{"WHILE", []tensor.Type{f32}, 2020, tflm.RefusedOperator, 0},
		{"WHILE", []tensor.Type{f32}, tflm.Latest, "", 2022},
	} {
		got, needs := tflm.Refused(one(c.op, c.types...), c.year)
		switch {
		case c.want == "" && len(got) > 0, c.want != "" && (len(got) != 1 || got[0].Code != c.want):
			t.Errorf("%s of %v in %d: %+v, want %q", c.op, c.types, c.year, got, c.want)
		case needs != c.needs:
			t.Errorf("%s of %v in %d: releases of %d, want %d", c.op, c.types, c.year, needs, c.needs)
		}
	}
}
