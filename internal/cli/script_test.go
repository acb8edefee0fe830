package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/decoder"
	"github.com/opmeter/opmeter/internal/testing/marked"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/tpurecords"
	"github.com/opmeter/opmeter/profile"
)

// TestScripts runs testdata/*.txtar. Their commands, beside the usual ones:
//
//	opmeter ARG...           run the program; it must succeed (with !: must not)
//	exits N ARG...           run the program, which must exit with status N
//	model KIND FILE          write a model of makeModel
//	cut FILE N               leave the first N bytes
//	random FILE N            write N random bytes
//	poke FILE OLD NEW        replace the bytes OLD, once, by NEW of the same length
//	built FILE PACKAGE       build a program of this module
//	lines FILE N             the file ("stdout", "stderr") has N lines
//	narrow N                 no line of stdout is wider than N bytes of ASCII
//
// Arguments that begin with "./" (also after "=") are files of the script. The
// program is called in this process; its output shows the script's folder as ".".
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                "testdata",
		RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("EXAMPLES", filepath.Join(material.Root(), "examples"))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"opmeter": func(ts *testscript.TestScript, neg bool, args []string) {
				if got := call(ts, args); (got == 0) == neg {
					ts.Fatalf("exit status %d", got)
				}
			},
			"exits": func(ts *testscript.TestScript, _ bool, args []string) {
				if got, want := call(ts, args[1:]), number(ts, args[0]); got != want {
					ts.Fatalf("exit status %d, want %d", got, want)
				}
			},
			"model": func(ts *testscript.TestScript, _ bool, args []string) {
				b, err := onnx.Encode(makeModel(ts, args[0]))
				ts.Check(err)
				ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o644))
			},
			"cut": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(os.Truncate(ts.MkAbs(args[0]), int64(number(ts, args[1]))))
			},
			"random": func(ts *testscript.TestScript, _ bool, args []string) {
				b := make([]byte, number(ts, args[1]))
				_, err := rand.NewChaCha8([32]byte{1}).Read(b)
				ts.Check(err)
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), b, 0o644))
			},
			"poke": func(ts *testscript.TestScript, _ bool, args []string) {
				old, err := strconv.Unquote(`"` + args[1] + `"`)
				ts.Check(err)
				repl, err := strconv.Unquote(`"` + args[2] + `"`)
				ts.Check(err)
				s := ts.ReadFile(args[0])
				if !strings.Contains(s, old) || len(old) != len(repl) {
					ts.Fatalf("%s: cannot replace %q", args[0], old)
				}
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(s, old, repl, 1)), 0o644))
			},
			"built": func(ts *testscript.TestScript, _ bool, args []string) {
				if out, err := exec.Command("go", "build", "-o", ts.MkAbs(args[0]), "github.com/opmeter/opmeter/"+args[1]).CombinedOutput(); err != nil {
					ts.Fatalf("%v\n%s", err, out)
				}
			},
			"lines": func(ts *testscript.TestScript, _ bool, args []string) {
				if got, want := strings.Count(ts.ReadFile(args[0]), "\n"), number(ts, args[1]); got != want {
					ts.Fatalf("%s has %d lines, want %d", args[0], got, want)
				}
			},
		},
	})
}

func number(ts *testscript.TestScript, s string) int {
	n, err := strconv.Atoi(s)
	ts.Check(err)
	return n
}

// call runs the program on the script's files.
func call(ts *testscript.TestScript, args []string) int {
	real := make([]string, len(args))
	for i, a := range args {
		name, file, ok := strings.Cut(a, "=./")
		switch {
		case ok:
			a = name + "=" + ts.MkAbs(file)
		case strings.HasPrefix(a, "./"):
			a = ts.MkAbs(a[2:])
		}
		if strings.HasSuffix(args[i], "/") && !strings.HasSuffix(a, "/") {
			a += "/" // a folder, which need not exist
		}
		real[i] = a
	}
	var out, errw bytes.Buffer
	status := Main(real, strings.NewReader(""), &out, &errw)
	for w, b := range map[io.Writer]*bytes.Buffer{ts.Stdout(): &out, ts.Stderr(): &errw} {
		_, err := io.WriteString(w, strings.ReplaceAll(b.String(), ts.Getenv("WORK")+string(filepath.Separator), "./"))
		ts.Check(err)
	}
	return status
}

// makeModel makes small ONNX models that show one thing each.
func makeModel(ts *testscript.TestScript, kind string) *graph.Model {
	f32 := func(name string, dims ...int) *graph.Value {
		return &graph.Value{Name: name, Type: tensor.Float32, Shape: dims, HasShape: true}
	}
	g := &graph.Graph{Name: kind}
	m := &graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{g}}
	node := func(op string, in, out []int, a graph.Attrs) {
		g.Nodes = append(g.Nodes, &graph.Node{Index: len(g.Nodes), Name: strings.ToLower(op), Op: op, Version: 17, Inputs: in, Outputs: out, Attrs: a})
	}
	switch kind {
	case "relu": // y = relu(x)
		g.Values = []*graph.Value{f32("x", 1, 4), f32("y", 1, 4)}
		node("Relu", []int{0}, []int{1}, nil)
		g.Inputs, g.Outputs = []int{0}, []int{1}
	case "cyclic": // a = relu(b), b = neg(a)
		g.Values = []*graph.Value{f32("x", 4), f32("a", 4), f32("b", 4)}
		node("Add", []int{0, 2}, []int{1}, nil)
		node("Neg", []int{1}, []int{2}, nil)
		g.Inputs, g.Outputs = []int{0}, []int{2}
	case "huge": // an input of 16 TiB
		g.Values = []*graph.Value{f32("x", 1<<21, 1<<21), f32("y", 1<<21, 1<<21)}
		node("Relu", []int{0}, []int{1}, nil)
		g.Inputs, g.Outputs = []int{0}, []int{1}
	case "large": // an input of 60 GiB
		g.Values = []*graph.Value{f32("x", 15<<10, 1<<20), f32("y", 15<<10, 1<<20)}
		node("Relu", []int{0}, []int{1}, nil)
		g.Inputs, g.Outputs = []int{0}, []int{1}
	case "wide": // 600 MiB of nothing, and a sum beside it
		g.Values = []*graph.Value{f32("x", 4), f32("y"), f32("z", 4), {Name: "dims", Type: tensor.Int64, Shape: []int{2}, HasShape: true, Const: tensor.From(tensor.Int64, []int{2}, []int64{600, 1 << 18})}}
		node("ConstantOfShape", []int{3}, []int{1}, nil)
		node("Add", []int{0, 0}, []int{2}, nil)
		g.Inputs, g.Outputs = []int{0}, []int{1, 2}
	case "endless": // a loop whose condition stays true, and a sum beside it
		boolean := func(name string) *graph.Value {
			return &graph.Value{Name: name, Type: tensor.Bool, Shape: []int{}, HasShape: true}
		}
		g.Values = []*graph.Value{f32("x", 4), boolean("more"), f32("y", 4), f32("z", 4)}
		g.Values[1].Const = tensor.From(tensor.Bool, []int{}, []uint8{1})
		node("Loop", []int{-1, 1, 0}, []int{2}, graph.Attrs{"body": graph.GraphRef(1)})
		node("Add", []int{0, 0}, []int{3}, nil)
		g.Inputs, g.Outputs = []int{0}, []int{2, 3}
		b := &graph.Graph{Index: 1, Name: "body", Parent: g, Inputs: []int{0, 1, 2}, Outputs: []int{3, 4}}
		b.Values = []*graph.Value{{Name: "i", Type: tensor.Int64, Shape: []int{}, HasShape: true}, boolean("go"), f32("s", 4), boolean("again"), f32("t", 4)}
		b.Nodes = []*graph.Node{{Op: "Identity", Version: 16, Inputs: []int{1}, Outputs: []int{3}}, {Index: 1, Op: "Neg", Version: 13, Inputs: []int{2}, Outputs: []int{4}}}
		for i, v := range b.Values {
			v.ID = i
		}
		m.Graphs = append(m.Graphs, b)
	case "unknown": // relu, an operator that does not exist, relu
		g.Values = []*graph.Value{f32("x", 2, 8), f32("a", 2, 8), f32("b", 2, 8), f32("y", 2, 8)}
		node("Relu", []int{0}, []int{1}, nil)
		node("Frobnicate", []int{1}, []int{2}, nil)
		node("Relu", []int{2}, []int{3}, nil)
		g.Inputs, g.Outputs = []int{0}, []int{3}
	case "contradiction": // a convolution with kernels of another rank
		g.Values = []*graph.Value{f32("x", 1, 3, 8, 8), f32("y", 1, 4, 8, 8), f32("w", 4, 3)}
		g.Values[2].Const = tensor.From(tensor.Float32, []int{4, 3}, make([]float32, 12))
		node("Conv", []int{0, 2}, []int{1}, nil)
		g.Inputs, g.Outputs = []int{0}, []int{1}
	case "mixed": // a sum of float32 and int8
		g.Values = []*graph.Value{f32("x", 4), f32("y", 4), f32("z", 4)}
		g.Values[1].Type = tensor.Int8
		node("Add", []int{0, 1}, []int{2}, nil)
		g.Inputs, g.Outputs = []int{0, 1}, []int{2}
	case "dynamic": // matmul of an open dimension
		g.Values = []*graph.Value{f32("x", -1, 8), f32("y", -1, 3), f32("w", 8, 3)}
		g.Values[2].Const = tensor.From(tensor.Float32, []int{8, 3}, make([]float32, 24))
		node("MatMul", []int{0, 2}, []int{1}, nil)
		g.Inputs, g.Outputs = []int{0}, []int{1}
	case "prunable": // matmul of an open dimension, with weights that are not zero
		g.Values = []*graph.Value{f32("x", -1, 8), f32("y", -1, 3), f32("w", 8, 3)}
		w := make([]float32, 24)
		for i := range w {
			w[i] = float32(i) - 9.5
		}
		g.Values[2].Const = tensor.From(tensor.Float32, []int{8, 3}, w)
		node("MatMul", []int{0, 2}, []int{1}, nil)
		g.Inputs, g.Outputs = []int{0}, []int{1}
	case "tokens": // rows of a table for tokens, and a mask of the same named dimensions
		g.Values = []*graph.Value{f32("ids", -1, -1), f32("mask", -1, -1, 3), f32("t", 7, 3), f32("a"), f32("y")}
		g.Values[0].Type, g.Values[0].DimNames, g.Values[1].DimNames = tensor.Int64, []string{"batch", "seq len"}, []string{"batch", "seq len", ""}
		g.Values[2].Const = tensor.From(tensor.Float32, []int{7, 3}, make([]float32, 21))
		g.Values[3].HasShape, g.Values[4].HasShape = false, false
		node("Gather", []int{2, 0}, []int{3}, nil)
		node("Add", []int{3, 1}, []int{4}, nil)
		g.Inputs, g.Outputs = []int{0, 1}, []int{4}
	case "wave": // a convolution that takes more than an open dimension of one
		g.Values = []*graph.Value{f32("x", -1, 1, -1), f32("b", 1), f32("a"), f32("y"), f32("z", 1), f32("w", 4, 1, 5)}
		g.Values[2].HasShape, g.Values[3].HasShape = false, false
		g.Values[5].Const = tensor.From(tensor.Float32, []int{4, 1, 5}, make([]float32, 20))
		node("Relu", []int{1}, []int{4}, nil)
		node("Conv", []int{0, 5}, []int{2}, nil)
		node("Relu", []int{2}, []int{3}, nil)
		g.Inputs, g.Outputs = []int{0, 1}, []int{3, 4}
	default:
		ts.Fatalf("no model %q", kind)
	}
	for i, v := range g.Values {
		v.ID = i
	}
	return m
}

// TestCancel ends a measurement early: what was measured is printed, and the
// status is that of success.
func TestCancel(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	file := filepath.Join(t.TempDir(), "x.opmeter")
	// as Ctrl-C does, once a layer has figures: on a slow machine whole runs have them earlier
	go func() {
		defer cancel()
		awaitLine(t, strings.TrimSuffix(file, profile.Extension)+profile.JournalExtension, `{"counted":{"layer":`)
	}()
	var out, errw bytes.Buffer
	spec := filepath.Join(material.Root(), "examples", "autoencoder.yaml")
	if got := run(ctx, []string{"profile", spec, "--time", "10m", "--warmup", "0s", "-o", file}, strings.NewReader(""), &out, &errw); got != statusDone {
		t.Errorf("status %d, want 0; standard error: %s", got, errw.String())
	}
	if want := "Incomplete: stopped early"; !strings.Contains(out.String(), want) {
		t.Errorf("output lacks %q:\n%s", want, out.String())
	}
	p, err := profile.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if p.Layers[0].Latency == nil || p.Totals.Latency == nil {
		t.Error("what was measured is lost")
	}
}

// TestHelpExamples runs the examples of every command's help.
func TestHelpExamples(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	examples := filepath.Join(material.Root(), "examples")
	setup := [][]string{
		{"build", filepath.Join(examples, "ds_cnn.yaml"), "-o", at("model.tflite")},
		{"build", filepath.Join(examples, "lstm.yaml"), "-o", at("models/lstm.tflite")},
		{"profile", at("model.tflite"), "--runs", "1", "--warmup", "0s", "-o", at("profile.opmeter")},
		{"profile", at("model.tflite"), "--runs", "1", "--warmup", "0s", "-o", at("measured.opmeter")},
		{"profile", at("model.tflite"), "--runs", "1", "--warmup", "0s", "-o", at("one.opmeter")},
		{"profile", at("model.tflite"), "--runs", "1", "--warmup", "0s", "--threads", "2", "-o", at("two.opmeter")},
		{"profile", at("model.tflite"), "--on", "stm32l4r5", "-o", at("estimate.opmeter")},
		{"profile", at("model.tflite"), "--on", "stm32l4r5", "-o", at("results/estimate.opmeter")},
		{"run", at("model.onnx"), "--output", at("cat")},
	}
	for _, d := range []string{"models", "my-boards", "targets", "results"} {
		if err := os.Mkdir(at(d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	board := []byte("model_file,latency_ms\nmodel.tflite,110\n")
	spec, err := os.ReadFile(filepath.Join(examples, "autoencoder.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	g := &graph.Graph{Name: "net", Inputs: []int{0}, Outputs: []int{1}, Values: []*graph.Value{
		{ID: 0, Name: "input", Type: tensor.Float32, Shape: []int{1, 3, -1, -1}, HasShape: true},
		{ID: 1, Name: "output", Type: tensor.Float32, Shape: []int{1, 3, -1, -1}, HasShape: true},
	}, Nodes: []*graph.Node{{Op: "Relu", Version: 17, Inputs: []int{0}, Outputs: []int{1}}}}
	model, err := onnx.Encode(&graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{g}})
	if err != nil {
		t.Fatal(err)
	}
	llm, err := onnx.Encode(decoder.New(decoder.Config{Layers: 1, Width: 8, Heads: 1, HeadSize: 8, MLP: 8, Vocabulary: 20, Context: 2048}))
	if err != nil {
		t.Fatal(err)
	}
	const profiled = `[{"cat" : "Node","pid" :7,"tid" :7,"dur" :30,"ts" :5,"ph" : "X","name" :"Relu_0_kernel_time","args" : {"op_name" : "Relu","node_index" : "0"}}]`
	files := map[string][]byte{
		"net.yaml": spec, "model.onnx": model, "float.onnx": model, "int8.onnx": model, "llm.onnx": llm, "board.csv": board, "onnxruntime_profile.json": []byte(profiled),
	}
	if err := os.Mkdir(at("bmprofile_data-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, b := range tpurecords.Make(tpurecords.Options{}).Files {
		files["bmprofile_data-1/"+name] = b
	}
	for name, b := range files {
		if err := os.WriteFile(at(name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	try := func(args []string) {
		var out, errw bytes.Buffer
		if status := run(t.Context(), args, strings.NewReader(""), &out, &errw); status != 0 {
			t.Errorf("opmeter %s: status %d: %s", strings.Join(args, " "), status, errw.String())
		}
	}
	for _, args := range setup {
		try(args)
	}
	if err := os.Rename(at("cat/out_0.npy"), at("cat.npy")); err != nil {
		t.Fatal(err)
	}
	saved, err := os.ReadFile(at("measured.opmeter"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"old-1", "old-2", "new-1", "new-2"} {
		if err := os.WriteFile(at(name+".opmeter"), saved, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	printed(t, at("model.tflite"), at("board.log"))
	// An application that has made its marks before.
	w := &marked.Writer{}
	w.Names("camera", "decode")
	w.Marks(0, 0, []uint64{3, 1, 0, 1}, []uint64{1, 2, 5}, []uint64{2, 2, 90}, []uint64{4, 0, 5, 1})
	w.End(200)
	if err := errors.Join(os.WriteFile(at("run.marks"), w.Out, 0o600), os.WriteFile(at("application"), []byte("#!/bin/sh\ncat '"+at("run.marks")+"' >\"$OPMETER_MARKS\"\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	n := 0
	root := newRoot(&app{})
	commands := append(root.Commands(), root)
	for _, c := range root.Commands() {
		for _, s := range c.Commands() {
			// The others need a compiler, an emulator or a board: scripts of their own run them.
			if c.Name() == "device" && slices.Contains([]string{"monitor", "agent"}, s.Name()) {
				commands = append(commands, s)
			}
		}
	}
	// A recording and a program stand in for a board.
	standIn := strings.NewReplacer("/dev/ttyACM0", "file:"+at("board.log"), "COM3", "file:"+at("board.log"), "file:board.log", "file:"+at("board.log"), "tcp:127.0.0.1:5000", "file:"+at("board.log"), "./application", at("application"))
	for _, c := range commands {
		for line := range strings.Lines(standIn.Replace(c.Example)) {
			args := strings.Fields(line)[1:]
			switch {
			case args[0] == "devices", len(args) > 1 && args[0] == "device" && args[1] == "doctor":
				// the status tells whether a board is connected, and that its clock is not known
				continue
			case args[0] == "compress":
				continue // takes data, and a model with weights: TestCompressExamples
			case len(args) > 1 && args[0] == "device" && args[1] == "run":
				continue // needs compiler and emulator: device_firmware.txtar
			case slices.Contains([]string{"mcp", "serve", "worker", "push"}, args[0]):
				continue // needs another program, whose test tries the flags
			case args[0] == "view" && !slices.Contains(args, "-o"):
				continue // needs a display: TestView
			case args[0] == "ab":
				continue // needs several programs and quotes: ab.txtar
			case args[0] == "gate", args[0] == "history":
				continue // needs baselines: gate.txtar
			case args[0] == "run" && slices.Contains(args, "--instances"):
				continue // writes where it runs: TestInstances
			case strings.Contains(line, "onnxruntime") && args[0] != "import" && (args[0] != "compare" || strings.Contains(line, "--engine")) && os.Getenv("OPMETER_ONNXRUNTIME") == "":
				t.Logf("not tried, since OPMETER_TEST_ENGINES names no engines: %s", strings.TrimSpace(line))
				continue
			}
			for i, a := range args {
				flag, file, ok := strings.Cut(a, "=")
				switch _, err := os.Stat(at(a)); {
				case strings.HasPrefix(a, "examples/"):
					args[i] = filepath.Join(material.Root(), a)
				case a == "model": // the name of a model
					args[i] = at("model.tflite")
				case i > 0 && (err == nil || args[i-1] == "-o" || args[i-1] == "--output" || args[i-1] == "--compat" || args[i-1] == "--native"):
					args[i] = at(a)
				case ok && strings.HasSuffix(file, ".npy"):
					args[i] = flag + "=" + at(file)
				}
			}
			switch args[0] {
			case "profile":
				if slices.Contains(args, "--on") || slices.Contains(args, "-a") {
					break
				}
				args = append(args, "--time", "10ms", "--warmup", "0s")
			case "build":
				args = append(args, "-o", at("built.tflite"))
			}
			try(args)
			n++
		}
	}
	if n < 15 {
		t.Errorf("only %d examples found", n)
	}
}

// printed writes what a board prints that runs a model 200 times under TFLM's profiler.
func printed(t *testing.T, model, log string) {
	t.Helper()
	m, err := opmeter.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	p, err := opmeter.Count(m, opmeter.Inputs{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for range 200 {
		for i := range p.Layers {
			fmt.Fprintf(&b, "%s took %d ticks (%d ms).\n", p.Layers[i].Op, 1000*(i+1), i+1)
		}
	}
	if err := os.WriteFile(log, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, want []string }{
		{[]string{"profile", "--format", ""}, []string{"table", "json", "csv", "yaml", "markdown"}},
		{[]string{"profile", "--sort", ""}, []string{"index", "time", "macs"}},
		{[]string{"summary", "--by", ""}, []string{"op", "scope"}},
		{[]string{"ops", "--format", ""}, []string{"table", "json"}},
		{[]string{"ops", "--model", ""}, []string{"tflite", "onnx"}},
		{[]string{"profile", ""}, []string{"tflite", "onnx"}},
		{[]string{"report", ""}, []string{"opmeter", "json"}},
		{[]string{"pro"}, []string{"profile"}},
	} {
		var out, errw bytes.Buffer
		if status := run(t.Context(), append([]string{"__complete"}, tt.args...), strings.NewReader(""), &out, &errw); status != 0 {
			t.Errorf("%q: status %d", tt.args, status)
		}
		for _, w := range tt.want {
			if !strings.Contains("\n"+out.String(), "\n"+w) {
				t.Errorf("%q: completions %q lack %q", tt.args, out.String(), w)
			}
		}
	}
}
