package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// slow is a model of one operator that computes for many seconds.
type slow struct {
	name string
	op   string
	// inputs are float tensors of these shapes; a constant is an int64 list.
	inputs [][]int
	consts [][]int64
	attrs  graph.Attrs
	// fold makes the inputs constants of ones, so that planning computes.
	fold bool
}

var slows = []slow{
	{name: "matmul", op: "MatMul", inputs: [][]int{{6000, 6000}, {6000, 6000}}},
	{name: "conv", op: "Conv", inputs: [][]int{{1, 128, 512, 512}, {256, 128, 7, 7}}},
	{name: "conv3d", op: "Conv", inputs: [][]int{{1, 32, 64, 64, 64}, {64, 32, 5, 5, 5}}},
	{name: "deconv", op: "ConvTranspose", inputs: [][]int{{1, 256, 256, 256}, {256, 128, 5, 5}}},
	{name: "einsum", op: "Einsum", inputs: [][]int{{3000, 3000}, {3000, 3000}}, attrs: graph.Attrs{"equation": "ij,jk->ki"}},
	{name: "gemm", op: "Gemm", inputs: [][]int{{5000, 5000}, {5000, 5000}}, attrs: graph.Attrs{"transB": int64(1)}},
	{name: "topk", op: "TopK", inputs: [][]int{{1 << 25}}, consts: [][]int64{{1 << 24}}, attrs: graph.Attrs{"axis": int64(0)}},
	{name: "unique", op: "Unique", inputs: [][]int{{1 << 25}}},
	{name: "cumsum", op: "CumSum", inputs: [][]int{{1 << 27}}, consts: [][]int64{{0}}},
	{name: "softmax", op: "Softmax", inputs: [][]int{{1 << 26}}, attrs: graph.Attrs{"axis": int64(0)}},
	{name: "lrn", op: "LRN", inputs: [][]int{{1, 512, 512, 512}}, attrs: graph.Attrs{"size": int64(255)}},
	{name: "maxpool", op: "MaxPool", inputs: [][]int{{1, 16, 1024, 1024}}, attrs: graph.Attrs{"kernel_shape": []int64{63, 63}, "pads": []int64{31, 31, 31, 31}}},
	{name: "det", op: "Det", inputs: [][]int{{3000, 3000}}},
	{name: "transpose", op: "Transpose", inputs: [][]int{{8192, 16384}}, attrs: graph.Attrs{"perm": []int64{1, 0}}},
	{name: "resize", op: "Resize", inputs: [][]int{{1, 3, 1024, 1024}}, consts: [][]int64{nil, nil, {1, 3, 9000, 9000}}, attrs: graph.Attrs{"mode": "cubic"}},
	{name: "stft", op: "STFT", inputs: [][]int{{1, 1 << 20, 1}}, consts: [][]int64{{16}, nil, {4093}}},
	{name: "lstm", op: "LSTM", inputs: [][]int{{2000, 16, 512}, {1, 2048, 512}, {1, 2048, 512}}, attrs: graph.Attrs{"hidden_size": int64(512)}},
	{name: "fold", op: "MatMul", inputs: [][]int{{5000, 5000}, {5000, 5000}}, fold: true},
}

// model builds the graph: inputs, the operator, one output.
func (s *slow) model() *graph.Model {
	g := &graph.Graph{Name: s.name}
	add := func(v *graph.Value) int {
		v.ID = len(g.Values)
		g.Values = append(g.Values, v)
		return v.ID
	}
	const version = 17
	n := &graph.Node{Op: s.op, Version: version, Attrs: s.attrs}
	for i, shape := range s.inputs {
		name := fmt.Sprintf("x%d", i)
		if s.fold {
			dims := make([]int64, len(shape))
			for k, d := range shape {
				dims[k] = int64(d)
			}
			c := add(constant(name+"_shape", dims))
			id := add(&graph.Value{Name: name})
			g.Nodes = append(g.Nodes, &graph.Node{
				Index: len(g.Nodes), Op: "ConstantOfShape", Version: 9, Inputs: []int{c}, Outputs: []int{id},
				Attrs: graph.Attrs{"value": tensor.From(tensor.Float32, []int{1}, []float32{1})},
			})
			n.Inputs = append(n.Inputs, id)
			continue
		}
		id := add(&graph.Value{Name: name, Type: tensor.Float32, Shape: shape, HasShape: true})
		g.Inputs = append(g.Inputs, id)
		n.Inputs = append(n.Inputs, id)
	}
	for i, c := range s.consts {
		if c == nil {
			n.Inputs = append(n.Inputs, -1)
			continue
		}
		n.Inputs = append(n.Inputs, add(constant(fmt.Sprintf("c%d", i), c)))
	}
	y := add(&graph.Value{Name: "y", Type: tensor.Float32})
	n.Index, n.Outputs, g.Outputs = len(g.Nodes), []int{y}, []int{y}
	g.Nodes = append(g.Nodes, n)
	return &graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": version}, Graphs: []*graph.Graph{g}}
}

func constant(name string, v []int64) *graph.Value {
	shape := []int{len(v)}
	return &graph.Value{Name: name, Type: tensor.Int64, Shape: shape, HasShape: true, Const: tensor.From(tensor.Int64, shape, v)}
}

// trialsIn makes the models that are slow in a folder and lists all commands.
func trialsIn(dir string, models int) ([]trial, error) {
	var out []trial
	const most = 3 * time.Second
	add := func(name string, most time.Duration, args ...string) {
		out = append(out, trial{name: name, args: args, most: most})
	}
	for i := range slows {
		s := &slows[i]
		b, err := onnx.Encode(s.model())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		path := filepath.Join(dir, s.name+".onnx")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			return nil, err
		}
		add("profile "+s.name, most, "profile", path)
		add("profile -o "+s.name, most, "profile", path, "-o", filepath.Join(dir, s.name+".opmeter"))
		add("run "+s.name, most, "run", path, "--output", filepath.Join(dir, "out"))
		add("summary "+s.name, most, "summary", path)
	}
	pipe := filepath.Join(dir, "pipe.onnx")
	if err := mkfifo(pipe); err == nil {
		for _, verb := range []string{"profile", "summary", "report"} {
			add(verb+" of a pipe", time.Second, verb, pipe)
		}
		add("--input of a pipe", time.Second, "profile", filepath.Join(dir, "det.onnx"), "--input", "x0="+pipe)
	}
	examples := filepath.Join(material.Root(), "examples")
	add("profile of a folder", most, "profile", dir)
	add("summary of a folder", most, "summary", dir)
	for _, f := range []string{"table", "json", "html", "perfetto"} {
		add("profile -o in format "+f, most, "profile", filepath.Join(examples, "resnet8.yaml"), "-o", filepath.Join(dir, "x."+ending(f)))
	}
	for _, v := range [][]string{{"ops"}, {"targets"}, {"engines"}, {"schema"}, {"fit", filepath.Join(examples, "resnet8.yaml")}, {"build", filepath.Join(examples, "resnet8.yaml"), "-o", filepath.Join(dir, "built.tflite")}} {
		add(v[0], 60*time.Millisecond, v...)
	}
	shared, err := filepath.Glob(filepath.Join(material.Dir(), "models", "real", "*.*"))
	if err != nil {
		return nil, err
	}
	count := 0
	for _, path := range shared {
		if e := filepath.Ext(path); e != ".onnx" && e != ".tflite" || count >= models {
			continue
		}
		count++
		name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		add("profile "+name, most, "profile", path)
		add("profile -o "+name, most, "profile", path, "--timeline", "all", "-o", filepath.Join(dir, name+".html"))
		add("run "+name, time.Second, "run", path, "--output", filepath.Join(dir, "out"))
		add("summary "+name, time.Second, "summary", path)
		add("estimate "+name, time.Second, "profile", path, "--on", "stm32l4r5")
	}
	return out, nil
}

// ending is that of a format's files.
func ending(format string) string {
	switch format {
	case "table":
		return "csv"
	case "perfetto":
		return "perfetto-trace"
	}
	return format
}
