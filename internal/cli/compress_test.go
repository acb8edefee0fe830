package cli

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter/compress"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/npy"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// small is a network of three layers for images of 8x8, with weights that scale multiplies.
func small(t *testing.T, scale float32) []byte {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	f := func(name string, shape ...int) *graph.Value {
		return &graph.Value{Name: name, Type: tensor.Float32, Shape: shape, HasShape: true}
	}
	w := func(name string, shape ...int) *graph.Value {
		v := f(name, shape...)
		v.Const = tensor.New(tensor.Float32, shape...)
		x := tensor.Of[float32](v.Const)
		for i := range x {
			x[i] = scale * (r.Float32() - .5)
		}
		return v
	}
	g := &graph.Graph{Name: "net", Inputs: []int{0}, Outputs: []int{9}}
	g.Values = []*graph.Value{
		f("x", 1, 1, 8, 8), w("w0", 16, 1, 3, 3), f("a", 1, 16, 8, 8), f("b", 1, 16, 8, 8), w("w1", 16, 16, 3, 3), f("c", 1, 16, 8, 8), f("d", 1, 16, 8, 8), f("e", 1, 1024),
		w("w2", 1024, 3), f("y", 1, 3),
	}
	conv := graph.Attrs{"pads": []int64{1, 1, 1, 1}}
	for i, n := range []*graph.Node{
		{Name: "first", Op: "Conv", Inputs: []int{0, 1}, Outputs: []int{2}, Attrs: conv},
		{Name: "r0", Op: "Relu", Inputs: []int{2}, Outputs: []int{3}},
		{Name: "second", Op: "Conv", Inputs: []int{3, 4}, Outputs: []int{5}, Attrs: conv},
		{Name: "r1", Op: "Relu", Inputs: []int{5}, Outputs: []int{6}},
		{Name: "flat", Op: "Flatten", Inputs: []int{6}, Outputs: []int{7}},
		{Name: "last", Op: "MatMul", Inputs: []int{7, 8}, Outputs: []int{9}},
	} {
		n.Index, n.Version = i, 13
		g.Nodes = append(g.Nodes, n)
	}
	for i, v := range g.Values {
		v.ID = i
	}
	data, err := onnx.Encode(&graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{g}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// bench makes a folder with a model and data for it.
func studyFolder(t *testing.T) func(name string) string {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, data []byte) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(at(name)), 0o755), os.WriteFile(at(name), data, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	array := func(name string, x *tensor.Tensor) {
		t.Helper()
		var b bytes.Buffer
		if err := npy.Write(&b, x); err != nil {
			t.Fatal(err)
		}
		write(name, b.Bytes())
	}
	write("model.onnx", small(t, 1))
	write("zeros.onnx", small(t, 0))
	r := rand.New(rand.NewPCG(3, 4))
	const n = 40
	x, y, short := tensor.New(tensor.Float32, n, 1, 8, 8), tensor.New(tensor.Int64, n), tensor.New(tensor.Int64, n-1)
	for i, v := 0, tensor.Of[float32](x); i < len(v); i++ {
		v[i] = r.Float32()
	}
	for i, v := 0, tensor.Of[int64](y); i < len(v); i++ {
		v[i] = int64(i % 3)
	}
	array("x.npy", x)
	array("y.npy", y)
	array("short.npy", short)
	array("wide.npy", tensor.New(tensor.Float32, n, 1, 9, 9))
	tensor.Of[float32](x)[77] = float32(math.NaN())
	array("nan.npy", x)
	for i := range 6 {
		p := image.NewGray(image.Rect(0, 0, 8, 8))
		for k := range p.Pix {
			p.SetGray(k%8, k/8, color.Gray{Y: uint8(40*i + k)})
		}
		var b bytes.Buffer
		if err := png.Encode(&b, p); err != nil {
			t.Fatal(err)
		}
		write(fmt.Sprintf("images/%c/%d.png", 'a'+i%3, i), b.Bytes())
	}
	write("score", []byte("#!/bin/sh\necho 0.5\n"))
	write("perf.json", []byte(`{"analysis":{"baseline":{"model":{"measurement":0.001},"ops":[{"id":"c","name":"second","index":2,"measurement":0.0005}]},"pruning":{"model":{"baseline_measurement_key":"0.0","measurements":{"0.0":0.001,"0.9":0.0005}},"ops":[{"id":"c","name":"second","index":2,"baseline_measurement_key":"0.0","measurements":{"0.0":0.0005,"0.9":0.0002}}]},"quantization":null}}`))
	write("recipe.yaml", []byte("modifiers:\n  - !GMPruningModifier\n    start_epoch: 1.0\n    end_epoch: 4.0\n    params:\n      - \"w1\"\n    init_sparsity: 0.05\n    final_sparsity: 0.8\n    update_frequency: 1.0\n"))
	write("torn.study", []byte("no study\n"))
	write("seven.txt", []byte(strings.Repeat("7\n", n)))
	return at
}

// quick are flags that make a whole command short.
func quick(args []string) []string {
	has := func(flag string) bool { return slices.Contains(args, flag) }
	verb := ""
	if len(args) > 1 {
		verb = args[1]
	}
	if verb != "bench" && verb != "perf" && verb != "loss" && !strings.Contains(verb, "model") {
		return args
	}
	if verb != "loss" {
		args = append(args, "--time", "1ms")
	}
	if verb == "bench" {
		return args
	}
	if !has("--levels") {
		args = append(args, "--levels", "0.5,0.9")
	}
	return args
}

// TestCompressExamples runs the examples of all verbs.
func TestCompressExamples(t *testing.T) {
	t.Parallel()
	at := studyFolder(t)
	try := func(line string) {
		args := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "opmeter "))
		// Each name is a file of the folder; all models are one, and there is one study.
		for i, a := range args {
			switch {
			case a == "model.tflite":
				args[i] = at("model.onnx")
			case a == "small.tflite":
				args[i] = at("small.onnx")
			case a == "x.npz":
				args[i] = at("x.npy")
			case a == "./score":
				args[i] = at("score")
			case a == "onnxruntime", a == "opmeter,onnxruntime":
				args[i] = "opmeter"
			case a == "1,8": // the model has no batch
				args[i] = "1"
			case a == "2" && args[i-1] == "--speedup": // more than this model can have
				args[i] = "1.05"
			case a == "speedup-2":
				args[i] = "speedup-1.05"
			case a == "head":
				args[i] = "last"
			case i > 0 && strings.ContainsRune(a, '.') && !strings.ContainsAny(a, ",") && filepath.Ext(a) != "" && a[0] > '9', a == "images/":
				args[i] = at(a)
			}
		}
		if len(args) < 2 || args[1] != "show" {
			args = append(args, "--study", at("model.study"))
		}
		if args[1] == "loss" || args[1] == "perf" && slices.Contains(args, "--batch") {
			args = append(args, "--name", fmt.Sprintf("n%d", rand.Uint32()))
		}
		if status, _, errs := here(t, quick(args)...); status != 0 {
			t.Errorf("%s: status %d: %s", strings.Join(args, " "), status, errs)
		}
	}
	root := newRoot(&app{})
	var compress *cobra.Command
	for _, c := range root.Commands() {
		if c.Name() == "compress" {
			compress = c
		}
	}
	for line := range strings.Lines(compress.Example) {
		try(line)
	}
	for _, verb := range []string{"perf", "loss", "plan", "apply", "bench", "recipe", "export", "show", "import"} {
		c, _, err := compress.Find([]string{verb})
		if err != nil || c.Name() != verb || c.Example == "" {
			t.Fatalf("%s: %v", verb, err)
		}
		for line := range strings.Lines(c.Example) {
			switch {
			case strings.Contains(line, "--batch 8"), strings.Contains(line, "throughput"):
				continue // the model has no batch
			case strings.Contains(line, "--on efr32"), strings.Contains(line, "--speed host-t2"):
				continue // of a model of integers, of a profile of the line before
			}
			try(line)
		}
	}
	for _, topic := range topics {
		if only[topic.name] == "compress" {
			for line := range strings.Lines(topic.example) {
				try(line)
			}
		}
	}
}

// TestCompressRefused has one clear line for what cannot be done.
func TestCompressRefused(t *testing.T) {
	t.Parallel()
	at := studyFolder(t)
	relu := filepath.Join(filepath.Dir(at("x")), "relu.onnx")
	g := &graph.Graph{Name: "net", Inputs: []int{0}, Outputs: []int{1}, Values: []*graph.Value{
		{ID: 0, Name: "x", Type: tensor.Float32, Shape: []int{4}, HasShape: true}, {ID: 1, Name: "y", Type: tensor.Float32, Shape: []int{4}, HasShape: true},
	}, Nodes: []*graph.Node{{Op: "Relu", Version: 14, Inputs: []int{0}, Outputs: []int{1}}}}
	data, err := onnx.Encode(&graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{g}})
	if err != nil || os.WriteFile(relu, data, 0o600) != nil {
		t.Fatal(err)
	}
	model := at("model.onnx")
	for _, tt := range []struct {
		name   string
		args   []string
		status int
		want   string
	}{
		{"no model", []string{"compress"}, statusUse, "name one model file"},
		{"level above 1", []string{"compress", model, "--levels", "0.5,1.5"}, statusUse, "--levels: write levels from 0 to 1"},
		{"level below 0", []string{"compress", "perf", model, "--levels", "-0.1"}, statusUse, "--levels: write levels from 0 to 1"},
		{"level that is none", []string{"compress", "perf", model, "--levels", "NaN"}, statusUse, "--levels: write levels from 0 to 1"},
		{"nothing to try", []string{"compress", "perf", model, "--levels", "0", "--precision", "none"}, statusUse, "nothing to try"},
		{"structure", []string{"compress", "perf", model, "--structure", "3:7"}, statusUse, "--structure: use some of unstructured"},
		{"precision", []string{"compress", "perf", model, "--precision", "int3"}, statusUse, "--precision: use some of float16"},
		{"no weights", []string{"compress", relu}, statusInput, "the model has no weights"},
		{"all zero", []string{"compress", at("zeros.onnx")}, statusInput, "all weights of the model are zero already"},
		{"data of another shape", []string{"compress", "loss", model, "--data", at("wide.npy")}, statusInput, "wide.npy"},
		{"data with NaN", []string{"compress", "loss", model, "--data", at("nan.npy")}, statusInput, "nan.npy"},
		{"no data", []string{"compress", "loss", model, "--data", at("absent.npy")}, statusInput, "absent.npy"},
		{"labels of another length", []string{"compress", "loss", model, "--data", at("x.npy"), "--labels", at("short.npy")}, statusInput, "short.npy"},
		{"labels without data", []string{"compress", "loss", model, "--labels", at("y.npy")}, statusUse, "--labels needs --data"},
		{"accuracy without labels", []string{"compress", "loss", model, "--data", at("x.npy"), "--method", "end-to-end", "--metric", "accuracy"}, statusUse, "--metric: accuracy needs labels"},
		{"metric of another method", []string{"compress", "loss", model, "--method", "magnitude", "--metric", "kl"}, statusUse, "--metric: the method magnitude has no metric"},
		{"method", []string{"compress", "loss", model, "--method", "guess"}, statusUse, "--method \"guess\""},
		{"plan of nothing", []string{"compress", "plan", model}, statusUse, "a plan needs a loss profile"},
		{"apply without a plan", []string{"compress", "apply", model, "-o", at("s.onnx")}, statusUse, "the study has no plan"},
		{"apply in another format", []string{"compress", "apply", model, "-o", at("s.tflite")}, statusUse, "use the ending .onnx"},
		{"layer to exclude", []string{"compress", "plan", model, "--exclude", "nobody"}, statusUse, `no layer is called "nobody"`},
		{"drop", []string{"compress", "plan", model, "--max-drop", "much"}, statusUse, "--max-drop: write a share"},
		{"compat", []string{"compress", "plan", model, "--compat", "nncf"}, statusUse, "use sparsify"},
		{"format", []string{"compress", model, "--format", "html5"}, statusUse, "--format"},
		{"file", []string{"compress", model, "-o", at("x.docx")}, statusUse, "does not name a format of studies"},
		{"kind", []string{"compress", "export", model, "--kind", "pdf"}, statusUse, "--kind"},
		{"show no study", []string{"compress", "show", at("torn.study")}, statusInput, "is not an opmeter study"},
		{"work on no study", []string{"compress", "perf", model, "--study", at("torn.study")}, statusInput, "is not an opmeter study"},
		{"import of nothing", []string{"compress", "import", model, at("x.npy")}, statusInput, "x.npy"},
		{"target", []string{"compress", "perf", model, "--on", "toaster"}, statusUse, "toaster"},
		{"engine and target", []string{"compress", "perf", model, "--on", "stm32l4r5", "--engine", "onnxruntime"}, statusUse, "--engine measures on this computer"},
		{"engine and counting", []string{"compress", model, "--flops", "--engine", "litert"}, statusUse, "--engine measures on this computer"},
		{"no engine", []string{"compress", "perf", model, "--engine", "toaster"}, statusUse, "toaster"},
		{"labels of other classes", []string{"compress", model, "--data", at("x.npy"), "--labels", at("seven.txt")}, statusInput, "seven.txt: the label 7 is not a class of the first output, which has 3"},
		{"drop of everything", []string{"compress", model, "--data", at("x.npy"), "--labels", at("y.npy"), "--max-drop", "200%"}, statusUse, "accuracy falls by less than 100 %"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			args := tt.args
			if !slices.Contains(args, "--study") && len(args) > 1 && args[1] != "show" {
				args = append(args, "--study", filepath.Join(t.TempDir(), "m.study"))
			}
			status, out, errs := here(t, args...)
			if status != tt.status || !strings.Contains(errs, tt.want) || strings.Count(errs, "\n") != 1 || out != "" {
				t.Errorf("status %d, want %d; said %q, want %q; showed %q", status, tt.status, errs, tt.want, out)
			}
		})
	}
}

// TestCompressEngine measures profile and plan in another engine.
func TestCompressEngine(t *testing.T) {
	t.Parallel()
	if os.Getenv("OPMETER_ONNXRUNTIME") == "" {
		t.Skip("ONNX Runtime is absent: set OPMETER_TEST_ENGINES")
	}
	at := studyFolder(t)
	common := []string{at("model.onnx"), "--study", at("m.study"), "--data", at("x.npy"), "--labels", at("y.npy"), "--time", "1ms"}
	args := append([]string{"compress"}, common...)
	args = append(args, "--engine", "onnxruntime", "--levels", "0.5", "--structure", "filter", "--precision", "int8", "--speedup", "1", "--ends")
	if status, _, errs := here(t, args...); status != 0 {
		t.Fatal(errs)
	}
	s, _, err := study.Read(at("m.study"))
	if err != nil {
		t.Fatal(err)
	}
	p := s.Speeds[0]
	if !strings.HasPrefix(p.Engine, "onnxruntime 1.20") || len(p.Layers) != 3 || p.KernelSet != "" || !strings.Contains(p.Name, "onnxruntime") {
		t.Errorf("profile %q in %q with %d layers", p.Name, p.Engine, len(p.Layers))
	}
	ratios := 0
	for _, x := range p.Points {
		if x.Ratio != nil && x.Ratio.CI95 != nil {
			ratios++
		}
	}
	if ratios < 3 {
		t.Errorf("%d ratios of %d points", ratios, len(p.Points))
	}
	if m := s.Plans[0].Measured; m == nil || m.Speedup == nil || m.LatencyS == nil {
		t.Errorf("the plan was measured as %+v", m)
	}
	args = append([]string{"compress", "plan"}, common...)
	if status, _, errs := here(t, args...); status != statusUse || !strings.Contains(errs, "was measured in onnxruntime 1.20") {
		t.Errorf("status %d: %s", status, errs)
	}
}

// TestCompressOther refuses to work on the study of another model, and on one that another
// process works on.
func TestCompressOther(t *testing.T) {
	t.Parallel()
	at := studyFolder(t)
	if status, _, errs := here(t, "compress", "perf", at("model.onnx"), "--study", at("m.study"), "--flops", "--levels", "0.5"); status != 0 {
		t.Fatal(errs)
	}
	if err := os.WriteFile(at("other.onnx"), small(t, 2), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, errs := here(t, "compress", "perf", at("other.onnx"), "--study", at("m.study")); status != statusInput || !strings.Contains(errs, "the study is of another model") {
		t.Errorf("status %d: %s", status, errs)
	}
	c := child("compress", "perf", at("model.onnx"), "--study", at("m.study"), "--time", "10m")
	start(t, c)
	awaitLine(t, at("m.study"), `"pid":`+fmt.Sprint(c.Process.Pid))
	status, _, errs := here(t, "compress", "perf", at("model.onnx"), "--study", at("m.study"))
	if want := fmt.Sprintf("process %d works on this study", c.Process.Pid); status != statusSource || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
		t.Errorf("status %d, said %q, want %q", status, errs, want)
	}
	if status, out, errs := here(t, "compress", "show", at("m.study")); status != 0 || !strings.Contains(out, "second") {
		t.Errorf("status %d: %s %s", status, out, errs)
	}
}

// TestCompressKilled kills the whole command a hundred times, at random moments. Every point that
// a study held is in it after the next kill, with the same figures, and in the end the same
// command makes it whole.
func TestCompressKilled(t *testing.T) {
	t.Parallel()
	for i, tt := range []struct {
		kills int
		most  time.Duration // before a kill
		more  []string
	}{
		// through the whole command, several times
		{40, 400 * time.Millisecond, []string{"--flops"}},
		{40, 400 * time.Millisecond, []string{"--flops", "--method", "end-to-end"}},
		{20, time.Second, nil},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			killed(t, tt.kills, tt.most, tt.more)
		})
	}
}

// killed kills the command n times.
func killed(t *testing.T, n int, most time.Duration, more []string) {
	at := studyFolder(t)
	args := append([]string{"compress", at("model.onnx"), "--study", at("m.study"), "--time", "1ms", "--levels", "0.3,0.5,0.7,0.9", "--data", at("x.npy")}, more...)
	held, whole := map[string]string{}, 0
	for i := range n {
		c := child(args...)
		start(t, c)
		kill := time.AfterFunc(rand.N(most), func() { _ = c.Process.Kill() })
		err := c.Wait()
		kill.Stop()
		s, _, rerr := study.Read(at("m.study"))
		switch {
		case rerr != nil && len(held) == 0:
			continue // it had not begun
		case rerr != nil:
			t.Fatalf("kill %d: %v", i, rerr)
		}
		now := pointsOf(s)
		for k, v := range held {
			if now[k] != v {
				t.Fatalf("kill %d: %s was %s, is %q", i, k, v, now[k])
			}
		}
		held = now
		if err == nil { // it was done before it was killed: from the beginning again
			whole++
			held = map[string]string{}
			if err := os.Remove(at("m.study")); err != nil {
				t.Fatal(err)
			}
		} else if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			t.Fatal(err)
		}
	}
	t.Logf("done %d times before a kill, %d points held", whole, len(held))
	status, out, errs := here(t, args...)
	if status != 0 || !strings.HasPrefix(out, "Plan ") {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	s, damage, err := study.Read(at("m.study"))
	if err != nil || len(s.Speeds) != 1 || len(s.Losses) != 1 || len(s.Plans) != 1 || !s.Speeds[0].Done || !s.Losses[0].Done {
		t.Fatalf("%v, %v: %+v", err, damage, s)
	}
	// Three layers, with four levels of three structures and four formats.
	if n, want := len(s.Losses[0].Points), len(s.Layers)*len(s.Losses[0].Changes); n != want || want != 3*(4*3+4) {
		t.Errorf("%d points of losses, want %d", n, want)
	}
	for k, v := range held {
		if now := pointsOf(s)[k]; now != v {
			t.Errorf("%s was %s, is %q", k, v, now)
		}
	}
}

// pointsOf are the points of all profiles, by what they are of.
func pointsOf(s *study.Study) map[string]string {
	out := map[string]string{}
	figure := func(m *profile.Metric) string {
		v, _ := m.Best()
		return fmt.Sprint(v)
	}
	for _, p := range s.Speeds {
		for _, x := range p.Points {
			out[fmt.Sprint(p.Name, x.Layer, x.Change)] = figure(x.Ratio)
		}
	}
	for _, p := range s.Losses {
		for _, x := range p.Points {
			out[fmt.Sprint(p.Name, x.Layer, x.Change)] = figure(x.Value)
		}
	}
	return out
}

// TestCompressStopped ends the command as Ctrl-C does: what was found is in the study, and a line
// says so.
func TestCompressStopped(t *testing.T) {
	t.Parallel()
	at := studyFolder(t)
	c := child("compress", "perf", at("model.onnx"), "--study", at("m.study"), "--time", "1ms", "--levels", "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9", "--structure", "unstructured,4x1,1x4,block16")
	var errs bytes.Buffer
	c.Stderr = &errs
	start(t, c)
	awaitLine(t, at("m.study"), `"points":`)
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Skipf("no such signal here: %v", err)
	}
	err := c.Wait()
	if err == nil {
		t.Skip("the command was done before it was stopped")
	}
	if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != statusStopped || !strings.Contains(errs.String(), "results so far are in "+at("m.study")) {
		t.Errorf("ended with %v, said %q", err, errs.String())
	}
	s, _, err := study.Read(at("m.study"))
	if err != nil || len(s.Speeds) != 1 || len(s.Speeds[0].Points) == 0 || s.Speeds[0].Done {
		t.Errorf("holds %+v (%v)", s, err)
	}
}

// TestCompressDataFirst: a job that needs data late opens it before it measures anything.
func TestCompressDataFirst(t *testing.T) {
	t.Parallel()
	at := studyFolder(t)
	for _, bad := range [][]string{{"--data", at("absent.npy")}, {"--data", at("wide.npy")}, {"--data", at("x.npy"), "--labels", at("short.npy")}, {"--data", "/dev/zero"}} {
		name := filepath.Join(t.TempDir(), "m.study")
		status, out, errs := here(t, append([]string{"compress", at("model.onnx"), "--study", name}, bad...)...)
		if status != statusInput || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: status %d, said %q, showed %q", bad, status, errs, out)
		}
		if s, _, err := study.Read(name); err == nil && len(s.Speeds) > 0 {
			t.Errorf("%v: measured %d performance profiles", bad, len(s.Speeds))
		}
	}
}

// TestZeroWords says which storage gains from zeros, where there are many.
func TestZeroWords(t *testing.T) {
	t.Parallel()
	z := compress.ZeroStorage{Weights: 1000, Zeros: 778, Bytes: 311 << 10, Sparse: 100 << 10, File: 299 << 10, Compressed: 90 << 10}
	got := zeroWords(z, "tflite")
	for _, want := range []string{"77.8 % of its weights are zero", "With gzip it has 90.0 KiB", "they would take 100 KiB", "TensorFlow Lite Micro does not"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if got := zeroWords(z, "onnx"); !strings.Contains(got, "ONNX Runtime expands sparse initializers") {
		t.Errorf("%q", got)
	}
	z.Zeros = 100
	if got := zeroWords(z, "tflite"); got != "" {
		t.Errorf("few zeros: %q", got)
	}
}
