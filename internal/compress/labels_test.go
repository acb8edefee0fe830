package compress

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/npy"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/describe"
	"github.com/opmeter/opmeter/study"
)

// linear is a model of two matrix multiplications by the identity, with n outputs.
func linear(n int) *graph.Model {
	value := func(id int, name string, shape ...int) *graph.Value {
		return &graph.Value{ID: id, Name: name, Type: tensor.Float32, Shape: shape, HasShape: true, Offset: -1}
	}
	eye := func(rows, cols int) *tensor.Tensor {
		t := tensor.New(tensor.Float32, rows, cols)
		for i := range min(rows, cols) {
			tensor.Of[float32](t)[i*cols+i] = 1
		}
		return t
	}
	g := &graph.Graph{Name: "g", Inputs: []int{0}, Outputs: []int{4}, Values: []*graph.Value{
		value(0, "x", 1, 8), value(1, "w0", 8, 8), value(2, "h", 1, 8), value(3, "w1", 8, n), value(4, "y", 1, n),
	}}
	g.Values[1].Const, g.Values[3].Const = eye(8, 8), eye(8, n)
	g.Nodes = []*graph.Node{
		{Name: "first", Op: "MatMul", Version: 13, Inputs: []int{0, 1}, Outputs: []int{2}},
		{Index: 1, Name: "last", Op: "MatMul", Version: 13, Inputs: []int{2, 3}, Outputs: []int{4}},
	}
	return &graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 13}, Graphs: []*graph.Graph{g}}
}

func openedModel(t *testing.T, m *graph.Model) *Job {
	t.Helper()
	j, err := Open(m, filepath.Join(t.TempDir(), "m.study"), Options{Identity: func() (*describe.Identity, error) {
		return &describe.Identity{File: "f", Structure: "s", Weights: "w"}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// oneHot writes samples whose largest element is at i modulo classes.
func oneHot(t *testing.T, n, classes int) string {
	t.Helper()
	x := tensor.New(tensor.Float32, n, 8)
	for i := range n {
		tensor.Of[float32](x)[i*8+i%classes] = 5
	}
	var b bytes.Buffer
	if err := npy.Write(&b, x); err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "x.npy", b.String())
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestLabelsFitOutputs refuses labels that no output can give, before anything is measured.
func TestLabelsFitOutputs(t *testing.T) {
	t.Parallel()
	const n = 24
	lines := func(label func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(label(i) + "\n")
		}
		return b.String()
	}
	of := func(list ...string) func(i int) string { return func(i int) string { return list[i%len(list)] } }
	for _, tt := range []struct {
		name    string
		outputs int
		label   func(i int) string
		want    string // "" for none
	}{
		{"right", 3, of("0", "1", "2"), ""},
		{"one class only", 3, of("0", "1", "0"), ""},
		{"out of range", 3, of("7", "8", "9"), "the label 7 is not a class of the first output, which has 3: use 0 to 2. The labels go from 7 to 9"},
		{"from one", 3, of("1", "2", "3"), "count from 1"},
		{"negative", 3, of("0", "-1", "2"), "the label -1 is not a class"},
		{"regression", 3, of("0.5", "1.25", "2"), "Values of a regression are not class labels"},
		{"regression with one output", 1, of("0.5", "12", "2"), "Values of a regression are not class labels"},
		{"binary", 1, of("1", "0", "0"), ""},
		{"binary with three classes", 1, of("1", "0", "2"), "the label 2 is not a class of the first output, which has 2"},
		{"names", 3, of("a", "b", "c"), ""},
		{"names in another order", 3, of("c", "a", "b"), `names are numbered in alphabetical order ("a" is 0, "b" is 1, "c" is 2)`},
		{"too few names", 3, of("a", "b", "a"), "has 2 different names, and the first output tells 3 classes apart"},
		{"too many names", 3, of("a", "b", "c", "d"), "has 4 different names"},
		{"of other samples", 3, of("1", "2", "0"), "right for 0 % of 17 samples, less than the 33.3 % of guessing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j := openedModel(t, linear(tt.outputs))
			o := &LossOptions{Data: &Data{Options: samples.Options{Path: oneHot(t, n, 3), Labels: writeFile(t, "y.txt", lines(tt.label))}}}
			err := j.CheckData(t.Context(), o)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if err != nil && !strings.Contains(err.Error(), "y.txt") {
				t.Errorf("error %v names no file", err)
			}
			o.Changes = []study.Change{{Structure: study.Unstructured, Level: .5}}
			o.Data = &Data{Options: o.Data.Options}
			if _, lerr := j.Loss(t.Context(), *o); (lerr == nil) != (err == nil) {
				t.Errorf("profile: %v", lerr)
			}
			// A metric of one's own may take any labels.
			o.Command, o.Metric = []string{"true"}, "command"
			o.Data = &Data{Options: samples.Options{Path: o.Data.Options.Path}}
			if err := j.CheckData(t.Context(), o); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSamplesCounted records how many samples a profile used, held out and left.
func TestSamplesCounted(t *testing.T) {
	t.Parallel()
	j := openedModel(t, linear(3))
	p, err := j.Loss(t.Context(), LossOptions{
		Data:    &Data{Options: samples.Options{Path: oneHot(t, 40, 3), Limit: 20}},
		Changes: []study.Change{{Structure: study.Unstructured, Level: .5}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if p.Samples != 14 || p.Tried != 14 || p.HeldOut != 6 || p.Available != 40 {
		t.Errorf("%d used, %d held out of %d; want 14, 6, 40", p.Samples, p.HeldOut, p.Available)
	}
}

// TestBoundlessLoss refuses a drop that no plan can break.
func TestBoundlessLoss(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		metric string
		most   float64
		ok     bool
	}{{"accuracy", .05, true}, {"accuracy", 1, false}, {"top1", 2, false}, {"relative_error", 2, true}, {"snr_db", 20, true}} {
		err := checkMaxLoss(&study.Goal{MaxLoss: &tt.most}, &study.Loss{LossSettings: study.LossSettings{Metric: tt.metric}})
		if (err == nil) != tt.ok {
			t.Errorf("%s %v: %v", tt.metric, tt.most, err)
		}
	}
}
